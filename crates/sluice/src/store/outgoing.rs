//! Requests about waiting mail, and their answers.

use mailbox::Site;
use mailbox::queue::{self, Acted, Action, Entry, Filter};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use store::State;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

/// A command, as it goes to the server.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
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
    /// Of a list, the number behind which it goes on.
    pub after: u32,
    /// Whether a list says how many mails it is of.
    pub is_counted: bool,
}

/// Mails of one answer.
const PAGE_MAILS_MAX: usize = 1_000;

impl Request {
    /// The answer to a list: some of its mails, and the number behind which it goes on. `rests_until` says until when a host is left alone,
    /// and `is_under_way` whether a mail is being sent to it.
    pub fn list(
        &self,
        state: &State,
        rests_until: impl Fn(&str) -> i64,
        is_under_way: impl Fn(u32, &str) -> bool,
    ) -> Value {
        let filter = self.filter();
        let page = queue::page(state, &filter, self.after, PAGE_MAILS_MAX);
        let count = self.is_counted.then(|| queue::count(state, &filter));
        json!({ "waiting": told(page.mails, rests_until, is_under_way), "next": page.next, "count": count })
    }

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
        let is_under_way = |mail, domain: &str| queue::is_under_way(site, mail, domain);
        return request.list(&site.store.state(), |domain| queue::rests_until(site, domain), is_under_way);
    };
    match queue::act(site, &filter, action).await {
        Ok(Acted { mails, under_way }) => {
            tracing::info!(action = request.action, mails, under_way, "an operator has changed the queue");
            json!({ "mails": mails, "under_way": under_way })
        }
        Err(error) => json!({ "error": error.to_string() }),
    }
}

fn told(
    mails: Vec<(u32, Entry)>,
    rests_until: impl Fn(&str) -> i64,
    is_under_way: impl Fn(u32, &str) -> bool,
) -> Vec<Value> {
    let one = |(id, entry): (u32, Entry)| {
        let recipients = entry.recipients.iter().map(|one| {
            let rests = rests_until(one.destination());
            json!({
                "to": one.to, "tries": one.tries, "next": when(one.due.max(rests).max(0)), "why": one.why,
                "host_rests_until": (rests > 0).then(|| when(rests)), "notify": one.notify, "orcpt": one.orcpt,
                "under_way": is_under_way(id, one.destination()), "bounced": one.is_given_up,
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
