//! Commands of the client, and their handling.

use std::io;

use proto::imap::{Command, Fetch, Kind, ServerEvent, Verb, user_in_response};

use super::fetching::Fetching;
use super::session::{Folder, Next, Session, Work};

impl Session {
    /// Hears one thing of the client.
    pub async fn hear_client(&mut self) -> io::Result<Next> {
        if self.hears.is_closed() {
            return Ok(Next::Wait);
        }
        let (taken, event) = self.hears.step(self.now(), self.client.input());
        match event {
            ServerEvent::Content => {
                let content = self.client.input()[..taken].to_vec();
                self.client.take(taken);
                self.append_content(&content).await?;
                return Ok(Next::Go);
            }
            _ => self.client.take(taken),
        }
        match event {
            ServerEvent::Idle if taken == 0 => return Ok(Next::Wait),
            ServerEvent::Idle | ServerEvent::Content => {}
            ServerEvent::Command(command) => self.obey(command).await?,
            ServerEvent::Append(command, message) => self.append(command, message).await?,
            ServerEvent::Message(text, message) => self.append_more(text, message).await?,
            ServerEvent::AppendEnd(text) => self.append_end(&text).await?,
            ServerEvent::Wrong(tag, reason) => self.answer(&tag, Kind::Bad, reason),
            ServerEvent::Response(response) => self.respond(&response),
            ServerEvent::Done => self.asks.bytes(b"DONE\r\n"),
            ServerEvent::Closed => {
                self.bye("Cannot parse the command");
                return Ok(Next::Wait);
            }
        }
        Ok(Next::Go)
    }

    /// Answers a command ourselves.
    pub fn answer(&mut self, tag: &[u8], kind: Kind, text: &str) {
        self.hears.line(&[tag, b" ", kind.name().as_bytes(), b" ", text.as_bytes()].concat());
        self.hears.answered(self.now(), kind);
    }

    async fn obey(&mut self, command: Command) -> io::Result<()> {
        let Command { verb, .. } = command;
        if verb == Verb::Starttls {
            return self.secure(&command.tag).await;
        }
        let harmless = matches!(verb, Verb::Capability | Verb::Logout) || command.name == "NOOP";
        if self.needs_tls() && !harmless {
            self.answer(&command.tag, Kind::No, "[PRIVACYREQUIRED] Say STARTTLS first");
            return Ok(());
        }
        match verb {
            Verb::Fetch => match Fetch::parse(&command) {
                Ok(fetch) => self.fetch(Fetching::new(command.tag, fetch)),
                Err(reason) => self.answer(&command.tag, Kind::Bad, reason),
            },
            Verb::Authenticate if command.mechanism().is_none() => {
                self.answer(&command.tag, Kind::No, "[CANNOT] This mechanism cannot be used here");
            }
            _ => self.pass(command),
        }
        Ok(())
    }

    /// Hands a command on as it is.
    fn pass(&mut self, command: Command) {
        if command.verb == Verb::Select {
            self.folder = Folder { name: command.mailbox(), ..Folder::default() };
            self.found = None;
        }
        self.asks.command(&command);
        self.work = Work::Command {
            mechanism: command.mechanism(),
            user: command.user(),
            verb: command.verb,
            tag: command.tag,
        };
    }

    /// A response of a SASL exchange.
    fn respond(&mut self, response: &[u8]) {
        if let Work::Command { mechanism: Some(mechanism), user, .. } = &mut self.work
            && user.is_none()
        {
            *user = user_in_response(mechanism, response);
        }
        self.asks.bytes(response);
        self.asks.bytes(b"\r\n");
    }

    /// Shakes hands; what the client has sent before that is thrown away.
    async fn secure(&mut self, tag: &[u8]) -> io::Result<()> {
        if !self.offers_tls() {
            self.answer(tag, Kind::Bad, "Not available");
            return Ok(());
        }
        let tls = self.shared.runtime.borrow().tls.clone();
        let tls = tls.ok_or_else(|| io::Error::other("no certificate any more"))?;
        self.answer(tag, Kind::Ok, "Begin TLS negotiation now");
        self.flush().await?;
        self.client.accept_tls(tls).await?;
        self.hears.secured(self.now());
        Ok(())
    }
}
