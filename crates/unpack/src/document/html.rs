//! Encoded content in text: `data:` URIs of HTML, SVG, CSS and XML, and long Base64 strings of scripts, which pages
//! assemble to files in the browser.
//!
//! A quoted string of [`RUN_MIN`] or more characters of the Base64 alphabet is emitted decoded, however a script uses
//! it, except for digests in hexadecimal; strings joined by `+`, `&` or `.` are one, over line ends too, and so are those that
//! statements append to one variable. In URIs `%` escapes
//! and references to characters are decoded first. Escaped slashes and line ends, as JSON has them, are passed.
//!
//! Bounds: [`RECENT_BYTES`] of recent input, and a run that is not yet long enough.
//!
//! Left out: strings that scripts assemble otherwise (see `script`), encodings outside of quotes (see `runs`).

mod address;
pub(super) mod append;

use stream::{Kind, Object, ReadAt};

use crate::document::relationships::character;
use crate::frame::format::{Format, Reads};
use crate::frame::reader::{CONTENT_BYTES, Ended, Outbox, Reader};
use address::head_as_read;
use append::{APPEND_BYTES, is_append, is_of_append, variable};

/// Row in the table of formats.
pub(crate) const FORMAT: Format = Format {
    name: "HTML, SVG, XML, scripts",
    methods: "`data:` URIs (Base64, percent, with references to characters), Base64 strings of 64 characters and more, joined \
              by `+`, `&` and `.` or as an array, reversed, of raw deflate, escaped (`\\x`, `\\u`, `%`), hexadecimal strings; Base64 in the text of \
              elements (Word 2003 XML, Flat OPC, flat ODF, text areas), in lines (iCalendar, vCard, LDIF, blocks of PEM and OpenPGP), and Base32 there; \
              arrays of bytes as numbers (signed, hexadecimal, pairs of digits); files line by line between the same words \
              (`echo ... >> FILE`), dumps of pairs with addresses, Intel HEX and S-records",
    not_read: "",
    reads: Reads::Stream,
    memory: "a string of 1 MiB that a script puts together",
    decoder: "own",
    fuzz: "unpack_html",
    compared_with: "pages made for it",
};

/// Base64 characters from which on a string counts.
const RUN_MIN: usize = 64;
/// Base64 characters from which on a string may go on in another line.
const LINE_MIN: usize = 40;
/// Enough for `data:`, a media type and `;base64` as references to characters, and zeros in front of their numbers.
const RECENT_BYTES: usize = 640;
/// Look-ahead for the end of irrelevant text: all of it is read again after each string and URI.
const AHEAD_BYTES: usize = 256;
/// The longest reference to a character, without its `&`.
const REFERENCE_BYTES: usize = 12;

/// A reader of text.
pub(crate) struct Html {
    recent: Vec<u8>,
    state: State,
    /// Bits of the Base64 groups.
    bits: u32,
    bit_count: u32,
    opened: bool,
    /// The variable that the string is assigned to.
    variable: Vec<u8>,
    /// Whether the last byte of a string or URI was a backslash.
    backslash: bool,
}

enum State {
    Outside,
    /// In a string; its first characters, as long as they are too few.
    Run {
        quote: u8,
        held: Vec<u8>,
    },
    /// In a string that is emitted.
    Long {
        quote: u8,
    },
    /// After a string, whose bytes are held while it is too short; whether a `+` has been read.
    Joint {
        plus: bool,
        held: Vec<u8>,
    },
    /// After a string and this text, which may append the next one to the same variable.
    Append {
        text: Vec<u8>,
        held: Vec<u8>,
    },
    /// In a URI, within an escape.
    Uri {
        base64: bool,
        escape: Escape,
    },
}

#[derive(Clone, Copy)]
enum Escape {
    None,
    Percent,
    High(u8),
    /// After an `&`.
    Reference([u8; REFERENCE_BYTES], usize),
}

impl Html {
    pub fn new() -> Html {
        Html {
            recent: Vec::new(),
            state: State::Outside,
            bits: 0,
            bit_count: 0,
            opened: false,
            variable: Vec::new(),
            backslash: false,
        }
    }

    fn outside(&mut self, input: &[u8]) -> usize {
        self.backslash = false;
        let mut from = 0;
        while from < input.len() {
            let ahead = &input[from..input.len().min(from + AHEAD_BYTES)];
            let quote = memchr::memchr3(b'"', b'\'', b'`', ahead);
            let before = &ahead[..quote.unwrap_or(ahead.len())];
            let uri = memchr::memchr2_iter(b',', b';', before)
                .find_map(|at| Some((at, self.uri(&input[..from + at], before[at])?)));
            let string = || quote.map(|at| (at, State::Run { quote: ahead[at], held: Vec::new() }));
            if let Some((at, state)) = uri.or_else(string) {
                self.state = state;
                self.remember(&input[..=from + at]);
                if matches!(self.state, State::Run { .. }) {
                    let recent = &self.recent[..self.recent.len() - 1];
                    self.variable = variable(&recent[recent.len().saturating_sub(APPEND_BYTES)..]).to_vec();
                }
                return from + at + 1;
            }
            from += ahead.len();
        }
        self.remember(input);
        input.len()
    }

    fn remember(&mut self, bytes: &[u8]) {
        self.recent.extend_from_slice(&bytes[bytes.len().saturating_sub(RECENT_BYTES)..]);
        // Now and then, for moving them costs more than keeping them.
        if self.recent.len() > 4 * RECENT_BYTES {
            self.recent.drain(..self.recent.len() - RECENT_BYTES);
        }
    }

    /// State after a comma behind `read`, or after the end of a reference to one, if it ends the head of a URI.
    fn uri(&self, read: &[u8], end: u8) -> Option<State> {
        if end == b';' && !matches!(read.last().or(self.recent.last()), Some(b'4' | b'c' | b'C' | b'a')) {
            return None;
        }
        let read = &read[read.len().saturating_sub(RECENT_BYTES)..];
        let before = &self.recent[self.recent.len().saturating_sub(RECENT_BYTES - read.len())..];
        // Most commas end nothing.
        memchr::memchr2(b':', b'&', read).or_else(|| memchr::memchr2(b':', b'&', before))?;
        let recent = &mut [0; RECENT_BYTES][..before.len() + read.len()];
        recent[..before.len()].copy_from_slice(before);
        recent[before.len()..].copy_from_slice(read);
        let recent = head_as_read(recent, end)?;
        let (before, media) = recent.split_at(memchr::memrchr(b':', &recent)?);
        if !before.last_chunk().is_some_and(|name: &[u8; 4]| name.eq_ignore_ascii_case(b"data")) {
            return None;
        }
        let media = media[1..].to_ascii_lowercase();
        let is_head = |byte: &u8| byte.is_ascii_alphanumeric() || b"\\/+.-;=_%* ".contains(byte);
        (media.iter().all(is_head)).then(|| {
            let base64 = media.trim_ascii_end().ends_with(b"base64");
            State::Uri { base64, escape: Escape::None }
        })
    }

    /// Whether this byte is the letter of an escaped line end or tab, as JSON has them.
    fn is_escaped_blank(&mut self, byte: u8) -> bool {
        std::mem::replace(&mut self.backslash, byte == b'\\') && matches!(byte, b'n' | b'r' | b't')
    }

    fn open(&mut self, outbox: &mut Outbox) {
        if !std::mem::replace(&mut self.opened, true) {
            (self.bits, self.bit_count) = (0, 0);
            outbox.open(Object { kind: Kind::Embedded, ..Object::default() });
        }
    }

    fn close(&mut self, outbox: &mut Outbox) {
        self.state = State::Outside;
        if std::mem::take(&mut self.opened) {
            outbox.close();
        }
    }

    fn decode(&mut self, byte: u8, outbox: &mut Outbox) {
        let Some(value) = base64_value(byte) else { return };
        self.bits = self.bits << 6 | u32::from(value);
        self.bit_count += 6;
        if self.bit_count >= 8 {
            self.bit_count -= 8;
            outbox.content(&[(self.bits >> self.bit_count) as u8]);
        }
    }

    /// Reads a byte of a string; `false` if it is to be read again outside.
    fn run(&mut self, quote: u8, mut held: Vec<u8>, byte: u8, outbox: &mut Outbox) -> bool {
        if self.is_escaped_blank(byte) {
            self.state = State::Run { quote, held };
            return true;
        }
        if byte == quote && !held.is_empty() {
            self.state = State::Joint { plus: false, held };
            return true;
        }
        // Line ends, escaped or not, within Base64.
        if held.len() >= LINE_MIN && matches!(byte, b'\\' | b'\r' | b'\n') {
            self.state = State::Run { quote, held };
            return true;
        }
        if base64_value(byte).is_none() && byte != b'=' {
            // A string that does not qualify, or the text after it, can hold a URI.
            self.remember(&held);
            self.state = State::Outside;
            return byte == quote;
        }
        held.push(byte);
        if held.len() < RUN_MIN {
            self.state = State::Run { quote, held };
            return true;
        }
        if held.iter().all(u8::is_ascii_hexdigit) {
            self.remember(&held);
            return true;
        }
        self.open(outbox);
        held.iter().for_each(|&byte| self.decode(byte, outbox));
        self.state = State::Long { quote };
        true
    }

    fn long(&mut self, quote: u8, byte: u8, outbox: &mut Outbox) -> bool {
        if self.is_escaped_blank(byte) {
            self.state = State::Long { quote };
            return true;
        }
        if byte == quote {
            self.state = State::Joint { plus: false, held: Vec::new() };
            return true;
        }
        // Escaped line ends join lines.
        if base64_value(byte).is_some() || matches!(byte, b'=' | b'\\' | b'\r' | b'\n' | b' ' | b'\t') {
            self.decode(byte, outbox);
            self.state = State::Long { quote };
            return true;
        }
        self.close(outbox);
        false
    }

    fn joint(&mut self, plus: bool, held: Vec<u8>, byte: u8, outbox: &mut Outbox) -> bool {
        self.state = match byte {
            b'+' | b'&' | b'.' if !plus => State::Joint { plus: true, held },
            // A line of Visual Basic goes on.
            b'_' if plus => State::Joint { plus, held },
            b'"' | b'\'' | b'`' if plus && self.opened => State::Long { quote: byte },
            b'"' | b'\'' | b'`' if plus => State::Run { quote: byte, held },
            b' ' | b'\t' | b'\r' | b'\n' => State::Joint { plus, held },
            _ if !plus && !self.variable.is_empty() && is_of_append(byte) => State::Append { text: vec![byte], held },
            _ => {
                self.remember(&held);
                self.close(outbox);
                return false;
            }
        };
        true
    }

    /// Reads a byte between two strings of which the second may be appended to the first.
    fn append(&mut self, mut text: Vec<u8>, held: Vec<u8>, byte: u8, outbox: &mut Outbox) -> bool {
        if is_of_append(byte) && text.len() < APPEND_BYTES {
            text.push(byte);
            self.state = State::Append { text, held };
            return true;
        }
        let is_quote = matches!(byte, b'"' | b'\'' | b'`');
        if is_quote && is_append(&text, &self.variable) {
            self.state = if self.opened { State::Long { quote: byte } } else { State::Run { quote: byte, held } };
            return true;
        }
        self.remember(&held);
        self.remember(&text);
        self.close(outbox);
        false
    }

    fn uri_byte(&mut self, base64: bool, escape: Escape, byte: u8, outbox: &mut Outbox) -> bool {
        if let Escape::Reference(name, length) = escape {
            return self.reference(base64, (name, length), byte, outbox);
        }
        if base64 && self.is_escaped_blank(byte) {
            self.state = State::Uri { base64, escape };
            return true;
        }
        let digit = char::from(byte).to_digit(16).map(|digit| digit as u8);
        let (plain, escape) = match (escape, digit) {
            (Escape::Percent, Some(high)) => (None, Escape::High(high)),
            (Escape::High(high), Some(low)) => (Some(high << 4 | low), Escape::None),
            _ if matches!(byte, b'"' | b'\'' | b'`' | b')' | b'<' | b'>') || !base64 && byte.is_ascii_whitespace() => {
                self.close(outbox);
                return false;
            }
            _ if byte == b'%' => (None, Escape::Percent),
            _ if byte == b'&' => (None, Escape::Reference([0; REFERENCE_BYTES], 0)),
            _ => (Some(byte), Escape::None),
        };
        if let Some(plain) = plain {
            self.open(outbox);
            if base64 { self.decode(plain, outbox) } else { outbox.content(&[plain]) }
        }
        self.state = State::Uri { base64, escape };
        true
    }
}

/// The value of a Base64 character, of the URL alphabet too.
pub(crate) const fn base64_value(byte: u8) -> Option<u8> {
    match byte {
        b'-' => Some(62),
        b'_' => Some(63),
        _ => text::base64::value(byte),
    }
}

impl Html {
    /// Reads a byte of a reference to a character in a URI. An invalid reference is content.
    fn reference(
        &mut self,
        base64: bool,
        (mut name, length): ([u8; REFERENCE_BYTES], usize),
        byte: u8,
        outbox: &mut Outbox,
    ) -> bool {
        let is_digit = match name[..length] {
            [b'#', b'x' | b'X', ..] => byte.is_ascii_hexdigit(),
            [b'#'] => byte.is_ascii_digit() || matches!(byte, b'x' | b'X'),
            [b'#', ..] => byte.is_ascii_digit(),
            _ => byte.is_ascii_alphanumeric() || byte == b'#',
        };
        if length < REFERENCE_BYTES && is_digit {
            name[length] = byte;
            self.state = State::Uri { base64, escape: Escape::Reference(name, length + 1) };
            return true;
        }
        self.open(outbox);
        // A number needs no semicolon.
        let is_whole = byte == b';' || name[..length].starts_with(b"#");
        let character = is_whole.then(|| character(&String::from_utf8_lossy(&name[..length]))).flatten();
        match character {
            Some(character) if base64 => self.decode(u8::try_from(character).unwrap_or(b' '), outbox),
            Some(character) => outbox.content(character.encode_utf8(&mut [0; 4]).as_bytes()),
            None if base64 => name[..length].iter().for_each(|&byte| self.decode(byte, outbox)),
            None => outbox.content(&[b"&", &name[..length]].concat()),
        }
        self.state = State::Uri { base64, escape: Escape::None };
        character.is_some() && byte == b';'
    }
}

impl Reader for Html {
    fn read(&mut self, input: &[u8], outbox: &mut Outbox) -> usize {
        let mut at = 0;
        while at < input.len() && outbox.content_bytes() + RUN_MIN < CONTENT_BYTES {
            let byte = input[at];
            let taken = match std::mem::replace(&mut self.state, State::Outside) {
                State::Outside => {
                    at += self.outside(&input[at..]);
                    continue;
                }
                State::Run { quote, held } => self.run(quote, held, byte, outbox),
                State::Long { quote } => self.long(quote, byte, outbox),
                State::Joint { plus, held } => self.joint(plus, held, byte, outbox),
                State::Append { text, held } => self.append(text, held, byte, outbox),
                State::Uri { base64, escape } => self.uri_byte(base64, escape, byte, outbox),
            };
            at += usize::from(taken);
        }
        at
    }

    fn end(&mut self, _: &dyn ReadAt, outbox: &mut Outbox) -> Ended {
        self.close(outbox);
        Ended::Done
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::reader::Reading;
    use stream::law;

    /// PHP escapes slashes; Ruby, Python and PHP part lines.
    #[test]
    fn base64_of_json_may_have_escaped_slashes_and_line_ends() {
        let content: Vec<u8> = (0..=255).rev().collect();
        let base64 = text::base64::encode(&content);
        let lines = |length: usize, between: &str| {
            let lines: Vec<_> = base64.as_bytes().chunks(length).map(String::from_utf8_lossy).collect();
            lines.join(between)
        };
        for value in [
            lines(76, "\\n"),
            format!("{}\\n", lines(60, "\\n")),
            lines(76, "\\r\\n"),
            format!("data:application/zip;base64,{}", lines(76, "\\r\\n")),
            format!("data:application\\/zip;base64,{base64}"),
            format!("data:application\\/zip;base64,{}", lines(76, "\\n").replace('/', "\\/")),
        ] {
            let json = format!("{{\"a\": \"{value}\"}}");
            let make = || Reading::new(Html::new());
            law::holds(make, json.as_bytes());
            law::holds_at_every_cut(make, json.as_bytes());
            assert_eq!(law::content(&law::tell(make(), json.as_bytes())), content, "{json}");
        }
    }

    #[test]
    fn strings_appended_to_one_variable_are_one() {
        let content: Vec<u8> = (0..=255).rev().collect();
        let base64 = text::base64::encode(&content);
        let lines: Vec<_> = base64.as_bytes().chunks(50).map(String::from_utf8_lossy).collect();
        for (first, each, last) in [
            ("var b=\"", "\";\nb+=\"", "\";"),
            ("b = \"", "\"\r\nb = b & \"", "\"\r\n"),
            ("$b = '", "' . '", "';"),
            ("let b = '';\nb += '", "'\n  b += '", "'\n"),
            ("$b = '", "';\n$b .= '", "';"),
            ("this.b = '", "'; this.b += '", "';"),
        ] {
            let script = format!("<script>\n{first}{}{last}\nf(b)</script>", lines.join(each));
            let make = || Reading::new(Html::new());
            law::holds(make, script.as_bytes());
            law::holds_at_every_cut(make, script.as_bytes());
            let told = law::tell(make(), script.as_bytes());
            assert_eq!(law::content(&told), content, "{script}");
            assert_eq!(told.iter().filter(|told| matches!(told, law::Told::Open(_))).count(), 1);
        }
    }

    #[test]
    fn strings_of_two_variables_are_two() {
        let content: Vec<u8> = (0..90).collect();
        let base64 = text::base64::encode(&content);
        let script = format!("a += \"{base64}\";\nb += \"{base64}\";\nb += 1; c(\"{base64}\")");
        let told = law::tell(Reading::new(Html::new()), script.as_bytes());
        assert_eq!(told.iter().filter(|told| matches!(told, law::Told::Open(_))).count(), 3);
    }

    /// Attribute values are decoded first; the parser of addresses takes tabs and line ends out.
    #[test]
    fn addresses_are_read_as_browsers_read_them() {
        let content: Vec<u8> = (0..=255).rev().collect();
        let base64 = text::base64::encode(&content);
        let plain = format!("data:application/zip;base64,{base64}");
        let referred = |write: fn(u8) -> String| plain.bytes().map(write).collect::<String>();
        let data_referred = |write: fn(u8) -> String| {
            format!("data:application/zip;base64,{}", base64.bytes().map(write).collect::<String>())
        };
        for address in [
            referred(|byte| format!("&#{byte};")),
            referred(|byte| format!("&#x{byte:x};")),
            referred(|byte| format!("&#0000{byte};")),
            referred(|byte| format!("&#X00{byte:X};")),
            data_referred(|byte| format!("&#{byte}")),
            data_referred(|byte| format!("&#x{byte:x};")),
            plain.replace("data:", "da\tta:"),
            plain.replace("data:", "data\n:"),
            plain.replace("data:", "d&Tab;at&NewLine;a&colon;"),
            format!("data:application/zip;base64,{}", base64.replace('A', "A&Tab;").replace('z', "z&NewLine;")),
            plain.replace(',', "&comma;"),
        ] {
            let page = format!("<p>x</p><a href=\"{address}\">x, y; z</a>");
            let make = || Reading::new(Html::new());
            law::holds(make, page.as_bytes());
            assert_eq!(law::content(&law::tell(make(), page.as_bytes())), content, "{page}");
        }
    }

    #[test]
    fn the_head_of_a_uri_is_known_however_it_is_cut() {
        for uri in [&b"x: url(data:image/svg+xml;base64,"[..], b"x: url(data&#58;image/svg&#43;xml;base64,"] {
            for (first, last) in (0..uri.len()).map(|cut| uri.split_at(cut)) {
                let (mut html, mut outbox) = (Html::new(), Outbox::default());
                html.read(first, &mut outbox);
                html.read(last, &mut outbox);
                let is_uri = matches!(html.state, State::Uri { base64: true, .. });
                assert!(is_uri, "{} {}", first.escape_ascii(), last.escape_ascii());
            }
        }
    }
}
