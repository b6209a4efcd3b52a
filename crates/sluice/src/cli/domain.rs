//! `sluice domain`.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args, Subcommand, ValueHint};

use super::{CONFIG, values};

/// `sluice domain`
#[derive(Debug, Args)]
pub struct Domain {
    /// The configuration.
    #[arg(short, long, value_name = "FILE", default_value = CONFIG, value_hint = ValueHint::FilePath, global = true)]
    pub config: PathBuf,
    /// Print JSON, an object a record.
    #[arg(long, global = true)]
    pub json: bool,
    /// Subcommand.
    #[command(subcommand)]
    pub command: DomainCommand,
}

/// Subcommands about the records of a domain.
#[derive(Debug, Subcommand)]
pub enum DomainCommand {
    /// Make the keys of a domain that has none, and print the records that the DNS has to have, as lines of a zone.
    Add {
        /// The domain.
        #[arg(value_parser = values::domain)]
        domain: String,
    },
    /// Look up the records of a domain, and say which are missing or other than they have to be.
    Check {
        /// The domain.
        #[arg(value_parser = values::domain)]
        domain: String,
        /// Ask this resolver. [default: those of `/etc/resolv.conf`]
        #[arg(long = "resolver", value_name = "ADDRESS:PORT")]
        resolvers: Vec<SocketAddr>,
        /// Take the records of this file, lines of a zone, in the place of the DNS.
        #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
        zone: Option<PathBuf>,
        /// How long answers are waited for, in seconds.
        #[arg(long, value_name = "SECONDS", default_value_t = 15)]
        timeout: u64,
    },
}
