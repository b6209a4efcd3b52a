//! How many notices are sent: to one address and in all, within an hour.
//!
//! A bucket for each address fills evenly over the hour, and so does one for all. Bounded: addresses whose bucket is full
//! again are forgotten, and if more than [`ADDRESSES_MAX`] remain nobody new is told.

use std::collections::HashMap;
use std::sync::Mutex;
use std::time::{Duration, Instant};

const HOUR: Duration = Duration::from_secs(3_600);

/// Addresses remembered.
const ADDRESSES_MAX: usize = 10_000;

/// Notices that may still be sent.
#[derive(Debug, Default)]
pub struct Budget(Mutex<Spent>);

#[derive(Debug, Default)]
struct Spent {
    all: Option<Bucket>,
    addresses: HashMap<String, Bucket>,
}

/// Notices that have been sent and not been made good by time.
#[derive(Debug, Clone, Copy)]
struct Bucket {
    level: f64,
    at: Instant,
}

impl Bucket {
    fn new(now: Instant) -> Bucket {
        Bucket { level: 0.0, at: now }
    }

    /// The level now, with `per_hour` running out in an hour.
    fn level(&self, per_hour: u32, now: Instant) -> f64 {
        let hours = now.duration_since(self.at).as_secs_f64() / HOUR.as_secs_f64();
        (self.level - hours * f64::from(per_hour)).max(0.0)
    }
}

impl Budget {
    /// Whether one more may go to `address`; it counts if so.
    pub fn spend(&self, address: &str, per_address: u32, per_hour: u32, now: Instant) -> bool {
        let mut spent = self.0.lock().expect("no holder panics");
        let address = address.to_lowercase();
        if spent.addresses.len() >= ADDRESSES_MAX && !spent.addresses.contains_key(&address) {
            spent.addresses.retain(|_, bucket| bucket.level(per_address, now) > 0.0);
            if spent.addresses.len() >= ADDRESSES_MAX {
                return false;
            }
        }
        let all = spent.all.unwrap_or(Bucket::new(now)).level(per_hour, now) + 1.0;
        let one = spent.addresses.get(&address).copied().unwrap_or(Bucket::new(now)).level(per_address, now) + 1.0;
        if all > f64::from(per_hour) || one > f64::from(per_address) {
            return false;
        }
        spent.all = Some(Bucket { level: all, at: now });
        spent.addresses.insert(address, Bucket { level: one, at: now });
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_gets_its_share_and_more_with_time() {
        let (budget, now) = (Budget::default(), Instant::now());
        assert!(budget.spend("a@b", 2, 10, now) && budget.spend("A@B", 2, 10, now));
        assert!(!budget.spend("a@b", 2, 10, now), "case makes no other address");
        assert!(budget.spend("c@d", 2, 10, now));
        assert!(!budget.spend("a@b", 2, 10, now + HOUR / 4));
        assert!(budget.spend("a@b", 2, 10, now + HOUR / 2));
    }

    #[test]
    fn all_together_have_theirs() {
        let (budget, now) = (Budget::default(), Instant::now());
        assert_eq!((0..9).filter(|n| budget.spend(&n.to_string(), 2, 3, now)).count(), 3);
        assert!(budget.spend("x", 2, 3, now + HOUR));
        assert!(!Budget::default().spend("x", 0, 3, now) && !Budget::default().spend("x", 3, 0, now));
    }

    #[test]
    fn many_addresses_are_not_remembered_for_ever() {
        let (budget, now) = (Budget::default(), Instant::now());
        let told = (0..ADDRESSES_MAX + 10).filter(|n| budget.spend(&n.to_string(), 2, u32::MAX, now)).count();
        assert_eq!(told, ADDRESSES_MAX);
        assert!(budget.spend("new", 2, u32::MAX, now + HOUR));
    }
}
