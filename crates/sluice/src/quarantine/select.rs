//! Which messages a command means: by id, or by what they are.

use std::time::{Duration, SystemTime};

use edge::quarantine::Kept;
use edge::quarantine::State;

use crate::cli::Selection;

/// How far a message has come, as it is typed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Stage {
    /// Nobody has it.
    Held,
    /// Some of its recipients have it.
    Partly,
    /// All of its recipients have it.
    Released,
}

impl Stage {
    const fn state(self) -> State {
        match self {
            Stage::Held => State::Held,
            Stage::Partly => State::Partly,
            Stage::Released => State::Released,
        }
    }
}

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

/// Reads `90s`, `15m`, `12h`, `7d`, `4w`.
pub fn duration(text: &str) -> Result<Duration, String> {
    let wrong = || format!("{text:?} is no time: a number with s, m, h, d or w");
    let (at, unit) = text.char_indices().next_back().ok_or_else(wrong)?;
    let seconds: u64 = match unit {
        's' => 1,
        'm' => 60,
        'h' => 3_600,
        'd' => 86_400,
        'w' => 7 * 86_400,
        _ => return Err(wrong()),
    };
    let count: u64 = text[..at].parse().map_err(|_| wrong())?;
    count.checked_mul(seconds).map(Duration::from_secs).ok_or_else(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_units() {
        assert_eq!(duration("90s"), Ok(Duration::from_secs(90)));
        assert_eq!(duration("2w"), Ok(Duration::from_secs(14 * 86_400)));
        for wrong in ["", "7", "d", "-1d", "1é", "99999999999999999999w", "18446744073709551615w"] {
            assert!(duration(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn texts_are_found_in_any_case_and_the_null_sender_by_its_brackets() {
        assert!(holds(Some("EXAMPLE.org"), ["a@example.ORG"].into_iter()));
        assert!(!holds(Some("<>"), ["a@example.org"].into_iter()));
        assert!(holds(Some("<>"), [""].into_iter()));
    }
}
