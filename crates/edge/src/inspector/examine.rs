//! One file through one inspection, wherever that runs.

use std::fmt;
use std::io::{self, Read};
use std::path::Path;
use std::sync::Arc;
use std::task::{Poll, Wake, Waker};
use std::thread::Thread;
use std::time::{Duration, Instant};

use flow::{
    Action, Context, Flow, Inspecting, Inspector, ObjectReport, Out, Policy, Progress, Protocol, Spotted, Unfinished,
    Verdict, Wants,
};
use stream::{Class, Object};

/// Bytes read from a file at a time.
const SEGMENT_BYTES: usize = 64 << 10;

/// Result of inspecting a file.
pub struct Examined {
    /// Verdict on the file.
    pub verdict: Verdict,
    /// Objects in it, in the order in which they begin; empty unless asked for.
    pub objects: Vec<ObjectReport>,
    /// Bytes read.
    pub bytes: u64,
}

/// How a file is looked at.
#[derive(Default, Clone)]
pub struct Look {
    /// Protocol of the door.
    pub protocol: Protocol,
    /// The name of the file, by which some formats are known.
    pub name: Option<Box<str>>,
    /// Actions for findings.
    pub policy: Policy,
    /// Whether each object is described, with the time spent in each stage.
    pub explain: bool,
    /// Whether nothing more is looked at once a signature has matched. Where an allow list may speak for the file at its
    /// end, it is looked at to its end all the same.
    pub first_match: bool,
    /// Whether the verdict lists up to 1,000 findings.
    pub all_findings: bool,
    /// When it has to be over, whatever has been looked at by then.
    pub until: Option<Instant>,
}

/// Name of the finding for a file that takes too long.
const TOO_LONG: &str = "Heuristics.Limits.Exceeded.MaxScanTime";

/// Opens `path`, or the standard input for `-`.
pub fn open(path: &Path) -> io::Result<Box<dyn Read>> {
    if path == Path::new("-") {
        return Ok(Box::new(io::stdin().lock()));
    }
    Ok(Box::new(std::fs::File::open(path)?))
}

/// The name of the file at `path`; none for the standard input.
pub fn name(path: &Path) -> Option<Box<str>> {
    let name = path.file_name().filter(|name| *name != "-")?;
    Some(name.to_string_lossy().into())
}

/// Reads `source` to its end through an inspection; `progress` is told of each piece read.
///
/// # Errors
/// When the source cannot be read, or there is no verdict ([`NoVerdict::of`]).
pub fn examine(
    inspector: &dyn Inspector,
    look: &Look,
    mut source: impl Read,
    mut progress: impl FnMut(u64),
) -> io::Result<Examined> {
    let mut examination = Examination::new(inspector, look);
    let mut segment = vec![0; SEGMENT_BYTES];
    while !examination.is_decided() {
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
            piece = &piece[examination.take(piece)..];
            examination.work(look.until)?;
        }
    }
    examination.close();
    examination.work(look.until)?;
    Ok(examination.conclude())
}

/// An inspection whose reports are collected.
///
/// [`take`](Examination::take) and [`poll`](Examination::poll) by turns, [`close`](Examination::close) at the end and poll on,
/// then [`conclude`](Examination::conclude).
pub struct Examination {
    inspecting: Box<dyn Inspecting>,
    examined: Examined,
    first_match: bool,
    matched: bool,
    /// Nothing more is looked at.
    stopped: bool,
}

/// How long this thread waits at a time for another process.
const PARKED_MAX: Duration = Duration::from_millis(100);

/// Wakes a thread.
struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Unpark>) {
        self.0.unpark();
    }
}

/// Reason for which an inspection ended without a verdict.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NoVerdict(pub Unfinished);

impl fmt::Display for NoVerdict {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.0.words())
    }
}

impl std::error::Error for NoVerdict {}

impl NoVerdict {
    /// Extracts it from an error of [`examine`]; none if the error is the source's.
    pub fn of(error: &io::Error) -> Option<NoVerdict> {
        error.get_ref()?.downcast_ref().copied()
    }
}

impl From<NoVerdict> for io::Error {
    fn from(none: NoVerdict) -> io::Error {
        let kind = match none.0 {
            Unfinished::Starved => io::ErrorKind::OutOfMemory,
            Unfinished::Late => io::ErrorKind::TimedOut,
            Unfinished::Gone => io::ErrorKind::Other,
        };
        io::Error::new(kind, none)
    }
}

impl Examination {
    /// One that begins.
    pub fn new(inspector: &dyn Inspector, look: &Look) -> Examination {
        let context = Context {
            flow: Flow { protocol: look.protocol, ..Flow::default() },
            policy: look.policy.clone(),
            wants: Wants { objects: look.explain, ..Wants::default() },
            object: Object { name: look.name.clone(), ..Object::default() },
            all_findings: look.all_findings,
            ..Context::default()
        };
        Examination {
            inspecting: inspector.open(context),
            examined: Examined { verdict: Verdict::default(), objects: Vec::new(), bytes: 0 },
            first_match: look.first_match && !inspector.takes_back(),
            matched: false,
            stopped: false,
        }
    }

    /// Whether it is known already what the verdict will be.
    pub fn is_decided(&self) -> bool {
        self.has_match() || self.stopped
    }

    fn has_match(&self) -> bool {
        self.matched && self.first_match
    }

    /// Takes a prefix of `piece`, and returns how many bytes: all of them once it is decided.
    pub fn take(&mut self, piece: &[u8]) -> usize {
        let count = if self.is_decided() { piece.len() } else { self.inspecting.feed(piece) };
        self.examined.bytes += count as u64;
        count
    }

    /// Works on what was taken; whether that is done. If not, it is to be polled again after others had their turn.
    ///
    /// # Errors
    /// When there will be no verdict.
    pub fn poll(&mut self, context: &mut std::task::Context<'_>) -> Poll<Result<bool, NoVerdict>> {
        if self.has_match() {
            return Poll::Ready(Ok(true));
        }
        let progress = self.inspecting.poll(context);
        while let Some(out) = self.inspecting.hear() {
            self.note(out);
        }
        progress.map(|progress| {
            self.stopped |= progress == Progress::Stopped;
            if let Progress::Lost(why) = progress { Err(NoVerdict(why)) } else { Ok(progress != Progress::Tired) }
        })
    }

    /// The same in this thread, until it is done, or until then.
    fn work(&mut self, until: Option<Instant>) -> Result<(), NoVerdict> {
        let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
        let mut context = std::task::Context::from_waker(&waker);
        loop {
            if until.is_some_and(|until| Instant::now() > until) {
                self.inspecting.stop(TOO_LONG);
            }
            match self.poll(&mut context) {
                Poll::Ready(Ok(true)) => return Ok(()),
                Poll::Ready(Ok(false)) => {}
                Poll::Ready(Err(error)) => return Err(error),
                // Another process works; whoever has a deadline looks at it now and then.
                Poll::Pending => std::thread::park_timeout(PARKED_MAX),
            }
        }
    }

    /// Ends the input.
    pub fn close(&mut self) {
        self.inspecting.finish();
    }

    /// Ends the inspection and returns its result.
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
            _ => {}
        }
    }
}

/// Findings to report: the first match, or all of them, each name once; without a match the finding that decided,
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
