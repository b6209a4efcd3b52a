//! Data of a stream: through the cipher and its filters into a member, until the stream ends.

use stream::{Class, Kind};

use super::cipher::Cipher;
use super::extent::{Extent, Part};
use super::filter::{Chain, Filter, Turn};
use super::known::Known;
use super::mark::Heads;
use super::object::{Object, Type};
use super::objects::Objects;
use super::security::Method;
use super::{OBJECTS, Pdf, State};
use super::{layer, lexer};
use crate::frame::reader::Outbox;

/// A picture's first bytes, which tell it from an encrypted one.
const SIGN_BYTES: usize = 3;

/// First bytes of a JPEG picture.
const JPEG: &[u8] = &[0xff, 0xd8, 0xff];

/// Data that filters cannot undo without a fault if they are encrypted: such a stream is long, or has its end.
const PLAIN_BYTES: u64 = 4_096;

/// A stream that is being read.
pub(super) struct Data {
    pub(super) start: u64,
    /// The first bytes, up to [`SIGN_BYTES`].
    pub(super) sign: Vec<u8>,
    /// Whether it is encrypted in an encrypted document, and filters would find a fault then.
    pub(super) is_strict: bool,
    pub(super) chain: Chain,
    pub(super) extent: Extent,
    pub(super) heads: Heads,
    /// Object to open; taken when it is opened.
    pub(super) opening: Option<stream::Object>,
    /// Reads an object stream for facts.
    pub(super) objects: Option<Objects>,
}

/// Where the bytes of the string go.
pub(super) enum Sink {
    None,
    Kept(Vec<u8>),
    /// Told through this, opened with its first byte.
    Told {
        chain: Box<Chain>,
        opened: bool,
    },
}

impl Pdf {
    /// The end of the line of `stream`, then the data.
    pub(super) fn line_end(&mut self, returned: bool, input: &[u8], outbox: &mut Outbox) -> usize {
        let Some(object) = self.object.take() else { return 0 };
        let first = self.known.filters(&object).first().copied();
        // No zlib stream begins with white space, if it is not encrypted.
        let skips_all = first == Some(Filter::Flate) && self.key.is_none();
        let belongs = match input[0] {
            b'\r' => skips_all || !returned,
            b'\n' => true,
            byte => skips_all && lexer::is_space(byte),
        };
        if belongs && (skips_all || input[0] == b'\r') {
            self.object = Some(object);
            self.state = State::LineEnd(true);
            return 1;
        }
        if !belongs && !Filter::may_begin_with(first, input[0]) {
            self.again.need();
        }
        let taken = usize::from(belongs);
        self.begin_data(object, self.at + taken as u64, outbox);
        taken
    }

    pub(super) fn begin_data(&mut self, object: Box<Object>, start: u64, outbox: &mut Outbox) {
        if self.known.is_unresolved(&object) {
            self.unresolved(&object, start);
        }
        if object.has_two_filters() {
            self.fault(Class::Ambiguous, "Heuristics.Ambiguous.Pdf.Filter", start);
        }
        let (filters, parameters) = (self.known.filters(&object), self.known.parameters(&object));
        let cipher = self.cipher(&object, &filters, &parameters);
        let chain = Chain::new(cipher, &filters, &parameters, &self.limits);
        let name = object.id.map(|(number, _)| self.known.name_of(number, self.key.as_ref()));
        let media_type = match object.kind() {
            Type::ObjectStream => Some(OBJECTS.into()),
            Type::EmbeddedFile => object.media_type.clone(),
            _ => None,
        };
        let raw_offset = (chain.is_empty() && !self.again.is_reading()).then_some(start);
        let opening = stream::Object { kind: Kind::Member, name, media_type, raw_offset, ..Default::default() };
        let objects = (object.kind() == Type::ObjectStream).then(|| Objects::new(object.count));
        let extent = Extent::new(self.known.length(&object));
        let never_sealed = matches!(object.kind(), Type::CrossReference | Type::Metadata);
        let is_strict = !never_sealed && filters.first().is_some_and(|filter| filter.is_strict());
        let sign = Vec::with_capacity(SIGN_BYTES);
        self.state = State::Data(Box::new(Data {
            start,
            sign,
            is_strict,
            chain,
            extent,
            heads: Heads::default(),
            opening: Some(opening),
            objects,
        }));
        self.object = Some(object);
        self.again.keep(start, outbox);
    }

    /// The stream's filters stand in an object that has not come: it is read again.
    fn unresolved(&mut self, object: &Object, start: u64) {
        if self.again.is_reading() {
            if !self.known.is_full() {
                return;
            }
            return self.fault(Class::Limit, "Heuristics.Limits.Exceeded.PdfReference", start);
        }
        self.again.need();
        self.again.data(start, Box::new(object.clone()));
    }

    fn cipher(&self, object: &Object, filters: &[Filter], parameters: &[layer::Parameters]) -> Option<Cipher> {
        let key = self.key.as_ref()?;
        let (number, _) = object.id?;
        let mut pairs = filters.iter().zip(parameters);
        let crypt_filter = pairs.find(|(filter, _)| **filter == Filter::Crypt).map(|(_, parameters)| parameters);
        let method = match (object.kind(), crypt_filter) {
            (Type::CrossReference, _) => Method::Identity,
            (Type::Metadata, _) if key.metadata_is_plain => Method::Identity,
            (_, Some(parameters)) => {
                if parameters.is_identity {
                    Method::Identity
                } else {
                    key.named
                }
            }
            (Type::EmbeddedFile, None) => key.embedded,
            _ if self.known.is_file(number) => key.embedded,
            _ => key.streams,
        };
        Cipher::new(key, method, object.id?)
    }

    pub(super) fn data(&mut self, mut data: Box<Data>, input: &[u8], outbox: &mut Outbox) -> usize {
        if !data.extent.released().is_empty() {
            let released = data.extent.released().to_vec();
            let turn = data.turn(&released, false, outbox, &mut self.known);
            if let Turn::Took(count) = turn {
                data.heads.advance(&released[..count]);
                data.extent.release(count);
            }
            self.after(turn, data, outbox);
            return 0;
        }
        let (taken, state) = match data.extent.part(input) {
            Part::Data(count) => return self.take(data, &input[..count], outbox),
            Part::Held(count) => (count, State::Data(data)),
            Part::End(count) => {
                data.extent.end(data.chain.takes_surplus());
                (count, State::behind(data))
            }
        };
        self.state = state;
        taken
    }

    fn take(&mut self, mut data: Box<Data>, input: &[u8], outbox: &mut Outbox) -> usize {
        let input = &input[..self.again.before_head(self.at, input.len())];
        let head = data.heads.find(input);
        let input = &input[..head.map_or(input.len(), |(end, _)| end)];
        let turn = data.turn(input, false, outbox, &mut self.known);
        let Turn::Took(count) = turn else {
            self.end_data(data, outbox);
            return 0;
        };
        let room = SIGN_BYTES - data.sign.len();
        data.sign.extend_from_slice(&input[..count.min(room)]);
        if data.sign == JPEG || data.is_strict && data.chain.has_decoded(PLAIN_BYTES) {
            self.again.shows_plain();
        }
        data.heads.advance(&input[..count]);
        if let Some((_, marked)) = head.filter(|(end, _)| *end == count) {
            self.again.hides(marked, self.at + count as u64);
        }
        let had_end = data.extent.inner_end.is_some();
        data.extent.advance(&input[..count]);
        if !had_end && data.extent.inner_end.is_some() {
            self.again.need();
        }
        self.state = State::Data(data);
        self.again.keep(self.at + count as u64, outbox);
        count
    }

    fn after(&mut self, turn: Turn, data: Box<Data>, outbox: &mut Outbox) {
        match turn {
            Turn::Took(_) => self.state = State::behind(data),
            Turn::Over => self.end_data(data, outbox),
        }
    }

    /// All data have come: what is still in the filters is told.
    pub(super) fn rest(&mut self, mut data: Box<Data>, outbox: &mut Outbox) -> usize {
        match data.turn(b"", true, outbox, &mut self.known) {
            Turn::Took(_) => self.state = State::Rest(data),
            Turn::Over => self.end_data(data, outbox),
        }
        0
    }

    fn end_data(&mut self, data: Box<Data>, outbox: &mut Outbox) {
        self.here = self.at;
        if data.is_strict && data.chain.has_inflated() {
            self.again.shows_plain();
        }
        let Data { start, chain, extent, opening, .. } = *data;
        if opening.is_none() {
            outbox.close();
        }
        if let Some(fault) = chain.fault() {
            self.fault(fault.class, fault.name, start);
        }
        if extent.is_wrong {
            self.fault(Class::Malformed, "Heuristics.Malformed.Pdf.Length", start);
        }
        // Where an object begins in the data they are read again from there.
        if let Some(inner) = extent.second_reading().filter(|_| !self.again.has_hidden()) {
            self.again.words(start + inner, self.at);
        }
        self.lexer.reset();
        self.end_object();
        self.again.stream_ended();
        // The first filter has found its end in front of these bytes, which have been taken already.
        let held = extent.into_held();
        self.at -= held.len() as u64;
        let mut left = &held[..];
        while !left.is_empty() && !self.again.is_over() {
            let taken = self.words(left, outbox);
            self.at += taken as u64;
            left = &left[taken..];
        }
    }
}

impl State {
    /// Reads on in the data, or what is left in the filters if all has come.
    fn behind(data: Box<Data>) -> State {
        if data.extent.is_over() { State::Rest(data) } else { State::Data(data) }
    }
}

impl Data {
    /// Lets the filters work; what they tell of an object stream is read for facts.
    pub(super) fn turn(&mut self, input: &[u8], last: bool, outbox: &mut Outbox, known: &mut Known) -> Turn {
        if !input.is_empty() {
            self.opening.take().into_iter().for_each(|object| outbox.open(object));
        }
        let before = outbox.content_bytes();
        let turn = self.chain.turn(input, last, outbox);
        if let Some(objects) = &mut self.objects {
            objects.read(outbox.last_content(outbox.content_bytes() - before), known);
        }
        turn
    }
}
