//! The head of a message, collected and checked line by line before anything parses it.
//!
//! A line ends with CR LF and nothing else, and holds no control byte but the tab. So no later parser, ours or another
//! program's, can see a line end where this one saw none.

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
}

impl HeadBuffer {
    /// A trailer: its first line may be the empty one.
    pub fn trailer() -> HeadBuffer {
        HeadBuffer { may_be_empty: true, ..HeadBuffer::default() }
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
        let line = self.bytes.get(self.line..).unwrap_or_default();
        let line = line.strip_suffix(b"\r\n").ok_or(Refusal::BareNewline)?;
        check(line)?;
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
        *self = HeadBuffer { may_be_empty: self.may_be_empty, ..HeadBuffer::default() };
        Ok((count, Some(head)))
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

/// Splits a complete head into its first line and its fields.
pub(crate) fn split<'h>(head: &'h [u8], limits: &Limits) -> Result<(&'h [u8], Fields), Refusal> {
    split_by(head, limits, Fields::push_line)
}

/// Splits the head of a response.
pub(crate) fn split_response<'h>(head: &'h [u8], limits: &Limits) -> Result<(&'h [u8], Fields), Refusal> {
    split_by(head, limits, Fields::push_response_line)
}

/// Takes a line into the fields.
type Push = fn(&mut Fields, &[u8]) -> Result<(), Refusal>;

fn split_by<'h>(head: &'h [u8], limits: &Limits, push: Push) -> Result<(&'h [u8], Fields), Refusal> {
    let end = memchr::memchr(b'\n', head).ok_or(Refusal::StartLine)?;
    let (first, rest) = head.split_at(end);
    let first = first.strip_suffix(b"\r").ok_or(Refusal::StartLine)?;
    Ok((first, fields_by(rest.get(1..).unwrap_or_default(), limits, push)?))
}

/// Parses lines of fields.
pub(crate) fn fields(lines: &[u8], limits: &Limits) -> Result<Fields, Refusal> {
    fields_by(lines, limits, Fields::push_line)
}

fn fields_by(lines: &[u8], limits: &Limits, push: Push) -> Result<Fields, Refusal> {
    let mut fields = Fields::default();
    for line in lines.split(|&byte| byte == b'\n').filter_map(|line| line.strip_suffix(b"\r")) {
        if fields.len() >= limits.fields_max {
            return Err(Refusal::TooManyFields);
        }
        push(&mut fields, line)?;
    }
    Ok(fields)
}
