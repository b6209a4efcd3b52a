//! `sluice dnsbl`: chooses the subcommand.

use std::process::ExitCode;

use super::{fetch, publish, reputation, serve, tell};
use crate::cli::{Dnsbl, DnsblCommand};
use crate::output::Failure;

/// Does what was asked for.
pub fn run(args: &Dnsbl) -> Result<ExitCode, Failure> {
    match &args.command {
        DnsblCommand::Serve(args) => serve::run(args),
        DnsblCommand::Check(args) => tell::check(args),
        DnsblCommand::Why(args) => tell::why(args),
        DnsblCommand::Reputation(args) => reputation::run(args),
        DnsblCommand::Publish(args) => publish::run(args),
        DnsblCommand::Fetch(args) => fetch::run(args),
    }
}
