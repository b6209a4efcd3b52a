//! A body of HTTP on its way, at every door of the web: what is known of it, the page in its place, and its line in the log.

use std::net::IpAddr;
use std::sync::Arc;

use flow::{Action, Flow, PageScore, Terms, Unfinished, Verdict, Watched};
use proto::http::Response;
use stream::{Class, Object};

use super::language::Language;
use super::line::{self, Line};
use super::page::{self, Told};
use crate::message::journal;
use crate::message::passage::{Asked, Passage};
use crate::message::trace::{self, new_id};
use crate::metrics::Metrics;
use crate::porch::door::Door;
use crate::porch::filter::{Cause, Course, Notice, Pass, Reason};
use crate::porch::runtime::Runtime;
use crate::settings::Refusal;

/// Bytes that are passed on at a time.
const PIECE_BYTES: usize = 64 << 10;

/// A body on its way.
pub struct Subject {
    /// Where it is inspected and held.
    pub passage: Passage,
    /// State of the lists from the request.
    course: Option<Arc<dyn Course>>,
    /// The language of the client.
    pub language: Language,
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

/// Outcome of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// It went on.
    Passed,
    /// The client got a page of ours in its place.
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
        (pass, watched): (&Pass, Option<Box<Watched>>),
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
            paging: pass.paging,
            watched,
            lacks_signatures: runtime.signatures.are_none(),
            ..Asked::default()
        };
        let ruling = door.rulings.sparing(pass.spared);
        let mut passage = Passage::mail(&runtime.means, &new_id(), ruling, asked);
        passage.forgo_copy();
        let url = trace::printable(&String::from_utf8_lossy(url)).into();
        let course = pass.course.clone();
        let language = Language::default();
        Subject { passage, course, language, method: method.into(), url, media_type, user, has_begun: false }
    }

    /// Outcome for a verdict; `is_whole`: the body has been read to its end.
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
    pub fn page(&self, verdict: &Result<Verdict, Unfinished>) -> (Response, Vec<u8>) {
        match verdict {
            Ok(verdict) if verdict.action > Action::Tag => self.blocked(&self.reason(verdict)),
            _ => {
                let words = "The content could not be inspected now. Try again later.";
                self.response(503, words, &Notice::default())
            }
        }
    }

    /// The page that says this in its place.
    pub fn blocked(&self, reason: &Reason) -> (Response, Vec<u8>) {
        self.response(403, &reason.words, &reason.notice)
    }

    fn response(&self, status: u16, words: &str, notice: &Notice) -> (Response, Vec<u8>) {
        let (url, id, language) = (&*self.url, self.passage.id(), self.language);
        page::response(notice, &Told { status, words, url, id, language })
    }

    /// The reason of a block.
    pub fn reason(&self, verdict: &Verdict) -> Reason {
        let score = verdict.page.as_deref().filter(|page| page.is_blocked());
        if let (Some(course), Some(score)) = (&self.course, score) {
            return course.scored(score);
        }
        let words = match &self.passage.ruling().refusal {
            Refusal::Name => format!("This was found in it: {}.", self.passage.reason(verdict)),
            Refusal::Id => "Something was found in it that is not let through.".into(),
            Refusal::Text(text) => text.replace("{id}", self.passage.id()),
        };
        let notice = self.course.as_ref().map(|course| course.notice(&words, self.cause(verdict)));
        Reason { words: words.into(), notice: notice.unwrap_or_default(), ..Reason::default() }
    }

    /// The cause of a block.
    pub fn cause(&self, verdict: &Verdict) -> Cause {
        let policy = &self.passage.ruling().policy;
        let findings = verdict.findings.iter().map(|spotted| &spotted.finding);
        let heaviest =
            findings.filter(|finding| policy.action(finding) > Action::Tag).map(|finding| finding.class).max();
        match heaviest {
            Some(class) if class < Class::Forbidden => Cause::Fault,
            None if verdict.page.as_deref().is_some_and(PageScore::is_blocked) => Cause::Page,
            Some(_) | None => Cause::Malware,
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
        let detail = |page: &PageScore| Some(self.course.as_ref()?.scored(page).detail);
        let bad = page.filter(|page| page.is_bad());
        let told_alone = bad.filter(|page| !page.blocks).and_then(detail);
        let reason = bad.filter(|page| page.blocks).and_then(detail);
        let (found, categories) = (verdict.map(journal::found), page.map(categories).unwrap_or_default());
        let [reason, would_block, media_type] = [&reason, &told_alone, &self.media_type.as_deref().map(Into::into)]
            .map(|text| text.as_deref().map(trace::printable));
        Line {
            id: self.passage.id(),
            door,
            client,
            user: self.user.as_deref(),
            method: &self.method,
            url: &self.url,
            status,
            media_type: media_type.as_deref(),
            messages: None,
            bytes: self.passage.received(),
            action: outcome.name(),
            found: found.as_deref(),
            page: page.map(|page| line::Page { points: page.points, categories: &categories }),
            reason: reason.as_deref(),
            would_block: would_block.as_deref(),
            streamed: Some(self.has_begun && self.passage.is_streamed()),
            took: self.passage.age(),
        }
        .write();
    }
}

/// The categories of a page, in one line.
fn categories(page: &PageScore) -> String {
    page.categories.iter().map(|(name, _)| trace::printable(name)).collect::<Vec<_>>().join(", ")
}
