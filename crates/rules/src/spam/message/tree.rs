//! The header and the MIME parts of a mail, cut as SpamAssassin cuts them.
//!
//! It reads lines, breadth first: each part gets its lines, and parts and messages within them are cut out of those later.
//! A part that never ends, ends with what it stands in; a header whose last line is the last of its part loses that line.
//!
//! Bounds: parts by [`MessageLimits::parts_max`], and 1,000 of one multipart; 20 levels; lines are cut at 2,048 bytes.

use std::collections::VecDeque;

use super::coding::{base64, line_feeds, quoted_printable};
use super::field::{ContentType, Field};
use super::perl::{begins, is_blank};
use super::{MessageLimits, Part};
use crate::spam::map::HashMap;

const LEVELS_MAX: u32 = 20;
const LINE_BYTES_MAX: usize = 2048;
const NAME_BYTES_MAX: usize = 256;
const VALUE_BYTES_MAX: usize = 8192;
const PARTS_OF_ONE_MAX: usize = 1000;
const BLANK_LINES_MAX: usize = 20;
/// Room for a header of the usual size.
const HEAD_BYTES: usize = 4096;
/// Lines in a header that are no fields before it is over.
const JUNK_LINES_MAX: u32 = 3;

/// What is odd about how a mail is put together.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Structure {
    /// No empty line stands between header and body.
    pub no_separator: bool,
    /// A part begins without a header.
    pub no_part_header: bool,
    /// No empty line stands between a part's header and its body.
    pub no_part_separator: bool,
    /// Something stands behind the last part.
    pub epilogue: bool,
    /// A field's name or value was longer than what is kept of it.
    pub header_cut: bool,
    /// A multipart had more than 1,000 parts.
    pub too_many_parts: bool,
    /// A multipart does not end, or ends without having begun.
    pub missing_boundary: bool,
}

/// A mail, cut.
#[derive(Debug, Default)]
pub(super) struct Tree {
    pub(super) nodes: Vec<Node>,
    pub(super) structure: Structure,
    pub(super) full: Vec<u8>,
    pub(super) header_bytes: usize,
    pub(super) separator: Option<Vec<u8>>,
    /// Of each boundary, whether it began more often than it ended.
    boundaries: HashMap<Vec<u8>, i32>,
    /// Something was left out.
    pub(super) is_cut: bool,
}

/// A part and those in it.
#[derive(Debug, Default)]
pub(super) struct Node {
    pub(super) part: Part,
    pub(super) children: Option<Vec<usize>>,
}

/// A part that is to be cut.
struct Job {
    node: usize,
    boundary: Option<Vec<u8>>,
    body: Vec<u8>,
    levels: u32,
}

/// The header of a message and what is behind it.
struct Head {
    fields: Vec<Field>,
    /// As it came, with the separator.
    bytes: Vec<u8>,
    /// As it came.
    body: Vec<u8>,
    /// Line ends are CRLF.
    is_crlf: bool,
}

impl Tree {
    pub(super) fn read(mail: &[u8], limits: &MessageLimits) -> Tree {
        let mut tree = Tree::default();
        let mut jobs = VecDeque::new();
        let mut separator = None;
        let head = tree.head(mail, limits, &mut separator, true);
        tree.separator = separator;
        tree.header_bytes = head.bytes.len();
        tree.full = [&head.bytes[..], &head.body[..]].concat();
        tree.message(head, LEVELS_MAX, &mut jobs);
        while let Some(job) = jobs.pop_front() {
            let kind = &tree.nodes[job.node].part.kind;
            if kind.starts_with("multipart/") && job.boundary.is_some() && job.levels > 0 {
                tree.multipart(job, limits, &mut jobs);
            } else {
                tree.leaf(job, limits, &mut jobs);
            }
        }
        tree.structure.missing_boundary = tree.boundaries.values().any(|open| *open != 0);
        tree
    }

    /// Adds a part; none beyond the bound.
    fn node(&mut self, fields: Vec<Field>, limits: &MessageLimits) -> Option<usize> {
        if self.nodes.len() >= limits.parts_max {
            self.is_cut = true;
            return None;
        }
        self.nodes.push(Node { part: Part { fields, ..Part::default() }, children: None });
        Some(self.nodes.len() - 1)
    }

    /// Adds a message.
    fn message(&mut self, head: Head, levels: u32, jobs: &mut VecDeque<Job>) -> usize {
        let content = ContentType::read(last(&head.fields, b"content-type"));
        let mut body = blank_lines_cut(&head.body, head.is_crlf);
        if content.kind.starts_with("multipart/") {
            // Fields at the beginning of the body are none of the header.
            let first = body.split_inclusive(|byte| *byte == b'\n').next().unwrap_or_default();
            let is_boundary = content
                .boundary
                .as_ref()
                .is_some_and(|boundary| first.strip_prefix(b"--").is_some_and(|rest| rest.starts_with(boundary)));
            if first.len() < body.len() && !first.iter().all(|byte| is_blank(*byte)) && !is_boundary {
                body.insert(0, b'\n');
            }
        }
        let kind = content.kind.into();
        self.nodes.push(Node { part: Part { fields: head.fields, kind, ..Part::default() }, children: None });
        let node = self.nodes.len() - 1;
        jobs.push_back(Job { node, boundary: content.boundary, body, levels });
        node
    }

    /// The header of a message. What is odd counts for the mail itself only.
    fn head(&mut self, mail: &[u8], limits: &MessageLimits, separator: &mut Option<Vec<u8>>, is_mail: bool) -> Head {
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

    /// Cuts a multipart into its parts.
    fn multipart(&mut self, job: Job, limits: &MessageLimits, jobs: &mut VecDeque<Job>) {
        let Job { node, boundary, body, levels } = job;
        let boundary = boundary.unwrap_or_default();
        self.nodes[node].children = Some(Vec::new());
        let lines: Vec<&[u8]> = body.split_inclusive(|byte| *byte == b'\n').collect();
        let opening = lines.iter().position(|line| marker(line, &boundary) == Some(false));
        let lines = &lines[opening.map_or(0, |at| at + 1)..];
        if opening.is_some() {
            self.boundaries.insert(boundary.clone(), 1);
        }
        if opening.is_some() && lines.first().is_some_and(|line| !is_field(line, false)) {
            self.structure.no_part_header = true;
        }
        let mut draft = Draft::default();
        let mut is_nested = false;
        for (at, &line) in lines.iter().enumerate() {
            let mut found = marker(line, &boundary);
            let is_last_marker = found == Some(true);
            if found.is_some() && is_nested {
                found = None;
                is_nested = !is_last_marker;
            }
            let left = lines.len() - at - 1;
            if left > 0 && found.is_none() {
                is_nested |= draft.line(line, &boundary, &mut self.structure, limits.fields_max);
                continue;
            }
            if found.is_none() {
                draft.content.get_or_insert_default();
                draft.add(line);
            }
            let part = std::mem::take(&mut draft);
            if !self.add_part(node, part, found.is_some(), &boundary, levels - 1, limits, jobs) {
                return;
            }
            if is_last_marker {
                *self.boundaries.entry(boundary).or_default() -= 1;
                self.structure.epilogue |=
                    lines[at + 1..].iter().any(|line| line.iter().any(|byte| !is_blank(*byte) && *byte != b'.'));
                return;
            }
            if left > 0 && !is_field(lines[at + 1], false) {
                self.structure.no_part_header = true;
            }
        }
    }

    /// Adds a part of a multipart; whether there may be more of them.
    #[allow(clippy::too_many_arguments)] // one call, of what the loop above holds
    fn add_part(
        &mut self,
        parent: usize,
        draft: Draft,
        is_ended: bool,
        boundary: &[u8],
        levels: u32,
        limits: &MessageLimits,
        jobs: &mut VecDeque<Job>,
    ) -> bool {
        let mut body = draft.content.unwrap_or_default();
        if is_ended && body.last() == Some(&b'\n') {
            body.pop();
        }
        self.is_cut |= draft.is_cut;
        let content = ContentType::read(last(&draft.fields, b"content-type"));
        let is_digest = content.is_missing && &*self.nodes[parent].part.kind == "multipart/digest";
        let Some(node) = self.node(draft.fields, limits) else { return false };
        self.nodes[node].part.kind = if is_digest { "message/rfc822".into() } else { content.kind.into() };
        let own = content.boundary.filter(|own| !own.is_empty() && own != b"0");
        jobs.push_back(Job { node, boundary: own.or_else(|| Some(boundary.to_vec())), body, levels });
        let children = self.nodes[parent].children.get_or_insert_default();
        children.push(node);
        if children.len() >= PARTS_OF_ONE_MAX {
            self.structure.too_many_parts = true;
            self.is_cut = true;
            return false;
        }
        true
    }

    /// Takes a part as it is; a message in it is cut in its turn.
    fn leaf(&mut self, job: Job, limits: &MessageLimits, jobs: &mut VecDeque<Job>) {
        let part = &mut self.nodes[job.node].part;
        let content = ContentType::read(last(&part.fields, b"content-type"));
        if !content.is_missing {
            let is_plain = content.kind.starts_with("multipart/") && job.boundary.is_none();
            part.kind = if is_plain { "text/plain".into() } else { content.kind.into() };
        }
        part.charset = content.charset.map(Into::into);
        part.name = disposition_name(last(&part.fields, b"content-disposition"))
            .or(content.name.filter(|name| !name.is_empty() && name != b"0"))
            .map(Into::into);
        part.raw = job.body;
        part.decoded = decoded(part);
        let is_message = matches!(&*part.kind, "message/rfc822" | "message/global") && job.levels > 0;
        if !is_message || part.decoded().is_empty() {
            return;
        }
        if self.nodes.len() >= limits.parts_max {
            self.is_cut = true;
            return;
        }
        let part = &mut self.nodes[job.node].part;
        let mail = part.decoded.take().unwrap_or_else(|| std::mem::take(&mut part.raw));
        part.raw = Vec::new();
        let mut separator = None;
        let head = self.head(&mail, limits, &mut separator, false);
        drop(mail);
        let child = self.message(head, job.levels - 1, jobs);
        self.nodes[job.node].children = Some(vec![child]);
    }
}

/// A part whose lines come in.
#[derive(Default)]
struct Draft {
    fields: Vec<Field>,
    field: Option<Vec<u8>>,
    is_body: bool,
    content: Option<Vec<u8>>,
    /// Fields were left out.
    is_cut: bool,
}

impl Draft {
    /// Takes a line; whether a part begins here that ends as the one around it does.
    fn line(&mut self, line: &[u8], boundary: &[u8], structure: &mut Structure, fields_max: usize) -> bool {
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
        self.fields.push(Field::new(&field[..colon], super::perl::trim_start(value)));
        true
    }

    /// Adds a line of content, cut where it is too long.
    fn add(&mut self, mut line: &[u8]) {
        let content = self.content.get_or_insert_default();
        while line.len() > LINE_BYTES_MAX {
            content.extend_from_slice(&line[..LINE_BYTES_MAX]);
            content.push(b'\n');
            line = &line[LINE_BYTES_MAX..];
        }
        content.extend_from_slice(line);
    }
}

/// The last value of that name.
fn last<'a>(fields: &'a [Field], name: &[u8]) -> Option<&'a [u8]> {
    fields.iter().rev().find(|field| field.is(name)).map(|field| &*field.value)
}

/// Whether a line begins a field; a blank may stand before the colon.
fn is_field(line: &[u8], with_blanks: bool) -> bool {
    let name = line.iter().take_while(|byte| matches!(byte, 0x21..=0x39 | 0x3b..=0x7e)).count();
    let blanks = line[name..].iter().take_while(|byte| with_blanks && matches!(byte, b' ' | b'\t')).count();
    name > 0 && line.get(name + blanks) == Some(&b':')
}

/// Whether a line is the boundary, and whether the last one.
fn marker(line: &[u8], boundary: &[u8]) -> Option<bool> {
    let rest = line.strip_prefix(b"--")?.strip_prefix(boundary)?;
    let blank = |bytes: &[u8]| bytes.iter().all(|byte| is_blank(*byte));
    if blank(rest) {
        return Some(false);
    }
    rest.strip_prefix(b"--").filter(|rest| blank(rest)).map(|_| true)
}

/// Whether a line separates mails in a mailbox.
fn is_separator(line: &[u8]) -> bool {
    let Some(rest) = line.strip_prefix(b"From") else { return is_mbx_separator(line) };
    let blanks = rest.iter().take_while(|byte| is_blank(**byte)).count();
    blanks > 1 || (blanks == 1 && rest.get(1) != Some(&b':'))
}

/// Of an MBX mailbox: ` 1-Jan-1999 12:34:56 +0000,123;000000000001-000000aa`.
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
    rest = super::perl::trim_end(&rest[comma + 1..]);
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

/// The lines of a body, their line ends made one; of many empty lines in a row only some.
fn blank_lines_cut(body: &[u8], is_crlf: bool) -> Vec<u8> {
    let mut lines: Vec<&[u8]> = body.split_inclusive(|byte| *byte == b'\n').collect();
    let mut kept = 0;
    let mut at = 0;
    while at < lines.len() {
        let run = lines[at..].iter().take_while(|line| line.iter().all(|byte| is_blank(*byte))).count();
        // Of a run those behind its first go, so that 20 are left; at the beginning of a body, 21.
        let spare = usize::from(at == 0);
        let cut = run.saturating_sub(BLANK_LINES_MAX + spare);
        for index in at..at + run.max(1) {
            if !(at + 1 + spare..at + 1 + spare + cut).contains(&index) {
                lines[kept] = lines[index];
                kept += 1;
            }
        }
        at += run.max(1);
    }
    let mut out = Vec::with_capacity(body.len());
    for line in &lines[..kept] {
        match line.strip_suffix(b"\r\n") {
            Some(text) if is_crlf => {
                out.extend_from_slice(text);
                out.push(b'\n');
            }
            _ => out.extend_from_slice(line),
        }
    }
    out
}

/// The name of a file that a disposition says.
fn disposition_name(value: Option<&[u8]>) -> Option<Vec<u8>> {
    let value = value?;
    let mut from = 0;
    while let Some(at) = super::perl::find(value, b"name", from) {
        from = at + 1;
        let rest = super::perl::trim_start(&value[at + 4..]);
        let Some(rest) = rest.strip_prefix(b"=").map(super::perl::trim_start) else { continue };
        let rest = rest.strip_prefix(b"\"").unwrap_or(rest);
        let length = rest.iter().take_while(|byte| !b"\";".contains(byte)).count();
        if length > 0 {
            return Some(rest[..length].to_vec());
        }
    }
    None
}

/// The content of a part, if its transfer coding makes another one of it.
fn decoded(part: &Part) -> Option<Vec<u8>> {
    let coding = last(&part.fields, b"content-transfer-encoding")?.to_ascii_lowercase();
    let is_text = |kind: &[u8]| {
        ["text", "message"].iter().any(|known| begins(kind, known.as_bytes()) && kind.get(known.len()) == Some(&b'/'))
    };
    let (mut bytes, feeds) = match &coding[..] {
        b"quoted-printable" => (quoted_printable(&part.raw), true),
        b"base64" => (base64(&part.raw), is_text(part.kind.as_bytes())),
        _ => return None,
    };
    if feeds {
        line_feeds(&mut bytes);
    }
    Some(bytes)
}
