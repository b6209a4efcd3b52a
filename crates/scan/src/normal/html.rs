//! HTML as ClamAV reads it.
//!
//! It is no browser's reading. Every declaration, a comment too, ends at the first `>`. Blanks around names and `=` in tags
//! do not count. A quoted value ends with its quote only if no blank and no `>` came before; behind one of those it goes on
//! like a value without quotes. References count in text, in values, and in scripts. NUL and CR are nowhere.
//!
//! This file says where in the markup a byte stands; what a view takes of it is in `page`.
//!
//! Bounds: the beginning of a name, and a reference.

use super::View;
use super::page::{Page, Place};
use super::reference::Reference;
use super::text::is_blank;

/// As much of a name is compared.
const NAME_BYTES_MAX: usize = 8;

/// The reader of a page for one view.
#[derive(Debug, Clone)]
pub(super) struct Html {
    page: Page,
    state: State,
    /// The reference that is being read.
    reference: Option<Reference>,
    tag: Name,
    attribute: Name,
}

/// Where the next byte stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// In text; `fresh` at its beginning, where blanks do not count.
    Text {
        fresh: bool,
    },
    /// After `<`.
    Open,
    Declaration,
    /// In the name of a tag.
    Name,
    /// After a name or a value.
    Between,
    Attribute,
    /// After `=`.
    Equals,
    /// In a value without quotes.
    Bare,
    /// In a value behind its quote.
    Quoted {
        quote: u8,
    },
    /// After the first blank or `>` of a quoted value.
    Loose,
    /// In a script or a style sheet.
    Raw {
        script: bool,
        at: At,
    },
}

/// Where in a script or a style sheet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum At {
    Content,
    /// After `<`.
    Open,
    Declaration,
    /// In the name behind `</`.
    Closing,
}

/// The beginning of a name in lower case.
#[derive(Debug, Clone, Copy, Default)]
struct Name {
    bytes: [u8; NAME_BYTES_MAX],
    length: usize,
}

impl Name {
    fn push(&mut self, byte: u8) {
        if let Some(place) = self.bytes.get_mut(self.length) {
            *place = byte.to_ascii_lowercase();
        }
        self.length = self.length.saturating_add(1);
    }

    fn is(&self, name: &[u8]) -> bool {
        self.length == name.len() && self.bytes.get(..name.len()) == Some(name)
    }
}

impl Html {
    pub(super) fn new(view: View) -> Html {
        Html {
            page: Page::new(view),
            state: State::Text { fresh: true },
            reference: None,
            tag: Name::default(),
            attribute: Name::default(),
        }
    }

    pub(super) fn read(&mut self, input: &[u8], out: &mut Vec<u8>) {
        let mut rest = input;
        while let Some((&byte, after)) = rest.split_first() {
            if let Some((run, fresh)) = self.run(rest) {
                let fresh = self.page.run(&rest[..run], fresh, out);
                self.state = State::Text { fresh };
                rest = &rest[run..];
                continue;
            }
            rest = after;
            if byte != 0 && byte != b'\r' {
                self.byte(byte, out);
            }
        }
    }

    /// How many of the next bytes are plain text, if there are any.
    fn run(&self, bytes: &[u8]) -> Option<(usize, bool)> {
        let State::Text { fresh } = self.state else { return None };
        if self.reference.is_some() || self.page.is_unsettled() {
            return None;
        }
        let length = match self.page.is_of_scripts() {
            true => memchr::memchr(b'<', bytes).unwrap_or(bytes.len()),
            false => memchr::memchr2(b'<', b'&', bytes).unwrap_or(bytes.len()),
        };
        let plain = &bytes[..length];
        let run = match self.page.is_of_scripts() || plain.is_ascii() {
            true => length,
            false => plain.iter().position(|byte| !byte.is_ascii()).unwrap_or(length),
        };
        (run > 0).then_some((run, fresh))
    }

    pub(super) fn end(&mut self, out: &mut Vec<u8>) {
        if let Some(reference) = self.reference.take() {
            let text = reference.end();
            self.refer(&text, out);
        }
        if self.state == State::Open {
            self.page.mark(b'<', out);
        }
        self.page.settle(out);
        self.page.script_ends(out);
    }

    /// Whether a script was too long to be read at once; asked once.
    pub(super) fn take_cut(&mut self) -> bool {
        self.page.take_cut()
    }

    fn byte(&mut self, byte: u8, out: &mut Vec<u8>) {
        if byte < 128 {
            self.page.settle(out);
            return self.referring(byte, out);
        }
        if let Some((text, _)) = self.reference.take().and_then(|mut reference| reference.read(byte)) {
            self.refer(&text, out);
        }
        self.wide(byte, out);
    }

    /// A byte beyond ASCII.
    fn wide(&mut self, byte: u8, out: &mut Vec<u8>) {
        match self.state {
            State::Text { .. } => {
                self.state = State::Text { fresh: false };
                self.page.text_begins(out);
                self.page.wide(byte, Place::Content, out);
            }
            State::Raw { at: At::Content, .. } => {
                self.page.script(byte, out);
                self.page.wide(byte, Place::Content, out);
            }
            State::Equals => {
                self.value_begins(byte, out);
                self.page.wide(byte, Place::Value, out);
            }
            State::Loose | State::Bare => {
                self.state = State::Bare;
                self.page.wide(byte, Place::Value, out);
            }
            State::Quoted { .. } => self.page.wide(byte, Place::Value, out),
            _ => self.at(byte, out),
        }
    }

    /// Reads a byte that may belong to a reference.
    fn referring(&mut self, byte: u8, out: &mut Vec<u8>) {
        let Some(mut reference) = self.reference.take() else {
            return self.at(byte, out);
        };
        match reference.read(byte) {
            None => self.reference = Some(reference),
            Some((text, took_byte)) => {
                self.refer(&text, out);
                if !took_byte {
                    self.at(byte, out);
                }
            }
        }
    }

    /// A reference is over: what it says stands in its place.
    fn refer(&mut self, text: &[u8], out: &mut Vec<u8>) {
        let in_value = !matches!(self.state, State::Text { .. } | State::Raw { .. });
        self.page.reference(text, in_value, out);
    }

    fn at(&mut self, byte: u8, out: &mut Vec<u8>) {
        match self.state {
            State::Text { fresh } => self.text(fresh, byte, out),
            State::Open => self.open(byte, out),
            State::Declaration if byte == b'>' => self.state = State::Text { fresh: true },
            State::Declaration => {}
            State::Quoted { quote } => self.quoted(quote, byte, out),
            State::Raw { script, at } => self.raw(script, at, byte, out),
            _ if byte == b'>' => self.close(out),
            _ => self.tag(byte, out),
        }
    }

    fn text(&mut self, fresh: bool, byte: u8, out: &mut Vec<u8>) {
        match byte {
            b'<' => {
                self.page.tag_begins(out);
                self.state = State::Open;
            }
            _ if is_blank(byte) => {
                self.page.blank(fresh, out);
            }
            b'&' => {
                self.page.reference_begins(out);
                self.state = State::Text { fresh: false };
                self.reference = Some(Reference::default());
            }
            _ => {
                let fresh = self.page.run(&[byte], fresh, out);
                self.state = State::Text { fresh };
            }
        }
    }

    fn open(&mut self, byte: u8, out: &mut Vec<u8>) {
        match byte {
            b'!' => self.state = State::Declaration,
            _ if is_blank(byte) => {}
            _ => {
                self.page.mark(b'<', out);
                (self.tag, self.attribute) = (Name::default(), Name::default());
                self.state = State::Name;
                self.at(byte, out);
            }
        }
    }

    /// A byte in a tag that does not end it.
    fn tag(&mut self, byte: u8, out: &mut Vec<u8>) {
        let blank = is_blank(byte);
        match self.state {
            State::Name | State::Attribute if blank => self.state = State::Between,
            State::Name => {
                self.tag.push(byte);
                self.page.mark(byte, out);
            }
            State::Between | State::Attribute if byte == b'=' => {
                self.page.mark(b'=', out);
                self.state = State::Equals;
            }
            State::Attribute => {
                self.attribute.push(byte);
                self.page.mark(byte, out);
            }
            State::Equals | State::Between | State::Loose if blank => {}
            State::Between => {
                self.page.mark(b' ', out);
                self.attribute = Name::default();
                self.state = State::Attribute;
                self.at(byte, out);
            }
            State::Equals => self.value_begins(byte, out),
            State::Loose => {
                self.state = State::Bare;
                self.at(byte, out);
            }
            State::Bare if blank => {
                self.page.value_ends();
                self.state = State::Between;
            }
            State::Bare if byte == b'&' => self.reference = Some(Reference::default()),
            _ => self.page.value(byte, out),
        }
    }

    fn value_begins(&mut self, byte: u8, out: &mut Vec<u8>) {
        let link = self.tag.is(b"a") && self.attribute.is(b"href");
        let picture = self.tag.is(b"img") && self.attribute.is(b"src");
        self.page.value_begins(link || picture);
        self.state = State::Bare;
        match byte {
            b'"' | b'\'' => {
                self.page.mark(b'"', out);
                self.state = State::Quoted { quote: byte };
            }
            128.. => {}
            _ => self.at(byte, out),
        }
    }

    fn quoted(&mut self, quote: u8, byte: u8, out: &mut Vec<u8>) {
        if byte == quote {
            self.page.value_ends();
            self.page.mark(b'"', out);
            self.state = State::Between;
        } else if is_blank(byte) || byte == b'>' {
            self.page.value(if byte == b'\n' { b' ' } else { byte }, out);
            self.page.value_loosens();
            self.state = State::Loose;
        } else if byte == b'&' {
            self.reference = Some(Reference::default());
        } else {
            self.page.value(byte, out);
        }
    }

    /// A tag is over.
    fn close(&mut self, out: &mut Vec<u8>) {
        self.page.mark(b'>', out);
        self.page.tag_ends();
        let script = self.tag.is(b"script");
        self.state = match script || self.tag.is(b"style") {
            true => State::Raw { script, at: At::Content },
            false => State::Text { fresh: true },
        };
        if script {
            self.page.script_begins();
        }
    }

    fn raw(&mut self, script: bool, at: At, byte: u8, out: &mut Vec<u8>) {
        let blank = is_blank(byte);
        let (next, literal) = match at {
            At::Content if byte == b'<' => (At::Open, false),
            At::Content if byte == b'&' && !self.page.is_of_scripts() => {
                self.reference = Some(Reference::default());
                return;
            }
            At::Content => (At::Content, false),
            At::Open if blank => (At::Open, false),
            At::Open if byte == b'!' => (At::Declaration, false),
            At::Open if byte == b'/' => {
                self.tag = Name::default();
                (At::Closing, false)
            }
            At::Open => (At::Content, true),
            At::Declaration if byte == b'>' => (At::Content, false),
            At::Declaration => (At::Declaration, false),
            At::Closing if blank || byte == b'>' => {
                if self.tag.is(b"script") || (self.tag.is(b"style") && !script) {
                    return self.raw_ends(byte, out);
                }
                (At::Content, false)
            }
            At::Closing => {
                self.tag.push(byte);
                (At::Closing, true)
            }
        };
        self.state = State::Raw { script, at: next };
        self.page.script(byte, out);
        self.page.raw(byte, literal, out);
    }

    /// The tag that ends a script or a style sheet is over: only its name counts. ClamAV leaves it in the script if a blank
    /// follows.
    fn raw_ends(&mut self, byte: u8, out: &mut Vec<u8>) {
        self.page.raw(byte, false, out);
        if byte == b'>' {
            self.page.cut_tag();
        } else {
            self.page.blank_ends_script(out);
        }
        self.page.script_ends(out);
        self.state = State::Text { fresh: true };
    }
}
