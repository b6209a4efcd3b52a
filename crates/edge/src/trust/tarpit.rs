//! Replies that come later the more errors a client makes. A session that waits holds a timer and no more; how many may wait
//! at a time has a bound, beyond which nobody waits.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::time::Duration;

use crate::settings::TarpitSettings;

/// How many sessions wait.
#[derive(Debug, Default)]
pub struct Tarpit {
    waiting: AtomicU32,
}

/// One that waits, until it is dropped.
#[derive(Debug)]
pub struct Waiting(Arc<Tarpit>);

/// How long the answer to an error waits that is the `errors`th of its session.
pub fn delay(settings: &TarpitSettings, errors: u32) -> Duration {
    let beyond = errors.saturating_sub(settings.errors);
    let ms = u64::from(beyond).saturating_mul(settings.step_ms);
    Duration::from_millis(ms.min(settings.ms_max))
}

impl Tarpit {
    /// One more waits, if so many do not already.
    pub fn wait(self: &Arc<Tarpit>, most: u32) -> Option<Waiting> {
        let enter = |waiting| (waiting < most).then_some(waiting + 1);
        self.waiting.fetch_update(Relaxed, Relaxed, enter).ok()?;
        Some(Waiting(self.clone()))
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.0.waiting.fetch_sub(1, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_delay_grows_with_the_errors_up_to_its_bound() {
        let settings = TarpitSettings { errors: 5, step_ms: 500, ms_max: 1_200, sessions_max: 1 };
        let delays: Vec<u128> = (4..10).map(|errors| delay(&settings, errors).as_millis()).collect();
        assert_eq!(delays, [0, 0, 500, 1_000, 1_200, 1_200]);
        assert_eq!(delay(&TarpitSettings { step_ms: u64::MAX, ..settings }, u32::MAX).as_millis(), 1_200);
    }

    #[test]
    fn no_more_wait_than_may() {
        let tarpit: Arc<Tarpit> = Arc::default();
        let waiting = tarpit.wait(1).expect("there is room");
        assert!(tarpit.wait(1).is_none());
        drop(waiting);
        assert!(tarpit.wait(1).is_some());
    }
}
