//! What crosses the border between a door and the inspection: plain values, both ways.
//!
//! Inwards, in this order: a [`Context`] when the flow begins, then for each object [`In::Feed`] as often as needed and
//! [`In::Finish`]. Outwards, as they come: [`Out::Cleared`], [`Out::Blank`], [`Out::Finding`], [`Out::Object`], and
//! last [`Out::Verdict`].

use std::sync::Arc;

use stream::{Coding, FileType, Finding, Kind, Object};

use crate::{Action, Policy, Rule};

/// What is known of a flow before its content: outlives its objects.
#[derive(Debug, Clone, Default)]
pub struct Context {
    /// What each class of findings asks for.
    pub policy: Policy,
    /// The object that will be fed: its name and media type, if the door knows them. A declared `message/rfc822` is
    /// always parsed as a mail; everything else goes by content.
    pub object: Object,
    /// Which ways the objects within it take, by name and type. The first that means an object decides.
    pub rules: Arc<[Rule]>,
    /// Passwords that are tried where something is encrypted, besides words of the mail and those of the database.
    pub passwords: Arc<[Box<[u8]>]>,
    /// Whether every object is described by [`Out::Object`], with its SHA-256.
    pub explain: bool,
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
#[derive(Debug, Clone)]
pub enum Out {
    /// All bytes before this offset have been inspected; nothing beyond it may be sent.
    Cleared(u64),
    /// A part is to be overwritten.
    Blank(Blank),
    /// Something was found.
    Finding(Spotted),
    /// An object is complete (only with [`Context::explain`]).
    Object(Box<ObjectReport>),
    /// The decision; nothing follows.
    Verdict(Verdict),
}

/// The raw bytes from `part` to `end` that have not been sent are to be overwritten by [`Filler`](crate::Filler).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Blank {
    /// Where the content of the part begins in the object that is fed.
    pub part: u64,
    /// As far as the part has been read. A later `Blank` of the same part goes further.
    pub end: u64,
    /// The transfer coding that the filler has to keep to.
    pub coding: Coding,
    /// What was found is the whole, known only at its end: if any byte of the part has been sent, overwriting the rest
    /// does not help.
    pub late: bool,
}

/// A finding, and in which object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Spotted {
    /// What was found.
    pub finding: Finding,
    /// The names of the objects that it is in, outermost first; objects without a name are not in it.
    pub path: Arc<[Box<str>]>,
    /// The object's number, as in [`ObjectReport::id`].
    pub object: u32,
}

/// The decision about one object.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Verdict {
    /// The heaviest action that the findings ask for.
    pub action: Action,
    /// What was found, first found first; at most [`Verdict::FINDINGS_MAX`], of which half are for matches alone.
    pub findings: Vec<Spotted>,
    /// Findings beyond those.
    pub more_findings: u32,
    /// Whether each finding that asks to be blanked lies in a part that can be.
    pub blankable: bool,
    /// Objects seen, header fields not counted.
    pub objects: u32,
    /// Bytes of content read, of all objects together.
    pub bytes: u64,
}

impl Verdict {
    /// The most findings that a verdict lists.
    pub const FINDINGS_MAX: usize = 64;

    /// The finding that decided: the first of the heaviest action, under `policy`.
    pub fn reason(&self, policy: &Policy) -> Option<&Spotted> {
        self.findings.iter().find(|spotted| policy.action(spotted.finding.class) == self.action)
    }
}

/// What is known of one object at its end.
#[derive(Debug, Clone)]
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
    /// What it is by content; none for containers without content of their own.
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
    /// What was found in it.
    pub findings: Vec<Finding>,
    /// Time spent by each of its readers, where the host handed in a clock.
    pub stages: Vec<StageTime>,
}

/// Time spent in one stage over one object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StageTime {
    /// The stage's name: `scan`, `mime`, `zip`.
    pub stage: &'static str,
    /// Nanoseconds.
    pub nanos: u64,
}
