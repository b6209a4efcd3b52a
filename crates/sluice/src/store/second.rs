//! Second steps of logins at the webmail, taken away by an administrator: for who has lost the device and the recovery codes.

use mailbox::{Site, second};
use serde_json::{Value, json};

/// Answers the command `second NAME`.
pub async fn answer(name: &str, site: &Site) -> Value {
    let found = site
        .store
        .state()
        .account_named(name.to_ascii_lowercase().as_bytes())
        .map(|(number, account)| (number, second::is_set(account)));
    match found {
        None | Some((_, false)) => json!({ "error": "there is no such account with a second step" }),
        Some((number, true)) => match second::end(&site.store, number).await {
            Ok(()) => {
                tracing::warn!(account = name, "an administrator has removed the second step of a login");
                json!({ "name": name })
            }
            Err(error) => json!({ "error": error.to_string() }),
        },
    }
}
