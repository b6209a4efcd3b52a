//! Mails scored by the rules of spam, at their end: in the thread that inspects, or in one of a few that do nothing else.
//!
//! A check takes milliseconds, or tens of them, and cannot be suspended. A jail does it in its one thread: the mails of other
//! sessions that it inspects wait meanwhile, and no event loop does. Without jails inspections run in the event loops, so
//! checks go to threads of their own.
//!
//! Bounds: a thread for each core at the most, and one mail at a time in each; what waits is bounded by the sessions.

use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::Waker;
use std::thread;

use flow::{Action, Score, Verdict};
use inspect::{Kept, Scorer, Scratch};

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

/// A mail whose score is waited for.
pub(crate) struct Pending(Arc<Mutex<Slot>>);

#[derive(Default)]
struct Slot {
    /// Set when it is known: a mail may have none.
    done: Option<Option<Score>>,
    waker: Option<Waker>,
}

struct Job {
    kept: Kept,
    slot: Arc<Mutex<Slot>>,
}

/// What came of asking.
pub(crate) enum Asked {
    /// It is known.
    Known(Option<Score>),
    /// It comes.
    Pending(Pending),
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

    /// Asks for the score of a mail.
    pub fn ask(&self, kept: Kept) -> Asked {
        let Some(jobs) = &self.jobs else { return Asked::Known(score(&self.scorer, &kept)) };
        let slot = Arc::<Mutex<Slot>>::default();
        match jobs.send(Job { kept, slot: slot.clone() }) {
            Ok(()) => Asked::Pending(Pending(slot)),
            Err(_) => Asked::Known(None),
        }
    }
}

impl Pending {
    /// The score, once it is known; until then the waker is woken when it is.
    pub fn poll(&self, waker: &Waker) -> Option<Option<Score>> {
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
        let Ok(Job { kept, slot }) = job else { return };
        // A mistake of ours costs one mail its score.
        let scored = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| score(scorer, &kept)));
        let mut slot = slot.lock().unwrap_or_else(PoisonError::into_inner);
        slot.done = Some(scored.unwrap_or_default());
        slot.waker.take().into_iter().for_each(Waker::wake);
    }
}

fn score(scorer: &Scorer, kept: &Kept) -> Option<Score> {
    let began = clock::nanoseconds();
    let score = SCRATCH.with(|scratch| match scratch.try_borrow_mut() {
        Ok(mut scratch) => kept.score(scorer, clock::seconds(), &mut scratch),
        Err(_) => kept.score(scorer, clock::seconds(), &mut Scratch::default()),
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
