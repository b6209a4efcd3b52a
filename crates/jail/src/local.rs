//! Inspections in this process, in the thread that polls them.

use std::sync::Arc;
use std::task::Poll;

use flow::{Answer, Context, Inspecting, Inspector, Out, Progress, Recalled, Unfinished};
use inspect::{Done, Engine, Examination, Examiner, IntrusionRules, PageRules, Scorer, State};
use stream::Fuel;

use crate::clock;
use crate::company::{self, Company};
use crate::memory::{Loan, Memory};
use crate::scoring::{Begun, Desk, Pending};

/// Work done on one object before others have their turn.
const TURN_FUEL: u64 = 256 << 10;

/// The inspector of this process.
#[derive(Clone)]
pub struct Local {
    engine: Arc<Engine>,
    memory: Option<Arc<Memory>>,
    desk: Option<Desk>,
    pages: Option<Arc<PageRules>>,
    intrusion: Option<IntrusionRules>,
}

impl Local {
    /// Inspects with these signatures and bounds. What inspections hold is borrowed from `memory`, if that is given.
    pub fn new(engine: Arc<Engine>, memory: Option<Arc<Memory>>) -> Local {
        Local { engine, memory, desk: None, pages: None, intrusion: None }
    }

    /// Scores web pages by these phrases, if the context asks for that.
    #[must_use]
    pub fn with_pages(self, pages: Option<Arc<PageRules>>) -> Local {
        Local { pages, ..self }
    }

    /// Matches these intrusion rules, if the context asks for that.
    #[must_use]
    pub fn with_intrusion(self, intrusion: Option<IntrusionRules>) -> Local {
        Local { intrusion, ..self }
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
    fn open(&self, context: Context) -> Box<dyn Inspecting> {
        let client = context.flow.client;
        let mut loan = self.memory.clone().map(|memory| Loan::new(memory).of(client));
        let is_timed = context.wants.objects;
        let company = Company::of(context.flow.protocol);
        let scorer = self.desk.as_ref().map(|desk| desk.scorer().clone());
        let examiner = Examiner {
            engine: self.engine.clone(),
            scorer,
            pages: self.pages.clone(),
            intrusion: self.intrusion.clone(),
        };
        let examination = work(&mut loan, || {
            let examination = Examination::new(&examiner, context, clock::seconds(), clock::CLOCKS);
            if is_timed { examination.with_clock(clock::nanoseconds) } else { examination }
        });
        Box::new(Running { examination, loan, company, desk: self.desk.clone(), pending: None })
    }

    fn takes_back(&self) -> bool {
        self.engine.database.takes_back()
    }
}

/// An examination, and the memory that it has borrowed.
struct Running {
    examination: Examination,
    loan: Option<Loan>,
    company: Company,
    /// Where its jobs are run.
    desk: Option<Desk>,
    /// The job that goes on elsewhere.
    pending: Option<Pending>,
}

impl Inspecting for Running {
    fn feed(&mut self, bytes: &[u8]) -> usize {
        work(&mut self.loan, || self.examination.feed(bytes))
    }

    fn finish(&mut self) {
        work(&mut self.loan, || self.examination.finish());
    }

    fn stop(&mut self, name: &'static str) {
        work(&mut self.loan, || self.examination.stop(name));
    }

    fn answer(&mut self, answer: Answer) {
        work(&mut self.loan, || self.examination.answer(answer));
    }

    fn recalled(&mut self, recalled: Option<Recalled>) {
        work(&mut self.loan, || self.examination.recalled(recalled));
    }

    fn poll(&mut self, context: &mut std::task::Context<'_>) -> Poll<Progress> {
        let was_inspecting = self.examination.is_inspecting();
        let mut state = match &self.pending {
            None => self.turn(),
            Some(pending) => {
                let Some(done) = pending.poll(context.waker()) else { return Poll::Pending };
                self.pending = None;
                self.done(done)
            }
        };
        if was_inspecting && self.is_starved() {
            work(&mut self.loan, || self.examination.abandon());
            return Poll::Ready(Progress::Lost(Unfinished::Starved));
        }
        while let State::Working(job) = state {
            let begun = self.desk.as_ref().map_or(Begun::Done(None), |desk| desk.run(job));
            state = match begun {
                Begun::Done(done) => self.done(done),
                Begun::Pending(pending) => {
                    let done = pending.poll(context.waker());
                    let Some(done) = done else {
                        self.pending = Some(pending);
                        return Poll::Pending;
                    };
                    self.done(done)
                }
            };
        }
        Poll::Ready(match state {
            State::Hungry => Progress::Hungry,
            State::Stopped => Progress::Stopped,
            State::Tired => Progress::Tired,
            State::Waiting | State::Working(_) => Progress::Waiting,
            State::Done => Progress::Done,
        })
    }

    fn hear(&mut self) -> Option<Out> {
        self.examination.hear()
    }
}

impl Running {
    fn turn(&mut self) -> State {
        let Running { examination, loan, company, .. } = self;
        let fuel = &mut Fuel::new(TURN_FUEL);
        match company.batch().filter(|_| examination.is_inspecting()) {
            None => work(loan, || examination.work(None, fuel)),
            Some(batch) => company::turn(batch, |batch| {
                work(loan, || company::apart(batch, |batch| examination.work(Some(batch), fuel)))
            }),
        }
    }

    fn done(&mut self, done: Option<Done>) -> State {
        work(&mut self.loan, || self.examination.done(done))
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

    #[test]
    fn what_waits_to_be_hashed_is_the_thread_s_and_goes_when_it_is_tidied() {
        const MEMORY_BYTES: usize = 16 << 20;
        let content: Vec<u8> = (0..300_000_u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
        let md5: String = digest::md5::digest(&content).iter().map(|byte| format!("{byte:02x}")).collect();
        let mut builder = Builder::new();
        builder.add("whole.hdb", format!("{md5}:{}:Whole\n", content.len()).as_bytes()).expect("a line of a hash");
        let engine = Engine { database: Arc::new(builder.build()), limits: Limits::default() };
        let memory = Arc::new(Memory::new(MEMORY_BYTES));
        let context = Context { flow: Flow { protocol: Protocol::Smtp, ..Flow::default() }, ..Context::default() };
        let mut inspecting = Local::new(Arc::new(engine), Some(memory.clone())).open(context);
        let poll =
            |inspecting: &mut Box<dyn Inspecting>| inspecting.poll(&mut std::task::Context::from_waker(Waker::noop()));
        let mut rest = &content[..];
        while !rest.is_empty() {
            rest = &rest[inspecting.feed(rest)..];
            let _ = poll(&mut inspecting);
        }
        let held = MEMORY_BYTES - memory.free_bytes();
        assert!(company::room_bytes() > 200_000, "it waits");
        assert!((1_000..100_000).contains(&held), "{held} bytes are the inspection's");
        (0..3).for_each(|_| company::tidy());
        assert_eq!(company::room_bytes(), 0);
        assert_eq!(MEMORY_BYTES - memory.free_bytes(), held);
        inspecting.finish();
        while poll(&mut inspecting) != Poll::Ready(Progress::Done) {}
        let Some(Out::Verdict(verdict)) = std::iter::from_fn(|| inspecting.hear()).last() else { panic!("no verdict") };
        assert_eq!(verdict.findings.len(), 1, "its digest is the same");
        drop(inspecting);
        assert_eq!(memory.free_bytes(), MEMORY_BYTES);
    }

    /// Reports about content of which each turn is done in a thread of its own.
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
