//! The inspector, in this process or in another.

use alloc::boxed::Box;
use core::task::{Poll, Waker};

use crate::{Answer, Context, Out, Recalled};

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
