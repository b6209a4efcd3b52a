//! The reading of a message, line by line.
//!
//! ```text
//!   entities that are open, the innermost last:
//!     message ─► multipart ─► part
//!   a line that is a boundary of one of them closes those within it; an empty line ends a header
//! ```

use alloc::vec;
use alloc::vec::Vec;

use super::header::{Fields, Type};
use super::{DEPTH_MAX, DIGEST_BYTES_MAX, Known, PARTS_MAX, Part};

/// Bytes of a line that are looked at: more than a boundary may have. A header line counts whole.
const LINE_BYTES_MAX: usize = 1 << 10;

/// A message while it comes in.
#[derive(Debug)]
pub struct Digest {
    /// From the message inwards; never empty.
    open: Vec<Entity>,
    /// Offset of the end of the last complete line.
    at: u64,
    /// Line feeds so far.
    lines: u64,
    /// The line under way: its beginning, and how long it is.
    line: Vec<u8>,
    line_bytes: u64,
    /// The last byte of it.
    last: u8,
    /// How many bytes ended the line before: they belong to a boundary that follows.
    end_bytes: u64,
    parts: usize,
}

/// A message, a multipart, or a part of one.
#[derive(Debug, Default)]
pub(super) struct Entity {
    pub header: u64,
    pub body: u64,
    pub end: u64,
    /// Line feeds of its body.
    pub lines: u64,
    pub fields: Fields,
    pub kind: Type,
    pub children: Vec<Entity>,
    in_header: bool,
    /// Set once the closing boundary was read.
    is_over: bool,
}

impl Default for Digest {
    fn default() -> Self {
        let open = vec![Entity { fields: Fields::of_message(), ..Entity::new(0, Type::default()) }];
        Digest { open, at: 0, lines: 0, line: Vec::new(), line_bytes: 0, last: 0, end_bytes: 0, parts: 1 }
    }
}

impl Entity {
    fn new(header: u64, kind: Type) -> Entity {
        Entity { header, body: header, end: header, kind, in_header: true, ..Entity::default() }
    }

    pub fn part(&self) -> Part {
        let parts = self.children.iter().map(Entity::part).collect();
        let is_message = self.kind.is_message() && !self.children.is_empty();
        Part { header: self.header, body: self.body, end: self.end, is_message, parts }
    }

    /// It has ended. A multipart without parts gets an empty one: IMAP knows none without.
    fn complete(&mut self) {
        if self.kind.is_multipart() && self.children.is_empty() {
            let empty = Entity { in_header: false, ..Entity::new(self.end, Type::default()) };
            self.children.push(empty);
        }
    }

    /// Compares a line with the boundary of this multipart.
    fn boundary(&self, line: &[u8]) -> Option<Boundary> {
        let boundary = self.kind.boundary.as_deref().filter(|_| !self.in_header)?;
        let rest = line.strip_prefix(b"--")?.strip_prefix(boundary)?;
        let (is_last, rest) = match rest.strip_prefix(b"--") {
            Some(rest) => (true, rest),
            None => (false, rest),
        };
        rest.trim_ascii().is_empty().then_some(if is_last { Boundary::Last } else { Boundary::Next })
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Boundary {
    Next,
    Last,
}

impl Digest {
    /// Reads on.
    pub fn read(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            let end = bytes.iter().position(|&byte| byte == b'\n');
            let (piece, rest) = bytes.split_at(end.map_or(bytes.len(), |at| at + 1));
            bytes = rest;
            let is_alone = self.line_bytes == 0;
            self.line_bytes += piece.len() as u64;
            let before = match piece.len().checked_sub(2) {
                Some(at) => piece[at],
                None => core::mem::take(&mut self.last),
            };
            let end_bytes = if before == b'\r' { 2 } else { 1 };
            self.last = piece.last().copied().unwrap_or_default();
            match end {
                Some(_) if is_alone => self.whole_line(piece, end_bytes),
                Some(_) => {
                    self.keep(piece);
                    let line = core::mem::take(&mut self.line);
                    self.whole_line(&line, end_bytes);
                }
                None => self.keep(piece),
            }
        }
    }

    fn keep(&mut self, piece: &[u8]) {
        let room = self.line_room().saturating_sub(self.line.len());
        self.line.extend_from_slice(&piece[..piece.len().min(room)]);
    }

    fn line_room(&self) -> usize {
        match self.open.last().is_some_and(|entity| entity.in_header) {
            true if self.open.len() == 1 => super::ADDRESSES_BYTES_MAX,
            true => super::FIELDS_BYTES_MAX,
            false => LINE_BYTES_MAX,
        }
    }

    /// The digest, decoded, of the lines read so far.
    pub fn known(self) -> Known {
        Known::of(&self.close())
    }

    /// The digest, encoded for the store: empty if it would be too large.
    pub fn finish(self) -> Vec<u8> {
        let digest = self.known().encode();
        if digest.len() > DIGEST_BYTES_MAX { Vec::new() } else { digest }
    }

    fn close(mut self) -> Entity {
        if self.line_bytes > 0 {
            let line = core::mem::take(&mut self.line);
            self.whole_line(&line, 0);
        }
        self.close_within(0, 0);
        let mut root = self.open.pop().unwrap_or_default();
        if root.in_header {
            root.fields.finish();
            root.kind = root.fields.content_type(&root.kind);
            (root.body, root.lines) = (self.at, self.lines);
        }
        root.end = self.at;
        root.lines = self.lines - root.lines;
        root.complete();
        root
    }

    /// A line, of which as much is looked at as there is room for; its end has so many bytes.
    fn whole_line(&mut self, line: &[u8], end_bytes: u64) {
        let bytes = core::mem::take(&mut self.line_bytes);
        let has_end = end_bytes > 0;
        self.last = 0;
        let text = usize::try_from(bytes - end_bytes).unwrap_or(usize::MAX).min(self.line_room()).min(line.len());
        let text = &line[..text];
        let found = self.boundary(text).filter(|&(_, found)| found == Boundary::Last || self.parts < PARTS_MAX);
        if let Some((depth, boundary)) = found {
            self.close_within(depth, self.end_bytes);
            self.advance(bytes, has_end);
            self.delimit(depth, boundary);
        } else {
            self.advance(bytes, has_end);
            self.plain_line(text, has_end);
        }
        self.end_bytes = end_bytes;
    }

    fn advance(&mut self, bytes: u64, has_end: bool) {
        self.at += bytes;
        self.lines += u64::from(has_end);
    }

    /// Finds the innermost multipart whose boundary the line is.
    fn boundary(&self, text: &[u8]) -> Option<(usize, Boundary)> {
        if !text.starts_with(b"--") {
            return None;
        }
        let open = self.open.iter().enumerate().rev();
        open.filter(|(_, entity)| !entity.is_over).find_map(|(depth, entity)| Some((depth, entity.boundary(text)?)))
    }

    fn delimit(&mut self, depth: usize, boundary: Boundary) {
        let Some(multipart) = self.open.get_mut(depth) else { return };
        if boundary == Boundary::Last {
            multipart.is_over = true;
            return;
        }
        let kind = multipart.kind.of_children();
        self.parts += 1;
        self.open.push(Entity::new(self.at, kind));
    }

    fn plain_line(&mut self, text: &[u8], has_end: bool) {
        let (at, lines, depth) = (self.at, self.lines, self.open.len());
        let Some(entity) = self.open.last_mut().filter(|entity| entity.in_header) else { return };
        if !(text.is_empty() && has_end) {
            entity.fields.line(text);
            entity.body = at;
            return;
        }
        entity.in_header = false;
        entity.fields.finish();
        entity.kind = entity.fields.content_type(&entity.kind);
        // Until it ends: how many there were before.
        (entity.body, entity.lines) = (at, lines);
        if depth >= DEPTH_MAX || self.parts >= PARTS_MAX {
            entity.kind.boundary = None;
        } else if entity.kind.is_message() {
            self.parts += 1;
            self.open.push(Entity::new(at, Type::default()));
        }
    }

    /// Closes what is open within the entity at `depth`; `end_bytes` of what was read belong to the boundary.
    fn close_within(&mut self, depth: usize, end_bytes: u64) {
        while self.open.len() > depth + 1 {
            let Some(mut entity) = self.open.pop() else { return };
            let end = self.at.saturating_sub(end_bytes);
            if entity.in_header {
                entity.fields.finish();
                entity.kind = entity.fields.content_type(&entity.kind);
                entity.body = self.at.max(entity.header);
                entity.lines = self.lines;
            }
            entity.end = end.max(entity.body);
            let is_cut = entity.end + end_bytes == self.at && end_bytes > 0;
            entity.lines = (self.lines - entity.lines).saturating_sub(u64::from(is_cut));
            if entity.in_header {
                entity.body = entity.body.min(end).max(entity.header);
                entity.end = entity.body;
            }
            entity.complete();
            if let Some(outer) = self.open.last_mut() {
                outer.children.push(entity);
            }
        }
    }
}
