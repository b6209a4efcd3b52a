//! Admits the content of a file below: it is inspected as a whole, unless it is known to be clean as it is now.
//!
//! An inspection in the background (`rescan.rs`) goes the same way, without anybody who waits for it.

use std::fs::File;
use std::io::{self, Read};
use std::time::{Duration, Instant};

use rustix::fs::OFlags;

use super::{Guard, Open, Refusal, TRIES};
use crate::judge::{self, Current, Generation, Hit, Unjudged};
use crate::node::{Inode, Known, Node, Stamp};
use crate::overlay::errno;
use crate::reading::{Ahead, At, Pages};
use crate::verdicts::{self, Sum};
use crate::who::Who;

/// Content inspected at less than this, in bytes a second, is remembered by its content: SHA-256 is computed thirty
/// times as fast where the processor has instructions for it, and five times where it has not.
const SLOW_BYTES_A_SECOND: f64 = 64e6;

/// Content inspected in less time is not remembered so.
const SLOW_MIN: Duration = Duration::from_millis(2);

/// A verdict, and what tells the content from others, if that is worth to be known.
type Inspected = (Result<Option<Hit>, Unjudged>, Option<Sum>);

impl Guard {
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

    pub(super) fn admit_below(&self, node: &Node, below: &File, who: Who) -> Result<(), Refusal> {
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
    pub(super) fn inspect<R: Read>(
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
    /// An inspection that was not needed: others were faster, a rule says so, or the file changes all the time.
    Known,
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
