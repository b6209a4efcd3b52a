//! The order for one run: a line of `key=value` words.
//!
//! | key | meaning | default |
//! |---|---|---|
//! | `target` | where the mails go, HOST:PORT | required |
//! | `manifest` | file of lines `PATH PAYLOAD_BYTES`; mail *i* is line *i* modulo their number | one of the two |
//! | `generate` | size of a mail that is made on the fly, in bytes | is required |
//! | `mails`, `senders` | how many mails in all, how many sessions at a time | 1, 1 |
//! | `mails_per_connection` | mails before QUIT | 1 |
//! | `pipelining` | MAIL, RCPT and DATA are sent at once (RFC 2920): `yes` or `no` | `no` |
//! | `login` | the response of AUTH PLAIN with which each session logs in | none |
//! | `bytes_per_second` | pace of each session's content; 0: as fast as it goes | 0 |
//! | `wait` | a sender goes on when its mail has reached the sink (`sink`) or was accepted (`reply`) | `reply` |
//! | `timeout` | seconds after which the run ends as it stands | 60 |

use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use crate::mail::Source;

/// What one run does.
pub struct Run {
    /// The gateway under test.
    pub target: SocketAddr,
    /// The mails.
    pub source: Source,
    /// Mails in all.
    pub mails: usize,
    /// Sessions at a time.
    pub senders: usize,
    /// Mails on one connection.
    pub mails_per_connection: usize,
    /// Whether a mail's commands are sent at once.
    pub pipelining: bool,
    /// The response of AUTH PLAIN, if sessions log in.
    pub login: Option<String>,
    /// Pace of each session's content, if any.
    pub bytes_per_second: Option<f64>,
    /// Whether a sender waits until its mail has reached the sink.
    pub waits_for_sink: bool,
    /// When the run ends, whatever is missing.
    pub timeout: Duration,
}

impl Run {
    /// Reads an order and the mails that it names.
    ///
    /// # Errors
    /// A sentence that names the key, or the file.
    pub fn parse(line: &str) -> Result<Run, String> {
        let words = || line.split_whitespace().map(|word| word.split_once('=').unwrap_or((word, "")));
        if let Some((key, _)) = words().find(|(key, _)| !KEYS.contains(key)) {
            return Err(format!("{key}: unknown key"));
        }
        let value = |key: &str| words().find(|(name, _)| *name == key).map(|(_, value)| value);
        let number = |key: &str, default: u64| match value(key).map(str::parse) {
            None => Ok(default),
            Some(Ok(number)) => Ok(number),
            Some(Err(_)) => Err(format!("{key}: not a whole number")),
        };
        let count = |key: &str| number(key, 1).map(|number| usize::try_from(number).unwrap_or(usize::MAX).max(1));
        let source = match (value("manifest"), value("generate")) {
            (Some(path), None) => Source::read(Path::new(path))?,
            (None, Some(_)) => Source::Generated { bytes: number("generate", 0)? },
            _ => return Err("either manifest or generate".into()),
        };
        let pace = number("bytes_per_second", 0)?;
        Ok(Run {
            target: crate::address(value("target").ok_or("target is missing")?)?,
            source,
            mails: count("mails")?,
            senders: count("senders")?,
            mails_per_connection: count("mails_per_connection")?,
            pipelining: value("pipelining") == Some("yes"),
            login: value("login").map(str::to_owned),
            bytes_per_second: (pace > 0).then_some(pace as f64),
            waits_for_sink: value("wait") == Some("sink"),
            timeout: Duration::from_secs(number("timeout", 60)?),
        })
    }
}

const KEYS: [&str; 11] = [
    "target",
    "manifest",
    "generate",
    "mails",
    "senders",
    "mails_per_connection",
    "pipelining",
    "login",
    "bytes_per_second",
    "wait",
    "timeout",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_becomes_a_run() {
        let run = Run::parse("target=127.0.0.1:25 generate=1000 senders=16 bytes_per_second=5 wait=sink").unwrap();
        assert_eq!((run.mails, run.senders, run.waits_for_sink), (1, 16, true));
        assert_eq!(run.bytes_per_second, Some(5.0));
    }

    #[test]
    fn a_misspelt_key_is_refused() {
        assert_eq!(Run::parse("target=127.0.0.1:25 generate=1 mail=5").err().unwrap(), "mail: unknown key");
    }
}
