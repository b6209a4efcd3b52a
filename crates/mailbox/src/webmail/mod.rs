//! Webmail: a connection of a browser, from the first request to the last.
//!
//! ```text
//!  head ─ cookie ─┬─ a user ──── form, up to 27 MB ─► webmail::answer ─► page, or content while it is read
//!                 └─ a stranger ─ form, up to 16 kB ─► login page, login
//! ```
//! A page is made by the crate `webmail`; here are the connection ([`proto::http::Server`]), logins and sessions (`door`), second steps and
//! passkeys (`step`), the mailbox (`mail`) and what is sent (`sending`). TLS is the caller's.
//!
//! Bounds: a head is whole within a minute, a form within five; forms with files and long replies count for the memory of their account
//! (`in_flight`). A connection is a stranger's, who may lose its place, until a user is known on it; then it is one of the sessions of that
//! account.

mod door;
mod host;
mod jmap;
mod sending;
mod step;

use std::io;
use std::sync::Arc;
use std::time::Duration;

use ::webmail::session::is_same;
use ::webmail::{
    Body, Call, Denial, EXPIRED_BYTES_MAX, FORM_BYTES_MAX, Form, LIMITS, LOGIN_BYTES_MAX, Refusal, Reply, answer,
    answer_stranger, asks_for_proof, asks_others, denied, refusal, refused,
};
use proto::http::{Fields, Framing, Request, Server, ServerEvent};
use tokio::task::block_in_place;
use tokio::time::{Instant, timeout_at};

use crate::accounts::Account;
use crate::discovery;
use crate::guest::{Guest, Seat};
use crate::in_flight::{Held, Owner};
use crate::login::{Attempt, Caller, Checked, Denied, WEBMAIL};
use crate::site::Site;
use crate::webauthn::Origin;
use crate::wire::{Stream, Wire};
use door::{User, begin, denial};
use host::Server as Host;
use keep::webmail::Mail;
use step::Begun;

/// How long a client may take from one request to the end of the head of the next.
const HEAD_WAIT: Duration = Duration::from_secs(60);

/// How long a client may take to send a form.
const FORM_WAIT: Duration = Duration::from_secs(300);

/// How long one who has not logged in may take.
const LOGIN_WAIT: Duration = Duration::from_secs(30);

/// Bytes of a request or a reply for which no memory is asked.
const SMALL_BYTES: u64 = 64 << 10;

/// Bytes of a reply that are sent at a time.
const PIECE_BYTES: usize = 64 << 10;

/// Why the body of a request is not read to its end.
#[derive(Debug, PartialEq, Eq)]
enum Unread {
    /// It is larger than may be: as much as may be was read of it.
    TooLarge(Vec<u8>),
    /// The account has no more memory now.
    Crowded,
}

/// Bytes of a message of which pages are made on the event loop.
const SHORT_BYTES_MAX: u64 = 256 << 10;

/// Bytes of a form that is too large that are read before it is refused, as a multiple of the bound: a browser reads the answer when it has
/// sent all.
const PASSED_OVER: u64 = 8;

/// Speaks with a browser until it goes.
///
/// # Errors
/// When the connection breaks.
pub async fn serve<S: Stream>(stream: S, guest: impl Into<Guest>, is_secure: bool, site: &Site) -> io::Result<()> {
    let (guest, wire, server) = (guest.into(), Wire::new(stream), Server::new(LIMITS));
    let mut connection = Connection { site, guest, wire, server, has_tls: is_secure, is_secure, seat: None };
    while connection.exchange().await? {}
    connection.wire.close().await;
    Ok(())
}

struct Connection<'a, S> {
    site: &'a Site,
    guest: Guest,
    wire: Wire<S>,
    server: Server,
    has_tls: bool,
    /// Whether the browser has TLS, here or to a proxy of this machine.
    is_secure: bool,
    /// The account that uses the connection, and its place.
    seat: Option<(u32, Seat)>,
}

impl<S: Stream> Connection<'_, S> {
    /// Answers one request; whether another may follow.
    async fn exchange(&mut self) -> io::Result<bool> {
        let Some(request) = self.head().await? else { return Ok(false) };
        let is_proxy = self.guest.client.is_none_or(|client| client.to_canonical().is_loopback());
        self.is_secure = self.has_tls || (is_proxy && came_by_tls(&request));
        let call = Call::new(&request, self.is_secure);
        if jmap::is_meant(&call) {
            self.jmap(&request, &call).await?;
            return Ok(!self.server.is_over());
        }
        let is_head = request.method == "HEAD";
        if let Some(asked) = discovery::asked(&call) {
            let mut nobody = self.memory(None);
            let reply = match self.body(&request, (discovery::REQUEST_BYTES_MAX, LOGIN_WAIT), &mut nobody).await? {
                Ok(body) => self.site.discovery.answer(asked, &request, &call, &body, &self.site.hostname),
                Err(_) => refusal(call.language, Refusal::TooLarge),
            };
            self.reply(reply, None, is_head).await?;
            return Ok(!self.server.is_over());
        }
        let user = User::find(self.site, &call).await;
        if let Some(user) = &user
            && !self.sit(user.session.account)
        {
            self.server.close();
            self.reply(refusal(call.language, Refusal::Connections), None, false).await?;
            return Ok(false);
        }
        match user {
            Some(user) => self.user(&request, call, user, is_head).await?,
            None => {
                let reply = self.stranger(&request, call).await?;
                self.reply(reply, None, is_head).await?;
            }
        }
        Ok(!self.server.is_over())
    }

    /// The connection is an account's from here on; whether that has a place.
    fn sit(&mut self, account: u32) -> bool {
        if self.seat.as_ref().is_some_and(|(seated, _)| *seated == account) {
            return true;
        }
        self.seat = None;
        self.seat = self.site.seats.take(account).map(|seat| (account, seat));
        self.seat.is_some() && self.guest.log_in()
    }

    async fn user(&mut self, request: &Request, mut call: Call, user: User, is_head: bool) -> io::Result<()> {
        let number = user.session.account;
        let (language, mut memory) = (call.language, self.memory(Some(&user.account.name)));
        call.form = match self.form(request, (FORM_BYTES_MAX, FORM_WAIT), &mut memory).await? {
            Ok(form) => form,
            // Its files stand behind what was typed.
            Err(Unread::TooLarge(beginning)) if call.segments() == ["write"] => {
                let mut form = read_form(request, &beginning);
                form.files.clear();
                form.is_cut = true;
                form
            }
            Err(why) => {
                let why = if why == Unread::Crowded { Refusal::Busy } else { Refusal::FilesTooLarge };
                return self.reply(refusal(language, why), None, is_head).await;
            }
        };
        let is_logout = call.is_post && call.segments() == ["logout"];
        if is_logout && !call.is_foreign && is_same(call.form.get("token"), &user.session.token) {
            let reply = user.leave(self.site, self.is_secure);
            return self.reply(reply, None, is_head).await;
        }
        if call.is_post && is_login(&call) {
            // Somebody logs in again, maybe as another.
            let reply = self.log_in(&call).await?;
            return self.reply(reply, None, is_head).await;
        }
        let turns = match asks_for_proof(&call) {
            true => &self.site.checks,
            false if asks_others(&call) => &self.site.fetches,
            false => &self.site.pages,
        };
        let is_short = self.is_short(&call);
        let turn = self.guest.wait(&mut self.wire, turns.turn(number)).await?;
        let mut host = Host::new(self.site, &user.account.name).at(self.origin(&call));
        let mut mail = Mail::new(&mut host, host::user(self.site, &user.account, number));
        let reply = match is_short {
            true => answer(&mut mail, &user.session, call),
            false => block_in_place(|| answer(&mut mail, &user.session, call)),
        };
        drop(turn);
        let reply = within(&mut memory, reply).unwrap_or_else(|| refusal(language, Refusal::Busy));
        self.reply(reply, Some(&mut mail), is_head).await
    }

    /// Whether a page is made in less time than another thread needs to go on with the tasks of this one: a list, or a message that is
    /// not large.
    fn is_short(&self, call: &Call) -> bool {
        match call.segments()[..] {
            _ if call.is_post || asks_others(call) => false,
            [] | ["m", _] => true,
            ["m", folder, uid] | ["m", folder, uid, "html" | "part", _] => {
                self.message_bytes(folder, uid).is_some_and(|bytes| bytes <= SHORT_BYTES_MAX)
            }
            _ => false,
        }
    }

    /// The size of the message that a path names, whosever it is.
    fn message_bytes(&self, folder: &str, uid: &str) -> Option<u64> {
        let state = self.site.store.state();
        let entry = *state.mailbox(folder.parse().ok()?)?.entry(uid.parse().ok()?)?;
        Some(state.message(entry.message.get())?.size)
    }

    async fn stranger(&mut self, request: &Request, mut call: Call) -> io::Result<Reply> {
        let mut nobody = self.memory(None);
        // Of a mail that was written until the session ended.
        let is_expired = call.is_post && call.cookie.is_some() && call.segments() == ["write"];
        let bytes_max = if is_expired { EXPIRED_BYTES_MAX } else { LOGIN_BYTES_MAX };
        call.form = match self.form(request, (bytes_max, LOGIN_WAIT), &mut nobody).await? {
            Ok(form) => form,
            Err(_) => return Ok(refusal(call.language, Refusal::TooLarge)),
        };
        match (call.is_post, &call.segments()[..]) {
            (true, _) if is_login(&call) => self.log_in(&call).await,
            (false, ["login", "passkey"]) if call.is_known => {
                Ok(step::page(self.site, call.language, self.is_secure, None))
            }
            _ => Ok(answer_stranger(&call)),
        }
    }

    async fn log_in(&mut self, call: &Call) -> io::Result<Reply> {
        if let Some(reply) = refused(call) {
            return Ok(reply);
        }
        let origin = self.origin(call);
        if call.segments() == ["login", "passkey"] {
            return self.log_in_by_passkey(call, &origin).await;
        }
        if call.form.has("step") {
            return self.take_step(call, &origin).await;
        }
        let (name, password) = (call.form.get("name").trim(), call.form.get("password"));
        let site = self.site;
        let checked = match self.attempt(name).await? {
            Ok(attempt) => {
                let needs_step = |account: &Arc<Account>| Begun::of(site, account).is_some();
                site.logins.check_both(attempt, password.as_bytes(), needs_step).await
            }
            Err(why) => Err(why),
        };
        match checked {
            Ok(Checked::Right(account)) => self.begin(account, call).await,
            Ok(Checked::NeedsStep(account)) => Ok(match Begun::of(site, &account) {
                Some(begun) => begun.page(site, call.language, &origin, None),
                None => denied(call.language, name, Denial::Late),
            }),
            Err(why) => Ok(denied(call.language, name, denial(why, Denial::Wrong))),
        }
    }

    /// Goes on with a login whose password was right.
    async fn take_step(&mut self, call: &Call, origin: &Origin) -> io::Result<Reply> {
        let (site, language) = (self.site, call.language);
        let begun = match Begun::find(site, &call.form).await {
            Ok(Some(begun)) => begun,
            Ok(None) => return Ok(denied(language, "", Denial::Late)),
            Err(_) => return Ok(denied(language, "", Denial::Away)),
        };
        let checked = match self.attempt(&begun.account.name).await? {
            Ok(attempt) => site.logins.check_other(attempt, begun.check(site, &call.form, origin)).await,
            Err(why) => Err(why),
        };
        let wrong = if call.form.has("code") { Denial::WrongCode } else { Denial::WrongPasskey };
        match checked {
            Ok(account) => self.begin(account, call).await,
            Err(why) => Ok(begun.page(site, language, origin, Some(denial(why, wrong)))),
        }
    }

    async fn log_in_by_passkey(&mut self, call: &Call, origin: &Origin) -> io::Result<Reply> {
        let (site, language) = (self.site, call.language);
        let Ok(found) = step::named(site, &call.form).await else {
            return Ok(step::page(site, language, self.is_secure, Some(Denial::Away)));
        };
        let name = found.as_ref().map(|(_, account)| account.name.clone()).unwrap_or_default();
        let checked = match self.attempt(&name).await? {
            Ok(attempt) => {
                let check = async { Ok(step::check_alone(site, found, call, origin).await) };
                site.logins.check_other(attempt, check).await
            }
            Err(why) => Err(why),
        };
        match checked {
            Ok(account) => self.begin(account, call).await,
            Err(why) => Ok(step::page(site, language, self.is_secure, Some(denial(why, Denial::WrongPasskey)))),
        }
    }

    /// Begins an attempt when its turn has come.
    async fn attempt(&mut self, name: &str) -> io::Result<Result<Attempt, Denied>> {
        let caller = Caller { door: WEBMAIL, client: self.guest.client };
        self.guest.wait(&mut self.wire, self.site.logins.attempt(caller, name)).await
    }

    async fn begin(&self, account: Arc<Account>, call: &Call) -> io::Result<Reply> {
        Ok(begin(self.site, account, self.client(call), call.language, self.is_secure).await)
    }

    /// The site as the browser names it.
    fn origin(&self, call: &Call) -> Origin {
        Origin::new(&call.authority, self.is_secure)
    }

    /// The words by which a user knows a session again: the address, and the browser by its own words.
    fn client(&self, call: &Call) -> String {
        let address = self.guest.client.map(|client| client.to_string()).unwrap_or_default();
        format!("{address} {}", call.agent).trim().to_owned()
    }

    /// The head of the next request; `None` when there is none.
    async fn head(&mut self) -> io::Result<Option<Request>> {
        let until = Instant::now() + HEAD_WAIT;
        loop {
            match self.step(until, &mut Vec::new()).await? {
                ServerEvent::Request(request) => return Ok(Some(*request)),
                ServerEvent::Idle | ServerEvent::Content | ServerEvent::End(_) => {}
                ServerEvent::Refused(_) | ServerEvent::Tunnel | ServerEvent::Closed => {
                    self.flush().await?;
                    return Ok(None);
                }
            }
        }
    }

    /// Memory for a request of an account, and its reply.
    fn memory(&self, account: Option<&str>) -> Held {
        self.site.in_memory.begin(account.map(|name| Owner::Account(name.to_owned())).into_iter().collect())
    }

    /// The form of a request, which is read to its end.
    async fn form(
        &mut self,
        request: &Request,
        bounds: (u64, Duration),
        memory: &mut Held,
    ) -> io::Result<Result<Form, Unread>> {
        Ok(self.body(request, bounds, memory).await?.map(|body| read_form(request, &body)))
    }

    /// The body of a request, which is read to its end.
    async fn body(
        &mut self,
        request: &Request,
        (bytes_max, wait): (u64, Duration),
        memory: &mut Held,
    ) -> io::Result<Result<Vec<u8>, Unread>> {
        if matches!(request.framing, Framing::Length(bytes) if bytes > bytes_max.saturating_mul(PASSED_OVER)) {
            self.server.close();
            return Ok(Err(Unread::TooLarge(Vec::new())));
        }
        let until = Instant::now() + wait;
        let (mut body, mut piece, mut bytes) = (Vec::new(), Vec::new(), 0u64);
        self.server.proceed();
        loop {
            let event = self.step(until, &mut piece).await?;
            bytes = bytes.saturating_add(piece.len() as u64);
            if bytes <= bytes_max {
                if bytes > SMALL_BYTES && memory.take(piece.len() as u64).is_err() {
                    self.server.close();
                    return Ok(Err(Unread::Crowded));
                }
                body.extend_from_slice(&piece);
            } else if bytes > bytes_max.saturating_mul(PASSED_OVER) {
                self.server.close();
                return Ok(Err(Unread::TooLarge(body)));
            }
            piece.clear();
            match event {
                ServerEvent::End(_) => break,
                ServerEvent::Idle | ServerEvent::Content => {}
                _ => {
                    self.flush().await?;
                    return Err(io::ErrorKind::UnexpectedEof.into());
                }
            }
        }
        Ok(if bytes <= bytes_max { Ok(body) } else { Err(Unread::TooLarge(body)) })
    }

    /// One event, after more has come where that is needed. Content is appended to `content`.
    async fn step(&mut self, until: Instant, content: &mut Vec<u8>) -> io::Result<ServerEvent> {
        let (taken, event) = self.server.step(self.wire.input());
        if event == ServerEvent::Content {
            content.extend_from_slice(self.wire.input().get(..taken).unwrap_or_default());
        }
        self.wire.take(taken);
        if event != ServerEvent::Idle || taken > 0 {
            return Ok(event);
        }
        self.flush().await?;
        let has_more = tokio::select! {
            biased;
            () = self.guest.lost() => return Err(io::Error::other("another client has the place")),
            read = timeout_at(until, self.wire.read()) => read.unwrap_or(Ok(false))?,
            () = self.site.ended() => false,
        };
        Ok(if has_more { ServerEvent::Idle } else { self.server.finish() })
    }

    /// Sends a reply; content is read from `mail` while it is sent.
    async fn reply(
        &mut self,
        mut reply: Reply,
        mail: Option<&mut Mail<'_, Host<'_>>>,
        is_head: bool,
    ) -> io::Result<()> {
        self.server.respond(&reply.head());
        match (&mut reply.body, mail) {
            (Body::Bytes(bytes), _) => {
                for piece in bytes.chunks(PIECE_BYTES) {
                    if !self.server.outbox().is_empty() && bytes.len() > PIECE_BYTES {
                        self.flush().await?;
                    }
                    self.server.content(piece);
                }
            }
            (Body::Content(content), Some(mail)) if !is_head => {
                while let Some(piece) = content.next(&mut *mail) {
                    self.server.content(piece);
                    self.flush().await?;
                }
                if mail.is_broken() {
                    // Without the last chunk a browser knows that something is missing.
                    return Err(io::Error::other("a message cannot be read"));
                }
            }
            (Body::Content(_), _) => {}
        }
        self.server.end(&Fields::default());
        self.flush().await
    }

    async fn flush(&mut self) -> io::Result<()> {
        self.wire.write(self.server.outbox()).await?;
        self.server.sent();
        Ok(())
    }
}

/// The form that a body has.
fn read_form(request: &Request, body: &[u8]) -> Form {
    let kind = request.fields.get("content-type").unwrap_or_default();
    match body.is_empty() {
        true => Form::default(),
        false => block_in_place(|| Form::of_body(kind, body)),
    }
}

/// The reply, if there is memory for it until it is sent.
fn within(memory: &mut Held, reply: Reply) -> Option<Reply> {
    let bytes = match &reply.body {
        Body::Bytes(bytes) => bytes.len() as u64,
        Body::Content(_) => 0,
    };
    (bytes <= SMALL_BYTES || memory.take(bytes).is_ok()).then_some(reply)
}

/// Whether a proxy says that a request has come to it by TLS (RFC 7239): of several proxies the last one.
fn came_by_tls(request: &Request) -> bool {
    let last = |name: &'static str| {
        request.fields.all(name).last().and_then(|value| value.rsplit(|&byte| byte == b',').next())
    };
    if let Some(proto) = last("x-forwarded-proto") {
        return proto.trim_ascii().eq_ignore_ascii_case(b"https");
    }
    let mut pairs = last("forwarded").unwrap_or_default().split(|&byte| byte == b';').map(<[u8]>::trim_ascii);
    pairs.any(|pair| pair.eq_ignore_ascii_case(b"proto=https") || pair.eq_ignore_ascii_case(b"proto=\"https\""))
}

/// Whether a form logs somebody in.
fn is_login(call: &Call) -> bool {
    matches!(call.segments()[..], ["login"] | ["login", "passkey"])
}
