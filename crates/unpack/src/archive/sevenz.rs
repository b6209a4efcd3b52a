//! 7z: packed streams, described by a header at the end.
//!
//! The archive is kept while it passes, and opened at its end. Coders: copy, LZMA, LZMA2, PPMd, bzip2, deflate,
//! deflate64, zstd, delta, the branch filters, BCJ2, AES with password candidates; folders of many files, packed
//! headers. Folders that cannot be opened (other coders and passwords, broken data) are emitted raw, the first stream by the
//! name of the folder's first file; its further files are emitted without content. Bytes after the archive are emitted as a member without name.
//!
//! Bounds: the archive itself in the driver's spool; its header of at most [`HEADER_BYTES_MAX`], which lists at most
//! `directory_entries_max` entries of a kind; the dictionaries of one folder, together at most `codec_bytes_max`.
//!
//! Source: 7zFormat.txt of the LZMA SDK.

mod aes;
mod bcj2;
mod brotli;
mod folders;
mod header;
mod judge;
mod pull;
mod source;

use std::cell::Cell;

use stream::{Class, Kind, Limits, Object, ReadAt};
use zlib_rs::crc32::crc32;

use crate::frame::codec::{Collected, Fault, le32, le64};
use crate::frame::cuts;
use crate::frame::format::{Format, Reads};
use crate::frame::keys::{Judgement, Keys, Tried};
use crate::frame::password::{Passwords, TOO_COSTLY};
use crate::frame::reader::{CONTENT_BYTES, Ended, Outbox, Reader, Reading};
use aes::{Key, Properties};
use folders::Folders;
use header::{Folder, Found, Refused};
use pull::{CUT, Pull, Read};
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
        match attempt(&folder, judge::judge_header, &mut self.keys, &self.limits, kept, outbox) {
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

/// What decides whether a key is the right one; the bytes read are added to the last.
type Judge = fn(&Folder, &Key, &Limits, &dyn ReadAt, &Cell<usize>) -> Judgement;

/// Tries the next password at a folder.
fn attempt(
    folder: &Folder,
    judge: Judge,
    keys: &mut Keys<Properties>,
    limits: &Limits,
    kept: &dyn ReadAt,
    outbox: &mut Outbox,
) -> Tried<Key> {
    let Some(properties) = folder.encryption() else { return Tried::Closed };
    let (mut work, judged) = (0, Cell::new(0));
    let tried = keys.attempt(&properties, &mut work, |key| judge(folder, key, limits, kept, &judged));
    outbox.worked(work.saturating_add(judged.get()));
    tried
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
