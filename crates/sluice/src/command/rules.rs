//! `sluice rules`: what a configuration of SpamAssassin holds, what is wrong with it, and which rules cannot hit.
//!
//! Problems come as `FILE:LINE: error: RULE: reason; what to do`. Files are read whole, each within a bound, and no mail is
//! looked at: plugins are known by name, and their code in Perl is not looked at.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::ExitCode;

use rules::spam::{Census, Disabled, Problem, Rules, Severity, run::Syntax};
use serde_json::{Value, json};

use crate::cli::{self, RulesCommand, RulesLint};
use crate::config::{Config, rule_files};
use crate::output::Failure;
use crate::process::confine::Reach;
use crate::process::privileges;

/// Does what the command line says.
pub fn run(args: &cli::Rules) -> Result<ExitCode, Failure> {
    match &args.command {
        RulesCommand::Lint(args) => lint(args),
    }
}

fn lint(args: &RulesLint) -> Result<ExitCode, Failure> {
    privileges::harden()?;
    Reach::reading().confine(&[])?;
    let (folders, more) = match &args.config {
        Some(path) => {
            let config = Config::read(path)?;
            let spam = config.spam.as_ref().ok_or_else(|| format!("{}: there is no [spam]", path.display()))?;
            (spam.rules.clone().unwrap_or_else(rule_files::standard), config.more_rules())
        }
        None if args.folders.is_empty() => (rule_files::standard(), Vec::new()),
        None => (args.folders.clone(), Vec::new()),
    };
    let rules = rule_files::load(&folders, false, &more, &Syntax)?;
    if args.json {
        println!("{:#}", report(&folders, &rules));
    } else {
        print(&folders, &rules, args.all);
    }
    Ok(ExitCode::from(u8::from(rules.errors() > 0)))
}

fn print(folders: &[PathBuf], rules: &Rules, all: bool) {
    let census = Census::new(rules);
    let names: Vec<String> = folders.iter().map(|folder| folder.display().to_string()).collect();
    println!("{}: {} files, {} plugins", names.join(", "), rules.files, rules.plugins.len());
    println!("{} rules, {} of which ask the network", census.total(), census.net);
    for (kind, count) in &census.kinds {
        println!("  {:<14} {count:>6}", kind.name());
    }
    println!(
        "{} settings; left out: {} lines whose condition does not hold, {} in other languages",
        rules.settings.len(),
        rules.skipped,
        rules.translated
    );
    println!("messages are spam from {} on", rules.required_score());
    disabled(rules, all);
    let shown = |problem: &&Problem| all || problem.severity == Severity::Error;
    rules.problems().iter().filter(shown).for_each(|problem| println!("{problem}"));
    if rules.problems_left_out > 0 {
        println!("and {} more", rules.problems_left_out);
    }
    match rules.errors() {
        0 => println!("OK"),
        1 => println!("1 error"),
        errors => println!("{errors} errors"),
    }
}

/// Says which rules cannot hit: how many for each reason, or each.
fn disabled(rules: &Rules, all: bool) {
    if all {
        for (rule, why) in rules.disabled() {
            println!("{}: disabled: {}: {}", rule.place, rule.name, why.reason());
        }
        return;
    }
    let (mut scores, mut placeholders, mut network) = (0, 0, 0);
    let mut functions: BTreeMap<Box<str>, usize> = BTreeMap::new();
    for (_, why) in rules.disabled() {
        match why {
            Disabled::ZeroScore => scores += 1,
            Disabled::Placeholder => placeholders += 1,
            Disabled::Network(_) => network += 1,
            Disabled::Function(name) => *functions.entry(name).or_default() += 1,
        }
    }
    let called: usize = functions.values().sum();
    println!(
        "disabled: {called} rules call {} functions that are not there yet, {network} ask the network; {scores} have a score \
         of 0, {placeholders} are not defined (--all names them)",
        functions.len()
    );
}

fn report(folders: &[PathBuf], rules: &Rules) -> Value {
    let census = Census::new(rules);
    let kinds: BTreeMap<String, usize> = census.kinds.iter().map(|(kind, count)| (kind.name(), *count)).collect();
    let disabled = rules.disabled().map(|(rule, why)| {
        json!({ "rule": rule.name, "file": &*rule.place.file, "line": rule.place.line, "reason": why.reason() })
    });
    let problems = rules.problems().iter().map(|problem| {
        let Problem { place, rule, reason, advice, .. } = problem;
        let severity = if problem.severity == Severity::Error { "error" } else { "note" };
        json!({
            "severity": severity, "file": &*place.file, "line": place.line, "rule": rule, "reason": reason, "advice": advice,
        })
    });
    json!({
        "folders": folders,
        "files": rules.files,
        "plugins": rules.plugins,
        "rules": { "total": census.total(), "kinds": kinds, "existence": census.existence, "net": census.net },
        "functions": census.functions,
        "settings": rules.settings.len(),
        "required_score": rules.required_score(),
        "skipped": rules.skipped,
        "translated": rules.translated,
        "disabled": disabled.collect::<Vec<_>>(),
        "problems": problems.collect::<Vec<_>>(),
        "problems_left_out": rules.problems_left_out,
        "errors": rules.errors(),
    })
}
