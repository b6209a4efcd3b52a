//! GETMETADATA and SETMETADATA (RFC 5464): what clients note of a mailbox, or of the server, by names like `/private/comment`.
//!
//! Names are told in lower case. Bounds: those of a command, 256 names of one, 400 bytes of a name.

use alloc::string::String;
use alloc::vec::Vec;

use super::syntax::{Cursor, Wrong};

/// Entries of one command.
const ENTRIES_MAX: usize = 256;

/// The longest name of an entry, in bytes.
const ENTRY_BYTES_MAX: usize = 400;

/// Entries that GETMETADATA asks for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Asked {
    /// The names.
    pub entries: Vec<String>,
    /// Entries below those names, too: how far.
    pub depth: Depth,
    /// No larger values than this, in bytes.
    pub bytes_max: Option<u64>,
}

/// How far below a name.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[allow(missing_docs, reason = "their names say it")]
pub enum Depth {
    #[default]
    Zero,
    One,
    Infinity,
}

/// New value of an entry; none deletes it.
pub type Change = (String, Option<Vec<u8>>);

/// `(MAXSIZE 1024 DEPTH 1) `, if it stands here.
pub(super) fn options(cursor: &mut Cursor<'_>) -> Result<Asked, Wrong> {
    let mut asked = Asked::default();
    if cursor.peek() != Some(b'(') {
        return Ok(asked);
    }
    cursor.list(false, |cursor| {
        let word = cursor.atom()?;
        cursor.blank()?;
        match word.as_str() {
            "MAXSIZE" => asked.bytes_max = Some(cursor.number()?),
            "DEPTH" => {
                asked.depth = match cursor.atom()?.as_str() {
                    "0" => Depth::Zero,
                    "1" => Depth::One,
                    "INFINITY" => Depth::Infinity,
                    _ => return Err("Unknown depth"),
                }
            }
            _ => return Err("Unknown option"),
        }
        Ok(())
    })?;
    cursor.blank()?;
    Ok(asked)
}

/// A name, or several in parentheses.
pub(super) fn entries(cursor: &mut Cursor<'_>) -> Result<Vec<String>, Wrong> {
    let entries = match cursor.peek() {
        Some(b'(') => cursor.list(false, |cursor| entry(cursor, true))?,
        _ => Vec::from([entry(cursor, true)?]),
    };
    if entries.len() > ENTRIES_MAX { Err("Too many entries") } else { Ok(entries) }
}

/// `(/private/comment "x" /shared/comment NIL)`.
pub(super) fn changes(cursor: &mut Cursor<'_>) -> Result<Vec<Change>, Wrong> {
    let changes = cursor.list(false, |cursor| {
        let name = entry(cursor, false)?;
        cursor.blank()?;
        if cursor.eat_word("NIL") {
            return Ok((name, None));
        }
        // A string, and no atom.
        match cursor.peek() {
            Some(b'"') | None => Ok((name, Some(cursor.astring()?))),
            Some(_) => Err("Not a value"),
        }
    })?;
    if changes.len() > ENTRIES_MAX { Err("Too many entries") } else { Ok(changes) }
}

/// A name; of all entries of a kind, if it `may_be_all`.
fn entry(cursor: &mut Cursor<'_>, may_be_all: bool) -> Result<String, Wrong> {
    let name = cursor.astring()?.to_ascii_lowercase();
    let is_odd = |byte: &u8| !(b' '..=b'~').contains(byte) || b"*%".contains(byte);
    let rest = name.strip_prefix(b"/private").or_else(|| name.strip_prefix(b"/shared")).unwrap_or(b"x");
    let mut levels = rest.split(|&byte| byte == b'/');
    let has_gap = levels.next() != Some(b"") || levels.any(<[u8]>::is_empty) || (rest.is_empty() && !may_be_all);
    let fits = !has_gap && !name.iter().any(is_odd) && name.len() <= ENTRY_BYTES_MAX;
    String::from_utf8(name).ok().filter(|_| fits).ok_or("Not the name of an entry")
}

impl Asked {
    /// Whether the request covers an entry.
    pub fn is_for(&self, entry: &str) -> bool {
        self.entries.iter().any(|asked| match entry.strip_prefix(asked.as_str()) {
            Some("") => true,
            Some(below) => match (below.strip_prefix('/'), self.depth) {
                (None, _) | (_, Depth::Zero) => false,
                (Some(name), Depth::One) => !name.contains('/'),
                (Some(_), Depth::Infinity) => true,
            },
            None => false,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::imap::Piece;

    fn read<T>(text: &str, read: impl Fn(&mut Cursor<'_>) -> Result<T, Wrong>) -> Result<T, Wrong> {
        let pieces = [Piece::Text(text.into())];
        let mut cursor = Cursor::new(&pieces);
        let read = read(&mut cursor)?;
        cursor.end().map(|()| read)
    }

    #[test]
    fn entries_are_meant_by_name_and_depth() {
        let asked = |options_text: &str| {
            let entries = Vec::from([String::from("/private/a")]);
            Asked { entries, ..read(options_text, options).unwrap() }
        };
        let meant = |asked: Asked| {
            ["/private/a", "/private/a/b", "/private/a/b/c", "/private/ab"].map(|name| asked.is_for(name))
        };
        assert_eq!(meant(asked("")), [true, false, false, false]);
        assert_eq!(meant(asked("(MAXSIZE 5 DEPTH 1) ")), [true, true, false, false]);
        assert_eq!(meant(asked("(depth infinity) ")), [true, true, true, false]);
        assert_eq!(asked("(MAXSIZE 5) ").bytes_max, Some(5));
    }

    #[test]
    fn values_are_strings_or_nothing() {
        let both = read("(/PRIVATE/Comment \"x y\" /shared/b NIL)", changes).unwrap();
        assert_eq!(both, [("/private/comment".into(), Some(b"x y".to_vec())), ("/shared/b".into(), None)]);
        for text in [
            "()",
            "(/private/a)",
            "(/private/a x)",
            "(/private NIL)",
            "(/private/a//b NIL)",
            "(/shared/* NIL)",
            "(/other/a NIL)",
        ] {
            assert!(read(text, changes).is_err(), "{text}");
        }
        assert!(read("/private/a/", entries).is_err() && read("(DEPTH 2) ", options).is_err());
    }
}
