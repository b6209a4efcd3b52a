//! Reputation of senders: number and sum of the scores of their mails; SpamAssassin's TxRep.
//!
//! A sender has several names (an address, with and without its origin, a domain, a host), each with a [`Standing`].
//! [`pull`] is the weighted correction of a mail's score towards its sender's history: for each name the distance
//! between the score and the mean that includes the mail.
//!
//! ```text
//! pull = factor * sum(weight * ((total + score) / (count + 1) - score)) / sum(weight)
//! ```
//!
//! If the mail is spam and worse than a spamming sender, or ham and better than a good one, the score is not moved back
//! but further, by `total / (count + 1)`, as in SpamAssassin 4.0.1; its manual has another formula.

/// Record of one name of a sender.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Standing {
    /// Mails.
    pub count: u32,
    /// Sum of their scores and of lessons.
    pub total: f64,
}

impl Standing {
    /// The mean score; none where nothing is known.
    pub fn mean(&self) -> Option<f64> {
        (self.count > 0).then(|| self.total / f64::from(self.count))
    }

    /// How far the mean is from a score, once that is part of it.
    pub fn distance(&self, score: f64) -> f64 {
        let mails = f64::from(self.count) + 1.0;
        let distance = (self.total + score) / mails - score;
        let is_back =
            (self.total > 0.0 && score > 0.0 && distance < 0.0) || (self.total < 0.0 && score < 0.0 && distance > 0.0);
        if is_back { self.total / mails } else { distance }
    }

    /// Adds a mail with this score; earlier mails lose weight.
    #[must_use]
    pub fn with(self, score: f64, dilution: f64) -> Standing {
        let count = f64::from(self.count);
        let total = match self.count {
            0 => self.total + score,
            _ => (count + 1.0) * (score + dilution * self.total) / (dilution * count + 1.0),
        };
        Standing { count: self.count.saturating_add(1), total }
    }

    /// Applies a lesson about a mail (`points` above 0 for spam): it counts as the sender's mean and the points.
    #[must_use]
    pub fn taught(self, points: f64, dilution: f64) -> Standing {
        let mean = self.mean().unwrap_or(0.0).abs();
        self.with(points + mean.copysign(points), dilution)
    }

    /// A mail that has added so much is taken back.
    #[must_use]
    pub fn without(self, added: f64) -> Standing {
        match self.count {
            0 | 1 => Standing::default(),
            count => Standing { count: count - 1, total: self.total - added },
        }
    }
}

/// How far a mail of that score is moved, by each name of its sender and the weight of it.
pub fn pull(score: f64, factor: f64, names: impl IntoIterator<Item = (f64, Standing)>) -> f64 {
    let (mut sum, mut weights) = (0.0, 0.0);
    for (weight, standing) in names {
        sum += weight * standing.distance(score);
        weights += weight;
    }
    if weights > 0.0 { factor * sum / weights } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAIN: f64 = 1.0;

    fn rated(scores: &[f64], dilution: f64) -> Standing {
        scores.iter().fold(Standing::default(), |standing, score| standing.with(*score, dilution))
    }

    #[test]
    fn a_mail_is_moved_towards_the_mean_and_not_back_from_worse_or_better() {
        let known = rated(&[4.0, 6.0], PLAIN);
        assert_eq!((known, known.mean()), (Standing { count: 2, total: 10.0 }, Some(5.0)));
        assert_eq!(known.distance(-1.0), 4.0);
        assert_eq!(known.distance(2.0), 2.0);
        assert_eq!(known.distance(11.0), 10.0 / 3.0, "it is worse than its sender");
        let good = rated(&[-3.0, -3.0], PLAIN);
        assert_eq!((good.distance(6.0), good.distance(-6.0)), (-6.0, -2.0));
        assert_eq!(Standing::default().distance(7.0), 0.0);
    }

    #[test]
    fn names_count_by_their_weights_and_unknown_ones_too() {
        let known = Standing { count: 1, total: 10.0 };
        assert_eq!(pull(0.0, 0.5, [(10.0, known), (10.0, Standing::default())]), 1.25);
        assert_eq!(pull(0.0, 0.0, [(10.0, known)]), 0.0);
        assert_eq!(pull(0.0, 0.5, []), 0.0);
    }

    #[test]
    fn what_came_before_counts_less_with_each_mail() {
        assert_eq!(rated(&[10.0, 0.0], PLAIN).mean(), Some(5.0));
        let diluted = rated(&[10.0, 0.0], 0.9).mean().unwrap();
        assert!((diluted - 9.0 / 1.9).abs() < 1e-12, "{diluted}");
        // The last of many goodwill mails outweighs the first.
        let turned = |dilution| rated(&[[-5.0; 20], [5.0; 20]].concat(), dilution).mean().unwrap();
        assert!(turned(PLAIN).abs() < 1e-12 && turned(0.9) > 0.3, "{}", turned(0.9));
    }

    #[test]
    fn what_was_taught_moves_the_mean_and_can_be_taken_back() {
        let known = rated(&[2.0, 2.0], PLAIN);
        assert_eq!(known.taught(20.0, PLAIN), Standing { count: 3, total: 26.0 });
        assert_eq!(known.taught(-20.0, PLAIN), Standing { count: 3, total: -18.0 });
        assert_eq!(known.taught(20.0, PLAIN).without(22.0), known);
        assert_eq!(rated(&[2.0], PLAIN).without(9.0), Standing::default());
    }
}
