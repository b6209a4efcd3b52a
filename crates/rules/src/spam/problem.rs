//! Problems of a configuration, and their places.

use std::fmt;
use std::sync::Arc;

/// A line of a file.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Place {
    /// The file, as the host called it.
    pub file: Arc<str>,
    /// The line, from 1; 0 speaks of the whole file.
    pub line: u32,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => write!(f, "{}", self.file),
            line => write!(f, "{}:{line}", self.file),
        }
    }
}

/// How bad a problem is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// A line or a rule has no effect, or not the one that was meant: the check fails.
    Error,
    /// Something is without effect on purpose or by default: the check passes.
    Note,
}

/// Something that is wrong, with what to do about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// How bad it is.
    pub severity: Severity,
    /// Where.
    pub place: Place,
    /// The rule that it is about.
    pub rule: Option<Box<str>>,
    /// Error text, without line breaks.
    pub reason: String,
    /// Advice.
    pub advice: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let severity = match self.severity {
            Severity::Error => "error",
            Severity::Note => "note",
        };
        write!(f, "{}: {severity}: ", self.place)?;
        if let Some(rule) = &self.rule {
            write!(f, "{rule}: ")?;
        }
        f.write_str(&self.reason)?;
        if !self.advice.is_empty() {
            write!(f, "; {}", self.advice)?;
        }
        Ok(())
    }
}

/// Why something could not be read, and what to do about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// Error text.
    pub reason: String,
    /// Advice.
    pub advice: &'static str,
}

impl Fault {
    /// A fault for which `advice` helps.
    pub fn new(reason: impl Into<String>, advice: &'static str) -> Fault {
        Fault { reason: reason.into(), advice }
    }
}

/// Bytes of a configuration as a message shows them: on one line, and no longer than a few words.
pub fn shown(bytes: &[u8]) -> String {
    const BYTES_MAX: usize = 60;
    let mut text: String = String::from_utf8_lossy(bytes.get(..BYTES_MAX).unwrap_or(bytes)).into_owned();
    text = text.chars().map(|c| if c.is_control() { '?' } else { c }).collect();
    if bytes.len() > BYTES_MAX {
        text.push_str("...");
    }
    text
}
