//! Threads for what may have to wait for an inspection: those that answer the kernel wait for nothing.
//!
//! A thread is started when there is work and none is idle, and ends when it had nothing to do for a while. Bounds: so many
//! threads and so many that wait for one; whatever comes beyond is told so at once, and fails.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// How long a thread stays without work.
const IDLE: Duration = Duration::from_secs(10);

/// Fate of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Turn {
    /// The job runs now, in the calling thread.
    Now,
    /// The queue of jobs is full.
    Refused,
}

type Job = Box<dyn FnOnce(Turn) + Send>;

/// The threads, and what waits for them.
pub struct Pool {
    threads_max: usize,
    waiting_max: usize,
    state: Mutex<State>,
    comes: Condvar,
}

#[derive(Default)]
struct State {
    waiting: VecDeque<Job>,
    threads: usize,
    /// Threads that work.
    working: usize,
}

impl Pool {
    /// None yet.
    pub fn new(threads_max: usize, waiting_max: usize) -> Arc<Pool> {
        Arc::new(Pool { threads_max: threads_max.max(1), waiting_max, state: Mutex::default(), comes: Condvar::new() })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Has a thread do it, when one has the time; or refuses it, in this one.
    pub fn run(self: &Arc<Pool>, job: impl FnOnce(Turn) + Send + 'static) {
        let mut state = self.state();
        let coming = state.threads - state.working;
        if state.threads >= self.threads_max && state.waiting.len() >= coming + self.waiting_max {
            drop(state);
            tracing::error!("access refused: too many files wait for an inspection");
            return job(Turn::Refused);
        }
        state.waiting.push_back(Box::new(job));
        if state.waiting.len() <= coming {
            self.comes.notify_one();
        } else if state.threads < self.threads_max {
            state.threads += 1;
            drop(state);
            self.start();
        }
    }

    fn start(self: &Arc<Pool>) {
        let pool = self.clone();
        let started = std::thread::Builder::new().name("sluice: waits".into()).spawn(move || {
            let here = Here(&pool);
            while let Some(job) = here.0.next() {
                job(Turn::Now);
                here.0.state().working -= 1;
            }
        });
        if let Err(error) = started {
            let mut state = self.state();
            state.threads -= 1;
            // Whoever is at work does it later.
            let job = if state.threads == 0 { state.waiting.pop_back() } else { None };
            drop(state);
            tracing::error!(%error, "a thread cannot be started");
            job.into_iter().for_each(|job| job(Turn::Refused));
        }
    }

    fn next(&self) -> Option<Job> {
        let mut state = self.state();
        loop {
            if let Some(job) = state.waiting.pop_front() {
                state.working += 1;
                return Some(job);
            }
            let (woken, waited) = self.comes.wait_timeout(state, IDLE).unwrap_or_else(PoisonError::into_inner);
            state = woken;
            if waited.timed_out() && state.waiting.is_empty() {
                return None;
            }
        }
    }
}

/// A thread, until it ends in whichever way.
struct Here<'a>(&'a Arc<Pool>);

impl Drop for Here<'_> {
    fn drop(&mut self) {
        let mut state = self.0.state();
        state.threads -= 1;
        let is_over = std::thread::panicking();
        state.working -= usize::from(is_over);
        if is_over && !state.waiting.is_empty() {
            state.threads += 1;
            drop(state);
            self.0.start();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    #[test]
    fn so_many_are_done_at_a_time_so_many_wait_and_the_rest_is_refused() {
        let pool = Pool::new(2, 3);
        let (tell, told) = mpsc::channel();
        let (go, gate) = mpsc::channel::<()>();
        let gate = Arc::new(Mutex::new(gate));
        for number in 0..7 {
            let (tell, gate) = (tell.clone(), gate.clone());
            pool.run(move |turn| {
                if turn == Turn::Now {
                    let _ = gate.lock().expect("nobody panics").recv();
                }
                tell.send((number, turn)).expect("it is heard");
            });
        }
        let refused: Vec<_> = (0..2).map(|_| told.recv().expect("told")).collect();
        assert_eq!(refused, [(5, Turn::Refused), (6, Turn::Refused)]);
        drop(go);
        let mut done: Vec<_> = (0..5).map(|_| told.recv().expect("told")).collect();
        done.sort_unstable_by_key(|done| done.0);
        assert!(done.iter().enumerate().all(|(n, done)| *done == (n, Turn::Now)), "{done:?}");
        assert!(pool.state().threads <= 2);
    }

    #[test]
    fn a_job_that_panics_takes_nothing_with_it() {
        let pool = Pool::new(1, 8);
        let (tell, told) = mpsc::channel();
        for number in 0..4 {
            let tell = tell.clone();
            pool.run(move |_| {
                assert!(number % 2 == 1, "as it has to");
                tell.send(number).expect("it is heard");
            });
        }
        assert_eq!((told.recv(), told.recv()), (Ok(1), Ok(3)));
    }
}
