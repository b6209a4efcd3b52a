//! Windows executables within a file of another type, or in another executable, uncompressed.
//!
//! Droppers carry their payload in a section, or as an array among their data. An executable is found by its two marks
//! and by plausible headers, and emitted from its first byte to the end that its headers declare; its own readers read
//! its content. The search continues after it.
//!
//! Bounds: headers of [`LOOK`] bytes. Left out: executables whose headers are longer, or begin with `ZM`.

use memchr::memmem;
use stream::{Kind, Object, ReadAt};

use crate::frame::codec::{le16, le32};
use crate::frame::reader::{Ended, Outbox, Reader};
use crate::program::executable::head::Head;

/// Bytes that the headers are read from.
const LOOK: usize = 4096;
/// Where the second mark may stand.
const MARK_AT_MAX: u32 = 2048;
/// The header that tells where the second mark stands.
const DOS_BYTES: usize = 64;
const MARK: &[u8; 2] = b"MZ";

/// A reader that looks for executables.
#[derive(Default)]
pub(crate) struct Carried {
    /// Where the bytes held stand.
    at: u64,
    held: Vec<u8>,
    /// Bytes left of the open one.
    left: Option<u64>,
}

impl Carried {
    /// Searches the held bytes; `last` marks the end of the input.
    fn search(&mut self, last: bool, outbox: &mut Outbox) {
        let held = std::mem::take(&mut self.held);
        let mut rest = &held[..];
        while !rest.is_empty() {
            if self.left.is_some() {
                rest = &rest[self.tell(rest, outbox)..];
                continue;
            }
            rest = self.pass(rest, next(rest, last));
            let is_itself = self.at == 0;
            match size(rest, last) {
                Found::Later => break,
                Found::Executable(size) if !is_itself => {
                    let raw_offset = Some(self.at);
                    outbox.open(Object { kind: Kind::Member, size: Some(size), raw_offset, ..Object::default() });
                    self.left = Some(size);
                }
                _ => rest = self.pass(rest, 1.min(rest.len())),
            }
        }
        self.held.extend_from_slice(rest);
        if last && self.left.take().is_some() {
            outbox.close();
        }
    }

    /// Emits the bytes of the open executable. Returns their number.
    fn tell(&mut self, bytes: &[u8], outbox: &mut Outbox) -> usize {
        let Some(left) = self.left else { return 0 };
        let count = bytes.len().min(usize::try_from(left).unwrap_or(usize::MAX));
        outbox.content(&bytes[..count]);
        self.at += count as u64;
        self.left = Some(left - count as u64);
        if left == count as u64 {
            outbox.close();
            self.left = None;
        }
        count
    }

    /// The first bytes are looked at no more.
    fn pass<'a>(&mut self, bytes: &'a [u8], count: usize) -> &'a [u8] {
        self.at += count as u64;
        &bytes[count..]
    }
}

impl Reader for Carried {
    fn read(&mut self, input: &[u8], outbox: &mut Outbox) -> usize {
        if self.left.is_some() {
            return self.tell(input, outbox);
        }
        let skipped = if self.held.is_empty() { next(input, false) } else { 0 };
        self.at += skipped as u64;
        self.held.extend_from_slice(&input[skipped..]);
        self.search(false, outbox);
        input.len()
    }

    fn end(&mut self, _: &dyn ReadAt, outbox: &mut Outbox) -> Ended {
        self.search(true, outbox);
        Ended::Done
    }
}

/// Where the next mark stands, or may stand if `last` does not say that no more will come.
fn next(bytes: &[u8], last: bool) -> usize {
    let half = usize::from(!last && bytes.last() == Some(&MARK[0]));
    memmem::find(bytes, MARK).unwrap_or(bytes.len() - half)
}

enum Found {
    /// More bytes are needed to say.
    Later,
    Nothing,
    /// So many bytes long.
    Executable(u64),
}

/// Size of the object at the front of these bytes.
fn size(bytes: &[u8], last: bool) -> Found {
    let has = |count: usize| bytes.len() >= count || last;
    if !has(DOS_BYTES) {
        return Found::Later;
    }
    let at = le32(bytes, 0x3c);
    if at > MARK_AT_MAX {
        return Found::Nothing;
    }
    let mark = bytes.get(at as usize..).unwrap_or_default();
    let is_image = mark.starts_with(b"PE\0\0") && matches!(le16(mark, 24), 0x10b | 0x20b);
    match is_image {
        _ if !has(at as usize + 26) => Found::Later,
        false => Found::Nothing,
        true if !has(LOOK) => Found::Later,
        true => match Head::read(&bytes[..bytes.len().min(LOOK)]) {
            Some(head) if !head.sections.is_empty() => Found::Executable(head.file_end()),
            _ => Found::Nothing,
        },
    }
}
