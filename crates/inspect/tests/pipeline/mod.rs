//! One object through one inspection, cut and fuelled as a test likes.
#![allow(dead_code, reason = "each test program uses its own part")]

use std::sync::Arc;

use flow::{Blank, Context, Field, In, ObjectReport, Out, Parts, Policy, Verdict, Wants};
use inspect::{Engine, Inspection, Progress};
use stream::{Fuel, Object};

/// Results of an inspection.
#[derive(Default)]
pub struct Seen {
    pub verdict: Verdict,
    pub objects: Vec<ObjectReport>,
    pub blanks: Vec<Blank>,
    pub cleared: u64,
    pub body: Option<u64>,
    pub fields: Vec<Field>,
    pub parts: Option<Parts>,
    pub window_bytes_max: usize,
}

impl Seen {
    /// The names of what was found.
    pub fn names(&self) -> Vec<&str> {
        self.verdict.findings.iter().map(|spotted| &*spotted.finding.name).collect()
    }
}

/// How an inspection is driven.
#[derive(Debug, Clone, Copy)]
pub struct Drive {
    pub piece: usize,
    pub fuel: u64,
    pub mail: bool,
}

/// A whole object, all at once.
pub fn inspect(engine: &Arc<Engine>, policy: Policy, bytes: &[u8]) -> Seen {
    drive(engine, policy, bytes, Drive { piece: 64 << 10, fuel: u64::MAX, mail: false })
}

pub fn drive(engine: &Arc<Engine>, policy: Policy, bytes: &[u8], how: Drive) -> Seen {
    drive_in(engine, Context { policy, ..Context::default() }, bytes, how)
}

pub fn drive_in(engine: &Arc<Engine>, context: Context, bytes: &[u8], how: Drive) -> Seen {
    let object = Object { media_type: how.mail.then(|| "message/rfc822".into()), ..Object::default() };
    let wants = Wants { objects: true, ..context.wants.clone() };
    let mut inspection = Inspection::new(engine.clone(), Context { object, wants, ..context });
    let mut seen = Seen::default();
    for mut piece in bytes.chunks(how.piece) {
        while !piece.is_empty() {
            let taken = inspection.tell(In::Feed(piece));
            piece = &piece[taken..];
            work(&mut inspection, &mut seen, how.fuel);
        }
    }
    inspection.tell(In::Finish);
    assert_eq!(work(&mut inspection, &mut seen, how.fuel), Progress::Done);
    seen.objects.sort_by_key(|object| object.id);
    seen
}

fn work(inspection: &mut Inspection, seen: &mut Seen, fuel: u64) -> Progress {
    for _ in 0..10_000_000 {
        let progress = inspection.work(&mut Fuel::new(fuel));
        seen.window_bytes_max = seen.window_bytes_max.max(inspection.window_bytes());
        while let Some(out) = inspection.hear() {
            match out {
                Out::Object(object) => seen.objects.push(*object),
                Out::Verdict(verdict) => seen.verdict = verdict,
                Out::Blank(blank) => seen.blanks.push(blank),
                Out::Cleared(offset) => seen.cleared = offset,
                Out::Body(offset) => seen.body = Some(offset),
                Out::Field(field) => seen.fields.push(field),
                Out::Parts(parts) => seen.parts = Some(parts),
                Out::Finding(_) | Out::Forged(_) | Out::Ask(_) | Out::Recall(_) => {}
                Out::Terms(_) | Out::Present | Out::Alert(_) => {}
            }
        }
        if progress != Progress::Tired {
            return progress;
        }
    }
    panic!("the inspection does not come to an end");
}
