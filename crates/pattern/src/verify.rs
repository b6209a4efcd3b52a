//! The verifier: runs a program over what has arrived of the stream.
//!
//! A verification is a few [`Thread`]s. A thread that needs bytes that have not arrived is parked; alternatives split a
//! thread, and where they meet again equal threads become one, so the work is bounded by ops times offsets.

use crate::budget::Budget;
use crate::code::{Op, Programs, STRIDE};
use crate::found::Match;
use crate::piece::Edge;

/// A contiguous piece of the stream.
#[derive(Debug, Clone, Copy)]
pub(crate) struct View<'a> {
    /// The bytes, with as much history before the new ones as any look backwards needs.
    pub(crate) bytes: &'a [u8],
    /// The stream offset of the first of them.
    pub(crate) base: u64,
    /// Whether the stream ends with them.
    pub(crate) last: bool,
}

impl<'a> View<'a> {
    /// The stream offset behind the last byte.
    pub(crate) fn end(&self) -> u64 {
        self.base + self.bytes.len() as u64
    }

    /// Bytes from `offset` on.
    fn from(&self, offset: u64) -> &'a [u8] {
        let at = offset.wrapping_sub(self.base);
        usize::try_from(at).ok().and_then(|at| self.bytes.get(at..)).unwrap_or(&[])
    }

    /// Bytes before `offset`.
    fn before(&self, offset: u64) -> &'a [u8] {
        let at = offset.wrapping_sub(self.base);
        usize::try_from(at).ok().and_then(|at| self.bytes.get(..at)).unwrap_or(&[])
    }
}

/// A verification under way, or several that began one byte after the other and wait for the same: in a run of zeros a part
/// of zeros is open at every place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Thread {
    /// The op that comes next, or [`LITERAL`] and a part that is but a literal.
    pub(crate) op: u32,
    /// Where the part starts in the stream, for the first of them.
    pub(crate) start: u64,
    /// How many bytes before the end of what has arrived that op begins, for the first of them: a byte less for each that
    /// follows. Only valid while parked.
    pub(crate) lag: u16,
    /// How many they are.
    pub(crate) count: u16,
}

/// Says that a thread compares a literal from its start on.
const LITERAL: u32 = 1 << 31;

impl Thread {
    /// One verification.
    fn one(start: u64, op: u32, lag: usize) -> Thread {
        debug_assert!(lag <= STRIDE);
        Thread { op, start, lag: lag as u16, count: 1 }
    }

    /// Each of them: where the part starts, and how many bytes before the end its op begins.
    pub(crate) fn each(self) -> impl Iterator<Item = (u64, u64)> {
        (0..u64::from(self.count)).map(move |by| (self.start + by, u64::from(self.lag).saturating_sub(by)))
    }

    /// Whether `next` is what follows, and now is one of them. Both were parked at the same place of the stream.
    pub(crate) fn takes(&mut self, next: Thread) -> bool {
        let by = u64::from(self.count);
        let follows = self.op == next.op
            && self.start.checked_add(by) == Some(next.start)
            && u64::from(self.lag) == u64::from(next.lag) + by;
        let count = self.count.checked_add(next.count).filter(|_| follows);
        self.count = count.unwrap_or(self.count);
        count.is_some()
    }

    /// The part whose literal it compares, if it does.
    pub(crate) fn literal(&self) -> Option<u32> {
        (self.op & LITERAL != 0).then_some(self.op & !LITERAL)
    }
}

/// Receiver of verifications, and their scratch space.
#[derive(Debug, Default)]
pub(crate) struct Work {
    /// Matches in the order of discovery.
    pub(crate) matches: Vec<Match>,
    /// Threads that wait for more input.
    pub(crate) parked: Vec<Thread>,
    stack: Vec<(u32, u64)>,
    met: Vec<(u32, u64)>,
}

/// Meeting places that are compared at the price of an op.
const MET_PER_UNIT: usize = 32;

/// How one op went.
enum Outcome {
    /// On to the next op, this many bytes further.
    On(usize),
    Jump(u32),
    Split {
        count: u16,
        at: u32,
    },
    Found(Match),
    Dead,
    /// Not decided by what has arrived.
    Wait,
}

impl Programs {
    /// Runs from `op` at `offset` for a part that starts at `start`, as far as the budget goes.
    pub(crate) fn run(&self, view: View<'_>, start: u64, op: u32, offset: u64, budget: &Budget, work: &mut Work) {
        work.met.clear();
        let mut next = Some((op, offset));
        while let Some((mut op, mut offset)) = next {
            loop {
                if !budget.spend(1) {
                    work.stack.clear();
                    return;
                }
                match self.step(view, start, op, offset) {
                    Outcome::On(taken) => {
                        op += 1;
                        offset += taken as u64;
                    }
                    Outcome::Jump(to) => {
                        budget.spend((work.met.len() / MET_PER_UNIT) as u64);
                        if work.met.contains(&(to, offset)) {
                            break;
                        }
                        work.met.push((to, offset));
                        op = to;
                    }
                    Outcome::Split { count, at } => {
                        let targets = at as usize..at as usize + usize::from(count);
                        let targets = self.targets[targets].iter().rev();
                        work.stack.extend(targets.map(|&to| (to, offset)));
                        break;
                    }
                    Outcome::Found(found) => {
                        work.matches.push(found);
                        break;
                    }
                    Outcome::Wait => {
                        let lag = (view.end() - offset) as usize;
                        work.parked.push(Thread::one(start, op, lag));
                        break;
                    }
                    Outcome::Dead => break,
                }
            }
            next = work.stack.pop();
        }
    }

    /// Compares a part that is but a literal with what stands at `start`.
    #[inline]
    pub(crate) fn compare(
        &self,
        view: View<'_>,
        start: u64,
        (at, length): (u32, u8),
        part: u32,
        budget: &Budget,
        work: &mut Work,
    ) {
        if !budget.spend(1) {
            return;
        }
        let wanted = self.literal(at, length.into());
        let bytes = view.from(start);
        let there = bytes.len().min(wanted.len());
        if bytes[..there] != wanted[..there] {
            return;
        }
        let end = start + wanted.len() as u64;
        if there == wanted.len() {
            work.matches.push(Match { part, start, end, known: end });
        } else if !view.last {
            work.parked.push(Thread::one(start, LITERAL | part, there));
        }
    }

    fn step(&self, view: View<'_>, start: u64, op: u32, offset: u64) -> Outcome {
        let bytes = view.from(offset);
        let Some(code) = self.op(op) else {
            return Outcome::Dead;
        };
        match code {
            Op::Exact { length, at } => {
                let wanted = self.literal(at, length);
                let there = bytes.len().min(wanted.len());
                let fits = bytes[..there] == wanted[..there];
                on(fits, there, wanted.len(), view.last)
            }
            Op::Masked { length, at } => {
                let wanted = self.literal(at, length);
                let masks = self.literal(at + u32::from(length), length);
                let there = bytes.len().min(wanted.len());
                let fits = masked_equal(&bytes[..there], wanted, masks);
                on(fits, there, wanted.len(), view.last)
            }
            Op::Skip { length } => {
                let length = usize::from(length);
                on(true, bytes.len().min(length), length, view.last)
            }
            Op::Set { set } => {
                let set = &self.sets[set as usize];
                let fits = bytes.first().is_none_or(|&byte| set.has(byte));
                on(fits, bytes.len().min(1), 1, view.last)
            }
            Op::NoneOf { length, count, at } => {
                let length = usize::from(length);
                let there = bytes.len().min(length);
                let all = self.literals[at as usize..].chunks_exact(length.max(1));
                let hit = there == length && all.take(usize::from(count)).any(|one| one == &bytes[..length]);
                on(!hit, there, length, view.last)
            }
            Op::Split { count, at } => Outcome::Split { count, at },
            Op::Jump { to } => Outcome::Jump(to),
            Op::Behind { edge } => {
                if behind(&self.edges[edge as usize], view.before(offset)) {
                    Outcome::On(0)
                } else {
                    Outcome::Dead
                }
            }
            Op::End { part } => found(part, start, offset, 0),
            Op::Ahead { edge } => match (ahead(&self.edges[edge as usize], bytes, view.last), self.op(op + 1)) {
                (Some(Some(looked)), Some(Op::End { part })) => found(part, start, offset, looked),
                (None, _) => Outcome::Wait,
                _ => Outcome::Dead,
            },
        }
    }

    #[inline(always)]
    fn op(&self, number: u32) -> Option<Op> {
        self.ops.get(number as usize)?.op()
    }

    fn literal(&self, at: u32, length: u16) -> &[u8] {
        &self.literals[at as usize..at as usize + usize::from(length)]
    }
}

fn found(part: u32, start: u64, end: u64, looked: u64) -> Outcome {
    Outcome::Found(Match { part, start, end, known: end + looked })
}

fn on(fits: bool, there: usize, wanted: usize, last: bool) -> Outcome {
    match (fits, there == wanted) {
        (true, true) => Outcome::On(wanted),
        (true, false) if !last => Outcome::Wait,
        _ => Outcome::Dead,
    }
}

fn masked_equal(bytes: &[u8], wanted: &[u8], masks: &[u8]) -> bool {
    let different =
        bytes.iter().zip(wanted).zip(masks).fold(0, |seen, ((byte, value), mask)| seen | ((byte ^ value) & mask));
    different == 0
}

/// Whether the bytes before the start fit.
fn behind(edge: &Edge, before: &[u8]) -> bool {
    match edge {
        Edge::Byte { set, at_border } => before.last().map_or(*at_border, |&byte| set.has(byte)),
        Edge::Line => before.last().is_none_or(|&byte| byte == b'\n'),
        Edge::NotWide(set) => !matches!(before, [.., byte, 0] if set.has(*byte)),
    }
}

/// Whether the bytes after the end fit and how many decided it; nothing if that is still open.
fn ahead(edge: &Edge, bytes: &[u8], last: bool) -> Option<Option<u64>> {
    let answer = |fits: bool, looked: u64| Some(fits.then_some(looked));
    match (edge, bytes) {
        (Edge::Byte { at_border, .. }, []) if last => answer(*at_border, 0),
        (_, []) if last => answer(true, 0),
        (_, []) => None,
        (Edge::Byte { set, .. }, [byte, ..]) => answer(set.has(*byte), 1),
        (Edge::Line, [b'\n', ..]) => answer(true, 1),
        (Edge::Line, [b'\r', b'\n', ..]) => answer(true, 2),
        (Edge::Line, [b'\r']) if !last => None,
        (Edge::Line, _) => answer(false, 1),
        (Edge::NotWide(set), [byte, ..]) if !set.has(*byte) => answer(true, 1),
        (Edge::NotWide(_), [_, next, ..]) => answer(*next != 0, 2),
        (Edge::NotWide(_), [_]) if last => answer(true, 1),
        (Edge::NotWide(_), [_]) => None,
    }
}
