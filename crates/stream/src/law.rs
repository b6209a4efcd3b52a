//! The law test, one harness for every stage.
//!
//! [`holds`] runs a stage over an input once with all input at hand, and then with many cuts, fuels and windows; all
//! must tell the same. [`tell`] is the plain run, for tests that look at what was emitted.

use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use crate::{Event, Fuel, Note, Object, Spool, Stage, Step, Window};

/// The events of a stage, adjacent content joined.
#[derive(Clone, PartialEq)]
pub enum Told {
    /// Content of the innermost open object.
    Content(Vec<u8>),
    /// An object began.
    Open(Object),
    /// The innermost object ended.
    Close,
    /// A remark.
    Note(Note),
    /// A range was asked for.
    Keep(core::ops::Range<u64>),
    /// The events of the second reading, from the fork to its end.
    Alternative(Vec<Told>),
    /// The stage ended after this many bytes of input.
    End(usize),
}

impl fmt::Debug for Told {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Told::Content(bytes) => {
                let shown: String = bytes.escape_ascii().take(400).map(char::from).collect();
                write!(f, "Content[{}] \"{shown}\"", bytes.len())
            }
            Told::Open(object) => write!(f, "Open({object:?})"),
            Told::Close => write!(f, "Close"),
            Told::Note(note) => write!(f, "{note:?}"),
            Told::Keep(range) => write!(f, "Keep({range:?})"),
            Told::Alternative(told) => f.debug_tuple("Alternative").field(told).finish(),
            Told::End(taken) => write!(f, "End({taken})"),
        }
    }
}

/// How a run is cut: the most bytes offered at once, the fuel of one call, the capacity of the window.
#[derive(Debug, Clone, Copy)]
pub struct Schedule {
    /// The longest piece of input offered.
    pub piece: usize,
    /// The fuel of one call.
    pub fuel: u64,
    /// The window's capacity in bytes.
    pub window: usize,
    /// Seed for varying the three from call to call; 0 keeps them constant.
    pub seed: u64,
}

impl Schedule {
    /// All input at once, as much fuel as wanted, a roomy window.
    pub const WHOLE: Schedule = Schedule { piece: usize::MAX, fuel: u64::MAX, window: 64 << 10, seed: 0 };
}

/// Runs a stage over `input` in one piece and returns what it told.
pub fn tell(stage: impl Stage + 'static, input: &[u8]) -> Vec<Told> {
    run(Box::new(stage), input, Schedule::WHOLE)
}

/// The content of all objects together, in order, second readings left out.
pub fn content(told: &[Told]) -> Vec<u8> {
    let pieces = told.iter().filter_map(|told| match told {
        Told::Content(bytes) => Some(bytes.as_slice()),
        _ => None,
    });
    pieces.collect::<Vec<_>>().concat()
}

/// Checks the law: the stage made by `make` tells the same under every schedule tried.
///
/// # Panics
/// With the schedule and the first difference, if it does not.
pub fn holds<S: Stage + 'static>(make: impl Fn() -> S, input: &[u8]) {
    let reference = run(Box::new(make()), input, Schedule::WHOLE);
    for schedule in schedules(input.len()) {
        let told = run(Box::new(make()), input, schedule);
        let Some(at) = (0..told.len().max(reference.len())).find(|&i| told.get(i) != reference.get(i)) else {
            continue;
        };
        panic!(
            "the law is broken under {schedule:?} at event {at}\n whole: {:?}\n   cut: {:?}",
            reference.get(at),
            told.get(at)
        );
    }
}

/// Checks the law with a cut at every single byte of `input`: two pieces each time.
///
/// # Panics
/// As [`holds`].
pub fn holds_at_every_cut<S: Stage + 'static>(make: impl Fn() -> S, input: &[u8]) {
    let reference = run(Box::new(make()), input, Schedule::WHOLE);
    for cut in 1..input.len() {
        let told = run_cut(Box::new(make()), input, cut);
        assert!(told == reference, "the law is broken by a cut at {cut}\n whole: {reference:?}\n   cut: {told:?}");
    }
}

fn schedules(len: usize) -> Vec<Schedule> {
    let mut all = Vec::new();
    // Small pieces over a long input cost quadratic patience, not insight.
    let (smallest, cheap) = if len > 1 << 16 { (61, 997) } else { (1, 1) };
    for (piece, fuel, window) in [
        (smallest, u64::MAX, 4096),
        (usize::MAX, cheap, 4096),
        (usize::MAX, u64::MAX, smallest),
        (smallest, cheap, smallest),
        (3 + smallest, 2 + cheap, 5 + smallest),
        (4096, 1000, 333),
    ] {
        all.push(Schedule { piece, fuel, window, seed: 0 });
    }
    for seed in 1..=6 {
        all.push(Schedule { piece: 1 << (2 * seed), fuel: 1 << (15 - 2 * seed), window: 1 << (2 * seed), seed });
    }
    all
}

fn run(stage: Box<dyn Stage>, input: &[u8], schedule: Schedule) -> Vec<Told> {
    Run::new(stage, schedule).over(input, |_, piece| piece)
}

fn run_cut(stage: Box<dyn Stage>, input: &[u8], cut: usize) -> Vec<Told> {
    Run::new(stage, Schedule::WHOLE).over(input, |at, piece| if at < cut { piece.min(cut - at) } else { piece })
}

struct Run {
    stage: Box<dyn Stage>,
    schedule: Schedule,
    random: u64,
    told: Vec<Told>,
    depth: usize,
    /// A second reading may close the object that was open where it began.
    may_close: bool,
    spool: Spool,
}

impl Run {
    fn new(stage: Box<dyn Stage>, schedule: Schedule) -> Run {
        Run {
            stage,
            schedule,
            random: schedule.seed,
            told: Vec::new(),
            depth: 0,
            may_close: false,
            spool: Spool::default(),
        }
    }

    fn over(mut self, input: &[u8], cut: impl Fn(usize, usize) -> usize) -> Vec<Told> {
        let mut at = 0;
        let mut offered = 0;
        while at < input.len() {
            if offered <= at {
                offered = at + cut(at, self.vary(self.schedule.piece)).min(input.len() - at);
            }
            let mut window = Window::with_capacity(self.vary(self.schedule.window));
            let mut fuel = Fuel::new(self.vary_u64(self.schedule.fuel));
            let given = &input[at..offered];
            let Step { taken, event } = self.stage.step(given, &mut window, &mut fuel);
            assert!(taken <= given.len(), "took {taken} of {}", given.len());
            if event == Event::Idle {
                assert!(taken == given.len() || fuel.is_empty() || taken > 0, "no progress at {at}: {given:?}");
            }
            let verbatim = &given[..taken];
            self.spool.pass(at as u64, verbatim, u64::MAX);
            at += taken;
            if self.hear(event, verbatim, &window, input, at) {
                return self.told;
            }
        }
        loop {
            let mut window = Window::with_capacity(self.vary(self.schedule.window));
            let mut fuel = Fuel::new(self.vary_u64(self.schedule.fuel));
            let event = self.stage.finish(&self.spool, &mut window, &mut fuel);
            assert!(event != Event::Verbatim, "verbatim needs input");
            assert!(event != Event::Idle || fuel.is_empty(), "idle in finish with fuel left");
            if self.hear(event, b"", &window, input, at) {
                return self.told;
            }
        }
    }

    /// Notes one event; whether it was the last.
    fn hear(&mut self, event: Event, verbatim: &[u8], window: &Window, input: &[u8], at: usize) -> bool {
        if event != Event::Wrote {
            assert!(window.is_empty(), "wrote without saying so: {event:?}");
        }
        match event {
            Event::Idle => {}
            Event::Verbatim => self.content(verbatim),
            Event::Wrote => self.content(window.filled()),
            Event::Open(object) => {
                self.depth += 1;
                self.told.push(Told::Open(object));
            }
            Event::Close => {
                if self.depth > 0 || !core::mem::take(&mut self.may_close) {
                    self.depth = self.depth.checked_sub(1).expect("more objects closed than opened");
                }
                self.told.push(Told::Close);
            }
            Event::Keep(range) => {
                assert!(self.spool.ask(range.clone(), at as u64), "not to be kept at {at}: {range:?}");
                self.told.push(Told::Keep(range));
            }
            Event::Note(note) => {
                let fork = matches!(note, Note::Fork(_));
                self.told.push(Told::Note(note));
                if fork && let Some(alternative) = self.stage.alternative() {
                    let mut other = Run::new(alternative, self.schedule);
                    other.may_close = self.depth > 0 || self.may_close;
                    let told = other.over(&input[at..], |_, piece| piece);
                    self.told.push(Told::Alternative(told));
                }
            }
            Event::End => {
                assert_eq!(self.depth, 0, "ended with objects open");
                self.told.push(Told::End(at));
                return true;
            }
        }
        false
    }

    fn content(&mut self, bytes: &[u8]) {
        if bytes.is_empty() {
            return;
        }
        match self.told.last_mut() {
            Some(Told::Content(joined)) => joined.extend_from_slice(bytes),
            _ => self.told.push(Told::Content(bytes.to_vec())),
        }
    }

    /// A number from 1 to `most`, or `most` itself without a seed.
    fn vary_u64(&mut self, most: u64) -> u64 {
        if self.schedule.seed == 0 {
            return most;
        }
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        1 + self.random % most
    }

    fn vary(&mut self, most: usize) -> usize {
        self.vary_u64(most as u64) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ReadAt;

    /// Upper-cases its input, one byte of output for one of input.
    struct Upper;

    impl Stage for Upper {
        fn step(&mut self, input: &[u8], output: &mut Window, fuel: &mut Fuel) -> Step {
            let count = fuel.allows(input.len()).min(output.room());
            for byte in &input[..count] {
                output.push(&[byte.to_ascii_uppercase()]);
            }
            fuel.burn(count);
            Step::tell(count, if count == 0 { Event::Idle } else { Event::Wrote })
        }

        fn finish(&mut self, _: &dyn ReadAt, _: &mut Window, _: &mut Fuel) -> Event {
            Event::End
        }
    }

    /// Emits the length of the pieces it is given, which depends on the cut.
    struct Cheat;

    impl Stage for Cheat {
        fn step(&mut self, input: &[u8], output: &mut Window, fuel: &mut Fuel) -> Step {
            fuel.burn(input.len());
            output.push(&[input.len() as u8]);
            Step::tell(input.len(), Event::Wrote)
        }

        fn finish(&mut self, _: &dyn ReadAt, _: &mut Window, _: &mut Fuel) -> Event {
            Event::End
        }
    }

    /// Asks for all but its first byte, and tells it at the end.
    #[derive(Default)]
    struct Keeper {
        asked: bool,
        at: u64,
    }

    impl Stage for Keeper {
        fn step(&mut self, input: &[u8], _: &mut Window, fuel: &mut Fuel) -> Step {
            if !std::mem::replace(&mut self.asked, true) {
                return Step::tell(0, Event::Keep(1..u64::MAX));
            }
            let count = fuel.allows(input.len());
            fuel.burn(count);
            Step::idle(count)
        }

        fn finish(&mut self, kept: &dyn ReadAt, output: &mut Window, fuel: &mut Fuel) -> Event {
            if fuel.is_empty() {
                return Event::Idle;
            }
            fuel.burn(1);
            let mut byte = [0];
            let count = kept.read_at(1 + self.at, &mut byte);
            self.at += 1;
            output.push(&byte[..count]);
            if count == 0 { Event::End } else { Event::Wrote }
        }
    }

    #[test]
    fn what_a_stage_asks_to_keep_is_there_at_the_end() {
        holds(Keeper::default, b"a stream of a few words");
        assert_eq!(content(&tell(Keeper::default(), b"abc")), b"bc");
    }

    #[test]
    fn a_lawful_stage_passes() {
        holds(|| Upper, b"a stream of a few words");
        holds_at_every_cut(|| Upper, b"a stream of a few words");
        assert_eq!(content(&tell(Upper, b"abc")), b"ABC");
    }

    #[test]
    #[should_panic(expected = "the law is broken")]
    fn a_stage_that_depends_on_the_cut_is_caught() {
        holds(|| Cheat, b"a stream of a few words");
    }
}
