//! `sluice queue suppress`: the addresses that get no more mail of accounts. A server that runs is asked and changes them; else the store is
//! looked into.

use std::process::ExitCode;

use mailbox::Site;
use mailbox::queue::{self, Suppressed};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use text::hazard::is_hazard;

use super::control;
use super::outgoing::when;
use super::volume::{named, open};
use crate::cli::{QueueSuppress, SuppressCommand};
use crate::output::Failure;
use crate::process::privileges::Place;

/// A command, as it goes to the server.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Request {
    /// `list`, `add` or `delete`.
    action: String,
    addresses: Vec<String>,
    reason: String,
}

/// Does what the command line says.
pub fn run(args: &QueueSuppress) -> Result<ExitCode, Failure> {
    let place = match &args.command {
        SuppressCommand::List { place, .. }
        | SuppressCommand::Add { place, .. }
        | SuppressCommand::Delete { place, .. } => Place::enter(&named(place, None)?)?,
    };
    let ask = |action: &str, addresses: &[String], reason: &str| {
        let request = Request { action: action.into(), addresses: addresses.to_vec(), reason: reason.into() };
        control::ask(&place.way(), &format!("suppress {}", json!(request)))
    };
    let (answer, json) = match &args.command {
        SuppressCommand::List { json, .. } => {
            let answer = match ask("list", &[], "")? {
                Some(answer) => answer,
                None => told(queue::suppressed(open(&place, true, false)?.state())),
            };
            return Ok(list(&answer, *json));
        }
        SuppressCommand::Add { addresses, reason, json, .. } => (ask("add", addresses, reason)?, json),
        SuppressCommand::Delete { addresses, json, .. } => (ask("delete", addresses, "")?, json),
    };
    let answer = answer.ok_or("no server has the store open, and only one changes it")?;
    let count = answer["addresses"].as_u64().unwrap_or(0);
    match json {
        true => println!("{answer}"),
        false => println!("{count} addresses"),
    }
    Ok(if count == 0 { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

fn list(answer: &Value, json: bool) -> ExitCode {
    let all = answer["suppressed"].as_array().cloned().unwrap_or_default();
    if json {
        println!("{answer}");
    } else {
        let text = |value: &Value| value.as_str().unwrap_or_default().replace(is_hazard, "?");
        let line =
            |one: &Value| format!("{}\t{}\t{}", text(&one["address"]), text(&one["since"]), text(&one["reason"]));
        all.iter().for_each(|one| println!("{}", line(one)));
    }
    if all.is_empty() { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

fn told(all: Vec<Suppressed>) -> Value {
    let one =
        |Suppressed { address, since, reason }| json!({ "address": address, "since": when(since), "reason": reason });
    json!({ "suppressed": all.into_iter().map(one).collect::<Vec<Value>>() })
}

/// Answer of a server.
pub async fn answer(request: &str, site: &Site) -> Value {
    let Ok(request) = serde_json::from_str::<Request>(request) else { return json!({ "error": "not a request" }) };
    let Request { action, addresses, reason } = request;
    let outcome = match action.as_str() {
        "list" => return told(queue::suppressed(&site.store.state())),
        "add" => queue::suppress_all(site, addresses, reason).await,
        "delete" => queue::forgive_all(site, addresses).await,
        other => return json!({ "error": format!("{other}: not an action") }),
    };
    match outcome {
        Ok(count) => {
            tracing::info!(action, addresses = count, "an operator has changed who gets no more mail");
            json!({ "addresses": count })
        }
        Err(error) => json!({ "error": error.to_string() }),
    }
}
