//! Inspections in this process, in the thread that polls them.

use std::collections::VecDeque;
use std::sync::Arc;
use std::task::Poll;

use flow::{Action, Context, In, Inspecting, Inspector, Out, Progress, Unfinished};
use inspect::{Engine, Inspection, Kept, Scorer};
use stream::Fuel;

use crate::clock;
use crate::company::{self, Company};
use crate::memory::{Loan, Memory};
use crate::scoring::{self, Asked, Desk, Pending};

/// Work done on one object before others have their turn.
const TURN_FUEL: u64 = 256 << 10;

/// The inspector of this process.
#[derive(Clone)]
pub struct Local {
    engine: Arc<Engine>,
    memory: Option<Arc<Memory>>,
    desk: Option<Desk>,
}

impl Local {
    /// Inspects with these signatures and bounds. What inspections hold is borrowed from `memory`, if that is given.
    pub fn new(engine: Arc<Engine>, memory: Option<Arc<Memory>>) -> Local {
        Local { engine, memory, desk: None }
    }

    /// Scores mails whose context asks for it, in the thread that polls: for one that nobody else waits for.
    pub fn scoring_here(self, scorer: Arc<Scorer>) -> Local {
        Local { desk: Some(Desk::here(scorer)), ..self }
    }

    /// The same in threads of their own.
    ///
    /// # Errors
    /// When none can be started.
    pub fn scoring_apart(self, scorer: Arc<Scorer>) -> std::io::Result<Local> {
        Ok(Local { desk: Some(Desk::apart(scorer)?), ..self })
    }
}

impl Inspector for Local {
    fn open(&self, mut context: Context) -> Box<dyn Inspecting> {
        let scoring = context.scoring.take();
        let scoring = self
            .desk
            .as_ref()
            .zip(scoring)
            .map_or(Scoring::No, |(desk, scoring)| Scoring::Kept(Kept::new(scoring), desk.clone()));
        let mut loan = self.memory.clone().map(Loan::new);
        let is_timed = context.wants.objects;
        let company = Company::of(context.flow.protocol);
        let begin = || {
            let inspection = Inspection::new(self.engine.clone(), context).with_clocks(clock::CLOCKS);
            if is_timed { inspection.with_clock(clock::nanoseconds) } else { inspection }
        };
        let inspection = work(&mut loan, begin);
        Box::new(Running { inspection, loan, company, scoring, outs: VecDeque::new() })
    }

    fn takes_back(&self) -> bool {
        self.engine.database.takes_back()
    }
}

/// An inspection, and what it has borrowed.
struct Running {
    inspection: Inspection,
    loan: Option<Loan>,
    company: Company,
    scoring: Scoring,
    /// What was reported up to the verdict, while that waits for the score.
    outs: VecDeque<Out>,
}

/// How far the score of a mail is.
enum Scoring {
    /// None is wanted, or it is known.
    No,
    /// The mail comes.
    Kept(Kept, Desk),
    /// Somebody is at it; what is asked for depends on it.
    Asked(Pending, flow::Scoring),
}

impl Inspecting for Running {
    fn feed(&mut self, bytes: &[u8]) -> usize {
        let Running { inspection, loan, scoring, .. } = self;
        let Scoring::Kept(kept, _) = scoring else { return inspection.tell(In::Feed(bytes)) };
        work(loan, || {
            let taken = inspection.tell(In::Feed(bytes));
            kept.take(&bytes[..taken]);
            taken
        })
    }

    fn finish(&mut self) {
        self.inspection.tell(In::Finish);
    }

    fn stop(&mut self, name: &'static str) {
        work(&mut self.loan, || self.inspection.stop(name));
    }

    fn poll(&mut self, context: &mut std::task::Context<'_>) -> Poll<Progress> {
        if let Scoring::Asked(..) = self.scoring {
            return self.wait(context);
        }
        let progress = self.turn();
        if self.is_starved() {
            work(&mut self.loan, || self.inspection.abandon());
            return Poll::Ready(Progress::Lost(Unfinished::Starved));
        }
        match progress {
            inspect::Progress::Tired => Poll::Ready(Progress::Tired),
            inspect::Progress::Hungry if self.inspection.is_stopped() => Poll::Ready(Progress::Stopped),
            inspect::Progress::Hungry => Poll::Ready(Progress::Hungry),
            inspect::Progress::Done => self.score(context),
        }
    }

    fn hear(&mut self) -> Option<Out> {
        match self.scoring {
            // The verdict is held back until all of it is known.
            Scoring::No | Scoring::Kept(..) => self.outs.pop_front().or_else(|| self.inspection.hear()),
            Scoring::Asked(..) => None,
        }
    }
}

impl Running {
    fn turn(&mut self) -> inspect::Progress {
        let Running { inspection, loan, company, .. } = self;
        let fuel = &mut Fuel::new(TURN_FUEL);
        match company.batch() {
            None => work(loan, || inspection.work(fuel)),
            Some(batch) => company::turn(batch, |batch| work(loan, || inspection.work_beside(batch, fuel))),
        }
    }

    /// The inspection has its verdict: now the score, where one is wanted. What is refused anyway needs none.
    fn score(&mut self, context: &mut std::task::Context<'_>) -> Poll<Progress> {
        let Scoring::Kept(kept, desk) = std::mem::replace(&mut self.scoring, Scoring::No) else {
            return Poll::Ready(Progress::Done);
        };
        self.outs.extend(std::iter::from_fn(|| self.inspection.hear()));
        let is_refused =
            self.outs.iter().any(|out| matches!(out, Out::Verdict(verdict) if verdict.action == Action::Reject));
        if is_refused || self.inspection.is_stopped() {
            return Poll::Ready(Progress::Done);
        }
        let scoring = kept.scoring().clone();
        match desk.ask(kept) {
            Asked::Known(score) => self.settle(&scoring, score),
            Asked::Pending(pending) => {
                self.scoring = Scoring::Asked(pending, scoring);
                return self.wait(context);
            }
        }
        Poll::Ready(Progress::Done)
    }

    fn wait(&mut self, context: &mut std::task::Context<'_>) -> Poll<Progress> {
        let Scoring::Asked(pending, scoring) = &self.scoring else { return Poll::Ready(Progress::Done) };
        let Some(score) = pending.poll(context.waker()) else { return Poll::Pending };
        let scoring = scoring.clone();
        self.scoring = Scoring::No;
        self.settle(&scoring, score);
        Poll::Ready(Progress::Done)
    }

    fn settle(&mut self, scoring: &flow::Scoring, score: Option<flow::Score>) {
        let asks = score.as_ref().map_or(Action::Pass, |score| scoring.action(score.points));
        for out in &mut self.outs {
            if let Out::Verdict(verdict) = out {
                scoring::settle(verdict, asks, score.clone());
            }
        }
    }

    /// Whether it wanted more memory than there was, and has ended.
    fn is_starved(&self) -> bool {
        self.loan.as_ref().is_some_and(Loan::is_refused)
    }
}

fn work<T>(loan: &mut Option<Loan>, work: impl FnOnce() -> T) -> T {
    match loan {
        Some(loan) => loan.work(work),
        None => work(),
    }
}

#[cfg(test)]
mod tests {
    use std::task::Waker;

    use flow::{Flow, Protocol};
    use scan::{Builder, Database};
    use stream::Limits;

    use super::*;

    fn inspect(memory: Option<Arc<Memory>>, content: &[u8]) -> (Progress, Vec<Out>) {
        let engine = Engine { database: Arc::new(Database::with_builtin()), limits: Limits::default() };
        let mut inspecting = Local::new(Arc::new(engine), memory).open(Context::default());
        let mut context = std::task::Context::from_waker(Waker::noop());
        let mut outs = Vec::new();
        let mut rest = content;
        let mut is_finished = false;
        loop {
            rest = &rest[inspecting.feed(rest)..];
            let progress = inspecting.poll(&mut context);
            outs.extend(std::iter::from_fn(|| inspecting.hear()));
            match progress {
                Poll::Ready(progress @ (Progress::Done | Progress::Lost(_))) => return (progress, outs),
                Poll::Ready(Progress::Hungry) if rest.is_empty() && !std::mem::replace(&mut is_finished, true) => {
                    inspecting.finish()
                }
                _ => {}
            }
        }
    }

    #[test]
    fn an_object_is_inspected_turn_by_turn() {
        let (progress, outs) = inspect(None, &[b'a'; 1 << 20]);
        assert_eq!(progress, Progress::Done);
        assert!(matches!(outs.last(), Some(Out::Verdict(verdict)) if verdict.bytes >= 1 << 20));
    }

    #[test]
    fn without_memory_there_is_no_verdict_and_all_of_it_comes_back() {
        let memory = Arc::new(Memory::new(1 << 10));
        let (progress, outs) = inspect(Some(memory.clone()), &[b'a'; 1 << 20]);
        assert_eq!(progress, Progress::Lost(Unfinished::Starved));
        assert!(!outs.iter().any(|out| matches!(out, Out::Verdict(_))));
        assert_eq!(memory.free_bytes(), 1 << 10);
    }

    /// What is said of content of which each turn is done in a thread of its own.
    fn inspect_by_turns(protocol: Protocol, content: &[u8], database: &Arc<Database>) -> Vec<Out> {
        let engine = Engine { database: database.clone(), limits: Limits::default() };
        let context = Context { flow: Flow { protocol, ..Flow::default() }, ..Context::default() };
        let mut inspecting = Local::new(Arc::new(engine), None).open(context);
        let mut outs = Vec::new();
        let mut poll = |inspecting: &mut Box<dyn Inspecting>| {
            let progress = std::thread::scope(|scope| {
                let turn = || inspecting.poll(&mut std::task::Context::from_waker(Waker::noop()));
                scope.spawn(turn).join().expect("a turn ends")
            });
            outs.extend(std::iter::from_fn(|| inspecting.hear()));
            progress
        };
        for mut piece in content.chunks(50_000) {
            while !piece.is_empty() {
                piece = &piece[inspecting.feed(piece)..];
                let _ = poll(&mut inspecting);
            }
        }
        inspecting.finish();
        while poll(&mut inspecting) != Poll::Ready(Progress::Done) {}
        outs
    }

    #[test]
    fn an_object_that_several_threads_poll_in_turn_is_hashed_as_in_one() {
        let content: Vec<u8> = (0..300_000_u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
        let md5: String = digest::md5::digest(&content).iter().map(|byte| format!("{byte:02x}")).collect();
        let mut builder = Builder::new();
        builder.add("whole.hdb", format!("{md5}:{}:Whole\n", content.len()).as_bytes()).expect("a line of a hash");
        let database = Arc::new(builder.build());
        for protocol in [Protocol::Smtp, Protocol::Clamd] {
            let outs = inspect_by_turns(protocol, &content, &database);
            let Some(Out::Verdict(verdict)) = outs.last() else { panic!("{protocol:?}: no verdict") };
            let names: Vec<&str> = verdict.findings.iter().map(|spotted| &*spotted.finding.name).collect();
            assert_eq!(names, ["Whole.UNOFFICIAL"], "{protocol:?}");
        }
    }
}
