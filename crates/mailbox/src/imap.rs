//! Mail out, and in, by IMAP4rev1 (RFC 3501) and IMAP4rev2 (RFC 9051), with the extensions of [`CAPABILITIES`].
//!
//! A session holds one number for each message of the mailbox that it has selected, and a snapshot, which it shares with
//! everybody; what has changed is told by comparing the snapshot with the next one. Replies are written as they are made,
//! 32 KiB at a time, and messages are streamed.

mod append;
mod fetch;
mod find;
mod list;
mod login;
mod messages;
mod metadata;
mod notify;
mod render;
mod reply;
mod rights;
mod telling;

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use keep::view::View;
use proto::imap::acl::Rights;
use proto::imap::name::NOT_A_NAME;
use proto::imap::operation::{Operation, Qresync, SelectParameters};
use proto::imap::{Command, Config, Kind, Server, ServerEvent, Verb, response};
use store::{State, Uids};
use tokio::sync::{OwnedSemaphorePermit, watch};
use tokio::time::timeout_at;

use crate::accounts::Account;
use crate::acl::{self, Place};
use crate::guest::{Guest, Seat};
use crate::sasl::Exchange;
use crate::site::Site;
use crate::wire::{Stream, Wire};
use append::Append;
use notify::Notified;
use reply::{Done, Refusal, Reply, done, no, nonexistent};

pub(crate) use find::find;

/// Capabilities announced before and after the login.
pub const CAPABILITIES: &str = "IMAP4rev1 IMAP4rev2 LITERAL+ SASL-IR ID ENABLE IDLE NAMESPACE UIDPLUS UNSELECT MOVE CHILDREN SPECIAL-USE \
    CREATE-SPECIAL-USE LIST-EXTENDED LIST-STATUS STATUS=SIZE ESEARCH CONDSTORE QRESYNC SORT \
    THREAD=ORDEREDSUBJECT THREAD=REFERENCES MULTIAPPEND WITHIN OBJECTID SAVEDATE QUOTA \
    QUOTA=RES-STORAGE SEARCHRES BINARY PREVIEW ESORT CONTEXT=SEARCH \
    CONTEXT=SORT UTF8=ACCEPT CATENATE REPLACE COMPRESS=DEFLATE METADATA NOTIFY ACL RIGHTS=kxte";

/// Capabilities added before the login.
const LOGIN: &str = "AUTH=SCRAM-SHA-256 AUTH=PLAIN";

const NO_QRESYNC: Refusal = Refusal::Bad("ENABLE QRESYNC first");

/// How much of a reply is made before it is sent, in bytes.
const REPLY_BYTES: usize = 32 << 10;

/// How long a command may go on before it is looked whether the client is still there.
const NEW: Duration = Duration::from_millis(100);

fn capabilities(site: &Site) -> String {
    format!("{CAPABILITIES} APPENDLIMIT={}", site.message_bytes_max)
}

/// Speaks with a client until it goes.
///
/// # Errors
/// When the connection breaks.
pub async fn serve(stream: impl Stream, guest: impl Into<Guest>, site: &Site) -> io::Result<()> {
    let mut server = Server::new(Config { keeps: true, ..Config::default() }, site.now());
    server.line(format!("* OK [CAPABILITY {} {LOGIN}] {} IMAP Sluice", capabilities(site), site.hostname).as_bytes());
    let mut session = Session {
        site,
        guest: guest.into(),
        seat: None,
        wire: Wire::new(stream),
        server,
        changes: site.store.watch(),
        user: None,
        enabled: Enabled::default(),
        selected: None,
        append: None,
        waiting: None,
        exchange: None,
        notified: None,
        compressed: None,
        tag: Vec::new(),
        began: Instant::now(),
    };
    let outcome = session.run().await;
    session.leave().await;
    outcome?;
    session.wire.close().await;
    Ok(())
}

struct Session<'a, S> {
    site: &'a Site,
    guest: Guest,
    /// Held by who has logged in.
    seat: Option<Seat>,
    wire: Wire<S>,
    server: Server,
    changes: watch::Receiver<State>,
    user: Option<User>,
    enabled: Enabled,
    selected: Option<View>,
    append: Option<Box<Append>>,
    /// The tag of a command that is not over: IDLE, AUTHENTICATE.
    waiting: Option<(Verb, Vec<u8>)>,
    exchange: Option<Exchange>,
    notified: Option<Notified>,
    /// Held by who compresses.
    compressed: Option<OwnedSemaphorePermit>,
    /// The tag of the command under way.
    tag: Vec<u8>,
    began: Instant,
}

#[derive(Clone)]
struct User {
    account: Arc<Account>,
    number: u32,
}

/// Extensions that the client has enabled (RFC 5161), or implied by its commands.
#[derive(Debug, Clone, Copy, Default)]
struct Enabled {
    condstore: bool,
    qresync: bool,
    /// IMAP4rev2 (RFC 9051).
    rev2: bool,
    /// UTF8=ACCEPT (RFC 6855).
    utf8: bool,
}

impl Enabled {
    /// Whether the names of mailboxes are UTF-8 as they stand.
    fn has_utf8_names(self) -> bool {
        self.rev2 || self.utf8
    }
}

impl<S: Stream> Session<'_, S> {
    async fn run(&mut self) -> io::Result<()> {
        loop {
            let (taken, event) = self.server.step(self.site.now(), self.wire.input());
            if event == ServerEvent::Content
                && let Some(append) = &mut self.append
            {
                append.add(&self.wire.input()[..taken]).await;
            }
            self.wire.take(taken);
            if matches!(event, ServerEvent::Command(_)) && self.wire.is_flooded() {
                self.server.line(b"* BYE Too many commands in what was compressed");
                return self.flush().await;
            }
            match event {
                ServerEvent::Idle if taken > 0 => {}
                ServerEvent::Idle => {
                    self.flush().await?;
                    if !self.read().await? {
                        return Ok(());
                    }
                }
                ServerEvent::Content => {}
                ServerEvent::Closed => {
                    self.server.line(b"* BYE Protocol error");
                    return self.flush().await;
                }
                event => {
                    self.event(event).await?;
                    if self.server.is_closed() {
                        return self.flush().await;
                    }
                }
            }
        }
    }

    async fn read(&mut self) -> io::Result<bool> {
        let deadline = self.site.at(self.server.deadline());
        let is_idling = matches!(self.waiting, Some((Verb::Idle, _)));
        // Nothing is told in the midst of a command; behind it, what came meanwhile is.
        let is_told = is_idling || self.notified.is_some() && self.server.is_between();
        let next = self.notified.as_ref().filter(|_| !is_idling).map(|notified| notified.next);
        let changes = &mut self.changes;
        let changed = async {
            let changed = changes.changed().await;
            if let Some(next) = next {
                tokio::time::sleep_until(next).await;
            }
            changed
        };
        tokio::select! {
            read = timeout_at(deadline, self.wire.read()) => match read {
                Ok(read) => {
                    // What was waiting to be told still is.
                    self.changes.mark_changed();
                    read
                }
                Err(_) => {
                    self.wire.write(b"* BYE Idle for too long\r\n").await?;
                    Ok(false)
                }
            },
            changed = changed, if is_told => {
                if changed.is_ok() {
                    self.tell_as_it_happens(is_idling).await?;
                    self.flush().await?;
                }
                Ok(changed.is_ok())
            }
            () = self.guest.lost() => {
                self.wire.write(b"* BYE [UNAVAILABLE] Too many clients that have not logged in\r\n").await?;
                Ok(false)
            }
            () = self.site.ended() => {
                self.wire.write(b"* BYE Shutting down\r\n").await?;
                Ok(false)
            }
        }
    }

    async fn flush(&mut self) -> io::Result<()> {
        let reply = self.server.outbox();
        self.site.numbers.reply_bytes_most.fetch_max(reply.len() as u64, Relaxed);
        self.wire.write(reply).await?;
        self.server.sent();
        Ok(())
    }

    /// Sends what has been made, if it is much.
    async fn flush_much(&mut self) -> io::Result<()> {
        if self.server.outbox().len() < REPLY_BYTES {
            return Ok(());
        }
        self.flush().await
    }

    async fn event(&mut self, event: ServerEvent) -> io::Result<()> {
        match event {
            ServerEvent::Command(command) if command.is_append() => self.append_at_once(&command).await,
            ServerEvent::Command(command) => self.command(&command).await,
            ServerEvent::Wrong(tag, reason) => self.answer(&tag, Err(Refusal::Bad(reason))),
            ServerEvent::Response(response) => {
                let tag = self.waiting.take().map(|(_, tag)| tag).unwrap_or_default();
                self.authenticate(tag, &response).await
            }
            ServerEvent::Done => {
                let tag = self.waiting.take().map(|(_, tag)| tag).unwrap_or_default();
                self.tell_all(true, None).await?;
                self.answer(&tag, Ok("Idle completed".into()))
            }
            ServerEvent::Append(command, message) => self.begin_append(&command, message).await,
            ServerEvent::Message(text, message) => self.next_append(&text, message).await,
            ServerEvent::AppendEnd(text) => self.end_append(&text).await,
            ServerEvent::Idle | ServerEvent::Content | ServerEvent::Closed => Ok(()),
        }
    }

    /// Answers a command, and hears the next.
    fn answer(&mut self, tag: &[u8], reply: Reply) -> io::Result<()> {
        let (kind, text) = match reply {
            Ok(text) => (Kind::Ok, text),
            Err(Refusal::No(text)) => (Kind::No, text),
            Err(Refusal::Bad(text)) => (Kind::Bad, text.into()),
            Err(Refusal::Broken(error)) => return Err(error),
        };
        self.server.line(&[tag, format!(" {} {text}", kind.name()).as_bytes()].concat());
        self.server.answered(self.site.now(), kind);
        Ok(())
    }

    /// True if the command under way has just begun.
    fn is_new(&self) -> bool {
        self.began.elapsed() < NEW
    }

    async fn command(&mut self, command: &Command) -> io::Result<()> {
        let operation = match Operation::parse(command, self.enabled.has_utf8_names()) {
            Ok(operation) => operation,
            Err(NOT_A_NAME) => {
                if command.verb == Verb::Select {
                    self.leave_for_another().await;
                }
                return self.answer(&command.tag, Err(no(&format!("[CANNOT] {NOT_A_NAME}"))));
            }
            Err(reason) => return self.answer(&command.tag, Err(Refusal::Bad(reason))),
        };
        match operation {
            Operation::Idle => {
                self.waiting = Some((Verb::Idle, command.tag.clone()));
                // What came before is told at once.
                self.changes.mark_changed();
                self.server.idle(b"Idling");
                return Ok(());
            }
            Operation::Authenticate { ref mechanism, ref initial } => {
                self.exchange = Exchange::begin(mechanism);
                match initial {
                    _ if self.exchange.is_none() => {}
                    Some(initial) => return self.authenticate(command.tag.clone(), initial).await,
                    None => {
                        self.waiting = Some((Verb::Authenticate, command.tag.clone()));
                        self.server.challenge(b"");
                        return Ok(());
                    }
                }
            }
            Operation::Compress(ref mechanism) => return self.compress(&command.tag, mechanism).await,
            Operation::Logout => {
                self.server.line(b"* BYE Logging out");
                return self.answer(&command.tag, Ok("Logged out".into()));
            }
            _ => {}
        }
        // Numbers of messages must not change where the client may be using them.
        let may_expunge = !matches!(command.name, "FETCH" | "STORE" | "SEARCH" | "SORT" | "THREAD");
        (self.tag, self.began) = (command.tag.clone(), Instant::now());
        let outcome = self.operate(operation).await;
        match outcome {
            Ok(Done { text, untold }) => {
                // What a command does to flags is told, whatever else is.
                let is_own = matches!(command.name, "FETCH" | "STORE" | "UID FETCH" | "UID STORE");
                self.tell_all(may_expunge, is_own.then_some(&*untold)).await?;
                self.answer(&command.tag, Ok(text))
            }
            Err(refusal) => self.answer(&command.tag, Err(refusal)),
        }
    }

    /// From behind its answer on all is compressed.
    async fn compress(&mut self, tag: &[u8], mechanism: &str) -> io::Result<()> {
        let refusal = match self.site.compressed.clone().try_acquire_owned() {
            _ if mechanism != "DEFLATE" => Refusal::Bad("Unknown mechanism"),
            _ if self.wire.is_compressed() => no("[COMPRESSIONACTIVE] Compression is active already"),
            Err(_) => no("[LIMIT] Too many sessions are compressed"),
            Ok(permit) => {
                self.compressed = Some(permit);
                self.answer(tag, Ok("Compressed from here on".into()))?;
                self.flush().await?;
                self.wire.compress();
                return Ok(());
            }
        };
        self.answer(tag, Err(refusal))
    }

    async fn operate(&mut self, operation: Operation) -> Result<Done, Refusal> {
        match operation {
            Operation::Capability => {
                let login = if self.user.is_none() { format!(" {LOGIN}") } else { String::new() };
                self.server.line(format!("* CAPABILITY {}{login}", capabilities(self.site)).as_bytes());
                return done("Capability completed");
            }
            Operation::Noop => return done("Completed"),
            Operation::Id => {
                self.server.line(b"* ID (\"name\" \"Sluice\")");
                return done("ID completed");
            }
            Operation::Starttls => return Err(Refusal::Bad("TLS is not offered here")),
            Operation::Login { user, password } => return self.log_in(user, &password).await,
            Operation::Authenticate { .. } => return Err(no("[CANNOT] Unknown mechanism")),
            _ => {}
        }
        let user = self.user()?.clone();
        match operation {
            Operation::Enable(words) => self.enable(&words),
            Operation::Namespace => {
                self.server.line(b"* NAMESPACE ((\"\" \"/\")) ((\"Other Users/\" \"/\")) NIL");
                done("Namespace completed")
            }
            Operation::Select { mailbox, read_only, parameters } => {
                self.select(&user, &mailbox, read_only, parameters).await
            }
            Operation::Create { mailbox, uses } => self.create(&user, mailbox, &uses).await,
            Operation::Delete(mailbox) => self.delete(&user, mailbox).await,
            Operation::Rename { from, to } => self.rename(&user, from, to).await,
            Operation::Subscribe { mailbox, subscribed } => self.subscribe(&user, mailbox, subscribed).await,
            Operation::List(list) => self.list(&user, &list).await,
            Operation::Status { mailbox, items } => {
                let place = self.place(&user, &mailbox, Rights::READ)?;
                let status = self.status(&mailbox, place.number, &place.mailbox, &items);
                self.server.bytes(&status);
                done("Status completed")
            }
            Operation::GetQuota(root) if root.is_empty() && user.account.quota_bytes > 0 => {
                self.quota(&user);
                done("Quota completed")
            }
            Operation::GetQuota(_) => Err(no("[NONEXISTENT] No such quota root")),
            Operation::GetQuotaRoot(mailbox) => {
                // What others may have is theirs to know, and an account without a bound has no root.
                let has_root = !mailbox.starts_with(acl::OTHERS) && user.account.quota_bytes > 0;
                let mut line = b"* QUOTAROOT ".to_vec();
                response::mailbox(&mailbox, self.enabled.has_utf8_names(), &mut line);
                line.extend_from_slice(if has_root { b" \"\"\r\n" } else { b"\r\n" });
                self.server.bytes(&line);
                if has_root {
                    self.quota(&user);
                }
                done("Quota completed")
            }
            Operation::GetAcl(mailbox) => self.get_acl(&user, &mailbox),
            Operation::MyRights(mailbox) => self.my_rights(&user, &mailbox),
            Operation::ListRights { mailbox, who } => self.list_rights(&user, &mailbox, &who),
            Operation::SetAcl { mailbox, who, modification } => self.set_acl(&user, &mailbox, &who, modification).await,
            Operation::GetMetadata { mailbox, asked } => self.get_metadata(&user, &mailbox, &asked).await,
            Operation::SetMetadata { mailbox, changes } => self.set_metadata(&user, &mailbox, changes).await,
            Operation::Notify(wanted) => self.set_notify(&user, wanted).await,
            operation => self.on_messages(&user, operation).await,
        }
    }

    async fn select(
        &mut self,
        user: &User,
        name: &[u8],
        read_only: bool,
        parameters: SelectParameters,
    ) -> Result<Done, Refusal> {
        if parameters.qresync.is_some() && !self.enabled.qresync {
            return Err(NO_QRESYNC);
        }
        self.enabled.condstore |= parameters.condstore;
        self.leave_for_another().await;
        let Place { number, mailbox, rights, .. } = self.place(user, name, Rights::READ)?;
        let is_examined = read_only;
        let read_only = is_examined || !rights.has_any(acl::CHANGES);
        let view = render::open(number, mailbox.clone(), (read_only, rights), &self.site.recents);
        self.server.bytes(&render::opening(&view, self.enabled));
        if self.enabled.rev2 {
            // What it is called (RFC 9051, section 6.3.2).
            let mut line = b"* LIST () \"/\" ".to_vec();
            response::mailbox(name, true, &mut line);
            line.extend_from_slice(b"\r\n");
            self.server.bytes(&line);
        }
        let qresync = parameters.qresync.filter(|qresync| qresync.validity == mailbox.uid_validity);
        if let Some(Qresync { modseq, known, .. }) = qresync {
            let last = mailbox.uid_next.saturating_sub(1);
            let known = known.map_or_else(Uids::all, |known| known.runs(last).collect());
            let mut told = Vec::new();
            render::vanished(&view, modseq, &known, &mut told);
            render::changed(&view, modseq, &known, self.enabled, &mut told);
            self.pass(&told).await?;
        }
        self.selected = Some(view);
        done(match (is_examined, read_only) {
            (true, _) => "[READ-ONLY] Examined",
            (_, true) => "[READ-ONLY] Selected",
            _ => "[READ-WRITE] Selected",
        })
    }

    async fn leave_for_another(&mut self) {
        if self.leave().await {
            self.server.line(b"* OK [CLOSED] The mailbox before is closed");
        }
    }

    /// Leaves the mailbox that is selected; whether there was one.
    async fn leave(&mut self) -> bool {
        let Some(view) = self.selected.take() else { return false };
        if !view.read_only {
            self.site.recents.note(&self.site.store, view.number).await;
        }
        true
    }

    fn quota(&mut self, user: &User) {
        let state = self.site.store.state();
        let used = state.account(user.number).map_or(0, |account| account.used_bytes.div_ceil(1024));
        let bound = user.account.quota_bytes / 1024;
        self.server.line(format!("* QUOTA \"\" (STORAGE {used} {bound})").as_bytes());
    }
}
