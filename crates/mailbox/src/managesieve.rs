//! Scripts of users, kept by their clients (ManageSieve, RFC 5804).
//!
//! A script is checked before it is kept, and the answer says what is wrong and where. The handshake of STARTTLS is the caller's:
//! [`serve`] returns the stream for it, and is called again with what came of it. Where TLS is offered a client that is not of this
//! machine has to use it before it logs in.

use std::io;
use std::sync::Arc;

use proto::managesieve::{Answer, Command, Config, Server, ServerEvent, string};
use tokio::time::timeout_at;

use crate::accounts::Account;
use crate::apart::apart;
use crate::guest::{Guest, Seat};
use crate::labour::turn;
use crate::login::{Caller, Denied};
use crate::sasl::{Exchange, MECHANISMS, Step};
use crate::scripts::{self, Failure};
use crate::site::{Site, open_account};
use crate::wire::{Stream, Wire};

/// Bytes of answers that wait for those of further commands.
const REPLY_BYTES: usize = 32 << 10;

/// How TLS stands with a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tls {
    /// The connection is encrypted.
    Active,
    /// STARTTLS is offered.
    Offered,
    /// There is no certificate.
    Missing,
}

/// How a session ended.
pub enum End<S> {
    /// It is over.
    Over,
    /// The client shakes hands next.
    StartTls(S, Guest),
}

/// Speaks with a client until it goes, or begins TLS.
///
/// # Errors
/// When the connection breaks.
pub async fn serve<S: Stream>(stream: S, guest: impl Into<Guest>, tls: Tls, site: &Site) -> io::Result<End<S>> {
    let config = Config { literal_bytes_max: scripts::SCRIPT_BYTES_MAX as u64 + 1_024, ..Config::default() };
    let server = Server::new(config, site.now());
    let wire = Wire::new(stream);
    let (guest, seat) = (guest.into(), None);
    let mut session =
        Session { site, guest, seat, tls, wire, server, user: None, exchange: None, next: Next::Commands };
    session.greet(&format!("{} ManageSieve Sluice", site.hostname));
    session.run().await?;
    match session.next {
        Next::Tls => Ok(End::StartTls(session.wire.into_inner(), session.guest)),
        _ => {
            session.wire.close().await;
            Ok(End::Over)
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Next {
    Commands,
    Tls,
    Goodbye,
}

struct Session<'a, S> {
    site: &'a Site,
    guest: Guest,
    /// Held by who has logged in.
    seat: Option<Seat>,
    tls: Tls,
    wire: Wire<S>,
    server: Server,
    next: Next,
    user: Option<User>,
    exchange: Option<Exchange>,
}

struct User {
    name: String,
    number: u32,
}

impl<S: Stream> Session<'_, S> {
    async fn run(&mut self) -> io::Result<()> {
        loop {
            let (taken, event) = self.server.step(self.site.now(), self.wire.input());
            self.wire.take(taken);
            match event {
                ServerEvent::Idle if taken > 0 => {}
                ServerEvent::Idle => {
                    self.flush().await?;
                    if !self.read().await? {
                        return Ok(());
                    }
                }
                ServerEvent::Command(command) => {
                    self.command(command).await?;
                    // What one command is answered is sent before the next one is looked at: a script is long.
                    if self.server.outbox().len() >= REPLY_BYTES {
                        self.flush().await?;
                    }
                }
                ServerEvent::Response(response) => self.respond(&response).await?,
                ServerEvent::Wrong(reason) => self.server.answer(Answer::No, "", reason),
                ServerEvent::TooLarge => self.refuse(&Failure::TooLarge),
                ServerEvent::Closed => {
                    if self.next == Next::Commands {
                        self.server.answer(Answer::Bye, "", "Protocol error");
                    }
                    return self.flush().await;
                }
            }
        }
    }

    async fn read(&mut self) -> io::Result<bool> {
        let deadline = self.site.at(self.server.deadline());
        tokio::select! {
            read = timeout_at(deadline, self.wire.read()) => match read {
                Ok(read) => read,
                Err(_) => self.bye("Idle for too long").await,
            },
            () = self.guest.lost() => self.bye("Too many clients that have not logged in").await,
            () = self.site.ended() => self.bye("Shutting down").await,
        }
    }

    async fn bye(&mut self, text: &str) -> io::Result<bool> {
        self.server.answer(Answer::Bye, "", text);
        self.flush().await?;
        Ok(false)
    }

    async fn flush(&mut self) -> io::Result<()> {
        self.wire.write(self.server.outbox()).await?;
        self.server.sent();
        Ok(())
    }

    /// Announces the capabilities, followed by a reply.
    fn greet(&mut self, text: &str) {
        let extensions: Vec<&str> = sieve::EXTENSIONS
            .into_iter()
            .filter(|name| !name.starts_with("comparator-i;ascii-c") && *name != "comparator-i;octet")
            .collect();
        let mechanisms = if self.may_log_in() { MECHANISMS.join(" ") } else { String::new() };
        let extensions = extensions.join(" ");
        let redirects = sieve::Limits::default().redirects_max.to_string();
        let mut all = vec![
            ("IMPLEMENTATION", Some("Sluice")),
            ("SASL", Some(&mechanisms)),
            ("SIEVE", Some(&extensions)),
            ("MAXREDIRECTS", Some(&redirects)),
            ("UNAUTHENTICATE", None),
            ("VERSION", Some("1.0")),
        ];
        all.extend((self.tls == Tls::Offered && self.user.is_none()).then_some(("STARTTLS", None)));
        all.extend(self.user.as_ref().map(|user| ("OWNER", Some(&*user.name))));
        let mut lines = Vec::new();
        for (name, value) in all {
            string(name.as_bytes(), &mut lines);
            if let Some(value) = value {
                lines.push(b' ');
                string(value.as_bytes(), &mut lines);
            }
            lines.extend_from_slice(b"\r\n");
        }
        self.server.say(&lines);
        self.server.answer(Answer::Ok, "", text);
    }

    fn may_log_in(&self) -> bool {
        let is_near = self.guest.client.is_none_or(|client| client.is_loopback());
        self.user.is_none() && (self.tls != Tls::Offered || is_near)
    }

    async fn command(&mut self, command: Command) -> io::Result<()> {
        match command {
            Command::Capability => self.greet("Capability completed"),
            Command::Noop(None) => self.server.answer(Answer::Ok, "", "Completed"),
            Command::Noop(Some(tag)) => {
                let mut code = b"TAG ".to_vec();
                string(&tag, &mut code);
                self.server.answer(Answer::Ok, &String::from_utf8_lossy(&code), "Completed");
            }
            Command::Logout => {
                self.server.answer(Answer::Ok, "", "Logged out");
                self.server.close();
                self.next = Next::Goodbye;
            }
            // What came behind it in the clear was put there by somebody else.
            Command::StartTls if self.tls == Tls::Offered && self.user.is_none() && self.wire.input().is_empty() => {
                self.server.answer(Answer::Ok, "", "Begin TLS");
                self.server.close();
                self.next = Next::Tls;
            }
            Command::StartTls if self.tls == Tls::Offered && self.user.is_none() => {
                self.server.answer(Answer::No, "", "Data after STARTTLS before the handshake");
            }
            Command::StartTls => self.server.answer(Answer::No, "", "TLS is not offered here"),
            Command::Authenticate { .. } if !self.may_log_in() => {
                let (code, text) = match self.user {
                    Some(_) => ("", "Logged in already"),
                    None => ("ENCRYPT-NEEDED", "STARTTLS first"),
                };
                self.server.answer(Answer::No, code, text);
                self.server.resume();
            }
            Command::Authenticate { mechanism, initial } => {
                self.exchange = Exchange::begin(&mechanism);
                match initial {
                    _ if self.exchange.is_none() => {
                        self.server.answer(Answer::No, "", "Unknown mechanism");
                        self.server.resume();
                    }
                    Some(initial) => self.respond(&initial).await?,
                    None => self.server.challenge(b""),
                }
            }
            command => return self.on_scripts(command).await,
        }
        Ok(())
    }

    async fn respond(&mut self, response: &[u8]) -> io::Result<()> {
        let step = match self.exchange.take() {
            Some(exchange) if response != b"*" => {
                let responding =
                    exchange.respond(self.site, Caller { door: "managesieve", client: self.guest.client }, response);
                self.guest.wait(&mut self.wire, responding).await?
            }
            _ => Step::Over(Err(Denied::Wrong)),
        };
        let (account, code) = match step {
            // What a server says last comes with the answer (section 2.1).
            Step::Challenge(last, Exchange::Proved(account)) => {
                (Ok(account), format!("SASL \"{}\"", String::from_utf8_lossy(&last)))
            }
            Step::Challenge(challenge, exchange) => {
                self.exchange = Some(exchange);
                self.server.challenge(&challenge);
                return Ok(());
            }
            Step::Over(account) => (account, String::new()),
        };
        self.server.resume();
        self.enter(account, &code).await;
        Ok(())
    }

    async fn enter(&mut self, account: Result<Arc<Account>, Denied>, code: &str) {
        let account = match account {
            Ok(account) => account,
            Err(refused) => return self.deny(refused),
        };
        let name = account.name.clone();
        match open_account(&self.site.store, &account).await {
            Ok(number) => {
                self.seat = self.site.seats.take(number);
                match self.seat {
                    None => return self.deny(Denied::Full),
                    Some(_) if !self.guest.log_in() => return self.deny(Denied::Busy),
                    Some(_) => {}
                }
                self.user = Some(User { name, number });
                self.server.logged_in(self.site.now());
                self.server.answer(Answer::Ok, code, "Logged in");
            }
            Err(error) => self.refuse(&error.into()),
        }
    }

    fn deny(&mut self, refused: Denied) {
        let (code, text) = match refused {
            Denied::Wrong => ("", "Wrong name or password"),
            Denied::Away => ("TRYLATER", "Accounts cannot be looked up now"),
            Denied::Busy => ("TRYLATER", "Too many try to log in"),
            Denied::Full => ("TRYLATER", "Too many sessions of this account"),
        };
        self.server.answer(Answer::No, code, text);
    }

    async fn on_scripts(&mut self, command: Command) -> io::Result<()> {
        let Some(number) = self.user.as_ref().map(|user| user.number) else {
            self.server.answer(Answer::No, "", "Log in first");
            return Ok(());
        };
        let compiles = matches!(command, Command::CheckScript(_) | Command::PutScript { .. } | Command::SetActive(_));
        let _turn = match compiles {
            true => Some(turn(self.site, &mut self.wire, &self.site.workers, number, true).await?),
            false => None,
        };
        let (store, library) = (&self.site.store, &self.site.scripts);
        let state = store.state();
        let Some(account) = state.account(number) else {
            self.server.answer(Answer::No, "", "The account has gone");
            return Ok(());
        };
        let outcome = match command {
            Command::HaveSpace { name, bytes } => scripts::has_space(account, &name, bytes),
            Command::PutScript { name, script } => scripts::put(store, library, number, &name, script).await,
            Command::CheckScript(script) => apart(|| scripts::check(library, Some(account), &script)).map(drop),
            Command::SetActive(name) => {
                scripts::activate(store, library, number, Some(&*name).filter(|name| !name.is_empty())).await
            }
            Command::DeleteScript(name) => scripts::delete(store, number, &name).await,
            Command::RenameScript { from, to } => scripts::rename(store, number, &from, &to).await,
            Command::ListScripts => {
                self.list(account);
                Ok(())
            }
            Command::GetScript(name) => match scripts::get(account, &name) {
                Some(script) => {
                    let mut said = format!("{{{}}}\r\n", script.len()).into_bytes();
                    said.extend_from_slice(&script);
                    said.extend_from_slice(b"\r\n");
                    self.server.say(&said);
                    Ok(())
                }
                None => Err(Failure::Nonexistent),
            },
            Command::Unauthenticate => {
                self.user = None;
                self.server.logged_out(self.site.now());
                Ok(())
            }
            _ => {
                self.server.answer(Answer::No, "", "Not now");
                return Ok(());
            }
        };
        match outcome {
            Ok(()) => self.server.answer(Answer::Ok, "", "Completed"),
            Err(failure) => self.refuse(&failure),
        }
        Ok(())
    }

    fn list(&mut self, account: &store::Account) {
        let mut said = Vec::new();
        for (name, is_active) in scripts::list(account) {
            string(name.as_bytes(), &mut said);
            said.extend_from_slice(if is_active { b" ACTIVE\r\n" } else { b"\r\n" });
        }
        self.server.say(&said);
    }

    fn refuse(&mut self, failure: &Failure) {
        let code = match failure {
            Failure::Nonexistent => "NONEXISTENT",
            Failure::Exists => "ALREADYEXISTS",
            Failure::Active => "ACTIVE",
            Failure::TooMany => "QUOTA/MAXSCRIPTS",
            Failure::TooLarge => "QUOTA/MAXSIZE",
            Failure::Store(_) => "TRYLATER",
            Failure::Name | Failure::Wrong(_) => "",
        };
        if let Failure::Store(error) = failure {
            tracing::error!(%error, "a script was not kept");
        }
        self.server.answer(Answer::No, code, &failure.to_string());
    }
}
