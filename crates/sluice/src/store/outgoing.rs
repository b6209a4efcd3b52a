//! Requests about waiting mail, and their answers.

use mailbox::Site;
use mailbox::queue::{self, Action, Entry, Filter};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

/// A command, as it goes to the server.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Request {
    /// `list`, `retry`, `hold`, `release`, `delete` or `bounce`.
    pub action: String,
    /// Numbers of the mails.
    pub mails: Vec<u32>,
    /// See [`Filter`].
    pub sender: Option<String>,
    /// See [`Filter`].
    pub recipient: Option<String>,
    /// See [`Filter`].
    pub domain: Option<String>,
    /// See [`Filter`].
    pub age_seconds: i64,
    /// See [`Filter`].
    pub reason: Option<String>,
    /// See [`Filter`].
    pub is_held: Option<bool>,
}

impl Request {
    /// The mails that are meant.
    pub fn filter(&self) -> Filter {
        Filter {
            mails: self.mails.clone(),
            sender: self.sender.clone(),
            recipient: self.recipient.clone(),
            domain: self.domain.clone(),
            age_seconds: self.age_seconds,
            reason: self.reason.clone(),
            is_held: self.is_held,
        }
    }
}

/// Answers a request.
pub async fn answer(request: &str, site: &Site) -> Value {
    let Ok(request) = serde_json::from_str::<Request>(request) else { return json!({ "error": "not a request" }) };
    let action = match request.action.as_str() {
        "list" => None,
        "retry" => Some(Action::Retry),
        "hold" => Some(Action::Hold),
        "release" => Some(Action::Release),
        "delete" => Some(Action::Delete),
        "bounce" => Some(Action::Bounce),
        other => return json!({ "error": format!("{other}: not an action") }),
    };
    let filter = request.filter();
    let Some(action) = action else {
        let mails = queue::select(&site.store.state(), &filter);
        return json!({ "waiting": told(mails, |domain| queue::rests_until(site, domain)) });
    };
    match queue::act(site, &filter, action).await {
        Ok(count) => {
            tracing::info!(action = request.action, mails = count, "an operator has changed the queue");
            json!({ "mails": count })
        }
        Err(error) => json!({ "error": error.to_string() }),
    }
}

/// Mails that wait; `rests_until` says until when a host is left alone.
pub fn told(mails: Vec<(u32, Entry)>, rests_until: impl Fn(&str) -> i64) -> Vec<Value> {
    let one = |(id, entry): (u32, Entry)| {
        let recipients = entry.recipients.iter().map(|one| {
            let rests = rests_until(one.destination());
            json!({
                "to": one.to, "tries": one.tries, "next": when(one.due.max(rests)), "why": one.why,
                "host_rests_until": (rests > 0).then(|| when(rests)), "notify": one.notify, "orcpt": one.orcpt,
            })
        });
        json!({
            "id": id, "account": entry.account, "from": entry.from, "since": when(entry.since), "held": entry.is_held,
            "warned": entry.is_warned, "envid": entry.envid, "recipients": recipients.collect::<Vec<_>>(),
        })
    };
    mails.into_iter().map(one).collect()
}

/// A time as it is printed.
pub fn when(seconds: i64) -> String {
    let when = OffsetDateTime::from_unix_timestamp(seconds).ok().and_then(|when| when.format(&Rfc3339).ok());
    when.unwrap_or_default()
}
