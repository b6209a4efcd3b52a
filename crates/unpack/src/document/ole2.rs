//! Compound files (MS-CFB): old Office documents, Outlook messages, Windows Installer packages.
//!
//! Tables and directory can be anywhere, so the file is kept, and read at its end: every stream is a member with the
//! names of its storages, in the order of the directory, including those outside of the tree; then the unused sectors,
//! as one member. Content within streams follows them: the source of VBA modules ([`vba`]), embedded files
//! ([`native`]), objects of PowerPoint, streams of Hangul ([`hwp`]), the attachments and the compressed body of Outlook.
//!
//! Of encrypted documents (`crypt`) the package or the workbook follows in the clear, if a candidate password opens it.
//! Other encrypted documents are recognised and emitted raw (`Heuristics.Encrypted.Office`).
//!
//! Bounds: `spool_bytes_max` of the file, the tables of [`container`], `directory_entries_max` entries, and in all
//! [`TOLD_RATIO`] times the kept bytes, for streams that share sectors.
//!
//! Left out: bytes after the size of a stream in its last sector; compiled VBA (without source it is
//! `Heuristics.Ambiguous.Ole2.VbaSource`).

mod container;
mod crypt;
mod decrypted;
mod directory;
mod hwp;
mod installer;
pub(crate) mod native;
mod ovba;
mod powerpoint;
mod vba;

use std::collections::VecDeque;

use stream::{Class, Limits, Object, ReadAt};

use crate::codec::lzfu::LzFu;
use crate::frame::codec::{Fault, le16, le32};
use crate::frame::format::{Format, Reads};
use crate::frame::keys::{Judgement, Keys, Tried};
use crate::frame::name;
use crate::frame::password::{Passwords, TOO_COSTLY};
use crate::frame::reader::{Ended, Outbox, Reader};
use container::{Container, Cursor, HEADER_BYTES, Place};
use crypt::{DEFAULT_PASSWORD, Key, Scheme};
use decrypted::{Package, Workbook};
use directory::{Directory, ENTRY_BYTES, Kind};
use native::Native;
use powerpoint::PowerPoint;
use vba::{Module, Source};

/// Row in the table of formats.
pub(crate) const FORMAT: Format = Format {
    name: "OLE2 (CFB)",
    methods: "versions 3 and 4, mini streams, orphaned entries and sectors; VBA source, Ole10Native, PowerPoint objects, \
              Outlook attachments and bodies, Installer names, compressed streams of Hangul (HWP 5); \
              agile and standard encryption, RC4 of workbooks, with the default password and candidates",
    not_read: "Office documents encrypted otherwise (RC4 of Word and PowerPoint, XOR obfuscation)",
    reads: Reads::Spool("kept, up to `spool_bytes_max`"),
    memory: "104 bytes and a name for each of `directory_entries_max` entries, 4 bytes for each sector",
    decoder: "own; aes, md-5, sha1, sha2",
    fuzz: "unpack_ole2",
    compared_with: "the test documents of ClamAV, documents made for it and by msoffcrypto-tool",
};

/// Maximum multiple of the kept bytes that is emitted: raw, and decoded, and some more.
const TOLD_RATIO: u64 = 4;

const PIECE_BYTES: usize = 4096;

/// Bytes read of a package's encryption.
const ENCRYPTION_BYTES: usize = 8192;

const ENCRYPTED: Fault = Fault::passing(Class::Encrypted, "Heuristics.Encrypted.Office");

/// A reader of compound files.
pub(crate) struct Ole2 {
    limits: Limits,
    /// The length of the file.
    bytes: u64,
    asked: bool,
    state: State,
    container: Container,
    directory: Directory,
    modules: Vec<(Option<usize>, Module)>,
    keys: Keys<Scheme>,
    /// Key of the document.
    key: Option<Key>,
    /// Bytes that may still be emitted.
    left: u64,
    /// Whether it is a document of Hangul with compressed streams.
    is_hangul: bool,
}

enum State {
    Header,
    /// The directory is being read; a sector holds several entries.
    Directory(Cursor),
    /// Passwords are tried.
    Locked(Box<Scheme>),
    /// The next entry.
    Entry(usize),
    /// A stream is being read, and then those of its readings that follow.
    Stream {
        entry: usize,
        stream: Stream,
        later: VecDeque<Reading>,
    },
    /// The next sector that belongs to nothing; whether one was emitted.
    Unused(u32, bool),
    Over,
}

/// A stream, as far as it has been read.
struct Stream {
    cursor: Cursor,
    left: u64,
    reading: Reading,
    /// Bytes that the reading has not taken.
    pending: Vec<u8>,
}

/// How a stream is read.
enum Reading {
    /// As the bytes that it is.
    Plain,
    By(Box<dyn Reader>),
}

impl Ole2 {
    pub fn new(limits: &Limits, passwords: &Passwords) -> Ole2 {
        Ole2 {
            limits: limits.clone(),
            bytes: 0,
            asked: false,
            state: State::Header,
            container: Container::default(),
            directory: Directory::default(),
            modules: Vec::new(),
            keys: Keys::new(&passwords.behind(DEFAULT_PASSWORD)),
            key: None,
            left: 0,
            is_hangul: false,
        }
    }

    fn header(&mut self, kept: &dyn ReadAt, outbox: &mut Outbox) -> State {
        let mut header = [0; HEADER_BYTES];
        if kept.read_at(0, &mut header) < HEADER_BYTES {
            outbox.finding(Class::Truncated, "Heuristics.Truncated.Ole2", 0);
            return State::Over;
        }
        let kept_bytes = self.bytes.min(self.limits.spool_bytes_max.into());
        self.left = kept_bytes * TOLD_RATIO;
        if kept_bytes < self.bytes {
            outbox.finding(Class::Limit, "Heuristics.Limits.Exceeded.Spool", kept_bytes);
        }
        self.container = Container::new(&header, self.bytes, kept);
        outbox.worked(kept_bytes as usize / 128);
        State::Directory(self.container.cursor(Place::Sectors, self.container.directory_start))
    }

    fn directory(&mut self, mut cursor: Cursor, kept: &dyn ReadAt, outbox: &mut Outbox) -> State {
        for _ in 0..32 {
            let mut entry = [0; ENTRY_BYTES];
            let full = self.directory.entries.len() >= self.limits.directory_entries_max as usize;
            if full || self.container.read(&mut cursor, kept, &mut entry) < ENTRY_BYTES {
                return self.directory_ends(full, kept, outbox);
            }
            self.directory.push(&entry);
            outbox.worked(ENTRY_BYTES);
        }
        State::Directory(cursor)
    }

    fn directory_ends(&mut self, full: bool, kept: &dyn ReadAt, outbox: &mut Outbox) -> State {
        if full {
            outbox.finding(Class::Limit, "Heuristics.Limits.Exceeded.Ole2Directory", 0);
        }
        self.directory.walk();
        if let Some(root) = self.directory.entries.first() {
            self.container.mini_stream(root.start, kept);
        }
        if self.container.is_broken || self.directory.entries.is_empty() {
            outbox.finding(Class::Malformed, "Heuristics.Malformed.Ole2.Tables", 0);
        }
        self.modules(kept, outbox);
        self.encryption(kept, outbox)
    }

    /// Reads all `dir` streams about the modules beside them.
    fn modules(&mut self, kept: &dyn ReadAt, outbox: &mut Outbox) {
        const PROJECTS_MAX: usize = 16;
        let is_directory = |entry: &directory::Entry| entry.name == "dir" && entry.kind == Kind::Stream;
        let found = self.directory.entries.iter().enumerate().filter(|(_, entry)| is_directory(entry));
        let found: Vec<usize> = found.map(|(index, _)| index).take(PROJECTS_MAX).collect();
        for index in found {
            let packed = self.beginning(index, vba::DIRECTORY_BYTES, kept);
            outbox.worked(packed.len());
            let parent = self.directory.entries[index].parent;
            self.modules.extend(vba::modules(&packed).into_iter().map(|module| (parent, module)));
        }
    }

    /// The first bytes of a stream.
    fn beginning(&mut self, index: usize, bytes: usize, kept: &dyn ReadAt) -> Vec<u8> {
        let (mut cursor, left) = self.open(index);
        let mut beginning = vec![0; bytes.min(usize::try_from(left).unwrap_or(usize::MAX))];
        let mut at = 0;
        while at < beginning.len() {
            match self.container.read(&mut cursor, kept, &mut beginning[at..]) {
                0 => break,
                count => at += count,
            }
        }
        beginning.truncate(at);
        beginning
    }

    /// Where a stream begins, and its length.
    fn open(&self, index: usize) -> (Cursor, u64) {
        let entry = &self.directory.entries[index];
        // The upper half of the size is garbage in old files.
        let size = if entry.size > self.bytes { entry.size & 0xffff_ffff } else { entry.size };
        let place = if size < self.container.mini_cutoff { Place::Mini } else { Place::Sectors };
        (self.container.cursor(place, entry.start), size)
    }

    /// Says so if the document is encrypted in a way that is not read.
    fn encryption(&mut self, kept: &dyn ReadAt, outbox: &mut Outbox) -> State {
        let entries = self.directory.entries.iter().enumerate();
        let in_root = entries.filter(|(_, entry)| entry.kind == Kind::Stream && entry.parent == Some(0));
        let streams: Vec<usize> = in_root.map(|(index, _)| index).take(64).collect();
        let mut is_encrypted = false;
        for index in streams {
            let name = self.directory.entries[index].name.clone();
            let scheme = match name.as_str() {
                "EncryptionInfo" => Scheme::package(&self.beginning(index, ENCRYPTION_BYTES, kept)),
                "Workbook" | "Book" => match file_pass(&self.beginning(index, 512, kept)) {
                    None => continue,
                    Some(record) => Scheme::workbook(record),
                },
                "EncryptedPackage" | "EncryptedSummary" => None,
                hwp::HEADER => {
                    let head = hwp::Head::read(&self.beginning(index, hwp::HEADER_BYTES, kept));
                    self.is_hangul = head.is_some_and(|head| head.is_compressed);
                    if !head.is_some_and(|head| head.is_encrypted) {
                        continue;
                    }
                    None
                }
                "WordDocument" if le16(&self.beginning(index, 12, kept), 10) & 0x100 != 0 => None,
                "Current User" if le32(&self.beginning(index, 16, kept), 12) == 0xf3d1_c4df => None,
                _ => continue,
            };
            if let Some(scheme) = scheme {
                return State::Locked(Box::new(scheme));
            }
            is_encrypted = true;
        }
        if is_encrypted {
            outbox.finding(ENCRYPTED.class, ENCRYPTED.name, 0);
        }
        State::Entry(0)
    }

    /// Tries a password.
    fn unlock(&mut self, scheme: Box<Scheme>, outbox: &mut Outbox) -> State {
        let mut work = 0;
        let tried = self.keys.attempt(&scheme, &mut work, |_| Judgement::Right);
        outbox.worked(work);
        match tried {
            Tried::More => return State::Locked(scheme),
            Tried::Found(key) => self.key = Some(key),
            Tried::Closed => outbox.finding(ENCRYPTED.class, ENCRYPTED.name, 0),
            Tried::Refused => {
                outbox.finding(TOO_COSTLY.class, TOO_COSTLY.name, 0);
                outbox.finding(ENCRYPTED.class, ENCRYPTED.name, 0);
            }
        }
        State::Entry(0)
    }

    fn entry(&mut self, index: usize, kept: &dyn ReadAt, outbox: &mut Outbox) -> State {
        let Some(entry) = self.directory.entries.get(index) else { return State::Unused(0, false) };
        if entry.kind != Kind::Stream {
            outbox.worked(1);
            return State::Entry(index + 1);
        }
        let mut object = self.object(index, kept);
        let later = self.readings(index);
        let (cursor, left) = self.open(index);
        object.size = Some(left);
        outbox.open(object);
        let stream = Stream { cursor, left, reading: Reading::Plain, pending: Vec::new() };
        State::Stream { entry: index, stream, later }
    }

    /// Object of a stream.
    fn object(&mut self, index: usize, kept: &dyn ReadAt) -> Object {
        let name = &self.directory.entries[index].name;
        // Properties of a message: type in the last four digits (MS-OXMSG 2.1.1).
        let charset = (name.starts_with("__substg1.0_") && name.ends_with("001F")).then(|| "utf-16le".into());
        let is_attachment = name == "__substg1.0_37010102";
        let mut path = self.directory.path(index);
        if let Some(file) = is_attachment.then(|| self.attachment_name(index, kept)).flatten() {
            path = file;
        }
        let name = Some(name::cut(&path, self.limits.name_bytes_max as usize));
        Object { kind: stream::Kind::Member, name, charset, ..Object::default() }
    }

    /// The name of an attachment: its long name, else its short one.
    fn attachment_name(&mut self, index: usize, kept: &dyn ReadAt) -> Option<String> {
        let parent = self.directory.entries[index].parent;
        ["3707001F", "3707001E", "3704001F", "3704001E"].into_iter().find_map(|property| {
            let found = self.directory.stream_in(parent, |name| name.strip_prefix("__substg1.0_") == Some(property))?;
            let bytes = self.beginning(found, 2 * self.limits.name_bytes_max as usize, kept);
            let name = if property.ends_with('F') { name::utf16_le(&bytes) } else { name::utf8_or_latin1(&bytes) };
            (!name.is_empty()).then(|| name.into())
        })
    }

    /// Returns the readings of a stream besides the raw one.
    fn readings(&self, index: usize) -> VecDeque<Reading> {
        let entry = &self.directory.entries[index];
        let mut readings: VecDeque<Reading> = VecDeque::new();
        let is_module = |(parent, module): &&(Option<usize>, Module)| {
            *parent == entry.parent && module.stream.to_lowercase() == entry.name.to_lowercase()
        };
        if let Some((_, module)) = self.modules.iter().find(is_module) {
            readings.push_back(Reading::By(Box::new(Source::new(&self.directory.path(index), module.offset))));
        }
        match entry.name.as_str() {
            "EncryptedPackage" => {
                let key = self.key.clone().filter(Key::is_of_package);
                readings.extend(key.map(|key| Reading::By(Box::new(Package::new(key)))));
            }
            "Workbook" | "Book" => {
                let key = self.key.clone().filter(|key| !key.is_of_package());
                readings.extend(key.map(|key| Reading::By(Box::new(Workbook::new(key)))));
            }
            "\u{1}Ole10Native" => readings.push_back(Reading::By(Box::new(Native::new(&self.limits)))),
            "PowerPoint Document" => readings.push_back(Reading::By(Box::new(PowerPoint::new()))),
            "__substg1.0_10090102" => readings.push_back(Reading::By(Box::new(LzFu::new()))),
            "dir" if self.directory.parent_name(index) == "VBA" => {
                readings.push_back(Reading::By(Box::new(Source::new(&self.directory.path(index), 0))));
            }
            _ => {}
        }
        let path = if self.is_hangul { self.directory.path(index) } else { String::new() };
        if hwp::is_packed(&path) {
            let name = name::cut(&path, self.limits.name_bytes_max as usize);
            readings.push_back(Reading::By(Box::new(hwp::Inflated::new(name))));
        }
        readings
    }

    fn stream(
        &mut self,
        entry: usize,
        mut stream: Stream,
        later: VecDeque<Reading>,
        kept: &dyn ReadAt,
        outbox: &mut Outbox,
    ) -> State {
        if stream.pending.is_empty() {
            stream.pending = self.fill(&mut stream, kept);
            outbox.worked(stream.pending.len() / 8 + 1);
        }
        if stream.pending.is_empty() {
            return self.stream_ends(entry, stream, later, kept, outbox);
        }
        match &mut stream.reading {
            Reading::Plain => {
                outbox.content(&stream.pending);
                stream.pending.clear();
            }
            Reading::By(reader) => {
                let taken = reader.read(&stream.pending, outbox);
                outbox.worked(taken);
                stream.pending.drain(..taken);
            }
        }
        State::Stream { entry, stream, later }
    }

    /// The next bytes of a stream, as far as more may be emitted.
    fn fill(&mut self, stream: &mut Stream, kept: &dyn ReadAt) -> Vec<u8> {
        let most = stream.left.min(self.left).min(PIECE_BYTES as u64) as usize;
        let mut piece = vec![0; most];
        let mut at = 0;
        while at < most {
            match self.container.read(&mut stream.cursor, kept, &mut piece[at..]) {
                0 => break,
                count => at += count,
            }
        }
        piece.truncate(at);
        stream.left -= at as u64;
        self.left -= at as u64;
        piece
    }

    fn stream_ends(
        &mut self,
        entry: usize,
        mut stream: Stream,
        mut later: VecDeque<Reading>,
        kept: &dyn ReadAt,
        outbox: &mut Outbox,
    ) -> State {
        match &mut stream.reading {
            Reading::Plain => outbox.close(),
            Reading::By(reader) => {
                if reader.end(kept, outbox) == Ended::More {
                    return State::Stream { entry, stream, later };
                }
            }
        }
        if stream.left > 0 && self.left == 0 {
            outbox.finding(Class::Limit, "Heuristics.Limits.Exceeded.Ole2Overlap", 0);
            return State::Over;
        }
        if stream.left > 0 && matches!(stream.reading, Reading::Plain) {
            outbox.finding(Class::Truncated, "Heuristics.Truncated.Ole2", 0);
        }
        match later.pop_front() {
            None => State::Entry(entry + 1),
            Some(reading) => {
                let (cursor, left) = self.open(entry);
                State::Stream { entry, stream: Stream { cursor, left, reading, pending: Vec::new() }, later }
            }
        }
    }

    /// Sectors that belong to nothing.
    fn unused(&mut self, from: u32, told: bool, kept: &dyn ReadAt, outbox: &mut Outbox) -> State {
        let Some((sector, offset)) = self.container.unused(from) else { return State::Over };
        let mut bytes = vec![0; self.container.unit()];
        let count = kept.read_at(offset, &mut bytes);
        outbox.worked(count + (sector - from) as usize / 64);
        let is_empty = bytes[..count].iter().all(|&byte| matches!(byte, 0 | 0xff));
        if !is_empty && !told {
            let name = Some("unused sectors".into());
            outbox.open(Object { kind: stream::Kind::Member, name, ..Object::default() });
        }
        if told || !is_empty {
            outbox.content(&bytes[..count]);
        }
        State::Unused(sector + 1, told || !is_empty)
    }
}

/// The `FilePass` record, if one stands in the first records of a workbook (MS-XLS 2.4.117).
fn file_pass(workbook: &[u8]) -> Option<&[u8]> {
    const FILE_PASS: u16 = 0x2f;
    let mut rest = workbook;
    while rest.len() >= 4 {
        let length = usize::from(le16(rest, 2));
        if le16(rest, 0) == FILE_PASS {
            return Some(&rest[4..rest.len().min(4 + length)]);
        }
        rest = rest.get(4 + length..).unwrap_or_default();
    }
    None
}

impl Reader for Ole2 {
    fn read(&mut self, input: &[u8], outbox: &mut Outbox) -> usize {
        if !std::mem::replace(&mut self.asked, true) {
            outbox.keep(0..self.limits.spool_bytes_max.into());
            return 0;
        }
        self.bytes += input.len() as u64;
        input.len()
    }

    fn end(&mut self, kept: &dyn ReadAt, outbox: &mut Outbox) -> Ended {
        self.state = match std::mem::replace(&mut self.state, State::Over) {
            State::Header => self.header(kept, outbox),
            State::Directory(cursor) => self.directory(cursor, kept, outbox),
            State::Locked(scheme) => self.unlock(scheme, outbox),
            State::Entry(index) => self.entry(index, kept, outbox),
            State::Stream { entry, stream, later } => self.stream(entry, stream, later, kept, outbox),
            State::Unused(from, told) => self.unused(from, told, kept, outbox),
            State::Over => return Ended::Done,
        };
        Ended::More
    }
}
