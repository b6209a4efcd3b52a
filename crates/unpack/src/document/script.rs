//! Strings that a script puts together in a way that shows: escaped characters, pieces of an array that are joined, text that
//! is reversed, hexadecimal; Base64 of deflate without a header.
//!
//! A string, and those joined to it by `+`, `&`, as an array, as a literal in the next line or by statements that append them to
//! one variable, is held without its escapes (`\x41`, `\u0041`, `%41`, octal,
//! line ends). Where it ends it is emitted: decoded if it is Base64 or hexadecimal, as it stands if half of it was escaped. Plain
//! Base64 strings are told by `html` as they come; here only what they make if they are reversed or packed, whatever the script
//! calls for it.
//!
//! Bounds: a string of [`STRING_BYTES_MAX`], and [`TAIL_BYTES`] behind it; of a longer one so much is emitted. Left out: strings
//! that are changed under their names; `data:` URIs, which are told by `html` too.

mod joint;
mod layer;
mod names;

use std::collections::VecDeque;

use stream::{FileType, ReadAt};

use crate::document::html::append::{APPEND_BYTES, variable};
use crate::document::html::base64_value;
use crate::frame::reader::{Ended, Outbox, Reader};
use crate::recognise::head::recognise;
use layer::Layer;
pub(super) use layer::makes_sense;
use names::{Joined, Names};

/// The longest string that is held.
const STRING_BYTES_MAX: usize = 1 << 20;
/// Memory of a string that is kept for the next one.
const STRING_BYTES_KEPT: usize = 1 << 10;
/// Characters of a string that is emitted; more than a digest in hexadecimal has.
const BASE64_MIN: usize = 64;
const HEX_MIN: usize = 132;
/// Characters of the pieces of a list on average, which may be lines of one file.
const LINE_MIN: usize = 40;
const ESCAPED_MIN: usize = 64;
/// Characters that are neither Base64 nor escaped, after which a string with fewer escapes is not held.
const OTHERS_FREE: usize = 16;
/// Characters of a string that says how another is read.
const TEMPLATE_BYTES: usize = 8;

/// A reader of text.
pub(crate) struct Script {
    state: State,
    value: Value,
    name: Option<Vec<u8>>,
    /// Strings by their names.
    names: Names,
    /// The last character outside of a string that is no blank.
    last: u8,
    /// The last text outside of strings.
    recent: Vec<u8>,
    /// The variable that the string is assigned to.
    variable: Vec<u8>,
    /// What is told of the last string.
    telling: VecDeque<Layer>,
    /// Bytes worked on since that was said.
    work: usize,
}

enum State {
    Outside,
    In {
        quote: u8,
        escape: Escape,
    },
    /// After a string: the text that was read.
    Behind(Vec<u8>),
    /// After a string: the text that was read, which may append the next one to the same variable.
    Append(Vec<u8>),
}

#[derive(Clone, Copy)]
enum Escape {
    None,
    Backslash,
    /// A number: digits still wanted, its value, whether it may end early in a brace.
    Number {
        left: u8,
        value: u32,
    },
    Braced {
        value: u32,
    },
    /// After a per cent sign, the first digit if it was read.
    Percent(Option<u8>),
}

/// A string as it is put together.
#[derive(Default)]
struct Value {
    bytes: Vec<u8>,
    escapes: usize,
    /// Characters that are neither Base64 nor escaped.
    others: usize,
    pieces: usize,
    /// Whether the pieces stand in an array.
    array: bool,
    /// Whether commas part some of them, or all.
    has_commas: bool,
    listed: bool,
    /// Whether some are literals in lines one behind the other.
    adjoins: bool,
}

impl Value {
    /// Whether a piece of a list is told by itself.
    fn is_telling(&self) -> bool {
        let is_escaped = self.escapes * 2 >= self.bytes.len() && self.bytes.len() >= ESCAPED_MIN;
        is_escaped || self.bytes.len() >= HEX_MIN && self.bytes.iter().all(u8::is_ascii_hexdigit)
    }

    /// Whether it says how the next string is read, as `pack("H*", ...)` does, and is no part of it.
    fn is_template(&self) -> bool {
        self.pieces == 1 && self.others > 0 && self.bytes.len() < TEMPLATE_BYTES
    }

    /// Whether it cannot become anything that is emitted.
    fn is_hopeless(&self) -> bool {
        self.others > OTHERS_FREE && self.others > self.escapes
    }
}

impl Script {
    pub fn new() -> Script {
        Script {
            state: State::Outside,
            value: Value::default(),
            name: None,
            names: Names::new(),
            last: 0,
            recent: Vec::new(),
            variable: Vec::new(),
            telling: VecDeque::new(),
            work: 0,
        }
    }

    fn outside(&mut self, input: &[u8]) -> usize {
        let passed = memchr::memchr3(b'"', b'\'', b'`', input).unwrap_or(input.len());
        let (taken, joined) = self.names.read(&input[..passed]);
        if let Some(&last) = input[..taken].iter().rev().find(|byte| !byte.is_ascii_whitespace()) {
            self.last = last;
        }
        self.remember(&input[..taken]);
        let Some(&quote) = input.get(taken) else { return self.joined(joined, taken) };
        let joined = joined.or_else(|| if taken == passed { self.names.end() } else { None });
        if joined.is_some() {
            return self.joined(joined, taken);
        }
        self.name = self.names.name();
        self.variable = variable(&self.recent).to_vec();
        // The buffer of the last string is reused, if it is small.
        let mut bytes = std::mem::take(&mut self.value.bytes);
        bytes.clear();
        bytes.shrink_to(STRING_BYTES_KEPT);
        self.value = Value { bytes, array: matches!(self.last, b'[' | b'('), pieces: 1, ..Value::default() };
        self.state = State::In { quote, escape: Escape::None };
        passed + 1
    }

    /// Strings are joined by their names where so much was read.
    fn joined(&mut self, joined: Option<Joined>, taken: usize) -> usize {
        let Some(Joined { pieces, bytes }) = joined else { return taken };
        let is_known = |byte: &u8| *byte == b'=' || base64_value(*byte).is_some();
        let escapes = bytes.iter().filter(|byte| !is_known(byte)).count();
        let value = Value { bytes, escapes, pieces, ..Value::default() };
        self.telling.extend(told(value, true, false, &mut self.work));
        taken
    }

    /// Keeps the last text outside of strings.
    fn remember(&mut self, text: &[u8]) {
        self.recent.extend_from_slice(&text[text.len().saturating_sub(APPEND_BYTES)..]);
        self.recent.drain(..self.recent.len().saturating_sub(APPEND_BYTES));
    }

    /// Reads on in a string; how much of it was read.
    fn inside(&mut self, quote: u8, escape: Escape, input: &[u8]) -> usize {
        if matches!(escape, Escape::None) {
            return self.unescaped(quote, input);
        }
        let Some(next) = self.escaped(escape, input[0]) else { return self.again(quote) };
        self.state = State::In { quote, escape: next };
        1
    }

    /// Reads plain bytes, or one that is not plain.
    fn unescaped(&mut self, quote: u8, input: &[u8]) -> usize {
        let end = memchr::memchr3(quote, b'\\', b'\n', input).unwrap_or(input.len());
        if self.value.is_hopeless() && end > 0 {
            // Only its end counts.
            self.state = State::In { quote, escape: Escape::None };
            return end;
        }
        let plain = memchr::memchr2(b'%', b'\r', &input[..end]).unwrap_or(end);
        if plain > 0 {
            self.push_plain(&input[..plain]);
            self.state = State::In { quote, escape: Escape::None };
            return plain;
        }
        let escape = match input[0] {
            byte if byte == quote => {
                self.last = quote;
                self.state = State::Behind(Vec::new());
                return 1;
            }
            b'\\' => Escape::Backslash,
            b'%' => Escape::Percent(None),
            // Only one kind of string goes on over line ends by itself.
            b'\n' if quote != b'`' => {
                self.state = State::Outside;
                return 1;
            }
            b'\n' | b'\r' => Escape::None,
            byte => {
                self.push(byte, false);
                Escape::None
            }
        };
        self.state = State::In { quote, escape };
        1
    }

    /// Takes one byte of an escape; none if the byte is not part of it.
    fn escaped(&mut self, escape: Escape, byte: u8) -> Option<Escape> {
        Some(match escape {
            Escape::None => return None,
            Escape::Backslash => self.backslash(byte),
            Escape::Number { left: 4, value: 0 } if byte == b'{' => Escape::Braced { value: 0 },
            Escape::Number { left, value } => match char::from(byte).to_digit(16) {
                Some(digit) if left == 1 => {
                    self.character(value << 4 | digit);
                    Escape::None
                }
                Some(digit) => Escape::Number { left: left - 1, value: value << 4 | digit },
                None => return None,
            },
            // Octal digits are marked by a bit that no character has.
            Escape::Braced { value } if value >> 16 != 0 => match byte {
                b'0'..=b'7' if (value & 0xffff) < 32 => {
                    Escape::Braced { value: 1 << 16 | (value & 0xffff) << 3 | u32::from(byte - b'0') }
                }
                _ => {
                    self.character(value & 0xff);
                    return None;
                }
            },
            Escape::Braced { value } => match char::from(byte).to_digit(16) {
                Some(digit) if value < 0x1000 => Escape::Braced { value: value << 4 | digit },
                _ => {
                    self.character(value);
                    Escape::None
                }
            },
            Escape::Percent(high) => match (high, char::from(byte).to_digit(16)) {
                (None, Some(digit)) => Escape::Percent(Some(digit as u8)),
                (Some(high), Some(digit)) => {
                    self.push(high << 4 | digit as u8, true);
                    Escape::None
                }
                _ => {
                    self.push(b'%', false);
                    if let Some(digit) = high.and_then(|high| char::from_digit(high.into(), 16)) {
                        self.push(digit as u8, false);
                    }
                    return None;
                }
            },
        })
    }

    /// Takes the byte behind a backslash.
    fn backslash(&mut self, byte: u8) -> Escape {
        match byte {
            b'x' => Escape::Number { left: 2, value: 0 },
            b'u' => Escape::Number { left: 4, value: 0 },
            // JSON may escape the slash, and a writer that does so does it in Base64.
            b'/' => {
                self.push(byte, true);
                Escape::None
            }
            b'\r' => Escape::Backslash,
            b'\n' => Escape::None,
            b'0'..=b'7' => Escape::Braced { value: 1 << 16 | u32::from(byte - b'0') },
            b'n' | b'r' | b't' | b'b' | b'f' | b'v' => {
                let plain = [(b'n', 10), (b'r', 13), (b't', 9), (b'b', 8), (b'f', 12), (b'v', 11)];
                let code = plain.iter().find(|(name, _)| *name == byte).map_or(byte, |(_, code)| *code);
                self.push(code, false);
                Escape::None
            }
            _ => {
                self.push(byte, false);
                Escape::None
            }
        }
    }

    /// The byte is read once more, as plain one.
    fn again(&mut self, quote: u8) -> usize {
        self.state = State::In { quote, escape: Escape::None };
        0
    }

    fn character(&mut self, code: u32) {
        match u8::try_from(code) {
            Ok(byte) => self.push(byte, true),
            Err(_) => {
                let character = char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER);
                for &byte in character.encode_utf8(&mut [0; 4]).as_bytes() {
                    self.push(byte, true);
                }
            }
        }
    }

    fn push_plain(&mut self, bytes: &[u8]) {
        let value = &mut self.value;
        // No more than makes it hopeless, from where on they are not counted, however the input is cut.
        let others_left = (OTHERS_FREE.max(value.escapes) + 1).saturating_sub(value.others);
        let others = bytes.iter().filter(|&&byte| byte != b'=' && base64_value(byte).is_none());
        value.others += others.take(others_left).count();
        if value.is_hopeless() {
            return value.bytes.clear();
        }
        let room = STRING_BYTES_MAX - value.bytes.len();
        value.bytes.extend_from_slice(&bytes[..bytes.len().min(room)]);
    }

    fn push(&mut self, byte: u8, escaped: bool) {
        let value = &mut self.value;
        value.escapes += usize::from(escaped);
        let is_known = matches!(byte, b'=' | b'\r' | b'\n') || base64_value(byte).is_some();
        value.others += usize::from(!escaped && !is_known);
        if value.is_hopeless() {
            return value.bytes.clear();
        }
        if value.bytes.len() < STRING_BYTES_MAX {
            value.bytes.push(byte);
        }
    }

    /// The string is whole, and this stands behind it without its blanks. The byte that showed it is read again.
    fn finish(&mut self, tail: &[u8]) -> bool {
        self.state = State::Outside;
        self.last = tail.last().copied().unwrap_or(self.last);
        if let Some(name) = self.name.take() {
            self.names.set(name, if tail.is_empty() { &self.value.bytes } else { &[] });
        }
        if self.value.bytes.len() < BASE64_MIN {
            return false;
        }
        let value = std::mem::take(&mut self.value);
        let has = |word: &[u8]| memchr::memmem::find(tail, word).is_some();
        let is_joined = value.pieces > 1 && value.array && tail.first() == Some(&b']') && has(b".join");
        let reversed = has(b"reverse");
        self.telling = told(value, is_joined, reversed, &mut self.work);
        false
    }

    fn tell(&mut self, outbox: &mut Outbox) {
        outbox.worked(std::mem::take(&mut self.work));
        if self.telling.front_mut().is_some_and(|layer| layer.tell(outbox)) {
            self.telling.pop_front();
        }
    }
}

/// What is told of a string.
fn told(value: Value, is_joined: bool, reversed: bool, work: &mut usize) -> VecDeque<Layer> {
    let is_escaped = value.escapes * 2 >= value.bytes.len() && value.bytes.len() >= ESCAPED_MIN;
    let is_put_together = is_joined || value.escapes > 0 || value.adjoins;
    // Pieces of a list that is never joined are as unrelated as the words of a page.
    let is_whole = value.pieces == 1 || !value.array || !value.has_commas || is_joined;
    let are_lines = value.listed && value.bytes.len() >= value.pieces.saturating_mul(LINE_MIN);
    let mut bytes = value.bytes;
    let is_uri = bytes.get(..5).is_some_and(|scheme| scheme.eq_ignore_ascii_case(b"data:"));
    if bytes.len() < BASE64_MIN || !is_whole && !are_lines || is_uri {
        return VecDeque::new();
    }
    let is_line_end = |byte: u8| matches!(byte, b'\r' | b'\n');
    // Pieces that were encoded each by itself have their padding.
    let is_padding = |byte: u8| byte == b'=' && value.has_commas;
    let is_base64 = |byte: u8| is_line_end(byte) || is_padding(byte) || base64_value(byte).is_some();
    let is_padded_first = bytes.first() == Some(&b'=') && bytes.iter().all(|&byte| byte == b'=' || is_base64(byte));
    let reversed = reversed || is_padded_first;
    if reversed {
        bytes.reverse();
    }
    let end = bytes.iter().rposition(|&byte| byte != b'=' && !is_line_end(byte)).map_or(0, |last| last + 1);
    let text = &bytes[..end];
    let is_base64 = !text.is_empty() && text.iter().all(|&byte| is_base64(byte));
    if !is_whole {
        // Lines of one file in a list show its type.
        let is_known = || !matches!(recognise(&decoded(text)), FileType::Binary | FileType::Image | FileType::Text);
        return (is_base64 && is_known()).then(|| Layer::plain(decoded(text))).into_iter().collect();
    }
    if text.len() >= HEX_MIN && text.len() == bytes.len() && text.iter().all(u8::is_ascii_hexdigit) {
        let digit = |byte: u8| char::from(byte).to_digit(16).unwrap_or(0) as u8;
        let decoded = text.chunks_exact(2).map(|pair| digit(pair[0]) << 4 | digit(pair[1])).collect();
        return [Layer::plain(decoded)].into();
    }
    match is_base64 {
        true => base64_layers(text, is_put_together, reversed, work),
        false => is_escaped.then(|| Layer::plain(bytes)).into_iter().collect(),
    }
}

/// What is told of Base64: it, if nobody else tells it; what it unpacks to; and the same of it read backwards, if that makes sense.
fn base64_layers(text: &[u8], is_put_together: bool, reversed: bool, work: &mut usize) -> VecDeque<Layer> {
    let is_cut = text.len() == STRING_BYTES_MAX;
    let mut layers = VecDeque::new();
    let forwards = decoded(text);
    *work = work.saturating_add(text.len());
    layers.extend(Layer::inflated(&forwards, is_cut, work));
    if is_put_together || reversed {
        layers.push_front(Layer::plain(forwards));
    } else {
        let backwards = decoded(&text.iter().rev().copied().collect::<Vec<_>>());
        *work = work.saturating_add(text.len());
        let inflated = Layer::inflated(&backwards, false, work);
        if inflated.is_some() || layer::makes_sense(&backwards) {
            layers.push_back(Layer::plain(backwards));
        }
        layers.extend(inflated);
    }
    layers
}

fn decoded(text: &[u8]) -> Vec<u8> {
    let (mut bits, mut count, mut bytes) = (0u32, 0, Vec::with_capacity(text.len()));
    for &byte in text {
        let Some(value) = base64_value(byte) else {
            count = if byte == b'=' { 0 } else { count };
            continue;
        };
        bits = bits << 6 | u32::from(value);
        count += 6;
        if count >= 8 {
            count -= 8;
            bytes.push((bits >> count) as u8);
        }
    }
    bytes
}

impl Reader for Script {
    fn read(&mut self, input: &[u8], outbox: &mut Outbox) -> usize {
        if !self.telling.is_empty() {
            self.tell(outbox);
            return 0;
        }
        let mut at = 0;
        while at < input.len() && self.telling.is_empty() {
            at += match std::mem::replace(&mut self.state, State::Outside) {
                State::Outside => self.outside(&input[at..]),
                State::In { quote, escape } => self.inside(quote, escape, &input[at..]),
                State::Behind(tail) => usize::from(self.behind(tail, input[at])),
                State::Append(text) => usize::from(self.append(text, input[at])),
            };
        }
        if at == 0 {
            self.tell(outbox);
        }
        outbox.worked(std::mem::take(&mut self.work));
        at
    }

    fn end(&mut self, _: &dyn ReadAt, outbox: &mut Outbox) -> Ended {
        match std::mem::replace(&mut self.state, State::Outside) {
            State::Behind(tail) => {
                let joint: Vec<u8> = tail.into_iter().filter(|byte| !byte.is_ascii_whitespace()).collect();
                self.finish(&joint);
            }
            State::Append(text) => self.does_not_append(&text),
            State::Outside | State::In { .. } => {}
        }
        let joined = self.names.end();
        self.joined(joined, 0);
        self.tell(outbox);
        if !self.telling.is_empty() { Ended::More } else { Ended::Done }
    }
}

#[cfg(test)]
mod tests;
