//! The driver: a bounded tree of objects, one turn at a time.
//!
//! Each turn lets the deepest node that can do something do one thing: recognise its content, let a reader take a step
//! or finish, or retire. So whatever a reader tells is read to the last byte by those below it before the reader goes
//! on, a window never overflows, and the inspection can stop between any two turns.
//!
//! Bounds: `Limits`. Depth and number of objects, expansion, and windows are enforced here; the rest by the stages.

mod events;
mod findings;
mod keys;
mod members;
mod turns;

use std::collections::VecDeque;
use std::sync::Arc;

use scan::Database;
use stream::{Coding, Fuel, Limits, Window};
use unpack::Passwords;

use crate::ledger::Ledger;
use crate::node::{Node, Seed, Task};
use crate::words::Words;
use crate::{Action, Context, In, Out};

/// What all inspections share: the signatures and the bounds.
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
    /// The fuel ran out; call again.
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
/// It allocates a window for each object that it opens, and what the stages declare; [`Inspection::window_bytes`]
/// says how much the windows are.
pub struct Inspection {
    engine: Arc<Engine>,
    context: Context,
    clock: Option<fn() -> u64>,
    /// The nodes, by slot; the root is in slot 0.
    nodes: Vec<Option<Box<Node>>>,
    /// The slots in use, in the order in which their objects began: parents before children.
    order: Vec<usize>,
    /// Written to where the target's window is not empty: while it waits to be recognised.
    scratch: Option<Window>,
    out: VecDeque<Out>,
    cleared: u64,
    second_readings: u32,
    expanded: u64,
    /// Bytes in the spools of all readers.
    spooled: u64,
    exhausted: bool,
    ledger: Ledger,
    units: VecDeque<Unit>,
    /// Words of the mail that may be passwords.
    words: Words,
    /// They and the operator's: what readers are given.
    passwords: Passwords,
    done: bool,
}

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
        let passwords = Passwords::new(context.passwords.iter().cloned(), &engine.limits);
        let mut inspection = Inspection {
            engine,
            context,
            words: Words::default(),
            passwords,
            clock: None,
            nodes: Vec::new(),
            order: Vec::new(),
            scratch: Some(Window::with_capacity(unpack::HEAD_BYTES)),
            out: VecDeque::new(),
            cleared: 0,
            second_readings: 0,
            expanded: 0,
            spooled: 0,
            exhausted: false,
            ledger: Ledger::default(),
            units: VecDeque::new(),
            done: false,
        };
        let object = inspection.context.object.clone();
        let path = object.name.iter().cloned().collect();
        let id = inspection.ledger.number(0);
        let seed =
            Seed { id, object, path, source: None, depth: 0, raw_start: Some(0), second_reading: false, ticket: None };
        inspection.plant(seed);
        inspection
    }

    /// Measures the time spent in each stage by `clock`, which counts nanoseconds.
    pub fn with_clock(mut self, clock: fn() -> u64) -> Inspection {
        self.clock = Some(clock);
        self
    }

    /// Takes what the door tells, and returns how many bytes of it were taken: less than all when the window is full
    /// and [`Inspection::work`] has to be called first.
    pub fn tell(&mut self, message: In<'_>) -> usize {
        let Some(root) = self.nodes[0].as_mut() else { return 0 };
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
        self.nodes.iter_mut().for_each(|node| *node = None);
        self.order.clear();
        self.done = true;
    }

    /// The next thing that the inspection says.
    pub fn hear(&mut self) -> Option<Out> {
        self.out.pop_front()
    }

    /// Inspects until there is nothing left to do or the fuel is used up.
    pub fn work(&mut self, fuel: &mut Fuel) -> Progress {
        loop {
            if self.done {
                return Progress::Done;
            }
            let Some((slot, task)) = self.next_task() else { break };
            if fuel.is_empty() {
                return Progress::Tired;
            }
            self.turn(slot, task, fuel);
        }
        self.clear();
        Progress::Hungry
    }

    /// Bytes of the windows that are allocated now.
    pub fn window_bytes(&self) -> usize {
        let used = self.nodes.iter().flatten().map(|node| node.window.capacity());
        used.chain(self.scratch.iter().map(Window::capacity)).sum()
    }

    /// The heaviest action that the findings so far ask for.
    pub fn action(&self) -> Action {
        let policy = &self.context.policy;
        let asked = self.ledger.findings.iter().map(|spotted| policy.action(spotted.finding.class));
        asked.max().unwrap_or_default().max(self.ledger.more_action)
    }

    fn next_task(&self) -> Option<(usize, Task)> {
        let deepest_first = self.order.iter().rev();
        deepest_first.copied().find_map(|slot| Some((slot, self.nodes[slot].as_ref()?.task()?)))
    }

    fn turn(&mut self, slot: usize, task: Task, fuel: &mut Fuel) {
        let mut node = self.nodes[slot].take().expect("a node in order is in its slot");
        match task {
            Task::Recognise => self.recognise(&mut node, slot),
            Task::Step(index) => self.step(&mut node, slot, index, fuel),
            Task::Finish(index) => self.finish(&mut node, slot, index, fuel),
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
