//! Microsoft cabinets: the tables of folders and files, then the data of each folder in the order of the stream.
//!
//! A folder is one stream of content that its files share. Supported: stored, MSZIP, Quantum, LZX. A folder that
//! continues in another cabinet is read to the end of this one. A folder that claims to begin in another one is read as
//! if it began here, since some readers do; undecodable data is emitted raw. Both are findings. If the files need more
//! than the counted blocks, and data precedes the next structure, it is read as further blocks. Content that belongs to
//! no file is emitted as a member without name; so are bytes between the tables and the data and after them. Reserved
//! areas (signatures) are skipped; the search for archives reads them.
//!
//! Bounds: a table of at most `directory_entries_max` files with names of 256 bytes, one block of data, and a window of
//! 2 MiB that grows with the data.
//!
//! Source: Microsoft Cabinet Format [MS-CAB].

#![cfg_attr(not(test), deny(clippy::arithmetic_side_effects))]

mod blocks;
pub(crate) mod lzx;
mod quantum;

use stream::{Class, Entry, Limits, Object};

use crate::frame::archive::{Archive, Check, Content, Faults, Member, Record, Records};
use crate::frame::codec::{Fault, Progress, le16, le32};
use crate::frame::cuts;
use crate::frame::format::{Format, Reads};
use crate::frame::name;
use blocks::{Blocks, Data, Method};

/// Row in the table of formats.
pub(crate) const FORMAT: Format = Format {
    name: "cab",
    methods: "stored, MSZIP, Quantum, LZX with E8 translation",
    not_read: "blocks that refer to another cabinet",
    reads: Reads::Stream,
    memory: "the table of files, `directory_entries_max`; a block of 64 KiB; a window of 2 MiB, growing with the data",
    decoder: "zlib-rs for MSZIP, own",
    fuzz: "unpack_cab",
    compared_with: "bsdtar and cabextract, over the public archives",
};

const HEADER: Fault = Fault::passing(Class::Malformed, "Heuristics.Malformed.Cab.Header");
const METHOD: Fault = Fault::passing(Class::Limit, "Heuristics.Limits.Exceeded.CabMethod");
const FILES: Fault = Fault::passing(Class::Limit, "Heuristics.Limits.Exceeded.CabFiles");
const OVERLAP: Fault = Fault::passing(Class::Ambiguous, "Heuristics.Ambiguous.Cab.Overlap");
const SPLIT: Fault = Fault::fatal(Class::Truncated, "Heuristics.Truncated.CabVolume");
const SIZE: Fault = Fault::passing(Class::Malformed, "Heuristics.Malformed.Cab.Size");

const MARK: &[u8] = b"MSCF";
const HEADER_BYTES: usize = 36;
const FOLDER_BYTES: usize = 8;
const FILE_BYTES: usize = 16;
/// Names are to be shorter, their end included.
const NAME_BYTES_MAX: usize = 257;

/// A reader of cabinets.
pub(crate) struct Cab {
    name_bytes_max: usize,
    files_left: u32,
    state: State,
    header: Header,
    folders: Vec<Folder>,
    /// The folder whose content is emitted.
    open: Option<Open>,
    blocks: Blocks,
}

/// Next part of the input.
enum State {
    Header,
    /// So many names of other cabinets and disks.
    Names(u32),
    /// So many entries of the table of folders.
    Folders(u16),
    /// So many entries of the table of files, which has been found or not.
    Files(u16, bool),
    /// Folders, the next one last.
    Data,
    Over,
}

/// Facts of the header for later.
#[derive(Default)]
struct Header {
    cabinet_bytes: u64,
    folders: u16,
    files: u16,
    files_at: u64,
    folder_reserve: usize,
    data_reserve: usize,
}

struct Folder {
    at: u64,
    blocks: u16,
    method: u16,
    from_previous: bool,
    to_next: bool,
    /// By the place in the content, the next one last.
    files: Vec<File>,
}

struct File {
    name: Box<str>,
    size: u64,
    start: u64,
}

struct Open {
    files: Vec<File>,
    /// Bytes of content told.
    told: u64,
    /// Where the packed data end, if that is known.
    end: u64,
}

impl Cab {
    pub fn new(limits: &Limits) -> Cab {
        Cab {
            name_bytes_max: limits.name_bytes_max as usize,
            files_left: limits.directory_entries_max,
            state: State::Header,
            header: Header::default(),
            folders: Vec::new(),
            open: None,
            blocks: Blocks::new(limits.codec_bytes_max as usize),
        }
    }

    fn header(&mut self, head: &[u8]) -> Record {
        const HAS_PREVIOUS: u16 = 1;
        const HAS_NEXT: u16 = 2;
        const HAS_RESERVE: u16 = 4;
        let flags = le16(head, 30);
        let reserve = flags & HAS_RESERVE != 0;
        let length = if reserve { HEADER_BYTES + 4 } else { HEADER_BYTES };
        if head.len() < length {
            return Record::Need(length);
        }
        if !head.starts_with(MARK) {
            return Record::Rest;
        }
        self.header = Header {
            cabinet_bytes: u64::from(le32(head, 8)),
            files_at: u64::from(le32(head, 16)),
            folders: le16(head, 26),
            files: le16(head, 28),
            folder_reserve: if reserve { usize::from(head[38]) } else { 0 },
            data_reserve: if reserve { usize::from(head[39]) } else { 0 },
        };
        let reserved = if reserve { u64::from(le16(head, 36)) } else { 0 };
        self.state = State::Names((flags & (HAS_PREVIOUS | HAS_NEXT)).count_ones().saturating_mul(2));
        Record::pass(length, reserved)
    }

    fn other_cabinet(&mut self, left: u32, head: &[u8], faults: &mut Vec<Fault>) -> Record {
        if left == 0 {
            self.state = State::Folders(self.header.folders);
            return Record::Next;
        }
        match name_end(head, 0) {
            NameEnd::At(end) => {
                self.state = State::Names(left.saturating_sub(1));
                Record::pass(end, 1)
            }
            NameEnd::Need(count) => Record::Need(count),
            NameEnd::Never => self.give_up(faults),
        }
    }

    fn folder(&mut self, left: u16, head: &[u8]) -> Record {
        if left == 0 {
            self.state = State::Files(self.header.files, false);
            return Record::Next;
        }
        let length = FOLDER_BYTES.saturating_add(self.header.folder_reserve);
        if head.len() < length {
            return Record::Need(length);
        }
        self.folders.push(Folder {
            at: u64::from(le32(head, 0)),
            blocks: le16(head, 4),
            method: le16(head, 6),
            from_previous: false,
            to_next: false,
            files: Vec::new(),
        });
        self.state = State::Folders(left.saturating_sub(1));
        Record::pass(length, 0)
    }

    /// Goes to the table of files, if it stands in front of all data.
    fn find_files(&mut self, at: u64, faults: &mut Vec<Fault>) -> Record {
        let data_at = self.folders.iter().map(|folder| folder.at).min().unwrap_or(u64::MAX);
        let files_at = self.header.files_at;
        if files_at < at || files_at > data_at {
            faults.push(HEADER);
            self.begin_data();
            return Record::Next;
        }
        self.state = State::Files(self.header.files, true);
        match files_at.saturating_sub(at) {
            0 => Record::Next,
            gap => Record::Member(0, Member::nameless(gap)),
        }
    }

    fn file(&mut self, left: u16, head: &[u8], faults: &mut Vec<Fault>) -> Record {
        if left == 0 {
            self.begin_data();
            return Record::Next;
        }
        let end = match name_end(head, FILE_BYTES) {
            NameEnd::At(end) => end,
            NameEnd::Need(count) => return Record::Need(count),
            NameEnd::Never => return self.give_up(faults),
        };
        self.state = State::Files(left.saturating_sub(1), true);
        self.keep_file(head, &head[FILE_BYTES..end], faults);
        Record::pass(end, 1)
    }

    fn keep_file(&mut self, head: &[u8], name: &[u8], faults: &mut Vec<Fault>) {
        const FROM_PREVIOUS: u16 = 0xfffd;
        const TO_NEXT: u16 = 0xfffe;
        const FROM_PREVIOUS_TO_NEXT: u16 = 0xffff;
        const NAME_IS_UTF8: u16 = 0x80;
        let index = le16(head, 8);
        let folder = match index {
            FROM_PREVIOUS | FROM_PREVIOUS_TO_NEXT => self.folders.first_mut(),
            TO_NEXT => self.folders.last_mut(),
            index => self.folders.get_mut(usize::from(index)),
        };
        let Some(folder) = folder else {
            faults.push(HEADER);
            return;
        };
        folder.from_previous |= matches!(index, FROM_PREVIOUS | FROM_PREVIOUS_TO_NEXT);
        folder.to_next |= matches!(index, TO_NEXT | FROM_PREVIOUS_TO_NEXT);
        if self.files_left == 0 {
            faults.push(FILES);
            return;
        }
        self.files_left = self.files_left.saturating_sub(1);
        let name = &name[..name.len().min(self.name_bytes_max)];
        let is_utf8 = le16(head, 14) & NAME_IS_UTF8 != 0;
        let name = if is_utf8 { name::utf8_lossy(name) } else { name::utf8_or_latin1(name) };
        folder.files.push(File { name, size: u64::from(le32(head, 0)), start: u64::from(le32(head, 4)) });
    }

    /// The tables make no sense.
    fn give_up(&mut self, faults: &mut Vec<Fault>) -> Record {
        faults.push(HEADER);
        self.state = State::Over;
        Record::Rest
    }

    fn begin_data(&mut self) {
        self.state = State::Data;
        self.folders.sort_by_key(|folder| std::cmp::Reverse(folder.at));
        for folder in &mut self.folders {
            folder.files.sort_by_key(|file| file.start);
            folder.files.reverse();
        }
    }

    /// Before the data of a folder, or before other bytes.
    fn data(&mut self, at: u64, faults: &mut Vec<Fault>) -> Record {
        let Some(folder) = self.folders.pop_if(|folder| folder.at <= at) else {
            return match self.folders.last() {
                Some(next) => Record::Member(0, Member::nameless(next.at.saturating_sub(at))),
                None => {
                    self.state = State::Over;
                    Record::Rest
                }
            };
        };
        if folder.at < at {
            faults.push(OVERLAP);
            return Record::Next;
        }
        let end = self.folders.last().map_or(self.header.cabinet_bytes, |next| next.at);
        if folder.from_previous {
            faults.push(Fault { fatal: false, ..SPLIT });
        }
        let Some(method) = Method::of(folder.method) else {
            faults.push(METHOD);
            let name = if let [only] = &folder.files[..] { Some(only.name.clone()) } else { None };
            return self.raw(at, end, name);
        };
        let wanted = folder.files.iter().map(|file| file.start.saturating_add(file.size)).max();
        self.blocks.begin(Data {
            method,
            blocks: folder.blocks,
            reserve: self.header.data_reserve,
            goes_on: folder.to_next,
            wanted: wanted.unwrap_or(0),
            packed_bytes: end.saturating_sub(at),
        });
        self.open = Some(Open { files: folder.files, told: 0, end });
        Record::Next
    }

    /// Emits data that cannot be decoded, up to the next folder.
    fn raw(&mut self, at: u64, end: u64, name: Option<Box<str>>) -> Record {
        match end.checked_sub(at) {
            Some(0) => Record::Next,
            Some(length) => {
                let mut member = Member::nameless(length);
                member.object.name = name;
                Record::Member(0, member)
            }
            None => {
                self.state = State::Over;
                Record::Rest
            }
        }
    }

    /// The next member of the open folder.
    fn member(&mut self, mut open: Open, at: u64, faults: &mut Vec<Fault>) -> Record {
        if self.blocks.is_broken() {
            return self.raw(at, open.end, None);
        }
        let has_more = self.blocks.has_more();
        let (name, size) = match open.files.pop_if(|file| file.start <= open.told || !has_more) {
            Some(file) if file.start < open.told && file.size > 0 => {
                faults.push(OVERLAP);
                self.open = Some(open);
                return Record::Next;
            }
            Some(file) => (Some(file.name), Some(file.size)),
            None => match open.files.last() {
                Some(next) => (None, Some(next.start.saturating_sub(open.told))),
                None if has_more => (None, None),
                None => return Record::Next,
            },
        };
        open.told = open.told.saturating_add(size.unwrap_or(0));
        self.open = Some(open);
        let entry = name.is_some().then_some(Entry { size, ..Entry::default() });
        let object = Object { name, size, entry: entry.map(Box::new), ..Object::default() };
        Record::Member(0, Member { object, content: Content::Packed { packed: None, size }, check: Check::None })
    }
}

enum NameEnd {
    At(usize),
    Need(usize),
    Never,
}

/// Where the name that begins at `start` has its NUL.
fn name_end(head: &[u8], start: usize) -> NameEnd {
    let name = head.get(start..).unwrap_or_default();
    match memchr::memchr(0, name) {
        Some(length) => NameEnd::At(start.saturating_add(length)),
        None if name.len() >= NAME_BYTES_MAX => NameEnd::Never,
        None => NameEnd::Need(start.saturating_add(name.len()).saturating_add(1)),
    }
}

impl Records for Cab {
    const FAULTS: Faults =
        Faults { truncated: Fault::passing(Class::Truncated, "Heuristics.Truncated.Cab"), check: SIZE, size: SIZE };

    fn record(&mut self, head: &[u8], at: u64, faults: &mut Vec<Fault>) -> Record {
        if let Some(open) = self.open.take() {
            return self.member(open, at, faults);
        }
        match self.state {
            State::Header if head.len() < HEADER_BYTES => Record::Need(HEADER_BYTES),
            State::Header => self.header(head),
            State::Names(left) => self.other_cabinet(left, head, faults),
            State::Folders(left) => self.folder(left, head),
            State::Files(_, false) => self.find_files(at, faults),
            State::Files(left, true) => self.file(left, head, faults),
            State::Data => self.data(at, faults),
            State::Over => Record::Rest,
        }
    }

    fn decode(&mut self, input: &[u8], output: &mut [u8]) -> Progress {
        self.blocks.decode(input, output)
    }

    fn surplus(&self) -> &[u8] {
        self.blocks.surplus()
    }

    fn may_end(&self) -> bool {
        false
    }
}

/// Fuzz body: reads a cabinet.
pub fn fuzz_cab(data: &[u8]) {
    cuts::compare(data, |limits| Box::new(Archive::new(Cab::new(limits), limits)));
}
