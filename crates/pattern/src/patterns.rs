//! The compiled patterns and the scan.

use std::io;

use bytemuck::{Pod, Zeroable};

use crate::alphabet;
use crate::budget::Budget;
use crate::code::Programs;
use crate::entry::{Entry, Start};
use crate::flat::{Flat, Reader, Unfit, Writer};
use crate::found::{Found, Match};
use crate::shape::Shape;
use crate::state::{HISTORY, State};
use crate::sweep::{Path, prefetch};
use crate::tier::{CHUNK, Probes, Tier};
use crate::verify::{View, Work};

/// So much of a run of one value is looked at to know all of it; again as much where a part is longer.
const RUN_LOOKED_AT: u64 = 4 * HISTORY as u64;

/// All distances between sampled offsets divide it.
const STRIDE_MAX: usize = 8;

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
    /// Entries of the parts.
    pub(crate) entries: Flat<Entry>,
    pub(crate) distances: Flat<u16>,
    pub(crate) programs: Programs,
    pub(crate) pinned: Flat<Pinned>,
    pub(crate) parts: u32,
    /// Tells these patterns from others.
    pub(crate) digest: u64,
}

/// Scratch space of a scan between its beginning and its return.
#[derive(Debug, Default)]
pub(crate) struct Scratch {
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

    /// Whether there is no pattern.
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

    /// Describes the tiers, for people.
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
        self.scan_runs(state, segment, &mut |found| match found {
            Found::One(found) => hit(found),
            Found::Repeated { first, times } => {
                for shift in 0..times {
                    first.iter().for_each(|found| hit(found.shifted(shift)));
                }
            }
        });
    }

    /// Scans a whole stream: finds what [`Patterns::scan`] and [`Patterns::finish`] do, for less where the stream is short. Matches that
    /// are known at its end may come in another order.
    pub fn scan_whole(&self, stream: &[u8], hit: &mut impl FnMut(Match)) {
        let mut state = State::new();
        if stream.len() > CHUNK {
            self.scan(&mut state, stream, hit);
            return self.finish(&mut state, hit);
        }
        let view = View { bytes: stream, base: 0, last: true };
        self.pass(&mut state, view, 0, &mut Scratch::default(), &mut |found| {
            if let Found::One(found) = found {
                hit(found);
            }
        });
    }

    /// As [`Patterns::scan`], but what matches behind every byte of a long run of one value (a part of zeros in a run of
    /// zeros) is told at once, and such a run costs next to nothing.
    pub fn scan_runs(&self, state: &mut State, segment: &[u8], hit: &mut impl FnMut(Found<'_>)) {
        if self.is_empty() {
            state.position += segment.len() as u64;
            return;
        }
        let mut scratch = Scratch::default();
        let mut rest = segment;
        while !rest.is_empty() {
            rest = &rest[self.pass_over(state, rest, hit)..];
            if !rest.is_empty() {
                self.settle(state, &mut scratch);
                rest = &rest[self.pass_through(state, rest, &mut scratch, hit)..];
            }
        }
    }

    /// Passes over the bytes that go on with a run of which all is known; how many they are.
    fn pass_over(&self, state: &mut State, bytes: &[u8], hit: &mut impl FnMut(Found<'_>)) -> usize {
        let (Some(first), Some(&last)) = (state.steady.take(), state.tail[..state.kept].last()) else {
            return 0;
        };
        let pinned = self.pinned.partition_point(|pinned| pinned.offset < state.position);
        let room = self.pinned.get(pinned).map_or(u64::MAX, |pinned| pinned.offset - state.position);
        let room = usize::try_from(room).unwrap_or(usize::MAX).min(bytes.len());
        let count = run_of(last, &bytes[..room]);
        let times = count as u64;
        if count > 0 && !first.is_empty() {
            hit(Found::Repeated { first: &first, times });
        }
        let budget = Budget::new(state.work_left);
        budget.earn(count);
        state.work_left = budget.left();
        state.position += times;
        state.same += times;
        // Which threads are parked depends on where the end lies between sampled offsets: they go on by whole strides.
        let whole = ((state.owed + count) / STRIDE_MAX * STRIDE_MAX) as u64;
        state.owed = (state.owed + count) % STRIDE_MAX;
        state.parked.iter_mut().for_each(|thread| thread.start += whole);
        state.steady = Some(first.iter().map(|found| found.shifted(times)).collect());
        count
    }

    /// Lets the parked verifications know of the bytes that are [owed](State::owed): they are passed through, and what is found
    /// in them has been told.
    pub(crate) fn settle(&self, state: &mut State, scratch: &mut Scratch) {
        let owed = std::mem::take(&mut state.owed);
        let Some(&last) = state.tail[..state.kept].last().filter(|_| owed > 0) else { return };
        state.steady = None;
        state.position -= owed as u64;
        state.same -= owed as u64;
        self.pass_through(state, &[last; STRIDE_MAX][..owed], scratch, &mut |_| {});
    }

    /// Matches the next bytes, all of them or up to where a run is found to be steady; how many they are.
    fn pass_through(
        &self,
        state: &mut State,
        segment: &[u8],
        scratch: &mut Scratch,
        hit: &mut impl FnMut(Found<'_>),
    ) -> usize {
        let (head, rest) = segment.split_at(segment.len().min(HISTORY));
        if !head.is_empty() {
            let before = state.tail[..state.kept].last().copied();
            state.append(head);
            let tail = state.tail;
            let view = View {
                bytes: &tail[..state.kept],
                base: state.position + head.len() as u64 - state.kept as u64,
                last: false,
            };
            state.note_same(head, before);
            self.pass(state, view, view.bytes.len() - head.len(), scratch, hit);
        }
        if rest.is_empty() {
            return head.len();
        }
        let base = state.position - head.len() as u64;
        let mut end = HISTORY;
        while end < segment.len() {
            let start = end;
            end = segment.len().min(start + CHUNK);
            end = start + piece_of(state.same, segment[start - 1], &segment[start..end]);
            let view =
                View { bytes: &segment[start - HISTORY..end], base: base + (start - HISTORY) as u64, last: false };
            state.note_same(&view.bytes[HISTORY..], view.bytes[..HISTORY].last().copied());
            self.pass(state, view, HISTORY, scratch, hit);
            if state.steady.is_some() {
                state.replace(&segment[..end]);
                return end;
            }
        }
        state.replace(segment);
        segment.len()
    }

    /// Matches after the last byte, if they repeat after every further byte of its value: all that began before the run
    /// is over, and so is all that began in it with less of it after.
    ///
    /// A verification began where the bytes around it were all of the run; what comes of one such comes of each. So if the
    /// oldest that is still open began well within the run, they are the same behind each byte from here on.
    fn steady(&self, state: &State, matches: &[Match]) -> Option<Box<[Match]>> {
        let long_ago = state.same.checked_sub(2 * HISTORY as u64)?;
        let within = |start: u64, count: u16| {
            let first = self.pinned.partition_point(|pinned| pinned.offset < start);
            let is_pinned = self.pinned.get(first).is_some_and(|pinned| pinned.offset - start < u64::from(count));
            state.position - start < long_ago && !is_pinned
        };
        let last = matches.iter().filter(|found| found.known == state.position);
        let settled = state.parked.iter().all(|thread| within(thread.start, thread.count))
            && last.clone().all(|found| within(found.start, 1));
        settled.then(|| last.map(|found| found.shifted(1)).collect())
    }

    /// Ends a stream: parts that look past their end are decided.
    pub fn finish(&self, state: &mut State, hit: &mut impl FnMut(Match)) {
        self.settle(state, &mut Scratch::default());
        let tail = state.tail;
        let view = View { bytes: &tail[..state.kept], base: state.position - state.kept as u64, last: true };
        state.steady = None;
        self.pass(state, view, view.bytes.len(), &mut Scratch::default(), &mut |found| {
            if let Found::One(found) = found {
                hit(found);
            }
        });
    }

    /// Looks at what `view` has from the place `fresh` on, and tells what is found; what is before it has been looked at.
    fn pass(
        &self,
        state: &mut State,
        view: View<'_>,
        fresh: usize,
        scratch: &mut Scratch,
        hit: &mut impl FnMut(Found<'_>),
    ) {
        let before = state.position;
        self.look(state, view, fresh, scratch);
        tell(&mut scratch.work, before, view.last, hit);
    }

    /// Gathers the matches in `view` from the place `fresh` on. The sweeps are compiled here, once, and not with each caller's
    /// closure.
    fn look(&self, state: &mut State, view: View<'_>, fresh: usize, scratch: &mut Scratch) {
        let Scratch { probes, work } = scratch;
        let (before, lost) = (state.position, state.lost);
        let budget = &Budget::new(state.work_left);
        budget.earn(view.bytes.len() - fresh);
        let earned = budget.left();
        self.resume(state, view, budget, work);
        self.try_pinned(view, before, budget, work);
        let is_base64 = alphabet::is_all(view.bytes);
        for tier in &self.tiers {
            let coming = |value: u32| prefetch(&self.entries[(value >> 3) as usize]);
            tier.probe((view.bytes, view.base, fresh), is_base64, probes, budget, coming, &mut |at, value| {
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
        work.matches.sort_unstable();
        work.matches.dedup();
        let whole = state.lost == lost && !view.last && state.same > 2 * HISTORY as u64;
        state.steady = if whole { self.steady(state, &work.matches) } else { None };
    }

    fn resume(&self, state: &mut State, view: View<'_>, budget: &Budget, work: &mut Work) {
        if state.parked.is_empty() {
            return;
        }
        let waiting = std::mem::take(&mut state.parked);
        for thread in &waiting {
            let literal = thread.literal().map(|part| (part, self.entries[part as usize].start(&self.distances)));
            for (start, lag) in thread.each() {
                let offset = state.position - lag;
                match literal {
                    Some((part, Start::Literal { at, length })) => {
                        self.programs.compare(view, start, (at, length), part, budget, work);
                    }
                    _ => self.programs.run(view, start, thread.op, offset, budget, work),
                }
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
fn tell(work: &mut Work, before: u64, last: bool, hit: &mut impl FnMut(Found<'_>)) {
    for found in work.matches.drain(..) {
        if found.known > before || last {
            hit(Found::One(found));
        }
    }
}

/// How much of the next bytes, behind a run of `same` times `last`, is looked at before anything else: no more than a step
/// into a long run at their end, since all of it need not be looked at.
fn piece_of(same: u64, last: u8, fresh: &[u8]) -> usize {
    let value = fresh.last().copied().unwrap_or_default();
    let run = fresh.iter().rev().take_while(|&&byte| byte == value).count();
    let before = if run == fresh.len() && last == value { same } else { 0 };
    let wanted = RUN_LOOKED_AT - before % RUN_LOOKED_AT;
    match usize::try_from(wanted) {
        Ok(wanted) if wanted < run => fresh.len() - run + wanted,
        _ => fresh.len(),
    }
}

/// How many of the first bytes are `byte`.
fn run_of(byte: u8, bytes: &[u8]) -> usize {
    let wide = [byte; 64];
    let blocks = bytes.chunks_exact(wide.len()).take_while(|block| **block == wide).count();
    let rest = &bytes[blocks * wide.len()..];
    blocks * wide.len() + rest.iter().take_while(|&&one| one == byte).count()
}
