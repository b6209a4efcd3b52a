//! The numbers of a running gateway, as Prometheus is shown them.

use std::collections::BTreeMap;
use std::io::{self, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

/// How long the gateway may take to answer.
const ANSWER_WAIT: Duration = Duration::from_secs(5);

/// The longest answer that is read.
const ANSWER_BYTES_MAX: u64 = 1 << 20;

/// The numbers of one moment.
pub struct Sample {
    /// When they were asked for.
    pub at: Instant,
    /// By their names, without the part that all share.
    pub numbers: BTreeMap<String, f64>,
}

/// Asks for the numbers.
///
/// # Errors
/// When nobody answers, or somebody else.
pub fn ask(address: SocketAddr) -> io::Result<Sample> {
    let mut stream = TcpStream::connect_timeout(&address, ANSWER_WAIT)?;
    stream.set_read_timeout(Some(ANSWER_WAIT))?;
    stream.set_write_timeout(Some(ANSWER_WAIT))?;
    stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: sluice\r\nConnection: close\r\n\r\n")?;
    let mut text = String::new();
    stream.take(ANSWER_BYTES_MAX).read_to_string(&mut text)?;
    let numbers = numbers(&text);
    if numbers.is_empty() {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "no numbers of ours"));
    }
    Ok(Sample { at: Instant::now(), numbers })
}

/// The numbers in an answer, without the part of the name that all share.
pub fn numbers(text: &str) -> BTreeMap<String, f64> {
    let lines = text.lines().filter_map(|line| line.strip_prefix("sluice_")?.split_once(' '));
    lines.filter_map(|(name, value)| Some((name.to_string(), value.trim().parse().ok()?))).collect()
}

impl Sample {
    /// A number, or 0.
    pub fn level(&self, name: &str) -> f64 {
        self.numbers.get(name).copied().unwrap_or(0.0)
    }

    /// How much it has grown since; nothing if the gateway began anew in between.
    pub fn growth(&self, before: &Sample, name: &str) -> f64 {
        (self.level(name) - before.level(name)).max(0.0)
    }
}
