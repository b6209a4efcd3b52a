//! OneNote sections (MS-ONESTORE): embedded files, found by the mark in front of each (2.6.13), forward.
//!
//! In the packaging of files that come from the web (2.8, MS-FSSHTTPB 2.2.1), embedded files and pictures are blobs of a
//! stream of objects, found by their header, whose two lengths have to agree.
//!
//! Bounds: one mark and its header. Left out: names of files, which stand elsewhere in the section.

#![cfg_attr(not(test), deny(clippy::arithmetic_side_effects))]

mod packaging;

use memchr::memchr;
use stream::{Class, Kind, Object, ReadAt};

use crate::frame::codec::{Collected, le64};
use crate::frame::format::{Format, Reads};
use crate::frame::reader::{Ended, Outbox, Reader};
use packaging::{Front, front};

/// Row in the table of formats.
pub(crate) const FORMAT: Format = Format {
    name: "OneNote",
    methods: "embedded files; in the packaging of the web, too",
    not_read: "",
    reads: Reads::Stream,
    memory: "100 bytes",
    decoder: "own",
    fuzz: "unpack_onenote",
    compared_with: "the test documents of ClamAV",
};

/// `guidHeader` of a FileDataStoreObject.
const MARK: &[u8; 16] = b"\xe7\x16\xe3\xbd\x65\x26\x11\x45\xa4\xc4\x8d\x4d\x0b\x7a\x9e\xac";
/// The mark, the length, and 12 bytes of no meaning.
const HEADER: usize = 36;
/// `guidFileFormat` of a section in a packaging, behind the type and the identifier of the file.
const PACKAGED: &[u8; 16] = b"\x2f\xe9\x8d\x63\xd4\xa6\xc1\x4b\x9a\x36\xb3\xfc\x25\x11\xa5\xb7";
const FILE_HEAD: usize = 64;

/// A reader of sections.
pub(crate) struct OneNote {
    /// Where the bytes held stand.
    at: u64,
    /// The beginning of the file, that tells how it is packed.
    head: Collected<FILE_HEAD>,
    is_packaged: bool,
    held: Vec<u8>,
    /// Bytes left of the open file.
    left: Option<u64>,
}

impl OneNote {
    pub fn new() -> OneNote {
        OneNote { at: 0, head: Collected::new(), is_packaged: false, held: Vec::new(), left: None }
    }

    /// Searches the held bytes, and emits finds; `last` marks the end of the input.
    fn search(&mut self, last: bool, outbox: &mut Outbox) {
        let held = std::mem::take(&mut self.held);
        let mut rest = &held[..];
        while !rest.is_empty() {
            if let Some(left) = self.left {
                let count = rest.len().min(usize::try_from(left).unwrap_or(usize::MAX));
                outbox.content(&rest[..count]);
                rest = self.pass(rest, count);
                self.left = Some(left.saturating_sub(count as u64));
                self.close_if_whole(outbox);
                continue;
            }
            let first = if self.is_packaged { packaging::MARK[0] } else { MARK[0] };
            rest = self.pass(rest, memchr(first, rest).unwrap_or(rest.len()));
            match if self.is_packaged { front(rest) } else { file_front(rest) } {
                Front::Later if last => rest = self.pass(rest, 1.min(rest.len())),
                Front::Later => break,
                Front::Nothing => rest = self.pass(rest, 1),
                Front::Blob { header_bytes, size } => {
                    rest = self.pass(rest, header_bytes);
                    let raw_offset = Some(self.at);
                    outbox.open(Object { kind: Kind::Member, size: Some(size), raw_offset, ..Object::default() });
                    self.left = Some(size);
                    self.close_if_whole(outbox);
                }
            }
        }
        self.held.extend_from_slice(rest);
    }

    fn close_if_whole(&mut self, outbox: &mut Outbox) {
        if self.left == Some(0) {
            outbox.close();
            self.left = None;
        }
    }

    /// The first bytes are looked at no more.
    fn pass<'a>(&mut self, bytes: &'a [u8], count: usize) -> &'a [u8] {
        self.at = self.at.saturating_add(count as u64);
        &bytes[count..]
    }
}

/// The header of a file, if one stands at the front of these bytes.
fn file_front(bytes: &[u8]) -> Front {
    let looked = bytes.len().min(MARK.len());
    if bytes[..looked] != MARK[..looked] {
        return Front::Nothing;
    }
    if bytes.len() < HEADER {
        return Front::Later;
    }
    Front::Blob { header_bytes: HEADER, size: le64(bytes, MARK.len()) }
}

impl Reader for OneNote {
    fn read(&mut self, input: &[u8], outbox: &mut Outbox) -> usize {
        let taken = if self.head.len() < FILE_HEAD { self.head.fill(input, FILE_HEAD) } else { input.len() };
        self.held.extend_from_slice(&input[..taken]);
        if let Some(head) = self.head.whole() {
            self.is_packaged = head[FILE_HEAD - 16..] == PACKAGED[..];
            self.search(false, outbox);
        }
        taken
    }

    fn end(&mut self, _: &dyn ReadAt, outbox: &mut Outbox) -> Ended {
        self.search(true, outbox);
        if self.left.take().is_some() {
            outbox.close();
            outbox.finding(Class::Truncated, "Heuristics.Truncated.OneNote", self.at);
        }
        Ended::Done
    }
}
