//! How clients log in (RFC 4422): PLAIN, where TLS keeps the password from others, and SCRAM-SHA-256.
//!
//! An account whose keys for SCRAM are not known, since its password was set before they were kept, is not let in by it: its
//! clients have PLAIN. It is not told apart from one that does not exist.

use std::sync::Arc;

use text::base64;

use crate::accounts::Account;
use crate::login::{Attempt, Caller, Denied, plain};
use crate::password;
use crate::scram::{First, Keys, Waiting};
use crate::site::Site;

/// SASL mechanisms offered. Clients choose, and some know the first alone.
pub(crate) const MECHANISMS: [&str; 2] = ["PLAIN", "SCRAM-SHA-256"];

/// An exchange with a client, whose response is next.
pub(crate) enum Exchange {
    Plain,
    Scram,
    /// The client is to prove that it knows the password.
    Proof {
        attempt: Box<Attempt>,
        account: Option<Arc<Account>>,
        waiting: Box<Waiting>,
    },
    /// It has, and has been told that we know it too.
    Proved(Arc<Account>),
}

/// Next step of an exchange.
pub(crate) enum Step {
    /// A challenge, in Base64.
    Challenge(Vec<u8>, Exchange),
    /// It is over: who has logged in.
    Over(Result<Arc<Account>, Denied>),
}

impl Exchange {
    /// Begins an exchange; none if the mechanism is not known.
    pub fn begin(mechanism: &str) -> Option<Exchange> {
        match mechanism.to_ascii_uppercase().as_str() {
            "PLAIN" => Some(Exchange::Plain),
            "SCRAM-SHA-256" => Some(Exchange::Scram),
            _ => None,
        }
    }

    /// Takes a response, in Base64.
    pub async fn respond(self, site: &Site, caller: Caller, response: &[u8]) -> Step {
        match self {
            Exchange::Plain => match plain(response) {
                Some((name, password)) => Step::Over(match site.logins.attempt(caller, &name).await {
                    Ok(attempt) => site.logins.check(attempt, &password).await,
                    Err(refused) => Err(refused),
                }),
                None => Step::Over(Err(Denied::Wrong)),
            },
            Exchange::Scram => first(site, caller, response).await.unwrap_or_else(|refused| Step::Over(Err(refused))),
            Exchange::Proof { attempt, account, waiting } => {
                let last = decode(response).and_then(|message| waiting.check(&message));
                let account = account.filter(|_| last.is_some());
                match (site.logins.judge(*attempt, Ok(account)), last) {
                    (Ok(account), Some(last)) => {
                        Step::Challenge(base64::encode(last.as_bytes()).into_bytes(), Exchange::Proved(account))
                    }
                    (Ok(_), None) => Step::Over(Err(Denied::Wrong)),
                    (Err(refused), _) => Step::Over(Err(refused)),
                }
            }
            // There is nothing more to say.
            Exchange::Proved(account) => match response {
                b"" | b"=" => Step::Over(Ok(account)),
                _ => Step::Over(Err(Denied::Wrong)),
            },
        }
    }
}

async fn first(site: &Site, caller: Caller, response: &[u8]) -> Result<Step, Denied> {
    let first = decode(response).and_then(|message| First::read(&message)).ok_or(Denied::Wrong)?;
    let name = first.name.clone();
    let attempt = site.logins.begin_proof(caller, &name).await?;
    let account = match site.accounts.named(&name, false).await {
        Ok(known) => known.filter(|account| account.scram.is_some() && !account.is_disabled),
        Err(why) => return site.logins.judge(attempt, Err(why)).map(|_| Step::Over(Err(Denied::Away))),
    };
    let keys = account.as_ref().and_then(|account| account.scram.clone());
    let keys = keys.unwrap_or_else(|| Keys::of_nobody(site.logins.secret(), &name.to_ascii_lowercase()));
    let (said, waiting) = first.answer(keys, &password::random::<18>().map_err(|_| Denied::Away)?);
    let exchange = Exchange::Proof { attempt: Box::new(attempt), account, waiting: Box::new(waiting) };
    Ok(Step::Challenge(base64::encode(said.as_bytes()).into_bytes(), exchange))
}

fn decode(response: &[u8]) -> Option<Vec<u8>> {
    base64::decode(response.iter().copied().take_while(|&digit| digit != b'='))
}
