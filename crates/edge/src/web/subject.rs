//! A body of HTTP on its way, at every door of the web: what is known of it, the page in its place, and its line in the log.

use std::net::IpAddr;

use flow::{Action, Flow, PageScore, Paging, Terms, Unfinished, Verdict, Watched};
use proto::http::Response;
use stream::Object;

use super::page;
use crate::message::journal;
use crate::message::passage::{Asked, Passage};
use crate::message::trace::{self, new_id};
use crate::metrics::Metrics;
use crate::porch::door::Door;
use crate::porch::runtime::Runtime;
use crate::settings::Refusal;

/// What goes on at a time.
const PIECE_BYTES: usize = 64 << 10;

/// A body on its way.
pub struct Subject {
    /// Where it is inspected and held.
    pub passage: Passage,
    /// The filter group by whose phrases it is scored.
    group: Option<u32>,
    /// The method, or what stands in its place.
    pub method: Box<str>,
    /// The URL, in printable characters.
    pub url: Box<str>,
    media_type: Option<Box<str>>,
    /// The user that the client has logged in as.
    user: Option<String>,
    /// Its head has gone on.
    pub has_begun: bool,
}

/// What was done with a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// It went on.
    Passed,
    /// A page stands in its place.
    Replaced,
    /// It was broken off.
    Cut,
    /// Nothing is known of it: as the one or the other.
    Lost,
}

impl Outcome {
    /// The name in the log.
    pub const fn name(self) -> &'static str {
        match self {
            Outcome::Passed => "pass",
            Outcome::Replaced => "block",
            Outcome::Cut => "cut",
            Outcome::Lost => "lost",
        }
    }
}

impl Subject {
    /// A body that begins.
    pub fn open(
        runtime: &Runtime,
        door: &Door,
        flow: Flow,
        object: Object,
        (paging, watched): (Option<Paging>, Option<Box<Watched>>),
        method: &str,
        url: &[u8],
    ) -> Subject {
        let media_type = object.media_type.clone();
        let user = flow.login.as_deref().map(trace::printable);
        let asked = Asked {
            flow,
            object: Some(object),
            terms: Terms { window_bytes: runtime.settings.head_window_bytes, ..Terms::default() },
            heaviest: Action::Tag,
            paging,
            watched,
            ..Asked::default()
        };
        let mut passage = Passage::mail(&runtime.means, &new_id(), door.rulings.under(None), asked);
        passage.forgo_copy();
        let url = trace::printable(&String::from_utf8_lossy(url)).into();
        let group = paging.map(|paging| paging.group);
        Subject { passage, group, method: method.into(), url, media_type, user, has_begun: false }
    }

    /// What is to be done under a verdict; `is_whole`: the body has been read to its end.
    pub fn outcome(&self, verdict: &Result<Verdict, Unfinished>, is_whole: bool) -> Outcome {
        match verdict {
            Ok(verdict) if matches!(verdict.action, Action::Pass | Action::Tag) => match is_whole {
                true => Outcome::Passed,
                false => Outcome::Lost,
            },
            Ok(_) if self.has_begun => Outcome::Cut,
            Ok(_) => Outcome::Replaced,
            Err(_) => Outcome::Lost,
        }
    }

    /// The page in its place.
    pub fn page(&self, runtime: &Runtime, verdict: &Result<Verdict, Unfinished>) -> (Response, Vec<u8>) {
        let id = self.passage.id();
        match verdict {
            Ok(verdict) if verdict.action > Action::Tag => self.blocked(&self.words(runtime, verdict)),
            _ => {
                let reason = "The content could not be inspected now. Try again later.";
                page::blocked(503, "Not available", reason, &self.url, id)
            }
        }
    }

    /// The page that says this in its place.
    pub fn blocked(&self, words: &str) -> (Response, Vec<u8>) {
        page::blocked(403, "Blocked", words, &self.url, self.passage.id())
    }

    /// The reason of a block, in words for the client.
    pub fn words(&self, runtime: &Runtime, verdict: &Verdict) -> String {
        match (self.group, verdict.page.as_deref().filter(|page| page.is_blocked())) {
            (Some(group), Some(page)) => runtime.filter.scored(group, page).words.into(),
            _ => match &self.passage.ruling().refusal {
                Refusal::Name => format!("This was found in it: {}.", self.passage.reason(verdict)),
                Refusal::Id => "Something was found in it that is not let through.".into(),
                Refusal::Text(text) => text.replace("{id}", self.passage.id()),
            },
        }
    }

    /// Takes from what is held a piece that may go on, as long as there is any.
    pub fn go_on(&mut self, has_verdict: bool, mut send: impl FnMut(&[u8])) -> bool {
        let hold = self.passage.hold();
        let mut left = hold.sendable(has_verdict).min(PIECE_BYTES);
        let has_any = left > 0;
        while left > 0 {
            let piece = hold.front(left);
            let count = piece.len();
            send(piece);
            hold.forget(count);
            left -= count;
        }
        has_any
    }

    /// Counts it.
    pub fn count(&self, metrics: &Metrics, action: Action) {
        journal::count(metrics, &self.passage, action, true);
    }

    /// Counts it, and writes it down.
    pub fn conclude(
        &self,
        runtime: &Runtime,
        door: &Door,
        client: IpAddr,
        status: Option<u16>,
        outcome: Outcome,
        verdict: Option<&Verdict>,
    ) {
        let page = verdict.and_then(|verdict| verdict.page.as_deref());
        let action = if outcome == Outcome::Passed { Action::Pass } else { Action::Reject };
        self.count(&runtime.metrics, action);
        tracing::info!(
            id = self.passage.id(),
            door = door.listener.protocol().name(),
            %client,
            user = self.user,
            method = &*self.method,
            url = &*self.url,
            status,
            media_type = self.media_type.as_deref().map(trace::printable),
            bytes = self.passage.received(),
            action = outcome.name(),
            found = verdict.map(journal::found),
            points = page.map(|page| page.points),
            categories = page.map(categories),
            streamed = self.has_begun && self.passage.is_streamed(),
            ms = self.passage.age().as_millis() as u64,
            "object"
        );
    }
}

/// The categories of a page, in one line.
fn categories(page: &PageScore) -> String {
    page.categories.iter().map(|(name, _)| trace::printable(name)).collect::<Vec<_>>().join(", ")
}
