//! Mailboxes of Unix: mails that follow each other, each after a line that begins with `From `.
//!
//! The first mail is left to the reader of mails, which takes the whole file for one; the others are emitted as
//! members. A line with a time of day, or of a hyphen alone, divides mails, whatever precedes it: readers differ about blank lines and about
//! lengths in headers. Quoting (`>From `) stays unchanged. Source: RFC 4155. Bounds: a line of [`LINE_BYTES_MAX`].

use stream::{Kind, Object, ReadAt};

use crate::frame::cuts;
use crate::frame::format::{Format, Reads};
use crate::frame::reader::{Ended, Outbox, Reader, Reading};

/// Row in the table of formats.
pub(crate) const FORMAT: Format = Format {
    name: "mbox",
    methods: "the messages after the first, which is parsed as a message",
    not_read: "",
    reads: Reads::Stream,
    memory: "a line of 256 bytes",
    decoder: "own",
    fuzz: "unpack_mbox",
    compared_with: "Python's `mailbox`, over the seeds",
};

/// Beginning of a line that divides mails.
pub(crate) const MARK: &[u8] = b"From ";
const LINE_BYTES_MAX: usize = 256;

/// A reader of mailboxes.
pub(crate) struct Mbox {
    at: u64,
    /// A line that may divide mails, as far as it has come; `None` within a line that does not.
    line: Option<Vec<u8>>,
}

impl Mbox {
    pub const fn new() -> Mbox {
        Mbox { at: 0, line: Some(Vec::new()) }
    }

    /// Decides the kind of the line so far.
    fn judge(&mut self, outbox: &mut Outbox) {
        let Some(line) = &self.line else { return };
        let is_over = line.last() == Some(&b'\n');
        let may_divide = line.len() < MARK.len() && MARK.starts_with(line) || line.starts_with(MARK);
        if may_divide && !is_over && line.len() < LINE_BYTES_MAX {
            return;
        }
        if may_divide && divides(line) {
            // The first line of the file divides nothing.
            let is_first = self.at == line.len() as u64;
            if outbox.is_open() {
                outbox.close();
            }
            if !is_first {
                let media_type = Some("message/rfc822".into());
                let raw_offset = is_over.then_some(self.at);
                outbox.open(Object { kind: Kind::Member, media_type, raw_offset, ..Object::default() });
            }
        } else if outbox.is_open() {
            outbox.content(line);
        }
        self.line = is_over.then(Vec::new);
    }
}

/// The length of the line at the front of `head` if it divides mails.
pub fn divider(head: &[u8]) -> Option<usize> {
    let end = memchr::memchr(b'\n', &head[..head.len().min(LINE_BYTES_MAX)])? + 1;
    let line = &head[..end];
    (line.starts_with(MARK) && divides(line)).then_some(end)
}

/// Whether a line that begins with [`MARK`] divides mails: by a time, or as Mozilla writes it without one.
fn divides(line: &[u8]) -> bool {
    has_time(line) || line.trim_ascii_end() == b"From -"
}

/// Whether two digits stand on both sides of a colon.
fn has_time(line: &[u8]) -> bool {
    line.windows(5).any(|at| at[2] == b':' && [0, 1, 3, 4].iter().all(|&digit| at[digit].is_ascii_digit()))
}

impl Reader for Mbox {
    fn read(&mut self, input: &[u8], outbox: &mut Outbox) -> usize {
        let end = memchr::memchr(b'\n', input).map_or(input.len(), |at| at + 1);
        let Some(line) = &mut self.line else {
            self.at += end as u64;
            if outbox.is_open() {
                outbox.content(&input[..end]);
            }
            if input[end - 1] == b'\n' {
                self.line = Some(Vec::new());
            }
            return end;
        };
        // Few lines begin like that: the rest of them is not held.
        let wanted = if line.len() < MARK.len() { MARK.len() } else { LINE_BYTES_MAX };
        let taken = end.min(wanted - line.len());
        line.extend_from_slice(&input[..taken]);
        self.at += taken as u64;
        self.judge(outbox);
        taken
    }

    fn end(&mut self, _: &dyn ReadAt, outbox: &mut Outbox) -> Ended {
        if let Some(line) = self.line.take().filter(|_| outbox.is_open()) {
            outbox.content(&line);
        }
        Ended::Done
    }
}

/// Fuzz body: reads a mailbox.
pub fn fuzz_mbox(data: &[u8]) {
    cuts::compare(data, |_| Box::new(Reading::new(Mbox::new())));
}
