//! Lease of an owner: how long it may rely on owning the volume, and when another node may take the volume over.
//!
//! Clocks of machines are never compared. The owner renews by writing a new random token into the volume's row, and
//! relies on the lease for four fifths of its length from the time of the request. Another node takes over when it has
//! seen the token unchanged for a whole lease by its own clock. So clocks may be hours apart, the database's too, and
//! each may run wrong by a tenth. A counter in place of the token could reach the same value twice when a failover of
//! the database loses a renewal.
//!
//! Writes need no lease, since the epoch fences them. Reads do: a former owner would show outdated mailboxes.

/// Next action of an owner.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Duty {
    /// Nothing before this time, in milliseconds.
    Wait(u64),
    /// Renew the lease.
    Renew,
    /// Stop serving.
    End,
}

/// The lease of one owner. Times are milliseconds of a clock that counts while the machine sleeps.
#[derive(Debug, Clone, Copy)]
pub struct Lease {
    lease_ms: u64,
    /// Time of the request of the last granted renewal.
    asked_ms: u64,
}

impl Lease {
    /// Makes a lease that was requested at `asked_ms`, and granted.
    pub fn new(lease_ms: u64, asked_ms: u64) -> Lease {
        Lease { lease_ms, asked_ms }
    }

    /// Notes that a renewal requested at `asked_ms` has been granted.
    pub fn renewed(&mut self, asked_ms: u64) {
        self.asked_ms = self.asked_ms.max(asked_ms);
    }

    /// Returns the time at which the owner has to have stopped.
    pub fn ends_ms(&self) -> u64 {
        self.asked_ms.saturating_add(self.lease_ms / 5 * 4)
    }

    /// Returns the action due at a time. A renewal is due after three tenths of the lease.
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
    /// Random value, new with each renewal.
    pub token: u64,
}

/// Renewals of the owner as a waiting node has seen them.
#[derive(Debug, Clone, Copy)]
pub struct Vigil {
    lease_ms: u64,
    seen: Option<(Renewal, u64)>,
}

impl Vigil {
    /// Makes the state of a node that has seen nothing yet.
    pub fn new(lease_ms: u64) -> Vigil {
        Vigil { lease_ms, seen: None }
    }

    /// Returns whether the owner has been silent for a whole lease, given the database's answer; `now_ms` is the time
    /// after the answer.
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
