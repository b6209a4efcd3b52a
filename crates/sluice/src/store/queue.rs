//! `sluice queue`: the mail that waits to go out. A server that runs is asked; else the store is looked into.

use std::io::{BufWriter, Write as _};
use std::process::ExitCode;

use serde_json::{Value, json};

use super::control;
use super::outgoing::Request;
use super::volume::{named, open, trail};
use crate::cli::{self, QueueCommand, QueueSelect};
use crate::output::{self, Failure};
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
        ..Request::default()
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
    let mut request = request(select, "list");
    let (mut out, mut count, mut volume) = (BufWriter::new(output::out()), 0, None);
    if select.json {
        write!(out, "{{\"waiting\":[")?;
    }
    loop {
        let answer = match ask(&place, &request)? {
            Some(answer) => answer,
            None => {
                let volume = match &mut volume {
                    Some(volume) => volume,
                    volume => volume.insert(open(&place, true, false)?),
                };
                request.list(volume.state(), |_| 0, |_, _| false)
            }
        };
        for mail in answer["waiting"].as_array().into_iter().flatten() {
            count += 1;
            if select.json {
                write!(out, "{}{mail}", if count > 1 { "," } else { "" })?;
                continue;
            }
            let recipients = mail["recipients"].as_array().into_iter().flatten();
            let mut shown: Vec<String> = recipients.map(|recipient| show(mail, recipient)).collect();
            shown.dedup();
            shown.iter().try_for_each(|text| writeln!(out, "{text}"))?;
        }
        match answer["next"].as_u64().and_then(|next| u32::try_from(next).ok()) {
            Some(next) => request.after = next,
            None => break,
        }
    }
    if select.json {
        writeln!(out, "]}}")?;
    }
    out.flush()?;
    Ok(if count == 0 { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

fn line(mail: &Value, recipient: &Value) -> String {
    let next = match () {
        () if recipient["under_way"] == true => "being sent".into(),
        () if mail["held"] == true => "next held".into(),
        () => format!("next {}", text(&recipient["next"])),
    };
    format!(
        "{}\t<{}>\t<{}>\tsince {}, {} tries, {next}\t{}",
        mail["id"],
        text(&mail["from"]),
        text(&recipient["to"]),
        text(&mail["since"]),
        recipient["tries"],
        text(&recipient["why"])
    )
}

fn why(mail: &Value, recipient: &Value) -> String {
    let is_sent = recipient["under_way"] == true;
    let next = match (mail["held"] == true, recipient["host_rests_until"].as_str()) {
        _ if is_sent && recipient["bounced"] == true => "it is being sent, and is returned if that fails".into(),
        _ if is_sent => "it is being sent".into(),
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

/// The verb of the audit log for an action.
pub fn verb(action: &str) -> Option<&'static str> {
    Some(match action {
        "hold" => "held mail in the queue",
        "release" => "released mail of the queue",
        "retry" => "retried mail of the queue",
        "bounce" => "bounced mail of the queue",
        "delete" => "deleted mail of the queue",
        _ => return None,
    })
}

/// The mails that are meant, as the audit log has them.
fn told(select: &QueueSelect) -> String {
    let ids = select.mails.iter().map(ToString::to_string);
    let named = |name: &str, value: &Option<String>| value.as_ref().map(|value| format!("{name} {value}"));
    let others = [
        named("sender", &select.sender),
        named("recipient", &select.recipient),
        named("domain", &select.domain),
        named("reason", &select.reason),
        select.age.map(|age| format!("older than {age} s")),
        select.held.then(|| "held".into()),
    ];
    let all: Vec<String> = ids.chain(others.into_iter().flatten()).collect();
    if all.is_empty() { "all".into() } else { all.join(", ") }
}

fn act(select: &QueueSelect, action: &str) -> Result<ExitCode, Failure> {
    let trail = trail(&select.place)?;
    let place = Place::enter(&named(&select.place, None)?)?;
    let answer = trail.change(verb(action).unwrap_or(action), &told(select), || -> Result<Value, Failure> {
        let answer = ask(&place, &request(select, action))?;
        Ok(answer.ok_or("no server has the store open, and only one changes the queue")?)
    })?;
    let count = answer["mails"].as_u64().unwrap_or(0);
    let stops = matches!(action, "hold" | "delete" | "bounce");
    match (select.json, answer["under_way"].as_u64().filter(|_| stops).unwrap_or(0)) {
        (true, _) => println!("{answer}"),
        (false, 0) => println!("{count} mails"),
        (false, under_way) => println!("{count} mails, {under_way} of them being sent: they may be delivered"),
    }
    Ok(if count == 0 { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}
