//! The score of a mail by the rules of spam: the question of a door, and the answer.

use alloc::boxed::Box;
use alloc::string::{String, ToString as _};
use alloc::vec::Vec;
use core::fmt;

use serde::{Deserialize, Serialize};

use crate::{Action, Conduct, Key, Lesson, Study};

/// A score, in thousandths of a point: exact, so that verdicts can be compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
pub struct Points(pub i32);

/// The terms on which a mail is scored.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Scoring {
    /// Mails of more bytes have no score.
    pub bytes_max: u64,
    /// From which score on it is spam; without it the rules say so.
    pub required: Option<Points>,
    /// From which score on it is kept aside.
    pub quarantine: Option<Points>,
    /// From which score on it is refused.
    pub reject: Option<Points>,
    /// Whether each rule that hit is told in a field of its own (`X-Spam-Report`).
    pub report: bool,
    /// Whether the report is wanted as a text.
    pub text: bool,
    /// Whether the hosts and mail addresses are wanted that the mail has links to.
    pub links: bool,
    /// Whether a lesson is made of the mail.
    pub study: Study,
    /// The recipient's own preferences.
    pub preferences: Option<Box<Preferences>>,
    /// Fields that the rules see in front of the mail: those that whoever delivers it will have put there.
    pub trace: Box<[u8]>,
}

/// A user's preferences, which go before the site's: lines of SpamAssassin's, as they stand in a file.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Preferences {
    /// The name of the file in complaints.
    pub name: Box<str>,
    /// Its content.
    pub text: Box<[u8]>,
}

/// The score of a mail.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Score {
    /// The sum of what hit.
    pub points: Points,
    /// From which score on it is spam.
    pub required: Points,
    /// The rules that hit, with what each has added; at most [`Score::HITS_MAX`].
    pub hits: Vec<Hit>,
    /// Header fields for the mail, in order; at most [`Score::FIELDS_MAX`].
    pub fields: Vec<Mark>,
    /// The report, where it is wanted.
    pub text: Box<str>,
    /// Links of the mail, where they are wanted.
    pub links: Option<Box<Links>>,
    /// Where in the mail the text of its subject begins; none where it has none.
    pub subject: Option<u64>,
    /// Words that decided what was learned says of it.
    pub decided: Vec<Key>,
    /// The lesson of the mail, where one is wanted.
    pub lesson: Option<Box<Lesson>>,
    /// How it counts for who has sent it, where a reputation is kept.
    pub conduct: Option<Box<Conduct>>,
    /// Errors in the user's preferences, by file and line; at most [`Score::COMPLAINTS_MAX`].
    pub complaints: Vec<Box<str>>,
    /// Microseconds that it took.
    pub micros: u64,
}

/// Links of a mail, each once, in order; at most [`Score::LINKS_MAX`] of each kind.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Links {
    /// Hosts of addresses that are not of mail.
    pub hosts: Vec<Box<str>>,
    /// Addresses of mail.
    pub addresses: Vec<Box<str>>,
}

/// A rule that hit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hit {
    /// Its name.
    pub rule: Box<str>,
    /// The points that it has added.
    pub points: Points,
}

/// A header field `X-Spam-NAME`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mark {
    /// The name behind `X-Spam-`.
    pub name: Box<str>,
    /// Its value; lines end in LF alone, and all but the first begin with a blank.
    pub value: Box<str>,
}

impl Points {
    /// The nearest thousandth; what is too large becomes the largest there is.
    pub fn of(points: f64) -> Points {
        let half = if points < 0.0 { -0.5 } else { 0.5 };
        // The conversion ends at the bounds of the type.
        Points((points * 1000.0 + half) as i32)
    }

    /// As a number.
    pub fn value(self) -> f64 {
        f64::from(self.0) / 1000.0
    }
}

impl fmt::Display for Points {
    /// With one decimal, or as many as a precision asks for.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.*}", f.precision().unwrap_or(1), self.value())
    }
}

impl Scoring {
    /// The action for a score.
    pub fn action(&self, points: Points) -> Action {
        let reaches = |bound: Option<Points>| bound.is_some_and(|bound| points >= bound);
        match () {
            () if reaches(self.reject) => Action::Reject,
            () if reaches(self.quarantine) => Action::Quarantine,
            () => Action::Pass,
        }
    }
}

impl Score {
    /// The most rules that are named.
    pub const HITS_MAX: usize = 1_000;
    /// The most fields.
    pub const FIELDS_MAX: usize = 100;
    /// The most links of a kind.
    pub const LINKS_MAX: usize = 500;
    /// The most complaints.
    pub const COMPLAINTS_MAX: usize = 5;

    /// Whether the mail is spam.
    pub fn is_spam(&self) -> bool {
        self.points >= self.required
    }

    /// The score with one decimal, and never on the wrong side of what is required.
    pub fn shown(&self) -> String {
        let tenths = |points: Points| (points.value() * 10.0 + if points.0 < 0 { -0.5 } else { 0.5 }) as i32;
        match !self.is_spam() && tenths(self.points) >= tenths(self.required) {
            true => Points(self.required.0.saturating_sub(100)).to_string(),
            false => self.points.to_string(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn points_are_rounded_and_shown() {
        assert_eq!([1.2345, -0.0004, -1.2345, 1e12].map(|points| Points::of(points).0), [1235, 0, -1235, i32::MAX]);
        assert_eq!((Points(4_999).to_string(), std::format!("{:.2}", Points(-90))), ("5.0".into(), "-0.09".into()));
    }

    #[test]
    fn what_is_shown_is_on_the_side_that_it_is_on() {
        let shown =
            |points, required| Score { points: Points(points), required: Points(required), ..Score::default() }.shown();
        assert_eq!(shown(4_960, 5_000), "4.9");
        assert_eq!([shown(5_000, 5_000), shown(4_940, 5_000), shown(-1_250, 5_000)], ["5.0", "4.9", "-1.2"]);
    }

    #[test]
    fn the_heaviest_bound_that_is_reached_counts() {
        let scoring = Scoring { quarantine: Some(Points(8_000)), reject: Some(Points(15_000)), ..Scoring::default() };
        let asked = [7_999, 8_000, 14_999, 15_000].map(|points| scoring.action(Points(points)));
        assert_eq!(asked, [Action::Pass, Action::Quarantine, Action::Quarantine, Action::Reject]);
        assert_eq!(Scoring::default().action(Points(i32::MAX)), Action::Pass);
    }
}
