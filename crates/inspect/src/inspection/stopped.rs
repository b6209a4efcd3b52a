//! An inspection that ends before its content: what it still says, and what is still fed.

use flow::{Action, In, Out, Spotted};
use stream::{Class, Finding};

use super::{Inspection, Progress};

/// Remains of an inspection that ended before its content.
#[derive(Clone, Copy)]
pub(super) struct Stopped {
    /// Bytes fed, looked at or not.
    pub fed: u64,
    pub closing: bool,
}

impl Inspection {
    /// Ends it before its content: a finding of class `limit` with this name is reported of the object that is fed, and all
    /// that it holds is let go of. What is fed from now on is counted and not looked at.
    pub fn stop(&mut self, name: &'static str) {
        let Some(root) = self.nodes.first_mut().and_then(Option::take).filter(|_| !self.done) else { return };
        let finding = Finding::new(Class::Limit, name, root.bytes);
        let action = self.context.policy.action(&finding);
        // What has not been looked at is no part that could be overwritten: it is the whole.
        self.ledger.unblankable |= action == Action::Blank;
        let spotted = Spotted { finding, path: root.path.clone(), object: root.id };
        if self.ledger.note(&spotted, &self.context.policy) {
            self.out.push_back(Out::Finding(spotted));
        }
        self.ledger.bytes += root.bytes;
        self.report(&root);
        self.stopped = Some(Stopped { fed: root.bytes, closing: root.closing });
        self.let_go();
    }

    /// Whether it has ended before its content: the verdict follows upon [`In::Finish`], whatever is still fed.
    pub fn is_stopped(&self) -> bool {
        self.stopped.is_some()
    }

    /// Says what is said of content that is not looked at any more.
    pub(super) fn wind_up(&mut self) -> Progress {
        let Some(Stopped { fed, closing }) = self.stopped.filter(|_| !self.done) else { return Progress::Done };
        if closing {
            self.conclude(fed);
            return Progress::Done;
        }
        if fed > self.cleared {
            self.cleared = fed;
            self.out.push_back(Out::Cleared(fed));
        }
        Progress::Hungry
    }
}

impl Stopped {
    pub(super) fn tell(&mut self, message: In<'_>) -> usize {
        match message {
            In::Feed(bytes) => {
                self.fed += bytes.len() as u64;
                bytes.len()
            }
            In::Finish => {
                self.closing = true;
                0
            }
        }
    }
}
