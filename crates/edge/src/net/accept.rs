//! Accepting: one way for all listeners to go on after an error.
//!
//! An error of accept(2) is one of the client that has gone already, or of this machine, which has no descriptors left, most likely.
//! Neither is a reason to stop, nor to try again at once: sessions that end will free some.

use std::fmt::Display;
use std::io;
use std::time::Duration;

use tokio::time::sleep;

/// The first wait after an error; each further one is twice as long, up to [`WAIT_MAX`].
const WAIT_MIN: Duration = Duration::from_millis(5);

const WAIT_MAX: Duration = Duration::from_secs(1);

/// Waits for the next client, whatever happens until it comes. `listener` is the name of the listener in the log.
pub async fn accepted<T, F: Future<Output = io::Result<T>>>(listener: impl Display, accept: impl Fn() -> F) -> T {
    let mut wait = WAIT_MIN;
    loop {
        match accept().await {
            Ok(client) => return client,
            Err(error) => {
                // The first of a row alone: a machine without descriptors fails each time.
                if wait == WAIT_MIN {
                    tracing::warn!(%listener, %error, "cannot accept");
                }
                sleep(wait).await;
                wait = (wait * 2).min(WAIT_MAX);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn errors_are_waited_out_longer_and_longer() {
        let tries = Cell::new(0);
        let began = tokio::time::Instant::now();
        let accept = || {
            tries.set(tries.get() + 1);
            std::future::ready(if tries.get() <= 12 { Err(io::Error::from_raw_os_error(24)) } else { Ok(tries.get()) })
        };
        assert_eq!(accepted("x", accept).await, 13);
        // 5, 10, ... 640 ms, and four times a second.
        assert_eq!(began.elapsed().as_millis(), 1_275 + 4_000);
    }
}
