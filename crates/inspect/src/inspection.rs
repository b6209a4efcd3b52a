//! The driver: a bounded tree of objects, one turn at a time.
//!
//! Each turn lets the deepest node that can do something do one thing: recognise its content, let a reader take a step
//! or finish, or retire. So whatever a reader tells is read to the last byte by those below it before the reader goes
//! on, a window never overflows, and the inspection can stop between any two turns. It does
//! so when its processor time is spent.
//!
//! Bounds: `Limits`. Depth and number of objects, expansion, and windows are enforced here; the rest by the stages.

mod budget;
mod events;
mod findings;
mod gathering;
mod keys;
mod members;
mod observers;
mod paging;
mod ruling;
mod scraps;
mod stopped;
mod tails;
mod turns;
mod watching;

use std::collections::{BTreeSet, VecDeque};
use std::sync::{Arc, Mutex};

use digest::Batch;
use rules::ids::Watch;
use scan::{Allowance, Database};
use stream::{Coding, Fuel, Limits, Window};
use unpack::Passwords;

use self::budget::Budget;
pub use self::budget::Clocks;
use self::stopped::Stopped;
use self::tails::Tails;
use crate::facts::Facts;
use crate::intrusion::IntrusionRules;
use crate::ledger::Ledger;
use crate::node::{Node, Seed, Task};
use crate::page::PageRules;
use crate::watcher::Shared;
use crate::words::{COMMON, Words};
use flow::{Context, In, Out, PageScore};

/// State shared by all inspections: the signatures and the bounds.
#[derive(Debug, Clone)]
pub struct Engine {
    /// The signatures.
    pub database: Arc<Database>,
    /// The bounds of each inspection.
    pub limits: Limits,
}

/// How far [`Inspection::work`] came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Progress {
    /// All that was fed is inspected; it waits for more.
    Hungry,
    /// The fuel ran out, or the batch should be run; call again.
    Tired,
    /// The verdict has been given.
    Done,
}

/// One inspection of one object, in this process.
///
/// # Calling order
/// [`tell`](Inspection::tell) bytes, [`work`](Inspection::work) until it is no longer [`Progress::Tired`],
/// [`hear`](Inspection::hear) what it says; at the end tell [`In::Finish`] and work until [`Progress::Done`].
///
/// # Company
/// Content is hashed much faster beside that of others. Who has several inspections under way owns a [`Batch`] and lends it
/// to each call of [`work_beside`](Inspection::work_beside), in place of `work`, always the same one; between the calls it
/// runs the batch whenever that is due. What an inspection comes to does not depend on it, and one that ends, in whatever
/// way, leaves nothing there.
///
/// It allocates a window for each object that it opens, as long as there is something in it, and what the stages declare;
/// [`Inspection::window_bytes`] says how much the windows are at the most.
pub struct Inspection {
    engine: Arc<Engine>,
    context: Context,
    clock: Option<fn() -> u64>,
    budget: Budget,
    /// Common budget of the scans of all objects.
    allowance: Arc<Allowance>,
    /// Where content waits to be hashed if the inspection is in nobody's company.
    alone: Batch,
    /// The nodes, by slot; the root is in slot 0.
    nodes: Vec<Option<Box<Node>>>,
    /// The slots in use, in the order in which their objects began: parents before children.
    order: Vec<usize>,
    /// When the object in each slot began, in a count of all.
    births: Vec<u64>,
    born: u64,
    /// Nodes that may have a task, by birth and slot; the others wait for a wake-up. A mailbox may have hundreds open.
    awake: BTreeSet<(u64, usize)>,
    /// Written to where the target's window is not empty: while it waits to be recognised.
    scratch: Option<Window>,
    out: VecDeque<Out>,
    cleared: u64,
    /// Second readings under way.
    second_readings: u32,
    /// Bytes that they have taken, all that were, and what they opened.
    read_again: u64,
    expanded: u64,
    /// Bytes in the spools of all readers.
    spooled: u64,
    exhausted: bool,
    /// Objects that do not count.
    scraps: u32,
    ledger: Ledger,
    units: VecDeque<Unit>,
    /// Mails by their places.
    tails: Tails,
    /// Facts that the door wants to know of the mail.
    facts: Facts,
    /// Words of the mail that may be passwords.
    words: Words,
    /// Candidates of the message and of the operator, as readers get them.
    passwords: Passwords,
    /// The phrases of web pages, and the score of this one.
    pages: Option<Arc<PageRules>>,
    page: Option<PageScore>,
    /// The intrusion rules over it.
    watch: Option<Shared>,
    /// Intrusion rules have used up their budget.
    is_watch_spent: bool,
    /// The text that was looked for is there.
    is_present: bool,
    /// Set once it has ended before its content.
    stopped: Option<Stopped>,
    done: bool,
}

/// Fuel that a turn burns besides the bytes that it looks at, so that content of many small pieces makes no long turns.
const TURN_COST: usize = 64;

/// A part of the object that is fed, which can be overwritten; remembered after its end, since a match in the raw mail
/// may be told later.
#[derive(Clone, Copy)]
struct Unit {
    start: u64,
    end: u64,
    coding: Coding,
}

impl Inspection {
    /// An inspection of the object that `context` announces.
    pub fn new(engine: Arc<Engine>, mut context: Context) -> Inspection {
        if engine.database.passwords().next().is_some() {
            let of_database = engine.database.passwords().map(Box::from);
            context.passwords = context.passwords.iter().cloned().chain(of_database).collect();
        }
        let common = COMMON.iter().map(|word| Box::from(word.as_bytes()));
        let passwords = Passwords::new(context.passwords.iter().cloned().chain(common), &engine.limits);
        let budget = Budget::new(&engine.limits);
        let allowance = Arc::new(Allowance::new(engine.limits.pixels_max, engine.limits.search_work_max));
        let ledger = Ledger::new(context.all_findings);
        let mut inspection = Inspection {
            budget,
            allowance,
            alone: Batch::default(),
            engine,
            facts: Facts::new(context.wants.clone()),
            context,
            words: Words::default(),
            passwords,
            pages: None,
            page: None,
            watch: None,
            is_watch_spent: false,
            is_present: false,
            clock: None,
            nodes: Vec::new(),
            order: Vec::new(),
            births: Vec::new(),
            born: 0,
            awake: BTreeSet::new(),
            scratch: Some(Window::with_capacity(unpack::HEAD_BYTES)),
            out: VecDeque::new(),
            cleared: 0,
            second_readings: 0,
            read_again: 0,
            expanded: 0,
            spooled: 0,
            exhausted: false,
            scraps: 0,
            ledger,
            units: VecDeque::new(),
            tails: Tails::default(),
            stopped: None,
            done: false,
        };
        let object = inspection.context.object.clone();
        // Who hands in the object tells its name, if somebody asks.
        let path = Arc::default();
        let id = inspection.ledger.number(0);
        let seed = Seed {
            id,
            object,
            path,
            source: None,
            depth: 0,
            raw_start: Some(0),
            place: Some((id, 0)),
            second_reading: false,
            is_doubted: false,
            ticket: None,
        };
        inspection.plant(seed);
        inspection
    }

    /// Measures the time spent in each stage by `clock`, which counts nanoseconds.
    pub fn with_clock(mut self, clock: fn() -> u64) -> Inspection {
        self.clock = Some(clock);
        self
    }

    /// Scores the content by these phrases, if the context asks for that.
    #[must_use]
    pub fn with_pages(mut self, pages: Option<Arc<PageRules>>) -> Inspection {
        self.pages = pages;
        self
    }

    /// Matches these intrusion rules, if the context asks for that.
    #[must_use]
    pub fn with_intrusion(mut self, rules: Option<&IntrusionRules>) -> Inspection {
        if let (Some(rules), Some(watched)) = (rules, &self.context.watched) {
            let watch = Watch::new(rules.0.clone(), &self.context.flow, watched);
            self.watch = watch.map(|watch| Arc::new(Mutex::new(watch)));
            self.report_watched();
        }
        self
    }

    /// Bounds its processor time by [`Limits::cpu_ms_max`]. Without clocks the time has no bound.
    pub fn with_clocks(mut self, clocks: Clocks) -> Inspection {
        self.budget.measure_by(clocks);
        self
    }

    /// Takes what the door tells, and returns how many bytes of it were taken: less than all when the window is full
    /// and [`Inspection::work`] has to be called first.
    pub fn tell(&mut self, message: In<'_>) -> usize {
        if let Some(stopped) = &mut self.stopped {
            return stopped.tell(message);
        }
        let Some(root) = self.nodes[0].as_mut() else { return 0 };
        self.awake.insert((self.births[0], 0));
        match message {
            In::Feed(bytes) => {
                root.trim();
                let count = root.window.push(bytes);
                root.bytes += count as u64;
                count
            }
            In::Finish => {
                root.closing = true;
                0
            }
        }
    }

    /// Gives up, and lets go of all that it holds. There will be no verdict.
    pub fn abandon(&mut self) {
        self.let_go();
        self.done = true;
    }

    fn let_go(&mut self) {
        self.nodes.iter_mut().for_each(|node| *node = None);
        self.order.clear();
        self.awake.clear();
        self.alone = Batch::default();
    }

    /// The next thing that the inspection says.
    pub fn hear(&mut self) -> Option<Out> {
        let out = self.out.pop_front();
        if out.is_none() {
            self.out = VecDeque::new();
        }
        out
    }

    /// Inspects until there is nothing left to do or the fuel is used up.
    pub fn work(&mut self, fuel: &mut Fuel) -> Progress {
        let mut alone = std::mem::take(&mut self.alone);
        let progress = self.work_in(&mut alone, true, fuel);
        if !self.nodes.iter().all(Option::is_none) {
            self.alone = alone;
        }
        progress
    }

    /// The same in the company of others. It is [`Progress::Tired`], too, where the batch is due: what waits there is not
    /// hashed here, since it may be others'.
    pub fn work_beside(&mut self, batch: &mut Batch, fuel: &mut Fuel) -> Progress {
        self.work_in(batch, false, fuel)
    }

    fn work_in(&mut self, batch: &mut Batch, is_own: bool, fuel: &mut Fuel) -> Progress {
        self.budget.begin(fuel);
        let progress = self.take_turns(batch, is_own, fuel);
        let spent = self.budget.end(self.fed().unwrap_or(u64::MAX));
        match progress {
            Progress::Tired | Progress::Hungry if spent => {
                self.stop("Heuristics.Limits.Exceeded.Time");
                self.wind_up()
            }
            progress => progress,
        }
    }

    fn take_turns(&mut self, batch: &mut Batch, is_own: bool, fuel: &mut Fuel) -> Progress {
        loop {
            if self.done || self.stopped.is_some() {
                return self.wind_up();
            }
            let Some((slot, task)) = self.next_task() else { break };
            if fuel.is_empty() {
                return Progress::Tired;
            }
            self.turn(slot, task, batch, fuel);
            fuel.burn(TURN_COST);
            if batch.is_due() {
                if !is_own {
                    return Progress::Tired;
                }
                batch.run();
            }
            if self.budget.is_due(fuel) && self.is_spent() {
                return Progress::Tired;
            }
        }
        self.clear();
        self.rest();
        Progress::Hungry
    }

    /// Keeps no memory for content that is still to come.
    fn rest(&mut self) {
        self.nodes.iter_mut().flatten().for_each(|node| node.rest());
        self.scratch.iter_mut().for_each(Window::rest);
    }

    fn is_spent(&mut self) -> bool {
        self.fed().is_some_and(|fed| self.budget.is_spent(fed))
    }

    /// Bytes fed so far; `None` at the end.
    fn fed(&self) -> Option<u64> {
        self.nodes.first().and_then(Option::as_ref).map(|root| root.bytes)
    }

    /// Bytes of the windows that are allocated now.
    pub fn window_bytes(&self) -> usize {
        let used = self.nodes.iter().flatten().map(|node| node.window.capacity());
        used.chain(self.scratch.iter().map(Window::capacity)).sum()
    }

    /// The next task of the deepest node that can make progress.
    fn next_task(&mut self) -> Option<(usize, Task)> {
        while let Some(&(_, slot)) = self.awake.last() {
            if let Some(task) = self.nodes[slot].as_ref().and_then(|node| node.task()) {
                return Some((slot, task));
            }
            self.awake.pop_last();
        }
        None
    }

    fn turn(&mut self, slot: usize, task: Task, batch: &mut Batch, fuel: &mut Fuel) {
        let mut node = self.nodes[slot].take().expect("a node in order is in its slot");
        match task {
            Task::Recognise => self.recognise(&mut node, slot),
            Task::Step(index) => self.step(&mut node, slot, index, batch, fuel),
            Task::Finish(index) => self.finish(&mut node, slot, index, batch, fuel),
            Task::Retire => return self.retire(*node, slot),
        }
        node.trim();
        self.nodes[slot] = Some(node);
    }

    /// Says that everything fed so far has been inspected.
    fn clear(&mut self) {
        let fed = self.nodes[0].as_ref().map_or(self.cleared, |root| root.bytes);
        if fed > self.cleared {
            self.cleared = fed;
            self.out.push_back(Out::Cleared(fed));
        }
    }
}

#[cfg(test)]
mod tests {
    use stream::{Class, Event, FileType, Finding, ReadAt, Stage, Step};

    use super::*;
    use crate::node::{Reader, Work};

    /// A stage that has always something to say, and comes no further.
    struct Talker;

    impl Stage for Talker {
        fn step(&mut self, _input: &[u8], _output: &mut Window, fuel: &mut Fuel) -> Step {
            fuel.burn(1);
            Step::tell(0, Event::finding(Finding::new(Class::Malformed, "Talk", 0)))
        }

        fn finish(&mut self, _kept: &dyn ReadAt, _output: &mut Window, fuel: &mut Fuel) -> Event {
            fuel.burn(1);
            Event::finding(Finding::new(Class::Malformed, "Talk", 0))
        }
    }

    fn verdict(content: &[u8]) -> Vec<String> {
        let database = Arc::new(Database::with_builtin());
        let engine = Arc::new(Engine { database, limits: Limits::default() });
        let mut inspection = Inspection::new(engine, Context::default());
        inspection.tell(In::Feed(content));
        let root = inspection.node(0);
        root.file_type = Some(FileType::Binary);
        root.readers.push(Reader::new("talker", Work::Stage(Box::new(Talker))));
        inspection.tell(In::Finish);
        for _ in 0..1_000 {
            if inspection.work(&mut Fuel::new(10_000)) == Progress::Done {
                break;
            }
        }
        let said = std::iter::from_fn(|| inspection.hear());
        let findings = said.filter_map(|out| match out {
            Out::Finding(spotted) => Some(spotted.finding.name.to_string()),
            _ => None,
        });
        findings.collect()
    }

    #[test]
    fn a_stage_that_comes_no_further_is_ended() {
        for content in ["content", ""] {
            assert_eq!(verdict(content.as_bytes()), ["Talk", "Heuristics.Limits.Exceeded.Stall"]);
        }
    }
}
