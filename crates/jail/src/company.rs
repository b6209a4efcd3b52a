//! The inspections of one thread in company: what they have to be hashed waits in one batch, and is hashed side by side.
//!
//! An inspection works with one batch from its first turn to its last, that of the thread in which it had its first turn. If
//! it moves to another thread, it takes along where its batch is: no digest is lost, but the two threads wait for each other.
//! So those that are polled by whatever thread is free work alone.
//!
//! Bounds: [`ROOM_BYTES`], for each thread in which something has been inspected in company. They are the thread's and not
//! an inspection's: whoever is in the middle of a turn has not borrowed them.

use std::sync::{Arc, Mutex, PoisonError};

use digest::Batch;
use flow::Protocol;

use crate::memory;

/// Bytes that can wait of all streams: eight mails with 1 MiB attached, and their content.
const ROOM_BYTES: usize = 24 << 20;

/// How much of a stream can wait. Most mails and what is attached to them are smaller, and are hashed only if a signature is
/// of their size.
const STREAM_BYTES_MAX: usize = 2 << 20;

thread_local! {
    /// That of this thread. Nobody else locks it unless an inspection has moved.
    static BATCH: Arc<Mutex<Batch>> = Arc::new(Mutex::new(Batch::new(ROOM_BYTES, STREAM_BYTES_MAX)));
}

/// Beside whom an inspection works.
pub(crate) enum Company {
    /// Nobody.
    Alone,
    /// The others of the thread in which it has its first turn.
    Awaited,
    /// Inspections that share this batch.
    Of(Arc<Mutex<Batch>>),
}

impl Company {
    /// That of the objects of such a door. Files are read one by one, and scans for clamd's clients are polled by several
    /// threads; the other doors have an event loop in one.
    pub fn of(protocol: Protocol) -> Company {
        match protocol {
            Protocol::File | Protocol::Clamd => Company::Alone,
            Protocol::Smtp
            | Protocol::Lmtp
            | Protocol::Pop3
            | Protocol::Imap
            | Protocol::Milter
            | Protocol::Spamd
            | Protocol::Rspamd
            | Protocol::Icap
            | Protocol::Http => Company::Awaited,
        }
    }

    /// The batch for the next turn, always the same one; none for who works alone.
    pub fn batch(&mut self) -> Option<&Mutex<Batch>> {
        if let Company::Awaited = self {
            *self = Company::Of(BATCH.with(Arc::clone));
        }
        match self {
            Company::Of(batch) => Some(batch),
            Company::Alone | Company::Awaited => None,
        }
    }
}

/// Does a turn of an inspection with a batch, and what is due of that afterwards. A turn that ended in a panic has left what
/// others have there as it was.
pub(crate) fn turn<T>(batch: &Mutex<Batch>, work: impl FnOnce(&mut Batch) -> T) -> T {
    let mut batch = batch.lock().unwrap_or_else(PoisonError::into_inner);
    let done = work(&mut batch);
    if batch.is_due() {
        batch.run();
    }
    done
}

/// Does work of an inspection with a batch, whose room is not the inspection's memory.
pub(crate) fn apart<T>(batch: &mut Batch, work: impl FnOnce(&mut Batch) -> T) -> T {
    let before = batch.room_bytes();
    let done = work(batch);
    memory::count(before.cast_signed() - batch.room_bytes().cast_signed());
    done
}

/// Hashes what has waited for a while in this thread, and frees room that is not used.
pub(crate) fn tidy() {
    BATCH.with(|batch| batch.lock().unwrap_or_else(PoisonError::into_inner).tidy());
}

/// Bytes of this thread's room.
#[cfg(test)]
pub(crate) fn room_bytes() -> usize {
    BATCH.with(|batch| batch.lock().unwrap_or_else(PoisonError::into_inner).room_bytes())
}

#[cfg(test)]
mod tests {
    use digest::Wanted;

    use super::*;

    #[test]
    fn a_turn_that_ends_in_a_panic_leaves_the_batch_to_the_others() {
        let mut company = Company::of(Protocol::Smtp);
        let batch = company.batch().expect("mails are in company");
        let ticket = turn(batch, |batch| batch.open(Wanted { md5: true, ..Wanted::default() }));
        turn(batch, |batch| batch.update(&ticket, b"abc"));
        let panics = std::panic::AssertUnwindSafe(|| turn(batch, |_| panic!("in the middle of its turn")));
        assert!(std::panic::catch_unwind(panics).is_err());
        let sums = turn(batch, |batch| batch.finish(ticket)).expect("the stream is here");
        assert_eq!(sums.md5, Some(digest::md5::digest(b"abc")));
    }

    #[test]
    fn inspections_of_one_thread_share_a_batch_and_keep_it_in_another() {
        let mut mails = [Company::of(Protocol::Smtp), Company::of(Protocol::Milter)];
        let [first, second] = mails.each_mut().map(|company| company.batch().map(std::ptr::from_ref));
        assert!(first.is_some() && first == second);
        let place = |company: &mut Company| company.batch().map(|batch| std::ptr::from_ref(batch).addr());
        let here = place(&mut mails[0]);
        let [mut moved, _] = mails;
        let (there, stranger) =
            std::thread::spawn(move || (place(&mut moved), place(&mut Company::of(Protocol::Imap))))
                .join()
                .expect("it ends");
        assert_eq!(there, here);
        assert_ne!(stranger, here);
    }
}
