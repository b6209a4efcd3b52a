//! That event loops go on: each beats, and a turn of an inspection in it counts as progress.
//!
//! Whoever watches over them, and tells a service manager, stands outside.

use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// How often an event loop says that it is alive.
pub const BEAT_EVERY: Duration = Duration::from_secs(1);

/// The progress of one event loop.
#[derive(Debug, Default)]
pub struct Beat {
    /// Number of rounds of the loop, and of turns of inspections in it.
    progress: AtomicU64,
    /// Whether it is in such a turn.
    inspecting: AtomicBool,
}

thread_local! {
    /// That of the event loop which runs in this thread.
    static BEAT: RefCell<Option<Arc<Beat>>> = const { RefCell::new(None) };
}

impl Beat {
    /// How far the event loop has come; a number that only grows.
    pub fn progress(&self) -> u64 {
        self.progress.load(Relaxed)
    }

    /// Whether it is in a turn of an inspection.
    pub fn is_inspecting(&self) -> bool {
        self.inspecting.load(Relaxed)
    }

    /// Goes on as long as the event loop does, in whose thread it is called.
    pub async fn go_on(self: Arc<Beat>) {
        BEAT.set(Some(self.clone()));
        loop {
            self.progress.fetch_add(1, Relaxed);
            tokio::time::sleep(BEAT_EVERY).await;
        }
    }
}

/// Does a turn of an inspection, which counts as progress of the event loop in whose thread it is done.
pub fn turn<T>(work: impl FnOnce() -> T) -> T {
    let mark = |inspecting| {
        BEAT.with_borrow(|beat| {
            if let Some(beat) = beat {
                beat.inspecting.store(inspecting, Relaxed);
                beat.progress.fetch_add(1, Relaxed);
            }
        });
    };
    mark(true);
    let done = work();
    mark(false);
    done
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_turn_is_progress_of_the_loop_that_it_is_done_in() {
        let beat: Arc<Beat> = Arc::default();
        BEAT.set(Some(beat.clone()));
        turn(|| assert!(beat.inspecting.load(Relaxed)));
        assert!(!beat.inspecting.load(Relaxed) && beat.progress.load(Relaxed) > 0);
    }
}
