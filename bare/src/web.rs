//! A browser: HTTP to pages. A form is read whole, a download is read from the store while it is sent.

use alloc::boxed::Box;
use alloc::vec::Vec;
use alloc::{format, string::String};

use keep::webmail::{Mail, User};
use proto::http::{Fields, Framing, Request, Server, ServerEvent};
use webmail::session::{Session, is_same};
use webmail::{
    Body, Call, Content, FORM_BYTES_MAX, Form, LIMITS, LOGIN_BYTES_MAX, Refusal, Reply, answer, answer_stranger,
    denied, farewell, refusal, refused, welcome,
};

use crate::machine::Free;
use crate::office::Office;
use crate::run::Conversation;

/// A form takes so many times its bytes until it is a page or a mail: there has to be as much memory.
const FORM_TIMES: usize = 6;

/// Bytes of free memory below which no request is begun.
const MEMORY_MIN: usize = 8 << 20;

/// How long the head of a request may take since the last answer, in milliseconds. Each byte of a form or a file prolongs it by one, up
/// to the same: so less than a kilobyte in a second is too slow.
const SILENCE_MS: u64 = 60_000;

/// The way in which a browser has come.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Access {
    Plain,
    /// In plain text, where it is sent to HTTPS.
    Elsewhere,
    Secure,
}

impl Access {
    fn is_secure(self) -> bool {
        self != Access::Plain
    }
}

/// A connection of a browser.
pub struct Browser {
    server: Server,
    client: [u8; 4],
    access: Access,
    state: State,
    /// Bytes of the outbox that are sent.
    sent: usize,
    deadline: u64,
}

enum State {
    Head,
    Form(Box<Reading>),
    Download(Box<Download>),
    Over,
}

/// A form that comes.
struct Reading {
    call: Call,
    kind: Vec<u8>,
    user: Option<(Session, User)>,
    body: Vec<u8>,
    bytes_max: u64,
    is_head: bool,
}

/// A file of a mail that goes out.
struct Download {
    content: Content,
    user: User,
    told: Vec<u64>,
}

impl Browser {
    pub fn new(client: [u8; 4], access: Access, now: u64) -> Browser {
        Browser {
            server: Server::new(LIMITS),
            client,
            access,
            state: State::Head,
            sent: 0,
            deadline: now.saturating_add(SILENCE_MS),
        }
    }

    /// A request begins.
    fn begin(&mut self, office: &mut Office, request: &Request) {
        let call = Call::new(request, self.access.is_secure());
        let user = office.user(&call);
        let bytes_max = if user.is_some() { FORM_BYTES_MAX } else { LOGIN_BYTES_MAX };
        let is_head = request.method == "HEAD";
        office.counts.requests += 1;
        if self.access == Access::Elsewhere {
            let path = String::from_utf8_lossy(request.path());
            let place = format!("https://{}{path}", office.site().hostname);
            return self.refuse(office, Reply::see(&place));
        }
        if matches!(request.framing, Framing::Length(bytes) if bytes > bytes_max) {
            return self.refuse(office, refusal(call.language, Refusal::FilesTooLarge));
        }
        if Free::now().free < MEMORY_MIN {
            return self.refuse(office, refusal(call.language, Refusal::Busy));
        }
        self.server.proceed();
        let kind = request.fields.get("content-type").unwrap_or_default().to_vec();
        self.state = State::Form(Box::new(Reading { call, kind, user, body: Vec::new(), bytes_max, is_head }));
    }

    /// More of the form has come.
    fn content(&mut self, office: &mut Office, piece: &[u8]) {
        let State::Form(reading) = &mut self.state else { return };
        let language = reading.call.language;
        let bytes = reading.body.len().saturating_add(piece.len());
        if bytes as u64 > reading.bytes_max {
            return self.refuse(office, refusal(language, Refusal::FilesTooLarge));
        }
        if has_memory_for(bytes) {
            return reading.body.extend_from_slice(piece);
        }
        self.refuse(office, refusal(language, Refusal::Busy));
    }

    /// Answers, and takes no more.
    fn refuse(&mut self, office: &mut Office, reply: Reply) {
        self.server.close();
        self.reply(office, reply, None, false);
    }

    /// The request is whole.
    fn end(&mut self, office: &mut Office) {
        let State::Form(reading) = core::mem::replace(&mut self.state, State::Head) else { return };
        let Reading { mut call, kind, user, body, is_head, .. } = *reading;
        if !has_memory_for(body.len()) {
            return self.refuse(office, refusal(call.language, Refusal::Busy));
        }
        call.form = Form::of_body(&kind, &body);
        drop(body);
        let is_post_to = |name: &str| call.is_post && call.segments() == [name];
        let (is_login, is_logout) = (is_post_to("login"), is_post_to("logout"));
        let (reply, download) = match user {
            _ if is_login => (self.log_in(office, &call), None),
            None => (answer_stranger(&call), None),
            Some((session, _)) if is_logout && !call.is_foreign && is_same(call.form.get("token"), &session.token) => {
                office.leave(&call);
                (farewell(self.access.is_secure()), None)
            }
            Some((session, user)) => {
                let mut mail = Mail::new(&mut office.store, user.clone());
                let reply = answer(&mut mail, &session, call);
                (reply, Some((user, mail.told())))
            }
        };
        self.reply(office, reply, download, is_head);
    }

    fn log_in(&self, office: &mut Office, call: &Call) -> Reply {
        if let Some(reply) = refused(call) {
            return reply;
        }
        let name = call.form.get("name").trim();
        match office.enter(self.client, name, call.form.get("password")) {
            Ok(token) => welcome(&token, self.access.is_secure()),
            Err(why) => denied(call.language, name, why),
        }
    }

    fn reply(&mut self, office: &mut Office, reply: Reply, download: Option<(User, Vec<u64>)>, is_head: bool) {
        self.state = State::Head;
        self.server.respond(&reply.head());
        match (reply.body, download) {
            (Body::Bytes(bytes), _) => self.server.content(&bytes),
            (Body::Content(content), Some((user, told))) if !is_head => {
                self.state = State::Download(Box::new(Download { content, user, told }));
                return self.go_on(office);
            }
            (Body::Content(_), _) => {}
        }
        self.server.end(&Fields::default());
    }

    fn prolong(&mut self, bytes: usize, now: u64) {
        self.deadline = self.deadline.saturating_add(bytes as u64).min(now.saturating_add(SILENCE_MS));
    }

    /// The next piece of a download, once the last is sent.
    fn go_on(&mut self, office: &mut Office) {
        let State::Download(download) = &mut self.state else { return };
        let told = core::mem::take(&mut download.told);
        let mut mail = Mail::resumed(&mut office.store, download.user.clone(), told);
        let piece = download.content.next(&mut mail);
        let is_broken = mail.is_broken();
        download.told = mail.told();
        match piece {
            Some(piece) => self.server.content(piece),
            // Without the last chunk a browser knows that something is missing.
            None if is_broken => self.state = State::Over,
            None => {
                self.server.end(&Fields::default());
                self.state = State::Head;
            }
        }
    }
}

fn has_memory_for(form_bytes: usize) -> bool {
    form_bytes.saturating_mul(FORM_TIMES) <= Free::now().free
}

impl Conversation for Browser {
    fn step(&mut self, office: &mut Office, now: u64, input: &[u8]) -> (usize, bool) {
        if let State::Download(_) = self.state {
            self.go_on(office);
            return (0, true);
        }
        let (taken, event) = self.server.step(input);
        if matches!(self.state, State::Form(_)) {
            self.prolong(taken, now);
        }
        match event {
            ServerEvent::Idle => return (taken, taken > 0),
            ServerEvent::Request(request) => self.begin(office, &request),
            ServerEvent::Content => self.content(office, input.get(..taken).unwrap_or_default()),
            ServerEvent::End(_) => self.end(office),
            // Counted, and not said: the console would be as slow as its senders want.
            ServerEvent::Refused(_) => {
                office.counts.refused += 1;
                self.state = State::Over;
            }
            ServerEvent::Tunnel | ServerEvent::Closed => self.state = State::Over,
        }
        (taken, true)
    }

    fn outbox(&self) -> &[u8] {
        self.server.outbox().get(self.sent..).unwrap_or_default()
    }

    fn sent(&mut self, count: usize, now: u64) {
        self.sent = self.sent.saturating_add(count);
        self.prolong(count, now);
        if self.sent >= self.server.outbox().len() {
            self.server.sent();
            self.sent = 0;
            if let State::Head = self.state {
                self.deadline = now.saturating_add(SILENCE_MS);
            }
        }
    }

    fn is_over(&self) -> bool {
        matches!(self.state, State::Over) || (matches!(self.state, State::Head) && self.server.is_over())
    }

    fn is_waiting(&self) -> bool {
        match &self.state {
            State::Head => self.outbox().is_empty(),
            State::Form(reading) => reading.user.is_none(),
            State::Download(_) | State::Over => false,
        }
    }

    fn deadline(&self) -> u64 {
        self.deadline
    }

    fn time_out(&mut self) {
        self.state = State::Over;
    }
}
