//! A session between a client and its mailbox.

use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use proto::pop3::{
    Client, ClientEvent, Command, Config, Server, ServerEvent, Verb, answer_to_client, listed_to_client,
};
use proto::smtp::LineReader;
use stream::Window;

use super::TASKS_MAX;
use super::upstream::Upstream;
use crate::mailbox::retrieval::{Outcome, Reader, Retrieval, Sees};
use crate::message::known::{Key, Named};
use crate::message::trace::printable;
use crate::net::wire::Wire;
use crate::porch::door::Door;
use crate::porch::gate::Ticket;
use crate::porch::shared::Shared;
use crate::settings::ListenerTls;

/// How long the server may take to answer.
const SERVER_WAIT: Duration = Duration::from_secs(300);

/// Bytes of content made at a time.
const CONTENT_BYTES: usize = 32 << 10;

/// Bytes gathered for the client before they are sent.
const OUTBOX_BYTES: usize = 32 << 10;

/// The last word to a client that has not logged in, and whose place is another's.
const LOST: &str = "[SYS/TEMP] Too many clients that have not logged in";

/// A session.
pub struct Session {
    shared: Rc<Shared>,
    door: Arc<Door>,
    address: SocketAddr,
    /// Its place at the door.
    ticket: Ticket,
    client: Wire,
    server: Wire,
    /// Hears the client.
    hears: Server,
    /// Asks the server.
    asks: Client,
    /// Commands to answer, oldest first.
    tasks: VecDeque<Task>,
    user: Option<String>,
    /// The message whose lasting name was asked for last.
    named: Option<u32>,
    /// The name that was told last, and of which message.
    uid: Option<(u32, Vec<u8>)>,
    /// Messages in the mailbox, where the client has asked for that.
    count: Option<u32>,
    /// Lines of the listing under way.
    lines: u32,
    /// A listing had a line that is no entry, which was logged.
    has_strayed: bool,
    /// The message under way, and what the server said before it, until the client has heard that.
    retrieval: Option<(Box<Retrieval>, Option<Vec<u8>>)>,
    content: Window,
    started: Instant,
}

/// A command that is not answered.
enum Task {
    /// The server's reply goes to the client.
    Pass(Verb),
    /// The same, and it is a message, or the top of one: that with this number.
    Message(Option<u32>, Sees),
    /// The server's reply says whether the client is let in.
    Login,
    /// We asked for the name of this message.
    Name(u32),
    /// We say this.
    Say(bool, &'static str),
    /// A handshake.
    Stls,
}

/// Continuation after an event.
#[derive(PartialEq, Eq)]
enum Next {
    Go,
    /// Nothing more can be done with what is here.
    Wait,
    Over,
}

impl Session {
    /// A session that begins; the server has greeted.
    pub fn new(
        shared: Rc<Shared>,
        door: Arc<Door>,
        (address, ticket): (SocketAddr, Ticket),
        client: Wire,
        upstream: Upstream,
    ) -> Session {
        let mut hears = Server::new(Config::default(), 0);
        hears.say(true, &upstream.greeting);
        Session {
            shared,
            door,
            address,
            ticket,
            client,
            server: upstream.wire,
            hears,
            asks: upstream.client,
            tasks: VecDeque::new(),
            user: None,
            named: None,
            uid: None,
            count: None,
            lines: 0,
            has_strayed: false,
            retrieval: None,
            content: Window::with_capacity(LineReader::ROOM_MIN),
            started: Instant::now(),
        }
    }

    /// Runs it to its end.
    pub async fn run(mut self) -> io::Result<()> {
        loop {
            while self.hear_server().await? == Next::Go {}
            while self.hear_client() == Next::Go {}
            if self.settle().await? == Next::Over {
                break;
            }
            self.flush().await?;
            if self.hears.is_closed() || self.wait().await? == Next::Over {
                break;
            }
        }
        self.flush().await?;
        self.client.close().await;
        Ok(())
    }

    async fn flush(&mut self) -> io::Result<()> {
        self.client.write(self.hears.outbox()).await?;
        self.hears.sent();
        self.server.write(self.asks.outbox()).await?;
        self.asks.sent();
        Ok(())
    }

    /// Waits until either side has said something, or patience ends.
    async fn wait(&mut self) -> io::Result<Next> {
        let idle = self.tasks.is_empty();
        let patience = match idle {
            true => self.started + Duration::from_millis(self.hears.deadline()),
            false => Instant::now() + SERVER_WAIT,
        };
        let session = self.started + Duration::from_secs(self.door.listener.session_seconds_max());
        let listening = self.hears.is_listening() && self.tasks.len() < TASKS_MAX;
        let mut control = self.shared.control.clone();
        tokio::select! {
            biased;
            read = self.server.read() => {
                if !read? {
                    self.say(false, "[SYS/TEMP] The server is gone");
                    return Ok(Next::Over);
                }
            }
            read = self.client.read(), if listening => return Ok(if read? { Next::Go } else { Next::Over }),
            () = tokio::time::sleep_until(patience.min(session).into()) => {
                self.say(false, if idle { "Timeout" } else { "[SYS/TEMP] The server took too long" });
                return Ok(Next::Over);
            }
            () = self.ticket.lost() => {
                self.say(false, LOST);
                return Ok(Next::Over);
            }
            _ = control.wait_for(|control| control.stopping), if idle => {
                self.say(false, "[SYS/TEMP] Shutting down, try again later");
                return Ok(Next::Over);
            }
        }
        Ok(Next::Go)
    }

    /// Milliseconds since the session began.
    fn now(&self) -> u64 {
        self.started.elapsed().as_millis() as u64
    }

    /// Says a last word, unless that would stand in the middle of something.
    fn say(&mut self, ok: bool, text: &str) {
        if self.retrieval.as_ref().is_none_or(|(retrieval, _)| !retrieval.is_streaming()) {
            self.hears.say(ok, text.as_bytes());
        }
    }
}

/// Commands of the client.
impl Session {
    fn hear_client(&mut self) -> Next {
        if self.tasks.len() >= TASKS_MAX {
            return Next::Wait;
        }
        let (taken, event) = self.hears.step(self.now(), self.client.input());
        self.client.take(taken);
        match event {
            ServerEvent::Idle if taken == 0 => return Next::Wait,
            ServerEvent::Idle => {}
            ServerEvent::Command(command) => self.obey(command),
            ServerEvent::Wrong(reason) => self.tasks.push_back(Task::Say(false, reason)),
            ServerEvent::Response(response) => {
                if self.user.is_none() {
                    self.user = self.hears.user_in(&response);
                }
                self.asks.respond(&response);
            }
            ServerEvent::Closed => return Next::Wait,
        }
        Next::Go
    }

    fn obey(&mut self, command: Command) {
        let verb = command.verb;
        let offered = matches!(self.door.listener.place.tls, ListenerTls::Offer | ListenerTls::Require);
        let in_the_clear = self.door.listener.place.tls == ListenerTls::Require && !self.client.is_encrypted();
        if in_the_clear && !matches!(verb, Verb::Capa | Verb::Stls | Verb::Quit | Verb::Noop) {
            self.hears.answered(self.now(), false);
            return self.tasks.push_back(Task::Say(false, "Say STLS first"));
        }
        let task = match verb {
            Verb::Stls if offered && !self.client.is_encrypted() => return self.tasks.push_back(Task::Stls),
            Verb::Stls => {
                self.hears.answered(self.now(), false);
                return self.tasks.push_back(Task::Say(false, "Not available"));
            }
            Verb::Auth if command.mechanism().is_none() => Task::Pass(verb),
            Verb::User | Verb::Apop | Verb::Auth => {
                self.user = command.user();
                if verb == Verb::User { Task::Pass(verb) } else { Task::Login }
            }
            Verb::Pass => Task::Login,
            Verb::Retr | Verb::Top => {
                let message = command.message();
                message.into_iter().for_each(|message| self.name(message));
                let sees = if verb == Verb::Top { Sees::Top } else { Sees::Message };
                self.ask(command, Task::Message(message, sees));
                // Who reads one mostly reads the next: its name comes behind this message, and is not waited for.
                let next = message.and_then(|message| message.checked_add(1));
                let next = next.filter(|next| self.count.is_none_or(|count| *next <= count));
                return next.into_iter().for_each(|next| self.name(next));
            }
            _ => Task::Pass(verb),
        };
        self.ask(command, task);
    }

    fn ask(&mut self, command: Command, task: Task) {
        self.asks.command(command);
        self.tasks.push_back(task);
    }

    /// Asks for the lasting name of a message, unless that is known already.
    fn name(&mut self, message: u32) {
        if self.named != Some(message) {
            self.named = Some(message);
            self.ask(Command::uidl(message), Task::Name(message));
        }
    }

    /// Gives the replies that are ours, and returns the side that is next.
    async fn settle(&mut self) -> io::Result<Next> {
        while let Some(Task::Say(..) | Task::Stls) = self.tasks.front() {
            match self.tasks.pop_front() {
                Some(Task::Say(ok, text)) => self.hears.say(ok, text.as_bytes()),
                _ => self.secure().await?,
            }
        }
        Ok(if self.hears.is_closed() { Next::Over } else { Next::Go })
    }

    /// Shakes hands; what the client has sent before that is thrown away.
    async fn secure(&mut self) -> io::Result<()> {
        let tls = self.shared.runtime.borrow().tls.clone();
        let tls = tls.ok_or_else(|| io::Error::other("no certificate any more"))?;
        self.hears.say(true, b"Begin TLS negotiation");
        self.flush().await?;
        self.client.accept_tls(tls).await?;
        self.user = None;
        self.hears.secured(self.now());
        Ok(())
    }
}

/// Replies of the server.
impl Session {
    async fn hear_server(&mut self) -> io::Result<Next> {
        if self.hears.outbox().len() > OUTBOX_BYTES {
            self.client.write(self.hears.outbox()).await?;
            self.hears.sent();
        }
        self.settle().await?;
        self.content.clear();
        let (taken, event) = self.asks.step(self.server.input(), &mut self.content);
        self.server.take(taken);
        match event {
            ClientEvent::Idle if taken == 0 => return Ok(Next::Wait),
            ClientEvent::Idle => {}
            ClientEvent::Status { ok, text, more } => {
                self.status(ok, text, more);
                // It need not wait until the first of the message is here, or inspected.
                if self.announce(false) {
                    self.flush().await?;
                }
            }
            ClientEvent::Challenge(text) => self.hears.challenge(&text),
            ClientEvent::Line(line) => self.listed(line),
            ClientEvent::Content => return self.pass_content().await,
            ClientEvent::End => return self.end().await,
            ClientEvent::Broken(reason) => {
                tracing::warn!(server = %self.door.route.forward, reason, "upstream protocol error");
                self.say(false, "[SYS/TEMP] Upstream protocol error");
                self.hears.close();
                return Ok(Next::Wait);
            }
        }
        Ok(Next::Go)
    }

    fn status(&mut self, ok: bool, text: Vec<u8>, more: bool) {
        self.lines = 0;
        match self.tasks.front() {
            Some(&Task::Name(message)) => {
                // "+OK 7 NAME"
                let answer = if ok { answer_to_client(Verb::Uidl, &text) } else { None };
                let name = answer.as_deref().and_then(|answer| answer.splitn(2, |&byte| byte == b' ').nth(1));
                self.uid = name.map(|name| (message, name.into()));
                if self.uid.is_none() {
                    self.named = None;
                }
                self.tasks.pop_front();
            }
            Some(&Task::Message(message, sees)) if more => self.retrieve(message, sees, text),
            Some(Task::Message(..)) => {
                self.hears.say(ok, &text);
                self.tasks.pop_front();
            }
            Some(Task::Pass(verb)) => {
                let verb = *verb;
                if verb == Verb::Stat && ok {
                    self.count = first_number(&text);
                }
                match verb {
                    Verb::List | Verb::Uidl | Verb::Stat if ok && !more => self.answer(verb, &text),
                    _ => self.hears.say(ok, &text),
                }
                if !more {
                    self.tasks.pop_front();
                }
                if verb == Verb::Quit {
                    self.hears.close();
                }
            }
            Some(Task::Login) => {
                self.hears.say(ok, &text);
                self.hears.answered(self.now(), ok);
                if ok && !self.ticket.log_in() {
                    self.hears.close();
                }
                if ok {
                    tracing::debug!(client = %self.address, user = self.shown_user(), "logged in");
                }
                self.tasks.pop_front();
            }
            // The half tells nothing that was not asked for, and what is ours is settled before.
            _ => self.hears.close(),
        }
    }

    fn shown_user(&self) -> String {
        printable(self.user.as_deref().unwrap_or_default())
    }

    fn listed(&mut self, line: Vec<u8>) {
        let Some(&Task::Pass(verb)) = self.tasks.front() else { return };
        let told = listed_to_client(verb, self.lines, &line);
        self.lines = self.lines.saturating_add(1);
        self.compare(verb, &line, told.as_deref());
        if let Some(line) = told {
            self.hears.content(&[line.as_slice(), b"\r\n"].concat());
        }
    }

    /// An answer of one line that is a listing of one message, or of the mailbox.
    fn answer(&mut self, verb: Verb, text: &[u8]) {
        let told = answer_to_client(verb, text);
        self.compare(verb, text, told.as_deref());
        if told.is_none() && !text.is_empty() {
            return self.hears.say(false, b"[SYS/TEMP] The server's answer makes no sense");
        }
        self.hears.say(true, &told.unwrap_or_default());
    }

    /// Logs once that a listing holds more than numbers and names, which is left out.
    fn compare(&mut self, verb: Verb, line: &[u8], told: Option<&[u8]>) {
        if told != Some(line) && matches!(verb, Verb::List | Verb::Uidl | Verb::Lang) && !self.has_strayed {
            self.has_strayed = true;
            let (server, user) = (&self.door.route.forward, self.shown_user());
            tracing::warn!(%server, user, command = verb.name(), "excess lines in a listing dropped");
        }
    }

    fn retrieve(&mut self, message: Option<u32>, sees: Sees, status: Vec<u8>) {
        let runtime = self.shared.runtime.borrow().clone();
        let uid = self.uid.as_ref().filter(|(named, _)| Some(*named) == message).map(|(_, name)| name.clone());
        let named = self.user.as_ref().zip(uid.as_ref()).map(|(user, uid)| {
            let (door, route) = (self.door.address.to_string(), self.door.route.key.as_bytes());
            let key = Key::new(runtime.signatures.generation, &[b"pop3", door.as_bytes(), route, user.as_bytes(), uid]);
            Named { key, identity: None }
        });
        let reader = Reader {
            door: self.door.clone(),
            address: self.address.ip(),
            user: self.shown_user(),
            uid: printable(&String::from_utf8_lossy(&uid.unwrap_or_default())),
            sees,
        };
        // "+OK 1234 octets": a hint, for what is done at once does not depend on its truth.
        let announced = first_number(&status);
        self.retrieval = Some((Box::new(Retrieval::new(runtime, reader, named, announced)), Some(status)));
        self.content = Window::with_capacity(CONTENT_BYTES);
    }

    async fn pass_content(&mut self) -> io::Result<Next> {
        let Some((retrieval, _)) = &mut self.retrieval else { return Ok(Next::Go) };
        retrieval.take(self.content.filled()).await;
        if retrieval.is_hopeless() {
            return self.end().await;
        }
        self.send_ready(false).await?;
        Ok(Next::Go)
    }

    /// Says what the server said before the message, once something of it may follow; whether that was now.
    fn announce(&mut self, at_end: bool) -> bool {
        let Some((retrieval, status)) = &mut self.retrieval else { return false };
        let Some(status) = status.take_if(|_| at_end || retrieval.is_streaming()) else { return false };
        self.hears.say(true, &status);
        true
    }

    /// Sends what may be sent.
    async fn send_ready(&mut self, at_end: bool) -> io::Result<()> {
        self.announce(at_end);
        let Some((retrieval, _)) = &mut self.retrieval else { return Ok(()) };
        loop {
            let ready = retrieval.ready(at_end);
            if ready.is_empty() {
                return Ok(());
            }
            self.hears.content(ready);
            let count = ready.len();
            retrieval.sent(count);
            if self.hears.outbox().len() > OUTBOX_BYTES {
                self.client.write(self.hears.outbox()).await?;
                self.hears.sent();
            }
        }
    }

    /// A listing or a message is complete, or will not be completed.
    async fn end(&mut self) -> io::Result<Next> {
        if let Some((retrieval, _)) = &mut self.retrieval {
            match retrieval.conclude().await {
                Outcome::Send => self.send_ready(true).await?,
                Outcome::Refuse(reason) => {
                    self.hears.say(false, format!("[SYS/PERM] {reason}").as_bytes());
                    return Ok(self.answered());
                }
                Outcome::Cut => {
                    self.hears.close();
                    return Ok(Next::Wait);
                }
            }
        } else if let Some(Task::Pass(Verb::Capa)) = self.tasks.front() {
            let offered = matches!(self.door.listener.place.tls, ListenerTls::Offer | ListenerTls::Require);
            if offered && !self.client.is_encrypted() {
                self.hears.content(b"STLS\r\n");
            }
        }
        self.hears.end();
        Ok(self.answered())
    }

    fn answered(&mut self) -> Next {
        self.tasks.pop_front();
        self.retrieval = None;
        self.content = Window::with_capacity(LineReader::ROOM_MIN);
        Next::Go
    }
}

/// The number that a status begins with.
fn first_number<Number: std::str::FromStr>(text: &[u8]) -> Option<Number> {
    std::str::from_utf8(text).ok()?.split(' ').next()?.parse().ok()
}
