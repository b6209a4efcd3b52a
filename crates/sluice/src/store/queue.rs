//! `sluice store queue`: the mail that waits to go out. A server that runs is asked; else the store is looked into.

use std::process::ExitCode;

use mailbox::Site;
use mailbox::queue::{self, Entry};
use serde_json::{Value, json};
use store::State;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use super::control;
use super::volume::open;
use crate::Failure;
use crate::cli::StoreQueue;

/// Prints what waits; with `--retry`, has all of it tried first.
pub fn run(args: &StoreQueue) -> Result<ExitCode, Failure> {
    let wanted = if args.retry { "retry" } else { "list" };
    let answer = match control::ask(&args.volume, &format!("queue {wanted}"))? {
        Some(answer) => answer,
        None if args.retry => return Err("no server has the store open, and only one sends".into()),
        None => told(open(&args.volume, true, false)?.state()),
    };
    if args.json {
        println!("{answer}");
        return Ok(ExitCode::SUCCESS);
    }
    for entry in answer["waiting"].as_array().into_iter().flatten() {
        let text = |key: &str| entry[key].as_str().unwrap_or_default().to_owned();
        println!(
            "{}\t{}\t<{}>\t<{}>\tsince {}, {} tries, next {}\t{}",
            entry["id"],
            text("account"),
            text("from"),
            text("to"),
            text("since"),
            entry["tries"],
            text("next"),
            text("why")
        );
    }
    Ok(ExitCode::SUCCESS)
}

/// What a server answers.
pub async fn answer(wanted: &str, site: &Site) -> Value {
    let retried = match wanted {
        "list" => Ok(0),
        "retry" => queue::retry(site).await.map_err(|error| error.to_string()),
        _ => Err("queue list or queue retry".into()),
    };
    match retried {
        Ok(_) => told(&site.store.state()),
        Err(error) => json!({ "error": error }),
    }
}

fn told(state: &State) -> Value {
    let when = |seconds: i64| {
        let when = OffsetDateTime::from_unix_timestamp(seconds).ok().and_then(|when| when.format(&Rfc3339).ok());
        when.unwrap_or_default()
    };
    let one = |(id, entry): (u32, Entry)| {
        let Entry { account, from, to, tries, why, .. } = &entry;
        let (since, next) = (when(entry.since), when(entry.due));
        json!({
            "id": id, "account": account, "from": from, "to": to, "since": since, "tries": tries, "next": next, "why": why,
        })
    };
    json!({ "waiting": queue::waiting(state).into_iter().map(one).collect::<Vec<_>>() })
}
