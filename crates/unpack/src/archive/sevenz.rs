//! 7z: packed streams, described by a header at the end.
//!
//! The archive is kept while it passes, and opened at its end. Coders: copy, LZMA, LZMA2, PPMd, bzip2, deflate,
//! deflate64, zstd, delta, the branch filters, BCJ2, AES with password candidates; folders of many files, packed
//! headers. Folders that cannot be opened (other coders and passwords, broken data) are emitted raw. Bytes after the
//! archive are emitted as a member without name.
//!
//! Bounds: the archive itself in the driver's spool; its header of at most [`HEADER_BYTES_MAX`], which lists at most
//! `directory_entries_max` entries of a kind; the dictionaries of one folder, together at most `codec_bytes_max`.
//!
//! Source: 7zFormat.txt of the LZMA SDK.

mod aes;
mod bcj2;
mod brotli;
mod header;
mod judge;
mod pull;
mod source;

use std::cell::Cell;

use stream::{Class, Entry, Kind, Limits, Object, ReadAt};
use zlib_rs::crc32::crc32;

use crate::frame::codec::{Collected, Fault, le32, le64};
use crate::frame::cuts;
use crate::frame::format::{Format, Reads};
use crate::frame::keys::{Keys, Tried};
use crate::frame::password::{Passwords, TOO_COSTLY};
use crate::frame::reader::{CONTENT_BYTES, Ended, Outbox, Reader, Reading};
use aes::{Key, Properties};
use header::{Folder, Found, Header, Refused};
use pull::{CUT, DATA, Pull, Read};
use source::Source;

/// Row in the table of formats.
pub(crate) const FORMAT: Format = Format {
    name: "7z",
    methods: "copy, LZMA, LZMA2, PPMd, bzip2, deflate, deflate64, zstd, brotli, lz4, delta, branch filters, BCJ2; solid, packed headers; AES, of headers too, with password candidates",
    not_read: "other coders",
    reads: Reads::Spool("the archive, up to `spool_bytes_max`"),
    memory: "dictionaries of one folder up to `codec_bytes_max`, growing with the data; a header of 8 MiB",
    decoder: "own; bzip2, deflate and zstd as their streams; aes, sha2",
    fuzz: "unpack_7z",
    compared_with: "7z and bsdtar, over the public archives",
};

/// The longest header.
const HEADER_BYTES_MAX: u64 = 8 << 20;
const START_BYTES: usize = 32;
/// Maximum depth of packed headers.
const PACKED_HEADERS_MAX: u32 = 4;

const HEADER: Fault = Fault::passing(Class::Malformed, "Heuristics.Malformed.SevenZip.Header");
const CRC: Fault = Fault::passing(Class::Malformed, "Heuristics.Malformed.SevenZip.Crc");
const TOO_MANY: Fault = Fault::passing(Class::Limit, "Heuristics.Limits.Exceeded.SevenZipHeader");

/// A reader of 7z archives.
pub(crate) struct SevenZip {
    limits: Limits,
    keys: Keys<Properties>,
    at: u64,
    state: State,
}

enum State {
    Start(Collected<START_BYTES>),
    /// In the archive.
    Passing(Place),
    /// After the archive, or in a file without one.
    Rest(Option<Place>),
    /// Reading the header.
    Header(Place),
    /// Passwords are tried at a packed header.
    Locked(Box<Folder>, u32),
    Unpacking {
        source: Source,
        folder: Box<Folder>,
        bytes: Vec<u8>,
        packed_headers: u32,
    },
    Folders(Box<Folders>),
    Done,
}

/// Where the header lies.
#[derive(Clone, Copy)]
struct Place {
    at: u64,
    length: u64,
    crc: u32,
}

/// The place among folders and files.
struct Folders {
    header: Header,
    folder: usize,
    file: usize,
    /// The stream within the folder.
    stream: usize,
    source: Option<Source>,
    /// The file that is open: bytes left of it, its checksum so far.
    open: Option<(u64, u32)>,
    /// Packed streams to be emitted raw.
    raw: Vec<(u64, u64)>,
}

impl SevenZip {
    pub fn new(limits: &Limits, passwords: &Passwords) -> SevenZip {
        let keys = Keys::new(passwords);
        SevenZip { limits: limits.clone(), keys, at: 0, state: State::Start(Collected::new()) }
    }

    fn note(&self, fault: Fault, outbox: &mut Outbox) {
        outbox.finding(fault.class, fault.name, self.at);
    }

    fn start(&mut self, start: &[u8; START_BYTES], outbox: &mut Outbox) {
        let place = Place { at: START_BYTES as u64, length: le64(start, 20), crc: le32(start, 28) };
        let at = place.at.checked_add(le64(start, 12));
        let end = at.and_then(|at| at.checked_add(place.length));
        if crc32(0, &start[12..]) != le32(start, 8) {
            self.note(HEADER, outbox);
        }
        let (Some(at), Some(end)) = (at, end) else {
            self.note(HEADER, outbox);
            self.state = State::Rest(None);
            outbox.open(Object { kind: Kind::Rest, raw_offset: Some(self.at), ..Object::default() });
            return;
        };
        self.state = State::Passing(Place { at, ..place });
        if end > place.at {
            outbox.keep(place.at..end);
        }
    }

    /// Reads the header that was kept.
    fn header(&mut self, place: Place, kept: &dyn ReadAt, outbox: &mut Outbox) {
        if place.length == 0 {
            return;
        }
        if place.length > HEADER_BYTES_MAX {
            return self.note(TOO_MANY, outbox);
        }
        let mut bytes = vec![0; place.length as usize];
        let mut read = 0;
        while let count @ 1.. = kept.read_at(place.at + read as u64, &mut bytes[read..]) {
            read += count;
        }
        outbox.worked(bytes.len());
        if read < bytes.len() {
            // The driver has emitted a finding if it kept less than requested.
            if self.at >= place.at + place.length {
                return;
            }
            self.note(CUT, outbox);
            // Other readers read a header that claims to reach beyond the end as far as it exists. One that ends early
            // is invalid.
            bytes.truncate(read);
            if header::read(&bytes, self.limits.directory_entries_max as usize).is_err() {
                return;
            }
        } else if crc32(0, &bytes) != place.crc {
            self.note(HEADER, outbox);
        }
        self.parse(&bytes, PACKED_HEADERS_MAX, outbox);
    }

    fn parse(&mut self, bytes: &[u8], packed_headers: u32, outbox: &mut Outbox) {
        outbox.worked(bytes.len());
        match header::read(bytes, self.limits.directory_entries_max as usize) {
            Ok(Found::Header(header)) => self.state = State::Folders(Box::new(Folders::new(header))),
            Ok(Found::Packed(folder)) if packed_headers > 0 => self.unpack(folder, packed_headers - 1, outbox),
            Err(Refused::TooMany) => self.note(TOO_MANY, outbox),
            _ => self.note(HEADER, outbox),
        }
    }

    /// The header is packed.
    fn unpack(&mut self, folder: Folder, packed_headers: u32, outbox: &mut Outbox) {
        if folder.size().is_none_or(|size| size > HEADER_BYTES_MAX) {
            return self.note(TOO_MANY, outbox);
        }
        if folder.is_encrypted() {
            self.state = State::Locked(Box::new(folder), packed_headers);
            return;
        }
        self.open_header(folder, packed_headers, None, outbox);
    }

    /// Tries a password at a packed header.
    fn unlock(&mut self, folder: Box<Folder>, packed_headers: u32, kept: &dyn ReadAt, outbox: &mut Outbox) {
        match attempt(&folder, &mut self.keys, &self.limits, kept, outbox) {
            Tried::More => self.state = State::Locked(folder, packed_headers),
            Tried::Found(key) => self.open_header(*folder, packed_headers, Some(&key), outbox),
            Tried::Closed => self.note(source::ENCRYPTED, outbox),
            Tried::Refused => {
                self.note(TOO_COSTLY, outbox);
                self.note(source::ENCRYPTED, outbox);
            }
        }
    }

    fn open_header(&mut self, folder: Folder, packed_headers: u32, key: Option<&Key>, outbox: &mut Outbox) {
        match Source::of(&folder, &self.limits, key) {
            Ok(source) => {
                self.state = State::Unpacking { source, folder: Box::new(folder), bytes: Vec::new(), packed_headers };
            }
            Err(fault) => self.note(fault, outbox),
        }
    }

    fn unpack_more(
        &mut self,
        mut source: Source,
        folder: Box<Folder>,
        mut bytes: Vec<u8>,
        packed_headers: u32,
        kept: &dyn ReadAt,
        outbox: &mut Outbox,
    ) {
        let mut piece = [0; CONTENT_BYTES];
        match source.read(kept, &mut piece) {
            Err(fault) => self.note(fault, outbox),
            Ok(Read::End) => {
                if folder.crc.is_some_and(|crc| crc != crc32(0, &bytes)) {
                    self.note(HEADER, outbox);
                }
                self.parse(&bytes, packed_headers, outbox);
            }
            Ok(read) => {
                let count = if let Read::Some(count) = read { count } else { 0 };
                bytes.extend_from_slice(&piece[..count]);
                outbox.worked(count);
                self.state = State::Unpacking { source, folder, bytes, packed_headers };
            }
        }
    }
}

/// Tries the next password at a folder.
fn attempt(
    folder: &Folder,
    keys: &mut Keys<Properties>,
    limits: &Limits,
    kept: &dyn ReadAt,
    outbox: &mut Outbox,
) -> Tried<Key> {
    let Some(properties) = folder.encryption() else { return Tried::Closed };
    let (mut work, judged) = (0, Cell::new(0));
    let tried = keys.attempt(&properties, &mut work, |key| judge::judge(folder, key, limits, kept, &judged));
    outbox.worked(work.saturating_add(judged.get()));
    tried
}

impl Folders {
    const fn new(header: Header) -> Folders {
        Folders { header, folder: 0, file: 0, stream: 0, source: None, open: None, raw: Vec::new() }
    }

    /// Emits the next thing; whether there is more.
    fn turn(
        &mut self,
        limits: &Limits,
        keys: &mut Keys<Properties>,
        kept: &dyn ReadAt,
        at: u64,
        outbox: &mut Outbox,
    ) -> bool {
        if let Some((left, crc)) = self.open {
            self.content(left, crc, kept, at, outbox);
            return true;
        }
        if let Some((raw_at, left)) = self.raw.pop() {
            self.raw(raw_at, left, kept, outbox);
            return true;
        }
        if outbox.is_open() {
            outbox.close();
            return true;
        }
        let Some(folder) = self.header.folders.get(self.folder) else {
            return self.empty_file(limits, outbox);
        };
        let Some(&(size, _)) = folder.streams.get(self.stream) else {
            self.next_folder();
            return true;
        };
        if self.source.is_none() {
            match self.unlock(limits, keys, kept, at, outbox) {
                None => return true,
                Some(Ok(source)) => self.source = Some(source),
                Some(Err(fault)) => {
                    self.give_up(fault, at, outbox);
                    return true;
                }
            }
        }
        while self.header.files.get(self.file).is_some_and(|file| !file.has_content) {
            if self.empty_file(limits, outbox) && outbox.is_open() {
                return true;
            }
        }
        self.open_file(Some(size), limits, outbox);
        self.open = Some((size, 0));
        true
    }

    fn next_folder(&mut self) {
        (self.folder, self.stream, self.source) = (self.folder + 1, 0, None);
    }

    /// The folder's content, or why it cannot be had; `None` while passwords are tried.
    fn unlock(
        &mut self,
        limits: &Limits,
        keys: &mut Keys<Properties>,
        kept: &dyn ReadAt,
        at: u64,
        outbox: &mut Outbox,
    ) -> Option<Result<Source, Fault>> {
        let folder = self.header.folders.get(self.folder)?;
        if !folder.is_encrypted() {
            return Some(Source::of(folder, limits, None));
        }
        match attempt(folder, keys, limits, kept, outbox) {
            Tried::More => None,
            Tried::Found(key) => Some(Source::of(folder, limits, Some(&key))),
            Tried::Closed => Some(Err(source::ENCRYPTED)),
            Tried::Refused => {
                outbox.finding(TOO_COSTLY.class, TOO_COSTLY.name, at);
                Some(Err(source::ENCRYPTED))
            }
        }
    }

    /// Opens the next file, whatever its name.
    fn open_file(&mut self, size: Option<u64>, limits: &Limits, outbox: &mut Outbox) {
        let stream = self.header.folders.get(self.folder).and_then(|folder| folder.streams.get(self.stream));
        let crc32 = stream.and_then(|(_, crc)| *crc).filter(|_| size.is_some_and(|size| size > 0));
        let name = self.header.files.get(self.file).map(|file| {
            let units = &file.name[..file.name.len().min(limits.name_bytes_max as usize / 3)];
            String::from_utf16_lossy(units).into()
        });
        self.file += 1;
        let entry = size.map(|size| Box::new(Entry { size: Some(size), crc32, ..Entry::default() }));
        outbox.open(Object { kind: Kind::Member, name, size, entry, ..Object::default() });
    }

    /// Passes a folder, or opens a file without content; whether there was one.
    fn empty_file(&mut self, limits: &Limits, outbox: &mut Outbox) -> bool {
        let Some(file) = self.header.files.get(self.file) else {
            return false;
        };
        if file.is_folder || file.has_content {
            self.file += 1;
        } else {
            self.open_file(Some(0), limits, outbox);
        }
        true
    }

    fn content(&mut self, left: u64, crc: u32, kept: &dyn ReadAt, at: u64, outbox: &mut Outbox) {
        let told = self.header.folders.get(self.folder).and_then(|folder| folder.streams.get(self.stream));
        if left == 0 {
            if told.and_then(|(_, told)| *told).is_some_and(|told| told != crc) {
                outbox.finding(CRC.class, CRC.name, at);
            }
            outbox.close();
            self.open = None;
            self.stream += 1;
            return;
        }
        let mut piece = [0; CONTENT_BYTES];
        let wanted = usize::try_from(left).map_or(piece.len(), |left| left.min(piece.len()));
        let read = match &mut self.source {
            Some(source) => source.read(kept, &mut piece[..wanted]),
            None => Ok(Read::End),
        };
        match read {
            Ok(Read::Some(count)) => {
                outbox.content(&piece[..count]);
                self.open = Some((left - count as u64, crc32(crc, &piece[..count])));
            }
            Ok(Read::Later) => outbox.worked(CONTENT_BYTES),
            Ok(Read::End) => self.give_up(DATA, at, outbox),
            Err(fault) => self.give_up(fault, at, outbox),
        }
    }

    /// The rest of the folder cannot be had: its packed streams are emitted raw.
    fn give_up(&mut self, fault: Fault, at: u64, outbox: &mut Outbox) {
        outbox.finding(fault.class, fault.name, at);
        self.open = None;
        if outbox.is_open() {
            outbox.close();
        }
        let Some(folder) = self.header.folders.get(self.folder) else {
            return;
        };
        self.raw = folder.packed.iter().rev().copied().collect();
        // Files of this folder have no content of their own any more.
        let skipped = folder.streams.len() - self.stream.min(folder.streams.len());
        for _ in 0..skipped {
            while self.header.files.get(self.file).is_some_and(|file| !file.has_content) {
                self.file += 1;
            }
            self.file += 1;
        }
        self.next_folder();
    }

    fn raw(&mut self, at: u64, left: u64, kept: &dyn ReadAt, outbox: &mut Outbox) {
        if !outbox.is_open() {
            outbox.open(Object { kind: Kind::Member, raw_offset: Some(at), ..Object::default() });
            self.raw.push((at, left));
            return;
        }
        let mut piece = [0; CONTENT_BYTES];
        let wanted = usize::try_from(left).map_or(piece.len(), |left| left.min(piece.len()));
        let count = kept.read_at(at, &mut piece[..wanted]);
        outbox.content(&piece[..count]);
        if count > 0 && left > count as u64 {
            self.raw.push((at + count as u64, left - count as u64));
        } else {
            outbox.close();
        }
    }
}

impl Reader for SevenZip {
    fn read(&mut self, input: &[u8], outbox: &mut Outbox) -> usize {
        let taken = match &mut self.state {
            State::Start(bytes) => {
                let taken = bytes.fill(input, START_BYTES);
                if let Some(start) = bytes.whole().copied() {
                    self.at += taken as u64;
                    self.start(&start, outbox);
                    return taken;
                }
                taken
            }
            State::Passing(place) => {
                let left = (place.at + place.length).saturating_sub(self.at);
                if left == 0 {
                    let place = *place;
                    self.state = State::Rest(Some(place));
                    outbox.open(Object { kind: Kind::Rest, raw_offset: Some(self.at), ..Object::default() });
                    return 0;
                }
                usize::try_from(left).map_or(input.len(), |left| left.min(input.len()))
            }
            _ => {
                if outbox.is_open() {
                    outbox.content(input);
                }
                input.len()
            }
        };
        self.at += taken as u64;
        taken
    }

    fn end(&mut self, kept: &dyn ReadAt, outbox: &mut Outbox) -> Ended {
        match std::mem::replace(&mut self.state, State::Done) {
            State::Start(_) => self.note(CUT, outbox),
            State::Passing(place) => self.state = State::Header(place),
            State::Rest(place) => {
                if outbox.is_open() {
                    outbox.close();
                }
                if let Some(place) = place {
                    self.state = State::Header(place);
                }
            }
            State::Header(place) => self.header(place, kept, outbox),
            State::Locked(folder, packed_headers) => self.unlock(folder, packed_headers, kept, outbox),
            State::Unpacking { source, folder, bytes, packed_headers } => {
                self.unpack_more(source, folder, bytes, packed_headers, kept, outbox);
            }
            State::Folders(mut folders) => {
                if folders.turn(&self.limits, &mut self.keys, kept, self.at, outbox) {
                    self.state = State::Folders(folders);
                }
            }
            State::Done => return Ended::Done,
        }
        Ended::More
    }
}

/// Fuzz body: reads a 7z archive.
pub fn fuzz_7z(data: &[u8]) {
    cuts::compare(data, |limits| Box::new(Reading::new(SevenZip::new(limits, &cuts::passwords(limits)))));
}
