//! Self-extracting scripts of makeself: an archive after a number of lines of shell.
//!
//! Archives that the searches find in any file are left to them; others (LZ4, LZO, compress, encrypted) are emitted as
//! one member. Bounds: the head of the script, [`HEAD_BYTES`], and [`LOOK`] bytes after it.

use memchr::{memchr, memmem};
use stream::{Kind, Object, ReadAt};

use crate::frame::cuts;
use crate::frame::format::{Format, Reads};
use crate::frame::reader::{Ended, Outbox, Reader, Reading};
use crate::recognise::head::recognise;
use crate::recognise::stowaway::Stowaway;

/// Row in the table of formats.
pub(crate) const FORMAT: Format = Format {
    name: "makeself",
    methods: "the archive behind the script, whatever it is compressed with",
    not_read: "",
    reads: Reads::Stream,
    memory: "10 KiB",
    decoder: "own",
    fuzz: "unpack_shar",
    compared_with: "makeself, which made the seeds",
};

/// Head of the script, which has its kind and its length.
const HEAD_BYTES: usize = 8 << 10;
const LOOK: usize = 512;
const SHELL: &[u8] = b"#!";
/// How far into it its generator is named.
const REACH: usize = 512;
const MARK: &[u8] = b"Makeself";
/// Forms of the number of lines, in newer and in older scripts.
const SKIPS: [&[u8]; 3] = [b"\nskip=\"", b"\nskip=", b"head -n "];

/// A reader of such scripts.
pub(crate) struct Makeself {
    held: Vec<u8>,
    at: u64,
    state: State,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Head,
    /// In front of the archive, by so many lines.
    Script(u64),
    /// In its first bytes.
    Look,
    Archive,
    Over,
}

impl Makeself {
    pub const fn new() -> Makeself {
        Makeself { held: Vec::new(), at: 0, state: State::Head }
    }

    /// Collects so many bytes. Returns how many were taken, and whether it is complete.
    fn collect(&mut self, input: &[u8], wanted: usize) -> (usize, bool) {
        let taken = input.len().min(wanted.saturating_sub(self.held.len()));
        self.held.extend_from_slice(&input[..taken]);
        (taken, self.held.len() >= wanted)
    }

    fn head(&mut self, outbox: &mut Outbox) {
        let held = std::mem::take(&mut self.held);
        self.state = lines(&held).map_or(State::Over, State::Script);
        self.at = 0;
        let mut rest = &held[..];
        while !rest.is_empty() && self.state != State::Over {
            rest = &rest[self.pass(rest, outbox)..];
        }
    }

    /// Reads the bytes after the head. Returns how many were taken.
    fn pass(&mut self, input: &[u8], outbox: &mut Outbox) -> usize {
        let taken = match self.state {
            State::Script(left) => {
                let end = memchr(b'\n', input);
                let left = left - u64::from(end.is_some());
                self.state = if left == 0 { State::Look } else { State::Script(left) };
                end.map_or(input.len(), |end| end + 1)
            }
            State::Look => {
                let (taken, is_whole) = self.collect(input, LOOK);
                self.at += taken as u64;
                if is_whole {
                    self.begin(outbox);
                }
                self.at -= taken as u64;
                taken
            }
            State::Archive => {
                outbox.content(input);
                input.len()
            }
            State::Head | State::Over => input.len(),
        };
        self.at += taken as u64;
        taken
    }

    /// Begins the archive, unless another reader opens it.
    fn begin(&mut self, outbox: &mut Outbox) {
        let first = std::mem::take(&mut self.held);
        if first.is_empty() || Stowaway::reads(recognise(&first)) {
            self.state = State::Over;
            return;
        }
        let raw_offset = Some(self.at.saturating_sub(first.len() as u64));
        outbox.open(Object { kind: Kind::Member, raw_offset, ..Object::default() });
        outbox.content(&first);
        self.state = State::Archive;
    }
}

impl Reader for Makeself {
    fn read(&mut self, input: &[u8], outbox: &mut Outbox) -> usize {
        if self.state != State::Head {
            return self.pass(input, outbox);
        }
        // No more is taken than it takes to see that this is something else.
        let wanted = [SHELL.len(), REACH, HEAD_BYTES].into_iter().find(|&wanted| wanted > self.held.len());
        let (taken, is_whole) = self.collect(input, wanted.unwrap_or(HEAD_BYTES));
        match self.held.len() {
            _ if !is_whole => {}
            HEAD_BYTES => self.head(outbox),
            _ if may_be(&self.held) => {}
            _ => self.state = State::Over,
        }
        taken
    }

    fn is_over(&self) -> bool {
        self.state == State::Over
    }

    fn end(&mut self, _: &dyn ReadAt, outbox: &mut Outbox) -> Ended {
        match self.state {
            State::Head => self.head(outbox),
            State::Look => self.begin(outbox),
            _ => return Ended::Done,
        }
        if self.state == State::Head || self.state == State::Look { Ended::More } else { Ended::Done }
    }
}

/// Whether a script that begins so, as far as one of the looks, may be one of these.
fn may_be(head: &[u8]) -> bool {
    head.starts_with(SHELL) && (head.len() < REACH || memmem::find(&head[..REACH], MARK).is_some())
}

/// How many lines a script has that begins so, if it is one of these.
fn lines(head: &[u8]) -> Option<u64> {
    memmem::find(&head[..head.len().min(REACH)], MARK).filter(|_| head.starts_with(SHELL))?;
    let numbers = SKIPS.iter().filter_map(|skip| {
        let digits = &head[memmem::find(head, skip)? + skip.len()..];
        let end = digits.iter().position(|byte| !byte.is_ascii_digit())?;
        std::str::from_utf8(&digits[..end]).ok()?.parse().ok()
    });
    numbers.into_iter().find(|&lines| lines > 0)
}

/// Fuzz body: reads a script.
pub(crate) fn fuzz_makeself(data: &[u8]) {
    cuts::compare(data, |_| Box::new(Reading::new(Makeself::new())));
}

#[cfg(test)]
mod tests {
    use stream::law::{self, Told};

    use super::*;

    const SCRIPT: &str = "#!/bin/sh\n# This script was generated using Makeself 2.4.5\nskip=\"5\"\nmore\nexit\n";

    fn told(bytes: &[u8]) -> Vec<Told> {
        let make = || Reading::new(Makeself::new());
        law::holds(make, bytes);
        law::holds_at_every_cut(make, bytes);
        law::tell(make(), bytes)
    }

    #[test]
    fn what_stands_behind_the_script_is_told() {
        let long = SCRIPT.replace("more\n", &format!("{}\n", "long ".repeat(HEAD_BYTES / 4)));
        for script in [SCRIPT, &long, &SCRIPT.replace("skip=\"5\"", "offset=`head -n 5 \"$0\" | wc -c`")] {
            for archive in [b"\x1f\x9d\x90abc".to_vec(), b"\x04\x22\x4d\x18 what".repeat(100)] {
                let told = told(&[script.as_bytes(), &archive].concat());
                assert_eq!(law::content(&told), archive, "{told:?}");
                let at = script.len() as u64;
                assert!(matches!(&told[0], Told::Open(object) if object.raw_offset == Some(at)), "{told:?}");
            }
        }
    }

    #[test]
    fn others_find_what_they_look_for() {
        for bytes in [&b"\x1f\x8b\x08\0"[..], b"", b"BZh91AY&SY"] {
            let told = told(&[SCRIPT.as_bytes(), bytes].concat());
            assert!(matches!(told[..], [Told::End(_)]), "{told:?}");
        }
        assert!(matches!(told(b"#!/bin/sh\nskip=\"1\"\nsomething else")[..], [Told::End(_)]));
    }
}
