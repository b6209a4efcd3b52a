//! The head of a message, collected and checked line by line before anything parses it.
//!
//! A line ends with CR LF and nothing else, and holds no control byte but the tab. So no later parser, ours or another
//! program's, can see a line end where this one saw none. In responses of servers LF alone is a line end too, other control bytes are
//! blanks, and fields without a valid name are dropped, as clients have it: they are written anew in the strict form.

use alloc::vec::Vec;

use super::field::Fields;
use super::limits::Limits;
use super::refusal::Refusal;

/// Empty lines before a first line that are passed over (RFC 9112, section 2.2).
const EMPTY_LINES_MAX: u8 = 4;

/// Lines up to an empty one.
#[derive(Debug, Default)]
pub(crate) struct HeadBuffer {
    bytes: Vec<u8>,
    /// Where the line under way begins.
    line: usize,
    empty_lines: u8,
    /// Whether an empty first line ends it, as in a trailer.
    may_be_empty: bool,
    manner: Manner,
}

/// How strictly lines are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Manner {
    /// As the standards have them.
    #[default]
    Strict,
    /// As clients of HTTP read responses.
    OfResponse,
}

impl HeadBuffer {
    /// The head of a response.
    pub fn of_response() -> HeadBuffer {
        HeadBuffer { manner: Manner::OfResponse, ..HeadBuffer::default() }
    }

    /// A trailer: its first line may be the empty one.
    pub fn trailer(manner: Manner) -> HeadBuffer {
        HeadBuffer { may_be_empty: true, manner, ..HeadBuffer::default() }
    }

    /// True before the first byte of a head.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Takes bytes up to the end of a line. Returns how many, and the head when it is complete: its lines with their ends,
    /// without the empty one.
    pub fn take(&mut self, input: &[u8], limits: &Limits) -> Result<(usize, Option<Vec<u8>>), Refusal> {
        let end = memchr::memchr(b'\n', input);
        let count = end.map_or(input.len(), |at| at.saturating_add(1));
        if self.bytes.len().saturating_add(count) > limits.head_bytes_max {
            return Err(Refusal::HeadTooLong);
        }
        self.bytes.extend_from_slice(input.get(..count).unwrap_or_default());
        if end.is_none() {
            return Ok((count, None));
        }
        self.end_line();
        let line = self.bytes.get(self.line..).unwrap_or_default();
        let line = line.strip_suffix(b"\r\n").ok_or(Refusal::BareNewline)?;
        match self.manner {
            Manner::Strict => check(line)?,
            Manner::OfResponse => check_response(line)?,
        }
        if !line.is_empty() {
            self.line = self.bytes.len();
            return Ok((count, None));
        }
        if self.line == 0 && !self.may_be_empty {
            self.bytes.clear();
            self.empty_lines = self.empty_lines.saturating_add(1);
            return if self.empty_lines > EMPTY_LINES_MAX { Err(Refusal::StartLine) } else { Ok((count, None)) };
        }
        self.bytes.truncate(self.line);
        let head = core::mem::take(&mut self.bytes);
        *self = HeadBuffer { may_be_empty: self.may_be_empty, manner: self.manner, ..HeadBuffer::default() };
        Ok((count, Some(head)))
    }

    /// Writes a line of a response, whose LF has come, in the strict form.
    fn end_line(&mut self) {
        if self.manner == Manner::Strict {
            return;
        }
        let is_first = self.line == 0 && !self.may_be_empty;
        let line = self.bytes.get_mut(self.line..).unwrap_or_default();
        let is_bare = !line.ends_with(b"\r\n");
        let is_value = is_first || line.first().is_some_and(|&byte| matches!(byte, b' ' | b'\t'));
        let colon = memchr::memchr(b':', line).unwrap_or(line.len());
        // A name with such a byte is none.
        let value = line.get_mut(if is_value { 0 } else { colon }..).unwrap_or_default();
        value.iter_mut().filter(|byte| is_odd(**byte)).for_each(|byte| *byte = b' ');
        if is_bare && self.bytes.pop().is_some() {
            self.bytes.extend_from_slice(b"\r\n");
        }
    }
}

/// Checks the bytes of a line.
fn check(line: &[u8]) -> Result<(), Refusal> {
    match line.iter().find(|&&byte| (byte < b' ' && byte != b'\t') || byte == 0x7f) {
        Some(b'\r') => Err(Refusal::BareReturn),
        Some(_) => Err(Refusal::ControlByte),
        None => Ok(()),
    }
}

/// Checks the bytes of a line of a response.
fn check_response(line: &[u8]) -> Result<(), Refusal> {
    match line.iter().find(|&&byte| matches!(byte, 0 | b'\r')) {
        Some(b'\r') => Err(Refusal::BareReturn),
        Some(_) => Err(Refusal::ControlByte),
        None => Ok(()),
    }
}

/// True for a control byte that neither ends a line nor a text.
const fn is_odd(byte: u8) -> bool {
    matches!(byte, 1..=8 | 0x0b | 0x0c | 0x0e..=0x1f | 0x7f)
}

/// Splits a complete head into its first line and its fields.
pub(crate) fn split<'h>(head: &'h [u8], limits: &Limits) -> Result<(&'h [u8], Fields), Refusal> {
    split_in(head, limits, Manner::Strict)
}

/// Splits the head of a response.
pub(crate) fn split_response<'h>(head: &'h [u8], limits: &Limits) -> Result<(&'h [u8], Fields), Refusal> {
    split_in(head, limits, Manner::OfResponse)
}

fn split_in<'h>(head: &'h [u8], limits: &Limits, manner: Manner) -> Result<(&'h [u8], Fields), Refusal> {
    let end = memchr::memchr(b'\n', head).ok_or(Refusal::StartLine)?;
    let (first, rest) = head.split_at(end);
    let first = first.strip_suffix(b"\r").ok_or(Refusal::StartLine)?;
    Ok((first, fields(rest.get(1..).unwrap_or_default(), limits, manner)?))
}

/// Parses lines of fields.
pub(crate) fn fields(lines: &[u8], limits: &Limits, manner: Manner) -> Result<Fields, Refusal> {
    let mut fields = Fields::default();
    let (mut count, mut is_dropped) = (0_usize, false);
    for line in lines.split(|&byte| byte == b'\n').filter_map(|line| line.strip_suffix(b"\r")) {
        if count >= limits.fields_max {
            return Err(Refusal::TooManyFields);
        }
        count = count.saturating_add(1);
        match manner {
            Manner::Strict => fields.push_line(line)?,
            Manner::OfResponse => is_dropped = !fields.push_response_line(line, is_dropped)?,
        }
    }
    Ok(fields)
}
