//! Common part of all executables packed by UPX: the methods, the header of packed data, the filters.

use super::nrv::{Kind, Nrv, Run};
use super::source::Whole;
use super::{Unpacked, calls};
use crate::codec::lzma::LzmaStream;
use crate::frame::codec::{Decoder as _, Told};

/// The mark of headers.
pub(super) const MARK: &[u8; 4] = b"UPX!";

/// Packed data, with their method.
#[derive(Debug, Clone, Copy)]
pub(super) struct Block {
    pub method: u8,
    pub filter: u8,
    /// Mark of the filter's targets.
    pub filter_mark: u8,
    pub packed: u32,
    pub size: u32,
}

/// A decoder of any method.
pub(super) enum Decoder {
    Nrv(Nrv),
    Lzma { stream: Box<LzmaStream>, at: u64, end: u64 },
}

impl Decoder {
    /// The decoder of a block that stands at `at`, if its method is known.
    pub fn new(block: &Block, at: u64, file: &Whole, bytes_max: usize) -> Option<Decoder> {
        const LZMA: u8 = 14;
        const LZMA_PROPERTIES_BYTES: u64 = 2;
        let word_bytes = [4, 1, 2][usize::from(block.method.checked_sub(2)?) % 3];
        let kind = match block.method {
            2..=4 => Kind::B,
            5..=7 => Kind::D,
            8..=10 => Kind::E,
            LZMA => {
                let [state, literal] = file.bytes(at);
                let (position, context) = (literal >> 4, literal & 15);
                let all = (state & 7).checked_mul(5)?.checked_add(position)?.checked_mul(9)?.checked_add(context)?;
                let [a, b, c, d] = block.size.max(4096).to_le_bytes();
                let stream =
                    LzmaStream::new([all, a, b, c, d], Some(block.size.into()), bytes_max, super::DATA, super::DATA)?;
                let end = at + u64::from(block.packed);
                return Some(Decoder::Lzma { stream: Box::new(stream), at: at + LZMA_PROPERTIES_BYTES, end });
            }
            _ => return None,
        };
        Some(Decoder::Nrv(Nrv::new(kind, word_bytes, at)))
    }

    /// Unpacks until there are `until` bytes, or some more.
    pub fn run(&mut self, file: &Whole, unpacked: &mut Unpacked, until: usize) -> Run {
        let (stream, at, end) = match self {
            Decoder::Nrv(nrv) => return nrv.run(file, unpacked, until),
            Decoder::Lzma { stream, at, end } => (stream, at, *end),
        };
        const PIECE_BYTES: u64 = 4096;
        let mut piece = [0; PIECE_BYTES as usize];
        while unpacked.bytes.len() < until {
            let input = file.run(*at, end.saturating_sub(*at).min(PIECE_BYTES) as usize);
            let progress = stream.decode(&input, &mut piece);
            *at += progress.taken as u64;
            if progress.wrote > unpacked.bytes_max - unpacked.bytes.len() {
                return Run::TooLarge;
            }
            unpacked.bytes.extend_from_slice(&piece[..progress.wrote]);
            match progress.told {
                Told::Over => return Run::End,
                Told::Fault(_) => return Run::Broken,
                _ if progress.taken == 0 && progress.wrote == 0 => return Run::Broken,
                _ => {}
            }
        }
        Run::More
    }
}

impl Block {
    /// Undoes the filter, if it is a known one.
    pub fn undo_filter(&self, code: &mut [u8]) {
        match self.filter {
            0x26 => calls::undo(code, self.filter_mark, false),
            0x49 => calls::undo(code, self.filter_mark, true),
            _ => {}
        }
    }
}
