//! Requests about the access lists of mailboxes: a JSON object, answered by another.

use mailbox::{Handle, acl};
use serde_json::{Value, json};

/// Does what is asked for; what it came to.
pub async fn answer(request: &str, store: &Handle) -> Value {
    let Ok(request) = serde_json::from_str::<Value>(request) else { return json!({ "error": "not JSON" }) };
    done(&request, store).await.unwrap_or_else(|error| json!({ "error": error }))
}

async fn done(request: &Value, store: &Handle) -> Result<Value, String> {
    let text = |key: &str| request[key].as_str();
    let (account, mailbox) = (text("account").unwrap_or_default(), text("mailbox").unwrap_or_default());
    if let Some(who) = text("who") {
        acl::set(store, account, mailbox, who, text("rights").unwrap_or_default()).await?;
        return Ok(json!({}));
    }
    let list = acl::told(&store.state(), account, mailbox).ok_or(format!("{account} has no mailbox {mailbox}"))?;
    let list: Vec<Value> = list.into_iter().map(|(who, rights)| json!({ "who": who, "rights": rights })).collect();
    Ok(json!({ "list": list }))
}
