//! Messages that the client appends to a mailbox.
//!
//! Each is inspected as it comes. One that fits the head window is decided before the server hears of it; a larger one
//! streams, all but its tail. If something is found after the server has been told of the command, the connection is
//! closed in the middle of it, so that nothing is appended; the client hears NO and then BYE. What is to be kept is read
//! to its end before.

use std::io;
use std::time::Instant;

use inspect::{Action, Verdict};
use proto::imap::{Command, Message, Status};
use tokio::time::timeout;

use super::session::{Next, SERVER_WAIT, Session, Work};
use crate::quarantine::Mailbox;
use crate::serve::content::Content;
use crate::serve::message::{self, new_id, printable};
use crate::serve::pool::Held;
use crate::serve::quarantine::{self, Draft};

/// An APPEND under way.
pub struct Appending {
    command: Command,
    flow: Flow,
    /// The message under way; none while it is passed over.
    content: Option<Box<Content>>,
    /// What stands in front of it, unless that is the beginning of the command.
    before: Option<Vec<u8>>,
    message: Message,
    left: u64,
    streaming: bool,
    /// What goes into the quarantine, where the message is larger than the head window and may have to.
    draft: Option<Draft>,
    /// Nothing more goes to the server: it is inspected and written to its end.
    aside: bool,
    /// Why nothing is appended.
    refusal: Option<String>,
    id: String,
    started: Instant,
}

/// How far the server is with the message under way.
enum Flow {
    /// It has not heard of the command.
    Unheard,
    /// It has heard of it, and not of this message.
    Between,
    /// It is to say whether the message may come.
    Asked,
    /// It may.
    Open,
    /// The server wants nothing of it.
    Answered(Status),
}

impl Appending {
    /// The message may come.
    pub fn go(&mut self) {
        if let Flow::Asked = self.flow {
            self.flow = Flow::Open;
        }
    }
}

impl Session {
    /// Begins an APPEND with its first message.
    pub async fn append(&mut self, command: Command, message: Message) -> io::Result<()> {
        let mut appending = Appending {
            command,
            flow: Flow::Unheard,
            content: None,
            before: None,
            message,
            left: message.len,
            streaming: false,
            draft: None,
            aside: false,
            refusal: None,
            id: new_id(),
            started: Instant::now(),
        };
        if !self.hears.is_logged_in() {
            appending.refusal = Some("Log in first".into());
        }
        self.begin_message(Box::new(appending)).await
    }

    /// The next message of the same APPEND.
    pub async fn append_more(&mut self, before: Vec<u8>, message: Message) -> io::Result<()> {
        let Work::Append(mut appending) = std::mem::replace(&mut self.work, Work::Nothing) else { return Ok(()) };
        appending.before = Some(before);
        appending.message = message;
        appending.left = message.len;
        appending.streaming = false;
        appending.draft = None;
        if let Flow::Open = appending.flow {
            appending.flow = Flow::Between;
        }
        self.begin_message(appending).await
    }

    async fn begin_message(&mut self, mut appending: Box<Appending>) -> io::Result<()> {
        let site = self.edge.site.borrow().clone();
        let listener = &self.door.listener;
        let bytes_max = listener.message_bytes_max;
        if bytes_max > 0 && appending.message.len > bytes_max {
            appending.refusal.get_or_insert_with(|| "[TOOBIG] Message too large".into());
        }
        if appending.refusal.is_some() || matches!(appending.flow, Flow::Answered(_)) {
            if self.hears.refuse() {
                self.finish_append(*appending);
            } else {
                self.work = Work::Append(appending);
            }
            return Ok(());
        }
        let rules = site.config.ways(&listener.attachments);
        let window = site.config.resources.head_window_bytes;
        appending.content = Some(Box::new(Content::mail(&site, listener.policy(), rules, window)));
        self.hears.accept();
        let is_empty = appending.message.len == 0;
        self.work = Work::Append(appending);
        if is_empty { self.message_ends().await } else { Ok(()) }
    }

    /// More of the message.
    pub async fn append_content(&mut self, content: &[u8]) -> io::Result<()> {
        for piece in content.chunks(Held::PIECE_BYTES) {
            let Work::Append(appending) = &mut self.work else { return Ok(()) };
            appending.left = appending.left.saturating_sub(piece.len() as u64);
            let Some(content) = &mut appending.content else { continue };
            if !appending.aside && !content.grow(piece.len()) {
                if !appending.streaming {
                    appending.draft = Draft::of(&self.door.listener, &appending.id, &content.held).await;
                }
                appending.streaming = true;
                content.grow(piece.len());
            }
            if let Some(draft) = &mut appending.draft {
                draft.write(piece).await;
            }
            if appending.aside {
                content.pass_over(piece.len());
                content.inspect(piece).await;
                continue;
            }
            content.push(piece).await;
            if !appending.streaming {
                continue;
            }
            if !content.is_hopeless(Action::Tag) {
                self.send_message(false).await?;
            } else if appending.draft.is_some() && !content.is_starved() {
                appending.aside = true;
            } else {
                return self.message_ends().await;
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
        let Some(content) = &mut appending.content else { return Ok(()) };
        let verdict = content.finish().await;
        let policy = self.door.listener.policy();
        let refusal = match &verdict {
            Err(unfinished) => Some(format!("[UNAVAILABLE] {}", unfinished.words())),
            Ok(verdict) if verdict.action > Action::Tag => {
                let found = verdict.reason(&policy).map_or_else(|| "content".to_string(), message::describe);
                Some(format!("Message refused: {found} (id {})", appending.id))
            }
            Ok(_) => None,
        };
        let verdict = verdict.unwrap_or_default();
        if verdict.action == Action::Quarantine {
            self.keep_appended(&verdict).await;
        }
        self.record_append(&verdict, refusal.is_some());
        let Work::Append(appending) = &mut self.work else { return Ok(()) };
        let Some(refusal) = refusal else { return self.send_message(true).await };
        appending.content = None;
        if matches!(appending.flow, Flow::Unheard | Flow::Answered(_)) {
            appending.refusal = Some(refusal);
            return Ok(());
        }
        // The server must not see the end of the command.
        let tag = appending.command.tag.clone();
        self.answer(&tag, "NO", &refusal);
        self.bye("[UNAVAILABLE] The command was broken off");
        Ok(())
    }

    /// Puts a copy of the message aside.
    async fn keep_appended(&mut self, verdict: &Verdict) {
        let (user, address, listener) = (self.shown_user(), self.address.ip(), &self.door.listener);
        let Work::Append(appending) = &mut self.work else { return };
        let Some(content) = &appending.content else { return };
        let folder = listener.quarantine.as_ref().expect("checked with the configuration");
        let name = appending.command.mailbox().unwrap_or_default();
        let mailbox = Mailbox { user, uid: printable(&String::from_utf8_lossy(&name)) };
        let facts = quarantine::facts_of(&appending.id, address, listener, mailbox, verdict);
        let kept = match appending.draft.take() {
            Some(draft) => draft.keep(&facts).await,
            None => quarantine::keep(folder, &facts, content.held.pieces()).await,
        };
        if let Err(error) = kept {
            tracing::error!(id = appending.id, folder = %folder.display(), %error, "cannot write to the quarantine");
        }
    }

    /// Sends what may be sent of the message.
    async fn send_message(&mut self, at_end: bool) -> io::Result<()> {
        loop {
            let Work::Append(appending) = &mut self.work else { return Ok(()) };
            let Some(content) = &mut appending.content else { return Ok(()) };
            let count = if at_end { content.held.len() } else { content.sendable(Held::TAIL_BYTES) };
            if count == 0 && !at_end {
                return Ok(());
            }
            if !matches!(appending.flow, Flow::Open) {
                if !self.ask_leave().await? {
                    return Ok(());
                }
                continue;
            }
            let front = content.held.front(count);
            self.asks.bytes(front);
            let sent = front.len();
            content.held.forget(sent);
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
            (Flow::Unheard, _) => self.asks.append(&appending.command, appending.message),
            (Flow::Between, Some(before)) => self.asks.append_more(before, appending.message),
            _ => {}
        }
        appending.flow = Flow::Asked;
        self.flush().await?;
        loop {
            while self.hear_server().await? == Next::Go {}
            self.flush().await?;
            let Work::Append(appending) = &mut self.work else { return Ok(false) };
            match appending.flow {
                _ if self.hears.is_closed() => return Ok(false),
                Flow::Asked => {}
                Flow::Open => return Ok(true),
                _ => {
                    appending.content = None;
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
        appending.flow = Flow::Answered(status);
        self.work = Work::Append(appending);
    }

    /// The client has sent all of the command.
    pub async fn append_end(&mut self, text: &[u8]) -> io::Result<()> {
        let Work::Append(appending) = std::mem::replace(&mut self.work, Work::Nothing) else { return Ok(()) };
        if appending.refusal.is_some() || matches!(appending.flow, Flow::Answered(_)) {
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
            (Some(refusal), _) => self.answer(tag, "NO", &refusal),
            (None, Flow::Answered(status)) => {
                self.say_status(tag, &status);
                self.hears.resume();
            }
            _ => self.answer(tag, "NO", "Not appended"),
        }
    }

    fn record_append(&self, verdict: &Verdict, refused: bool) {
        let Work::Append(appending) = &self.work else { return };
        let Some(content) = &appending.content else { return };
        let metrics = self.edge.site.borrow().metrics.clone();
        metrics.messages_total.add(1);
        metrics.content_bytes_total.add(content.received());
        metrics.inspect_microseconds_total.add(content.inspecting().as_micros() as u64);
        metrics.messages_streamed_total.add(u64::from(appending.streaming));
        let (action, counted) = match (refused, verdict.action) {
            (_, Action::Quarantine) => (Action::Quarantine, &metrics.messages_quarantined_total),
            (true, _) => (Action::Reject, &metrics.messages_rejected_total),
            (false, action) => (action, &metrics.messages_passed_total),
        };
        counted.add(1);
        let found: Vec<String> = verdict.findings.iter().map(message::describe).collect();
        tracing::info!(
            id = appending.id,
            client = %self.address.ip(),
            user = self.shown_user(),
            bytes = content.received(),
            objects = verdict.objects,
            action = action.name(),
            found = found.join("; "),
            streamed = appending.streaming,
            inspect_us = content.inspecting().as_micros() as u64,
            ms = appending.started.elapsed().as_millis() as u64,
            "message appended"
        );
    }
}
