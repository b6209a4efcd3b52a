//! Rights to mailboxes (RFC 4314): letters, and what SETACL does to them.

use alloc::string::String;
use core::fmt;

use super::syntax::Wrong;

/// The letters, in the order of the standard.
const LETTERS: &[u8; 11] = b"lrswipkxtea";

/// A set of rights.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Rights(u16);

#[allow(missing_docs, reason = "their letters are those of RFC 4314, section 2.1")]
impl Rights {
    pub const NONE: Rights = Rights(0);
    /// `l`: the mailbox is seen.
    pub const LOOKUP: Rights = Rights(1);
    /// `r`: it is opened.
    pub const READ: Rights = Rights(1 << 1);
    /// `s`: `\Seen`.
    pub const SEEN: Rights = Rights(1 << 2);
    /// `w`: other flags and keywords.
    pub const WRITE: Rights = Rights(1 << 3);
    /// `i`: messages are put there.
    pub const INSERT: Rights = Rights(1 << 4);
    /// `p`: mail is sent to it.
    pub const POST: Rights = Rights(1 << 5);
    /// `k`: mailboxes are made below it.
    pub const CREATE: Rights = Rights(1 << 6);
    /// `x`: it is removed or renamed.
    pub const DELETE: Rights = Rights(1 << 7);
    /// `t`: `\Deleted`.
    pub const MARK: Rights = Rights(1 << 8);
    /// `e`: expunge messages with `\Deleted`.
    pub const EXPUNGE: Rights = Rights(1 << 9);
    /// `a`: rights are told and changed.
    pub const ADMINISTER: Rights = Rights(1 << 10);
    /// All of them.
    pub const ALL: Rights = Rights((1 << LETTERS.len()) - 1);

    /// Reads letters; `c` and `d` are those of RFC 2086 (section 2.1.1): `k`, and `e`, `t` and `x`.
    ///
    /// # Errors
    /// When one is not known.
    pub fn parse(letters: &[u8]) -> Result<Rights, Wrong> {
        let mut rights = Rights::NONE;
        for letter in letters {
            rights = rights.with(match letter {
                b'c' => Rights::CREATE,
                b'd' => Rights::EXPUNGE.with(Rights::MARK).with(Rights::DELETE),
                letter => {
                    let at = LETTERS.iter().position(|known| known == letter).ok_or("Unknown right")?;
                    Rights(1 << at)
                }
            });
        }
        Ok(rights)
    }

    /// Both.
    #[must_use]
    pub const fn with(self, other: Rights) -> Rights {
        Rights(self.0 | other.0)
    }

    /// Without these.
    #[must_use]
    pub const fn without(self, other: Rights) -> Rights {
        Rights(self.0 & !other.0)
    }

    /// Whether all of these are there.
    pub const fn has(self, wanted: Rights) -> bool {
        self.0 & wanted.0 == wanted.0
    }

    /// Whether one of these is there.
    pub const fn has_any(self, wanted: Rights) -> bool {
        self.0 & wanted.0 != 0
    }

    /// Letters as they are kept, without those of RFC 2086.
    pub fn letters(self) -> String {
        LETTERS
            .iter()
            .enumerate()
            .filter(|(at, _)| self.0 >> at & 1 != 0)
            .map(|(_, letter)| char::from(*letter))
            .collect()
    }
}

/// As they are told, with the letters of RFC 2086 where one of those that they stand for is there (section 2.1.1).
impl fmt::Display for Rights {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.letters())?;
        if self.has(Rights::CREATE) {
            f.write_str("c")?;
        }
        match self.has_any(Rights::EXPUNGE.with(Rights::MARK).with(Rights::DELETE)) {
            true => f.write_str("d"),
            false => Ok(()),
        }
    }
}

/// Change of rights that SETACL asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Modification {
    /// The rights become these.
    Replace(Rights),
    /// These rights are added.
    Add(Rights),
    /// These rights are removed.
    Remove(Rights),
}

impl Modification {
    /// Reads `+LETTERS`, `-LETTERS` or `LETTERS`.
    ///
    /// # Errors
    /// As [`Rights::parse`].
    pub fn parse(text: &[u8]) -> Result<Modification, Wrong> {
        Ok(match text.split_first() {
            Some((b'+', letters)) => Modification::Add(Rights::parse(letters)?),
            Some((b'-', letters)) => Modification::Remove(Rights::parse(letters)?),
            _ => Modification::Replace(Rights::parse(text)?),
        })
    }

    /// Applies the change to a set of rights.
    pub const fn of(self, before: Rights) -> Rights {
        match self {
            Modification::Replace(rights) => rights,
            Modification::Add(rights) => before.with(rights),
            Modification::Remove(rights) => before.without(rights),
        }
    }
}

#[cfg(test)]
mod tests {
    use alloc::string::ToString;

    use super::*;

    #[test]
    fn letters_are_rights_and_rights_are_letters() {
        let told = |letters: &[u8]| Rights::parse(letters).map(|rights| rights.to_string());
        assert_eq!(told(b"rl").unwrap(), "lr");
        assert_eq!(told(b"lrswipkxtea").unwrap(), "lrswipkxteacd");
        assert_eq!(told(b"lrcd").unwrap(), "lrkxtecd");
        assert_eq!(told(b"").unwrap(), "");
        assert!(told(b"lq").is_err() && told(b"LR").is_err());
        assert_eq!(Rights::parse(Rights::ALL.letters().as_bytes()), Ok(Rights::ALL));
    }

    #[test]
    fn modifications_add_take_away_and_replace() {
        let after = |text: &[u8]| Modification::parse(text).unwrap().of(Rights::parse(b"lrs").unwrap()).letters();
        assert_eq!([after(b"+wi"), after(b"-sr"), after(b"l"), after(b"")], ["lrswi", "l", "l", ""]);
    }
}
