//! The log: `tracing` lines on the standard error, for people or as JSON; or as records of the journal ([`journal`]).
//!
//! Lines that go to the journal begin with their priority (sd-daemon(3)), which the journal takes away: `journalctl -p
//! warning` works for them, too. One line a message says what was decided and why. No content of mail and no credentials are logged; addresses are.

mod journal;

use std::fmt::{self, Write as _};
use std::io::{self, IsTerminal, Write};
use std::path::Path;

use text::hazard::{self, is_hazard};
use tracing::Metadata;
use tracing::field::Field;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::field::MakeExt as _;
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::fmt::format::{self, Writer};

use self::journal::{Journal, Journaled};
use crate::config::{Log, LogFormat, LogLevel};

pub use self::journal::SOCKET;

/// Starts the log. `SLUICE_LOG` overrides the level, in `tracing`'s filter language.
pub fn start(settings: &Log) {
    let level = match settings.level {
        LogLevel::Error => "error",
        LogLevel::Warn => "warn",
        LogLevel::Info => "info",
        LogLevel::Debug => "debug",
        LogLevel::Trace => "trace",
    };
    let filter = EnvFilter::try_from_env("SLUICE_LOG").unwrap_or_else(|_| EnvFilter::new(level));
    let lines = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_target(false)
        .with_writer(Lines { of_journal: goes_to_journal() });
    let journal = journal_of(settings);
    // A second start (in tests) keeps the first log.
    let _ = match settings.format {
        LogFormat::Human => {
            let fields = format::debug_fn(write_field).delimited(" ");
            // Lines are made apart from the writer that would know.
            let ansi = std::io::stderr().is_terminal();
            let lines = lines.with_ansi(ansi).fmt_fields(fields).map_event_format(|inner| inner.with_ansi(ansi));
            lines.map_event_format(|inner| Journaled { inner, journal, written: hazard::line }).try_init()
        }
        LogFormat::Json => {
            let lines = lines.json().flatten_event(true).with_current_span(false);
            lines.map_event_format(|inner| Journaled { inner, journal, written: hazard::json }).try_init()
        }
    };
}

/// The journal that is configured; if none is, the system's where the standard error is its own.
fn journal_of(settings: &Log) -> Option<Journal> {
    let path = match settings.journal.as_deref() {
        Some(path) => Some(path).filter(|path| *path != Path::new(Log::NO_JOURNAL)),
        None => goes_to_journal().then_some(Path::new(journal::SOCKET)),
    };
    Journal::at(path?).inspect_err(|error| eprintln!("sluice: lines in place of journal records: {error}")).ok()
}

/// Whether the standard error is the journal's (systemd.exec(5), `JOURNAL_STREAM`).
fn goes_to_journal() -> bool {
    let Some(named) = std::env::var("JOURNAL_STREAM").ok() else { return false };
    rustix::fs::fstat(io::stderr()).is_ok_and(|facts| named == format!("{}:{}", facts.st_dev, facts.st_ino))
}

/// Writes each line at once.
struct Lines {
    of_journal: bool,
}

/// One line, and what stands in front of it.
struct Line(Option<u8>);

impl<'a> MakeWriter<'a> for Lines {
    type Writer = Line;

    fn make_writer(&'a self) -> Line {
        Line(None)
    }

    fn make_writer_for(&'a self, about: &Metadata<'_>) -> Line {
        Line(self.of_journal.then(|| journal::priority(*about.level())))
    }
}

impl Write for Line {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let priority = self.0.map(|priority| format!("<{priority}>")).unwrap_or_default();
        io::stderr().write_all(&[priority.as_bytes(), line].concat())?;
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Writes a field so that `sluice log` finds where it ends, whatever strangers have put into it: bare where it has neither blanks
/// nor quotes, else as a string of Rust's.
fn write_field(writer: &mut Writer<'_>, field: &Field, value: &dyn fmt::Debug) -> fmt::Result {
    if field.name() == "message" {
        return write!(writer, "{value:?}");
    }
    // As long as most are, so that it does not grow piece by piece.
    let mut text = String::with_capacity(FIELD_BYTES);
    write!(text, "{value:?}")?;
    writer.write_str(field.name())?;
    writer.write_str("=")?;
    match is_bare(&text) || is_one_string(&text) {
        true => writer.write_str(&text),
        false => write!(writer, "{text:?}"),
    }
}

/// Room for the text of a field.
const FIELD_BYTES: usize = 128;

fn is_bare(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| !c.is_whitespace() && !is_hazard(c) && c != '"')
}

/// Whether a text is one string in quotes, and nothing else.
fn is_one_string(text: &str) -> bool {
    let Some(inner) = text.strip_prefix('"').and_then(|text| text.strip_suffix('"')) else { return false };
    let mut escaped = false;
    let ends_within = inner.chars().any(|c| {
        let ends = c == '"' && !escaped || is_hazard(c);
        escaped = c == '\\' && !escaped;
        ends
    });
    text.len() > 1 && !ends_within && !escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_strangers_write_stays_within_its_field() {
        for (text, bare, one) in [
            ("127.0.0.1", true, false),
            ("<a@b>", true, false),
            ("<a b@c>", false, false),
            (r#""a b""#, false, true),
            (r#""a\"b""#, false, true),
            (r#""a" to="b""#, false, false),
            (r#""a\\" b""#, false, false),
            (r#""a\""#, false, false),
            ("\"", false, false),
            ("<a\u{202e}b>", false, false),
            ("\"a\u{2028}b\"", false, false),
            ("<a\u{9b}b\u{7f}>", false, false),
            ("", false, false),
        ] {
            assert_eq!((is_bare(text), is_one_string(text)), (bare, one), "{text}");
        }
    }
}
