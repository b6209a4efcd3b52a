//! Shell archives: files in the text of a script, each line behind a mark that `sed` takes away.
//!
//! A file begins behind a line with `sed 's/^X//'` and a here-document, `<< 'END'`, and ends at the line of its word. Which
//! script that is in does not matter, nor what stands in front of it. Marks of other letters are read, too. Encoded files
//! within are emitted as they are, for the readers of encoded files. Without a mark the lines stand in the script as they are.
//!
//! Bounds: a command of [`LINE_MAX`], a mark and a word of [`WORD_MAX`].

use memchr::{memchr, memmem, memrchr};
use stream::{Class, Kind, Object, ReadAt};

use crate::frame::codec::Fault;
use crate::frame::cuts;
use crate::frame::format::{Format, Reads};
use crate::frame::name;
use crate::frame::reader::{Ended, Outbox, Reader, Reading};

/// Row in the table of formats.
pub(crate) const FORMAT: Format = Format {
    name: "shell archives (shar)",
    methods: "files behind `sed` and a here-document, as text or uuencoded",
    not_read: "",
    reads: Reads::Stream,
    memory: "a line of 1 KiB",
    decoder: "own",
    fuzz: "unpack_shar",
    compared_with: "sh, over archives made by GNU shar and bsdtar",
};

const TRUNCATED: Fault = Fault::passing(Class::Truncated, "Heuristics.Truncated.Shar");

const LINE_MAX: usize = 1024;
const WORD_MAX: usize = 64;

/// A reader of scripts.
#[derive(Default)]
pub(crate) struct Shar {
    at: u64,
    /// Bytes of a line, as long as they matter.
    held: Vec<u8>,
    state: State,
}

/// The program by which archives take marks from the lines of files.
const SED: &[u8] = b"sed";

#[derive(Default)]
enum State {
    /// At the beginning of a line of the script, or in it.
    #[default]
    Script,
    /// In a line that is no command.
    Passing,
    /// At the beginning of a line of a file.
    Line(Here),
    /// In such a line.
    InLine(Here),
}

/// A here-document.
#[derive(Debug, PartialEq)]
struct Here {
    mark: Vec<u8>,
    word: Vec<u8>,
}

impl Shar {
    pub fn new() -> Shar {
        Shar::default()
    }

    /// Reads up to the end of a line; how much was taken.
    fn script(&mut self, input: &[u8], outbox: &mut Outbox) -> usize {
        if self.held.is_empty()
            && let passed @ 1.. = without_commands(input)
        {
            return passed;
        }
        let end = memchr(b'\n', input);
        let taken = end.map_or(input.len(), |end| end + 1);
        self.held.extend_from_slice(&input[..taken.min(LINE_MAX)]);
        if self.held.len() >= LINE_MAX {
            self.held.clear();
            self.state = if end.is_some() { State::Script } else { State::Passing };
            return taken;
        }
        if end.is_some() {
            let line = std::mem::take(&mut self.held);
            if let Some((here, name)) = command(&line) {
                let name = name.map(name::utf8_or_latin1);
                outbox.open(Object { kind: Kind::Member, name, ..Object::default() });
                self.state = State::Line(here);
            }
        }
        taken
    }

    /// Reads the beginning of a line of a file, until its kind is known.
    fn line(&mut self, here: Here, input: &[u8], outbox: &mut Outbox) -> usize {
        let wanted = here.mark.len().max(here.word.len() + 2);
        let mut taken = 0;
        while self.held.len() < wanted && taken < input.len() && self.held.last() != Some(&b'\n') {
            self.held.push(input[taken]);
            taken += 1;
        }
        let is_whole = self.held.len() == wanted || self.held.last() == Some(&b'\n');
        self.state = if is_whole { self.begin(here, outbox) } else { State::Line(here) };
        taken
    }

    /// Emits the held part of a line, unless it ends the file.
    fn begin(&mut self, here: Here, outbox: &mut Outbox) -> State {
        let line = std::mem::take(&mut self.held);
        let text = line.strip_suffix(b"\n").unwrap_or(&line);
        if text.strip_suffix(b"\r").unwrap_or(text) == here.word {
            outbox.close();
            return State::Script;
        }
        outbox.content(line.strip_prefix(&here.mark[..]).unwrap_or(&line));
        if line.ends_with(b"\n") { State::Line(here) } else { State::InLine(here) }
    }
}

impl Reader for Shar {
    fn read(&mut self, input: &[u8], outbox: &mut Outbox) -> usize {
        let to_line_end = |input: &[u8]| memchr(b'\n', input).map(|end| end + 1);
        let taken = match std::mem::take(&mut self.state) {
            State::Script => self.script(input, outbox),
            State::Passing => {
                let end = to_line_end(input);
                self.state = if end.is_some() { State::Script } else { State::Passing };
                end.unwrap_or(input.len())
            }
            State::Line(here) => self.line(here, input, outbox),
            State::InLine(here) => {
                let end = to_line_end(input);
                let taken = end.unwrap_or(input.len());
                outbox.content(&input[..taken]);
                self.state = if end.is_some() { State::Line(here) } else { State::InLine(here) };
                taken
            }
        };
        self.at += taken as u64;
        taken
    }

    fn end(&mut self, _: &dyn ReadAt, outbox: &mut Outbox) -> Ended {
        if let State::Line(here) = std::mem::take(&mut self.state)
            && !self.held.is_empty()
        {
            self.begin(here, outbox);
        }
        if outbox.is_open() {
            outbox.close();
            outbox.finding(TRUNCATED.class, TRUNCATED.name, self.at);
        }
        Ended::Done
    }
}

/// The bytes of whole lines in front of the first one that may be a command.
fn without_commands(input: &[u8]) -> usize {
    let end = memmem::find(input, SED).unwrap_or(input.len());
    memrchr(b'\n', &input[..end]).map_or(0, |at| at + 1)
}

/// The here-document that a line asks `sed` to take marks from, and the name of the file.
fn command(line: &[u8]) -> Option<(Here, Option<&[u8]>)> {
    const SUBSTITUTE: &[u8] = b"s/^";
    let behind = |text: &'_ [u8], what: &[u8]| memmem::find(text, what).map(|at| at + what.len());
    let from = behind(line, SED)?;
    let from = from + behind(&line[from..], SUBSTITUTE)?;
    let end = from + memmem::find(&line[from..], b"//")?;
    let mark: Vec<u8> = line[from..end].iter().copied().filter(|&byte| byte != b'\\').collect();
    let at = memmem::find(line, b"<<")?;
    let word = word(line[at + 2..].strip_prefix(b"-").unwrap_or(&line[at + 2..]))?.to_vec();
    let is_sound = !mark.is_empty() && mark.len() <= WORD_MAX && !word.is_empty() && word.len() <= WORD_MAX;
    let name = memchr(b'>', &line[end..]).and_then(|at| self::word(&line[end + at + 1..]));
    is_sound.then_some((Here { mark, word }, name.filter(|name| !name.is_empty())))
}

/// Returns the first word of a command line, unquoted.
fn word(text: &[u8]) -> Option<&[u8]> {
    let text = text.trim_ascii_start();
    match text.first()? {
        quote @ (b'\'' | b'"') => {
            let quoted = &text[1..];
            Some(&quoted[..memchr(*quote, quoted)?])
        }
        first => {
            let text = &text[usize::from(*first == b'\\')..];
            let is_end =
                |byte: &u8| byte.is_ascii_whitespace() || matches!(byte, b';' | b'&' | b'|' | b'<' | b'>' | b')');
            Some(&text[..text.iter().position(is_end).unwrap_or(text.len())])
        }
    }
}

/// Fuzz body: reads a script, and one that extracts itself.
pub fn fuzz_shar(data: &[u8]) {
    crate::document::makeself::fuzz_makeself(data);
    cuts::compare(data, |_| Box::new(Reading::new(Shar::new())));
}

#[cfg(test)]
mod tests {
    use stream::law::{self, Told};

    use super::*;

    fn told(script: &str) -> Vec<Told> {
        let make = || Reading::new(Shar::new());
        law::holds(make, script.as_bytes());
        law::holds_at_every_cut(make, script.as_bytes());
        law::tell(make(), script.as_bytes())
    }

    #[test]
    fn files_behind_marks_are_told_without_them() {
        for command in [
            "sed 's/^X//' > a.txt << 'END'",
            "  sed 's/^X//' << 'END' > 'a.txt' &&",
            "sed \"s/^X//\" >a.txt <<\\END",
            "sed -e 's/^X//' <<-\"END\" >\"a.txt\"; echo x",
        ] {
            let told = told(&format!("#!/bin/sh\n{command}\nXone\ntwo\nXEND\nX\n\nEND\nX rest\n"));
            assert!(matches!(&told[0], Told::Open(object) if object.name.as_deref() == Some("a.txt")), "{told:?}");
            assert_eq!(law::content(&told), b"one\ntwo\nEND\n\n\n", "{command}");
        }
        let told = told("sed 's/^-//' << 'SHAR_EOF' | uudecode &&\r\n-begin 600 a\r\n-`\r\nSHAR_EOF\r\n");
        assert_eq!(law::content(&told), b"begin 600 a\r\n`\r\n");
    }

    #[test]
    fn what_has_no_end_is_said() {
        for script in ["sed 's/^X//' > a << 'END'\nXone\n", "sed 's/^X//' > a << 'END'\nXon\nEN", "sed 's/^X//' <<E\nX"]
        {
            let told = told(script);
            assert!(told.iter().any(|told| matches!(told, Told::Note(_))), "{told:?}");
        }
    }

    #[test]
    fn other_commands_are_none() {
        for line in ["sed 's/^X//' a.txt", "cat << 'END'", "sed 's/^//' << END", "sed 's/^X/", "echo s/^X// << END"] {
            assert_eq!(command(line.as_bytes()), None, "{line}");
        }
    }
}
