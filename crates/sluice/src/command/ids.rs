//! `sluice ids`: intrusion rules of Suricata and Snort counted, explained, and tried on captures and on interfaces.
//!
//! Files are read whole, each within a bound. Data sets that rules name are looked for beside the file of the rules.

mod explain;
mod sniff;

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use inspect::IntrusionRules;
use rules::ids::capture::Unread;
use rules::ids::{Register, RuleSet, capture};
use serde_json::{Value, json};

use crate::cli::{self, IdsCheck, IdsCommand, IdsLint, IdsRules};
use crate::config::Config;
use crate::config::ids::IdsSettings;
use crate::eve::captures;
use crate::output::Failure;
use crate::process::confine::Reach;
use crate::process::privileges;

/// Bytes of a capture.
const CAPTURE_BYTES_MAX: u64 = 1 << 30;

/// Does what the command line says.
pub fn run(args: &cli::Ids) -> Result<ExitCode, Failure> {
    privileges::harden()?;
    Reach::reading().confine(&[])?;
    match &args.command {
        IdsCommand::Check(args) => check(args),
        IdsCommand::Sniff(args) => sniff::run(args),
        IdsCommand::Lint(args) => lint(args),
        IdsCommand::Explain(args) => explain::run(args),
    }
}

fn read(path: &Path, bytes_max: u64) -> Result<Vec<u8>, Failure> {
    let mut bytes = Vec::new();
    let told = |error: std::io::Error| format!("{}: {error}", path.display());
    File::open(path).map_err(told)?.take(bytes_max + 1).read_to_end(&mut bytes).map_err(told)?;
    if bytes.len() as u64 > bytes_max {
        return Err(format!("{}: the file is too large", path.display()).into());
    }
    Ok(bytes)
}

/// Settings as the command line has them.
fn settings(rules: &[PathBuf], names: &IdsRules) -> Result<IdsSettings, Failure> {
    let pair = |variable: &String| {
        let (name, value) = variable.split_once('=').ok_or_else(|| format!("{variable}: not NAME=VALUE"))?;
        Ok::<_, Failure>((name.to_owned(), value.to_owned()))
    };
    Ok(IdsSettings {
        rules: rules.into(),
        variables: names.variables.iter().map(pair).collect::<Result<_, _>>()?,
        classification: names.classes.clone(),
        thresholds: names.thresholds.iter().cloned().collect(),
        disable: names.disable.clone(),
        enable: names.enable.clone(),
        drop: names.drop.clone(),
        modify: names.modify.clone(),
        ..IdsSettings::default()
    })
}

/// Settings of rules that are named, or else of a configuration.
fn settings_of(rules: &[PathBuf], names: &IdsRules, config: Option<&Path>) -> Result<IdsSettings, Failure> {
    match rules {
        [] => Ok(Config::read(config.unwrap_or(cli::CONFIG.as_ref()))?.ids.unwrap_or_default()),
        rules => settings(rules, names),
    }
}

fn load(rules: &[PathBuf], names: &IdsRules, config: Option<&Path>) -> Result<IntrusionRules, Failure> {
    let settings = settings_of(rules, names, config)?;
    let changes = settings.changes()?;
    changes.problems().iter().for_each(|problem| eprintln!("sluice: {problem}"));
    Ok(settings.collect(&changes)?.compile())
}

fn lint(args: &IdsLint) -> Result<ExitCode, Failure> {
    let rules = load(&args.rules, &args.names, args.config.as_deref())?;
    let set = rules.set();
    let census = set.census();
    let refused: usize = census.refused.values().sum();
    if args.json {
        let problem = |problem: &rules::ids::Problem| {
            json!({
                "file": &*problem.place.file,
                "line": problem.place.line,
                "keyword": problem.rule.as_deref(),
                "reason": problem.reason,
            })
        };
        let problems: Vec<Value> = set.problems().iter().map(problem).collect();
        println!(
            "{:#}",
            json!({
                "rules": census.rules, "active": census.active, "snort3": census.snort3, "idle": census.idle,
                "skipped": census.skipped,
                "refused": census.refused, "repeated": census.repeated, "always": census.always, "problems": problems,
            })
        );
        return Ok(ExitCode::from(u8::from(refused > 0)));
    }
    set.problems().iter().for_each(|problem| println!("{problem}"));
    println!("{} rules, {} of them active", census.rules, census.active);
    if census.snort3 > 0 {
        println!("{} are read as rules of Snort 3", census.snort3);
    }
    println!(
        "{} are tried each time, since no text selects them; {} have another revision",
        census.always, census.repeated
    );
    for (what, counts) in [
        ("never match here", &census.idle),
        ("need what is not there", &census.skipped),
        ("do not load", &census.refused),
    ] {
        let total: usize = counts.values().sum();
        println!("{total} {what}");
        counts.iter().for_each(|(keyword, count)| println!("  {count:6} {}", keyword.replace(char::is_control, "?")));
    }
    Ok(ExitCode::from(u8::from(refused > 0)))
}

/// Says how many rules do not load, and names what else is wrong.
fn warn(set: &RuleSet) {
    let refused: usize = set.census().refused.values().sum();
    if refused > 0 {
        eprintln!("sluice: {refused} rules do not load: sluice ids lint names them");
    }
    let others = set.problems().iter().filter(|problem| problem.rule.is_none());
    others.for_each(|problem| eprintln!("sluice: {problem}"));
}

/// Says how many packets were not read, of which kinds.
fn tell_unread(unread: &Unread) {
    if unread.counts().next().is_some() {
        eprintln!("sluice: packets that were not read: {unread}");
    }
}

fn check(args: &IdsCheck) -> Result<ExitCode, Failure> {
    let rules = load(&args.rules, &args.names, args.config.as_deref())?;
    let set = rules.set();
    warn(set);
    let capture = read(&args.pcap, CAPTURE_BYTES_MAX)?;
    let observed = capture::observe(set, &capture);
    let observed = observed.ok_or_else(|| format!("{}: no capture", args.pcap.display()))?;
    if observed.rest > 0 {
        eprintln!("sluice: {}: {} bytes at the end are no packet", args.pcap.display(), observed.rest);
    }
    tell_unread(&observed.unread);
    let register = Register::of(set);
    for seen in &observed.alerts {
        if let Some(entry) = register.get(seen.rule) {
            println!("{}", captures::alert(entry, seen));
        }
    }
    if args.records {
        observed.records.iter().for_each(|record| println!("{}", captures::message(record)));
    }
    Ok(ExitCode::from(u8::from(!observed.alerts.is_empty())))
}
