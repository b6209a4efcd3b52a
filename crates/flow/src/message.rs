//! Messages between a door and an inspection: plain values, both ways.
//!
//! Inwards, in this order: a [`Context`] when an object begins, then [`In::Feed`] as often as needed and [`In::Finish`].
//! Outwards, as they come: [`Out::Cleared`], [`Out::Body`], [`Out::Field`], [`Out::Forged`], [`Out::Blank`], [`Out::Finding`],
//! [`Out::Alert`], [`Out::Object`], [`Out::Parts`], [`Out::Ask`], [`Out::Recall`], [`Out::Terms`], [`Out::Present`], and last [`Out::Verdict`]. What is asked is
//! answered by an [`Answer`](crate::Answer) or by what is [recalled](crate::Recalled), at any time before the verdict.

use alloc::borrow::Cow;
use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::ops::Range;

use serde::{Deserialize, Serialize};
use stream::{Coding, FileType, Finding, Kind, Object};

use crate::{
    Action, Alert, Ask, Authenticating, Flow, Paging, Parts, Policy, Recall, Rule, Scoring, Spotted, Verdict, Watched,
};

/// An object as the inspection knows it before its content.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Context {
    /// Sender, receiver and transport.
    pub flow: Flow,
    /// The action for each class of findings.
    pub policy: Policy,
    /// The object that will be fed: its name and media type, if the door knows them. A declared `message/rfc822` is
    /// always parsed as a mail; everything else goes by content.
    pub object: Object,
    /// How objects within it are treated, by name and type. The first that matches an object decides.
    pub rules: Arc<[Rule]>,
    /// Passwords that are tried where something is encrypted, besides words of the mail and those of the database.
    pub passwords: Arc<[Box<[u8]>]>,
    /// Reports that the door wants besides the verdict.
    pub wants: Wants,
    /// The question to the rules of spam; none where they are not asked.
    pub scoring: Option<Scoring>,
    /// How the mail is authenticated; none where it is not.
    pub authenticating: Option<Authenticating>,
    /// How the content is scored as a web page; none where it is not.
    pub paging: Option<Paging>,
    /// The conversation that intrusion rules are tried on; none where they are not.
    pub watched: Option<Box<Watched>>,
    /// Whether the verdict lists up to [`Verdict::ALL_FINDINGS_MAX`] findings, not [`Verdict::FINDINGS_MAX`].
    pub all_findings: bool,
}

impl Context {
    /// Whether anything is asked of the inspection besides matches of signatures. That not all could be inspected is no answer to
    /// such a question.
    pub fn asks_for_more(&self) -> bool {
        let Policy { on_encrypted, on_external, on_partial, on_malformed, .. } = self.policy;
        let of_content = [on_encrypted, on_external, on_partial, on_malformed];
        let has_questions = self.scoring.is_some() || self.authenticating.is_some() || self.paging.is_some();
        has_questions
            || self.watched.is_some()
            || !self.rules.is_empty()
            || self.wants != Wants::default()
            || of_content.iter().any(|action| *action != Action::Pass)
    }
}

/// Reports that a door wants besides the verdict, so that it parses no content itself.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Wants {
    /// Names of header fields of the mail, in lower case: each is reported by [`Out::Field`].
    pub fields: Cow<'static, [Cow<'static, str>]>,
    /// Where the parts of the mail are: [`Out::Parts`].
    pub parts: bool,
    /// Every object, with its SHA-256: [`Out::Object`].
    pub objects: bool,
    /// Beginnings of names of header fields of the mail, in lower case, that are nobody's to bring along: where each is, is
    /// reported by [`Out::Forged`].
    pub forged: Cow<'static, [Cow<'static, str>]>,
    /// Our own name in `Authentication-Results`: a mail that brings such a field along, or one that may be taken for it, is
    /// forged in the same way (RFC 8601 section 5).
    pub authserv_id: Option<Box<str>>,
    /// Text that is searched for in the object and in all that it holds.
    pub sought: Option<Sought>,
}

/// A search in the text of mails, pages and documents, decoded, as a reader sees it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Sought {
    /// The terms of an index: [`Out::Terms`].
    Terms,
    /// A text, in letters of either case; as many blanks and line ends as there are count as one: [`Out::Present`].
    Phrase(Box<str>),
}

/// From the door to the inspection.
#[derive(Debug, Clone, Copy)]
pub enum In<'a> {
    /// The next bytes of the object.
    Feed(&'a [u8]),
    /// The object is complete.
    Finish,
}

/// From the inspection to the door.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Out {
    /// All bytes before this offset have been inspected; nothing beyond it may be sent.
    Cleared(u64),
    /// Where the body of the mail begins, behind the empty line. Missing where there is no body.
    Body(u64),
    /// A header field of the mail that was asked for.
    Field(Field),
    /// A header field whose name is nobody's to bring along: it is left out of what goes on.
    Forged(Range<u64>),
    /// A part is to be overwritten.
    Blank(Blank),
    /// Something was found.
    Finding(Spotted),
    /// An intrusion rule has matched (only with [`Context::watched`]).
    Alert(Alert),
    /// An object is complete (only with [`Wants::objects`]).
    Object(Box<ObjectReport>),
    /// The parts of the mail (only with [`Wants::parts`]).
    Parts(Parts),
    /// Something is to be looked up in the DNS, while the inspection goes on.
    Ask(Ask),
    /// A question to the learned words about those of the mail; once.
    Recall(Recall),
    /// Terms of its text, each followed by a line feed; one that stands there often may be told again (only with
    /// [`Sought::Terms`]).
    Terms(Box<str>),
    /// The text that is looked for is there; once (only with [`Sought::Phrase`]).
    Present,
    /// The decision; nothing follows.
    Verdict(Verdict),
}

/// A header field, raw, as far as its first [`Field::BYTES_MAX`] bytes: name, colon, value, folds and line ends.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Field(pub Box<[u8]>);

impl Field {
    /// The most that is reported of one field.
    pub const BYTES_MAX: usize = 1024;

    /// Its name, as written and without the blanks that some put in front of the colon.
    pub fn name(&self) -> &[u8] {
        self.0.split(|&byte| byte == b':').next().unwrap_or_default().trim_ascii()
    }

    /// The bytes behind the colon, folds and all.
    pub fn value(&self) -> &[u8] {
        let colon = self.0.iter().position(|&byte| byte == b':');
        colon.and_then(|colon| self.0.get(colon + 1..)).unwrap_or_default().trim_ascii()
    }
}

/// The raw bytes from `part` to `end` that have not been sent are to be overwritten by [`Filler`](crate::Filler).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Blank {
    /// Where the content of the part begins in the object that is fed.
    pub part: u64,
    /// As far as the part has been read. A later `Blank` of the same part goes further.
    pub end: u64,
    /// The transfer coding that the filler has to keep to.
    pub coding: Coding,
    /// The finding is about the whole, known only at its end: if any byte of the part has been sent, overwriting the rest
    /// does not help.
    pub late: bool,
}

/// The report of one object at its end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ObjectReport {
    /// Numbers count from 0 in the order in which objects begin; 0 is the object that was fed.
    pub id: u32,
    /// The object that this one lies in.
    pub parent: Option<u32>,
    /// The names of the objects that this one is in, outermost first, its own last.
    pub path: Arc<[Box<str>]>,
    /// Its role.
    pub kind: Kind,
    /// Its own name, as declared.
    pub name: Option<Box<str>>,
    /// Its type by content; none for containers without content of their own.
    pub file_type: Option<FileType>,
    /// The declared media type.
    pub media_type: Option<Box<str>>,
    /// The transfer coding that was undone.
    pub coding: Coding,
    /// Bytes of decoded content.
    pub bytes: u64,
    /// SHA-256 of the decoded content.
    pub sha256: Option<[u8; 32]>,
    /// Whether this is a second reading of ambiguous content.
    pub second_reading: bool,
    /// Findings in it.
    pub findings: Vec<Finding>,
    /// Time spent by each of its readers, where the host handed in a clock.
    pub stages: Vec<StageTime>,
}

/// Time spent in one stage over one object.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StageTime {
    /// The stage's name: `scan`, `mime`, `zip`.
    pub stage: Cow<'static, str>,
    /// Nanoseconds.
    pub nanos: u64,
}
