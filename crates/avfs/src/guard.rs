//! Decides which content may be read, and which changes come to the disk.
//!
//! ```text
//!   write ──► overlay ── close, fsync, another's read or open, rename ──► inspection ─┬─ clean ──► the file below
//!                                                                                    └─ a hit ──► dropped, an error
//!   open, read ──► is the file below known to be clean, as it is now? ── no ──► inspection of all of it
//! ```
//!
//! The rules, which the tests in `tests/never.rs` hold it to:
//! - The file below has only ever content of which the whole was found clean, or what it had before.
//! - Whoever opens a file, or reads from one that somebody else has open, gets content of which the whole was found clean. The
//!   only one who has a file open may read back what came through that same opening.
//! - After a hit, the file has what it had before; whoever had it open for writing gets errors, and it goes nowhere under
//!   another name until something clean is written.
//! - No verdict (an inspection died, or took too long) is an error and never a clean.
//!
//! Locks: a node's turn of inspections, then its content; an inspection reads in pieces and lets others have the content
//! between them. When a file changes faster than it can be inspected, the last try keeps writers waiting.

mod admission;
mod changes;

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, OnceLock, mpsc};

use rustix::io::Errno;

use crate::evidence::{self, Evidence, Found};
use crate::front::Front;
use crate::judge::{Current, Generation, Hit, InForce, Judge, Unjudged};
use crate::node::{Content, Known, Mode, Node, OnInfected, Share, Stamp, Verdict, facts};
use crate::overlay::{Staging, read_all};
use crate::reading::Pages;
use crate::rules::{Rules, Ruling, Subject};
use crate::verdicts::{self, Verdicts};
use crate::who::Who;
pub use admission::Again;

/// How often content that changes is inspected without keeping writers waiting.
const TRIES: usize = 2;

/// How often a read looks anew at what others have changed meanwhile.
const LOOKS: usize = 8;

/// Bytes from which the type of a content is told.
const HEAD_BYTES: usize = 2048;

/// Why something is not done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// Something was found.
    Infected,
    /// Without a verdict.
    Unjudged,
    /// The system says no.
    Failed(Errno),
}

impl From<Errno> for Refusal {
    fn from(error: Errno) -> Refusal {
        Refusal::Failed(error)
    }
}

impl Refusal {
    /// The error of a system call that would have let it through by a name.
    pub fn opening(self) -> Errno {
        match self {
            Refusal::Infected => Errno::PERM,
            Refusal::Unjudged => Errno::IO,
            Refusal::Failed(error) => error,
        }
    }

    /// The error of one that works on an open file.
    pub fn working(self) -> Errno {
        match self {
            Refusal::Infected | Refusal::Unjudged => Errno::IO,
            Refusal::Failed(error) => error,
        }
    }
}

/// Settings of the guard.
pub struct Settings {
    /// The judge; none for a file system that inspects nothing.
    pub judge: Option<Box<dyn Judge>>,
    /// When.
    pub mode: Mode,
    /// Action for a hit.
    pub on_infected: OnInfected,
    /// Where something else holds.
    pub rules: Rules,
    /// Where verdicts are kept.
    pub state: Option<OwnedFd>,
    /// Where infected content is kept, if it is.
    pub evidence: Option<OwnedFd>,
}

/// Decides what passes.
pub struct Guard {
    /// The judge in force; none from the beginning to the end, or always one.
    in_force: Option<InForce>,
    /// Ruling without a matching rule.
    otherwise: Ruling,
    rules: Rules,
    /// Table of clean content.
    pub verdicts: Verdicts,
    /// Inspections that somebody waits for.
    pub front: Front,
    staging: Arc<Staging>,
    evidence: Option<Evidence>,
    streams: Arc<AtomicUsize>,
    /// Files whose pages the kernel has to drop.
    stale: mpsc::Sender<u64>,
    /// Receiver of pages for the kernel, once it is mounted.
    pages: OnceLock<Box<dyn Pages>>,
    /// Path of the folder below.
    source: PathBuf,
}

impl Guard {
    /// Over a folder. The receiver is told of files whose pages the kernel has to drop.
    ///
    /// # Errors
    /// When the folder cannot be had, or there is no randomness.
    pub fn new(settings: Settings, staging: Staging, source: &Path) -> io::Result<(Guard, mpsc::Receiver<u64>)> {
        let Settings { judge, mode, on_infected, rules, state, evidence } = settings;
        let (stale, told) = mpsc::channel();
        let guard = Guard {
            in_force: judge.map(InForce::new),
            otherwise: Ruling { skips: false, mode, on_infected },
            rules,
            verdicts: Verdicts::open(state, verdicts::ROWS)?,
            front: Front::default(),
            staging: Arc::new(staging),
            evidence: evidence.map(Evidence::new),
            streams: Arc::default(),
            stale,
            pages: OnceLock::new(),
            source: source.into(),
        };
        Ok((guard, told))
    }

    /// Whether anything is inspected.
    pub fn inspects(&self) -> bool {
        self.in_force.is_some()
    }

    /// The current judge, if there is one.
    pub fn current(&self) -> Option<Arc<Current>> {
        self.in_force.as_ref().map(InForce::now)
    }

    fn is_clean_now(&self, content: &Content, stamp: &Stamp) -> bool {
        self.generation().is_none_or(|generation| Self::known(content, stamp, generation) == Some(Known::Clean))
    }

    fn generation(&self) -> Option<Generation> {
        self.in_force.as_ref().map(InForce::generation)
    }

    /// Somebody else inspects from here on: what is known by other signatures counts no longer. What is being inspected
    /// goes on with those that it began with, and is known by them.
    pub fn renew(&self, judge: Box<dyn Judge>) {
        let Some(in_force) = &self.in_force else { return };
        in_force.renew(judge);
    }

    /// From here on the kernel can be given pages.
    pub fn give_pages(&self, pages: Box<dyn Pages>) {
        let _ = self.pages.set(pages);
    }

    /// The ruling for an open file in its current state.
    fn ruling(&self, node: &Node, below: &File, who: Who) -> Ruling {
        let (Some(current), false) = (self.current(), self.rules.is_empty()) else { return self.otherwise };
        let Ok(facts) = facts(below) else { return self.otherwise };
        let path = std::fs::read_link(node.path()).ok().filter(|_| facts.stx_nlink > 0);
        let path = path.as_ref().and_then(|path| path.strip_prefix(&self.source).ok());
        let path = path.map(|path| [b"/", path.as_os_str().as_bytes()].concat());
        let kind = || {
            let mut head = [0; HEAD_BYTES];
            let count = read_all(below, &mut head, 0).unwrap_or(0);
            current.judge.kind(&head[..count])
        };
        let (names, size) = (facts.stx_nlink, facts.stx_size);
        let subject = Subject { path: path.as_deref(), names, size, user: who.uid, kind: &kind };
        self.rules.ruling(&subject, self.otherwise)
    }

    /// Whether a rule exempts this opening of a file from inspection.
    pub fn skips(&self, node: &Node, below: &File, who: Who) -> bool {
        self.ruling(node, below, who).skips
    }

    /// Writes down what is known to be clean.
    pub fn save(&self) {
        if let Err(error) = self.verdicts.save() {
            tracing::warn!(%error, "verdicts not written");
        }
    }

    /// The verdict on a content in its current state, by these signatures.
    fn known(content: &Content, stamp: &Stamp, generation: Generation) -> Option<Known> {
        let holds = |verdict: &Verdict| verdict.stamp == *stamp && verdict.generation == generation;
        let known = content.known.filter(holds).map(|verdict| verdict.known);
        known.or_else(|| (stamp.size == 0).then_some(Known::Clean))
    }

    /// Reads from an open file.
    ///
    /// # Errors
    /// When all of it is not clean, or cannot be read.
    pub fn read(&self, open: Open<'_>, buffer: &mut [u8], offset: u64, who: Who) -> Result<usize, Refusal> {
        let Open { node, below, writes, skips, .. } = open;
        for _ in 0..LOOKS {
            {
                let content = node.content();
                match &content.overlay {
                    // Nobody but who has written it.
                    Some(overlay) if writes && content.handles <= 1 => {
                        return Ok(overlay.read(below, buffer, offset)?);
                    }
                    Some(_) => {}
                    None if skips || !self.inspects() => return Ok(read_all(below, buffer, offset)?),
                    None if self.is_clean_now(&content, &Stamp::of_file(below)?) => {
                        return Ok(read_all(below, buffer, offset)?);
                    }
                    None => {}
                }
            }
            self.settle(node, below, "read", who)?;
            if !skips {
                self.admit_below(node, below, who)?;
            }
        }
        Err(Refusal::Unjudged)
    }

    /// Whether a file can be opened for reading without waiting: nothing waits, and all of it is known to be clean.
    pub fn is_ready(&self, node: &Node) -> bool {
        let Some(content) = node.content_now().filter(|content| content.overlay.is_none()) else { return false };
        let Ok(stamp) = facts(&node.held).map(|facts| Stamp::of(&facts)) else { return false };
        let Some(generation) = self.generation() else { return true };
        Self::known(&content, &stamp, generation).is_some() || self.verdicts.is_clean(node.inode, &stamp, generation)
    }

    /// Whether an open file can be read without waiting.
    pub fn reads_at_once(&self, open: Open<'_>) -> bool {
        let Some(content) = open.node.content_now() else { return false };
        match &content.overlay {
            Some(_) => open.writes && content.handles <= 1,
            None if open.skips || !self.inspects() => true,
            None => Stamp::of_file(open.below).is_ok_and(|stamp| {
                self.generation().is_none_or(|generation| Self::known(&content, &stamp, generation).is_some())
            }),
        }
    }

    /// Whether a file can be written without waiting: nobody inspects what is written meanwhile.
    pub fn writes_at_once(&self, node: &Node) -> bool {
        let streams = |content: &Content| content.overlay.as_ref().is_none_or(|overlay| overlay.stream.is_some());
        !self.inspects() || node.content_now().is_some_and(|content| !streams(&content))
    }

    /// A change of what does not belong to a file's content: what is known of that goes on to hold.
    ///
    /// # Errors
    /// Those of `change`.
    pub fn aside<T>(
        &self,
        node: Option<&Node>,
        change: impl FnOnce() -> rustix::io::Result<T>,
    ) -> rustix::io::Result<T> {
        let known = node.and_then(|node| node.content().known).filter(|verdict| verdict.known == Known::Clean);
        let (Some(node), Some(verdict)) = (node, known) else { return change() };
        let was_so = Stamp::of(&facts(&node.held)?) == verdict.stamp;
        let done = change()?;
        let now = Stamp::of(&facts(&node.held)?);
        if was_so && now.size == verdict.stamp.size {
            let mut content = node.content_mut();
            if content.known == Some(verdict) {
                content.known = Some(Verdict { stamp: now, ..verdict });
                self.verdicts.add(node.inode, &now, verdict.generation);
            }
        }
        Ok(done)
    }

    fn unjudged(&self, node: &Node, why: &Unjudged, who: Who) -> Refusal {
        tracing::error!(file = self.name(node), reason = %why, thread = who.thread, user = who.uid, "no verdict: refused");
        Refusal::Unjudged
    }

    fn report(
        &self,
        node: &Node,
        hit: &Hit,
        operation: &str,
        who: Who,
        content: Option<impl Read>,
        before: Option<impl Read>,
    ) {
        let file = self.name(node);
        let process = who.process();
        let found = Found { hit, file: &file, operation, who, process: &process };
        evidence::report(self.evidence.as_ref(), &found, content, before);
    }

    /// Path of a file, if it still has one.
    fn name(&self, node: &Node) -> String {
        let path = std::fs::read_link(node.path()).unwrap_or_default();
        let path = path.strip_prefix(&self.source).map_or(path.as_path(), |inner| inner);
        path.to_string_lossy().chars().map(|c| if c.is_control() { '?' } else { c }).collect()
    }
}

/// An opening of a file.
#[derive(Clone, Copy)]
pub struct Open<'a> {
    /// The file.
    pub node: &'a Node,
    /// The file below.
    pub below: &'a File,
    /// Whether it is written through this opening.
    pub writes: bool,
    /// Whether a rule says that nothing of it is inspected.
    pub skips: bool,
    /// Changes written through it.
    pub share: &'a Share,
}
