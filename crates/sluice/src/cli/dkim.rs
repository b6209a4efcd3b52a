//! `sluice dkim`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueHint};

use super::{CONFIG, values};

/// `sluice dkim`
#[derive(Debug, Args)]
pub struct Dkim {
    /// The configuration.
    #[arg(short, long, value_name = "FILE", default_value = CONFIG, value_hint = ValueHint::FilePath, global = true)]
    pub config: PathBuf,
    /// Print JSON, an object a key.
    #[arg(long, global = true)]
    pub json: bool,
    /// Subcommand.
    #[command(subcommand)]
    pub command: DkimCommand,
}

/// Subcommands about keys.
#[derive(Debug, Subcommand)]
pub enum DkimCommand {
    /// Make the first keys of a domain, RSA and Ed25519, and print the records that name them. They sign at once.
    Create {
        /// The domain.
        #[arg(value_parser = values::domain)]
        domain: String,
        /// The beginning of their names. [default: the date]
        #[arg(long)]
        selector: Option<String>,
    },
    /// Make further keys of a domain, which sign in a day: publish their records before.
    Rotate {
        /// The domain.
        #[arg(value_parser = values::domain)]
        domain: String,
        /// The beginning of their names. [default: the date]
        #[arg(long)]
        selector: Option<String>,
    },
    /// Print the records of all keys, and which sign.
    List {
        /// Only keys of this domain.
        #[arg(value_parser = values::domain)]
        domain: Option<String>,
    },
    /// Forget a key.
    Remove {
        /// The domain.
        #[arg(value_parser = values::domain)]
        domain: String,
        /// The key.
        selector: String,
    },
}
