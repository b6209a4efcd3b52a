//! The header and the MIME parts of a mail, cut as SpamAssassin cuts them.
//!
//! It reads lines, breadth first: each part gets its lines, and parts and messages within them are cut out of those later.
//! A part that never ends, ends with what it stands in; a header whose last line is the last of its part loses that line.
//!
//! Bounds: parts by [`MessageLimits::parts_max`], and 1,000 of one multipart; 20 levels; lines are cut at 2,048 bytes.

mod head;

use std::collections::VecDeque;

use super::coding::{base64, line_feeds, quoted_printable};
use super::field::{ContentType, Field};
use super::perl::{begins, is_blank};
use super::{MessageLimits, Part};
use crate::spam::map::HashMap;
use head::{Draft, Head, is_field};

const LEVELS_MAX: u32 = 20;
const LINE_BYTES_MAX: usize = 2048;
const PARTS_OF_ONE_MAX: usize = 1000;
const BLANK_LINES_MAX: usize = 20;
/// Oddities of the structure of a mail.
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
    /// Whether each boundary began more often than it ended.
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

/// The last value of that name.
fn last<'a>(fields: &'a [Field], name: &[u8]) -> Option<&'a [u8]> {
    fields.iter().rev().find(|field| field.is(name)).map(|field| &*field.value)
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
