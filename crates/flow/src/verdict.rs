//! The verdict on one object, and what a door can still do about it.

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use stream::Finding;

use crate::{Action, Authenticity, PageScore, Policy, Score};

/// A finding, and in which object.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spotted {
    /// The finding.
    pub finding: Finding,
    /// The names of the objects that it is in, outermost first; objects without a name are not in it.
    pub path: Arc<[Box<str>]>,
    /// The object's number, as in [`ObjectReport::id`](crate::ObjectReport::id).
    pub object: u32,
}

/// The decision about one object.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Verdict {
    /// The heaviest action that the findings ask for.
    pub action: Action,
    /// The findings, oldest first; at most [`Verdict::FINDINGS_MAX`], or [`Verdict::ALL_FINDINGS_MAX`] where all are asked for; half of
    /// the room is for matches alone.
    pub findings: Vec<Spotted>,
    /// Findings beyond those.
    pub more_findings: u32,
    /// Whether each finding that asks to be blanked lies in a part that can be.
    pub blankable: bool,
    /// Objects seen, header fields not counted.
    pub objects: u32,
    /// Bytes of content read, of all objects together.
    pub bytes: u64,
    /// The score by the rules of spam, where they were asked.
    pub score: Option<Score>,
    /// Whether it is from whom it says, where that was asked.
    pub authenticity: Option<Box<Authenticity>>,
    /// The score as a web page, where one was asked for.
    pub page: Option<Box<PageScore>>,
}

impl Verdict {
    /// The most findings that a verdict lists.
    pub const FINDINGS_MAX: usize = 64;

    /// The most findings that a verdict lists where all are asked for.
    pub const ALL_FINDINGS_MAX: usize = 1_000;

    /// Whether the rules say that it is spam.
    pub fn is_spam(&self) -> bool {
        self.score.as_ref().is_some_and(Score::is_spam)
    }

    /// The finding that decided: the first of the heaviest action, under `policy`.
    pub fn reason(&self, policy: &Policy) -> Option<&Spotted> {
        self.findings.iter().find(|spotted| policy.action(&spotted.finding) == self.action)
    }
}

/// Actions that a door can still take when the verdict comes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Capabilities {
    /// Hand it on at all.
    pub pass: bool,
    /// Add a header field.
    pub tag: bool,
    /// The action in the place of a tag that comes too late: [`Action::Pass`] or [`Action::Reject`].
    pub late_tag: Action,
    /// Overwrite the parts that are marked.
    pub blank: bool,
    /// Overwrite the whole where what is dangerous lies in no part that could be.
    pub blank_whole: bool,
    /// Keep all of it aside.
    pub quarantine: bool,
}

/// A door's treatment of an object after the verdict.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Disposition {
    /// It goes on as it is.
    Pass,
    /// It goes on with a header field.
    Tag,
    /// It goes on with the marked parts overwritten, or all of it.
    Blank {
        /// All of it.
        whole: bool,
    },
    /// A copy is kept aside; it does not go on.
    Quarantine,
    /// It is refused.
    Reject,
}

impl Disposition {
    /// The treatment that a verdict asks for, as far as the door is able to. What it cannot do becomes a refusal; never less than
    /// was asked for, but for a tag.
    pub fn of(verdict: &Verdict, able: &Capabilities) -> Disposition {
        match verdict.action {
            Action::Quarantine if able.quarantine => Disposition::Quarantine,
            _ if !able.pass => Disposition::Reject,
            Action::Pass => Disposition::Pass,
            Action::Tag if able.tag => Disposition::Tag,
            Action::Tag if able.late_tag < Action::Tag => Disposition::Pass,
            Action::Blank if able.blank && verdict.blankable => Disposition::Blank { whole: false },
            Action::Blank if able.blank && able.blank_whole => Disposition::Blank { whole: true },
            Action::Tag | Action::Blank | Action::Quarantine | Action::Reject => Disposition::Reject,
        }
    }

    /// The action that this is.
    pub const fn action(self) -> Action {
        match self {
            Disposition::Pass => Action::Pass,
            Disposition::Tag => Action::Tag,
            Disposition::Blank { .. } => Action::Blank,
            Disposition::Quarantine => Action::Quarantine,
            Disposition::Reject => Action::Reject,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: Capabilities = Capabilities {
        pass: true,
        tag: true,
        late_tag: Action::Reject,
        blank: true,
        blank_whole: true,
        quarantine: true,
    };

    fn of(action: Action, able: &Capabilities) -> Disposition {
        Disposition::of(&Verdict { action, blankable: true, ..Verdict::default() }, able)
    }

    #[test]
    fn a_door_that_is_able_does_what_is_asked_for() {
        for action in [Action::Pass, Action::Tag, Action::Blank, Action::Quarantine, Action::Reject] {
            assert_eq!(of(action, &ALL).action(), action);
        }
    }

    #[test]
    fn what_cannot_be_done_is_a_refusal() {
        let unable = Capabilities {
            pass: true,
            tag: false,
            late_tag: Action::Reject,
            blank: false,
            blank_whole: true,
            quarantine: false,
        };
        assert_eq!(of(Action::Pass, &unable), Disposition::Pass);
        for action in [Action::Tag, Action::Blank, Action::Quarantine, Action::Reject] {
            assert_eq!(of(action, &unable), Disposition::Reject);
        }
        assert_eq!(of(Action::Tag, &Capabilities { late_tag: Action::Pass, ..unable }), Disposition::Pass);
        let gone = Capabilities { pass: false, ..ALL };
        assert_eq!(of(Action::Pass, &gone), Disposition::Reject);
        assert_eq!(of(Action::Quarantine, &gone), Disposition::Quarantine);
    }

    #[test]
    fn what_lies_in_no_part_is_overwritten_as_a_whole_or_refused() {
        let verdict = Verdict { action: Action::Blank, blankable: false, ..Verdict::default() };
        assert_eq!(Disposition::of(&verdict, &ALL), Disposition::Blank { whole: true });
        let parts_only = Capabilities { blank_whole: false, ..ALL };
        assert_eq!(Disposition::of(&verdict, &parts_only), Disposition::Reject);
    }
}
