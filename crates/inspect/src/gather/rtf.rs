//! The text of Rich Text (Microsoft's RTF 1.9.1): what stands between commands, without the groups that hold none.

use text::charset::Charset;

use super::Sink;

/// Commands that end a word.
const BREAKS: [&[u8]; 8] = [b"par", b"line", b"tab", b"cell", b"row", b"sect", b"page", b"pard"];

/// Commands of groups that hold no text of the document.
const SILENT: [&[u8]; 9] =
    [b"fonttbl", b"colortbl", b"stylesheet", b"info", b"pict", b"objdata", b"themedata", b"datastore", b"listtable"];

/// The longest command, in bytes.
const COMMAND_BYTES_MAX: usize = 40;

/// Reads a document.
#[derive(Debug, Default)]
pub(super) struct Rtf {
    state: State,
    /// The command in progress, with its number.
    command: Vec<u8>,
    /// Groups that are open.
    depth: u32,
    /// At which depth a group without text began.
    silent: Option<u32>,
    /// Bytes of one character that are not written yet: they are in Windows-1252.
    bytes: Vec<u8>,
    /// The replacement of a character in Unicode follows, which is left out.
    is_replaced: bool,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum State {
    #[default]
    Text,
    /// After a backslash.
    Backslash,
    Command,
    /// After `\'` and so many digits.
    Hex(u8),
}

impl Rtf {
    pub fn read(&mut self, bytes: &[u8], sink: &mut Sink) {
        bytes.iter().for_each(|&byte| self.step(byte, sink));
        self.flush(sink);
    }

    fn step(&mut self, byte: u8, sink: &mut Sink) {
        match (self.state, byte) {
            (State::Command, b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-')
                if self.command.len() < COMMAND_BYTES_MAX =>
            {
                self.command.push(byte);
            }
            (State::Command, _) => {
                self.state = State::Text;
                self.obey(sink);
                // A blank behind a command belongs to it.
                if byte != b' ' {
                    self.step(byte, sink);
                }
            }
            (State::Hex(digits), _) => self.digit(digits, byte),
            (State::Backslash, b'\'') => (self.state, self.command) = (State::Hex(0), Vec::new()),
            (State::Backslash, b'a'..=b'z' | b'A'..=b'Z') => (self.state, self.command) = (State::Command, vec![byte]),
            (State::Backslash, _) => self.symbol(byte, sink),
            (State::Text, b'\\') => self.state = State::Backslash,
            (State::Text, b'{') => self.depth = self.depth.saturating_add(1),
            (State::Text, b'}') => self.close(),
            (State::Text, b'\r' | b'\n') => {}
            (State::Text, _) => self.push(byte),
        }
    }

    fn symbol(&mut self, byte: u8, sink: &mut Sink) {
        self.state = State::Text;
        match byte {
            b'*' => _ = self.silent.get_or_insert(self.depth),
            b'\\' | b'{' | b'}' => self.push(byte),
            b'~' | b'\r' | b'\n' => self.blank(sink),
            _ => {}
        }
    }

    fn digit(&mut self, digits: u8, byte: u8) {
        self.command.push(byte);
        self.state = State::Hex(1);
        if digits == 1 {
            self.state = State::Text;
            let number = std::str::from_utf8(&self.command).ok().and_then(|digits| u8::from_str_radix(digits, 16).ok());
            number.into_iter().for_each(|byte| self.push(byte));
        }
    }

    fn close(&mut self) {
        if self.silent.is_some_and(|silent| silent >= self.depth) {
            self.silent = None;
        }
        self.depth = self.depth.saturating_sub(1);
    }

    fn obey(&mut self, sink: &mut Sink) {
        let command = std::mem::take(&mut self.command);
        let digits = command.iter().position(|byte| !byte.is_ascii_alphabetic()).unwrap_or(command.len());
        let (name, number) = command.split_at(digits);
        if name == b"u" && self.silent.is_none() {
            let number = std::str::from_utf8(number).ok().and_then(|number| number.parse::<i32>().ok());
            // Above 32,767 it is written as a negative number.
            let character = number.and_then(|number| char::from_u32(number.rem_euclid(1 << 16).cast_unsigned()));
            self.flush(sink);
            sink.text(character.unwrap_or('\u{fffd}').encode_utf8(&mut [0; 4]));
            self.is_replaced = true;
        } else if SILENT.contains(&name) {
            self.silent.get_or_insert(self.depth);
        } else if BREAKS.contains(&name) {
            self.blank(sink);
        }
    }

    fn push(&mut self, byte: u8) {
        let is_left_out = std::mem::take(&mut self.is_replaced) || self.silent.is_some();
        if !is_left_out {
            self.bytes.push(byte);
        }
    }

    fn blank(&mut self, sink: &mut Sink) {
        self.flush(sink);
        if self.silent.is_none() {
            sink.blank();
        }
    }

    fn flush(&mut self, sink: &mut Sink) {
        sink.text(&Charset::WINDOWS_1252.lossy(&std::mem::take(&mut self.bytes)));
    }
}
