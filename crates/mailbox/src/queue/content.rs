//! The content of a mail that waits, and a view of it for sending: its fields and its body are looked at several times, and those of a
//! mail that is not long are read once. Lines that are longer than SMTP has them are broken ([`breaks`]).

use super::breaks::{Breaks, Place};
use crate::content::Body;
use crate::outbox::place;
use crate::site::Site;

/// Bytes of a mail that are held while it is sent.
const PIECE_BYTES: usize = 64 << 10;

/// The content of a mail that waits.
pub(super) fn open(site: &Site, mail: u32) -> Option<Body<'_>> {
    let number = place(&site.store.state())?.1.entry(mail)?.message.get();
    Body::open(&site.store, number)
}

/// A mail that is being sent: one piece of it is held.
pub(super) struct Source<'a> {
    body: Body<'a>,
    /// Offset of the piece.
    at: u64,
    piece: Vec<u8>,
    breaks: Breaks,
}

impl Source<'_> {
    pub fn new(body: Body<'_>) -> Source<'_> {
        Source { body, at: 0, piece: Vec::new(), breaks: Breaks::default() }
    }

    /// Breaks lines from an offset on that are too long.
    pub fn break_lines(&mut self, from: u64) {
        let (mut breaks, mut at) = (Breaks::from(from), from);
        while let Some(piece) = self.read_plain(at) {
            breaks.add(piece);
            at += piece.len() as u64;
        }
        self.breaks = breaks;
    }

    /// The size of the mail, in bytes.
    pub fn size(&self) -> u64 {
        self.body.size().saturating_add(self.breaks.bytes())
    }

    /// Some bytes from an offset on; none at its end, and where it cannot be read.
    pub fn read(&mut self, at: u64) -> Option<&[u8]> {
        let (at, most) = match self.breaks.at(at) {
            Place::Inserted(bytes) => return Some(bytes),
            Place::Mail(at, most) => (at, most),
        };
        let piece = self.read_plain(at)?;
        Some(most.and_then(|most| piece.get(..most)).unwrap_or(piece))
    }

    fn read_plain(&mut self, at: u64) -> Option<&[u8]> {
        let holds = at.checked_sub(self.at).is_some_and(|skipped| skipped < self.piece.len() as u64);
        if !holds {
            self.hold(at)?;
        }
        self.piece.get(usize::try_from(at - self.at).ok()?..).filter(|piece| !piece.is_empty())
    }

    fn hold(&mut self, at: u64) -> Option<()> {
        let rest = self.body.size().saturating_sub(at).min(PIECE_BYTES as u64);
        self.piece.resize(usize::try_from(rest).ok()?, 0);
        let length = self.body.read_in_session(at, &mut self.piece).unwrap_or_default();
        self.piece.truncate(length);
        self.at = at;
        (length > 0).then_some(())
    }

    /// Does work over all of it. Of a long mail that keeps no session waiting.
    pub fn scan<T>(&mut self, work: impl FnOnce(&mut Self) -> T) -> T {
        if self.body.size() <= PIECE_BYTES as u64 { work(self) } else { tokio::task::block_in_place(|| work(self)) }
    }
}
