//! Second steps and passkeys of logins at the webmail, taken away by an administrator: for who has lost the device and the recovery codes.

use mailbox::{Site, passkeys, second};
use serde_json::{Value, json};

/// The answer about an account that is not there, or has nothing to be taken away.
pub const NO_SECOND: &str = "there is no such account with a second step or a passkey";

/// Answers the command `second NAME`.
pub async fn answer(name: &str, site: &Site) -> Value {
    let found = site
        .store
        .state()
        .account_named(name.to_ascii_lowercase().as_bytes())
        .map(|(number, account)| (number, second::is_set(account) || !passkeys::of(account).is_empty()));
    match found {
        None | Some((_, false)) => json!({ "error": NO_SECOND }),
        Some((number, true)) => match passkeys::reset(&site.store, number).await {
            Ok(()) => {
                tracing::warn!(
                    account = name,
                    "an administrator has removed the second step and the passkeys of a login"
                );
                json!({ "name": name })
            }
            Err(error) => json!({ "error": error.to_string() }),
        },
    }
}
