//! Arguments of APPEND and REPLACE around their literals, for a server that keeps the mail itself (RFC 9051, section
//! 6.3.12; RFC 3502, 4469, 6855, 8508).
//!
//! ```text
//! APPEND mailbox         message [message]...          message: [(flags)] ["date"] {n}
//! REPLACE number mailbox message                                [(flags)] ["date"] UTF8 (~{n} )
//!                                                               [(flags)] ["date"] CATENATE (URL "..." TEXT {n} ...)
//! ```
//!
//! A URL is a quoted string or an atom, and no literal; the parts of CATENATE are not said to be UTF-8.

use alloc::vec::Vec;

use super::command::{Command, Piece, Verb};
use super::date;
use super::name::{self, NOT_A_NAME};
use super::syntax::{Cursor, Flags, Set, Wrong};

/// Parts of one message.
const PARTS_MAX: usize = 256;

/// A message that is announced.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Appended {
    /// Its flags.
    pub flags: Flags,
    /// Its date, seconds since 1970.
    pub date: Option<i64>,
    /// It is said to have UTF-8 in its header (RFC 6855, section 4).
    pub utf8: bool,
}

/// A piece of syntax in front of a literal, or after the last.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// Another message begins.
    Begin(Appended),
    /// The part that this URL names is the next one.
    Url(Vec<u8>),
}

/// Where a literal ends.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Place {
    /// It was a message.
    #[default]
    Between,
    /// It was a message in `UTF8 (`.
    Utf8,
    /// It was one of so many parts of a message.
    Parts(usize),
}

/// Arguments in front of the first literal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Head {
    /// The message that REPLACE removes, and whether it is named by UID.
    pub replaces: Option<(Set, bool)>,
    /// Where the messages go, in UTF-8.
    pub mailbox: Vec<u8>,
    /// Steps before the first literal.
    pub steps: Vec<Step>,
    /// Where the literal is.
    pub place: Place,
}

impl Head {
    /// Reads a command up to its first literal, or all of one without any. With `utf8` the name of the mailbox is UTF-8 as it stands.
    ///
    /// # Errors
    /// What the client is told.
    pub fn read(command: &Command, utf8: bool, is_whole: bool) -> Result<Head, Wrong> {
        let mut cursor = Cursor::new(&command.pieces);
        let mut replaces = None;
        if command.verb == Verb::Replace {
            replaces = Some((Set::read(&mut cursor)?, command.by_uid()));
            cursor.blank()?;
        }
        let mailbox = name::decode(&cursor.astring()?, utf8).ok_or(NOT_A_NAME)?;
        let (steps, place) = read(&mut cursor, Place::Between, is_whole)?;
        if steps.is_empty() {
            return Err("APPEND without a message");
        }
        Ok(Head { replaces, mailbox, steps, place })
    }
}

/// Reads what stands between two literals, or behind the last one.
///
/// # Errors
/// What the client is told.
pub fn read_on(text: &[u8], place: Place, is_last: bool) -> Result<(Vec<Step>, Place), Wrong> {
    read(&mut Cursor::new(&[Piece::Text(text.to_vec())]), place, is_last)
}

fn read(cursor: &mut Cursor<'_>, mut place: Place, is_last: bool) -> Result<(Vec<Step>, Place), Wrong> {
    let mut steps = Vec::new();
    loop {
        match place {
            Place::Between if is_last && cursor.is_at_end() => return Ok((steps, place)),
            Place::Between => {
                steps.push(Step::Begin(options(cursor)?));
                if let Some(Step::Begin(appended)) = steps.last_mut()
                    && cursor.eat_word("UTF8")
                {
                    appended.utf8 = true;
                    place = Place::Utf8;
                } else if cursor.eat_word("CATENATE") {
                    place = Place::Parts(0);
                }
                if place != Place::Between {
                    cursor.blank()?;
                    cursor.expect(b'(', "Not a list")?;
                }
                if !matches!(place, Place::Parts(_)) {
                    return at_literal(cursor, is_last).map(|()| (steps, place));
                }
            }
            Place::Utf8 => {
                cursor.expect(b')', "Not a list")?;
                place = Place::Between;
            }
            Place::Parts(1..) if cursor.eat(b')') => place = Place::Between,
            Place::Parts(PARTS_MAX..) => return Err("Too many parts"),
            Place::Parts(count) => {
                if count > 0 {
                    cursor.blank()?;
                }
                place = Place::Parts(count.saturating_add(1));
                if cursor.eat_word("TEXT") {
                    cursor.blank()?;
                    return at_literal(cursor, is_last).map(|()| (steps, place));
                }
                if !cursor.eat_word("URL") {
                    return Err("Not a part");
                }
                cursor.blank()?;
                steps.push(Step::Url(cursor.astring()?));
            }
        }
    }
}

fn at_literal(cursor: &mut Cursor<'_>, is_last: bool) -> Result<(), Wrong> {
    if cursor.is_at_end() && !is_last { Ok(()) } else { Err("Not a message") }
}

fn options(cursor: &mut Cursor<'_>) -> Result<Appended, Wrong> {
    let mut appended = Appended::default();
    cursor.blank()?;
    if cursor.peek() == Some(b'(') {
        appended.flags = Flags::read(cursor)?;
        cursor.blank()?;
    }
    if cursor.peek() == Some(b'"') {
        appended.date = Some(date::parse_internal(&cursor.astring()?).ok_or("Not a date")?);
        cursor.blank()?;
    }
    Ok(appended)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head(text: &str, is_whole: bool) -> Result<Head, Wrong> {
        let pieces = Vec::from([Piece::Text(text.into())]);
        Head::read(&Command { pieces, ..Command::plain(Verb::Append, "APPEND") }, false, is_whole)
    }

    #[test]
    fn appends_are_understood() {
        let read = head("inbox (\\Seen x) \" 1-Jan-1970 00:00:01 +0000\" ", false).unwrap();
        let [Step::Begin(appended)] = read.steps.as_slice() else { panic!() };
        assert_eq!((read.mailbox.as_slice(), appended.date, appended.flags.system), (&b"INBOX"[..], Some(1), 1));
        assert_eq!(read.place, Place::Between);
        assert_eq!(read_on(b"", read.place, true), Ok((Vec::new(), Place::Between)));
        assert_eq!(
            read_on(b" UTF8 (", read.place, false).unwrap(),
            (Vec::from([Step::Begin(Appended { utf8: true, ..Appended::default() })]), Place::Utf8)
        );
        assert_eq!(read_on(b")", Place::Utf8, true), Ok((Vec::new(), Place::Between)));
    }

    #[test]
    fn messages_in_parts_are_understood() {
        let read = head("x CATENATE (URL \"/a\" TEXT ", false).unwrap();
        let begin = || Step::Begin(Appended::default());
        assert_eq!((read.steps, read.place), (Vec::from([begin(), Step::Url(b"/a".to_vec())]), Place::Parts(2)));
        let (steps, place) = read_on(b" URL /b) CATENATE (TEXT ", Place::Parts(2), false).unwrap();
        assert_eq!((steps, place), (Vec::from([Step::Url(b"/b".to_vec()), begin()]), Place::Parts(1)));
        assert_eq!(head("x CATENATE (URL /a) CATENATE (URL /b)", true).unwrap().steps.len(), 4);
        assert_eq!(head("x CATENATE (URL /a) ", false).unwrap().steps.len(), 3);
    }

    #[test]
    fn what_cannot_be_understood_is_refused() {
        for text in
            ["x", "x ", "x \"nonsense\" ", "x CATENATE ()", "x CATENATE (TEXT)", "x CATENATE (URL /a", "x UTF8 ("]
        {
            assert!(head(text, true).is_err(), "{text}");
        }
        for text in ["x", "x CATENATE (", "x CATENATE (URL ", "x CATENATE (URL /a TEXT x ", "x UTF8 (x", "x (\\Foo) "] {
            assert!(head(text, false).is_err(), "{text}");
        }
        assert!(read_on(b"x", Place::Parts(1), true).is_err() && read_on(b"", Place::Parts(1), true).is_err());
        assert!(read_on(b"", Place::Utf8, true).is_err() && read_on(b"", Place::Between, false).is_err());
        assert!(read_on(b" TEXT ", Place::Parts(PARTS_MAX), false).is_err());
    }
}
