//! The running digests of one stream.
//!
//! A digest is run only for algorithms that the tables hold, and only up to the largest size in them: an object beyond
//! that size has no match and its digest is dropped. The size that an object declares is never trusted for that.
//!
//! What has come is kept for a while, up to [`WAITING_BYTES_MAX`], before it is hashed. So an object that ends within is not
//! hashed at all where its size is that of no signature; and MD5 and SHA-256, which leave most of a processor idle, are
//! computed of several streams side by side: those of one mail and those of all others that the same thread inspects.

use std::cell::RefCell;
use std::sync::{Arc, Mutex, MutexGuard, Weak};

use pattern::lanes::{BLOCK_BYTES, LANES};
use pattern::{md5, sha256};
use sha1::{Digest, Sha1};

use crate::hashes::{HashTable, Sums};
use crate::waiting::Waiting;

/// The most that is kept of one stream.
const WAITING_BYTES_MAX: usize = 64 << 10;

/// Less than this is not worth another stream's company.
const COMPANY_BYTES: usize = 4 << 10;

thread_local! {
    /// The streams of this thread that would be hashed beside others. Whichever of them needs room takes the others along.
    static COMPANY: RefCell<Vec<Weak<Mutex<Stream>>>> = const { RefCell::new(Vec::new()) };
}

/// The running digests of one stream; none are left when no entry can match any more.
#[derive(Debug, Default)]
pub(crate) struct Running(Option<Arc<Mutex<Stream>>>);

/// A stream with its digests up to where its waiting bytes begin.
#[derive(Debug, Clone)]
struct Stream {
    waiting: Waiting,
    /// Whether it is in the company of its thread.
    listed: bool,
    md5: Option<Bounded<md5::State>>,
    sha1: Option<Bounded<Sha1>>,
    sha256: Option<Bounded<sha256::State>>,
}

/// A digest that runs until the stream is too long for every entry.
#[derive(Debug, Clone)]
struct Bounded<D> {
    digest: D,
    largest: u64,
}

impl<D> Bounded<D> {
    fn new(digest: D, largest: Option<u64>) -> Option<Bounded<D>> {
        largest.map(|largest| Bounded { digest, largest })
    }
}

impl Running {
    /// Starts the digests that some of `tables` want.
    pub(crate) fn new<'t>(tables: impl Iterator<Item = &'t HashTable> + Clone) -> Running {
        let largest = |of: fn(&HashTable) -> Option<u64>| tables.clone().filter_map(of).max();
        let stream = Stream {
            waiting: Waiting::default(),
            listed: false,
            md5: Bounded::new(md5::INITIAL, largest(|table| table.md5.largest())),
            sha1: Bounded::new(Sha1::new(), largest(|table| table.sha1.largest())),
            sha256: Bounded::new(sha256::INITIAL, largest(|table| table.sha256.largest())),
        };
        Running(stream.is_wanted().then(|| Arc::new(Mutex::new(stream))))
    }

    /// Takes in the next bytes, which end at `position` of the stream.
    pub(crate) fn update(&mut self, mut bytes: &[u8], position: u64) {
        let Some(shared) = &self.0 else { return };
        let mut own = lock(shared);
        own.keep(|largest| position <= largest, |largest| position <= largest, |largest| position <= largest);
        if !own.is_wanted() {
            drop(own);
            self.0 = None;
            return;
        }
        while !bytes.is_empty() {
            let (now, later) = bytes.split_at(bytes.len().min(WAITING_BYTES_MAX - own.waiting.len()));
            own.waiting.push(now);
            bytes = later;
            make_room(shared, &mut own);
        }
    }

    /// The stream has ended: digests that no entry of `tables` has at that size are not worth finishing.
    pub(crate) fn drop_unwanted<'t>(&mut self, size: u64, tables: impl Iterator<Item = &'t HashTable> + Clone) {
        let Some(shared) = &self.0 else { return };
        let wanted = |of: fn(&HashTable, u64) -> bool| tables.clone().any(|table| of(table, size));
        lock(shared).keep(
            |_| wanted(|table, size| table.md5.has_size(size)),
            |_| wanted(|table, size| table.sha1.has_size(size)),
            |_| wanted(|table, size| table.sha256.has_size(size)),
        );
    }

    /// Ends the digests.
    pub(crate) fn finish(&mut self, size: u64) -> Sums {
        let Some(shared) = self.0.take() else { return Sums { size, ..Sums::default() } };
        let mut own = lock(&shared);
        while own.waiting.len() >= COMPANY_BYTES && own.is_wanted() {
            hash(&shared, &mut own);
        }
        let whole = own.waiting.len() / BLOCK_BYTES * BLOCK_BYTES;
        hash_together(&mut [&mut own], whole);
        let rest = std::mem::take(&mut own.waiting);
        let rest = rest.bytes();
        Sums {
            size,
            md5: own.md5.take().map(|md5| md5::finish(md5.digest, rest, size)),
            sha1: own.sha1.take().map(|sha1| sha1.digest.chain_update(rest).finalize().into()),
            sha256: own.sha256.take().map(|sha256| sha256::finish(sha256.digest, rest, size)),
        }
    }
}

/// A copy goes its own way from here on.
impl Clone for Running {
    fn clone(&self) -> Running {
        let copy = |shared: &Arc<Mutex<Stream>>| Stream { listed: false, ..lock(shared).clone() };
        Running(self.0.as_ref().map(|shared| Arc::new(Mutex::new(copy(shared)))))
    }
}

impl Stream {
    fn is_wanted(&self) -> bool {
        self.md5.is_some() || self.sha1.is_some() || self.sha256.is_some()
    }

    /// Whether it stays in the company that it is in.
    fn stays(&mut self) -> bool {
        self.listed = self.waiting.len() >= COMPANY_BYTES;
        self.listed
    }

    /// Keeps the digests whose largest size passes.
    fn keep(&mut self, md5: impl Fn(u64) -> bool, sha1: impl Fn(u64) -> bool, sha256: impl Fn(u64) -> bool) {
        self.md5.take_if(|running| !md5(running.largest));
        self.sha1.take_if(|running| !sha1(running.largest));
        self.sha256.take_if(|running| !sha256(running.largest));
    }
}

fn lock(shared: &Arc<Mutex<Stream>>) -> MutexGuard<'_, Stream> {
    shared.lock().expect("hashing does not panic")
}

/// Hashes as long as there is company enough, or no room left. So few streams of a thread have much waiting, however many
/// there are.
fn make_room(shared: &Arc<Mutex<Stream>>, own: &mut Stream) {
    while own.waiting.len() >= COMPANY_BYTES {
        if list(shared, own) < LANES && own.waiting.len() < WAITING_BYTES_MAX {
            return;
        }
        hash(shared, own);
    }
}

/// Adds the stream to the company of its thread; how large that is.
fn list(shared: &Arc<Mutex<Stream>>, own: &mut Stream) -> usize {
    COMPANY.with_borrow_mut(|company| {
        if !std::mem::replace(&mut own.listed, true) {
            company.retain(|other| other.strong_count() > 0);
            company.push(Arc::downgrade(shared));
        }
        company.len()
    })
}

/// Hashes as much of this stream as of those beside it; all of it when there are none. At least [`COMPANY_BYTES`] must wait.
fn hash(shared: &Arc<Mutex<Stream>>, own: &mut Stream) {
    let beside: Vec<_> = COMPANY.with_borrow(|company| company.iter().filter_map(Weak::upgrade).collect());
    // One that has moved to another thread may be at work there.
    let others = beside.iter().filter(|other| !Arc::ptr_eq(shared, other)).filter_map(|other| other.try_lock().ok());
    let mut others: Vec<_> = others.filter(|other| other.waiting.len() >= COMPANY_BYTES).take(LANES - 1).collect();
    let mut streams: Vec<&mut Stream> = vec![own];
    streams.extend(others.iter_mut().map(|other| &mut **other));
    let count = streams.iter().map(|stream| stream.waiting.len()).min().unwrap_or(0);
    hash_together(&mut streams, count / BLOCK_BYTES * BLOCK_BYTES);
    drop(others);
    COMPANY.with_borrow_mut(|company| {
        company.retain(|other| {
            let Some(other) = other.upgrade() else { return false };
            if Arc::ptr_eq(shared, &other) {
                return own.stays();
            }
            other.try_lock().map_or(true, |mut other| other.stays())
        });
    });
}

/// Hashes the first `count` waiting bytes, whole blocks, of each stream.
fn hash_together(streams: &mut [&mut Stream], count: usize) {
    let mut own_md5 = Vec::with_capacity(LANES);
    let mut own_sha256 = Vec::with_capacity(LANES);
    for Stream { waiting, md5, sha1, sha256, .. } in streams.iter_mut().map(|stream| &mut **stream) {
        let (blocks, _) = waiting.bytes()[..count].as_chunks();
        own_md5.extend(md5.as_mut().map(|md5| (&mut md5.digest, blocks)));
        own_sha256.extend(sha256.as_mut().map(|sha256| (&mut sha256.digest, blocks)));
        sha1.iter_mut().for_each(|sha1| sha1.digest.update(blocks.as_flattened()));
    }
    md5::compress(&mut own_md5);
    sha256::compress(&mut own_sha256);
    for stream in streams {
        stream.waiting.pass(count);
        // Among many streams none has much waiting, and so should not have the room for it.
        if stream.waiting.len() < COMPANY_BYTES {
            stream.waiting.shrink_to(COMPANY_BYTES);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hashes::{ANY_SIZE, AnyDigest, HashEntry};

    /// A table that wants all three digests up to a size.
    fn table(size: u64) -> HashTable {
        let digests = [AnyDigest::Md5([0; 16]), AnyDigest::Sha1([0; 20]), AnyDigest::Sha256([0; 32])];
        HashTable::new(digests.into_iter().map(|digest| HashEntry { digest, size, name: 0 }).collect())
    }

    fn noise(len: usize) -> Vec<u8> {
        (0..len as u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 11) as u8).collect()
    }

    fn assert_sums(sums: &Sums, bytes: &[u8]) {
        assert_eq!(sums.md5, Some(::md5::Md5::digest(bytes).into()), "{} bytes", bytes.len());
        assert_eq!(sums.sha1, Some(Sha1::digest(bytes).into()));
        assert_eq!(sums.sha256, Some(sha2::Sha256::digest(bytes).into()));
    }

    #[test]
    fn any_number_of_streams_in_any_pieces_have_their_own_digests() {
        let table = table(ANY_SIZE);
        for count in [1, 2, 3, 4, 7] {
            let contents: Vec<_> = (0..count).map(|n| noise(150_000 - 20_001 * n)).collect();
            let mut streams = vec![Running::new([&table].into_iter()); count];
            let mut at = vec![0; count];
            let pieces = [1, 4_096, 70_000, 63, 20_000, 5_000];
            for turn in 0.. {
                let index = turn % count;
                let end = contents[index].len().min(at[index] + pieces[turn % pieces.len()]);
                streams[index].update(&contents[index][at[index]..end], end as u64);
                at[index] = end;
                if at.iter().zip(&contents).all(|(at, content)| *at == content.len()) {
                    break;
                }
            }
            for (mut stream, content) in streams.into_iter().zip(&contents) {
                assert_sums(&stream.finish(content.len() as u64), content);
            }
        }
    }

    #[test]
    fn many_streams_have_little_waiting() {
        let table = table(ANY_SIZE);
        let mut streams = vec![Running::new([&table].into_iter()); 100];
        for position in 1..10 {
            streams.iter_mut().for_each(|stream| stream.update(&[0; 10_000], 10_000 * position));
        }
        let waiting: usize = streams.iter().flat_map(|stream| &stream.0).map(|shared| lock(shared).waiting.len()).sum();
        assert!(waiting < 100 * COMPANY_BYTES + LANES * WAITING_BYTES_MAX, "{waiting}");
    }

    #[test]
    fn a_copy_goes_its_own_way() {
        let table = table(ANY_SIZE);
        let mut stream = Running::new([&table].into_iter());
        stream.update(b"abc", 3);
        let mut copy = stream.clone();
        copy.update(b"d", 4);
        assert_sums(&stream.finish(3), b"abc");
        assert_sums(&copy.finish(4), b"abcd");
    }

    #[test]
    fn a_digest_is_dropped_when_the_stream_is_too_long() {
        let table = table(3);
        let mut running = Running::new([&table].into_iter());
        running.update(b"abc", 3);
        assert!(running.0.is_some());
        running.update(b"d", 4);
        assert!(running.0.is_none());
    }

    #[test]
    fn a_size_that_no_signature_has_is_not_hashed_to_the_end() {
        let table = table(3);
        for (content, hashed) in [(b"abc".as_slice(), true), (b"ab", false)] {
            let mut running = Running::new([&table].into_iter());
            running.update(content, content.len() as u64);
            running.drop_unwanted(content.len() as u64, [&table].into_iter());
            assert_eq!(running.finish(content.len() as u64).md5.is_some(), hashed);
        }
    }
}
