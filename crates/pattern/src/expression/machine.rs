//! The backtracking matcher: a [`Program`] over bytes, with an explicit stack, in steps that are counted.
//!
//! In plain words: run the program from every place where a match can begin; where there is a choice take the first and
//! remember the other on a stack; when something does not match, take back what was done since the last choice and take
//! its other way. The tricks, and what each buys:
//! * **Nothing is tried that cannot be**: choices know the bytes with which their first way begins, starts are skipped to
//!   by the bytes with which the expression begins.
//! * **Runs of one set** are one entry of the stack, whatever their length.
//! * **Failures are remembered** once a search has made many choices: a branch that was taken at a place, and failed, fails
//!   there again, from whatever start. This makes expressions without references and counted loops take time linear in
//!   the haystack for a given expression, as far as the memory for it reaches.
//!
//! Groups keep what they matched in an earlier turn of a loop, and an empty turn ends a loop, as in Perl.

use std::ops::Range;

use super::meter::Meter;
use super::program::{ANY, FORGET, Greed, Instruction, Program, Start};
use super::syntax::{Assertion, has_case, is_same_folded};
use crate::ByteSet;

/// A slot that was not set.
const UNSET: usize = usize::MAX;

/// Result of one call of [`Machine::run`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Outcome {
    Match,
    None,
    /// The meter is empty.
    Tired,
    /// The stack is full.
    Full,
}

/// Action when something does not match.
#[derive(Debug, Clone, Copy)]
enum Frame {
    /// Go on there.
    Branch { pc: u32, at: usize },
    /// Give back one byte of a run, of which the least ends at `low`.
    Back { pc: u32, low: usize, at: usize },
    /// Take one more byte of a run, up to `high`.
    More { pc: u32, at: usize, high: usize },
    /// Put a slot back.
    Slot { slot: u32, old: usize },
    /// Put a register back.
    Register { register: u32, count: u32, turn: usize },
    /// A look around or an atomic group began here, `behind` bytes back.
    Barrier { look: u32, behind: u32, at: usize },
}

/// The barrier of an atomic group.
const ATOMIC: u32 = u32::MAX;

#[derive(Debug, Clone, Copy)]
struct Register {
    count: u32,
    /// Where the turn began.
    turn: usize,
}

/// A run of a program, which can be left and taken up again.
#[derive(Debug, Default)]
pub(super) struct Machine {
    is_running: bool,
    pc: u32,
    at: usize,
    /// Where the match that is being tried begins.
    start: usize,
    from: usize,
    /// Only `from` is tried as a start.
    is_anchored: bool,
    /// Where each group, and the whole, begins and ends; behind them, where each was last begun.
    slots: Vec<usize>,
    registers: Vec<Register>,
    frames: Vec<Frame>,
    /// Where the barriers lie among the frames.
    barriers: Vec<u32>,
    memo: Memo,
    /// How often something was put on the stack.
    choices: u64,
}

/// Places that were tried and have failed.
#[derive(Debug, Default)]
struct Memo {
    bits: Vec<u64>,
    is_on: bool,
    is_refused: bool,
}

/// The bounds of a machine.
#[derive(Debug, Clone, Copy)]
pub(super) struct Room {
    pub frames_max: usize,
    pub memo_bytes_max: usize,
}

/// Choices for each byte of the haystack after which failures are remembered.
const PATIENCE: u64 = 4;
/// Choices after which they are at the earliest.
const PATIENCE_MIN: u64 = 4096;

impl Machine {
    /// Begins to look from `from` on, or only there.
    pub fn begin(&mut self, program: &Program, from: usize, is_anchored: bool) {
        self.is_running = false;
        (self.start, self.from, self.is_anchored) = (from, from, is_anchored);
        self.slots.clear();
        self.slots.resize(program.slots / 2 * 3, UNSET);
        self.registers.clear();
        self.registers.resize(program.registers, Register { count: 0, turn: UNSET });
        self.frames.clear();
        self.barriers.clear();
        self.memo.is_on = false;
        self.memo.is_refused = false;
        self.choices = 0;
    }

    /// Span of the whole match (0) or of a group.
    pub fn group(&self, group: usize) -> Option<(usize, usize)> {
        let (&start, &end) = (self.slots.get(2 * group)?, self.slots.get(2 * group + 1)?);
        (start != UNSET && end != UNSET).then_some((start, end))
    }

    /// How many bytes it holds on to.
    pub fn memory(&self) -> usize {
        self.frames.capacity() * size_of::<Frame>()
            + self.memo.bits.capacity() * 8
            + self.slots.capacity() * size_of::<usize>()
            + self.registers.capacity() * size_of::<Register>()
    }

    /// Gives back what a large search took.
    pub fn shrink(&mut self, bytes: usize) {
        if self.memory() > bytes {
            (self.frames, self.memo) = (Vec::new(), Memo::default());
        }
    }

    /// Goes on for about `steps` meter, which are taken off.
    pub fn run(&mut self, program: &Program, haystack: &[u8], room: Room, meter: &mut Meter) -> Outcome {
        loop {
            if !self.is_running {
                if meter.is_empty() {
                    return Outcome::Tired;
                }
                if !self.next_start(program, haystack, meter) {
                    return Outcome::None;
                }
                self.is_running = true;
            }
            let outcome = self.attempt(program, haystack, room, meter);
            if outcome != Outcome::None {
                return outcome;
            }
            self.is_running = false;
            if self.is_anchored {
                return Outcome::None;
            }
            self.start += 1;
        }
    }

    /// Goes to the next place where a match can begin.
    fn next_start(&mut self, program: &Program, haystack: &[u8], meter: &mut Meter) -> bool {
        let Some(rest) = haystack.get(self.start..) else {
            return false;
        };
        let skipped =
            if self.is_anchored { Some(0) } else { skip(&program.start, haystack, rest, self.start, self.from) };
        let Some(skipped) = skipped else {
            if !matches!(program.start, Start::First | Start::From) {
                meter.burn(rest.len() as u64 / 16);
            }
            return false;
        };
        meter.burn(1 + skipped as u64 / 16);
        self.start += skipped;
        (self.pc, self.at) = (0, self.start);
        true
    }

    /// Follows the program from where it stands. `None` if no match begins at `start`.
    fn attempt(&mut self, program: &Program, haystack: &[u8], room: Room, meter: &mut Meter) -> Outcome {
        loop {
            if meter.is_empty() {
                return Outcome::Tired;
            }
            meter.burn(1);
            let went = self.step(program, haystack, meter);
            match went {
                Went::On => {}
                Went::Wrong => {
                    if !self.back(program, haystack, meter) {
                        return Outcome::None;
                    }
                }
                Went::Matched => return Outcome::Match,
                Went::Chose => {
                    if self.frames.len() >= room.frames_max {
                        return Outcome::Full;
                    }
                    self.remember(program, haystack, room);
                }
            }
        }
    }

    /// Begins to remember failures if it is time.
    fn remember(&mut self, program: &Program, haystack: &[u8], room: Room) {
        self.choices += 1;
        if self.memo.is_on || self.memo.is_refused || self.choices < PATIENCE_MIN + PATIENCE * haystack.len() as u64 {
            return;
        }
        let words = (haystack.len() as u64 + 1).saturating_mul(u64::from(program.branches)).div_ceil(64);
        if words == 0 || words > room.memo_bytes_max as u64 / 8 {
            self.memo.is_refused = true;
            return;
        }
        self.memo.bits.clear();
        self.memo.bits.resize(words as usize, 0);
        self.memo.is_on = true;
    }

    /// Whether the branch has been here before.
    #[inline]
    fn is_known(&mut self, memo: u32, haystack: &[u8]) -> bool {
        if !self.memo.is_on || memo == FORGET {
            return false;
        }
        let bit = memo as usize * (haystack.len() + 1) + self.at;
        let Some(word) = self.memo.bits.get_mut(bit / 64) else {
            return false;
        };
        let is_known = *word >> (bit % 64) & 1 != 0;
        *word |= 1 << (bit % 64);
        is_known
    }

    #[inline]
    fn step(&mut self, program: &Program, haystack: &[u8], meter: &mut Meter) -> Went {
        let Some(&instruction) = program.code.get(self.pc as usize) else {
            return Went::Wrong;
        };
        match instruction {
            Instruction::Byte(byte) => self.one(haystack, |here| here == byte),
            Instruction::Set(set) => {
                let set = &program.sets[set as usize];
                self.one(haystack, |here| set.has(here))
            }
            Instruction::Literal { at, length } => {
                let bytes = &program.bytes[at as usize..(at + length) as usize];
                meter.burn(u64::from(length) / 16);
                self.many(haystack, bytes.len(), |here| here == bytes)
            }
            Instruction::Folded { at, length } => {
                let bytes = &program.bytes[at as usize..(at + length) as usize];
                meter.burn(u64::from(length) / 8);
                self.many(haystack, bytes.len(), |here| is_same_folded(here, bytes))
            }
            Instruction::Run { set, bounds, greed } => self.run_of_set(program, haystack, (set, bounds, greed), meter),
            Instruction::Branch { set, other, memo } => {
                if !may_follow(program, set, haystack, self.at) {
                    self.pc = other;
                    return Went::On;
                }
                if self.is_known(memo, haystack) {
                    return Went::Wrong;
                }
                self.choose(self.pc + 1, other)
            }
            Instruction::Away { set, other, memo } => {
                if !may_follow(program, set, haystack, self.at) {
                    self.pc = other;
                    return Went::On;
                }
                if self.is_known(memo, haystack) {
                    return Went::Wrong;
                }
                self.choose(other, self.pc + 1)
            }
            Instruction::Jump(to) => {
                self.pc = to;
                Went::On
            }
            Instruction::Open(group) => {
                self.save(program.slots as u32 + group, self.at);
                self.pc += 1;
                Went::Chose
            }
            Instruction::Close(group) => {
                let begun = self.slots.get(program.slots + group as usize).copied();
                self.save(2 * group, begun.unwrap_or(UNSET));
                self.save(2 * group + 1, self.at);
                self.pc += 1;
                Went::Chose
            }
            Instruction::Assert(assertion) => {
                let holds = assertion.holds(haystack, self.at, self.from);
                self.pc += 1;
                if holds { Went::On } else { Went::Wrong }
            }
            Instruction::Backreference { group, fold } => self.backreference(haystack, group, fold, meter),
            Instruction::LoopStart(register) => {
                self.set_register(register, Register { count: 0, turn: UNSET });
                self.pc += 1;
                Went::Chose
            }
            Instruction::LoopTest { register, bounds, exit } => self.loop_test(program, register, bounds, exit),
            Instruction::LoopEnter(register) => {
                let count = self.registers[register as usize].count;
                self.set_register(register, Register { count, turn: self.at });
                self.pc += 1;
                Went::Chose
            }
            Instruction::LoopBack { register, test } => {
                let Register { count, turn } = self.registers[register as usize];
                self.set_register(register, Register { count: count.saturating_add(1), turn });
                self.pc = test;
                Went::Chose
            }
            Instruction::Look(look) => self.look(program, look),
            Instruction::LookEnd(look) => self.look_end(program, look, meter),
            Instruction::Atomic => {
                self.barrier(ATOMIC, 0);
                self.pc += 1;
                Went::Chose
            }
            Instruction::AtomicEnd => {
                self.commit(meter);
                self.pc += 1;
                Went::On
            }
            Instruction::Match => {
                self.slots[0] = self.start;
                self.slots[1] = self.at;
                Went::Matched
            }
            Instruction::Fail => Went::Wrong,
        }
    }

    #[inline]
    fn save(&mut self, slot: u32, at: usize) {
        if let Some(here) = self.slots.get_mut(slot as usize) {
            let old = std::mem::replace(here, at);
            self.frames.push(Frame::Slot { slot, old });
        }
    }

    #[inline]
    fn one(&mut self, haystack: &[u8], holds: impl Fn(u8) -> bool) -> Went {
        match haystack.get(self.at) {
            Some(&byte) if holds(byte) => {
                self.at += 1;
                self.pc += 1;
                Went::On
            }
            _ => Went::Wrong,
        }
    }

    #[inline]
    fn many(&mut self, haystack: &[u8], length: usize, holds: impl Fn(&[u8]) -> bool) -> Went {
        match haystack.get(self.at..self.at.saturating_add(length)) {
            Some(here) if holds(here) => {
                self.at += length;
                self.pc += 1;
                Went::On
            }
            _ => Went::Wrong,
        }
    }

    #[inline]
    fn choose(&mut self, first: u32, second: u32) -> Went {
        self.frames.push(Frame::Branch { pc: second, at: self.at });
        self.pc = first;
        Went::Chose
    }

    fn run_of_set(
        &mut self,
        program: &Program,
        haystack: &[u8],
        (set, bounds, greed): (u32, u32, Greed),
        meter: &mut Meter,
    ) -> Went {
        let (set, bounds) = (&program.sets[set as usize], program.bounds[bounds as usize]);
        let rest = &haystack[self.at..];
        let most = if greed == Greed::Lazy { bounds.min } else { bounds.max };
        let length = run_length(set, rest, most as usize);
        meter.burn(length as u64 / 8);
        if length < bounds.min as usize {
            return Went::Wrong;
        }
        let low = self.at + bounds.min as usize;
        self.pc += 1;
        self.at += length;
        match greed {
            Greed::Greedy if self.at > low => {
                self.frames.push(Frame::Back { pc: self.pc, low, at: self.at });
                Went::Chose
            }
            Greed::Lazy if bounds.max > bounds.min => {
                let high = low.saturating_add((bounds.max - bounds.min) as usize);
                self.frames.push(Frame::More { pc: self.pc, at: self.at, high });
                Went::Chose
            }
            _ => Went::On,
        }
    }

    fn backreference(&mut self, haystack: &[u8], group: u32, fold: bool, meter: &mut Meter) -> Went {
        let Some(bytes) = self.group(group as usize).and_then(|(start, end)| haystack.get(start..end)) else {
            return Went::Wrong;
        };
        meter.burn(bytes.len() as u64 / 8);
        self.many(haystack, bytes.len(), |here| if fold { is_same_folded(here, bytes) } else { here == bytes })
    }

    fn set_register(&mut self, register: u32, new: Register) {
        let Register { count, turn } = std::mem::replace(&mut self.registers[register as usize], new);
        self.frames.push(Frame::Register { register, count, turn });
    }

    fn loop_test(&mut self, program: &Program, register: u32, bounds: u32, exit: u32) -> Went {
        let Register { count, turn } = self.registers[register as usize];
        let bounds = program.bounds[bounds as usize];
        let enter = self.pc + 1;
        if count < bounds.min {
            self.pc = enter;
            return Went::On;
        }
        if turn == self.at || count >= bounds.max {
            self.pc = exit;
            return Went::On;
        }
        if bounds.lazy { self.choose(exit, enter) } else { self.choose(enter, exit) }
    }

    fn barrier(&mut self, look: u32, behind: u32) {
        self.barriers.push(self.frames.len() as u32);
        self.frames.push(Frame::Barrier { look, behind, at: self.at });
    }

    fn look(&mut self, program: &Program, look: u32) -> Went {
        let around = program.looks[look as usize];
        let (min, max) = around.behind.unwrap_or((0, 0));
        let behind = max.min(u32::try_from(self.at).unwrap_or(u32::MAX));
        if behind < min {
            if !around.negative {
                return Went::Wrong;
            }
            self.pc = around.exit;
            return Went::On;
        }
        self.barrier(look, behind);
        self.at -= behind as usize;
        self.pc += 1;
        Went::Chose
    }

    /// The inside of a look around has matched.
    fn look_end(&mut self, program: &Program, look: u32, meter: &mut Meter) -> Went {
        let around = program.looks[look as usize];
        let Some(at) = self.barriers.last().and_then(|&barrier| match self.frames.get(barrier as usize) {
            Some(Frame::Barrier { at, .. }) => Some(*at),
            _ => None,
        }) else {
            return Went::Wrong;
        };
        if around.behind.is_some() && self.at != at {
            return Went::Wrong;
        }
        if around.negative {
            self.undo(meter);
            return Went::Wrong;
        }
        self.commit(meter);
        self.at = at;
        self.pc = around.exit;
        Went::On
    }

    /// Forgets the choices since the last barrier, and the barrier; what was saved stays saved, and can be taken back.
    fn commit(&mut self, meter: &mut Meter) {
        let Some(barrier) = self.barriers.pop() else {
            return;
        };
        let mut kept = barrier as usize;
        meter.burn((self.frames.len() - kept) as u64 / 4);
        for from in kept + 1..self.frames.len() {
            if matches!(self.frames[from], Frame::Slot { .. } | Frame::Register { .. }) {
                self.frames[kept] = self.frames[from];
                kept += 1;
            }
        }
        self.frames.truncate(kept);
    }

    /// Takes back everything since the last barrier, and forgets the barrier.
    fn undo(&mut self, meter: &mut Meter) {
        let Some(barrier) = self.barriers.pop() else {
            return;
        };
        meter.burn((self.frames.len() - barrier as usize) as u64 / 4);
        while self.frames.len() > barrier as usize {
            if let Some(frame) = self.frames.pop() {
                self.put_back(frame);
            }
        }
    }

    fn put_back(&mut self, frame: Frame) {
        match frame {
            Frame::Slot { slot, old } => self.slots[slot as usize] = old,
            Frame::Register { register, count, turn } => {
                self.registers[register as usize] = Register { count, turn };
            }
            _ => {}
        }
    }

    /// Goes back to the last choice, and says whether there was one.
    fn back(&mut self, program: &Program, haystack: &[u8], meter: &mut Meter) -> bool {
        while let Some(frame) = self.frames.pop() {
            match frame {
                Frame::Branch { pc, at } => {
                    (self.pc, self.at) = (pc, at);
                    return true;
                }
                Frame::Back { pc, low, at } => {
                    let Some(at) = self.give_back(program, haystack, pc, low..at, meter) else {
                        continue;
                    };
                    if at > low {
                        self.frames.push(Frame::Back { pc, low, at });
                    }
                    (self.pc, self.at) = (pc, at);
                    return true;
                }
                Frame::More { pc, at, high } => {
                    if at >= high || !takes(program, pc - 1, haystack, at) {
                        continue;
                    }
                    self.frames.push(Frame::More { pc, at: at + 1, high });
                    (self.pc, self.at) = (pc, at + 1);
                    return true;
                }
                Frame::Slot { .. } | Frame::Register { .. } => {
                    meter.burn(1);
                    self.put_back(frame);
                }
                Frame::Barrier { look, behind, at } => {
                    self.barriers.pop();
                    if look != ATOMIC && self.barrier_back(program, look, behind, at) {
                        return true;
                    }
                }
            }
        }
        false
    }

    /// The last of some places, one behind the other, at which what follows a run can begin.
    fn give_back(
        &self,
        program: &Program,
        haystack: &[u8],
        pc: u32,
        places: Range<usize>,
        meter: &mut Meter,
    ) -> Option<usize> {
        let last = places.end.checked_sub(1)?;
        let first = match *program.code.get(pc as usize)? {
            Instruction::Byte(byte) => [byte; 2],
            Instruction::Literal { at, .. } => [program.bytes[at as usize]; 2],
            Instruction::Folded { at, .. } => cases(program.bytes[at as usize], true),
            Instruction::Backreference { group, fold } => {
                let begun = self.group(group as usize).filter(|(start, end)| start < end);
                let Some(&byte) = begun.and_then(|(start, _)| haystack.get(start)) else { return Some(last) };
                cases(byte, fold)
            }
            Instruction::Assert(Assertion::LineStart) => return self.give_back_lines(haystack, places, meter),
            _ => return Some(last),
        };
        let within = haystack.get(places.start..places.end.min(haystack.len()))?;
        let found = memchr::memrchr2(first[0], first[1], within);
        meter.burn((within.len() - found.unwrap_or(0)) as u64 / 16);
        found.map(|found| places.start + found)
    }

    /// The last of some places behind a line feed, or at the start.
    fn give_back_lines(&self, haystack: &[u8], places: Range<usize>, meter: &mut Meter) -> Option<usize> {
        let from = places.start.saturating_sub(1);
        let within = haystack.get(from..places.end.checked_sub(1)?)?;
        let found = memchr::memrchr(b'\n', within);
        meter.burn((within.len() - found.unwrap_or(0)) as u64 / 16);
        found.map(|found| from + found + 1).or((places.start == 0).then_some(0))
    }

    /// The inside of a look around has failed: tries a shorter look behind, or goes on if it had to fail.
    fn barrier_back(&mut self, program: &Program, look: u32, behind: u32, at: usize) -> bool {
        let around = program.looks[look as usize];
        self.at = at;
        if around.behind.is_some_and(|(min, _)| behind > min) {
            self.barrier(look, behind - 1);
            self.at = at - (behind as usize - 1);
            self.pc = around.enter;
            return true;
        }
        self.pc = around.exit;
        around.negative
    }
}

/// How a step went.
enum Went {
    On,
    /// Something was put on the stack.
    Chose,
    Wrong,
    Matched,
}

/// A byte, and with `fold` the letter in the other case.
fn cases(byte: u8, fold: bool) -> [u8; 2] {
    [byte, if fold && has_case(byte) { byte ^ 0x20 } else { byte }]
}

#[inline]
fn may_follow(program: &Program, set: u32, haystack: &[u8], at: usize) -> bool {
    set == ANY || haystack.get(at).is_some_and(|&byte| program.sets[set as usize].has(byte))
}

/// Whether the run at `pc` takes the byte at `at`.
fn takes(program: &Program, pc: u32, haystack: &[u8], at: usize) -> bool {
    match program.code.get(pc as usize) {
        Some(Instruction::Run { set, .. }) => may_follow(program, *set, haystack, at),
        _ => false,
    }
}

fn run_length(set: &ByteSet, rest: &[u8], most: usize) -> usize {
    let rest = &rest[..rest.len().min(most)];
    rest.iter().position(|&byte| !set.has(byte)).unwrap_or(rest.len())
}

/// How many bytes of `rest`, which begins at `at`, are to be skipped to where a match can begin.
pub(super) fn skip(start: &Start, haystack: &[u8], rest: &[u8], at: usize, from: usize) -> Option<usize> {
    match start {
        Start::Anywhere => Some(0),
        Start::First => (at == 0).then_some(0),
        Start::From => (at == from).then_some(0),
        Start::Line if at == 0 || haystack.get(at - 1) == Some(&b'\n') => Some(0),
        Start::Line => memchr::memchr(b'\n', rest).map(|found| found + 1),
        Start::Few(bytes) => match bytes[..] {
            [a] => memchr::memchr(a, rest),
            [a, b] => memchr::memchr2(a, b, rest),
            [a, b, c] => memchr::memchr3(a, b, c, rest),
            _ => None,
        },
        Start::Set(set) => rest.iter().position(|&byte| set.has(byte)),
    }
}

#[cfg(test)]
mod tests {
    use stream::Fuel;

    use super::super::{Expression, Flags, Progress, Want};
    use super::*;

    fn span(text: &str, flags: &str, haystack: &str) -> Option<Range<usize>> {
        let flags = Flags::of(flags).expect("flags");
        let expression = Expression::new(text.as_bytes(), flags).expect("an expression");
        match expression.search(Want::Span).run(haystack.as_bytes(), &mut Fuel::new(10_000)) {
            Progress::Match(span) => Some(span),
            _ => None,
        }
    }

    #[test]
    fn a_run_gives_back_up_to_where_what_follows_can_begin() {
        assert_eq!(span(r"(a).{1,20}^\1", "sm", "a\nxx\na\nyy"), Some(0..6));
        assert_eq!(span(r"\A.*^(x)\1", "sm", "xx"), Some(0..2), "at the start");
        assert_eq!(span(r"(a).*BC\1", "i", "a xbcA yy"), Some(0..6));
        assert_eq!(span(r"(a).*\1", "i", "a xbA yy"), Some(0..5));
        assert_eq!(span(r"(b?)a.*\1", "", "a xy"), Some(0..4), "what matched nothing can follow anywhere");
    }
}
