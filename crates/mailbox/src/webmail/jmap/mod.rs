//! JMAP at the door of the webmail: `/.well-known/jmap`, `/jmap/session`, `/jmap/api`, `/jmap/upload`, `/jmap/download`, `/jmap/events`, `/jmap/ws`.
//!
//! Clients log in with each request (`Basic`, RFC 7617), and their passwords are throttled as everywhere. A request that a page of
//! another site has sent is refused, whatever the browser has added to it; so is a body that is not declared as JSON, which forms
//! cannot do.

mod host;
mod socket;

use std::io;
use std::sync::Arc;
use std::time::Duration;

use ::jmap::{Index, Problem, account_id, answer, blob, changed, limits, session};
use ::webmail::{Call, Reply};
use proto::http::{Fields, Framing, Request, basic_credentials};
use store::State;
use tokio::task::block_in_place;
use tokio::time::{Instant, sleep};

use self::host::Door;
use super::host::{self as pages, Server};
use super::{Connection, FORM_WAIT, Unread, within};
use crate::account::Account;
use crate::login::{Caller, Denied};
use crate::site::{Site, open_account};
use crate::wire::Stream;

/// How often an account is checked for changes while clients wait for them.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// The bounds of the time between two signs of life, in seconds (RFC 8620, section 7.3).
const PING_SECONDS: (u64, u64) = (30, 900);

/// Requests and answers of the account take all the memory that it has.
const CROWDED: Problem = Problem::Limit("maxConcurrentRequests");

/// The types whose changes are told.
const TYPES: [&str; 4] = ["Mailbox", "Email", DELIVERY, "Thread"];

/// The type that changes only with a new Email (RFC 8621, section 1.5).
const DELIVERY: &str = "EmailDelivery";

/// An account as a client that waits for changes knows it.
struct Watch {
    account: u32,
    snapshot: State,
    state: u64,
}

impl Watch {
    fn new(site: &Site, account: u32) -> Watch {
        let snapshot = site.store.state();
        Watch { account, state: Index::state(&snapshot, account), snapshot }
    }

    /// The change of these types since it was looked at, if there is one.
    fn look(&mut self, site: &Site, types: &[&'static str]) -> Option<String> {
        let snapshot = site.store.state();
        if snapshot.commits == self.snapshot.commits {
            return None;
        }
        let before = std::mem::replace(&mut self.snapshot, snapshot);
        let state = Index::state(&self.snapshot, self.account);
        if std::mem::replace(&mut self.state, state) == state {
            return None;
        }
        let has_grown = Index::has_grown(&before, &self.snapshot, self.account);
        let told: Vec<&str> = types.iter().copied().filter(|name| *name != DELIVERY || has_grown).collect();
        (!told.is_empty()).then(|| changed(self.account, &told, state))
    }
}

/// Whether a request is one of JMAP.
pub(super) fn is_meant(call: &Call) -> bool {
    matches!(call.segments()[..], ["jmap", ..] | [".well-known", "jmap"])
}

impl<S: Stream> Connection<'_, S> {
    /// Answers a request of JMAP.
    pub(super) async fn jmap(&mut self, request: &Request, call: &Call) -> io::Result<()> {
        if call.is_foreign {
            return self.refuse(request, problem(403, "Another site has sent this request.")).await;
        }
        let (account, number) = match self.authorised(request).await? {
            Ok(account) => account,
            Err(reply) => return self.refuse(request, reply).await,
        };
        if !self.sit(number) {
            self.server.close();
            return self.refuse(request, problem(429, "Too many connections of this account.")).await;
        }
        match (request.method.as_str(), &call.segments()[..]) {
            ("GET" | "HEAD", [".well-known", "jmap"] | ["jmap", "session"]) => {
                let base = self.base(request);
                let text = block_in_place(|| session(&door(self.site, &account, number), &base));
                let mut reply = Reply::json(200, text);
                reply.set("Cache-Control", "no-cache, no-store, must-revalidate".into());
                self.refuse(request, reply).await
            }
            ("POST", ["jmap", "api"]) => self.api(request, &account, number).await,
            ("POST", ["jmap", "upload", id]) if *id == account_id(number) => {
                self.upload(request, &account, number).await
            }
            ("GET", ["jmap", "download", id, blob, name]) if *id == account_id(number) => {
                self.download((blob, name, call.query.get("accept")), &account, number).await
            }
            ("GET", ["jmap", "events"]) => self.events(call, number).await,
            ("GET", ["jmap", "ws"]) => self.socket(request, account, number).await,
            _ => self.refuse(request, problem(404, "There is no such resource.")).await,
        }
    }

    /// The account that a request logs in to, and its number; or the refusal.
    async fn authorised(&mut self, request: &Request) -> io::Result<Result<(Arc<Account>, u32), Reply>> {
        let Some((name, password)) = request.fields.get("authorization").and_then(basic_credentials) else {
            return Ok(Err(unauthorised()));
        };
        let (caller, logins) = (Caller { door: "jmap", client: self.guest.client }, &self.site.logins);
        let checked = match self.guest.wait(&mut self.wire, logins.attempt(caller, &name)).await? {
            Ok(attempt) => logins.check(attempt, &password).await,
            Err(why) => Err(why),
        };
        let account = match checked {
            Ok(account) => account,
            Err(Denied::Wrong) => return Ok(Err(unauthorised())),
            Err(_) => return Ok(Err(problem(503, "Logins are unavailable now. Try again later."))),
        };
        let number = open_account(&self.site.store, &account).await;
        Ok(number.map(|number| (account, number)).map_err(|_| problem(503, "The mail store cannot be opened now.")))
    }

    /// The URL of this server as the client knows it.
    fn base(&self, request: &Request) -> String {
        let host = request.authority().and_then(|host| std::str::from_utf8(host).ok()).unwrap_or(&self.site.hostname);
        format!("{}://{host}", if self.is_secure { "https" } else { "http" })
    }

    async fn api(&mut self, request: &Request, account: &Account, number: u32) -> io::Result<()> {
        let kind = request.fields.get("content-type").unwrap_or_default();
        let is_json = kind.get(..16).is_some_and(|kind| kind.eq_ignore_ascii_case(b"application/json"));
        let mut memory = self.memory(Some(&account.name));
        let body = match self.body(request, (limits::REQUEST_BYTES_MAX, FORM_WAIT), &mut memory).await? {
            Ok(body) if is_json => body,
            Ok(_) => return self.refuse(request, refused(Problem::NotJson)).await,
            Err(Unread::TooLarge(_)) => return self.refuse(request, refused(Problem::Limit("maxSizeRequest"))).await,
            Err(Unread::Crowded) => return self.refuse(request, refused(CROWDED)).await,
        };
        let turn = self.guest.wait(&mut self.wire, self.site.readers.turn(number)).await?;
        let answered = block_in_place(|| answer(&mut door(self.site, account, number), &body));
        drop(turn);
        let reply = answered.map_or_else(refused, |text| Reply::json(200, text));
        let reply = within(&mut memory, reply).unwrap_or_else(|| refused(CROWDED));
        self.refuse(request, reply).await
    }

    async fn upload(&mut self, request: &Request, account: &Account, number: u32) -> io::Result<()> {
        let mut memory = self.memory(Some(&account.name));
        let body = match self.body(request, (limits::UPLOAD_BYTES_MAX, FORM_WAIT), &mut memory).await? {
            Ok(body) => body,
            Err(Unread::TooLarge(_)) => return self.refuse(request, refused(Problem::Limit("maxSizeUpload"))).await,
            Err(Unread::Crowded) => return self.refuse(request, refused(Problem::Limit("maxConcurrentUpload"))).await,
        };
        let kind = media_type(request.fields.get("content-type").unwrap_or_default());
        let size = body.len();
        let kept = ::jmap::Host::keep_upload(&mut door(self.site, account, number), &kind, body);
        let reply = match kept {
            Some(id) => Reply::json(201, ::jmap::uploaded(number, &id, &kind, size)),
            None => problem(503, "There is no room for uploads now."),
        };
        self.refuse(request, reply).await
    }

    /// Sends a blob, whatever it is, as a file that a browser saves.
    async fn download(
        &mut self,
        (id, name, kind): (&str, &str, &str),
        account: &Account,
        number: u32,
    ) -> io::Result<()> {
        let _turn = self.guest.wait(&mut self.wire, self.site.readers.turn(number)).await?;
        let mut door = door(self.site, account, number);
        let Some(mut content) = block_in_place(|| blob(&mut door, id)) else {
            return self.reply(problem(404, "There is no such blob."), None, false).await;
        };
        let mut reply = Reply::saved(Vec::new(), "file");
        reply.set("Content-Disposition", ::webmail::attachment_named(name));
        reply.set("Content-Type", media_type(kind.as_bytes()));
        // Content never changes under its id (RFC 8620, section 6.2).
        reply.set("Cache-Control", "private, immutable, max-age=31536000".into());
        let mut head = reply.head();
        head.framing = Framing::Chunked;
        self.server.respond(&head);
        while let Some(piece) = block_in_place(|| content.next(&mut door)) {
            self.server.content(&piece);
            self.wire.write(self.server.outbox()).await?;
            self.server.sent();
        }
        if content.is_broken() {
            // Without the last chunk a client knows that something is missing.
            return Err(io::Error::other("a message cannot be read"));
        }
        self.server.end(&Fields::default());
        self.flush().await
    }

    /// Tells that the account has changed, each time that it has (RFC 8620, section 7.3).
    async fn events(&mut self, call: &Call, number: u32) -> io::Result<()> {
        let closes = call.query.get("closeafter") == "state";
        let ping = call.query.get("ping").parse::<u64>().unwrap_or(0);
        let ping = (ping > 0).then(|| Duration::from_secs(ping.clamp(PING_SECONDS.0, PING_SECONDS.1)));
        let wanted: Vec<&str> = call.query.get("types").split(',').map(str::trim).collect();
        let told: Vec<&'static str> =
            TYPES.into_iter().filter(|name| wanted.iter().any(|one| one == name || *one == "*")).collect();
        let mut reply = Reply::json(200, String::new());
        reply.set("Content-Type", "text/event-stream".into());
        let mut head = reply.head();
        head.framing = Framing::Chunked;
        self.server.respond(&head);
        self.flush().await?;
        let (mut watch, mut said) = (Watch::new(self.site, number), Instant::now());
        loop {
            tokio::select! {
                () = self.guest.lost() => return Err(io::Error::other("another client has the place")),
                () = self.site.ended() => break,
                () = sleep(LOOK_EVERY) => {}
            }
            let change = watch.look(self.site, &told);
            let has_changed = change.is_some();
            let text = match (change, ping) {
                (Some(change), _) => format!("event: state\ndata: {change}\n\n"),
                (None, Some(ping)) if said.elapsed() >= ping => {
                    format!("event: ping\ndata: {{\"interval\":{}}}\n\n", ping.as_secs())
                }
                _ => continue,
            };
            said = Instant::now();
            self.server.content(text.as_bytes());
            self.flush().await?;
            if has_changed && closes {
                break;
            }
        }
        self.server.end(&Fields::default());
        self.flush().await
    }

    async fn refuse(&mut self, request: &Request, reply: Reply) -> io::Result<()> {
        self.reply(reply, None, request.method == "HEAD").await
    }
}

/// The store of an account, for one request.
fn door<'a>(site: &'a Site, account: &Account, number: u32) -> Door<'a> {
    let user = pages::user(site, account, number);
    let known = ::jmap::Account { number, name: user.name, addresses: user.addresses };
    Door::new(Server::new(site, &account.name), known)
}

fn unauthorised() -> Reply {
    let mut reply = problem(401, "A name and a password are needed.");
    reply.set("WWW-Authenticate", "Basic realm=\"mail\", charset=\"UTF-8\"".into());
    reply
}

fn refused(refusal: Problem) -> Reply {
    let (status, text) = refusal.reply();
    problem_of(status, text)
}

fn problem(status: u16, detail: &str) -> Reply {
    problem_of(status, ::jmap::details(status, detail))
}

fn problem_of(status: u16, text: String) -> Reply {
    let mut reply = Reply::json(status, text);
    reply.set("Content-Type", "application/problem+json".into());
    reply
}

/// A media type without parameters, if it is one; of what is none nothing is known.
fn media_type(value: &[u8]) -> String {
    let value = value.split(|&byte| byte == b';').next().unwrap_or_default().trim_ascii();
    let is_token = |byte: &u8| byte.is_ascii_alphanumeric() || b"!#$&-^_.+/".contains(byte);
    let is_type =
        value.iter().all(is_token) && value.iter().filter(|&&byte| byte == b'/').count() == 1 && value.len() < 128;
    match is_type {
        true => String::from_utf8_lossy(value).to_ascii_lowercase(),
        false => "application/octet-stream".into(),
    }
}
