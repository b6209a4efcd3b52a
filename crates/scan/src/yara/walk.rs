//! Running a program from a place of the content, forwards or backwards.
//!
//! Forwards the length of one match is wanted: a set of *threads* takes a byte after the other, in the order of preference
//! that quantifiers and alternatives give them; a thread that matches ends all behind it, and the last match counts.
//! Backwards every length is wanted. A body without alternatives is run as YARA does it, one instruction after the other
//! over a list of places; that order loses places where a second jump begins at a place that the first one has reached, too.
//!
//! Bounds: [`BYTES_MAX`] bytes in each direction and [`THREADS_MAX`] threads, as in YARA; [`Work`] counts turns.

use super::program::{Instruction, LOOPS_MAX, Program};

/// The most bytes in one direction.
const BYTES_MAX: usize = 4096;
/// The most threads at a time.
const THREADS_MAX: usize = 1024;

/// The work that was done, and its bound.
#[derive(Debug)]
pub(crate) struct Work {
    pub(crate) done: u64,
    pub(crate) max: u64,
}

/// A bound was reached.
#[derive(Debug)]
pub(crate) struct GivenUp;

impl Work {
    pub(crate) const fn add(&mut self, steps: u64) -> Result<(), GivenUp> {
        self.done = self.done.saturating_add(steps);
        if self.done > self.max { Err(GivenUp) } else { Ok(()) }
    }
}

/// The way to compare bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Mode {
    pub(crate) caseless: bool,
    pub(crate) dot_all: bool,
    /// Each byte is followed by NUL.
    pub(crate) wide: bool,
    /// One instruction after the other.
    pub(crate) in_row: bool,
}

/// A place where a program is begun.
#[derive(Clone, Copy)]
pub(crate) struct Begin<'a> {
    pub(crate) content: &'a [u8],
    pub(crate) offset: usize,
    pub(crate) at: u32,
    pub(crate) mode: Mode,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Thread {
    at: u32,
    /// The bytes that [`Instruction::Many`] has taken, and 1; 0 outside.
    taken: u16,
    depth: u8,
    turns: [u16; LOOPS_MAX],
}

impl Thread {
    fn is_same(&self, other: &Thread) -> bool {
        let counted = usize::from(self.depth).min(LOOPS_MAX);
        (self.at, self.taken, self.depth) == (other.at, other.taken, other.depth)
            && self.turns[..counted] == other.turns[..counted]
    }
}

/// The outcome of an instruction for a thread.
enum Outcome {
    /// It has taken a byte.
    Takes,
    /// It goes on at the same byte.
    Goes,
    Dies,
    Matches,
}

/// Room for threads, used again from run to run.
#[derive(Default)]
pub(crate) struct Walker {
    threads: Vec<Thread>,
    /// The threads of this byte, the next one last.
    pending: Vec<Thread>,
    next: Vec<Thread>,
    tasks: Vec<Task>,
    splits: Vec<u8>,
    /// For each instruction the last round in which a thread without counters stood there.
    seen: Vec<u32>,
    round: u32,
    places: Vec<(isize, u32)>,
}

/// A step of bringing a thread to the next byte.
enum Task {
    Run(Thread),
    /// A thread that is there.
    Put(Thread),
    /// The splits before a jump count again.
    Leave {
        base: usize,
        length: usize,
    },
}

impl Walker {
    /// The length of the match that begins there, if there is one.
    pub(crate) fn forwards(
        &mut self,
        program: &Program,
        begin: Begin<'_>,
        work: &mut Work,
    ) -> Result<Option<usize>, GivenUp> {
        let mut length = None;
        if begin.mode.in_row {
            let mut first = |found| {
                length = Some(found);
                Ok(false)
            };
            self.row(program, begin, false, work, &mut first)?;
        } else {
            let mut last = |found| {
                length = Some(found);
                Ok(false)
            };
            self.walk(program, begin, false, work, &mut last)?;
        }
        Ok(length)
    }

    /// Tells each length of a match that ends there, the shortest first.
    pub(crate) fn backwards(
        &mut self,
        program: &Program,
        begin: Begin<'_>,
        work: &mut Work,
        tell: &mut dyn FnMut(usize) -> Result<(), GivenUp>,
    ) -> Result<(), GivenUp> {
        let mut every = |length| tell(length).map(|()| true);
        match begin.mode.in_row {
            true => self.row(program, begin, true, work, &mut every),
            false => self.walk(program, begin, true, work, &mut every),
        }
    }

    /// Runs threads; `tell` says whether those behind a match go on.
    fn walk(
        &mut self,
        program: &Program,
        begin: Begin<'_>,
        is_back: bool,
        work: &mut Work,
        tell: &mut dyn FnMut(usize) -> Result<bool, GivenUp>,
    ) -> Result<(), GivenUp> {
        let reader = Reader::new(begin, is_back);
        self.threads.clear();
        self.pending.clear();
        self.next.clear();
        let first = Thread { at: begin.at, taken: 0, depth: 0, turns: [0; LOOPS_MAX] };
        self.settle(program, first, false, work)?;
        std::mem::swap(&mut self.threads, &mut self.next);
        let mut taken = 0;
        while !self.threads.is_empty() {
            self.drop_equal(program.code.len(), work)?;
            self.pending.clear();
            self.pending.extend(self.threads.drain(..).rev());
            self.next.clear();
            while let Some(mut thread) = self.pending.pop() {
                work.add(2)?;
                match reader.run(program, &mut thread, taken) {
                    Outcome::Dies => {}
                    Outcome::Takes => self.settle(program, thread, false, work)?,
                    Outcome::Goes => self.settle(program, thread, true, work)?,
                    Outcome::Matches if tell(taken)? => {}
                    Outcome::Matches => self.pending.clear(),
                }
            }
            std::mem::swap(&mut self.threads, &mut self.next);
            taken += reader.size;
        }
        Ok(())
    }

    /// Leaves the first of equal threads.
    fn drop_equal(&mut self, instructions: usize, work: &mut Work) -> Result<(), GivenUp> {
        self.round = self.round.wrapping_add(1);
        if self.seen.len() < instructions {
            self.seen.resize(instructions, 0);
        }
        let mut kept: usize = 0;
        for index in 0..self.threads.len() {
            let thread = self.threads[index];
            let is_plain = thread.depth == 0 && thread.taken == 0;
            let known = if is_plain {
                let seen = &mut self.seen[thread.at as usize];
                std::mem::replace(seen, self.round) == self.round
            } else {
                work.add(kept as u64 / 2)?;
                self.threads[..kept].iter().any(|known| known.is_same(&thread))
            };
            if !known {
                self.threads[kept] = thread;
                kept += 1;
            }
        }
        self.threads.truncate(kept);
        Ok(())
    }

    /// Brings a thread to instructions that take a byte or look at one, as several if it splits: behind the threads of the
    /// next byte, or before those that are pending for this one.
    fn settle(&mut self, program: &Program, thread: Thread, is_pending: bool, work: &mut Work) -> Result<(), GivenUp> {
        let before = self.next.len();
        self.splits.clear();
        self.tasks.clear();
        self.tasks.push(Task::Run(thread));
        let mut base = 0;
        while let Some(task) = self.tasks.pop() {
            work.add(1)?;
            match task {
                Task::Put(thread) => self.next.push(thread),
                Task::Leave { base: outer, length } => {
                    self.splits.truncate(length);
                    base = outer;
                }
                Task::Run(thread) => self.run(program, thread, &mut base)?,
            }
            if self.next.len() + self.pending.len() + self.tasks.len() > THREADS_MAX {
                return Err(GivenUp);
            }
        }
        if is_pending {
            self.pending.extend(self.next.drain(before..).rev());
        }
        Ok(())
    }

    /// Runs a thread up to the next split.
    fn run(&mut self, program: &Program, mut thread: Thread, base: &mut usize) -> Result<(), GivenUp> {
        loop {
            let Some(&instruction) = program.code.get(thread.at as usize) else {
                return Ok(());
            };
            let next = Thread { at: thread.at + 1, ..thread };
            match instruction {
                Instruction::Jump(to) => thread.at = to,
                Instruction::Split { number, to, next_first } => {
                    if self.splits[*base..].contains(&number) {
                        return Ok(());
                    }
                    self.splits.push(number);
                    let jumped = Thread { at: to, ..thread };
                    let (first, second) = if next_first { (next, jumped) } else { (jumped, next) };
                    self.tasks.push(Task::Run(second));
                    thread = first;
                }
                Instruction::LoopStart { min, lazy, behind } => {
                    let mut inside = next;
                    let turns = inside.turns.get_mut(usize::from(inside.depth)).ok_or(GivenUp)?;
                    *turns = 0;
                    inside.depth += 1;
                    let past = Thread { at: behind, ..thread };
                    thread = self.choose(min == 0, lazy, inside, past);
                }
                Instruction::LoopEnd { min, max, lazy, body } => {
                    let depth = usize::from(thread.depth).checked_sub(1).ok_or(GivenUp)?;
                    let turns = thread.turns.get_mut(depth).ok_or(GivenUp)?;
                    *turns += 1;
                    let turns = *turns;
                    let again = Thread { at: body, ..thread };
                    let past = Thread { at: thread.at + 1, depth: depth as u8, ..thread };
                    thread = match turns {
                        turns if turns < min => again,
                        turns if turns < max => self.choose(true, lazy, again, past),
                        _ => past,
                    };
                }
                Instruction::Many { min, max, lazy } => {
                    // One more than the bytes that were taken.
                    let taken = thread.taken.max(1) - 1;
                    let more = Thread { taken: taken.saturating_add(2), ..thread };
                    let past = Thread { at: thread.at + 1, taken: 0, ..thread };
                    if taken < min {
                        self.next.push(more);
                        return Ok(());
                    }
                    if taken < max {
                        let leave = Task::Leave { base: *base, length: self.splits.len() };
                        *base = self.splits.len();
                        if lazy {
                            self.tasks.extend([leave, Task::Put(more)]);
                            // The thread behind the jump comes first.
                            self.tasks.push(Task::Run(past));
                        } else {
                            self.next.push(more);
                            self.tasks.extend([leave, Task::Run(past)]);
                        }
                        return Ok(());
                    }
                    thread = past;
                }
                _ => {
                    self.next.push(thread);
                    return Ok(());
                }
            }
        }
    }

    /// The thread to go on with; the other one waits.
    fn choose(&mut self, both: bool, lazy: bool, more: Thread, past: Thread) -> Thread {
        if !both {
            return more;
        }
        let (first, second) = if lazy { (past, more) } else { (more, past) };
        self.tasks.push(Task::Run(second));
        first
    }

    /// Runs one instruction after the other over all places, those behind a jump in the order in which it adds them; `tell`
    /// says whether other places matter.
    fn row(
        &mut self,
        program: &Program,
        begin: Begin<'_>,
        is_back: bool,
        work: &mut Work,
        tell: &mut dyn FnMut(usize) -> Result<bool, GivenUp>,
    ) -> Result<(), GivenUp> {
        let reader = Reader::new(begin, is_back);
        let step: isize = if is_back { -1 } else { 1 };
        let start = begin.offset as isize + step.min(0);
        let byte = |place: isize| usize::try_from(place).ok().and_then(|place| begin.content.get(place)).copied();
        let most = reader.most as isize;
        self.places.clear();
        self.places.push((start, 0));
        for (round, &instruction) in (0u32..).zip(program.code.get(begin.at as usize..).unwrap_or(&[])) {
            let following = program.code.get(begin.at as usize + round as usize + 1);
            let mut index = 0;
            while let Some(&(place, of)) = self.places.get(index) {
                if of != round {
                    index += 1;
                    continue;
                }
                work.add(1)?;
                let taken = (place - start) * step;
                let moved = match instruction {
                    Instruction::Match => {
                        if !tell(taken.min(most).max(0) as usize)? {
                            return Ok(());
                        }
                        None
                    }
                    _ if taken >= most => None,
                    Instruction::Any => Some(1),
                    Instruction::Byte { value, mask } => {
                        byte(place).is_some_and(|byte| byte & mask == value).then_some(1)
                    }
                    Instruction::Many { min, max, .. } => {
                        let mut insertion = index;
                        for more in min as isize + 1..=max as isize {
                            if taken + more >= most {
                                break;
                            }
                            let goal = place + more * step;
                            while self.places.get(insertion + 1).is_some_and(|(known, _)| goal >= *known) {
                                insertion += 1;
                            }
                            let is_known = self.places.get(insertion).is_some_and(|(known, _)| *known == goal);
                            let fails = matches!(following, Some(&Instruction::Byte { value, mask: u8::MAX })
                                if byte(goal) != Some(value));
                            if !is_known && !fails {
                                work.add(1)?;
                                self.places.insert(insertion + 1, (goal, round + 1));
                            }
                        }
                        Some(min as isize)
                    }
                    _ => None,
                };
                match moved {
                    Some(by) => {
                        self.places[index] = (place + by * step, round + 1);
                        index += 1;
                    }
                    None => {
                        self.places.remove(index);
                    }
                }
            }
            if self.places.is_empty() {
                return Ok(());
            }
        }
        Ok(())
    }
}

/// Reads bytes in one direction.
struct Reader<'a> {
    begin: Begin<'a>,
    is_back: bool,
    /// The bytes of a step.
    size: usize,
    /// The most bytes.
    most: usize,
}

impl<'a> Reader<'a> {
    fn new(begin: Begin<'a>, is_back: bool) -> Reader<'a> {
        let size = if begin.mode.wide { 2 } else { 1 };
        let most = if is_back { begin.offset } else { begin.content.len().saturating_sub(begin.offset) };
        let most = most.min(BYTES_MAX);
        Reader { begin, is_back, size, most: most - most % size }
    }

    /// Where the byte stands that comes next.
    fn place(&self, taken: usize) -> usize {
        let Begin { offset, .. } = self.begin;
        if self.is_back { offset.saturating_sub(taken + self.size) } else { offset + taken }
    }

    fn byte(&self, place: usize) -> u8 {
        self.begin.content.get(place).copied().unwrap_or(0)
    }

    fn is_word(&self, place: usize) -> bool {
        let byte = self.byte(place);
        (byte.is_ascii_alphanumeric() || byte == b'_') && (self.size == 1 || self.byte(place + 1) == 0)
    }

    /// Runs one instruction.
    fn run(&self, program: &Program, thread: &mut Thread, taken: usize) -> Outcome {
        let Begin { content, offset, .. } = self.begin;
        let Some(&instruction) = program.code.get(thread.at as usize) else {
            return Outcome::Dies;
        };
        let place = self.place(taken);
        let holds = match instruction {
            Instruction::Match => return Outcome::Matches,
            Instruction::Start if self.is_back => offset <= taken,
            Instruction::Start => offset == 0 && taken == 0,
            Instruction::End => !self.is_back && content.len() - offset <= taken,
            Instruction::Boundary(wanted) => self.is_boundary(place, taken) == wanted,
            _ => return self.take(program, thread, taken, instruction),
        };
        thread.at += 1;
        if holds { Outcome::Goes } else { Outcome::Dies }
    }

    fn take(&self, program: &Program, thread: &mut Thread, taken: usize, instruction: Instruction) -> Outcome {
        let Mode { caseless, dot_all, .. } = self.begin.mode;
        let place = self.place(taken);
        if taken >= self.most || self.size == 2 && self.byte(place + 1) != 0 {
            return Outcome::Dies;
        }
        let byte = self.byte(place);
        let holds = match instruction {
            Instruction::Byte { value, mask: u8::MAX } if caseless => byte.eq_ignore_ascii_case(&value),
            Instruction::Byte { value, mask } => byte & mask == value,
            Instruction::Any | Instruction::Many { .. } => dot_all || byte != b'\n',
            Instruction::Set(set) => program.sets.get(usize::from(set)).is_some_and(|set| set.has(byte)),
            _ => false,
        };
        if !matches!(instruction, Instruction::Many { .. }) {
            thread.at += 1;
        }
        if holds { Outcome::Takes } else { Outcome::Dies }
    }

    /// Whether a word ends or begins before the byte; it does at the ends of what may be read.
    fn is_boundary(&self, place: usize, taken: usize) -> bool {
        if taken == 0 && self.begin.offset < self.size || taken >= self.most {
            return true;
        }
        let before = if self.is_back { place + self.size } else { place.saturating_sub(self.size) };
        self.is_word(place) != self.is_word(before)
    }
}
