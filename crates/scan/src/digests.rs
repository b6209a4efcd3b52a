//! The running digests of one stream, in the company of others.
//!
//! A digest is run only for algorithms that the tables hold, and only up to the largest size in them: an object beyond
//! that size has no match and its digest is dropped. The size that an object declares is never trusted for that.
//!
//! What has come waits for a while in a [`Batch`], so an object that ends within is not hashed at all where its size is that
//! of no signature.

use digest::{Batch, Sums, Ticket, Wanted};

use crate::hashes::{ANY_SIZE, HashTable};

/// The running digests of one stream; none are left when no entry can match any more.
#[derive(Debug, Default)]
pub(crate) struct Running {
    ticket: Option<Ticket>,
    /// The largest size at which a digest is wanted, for each of them; nothing if none is.
    largest: Largest,
}

#[derive(Debug, Clone, Copy, Default)]
struct Largest {
    md5: Option<u64>,
    sha1: Option<u64>,
    sha256: Option<u64>,
}

impl Largest {
    /// The digests whose largest size passes.
    fn wanted(self, passes: impl Fn(u64) -> bool) -> Wanted {
        Wanted {
            md5: self.md5.is_some_and(&passes),
            sha1: self.sha1.is_some_and(&passes),
            sha256: self.sha256.is_some_and(&passes),
        }
    }

    /// Whether one of them is wanted whatever the size.
    fn is_any(self) -> bool {
        [self.md5, self.sha1, self.sha256].contains(&Some(ANY_SIZE))
    }

    /// The size beyond which one of them is wanted no more.
    fn least(self) -> Option<u64> {
        [self.md5, self.sha1, self.sha256].into_iter().flatten().min()
    }
}

impl Running {
    /// Starts the digests that some of `tables` want.
    pub(crate) fn new<'t>(tables: impl Iterator<Item = &'t HashTable> + Clone) -> Running {
        let largest = |of: fn(&HashTable) -> Option<u64>| tables.clone().filter_map(of).max();
        let largest = Largest {
            md5: largest(|table| table.md5.largest()),
            sha1: largest(|table| table.sha1.largest()),
            sha256: largest(|table| table.sha256.largest()),
        };
        Running { ticket: None, largest }
    }

    /// Starts the digests that some of `tables` want of something of one of these sizes.
    pub(crate) fn of_sizes<'t>(tables: impl Iterator<Item = &'t HashTable> + Clone, sizes: [u64; 2]) -> Running {
        let largest = |has: fn(&HashTable, u64) -> bool| {
            let wanted = |size: &u64| tables.clone().any(|table| has(table, *size));
            sizes.into_iter().filter(wanted).max()
        };
        let largest = Largest {
            md5: largest(|table, size| table.md5.has_size(size)),
            sha1: largest(|table, size| table.sha1.has_size(size)),
            sha256: largest(|table, size| table.sha256.has_size(size)),
        };
        Running { ticket: None, largest }
    }

    /// Whether some digest is still wanted.
    pub(crate) fn is_wanted(&self) -> bool {
        self.largest.least().is_some()
    }

    /// Takes in the next bytes, which end at `position` of the stream.
    pub(crate) fn update(&mut self, batch: &mut Batch, bytes: &[u8], position: u64) {
        let Some(least) = self.largest.least() else { return };
        if position > least {
            self.keep(batch, |largest| position <= largest);
            if !self.is_wanted() {
                return;
            }
        }
        let wanted = self.largest.wanted(|_| true);
        let ticket = match self.ticket.take() {
            Some(ticket) => ticket,
            None => self.open(batch, wanted),
        };
        batch.update(&ticket, bytes);
        self.ticket = Some(ticket);
    }

    /// The stream has ended: digests that no entry of `tables` has at that size are not worth finishing.
    pub(crate) fn drop_unwanted<'t>(
        &mut self,
        batch: &mut Batch,
        size: u64,
        tables: impl Iterator<Item = &'t HashTable> + Clone,
    ) {
        let has = |of: fn(&HashTable, u64) -> bool| tables.clone().any(|table| of(table, size));
        let Largest { md5, sha1, sha256 } = &mut self.largest;
        md5.take_if(|_| !has(|table, size| table.md5.has_size(size)));
        sha1.take_if(|_| !has(|table, size| table.sha1.has_size(size)));
        sha256.take_if(|_| !has(|table, size| table.sha256.has_size(size)));
        self.keep(batch, |_| true);
    }

    /// No more will come, and the digests are wanted soon.
    pub(crate) fn close(&self, batch: &mut Batch) {
        if let Some(ticket) = &self.ticket {
            batch.close(ticket);
        }
    }

    /// Whether [`finish`](Running::finish) has nothing left to hash.
    pub(crate) fn is_hashed(&self, batch: &Batch) -> bool {
        self.ticket.as_ref().is_none_or(|ticket| batch.is_hashed(ticket))
    }

    /// Ends the digests of a stream of that size. None if they are lost: the stream was read with another batch.
    pub(crate) fn finish(&mut self, batch: &mut Batch, size: u64) -> Option<Sums> {
        let wanted = std::mem::take(&mut self.largest).wanted(|_| true);
        let ticket = match self.ticket.take() {
            Some(ticket) => ticket,
            // There was nothing to read, or nothing is wanted.
            None if size == 0 && wanted.is_any() => batch.open(wanted),
            None => return Some(Sums { size, ..Sums::default() }),
        };
        batch.finish(ticket).filter(|sums| sums.size == size)
    }

    /// Running digests that have begun as these and go their own way from here on.
    pub(crate) fn copy(&self, batch: &mut Batch) -> Running {
        Running { ticket: self.ticket.as_ref().and_then(|ticket| batch.copy(ticket)), largest: self.largest }
    }

    fn open(&self, batch: &mut Batch, wanted: Wanted) -> Ticket {
        let ticket = batch.open(wanted);
        if self.largest.is_any() {
            batch.be_certain(&ticket);
        }
        ticket
    }

    /// Keeps the digests whose largest size passes.
    fn keep(&mut self, batch: &mut Batch, passes: impl Fn(u64) -> bool) {
        let Largest { md5, sha1, sha256 } = &mut self.largest;
        [md5, sha1, sha256].into_iter().for_each(|largest| _ = largest.take_if(|largest| !passes(*largest)));
        let wanted = self.largest.wanted(|_| true);
        if let Some(ticket) = &self.ticket {
            batch.keep(ticket, wanted);
        }
        self.ticket.take_if(|_| !wanted.is_any());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hashes::{AnyDigest, HashEntry};

    const MD5: AnyDigest = AnyDigest::Md5([0; 16]);
    const SHA1: AnyDigest = AnyDigest::Sha1([0; 20]);

    /// A table that has these digests at these sizes.
    fn table(entries: &[(AnyDigest, u64)]) -> HashTable {
        let entry = |(digest, size): &(AnyDigest, u64)| HashEntry { digest: digest.clone(), size: *size, name: 0 };
        HashTable::new(entries.iter().map(entry).collect())
    }

    fn sums(running: &mut Running, batch: &mut Batch, content: &[u8]) -> Option<Sums> {
        running.update(batch, content, content.len() as u64);
        running.finish(batch, content.len() as u64)
    }

    #[test]
    fn what_is_wanted_at_any_size_is_hashed_on_the_way() {
        for (size, is_due) in [(ANY_SIZE, true), (1_000_000, false)] {
            let (table, mut batch) = (table(&[(MD5, size)]), Batch::new(8 << 20, 1 << 20));
            let mut running = Running::new([&table].into_iter());
            running.update(&mut batch, &[b'a'; 130_000], 130_000);
            assert_eq!(batch.is_due(), is_due, "{size}");
        }
    }

    #[test]
    fn a_copy_goes_its_own_way() {
        let (table, mut batch) = (table(&[(MD5, ANY_SIZE)]), Batch::default());
        let mut first = Running::new([&table].into_iter());
        first.update(&mut batch, b"abc", 3);
        let mut copy = first.copy(&mut batch);
        copy.update(&mut batch, b"d", 4);
        let md5 =
            |running: &mut Running, batch: &mut Batch, size| running.finish(batch, size).and_then(|sums| sums.md5);
        assert_eq!(md5(&mut first, &mut batch, 3), Some(digest::md5::digest(b"abc")));
        assert_eq!(md5(&mut copy, &mut batch, 4), Some(digest::md5::digest(b"abcd")));
    }

    #[test]
    fn a_digest_is_dropped_when_the_stream_is_too_long_for_it() {
        let (table, mut batch) = (table(&[(MD5, 3), (SHA1, 4)]), Batch::default());
        let mut running = Running::new([&table].into_iter());
        running.update(&mut batch, b"abc", 3);
        running.update(&mut batch, b"d", 4);
        let dropped = running.copy(&mut batch).finish(&mut batch, 4).expect("they are here");
        assert_eq!((dropped.md5, dropped.sha1), (None, Some(digest::sha1::digest(b"abcd"))));
        running.update(&mut batch, b"e", 5);
        assert!(!running.is_wanted());
        batch.run();
        assert_eq!(batch.streams(), 0);
    }

    #[test]
    fn a_size_that_no_signature_has_is_not_hashed_to_the_end() {
        let (table, mut batch) = (table(&[(MD5, 3)]), Batch::default());
        for (content, hashed) in [(b"abc".as_slice(), true), (b"ab", false), (b"", false)] {
            let mut running = Running::new([&table].into_iter());
            running.update(&mut batch, content, content.len() as u64);
            running.drop_unwanted(&mut batch, content.len() as u64, [&table].into_iter());
            let sums = running.finish(&mut batch, content.len() as u64).expect("they are here");
            assert_eq!(sums.md5.is_some(), hashed, "{content:?}");
        }
    }

    #[test]
    fn of_what_has_a_size_only_the_digests_are_computed_that_some_signature_has_at_that_size() {
        let (table, mut batch) = (table(&[(MD5, 3), (MD5, 9), (SHA1, 4), (SHA1, 9)]), Batch::default());
        for (content, sizes, md5, sha1) in
            [(b"abc".as_slice(), [3, 3], true, false), (b"abcd", [4, 2], false, true), (b"abc", [3, 4], true, true)]
        {
            let mut running = Running::of_sizes([&table].into_iter(), sizes);
            let sums = sums(&mut running, &mut batch, content).expect("they are here");
            assert_eq!((sums.md5.is_some(), sums.sha1.is_some()), (md5, sha1), "{sizes:?}");
        }
    }

    #[test]
    fn nothing_has_digests_too_and_what_is_lost_has_none() {
        let (table, mut batch) = (table(&[(MD5, ANY_SIZE)]), Batch::default());
        let empty = sums(&mut Running::new([&table].into_iter()), &mut batch, b"").expect("they are here");
        assert_eq!(empty.md5, Some(digest::md5::digest(b"")));
        let mut running = Running::new([&table].into_iter());
        running.update(&mut batch, b"abc", 3);
        running.update(&mut Batch::default(), b"d", 4);
        assert_eq!(running.finish(&mut batch, 4), None);
    }
}
