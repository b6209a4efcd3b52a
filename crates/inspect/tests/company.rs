//! Inspections beside each other: what they come to does not depend on the company, and none can harm the others.

use std::sync::Arc;

use digest::Batch;
use flow::{Context, In, Out};
use inspect::{Engine, Inspection, Progress};
use proptest::prelude::*;
use scan::{Builder, Database};
use stream::{Fuel, Limits, Object};

use crate::build;

/// The most bytes of mail that are fed at a time.
const PIECE_MAX: usize = 20_000;

fn noise(len: usize, seed: u32) -> Vec<u8> {
    (0..len as u32).map(|n| ((n ^ seed << 7).wrapping_mul(2_654_435_761) >> 13) as u8).collect()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Mails with attachments of various sizes, the last two of which can be read in two ways, and an engine that knows the MD5 of
/// the first, the SHA-1 of the second, the SHA-256 of the third attachment and so on.
fn mails() -> (Arc<Engine>, Vec<Vec<u8>>) {
    let contents: Vec<Vec<u8>> =
        [0, 500, 40_000, 70_000, 90_001, 200_000].into_iter().zip(1..).map(|(len, seed)| noise(len, seed)).collect();
    let mut signatures = String::new();
    for (number, content) in contents.iter().enumerate().skip(1) {
        let digest = match number % 3 {
            0 => hex(&digest::md5::digest(content)),
            1 => hex(&digest::sha1::digest(content)),
            _ => hex(&digest::sha256::digest(content)),
        };
        let size = if number % 2 == 0 { content.len().to_string() } else { "*".to_owned() };
        signatures += &format!("{digest}:{size}:Attached.{number}:73\n");
    }
    let mut builder = Builder::new();
    builder.add("a.hsb", signatures.as_bytes()).expect("digests");
    let database = Arc::new(Database::with_builtin().with_overlay(builder.build(), &[]));
    let mut mails: Vec<Vec<u8>> = contents.iter().map(|content| build::mail("a", content, 0)).collect();
    // Base64 that ends in the middle and goes on can be read in two ways: the scan of what came so far goes both.
    let mut two = build::mail("a", &contents[4], 0);
    let at = two.len() / 2;
    two.splice(at..at, *b"====");
    mails.push(two);
    mails.push(build::mail("a", &build::zip("b", &contents[3], true), 0));
    (Arc::new(Engine { database, limits: Limits::default() }), mails)
}

/// A mail on its way.
struct Way<'a> {
    inspection: Inspection,
    rest: &'a [u8],
    closed: bool,
    said: Vec<String>,
}

impl Way<'_> {
    fn new<'a>(engine: &Arc<Engine>, mail: &'a [u8]) -> Way<'a> {
        let object = Object { media_type: Some("message/rfc822".into()), ..Object::default() };
        let context = Context { object, ..Context::default() };
        Way { inspection: Inspection::new(engine.clone(), context), rest: mail, closed: false, said: Vec::new() }
    }

    /// Feeds a piece, or says that there is no more, and lets it work; whether it is done.
    fn go_on(&mut self, piece: usize, work: impl FnOnce(&mut Inspection) -> Progress) -> bool {
        if self.rest.is_empty() && !std::mem::replace(&mut self.closed, true) {
            self.inspection.tell(In::Finish);
        }
        let piece = &self.rest[..piece.min(self.rest.len())];
        self.rest = &self.rest[self.inspection.tell(In::Feed(piece))..];
        let progress = work(&mut self.inspection);
        while let Some(out) = self.inspection.hear() {
            match out {
                Out::Finding(_) | Out::Verdict(_) => self.said.push(format!("{out:?}")),
                _ => {}
            }
        }
        progress == Progress::Done
    }
}

/// Verdicts of the mails, each alone.
fn alone(engine: &Arc<Engine>, mails: &[Vec<u8>]) -> Vec<Vec<String>> {
    let said = mails.iter().map(|mail| {
        let mut way = Way::new(engine, mail);
        while !way.go_on(PIECE_MAX, |inspection| inspection.work(&mut Fuel::unlimited())) {}
        way.said
    });
    said.collect()
}

#[test]
fn what_is_attached_is_found_by_each_digest() {
    let (engine, mails) = mails();
    let found: Vec<String> = alone(&engine, &mails).into_iter().map(|said| said.concat()).collect();
    for (number, wanted) in [(1, 1), (2, 2), (3, 3), (4, 4), (5, 5), (7, 3)] {
        assert!(found[number].contains(&format!("Attached.{wanted}.")), "{number}: {}", found[number]);
    }
    assert!(!found[0].contains("Attached."), "{}", found[0]);
    assert!(found[6].contains("TwoReadings"), "{}", found[6]);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, failure_persistence: None, ..ProptestConfig::default() })]

    /// The law: whatever the company and the room, whenever the batch is run, and whoever goes in the middle.
    #[test]
    fn what_an_inspection_comes_to_does_not_depend_on_the_company(
        script in proptest::collection::vec((0_usize..24, 0_usize..PIECE_MAX, 0_u8..64), 0..600),
        streams in 0_usize..12,
    ) {
        let (engine, mails) = mails();
        let alone = alone(&engine, &mails);
        let mut batch = Batch::new(streams * (64 << 10), 64 << 10);
        let mut ways: Vec<(usize, Option<Way<'_>>)> =
            (0..24).map(|number| (number % mails.len(), Some(Way::new(&engine, &mails[number % mails.len()])))).collect();
        for (number, piece, chance) in script {
            let (_, way) = &mut ways[number];
            if chance == 0 {
                // It goes, with all that it has to be hashed.
                *way = None;
            } else if let Some(way) = way && !(way.closed && way.inspection.is_stopped()) {
                let fuel = if chance < 8 { 1_000 } else { 200_000 };
                way.go_on(piece + 1, |inspection| inspection.work_beside(&mut batch, &mut Fuel::new(fuel)));
            }
            if batch.is_due() && chance > 16 {
                batch.run();
            }
        }
        for (mail, way) in ways {
            let Some(mut way) = way else { continue };
            for turn in 0.. {
                prop_assert!(turn < 100_000, "it comes to no end");
                if way.go_on(PIECE_MAX, |inspection| inspection.work_beside(&mut batch, &mut Fuel::new(100_000))) {
                    break;
                }
                if turn % 3 == 0 {
                    batch.run();
                }
            }
            prop_assert_eq!(&way.said, &alone[mail]);
        }
        batch.run();
        prop_assert_eq!(batch.streams(), 0);
    }
}

#[test]
fn a_batch_that_is_never_run_holds_nobody_up() {
    let (engine, mails) = mails();
    let alone = alone(&engine, &mails);
    let mut batch = Batch::new(256 << 10, 64 << 10);
    for (mail, alone) in mails.iter().zip(alone) {
        let mut way = Way::new(&engine, mail);
        let mut turns = 0;
        while !way.go_on(PIECE_MAX, |inspection| inspection.work_beside(&mut batch, &mut Fuel::unlimited())) {
            turns += 1;
            assert!(turns < 10_000);
        }
        assert_eq!(way.said, alone);
    }
}

#[test]
fn a_digest_that_is_lost_with_its_batch_is_no_clean_bill() {
    let (engine, mails) = mails();
    let (mut one, mut other) = (Batch::new(256 << 10, 64 << 10), Batch::new(256 << 10, 64 << 10));
    let mut way = Way::new(&engine, &mails[3]);
    let mut turns = 0;
    while !way.go_on(PIECE_MAX, |inspection| {
        turns += 1;
        let batch = if turns < 8 { &mut one } else { &mut other };
        inspection.work_beside(batch, &mut Fuel::unlimited())
    }) {}
    let lost = way.said.iter().any(|said| said.contains("Heuristics.Limits.Exceeded.Signatures"));
    assert!(lost, "{:?}", way.said);
}
