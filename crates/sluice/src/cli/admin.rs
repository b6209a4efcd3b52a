//! `sluice admin`.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args, Subcommand, ValueHint};

use super::CONFIG;

/// `sluice admin`
#[derive(Debug, Args)]
pub struct Admin {
    /// What to do.
    #[command(subcommand)]
    pub command: AdminCommand,
}

/// What can be done with the administrator's page.
#[derive(Debug, Subcommand)]
pub enum AdminCommand {
    /// Serve the page, in the foreground. Prints a link that logs in one browser, once, within an hour.
    ///
    /// Numbers come from the address in `[metrics]`, kept messages from the quarantines of the configuration. Each change that is made is
    /// a line on the standard error. Ends at SIGTERM.
    Serve(AdminServe),
    /// Print the description of the HTTP interface: OpenAPI 3.1, JSON.
    Openapi,
}

/// `sluice admin serve`
#[derive(Debug, Args)]
pub struct AdminServe {
    /// The configuration of the gateway.
    #[arg(short, long, value_name = "FILE", default_value = CONFIG, value_hint = ValueHint::FilePath)]
    pub config: PathBuf,
    /// Where browsers come in. Over another network than the loopback put a proxy with TLS in front.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:2082")]
    pub listen: SocketAddr,
    /// Where the numbers are; default: those of the configuration.
    #[arg(long, value_name = "ADDRESS")]
    pub metrics: Option<SocketAddr>,
    /// Programs log in with what this file holds: `Authorization: Bearer ...`, at least 32 characters.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub token_file: Option<PathBuf>,
    /// Nothing can be changed.
    #[arg(long)]
    pub read_only: bool,
}
