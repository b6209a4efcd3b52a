//! Telling the service manager that we are alive (sd_notify(3)).
//!
//! We are alive while every event loop makes progress: it comes round (each beats once a second), or an inspection in it takes
//! turns. A thread of its own passes that on (`WATCHDOG_USEC`).
//!
//! A restart costs all sessions, so one slow mail must not lead to it: a loop that stands is logged after [`STILL`], with what it is
//! doing, and only after [`DEAD`] without any progress the service manager hears nothing any more.

use std::sync::Arc;
use std::time::{Duration, Instant};

use edge::beat::{BEAT_EVERY, Beat};

use crate::process::supervise::lead::lead;
use crate::process::supervise::manager::Manager;

/// How long an event loop may stand before that is logged, and before it counts as dead.
const STILL: Duration = Duration::from_secs(5);
const DEAD: Duration = Duration::from_secs(180);

/// Passes on that all of `beats` go on, as often as the service manager asks for, and logs which do not.
pub fn watch(beats: Vec<Arc<Beat>>) {
    let asked = std::env::var("WATCHDOG_USEC").ok().and_then(|text| text.parse().ok()).map(Duration::from_micros);
    // With a supervisor it is the one that is watched.
    let watched = match lead() {
        Some(_) => rustix::process::getppid().map(|pid| pid.as_raw_nonzero().to_string()),
        None => Some(std::process::id().to_string()),
    };
    let ours = watched.is_some() && std::env::var("WATCHDOG_PID").ok() == watched;
    let within = asked.filter(|within| !within.is_zero() && ours);
    let watch = move || {
        let (manager, mut watch) = (Manager::find(), Watch::new(beats.len(), Instant::now()));
        let every = within.map_or(STILL / 2, |within| (within / 4).clamp(BEAT_EVERY / 2, STILL / 2));
        loop {
            std::thread::sleep(every);
            let progress: Vec<u64> = beats.iter().map(|beat| beat.progress()).collect();
            let seen = watch.look(&progress, Instant::now());
            for (index, since) in seen.still {
                let doing = if beats[index].is_inspecting() { "a turn of an inspection" } else { "its tasks" };
                tracing::warn!(edge = index, doing, seconds = since.as_secs(), "event loop stalled");
            }
            if seen.alive && within.is_some() {
                manager.tell("WATCHDOG=1");
            }
        }
    };
    let _ = std::thread::Builder::new().name("watchdog".into()).spawn(watch);
}

/// Progress of each event loop, the time of its last change, and whether a stall was logged.
struct Watch(Vec<(u64, Instant, bool)>);

/// Observation of the watchdog.
#[derive(Debug, PartialEq, Eq)]
struct Seen {
    /// All of them made progress of late.
    alive: bool,
    /// Loops that stall, each reported once, and for how long.
    still: Vec<(usize, Duration)>,
}

impl Watch {
    fn new(loops: usize, now: Instant) -> Watch {
        Watch(vec![(0, now, false); loops])
    }

    fn look(&mut self, progress: &[u64], now: Instant) -> Seen {
        let mut seen = Seen { alive: true, still: Vec::new() };
        for (index, (known, &progress)) in self.0.iter_mut().zip(progress).enumerate() {
            if known.0 != progress {
                *known = (progress, now, false);
                continue;
            }
            let stood = now.saturating_duration_since(known.1);
            seen.alive &= stood < DEAD;
            if stood >= STILL && !std::mem::replace(&mut known.2, true) {
                seen.still.push((index, stood));
            }
        }
        seen
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_loop_that_stands_is_told_long_before_it_counts_as_dead() {
        let start = Instant::now();
        let mut watch = Watch::new(2, start);
        let mut at = |seconds, progress: [u64; 2]| watch.look(&progress, start + Duration::from_secs(seconds));
        let fine = Seen { alive: true, still: Vec::new() };
        assert_eq!(at(1, [1, 1]), fine);
        assert_eq!(at(4, [2, 1]), fine);
        assert_eq!(at(7, [3, 1]), Seen { alive: true, still: vec![(1, Duration::from_secs(6))] });
        assert_eq!(at(100, [4, 1]), fine, "told once, and one slow turn is no death");
        assert!(!at(1 + DEAD.as_secs(), [5, 1]).alive);
        assert_eq!(at(2 + DEAD.as_secs(), [5, 2]), fine, "it goes on");
    }
}
