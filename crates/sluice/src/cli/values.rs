//! Values of options and keys: numbers, sizes, times, states, kinds.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use clap::{Arg, ValueHint, value_parser};
use edge::quarantine::State;

/// The option `-c` of commands without one of their own.
pub fn config() -> Arg {
    let option = Arg::new("config").short('c').long("config").value_name("FILE").global(true);
    let option = option.value_parser(value_parser!(PathBuf)).value_hint(ValueHint::FilePath);
    option.help("The configuration, for commands that read one")
}

/// A number.
pub fn number<T: std::str::FromStr>(value: &str) -> Result<T, String> {
    value.parse().map_err(|_| format!("{value:?} is not a valid number"))
}

/// Bytes, with `K`, `M` or `G` behind the number.
pub fn size(value: &str) -> Result<u64, String> {
    let (digits, unit) = match value.as_bytes().last() {
        Some(b'k' | b'K') => (&value[..value.len() - 1], 1 << 10),
        Some(b'm' | b'M') => (&value[..value.len() - 1], 1 << 20),
        Some(b'g' | b'G') => (&value[..value.len() - 1], 1 << 30),
        _ => (value, 1),
    };
    let bytes = number::<u64>(digits)?.checked_mul(unit);
    bytes.ok_or_else(|| format!("{value:?} is too much"))
}

/// A domain as the DNS has it: ASCII letters in lower case, other letters in their ASCII form (UTS 46), without the dot at the end.
///
/// # Errors
/// When it is none.
pub fn domain(text: &str) -> Result<String, String> {
    let ascii = ::text::host::mapped(text.trim().trim_end_matches('.'));
    let is_label = |label: &str| {
        (1..=63).contains(&label.len())
            && !label.starts_with('-')
            && !label.ends_with('-')
            && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
    };
    // The last label of an address is a number, that of a domain never.
    let is_name =
        |ascii: &str| ascii.rsplit('.').next().is_some_and(|last| last.bytes().any(|byte| !byte.is_ascii_digit()));
    match ascii {
        Some(ascii) if ascii.len() <= 253 && ascii.split('.').all(is_label) && is_name(&ascii) => Ok(ascii),
        _ => Err(format!("{text:?} is not a domain: letters, digits and hyphens, between dots")),
    }
}

/// Reads `90s`, `15m`, `12h`, `7d`, `4w`.
pub fn duration(text: &str) -> Result<Duration, String> {
    let wrong = || format!("{text:?} is not a time: a number with s, m, h, d or w");
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

/// Reads the address of a resolver, whose port is 53 where none is given.
pub fn resolver(text: &str) -> Result<SocketAddr, String> {
    let with_port = text.parse().or_else(|_| text.parse().map(|address: IpAddr| SocketAddr::new(address, 53)));
    with_port.map_err(|_| format!("{text:?} is no address"))
}

/// How far a message has come, as it is typed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Stage {
    /// No recipient has the message.
    Held,
    /// Some of its recipients have it.
    Partly,
    /// All of its recipients have it.
    Released,
}

impl Stage {
    /// The state that is meant.
    pub const fn state(self) -> State {
        match self {
            Stage::Held => State::Held,
            Stage::Partly => State::Partly,
            Stage::Released => State::Released,
        }
    }
}

/// Kind of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Kind {
    /// Unwanted.
    Spam,
    /// Wanted.
    Ham,
}

impl Kind {
    /// Its name in commands and files.
    pub const fn name(self) -> &'static str {
        match self {
            Kind::Spam => "spam",
            Kind::Ham => "ham",
        }
    }
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
}
