//! Selection of messages by id or by their facts.

use std::time::SystemTime;

use crate::cli::Selection;
use edge::quarantine::Kept;

impl Selection {
    /// Whether nothing at all is said, so that it would mean everything.
    pub fn is_empty(&self) -> bool {
        let Selection { ids, older, newer, from, to, found, state } = self;
        ids.is_empty()
            && older.is_none()
            && newer.is_none()
            && from.is_none()
            && to.is_none()
            && found.is_none()
            && state.is_none()
    }

    /// Whether it means this message.
    pub fn means(&self, kept: &Kept, now: SystemTime) -> bool {
        let facts = &kept.facts;
        let age = now.duration_since(kept.since).unwrap_or_default();
        (self.ids.is_empty() || self.ids.contains(&facts.id))
            && self.older.is_none_or(|older| age >= older)
            && self.newer.is_none_or(|newer| age < newer)
            && holds(self.from.as_deref(), std::iter::once(facts.envelope.from.as_str()))
            && holds(self.to.as_deref(), facts.envelope.to.iter().map(|rcpt| rcpt.address.as_str()))
            && holds(self.found.as_deref(), facts.found.iter().map(String::as_str))
            && self.state.is_none_or(|stage| facts.state() == stage.state())
    }
}

/// Whether one of `texts` holds `wanted`, in any case; `<>` is the null sender.
fn holds<'a>(wanted: Option<&str>, mut texts: impl Iterator<Item = &'a str>) -> bool {
    match wanted {
        None => true,
        Some("<>") => texts.any(str::is_empty),
        Some(wanted) => {
            let wanted = wanted.to_lowercase();
            texts.any(|text| text.to_lowercase().contains(&wanted))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_found_in_any_case_and_the_null_sender_by_its_brackets() {
        assert!(holds(Some("EXAMPLE.org"), ["a@example.ORG"].into_iter()));
        assert!(!holds(Some("<>"), ["a@example.org"].into_iter()));
        assert!(holds(Some("<>"), [""].into_iter()));
    }
}
