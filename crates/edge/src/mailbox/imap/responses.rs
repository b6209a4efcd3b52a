//! Responses of the server, and those that reach the client.

use std::io;

use proto::imap::{ClientEvent, Kind, Status, Texts, Verb};

use super::OUTBOX_BYTES;
use super::session::{Folder, LOST, Next, Session, Work};
use super::told::Told;

impl Session {
    /// Hears one thing of the server.
    pub async fn hear_server(&mut self) -> io::Result<Next> {
        if self.hears.outbox().len() > OUTBOX_BYTES {
            self.client.write(self.hears.outbox()).await?;
            self.hears.sent();
        }
        if self.hears.is_closed() {
            return Ok(Next::Wait);
        }
        let (taken, event) = self.asks.step(self.server.input());
        match event {
            ClientEvent::Idle if taken == 0 => return Ok(Next::Wait),
            ClientEvent::Idle => {}
            ClientEvent::Pass | ClientEvent::PassText => {
                let mut text = Vec::with_capacity(taken);
                let is_literal = event == ClientEvent::PassText;
                self.texts.clean(&self.server.input()[..taken], is_literal, &mut text);
                self.hears.bytes(&text);
            }
            // The text before is over.
            _ => {
                let mut rest = Vec::new();
                self.texts.flush(&mut rest);
                self.hears.bytes(&rest);
            }
        }
        if event == ClientEvent::Content {
            self.content(taken).await?;
        }
        self.server.take(taken);
        match event {
            ClientEvent::Idle | ClientEvent::Pass | ClientEvent::PassText => {}
            ClientEvent::Content => self.content_ends().await?,
            ClientEvent::Continue(text) => self.go_on(&Texts::cleaned(&text)),
            ClientEvent::Status(status) if status.tagged => self.answered(status),
            ClientEvent::Status(status) => self.untagged(&status),
            ClientEvent::Capability(words) => {
                let line = [b"* CAPABILITY ", self.offered(&words).as_slice()].concat();
                self.hears.line(&line);
            }
            ClientEvent::Data(start) => self.hears.bytes(&start),
            ClientEvent::Fetch(number) => self.told = Some(Box::new(Told::new(number))),
            ClientEvent::Item(name) => self.item(&name),
            ClientEvent::Short(name, value) => {
                self.item(name.as_bytes());
                self.hears.bytes(&value);
            }
            ClientEvent::Uid(uid) => self.uid(uid),
            ClientEvent::Fact(fact, value) => self.fact(fact, value),
            ClientEvent::Section(section, message) => self.section(&section, message).await?,
            ClientEvent::Quoted(bytes) => {
                self.quoted_content(&bytes).await?;
                self.content_ends().await?;
            }
            ClientEvent::End => self.response_ends(),
            ClientEvent::Broken(reason) => self.distrust(reason),
        }
        Ok(Next::Go)
    }

    fn go_on(&mut self, text: &[u8]) {
        match &mut self.work {
            Work::Command { verb: Verb::Authenticate, .. } => self.hears.challenge(text),
            Work::Command { verb: Verb::Idle, .. } => self.hears.idle(text),
            Work::Append(appending) => appending.go(),
            _ => self.distrust("it goes on with nothing"),
        }
    }

    fn untagged(&mut self, status: &Status) {
        let mut words = status.code.split(|&byte| byte == b' ');
        if words.next().is_some_and(|word| word.eq_ignore_ascii_case(b"UIDVALIDITY")) {
            let number = words.next().and_then(|digits| std::str::from_utf8(digits).ok()?.parse().ok());
            self.folder.validity = number;
        }
        if status.kind == Kind::Preauth {
            return self.distrust("unexpected PREAUTH");
        }
        self.say_status(b"*", status);
    }

    /// The command in flight has its answer.
    fn answered(&mut self, status: Status) {
        match std::mem::replace(&mut self.work, Work::Nothing) {
            Work::Command { tag, verb, user, .. } => {
                self.done(verb, user, status.kind == Kind::Ok);
                self.hears.answered(self.now(), status.kind);
                self.say_status(&tag, &status);
            }
            Work::Fetch(fetching) => self.fetched(fetching, status),
            Work::Append(appending) => self.appended(appending, status),
            Work::Nothing => self.distrust("unsolicited answer"),
        }
    }

    fn done(&mut self, verb: Verb, user: Option<String>, ok: bool) {
        match verb {
            Verb::Login | Verb::Authenticate if ok => {
                self.user = user;
                if !self.ticket.log_in() {
                    self.bye(LOST);
                }
                tracing::debug!(client = %self.address, user = self.shown_user(), "logged in");
            }
            Verb::Select if !ok => self.folder = Folder::default(),
            Verb::Close if ok => self.folder = Folder::default(),
            _ => {}
        }
    }
}
