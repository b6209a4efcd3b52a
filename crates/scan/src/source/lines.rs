//! The lines of a database as they stand, for people who look for a signature.

use crate::source::container::{self, ContainerKind, Members};
use crate::source::error::Error;
use crate::source::kind::{Kind, kind_of, name_of, yara_rule};

/// A line of a database that has a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Line<'a> {
    /// The member of a container that it is in.
    pub member: Option<&'a str>,
    /// Its number, counted from 1.
    pub number: usize,
    /// The name of the signature.
    pub name: &'a str,
    /// The line.
    pub text: &'a str,
}

/// Tells each line of a file, or of a container's members, that names a signature. A container is verified, but only
/// after its lines were told.
///
/// # Errors
/// As [`Builder::add`](crate::Builder::add), but lines are not read beyond their names.
pub fn each_line(file_name: &str, bytes: &[u8], tell: &mut dyn FnMut(Line<'_>)) -> Result<(), Error> {
    let mut lines = Lines { member: None, kind: Kind::Nothing, pending: Vec::new(), number: 0, tell };
    let Some(kind) = ContainerKind::of(file_name) else {
        (lines.kind, _) = kind_of(file_name).ok_or_else(|| Error::Kind { file: file_name.to_owned() })?;
        lines.feed(bytes);
        lines.last();
        return Ok(());
    };
    let read = container::read(kind, file_name, bytes, &mut lines);
    read.map(drop).map_err(|reason| Error::Container { file: file_name.to_owned(), reason })
}

struct Lines<'t> {
    member: Option<String>,
    kind: Kind,
    /// The beginning of a line.
    pending: Vec<u8>,
    number: usize,
    tell: &'t mut dyn FnMut(Line<'_>),
}

impl Lines<'_> {
    fn feed(&mut self, bytes: &[u8]) {
        let mut rest = bytes;
        while let Some(end) = memchr::memchr(b'\n', rest) {
            let (line, after) = rest.split_at(end);
            self.pending.extend_from_slice(line);
            self.last();
            rest = after.get(1..).unwrap_or(&[]);
        }
        self.pending.extend_from_slice(rest);
    }

    fn last(&mut self) {
        self.number += 1;
        let line = std::mem::take(&mut self.pending);
        let text = String::from_utf8_lossy(line.trim_ascii_end());
        if text.is_empty() || text.starts_with('#') {
            return;
        }
        let name = match self.kind {
            Kind::Nothing | Kind::Opaque(_) | Kind::Catalogue => None,
            Kind::Yara => yara_rule(&text),
            kind => name_of(kind, &text).ok(),
        };
        if let Some(name) = name {
            (self.tell)(Line { member: self.member.as_deref(), number: self.number, name, text: &text });
        }
    }
}

impl Members for Lines<'_> {
    fn open(&mut self, name: &str) -> Result<(), String> {
        self.kind = kind_of(name).map_or(Kind::Nothing, |(kind, _)| kind);
        self.member = Some(name.to_owned());
        self.number = 0;
        Ok(())
    }

    fn bytes(&mut self, bytes: &[u8]) -> Result<(), String> {
        if self.kind != Kind::Nothing {
            self.feed(bytes);
        }
        Ok(())
    }

    fn close(&mut self) -> Result<(), String> {
        self.last();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_told_with_their_names_and_numbers() {
        let mut told = Vec::new();
        each_line("a/x.ndb", b"# note\nA:0:*:61\n\nB:0:*:62", &mut |line| {
            told.push((line.name.to_owned(), line.number))
        })
        .expect("a database");
        assert_eq!(told, [("A".to_owned(), 2), ("B".to_owned(), 4)]);
        assert!(each_line("x.txt", b"", &mut |_| ()).is_err());
    }
}
