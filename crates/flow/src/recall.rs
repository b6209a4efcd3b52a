//! Questions of an inspection to what was learned, the answers, and the lesson of a mail.
//!
//! Words are keys, as SpamAssassin keeps them: what a mail says does not leave its inspection. A mail asks once; the door has it
//! looked up for whoever the mail is for, and keeps the time. Bounds are the inspection's: so many words of a mail as it says.

use alloc::boxed::Box;
use alloc::vec::Vec;

use crate::fuzzy::{Alike, Fuzzy};
use crate::reputation::{Conduct, Name, Standing};
use serde::{Deserialize, Serialize};

/// The key of a word: the last five bytes of its SHA-1.
pub type Key = [u8; 5];

/// A question about these words, and about the sender of the mail.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Recall {
    /// Each once.
    pub keys: Vec<Key>,
    /// The mail's own name where that is asked, and those of its sender; at most [`NAMES_MAX`](crate::reputation::NAMES_MAX).
    pub names: Vec<Name>,
    /// The mail, as it is compared with those that were reported, where that is asked.
    pub fuzzy: Option<Fuzzy>,
}

/// The counts of words.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Recalled {
    /// Mails of spam that were learned.
    pub spam: u64,
    /// Mails of ham.
    pub ham: u64,
    /// The words that are known.
    pub words: Vec<Word>,
    /// The standings of the names, in their order.
    pub standings: Vec<Standing>,
    /// How much it is like a mail that was reported, where that was asked.
    pub alike: Option<Alike>,
}

/// In how many mails a word was.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Word {
    /// Its key.
    pub key: Key,
    /// Mails of spam.
    pub spam: u64,
    /// Mails of ham.
    pub ham: u64,
}

/// The lesson of a mail.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lesson {
    /// Whether it is spam, where the rules are sure of it; else whoever has asked says so.
    pub is_spam: Option<bool>,
    /// Names that it may be known by.
    pub ids: Vec<Box<str>>,
    /// When it came, in seconds since 1970; none where it does not say.
    pub at: Option<i64>,
    /// Its words.
    pub keys: Vec<Key>,
    /// The sender's conduct, where a reputation is kept.
    pub conduct: Option<Box<Conduct>>,
    /// The mail, as it is compared with those that were reported, where rules ask for that.
    pub fuzzy: Option<Fuzzy>,
}

/// Whether a lesson is made of a mail.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Study {
    /// No.
    #[default]
    Never,
    /// Where the rules are sure of it.
    WhenSure,
    /// In any case: somebody wants to have it learned, or forgotten.
    Always,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire;

    #[test]
    fn questions_answers_and_lessons_have_a_byte_form() {
        let recall = Recall { keys: [[1; 5], [255; 5]].into(), names: [[3; 16]].into(), fuzzy: Some(Fuzzy::default()) };
        assert_eq!(wire::read::<Recall>(&wire::write(&recall, Vec::new())), Ok(recall));
        let recalled = Some(Recalled {
            spam: 7,
            ham: u64::MAX,
            words: [Word { key: [9; 5], spam: 1, ham: 300 }].into(),
            standings: [Standing::new(2, -1.5)].into(),
            alike: Some(Alike { places: 7, has_part: true }),
        });
        assert_eq!(wire::read::<Option<Recalled>>(&wire::write(&recalled, Vec::new())), Ok(recalled));
        let lesson = Lesson {
            is_spam: Some(true),
            ids: ["a@b".into()].into(),
            at: Some(-1),
            keys: [[0; 5]].into(),
            conduct: Some(Box::default()),
            fuzzy: None,
        };
        assert_eq!(wire::read::<Lesson>(&wire::write(&lesson, Vec::new())), Ok(lesson));
    }
}
