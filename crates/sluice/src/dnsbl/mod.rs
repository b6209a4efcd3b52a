//! `sluice dnsbl`: block lists over DNS.
//!
//! `serve` answers for zones of rbldnsd's kind ([`serve`]), `check` reads them and says what they hold, `why` says what
//! lists an address, `reputation` keeps what the site itself has seen.

mod load;
mod notify;
mod reputation;
mod serve;
mod settings;
mod tcp;
mod tell;
mod udp;

use std::process::ExitCode;

pub use settings::Settings;

use crate::Failure;
use crate::cli::{Dnsbl, DnsblCommand};

/// Does what was asked for.
pub fn run(args: &Dnsbl) -> Result<ExitCode, Failure> {
    match &args.command {
        DnsblCommand::Serve(args) => serve::run(args),
        DnsblCommand::Check(args) => tell::check(args),
        DnsblCommand::Why(args) => tell::why(args),
        DnsblCommand::Reputation(args) => reputation::run(args),
    }
}
