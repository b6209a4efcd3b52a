//! The lease of an owner: until when it may believe that the volume is its own, and when others may take the volume over.
//!
//! No two clocks are compared. The owner renews by writing a new random token into the volume's row, and believes for four fifths of the lease
//! from when it asked. Another node takes over when it has seen the token unchanged for a whole lease by its own clock. So clocks may be
//! hours apart, on the database too, and may go wrong by a tenth each. A count in place of the token would come to the same value twice
//! when a failover of the database loses a renewal.
//!
//! Writes need no lease, since the epoch fences them. Reads do: a former owner would show mailboxes as they were.

/// What an owner has to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Duty {
    /// Nothing before this time, in milliseconds.
    Wait(u64),
    /// Ask for more time.
    Renew,
    /// Serve nobody any more.
    End,
}

/// The lease of one owner. Times are milliseconds of a clock that counts while the machine sleeps.
#[derive(Debug, Clone, Copy)]
pub struct Lease {
    lease_ms: u64,
    /// When the last renewal that was granted was asked for.
    asked_ms: u64,
}

impl Lease {
    /// A lease that was asked for at `asked_ms`, and granted.
    pub fn new(lease_ms: u64, asked_ms: u64) -> Lease {
        Lease { lease_ms, asked_ms }
    }

    /// Notes that a renewal which was asked for at `asked_ms` has been granted.
    pub fn renewed(&mut self, asked_ms: u64) {
        self.asked_ms = self.asked_ms.max(asked_ms);
    }

    /// When the owner has to have ended.
    pub fn ends_ms(&self) -> u64 {
        self.asked_ms.saturating_add(self.lease_ms / 5 * 4)
    }

    /// What to do at a time. A renewal is due after three tenths of the lease.
    pub fn duty(&self, now_ms: u64) -> Duty {
        let due = self.asked_ms.saturating_add(self.lease_ms / 10 * 3);
        match now_ms {
            now if now >= self.ends_ms() => Duty::End,
            now if now >= due => Duty::Renew,
            _ => Duty::Wait(due),
        }
    }
}

/// The fields of a volume's row that change when it is renewed or taken over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Renewal {
    /// Counts owners.
    pub epoch: u64,
    /// Another one for each renewal.
    pub token: u64,
}

/// What a node that waits has seen of the owner's renewals.
#[derive(Debug, Clone, Copy)]
pub struct Vigil {
    lease_ms: u64,
    seen: Option<(Renewal, u64)>,
}

impl Vigil {
    /// A node that has seen nothing yet.
    pub fn new(lease_ms: u64) -> Vigil {
        Vigil { lease_ms, seen: None }
    }

    /// Whether the owner has been silent for a whole lease, now that the database has answered with this. `now_ms` is the time after the answer.
    pub fn is_over(&mut self, renewal: Renewal, now_ms: u64) -> bool {
        match self.seen {
            Some((seen, since)) if seen == renewal => now_ms.saturating_sub(since) >= self.lease_ms,
            _ => {
                self.seen = Some((renewal, now_ms));
                false
            }
        }
    }
}
