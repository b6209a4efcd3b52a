//! `sluice queue`: the mail that waits to go out. A server that runs is asked; else the store is looked into.

use std::process::ExitCode;

use mailbox::queue;
use serde_json::{Value, json};

use super::control;
use super::outgoing::{Request, told};
use super::volume::{named, open};
use crate::cli::{self, QueueCommand, QueueSelect};
use crate::output::Failure;
use crate::process::privileges::{self, Place};

/// Does what the command line says.
pub fn run(args: &cli::Queue) -> Result<ExitCode, Failure> {
    privileges::harden()?;
    match &args.command {
        QueueCommand::List(select) => list(select, line),
        QueueCommand::Why(select) => list(select, why),
        QueueCommand::Show(select) => list(select, |mail, _| format!("{mail:#}")),
        QueueCommand::Retry(select) => act(select, "retry"),
        QueueCommand::Flush(select) => act(select, "retry"),
        QueueCommand::Release(select) => act(select, "release"),
        QueueCommand::Hold(select) => act(meant(select)?, "hold"),
        QueueCommand::Delete(select) => act(meant(select)?, "delete"),
        QueueCommand::Bounce(select) => act(meant(select)?, "bounce"),
        QueueCommand::Suppress(suppress) => super::suppress::run(suppress),
    }
}

/// All mails are meant only where that is said.
fn meant(select: &QueueSelect) -> Result<&QueueSelect, Failure> {
    let names = [&select.sender, &select.recipient, &select.domain, &select.reason];
    let is_named =
        !select.mails.is_empty() || names.iter().any(|name| name.is_some()) || select.age.is_some() || select.held;
    if is_named || select.all { Ok(select) } else { Err("which mails? --all for all that wait".into()) }
}

fn request(select: &QueueSelect, action: &str) -> Request {
    Request {
        action: action.into(),
        mails: select.mails.clone(),
        sender: select.sender.clone(),
        recipient: select.recipient.clone(),
        domain: select.domain.clone(),
        age_seconds: select.age.unwrap_or(0),
        reason: select.reason.clone(),
        is_held: select.held.then_some(true),
    }
}

/// Asks the server that has the store open; `None` if no server has.
///
/// # Errors
/// When it cannot be asked, and what it answers as an error.
pub fn ask(place: &Place, request: &Request) -> Result<Option<Value>, Failure> {
    control::ask(&place.way(), &format!("queue {}", json!(request)))
}

fn list(select: &QueueSelect, show: impl Fn(&Value, &Value) -> String) -> Result<ExitCode, Failure> {
    let place = Place::enter(&named(&select.place, None)?)?;
    let request = request(select, "list");
    let answer = match ask(&place, &request)? {
        Some(answer) => answer,
        None => {
            let volume = open(&place, true, false)?;
            json!({ "waiting": told(queue::select(volume.state(), &request.filter()), |_| 0) })
        }
    };
    let mails = answer["waiting"].as_array().cloned().unwrap_or_default();
    if select.json {
        println!("{answer}");
    } else {
        for mail in &mails {
            let recipients = mail["recipients"].as_array().cloned().unwrap_or_default();
            let mut shown: Vec<String> = recipients.iter().map(|recipient| show(mail, recipient)).collect();
            shown.dedup();
            shown.iter().for_each(|text| println!("{text}"));
        }
    }
    Ok(if mails.is_empty() { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

fn line(mail: &Value, recipient: &Value) -> String {
    let held = if mail["held"] == true { "held" } else { text(&recipient["next"]) };
    format!(
        "{}\t<{}>\t<{}>\tsince {}, {} tries, next {held}\t{}",
        mail["id"],
        text(&mail["from"]),
        text(&recipient["to"]),
        text(&mail["since"]),
        recipient["tries"],
        text(&recipient["why"])
    )
}

fn why(mail: &Value, recipient: &Value) -> String {
    let next = match (mail["held"] == true, recipient["host_rests_until"].as_str()) {
        (true, _) => "it is held: sluice queue release".into(),
        (_, Some(until)) => format!("its host could not be reached, and is left alone until {until}"),
        (_, None) => format!("it is tried next at {}", text(&recipient["next"])),
    };
    let said = match text(&recipient["why"]) {
        "" => "it was not refused yet",
        said => said,
    };
    format!("{}\t<{}>\t{said}\t{next}", mail["id"], text(&recipient["to"]))
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn act(select: &QueueSelect, action: &str) -> Result<ExitCode, Failure> {
    let place = Place::enter(&named(&select.place, None)?)?;
    let answer = ask(&place, &request(select, action))?;
    let answer = answer.ok_or("no server has the store open, and only one changes the queue")?;
    let count = answer["mails"].as_u64().unwrap_or(0);
    match select.json {
        true => println!("{answer}"),
        false => println!("{count} mails"),
    }
    Ok(if count == 0 { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}
