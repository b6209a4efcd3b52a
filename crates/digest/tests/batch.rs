//! Streams in company: each has the digests that it has alone, and the company takes no harm from any.

use digest::{Batch, Sums, Ticket, Wanted, md5, sha1, sha256};
use proptest::collection::vec;
use proptest::prelude::*;

const STREAM_BYTES: usize = 64 << 10;

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

    /// The law: whatever the company, the pieces, the room, and whenever it is run.
    #[test]
    fn a_digest_does_not_depend_on_the_company(script in vec(any::<u8>(), 0..400)) {
        digest::fuzz_batch(&script);
    }
}

#[test]
fn streams_that_are_run_when_it_is_due_are_never_hashed_alone() {
    let contents: Vec<Vec<u8>> = (0..16).map(|seed| noise(300_000 + 10_000 * seed, seed)).collect();
    let mut batch = Batch::new(16 * STREAM_BYTES, STREAM_BYTES);
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
fn streams_wait_as_long_as_there_is_room_and_leave_half_of_it() {
    let mut batch = Batch::new(2 << 20, 1 << 20);
    let tickets: Vec<Ticket> = (0..16).map(|_| batch.open(ALL)).collect();
    // Three quarters of the room, in turns.
    for round in 0..6 {
        for (number, ticket) in tickets.iter().enumerate() {
            assert!(!batch.is_due(), "{number} in round {round}");
            batch.update(ticket, &noise(16 << 10, number + 100 * round));
        }
    }
    assert!(batch.is_due());
    // All of it: of each that is less than is hashed at a time.
    assert_eq!(batch.run(), 16 * (96 << 10));
    for (number, ticket) in tickets.into_iter().enumerate() {
        let content: Vec<u8> = (0..6).flat_map(|round| noise(16 << 10, number + 100 * round)).collect();
        assert_eq!(batch.finish(ticket), alone(&content));
    }
}

#[test]
fn what_is_not_wanted_at_its_end_was_never_hashed() {
    let mut batch = Batch::new(8 << 20, 1 << 20);
    let unwanted = batch.open(ALL);
    for round in 0..60 {
        batch.update(&unwanted, &noise(16 << 10, round));
        assert!(!batch.is_due());
    }
    batch.keep(&unwanted, Wanted::default());
    batch.close(&unwanted);
    assert!(!batch.is_due() && batch.is_hashed(&unwanted));
    assert_eq!(batch.run(), 0);
    assert_eq!(batch.finish(unwanted), Some(Sums { size: 60 * (16 << 10), ..Sums::default() }));
}

#[test]
fn what_is_certainly_wanted_waits_for_company_and_no_longer() {
    let mut batch = Batch::new(8 << 20, 1 << 20);
    let (certain, other) = (batch.open(ALL), batch.open(ALL));
    batch.be_certain(&certain);
    batch.update(&other, &noise(500_000, 1));
    for round in 0..8 {
        assert!(!batch.is_due(), "{round}");
        batch.update(&certain, &noise(16 << 10, round));
    }
    assert!(batch.is_due());
    assert_eq!(batch.run(), 2 * (128 << 10));
    assert!(batch.is_hashed(&certain) && !batch.is_hashed(&other));
    let content: Vec<u8> = (0..8).flat_map(|round| noise(16 << 10, round)).collect();
    assert_eq!(batch.finish(certain), alone(&content));
    assert_eq!(batch.finish(other), alone(&noise(500_000, 1)));
}

#[test]
fn of_a_long_stream_no_more_is_hashed_at_a_time_than_it_must() {
    let mut batch = Batch::new(8 << 20, 1 << 20);
    let long = batch.open(ALL);
    let mut content = Vec::new();
    for round in 0..200 {
        let piece = noise(16 << 10, round);
        batch.update(&long, &piece);
        content.extend(piece);
        if batch.is_due() {
            assert_eq!(batch.run(), 256 << 10);
            assert!(!batch.is_due() && !batch.is_hashed(&long));
        }
    }
    assert_eq!(batch.finish(long), alone(&content));
}

#[test]
fn a_batch_without_room_hashes_what_comes_at_once() {
    let mut batch = Batch::new(0, STREAM_BYTES);
    let ticket = batch.open(ALL);
    noise(100_000, 1).chunks(999).for_each(|piece| batch.update(&ticket, piece));
    assert!(batch.is_hashed(&ticket));
    assert_eq!(batch.finish(ticket), alone(&noise(100_000, 1)));
}

#[test]
fn a_closed_stream_is_hashed_by_the_next_run_and_the_others_wait_on() {
    let mut batch = Batch::new(4 * STREAM_BYTES, STREAM_BYTES);
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
fn a_stream_that_goes_leaves_its_room_to_the_others() {
    let mut batch = Batch::new(2 * STREAM_BYTES, STREAM_BYTES);
    let stays = batch.open(ALL);
    batch.update(&stays, &noise(1_000, 1));
    for round in 0..100 {
        let goes = batch.open(ALL);
        batch.update(&goes, &noise(40_000, round));
        assert!(!batch.is_hashed(&goes), "there is room, round {round}");
    }
    // The last of them has gone, too, but nobody has looked since.
    assert!(batch.streams() <= 3 && batch.held_bytes() < 3 * STREAM_BYTES, "{batch:?}");
    batch.run();
    assert_eq!(batch.streams(), 1);
    assert_eq!(batch.finish(stays), alone(&noise(1_000, 1)));
}

#[test]
fn what_comes_slowly_is_hashed_beside_others_and_takes_no_room_meanwhile() {
    let mut batch = Batch::new(16 * STREAM_BYTES, STREAM_BYTES);
    let slow: Vec<Ticket> = (0..5).map(|_| batch.open(ALL)).collect();
    for (ticket, seed) in slow.iter().zip(0..) {
        batch.update(ticket, &noise(40_000, seed));
    }
    assert_eq!(batch.tidy(), 0, "it may be of a client that is fast");
    let fast = batch.open(ALL);
    batch.update(&fast, &noise(20_000, 9));
    assert!(batch.tidy() >= 5 * 39_900);
    assert!(slow.iter().all(|ticket| batch.is_hashed(ticket)));
    assert!(!batch.is_hashed(&fast));
    batch.tidy();
    batch.tidy();
    assert_eq!(batch.room_bytes(), 0);
    assert!(batch.is_hashed(&fast));
    assert_eq!(batch.finish(fast), alone(&noise(20_000, 9)));
    for (ticket, seed) in slow.into_iter().zip(0..) {
        assert_eq!(batch.finish(ticket), alone(&noise(40_000, seed)));
    }
}

#[test]
fn a_panic_in_one_stream_is_no_matter_to_the_others() {
    let mut batch = Batch::new(2 * STREAM_BYTES, STREAM_BYTES);
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
    let (mut one, mut other) = (Batch::new(2 * STREAM_BYTES, STREAM_BYTES), Batch::new(2 * STREAM_BYTES, STREAM_BYTES));
    let (ticket, own) = (one.open(ALL), other.open(ALL));
    other.update(&own, b"abc");
    other.update(&ticket, b"not here");
    assert!(other.copy(&ticket).is_none());
    assert_eq!(other.finish(ticket), None);
    assert_eq!(other.finish(own), alone(b"abc"));
}

#[test]
fn what_a_batch_holds_is_bounded_however_many_streams_there_are() {
    let mut batch = Batch::new(16 * STREAM_BYTES, STREAM_BYTES);
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
        assert!(batch.held_bytes() < 16 * STREAM_BYTES + 1_024 * 512, "{} bytes", batch.held_bytes());
    }
    for (ticket, content) in tickets.into_iter().zip(&contents) {
        assert_eq!(batch.finish(ticket), alone(content));
    }
}
