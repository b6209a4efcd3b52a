//! Greylisting (RFC 6647): a mail with a doubtful score, from somebody unknown, has to come again.
//!
//! What is known is kept by marks, digests that tell nobody whose they are: one for the client's prefix, the sender's domain and
//! a recipient, which has to wait; and one for a prefix and for a domain that SPF has passed, which vouch once they have
//! delivered. Not greylisted are clients that have logged in or are on this machine, and those that a list of good ones has
//! (`RCVD_IN_DNSWL_LOW` and better). Where nobody can say in time, a mail goes on.
//!
//! Bounds: 100 recipients of a mail have marks.

use std::net::IpAddr;

use flow::{Score, Verdict};
use proto::smtp::Reply;
use sha2::{Digest as _, Sha256};

use super::memory::{Greeting, Mark};
use crate::settings::{Network, Spam};

/// Recipients that are looked at.
const RECIPIENTS_MAX: usize = 100;

/// The bits of an address that are one client.
const IPV4_BITS: u8 = 24;
const IPV6_BITS: u8 = 64;

/// Rules that say that a list of good clients has this one.
const WELCOMED: [&str; 3] = ["RCVD_IN_DNSWL_LOW", "RCVD_IN_DNSWL_MED", "RCVD_IN_DNSWL_HI"];

/// From whom and for whom a mail is.
#[derive(Debug, Clone, Copy)]
pub struct Transaction<'m> {
    /// Client address.
    pub client: IpAddr,
    /// The sender of the envelope; empty for the null sender.
    pub sender: &'m str,
    /// The recipients.
    pub recipients: &'m [&'m str],
}

/// Greylisting question about a mail; none where none is needed.
pub fn greeting(spam: &Spam, verdict: &Verdict, transaction: &Transaction<'_>) -> Option<Greeting> {
    let (grey, score) = spam.greylist.as_ref().zip(verdict.score.as_ref())?;
    let is_welcome = score.hits.iter().any(|hit| WELCOMED.contains(&&*hit.rule));
    if score.points < grey.points || is_welcome || transaction.is_own() {
        return None;
    }
    let recipients = transaction.recipients.iter().take(RECIPIENTS_MAX);
    let triplet =
        |recipient: &&str| mark(&["to", &transaction.prefix(), &transaction.domain(), &recipient.to_ascii_lowercase()]);
    Some(Greeting {
        triplets: recipients.map(triplet).collect(),
        vouchers: transaction.vouchers(score),
        delay: grey.delay,
    })
}

/// Reply to a mail that is greylisted.
pub fn greylisted() -> Reply {
    Reply::new(451, (4, 7, 1), "Greylisted, try again in a few minutes")
}

/// Marks that vouch from now on, since a mail was delivered.
pub fn vouchers(spam: &Spam, verdict: &Verdict, transaction: &Transaction<'_>) -> Vec<Mark> {
    let score = verdict.score.as_ref().filter(|score| !score.is_spam() && verdict.findings.is_empty());
    match (&spam.greylist, score) {
        (Some(grey), Some(score)) if score.points < grey.points && !transaction.is_own() => transaction.vouchers(score),
        _ => Vec::new(),
    }
}

impl Transaction<'_> {
    /// A client on this machine is the site's.
    fn is_own(&self) -> bool {
        self.client.to_canonical().is_loopback()
    }

    fn prefix(&self) -> String {
        let address = self.client.to_canonical();
        let bits = if address.is_ipv4() { IPV4_BITS } else { IPV6_BITS };
        Network::around(address, bits).to_string()
    }

    fn domain(&self) -> String {
        self.sender.rsplit_once('@').map_or("", |(_, domain)| domain).to_ascii_lowercase()
    }

    fn vouchers(&self, score: &Score) -> Vec<Mark> {
        let domain = self.domain();
        let is_authentic = !domain.is_empty() && score.hits.iter().any(|hit| &*hit.rule == "SPF_PASS");
        let of_client = mark(&["client", &self.prefix()]);
        let of_domain = is_authentic.then(|| mark(&["domain", &domain]));
        std::iter::once(of_client).chain(of_domain).collect()
    }
}

fn mark(words: &[&str]) -> Mark {
    let digest = Sha256::digest(words.join("\0"));
    let mut mark = Mark::default();
    mark.iter_mut().zip(digest).for_each(|(mark, byte)| *mark = byte);
    mark
}

#[cfg(test)]
mod tests {
    use flow::{Hit, Points};

    use super::*;
    use crate::settings::SpamSettings;

    fn verdict(points: i32, hits: &[&str]) -> Verdict {
        let hit = |rule: &&str| Hit { rule: (*rule).into(), points: Points(1) };
        let hits = hits.iter().map(hit).collect();
        let score = Score { points: Points(points), required: Points(5_000), hits, ..Score::default() };
        Verdict { score: Some(score), ..Verdict::default() }
    }

    fn asked(client: &str, sender: &str, verdict: &Verdict) -> Option<Greeting> {
        let spam = toml::from_str::<SpamSettings>("greylist = 3").unwrap().under([None, None]).unwrap();
        let transaction =
            Transaction { client: client.parse().unwrap(), sender, recipients: &["A@b.example", "c@b.example"] };
        greeting(&spam, verdict, &transaction)
    }

    #[test]
    fn a_doubtful_mail_has_a_mark_for_each_recipient() {
        let found = asked("192.0.2.7", "x@Y.example", &verdict(3_000, &[])).unwrap();
        assert_eq!((found.triplets.len(), found.vouchers.len()), (2, 1));
        let other = asked("192.0.2.200", "z@y.example", &verdict(9_000, &[])).unwrap();
        assert_eq!(other.triplets, found.triplets, "another host of the prefix, another sender of the domain");
        assert_ne!(asked("192.0.3.7", "x@y.example", &verdict(3_000, &[])).unwrap().triplets, found.triplets);
        assert_ne!(asked("192.0.2.7", "", &verdict(3_000, &[])).unwrap().triplets, found.triplets);
        let passed = asked("192.0.2.7", "x@y.example", &verdict(3_000, &["SPF_PASS"])).unwrap();
        assert_eq!(passed.vouchers.len(), 2);
    }

    #[test]
    fn who_is_below_the_score_or_known_otherwise_need_not_come_again() {
        assert!(asked("192.0.2.7", "x@y.example", &verdict(2_999, &[])).is_none());
        assert!(asked("192.0.2.7", "x@y.example", &verdict(3_000, &["RCVD_IN_DNSWL_MED"])).is_none());
        assert!(asked("192.0.2.7", "x@y.example", &verdict(3_000, &["RCVD_IN_DNSWL_NONE"])).is_some());
        assert!(asked("::ffff:127.0.0.1", "x@y.example", &verdict(3_000, &[])).is_none());
        assert!(asked("192.0.2.7", "x@y.example", &Verdict::default()).is_none());
    }
}
