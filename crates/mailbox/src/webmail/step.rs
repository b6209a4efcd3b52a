//! The second step of a login, and the login by a passkey alone.
//!
//! A login whose password was right goes on with a challenge, which is the proof of that: it is good for this account until its password
//! changes, for a few minutes, and once. A login by a passkey alone begins with a challenge for the cookie that it sets.

use std::sync::Arc;

use ::webmail::session::{Session, hex};
use ::webmail::{Call, Denial, Form, Language, Refusal, Reply, Step, asks_for_passkey, needs_step, refusal};

use super::door::mark;
use crate::accounts::{Account, Login};
use crate::elsewhere::Away;
use crate::password::random;
use crate::site::{Site, seconds};
use crate::webauthn::{self, Assertion, Ceremony, Origin, Refused};
use crate::{passkeys, second};

/// The purpose of a challenge for a new passkey.
pub(super) fn registration(session: &Session) -> String {
    format!("register {}", session.token)
}

/// The name by which authenticators know an account.
pub(super) fn handle(account: u32) -> String {
    format!("webmail:{account}")
}

/// A login whose password was right, and whose second step is to come.
pub(super) struct Begun {
    pub account: Arc<Account>,
    number: u32,
    purpose: String,
}

impl Begun {
    /// The login of an account; `None` if it has no second step.
    pub fn of(site: &Site, account: &Arc<Account>) -> Option<Begun> {
        let state = site.store.state();
        let (number, known) = state.account_named(account.name.as_bytes())?;
        let purpose = format!("step {} {}", hex(&mark(account)), account.name);
        second::is_set(known).then(|| Begun { account: account.clone(), number, purpose })
    }

    /// The login that a form goes on with.
    ///
    /// # Errors
    /// When nobody can say.
    pub async fn find(site: &Site, form: &Form) -> Result<Option<Begun>, Away> {
        let account = site.accounts.named(form.get("name"), false).await?.filter(|account| !account.is_disabled);
        let begun = account.and_then(|account| Begun::of(site, &account));
        Ok(begun.filter(|begun| site.challenges.is_good(form.get("step"), &begun.purpose, seconds())))
    }

    /// The page that asks for the second step.
    pub fn page(&self, site: &Site, language: Language, origin: &Origin, denial: Option<Denial>) -> Reply {
        let Ok(challenge) = site.challenges.make(&self.purpose, seconds()) else {
            return refusal(language, Refusal::Closed);
        };
        let state = site.store.state();
        let all = state.account(self.number).map(passkeys::of).unwrap_or_default();
        let passkeys: Vec<String> = all.iter().filter(|one| one.is_of(origin)).map(|one| one.credential()).collect();
        let name = &self.account.name;
        needs_step(language, &Step { name, challenge: &challenge, passkeys: &passkeys, denial })
    }

    /// The account, if a code or a passkey counts.
    ///
    /// # Errors
    /// When nobody can say.
    pub async fn check(&self, site: &Site, form: &Form, origin: &Origin) -> Result<Option<Arc<Account>>, Away> {
        let (now, purpose) = (seconds(), self.purpose.as_str());
        let is_right = match form.get("code").trim() {
            "" => {
                let ceremony = Ceremony { challenges: &site.challenges, purpose, origin, now };
                by_passkey(site, self.number, form, (&ceremony, false)).await
            }
            code => {
                let taken = second::takes(&site.store, self.number, code, now).await;
                taken.map_err(|error| Away(error.to_string()))? && site.challenges.take(form.get("step"), purpose, now)
            }
        };
        Ok(is_right.then(|| self.account.clone()))
    }
}

/// The page of a login by a passkey alone.
pub(super) fn page(site: &Site, language: Language, is_secure: bool, denial: Option<Denial>) -> Reply {
    let token = random::<32>().map(|token| hex(&token));
    let made = token.and_then(|token| Ok((site.challenges.make(&alone(&token), seconds())?, token)));
    match made {
        Ok((challenge, token)) => asks_for_passkey(language, &challenge, (&token, is_secure), denial),
        Err(_) => refusal(language, Refusal::Closed),
    }
}

/// The account that a passkey names, if somebody may log in to it.
///
/// # Errors
/// When nobody can say.
pub(super) async fn named(site: &Site, form: &Form) -> Result<Option<(u32, Arc<Account>)>, Away> {
    let Some((number, name)) = name(site, form.get("user")) else { return Ok(None) };
    let account = site.accounts.named(&name, false).await?;
    let is_open = |account: &Arc<Account>| !account.is_disabled && account.login != Login::Nobody;
    Ok(account.filter(is_open).map(|account| (number, account)))
}

/// The account, if the passkey counts alone for the browser that has asked.
pub(super) async fn check_alone(
    site: &Site,
    found: Option<(u32, Arc<Account>)>,
    call: &Call,
    origin: &Origin,
) -> Option<Arc<Account>> {
    let ((number, account), purpose) = (found?, alone(call.passkey.as_deref()?));
    let ceremony = Ceremony { challenges: &site.challenges, purpose: &purpose, origin, now: seconds() };
    by_passkey(site, number, &call.form, (&ceremony, true)).await.then_some(account)
}

fn alone(token: &str) -> String {
    format!("passkey {token}")
}

/// The number and the name of the account that authenticators know by a handle.
fn name(site: &Site, user: &str) -> Option<(u32, String)> {
    let known = webauthn::user(user)?;
    let number = known.strip_prefix("webmail:")?.parse().ok()?;
    let state = site.store.state();
    let account = state.account(number).filter(|_| known == handle(number))?;
    Some((number, String::from_utf8_lossy(&account.name).into_owned()))
}

/// Whether a passkey of an account counts. Its counter is kept then.
async fn by_passkey(site: &Site, number: u32, form: &Form, (ceremony, is_alone): (&Ceremony<'_>, bool)) -> bool {
    let all = site.store.state().account(number).map(passkeys::of).unwrap_or_default();
    let (credential, client) = (form.get("credential"), form.get("client"));
    let assertion = Assertion { client, data: form.get("data"), signature: form.get("signature") };
    let found = webauthn::find(&all, credential).ok_or(Refused::Unknown);
    let checked = found.and_then(|one| Ok((one.id, ceremony.check(one, &assertion, is_alone)?)));
    match checked {
        Ok((id, counter)) => passkeys::note(&site.store, number, id, counter, ceremony.now).await.unwrap_or(false),
        Err(why) => {
            tracing::warn!(account = number, %why, "a passkey does not count");
            false
        }
    }
}
