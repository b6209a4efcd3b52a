//! RTF (specification 1.9.1): content embedded as hexadecimal digits or after `\bin`.
//!
//! Objects, pictures, theme data and data stores are members. As in Word, white space, control words, groups and their
//! braces, and non-digits among the digits are skipped; a group that begins with `\*` and an unknown word, or with a
//! word that has its own text, holds no data. `\bin` introduces raw bytes. An object is emitted with the type [`OLE1`],
//! and its content is read.
//!
//! The effect of `\'` and `\u` among digits depends on the reader: they are skipped, with a finding of ambiguity.
//!
//! Bounds: [`DEPTH_MAX`] nested groups, one control word.

pub(crate) mod ole1;

use stream::{Class, Kind, Object, ReadAt};

use crate::frame::format::{Format, Reads};
use crate::frame::reader::{CONTENT_BYTES, Ended, Outbox, Reader};

/// Row in the table of formats.
pub(crate) const FORMAT: Format = Format {
    name: "RTF",
    methods: "objects (OLE1, packages), pictures, theme data, data stores; digits with anything between them, `\\\\bin`",
    not_read: "",
    reads: Reads::Stream,
    memory: "8 KiB",
    decoder: "own",
    fuzz: "unpack_rtf",
    compared_with: "the test documents of ClamAV",
};

/// The media type by which an object is emitted.
pub(crate) const OLE1: &str = "application/x-ole1-object";

/// Maximum depth of groups; deeper ones belong to the deepest of them.
const DEPTH_MAX: usize = 256;
/// The longest control word that means anything.
const WORD_BYTES: usize = 32;

/// A reader of RTF.
pub(crate) struct Rtf {
    at: u64,
    lexis: Lexis,
    word: Vec<u8>,
    /// Where the text of each open group goes, the outermost first.
    groups: Vec<Destination>,
    /// Groups deeper than that.
    beyond: usize,
    destination: Destination,
    /// `\*` was read: an unknown word makes the group one that is passed over.
    ignorable: bool,
    high: Option<u8>,
    opened: bool,
    ambiguous_told: bool,
}

/// State within a control word.
#[derive(Clone, Copy)]
enum Lexis {
    Text,
    Backslash,
    Word,
    Number {
        negative: bool,
        value: u64,
    },
    /// `\'` and so many digits.
    Escape(u32),
    /// So many bytes as they stand.
    Binary(u64),
}

/// Where text goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Destination {
    Text,
    /// A group that is passed over.
    Ignored,
    Object,
    Picture,
    Theme,
    Store,
}

impl Destination {
    fn of(word: &[u8]) -> Option<Destination> {
        Some(match word {
            b"objdata" => Destination::Object,
            b"pict" => Destination::Picture,
            b"themedata" | b"colorschememapping" => Destination::Theme,
            b"datastore" => Destination::Store,
            b"objclass" | b"objname" | b"objalias" | b"objsect" | b"picprop" | b"blipuid" | b"bliptag" => {
                Destination::Ignored
            }
            b"result" => Destination::Text,
            _ => return None,
        })
    }

    /// Name of its content, if it has data.
    fn name(self) -> Option<&'static str> {
        match self {
            Destination::Text | Destination::Ignored => None,
            Destination::Object => Some("object"),
            Destination::Picture => Some("picture"),
            Destination::Theme => Some("theme"),
            Destination::Store => Some("data store"),
        }
    }
}

impl Rtf {
    pub fn new() -> Rtf {
        Rtf {
            at: 0,
            lexis: Lexis::Text,
            word: Vec::new(),
            groups: Vec::new(),
            beyond: 0,
            destination: Destination::Text,
            ignorable: false,
            high: None,
            opened: false,
            ambiguous_told: false,
        }
    }

    /// Reads a byte. Returns `false` if it ends a word and has to be read again.
    fn byte(&mut self, byte: u8, outbox: &mut Outbox) -> bool {
        match self.lexis {
            Lexis::Text => self.text(byte, outbox),
            Lexis::Backslash => self.symbol(byte, outbox),
            Lexis::Word => return self.letters(byte, outbox),
            Lexis::Number { negative, value } => return self.number(negative, value, byte, outbox),
            Lexis::Escape(1) => self.lexis = Lexis::Text,
            Lexis::Escape(left) => self.lexis = Lexis::Escape(left - 1),
            Lexis::Binary(left) => {
                self.data(byte, outbox);
                self.lexis = if left > 1 { Lexis::Binary(left - 1) } else { Lexis::Text };
            }
        }
        true
    }

    fn text(&mut self, byte: u8, outbox: &mut Outbox) {
        match byte {
            b'\\' => self.lexis = Lexis::Backslash,
            b'{' if self.groups.len() < DEPTH_MAX => {
                self.groups.push(self.destination);
                self.ignorable = false;
            }
            b'{' => self.beyond += 1,
            b'}' if self.beyond > 0 => self.beyond -= 1,
            b'}' => {
                let outer = self.groups.pop().unwrap_or(Destination::Text);
                self.go_to(outer, outbox);
                self.ignorable = false;
            }
            _ => self.digit(byte, outbox),
        }
    }

    fn digit(&mut self, byte: u8, outbox: &mut Outbox) {
        let Some(digit) = char::from(byte).to_digit(16).filter(|_| self.destination.name().is_some()) else { return };
        match self.high.take() {
            None => self.high = Some((digit as u8) << 4),
            Some(high) => self.data(high | digit as u8, outbox),
        }
    }

    /// A byte of data, if it is data that is read here.
    fn data(&mut self, byte: u8, outbox: &mut Outbox) {
        let Some(name) = self.destination.name() else { return };
        if !std::mem::replace(&mut self.opened, true) {
            let media_type = (self.destination == Destination::Object).then(|| OLE1.into());
            outbox.open(Object { kind: Kind::Member, name: Some(name.into()), media_type, ..Object::default() });
        }
        outbox.content(&[byte]);
    }

    /// Text goes elsewhere from here on. Data go on behind a group within them.
    fn go_to(&mut self, destination: Destination, outbox: &mut Outbox) {
        let stays = |groups: &[Destination]| groups.contains(&self.destination);
        let is_over = self.destination.name().is_some() && destination != self.destination && !stays(&self.groups);
        let is_other = destination.name().is_some() && destination != self.destination;
        if is_over || is_other && self.destination.name().is_some() {
            self.close(outbox);
        }
        self.destination = destination;
    }

    fn close(&mut self, outbox: &mut Outbox) {
        self.high = None;
        if std::mem::take(&mut self.opened) {
            outbox.close();
        }
    }

    fn symbol(&mut self, byte: u8, outbox: &mut Outbox) {
        self.lexis = Lexis::Text;
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' => {
                self.word.clear();
                self.word.push(byte);
                self.lexis = Lexis::Word;
            }
            b'*' => self.ignorable = true,
            b'\'' => {
                self.ambiguous(outbox);
                self.lexis = Lexis::Escape(2);
            }
            _ => {}
        }
    }

    fn letters(&mut self, byte: u8, outbox: &mut Outbox) -> bool {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' => {
                if self.word.len() <= WORD_BYTES {
                    self.word.push(byte);
                }
                true
            }
            b'-' => {
                self.lexis = Lexis::Number { negative: true, value: 0 };
                true
            }
            b'0'..=b'9' => {
                self.lexis = Lexis::Number { negative: false, value: u64::from(byte - b'0') };
                true
            }
            _ => {
                self.control(None, outbox);
                byte == b' '
            }
        }
    }

    fn number(&mut self, negative: bool, value: u64, byte: u8, outbox: &mut Outbox) -> bool {
        if byte.is_ascii_digit() {
            let value = value.saturating_mul(10).saturating_add(u64::from(byte - b'0'));
            self.lexis = Lexis::Number { negative, value };
            return true;
        }
        self.control(Some(if negative { 0 } else { value }), outbox);
        byte == b' '
    }

    /// A control word is complete.
    fn control(&mut self, number: Option<u64>, outbox: &mut Outbox) {
        self.lexis = Lexis::Text;
        let ignorable = std::mem::take(&mut self.ignorable);
        let word = std::mem::take(&mut self.word);
        match word.as_slice() {
            b"bin" => {
                if let Some(count) = number.filter(|&count| count > 0) {
                    self.lexis = Lexis::Binary(count);
                }
            }
            b"u" => self.ambiguous(outbox),
            word => match Destination::of(word) {
                Some(destination) if destination.name().is_some() => {
                    self.close(outbox);
                    self.destination = destination;
                }
                Some(destination) => self.destination = destination,
                None if ignorable => self.destination = Destination::Ignored,
                None => {}
            },
        }
        self.word = word;
    }

    fn ambiguous(&mut self, outbox: &mut Outbox) {
        if self.destination == Destination::Object && !std::mem::replace(&mut self.ambiguous_told, true) {
            outbox.finding(Class::Ambiguous, "Heuristics.Ambiguous.Rtf.ObjectData", self.at);
        }
    }
}

impl Reader for Rtf {
    fn read(&mut self, input: &[u8], outbox: &mut Outbox) -> usize {
        let mut taken = 0;
        while taken < input.len() && outbox.content_bytes() < CONTENT_BYTES {
            if self.byte(input[taken], outbox) {
                taken += 1;
                self.at += 1;
            }
        }
        taken
    }

    fn end(&mut self, _: &dyn ReadAt, outbox: &mut Outbox) -> Ended {
        self.close(outbox);
        Ended::Done
    }
}
