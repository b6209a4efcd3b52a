//! Logins, and the extensions that a client enables.

use std::io;
use std::sync::Arc;

use proto::imap::Verb;

use super::{Done, Refusal, Reply, Session, User, capabilities, done, no};
use crate::accounts::Account;
use crate::login::{Caller, Denied};
use crate::sasl::Step;
use crate::site::open_account;
use crate::wire::Stream;

impl<S: Stream> Session<'_, S> {
    /// The user who has logged in.
    pub(super) fn user(&self) -> Result<&User, Refusal> {
        self.user.as_ref().ok_or(Refusal::Bad("Log in first"))
    }

    pub(super) async fn log_in(&mut self, user: Vec<u8>, password: &[u8]) -> Result<Done, Refusal> {
        let account = match String::from_utf8(user) {
            Ok(name) => {
                let attempt = self.site.logins.attempt(Caller { door: "imap", client: self.guest.client }, &name);
                match self.guest.wait(&mut self.wire, attempt).await? {
                    Ok(attempt) => self.site.logins.check(attempt, password).await,
                    Err(refused) => Err(refused),
                }
            }
            Err(_) => Err(Denied::Wrong),
        };
        done(&self.enter(account).await?)
    }

    pub(super) async fn authenticate(&mut self, tag: Vec<u8>, response: &[u8]) -> io::Result<()> {
        let step = match self.exchange.take() {
            _ if response == b"*" => return self.answer(&tag, Err(Refusal::Bad("Authentication cancelled"))),
            Some(exchange) => {
                let responding =
                    exchange.respond(self.site, Caller { door: "imap", client: self.guest.client }, response);
                self.guest.wait(&mut self.wire, responding).await?
            }
            None => Step::Over(Err(Denied::Wrong)),
        };
        match step {
            Step::Challenge(challenge, exchange) => {
                self.waiting = Some((Verb::Authenticate, tag));
                self.exchange = Some(exchange);
                self.server.challenge(&challenge);
                Ok(())
            }
            Step::Over(account) => {
                let reply = self.enter(account).await;
                self.answer(&tag, reply)
            }
        }
    }

    pub(super) async fn enter(&mut self, account: Result<Arc<Account>, Denied>) -> Reply {
        let account = account.map_err(denied)?;
        let number = open_account(&self.site.store, &account).await?;
        self.seat = Some(self.site.seats.take(number).ok_or_else(|| denied(Denied::Full))?);
        if !self.guest.log_in() {
            return Err(denied(Denied::Busy));
        }
        self.user = Some(User { account, number });
        Ok(format!("[CAPABILITY {}] Logged in", capabilities(self.site)))
    }

    pub(super) fn enable(&mut self, words: &[String]) -> Result<Done, Refusal> {
        let mut told = String::from("* ENABLED");
        for word in words {
            match word.as_str() {
                "CONDSTORE" => self.enabled.condstore = true,
                "QRESYNC" => (self.enabled.condstore, self.enabled.qresync) = (true, true),
                "IMAP4REV2" => self.enabled.rev2 = true,
                "UTF8=ACCEPT" => self.enabled.utf8 = true,
                _ => continue,
            }
            told = format!("{told} {}", if word == "IMAP4REV2" { "IMAP4rev2" } else { word });
        }
        self.server.line(told.as_bytes());
        done("Enabled")
    }
}

fn denied(refused: Denied) -> Refusal {
    no(match refused {
        Denied::Wrong => "[AUTHENTICATIONFAILED] Wrong name or password",
        Denied::Away => "[UNAVAILABLE] Accounts cannot be looked up now",
        Denied::Busy => "[UNAVAILABLE] Too many try to log in, try again later",
        Denied::Full => "[LIMIT] Too many sessions of this account",
    })
}
