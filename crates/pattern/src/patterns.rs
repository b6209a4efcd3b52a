//! The compiled patterns and the scan.

use std::io;

use bytemuck::{Pod, Zeroable};

use crate::budget::Budget;
use crate::code::Programs;
use crate::entry::{Entry, Start};
use crate::flat::{Flat, Reader, Unfit, Writer};
use crate::state::{HISTORY, State};
use crate::sweep::{Path, prefetch};
use crate::tier::{Probes, Shape, Tier};
use crate::verify::{View, Work};

/// The longest piece that is swept at once: it stays in the first-level cache from filter to verification.
pub(crate) const CHUNK: usize = 8192;

/// An occurrence of a part.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Match {
    /// Behind how many bytes of the stream it was decided: its end, or a byte or two later.
    pub known: u64,
    /// Which part.
    pub part: u32,
    /// The offset of its first byte.
    pub start: u64,
    /// The offset behind its last byte.
    pub end: u64,
}

/// A part that is tried at an offset.
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct Pinned {
    pub(crate) offset: u64,
    pub(crate) op: u32,
    padding: u32,
}

impl Pinned {
    /// The part that begins with `op`, at `offset`.
    pub(crate) const fn new(offset: u64, op: u32) -> Pinned {
        Pinned { offset, op, padding: 0 }
    }
}

/// Compiled parts. Immutable, to be shared by any number of scans.
#[derive(Debug, Clone)]
pub struct Patterns {
    pub(crate) tiers: Vec<Tier>,
    /// Of each part.
    pub(crate) entries: Flat<Entry>,
    pub(crate) distances: Flat<u16>,
    pub(crate) programs: Programs,
    pub(crate) pinned: Flat<Pinned>,
    pub(crate) parts: u32,
    /// Tells these patterns from others.
    pub(crate) digest: u64,
}

/// What a scan needs between its beginning and its return.
#[derive(Debug, Default)]
struct Scratch {
    probes: Probes,
    work: Work,
}

impl Patterns {
    /// Writes the tables.
    ///
    /// # Errors
    /// Those of the sink.
    pub fn store(&self, writer: &mut Writer<'_>) -> io::Result<()> {
        writer.array(&[self.digest, u64::from(self.parts), self.tiers.len() as u64])?;
        writer.array(&self.entries)?;
        writer.array(&self.distances)?;
        writer.array(&self.pinned)?;
        self.programs.store(writer)?;
        self.tiers.iter().try_for_each(|tier| tier.store(writer))
    }

    /// Tables that were written, where they lie. Every number in them that leads to another table is checked.
    ///
    /// # Errors
    /// If one leads nowhere.
    pub fn load(reader: &mut Reader) -> Result<Patterns, Unfit> {
        let [digest, parts, tiers] = reader.values::<u64, 3>()?;
        let (entries, distances): (Flat<Entry>, Flat<u16>) = (reader.array()?, reader.array()?);
        let pinned: Flat<Pinned> = reader.array()?;
        let parts = u32::try_from(parts).map_err(|_| Unfit::Malformed)?;
        let programs = Programs::load(reader, parts)?;
        let (ops, literals) = (programs.ops.len(), programs.literals.len());
        let fits = entries.len() == parts as usize
            && entries.iter().all(|entry| entry.fits(ops, literals, &distances))
            && pinned.is_sorted_by_key(|pinned| pinned.offset)
            && pinned.iter().all(|pinned| (pinned.op as usize) < ops)
            && tiers <= Shape::ALL.len() as u64;
        if !fits {
            return Err(Unfit::Malformed);
        }
        let tiers = (0..tiers).map(|_| Tier::load(reader, entries.len())).collect::<Result<_, _>>()?;
        Ok(Patterns { tiers, entries, distances, programs, pinned, parts, digest })
    }

    /// How many parts there are.
    pub fn len(&self) -> usize {
        self.parts as usize
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.parts == 0
    }

    /// The bytes that the tables take.
    pub fn bytes(&self) -> usize {
        let tiers: usize = self.tiers.iter().map(Tier::bytes).sum();
        tiers
            + self.entries.len() * size_of::<Entry>()
            + self.distances.len() * 2
            + self.programs.bytes()
            + self.pinned.len() * size_of::<Pinned>()
    }

    /// What the tiers hold, for people.
    pub fn describe(&self) -> String {
        self.tiers.iter().map(Tier::describe).collect::<Vec<_>>().join(", ")
    }

    /// The same patterns, swept on another path.
    ///
    /// # Panics
    /// If this machine cannot go it.
    #[must_use]
    pub fn on(mut self, path: Path) -> Patterns {
        assert!(path.is_available(), "{path:?} needs another machine");
        for tier in &mut self.tiers {
            tier.path = path;
        }
        self
    }

    /// Scans the next segment of a stream and calls `hit` for each match, in the order of [`Match`].
    pub fn scan(&self, state: &mut State, segment: &[u8], hit: &mut impl FnMut(Match)) {
        if self.is_empty() {
            state.position += segment.len() as u64;
            return;
        }
        let mut scratch = Scratch::default();
        let (head, rest) = segment.split_at(segment.len().min(HISTORY));
        if !head.is_empty() {
            state.append(head);
            let tail = state.tail;
            let view = View {
                bytes: &tail[..state.kept],
                base: state.position + head.len() as u64 - state.kept as u64,
                last: false,
            };
            self.pass(state, view, view.bytes.len() - head.len(), &mut scratch, hit);
        }
        if rest.is_empty() {
            return;
        }
        let base = state.position - head.len() as u64;
        for start in (HISTORY..segment.len()).step_by(CHUNK) {
            let end = segment.len().min(start + CHUNK);
            let view =
                View { bytes: &segment[start - HISTORY..end], base: base + (start - HISTORY) as u64, last: false };
            self.pass(state, view, HISTORY, &mut scratch, hit);
        }
        state.replace(segment);
    }

    /// Ends a stream: parts that look past their end are decided.
    pub fn finish(&self, state: &mut State, hit: &mut impl FnMut(Match)) {
        let tail = state.tail;
        let view = View { bytes: &tail[..state.kept], base: state.position - state.kept as u64, last: true };
        self.pass(state, view, view.bytes.len(), &mut Scratch::default(), hit);
    }

    /// Looks at what `view` has from the place `fresh` on; what is before it has been looked at.
    fn pass(
        &self,
        state: &mut State,
        view: View<'_>,
        fresh: usize,
        scratch: &mut Scratch,
        hit: &mut impl FnMut(Match),
    ) {
        let Scratch { probes, work } = scratch;
        let before = state.position;
        let budget = &Budget::new(state.work_left);
        budget.earn(view.bytes.len() - fresh);
        let earned = budget.left();
        self.resume(state, view, budget, work);
        self.try_pinned(view, before, budget, work);
        for tier in &self.tiers {
            let coming = |value: u32| prefetch(&self.entries[(value >> 3) as usize]);
            tier.probe((view.bytes, view.base, fresh), probes, budget, coming, &mut |at, value| {
                self.candidate(view, at, value, budget, work);
            });
        }
        // Alternatives of one part may have led several threads to the same place.
        work.parked.sort_unstable();
        work.parked.dedup();
        for thread in work.parked.drain(..) {
            state.park(thread);
        }
        state.lost = state.lost.saturating_add(budget.take_lost());
        state.work_left = budget.left();
        state.work = state.work.saturating_add(earned - budget.left());
        state.position = view.end();
        tell(work, before, view.last, hit);
    }

    fn resume(&self, state: &mut State, view: View<'_>, budget: &Budget, work: &mut Work) {
        if state.parked.is_empty() {
            return;
        }
        let waiting = std::mem::take(&mut state.parked);
        for thread in &waiting {
            let offset = state.position - u64::from(thread.lag);
            match thread.literal().map(|part| (part, self.entries[part as usize].start(&self.distances))) {
                Some((part, Start::Literal { at, length })) => {
                    self.programs.compare(view, thread.start, (at, length), part, budget, work);
                }
                _ => self.programs.run(view, thread.start, thread.op, offset, budget, work),
            }
        }
        state.parked = waiting;
        state.parked.clear();
    }

    fn try_pinned(&self, view: View<'_>, before: u64, budget: &Budget, work: &mut Work) {
        let due = self.pinned.partition_point(|pinned| pinned.offset < before);
        for pinned in &self.pinned[due..] {
            if pinned.offset >= view.end() {
                return;
            }
            self.programs.run(view, pinned.offset, pinned.op, pinned.offset, budget, work);
        }
    }

    /// An anchor may stand around `at`, where one of its q-grams does.
    fn candidate(&self, view: View<'_>, at: usize, value: u32, budget: &Budget, work: &mut Work) {
        let entry = &self.entries[(value >> 3) as usize];
        let Some(window) = at.checked_sub((value & 7) as usize) else {
            return;
        };
        for distance in entry.distances(&self.distances) {
            if let Some(start) = window.checked_sub(usize::from(distance)) {
                let start = view.base + start as u64;
                match entry.start(&self.distances) {
                    Start::Literal { at, length } => {
                        self.programs.compare(view, start, (at, length), value >> 3, budget, work);
                    }
                    Start::Op(op) => self.programs.run(view, start, op, start, budget, work),
                }
            }
        }
    }
}

/// Tells what was found, each match once and in order. What was known before this pass has been told already.
fn tell(work: &mut Work, before: u64, last: bool, hit: &mut impl FnMut(Match)) {
    if work.matches.is_empty() {
        return;
    }
    work.matches.sort_unstable();
    work.matches.dedup();
    for found in work.matches.drain(..) {
        if found.known > before || last {
            hit(found);
        }
    }
}
