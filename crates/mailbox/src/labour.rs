//! Work that takes a processor: done a slice at a time, in turns with other accounts.
//!
//! Between two slices everybody else has a turn, and the client is looked at: work ends with its session. A command that has worked
//! for longer than [`Site::work_max`] is answered NO.

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use tokio::task::block_in_place;

use crate::site::Site;
use crate::turns::{Turn, Turns};
use crate::wire::{Stream, Wire};

/// How long work goes on before others have a turn.
const SLICE: Duration = Duration::from_millis(10);

/// Why work ends before it is done.
pub(crate) enum Cut {
    /// The session ends.
    Gone(io::Error),
    /// Its time is over.
    TooLong,
}

/// A part of work under way.
pub(crate) struct Slice {
    ends: Instant,
}

impl Slice {
    /// A part that begins now.
    pub fn begin() -> Slice {
        Slice { ends: Instant::now() + SLICE }
    }

    /// True when others are to have a turn.
    pub fn is_over(&self) -> bool {
        Instant::now() >= self.ends
    }
}

/// Does `work`, which returns true when it is done, slice by slice. It ends before with the session, or when its time is over.
pub(crate) async fn labour<S: Stream>(
    site: &Site,
    wire: &mut Wire<S>,
    account: u32,
    mut work: impl FnMut(&Slice) -> bool,
) -> Result<(), Cut> {
    let mut worked = Duration::ZERO;
    loop {
        let turn = turn(site, wire, &site.workers, account, worked.is_zero()).await.map_err(Cut::Gone)?;
        let began = Instant::now();
        let is_done = block_in_place(|| work(&Slice { ends: began + SLICE }));
        drop(turn);
        if is_done {
            return Ok(());
        }
        worked += began.elapsed();
        if worked >= site.work_max {
            site.numbers.ended.fetch_add(1, Relaxed);
            tracing::warn!(account, seconds = worked.as_secs(), "command ended: too much work");
            return Err(Cut::TooLong);
        }
    }
}

/// Waits for a turn of an account, while its client is there. With `is_first` a turn that is free is taken without a look at the
/// client, which may have closed its side after its last command.
pub(crate) async fn turn<S: Stream>(
    site: &Site,
    wire: &mut Wire<S>,
    turns: &Arc<Turns<u32>>,
    account: u32,
    is_first: bool,
) -> io::Result<Turn<u32>> {
    if is_first && let Some(turn) = turns.at_once(account) {
        return Ok(turn);
    }
    tokio::select! {
        biased;
        gone = wire.hung_up() => Err(gone),
        () = site.ended() => Err(io::Error::other("the server ends")),
        turn = turns.turn(account) => Ok(turn),
    }
}
