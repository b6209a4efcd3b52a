//! Compiled HTML help (`.chm`): a directory of names, a section that is stored and one that is compressed by LZX.
//!
//! The file is kept and read at its end: first the members of the stored section, then those of the compressed one in the
//! order of their places, as it is decompressed once. What no name leads to in it is emitted as a member without name. Left
//! out: members that begin within another one, and files without the table of resets, whose compressed section is emitted
//! raw. Source: the descriptions of the format by P. Wise and J. Reid. Bounds: `spool_bytes_max` of the file,
//! `directory_entries_max` members, a frame of 32 KiB, the window of LZX.

mod directory;
mod section;

use stream::{Class, Kind, Limits, Object, ReadAt};

use crate::frame::cuts;
use crate::frame::format::{Format, Reads};
use crate::frame::reader::{CONTENT_BYTES, Ended, Outbox, Reader, Reading};
use directory::{Directory, Entry};
use section::{Frame, Section};

/// Row in the table of formats.
pub(crate) const FORMAT: Format = Format {
    name: "CHM",
    methods: "stored, LZX",
    not_read: "files without a table of resets",
    reads: Reads::Spool("kept, up to `spool_bytes_max`"),
    memory: "a name and 40 bytes for each of `directory_entries_max` members, an LZX window of 2 MiB, growing with the data",
    decoder: "own",
    fuzz: "unpack_chm",
    compared_with: "libchm, over the files of libmspack and ClamAV",
};

const HEADER: &str = "Heuristics.Malformed.Chm.Header";
const DATA: &str = "Heuristics.Malformed.Chm.Data";
const TRUNCATED: &str = "Heuristics.Truncated.Chm";
const ENTRIES: &str = "Heuristics.Limits.Exceeded.ChmDirectory";
const OVERLAP: &str = "Heuristics.Ambiguous.Chm.Overlap";
const WINDOW: &str = "Heuristics.Limits.Exceeded.Codec";

/// A reader of help files.
pub(crate) struct Chm {
    limits: Limits,
    bytes: u64,
    asked: bool,
    /// A member that is stored: where its rest stands, and how long that is.
    stored: Option<(u64, u64)>,
    state: State,
}

enum State {
    Header,
    Directory(Directory),
    /// The next of the stored members.
    Stored(Directory, usize),
    Packed(Box<Packed>),
    /// Bytes to emit raw, and then nothing.
    Raw,
    Over,
}

/// The place in the compressed section.
struct Packed {
    section: Section,
    /// By place, the next one last.
    entries: Vec<Entry>,
    /// Whether the open member is one of them, and where it ends.
    open: Option<u64>,
    /// Where the next byte stands in the section.
    at: u64,
    /// Bytes emitted raw after all members: the section from the first frame on that cannot be decompressed.
    raw: Option<(u64, u64)>,
}

/// Reads up to `count` bytes; fewer at the end.
fn read(kept: &dyn ReadAt, at: u64, count: usize) -> Vec<u8> {
    let mut bytes = vec![0; count];
    let mut read = 0;
    while let more @ 1.. = kept.read_at(at.saturating_add(read as u64), &mut bytes[read..]) {
        read += more;
    }
    bytes.truncate(read);
    bytes
}

impl Chm {
    pub fn new(limits: &Limits) -> Chm {
        Chm { limits: limits.clone(), bytes: 0, asked: false, stored: None, state: State::Header }
    }

    fn finding(&self, class: Class, name: &'static str, outbox: &mut Outbox) {
        outbox.finding(class, name, self.bytes);
    }

    fn open(&self, entry: Option<&Entry>, size: u64, outbox: &mut Outbox) {
        let name = entry.map(|entry| entry.name.clone());
        outbox.open(Object { kind: Kind::Member, name, size: Some(size), ..Object::default() });
    }

    fn header(&mut self, kept: &dyn ReadAt, outbox: &mut Outbox) -> State {
        if self.bytes > self.limits.spool_bytes_max.into() {
            self.finding(Class::Limit, "Heuristics.Limits.Exceeded.Spool", outbox);
        }
        match Directory::new(kept, &self.limits) {
            Some(directory) => State::Directory(directory),
            None => {
                self.finding(Class::Malformed, HEADER, outbox);
                State::Over
            }
        }
    }

    fn directory(&mut self, mut directory: Directory, kept: &dyn ReadAt, outbox: &mut Outbox) -> State {
        let more = directory.read_chunk(kept, outbox);
        if more {
            return State::Directory(directory);
        }
        if directory.is_cut {
            self.finding(Class::Truncated, TRUNCATED, outbox);
        }
        if directory.is_broken {
            self.finding(Class::Malformed, HEADER, outbox);
        }
        if directory.is_full {
            self.finding(Class::Limit, ENTRIES, outbox);
        }
        State::Stored(directory, 0)
    }

    fn stored(&mut self, mut directory: Directory, index: usize, kept: &dyn ReadAt, outbox: &mut Outbox) -> State {
        if let Some(entry) = directory.stored.get(index) {
            self.open(Some(entry), entry.length, outbox);
            self.stored = Some((directory.content_at.saturating_add(entry.offset), entry.length));
            return State::Stored(directory, index + 1);
        }
        if directory.packed.is_empty() && directory.content.is_none() {
            return State::Over;
        }
        let section = Section::new(&directory, kept);
        directory.packed.sort_by_key(|entry| std::cmp::Reverse((entry.offset, entry.length)));
        match section {
            Some(section) if section.window_bytes() <= self.limits.codec_bytes_max as usize => {
                State::Packed(Box::new(Packed { section, entries: directory.packed, open: None, at: 0, raw: None }))
            }
            found => {
                let (class, name) = if found.is_some() { (Class::Limit, WINDOW) } else { (Class::Malformed, DATA) };
                self.finding(class, name, outbox);
                self.stored = directory.content;
                State::Raw
            }
        }
    }

    /// Emits the next frame of the compressed section.
    fn packed(&mut self, mut packed: Box<Packed>, kept: &dyn ReadAt, outbox: &mut Outbox) -> State {
        let mut frame = Vec::new();
        let result = packed.section.frame(kept, &mut frame);
        outbox.worked(frame.len() + section::FRAME_BYTES / 8);
        let goes_on = match result {
            Frame::More => true,
            Frame::End => false,
            Frame::Cut | Frame::Broken => {
                if packed.raw.is_none() {
                    let is_cut = matches!(result, Frame::Cut);
                    let (class, name) = if is_cut { (Class::Truncated, TRUNCATED) } else { (Class::Malformed, DATA) };
                    self.finding(class, name, outbox);
                    packed.raw = Some(packed.section.left());
                }
                // Readers that want another member begin there.
                packed.section.pass_over(kept, &mut frame)
            }
        };
        let overlaps = packed.tell(&frame, self, outbox);
        if overlaps {
            self.finding(Class::Ambiguous, OVERLAP, outbox);
        }
        if goes_on {
            return State::Packed(packed);
        }
        if packed.open.take().is_some() {
            outbox.close();
        }
        if packed.raw.is_none() && !packed.entries.is_empty() {
            self.finding(Class::Truncated, TRUNCATED, outbox);
        }
        self.stored = packed.raw;
        State::Raw
    }

    /// Emits more of the stored content. Returns whether there was any.
    fn tell_stored(&mut self, kept: &dyn ReadAt, outbox: &mut Outbox) -> bool {
        let Some((at, left)) = self.stored.take() else {
            return false;
        };
        if !outbox.is_open() {
            self.open(None, left, outbox);
        }
        let wanted = usize::try_from(left).map_or(CONTENT_BYTES, |left| left.min(CONTENT_BYTES));
        let piece = read(kept, at, wanted);
        outbox.content(&piece);
        let left = left - piece.len() as u64;
        if left > 0 && piece.len() == wanted {
            self.stored = Some((at + piece.len() as u64, left));
            return true;
        }
        if left > 0 {
            self.finding(Class::Truncated, TRUNCATED, outbox);
        }
        outbox.close();
        true
    }
}

impl Packed {
    /// Emits a frame's parts of the members. Returns whether some begin within others.
    fn tell(&mut self, frame: &[u8], chm: &Chm, outbox: &mut Outbox) -> bool {
        let end = self.at + frame.len() as u64;
        let (mut left, mut overlaps) = (frame, false);
        while !left.is_empty() {
            let next = self.entries.last().map_or(u64::MAX, |entry| entry.offset);
            if self.open.is_none() {
                if next < self.at {
                    self.entries.pop();
                    overlaps = true;
                    continue;
                }
                let entry = if next == self.at { self.entries.pop() } else { None };
                let stop = entry.as_ref().map_or(next, |entry| entry.offset.saturating_add(entry.length));
                chm.open(entry.as_ref(), stop.min(self.section.bytes()) - self.at, outbox);
                self.open = Some(stop);
            }
            let stop = self.open.map_or(end, |stop| stop.min(end));
            let (here, rest) = left.split_at((stop - self.at) as usize);
            outbox.content(here);
            (left, self.at) = (rest, stop);
            if self.open == Some(stop) {
                outbox.close();
                self.open = None;
            }
        }
        overlaps
    }
}

impl Reader for Chm {
    fn read(&mut self, input: &[u8], outbox: &mut Outbox) -> usize {
        if !std::mem::replace(&mut self.asked, true) {
            outbox.keep(0..u64::MAX);
            return 0;
        }
        self.bytes += input.len() as u64;
        input.len()
    }

    fn end(&mut self, kept: &dyn ReadAt, outbox: &mut Outbox) -> Ended {
        outbox.worked(1);
        if self.tell_stored(kept, outbox) {
            return Ended::More;
        }
        self.state = match std::mem::replace(&mut self.state, State::Over) {
            State::Header => self.header(kept, outbox),
            State::Directory(directory) => self.directory(directory, kept, outbox),
            State::Stored(directory, index) => self.stored(directory, index, kept, outbox),
            State::Packed(packed) => self.packed(packed, kept, outbox),
            State::Raw | State::Over => return Ended::Done,
        };
        Ended::More
    }
}

/// Fuzz body: reads a help file.
pub fn fuzz_chm(data: &[u8]) {
    cuts::compare(data, |limits| Box::new(Reading::new(Chm::new(limits))));
}
