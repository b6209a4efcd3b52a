//! App passwords of accounts, made, listed and withdrawn by an administrator: the server's part of `sluice account app-password`.

use mailbox::{Site, app_passwords, open_account};
use serde_json::{Value, json};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

/// Answers the command `app {...}`.
pub async fn answer(request: &str, site: &Site) -> Value {
    let Ok(request) = serde_json::from_str::<Value>(request) else { return json!({ "error": "not JSON" }) };
    done(&request, site).await.unwrap_or_else(|error| json!({ "error": error }))
}

async fn done(request: &Value, site: &Site) -> Result<Value, String> {
    let name = request["account"].as_str().unwrap_or_default();
    let account = site.accounts.named(name, true).await.map_err(|away| away.to_string())?;
    let account = account.ok_or_else(|| format!("there is no account {name}"))?;
    let number = open_account(&site.store, &account).await.map_err(|error| error.to_string())?;
    if let Some(id) = request["delete"].as_u64() {
        let id = u32::try_from(id).map_err(|_| "this is no number of an app password")?;
        let was_there = app_passwords::delete(&site.store, number, id).await.map_err(|error| error.to_string())?;
        tracing::warn!(
            account = account.name,
            app_password = id,
            was_there,
            "an administrator withdraws an app password"
        );
        return if was_there { Ok(json!({})) } else { Err(format!("{name} has no app password {id}")) };
    }
    if let Some(program) = request["name"].as_str() {
        let doors: Vec<&str> = request["doors"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        let made = app_passwords::add(&site.store, number, program, &doors, super::dkim::now()).await;
        let password = made.map_err(|why| why.to_string())?;
        tracing::warn!(account = account.name, "an administrator has made an app password");
        return Ok(json!({ "password": password }));
    }
    let state = site.store.state();
    let all = state.account(number).map(app_passwords::of).unwrap_or_default();
    let shown = |one: &app_passwords::AppPassword| {
        let when = |seconds| OffsetDateTime::from_unix_timestamp(seconds).ok().and_then(|at| at.format(&Rfc3339).ok());
        let used = one.used.as_ref().and_then(|(seconds, door)| Some(format!("{} {door}", when(*seconds)?)));
        json!({ "id": one.id, "name": one.name, "doors": one.doors, "used": used })
    };
    Ok(json!({ "list": all.iter().map(shown).collect::<Vec<_>>() }))
}
