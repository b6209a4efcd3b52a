//! `sluice dnsbl check` and `why`: what zone files hold, and what they say of an address or name.

use std::net::IpAddr;
use std::path::Path;
use std::process::ExitCode;

use ::dnsbl::answer::{Options, Scratch, Transport, respond};
use ::dnsbl::zone::Spec;
use proto::dns::{Data, Message, Name, Request, class, kind};

use super::load::{Loaded, now};
use crate::cli::{DnsblCheck, DnsblWhy};
use crate::config::Config;
use crate::output::Failure;

/// The zones of the command line, or else of a configuration.
fn named(zones: &[Spec], config: Option<&Path>) -> Result<Vec<Spec>, Failure> {
    Ok(match config {
        Some(config) if zones.is_empty() => Config::read(config)?.dnsbl.zones,
        _ => zones.to_vec(),
    })
}

/// Reads zones and says what they hold. Exit status 1 if lines are wrong.
pub fn check(args: &DnsblCheck) -> Result<ExitCode, Failure> {
    let mut loaded = Loaded::default();
    let mut warnings = 0;
    for report in loaded.refresh(&named(&args.zones, args.config.as_deref())?) {
        report.warnings.iter().for_each(|warning| eprintln!("{warning}"));
        let dataset = report.outcome?;
        warnings += report.warning_count;
        println!(
            "{}: {} listings, {} bytes, {} ms, {} lines ignored",
            report.files,
            dataset.len(),
            dataset.memory_bytes(),
            report.milliseconds,
            report.warning_count
        );
    }
    Ok(if warnings > 0 { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// Says what each zone answers for an address or name. Exit status 1 if no zone lists it.
pub fn why(args: &DnsblWhy) -> Result<ExitCode, Failure> {
    let mut loaded = Loaded::default();
    let zones = named(&args.zones, args.config.as_deref())?;
    for report in loaded.refresh(&zones) {
        report.outcome?;
    }
    let zones = loaded.zones(&zones);
    let mut listed = false;
    for zone in zones.zones() {
        let name = below(&args.what, &zone.name)?;
        let packet = Request::new(1, name, kind::ANY, class::IN).packet();
        let from = (IpAddr::from([127, 0, 0, 1]), Transport::Tcp);
        let mut out = Vec::new();
        respond(&zones, &Options::default(), &packet, from, now(), &mut Scratch::default(), &mut out);
        let answers = Message::parse(&out)?.answers;
        listed |= !answers.is_empty();
        for record in &answers {
            match (&record.data, record.text()) {
                (Data::A(address), _) => println!("{}: {address}", zone.name),
                (_, Some(text)) => println!("{}: \"{}\"", zone.name, String::from_utf8_lossy(&text)),
                _ => {}
            }
        }
        if answers.is_empty() {
            println!("{}: not listed", zone.name);
        }
    }
    Ok(if listed { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Name to ask a zone for: the reversed octets or nibbles of an address, or a name, below the zone.
fn below(what: &str, zone: &Name) -> Result<Name, Failure> {
    let front = match what.parse::<IpAddr>() {
        Ok(IpAddr::V4(address)) => {
            let [a, b, c, d] = address.octets();
            format!("{d}.{c}.{b}.{a}")
        }
        Ok(IpAddr::V6(address)) => {
            let bits = address.to_bits();
            (0..32).map(|at| format!("{:x}", bits >> (4 * at) & 15)).collect::<Vec<_>>().join(".")
        }
        Err(_) => what.trim_end_matches('.').to_owned(),
    };
    Ok(format!("{front}.{zone}").parse()?)
}
