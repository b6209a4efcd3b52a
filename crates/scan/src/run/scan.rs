//! One object, scanned while it streams.

mod ending;

use std::collections::{HashSet, VecDeque};
use std::hash::{BuildHasherDefault, DefaultHasher};
use std::sync::Arc;

use digest::Batch;
use pattern::{Found, State};
use stream::{Class, Event, FileType, Finding, Fuel, ReadAt, Stage, Step, Window};

use crate::allowance::Allowance;
use crate::digests::Running;
use crate::hashes::HashTable;
use crate::normal::View;
use crate::run::executable::Executable;
use crate::run::follow::{Context, Follower, Hit};
use crate::run::strings;
use crate::syntax::compare::Recent;
use crate::syntax::pcre::KEPT_BYTES;
use crate::syntax::picture::PICTURE_BYTES_MAX;
use crate::table::content::Table;
use crate::table::database::{Database, Name};
use crate::target::{Targets, targets_of};
use crate::yara;
use ending::{Ending, Phase};

/// The longest piece that is hashed and matched before hits are looked at.
const PIECE: usize = 32 << 10;

/// The scan of one object.
///
/// It takes every byte and tells each signature that matches (each name once), as a [`Class::Match`] finding: mid-stream as soon as
/// it is known, with the offset of the match; hashes and whatever depends on the end in `finish`. It writes nothing.
/// After the end, [`Scan::allowed`] tells whether an allow list has the object, or somebody who is trusted signed it.
///
/// What has come waits to be hashed in a [`Batch`], beside other streams: that of [`step_beside`](Scan::step_beside) and
/// [`finish_beside`](Scan::finish_beside), the same from beginning to end. As a [`Stage`] it has one of its own.
///
/// At rest it is about 3 kB; parked verifications and signatures half seen add to that within bounds. Where such a
/// bound is reached a `Heuristics.Limits.Exceeded.Signatures` finding is told at the end.
#[derive(Debug)]
pub struct Scan {
    database: Arc<Database>,
    targets: Targets,
    /// The containers that the object lies in, the innermost last.
    containers: Vec<FileType>,
    /// How it is called.
    called: yara::Called,
    /// One for each table of the database that applies, or nothing.
    sides: Box<[Option<Box<Side>>]>,
    /// None for a view whose digests no signature speaks of.
    running: Option<Running>,
    /// Where it waits to be hashed if it is in nobody's company.
    alone: Batch,
    position: u64,
    /// The work of matching that fuel was burned for.
    work: u64,
    executable: Option<Executable>,
    /// The last bytes, if some signature reads beside its matches.
    recent: Option<Box<Recent>>,
    /// How much of the beginning is still to be asked for, for `finish`.
    asking: u64,
    /// Whether it is a picture, and some signature knows pictures.
    pictured: bool,
    /// One for each layer of the database, or nothing where it has no rules.
    yara: Box<[Option<Box<strings::Follower>>]>,
    told: VecDeque<Finding>,
    /// The names of the signatures told so far: several signatures may have one name.
    names_told: HashSet<Box<str>, BuildHasherDefault<DefaultHasher>>,
    /// How far it is with its end.
    ending: Option<Box<Ending>>,
    /// Budget shared by the scans of an inspection.
    allowance: Arc<Allowance>,
    allowed: bool,
}

/// The state with respect to one table.
#[derive(Debug, Clone, Default)]
struct Side {
    state: State,
    follower: Follower,
    hits: Vec<Hit>,
}

impl Scan {
    /// Begins the scan of an object of that type. The declared `size` is a claim, and nothing is skipped on a claim.
    pub fn new(database: Arc<Database>, file_type: FileType, size: Option<u64>) -> Scan {
        let _ = size;
        let targets = targets_of(file_type);
        let placed = database.tables_for(targets).flatten().any(|table| table.needs_layout)
            || database.layers().filter_map(|layer| layer.yara.as_ref()).any(|table| table.needs_layout);
        let executable = Executable::new(&database, file_type, placed);
        let called = yara::Called::default().of_type(file_type.name());
        let pictured =
            file_type == FileType::Image && database.tables_for(targets).flatten().any(|table| table.knows_pictures());
        let scan = Scan { executable, called, pictured, ..Scan::of_targets(database, targets, true) };
        Scan { asking: if pictured { scan.asking.max(PICTURE_BYTES_MAX) } else { scan.asking }, ..scan }
    }

    /// Begins the scan of a view of an object, which is a stream of its own: its offsets and its size count.
    pub fn of_view(database: Arc<Database>, view: View) -> Scan {
        // ClamAV has no digest of the view of text.
        let called = yara::Called::default().of_type(view.file_type().name());
        Scan { called, ..Scan::of_targets(database, view.targets(), !matches!(view, View::Text | View::Lines)) }
    }

    fn of_targets(database: Arc<Database>, targets: Targets, hashed: bool) -> Scan {
        let tables = database.tables_for(targets);
        let any = |holds: fn(&Table) -> bool| tables.clone().flatten().any(holds);
        let rules = database.layers().map(|layer| layer.yara.as_deref());
        let any_rules = |holds: fn(&yara::Table) -> bool| rules.clone().flatten().any(holds);
        let recent = any(|table| table.reads_beside) || any_rules(|table| table.reads_anywhere);
        let kept_bytes = rules.clone().flatten().map(|table| table.kept_bytes).max().unwrap_or(0);
        let asking = if any(|table| table.wants_content) { KEPT_BYTES } else { kept_bytes };
        Scan {
            sides: tables.map(|table| table.map(|_| Box::default())).collect(),
            running: hashed.then(|| Running::new(digests_of(&database))),
            alone: Batch::default(),
            recent: recent.then(Box::default),
            asking,
            pictured: false,
            yara: rules.map(|table| table.map(|_| Box::default())).collect(),
            executable: None,
            database,
            targets,
            containers: Vec::new(),
            called: yara::Called::default(),
            position: 0,
            work: 0,
            told: VecDeque::new(),
            names_told: HashSet::default(),
            ending: None,
            allowance: Arc::default(),
            allowed: false,
        }
    }

    /// Says in what kinds of containers the object is, the innermost last, for signatures that ask. Without it the object
    /// is the outermost.
    #[must_use]
    pub fn within(mut self, containers: impl IntoIterator<Item = FileType>) -> Scan {
        self.containers.extend(containers);
        self
    }

    /// Says how the object is called, and the containers that it is in, the outermost first, for rules that ask.
    #[must_use]
    pub fn named(mut self, containers: &[&str], name: &str) -> Scan {
        let asks = self.database.layers().filter_map(|layer| layer.yara.as_ref()).any(|table| table.asks_names);
        if asks {
            self.called = yara::Called { file_type: self.called.file_type, ..yara::Called::new(containers, name) };
        }
        self
    }

    /// Says what it may spend, together with other scans.
    #[must_use]
    pub fn spending(mut self, allowance: Arc<Allowance>) -> Scan {
        self.allowance = allowance;
        self
    }

    /// Whether an allow list has this object, or rules vouch for who signed it: then what was told of it does not count. Known after the end.
    pub fn allowed(&self) -> bool {
        self.allowed
    }

    /// A scan that has read what this one has, and goes its own way from here on. `batch` is that of both.
    #[must_use]
    pub fn copy(&self, batch: &mut Batch) -> Scan {
        Scan {
            database: self.database.clone(),
            targets: self.targets,
            containers: self.containers.clone(),
            called: self.called.clone(),
            sides: self.sides.clone(),
            running: self.running.as_ref().map(|running| running.copy(batch)),
            alone: Batch::default(),
            position: self.position,
            work: self.work,
            executable: self.executable.as_ref().map(|executable| executable.copy(batch)),
            recent: self.recent.clone(),
            asking: self.asking,
            pictured: self.pictured,
            yara: self.yara.clone(),
            told: self.told.clone(),
            names_told: self.names_told.clone(),
            ending: self.ending.clone(),
            allowance: self.allowance.clone(),
            allowed: self.allowed,
        }
    }

    /// [`Stage::step`], with what is to be hashed in a batch that others share. The batch is to be run when it is due.
    pub fn step_beside(&mut self, batch: &mut Batch, input: &[u8], fuel: &mut Fuel) -> Step {
        if fuel.is_empty() {
            return Step::idle(0);
        }
        let asking = std::mem::take(&mut self.asking);
        if asking > 0 {
            fuel.burn(1);
            return Step::tell(0, Event::Keep(0..asking));
        }
        let allowed = fuel.allows(input.len());
        let mut taken = 0;
        while self.told.is_empty() && taken < allowed {
            let piece = &input[taken..allowed.min(taken + PIECE)];
            self.read(piece, batch);
            taken += piece.len();
        }
        fuel.burn(taken);
        fuel.burn(self.take_work());
        match self.told.pop_front() {
            Some(finding) => {
                fuel.burn(1);
                Step::tell(taken, Event::finding(finding))
            }
            None => Step::idle(taken),
        }
    }

    /// [`Stage::finish`] in the same way. It is [`Event::Idle`] once, though there be fuel, if there is something that is better
    /// hashed in company: the batch is due then. If it has not been run by the next call, that is hashed alone.
    pub fn finish_beside(&mut self, batch: &mut Batch, kept: &dyn ReadAt, fuel: &mut Fuel) -> Event {
        if fuel.is_empty() {
            return Event::Idle;
        }
        fuel.burn(1);
        let mut ending = self.ending.take().unwrap_or_else(|| Box::new(Ending::new()));
        while self.told.is_empty() && ending.phase != Phase::Over {
            if ending.phase == Phase::Conclude && !ending.waited && !self.is_hashed(batch) {
                ending.waited = true;
                break;
            }
            let work = self.end(&mut ending, batch, kept);
            fuel.burn(usize::try_from(work).unwrap_or(usize::MAX));
            if fuel.is_empty() {
                break;
            }
        }
        let over = ending.phase == Phase::Over;
        self.ending = Some(ending);
        match self.told.pop_front() {
            Some(finding) => Event::finding(finding),
            None if over => Event::End,
            None => Event::Idle,
        }
    }

    /// Whether there is nothing left to hash at the end.
    fn is_hashed(&self, batch: &Batch) -> bool {
        let sections = self.executable.as_ref().is_none_or(|executable| executable.is_hashed(batch));
        sections && self.running.as_ref().is_none_or(|running| running.is_hashed(batch))
    }

    /// Takes in the next bytes.
    fn read(&mut self, bytes: &[u8], batch: &mut Batch) {
        self.position += bytes.len() as u64;
        if let Some(running) = &mut self.running {
            running.update(batch, bytes, self.position);
        }
        let Some(executable) = &mut self.executable else {
            return self.look(bytes);
        };
        // The layout decides where matches count, so matching waits for it.
        let (held, bytes) = executable.take(&self.database, batch, bytes);
        self.look(&held);
        self.look(bytes);
    }

    /// The work that matching did since this was asked last, beside reading every byte.
    fn take_work(&mut self) -> usize {
        let sides = self.sides.iter().flatten().map(|side| side.state.work());
        let work: u64 = sides.chain(self.yara.iter().flatten().map(|yara| yara.state.work())).sum();
        let before = std::mem::replace(&mut self.work, work);
        usize::try_from(work - before).unwrap_or(usize::MAX)
    }

    /// Matches bytes against all tables.
    fn look(&mut self, bytes: &[u8]) {
        let mut recent = self.recent.take();
        self.each_side(|side, context| {
            let Side { state, follower, hits } = side;
            let patterns = &context.table.patterns;
            let offset = state.position();
            patterns.scan_runs(state, bytes, &mut |found| match found {
                Found::One(found) => follower.on_match(context, found, hits),
                Found::Repeated { first, times } => follower.on_repeated(context, first, times, hits),
            });
            if let Some(recent) = recent.as_ref().filter(|_| follower.is_reading()) {
                let (before, passed) = recent.view();
                follower.supply(before, passed);
                follower.supply(offset, bytes);
            }
        });
        for (follower, layer) in self.yara.iter_mut().zip(self.database.layers()) {
            if let (Some(follower), Some(table)) = (follower, &layer.yara) {
                follower.look(table, bytes);
            }
        }
        if let Some(recent) = &mut recent {
            recent.append(bytes);
        }
        self.recent = recent;
    }

    /// Does something with each table's side, then queues the hits in the order in which they became known.
    fn each_side(&mut self, mut act: impl FnMut(&mut Side, Context<'_>)) {
        let tables = self.database.tables_for(self.targets);
        let mut hits = Vec::new();
        let layout = self.executable.as_ref().and_then(Executable::layout);
        for (number, (side, table)) in self.sides.iter_mut().zip(tables).enumerate() {
            let (Some(side), Some(table)) = (side, table) else {
                continue;
            };
            let context = Context { table, layout, containers: &self.containers };
            act(side, context);
            let layer = number / self.targets.len();
            let name = |hit: &Hit| Name { layer, number: table.signatures[hit.signature as usize].name };
            hits.extend(side.hits.drain(..).map(|hit| (hit.known, name(&hit), hit.start)));
        }
        // A table's hits are in order; those of the other tables must not come too late for it.
        hits.sort_by_key(|(known, _, _)| *known);
        for (_, name, start) in hits {
            self.tell(name, start);
        }
    }

    /// Queues a finding, once for each name.
    fn tell(&mut self, name: Name, offset: u64) {
        let Some(text) = self.database.name(name) else {
            return;
        };
        if self.names_told.insert(text.as_str().into()) {
            self.told.push_back(Finding { class: Class::Match, name: text.into(), offset });
        }
    }
}

/// The tables of digests of whole objects.
fn digests_of(database: &Database) -> impl Iterator<Item = &HashTable> + Clone {
    database.layers().flat_map(|layer| [&layer.hashes, &layer.allowed])
}

const UNSEARCHED: Finding = Finding::new(Class::Partial, "Heuristics.Limits.Exceeded.Pcre", 0);
const LOST: Finding = Finding::new(Class::Limit, "Heuristics.Limits.Exceeded.Signatures", 0);

impl Stage for Scan {
    fn step(&mut self, input: &[u8], _output: &mut Window, fuel: &mut Fuel) -> Step {
        let mut alone = std::mem::take(&mut self.alone);
        let step = self.step_beside(&mut alone, input, fuel);
        if alone.is_due() {
            alone.run();
        }
        self.alone = alone;
        step
    }

    fn finish(&mut self, kept: &dyn ReadAt, _output: &mut Window, fuel: &mut Fuel) -> Event {
        let mut alone = std::mem::take(&mut self.alone);
        let mut event = self.finish_beside(&mut alone, kept, fuel);
        if event == Event::Idle && alone.is_due() {
            alone.run();
            event = self.finish_beside(&mut alone, kept, fuel);
        }
        self.alone = alone;
        event
    }
}
