//! `sluice store queue`: the mail that waits to go out. A server that runs is asked; else the store is looked into.

use std::process::ExitCode;

use super::control;
use super::outgoing::told;
use super::volume::{named, open};
use crate::cli::StoreQueue;
use crate::output::Failure;
use crate::process::privileges::Place;

/// Prints what waits; with `--retry`, has all of it tried first.
pub fn run(args: &StoreQueue) -> Result<ExitCode, Failure> {
    let wanted = if args.retry { "retry" } else { "list" };
    let place = Place::enter(&named(&args.place, args.volume.as_deref())?)?;
    let answer = match control::ask(&place.way(), &format!("queue {wanted}"))? {
        Some(answer) => answer,
        None if args.retry => return Err("no server has the store open, and only one sends".into()),
        None => told(open(&place, true, false)?.state()),
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
