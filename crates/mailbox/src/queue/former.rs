//! Where a mail goes that waits, and how often that was tried: an annotation, lines of text.

use crate::relay::Patience;

/// What is said of a mail that waits.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Entry {
    /// Since when it waits, seconds since 1970.
    pub since: i64,
    /// When it is tried next.
    pub due: i64,
    /// How often it was tried.
    pub tries: u32,
    /// Why it was not taken the last time.
    pub why: String,
    /// The sender of the envelope, empty for the null sender.
    pub from: String,
    /// The recipient.
    pub to: String,
    /// The account whose script redirected it, or that has written it; empty for what is made here.
    pub account: String,
    /// The address that it came for.
    pub address: String,
    /// Fields that are put in front of it.
    pub trace: String,
    /// Bytes at its beginning that are not sent.
    pub skipped: u64,
    /// It was made here: an answer, or a notice.
    pub is_answer: bool,
    /// The account has it as well.
    pub is_stored: bool,
    /// It was taken for spam.
    pub is_spam: bool,
    /// The account has written it: it is told what does not go out.
    pub is_written: bool,
}

/// Bytes of a reason that are noted.
const WHY_BYTES_MAX: usize = 300;

impl Entry {
    /// A mail of ours from the null sender.
    pub(crate) fn answer(to: String, now: i64) -> Entry {
        Entry { since: now, due: now, to, is_answer: true, ..Entry::default() }
    }

    /// As it waits on when it was not taken.
    pub(super) fn after(mut self, why: String, patience: Patience) -> Entry {
        let doublings = self.tries.min(30);
        let wait = patience.first.saturating_mul(1i64 << doublings).min(patience.longest);
        self.tries = self.tries.saturating_add(1);
        self.due = crate::site::seconds().saturating_add(wait);
        self.why = why.chars().map(|character| if character.is_control() { ' ' } else { character }).collect();
        while self.why.len() > WHY_BYTES_MAX {
            self.why.pop();
        }
        self
    }

    /// Lines, of which the last is `trace`, which may have several.
    pub(super) fn encode(&self) -> Vec<u8> {
        let flags =
            [self.is_answer, self.is_stored, self.is_spam, self.is_written].map(|flag| if flag { '1' } else { '0' });
        let Entry { since, due, tries, why, from, to, account, address, trace, skipped, .. } = self;
        let flags = String::from_iter(flags);
        format!("{since}\n{due}\n{tries}\n{skipped}\n{flags}\n{from}\n{to}\n{account}\n{address}\n{why}\n{trace}")
            .into_bytes()
    }

    pub(super) fn decode(bytes: &[u8]) -> Option<Entry> {
        let mut lines = std::str::from_utf8(bytes).ok()?.splitn(11, '\n');
        let mut line = || lines.next();
        let mut entry = Entry {
            since: line()?.parse().ok()?,
            due: line()?.parse().ok()?,
            tries: line()?.parse().ok()?,
            skipped: line()?.parse().ok()?,
            ..Entry::default()
        };
        let flags = line()?.as_bytes();
        let is_set = |at: usize| flags.get(at) == Some(&b'1');
        (entry.is_answer, entry.is_stored, entry.is_spam) = (is_set(0), is_set(1), is_set(2));
        entry.is_written = is_set(3);
        let mut text = || line().map(str::to_owned);
        (entry.from, entry.to) = (text()?, text()?);
        (entry.account, entry.address) = (text()?, text()?);
        (entry.why, entry.trace) = (text()?, text()?);
        Some(entry)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_noted_comes_back() {
        let entry = Entry {
            from: "eve@example.org".into(),
            trace: "X: a\r\nY: b\r\n".into(),
            is_spam: true,
            is_written: true,
            skipped: 7,
            ..Entry::answer("carl@example.net".into(), -5)
        };
        assert_eq!(Entry::decode(&entry.encode()), Some(entry));
        assert_eq!(Entry::decode(b"1\n2\n3"), None);
    }

    #[test]
    fn each_wait_is_twice_the_one_before() {
        let now = crate::site::seconds();
        let patience = Patience { first: 60, longest: 200, whole: 0 };
        let mut entry = Entry::answer("carl@example.net".into(), now);
        for wait in [60, 120, 200, 200] {
            entry = entry.after(format!("no\n{}", "x".repeat(1_000)), patience);
            assert!((wait..wait + 60).contains(&(entry.due - now)) && entry.why.len() == WHY_BYTES_MAX, "{entry:?}");
        }
        assert_eq!(entry.tries, 4);
    }
}
