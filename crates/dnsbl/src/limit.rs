//! Limits by prefix: of the queries of a network, and of equal responses to it.
//!
//! Equal responses are the sign of a forged source address, whose owner gets them all. So every second response beyond
//! the limit is truncated (TC), and a real client asks again by TCP; the others are dropped. A network is a /24 or a
//! /48. The table has a fixed size: a network whose place is taken replaces the other one, which begins anew.

use core::net::IpAddr;

/// How many networks are remembered.
const PLACES: usize = 1 << 14;

/// Action for a query or response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// It is answered.
    Pass,
    /// The response is cut off, so that the client comes by TCP.
    Truncate,
    /// No response is sent.
    Drop,
}

/// Counts by prefix.
#[derive(Debug)]
pub struct Limiter {
    a_second: u32,
    places: Vec<Place>,
}

#[derive(Debug, Clone, Copy, Default)]
struct Place {
    key: u64,
    /// Thousandths of the remaining allowance.
    left: u32,
    milliseconds: u64,
    turn: bool,
}

impl Limiter {
    /// Lets so many a second pass of each network; 0 for all. A network may use up two seconds' worth at once.
    pub fn new(a_second: u32) -> Limiter {
        let places = if a_second == 0 { Vec::new() } else { vec![Place::default(); PLACES] };
        Limiter { a_second, places }
    }

    /// Counts an event of a client; `what` separates independent counts. `now` is in milliseconds.
    pub fn count(&mut self, client: IpAddr, what: u64, now: u64) -> Verdict {
        if self.places.is_empty() {
            return Verdict::Pass;
        }
        let network = match client.to_canonical() {
            IpAddr::V4(address) => u64::from(address.to_bits() >> 8),
            IpAddr::V6(address) => 1 << 63 | u64::try_from(address.to_bits() >> 80).unwrap_or(0),
        };
        let key = (network ^ what.rotate_left(17)).wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        let place = usize::try_from(key >> 50).unwrap_or(0) % PLACES;
        let Some(place) = self.places.get_mut(place) else { return Verdict::Pass };
        let full = self.a_second.saturating_mul(2_000);
        if place.key != key {
            *place = Place { key, left: full, milliseconds: now, turn: false };
        }
        let passed = now.saturating_sub(place.milliseconds).min(60_000);
        let gained = u32::try_from(passed.saturating_mul(u64::from(self.a_second))).unwrap_or(u32::MAX);
        place.left = place.left.saturating_add(gained).min(full);
        place.milliseconds = now;
        match place.left.checked_sub(1_000) {
            Some(left) => {
                place.left = left;
                Verdict::Pass
            }
            None => {
                place.turn = !place.turn;
                if place.turn { Verdict::Truncate } else { Verdict::Drop }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_network_gets_its_share_and_others_theirs() {
        let mut limiter = Limiter::new(10);
        let of = |text: &str| text.parse::<IpAddr>().unwrap();
        let passed = |limiter: &mut Limiter, now| {
            (0..100).filter(|_| limiter.count(of("192.0.2.1"), 0, now) == Verdict::Pass).count()
        };
        assert_eq!(passed(&mut limiter, 0), 20, "two seconds' worth at once");
        assert_eq!(limiter.count(of("192.0.2.99"), 0, 0), Verdict::Truncate, "the same network");
        assert_eq!(limiter.count(of("192.0.2.99"), 0, 0), Verdict::Drop);
        assert_eq!(limiter.count(of("192.0.3.1"), 0, 0), Verdict::Pass, "another");
        assert_eq!(limiter.count(of("2001:db8::1"), 0, 0), Verdict::Pass);
        assert_eq!(limiter.count(of("192.0.2.1"), 7, 0), Verdict::Pass, "counted by itself");
        assert_eq!(passed(&mut limiter, 1_000), 10);
        assert_eq!(Limiter::new(0).count(of("192.0.2.1"), 0, 0), Verdict::Pass);
    }
}
