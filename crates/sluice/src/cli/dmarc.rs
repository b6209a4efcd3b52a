//! `sluice dmarc`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueHint};

/// `sluice dmarc`
#[derive(Debug, Args)]
pub struct Dmarc {
    /// Command.
    #[command(subcommand)]
    pub command: DmarcCommand,
}

/// Commands for reports.
#[derive(Debug, Subcommand)]
pub enum DmarcCommand {
    /// Print the aggregate reports of files: XML, compressed or in an archive, or whole mails.
    Report {
        /// The files; - is the standard input.
        #[arg(required = true, value_name = "FILE", value_hint = ValueHint::FilePath)]
        files: Vec<PathBuf>,
        /// Print JSON, an object a report.
        #[arg(long)]
        json: bool,
    },
}
