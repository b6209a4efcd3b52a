//! Answers about a recipient, and the table that gave them.

use std::fmt;

use proto::smtp::{Enhanced, Reply};

/// Answer about a recipient.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// It has a mailbox, or the next hop decides.
    Valid,
    /// It has none; these words say so.
    Unknown(Reply),
    /// Its mailbox is full.
    Full(Reply),
    /// It is refused, in these words.
    Refused(Reply),
    /// A table could not be asked, and no other knows it.
    Unsure {
        /// Reply to the client.
        reply: Reply,
        /// Why, for the log.
        reason: String,
    },
}

/// Source of an answer: the group of tables, the kind of table, its place, and the key found in it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct By {
    /// The name of `[[recipients]]`; empty: none holds for the domain.
    pub group: String,
    /// `files`, `aliases`, `postmaster`, `call_ahead`; empty: none knows the recipient.
    pub table: &'static str,
    /// The file, or the server.
    pub source: String,
    /// Key that was found.
    pub key: String,
}

/// An answer, and who gave it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verdict {
    /// The answer.
    pub answer: Answer,
    /// Source of the answer.
    pub by: By,
}

impl Answer {
    /// No table knows it.
    pub const fn unknown() -> Answer {
        Answer::Unknown(Reply::new(550, (5, 1, 1), "No such recipient here"))
    }

    /// A table cannot be asked.
    pub fn unsure(reason: impl Into<String>) -> Answer {
        let reply = Reply::new(451, (4, 4, 3), "The recipient cannot be looked up now");
        Answer::Unsure { reply, reason: reason.into() }
    }

    /// Reply for a recipient that is refused.
    pub fn reply(&self) -> Option<Reply> {
        match self {
            Answer::Valid => None,
            Answer::Unknown(reply) | Answer::Full(reply) | Answer::Refused(reply) | Answer::Unsure { reply, .. } => {
                Some(reply.clone())
            }
        }
    }

    /// Why it is not known, where it is not.
    pub fn reason(&self) -> &str {
        if let Answer::Unsure { reason, .. } = self { reason } else { "" }
    }

    /// In one word, for the log and for people.
    pub const fn name(&self) -> &'static str {
        match self {
            Answer::Valid => "valid",
            Answer::Unknown(_) => "unknown",
            Answer::Full(_) => "full",
            Answer::Refused(_) => "refused",
            Answer::Unsure { .. } => "unsure",
        }
    }
}

impl fmt::Display for By {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.table)?;
        if !self.source.is_empty() {
            write!(f, " {}", self.source)?;
        }
        if !self.key.is_empty() {
            write!(f, " ({})", self.key)?;
        }
        Ok(())
    }
}

/// The reply for a recipient that a table refuses: with its enhanced code, if it has one of that class.
pub fn refusal(code: u16, text: &str) -> Reply {
    let (enhanced, rest) = match text.split_once([' ', '\t']) {
        Some((word, rest)) => (enhanced(word), rest),
        None => (enhanced(text), ""),
    };
    let usual = if code < 500 { (4, 7, 1) } else { (5, 7, 1) };
    let (enhanced, words) = match enhanced.filter(|(class, ..)| u16::from(*class) == code / 100) {
        Some(enhanced) => (enhanced, rest.trim()),
        None => (usual, text),
    };
    let words = if words.is_empty() { "The recipient is refused" } else { words };
    Reply::with_text(code, enhanced, words.to_string())
}

fn enhanced(word: &str) -> Option<Enhanced> {
    let mut numbers = word.split('.');
    let mut next = || numbers.next()?.parse::<u16>().ok().filter(|&number| number < 1_000);
    let (class, subject, detail) = (next()?, next()?, next()?);
    let class = u8::try_from(class).ok()?;
    numbers.next().is_none().then_some((class, subject, detail))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tables_words_are_the_replys() {
        let told = |code, text| refusal(code, text).to_string();
        assert_eq!(told(550, "5.2.1 Gone away"), "550 5.2.1 Gone away");
        assert_eq!(told(550, "Gone away"), "550 5.7.1 Gone away");
        assert_eq!(told(450, ""), "450 4.7.1 The recipient is refused");
        assert_eq!(told(554, "5.7.1"), "554 5.7.1 The recipient is refused");
        assert_eq!(told(450, "5.7.1 odd"), "450 4.7.1 5.7.1 odd");
    }
}
