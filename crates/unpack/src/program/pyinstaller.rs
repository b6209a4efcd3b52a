//! Programs of Python that PyInstaller bundles in one file: the archive behind its loader.
//!
//! The archive has its table at the end. Its members, and the modules of the archive of modules in it, are streams of zlib one
//! behind the other, which are emitted as they come, without names; modules are marshalled code, in which strings stand as they
//! are. Members that are not compressed are seen in the file itself. An executable is a bundle if its loader names
//! itself; streams in front of that are not looked for.
//!
//! Left out: modules that are encrypted, which PyInstaller has not done since version 6. Bounds: two states of zlib-rs.

use std::sync::LazyLock;

use aho_corasick::packed::Searcher;

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
static MARKS: LazyLock<Searcher> = LazyLock::new(|| {
    let marks: [&[u8]; 4] = [b"_MEIPASS", b"PyInstaller", b"MEI\x0c\x0b\x0a\x0b\x0e", b"PYZ\0"];
    Searcher::new(marks).expect("a few patterns, none of them empty")
});

/// Bytes of the longest mark without its last one.
const SEAM: usize = 10;

/// A reader of bundles.
pub(crate) fn reader() -> Chain<Loader> {
    Chain::new(Loader { before: Vec::new(), is_seen: false })
}

/// The executable in front of the archive.
pub(crate) struct Loader {
    /// The last [`SEAM`] bytes.
    before: Vec<u8>,
    is_seen: bool,
}

impl Loader {
    /// Where the first mark ends in `bytes`, which may have begun before them.
    fn mark(&self, bytes: &[u8]) -> Option<usize> {
        let seam = [self.before.as_slice(), &bytes[..bytes.len().min(SEAM)]].concat();
        let at_seam = MARKS.find(&seam).map(|mark| mark.end() - self.before.len());
        at_seam.or_else(|| MARKS.find(bytes).map(|mark| mark.end()))
    }
}

impl Around for Loader {
    fn passed(&mut self, bytes: &[u8], _: &mut Outbox) -> usize {
        if self.is_seen {
            return bytes.len();
        }
        if let Some(end) = self.mark(bytes) {
            self.is_seen = true;
            self.before = Vec::new();
            return end;
        }
        self.before.extend_from_slice(&bytes[bytes.len().saturating_sub(SEAM)..]);
        self.before.drain(..self.before.len().saturating_sub(SEAM));
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
