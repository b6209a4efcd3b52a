//! Choice of the right candidate for the key.
//!
//! Nothing tells: the content must be decodable, agree with its checksum, or look like something.
//!
//! Where the beginning does not tell, the checksum of the first file does, unless that is longer than [`WHOLE_BYTES_MAX`].
//!
//! Bounds: [`SAMPLE_BYTES`] of content at once.

use std::cell::Cell;

use stream::{FileType, Limits, ReadAt};
use zlib_rs::crc32::crc32;

use super::aes::Key;
use super::header::{self, Folder, Refused};
use super::pull::{Pull, Read};
use super::source::Source;
use crate::frame::keys::Judgement;
use crate::recognise::head::recognise;

/// Content that a candidate is judged by.
pub(super) const SAMPLE_BYTES: usize = 4096;
/// Content that is read for its checksum.
const WHOLE_BYTES_MAX: u64 = 1 << 20;
/// Attempts without progress after which a source is given up.
const LATER_MAX: u32 = 16;

/// Judges a key by the content that it decrypts; the bytes read are added to `work`.
pub(super) fn judge(folder: &Folder, key: &Key, limits: &Limits, kept: &dyn ReadAt, work: &Cell<usize>) -> Judgement {
    let Ok(mut source) = Source::of(folder, limits, Some(key)) else { return Judgement::Wrong };
    let first = folder.streams.first().copied();
    let (size, crc) = first.unwrap_or((folder.size().unwrap_or(0), folder.crc));
    let mut buffer = [0; SAMPLE_BYTES];
    let Ok(length) = fill(&mut source, kept, &mut buffer, size) else { return Judgement::Wrong };
    work.set(work.get().saturating_add(length));
    let sample = &buffer[..length];
    let mut left = size.saturating_sub(length as u64);
    let is_telling = folder.resists_garbage() || recognise(sample) != FileType::Binary;
    match crc {
        _ if left > 0 && is_telling => return Judgement::Right,
        Some(_) if size <= WHOLE_BYTES_MAX => {}
        _ if is_telling => return Judgement::Right,
        _ => return Judgement::Possible,
    }
    let mut made = crc32(0, sample);
    while left > 0 {
        let Ok(length) = fill(&mut source, kept, &mut buffer, left) else { return Judgement::Wrong };
        if length == 0 {
            return Judgement::Possible;
        }
        made = crc32(made, &buffer[..length]);
        left = left.saturating_sub(length as u64);
        work.set(work.get().saturating_add(length));
    }
    if crc == Some(made) { Judgement::Right } else { Judgement::Wrong }
}

/// Judges a key by the header that it decrypts: one that is whole can be read, and garbage cannot. It may have no checksum.
pub(super) fn judge_header(
    folder: &Folder,
    key: &Key,
    limits: &Limits,
    kept: &dyn ReadAt,
    work: &Cell<usize>,
) -> Judgement {
    let size = folder.size().unwrap_or(0);
    if folder.crc.is_some() || size > WHOLE_BYTES_MAX {
        return judge(folder, key, limits, kept, work);
    }
    let Ok(mut source) = Source::of(folder, limits, Some(key)) else { return Judgement::Wrong };
    let mut bytes = vec![0; size as usize];
    let Ok(length) = fill(&mut source, kept, &mut bytes, size) else { return Judgement::Wrong };
    work.set(work.get().saturating_add(length));
    match header::read(&bytes, limits.directory_entries_max as usize) {
        Err(Refused::Broken) => Judgement::Wrong,
        Ok(_) | Err(Refused::TooMany) => Judgement::Right,
    }
}

/// Fills the buffer, or reads so many bytes into it; less where the source comes to nothing too often.
fn fill(source: &mut Source, kept: &dyn ReadAt, buffer: &mut [u8], left: u64) -> Result<usize, ()> {
    let wanted = usize::try_from(left).map_or(buffer.len(), |left| left.min(buffer.len()));
    let (mut length, mut later) = (0, 0);
    while length < wanted && later < LATER_MAX {
        match source.read(kept, &mut buffer[length..wanted]) {
            Ok(Read::Some(count)) => length += count,
            Ok(Read::Later) => later += 1,
            Ok(Read::End) | Err(_) => return Err(()),
        }
    }
    Ok(length)
}
