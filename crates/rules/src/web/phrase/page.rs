//! A page while it comes in.

use std::sync::Arc;

use pattern::words::Place;
use text::encoding::{Decoder, Encoding};

use super::Dialect;
use super::lens::{Cut, Lens};
use super::load::Phrases;
use super::prose::Prose;
use super::score::{Outcome, Score};
use super::view::Percent;
use crate::web::moment::Moment;

/// So much of a page is looked at at once.
const PIECE_BYTES: usize = 8192;

/// The text of a view is counted in blocks of so many bytes, and a page with a block of more occurrences than this is given up: sixteen for each byte,
/// where pages with all lists of Debian have one for 48. Blocks are those of the text, so that cuts do not matter.
const BLOCK_BYTES: usize = 64 << 10;
const OCCURRENCES_MAX: usize = 16 * BLOCK_BYTES;

/// Bytes of a page in which its charset is looked for.
const HEAD_BYTES: usize = 1024;

/// A page that is looked through for phrases: its bytes are fed as they come, decoded but else as the server sent them.
///
/// However they are cut, the score is the same.
#[derive(Debug)]
pub struct Page {
    phrases: Arc<Phrases>,
    percent: Option<Percent>,
    decoded: Vec<u8>,
    reading: Option<Reading>,
    views: Vec<View>,
    /// Views of the bytes of a page in a charset other than UTF-8, as they were before it was decoded.
    raw: Vec<View>,
    bytes: u64,
}

/// How a page is read in our dialect.
#[derive(Debug)]
struct Reading {
    label: Box<[u8]>,
    /// The first bytes, until the charset is known.
    head: Option<Vec<u8>>,
    decoder: Option<Decoder>,
    text: String,
    prose: Prose,
    /// Bytes stand for themselves in the charset, and none beyond ASCII has come.
    is_ascii: bool,
}

/// A view of a page, and what has occurred in it.
#[derive(Debug, Clone)]
struct View {
    cut: Cut,
    shown: Vec<u8>,
    /// The last byte of the text, which E2Guardian does not look at.
    held: Option<u8>,
    place: Place,
    /// How often each phrase has occurred, and those that have.
    counts: Vec<u32>,
    occurred: Vec<u32>,
    /// Bytes of the block under way, and occurrences in it.
    block: (usize, usize),
    /// A block had more than are counted.
    is_dense: bool,
    /// The same view without the tags within lines, from the first one within a word on.
    joined: Option<Box<View>>,
}

impl Page {
    /// A page of which nothing has come, in the charset that it declares.
    pub fn new(phrases: &Arc<Phrases>) -> Page {
        Page::labelled(phrases, b"")
    }

    /// The same, with the charset of its `Content-Type`; empty if that has none.
    pub fn labelled(phrases: &Arc<Phrases>, charset: &[u8]) -> Page {
        let settings = &phrases.settings;
        let views = phrases.lenses.iter().map(|lens| View::new(phrases, lens));
        let is_ours = settings.dialect == Dialect::Sluice && !phrases.is_empty();
        // `weightedphrasemode = 0` turns all phrases off.
        let is_idle = phrases.is_empty() || settings.weighting == 0;
        Page {
            phrases: phrases.clone(),
            percent: settings.decodes_percent.then(Percent::default),
            decoded: Vec::new(),
            reading: is_ours.then(|| Reading::new(charset, settings.case != 0)),
            views: if is_idle { Vec::new() } else { views.collect() },
            raw: Vec::new(),
            bytes: 0,
        }
    }

    /// Takes the next bytes.
    pub fn feed(&mut self, bytes: &[u8]) {
        self.bytes = self.bytes.saturating_add(bytes.len() as u64);
        for piece in bytes.chunks(PIECE_BYTES) {
            match self.percent.take() {
                None => self.read(piece),
                Some(mut percent) => {
                    let mut decoded = std::mem::take(&mut self.decoded);
                    decoded.clear();
                    percent.feed(piece, &mut decoded);
                    self.read(&decoded);
                    (self.percent, self.decoded) = (Some(percent), decoded);
                }
            }
        }
    }

    /// Takes bytes whose percents are decoded: the first ones are kept until the charset is known.
    fn read(&mut self, bytes: &[u8]) {
        let Some(mut reading) = self.reading.take() else { return feed(&mut self.views, bytes, &self.phrases) };
        let mut bytes = bytes;
        if let Some(head) = &mut reading.head {
            let (first, rest) = bytes.split_at(bytes.len().min(HEAD_BYTES - head.len()));
            head.extend(first);
            bytes = rest;
            if head.len() == HEAD_BYTES {
                self.begin(&mut reading);
            }
        }
        self.prose(&mut reading, bytes);
        self.reading = Some(reading);
    }

    /// Finds the charset, and reads the first bytes in it.
    fn begin(&mut self, reading: &mut Reading) {
        let head = reading.head.take().unwrap_or_default();
        reading.declare(&head);
        self.prose(reading, &head);
    }

    /// Takes bytes in the charset of the page.
    fn prose(&mut self, reading: &mut Reading, mut bytes: &[u8]) {
        if reading.is_ascii
            && let Some(at) = bytes.iter().position(|byte| !byte.is_ascii())
        {
            self.show(reading, &bytes[..at], false);
            reading.is_ascii = false;
            self.raw = self.views.clone();
            bytes = &bytes[at..];
        }
        feed(&mut self.raw, bytes, &self.phrases);
        self.show(reading, bytes, false);
    }

    fn show(&mut self, reading: &mut Reading, bytes: &[u8], is_last: bool) {
        let text = match &mut reading.decoder {
            None => bytes,
            Some(decoder) => {
                reading.text.clear();
                decoder.read(bytes, is_last, &mut reading.text);
                reading.text.as_bytes()
            }
        };
        feed(&mut self.views, reading.prose.feed(text), &self.phrases);
        if is_last {
            feed(&mut self.views, reading.prose.finish(), &self.phrases);
        }
    }

    /// Ends the page: its score at this moment.
    pub fn finish(mut self, now: Moment) -> Score {
        if let Some(mut percent) = self.percent.take() {
            let mut decoded = Vec::new();
            percent.finish(&mut decoded);
            self.read(&decoded);
        }
        if let Some(mut reading) = self.reading.take() {
            if reading.head.is_some() {
                self.begin(&mut reading);
            }
            self.show(&mut reading, b"", true);
        }
        let settings = &self.phrases.settings;
        if settings.dialect == Dialect::E2guardian535 && self.bytes > settings.page_bytes_max {
            return Score::default();
        }
        let mut views: Vec<View> = Vec::new();
        for all in [&mut self.views, &mut self.raw] {
            for (mut view, lens) in all.drain(..).zip(&self.phrases.lenses) {
                let joined = view.joined.take();
                for mut view in [Some(view), joined.map(|joined| *joined)].into_iter().flatten() {
                    view.finish(lens, &self.phrases);
                    views.push(view);
                }
            }
        }
        score(&self.phrases, &views, now)
    }
}

/// Feeds bytes to views, which stand in the order of the lenses.
fn feed(views: &mut [View], bytes: &[u8], phrases: &Phrases) {
    views.iter_mut().zip(&phrases.lenses).for_each(|(view, lens)| view.feed(bytes, lens, phrases));
}

/// The score of the view that has the most points, or in which the page is decided.
fn score(phrases: &Phrases, views: &[View], now: Moment) -> Score {
    if views.iter().any(|view| view.is_dense) {
        return Score { outcome: Outcome::Dense, ..Score::default() };
    }
    let mut score: Option<Score> = None;
    for view in views {
        let next = Score::of(phrases, &view.occurred, &view.counts, now);
        let is_final = next.outcome.is_final();
        let is_535 = phrases.settings.dialect == Dialect::E2guardian535;
        let is_more = |score: &Score| match next.points {
            // Of sums below 0 it takes the lowest.
            ..0 if is_535 => next.points <= score.points && score.points <= 0,
            0 if is_535 => score.points == 0,
            points => score.points <= points.max(0),
        };
        let is_better = is_final || score.as_ref().is_none_or(is_more);
        if is_better {
            score = Some(next);
        }
        if is_final {
            break;
        }
    }
    score.unwrap_or_default()
}

impl Reading {
    fn new(label: &[u8], keeps_case: bool) -> Reading {
        Reading {
            label: label.into(),
            head: Some(Vec::new()),
            decoder: None,
            text: String::new(),
            prose: Prose::new(keeps_case),
            is_ascii: false,
        }
    }

    /// Takes the charset of a byte order mark, of the label or of the page itself, in this order.
    fn declare(&mut self, head: &[u8]) {
        const MARKS: [&[u8]; 3] = [b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff"];
        let is_marked = MARKS.iter().any(|mark| head.starts_with(mark));
        let label: &[u8] = if is_marked { b"" } else { &self.label };
        let Some(encoding) = Encoding::declared(label, head, true) else { return };
        self.decoder = encoding.decoder();
        self.is_ascii = self.decoder.is_some() && encoding.is_ascii_compatible();
    }
}

impl View {
    fn new(phrases: &Phrases, lens: &Lens) -> View {
        let mut view = View {
            cut: lens.cut.clone(),
            shown: Vec::new(),
            held: None,
            place: Place::default(),
            counts: vec![0; phrases.texts.len()],
            occurred: Vec::new(),
            block: (0, 0),
            is_dense: false,
            joined: None,
        };
        if phrases.settings.dialect == Dialect::Sluice || matches!(view.cut, Cut::Text(_)) {
            view.scan(phrases, lens, b" ");
        }
        view
    }

    fn feed(&mut self, piece: &[u8], lens: &Lens, phrases: &Phrases) {
        let mut rest = piece;
        if let Some(at) = self.take(rest, lens, phrases)
            && let Cut::Text(text) = &mut self.cut
        {
            let cut = Cut::Text(text.part());
            self.joined = Some(Box::new(View { cut, shown: Vec::new(), ..self.clone() }));
            rest = &rest[at..];
            self.take(rest, lens, phrases);
        }
        if let Some(joined) = &mut self.joined {
            joined.take(rest, lens, phrases);
        }
    }

    /// Takes a piece; up to a tag within a word, if it is the first.
    fn take(&mut self, piece: &[u8], lens: &Lens, phrases: &Phrases) -> Option<usize> {
        self.shown.clear();
        self.shown.extend(self.held.take());
        let mut parted = None;
        match &mut self.cut {
            Cut::Bytes => {
                self.scan(phrases, lens, piece);
                return None;
            }
            Cut::Text(text) => parted = text.feed(piece, &lens.fold, &mut self.shown),
            Cut::Head(head) => head.feed(piece, &lens.fold, &mut self.shown),
        }
        if matches!(self.cut, Cut::Text(_)) && phrases.settings.dialect != Dialect::Sluice {
            self.held = self.shown.pop();
        }
        let shown = std::mem::take(&mut self.shown);
        self.scan(phrases, lens, &shown);
        self.shown = shown;
        parted
    }

    fn scan(&mut self, phrases: &Phrases, lens: &Lens, bytes: &[u8]) {
        let mut rest = bytes;
        while !rest.is_empty() && !self.is_dense {
            let (part, behind) = rest.split_at(rest.len().min(BLOCK_BYTES - self.block.0));
            self.scan_part(phrases, lens, part);
            rest = behind;
        }
    }

    /// Scans bytes of one block.
    fn scan_part(&mut self, phrases: &Phrases, lens: &Lens, bytes: &[u8]) {
        let (counts, occurred, block) = (&mut self.counts, &mut self.occurred, &mut self.block);
        phrases.words.scan(&lens.classes, &mut self.place, bytes, &mut |phrase| {
            let Some(count) = counts.get_mut(phrase as usize) else { return };
            if *count == 0 {
                occurred.push(phrase);
            }
            *count = count.saturating_add(1);
            block.1 += 1;
        });
        self.is_dense = self.block.1 > OCCURRENCES_MAX;
        self.block.0 += bytes.len();
        if self.block.0 == BLOCK_BYTES {
            self.block = (0, 0);
        }
    }

    fn finish(&mut self, lens: &Lens, phrases: &Phrases) {
        if phrases.settings.dialect == Dialect::Sluice {
            self.scan(phrases, lens, b" ");
        }
        self.occurred.sort_unstable();
    }
}
