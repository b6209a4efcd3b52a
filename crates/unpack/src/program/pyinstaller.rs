//! Programs of Python that PyInstaller bundles in one file: the archive behind its loader.
//!
//! The archive has its table at the end. Its members, and the modules of the archive of modules in it, are streams of zlib one
//! behind the other, which are emitted as they come, without names; modules are marshalled code, in which strings stand as they
//! are. Members that are not compressed are seen in the file itself. An executable is a bundle if its loader names
//! itself; streams in front of that are not looked for.
//!
//! Left out: modules that are encrypted, which PyInstaller has not done since version 6. Bounds: two states of zlib-rs.

use memchr::memmem;

use crate::frame::chain::{Around, Chain};
use crate::frame::cuts;
use crate::frame::format::{Format, Reads};
use crate::frame::reader::{Outbox, Reading};

/// Row in the table of formats.
pub(crate) const FORMAT: Format = Format {
    name: "PyInstaller",
    methods: "members and modules of programs in one file, without their names",
    not_read: "encrypted modules of versions before 6",
    reads: Reads::Stream,
    memory: "90 KiB",
    decoder: "own; zlib-rs",
    fuzz: "unpack_pyinstaller",
    compared_with: "pyi-archive_viewer, over programs made by PyInstaller",
};

/// Marks of loaders: of a folder that they make, of their errors, and in front of the table and the modules.
const MARKS: [&[u8]; 4] = [b"_MEIPASS", b"PyInstaller", b"MEI\x0c\x0b\x0a\x0b\x0e", b"PYZ\0"];
const MARK_MAX: usize = 11;

/// A reader of bundles.
pub(crate) fn reader() -> Chain<Loader> {
    Chain::new(Loader { back: Vec::new(), is_seen: false })
}

/// The executable in front of the archive.
pub(crate) struct Loader {
    back: Vec<u8>,
    is_seen: bool,
}

impl Around for Loader {
    fn passed(&mut self, bytes: &[u8], _: &mut Outbox) -> usize {
        if self.is_seen {
            return bytes.len();
        }
        let before = self.back.len();
        self.back.extend_from_slice(bytes);
        let ends = MARKS.iter().filter_map(|mark| memmem::find(&self.back, mark).map(|at| at + mark.len()));
        if let Some(end) = ends.min() {
            self.is_seen = true;
            self.back.clear();
            return end.saturating_sub(before);
        }
        let done = self.back.len().saturating_sub(MARK_MAX - 1);
        self.back.drain(..done);
        bytes.len()
    }

    fn is_open(&self) -> bool {
        self.is_seen
    }
}

/// Fuzz body: reads a bundle.
pub fn fuzz_pyinstaller(data: &[u8]) {
    cuts::compare(data, |_| Box::new(Reading::new(reader())));
}
