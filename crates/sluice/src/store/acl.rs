//! `sluice store acl`: who else may do what with a mailbox. A server that runs is asked; else the store is opened.

use std::process::ExitCode;

use mailbox::Writer;
use serde_json::{Value, json};

use super::control;
use super::rights::answer;
use super::volume::open;
use crate::Failure;
use crate::cli::StoreAcl;
use crate::privileges::Place;

/// Prints the list of a mailbox, or changes it.
pub fn run(args: &StoreAcl) -> Result<ExitCode, Failure> {
    let StoreAcl { account, mailbox, who, rights, .. } = args;
    let request = json!({ "account": account, "mailbox": mailbox, "who": who, "rights": rights }).to_string();
    let place = Place::enter(&args.volume)?;
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
