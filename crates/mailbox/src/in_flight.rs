//! Content that has come and is in no mailbox yet: how much of the store it may take, by client and by account.
//!
//! A mail takes room from its first piece on, and whoever sends it may never finish. So a client has a share of the store, as has an
//! account where the account is who sends, all together have two thirds, and as much as is in flight stays free: half of the last
//! room is for mails that are whole. Who has little in flight is held to his own share alone, up to the last sixteenth of the room: the
//! large mails of some, which never end, do not keep out the ordinary mails of all others.
//! A client that is known is counted alone: nobody fills the share of those to whom he writes.
//! Requests and answers that are in memory have bounds of the same kind ([`InFlight::in_memory`]).
//! What was taken is given back when the mail is in a mailbox or its session ends. Mails that are shorter than a piece take nothing
//! before they are whole.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};

use store::{Error, Geometry};

/// Segments that the store keeps in reserve at least.
const RESERVED_SEGMENTS: u32 = 6;

/// The part of the room that one client and one account have, one in so many, if the largest message takes less; and at most.
const OF_ONE: u64 = 8;
const OF_ONE_MOST: u64 = 3;

/// How many of the largest shares all have together.
const OF_ALL: u64 = 2;

/// What a client or an account has in flight while it is held to its own share alone, in bytes; and the part of the room that stays free
/// then, one in so many.
const LITTLE_BYTES: u64 = 2 << 20;
const OF_LITTLE: u64 = 16;

/// Memory for requests and answers of one account, and of all: four uploads of the largest size, or two answers; and those of four accounts.
const MEMORY_OF_ONE: u64 = 128 << 20;
const MEMORY_OF_ALL: u64 = 4 * MEMORY_OF_ONE;

const _: () = assert!(OF_ONE > OF_ONE_MOST, "the usual share is the smaller one");
const _: () = assert!(OF_ALL < OF_ONE_MOST, "all together leave some of the room");

/// Client or account that content in flight is charged to.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Owner {
    Client(IpAddr),
    Account(String),
}

impl Owner {
    /// A client, of IPv6 its network; of this machine it stands for many, and has no share of its own.
    pub fn client(address: IpAddr) -> Option<Owner> {
        flow::share_of(address).map(Owner::Client)
    }
}

/// How much content may be in flight, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Bounds {
    of_one: u64,
    of_all: u64,
    /// Room that those leave who have little in flight.
    last: u64,
}

impl Bounds {
    fn new(geometry: &Geometry, message_bytes_max: u64) -> Bounds {
        let segments = geometry.segments.saturating_sub(RESERVED_SEGMENTS);
        let room = u64::from(segments) * u64::from(geometry.segment_bytes);
        let of_one = message_bytes_max.max(room / OF_ONE).min(room / OF_ONE_MOST);
        Bounds { of_one, of_all: room / OF_ONE_MOST * OF_ALL, last: room / OF_LITTLE }
    }
}

/// Content in flight, and its bounds.
#[derive(Debug)]
pub(crate) struct InFlight {
    bounds: Bounds,
    taken: Mutex<Taken>,
}

#[derive(Debug, Default)]
struct Taken {
    bytes: u64,
    /// Bytes of each owner that holds any.
    by_owner: HashMap<Owner, u64>,
}

impl InFlight {
    /// Nothing is in flight. A message of `message_bytes_max` may be, if that is no more than a third of the room.
    pub fn new(geometry: &Geometry, message_bytes_max: u64) -> Arc<InFlight> {
        Arc::new(InFlight { bounds: Bounds::new(geometry, message_bytes_max), taken: Mutex::default() })
    }

    /// The same for memory of requests and answers.
    pub fn in_memory() -> Arc<InFlight> {
        let bounds = Bounds { of_one: MEMORY_OF_ONE, of_all: MEMORY_OF_ALL, last: 0 };
        Arc::new(InFlight { bounds, taken: Mutex::default() })
    }

    /// A message of these owners, of which nothing has come.
    pub fn begin(self: &Arc<InFlight>, owners: Vec<Owner>) -> Held {
        Held { of: self.clone(), owners, bytes: 0 }
    }
}

/// Room charged for a message in flight; released on drop.
#[derive(Debug)]
pub(crate) struct Held {
    of: Arc<InFlight>,
    owners: Vec<Owner>,
    bytes: u64,
}

impl Held {
    /// Takes so many bytes more, if none of the bounds is reached. Returns how many the store has to have free: all that are in
    /// flight; of an owner who has little, no more than that and the last of the room.
    pub fn take(&mut self, bytes: u64) -> Result<u64, Error> {
        let Bounds { of_one, of_all, last } = self.of.bounds;
        let mut taken = self.of.taken.lock().unwrap_or_else(PoisonError::into_inner);
        let of = |owner| taken.by_owner.get(owner).copied().unwrap_or(0);
        let fullest = self.owners.iter().map(of).max().unwrap_or(0);
        let own = fullest.max(self.bytes).saturating_add(bytes);
        let has_little = own <= LITTLE_BYTES.min(of_one);
        let exceeds_all = taken.bytes.saturating_add(bytes) > of_all;
        if fullest.saturating_add(bytes) > of_one || exceeds_all && !has_little {
            return Err(Error::Full);
        }
        for owner in &self.owners {
            *taken.by_owner.entry(owner.clone()).or_default() += bytes;
        }
        taken.bytes += bytes;
        self.bytes += bytes;
        let with_little = if has_little { own.saturating_add(last) } else { u64::MAX };
        Ok(taken.bytes.min(with_little))
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        let mut taken = self.of.taken.lock().unwrap_or_else(PoisonError::into_inner);
        taken.bytes = taken.bytes.saturating_sub(self.bytes);
        for owner in &self.owners {
            let Some(bytes) = taken.by_owner.get_mut(owner) else { continue };
            *bytes = bytes.saturating_sub(self.bytes);
            if *bytes == 0 {
                taken.by_owner.remove(owner);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn geometry(segments: u32) -> Geometry {
        Geometry { identity: 1, segment_bytes: 1 << 20, piece_bytes: 65_480, segments }
    }

    #[test]
    fn shares_fit_into_the_room_of_any_store() {
        for segments in [12, 31, 64, 1_000, 1_000_000] {
            for message_bytes_max in [1, 30 << 20, 100 << 20, u64::MAX] {
                let room = u64::from(segments - RESERVED_SEGMENTS) << 20;
                let bounds = Bounds::new(&geometry(segments), message_bytes_max);
                assert!(bounds.of_one >= message_bytes_max.min(room / OF_ONE_MOST), "{segments}, {bounds:?}");
                assert!(bounds.of_all >= bounds.of_one && bounds.of_all <= room, "{segments}, {bounds:?}");
            }
        }
    }

    #[test]
    fn a_network_of_ipv6_is_one_client() {
        let owner = |text: &str| Owner::client(text.parse().unwrap());
        assert_eq!(owner("2001:db8::1"), owner("2001:db8::ffff:1"));
        assert_ne!(owner("2001:db8::1"), owner("2001:db8:0:1::1"));
        assert_eq!(owner("::ffff:192.0.2.1"), owner("192.0.2.1"));
        assert_eq!((owner("::1"), owner("::ffff:127.0.0.1")), (None, None));
    }

    #[test]
    fn one_owner_leaves_room_to_others_and_gives_it_back() {
        let all = InFlight::new(&geometry(54), 1);
        let of_one = all.bounds.of_one;
        let ann = || vec![Owner::Client([192, 0, 2, 1].into()), Owner::Account("ann".into())];
        let (mut first, mut second) = (all.begin(ann()), all.begin(ann()));
        first.take(of_one - 10).unwrap();
        assert_eq!(second.take(11), Err(Error::Full), "both messages count");
        second.take(10).unwrap();
        let mut same_client = all.begin(ann()[..1].to_vec());
        let mut same_account = all.begin(ann()[1..].to_vec());
        assert_eq!((same_client.take(1), same_account.take(1)), (Err(Error::Full), Err(Error::Full)));
        let mut other = all.begin(vec![Owner::Account("bob".into())]);
        other.take(of_one).unwrap();
        let mut rest = all.begin(Vec::new());
        let mut piece = of_one;
        while piece > 0 {
            piece = if rest.take(piece).is_ok() { piece } else { piece / 2 };
        }
        assert_eq!(all.begin(Vec::new()).take(LITTLE_BYTES + 1), Err(Error::Full), "all together have a bound");
        let carl = || vec![Owner::Client([198, 51, 100, 1].into())];
        let mut ordinary = all.begin(carl());
        assert_eq!(ordinary.take(70_000), Ok(70_000 + all.bounds.last), "which does not keep out ordinary mails");
        assert_eq!(all.begin(carl()).take(LITTLE_BYTES - 70_000 + 1), Err(Error::Full), "all of an owner's count");
        drop(ordinary);
        drop((first, second, other, rest));
        same_client.take(of_one).unwrap();
        drop((same_client, same_account));
        assert_eq!(all.taken.lock().unwrap().by_owner.len(), 0);
        assert_eq!(all.taken.lock().unwrap().bytes, 0);
    }
}
