//! State of each file between two runs, and the back-off after a failure.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// The wait after the first failure, in seconds; it doubles with each further one.
const WAIT_SECONDS: u64 = 60;
/// The longest wait of our own making.
const WAIT_SECONDS_MAX: u64 = 24 * 3_600;
/// The longest wait that a server may ask for.
const RETRY_AFTER_SECONDS_MAX: u64 = 7 * 24 * 3_600;

/// State by the names of the files.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct State {
    files: BTreeMap<String, Known>,
}

/// State of one file.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Known {
    /// Where it came from.
    pub url: String,
    /// ETag of this version.
    pub etag: Option<String>,
    /// When the server says it was changed.
    pub last_modified: Option<String>,
    /// Failures in a row.
    pub failures: u32,
    /// When it may be asked for again, in seconds since 1970.
    pub not_before: u64,
    /// Seconds that the server asked us to wait.
    #[serde(skip)]
    pub retry_after: Option<u64>,
}

impl State {
    /// All that is known, for who looks at it.
    pub fn told(&self) -> Value {
        let one = |(name, known): (&String, &Known)| {
            json!({
                "file": name, "from": known.url, "failures": known.failures, "not_before": known.not_before,
                "last_modified": known.last_modified,
            })
        };
        self.files.iter().map(one).collect()
    }

    /// State of a file, made if missing.
    pub fn file(&mut self, name: &str) -> &mut Known {
        self.files.entry(name.into()).or_default()
    }
}

impl Known {
    /// Nothing is known of what is at this URL; how long to wait for the server still holds, if it is the same one.
    pub fn begin(&mut self, url: &str) {
        if self.url != url {
            *self = Known { url: url.into(), ..Known::default() };
        }
        self.forget();
    }

    /// Forgets the version, so that it is fetched again.
    pub fn forget(&mut self) {
        (self.etag, self.last_modified) = (None, None);
    }

    /// It was answered.
    pub fn succeeded(&mut self) {
        (self.failures, self.not_before, self.retry_after) = (0, 0, None);
    }

    /// It was not, or what came was of no use.
    pub fn failed(&mut self, now: u64) {
        let wait = WAIT_SECONDS.saturating_mul(1 << self.failures.min(20)).min(WAIT_SECONDS_MAX);
        let asked = self.retry_after.take().unwrap_or(0).min(RETRY_AFTER_SECONDS_MAX);
        self.failures = self.failures.saturating_add(1);
        self.not_before = now.saturating_add(wait.max(asked));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_wait_doubles_up_to_a_day_and_a_server_may_ask_for_more() {
        let mut known = Known::default();
        let mut waits = Vec::new();
        for _ in 0..40 {
            known.failed(1_000);
            waits.push(known.not_before - 1_000);
        }
        assert_eq!(waits[..4], [60, 120, 240, 480]);
        assert_eq!(waits[39], WAIT_SECONDS_MAX);
        known.succeeded();
        known.retry_after = Some(3_600);
        known.failed(0);
        assert_eq!(known.not_before, 3_600);
        known.retry_after = Some(u64::MAX);
        known.failed(0);
        assert_eq!(known.not_before, RETRY_AFTER_SECONDS_MAX);
    }

    #[test]
    fn another_url_is_another_file() {
        let mut known = Known { url: "a".into(), etag: Some("x".into()), failures: 3, ..Known::default() };
        known.begin("b");
        assert_eq!(known, Known { url: "b".into(), ..Known::default() });
    }
}
