//! Mail that waits to go out: what `sluice queue` asks of the server that has the store open, and does by it.

use serde_json::{Value, json};
use webmail::Form;

use crate::admin::fault::{Fault, Outcome, away};
use crate::admin::role::{Right, Who};
use crate::admin::site::Site;
use crate::cli::seconds;
use crate::store::outgoing::Request;
use crate::store::queue::{ask, verb};

/// Mails of one answer.
const MAILS_MAX: usize = 1_000;

/// The mails that a query means: sender, recipient, domain, reason, age and held.
///
/// # Errors
/// When the age is not a time.
pub fn request(query: &Form) -> Result<Request, Fault> {
    let text = |name: &str| Some(query.get(name).trim().to_owned()).filter(|text| !text.is_empty());
    let age_seconds = text("age").map(|age| seconds(&age)).transpose();
    let age_seconds = age_seconds.map_err(|error| Fault::wrong(format!("age is {error}")))?;
    Ok(Request {
        action: "list".into(),
        sender: text("sender"),
        recipient: text("recipient"),
        domain: text("domain"),
        reason: text("reason"),
        age_seconds: age_seconds.unwrap_or(0),
        is_held: (query.get("held") == "1").then_some(true),
        ..Request::default()
    })
}

/// Mails that wait, the first that came first.
///
/// # Errors
/// Without the right, and when no server has the store open.
pub fn list(site: &Site, who: &Who, request: &Request) -> Outcome {
    if !who.may(Right::Look) {
        return Err(Fault::forbidden());
    }
    let mut answer = asked(site, &Request { is_counted: true, ..request.clone() })?;
    let mut mails = match answer.get_mut("waiting").map(Value::take) {
        Some(Value::Array(mails)) => mails,
        _ => Vec::new(),
    };
    let count = answer["count"].as_u64().unwrap_or(mails.len() as u64);
    mails.truncate(MAILS_MAX);
    Ok(json!({ "count": count, "mails": mails }))
}

/// One mail.
///
/// # Errors
/// As [`list`], and when it does not wait any more.
pub fn one(site: &Site, who: &Who, mail: &str) -> Outcome {
    let request = Request { action: "list".into(), mails: vec![number(mail)?], ..Request::default() };
    let mut list = list(site, who, &request)?;
    list.get_mut("mails").and_then(Value::as_array_mut).and_then(Vec::pop).ok_or_else(gone)
}

/// Does something with a mail: hold, release, retry, bounce or delete.
///
/// # Errors
/// Without the right, when there is no such action, and when the mail does not wait any more.
pub fn act(site: &Site, who: &Who, action: &str, mail: &str) -> Outcome {
    let what = verb(action).ok_or_else(|| Fault::missing("there is nothing"))?;
    site.change(who, Right::Change, what, mail, || {
        let request = Request { action: action.into(), mails: vec![number(mail)?], ..Request::default() };
        match asked(site, &request)?["mails"].as_u64() {
            Some(1..) => Ok(json!({ "id": mail })),
            _ => Err(gone()),
        }
    })
}

fn asked(site: &Site, request: &Request) -> Outcome {
    let answer = ask(&site.store()?.volume, request).map_err(away)?;
    answer.ok_or_else(|| Fault::away("no server has the store open"))
}

fn number(mail: &str) -> Result<u32, Fault> {
    mail.parse().map_err(|_| gone())
}

fn gone() -> Fault {
    Fault::missing("there is no such mail in the queue")
}
