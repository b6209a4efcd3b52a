//! A chunk that is unpacked when it is there whole.

use stream::Class;

use super::DATA;
use crate::frame::codec::{Decoder, Fault, Progress, Told};

/// Unpacks up to so many bytes, and tells whether the input was sound.
type Unpack = fn(&[u8], usize) -> (Vec<u8>, bool);

/// Packed and unpacked, a chunk has no more than this.
const CHUNK_BYTES_MAX: usize = 4 << 20;
const TOO_LONG: Fault = Fault::fatal(Class::Limit, "Heuristics.Limits.Exceeded.DmgChunks");

pub(super) struct Whole {
    unpack: Unpack,
    packed: Vec<u8>,
    content: Option<(Vec<u8>, bool)>,
    told: usize,
}

impl Whole {
    pub const fn new(unpack: Unpack) -> Whole {
        Whole { unpack, packed: Vec::new(), content: None, told: 0 }
    }
}

impl Decoder for Whole {
    fn decode(&mut self, input: &[u8], output: &mut [u8]) -> Progress {
        if !input.is_empty() {
            if self.packed.len() + input.len() > CHUNK_BYTES_MAX {
                return Progress::fault(input.len(), TOO_LONG);
            }
            self.packed.extend_from_slice(input);
            return Progress::took(input.len());
        }
        let packed = std::mem::take(&mut self.packed);
        let (content, is_sound) = self.content.get_or_insert_with(|| (self.unpack)(&packed, CHUNK_BYTES_MAX));
        let wrote = output.len().min(content.len() - self.told);
        output[..wrote].copy_from_slice(&content[self.told..][..wrote]);
        self.told += wrote;
        let told = match (wrote, is_sound) {
            (1.., _) => Told::Nothing,
            (0, true) => Told::Over,
            (0, false) => Told::Fault(Fault { fatal: true, ..DATA }),
        };
        Progress { taken: 0, wrote, told }
    }

    fn missing(&self) -> Option<Fault> {
        None
    }
}
