//! `sluice dnsbl reputation`: what the site itself has seen of addresses, in a folder of three files.
//!
//! `ledger` is what was seen; `ip4` and `ip6` are zone files made of it, for `--zone NAME:ip4set:FOLDER/ip4` and
//! `NAME:ip6trie:FOLDER/ip6`. Every command makes them anew, `forget` in particular, which a timer may call so that what has
//! decayed leaves the zone. One command works at a time, or a gateway with `[trust] reputation`; files are replaced, never
//! written to.

use std::fs::{self, File};
use std::net::IpAddr;
use std::path::Path;
use std::process::ExitCode;

use ::dnsbl::reputation::{Event, Ledger, Limits};
use rustix::fs::{FlockOperation, flock};

use super::folder::replace;
use super::load::now;
use crate::cli::{DnsblReputation, ReputationCommand};
use crate::output::Failure;

/// Does what was asked for.
pub fn run(args: &DnsblReputation) -> Result<ExitCode, Failure> {
    let mut limits = Limits::default();
    limits.half_life_seconds = args.half_life.unwrap_or(limits.half_life_seconds);
    limits.threshold = args.threshold.unwrap_or(limits.threshold);
    let mut book = Book::open(&args.folder, limits)?;
    let ledger = &mut book.ledger;
    let code = match &args.command {
        ReputationCommand::Note { address, event } => {
            let event = Event::from_name(event).ok_or_else(|| format!("there is no event {event:?}"))?;
            ledger.note(*address, event, now());
            ExitCode::SUCCESS
        }
        ReputationCommand::Standing { address } => {
            let Some(standing) = ledger.standing(*address, now()) else {
                println!("{address}: no events");
                return Ok(ExitCode::FAILURE);
            };
            let seen: Vec<String> =
                standing.counts.iter().map(|(event, count)| format!("{} {count}", event.name())).collect();
            let listed = if standing.is_listed { "listed" } else { "not listed" };
            println!("{address}: {listed}, score {:.1}, seen: {}", standing.score, seen.join(", "));
            return Ok(if standing.is_listed { ExitCode::SUCCESS } else { ExitCode::FAILURE });
        }
        ReputationCommand::Forgive { address } => {
            let known = ledger.forgive(*address);
            println!("{address}: {}", if known { "forgiven" } else { "no events" });
            if known { ExitCode::SUCCESS } else { ExitCode::FAILURE }
        }
        ReputationCommand::Forget => {
            ledger.forget(now());
            ExitCode::SUCCESS
        }
    };
    book.write()?;
    Ok(code)
}

/// Adds events, each with its time, to the ledger in a folder, forgets what has decayed, and returns what the ledger says now:
/// what others have noted and forgiven meanwhile included.
///
/// # Errors
/// When the folder cannot be used; the message names it.
pub fn settle(folder: &Path, limits: Limits, events: &[(IpAddr, Event, u64)]) -> Result<Ledger, Failure> {
    let mut book = Book::open(folder, limits)?;
    events.iter().for_each(|&(address, event, at)| book.ledger.note(address, event, at));
    book.ledger.forget(now());
    book.write()?;
    Ok(book.ledger)
}

/// The ledger in a folder; nobody else uses it meanwhile.
struct Book<'f> {
    folder: &'f Path,
    ledger: Ledger,
    /// Held until this ends.
    _lock: File,
}

impl Book<'_> {
    fn open(folder: &Path, limits: Limits) -> Result<Book<'_>, Failure> {
        let lock = File::create(folder.join("lock")).map_err(|error| format!("{}: {error}", folder.display()))?;
        flock(&lock, FlockOperation::LockExclusive)?;
        let path = folder.join("ledger");
        let text = match fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
            Err(error) => return Err(format!("{}: {error}", path.display()).into()),
        };
        let (ledger, wrong) = Ledger::read(&text, limits);
        if wrong > 0 {
            eprintln!("sluice: {}: {wrong} wrong lines ignored", path.display());
        }
        Ok(Book { folder, ledger, _lock: lock })
    }

    fn write(&self) -> Result<(), Failure> {
        let (ip4, ip6) = self.ledger.zones(now());
        for (name, text) in [("ledger", self.ledger.write()), ("ip4", ip4), ("ip6", ip6)] {
            replace(self.folder, name, text.as_bytes())
                .map_err(|error| format!("{}: {error}", self.folder.join(name).display()))?;
        }
        Ok(())
    }
}
