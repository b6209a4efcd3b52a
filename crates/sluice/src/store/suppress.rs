//! `sluice queue suppress`: the addresses that get no more mail of accounts. A server that runs is asked and changes them; else the store is
//! looked into.

use std::process::ExitCode;

use mailbox::queue;
use serde_json::{Value, json};
use text::hazard::is_hazard;

use super::control;
use super::suppression::{Request, told};
use super::volume::{named, open, trail};
use crate::cli::{QueueSuppress, SuppressCommand};
use crate::output::Failure;
use crate::process::privileges::Place;

/// Does what the command line says.
pub fn run(args: &QueueSuppress) -> Result<ExitCode, Failure> {
    let (SuppressCommand::List { place: meant, .. }
    | SuppressCommand::Add { place: meant, .. }
    | SuppressCommand::Delete { place: meant, .. }) = &args.command;
    let trail = trail(meant)?;
    let place = Place::enter(&named(meant, None)?)?;
    let ask = |action: &str, addresses: &[String], reason: &str| {
        let request = Request { action: action.into(), addresses: addresses.to_vec(), reason: reason.into() };
        control::ask(&place.way(), &format!("suppress {}", json!(request)))
    };
    let change = |what: &str, addresses: &[String], asked: &dyn Fn() -> Result<Option<Value>, Failure>| {
        trail.change(what, &addresses.join(", "), || -> Result<Value, Failure> {
            Ok(asked()?.ok_or("no server has the store open, and only one changes it")?)
        })
    };
    let (answer, json) = match &args.command {
        SuppressCommand::List { json, .. } => {
            let answer = match ask("list", &[], "")? {
                Some(answer) => answer,
                None => told(queue::suppressed(open(&place, true, false)?.state())),
            };
            return Ok(list(&answer, *json));
        }
        SuppressCommand::Add { addresses, reason, json, .. } => {
            (change("suppressed addresses", addresses, &|| ask("add", addresses, reason))?, json)
        }
        SuppressCommand::Delete { addresses, json, .. } => {
            (change("ended the suppression of addresses", addresses, &|| ask("delete", addresses, ""))?, json)
        }
    };
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
