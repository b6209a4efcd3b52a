//! A message on its way from a mailbox to its reader.
//!
//! Its size has been announced, so nothing can be added to it and nothing taken away: what is dangerous is overwritten in
//! place. Ordinary messages fit the head window and are decided before a byte is sent. A larger one streams, at once if
//! its size says so and nothing is ever refused or kept; if it turns out too late that something sent was dangerous, it is
//! cut off before its end, and what was learned is remembered: the next time it is overwritten from the start.
//! One that has to be kept is cut off as well, read to its end, and kept once as long as that is remembered.

use std::net::IpAddr;
use std::sync::Arc;

use flow::{Action, Capabilities, Disposition, Flow, Parts, Protocol as Speaks, State, Terms, Verdict, Wants};

use crate::message::journal;
use crate::message::known::{Fate, Named};
use crate::message::passage::{Asked, Passage};
use crate::message::trace::new_id;
use crate::porch::door::Door;
use crate::porch::runtime::Runtime;
use crate::quarantine::{Facts, Mailbox};
use crate::settings::Protocol;

/// A message under way.
pub struct Retrieval {
    runtime: Arc<Runtime>,
    reader: Reader,
    named: Option<Named>,
    passage: Passage,
    /// Something of it may go to the reader before its end.
    streams: bool,
    /// It was inspected before, and is overwritten from its start.
    known: bool,
    /// It is in the quarantine.
    kept: bool,
    refused: Option<String>,
}

/// User and mailbox that read a message.
pub struct Reader {
    /// Through which door.
    pub door: Arc<Door>,
    /// Where the client is.
    pub address: IpAddr,
    /// The mailbox, where it is known.
    pub user: String,
    /// The message's name in it.
    pub uid: String,
    /// Share of it that goes to the client.
    pub sees: Sees,
}

/// Share of a message that goes to the reader.
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
    /// Nothing: it was inspected before, and is read again for where its parts stand.
    Parts,
}

/// Outcome of a message at its end.
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
    pub fn new(runtime: Arc<Runtime>, reader: Reader, named: Option<Named>, announced: Option<u64>) -> Retrieval {
        let ruling = reader.door.rulings.under(None);
        let head_window = runtime.settings.head_window_bytes;
        let fate = named.and_then(|named| runtime.known.fate(&named)).unwrap_or_default();
        let (known, kept) = (!fate.is_clean(), fate.kept);
        let refused = fate.refusal.clone().filter(|_| reader.sees != Sees::Parts);
        // What will not fit need not wait, unless there is something to be done with it that needs the whole.
        let is_large = announced.is_some_and(|bytes| bytes > head_window as u64);
        let streams = is_large && ruling.policy.only_blanks() && refused.is_none();
        let protocol = reader.door.listener.protocol();
        let asked = Asked {
            flow: Flow {
                protocol: if protocol == Protocol::Imap { Speaks::Imap } else { Speaks::Pop3 },
                client: Some(reader.address),
                login: Some(reader.user.as_str().into()),
                ..Flow::default()
            },
            terms: Terms {
                window_bytes: if streams { 0 } else { head_window },
                // What IMAP's readers fetch in pieces has to agree with the whole, wherever a piece begins.
                announces: protocol == Protocol::Pop3,
                known: fate.blanks.clone(),
                ..Terms::default()
            },
            wants: Wants { parts: reader.sees == Sees::Parts, ..Wants::default() },
            // What is known is overwritten already.
            heaviest: if known { Action::Quarantine } else { Action::Blank },
            ..Asked::default()
        };
        let mut passage = Passage::mail(&runtime.means, &new_id(), ruling, asked);
        if streams {
            passage.hold().stream();
        }
        if refused.is_some() {
            passage.drain();
        }
        if kept {
            passage.forgo_copy();
        }
        Retrieval { runtime, reader, named, passage, streams, known, kept, refused }
    }

    /// Takes more of it.
    pub async fn take(&mut self, content: &[u8]) {
        let piece_bytes = self.passage.hold().piece_bytes(content.len());
        for piece in content.chunks(piece_bytes.max(1)) {
            self.passage.take(piece, false).await;
        }
        self.streams |= self.passage.state() != State::Holding && self.refused.is_none();
    }

    /// Whether something of it may go to the reader before its end; then more than the tail is not held.
    pub fn is_streaming(&self) -> bool {
        self.streams
    }

    /// Whether it will be cut off for sure.
    pub fn is_hopeless(&self) -> bool {
        self.is_read() && self.passage.is_hopeless()
    }

    fn is_read(&self) -> bool {
        !matches!(self.reader.sees, Sees::Nothing | Sees::Parts)
    }

    /// The next bytes for the reader, overwritten where they have to be; empty if there are none now. They are to be
    /// sent, and then [`Retrieval::sent`] to be said.
    pub fn ready(&mut self, at_end: bool) -> &[u8] {
        let hold = self.passage.hold();
        let count = hold.sendable(at_end);
        hold.redacted(count)
    }

    /// The first `count` bytes have gone.
    pub fn sent(&mut self, count: usize) {
        self.passage.hold().forget(count);
    }

    /// Where its parts stand, for [`Sees::Parts`].
    pub fn parts(&mut self) -> Option<Parts> {
        self.passage.parts()
    }

    /// It is complete, or [`Retrieval::is_hopeless`]: what becomes of it.
    pub async fn conclude(&mut self) -> Outcome {
        if let Some(reason) = self.refused.take_if(|_| self.passage.state() == State::Draining) {
            let outcome = Outcome::Refuse(reason);
            self.record(&Verdict::default(), Action::Reject, &outcome);
            return outcome;
        }
        let verdict = match self.passage.finish().await {
            Ok(verdict) => verdict,
            Err(unfinished) => {
                let outcome = self.withhold(unfinished.words().into());
                self.record(&Verdict::default(), Action::Reject, &outcome);
                return outcome;
            }
        };
        let disposition = Disposition::of(&verdict, &ABLE);
        let outcome = self.act(disposition, &verdict).await;
        let action = disposition.action();
        if let Some(Named { key, identity }) = self.named.filter(|_| self.reader.sees != Sees::Top) {
            let refusal = (action == Action::Reject).then(|| self.passage.refusal(&verdict));
            let fate = Fate { blanks: self.passage.hold().blanks(), refusal, kept: self.kept, identity };
            self.runtime.known.remember(key, fate);
        }
        self.record(&verdict, action, &outcome);
        outcome
    }

    async fn act(&mut self, disposition: Disposition, verdict: &Verdict) -> Outcome {
        match disposition {
            Disposition::Pass | Disposition::Tag => {
                self.passage.settle(disposition, verdict);
                Outcome::Send
            }
            Disposition::Reject => self.withhold(self.passage.refusal(verdict)),
            Disposition::Quarantine => {
                if !self.kept {
                    self.kept = self.keep(verdict).await;
                }
                self.blank(true, verdict)
            }
            Disposition::Blank { whole } => self.blank(whole, verdict),
        }
    }

    /// Overwrites what can still be overwritten.
    fn blank(&mut self, whole: bool, verdict: &Verdict) -> Outcome {
        self.passage.settle(Disposition::Blank { whole }, verdict);
        let is_aside = self.passage.state() == State::Watching;
        let is_late = self.passage.hold().is_late() || !verdict.blankable && !self.known;
        if (is_aside || self.streams && is_late) && self.is_read() { Outcome::Cut } else { Outcome::Send }
    }

    fn withhold(&self, reason: String) -> Outcome {
        if self.streams && self.is_read() { Outcome::Cut } else { Outcome::Refuse(reason) }
    }

    /// Puts a copy aside; whether that is done.
    async fn keep(&mut self, verdict: &Verdict) -> bool {
        if !self.passage.capabilities().quarantine {
            tracing::warn!(id = self.passage.id(), "message not held whole, not quarantined");
            return false;
        }
        let mailbox = Mailbox { user: self.reader.user.clone(), uid: self.reader.uid.clone() };
        let facts = journal::facts(self.passage.id(), self.reader.address, self.reader.door.way(), verdict);
        self.passage.keep(&Facts { mailbox: Some(mailbox), ..facts }).await.is_ok()
    }

    fn record(&self, verdict: &Verdict, action: Action, outcome: &Outcome) {
        if self.reader.sees == Sees::Parts || self.reader.sees == Sees::Header && action == Action::Pass {
            return;
        }
        journal::count(&self.runtime.metrics, &self.passage, action, true);
        tracing::info!(
            id = self.passage.id(),
            message_id = self.passage.message_id(),
            door = self.reader.door.listener.protocol().name(),
            client = %self.reader.address,
            user = self.reader.user,
            uid = self.reader.uid,
            bytes = self.passage.received(),
            objects = verdict.objects,
            action = action.name(),
            found = journal::found(verdict),
            cut = *outcome == Outcome::Cut,
            streamed = self.streams,
            inspect_us = self.passage.inspect_time().as_micros() as u64,
            ms = self.passage.age().as_millis() as u64,
            "message retrieved"
        );
    }
}

/// Actions possible for a message whose size is announced: nothing can be added. Whether overwriting comes too late
/// is
/// seen then.
const ABLE: Capabilities =
    Capabilities { pass: true, tag: false, late_tag: Action::Pass, blank: true, blank_whole: true, quarantine: true };
