//! Logs in to a next hop (RFC 4954), by the best mechanism that both know: SCRAM-SHA-256, PLAIN, LOGIN.
//!
//! ```text
//!   unproved ── 235 ──────────────► proved: further connections log in at the same time
//!       ▲  └─── refused ──► rests for a minute: nobody asks, mails wait with the reason
//!       └──────────────────────┘
//! ```
//!
//! Until a login has worked one connection tries it: a wrong password is not told a hundred times to a server that counts. Whatever a next hop
//! says to a login, mail waits and does not come back: it is a mistake of its operator or ours.

use std::sync::Arc;
use std::time::{Duration, Instant};

use edge::net::tls::random;
use edge::upstream::smtp_hop::{LogIn, SmtpHop};
use mailbox::Fate;
use proto::smtp::Reply;
use text::base64;
use tokio::sync::Mutex;

use super::scram::{Exchange, Proof};

/// How long nobody tries a login that was refused.
const REFUSED_WAIT: Duration = Duration::from_secs(60);

/// The longest first response within the line of AUTH (RFC 4954, section 4, with the 512 bytes of a command).
const INITIAL_BYTES_MAX: usize = 480;

/// The status of a connection that was lost (RFC 3463).
const GONE: (u8, u16, u16) = (4, 4, 2);

/// A name and its password at a next hop.
pub struct Login {
    name: String,
    password: Arc<str>,
    standing: Mutex<Standing>,
}

enum Standing {
    Unproved,
    Proved,
    Refused(Instant, Fate),
}

impl Login {
    /// A login that was not tried yet.
    pub fn new(name: &str, password: &str) -> Login {
        Login { name: name.into(), password: password.into(), standing: Mutex::new(Standing::Unproved) }
    }

    /// The name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Why nobody tries it now, if it was refused a moment ago.
    pub async fn rests(&self) -> Option<Fate> {
        match &*self.standing.lock().await {
            Standing::Refused(until, why) if *until > Instant::now() => Some(why.clone()),
            _ => None,
        }
    }

    /// Logs in over a connection; in the clear if `is_in_clear`.
    ///
    /// # Errors
    /// Why mail waits.
    pub async fn log_in(&self, hop: &mut SmtpHop, is_in_clear: bool) -> Result<(), Fate> {
        if !hop.is_encrypted() && !is_in_clear {
            return Err(Fate::later((4, 7, 4), "a login needs TLS, and the connection has none"));
        }
        let mut standing = self.standing.lock().await;
        if matches!(*standing, Standing::Proved) {
            drop(standing);
            let outcome = self.exchange(hop).await;
            if let Err(fate) = &outcome {
                *self.standing.lock().await = refused(fate);
            }
            return outcome;
        }
        if let Standing::Refused(until, why) = &*standing
            && *until > Instant::now()
        {
            return Err(why.clone());
        }
        let outcome = self.exchange(hop).await;
        *standing = outcome.as_ref().map_or_else(refused, |()| Standing::Proved);
        outcome
    }

    async fn exchange(&self, hop: &mut SmtpHop) -> Result<(), Fate> {
        let offered = hop.mechanisms();
        let outcome = match () {
            () if offered.has("SCRAM-SHA-256") => self.scram(hop).await,
            () if offered.has("PLAIN") => self.plain(hop).await,
            () if offered.has("LOGIN") => self.by_questions(hop).await,
            () => Err(Fate::later((4, 7, 4), "the next hop offers no login by SCRAM-SHA-256, PLAIN or LOGIN")),
        };
        if let Err(fate) = &outcome {
            tracing::warn!(user = self.name, why = fate.why, "the login at the next hop has failed");
        }
        outcome
    }

    async fn scram(&self, hop: &mut SmtpHop) -> Result<(), Fate> {
        let nonce = random::<18>().map_err(|error| Fate::later((4, 3, 0), error.to_string()))?;
        let exchange = Exchange::new(&self.name, &nonce);
        let first = base64::encode(exchange.first().as_bytes());
        let challenge = decoded(&challenge(hop, LogIn::Auth("SCRAM-SHA-256", Some(first.as_bytes()))).await?)?;
        let password = self.password.clone();
        // A server says how much hashing it takes: too much for the thread on which all mail goes out.
        let proof = tokio::task::spawn_blocking(move || exchange.prove(password.as_bytes(), &challenge)).await;
        let proof = proof.map_err(|error| Fate::later((4, 3, 0), error.to_string()))?;
        let Proof { message, wanted } = proof.map_err(unwilling)?;
        let last = base64::encode(message.as_bytes());
        if decoded(&self::challenge(hop, LogIn::Response(last.as_bytes())).await?)? != wanted.as_bytes() {
            return Err(unwilling("it does not know the password, and may be another server"));
        }
        entered(hop.authenticate(LogIn::Response(b"")).await)
    }

    async fn plain(&self, hop: &mut SmtpHop) -> Result<(), Fate> {
        let response = base64::encode(format!("\0{}\0{}", self.name, self.password).as_bytes());
        if response.len() <= INITIAL_BYTES_MAX {
            return entered(hop.authenticate(LogIn::Auth("PLAIN", Some(response.as_bytes()))).await);
        }
        challenge(hop, LogIn::Auth("PLAIN", None)).await?;
        entered(hop.authenticate(LogIn::Response(response.as_bytes())).await)
    }

    /// By LOGIN: the server asks for the name, and then for the password.
    async fn by_questions(&self, hop: &mut SmtpHop) -> Result<(), Fate> {
        let [name, password] = [&*self.name, &*self.password].map(|text| base64::encode(text.as_bytes()));
        challenge(hop, LogIn::Auth("LOGIN", None)).await?;
        challenge(hop, LogIn::Response(name.as_bytes())).await?;
        entered(hop.authenticate(LogIn::Response(password.as_bytes())).await)
    }
}

/// A server that has gone has refused nothing.
fn refused(fate: &Fate) -> Standing {
    match fate.status {
        GONE => Standing::Unproved,
        _ => Standing::Refused(Instant::now() + REFUSED_WAIT, fate.clone()),
    }
}

/// Takes a step to which the server has something to say: its text.
async fn challenge(hop: &mut SmtpHop, step: LogIn<'_>) -> Result<String, Fate> {
    match hop.authenticate(step).await {
        Ok(reply) if reply.code == 334 => Ok(reply.text.trim().to_owned()),
        Ok(reply) if reply.code == 235 => Err(unwilling("it lets us in without a word of the password")),
        other => entered(other).map(|()| String::new()),
    }
}

fn decoded(text: &str) -> Result<Vec<u8>, Fate> {
    base64::decode(text.trim_end_matches('=').bytes()).ok_or_else(|| unwilling("its challenge is not in Base64"))
}

/// Whether the server has let us in.
fn entered(reply: Result<Reply, Reply>) -> Result<(), Fate> {
    match reply {
        Ok(reply) if reply.code == 235 => Ok(()),
        Ok(reply) if reply.code == 334 => Err(unwilling("it asks for more than a name and a password")),
        Ok(reply) => {
            let status = if reply.is_permanent() { (4, 7, 8) } else { reply.enhanced.unwrap_or((4, 7, 0)) };
            Err(Fate::later(status, format!("the next hop refuses the login: {reply}")))
        }
        Err(gone) => Err(Fate::later(GONE, gone.to_string())),
    }
}

fn unwilling(why: &str) -> Fate {
    Fate::later((4, 7, 0), format!("the login at the next hop has failed: {why}"))
}
