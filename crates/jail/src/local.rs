//! Inspections in this process, in the thread that polls them.

use std::collections::VecDeque;
use std::sync::Arc;
use std::task::Poll;

use flow::{Action, Answer, Context, In, Inspecting, Inspector, Out, Progress, Recalled, Unfinished, Verdict};
use inspect::{Authenticated, Authentication, Engine, Inspection, Kept, Planned, Scorer};
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
        let kept = self.desk.clone().zip(scoring).map(|(desk, scoring)| (Kept::new(scoring), desk));
        let authenticating = context.authenticating.take();
        let authentication = authenticating.map(|terms| Authentication::new(terms, &context.flow, clock::seconds()));
        let mut loan = self.memory.clone().map(Loan::new);
        let is_timed = context.wants.objects;
        let company = Company::of(context.flow.protocol);
        let begin = || {
            let inspection = Inspection::new(self.engine.clone(), context).with_clocks(clock::CLOCKS);
            if is_timed { inspection.with_clock(clock::nanoseconds) } else { inspection }
        };
        let inspection = work(&mut loan, begin);
        let (found, asks, outs) = (None, VecDeque::new(), VecDeque::new());
        let stage = Stage::Inspecting;
        Box::new(Running { inspection, loan, company, authentication, kept, found, stage, asks, outs })
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
    /// The mail, where it is to be authenticated.
    authentication: Option<Authentication>,
    /// The mail, where it is to be scored.
    kept: Option<(Kept, Desk)>,
    /// What is known of who has sent it, for the rules.
    found: Option<Authenticated>,
    stage: Stage,
    /// What is to be looked up.
    asks: VecDeque<Out>,
    /// What was reported up to the verdict, while that waits for the rest.
    outs: VecDeque<Out>,
}

/// How far it is.
enum Stage {
    /// The content comes.
    Inspecting,
    /// There is a verdict; who sends the mail is asked for.
    Authenticating,
    /// Somebody looks what the rules ask.
    Planning(Pending<(Kept, Planned)>, Desk),
    /// What they ask is looked up.
    Inquiring(Box<(Kept, Planned)>, Desk),
    /// Somebody is at the score; what is asked for depends on it.
    Scoring(Pending<Option<flow::Score>>, flow::Scoring),
    /// All is known.
    Over,
}

impl Inspecting for Running {
    fn feed(&mut self, bytes: &[u8]) -> usize {
        let Running { inspection, loan, authentication, kept, .. } = self;
        if authentication.is_none() && kept.is_none() {
            return inspection.tell(In::Feed(bytes));
        }
        work(loan, || {
            let taken = inspection.tell(In::Feed(bytes));
            authentication.iter_mut().for_each(|mail| mail.take(&bytes[..taken]));
            kept.iter_mut().for_each(|(kept, _)| kept.take(&bytes[..taken]));
            taken
        })
    }

    fn finish(&mut self) {
        self.inspection.tell(In::Finish);
        work(&mut self.loan, || self.authentication.iter_mut().for_each(Authentication::finish));
    }

    fn stop(&mut self, name: &'static str) {
        work(&mut self.loan, || self.inspection.stop(name));
    }

    fn answer(&mut self, answer: Answer) {
        let Running { loan, authentication, stage, .. } = self;
        work(loan, || match stage {
            Stage::Inquiring(mail, desk) => {
                mail.1.inquest.iter_mut().for_each(|inquest| desk.scorer().answer(inquest, answer.clone()));
            }
            _ => authentication.iter_mut().for_each(|mail| mail.answer(answer.clone())),
        });
    }

    fn recalled(&mut self, recalled: Option<Recalled>) {
        let Running { loan, stage, .. } = self;
        let Stage::Inquiring(mail, _) = stage else { return };
        work(loan, || mail.1.recalling.iter_mut().for_each(|recalling| recalling.answer(recalled.clone())));
    }

    fn poll(&mut self, context: &mut std::task::Context<'_>) -> Poll<Progress> {
        match self.stage {
            Stage::Inspecting => self.inspect(context),
            Stage::Authenticating => self.authenticate(context),
            Stage::Planning(..) => self.plan(context),
            Stage::Inquiring(..) => self.look_up(context),
            Stage::Scoring(..) => self.wait(context),
            Stage::Over => Poll::Ready(Progress::Done),
        }
    }

    fn hear(&mut self) -> Option<Out> {
        if let Some(ask) = self.asks.pop_front() {
            return Some(ask);
        }
        match self.stage {
            Stage::Inspecting | Stage::Over => self.outs.pop_front().or_else(|| self.inspection.hear()),
            // The verdict is held back until all of it is known.
            Stage::Authenticating | Stage::Planning(..) | Stage::Inquiring(..) | Stage::Scoring(..) => None,
        }
    }
}

impl Running {
    fn inspect(&mut self, context: &mut std::task::Context<'_>) -> Poll<Progress> {
        let progress = self.turn();
        self.inquire();
        if self.is_starved() {
            work(&mut self.loan, || self.inspection.abandon());
            return Poll::Ready(Progress::Lost(Unfinished::Starved));
        }
        match progress {
            inspect::Progress::Tired => Poll::Ready(Progress::Tired),
            inspect::Progress::Hungry if self.inspection.is_stopped() => Poll::Ready(Progress::Stopped),
            inspect::Progress::Hungry => Poll::Ready(Progress::Hungry),
            inspect::Progress::Done => {
                self.outs.extend(std::iter::from_fn(|| self.inspection.hear()));
                self.authenticate(context)
            }
        }
    }

    fn turn(&mut self) -> inspect::Progress {
        let Running { inspection, loan, company, .. } = self;
        let fuel = &mut Fuel::new(TURN_FUEL);
        match company.batch() {
            None => work(loan, || inspection.work(fuel)),
            Some(batch) => company::turn(batch, |batch| work(loan, || inspection.work_beside(batch, fuel))),
        }
    }

    /// Hands out what is to be looked up now.
    fn inquire(&mut self) {
        let Running { loan, authentication, asks, .. } = self;
        let Some(mail) = authentication else { return };
        asks.extend(work(loan, || std::iter::from_fn(|| mail.ask()).map(Out::Ask).collect::<Vec<_>>()));
    }

    /// The inspection has its verdict: now who sends the mail, where that is wanted. What is refused anyway needs none.
    fn authenticate(&mut self, context: &mut std::task::Context<'_>) -> Poll<Progress> {
        if self.is_refused() {
            self.authentication = None;
        }
        if let Some(mail) = &mut self.authentication {
            let Some(found) = work(&mut self.loan, || mail.outcome()) else {
                self.stage = Stage::Authenticating;
                self.inquire();
                return Poll::Ready(Progress::Waiting);
            };
            self.found = work(&mut self.loan, || mail.found());
            self.authentication = None;
            let found = Box::new(found);
            for verdict in self.verdict() {
                verdict.action = verdict.action.max(found.action);
                verdict.authenticity = Some(found.clone());
            }
        }
        self.score(context)
    }

    /// Now the score, where one is wanted.
    fn score(&mut self, context: &mut std::task::Context<'_>) -> Poll<Progress> {
        self.stage = Stage::Over;
        let is_unwanted = self.is_refused() || self.inspection.is_stopped();
        let Some((kept, desk)) = self.kept.take().filter(|_| !is_unwanted) else {
            return Poll::Ready(Progress::Done);
        };
        if !desk.scorer().asks() {
            return self.check(kept, Planned::default(), &desk, context);
        }
        match desk.plan(kept, self.found.take()) {
            Asked::Known(planned) => self.begin(planned, desk, context),
            Asked::Pending(pending) => {
                self.stage = Stage::Planning(pending, desk);
                self.plan(context)
            }
        }
    }

    /// Whether it is known what the rules ask.
    fn plan(&mut self, context: &mut std::task::Context<'_>) -> Poll<Progress> {
        let Stage::Planning(pending, desk) = &self.stage else { return Poll::Ready(Progress::Done) };
        let Some(planned) = pending.poll(context.waker()) else { return Poll::Pending };
        let desk = desk.clone();
        self.begin(planned, desk, context)
    }

    /// Begins to ask; a mail about which nothing can be asked is scored.
    fn begin(
        &mut self,
        planned: Option<(Kept, Planned)>,
        desk: Desk,
        context: &mut std::task::Context<'_>,
    ) -> Poll<Progress> {
        self.stage = Stage::Over;
        match planned {
            None => Poll::Ready(Progress::Done),
            Some(mail) => {
                self.stage = Stage::Inquiring(Box::new(mail), desk);
                self.look_up(context)
            }
        }
    }

    /// Hands out what is to be looked up, until all is known.
    fn look_up(&mut self, context: &mut std::task::Context<'_>) -> Poll<Progress> {
        let Stage::Inquiring(mail, desk) = &mut self.stage else { return Poll::Ready(Progress::Done) };
        let asks = mail.1.inquest.iter_mut().flat_map(|inquest| std::iter::from_fn(move || inquest.ask()));
        self.asks.extend(asks.map(Out::Ask));
        self.asks.extend(mail.1.recall(desk.scorer()).map(Out::Recall));
        if !mail.1.is_settled() {
            return Poll::Ready(Progress::Waiting);
        }
        match std::mem::replace(&mut self.stage, Stage::Over) {
            Stage::Inquiring(mail, desk) => self.check(mail.0, mail.1, &desk, context),
            _ => Poll::Ready(Progress::Done),
        }
    }

    /// Asks the rules.
    fn check(
        &mut self,
        kept: Kept,
        planned: Planned,
        desk: &Desk,
        context: &mut std::task::Context<'_>,
    ) -> Poll<Progress> {
        let scoring = kept.scoring().clone();
        match desk.score(kept, planned) {
            Asked::Known(score) => self.settle(&scoring, score.flatten()),
            Asked::Pending(pending) => {
                self.stage = Stage::Scoring(pending, scoring);
                return self.wait(context);
            }
        }
        Poll::Ready(Progress::Done)
    }

    fn wait(&mut self, context: &mut std::task::Context<'_>) -> Poll<Progress> {
        let Stage::Scoring(pending, scoring) = &self.stage else { return Poll::Ready(Progress::Done) };
        let Some(score) = pending.poll(context.waker()) else { return Poll::Pending };
        let scoring = scoring.clone();
        self.stage = Stage::Over;
        self.settle(&scoring, score.flatten());
        Poll::Ready(Progress::Done)
    }

    fn settle(&mut self, scoring: &flow::Scoring, score: Option<flow::Score>) {
        let asks = score.as_ref().map_or(Action::Pass, |score| scoring.action(score.points));
        self.verdict().for_each(|verdict| scoring::settle(verdict, asks, score.clone()));
    }

    /// The verdict that is held back.
    fn verdict(&mut self) -> impl Iterator<Item = &mut Verdict> {
        self.outs.iter_mut().filter_map(|out| match out {
            Out::Verdict(verdict) => Some(verdict),
            _ => None,
        })
    }

    fn is_refused(&mut self) -> bool {
        self.verdict().any(|verdict| verdict.action == Action::Reject)
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
