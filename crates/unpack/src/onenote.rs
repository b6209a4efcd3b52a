//! OneNote sections (MS-ONESTORE): embedded files, found by the mark in front of each (2.6.13), forward.
//!
//! Bounds: one mark and its header.
//!
//! Left out: the packaging of files that come from the web (2.8), told raw with
//! `Heuristics.Limits.Exceeded.OneNotePackaging`; names of files, which stand elsewhere in the section.

use memchr::memmem;
use stream::{Class, Kind, Object, ReadAt};

use crate::codec::{Collected, le64};
use crate::formats::{Format, Reads};
use crate::reader::{Ended, Outbox, Reader};

/// What is read of it.
pub(crate) const FORMAT: Format = Format {
    name: "OneNote",
    methods: "embedded files",
    not_read: "sections in the packaging of the web",
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
    at: u64,
    /// The beginning of the file, that tells how it is packed.
    head: Collected<FILE_HEAD>,
    header: Collected<HEADER>,
    /// What is left of the open file.
    left: Option<u64>,
}

impl OneNote {
    pub fn new() -> OneNote {
        OneNote { at: 0, head: Collected::new(), header: Collected::new(), left: None }
    }

    fn packaging(&mut self, input: &[u8], outbox: &mut Outbox) {
        let before = self.head.len();
        self.head.fill(input, FILE_HEAD);
        let is_whole = before < FILE_HEAD && self.head.len() == FILE_HEAD;
        if is_whole && self.head.bytes()[FILE_HEAD - 16..] == PACKAGED[..] {
            outbox.finding(Class::Limit, "Heuristics.Limits.Exceeded.OneNotePackaging", 0);
        }
    }

    /// Looks for the next mark.
    fn search(&mut self, input: &[u8], outbox: &mut Outbox) -> usize {
        if self.header.len() == 0 {
            let at = memmem::find(input, &MARK[..1]).unwrap_or(input.len());
            if at > 0 {
                return at;
            }
        }
        let held = self.header.len();
        if held < MARK.len() && input[0] != MARK[held] {
            // The mark's first byte does not come again within it.
            self.header.clear();
            return usize::from(input[0] != MARK[0]);
        }
        let wanted = if held < MARK.len() { held + 1 } else { HEADER };
        let taken = self.header.fill(input, wanted);
        if let Some(header) = self.header.whole() {
            let size = le64(header, MARK.len());
            let raw_offset = Some(self.at + taken as u64);
            outbox.open(Object { kind: Kind::Member, size: Some(size), raw_offset, ..Object::default() });
            self.left = Some(size);
            self.header.clear();
        }
        taken
    }
}

impl Reader for OneNote {
    fn read(&mut self, input: &[u8], outbox: &mut Outbox) -> usize {
        let taken = match self.left {
            None => self.search(input, outbox),
            Some(0) => {
                outbox.close();
                self.left = None;
                0
            }
            Some(left) => {
                let count = input.len().min(usize::try_from(left).unwrap_or(usize::MAX));
                outbox.content(&input[..count]);
                self.left = Some(left - count as u64);
                count
            }
        };
        self.packaging(&input[..taken], outbox);
        self.at += taken as u64;
        taken
    }

    fn end(&mut self, _: &dyn ReadAt, outbox: &mut Outbox) -> Ended {
        if let Some(left) = self.left.take() {
            outbox.close();
            if left > 0 {
                outbox.finding(Class::Truncated, "Heuristics.Truncated.OneNote", self.at);
            }
        }
        Ended::Done
    }
}
