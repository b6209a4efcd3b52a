//! Which candidate for the key is right.
//!
//! Nothing tells: the content must be decodable, agree with its checksum, or look like something.
//!
//! Bounds: [`SAMPLE_BYTES`] of content.

use stream::{FileType, Limits, ReadAt};
use zlib_rs::crc32::crc32;

use super::aes::Key;
use super::header::Folder;
use super::pull::{Pull, Read};
use super::source::Source;
use crate::frame::keys::Judgement;
use crate::recognise::head::recognise;

/// Content that a candidate is judged by.
pub(super) const SAMPLE_BYTES: usize = 4096;
/// How often a source may come to nothing before it is given up.
const LATER_MAX: u32 = 4;

/// What the content looks like that comes out with this key.
pub(super) fn judge(folder: &Folder, key: &Key, limits: &Limits, kept: &dyn ReadAt) -> Judgement {
    let Ok(mut source) = Source::of(folder, limits, Some(key)) else { return Judgement::Wrong };
    let first = folder.streams.first().copied();
    let (size, crc) = first.unwrap_or((folder.size().unwrap_or(0), folder.crc));
    let wanted = size.min(SAMPLE_BYTES as u64) as usize;
    let (mut sample, mut length, mut later) = ([0; SAMPLE_BYTES], 0, 0);
    while length < wanted && later < LATER_MAX {
        match source.read(kept, &mut sample[length..wanted]) {
            Ok(Read::Some(count)) => length += count,
            Ok(Read::Later) => later += 1,
            Ok(Read::End) | Err(_) => return Judgement::Wrong,
        }
    }
    let sample = &sample[..length];
    let is_whole = size <= SAMPLE_BYTES as u64;
    match crc.filter(|_| is_whole) {
        Some(crc) if crc == crc32(0, sample) => Judgement::Right,
        Some(_) => Judgement::Wrong,
        // What is compressed does not come out by chance.
        None if folder.coders.len() > 1 || recognise(sample) != FileType::Binary => Judgement::Right,
        None => Judgement::Possible,
    }
}
