//! The part of an image that was kept, read anywhere, and the packed blocks in it, unpacked one at a time.
//!
//! Bounds: the caller says how long a block may be, packed and unpacked; what is made beyond that is dropped.

use stream::{Limits, ReadAt};

use crate::codec::deflate::Deflate;
use crate::frame::codec::{DECODER_TURNS_MAX, Decoder, Fault, STALL, Told};
use crate::frame::stall::Patience;
use crate::stream::lz4::block::Blocks;
use crate::stream::lzma_alone::LzmaAlone;
use crate::stream::lzop::lzo1x;
use crate::stream::xz::Xz;
use crate::stream::zlib::Zlib;
use crate::stream::zstd::Zstd;

/// Content made by one call of a decoder.
const PIECE_BYTES: usize = 16 << 10;

/// Reads so many bytes from `at` on, or as many as were kept.
pub(crate) fn read(kept: &dyn ReadAt, at: u64, count: usize) -> Vec<u8> {
    let mut bytes = vec![0; count];
    let mut there = 0;
    while there < count {
        match kept.read_at(at.saturating_add(there as u64), &mut bytes[there..]) {
            0 => break,
            read => there += read,
        }
    }
    bytes.truncate(there);
    bytes
}

/// How a block is packed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Packing {
    Zlib,
    /// Without a header and a checksum.
    Deflate,
    /// As a `.lzma` file.
    Lzma,
    Lzo,
    Xz,
    Lz4,
    Zstd,
}

impl Packing {
    /// Unpacks a block to `bytes_max` bytes at most: its content up to where it breaks off, and whether it was sound.
    pub fn unpack(self, packed: &[u8], bytes_max: usize, limits: &Limits) -> (Vec<u8>, bool) {
        match self {
            Packing::Zlib => run(&mut Zlib::new(), packed, bytes_max),
            Packing::Deflate => run(&mut Deflate::new("", ""), packed, bytes_max),
            Packing::Lzma => run(&mut LzmaAlone::new(limits), packed, bytes_max),
            Packing::Xz => run(&mut Xz::new(limits), packed, bytes_max),
            Packing::Zstd => run(&mut Zstd::single(limits), packed, bytes_max),
            Packing::Lzo => {
                let mut content = Vec::new();
                let is_sound = lzo1x::unpack(packed, &mut content, bytes_max).is_some();
                (content, is_sound)
            }
            Packing::Lz4 => lz4(packed, bytes_max),
        }
    }
}

/// Runs a decoder over a whole block.
fn run(decoder: &mut dyn Decoder, packed: &[u8], bytes_max: usize) -> (Vec<u8>, bool) {
    let (mut content, mut at, mut is_sound) = (Vec::new(), 0, true);
    let mut piece = vec![0; PIECE_BYTES];
    let mut patience = Patience::of(DECODER_TURNS_MAX);
    while content.len() < bytes_max {
        let room = (bytes_max - content.len()).min(PIECE_BYTES);
        let progress = decoder.decode(&packed[at..], &mut piece[..room]);
        at += progress.taken;
        content.extend_from_slice(&piece[..progress.wrote]);
        let moved = progress.taken > 0 || progress.wrote > 0;
        let told = match progress.told {
            Told::Nothing if !moved && at == packed.len() => decoder.missing().map_or(Told::Over, Told::Fault),
            _ if !patience.bears(moved) => Told::Fault(STALL),
            told => told,
        };
        match told {
            Told::Nothing | Told::Begin(_) => {}
            Told::Over => break,
            Told::Fault(Fault { fatal, .. }) => {
                is_sound = false;
                if fatal {
                    break;
                }
            }
        }
    }
    (content, is_sound)
}

fn lz4(packed: &[u8], bytes_max: usize) -> (Vec<u8>, bool) {
    let (mut blocks, mut content, mut at) = (Blocks::new(), Vec::new(), 0);
    let mut piece = vec![0; PIECE_BYTES];
    loop {
        let room = (bytes_max - content.len()).min(PIECE_BYTES);
        let done = blocks.decode(&packed[at..], &mut piece[..room]);
        at += done.taken;
        content.extend_from_slice(&piece[..done.wrote]);
        if done.wrote == 0 {
            return (content, at == packed.len() && !blocks.are_broken() && blocks.may_end());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_makes_no_more_than_was_asked_for() {
        let limits = Limits::default();
        // Ten literals, then a match of 30 bytes; in both forms the end is missing.
        let lz4 = [&b"\xaf0123456789\x0a\0\x0b"[..]].concat();
        assert_eq!(Packing::Lz4.unpack(&lz4, 20, &limits), (b"01234567890123456789".to_vec(), false));
        assert_eq!(Packing::Lz4.unpack(b"\x500123456", 5, &limits).0, b"01234");
        let stored = b"\x01\x05\0\xfa\xffhello";
        assert_eq!(Packing::Deflate.unpack(stored, 100, &limits), (b"hello".to_vec(), true));
        assert_eq!(Packing::Deflate.unpack(stored, 3, &limits), (b"hel".to_vec(), true));
        assert_eq!(Packing::Deflate.unpack(&stored[..8], 100, &limits), (b"hel".to_vec(), false));
        assert!(!Packing::Zlib.unpack(b"", 100, &limits).1);
    }
}
