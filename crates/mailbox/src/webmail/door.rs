//! Logins and sessions of browsers.
//!
//! A session is known by 256 random bits in a cookie, of which the table has the hash. It ends with the password that it began with.

use std::sync::{Arc, MutexGuard, PoisonError};

use ::webmail::session::{Key, Session, Sessions, hex};
use ::webmail::{Call, Denial, Language, Refusal, Reply, farewell, refusal, welcome};
use sha2::{Digest as _, Sha256};

use crate::accounts::{Account, Login};
use crate::login::Denied;
use crate::password::random;
use crate::site::{Site, open_account, seconds};

/// A user who has logged in.
#[derive(Clone)]
pub(super) struct User {
    pub session: Session,
    pub account: Arc<Account>,
    key: Key,
}

impl User {
    /// The user whose cookie a request has.
    pub async fn find(site: &Site, call: &Call) -> Option<User> {
        let key = hash(call.cookie.as_ref()?.as_bytes());
        let session = sessions(site).find(&key, seconds())?;
        let account = match site.accounts.named(&session.name, false).await {
            Ok(account) => account,
            // Nobody can say now: a session is neither gone nor good for anything.
            Err(_) => return None,
        };
        let state = site.store.state();
        let is_same = |account: &Account| {
            let number = state.account_named(account.name.as_bytes()).map(|(number, _)| number);
            mark(account) == session.mark && number == Some(session.account) && !account.is_disabled
        };
        match account.filter(|account| is_same(account)) {
            Some(account) => Some(User { session, account, key }),
            None => {
                sessions(site).end(&key);
                None
            }
        }
    }

    /// Ends the session.
    pub fn leave(&self, site: &Site, is_secure: bool) -> Reply {
        sessions(site).end(&self.key);
        tracing::info!(account = self.account.name, "logged out of the webmail");
        farewell(is_secure)
    }
}

/// Begins a session for an account.
pub(super) async fn begin(
    site: &Site,
    account: Arc<Account>,
    client: String,
    language: Language,
    is_secure: bool,
) -> Reply {
    let number = open_account(&site.store, &account).await;
    let (Ok(number), Ok(token), Ok(form)) = (number, random::<32>(), random::<16>()) else {
        return refusal(language, Refusal::Closed);
    };
    let (token, form, now) = (hex(&token), hex(&form), seconds());
    let session = Session::new(number, account.name.clone(), form, mark(&account), now);
    let session = Session { client, ..session };
    sessions(site).begin(hash(token.as_bytes()), session, now);
    welcome(&token, is_secure)
}

/// Why a login is refused, where what was checked is wrong for this reason.
pub(super) fn denial(why: Denied, wrong: Denial) -> Denial {
    match why {
        Denied::Wrong => wrong,
        Denied::Away => Denial::Away,
        Denied::Busy | Denied::Full => Denial::Busy,
    }
}

pub(super) fn sessions(site: &Site) -> MutexGuard<'_, Sessions> {
    site.browsers.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Digest of the stored password of an account.
pub(super) fn mark(account: &Account) -> Key {
    match &account.login {
        Login::Nobody => hash(b""),
        Login::Hash(password) => hash(password.as_str().as_bytes()),
        Login::Elsewhere { table, entry } => hash(format!("{table}\n{entry}").as_bytes()),
    }
}

fn hash(bytes: &[u8]) -> Key {
    Sha256::digest(bytes).into()
}
