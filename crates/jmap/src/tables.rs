//! Values that a host keeps in memory between requests: snapshots whose states clients have heard, and uploads.
//!
//! Bounds: [`OF_ONE_MAX`] and [`SNAPSHOTS_MAX`] snapshots, [`UPLOADED_OF_ONE_MAX`] and [`UPLOADED_MAX`] bytes of uploads; the oldest are
//! forgotten. A client whose snapshot is forgotten fetches its lists again.

use alloc::collections::VecDeque;
use alloc::string::String;
use alloc::sync::Arc;

use store::State;

/// Snapshots of one account.
const OF_ONE_MAX: usize = 16;
/// Snapshots of all accounts: each shares with the others what did not change.
const SNAPSHOTS_MAX: usize = 1_024;
/// Bytes of the uploads of one account.
const UPLOADED_OF_ONE_MAX: usize = 64 << 20;
/// Bytes of the uploads of all accounts.
const UPLOADED_MAX: usize = 256 << 20;
/// Uploads of one account.
const UPLOADS_OF_ONE_MAX: usize = 1_000;
/// How long an upload is kept (RFC 8620, section 6.1: an hour at least, where there is room).
const UPLOAD_SECONDS: i64 = 6 * 3_600;

/// Snapshots and uploads of all accounts.
#[derive(Default)]
pub struct Tables {
    snapshots: VecDeque<(u32, u64, State)>,
    uploads: VecDeque<Upload>,
}

struct Upload {
    account: u32,
    id: String,
    kind: String,
    content: Arc<[u8]>,
    since: i64,
}

impl Tables {
    /// The snapshot of a state of an account.
    pub fn former(&mut self, account: u32, state: u64) -> Option<State> {
        let at = self.snapshots.iter().position(|(owner, known, _)| (*owner, *known) == (account, state))?;
        // A state that is asked for is young again.
        let found = self.snapshots.remove(at)?;
        let snapshot = found.2.clone();
        self.snapshots.push_back(found);
        Some(snapshot)
    }

    /// Keeps the snapshot of a state.
    pub fn remember(&mut self, account: u32, state: u64, snapshot: State) {
        self.snapshots.retain(|(owner, known, _)| (*owner, *known) != (account, state));
        if self.snapshots.iter().filter(|(owner, ..)| *owner == account).count() >= OF_ONE_MAX {
            let oldest = self.snapshots.iter().position(|(owner, ..)| *owner == account);
            oldest.and_then(|oldest| self.snapshots.remove(oldest));
        } else if self.snapshots.len() >= SNAPSHOTS_MAX {
            self.snapshots.pop_front();
        }
        self.snapshots.push_back((account, state, snapshot));
    }

    /// An upload of an account: its type and content.
    pub fn upload(&self, account: u32, id: &str, now: i64) -> Option<(String, Arc<[u8]>)> {
        let is_it = |upload: &&Upload| upload.account == account && upload.id == id && !upload.is_old(now);
        self.uploads.iter().find(is_it).map(|upload| (upload.kind.clone(), upload.content.clone()))
    }

    /// Keeps an upload; whether there is room.
    pub fn keep_upload(&mut self, account: u32, id: String, kind: &str, content: Arc<[u8]>, now: i64) -> bool {
        if content.len() > UPLOADED_OF_ONE_MAX {
            return false;
        }
        self.uploads.retain(|upload| !upload.is_old(now));
        let own = |upload: &&Upload| upload.account == account;
        while self.uploads.iter().filter(own).count() >= UPLOADS_OF_ONE_MAX
            || bytes(self.uploads.iter().filter(own)).saturating_add(content.len()) > UPLOADED_OF_ONE_MAX
        {
            let oldest = self.uploads.iter().position(|upload| upload.account == account);
            if oldest.and_then(|oldest| self.uploads.remove(oldest)).is_none() {
                return false;
            }
        }
        // Others keep theirs: an account makes room among its own.
        if bytes(self.uploads.iter()).saturating_add(content.len()) > UPLOADED_MAX {
            return false;
        }
        self.uploads.push_back(Upload { account, id, kind: kind.into(), content, since: now });
        true
    }
}

impl Upload {
    fn is_old(&self, now: i64) -> bool {
        now.saturating_sub(self.since) > UPLOAD_SECONDS
    }
}

fn bytes<'a>(uploads: impl Iterator<Item = &'a Upload>) -> usize {
    uploads.fold(0, |sum, upload| sum.saturating_add(upload.content.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uploads_and_snapshots_are_bounded_and_of_their_account() {
        let mut tables = Tables::default();
        for number in 0..20u64 {
            tables.remember(1, number, State::default());
            assert!(tables.keep_upload(1, number.to_string(), "x/y", vec![0; 8 << 20].into(), 0));
        }
        assert!(tables.former(1, 19).is_some() && tables.former(1, 0).is_none() && tables.former(2, 19).is_none());
        assert!(tables.upload(1, "19", 0).is_some() && tables.upload(1, "11", 0).is_none());
        assert!(tables.upload(2, "19", 0).is_none() && tables.upload(1, "19", UPLOAD_SECONDS + 1).is_none());
        assert!(!tables.keep_upload(1, "x".into(), "x/y", vec![0; UPLOADED_OF_ONE_MAX + 1].into(), 0));
    }
}
