//! The log: `tracing` lines on the standard error, for people or as JSON.
//!
//! One line a message says what was decided and why. No content of mail and no credentials are logged; addresses are.

use std::io::IsTerminal;

use tracing_subscriber::EnvFilter;

use crate::config::{Log, LogFormat, LogLevel};

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
    let lines = tracing_subscriber::fmt().with_env_filter(filter).with_target(false).with_writer(std::io::stderr);
    // A second start (in tests) keeps the first log.
    let _ = match settings.format {
        LogFormat::Human => lines.with_ansi(std::io::stderr().is_terminal()).try_init(),
        LogFormat::Json => lines.json().flatten_event(true).with_current_span(false).try_init(),
    };
}
