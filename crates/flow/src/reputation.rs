//! The reputation of senders, as an inspection asks for it, and how a mail changes it.
//!
//! Names of senders are digests: whoever keeps them cannot tell whose they are. Bounds: [`NAMES_MAX`] names of a sender, and
//! recipients as many as the inspection says.

use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

/// The digest of a name.
pub type Name = [u8; 16];

/// Names of a sender at the most, with that of the mail.
pub const NAMES_MAX: usize = 6;

/// The standing of a name.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Standing {
    /// Mails.
    pub count: u32,
    /// The sum of their scores, in millionths of a point.
    pub micros: i64,
}

/// A mail, as it counts for who has sent it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Conduct {
    /// The mail's own name, where mails are remembered: then each counts once.
    pub mail: Option<Name>,
    /// The names of its sender.
    pub sender: Vec<Name>,
    /// Its recipients, where it is one of the site's own mails.
    pub recipients: Vec<Name>,
    /// Its score before the reputation, in millionths.
    pub micros: i64,
    /// Its score after the reputation, in millionths.
    pub moved_micros: i64,
    /// The worth of being written to, in millionths.
    pub welcome_micros: i64,
    /// The worth of a report as spam; below 0, as ham. In millionths.
    pub spam_micros: i64,
    /// See [`Conduct::spam_micros`].
    pub ham_micros: i64,
    /// The share of earlier points that a mail leaves, in thousandths.
    pub dilution: u16,
}

impl Standing {
    /// As numbers with a fraction.
    pub fn new(count: u32, points: f64) -> Standing {
        Standing { count, micros: micros(points) }
    }

    /// The sum of the scores.
    pub fn points(&self) -> f64 {
        points(self.micros)
    }
}

/// Points in millionths; what is too large becomes the largest there is.
pub fn micros(points: f64) -> i64 {
    let half = if points < 0.0 { -0.5 } else { 0.5 };
    (points * 1e6 + half) as i64
}

/// Millionths as points.
pub fn points(micros: i64) -> f64 {
    micros as f64 / 1e6
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire;

    #[test]
    fn points_come_back_and_conduct_has_a_byte_form() {
        assert_eq!([1.25, -0.000_000_6, 0.0].map(micros), [1_250_000, -1, 0]);
        assert_eq!(Standing::new(3, -2.5).points(), -2.5);
        assert_eq!(micros(f64::MAX), i64::MAX);
        let conduct = Conduct { mail: Some([7; 16]), sender: [[1; 16]].into(), dilution: 980, ..Conduct::default() };
        assert_eq!(wire::read::<Conduct>(&wire::write(&conduct, Vec::new())), Ok(conduct));
    }
}
