//! `[quarantine]`: how long and how much is kept aside.

use std::path::Path;
use std::time::Duration;

use serde::Deserialize;

use super::{Config, Forward, Listener};

/// `[quarantine]`; it holds for the folder of each listener.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct QuarantineSettings {
    /// Days after which a message goes; 0 means never.
    pub keep_days: u32,
    /// Bytes of all files in one folder; beyond that the oldest messages go. 0 means any.
    pub bytes_max: u64,
    /// Programs that learn from what is kept.
    pub train: Learners,
}

/// `[quarantine.train]`: a program with its arguments, for each of the two things that a message may be. It gets the
/// message on its standard input.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Learners {
    /// What is unwanted.
    pub spam: Vec<String>,
    /// What is not.
    pub ham: Vec<String>,
    /// Seconds that it may take.
    pub seconds_max: u64,
}

impl Default for Learners {
    fn default() -> Learners {
        Learners { spam: Vec::new(), ham: Vec::new(), seconds_max: 60 }
    }
}

impl Learners {
    /// Whether these can be started, as far as that is known before.
    pub(super) fn check(&self) -> Result<(), String> {
        for (name, command) in [("spam", &self.spam), ("ham", &self.ham)] {
            if command.first().is_some_and(|program| !Path::new(program).is_absolute()) {
                return Err(format!("quarantine.train: {name}: a program is named by its whole path, without a shell"));
            }
        }
        if self.seconds_max == 0 { Err("quarantine.train: seconds_max is 0".into()) } else { Ok(()) }
    }
}

impl Default for QuarantineSettings {
    fn default() -> QuarantineSettings {
        QuarantineSettings { keep_days: 30, bytes_max: 1 << 30, train: Learners::default() }
    }
}

impl QuarantineSettings {
    /// How long a message is kept; none for ever.
    pub fn keep(&self) -> Option<Duration> {
        (self.keep_days > 0).then(|| Duration::from_secs(u64::from(self.keep_days) * 86_400))
    }
}

impl Config {
    /// The folders that listeners put messages into.
    pub fn quarantines(&self) -> impl Iterator<Item = &Path> {
        self.listeners.iter().filter_map(|listener| listener.quarantine.as_deref())
    }
}

impl Listener {
    /// A listener with every default, for the sake of its way to `forward`.
    pub fn towards(forward: Forward) -> Listener {
        let text = "protocol = 'smtp'\naddress = '127.0.0.1:0'\nforward = 'discard:'";
        let listener: Listener = toml::from_str(text).expect("a listener needs no more than this");
        Listener { forward, ..listener }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn learners_are_named_by_their_paths() {
        let parse = |train: &str| Config::parse(&format!("[quarantine.train]\n{train}"), "test");
        assert!(parse("spam = ['/usr/bin/rspamc', 'learn_spam']").is_ok());
        assert!(parse("ham = ['rspamc learn_ham']").unwrap_err().to_string().contains("whole path"));
        assert!(parse("seconds_max = 0").is_err());
    }

    #[test]
    fn a_listener_is_made_for_its_way() {
        assert_eq!(Listener::towards(Forward::Discard).forward, Forward::Discard);
    }
}
