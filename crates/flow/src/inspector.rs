//! The inspector, in this process or in another.

use alloc::boxed::Box;
use core::task::{Poll, Waker};

use crate::{Answer, Context, Out, Recalled, Verdict};

/// Opens inspections for doors.
pub trait Inspector: Send + Sync {
    /// Begins the inspection of one object.
    fn open(&self, context: Context) -> Box<dyn Inspecting>;

    /// Whether a match that was reported may be taken back at the end, because the signatures have an allow list.
    fn takes_back(&self) -> bool;
}

/// One inspection of one object.
///
/// # Calling order
/// [`feed`](Inspecting::feed) bytes and [`poll`](Inspecting::poll) until it is no longer [`Progress::Tired`], again and again; at the
/// end [`finish`](Inspecting::finish), and poll until [`Progress::Done`]. Whatever it asks meanwhile ([`Out::Ask`]) is
/// [answered](Inspecting::answer) once, in any order. Dropping it ends it.
pub trait Inspecting: Send {
    /// Takes a prefix of `bytes`, and returns how many: less than all where it has to be polled first.
    fn feed(&mut self, bytes: &[u8]) -> usize;

    /// The object is complete.
    fn finish(&mut self);

    /// Ends it before its content, as a finding of class `limit` with this name. What is fed from now on is counted only.
    fn stop(&mut self, name: &'static str);

    /// Takes the answer to something that it has asked; one to anything else is passed over.
    fn answer(&mut self, answer: Answer);

    /// Takes what was learned of the words that it has asked about ([`Out::Recall`]); none where nobody could say in time.
    fn recalled(&mut self, recalled: Option<Recalled>);

    /// Lets it work for a while, here; pending where it is somebody else who works, until there is something to hear. Whoever
    /// polls with [`NOBODY`] does not wait, and the other need not hurry.
    fn poll(&mut self, context: &mut core::task::Context<'_>) -> Poll<Progress>;

    /// The next thing that it reports.
    fn hear(&mut self) -> Option<Out>;
}

/// An inspection that searches for nothing: all that it is fed is cleared, and passes.
#[derive(Debug, Default)]
pub struct Unsearched {
    fed: u64,
    /// Bytes of which it has reported that they are cleared.
    told: u64,
    end: End,
}

/// How far the end of an object is.
#[derive(Debug, Default, PartialEq, Eq)]
enum End {
    #[default]
    Open,
    Due,
    Told,
}

impl Inspecting for Unsearched {
    fn feed(&mut self, bytes: &[u8]) -> usize {
        self.fed = self.fed.saturating_add(bytes.len() as u64);
        bytes.len()
    }

    fn finish(&mut self) {
        if self.end == End::Open {
            self.end = End::Due;
        }
    }

    fn stop(&mut self, _: &'static str) {}

    fn answer(&mut self, _: Answer) {}

    fn recalled(&mut self, _: Option<Recalled>) {}

    fn poll(&mut self, _: &mut core::task::Context<'_>) -> Poll<Progress> {
        Poll::Ready(if self.end == End::Open { Progress::Hungry } else { Progress::Done })
    }

    fn hear(&mut self) -> Option<Out> {
        if self.told < self.fed {
            self.told = self.fed;
            return Some(Out::Cleared(self.fed));
        }
        if self.end != End::Due {
            return None;
        }
        self.end = End::Told;
        Some(Out::Verdict(Verdict { bytes: self.fed, objects: 1, ..Verdict::default() }))
    }
}

/// Wakes nobody. [`Waker::noop`] can be another in each crate, as far as [`Waker::will_wake`] can tell: this is one.
pub static NOBODY: &Waker = Waker::noop();

/// How far an inspection came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Progress {
    /// More work is left: poll again, after others had their turn.
    Tired,
    /// All that was fed is inspected; it waits for more.
    Hungry,
    /// It has ended before its content: what is fed is counted only, and the verdict follows upon the end.
    Stopped,
    /// The object is complete, and the inspection needs an answer to its questions to continue.
    Waiting,
    /// The verdict has been given.
    Done,
    /// No verdict will come.
    Lost(Unfinished),
}

/// Why an inspection has no verdict. It may have one at another time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unfinished {
    /// It took longer than its door waits.
    Late,
    /// All inspections together hold too much, or this one does.
    Starved,
    /// The inspecting process is gone.
    Gone,
}

impl Unfinished {
    /// The reason, as a client is told.
    pub const fn words(self) -> &'static str {
        match self {
            Unfinished::Late => "The inspection took too long",
            Unfinished::Starved => "No memory for the inspection now",
            Unfinished::Gone => "The inspection was broken off",
        }
    }
}

#[cfg(test)]
mod tests {
    use core::task;

    use super::*;
    use crate::Action;

    #[test]
    fn an_object_in_which_nothing_is_searched_for_is_cleared_and_passes() {
        let mut inspecting = Unsearched::default();
        let poll = |inspecting: &mut Unsearched| {
            let progress = inspecting.poll(&mut task::Context::from_waker(NOBODY));
            (progress, core::iter::from_fn(|| inspecting.hear()).collect::<alloc::vec::Vec<_>>())
        };
        assert_eq!((inspecting.feed(b"abc"), inspecting.feed(b"de")), (3, 2));
        assert_eq!(poll(&mut inspecting), (Poll::Ready(Progress::Hungry), [Out::Cleared(5)].into()));
        assert_eq!(poll(&mut inspecting), (Poll::Ready(Progress::Hungry), [].into()));
        inspecting.finish();
        let verdict = Verdict { bytes: 5, objects: 1, ..Verdict::default() };
        assert_eq!(verdict.action, Action::Pass);
        assert_eq!(poll(&mut inspecting), (Poll::Ready(Progress::Done), [Out::Verdict(verdict)].into()));
        assert_eq!(poll(&mut inspecting), (Poll::Ready(Progress::Done), [].into()));
    }
}
