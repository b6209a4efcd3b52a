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

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, OnceLock, mpsc};
use std::time::{Duration, Instant};

use rustix::fs::OFlags;
use rustix::io::Errno;

use crate::evidence::{self, Evidence, Found};
use crate::front::Front;
use crate::judge::{self, Current, Generation, Hit, InForce, Judge, Unjudged};
use crate::node::{Content, Inode, Known, Mode, Node, OnInfected, Share, Stamp, Verdict, facts};
use crate::overlay::{Overlay, Staging, Stream, errno, read_all};
use crate::reading::{Ahead, At, Held, Pages, Pending};
use crate::rules::{Rules, Ruling, Subject};
use crate::verdicts::{self, Sum, Verdicts};
use crate::who::Who;

/// How often content that changes is inspected without keeping writers waiting.
const TRIES: usize = 2;

/// How often a read looks anew at what others have changed meanwhile.
const LOOKS: usize = 8;

/// Bytes from which the type of a content is told.
const HEAD_BYTES: usize = 2048;

/// Content inspected at less than this, in bytes a second, is remembered by its content: SHA-256 is computed thirty
/// times as fast where the processor has instructions for it, and five times where it has not.
const SLOW_BYTES_A_SECOND: f64 = 64e6;

/// Content inspected in less time is not remembered so.
const SLOW_MIN: Duration = Duration::from_millis(2);

/// Files that are inspected while they are written, at a time.
const STREAMS_MAX: usize = 64;

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

/// A verdict, and what tells the content from others, if that is worth to be known.
type Inspected = (Result<Option<Hit>, Unjudged>, Option<Sum>);

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

    /// Whether a rule says that nothing is inspected of what somebody does with an open file.
    pub fn skips(&self, node: &Node, below: &File, who: Who) -> bool {
        self.ruling(node, below, who).skips
    }

    /// Writes down what is known to be clean.
    pub fn save(&self) {
        if let Err(error) = self.verdicts.save() {
            tracing::warn!(%error, "verdicts not written");
        }
    }

    /// A file is to be opened for reading, or read by somebody: all of it has to be clean.
    ///
    /// # Errors
    /// When it is not, or nobody can say.
    pub fn admit(&self, open: Open<'_>, who: Who) -> Result<(), Refusal> {
        if !self.inspects() {
            return Ok(());
        }
        if open.node.is_opened(verdicts::now() / 60) {
            self.verdicts.touch(open.node.inode);
        }
        self.settle(open.node, open.below, "open", who)?;
        if open.skips { Ok(()) } else { self.admit_below(open.node, open.below, who) }
    }

    /// The verdict on a content in its current state, by these signatures.
    fn known(content: &Content, stamp: &Stamp, generation: Generation) -> Option<Known> {
        let holds = |verdict: &Verdict| verdict.stamp == *stamp && verdict.generation == generation;
        let known = content.known.filter(holds).map(|verdict| verdict.known);
        known.or_else(|| (stamp.size == 0).then_some(Known::Clean))
    }

    fn admit_below(&self, node: &Node, below: &File, who: Who) -> Result<(), Refusal> {
        let Some(current) = self.current() else { return Ok(()) };
        let generation = current.generation;
        let told = |known| if known == Known::Clean { Ok(()) } else { Err(Refusal::Infected) };
        let mut stamp = Stamp::of_file(below)?;
        if let Some(known) = Self::known(&node.content(), &stamp, generation) {
            return told(known);
        }
        if self.verdicts.is_clean(node.inode, &stamp, generation) {
            node.content_mut().learn(stamp, generation, Known::Clean);
            return Ok(());
        }
        let _waits = self.front.enter();
        let _turn = node.inspected();
        for number in 0..=TRIES {
            stamp = Stamp::of_file(below)?;
            if let Some(known) = Self::known(&node.content(), &stamp, generation) {
                return told(known);
            }
            stamp.outlast();
            // Reading it is not its user's reading.
            let quiet = node.open(OFlags::RDONLY | OFlags::NOATIME).or_else(|_| node.open(OFlags::RDONLY))?;
            let mut content = Ahead { file: &quiet, node, at: 0, pages: self.pages_for(node, &stamp, number) };
            let again = || At { file: &quiet, at: 0 };
            let (outcome, sum) = self.inspect(&current, stamp.size, &mut content, again).map_err(errno)?;
            if Stamp::of_file(below)? != stamp {
                continue;
            }
            return match outcome {
                Ok(None) => {
                    let has_pages = content.pages.is_some();
                    let mut content = node.content_mut();
                    content.learn(stamp, generation, Known::Clean);
                    content.is_cached |= has_pages && content.handles == 0;
                    drop(content);
                    self.learn(node.inode, &stamp, generation, sum);
                    Ok(())
                }
                Ok(Some(hit)) => {
                    content.pages.iter().for_each(|pages| _ = pages.forget(node.id));
                    self.found_below(node, stamp, generation, &hit, "open", who);
                    Err(Refusal::Infected)
                }
                Err(why) => Err(self.unjudged(node, &why, who)),
            };
        }
        Err(self.unjudged(node, &Unjudged("it changes all the time".into()), who))
    }

    /// Inspects a content of this size, unless it is known. `content` is what is inspected, and `again` the same once more; whether
    /// it was the same all the time, whoever calls this finds out. With the verdict comes what tells the content from others, if
    /// that is worth to be known: it took far longer than a digest takes.
    fn inspect<R: Read>(
        &self,
        current: &Current,
        size: u64,
        content: impl Read,
        again: impl Fn() -> R,
    ) -> io::Result<Inspected> {
        if self.verdicts.has_size(size, current.generation)
            && let Some(sum) = verdicts::sum(again(), size)?
            && self.verdicts.recall(size, &sum, current.generation)
        {
            return Ok((Ok(None), None));
        }
        let begun = Instant::now();
        let outcome = judge::whole(&*current.judge, content)?;
        let took = begun.elapsed();
        let is_slow = took >= SLOW_MIN && took.as_secs_f64() * SLOW_BYTES_A_SECOND > size as f64;
        let sum = if is_slow && outcome == Ok(None) { verdicts::sum(again(), size)? } else { None };
        Ok((outcome, sum))
    }

    /// A file is clean as it is, and perhaps its content wherever it is.
    fn learn(&self, inode: Inode, stamp: &Stamp, generation: Generation, sum: Option<Sum>) {
        self.verdicts.add(inode, stamp, generation);
        sum.iter().for_each(|sum| self.verdicts.add_content(stamp.size, sum, generation));
    }

    /// Something was found in a file below. Who has it open since it was known to be clean has no more of it from the kernel's pages.
    fn found_below(&self, node: &Node, stamp: Stamp, generation: Generation, hit: &Hit, operation: &str, who: Who) {
        let was_clean = {
            let mut content = node.content_mut();
            let was_clean = content.was_clean(&stamp);
            content.learn(stamp, generation, Known::Infected);
            content.is_cached &= !was_clean;
            was_clean
        };
        self.verdicts.forget(node.inode);
        if was_clean {
            let _ = self.stale.send(node.id);
        }
        let content = node.open(OFlags::RDONLY | OFlags::NOATIME).ok();
        self.report(node, hit, operation, who, content, None::<io::Empty>);
    }

    /// Inspects a file that nobody waits for, if it is not known by these signatures; whoever comes meanwhile goes first. It has
    /// no turn among the inspections of the file: somebody may open it, and does not wait for this one. Nothing where somebody
    /// else inspects by now, or all is over.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn inspect_again(&self, current: &Current, node: &Node) -> rustix::io::Result<Option<Again>> {
        let generation = current.generation;
        for _ in 0..TRIES {
            let below = node.open(OFlags::RDONLY | OFlags::NOATIME).or_else(|_| node.open(OFlags::RDONLY))?;
            let stamp = Stamp::of_file(&below)?;
            let is_known = Self::known(&node.content(), &stamp, generation).is_some();
            if is_known || self.verdicts.is_clean(node.inode, &stamp, generation) {
                return Ok(Some(Again::Known));
            }
            if self.skips(node, &below, Who::nobody()) {
                return Ok(Some(Again::Known));
            }
            stamp.outlast();
            let aside =
                || Aside { file: At { file: &below, at: 0 }, guard: self, inode: node.inode, stamp, generation };
            let (outcome, sum) = match self.inspect(current, stamp.size, aside(), aside) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    let is_over = !self.goes_on(generation);
                    return Ok(if is_over { None } else { Some(Again::Known) });
                }
                outcome => outcome.map_err(errno)?,
            };
            if Stamp::of_file(&below)? != stamp {
                continue;
            }
            return Ok(Some(match outcome {
                Ok(None) => {
                    self.learn(node.inode, &stamp, generation, sum);
                    Again::Clean
                }
                Ok(Some(hit)) => {
                    // Somebody may have opened it meanwhile, and been told.
                    if Self::known(&node.content(), &stamp, generation).is_none() {
                        self.found_below(node, stamp, generation, &hit, "rescan", Who::nobody());
                    }
                    Again::Infected
                }
                Err(why) => {
                    tracing::warn!(file = self.name(node), reason = %why, "no verdict in the background");
                    Again::Unjudged
                }
            }));
        }
        Ok(Some(Again::Known))
    }

    /// Whether these are the signatures still, and all goes on; it waits while somebody else waits for an inspection.
    pub fn goes_on(&self, generation: Generation) -> bool {
        self.front.pass() && self.generation() == Some(generation)
    }

    /// Receiver of the pages of a file while it is inspected, so that processes that wait for the verdict have them at
    /// once. No process has it open then, and so none can read them before: an `open` waits, too. The kernel has no
    /// pages of before: they would be seen beyond the end of a file that is shorter now. A file that changes meanwhile
    /// gets none, and neither does one of which the first would be dropped before the last are read.
    fn pages_for(&self, node: &Node, stamp: &Stamp, number: usize) -> Option<&dyn Pages> {
        const BYTES_MAX: u64 = 1 << 30;
        let content = node.content();
        let is_alone = content.handles == 0 && content.overlay.is_none();
        let pages = self.pages.get().filter(|_| is_alone && number == 0 && stamp.size <= BYTES_MAX);
        pages.map(|pages| &**pages).filter(|pages| pages.forget(node.id).is_ok())
    }

    /// Gets a verdict on pending changes: they come to the file below, or are dropped.
    ///
    /// # Errors
    /// When it was dropped, or has no verdict, or there is no room below; then it still waits.
    pub fn settle(&self, node: &Node, below: &File, operation: &str, who: Who) -> Result<(), Refusal> {
        let Some(current) = self.current() else { return Ok(()) };
        let generation = current.generation;
        if node.content().overlay.is_none() {
            return Ok(());
        }
        let _waits = self.front.enter();
        let _turn = node.inspected();
        // Reading what shows of it is not its user's reading.
        let quiet = node.open(OFlags::RDONLY | OFlags::NOATIME).ok();
        let quiet = quiet.as_ref().unwrap_or(below);
        for _ in 0..TRIES {
            let was = Stamp::of_file(below)?;
            let lies_on_unknown = {
                let content = node.content();
                let Some(overlay) = &content.overlay else { return Ok(()) };
                overlay.base() > 0 && Self::known(&content, &was, generation) != Some(Known::Clean)
            };
            if lies_on_unknown {
                was.outlast();
            }
            let (version, stream, size) = {
                let mut content = node.content_mut();
                let Some(overlay) = &mut content.overlay else { return Ok(()) };
                (overlay.version(), overlay.stream.take(), overlay.size())
            };
            let stream = stream.filter(|stream| stream.generation == generation);
            let pending = || Pending { node, below: quiet, version, at: 0 };
            let (outcome, sum) = match stream.and_then(|stream| stream.finish(size)) {
                Some(outcome) => (outcome, None),
                None => match self.inspect(&current, size, pending(), pending) {
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => continue,
                    inspected => inspected.map_err(errno)?,
                },
            };
            let mut content = node.content_mut();
            match &content.overlay {
                None => return Ok(()),
                // What it lies over may be changed by others, behind the mount.
                Some(overlay) if overlay.version() != version || Stamp::of_file(below)? != was => continue,
                Some(_) => {
                    if let (Some(sum), Ok(None)) = (&sum, &outcome) {
                        self.verdicts.add_content(size, sum, generation);
                    }
                    return self.conclude(node, &mut content, below, (generation, outcome), operation, who);
                }
            }
        }
        let mut content = node.content_mut();
        let Some(overlay) = &content.overlay else { return Ok(()) };
        let was = Stamp::of_file(below)?;
        let mut outcome = judge::whole(&*current.judge, Held { overlay, below: quiet, at: 0 }).map_err(errno)?;
        if Stamp::of_file(below)? != was {
            outcome = Err(Unjudged("it changes all the time".into()));
        }
        self.conclude(node, &mut content, below, (generation, outcome), operation, who)
    }

    fn conclude(
        &self,
        node: &Node,
        content: &mut Content,
        below: &File,
        (generation, outcome): (Generation, Result<Option<Hit>, Unjudged>),
        operation: &str,
        who: Who,
    ) -> Result<(), Refusal> {
        let Some(overlay) = &content.overlay else { return Ok(()) };
        let hit = match outcome {
            Err(why) => return Err(self.unjudged(node, &why, who)),
            Ok(hit) => hit,
        };
        let Some(hit) = hit else {
            content.known = None;
            // Whoever asks may have it open for reading.
            let below = node.open(OFlags::RDWR)?;
            overlay.commit(&below)?;
            content.overlay = None;
            content.is_tainted = false;
            let stamp = Stamp::of_file(&below)?;
            content.learn(stamp, generation, Known::Clean);
            self.verdicts.add(node.inode, &stamp, generation);
            return Ok(());
        };
        let before = facts(below).is_ok_and(|facts| facts.stx_size > 0);
        let before = before.then(|| node.open(OFlags::RDONLY | OFlags::NOATIME).ok()).flatten();
        let evidence = Held { overlay, below, at: 0 };
        self.report(node, &hit, operation, who, Some(evidence), before);
        self.take_back(node, content);
        if content.on_infected == OnInfected::Deferred { Ok(()) } else { Err(Refusal::Infected) }
    }

    /// Drops what waits.
    fn take_back(&self, node: &Node, content: &mut Content) {
        content.overlay = None;
        match content.on_infected {
            OnInfected::Immediate => content.taken_back += 1,
            OnInfected::Deferred => content.withheld += 1,
        }
        content.is_tainted = true;
        content.is_cached = false;
        let _ = self.stale.send(node.id);
    }

    /// Writes to an open file.
    ///
    /// # Errors
    /// When a hit is known by then, or there is no room.
    pub fn write(&self, open: Open<'_>, data: &[u8], offset: u64, who: Who) -> Result<(), Refusal> {
        let Open { node, below, .. } = open;
        if let Some(done) = self.directly(open, || below.write_all_at(data, offset).map_err(errno))? {
            return Ok(done);
        }
        let mut content = node.content_mut();
        if content.drops(open.share) {
            return Ok(());
        }
        let (overlay, mode) = self.overlay(&mut content, node, below, who)?;
        let begins = mode == Mode::Regular && overlay.base() == 0 && overlay.size() == 0 && offset == 0;
        if let Some(current) = self.current().filter(|_| begins) {
            overlay.stream = Stream::begin(&current, &self.streams, STREAMS_MAX);
        }
        overlay.write(below, data, offset)?;
        let (Some(mut stream), version) = (overlay.stream.take(), overlay.version()) else { return Ok(()) };
        // Others may look at the file while the inspection takes its time.
        drop(content);
        let fed = {
            let _waits = self.front.enter();
            stream.feed(data, offset)
        };
        let mut content = node.content_mut();
        // Whatever was changed meanwhile, no stream has seen: the whole is inspected when it is complete.
        let Some(overlay) = content.overlay.as_mut().filter(|overlay| overlay.version() == version) else {
            return Ok(());
        };
        match fed {
            Ok(None) => {
                overlay.stream = Some(stream);
                Ok(())
            }
            // All of it is evidence: its writer goes on, and it is inspected once more when it is complete.
            Ok(Some(_)) if content.on_infected == OnInfected::Deferred => Ok(()),
            Ok(Some(hit)) => {
                let outcome = (stream.generation, Ok(Some(hit)));
                self.conclude(node, &mut content, below, outcome, "write", who)
            }
            Err(_) => Ok(()),
        }
    }

    /// The overlay of a file from here on, and when it is inspected.
    fn overlay<'a>(
        &self,
        content: &'a mut Content,
        node: &Node,
        below: &File,
        who: Who,
    ) -> Result<(&'a mut Overlay, Mode), Refusal> {
        if content.overlay.is_none() {
            let (size, ruling) = (facts(below)?.stx_size, self.ruling(node, below, who));
            content.overlay = Some(Box::new(Overlay::new(&self.staging, size)?));
            (content.mode, content.on_infected) = (ruling.mode, ruling.on_infected);
        }
        let mode = content.mode;
        Ok((content.overlay.as_deref_mut().ok_or(Refusal::Failed(Errno::IO))?, mode))
    }

    /// Changes the file below at once, where nothing is inspected: not at all, or nothing of this opening. What others have
    /// written and waits gets its verdict with what is changed here.
    ///
    /// # Errors
    /// Those of `change`.
    pub fn directly<T>(
        &self,
        open: Open<'_>,
        change: impl FnOnce() -> rustix::io::Result<T>,
    ) -> rustix::io::Result<Option<T>> {
        if !self.inspects() {
            return change().map(Some);
        }
        if !open.skips {
            return Ok(None);
        }
        let mut content = open.node.content_mut();
        if content.overlay.is_some() {
            return Ok(None);
        }
        let stamp = Stamp::of_file(open.below)?;
        // By whatever signatures: these may be in force again.
        if content.was_clean(&stamp) | self.verdicts.forget(open.node.inode) {
            stamp.outlast();
        }
        content.known = None;
        content.is_cached = false;
        change().map(Some)
    }

    /// Changes the content in another way than by writing.
    ///
    /// # Errors
    /// As `change` does, or when there is no room.
    pub fn change(
        &self,
        open: Open<'_>,
        who: Who,
        change: impl FnOnce(&mut Overlay) -> rustix::io::Result<()>,
    ) -> Result<(), Refusal> {
        let mut content = open.node.content_mut();
        if content.drops(open.share) {
            return Ok(());
        }
        Ok(change(self.overlay(&mut content, open.node, open.below, who)?.0)?)
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

    /// The last who had a file open for writing has closed it: nothing waits any longer.
    pub fn release(&self, node: &Node, below: &File, who: Who) {
        let handles = match &*node.content() {
            content if content.overlay.is_some() && self.inspects() => content.handles,
            _ => return,
        };
        let is_gone = handles == 0 && facts(below).is_ok_and(|facts| facts.stx_nlink == 0);
        let outcome = if is_gone { Ok(()) } else { self.settle(node, below, "close", who) };
        let mut content = node.content_mut();
        if content.writers > 0 || content.overlay.is_none() {
            return;
        }
        if !is_gone {
            let error = outcome.err().map(|refusal| refusal.working().to_string()).unwrap_or_default();
            tracing::error!(file = self.name(node), error, "what was written is lost");
            content.is_tainted = true;
        }
        content.overlay = None;
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

/// Result of an inspection in the background.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Again {
    /// Nothing was found.
    Clean,
    /// Something was.
    Infected,
    /// Without a verdict.
    Unjudged,
    /// It was not needed: others were faster, a rule says so, or the file changes all the time.
    Known,
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

/// A file that is read while nobody waits for anything, as long as that is of use.
struct Aside<'a> {
    file: At<'a>,
    guard: &'a Guard,
    inode: Inode,
    stamp: Stamp,
    generation: Generation,
}

impl Read for Aside<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let guard = self.guard;
        if !guard.goes_on(self.generation) || guard.verdicts.is_clean(self.inode, &self.stamp, self.generation) {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        self.file.read(buffer)
    }
}
