//! One file through one inspection, in this process.

use std::io::{self, Read};
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use inspect::{Action, Context, Engine, In, Inspection, ObjectReport, Out, Policy, Progress, Spotted, Verdict};
use stream::{Class, Fuel};

use crate::cpu;
use crate::memory::{Loan, Memory};

/// Bytes read from a file at a time.
const SEGMENT_BYTES: usize = 64 << 10;

/// What a file turned out to hold.
pub struct Examined {
    /// What was decided.
    pub verdict: Verdict,
    /// What was seen, in the order in which objects begin; empty unless asked for.
    pub objects: Vec<ObjectReport>,
    /// Bytes read.
    pub bytes: u64,
}

/// How a file is looked at.
#[derive(Default, Clone, Copy)]
pub struct Look {
    /// What findings ask for.
    pub policy: Policy,
    /// Whether each object is described, with the time spent in each stage.
    pub explain: bool,
    /// Whether nothing more is looked at once a signature has matched. Where an allow list may speak for the file at its
    /// end, it is looked at to its end all the same.
    pub first_match: bool,
    /// When it has to be over, whatever has been looked at by then.
    pub until: Option<Instant>,
}

/// What is found when a file has taken longer than it may.
const TOO_LONG: &str = "Heuristics.Limits.Exceeded.MaxScanTime";

/// Work done before it is looked at the clock and the memory.
const TURN_FUEL: u64 = 256 << 10;

/// Opens `path`, or the standard input for `-`.
pub fn open(path: &Path) -> io::Result<Box<dyn Read>> {
    if path == Path::new("-") {
        return Ok(Box::new(io::stdin().lock()));
    }
    Ok(Box::new(std::fs::File::open(path)?))
}

/// Reads `source` to its end through an inspection; `progress` is told of each piece read. What the inspection holds is
/// borrowed from `memory`, if that is given.
///
/// # Errors
/// When the source cannot be read, or there is no memory ([`io::ErrorKind::OutOfMemory`]).
pub fn examine(
    engine: &Arc<Engine>,
    look: &Look,
    mut source: impl Read,
    memory: Option<Arc<Memory>>,
    mut progress: impl FnMut(u64),
) -> io::Result<Examined> {
    let mut run = Run { loan: memory.map(Loan::new), examination: Examination::new(engine, look), until: look.until };
    let mut segment = vec![0; SEGMENT_BYTES];
    while !run.examination.is_decided() {
        let count = match source.read(&mut segment) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            outcome => outcome?,
        };
        if count == 0 {
            break;
        }
        progress(count as u64);
        let mut piece = &segment[..count];
        while !piece.is_empty() {
            piece = &piece[run.examination.take(piece)..];
            run.work()?;
        }
    }
    run.examination.close();
    run.work()?;
    Ok(run.examination.conclude())
}

/// An examination in this thread, turn by turn.
struct Run {
    examination: Examination,
    loan: Option<Loan>,
    until: Option<Instant>,
}

impl Run {
    fn work(&mut self) -> io::Result<()> {
        loop {
            if self.until.is_some_and(|until| Instant::now() > until) {
                self.examination.stop(TOO_LONG);
            }
            let mut turn = || self.examination.work(&mut Fuel::new(TURN_FUEL));
            let progress = match &mut self.loan {
                Some(loan) => loan.work(turn),
                None => turn(),
            };
            if self.loan.as_ref().is_some_and(Loan::is_refused) {
                return Err(io::ErrorKind::OutOfMemory.into());
            }
            if progress != Progress::Tired {
                return Ok(());
            }
        }
    }
}

/// An inspection whose words are collected.
///
/// [`take`](Examination::take) and [`work`](Examination::work) by turns, [`close`](Examination::close) at the end and
/// work on, then [`conclude`](Examination::conclude).
pub struct Examination {
    inspection: Inspection,
    examined: Examined,
    first_match: bool,
    matched: bool,
}

impl Examination {
    /// One that begins.
    pub fn new(engine: &Arc<Engine>, look: &Look) -> Examination {
        let context = Context { policy: look.policy, explain: look.explain, ..Context::default() };
        let mut inspection = Inspection::new(engine.clone(), context).with_clocks(cpu::CLOCKS);
        if look.explain {
            inspection = inspection.with_clock(nanoseconds);
        }
        Examination {
            inspection,
            examined: Examined { verdict: Verdict::default(), objects: Vec::new(), bytes: 0 },
            first_match: look.first_match && !engine.database.takes_back(),
            matched: false,
        }
    }

    /// Whether it is known already what will be said.
    pub fn is_decided(&self) -> bool {
        self.matched && self.first_match || self.inspection.is_stopped()
    }

    /// Looks at nothing more, which is a finding of class `limit` with this name.
    pub fn stop(&mut self, name: &'static str) {
        self.inspection.stop(name);
    }

    /// Takes a prefix of `piece`, and returns how many bytes: all of them once it is decided.
    pub fn take(&mut self, piece: &[u8]) -> usize {
        let count = if self.is_decided() { piece.len() } else { self.inspection.tell(In::Feed(piece)) };
        self.examined.bytes += count as u64;
        count
    }

    /// Works on what was taken. [`Progress::Tired`] asks to be called again.
    pub fn work(&mut self, fuel: &mut Fuel) -> Progress {
        if self.matched && self.first_match {
            return Progress::Done;
        }
        let progress = self.inspection.work(fuel);
        while let Some(out) = self.inspection.hear() {
            self.note(out);
        }
        progress
    }

    /// There is no more.
    pub fn close(&mut self) {
        self.inspection.tell(In::Finish);
    }

    /// What has been seen.
    pub fn conclude(mut self) -> Examined {
        self.examined.objects.sort_by_key(|object| object.id);
        self.examined
    }

    fn note(&mut self, out: Out) {
        let verdict = &mut self.examined.verdict;
        match out {
            Out::Object(object) => self.examined.objects.push(*object),
            Out::Verdict(told) => *verdict = told,
            Out::Finding(spotted) if self.first_match && spotted.finding.class == Class::Match => {
                self.matched = true;
                verdict.action = Action::Reject;
                verdict.findings.push(spotted);
                verdict.bytes = self.examined.bytes;
            }
            Out::Cleared(_) | Out::Blank(_) | Out::Finding(_) => {}
        }
    }
}

/// What is said of a verdict: the first match, or all of them, each name once; without a match the finding that decided,
/// if any did.
pub fn told<'a>(verdict: &'a Verdict, policy: &Policy, all_matches: bool) -> Vec<&'a Spotted> {
    let mut told: Vec<&Spotted> = Vec::new();
    for spotted in verdict.findings.iter().filter(|spotted| spotted.finding.class == Class::Match) {
        if told.is_empty() || (all_matches && told.iter().all(|other| other.finding.name != spotted.finding.name)) {
            told.push(spotted);
        }
    }
    if told.is_empty() && verdict.action > Action::Pass {
        told.extend(verdict.reason(policy).or(verdict.findings.first()));
    }
    told
}

fn nanoseconds() -> u64 {
    static START: std::sync::OnceLock<Instant> = std::sync::OnceLock::new();
    START.get_or_init(Instant::now).elapsed().as_nanos() as u64
}
