//! Addresses that get no more mail of accounts, as the server tells and changes them for `sluice queue suppress`.

use mailbox::Site;
use mailbox::queue::{self, Suppressed};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::outgoing::when;

/// A command, as it goes to the server.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Request {
    /// `list`, `add` or `delete`.
    pub action: String,
    /// Addresses to add or delete.
    pub addresses: Vec<String>,
    /// Why they are added.
    pub reason: String,
}

/// All of them, as they are told.
pub fn told(all: Vec<Suppressed>) -> Value {
    let one =
        |Suppressed { address, since, reason }| json!({ "address": address, "since": when(since), "reason": reason });
    json!({ "suppressed": all.into_iter().map(one).collect::<Vec<Value>>() })
}

/// Answer of a server.
pub async fn answer(request: &str, site: &Site) -> Value {
    let Ok(request) = serde_json::from_str::<Request>(request) else { return json!({ "error": "not a request" }) };
    let Request { action, addresses, reason } = request;
    let outcome = match action.as_str() {
        "list" => return told(queue::suppressed(&site.store.state())),
        "add" => queue::suppress_all(site, addresses, reason).await,
        "delete" => queue::forgive_all(site, addresses).await,
        other => return json!({ "error": format!("{other}: not an action") }),
    };
    match outcome {
        Ok(count) => {
            tracing::info!(action, addresses = count, "an operator has changed who gets no more mail");
            json!({ "addresses": count })
        }
        Err(error) => json!({ "error": error.to_string() }),
    }
}
