//! `sluice recipients`: which table says what of an address.

use std::process::ExitCode;
use std::sync::Arc;

use edge::metrics::Metrics;
use edge::recipients::answer::Verdict;
use edge::recipients::call_ahead::Way;
use edge::recipients::directory::Directory;
use edge::settings::Listener;
use edge::upstream::route::Route;
use edge::upstream::smtp_hop::Leases;
use proto::smtp::Path;
use serde_json::json;

use crate::cli::{RecipientsCheck, RecipientsCommand};
use crate::config::Config;
use crate::lookups::Lookups;
use crate::output::Failure;
use crate::process::confine::Reach;
use crate::process::privileges;

/// Does what was asked for.
pub fn run(command: &RecipientsCommand) -> Result<ExitCode, Failure> {
    match command {
        RecipientsCommand::Check(args) => check(args),
    }
}

/// Says what each listener answers for each address. Exit status 1 where one is not taken.
fn check(args: &RecipientsCheck) -> Result<ExitCode, Failure> {
    privileges::harden()?;
    Reach::reading().connect().clone().confine(&[])?;
    let config = Config::read(&args.config)?;
    let tables = Lookups::start(&config, None)?.recipients();
    let directory = Directory::load(&config.recipients, &tables, &config.tls, None)?;
    let asking = |listener| Some((listener, Listener::smtp(listener).filter(|own| !own.recipients.is_empty())?));
    let listeners: Vec<_> = config.listeners.iter().filter_map(asking).collect();
    if listeners.is_empty() {
        return Err(format!("{}: no listener has recipients", args.config.display()).into());
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let tasks = tokio::task::LocalSet::new();
    let all_taken = tasks.block_on(&runtime, async {
        let mut all_taken = true;
        for (listener, own) in listeners {
            let way = way(&config, listener)?;
            for text in &args.addresses {
                let path: Path = text.parse().map_err(|error| format!("{text:?}: {error}"))?;
                if path.is_null() {
                    return Err(format!("{text:?}: not an address").into());
                }
                let verdict = directory.ask(&own.recipients, &path, Some(&way)).await;
                all_taken &= verdict.answer.reply().is_none();
                tell(args, listener, text, &verdict, &directory);
            }
        }
        Ok::<bool, Failure>(all_taken)
    })?;
    Ok(ExitCode::from(u8::from(!all_taken)))
}

/// The way to the next hop of a listener, which is not opened.
fn way(config: &Config, listener: &Listener) -> Result<Way, Failure> {
    Ok(Way {
        forward: Arc::new(Route::new(&listener.target(), &config.tls)?),
        has_hop: false,
        hostname: config.hostname.clone(),
        leases: Leases::default(),
        metrics: Arc::new(Metrics::default()),
    })
}

/// Says one answer, with the line of the file that it stands in.
fn tell(args: &RecipientsCheck, listener: &Listener, address: &str, verdict: &Verdict, directory: &Directory) {
    let Verdict { answer, by } = verdict;
    let line = directory.line_of(by);
    let reply = answer.reply().map(|reply| reply.to_string());
    if args.json {
        let object = json!({
            "address": address,
            "listener": listener.place.address.to_string(),
            "answer": answer.name(),
            "reply": reply,
            "why": Some(answer.reason()).filter(|why| !why.is_empty()),
            "tables": by.group,
            "table": by.table,
            "source": by.source,
            "line": line,
            "entry": by.key,
        });
        return println!("{object}");
    }
    let place = line.map_or_else(String::new, |line| format!(", line {line}"));
    let who = match (by.group.as_str(), by.table) {
        ("", _) => "no table holds its domain: the next hop decides".to_string(),
        (group, "") => format!("in no table of {group:?}"),
        (group, _) => format!("{by}{place}, of {group:?}"),
    };
    let why = if answer.reason().is_empty() { String::new() } else { format!(": {}", answer.reason()) };
    let reply = reply.map_or_else(String::new, |reply| format!(" ({reply})"));
    println!("{address}: {}{reply}: {who}{why}", answer.name());
}
