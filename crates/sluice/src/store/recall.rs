//! `sluice who` and `sluice recall`: where a mail is, and taking it out of all mailboxes. A server that runs is asked; else the
//! store is opened.

use std::process::ExitCode;

use mailbox::Writer;
use serde_json::Value;

use super::control::{self, Wanted, audit};
use super::volume::{enter, open};
use crate::cli::{Recall, Who};
use crate::output::Failure;
use crate::process::privileges::{self, Place};

/// Prints the mailboxes that have a mail. Exit status 1: none.
pub fn who(args: &Who) -> Result<ExitCode, Failure> {
    privileges::harden()?;
    print(&ask(args, Wanted::Who)?, args, "")
}

/// Takes it out, or says from where it would be.
pub fn recall(args: &Recall) -> Result<ExitCode, Failure> {
    privileges::harden()?;
    let wanted = if args.yes { Wanted::Recall } else { Wanted::Who };
    let answer = ask(&args.who, wanted)?;
    print(&answer, &args.who, if args.yes { "recalled" } else { "would be recalled with --yes" })
}

fn ask(args: &Who, wanted: Wanted) -> Result<Value, Failure> {
    if args.message_id.trim().is_empty() || args.message_id.contains(char::is_control) {
        return Err("this is no Message-ID".into());
    }
    let place = enter(&args.place)?;
    match control::ask(&place.way(), &format!("{} {}", wanted.word(), args.message_id))? {
        Some(answer) => Ok(answer),
        None => control::checked(here(args, &place, wanted)?),
    }
}

/// Nobody serves the store: we do it.
fn here(args: &Who, place: &Place, wanted: Wanted) -> Result<Value, Failure> {
    let volume = open(place, false, false)?;
    let audit = audit(&place.way()).map_err(|error| format!("{}.audit: {error}", place.path().display()))?;
    let (writer, handle) = Writer::start(volume)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).build()?;
    let answer = runtime.block_on(control::answer(wanted, &args.message_id, &handle, &audit));
    drop((runtime, handle));
    writer.join()?;
    Ok(answer)
}

fn print(answer: &Value, args: &Who, done: &str) -> Result<ExitCode, Failure> {
    let places = answer["places"].as_array().cloned().unwrap_or_default();
    if args.json {
        println!("{answer}");
    } else {
        for place in &places {
            let text = |key: &str| place[key].as_str().unwrap_or_default().to_owned();
            println!("{}\t{}\t{}", text("account"), text("mailbox"), place["uid"]);
        }
        if !done.is_empty() {
            println!("{} places: {done}", places.len());
        }
    }
    if let Some(unread) = answer["unread"].as_u64().filter(|&unread| unread > 0) {
        eprintln!("sluice: {unread} messages cannot be read: sluice store check");
    }
    Ok(ExitCode::from(u8::from(places.is_empty())))
}
