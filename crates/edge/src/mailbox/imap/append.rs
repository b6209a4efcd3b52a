//! Messages that the client appends to a mailbox.
//!
//! Each is inspected as it comes. One that fits the head window is decided before the server hears of it; a larger one
//! streams, all but its tail. If something is found after the server has been told of the command, the connection is
//! closed in the middle of it, so that nothing is appended; the client hears NO and then BYE. What is to be kept is read
//! to its end before.

use std::io;

use flow::{Action, Capabilities, Disposition, Flow, Protocol, State, Terms, Verdict};
use proto::imap::{Command, Kind, Message, Status};
use tokio::time::timeout;

use super::appending::{Appending, Flowing};
use super::session::{Next, SERVER_WAIT, Session, Work};
use crate::message::journal;
use crate::message::passage::{Asked, Passage};
use crate::message::trace::{new_id, printable};
use crate::quarantine::{Facts, Mailbox};

impl Session {
    /// Begins an APPEND with its first message.
    pub async fn append(&mut self, command: Command, message: Message) -> io::Result<()> {
        let appending = Appending {
            command,
            flow: Flowing::Unheard,
            passage: None,
            before: None,
            message,
            left: message.len,
            refusal: None,
            id: new_id(),
        };
        self.begin_message(Box::new(appending)).await
    }

    /// The next message of the same APPEND.
    pub async fn append_more(&mut self, before: Vec<u8>, message: Message) -> io::Result<()> {
        let Work::Append(mut appending) = std::mem::replace(&mut self.work, Work::Nothing) else { return Ok(()) };
        appending.before = Some(before);
        appending.message = message;
        appending.left = message.len;
        if let Flowing::Open = appending.flow {
            appending.flow = Flowing::Between;
        }
        self.begin_message(appending).await
    }

    async fn begin_message(&mut self, mut appending: Box<Appending>) -> io::Result<()> {
        let runtime = self.shared.runtime.borrow().clone();
        let listener = &self.door.listener;
        let bytes_max = listener.content.message_bytes_max;
        if bytes_max > 0 && appending.message.len > bytes_max {
            appending.refusal.get_or_insert_with(|| "[TOOBIG] Message too large".into());
        }
        if appending.refusal.is_some() || matches!(appending.flow, Flowing::Answered(_)) {
            if self.hears.refuse() {
                self.finish_append(*appending);
            } else {
                self.work = Work::Append(appending);
            }
            return Ok(());
        }
        let asked = Asked {
            flow: Flow {
                protocol: Protocol::Imap,
                client: Some(self.address.ip()),
                encrypted: self.client.is_encrypted(),
                login: Some(self.shown_user().into()),
                ..Flow::default()
            },
            terms: Terms { window_bytes: runtime.settings.head_window_bytes, ..Terms::default() },
            heaviest: Action::Tag,
            ..Asked::default()
        };
        let passage = Passage::mail(&runtime.means, &appending.id, self.door.rulings.under(None), asked);
        appending.passage = Some(Box::new(passage));
        self.hears.accept();
        let is_empty = appending.message.len == 0;
        self.work = Work::Append(appending);
        if is_empty { self.message_ends().await } else { Ok(()) }
    }

    /// More of the message.
    pub async fn append_content(&mut self, mut content: &[u8]) -> io::Result<()> {
        while !content.is_empty() {
            let Work::Append(appending) = &mut self.work else { return Ok(()) };
            let Some(passage) = &mut appending.passage else {
                appending.left = appending.left.saturating_sub(content.len() as u64);
                break;
            };
            let piece_bytes = passage.hold().piece_bytes(content.len()).min(content.len());
            let (piece, rest) = content.split_at(piece_bytes);
            content = rest;
            appending.left = appending.left.saturating_sub(piece.len() as u64);
            passage.take(piece, false).await;
            if passage.is_hopeless() {
                return self.message_ends().await;
            }
            if passage.state() == State::Streaming {
                self.send_message(false).await?;
            }
        }
        match &self.work {
            Work::Append(appending) if appending.left == 0 => self.message_ends().await,
            _ => Ok(()),
        }
    }

    /// The message is complete, or will not be wanted.
    async fn message_ends(&mut self) -> io::Result<()> {
        let Work::Append(appending) = &mut self.work else { return Ok(()) };
        let Some(passage) = &mut appending.passage else { return Ok(()) };
        let (refusal, action, verdict) = match passage.finish().await {
            Err(unfinished) => {
                (Some(format!("[UNAVAILABLE] {}", unfinished.words())), Action::Reject, Verdict::default())
            }
            Ok(verdict) => {
                let disposition = Disposition::of(&verdict, &able(passage));
                let (found, id) = (passage.reason(&verdict), &appending.id);
                let refused = !matches!(disposition, Disposition::Pass);
                (refused.then(|| format!("Message refused: {found} (id {id})")), disposition.action(), verdict)
            }
        };
        if action == Action::Quarantine {
            self.keep_appended(&verdict).await;
        }
        self.record_append(&verdict, action);
        let Work::Append(appending) = &mut self.work else { return Ok(()) };
        let Some(refusal) = refusal else { return self.send_message(true).await };
        appending.passage = None;
        if matches!(appending.flow, Flowing::Unheard | Flowing::Answered(_)) {
            appending.refusal = Some(refusal);
            return Ok(());
        }
        // The server must not see the end of the command.
        let tag = appending.command.tag.clone();
        self.answer(&tag, Kind::No, &refusal);
        self.bye("[UNAVAILABLE] The command was broken off");
        Ok(())
    }

    /// Puts a copy of the message aside.
    async fn keep_appended(&mut self, verdict: &Verdict) {
        let (user, address, door) = (self.shown_user(), self.address.ip(), self.door.clone());
        let Work::Append(appending) = &mut self.work else { return };
        let Some(passage) = &mut appending.passage else { return };
        let name = appending.command.mailbox().unwrap_or_default();
        let mailbox = Mailbox { user, uid: printable(&String::from_utf8_lossy(&name)) };
        let facts = journal::facts(&appending.id, address, door.way(), verdict);
        // That it could not be kept is in the log; it is refused all the same.
        let _ = passage.keep(&Facts { mailbox: Some(mailbox), ..facts }).await;
    }

    /// Sends what may be sent of the message.
    async fn send_message(&mut self, at_end: bool) -> io::Result<()> {
        loop {
            let Work::Append(appending) = &mut self.work else { return Ok(()) };
            let Some(passage) = &mut appending.passage else { return Ok(()) };
            let hold = passage.hold();
            let count = hold.sendable(at_end);
            if count == 0 && !at_end {
                return Ok(());
            }
            if !matches!(appending.flow, Flowing::Open) {
                if !self.ask_leave().await? {
                    return Ok(());
                }
                continue;
            }
            let front = hold.front(count);
            self.asks.bytes(front);
            let sent = front.len();
            hold.forget(sent);
            self.server.write(self.asks.outbox()).await?;
            self.asks.sent();
            if sent == 0 {
                return Ok(());
            }
        }
    }

    /// Tells the server of the message and waits until it may come; whether it may.
    async fn ask_leave(&mut self) -> io::Result<bool> {
        let Work::Append(appending) = &mut self.work else { return Ok(false) };
        match (&appending.flow, &appending.before) {
            (Flowing::Unheard, _) => self.asks.append(&appending.command, appending.message),
            (Flowing::Between, Some(before)) => self.asks.append_more(before, appending.message),
            _ => {}
        }
        appending.flow = Flowing::Asked;
        self.flush().await?;
        loop {
            while self.hear_server().await? == Next::Go {}
            self.flush().await?;
            let Work::Append(appending) = &mut self.work else { return Ok(false) };
            match appending.flow {
                _ if self.hears.is_closed() => return Ok(false),
                Flowing::Asked => {}
                Flowing::Open => return Ok(true),
                _ => {
                    appending.passage = None;
                    return Ok(false);
                }
            }
            if !timeout(SERVER_WAIT, self.server.read()).await?? {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
    }

    /// The server has answered before the end of the command: it wants nothing of it.
    pub fn appended(&mut self, mut appending: Box<Appending>, status: Status) {
        appending.flow = Flowing::Answered(status);
        self.work = Work::Append(appending);
    }

    /// The client has sent all of the command.
    pub async fn append_end(&mut self, text: &[u8]) -> io::Result<()> {
        let Work::Append(appending) = std::mem::replace(&mut self.work, Work::Nothing) else { return Ok(()) };
        if appending.refusal.is_some() || matches!(appending.flow, Flowing::Answered(_)) {
            self.finish_append(*appending);
            return Ok(());
        }
        self.asks.bytes(text);
        self.asks.bytes(b"\r\n");
        let Command { tag, verb, .. } = appending.command;
        self.work = Work::Command { tag, verb, mechanism: None, user: None };
        Ok(())
    }

    /// Nothing is appended: the client is told why.
    fn finish_append(&mut self, appending: Appending) {
        let tag = &appending.command.tag;
        match (appending.refusal, appending.flow) {
            (Some(refusal), _) => self.answer(tag, Kind::No, &refusal),
            (None, Flowing::Answered(status)) => {
                self.say_status(tag, &status);
                self.hears.answered(self.now(), status.kind);
            }
            _ => self.answer(tag, Kind::No, "Not appended"),
        }
    }

    fn record_append(&self, verdict: &Verdict, action: Action) {
        let Work::Append(appending) = &self.work else { return };
        let Some(passage) = &appending.passage else { return };
        journal::count(&self.shared.runtime.borrow().metrics, passage, action, true);
        tracing::info!(
            id = appending.id,
            message_id = passage.message_id(),
            door = self.door.listener.protocol().name(),
            client = %self.address.ip(),
            user = self.shown_user(),
            bytes = passage.received(),
            objects = verdict.objects,
            action = action.name(),
            found = journal::found(verdict),
            streamed = passage.is_streamed(),
            inspect_us = passage.inspect_time().as_micros() as u64,
            ms = passage.age().as_millis() as u64,
            "message appended"
        );
    }
}

/// Actions possible for a message that has announced its size: it is appended as it is, or not at all.
fn able(passage: &Passage) -> Capabilities {
    let able = passage.capabilities();
    Capabilities { tag: false, late_tag: Action::Pass, blank: false, blank_whole: false, ..able }
}
