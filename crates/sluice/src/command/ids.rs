//! `sluice ids`: intrusion rules of Suricata and Snort counted, explained, and tried on captures.
//!
//! Files are read whole, each within a bound. Data sets that rules name are looked for beside the file of the rules.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use rules::ids::capture;
use rules::ids::{Limits, Loader, Register, RuleSet};
use serde_json::{Value, json};

use crate::cli::{self, IdsCheck, IdsCommand, IdsExplain, IdsLint, IdsRules};
use crate::config::ids::changes;
use crate::eve::captures;
use crate::output::Failure;
use crate::process::confine::Reach;
use crate::process::privileges;

/// Bytes of a capture.
const CAPTURE_BYTES_MAX: u64 = 1 << 30;
/// Files beside rules that may be data sets.
const DATA_FILES_MAX: usize = 1000;
/// Bytes of one of them.
const DATA_BYTES_MAX: u64 = 64 << 20;

/// Does what the command line says.
pub fn run(args: &cli::Ids) -> Result<ExitCode, Failure> {
    privileges::harden()?;
    Reach::reading().confine(&[])?;
    match &args.command {
        IdsCommand::Check(args) => check(args),
        IdsCommand::Lint(args) => lint(args),
        IdsCommand::Explain(args) => explain(args),
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

fn load(files: &[PathBuf], names: &IdsRules) -> Result<RuleSet, Failure> {
    let limits = Limits::default();
    let mut loader = Loader::new(limits);
    for variable in &names.variables {
        let (name, value) = variable.split_once('=').ok_or_else(|| format!("{variable}: not NAME=VALUE"))?;
        loader.variable(name, value);
    }
    if let Some(path) = &names.classes {
        loader.classes(&read(path, limits.file_bytes_max as u64)?);
    }
    let changes = changes([&names.disable, &names.enable, &names.drop, &names.modify])?;
    changes.problems().iter().for_each(|problem| eprintln!("sluice: {problem}"));
    let mut rules: Vec<(Box<str>, Vec<u8>)> = Vec::new();
    for path in files {
        let bytes = read(path, limits.file_bytes_max as u64)?;
        let name = path.to_string_lossy();
        let bytes = if changes.is_empty() { bytes } else { changes.apply(&name, &bytes) };
        if bytes.windows(4).any(|four| four == b"data") {
            data_files(path, &mut loader);
        }
        rules.push((name.into(), bytes));
    }
    if !changes.is_empty() {
        rules::ids::enable_needed(&mut rules);
    }
    rules.iter().for_each(|(name, bytes)| loader.file(name, bytes));
    if let Some(path) = &names.thresholds {
        loader.thresholds(&path.to_string_lossy(), &read(path, limits.file_bytes_max as u64)?);
    }
    Ok(loader.finish())
}

/// Hands in the files beside a file of rules: rules name data sets among them.
fn data_files(rules: &Path, loader: &mut Loader) {
    let folder = rules.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let Ok(entries) = folder.read_dir() else { return };
    for entry in entries.flatten().take(DATA_FILES_MAX) {
        let is_data =
            matches!(entry.path().extension().and_then(|end| end.to_str()), Some("lst" | "csv" | "list" | "txt"));
        if is_data && let (Some(name), Ok(bytes)) = (entry.file_name().to_str(), read(&entry.path(), DATA_BYTES_MAX)) {
            loader.data_file(name, bytes);
        }
    }
}

fn lint(args: &IdsLint) -> Result<ExitCode, Failure> {
    let set = load(&args.rules, &args.names)?;
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
                "rules": census.rules, "active": census.active, "idle": census.idle, "skipped": census.skipped,
                "refused": census.refused, "repeated": census.repeated, "always": census.always, "problems": problems,
            })
        );
        return Ok(ExitCode::from(u8::from(refused > 0)));
    }
    set.problems().iter().for_each(|problem| println!("{problem}"));
    println!("{} rules, {} of them active", census.rules, census.active);
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

fn check(args: &IdsCheck) -> Result<ExitCode, Failure> {
    let set = load(&args.rules, &args.names)?;
    if !set.problems().is_empty() {
        eprintln!("sluice: {} rules do not load: sluice ids lint names them", set.problems().len());
    }
    let capture = read(&args.pcap, CAPTURE_BYTES_MAX)?;
    let observed = capture::observe(&set, &capture);
    let (seen, records) = observed.ok_or_else(|| format!("{}: no capture", args.pcap.display()))?;
    let register = Register::of(&set);
    for seen in &seen {
        if let Some(entry) = register.get(seen.rule) {
            println!("{}", captures::alert(entry, seen));
        }
    }
    if args.records {
        records.iter().for_each(|record| println!("{}", captures::message(record)));
    }
    Ok(ExitCode::from(u8::from(!seen.is_empty())))
}

fn explain(args: &IdsExplain) -> Result<ExitCode, Failure> {
    let set = load(&args.rules, &args.names)?;
    let rule = set.rules().iter().find(|rule| rule.sid == args.sid);
    let Some(rule) = rule else {
        let number = format!("no rule {} is loaded: sluice ids lint names what does not load", args.sid);
        return Err(number.into());
    };
    println!("{}: {}", rule.place, rule.message);
    println!("action {}, priority {}, class {}", rule.action.name(), rule.priority, rule.category);
    println!("{} tests in {}", rule.tests(), rule.buffers().join(", "));
    if let Some(keyword) = &rule.idle {
        println!("never matches here, because of {keyword}");
    }
    Ok(ExitCode::SUCCESS)
}
