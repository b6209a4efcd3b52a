//! Requests about the scripts of a store: a JSON object, answered by another.

use mailbox::Handle;
use mailbox::accounts::Accounts;
use mailbox::scripts::{self, Failure as Wrong, SiteScripts};
use serde_json::{Value, json};

/// Does what is asked for; what it came to. An account of `accounts` that has no mail yet gets its mailboxes.
pub async fn answer(request: &str, store: &Handle, site: &SiteScripts, accounts: Option<&Accounts>) -> Value {
    let Ok(request) = serde_json::from_str::<Value>(request) else { return json!({ "error": "not JSON" }) };
    done(&request, store, site, accounts).await.unwrap_or_else(|error| json!({ "error": error }))
}

async fn done(
    request: &Value,
    store: &Handle,
    site: &SiteScripts,
    accounts: Option<&Accounts>,
) -> Result<Value, String> {
    let text = |key: &str| request[key].as_str();
    let account = text("account").unwrap_or_default().to_ascii_lowercase();
    let known = match accounts {
        Some(accounts) => accounts.named(&account, false).await.map_err(|why| why.to_string())?,
        None => None,
    };
    let number = match known {
        Some(known) => mailbox::open_account(store, &known).await.map_err(|error| error.to_string())?,
        None => {
            let state = store.state();
            let found = state.account_named(account.as_bytes()).map(|(number, _)| number);
            found.ok_or_else(|| format!("the store has no account {account}"))?
        }
    };
    let (name, state) = (text("name"), store.state());
    let owner = state.account(number).ok_or("the account has gone")?;
    let named = name.ok_or("a name is needed");
    let told = |error: Wrong| error.to_string();
    match text("do") {
        Some("list") => {
            let scripts = scripts::list(owner).into_iter();
            let scripts: Vec<Value> = scripts.map(|(name, active)| json!({ "name": name, "active": active })).collect();
            return Ok(json!({ "scripts": scripts }));
        }
        Some("get") => {
            let text = scripts::get(owner, named?).ok_or(Wrong::Nonexistent).map_err(told)?;
            return Ok(json!({ "text": String::from_utf8_lossy(&text) }));
        }
        Some("put") => {
            let name = named?;
            scripts::put(store, site, number, name, text("text").unwrap_or_default().into()).await.map_err(told)?;
            if request["activate"] == true {
                scripts::activate(store, site, number, Some(name)).await.map_err(told)?;
            }
        }
        Some("activate") => scripts::activate(store, site, number, name).await.map_err(told)?,
        Some("delete") => scripts::delete(store, number, named?).await.map_err(told)?,
        _ => return Err("unknown command".into()),
    }
    Ok(json!({}))
}
