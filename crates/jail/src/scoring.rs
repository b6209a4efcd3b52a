//! Mails scored by the rules of spam, at their end: in the thread that inspects, or in one of a few that do nothing else.
//!
//! A check takes milliseconds, or tens of them, and cannot be suspended. A jail does it in its one thread: the mails of other
//! sessions that it inspects wait meanwhile, and no event loop does. Without jails inspections run in the event loops, so
//! checks go to threads of their own. Where rules ask the network, a mail is read twice: for what they ask, and for the score;
//! nobody does anything for it while answers are waited for.
//!
//! Bounds: a thread for each core at the most, and one mail at a time in each; what waits is bounded by the sessions.

use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::Waker;
use std::thread;

use flow::{Action, Score, Verdict};
use inspect::{Authenticated, Kept, Planned, Scorer, Scratch};

use crate::clock;

thread_local! {
    /// The memory that this thread's searches work in.
    static SCRATCH: std::cell::RefCell<Scratch> = std::cell::RefCell::default();
}

/// The threads.
const THREADS_MAX: usize = 16;

/// Who scores, and where.
#[derive(Clone)]
pub(crate) struct Desk {
    scorer: Arc<Scorer>,
    /// None: here.
    jobs: Option<Sender<Job>>,
}

/// Something that is waited for.
pub(crate) struct Pending<T>(Arc<Mutex<Slot<T>>>);

struct Slot<T> {
    /// Set when it is known; none within where the work has died.
    done: Option<Option<T>>,
    waker: Option<Waker>,
}

type Job = Box<dyn FnOnce(&Scorer) + Send>;

/// What came of asking.
pub(crate) enum Asked<T> {
    /// It is known; none where the work has died.
    Known(Option<T>),
    /// It comes.
    Pending(Pending<T>),
}

impl Desk {
    /// Scores in the thread that asks.
    pub fn here(scorer: Arc<Scorer>) -> Desk {
        Desk { scorer, jobs: None }
    }

    /// Scores in threads of its own, which end with the last who may ask.
    ///
    /// # Errors
    /// When no thread can be started.
    pub fn apart(scorer: Arc<Scorer>) -> std::io::Result<Desk> {
        let (sender, receiver) = mpsc::channel();
        let receiver = Arc::new(Mutex::new(receiver));
        let threads = thread::available_parallelism().map_or(1, usize::from).min(THREADS_MAX);
        for index in 0..threads {
            let (scorer, jobs) = (scorer.clone(), receiver.clone());
            thread::Builder::new().name(format!("spam-{index}")).spawn(move || serve(&scorer, &jobs))?;
        }
        Ok(Desk { scorer, jobs: Some(sender) })
    }

    /// Who scores.
    pub fn scorer(&self) -> &Scorer {
        &self.scorer
    }

    /// Asks what the rules want to know about a mail. The mail comes back with that.
    pub fn plan(&self, kept: Kept, found: Option<Authenticated>) -> Asked<(Kept, Planned)> {
        self.run(move |scorer| {
            let planned = kept.inquire(scorer, clock::seconds(), found.as_ref());
            (kept, planned)
        })
    }

    /// Asks for the score of a mail: it may have none.
    pub fn score(&self, kept: Kept, planned: Planned) -> Asked<Option<Score>> {
        self.run(move |scorer| score(scorer, &kept, &planned))
    }

    fn run<T: Send + 'static>(&self, work: impl FnOnce(&Scorer) -> T + Send + 'static) -> Asked<T> {
        let Some(jobs) = &self.jobs else { return Asked::Known(Some(work(&self.scorer))) };
        let slot = Arc::new(Mutex::new(Slot { done: None, waker: None }));
        let own = slot.clone();
        let job = move |scorer: &Scorer| {
            // A mistake of ours costs one mail its score.
            let done = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| work(scorer))).ok();
            let mut slot = own.lock().unwrap_or_else(PoisonError::into_inner);
            slot.done = Some(done);
            slot.waker.take().into_iter().for_each(Waker::wake);
        };
        match jobs.send(Box::new(job)) {
            Ok(()) => Asked::Pending(Pending(slot)),
            Err(_) => Asked::Known(None),
        }
    }
}

impl<T> Pending<T> {
    /// What it came to, once it is known; until then the waker is woken when it is.
    pub fn poll(&self, waker: &Waker) -> Option<Option<T>> {
        let mut slot = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if slot.done.is_none() {
            slot.waker = Some(waker.clone());
        }
        slot.done.take()
    }
}

fn serve(scorer: &Scorer, jobs: &Mutex<Receiver<Job>>) {
    loop {
        let job = jobs.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok(job) = job else { return };
        job(scorer);
    }
}

fn score(scorer: &Scorer, kept: &Kept, planned: &Planned) -> Option<Score> {
    let began = clock::nanoseconds();
    let score = SCRATCH.with(|scratch| match scratch.try_borrow_mut() {
        Ok(mut scratch) => kept.score(scorer, clock::seconds(), planned, &mut scratch),
        Err(_) => kept.score(scorer, clock::seconds(), planned, &mut Scratch::default()),
    });
    score.map(|score| Score { micros: clock::nanoseconds().saturating_sub(began) / 1_000, ..score })
}

/// Puts a score into a verdict, with what it asks for.
pub(crate) fn settle(verdict: &mut Verdict, asks: Action, score: Option<Score>) {
    if score.is_some() {
        verdict.action = verdict.action.max(asks);
    }
    verdict.score = score;
}
