//! Shell links (`.lnk`): their command as text, one line for each string; bytes after them, as a member.
//!
//! Emitted are the target, the name, the folder, the arguments and the place of the icon, wherever the link has them.
//! Left out: the list of item identifiers, which is scanned raw; property stores. Source: [MS-SHLLINK]. Bounds: one
//! structure of [`STRUCTURE_BYTES_MAX`] at a time; longer ones are skipped.

use stream::{Class, Kind, Object, ReadAt};

use crate::frame::codec::{le16, le32};
use crate::frame::cuts;
use crate::frame::format::{Format, Reads};
use crate::frame::name;
use crate::frame::reader::{Ended, Outbox, Reader, Reading};

/// Row in the table of formats.
pub(crate) const FORMAT: Format = Format {
    name: "shell links (LNK)",
    methods: "target, name, folder, arguments, icon; what is appended",
    not_read: "",
    reads: Reads::Stream,
    memory: "a structure of 128 KiB",
    decoder: "own",
    fuzz: "unpack_lnk",
    compared_with: "lnkinfo, over links made for it",
};

pub(crate) const MAGIC: &[u8; 20] = b"\x4c\0\0\0\x01\x14\x02\0\0\0\0\0\xc0\0\0\0\0\0\0\x46";

const HEADER_BYTES: usize = 76;
/// The longest string, in UTF-16, and its length.
const STRUCTURE_BYTES_MAX: usize = 2 + 2 * 0xffff;

mod flag {
    pub const HAS_ITEMS: u32 = 1;
    pub const HAS_INFO: u32 = 2;
    pub const IS_UNICODE: u32 = 0x80;
    /// The strings, in order, with their labels.
    pub const STRINGS: [(u32, &str); 5] =
        [(4, "name"), (8, "path"), (0x10, "folder"), (0x20, "arguments"), (0x40, "icon")];
}

/// A reader of links.
pub(crate) struct Lnk {
    at: u64,
    flags: u32,
    held: Vec<u8>,
    state: State,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Header,
    Items,
    Info,
    /// The string of this index.
    String(usize),
    Extra,
    /// So many bytes are passed, then this one of the others follows.
    Skip(u64, Next),
    /// After the link; whether any bytes have come.
    Rest(bool),
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Next {
    Info,
    Strings,
    Extra,
}

impl Next {
    const fn state(self) -> State {
        match self {
            Next::Info => State::Info,
            Next::Strings => State::String(0),
            Next::Extra => State::Extra,
        }
    }
}

impl Lnk {
    pub const fn new() -> Lnk {
        Lnk { at: 0, flags: 0, held: Vec::new(), state: State::Header }
    }

    /// How many bytes of the structure at the front are needed.
    fn wanted(&self) -> usize {
        let held = &self.held;
        let long = |from: usize| if held.len() < 4 { 4 } else { from.max(le32(held, 0) as usize) };
        match self.state {
            State::Header => HEADER_BYTES,
            State::Items => 2,
            State::Info | State::Extra => long(4).min(STRUCTURE_BYTES_MAX),
            State::String(_) if held.len() < 2 => 2,
            State::String(_) => 2 + usize::from(le16(held, 0)) * if self.flags & flag::IS_UNICODE != 0 { 2 } else { 1 },
            State::Skip(..) | State::Rest(_) => 0,
        }
    }

    fn has(&self, flag: u32) -> bool {
        self.flags & flag != 0
    }

    /// Reads the complete structure at the front.
    fn structure(&mut self, outbox: &mut Outbox) {
        let held = std::mem::take(&mut self.held);
        self.state = match self.state {
            State::Header if !held.starts_with(MAGIC) => {
                outbox.finding(Class::Malformed, "Heuristics.Malformed.Lnk.Structure", 0);
                State::Rest(false)
            }
            State::Header => {
                self.flags = le32(&held, 20);
                let media_type = Some("text/plain".into());
                outbox.open(Object { kind: Kind::Member, media_type, ..Object::default() });
                if self.has(flag::HAS_ITEMS) { State::Items } else { State::Info }
            }
            State::Items => State::Skip(le16(&held, 0).into(), Next::Info),
            State::Info => self.info(&held, outbox),
            State::String(index) => {
                let (_, label) = flag::STRINGS[index];
                self.line(label, &held[2..], self.has(flag::IS_UNICODE), outbox);
                State::String(index + 1)
            }
            State::Extra => self.extra(&held, outbox),
            other => other,
        };
    }

    /// Skips structures that this link does not have.
    fn skip_missing(&mut self) {
        if self.state == State::Info && !self.has(flag::HAS_INFO) {
            self.state = State::String(0);
        }
        while let State::String(index) = self.state {
            match flag::STRINGS.get(index) {
                Some((flag, _)) if self.has(*flag) => return,
                Some(_) => self.state = State::String(index + 1),
                None => self.state = State::Extra,
            }
        }
    }

    /// Where the target is: on a volume, or in the network.
    fn info(&self, held: &[u8], outbox: &mut Outbox) -> State {
        const UNICODE_FROM: u32 = 0x24;
        let whole = le32(held, 0) as usize;
        for at in [16, 24] {
            self.line("target", zero_ended(field(held, at)), false, outbox);
        }
        let network = field(held, 20);
        self.line("target", zero_ended(field(network, 8)), false, outbox);
        if le32(held, 4) >= UNICODE_FROM {
            for at in [28, 32] {
                self.line("target", wide_zero_ended(field(held, at)), true, outbox);
            }
        }
        State::Skip(whole.saturating_sub(held.len()) as u64, Next::Strings)
    }

    /// Blocks of extra data: some hold the target or the icon a second time.
    fn extra(&self, held: &[u8], outbox: &mut Outbox) -> State {
        const TERMINAL_MAX: usize = 3;
        const ANSI: std::ops::Range<usize> = 8..268;
        let whole = le32(held, 0) as usize;
        if whole <= TERMINAL_MAX {
            outbox.close();
            return State::Rest(false);
        }
        let label = match le32(held, 4) {
            0xa000_0001 => Some("target"),
            0xa000_0006 => Some("product"),
            0xa000_0007 => Some("icon"),
            _ => None,
        };
        if let Some(label) = label {
            let narrow = held.get(ANSI).unwrap_or_default();
            self.line(label, zero_ended(narrow), false, outbox);
            let wide = held.get(ANSI.end..).unwrap_or_default();
            self.line(label, wide_zero_ended(wide), true, outbox);
        }
        State::Skip(whole.saturating_sub(held.len()) as u64, Next::Extra)
    }

    /// One line of the text.
    fn line(&self, label: &str, text: &[u8], is_wide: bool, outbox: &mut Outbox) {
        let text = if is_wide { name::utf16_le(text) } else { name::utf8_or_latin1(text) };
        if !text.is_empty() {
            outbox.content(format!("{label}: {text}\n").as_bytes());
        }
    }
}

/// Bytes to which the offset at `at` leads; empty if it is 0.
fn field(bytes: &[u8], at: usize) -> &[u8] {
    let offset = le32(bytes, at) as usize;
    bytes.get(offset..).filter(|_| offset > 0).unwrap_or_default()
}

fn zero_ended(bytes: &[u8]) -> &[u8] {
    bytes.split(|&byte| byte == 0).next().unwrap_or_default()
}

fn wide_zero_ended(bytes: &[u8]) -> &[u8] {
    let units = bytes.as_chunks::<2>().0;
    let end = units.iter().position(|unit| *unit == [0, 0]).unwrap_or(units.len());
    &bytes[..2 * end]
}

impl Reader for Lnk {
    fn read(&mut self, input: &[u8], outbox: &mut Outbox) -> usize {
        self.skip_missing();
        let taken = match self.state {
            State::Skip(0, next) => {
                self.state = next.state();
                return self.read(input, outbox);
            }
            State::Skip(left, next) => {
                let taken = usize::try_from(left).map_or(input.len(), |left| left.min(input.len()));
                self.state = State::Skip(left - taken as u64, next);
                taken
            }
            State::Rest(false) => {
                outbox.open(Object { kind: Kind::Member, raw_offset: Some(self.at), ..Object::default() });
                self.state = State::Rest(true);
                0
            }
            State::Rest(true) => {
                outbox.content(input);
                input.len()
            }
            _ => {
                let wanted = self.wanted();
                let taken = wanted.saturating_sub(self.held.len()).min(input.len());
                self.held.extend_from_slice(&input[..taken]);
                // With the length the structure may want more.
                if self.held.len() >= self.wanted() {
                    self.structure(outbox);
                }
                taken
            }
        };
        self.at += taken as u64;
        taken
    }

    fn end(&mut self, _: &dyn ReadAt, outbox: &mut Outbox) -> Ended {
        self.skip_missing();
        let is_over = matches!(self.state, State::Rest(_) | State::Skip(0, Next::Extra));
        // Many links lack the terminal block.
        if !(is_over || self.state == State::Extra && self.held.is_empty()) {
            outbox.finding(Class::Truncated, "Heuristics.Truncated.Lnk", self.at);
        }
        Ended::Done
    }
}

/// Fuzz body: reads a link.
pub fn fuzz_lnk(data: &[u8]) {
    cuts::compare(data, |_| Box::new(Reading::new(Lnk::new())));
}
