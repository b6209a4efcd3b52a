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

use inspect::{Done, Job, Scorer, Scratch};

use crate::clock;

thread_local! {
    /// The memory that this thread's searches work in.
    static SCRATCH: std::cell::RefCell<Scratch> = std::cell::RefCell::default();
}

/// The threads.
const THREADS_MAX: usize = 16;

/// The scorer, and its thread.
#[derive(Clone)]
pub(crate) struct Desk {
    scorer: Arc<Scorer>,
    /// None: here.
    orders: Option<Sender<Order>>,
}

/// A job in another thread.
pub(crate) struct Pending(Arc<Mutex<Slot>>);

struct Slot {
    /// Set when it is done; none within where it has died.
    done: Option<Option<Done>>,
    waker: Option<Waker>,
}

/// A job, and where its result is awaited.
type Order = (Box<Job>, Arc<Mutex<Slot>>);

/// A job that was begun.
pub(crate) enum Begun {
    /// It is done; none where it has died.
    Done(Option<Done>),
    /// It goes on elsewhere.
    Pending(Pending),
}

impl Desk {
    /// Scores in the thread that asks.
    pub fn here(scorer: Arc<Scorer>) -> Desk {
        Desk { scorer, orders: None }
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
            let (scorer, orders) = (scorer.clone(), receiver.clone());
            thread::Builder::new().name(format!("spam-{index}")).spawn(move || serve(&scorer, &orders))?;
        }
        Ok(Desk { scorer, orders: Some(sender) })
    }

    /// The rules.
    pub const fn scorer(&self) -> &Arc<Scorer> {
        &self.scorer
    }

    /// Runs a job here, or begins it elsewhere.
    pub fn run(&self, job: Box<Job>) -> Begun {
        let Some(orders) = &self.orders else { return Begun::Done(Some(run(&self.scorer, job))) };
        let slot = Arc::new(Mutex::new(Slot { done: None, waker: None }));
        match orders.send((job, slot.clone())) {
            Ok(()) => Begun::Pending(Pending(slot)),
            Err(_) => Begun::Done(None),
        }
    }
}

impl Pending {
    /// The result, once there is one; until then the waker is woken when there is.
    pub fn poll(&self, waker: &Waker) -> Option<Option<Done>> {
        let mut slot = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if slot.done.is_none() {
            slot.waker = Some(waker.clone());
        }
        slot.done.take()
    }
}

fn serve(scorer: &Scorer, orders: &Mutex<Receiver<Order>>) {
    loop {
        let order = orders.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok((job, slot)) = order else { return };
        // A mistake of ours costs one mail its score.
        let done = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| run(scorer, job))).ok();
        let mut slot = slot.lock().unwrap_or_else(PoisonError::into_inner);
        slot.done = Some(done);
        slot.waker.take().into_iter().for_each(Waker::wake);
    }
}

fn run(scorer: &Scorer, job: Box<Job>) -> Done {
    let run = |scratch: &mut Scratch| job.run(scorer, clock::seconds(), clock::nanoseconds, scratch);
    SCRATCH.with(|scratch| match scratch.try_borrow_mut() {
        Ok(mut scratch) => run(&mut scratch),
        Err(_) => run(&mut Scratch::default()),
    })
}
