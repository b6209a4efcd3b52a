//! `sluice sieve list|put|get|activate|delete`: scripts of accounts in a store. A server that runs is asked; else the store is
//! opened.

use std::process::ExitCode;

use mailbox::Writer;
use mailbox::scripts::SiteScripts;
use serde_json::{Value, json};

use super::control;
use super::filters::answer;
use super::volume::{enter, open};
use crate::cli::{SieveScript, SieveUser};
use crate::output::Failure;
use crate::process::privileges::Place;

/// Prints the names, the active one marked.
pub fn list(user: &SieveUser) -> Result<ExitCode, Failure> {
    let answer = ask(user, json!({ "do": "list" }))?;
    for script in answer["scripts"].as_array().into_iter().flatten() {
        let mark = if script["active"] == true { "\tactive" } else { "" };
        println!("{}{mark}", script["name"].as_str().unwrap_or_default());
    }
    Ok(ExitCode::SUCCESS)
}

/// Keeps a script.
pub fn put(script: &SieveScript, text: &str, activate: bool) -> Result<ExitCode, Failure> {
    ask(&script.user, json!({ "do": "put", "name": script.name, "text": text, "activate": activate }))?;
    Ok(ExitCode::SUCCESS)
}

/// Prints a script.
pub fn get(script: &SieveScript) -> Result<ExitCode, Failure> {
    let answer = ask(&script.user, json!({ "do": "get", "name": script.name }))?;
    print!("{}", answer["text"].as_str().unwrap_or_default());
    Ok(ExitCode::SUCCESS)
}

/// Makes a script the active one, or none.
pub fn activate(user: &SieveUser, name: Option<&str>) -> Result<ExitCode, Failure> {
    ask(user, json!({ "do": "activate", "name": name }))?;
    Ok(ExitCode::SUCCESS)
}

/// Removes a script.
pub fn delete(script: &SieveScript) -> Result<ExitCode, Failure> {
    ask(&script.user, json!({ "do": "delete", "name": script.name }))?;
    Ok(ExitCode::SUCCESS)
}

fn ask(user: &SieveUser, mut request: Value) -> Result<Value, Failure> {
    request["account"] = user.account.as_str().into();
    let request = request.to_string();
    let place = enter(&user.place)?;
    match control::ask(&place.way(), &format!("sieve {request}"))? {
        Some(answer) => Ok(answer),
        None => control::checked(here(&place, &request)?),
    }
}

/// Nobody serves the store: we do it.
fn here(place: &Place, request: &str) -> Result<Value, Failure> {
    let volume = open(place, false, false)?;
    let (writer, handle) = Writer::start(volume)?;
    let runtime = tokio::runtime::Builder::new_current_thread().build()?;
    let answer = runtime.block_on(answer(request, &handle, &SiteScripts::default(), None));
    drop((runtime, handle));
    writer.join()?;
    Ok(answer)
}
