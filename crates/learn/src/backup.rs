//! The lines that `sa-learn --backup` writes and `sa-learn --restore` reads.
//!
//! ```text
//! v TAB 3 TAB db_version ...        first
//! v TAB NUMBER TAB num_spam         mails learned
//! v TAB NUMBER TAB num_nonspam
//! t TAB SPAM TAB HAM TAB TIME TAB KEY          a word: mails of each kind, when it was of use last, ten digits of hex
//! s TAB s|h TAB ID                  a mail that was learned
//! ```
//!
//! A line has at most [`LINE_BYTES_MAX`] bytes. Words in the form of version 2, which are no digests, are refused.

use crate::probability::Counts;
use crate::tokens::Key;

/// The longest line.
pub const LINE_BYTES_MAX: usize = 4_096;

/// The version that is read and written.
const VERSION: u64 = 3;

/// Meaning of a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Snapshot {
    /// It is a snapshot, of the version that is read.
    Version,
    /// So many mails of spam were learned.
    Spam(u64),
    /// So many mails of ham were learned.
    Ham(u64),
    /// A word, and when it was of use last, in seconds since 1970.
    Word(Counts, i64),
    /// A mail that was learned: whether as spam, and its id.
    Mail(bool, Box<str>),
    /// A value of another name.
    Other,
}

impl Snapshot {
    /// Reads a line, without its end.
    ///
    /// # Errors
    /// The reason for which the line is invalid.
    pub fn read(line: &[u8]) -> Result<Snapshot, &'static str> {
        if line.len() > LINE_BYTES_MAX {
            return Err("the line is too long");
        }
        let mut fields = line.splitn(5, |&byte| byte == b'\t');
        let mut next = || fields.next().unwrap_or_default();
        match next() {
            b"v" => value(next(), next()),
            b"t" => {
                let (spam, ham) = (number(next())?, number(next())?);
                let at = i64::try_from(number(next())?).map_err(|_| NO_NUMBER)?;
                let key = key(next()).ok_or("the word is no key of ten digits (format 3)")?;
                Ok(Snapshot::Word(Counts { key, spam, ham }, at))
            }
            b"s" => {
                let is_spam = match next() {
                    b"s" => true,
                    b"h" => false,
                    _ => return Err("a mail is s or h"),
                };
                let id = core::str::from_utf8(next()).map_err(|_| "the id is no UTF-8")?;
                if id.is_empty() { Err("the id is missing") } else { Ok(Snapshot::Mail(is_spam, id.into())) }
            }
            _ => Err("the line begins with none of v, t and s"),
        }
    }

    /// The line, with its end.
    pub fn line(&self) -> String {
        match self {
            Snapshot::Version => format!("v\t{VERSION}\tdb_version # this must be the first line!!!\n"),
            Snapshot::Spam(count) => format!("v\t{count}\tnum_spam\n"),
            Snapshot::Ham(count) => format!("v\t{count}\tnum_nonspam\n"),
            Snapshot::Word(Counts { key, spam, ham }, at) => {
                let key: String = key.iter().map(|byte| format!("{byte:02x}")).collect();
                format!("t\t{spam}\t{ham}\t{at}\t{key}\n")
            }
            Snapshot::Mail(is_spam, id) => format!("s\t{}\t{id}\n", if *is_spam { 's' } else { 'h' }),
            Snapshot::Other => String::new(),
        }
    }
}

const NO_NUMBER: &str = "a number is missing";

fn value(value: &[u8], name: &[u8]) -> Result<Snapshot, &'static str> {
    let value = number(value)?;
    match name.split(u8::is_ascii_whitespace).next().unwrap_or_default() {
        b"db_version" if value == VERSION => Ok(Snapshot::Version),
        b"db_version" => Err("it is of another version than 3"),
        b"num_spam" => Ok(Snapshot::Spam(value)),
        b"num_nonspam" => Ok(Snapshot::Ham(value)),
        _ => Ok(Snapshot::Other),
    }
}

/// A number that a database can hold.
fn number(text: &[u8]) -> Result<u64, &'static str> {
    let text = core::str::from_utf8(text).map_err(|_| NO_NUMBER)?;
    text.parse().ok().filter(|number| i64::try_from(*number).is_ok()).ok_or(NO_NUMBER)
}

fn key(text: &[u8]) -> Option<Key> {
    let text = core::str::from_utf8(text).ok().filter(|text| text.len() == 10 && text.is_ascii())?;
    let mut key = Key::default();
    for (byte, at) in key.iter_mut().zip((0..).step_by(2)) {
        *byte = u8::from_str_radix(text.get(at..)?.get(..2)?, 16).ok()?;
    }
    Some(key)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_read_as_they_are_written() {
        let word = Snapshot::Word(Counts { key: [0, 1, 0xab, 0xcd, 0xff], spam: 3, ham: 0 }, 1_700_000_000);
        assert_eq!(word.line(), "t\t3\t0\t1700000000\t0001abcdff\n");
        for item in [Snapshot::Version, Snapshot::Spam(7), Snapshot::Ham(0), word, Snapshot::Mail(true, "a@b".into())] {
            let line = item.line();
            assert_eq!(Snapshot::read(line.trim_end().as_bytes()), Ok(item));
        }
        assert_eq!(Snapshot::read(b"v\t5\tnewest"), Ok(Snapshot::Other));
    }

    #[test]
    fn what_is_none_is_refused_with_its_reason() {
        for (line, wanted) in [
            (&b""[..], "none of v, t and s"),
            (b"v\t2\tdb_version", "another version"),
            (b"t\t1\t-1\t1\t0001abcdff", "number"),
            (b"t\t1\t1\t1\tword", "no key"),
            (b"t\t99999999999999999999\t1\t1\t0001abcdff", "number"),
            (b"s\tx\ta", "s or h"),
            (b"s\ts\t", "missing"),
        ] {
            let error = Snapshot::read(line).unwrap_err();
            assert!(error.contains(wanted), "{error}");
        }
    }
}
