//! Reads the header of a mail or a part: its fields, and where it ends.

use super::{LINE_BYTES_MAX, Structure, Tree, last};
use crate::spam::message::MessageLimits;
use crate::spam::message::coding::line_feeds;
use crate::spam::message::field::{ContentType, Field};
use crate::spam::message::perl::{self, is_blank};

const NAME_BYTES_MAX: usize = 256;

const VALUE_BYTES_MAX: usize = 8192;

/// Room for a header of the usual size.
const HEAD_BYTES: usize = 4096;

/// Lines in a header that are no fields before it is over.
const JUNK_LINES_MAX: u32 = 3;

/// The header of a message and what is behind it.
pub(super) struct Head {
    pub(super) fields: Vec<Field>,
    /// As it came, with the separator.
    pub(super) bytes: Vec<u8>,
    /// As it came.
    pub(super) body: Vec<u8>,
    /// Line ends are CRLF.
    pub(super) is_crlf: bool,
}

impl Tree {
    /// The header of a message. What is odd counts for the mail itself only.
    pub(super) fn head(
        &mut self,
        mail: &[u8],
        limits: &MessageLimits,
        separator: &mut Option<Vec<u8>>,
        is_mail: bool,
    ) -> Head {
        let mail = if mail.is_empty() { b"\n" } else { mail };
        let mut lines = mail.split_inclusive(|byte| *byte == b'\n').peekable();
        let mut rest = mail;
        if lines.peek().is_some_and(|line| is_separator(line)) {
            let line = lines.next().unwrap_or_default();
            *separator = Some(line.to_vec());
            rest = &rest[line.len()..];
        }
        let first = lines.peek().copied().unwrap_or_default();
        let last = rest.split_inclusive(|byte| *byte == b'\n').next_back().unwrap_or_default();
        let is_crlf = first.ends_with(b"\r\n") || last.ends_with(b"\r\n");
        let end: &[u8] = if is_crlf { b"\r\n" } else { b"\n" };
        let mut structure = Structure::default();
        let bytes = Vec::with_capacity(mail.len().min(HEAD_BYTES));
        let mut head = Head { fields: Vec::new(), bytes, body: Vec::new(), is_crlf };
        let mut field: Option<Vec<u8>> = None;
        let mut junk = 0;
        for raw in lines {
            let line = mended(raw, is_crlf);
            if matches!(line.first(), Some(b' ' | b'\t')) {
                field.get_or_insert_default().extend_from_slice(&line);
                head.bytes.extend_from_slice(&line);
                rest = &rest[raw.len()..];
                continue;
            }
            self.add_field(&mut head, field.take(), &mut structure, limits);
            if line == end {
                head.bytes.extend_from_slice(&line);
                rest = &rest[raw.len()..];
                return self.headed(head, rest, structure, is_mail);
            }
            if line.starts_with(b"--")
                || (!is_field(&line, true) && {
                    junk += 1;
                    junk > JUNK_LINES_MAX
                })
            {
                structure.no_separator = true;
                // The line that ended the header has its line end mended.
                let mut body = line;
                body.extend_from_slice(&rest[raw.len()..]);
                return self.headed(head, &body, structure, is_mail);
            }
            head.bytes.extend_from_slice(&line);
            rest = &rest[raw.len()..];
            field = Some(line);
        }
        self.add_field(&mut head, field, &mut structure, limits);
        structure.no_separator = true;
        self.headed(head, b"", structure, is_mail)
    }

    fn headed(&mut self, mut head: Head, body: &[u8], structure: Structure, is_mail: bool) -> Head {
        head.body = body.to_vec();
        if is_mail {
            self.structure = structure;
        }
        head
    }

    fn add_field(
        &mut self,
        head: &mut Head,
        field: Option<Vec<u8>>,
        structure: &mut Structure,
        limits: &MessageLimits,
    ) {
        let Some(mut field) = field else { return };
        let Some(colon) = memchr::memchr(b':', &field) else { return };
        if head.fields.len() >= limits.fields_max {
            self.is_cut = true;
            return;
        }
        let mut value = field.split_off(colon + 1);
        field.truncate(colon);
        if head.is_crlf {
            line_feeds(&mut value);
        }
        let end = field.iter().rposition(|byte| !matches!(byte, b' ' | b'\t')).map_or(0, |last| last + 1);
        field.truncate(end);
        structure.header_cut |= field.len() > NAME_BYTES_MAX || value.len() > VALUE_BYTES_MAX;
        field.truncate(NAME_BYTES_MAX);
        value.truncate(VALUE_BYTES_MAX);
        head.fields.push(Field::new(&field, &value));
    }
}

/// A part whose lines come in.
#[derive(Default)]
pub(super) struct Draft {
    pub(super) fields: Vec<Field>,
    pub(super) field: Option<Vec<u8>>,
    pub(super) is_body: bool,
    pub(super) content: Option<Vec<u8>>,
    /// Fields were left out.
    pub(super) is_cut: bool,
}

impl Draft {
    /// Takes a line; whether a part begins here that ends as the one around it does.
    pub(super) fn line(&mut self, line: &[u8], boundary: &[u8], structure: &mut Structure, fields_max: usize) -> bool {
        let mut is_nested = false;
        if !self.is_body {
            if is_field(line, true) {
                self.end_field(fields_max);
                self.field = Some(line.to_vec());
                return false;
            }
            if let (Some(b' ' | b'\t'), Some(field)) = (line.first(), self.field.as_mut()) {
                field.extend_from_slice(line);
                return false;
            }
            if self.end_field(fields_max) && self.fields.last().is_some_and(|field| field.is(b"content-type")) {
                let content = ContentType::read(last(&self.fields, b"content-type"));
                is_nested = content.boundary.as_deref() == Some(boundary);
            }
            self.is_body = true;
            if matches!(line, b"\n" | b"\r\n" | b"\r" | b"") {
                return is_nested;
            }
            structure.no_part_separator = true;
        }
        self.add(line);
        is_nested
    }

    /// Ends the field that is begun, if one is.
    fn end_field(&mut self, fields_max: usize) -> bool {
        let Some(field) = self.field.take() else { return false };
        if self.fields.len() >= fields_max {
            self.is_cut = true;
            return true;
        }
        let colon = memchr::memchr(b':', &field).unwrap_or(field.len());
        let value = field.get(colon + 1..).unwrap_or_default();
        self.fields.push(Field::new(&field[..colon], perl::trim_start(value)));
        true
    }

    /// Adds a line of content, cut where it is too long.
    pub(super) fn add(&mut self, mut line: &[u8]) {
        let content = self.content.get_or_insert_default();
        while line.len() > LINE_BYTES_MAX {
            content.extend_from_slice(&line[..LINE_BYTES_MAX]);
            content.push(b'\n');
            line = &line[LINE_BYTES_MAX..];
        }
        content.extend_from_slice(line);
    }
}

/// Whether a line begins a field; a blank may stand before the colon.
pub(super) fn is_field(line: &[u8], with_blanks: bool) -> bool {
    let name = line.iter().take_while(|byte| matches!(byte, 0x21..=0x39 | 0x3b..=0x7e)).count();
    let blanks = line[name..].iter().take_while(|byte| with_blanks && matches!(byte, b' ' | b'\t')).count();
    name > 0 && line.get(name + blanks) == Some(&b':')
}

/// Whether a line separates mails in a mailbox.
fn is_separator(line: &[u8]) -> bool {
    let Some(rest) = line.strip_prefix(b"From") else { return is_mbx_separator(line) };
    let blanks = rest.iter().take_while(|byte| is_blank(**byte)).count();
    blanks > 1 || (blanks == 1 && rest.get(1) != Some(&b':'))
}

/// Whether a line separates the mails of an MBX mailbox: ` 1-Jan-1999 12:34:56 +0000,123;000000000001-000000aa`.
fn is_mbx_separator(line: &[u8]) -> bool {
    let mut rest = line;
    let mut take = |pattern: &str| {
        for kind in pattern.bytes() {
            let Some((&byte, behind)) = rest.split_first() else { return false };
            let fits = match kind {
                b'd' => byte.is_ascii_digit(),
                b's' => byte.is_ascii_digit() || is_blank(byte),
                b'a' => byte.is_ascii_alphabetic(),
                b'_' => is_blank(byte),
                _ => byte == kind,
            };
            if !fits {
                return false;
            }
            rest = behind;
        }
        true
    };
    if !take("sd-aaa-dddd_dd:dd:dd") {
        return false;
    }
    let Some(comma) = rest.iter().rposition(|byte| *byte == b',') else { return false };
    rest = perl::trim_end(&rest[comma + 1..]);
    let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let is_status = |text: &[u8]| text[1..13].iter().all(u8::is_ascii_hexdigit) && text[13] == b'-';
    digits > 0 && rest.len() == digits + 22 && rest[digits] == b';' && is_status(&rest[digits..])
}

/// The line, ended as its mail ends lines.
fn mended(line: &[u8], is_crlf: bool) -> Vec<u8> {
    match line.strip_suffix(b"\n") {
        Some(text) if is_crlf && !text.ends_with(b"\r") => [text, b"\r\n"].concat(),
        _ => line.to_vec(),
    }
}
