//! `[quarantine]`: how long and how much is kept aside.

use std::path::Path;
use std::time::Duration;

use serde::Deserialize;

use super::size::size;

/// `[quarantine]`; it holds for the folder of each listener.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct QuarantineSettings {
    /// Days after which a message goes; 0 means never.
    pub keep_days: u32,
    /// Bytes of all files in one folder; beyond that the oldest messages go. 0 means any.
    #[serde(deserialize_with = "size")]
    pub bytes_max: u64,
    /// Programs that learn from what is kept.
    pub train: Learners,
}

/// `[quarantine.train]`: a program with its arguments, for each of the two things that a message may be. It gets the
/// message on its standard input.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Learners {
    /// Command that learns spam.
    pub spam: Vec<String>,
    /// Command that learns ham.
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
    ///
    /// # Errors
    /// When they cannot; the message says which.
    pub fn check(&self) -> Result<(), String> {
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
