//! A message on its way from a mailbox to its reader.
//!
//! Its size has been announced, so nothing can be added to it and nothing taken away: what is dangerous is overwritten in
//! place. Ordinary messages fit the head window and are decided before a byte is sent. A larger one streams, at once if
//! its size says so and nothing is ever refused or kept; if it turns out too late that something sent was dangerous, it is
//! cut off before its end, and what was learned is remembered: the next time it is overwritten from the start.
//! One that has to be kept is cut off as well, read to its end, and kept once as long as that is remembered.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Instant;

use inspect::{Action, Policy, Verdict};

use super::content::Content;
use super::door::Door;
use super::known::{Fate, Named};
use super::message::{self, new_id};
use super::pool::Held;
use super::quarantine::{self, Draft};
use super::site::Site;
use crate::config::Protocol;
use crate::quarantine::Mailbox;

/// A message under way.
pub struct Retrieval {
    site: Arc<Site>,
    reader: Reader,
    named: Option<Named>,
    id: String,
    policy: Policy,
    content: Content,
    streaming: bool,
    /// What goes into the quarantine, where the message is larger than the head window and may have to.
    draft: Option<Draft>,
    /// Nothing more goes to the reader: it is inspected and written to its end.
    aside: bool,
    /// It was inspected before, and is overwritten from its start.
    known: bool,
    kept: bool,
    refused: Option<String>,
    started: Instant,
}

/// Who reads what.
pub struct Reader {
    /// Through which door.
    pub door: Arc<Door>,
    /// Where the client is.
    pub address: IpAddr,
    /// The mailbox, where it is known.
    pub user: String,
    /// The message's name in it.
    pub uid: String,
    /// What of it goes to the client.
    pub sees: Sees,
}

/// What of a message goes to the reader.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sees {
    /// All of it.
    Message,
    /// The header and some lines, with what is known of the message. What is found there says nothing about the rest.
    Top,
    /// A header or fields of one: counted and logged only if something is done about it.
    Header,
    /// Nothing yet: it is inspected for what its reader will ask for next.
    Nothing,
}

/// What becomes of a message at its end.
#[derive(Debug, PartialEq, Eq)]
pub enum Outcome {
    /// All that is held goes to the reader.
    Send,
    /// Nothing has gone to the reader, and nothing will; this is why.
    Refuse(String),
    /// The connection is closed before the end of the message.
    Cut,
}

impl Retrieval {
    /// A message that begins, as far as it is known already. The server has announced so many bytes, or nothing.
    pub fn new(site: Arc<Site>, reader: Reader, named: Option<Named>, announced: Option<u64>) -> Retrieval {
        let policy = reader.door.listener.policy();
        let rules = site.config.ways(&reader.door.listener.attachments);
        let head_window = site.config.resources.head_window_bytes;
        let fate = named.and_then(|named| site.known.fate(&named));
        let (known, kept) = fate.as_ref().map_or((false, false), |fate| (!fate.is_clean(), fate.kept));
        let refused = fate.as_ref().and_then(|fate| fate.refusal.clone());
        // What will not fit need not wait, unless there is something to be done with it that needs the whole.
        let large = announced.is_some_and(|bytes| bytes > head_window as u64);
        let streaming = large && policy.only_blanks() && refused.is_none();
        let window = if streaming { Held::STREAMING_BYTES } else { head_window };
        let mut content = Content::mail(&site, policy, rules, window);
        // What IMAP's readers fetch in pieces has to agree with the whole, wherever a piece begins.
        if reader.door.listener.protocol == Protocol::Pop3 {
            content.held.announce();
        }
        if let Some(fate) = fate {
            content.blank_known(&fate.blanks);
        }
        let started = Instant::now();
        let (id, draft, aside) = (new_id(), None, false);
        Retrieval { site, reader, named, id, policy, content, streaming, draft, aside, known, kept, refused, started }
    }

    /// Takes more of it.
    pub async fn take(&mut self, content: &[u8]) {
        let piece = if self.content.grow(content.len()) { content.len() } else { Held::PIECE_BYTES };
        for piece in content.chunks(piece.max(1)) {
            if self.refused.is_some() {
                self.content.pass_over(piece.len());
                continue;
            }
            self.take_piece(piece).await;
        }
    }

    async fn take_piece(&mut self, piece: &[u8]) {
        if !self.aside && !self.content.grow(piece.len()) {
            if !self.streaming && !self.kept {
                self.draft = Draft::of(&self.reader.door.listener, &self.id, &self.content.held).await;
            }
            self.streaming = true;
            self.content.grow(piece.len());
        }
        if let Some(draft) = &mut self.draft {
            draft.write(piece).await;
        }
        if self.aside {
            self.content.pass_over(piece.len());
            self.content.inspect(piece).await;
        } else {
            self.content.push(piece).await;
        }
        // It is cut off for the reader, and goes on for the quarantine.
        self.aside |= self.draft.is_some() && self.is_hopeless() && !self.content.is_starved();
    }

    /// Whether something of it may go to the reader before its end; then more than the tail is not held.
    pub fn is_streaming(&self) -> bool {
        self.streaming
    }

    /// Whether it will be cut off for sure.
    pub fn is_hopeless(&self) -> bool {
        // What is known is overwritten already.
        let heaviest = if self.known { Action::Quarantine } else { Action::Blank };
        let hopeless = if self.aside { self.content.is_starved() } else { self.content.is_hopeless(heaviest) };
        self.streaming && self.reader.sees != Sees::Nothing && hopeless
    }

    /// The next bytes for the reader, overwritten where they have to be; empty if there are none now. They are to be
    /// sent, and then [`Retrieval::sent`] to be said.
    pub fn ready(&mut self, at_end: bool) -> &[u8] {
        let count = match (at_end, self.streaming) {
            _ if self.aside => 0,
            (true, _) => self.content.held.len(),
            (false, true) => self.content.sendable(Held::TAIL_BYTES),
            (false, false) => 0,
        };
        self.content.held.redacted(count)
    }

    /// The first `count` bytes have gone.
    pub fn sent(&mut self, count: usize) {
        self.content.held.forget(count);
    }

    /// It is complete, or [`Retrieval::is_hopeless`]: what becomes of it.
    pub async fn conclude(&mut self) -> Outcome {
        let verdict = match self.content.finish().await {
            Ok(verdict) => verdict,
            Err(unfinished) => {
                let outcome = self.withhold(unfinished.words().into());
                self.record(&Verdict::default(), Action::Reject, &outcome);
                return outcome;
            }
        };
        if let Some(reason) = self.refused.take() {
            let outcome = Outcome::Refuse(reason);
            self.record(&verdict, Action::Reject, &outcome);
            return outcome;
        }
        let (action, outcome) = self.decide(&verdict).await;
        if let Some(Named { key, identity }) = self.named.filter(|_| self.reader.sees != Sees::Top) {
            let refusal = (action == Action::Reject).then(|| self.refusal(&verdict));
            let fate = Fate { blanks: self.content.blanks().to_vec(), refusal, kept: self.kept, identity };
            self.site.known.remember(key, fate);
        }
        self.record(&verdict, action, &outcome);
        outcome
    }

    async fn decide(&mut self, verdict: &Verdict) -> (Action, Outcome) {
        match verdict.action {
            action @ (Action::Pass | Action::Tag) => {
                self.content.spare();
                (action, Outcome::Send)
            }
            Action::Reject => (Action::Reject, self.withhold(self.refusal(verdict))),
            Action::Quarantine => {
                if !self.kept {
                    self.kept = self.keep(verdict).await;
                }
                (Action::Quarantine, self.blank(verdict))
            }
            Action::Blank => (Action::Blank, self.blank(verdict)),
        }
    }

    /// Overwrites what can still be overwritten.
    fn blank(&mut self, verdict: &Verdict) -> Outcome {
        if !verdict.blankable || verdict.action == Action::Quarantine {
            self.content.blank_whole(verdict);
        }
        let late = self.aside || self.streaming && (self.content.is_late() || !verdict.blankable && !self.known);
        if late && self.reader.sees != Sees::Nothing { Outcome::Cut } else { Outcome::Send }
    }

    fn withhold(&self, reason: String) -> Outcome {
        if self.streaming && self.reader.sees != Sees::Nothing { Outcome::Cut } else { Outcome::Refuse(reason) }
    }

    fn refusal(&self, verdict: &Verdict) -> String {
        let found = verdict.reason(&self.policy).map_or_else(|| "content".to_string(), message::describe);
        self.reader.door.listener.refusal().words(&found, &self.id)
    }

    /// Puts a copy aside; whether that is done.
    async fn keep(&mut self, verdict: &Verdict) -> bool {
        let listener = &self.reader.door.listener;
        let folder = listener.quarantine.as_ref().expect("checked with the configuration");
        if self.draft.is_none() && self.content.held.sent() > 0 {
            tracing::warn!(id = self.id, "not all of it is here for the quarantine");
            return false;
        }
        let mailbox = Mailbox { user: self.reader.user.clone(), uid: self.reader.uid.clone() };
        let facts = quarantine::facts_of(&self.id, self.reader.address, listener, mailbox, verdict);
        let kept = match self.draft.take() {
            Some(draft) => draft.keep(&facts).await,
            None => quarantine::keep(folder, &facts, self.content.held.pieces()).await,
        };
        if let Err(error) = &kept {
            tracing::error!(id = self.id, folder = %folder.display(), %error, "cannot write to the quarantine");
        }
        kept.is_ok()
    }

    fn record(&self, verdict: &Verdict, action: Action, outcome: &Outcome) {
        if self.reader.sees == Sees::Header && action == Action::Pass {
            return;
        }
        let metrics = &self.site.metrics;
        metrics.messages_total.add(1);
        metrics.content_bytes_total.add(self.content.received());
        metrics.inspect_microseconds_total.add(self.content.inspecting().as_micros() as u64);
        metrics.messages_streamed_total.add(u64::from(self.streaming));
        let counted = match action {
            Action::Reject => &metrics.messages_rejected_total,
            Action::Quarantine => &metrics.messages_quarantined_total,
            Action::Blank => &metrics.messages_blanked_total,
            Action::Tag | Action::Pass => &metrics.messages_passed_total,
        };
        counted.add(1);
        let found: Vec<String> = verdict.findings.iter().map(message::describe).collect();
        tracing::info!(
            id = self.id,
            client = %self.reader.address,
            user = self.reader.user,
            uid = self.reader.uid,
            bytes = self.content.received(),
            objects = verdict.objects,
            action = action.name(),
            found = found.join("; "),
            cut = *outcome == Outcome::Cut,
            streamed = self.streaming,
            inspect_us = self.content.inspecting().as_micros() as u64,
            ms = self.started.elapsed().as_millis() as u64,
            "message retrieved"
        );
    }
}
