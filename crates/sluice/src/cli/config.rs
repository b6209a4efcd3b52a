//! `sluice config`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueHint};

use super::CONFIG;

/// The commands of `sluice config`.
#[derive(Debug, Subcommand)]
pub enum ConfigCommand {
    /// Print the keys that are set, with their values, files and lines, included files too. Without --all defaults are not printed.
    ///
    /// Passwords that stand in the configuration itself are hidden. Exit status: 0 it is right, 2 it is not.
    Show(ConfigShow),
}

/// `sluice config show`
#[derive(Debug, Args)]
pub struct ConfigShow {
    /// The configuration.
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath, default_value = CONFIG)]
    pub config: PathBuf,
    /// Print every key: those that are not set with their defaults. A default that depends on others is in brackets, in words.
    #[arg(long, conflicts_with = "changed")]
    pub all: bool,
    /// Print only the keys whose values are not the defaults.
    #[arg(long)]
    pub changed: bool,
    /// Print a JSON object for each key, a line each.
    #[arg(long)]
    pub json: bool,
}
