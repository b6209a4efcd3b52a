//! `sluice quarantine`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand, ValueHint};
use edge::settings::Forward;

use super::CONFIG;
use crate::cli::values::{self, Kind, Stage};

/// `sluice quarantine`
#[derive(Debug, Args)]
pub struct Quarantine {
    /// The configuration that names the quarantine folders.
    #[arg(short, long, value_name = "FILE", default_value = CONFIG, value_hint = ValueHint::FilePath, global = true)]
    pub config: PathBuf,
    /// Use this quarantine folder, and no configuration.
    #[arg(long, value_name = "PATH", value_hint = ValueHint::DirPath)]
    pub folder: Option<PathBuf>,
    /// Subcommand.
    #[command(subcommand)]
    pub command: QuarantineCommand,
}

/// The commands of `sluice quarantine`.
#[derive(Debug, Subcommand)]
pub enum QuarantineCommand {
    /// List messages: id, date, state, size, sender, recipients, first finding.
    List {
        /// Messages to list; default all.
        #[command(flatten)]
        selection: Selection,
        /// Print one JSON object per message.
        #[arg(long)]
        json: bool,
    },
    /// Show a message: its metadata and its header.
    Show {
        /// The id.
        id: String,
        /// Print the metadata as JSON.
        #[arg(long, conflicts_with = "raw")]
        json: bool,
        /// Print the message as it was received.
        #[arg(long)]
        raw: bool,
    },
    /// Deliver messages to recipients that have not received them yet, with the original envelope and without another
    /// inspection. They stay in the quarantine, marked as released, until they are deleted or expire.
    Release {
        /// Messages to act on.
        #[command(flatten)]
        selection: Selection,
        /// Deliver to this next hop instead of the original one: smtp://HOST:PORT, lmtp:/PATH and so on.
        #[arg(long)]
        hop: Option<Forward>,
        /// Deliver again to recipients that have received them.
        #[arg(long)]
        again: bool,
    },
    /// Train a spam filter with messages, as configured in `[quarantine.train]`.
    Train {
        /// spam or ham.
        kind: Kind,
        /// Messages to act on.
        #[command(flatten)]
        selection: Selection,
        /// Print one JSON object per message.
        #[arg(long)]
        json: bool,
    },
    /// Delete messages.
    Delete {
        /// Messages to act on.
        #[command(flatten)]
        selection: Selection,
    },
}

/// Filters for quarantined messages; all must match.
#[derive(Debug, Default, Args)]
pub struct Selection {
    /// Messages with these ids.
    #[arg(value_name = "ID")]
    pub ids: Vec<String>,
    /// Messages at least this old: 90s, 15m, 12h, 7d, 4w.
    #[arg(long, value_name = "TIME", value_parser = values::duration)]
    pub older: Option<Duration>,
    /// Messages younger than this.
    #[arg(long, value_name = "TIME", value_parser = values::duration)]
    pub newer: Option<Duration>,
    /// Messages whose sender contains this text; <> is the null sender.
    #[arg(long, value_name = "TEXT")]
    pub from: Option<String>,
    /// Messages with a recipient that contains this text.
    #[arg(long, value_name = "TEXT")]
    pub to: Option<String>,
    /// Messages with a finding that contains this text.
    #[arg(long, value_name = "TEXT")]
    pub found: Option<String>,
    /// Messages in this state.
    #[arg(long)]
    pub state: Option<Stage>,
}
