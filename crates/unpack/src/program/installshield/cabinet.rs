//! A cabinet: a header, and files in chunks.

#![cfg_attr(not(test), deny(clippy::arithmetic_side_effects))]

use stream::Object;

use super::{DATA, InstallShield, TRUNCATED};
use crate::codec::deflate::Deflate;
use crate::frame::archive::{Check, Content, Faults, Member, Record, Records};
use crate::frame::codec::{Collected, Decoder, Fault, Progress, Told, le16, le32};

/// The first bytes of a cabinet.
pub(crate) const MAGIC: &[u8; 4] = b"ISc(";

/// The content of every chunk of a file but the last.
const CHUNK_BYTES: usize = 32 << 10;
const LENGTH_BYTES: usize = 2;

/// A reader of cabinets.
pub(crate) struct Cabinet {
    state: State,
    deflate: Deflate,
    length: Collected<LENGTH_BYTES>,
    /// Packed bytes left of the chunk under way.
    packed_left: usize,
    /// Content of it so far.
    content: usize,
}

#[derive(PartialEq)]
enum State {
    Header,
    Files,
    Rest,
}

impl Cabinet {
    pub fn new() -> Cabinet {
        Cabinet {
            state: State::Header,
            deflate: Deflate::new(DATA.name, TRUNCATED.name),
            length: Collected::new(),
            packed_left: 0,
            content: 0,
        }
    }

    fn fault(&mut self, taken: usize, fault: Fault) -> Progress {
        self.state = State::Rest;
        Progress::fault(taken, fault)
    }

    /// A chunk is over: so is the file, if the chunk was shorter than others.
    fn end_chunk(&mut self, taken: usize, wrote: usize) -> Progress {
        let is_full = self.content == CHUNK_BYTES;
        self.length.clear();
        Progress { taken, wrote, told: if is_full { Told::Nothing } else { Told::Over } }
    }
}

impl Records for Cabinet {
    const FAULTS: Faults = InstallShield::FAULTS;

    fn record(&mut self, head: &[u8], _: u64, _: &mut Vec<Fault>) -> Record {
        const HEADER_BYTES: usize = 24;
        const CONTENT_AT: usize = 20;
        match self.state {
            State::Header if head.len() < HEADER_BYTES => Record::Need(HEADER_BYTES),
            State::Header if !head.starts_with(MAGIC) => Record::Rest,
            State::Header => {
                self.state = State::Files;
                Record::pass_bytes(u64::from(le32(head, CONTENT_AT)).max(HEADER_BYTES as u64))
            }
            State::Files if head.is_empty() => Record::Need(1),
            State::Files => {
                self.length.clear();
                let content = Content::Packed { packed: None, size: None };
                Record::Member(0, Member { object: Object::default(), content, check: Check::None })
            }
            State::Rest if head.is_empty() => Record::Need(1),
            State::Rest => Record::Rest,
        }
    }

    fn decode(&mut self, input: &[u8], output: &mut [u8]) -> Progress {
        if self.length.whole().is_none() {
            // A file of whole chunks may be the last one.
            if input.is_empty() && self.length.len() == 0 {
                return Progress::tells(0, Told::Over);
            }
            let taken = self.length.fill(input, LENGTH_BYTES);
            if let Some(length) = self.length.whole() {
                self.packed_left = usize::from(le16(length, 0));
                self.content = 0;
                self.deflate.reset();
            }
            return Progress::took(taken);
        }
        if self.content > CHUNK_BYTES {
            // The rest of the chunk has no meaning.
            let taken = input.len().min(self.packed_left);
            self.packed_left = self.packed_left.saturating_sub(taken);
            return if self.packed_left == 0 { self.fault(taken, DATA) } else { Progress::took(taken) };
        }
        let offered = &input[..input.len().min(self.packed_left)];
        let room = output.len().min((CHUNK_BYTES + 1).saturating_sub(self.content));
        let progress = self.deflate.decode(offered, &mut output[..room]);
        self.packed_left = self.packed_left.saturating_sub(progress.taken);
        self.content = self.content.saturating_add(progress.wrote);
        let (mut taken, wrote) = (progress.taken, progress.wrote);
        match progress.told {
            _ if self.content > CHUNK_BYTES => Progress { taken, wrote, told: Told::Nothing },
            Told::Over => {
                // As above.
                let left = self.packed_left.min(input.len().saturating_sub(taken));
                taken = taken.saturating_add(left);
                self.packed_left = self.packed_left.saturating_sub(left);
                match self.packed_left {
                    0 => self.end_chunk(taken, wrote),
                    _ => Progress { taken, wrote, told: Told::Nothing },
                }
            }
            Told::Fault(fault) => Progress { wrote, ..self.fault(taken, fault) },
            _ if self.packed_left == 0 && taken == 0 && wrote == 0 => self.fault(0, DATA),
            _ => Progress { taken, wrote, told: Told::Nothing },
        }
    }
}
