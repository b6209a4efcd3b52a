//! What is told of a string: its bytes, and the content of those that are a whole stream of deflate without a header, as
//! `gzinflate`, `DeflateStream` and `inflateRaw` read it.
//!
//! Bounds: a trial makes [`TRIAL_BYTES`], after which it counts as passed; the content is told as it is made.

use stream::{FileType, Kind, Object};

use crate::codec::deflate::Deflate;
use crate::document::utf16;
use crate::frame::codec::{Decoder, Told};
use crate::frame::reader::{CONTENT_BYTES, Outbox};
use crate::recognise::head::recognise;

const TRIAL_BYTES: usize = 1 << 20;
/// The least length of a stream, below which any bytes may pass for one.
const PACKED_MIN: usize = 24;
/// The cost of a trial, in bytes worked on.
const TRIAL_WORK: usize = 4096;

/// An object to tell, and how far it is.
pub(super) struct Layer {
    bytes: Vec<u8>,
    at: usize,
    has_begun: bool,
    /// The decoder, if the bytes are packed.
    deflate: Option<Box<Deflate>>,
}

impl Layer {
    /// The bytes as they are.
    pub fn plain(bytes: Vec<u8>) -> Layer {
        Layer { bytes, at: 0, has_begun: false, deflate: None }
    }

    /// The content of these bytes if they are one stream. The string that they come from may be cut.
    pub fn inflated(bytes: &[u8], is_cut: bool, work: &mut usize) -> Option<Layer> {
        if bytes.len() < PACKED_MIN || !may_begin(bytes) {
            return None;
        }
        *work = work.saturating_add(TRIAL_WORK);
        let (mut deflate, mut at, mut made) = (inflater(), 0, 0);
        let mut piece = [0; CONTENT_BYTES];
        let is_stream = loop {
            let progress = deflate.decode(&bytes[at..], &mut piece);
            at += progress.taken;
            made += progress.wrote;
            match progress.told {
                Told::Over => break at == bytes.len(),
                Told::Fault(_) => break false,
                _ if made >= TRIAL_BYTES => break true,
                _ if progress.taken == 0 && progress.wrote == 0 => break is_cut,
                _ => {}
            }
        };
        *work = work.saturating_add(made);
        let deflate = Some(Box::new(inflater()));
        (is_stream && made > 0).then(|| Layer { bytes: bytes.to_vec(), at: 0, has_begun: false, deflate })
    }

    /// Tells a part of it; whether it is over.
    pub fn tell(&mut self, outbox: &mut Outbox) -> bool {
        if !std::mem::replace(&mut self.has_begun, true) {
            outbox.open(Object { kind: Kind::Embedded, ..Object::default() });
        }
        let is_over = match &mut self.deflate {
            None => {
                let end = self.bytes.len().min(self.at + CONTENT_BYTES);
                outbox.content(&self.bytes[self.at..end]);
                self.at = end;
                end == self.bytes.len()
            }
            Some(deflate) => {
                let mut piece = [0; CONTENT_BYTES];
                let progress = deflate.decode(&self.bytes[self.at..], &mut piece);
                self.at += progress.taken;
                outbox.content(&piece[..progress.wrote]);
                let stands = progress.taken == 0 && progress.wrote == 0;
                stands || !matches!(progress.told, Told::Nothing | Told::Begin(_))
            }
        };
        if is_over {
            outbox.close();
        }
        is_over
    }
}

fn inflater() -> Deflate {
    Deflate::new("Heuristics.Malformed.Deflate.Data", "Heuristics.Truncated.Deflate")
}

/// Whether the first block is of a kind that there is; a stored one has its length twice.
fn may_begin(bytes: &[u8]) -> bool {
    match bytes {
        [first, low, high, not_low, not_high, ..] if first >> 1 & 3 == 0 => !low == *not_low && !high == *not_high,
        [first, ..] => first >> 1 & 3 != 3,
        [] => false,
    }
}

/// Whether bytes that were read backwards are what was written: text, or a known type.
pub(in crate::document) fn makes_sense(bytes: &[u8]) -> bool {
    match recognise(bytes) {
        FileType::Binary | FileType::Image => utf16::is_text(bytes),
        FileType::Text => bytes.is_ascii(),
        _ => true,
    }
}
