//! `sluice config`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueHint};

/// The commands of `sluice config`.
#[derive(Debug, Subcommand)]
pub enum ConfigCommand {
    /// Print the keys that are set, with their values, files and lines, included files too. Defaults are not printed.
    ///
    /// Passwords that stand in the configuration itself are hidden. Exit status: 0 it is right, 2 it is not.
    Show(ConfigShow),
}

/// `sluice config show`
#[derive(Debug, Args)]
pub struct ConfigShow {
    /// The configuration.
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath, default_value = "/etc/sluice/sluice.toml")]
    pub config: PathBuf,
    /// Print a JSON object for each key, a line each.
    #[arg(long)]
    pub json: bool,
}
