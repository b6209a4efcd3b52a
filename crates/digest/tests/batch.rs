//! Streams in company: each has the digests that it has alone, and the company takes no harm from any.

use digest::{Batch, Sums, Ticket, Wanted, md5, sha1, sha256};
use proptest::collection::vec;
use proptest::prelude::*;

const SEAT_BYTES: usize = 64 << 10;

const ALL: Wanted = Wanted { md5: true, sha1: true, sha256: true };

fn noise(len: usize, seed: usize) -> Vec<u8> {
    (0..len).map(|n| (((n ^ seed) as u32).wrapping_mul(2_654_435_761) >> 11) as u8).collect()
}

fn alone(content: &[u8]) -> Option<Sums> {
    Some(Sums {
        size: content.len() as u64,
        md5: Some(md5::digest(content)),
        sha1: Some(sha1::digest(content)),
        sha256: Some(sha256::digest(content)),
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// The law: whatever the company, the pieces, the seats, and whenever it is run.
    #[test]
    fn a_digest_does_not_depend_on_the_company(script in vec(any::<u8>(), 0..400)) {
        digest::fuzz_batch(&script);
    }
}

#[test]
fn streams_that_are_run_when_it_is_due_are_never_hashed_alone() {
    let contents: Vec<Vec<u8>> = (0..16).map(|seed| noise(300_000 + 10_000 * seed, seed)).collect();
    let mut batch = Batch::new(16, SEAT_BYTES);
    let tickets: Vec<Ticket> = contents.iter().map(|_| batch.open(ALL)).collect();
    let mut hashed = 0;
    for at in (0..500_000).step_by(4_000) {
        for (content, ticket) in contents.iter().zip(&tickets) {
            batch.update(ticket, content.get(at..content.len().min(at + 4_000)).unwrap_or_default());
            if batch.is_due() {
                hashed += batch.run();
            }
        }
    }
    tickets.iter().for_each(|ticket| batch.close(ticket));
    hashed += batch.run();
    assert!(tickets.iter().all(|ticket| batch.is_hashed(ticket)));
    let whole: usize = contents.iter().map(|content| content.len() / 64 * 64).sum();
    assert_eq!(hashed, whole as u64);
    for (content, ticket) in contents.iter().zip(tickets) {
        assert_eq!(batch.finish(ticket), alone(content));
    }
    assert_eq!(batch.streams(), 0);
}

#[test]
fn streams_wait_until_there_are_some_for_all_lanes() {
    let mut batch = Batch::new(32, 128 << 10);
    let tickets: Vec<Ticket> = (0..16).map(|_| batch.open(ALL)).collect();
    for (number, ticket) in tickets.iter().enumerate() {
        assert!(!batch.is_due(), "{number}");
        batch.update(ticket, &noise(64 << 10, number));
    }
    assert!(batch.is_due());
    assert_eq!(batch.run(), 16 * (64 << 10));
    for (number, ticket) in tickets.into_iter().enumerate() {
        assert_eq!(batch.finish(ticket), alone(&noise(64 << 10, number)));
    }
}

#[test]
fn a_closed_stream_is_hashed_by_the_next_run_and_the_others_wait_on() {
    let mut batch = Batch::new(4, SEAT_BYTES);
    let (closed, other) = (batch.open(ALL), batch.open(ALL));
    batch.update(&closed, &noise(10_000, 1));
    batch.update(&other, &noise(30_000, 2));
    assert!(!batch.is_due());
    batch.close(&closed);
    assert!(batch.is_due() && !batch.is_hashed(&closed));
    // 9,984 bytes of each.
    assert_eq!(batch.run(), 2 * 9_984);
    assert!(batch.is_hashed(&closed) && !batch.is_hashed(&other) && !batch.is_due());
    assert_eq!(batch.finish(closed), alone(&noise(10_000, 1)));
    assert_eq!(batch.finish(other), alone(&noise(30_000, 2)));
}

#[test]
fn a_stream_that_goes_leaves_its_seat_to_the_others() {
    let mut batch = Batch::new(2, SEAT_BYTES);
    let stays = batch.open(ALL);
    batch.update(&stays, &noise(1_000, 1));
    for round in 0..100 {
        let goes = batch.open(ALL);
        batch.update(&goes, &noise(5_000, round));
    }
    // The last of them has gone, too, but nobody has looked since.
    assert!(batch.streams() <= 3 && batch.held_bytes() < 3 * SEAT_BYTES, "{batch:?}");
    batch.run();
    assert_eq!(batch.streams(), 1);
    assert_eq!(batch.finish(stays), alone(&noise(1_000, 1)));
}

#[test]
fn a_panic_in_one_stream_is_no_matter_to_the_others() {
    let mut batch = Batch::new(2, SEAT_BYTES);
    let stays = batch.open(ALL);
    batch.update(&stays, &noise(1_000, 1));
    let broken = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        let goes = batch.open(ALL);
        batch.update(&goes, &noise(40_000, 2));
        panic!("in the middle of its turn");
    }));
    assert!(broken.is_err());
    batch.run();
    assert_eq!(batch.streams(), 1);
    assert_eq!(batch.finish(stays), alone(&noise(1_000, 1)));
}

#[test]
fn a_ticket_of_another_batch_is_not_known() {
    let (mut one, mut other) = (Batch::new(2, SEAT_BYTES), Batch::new(2, SEAT_BYTES));
    let (ticket, own) = (one.open(ALL), other.open(ALL));
    other.update(&own, b"abc");
    other.update(&ticket, b"not here");
    assert!(other.copy(&ticket).is_none());
    assert_eq!(other.finish(ticket), None);
    assert_eq!(other.finish(own), alone(b"abc"));
}

#[test]
fn what_a_batch_holds_is_bounded_however_many_streams_there_are() {
    let mut batch = Batch::new(16, SEAT_BYTES);
    let tickets: Vec<Ticket> = (0..1_000).map(|_| batch.open(ALL)).collect();
    let mut contents = vec![Vec::new(); tickets.len()];
    for round in 0..20 {
        for (ticket, content) in tickets.iter().zip(&mut contents) {
            let piece = noise(100 + 13 * round, round);
            batch.update(ticket, &piece);
            content.extend(piece);
            if batch.is_due() {
                batch.run();
            }
        }
        assert!(batch.held_bytes() < 16 * SEAT_BYTES + 1_024 * 512, "{} bytes", batch.held_bytes());
    }
    for (ticket, content) in tickets.into_iter().zip(&contents) {
        assert_eq!(batch.finish(ticket), alone(content));
    }
}
