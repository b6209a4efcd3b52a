//! Inspections in this process, in the thread that polls them.

use std::sync::Arc;
use std::task::Poll;

use flow::{Context, In, Inspecting, Inspector, Out, Progress, Unfinished};
use inspect::{Engine, Inspection};
use stream::Fuel;

use crate::clock;
use crate::company::{self, Company};
use crate::memory::{Loan, Memory};

/// Work done on one object before others have their turn.
const TURN_FUEL: u64 = 256 << 10;

/// The inspector of this process.
#[derive(Clone)]
pub struct Local {
    engine: Arc<Engine>,
    memory: Option<Arc<Memory>>,
}

impl Local {
    /// Inspects with these signatures and bounds. What inspections hold is borrowed from `memory`, if that is given.
    pub fn new(engine: Arc<Engine>, memory: Option<Arc<Memory>>) -> Local {
        Local { engine, memory }
    }
}

impl Inspector for Local {
    fn open(&self, context: Context) -> Box<dyn Inspecting> {
        let mut loan = self.memory.clone().map(Loan::new);
        let is_timed = context.wants.objects;
        let company = Company::of(context.flow.protocol);
        let begin = || {
            let inspection = Inspection::new(self.engine.clone(), context).with_clocks(clock::CLOCKS);
            if is_timed { inspection.with_clock(clock::nanoseconds) } else { inspection }
        };
        let inspection = work(&mut loan, begin);
        Box::new(Running { inspection, loan, company })
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
}

impl Inspecting for Running {
    fn feed(&mut self, bytes: &[u8]) -> usize {
        self.inspection.tell(In::Feed(bytes))
    }

    fn finish(&mut self) {
        self.inspection.tell(In::Finish);
    }

    fn stop(&mut self, name: &'static str) {
        work(&mut self.loan, || self.inspection.stop(name));
    }

    fn poll(&mut self, _: &mut std::task::Context<'_>) -> Poll<Progress> {
        let progress = self.turn();
        if self.is_starved() {
            work(&mut self.loan, || self.inspection.abandon());
            return Poll::Ready(Progress::Lost(Unfinished::Starved));
        }
        match progress {
            inspect::Progress::Tired => Poll::Ready(Progress::Tired),
            inspect::Progress::Hungry if self.inspection.is_stopped() => Poll::Ready(Progress::Stopped),
            inspect::Progress::Hungry => Poll::Ready(Progress::Hungry),
            inspect::Progress::Done => Poll::Ready(Progress::Done),
        }
    }

    fn hear(&mut self) -> Option<Out> {
        self.inspection.hear()
    }
}

impl Running {
    fn turn(&mut self) -> inspect::Progress {
        let Running { inspection, loan, company } = self;
        let fuel = &mut Fuel::new(TURN_FUEL);
        match company.batch() {
            None => work(loan, || inspection.work(fuel)),
            Some(batch) => company::turn(batch, |batch| work(loan, || inspection.work_beside(batch, fuel))),
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
