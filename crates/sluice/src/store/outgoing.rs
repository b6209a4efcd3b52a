//! What is answered of the mail that waits to go out.

use mailbox::Site;
use mailbox::queue::{self, Entry};
use serde_json::{Value, json};
use store::State;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

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

/// What waits in a store.
pub fn told(state: &State) -> Value {
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
