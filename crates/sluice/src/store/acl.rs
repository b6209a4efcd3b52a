//! `sluice store acl`: who else may do what with a mailbox. A server that runs is asked; else the store is opened.

use std::process::ExitCode;

use mailbox::Writer;
use serde_json::{Value, json};

use super::control;
use super::rights::answer;
use super::volume::{named, open, parted};
use crate::cli::StoreAcl;
use crate::output::Failure;
use crate::process::privileges::Place;

/// Prints the list of a mailbox, or changes it.
pub fn run(args: &StoreAcl) -> Result<ExitCode, Failure> {
    // Two words or four, and the store in front of them.
    let (volume, words) = parted(&args.place, &args.words, args.words.len() & !1);
    let words: Vec<_> = words.iter().map(|word| word.to_string_lossy()).collect();
    let (account, mailbox, who, rights) = match &words[..] {
        [account, mailbox] => (account, mailbox, None, None),
        [account, mailbox, who, rights] => (account, mailbox, Some(who), Some(rights)),
        _ => return Err("an account and a mailbox are needed, and to change the list WHO and RIGHTS".into()),
    };
    let request = json!({ "account": account, "mailbox": mailbox, "who": who, "rights": rights }).to_string();
    let place = Place::enter(&named(&args.place, volume)?)?;
    let answer = match control::ask(&place.way(), &format!("acl {request}"))? {
        Some(answer) => answer,
        None => control::checked(here(&place, &request)?)?,
    };
    for entry in answer["list"].as_array().into_iter().flatten() {
        let text = |key: &str| entry[key].as_str().unwrap_or_default();
        println!("{}\t{}", text("who"), text("rights"));
    }
    Ok(ExitCode::SUCCESS)
}

/// Nobody serves the store: we do it.
fn here(place: &Place, request: &str) -> Result<Value, Failure> {
    let (writer, handle) = Writer::start(open(place, false, false)?)?;
    let runtime = tokio::runtime::Builder::new_current_thread().build()?;
    let answer = runtime.block_on(answer(request, &handle));
    drop((runtime, handle));
    writer.join()?;
    Ok(answer)
}
