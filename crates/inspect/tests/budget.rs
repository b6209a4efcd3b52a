//! The budget of processor time, with a clock that runs a millisecond whenever it is read.

use std::cell::Cell;
use std::sync::Arc;

use crate::build::{eicar, gzip, mail, tar};
use flow::{Action, Context, In, Out, Policy, Verdict};
use inspect::{Clocks, Engine, Inspection, Progress};
use scan::Database;
use stream::{Fuel, Limits, Object};

const TIME: &str = "Heuristics.Limits.Exceeded.Time";

thread_local! {
    static NOW: Cell<u64> = const { Cell::new(0) };
}

fn clock() -> u64 {
    NOW.set(NOW.get() + 1_000_000);
    NOW.get()
}

fn inspection(cpu_ms_max: u64, policy: Policy) -> Inspection {
    let limits = Limits { cpu_ms_max, ..Limits::default() };
    let engine = Arc::new(Engine { database: Arc::new(Database::with_builtin()), limits });
    let object = Object { media_type: Some("message/rfc822".into()), ..Object::default() };
    Inspection::new(engine, Context { policy, object, ..Context::default() })
        .with_clocks(Clocks { passed: clock, worked: clock })
}

/// Many small members, the last of which is the test file.
fn many() -> Vec<u8> {
    let virus = eicar();
    let names: Vec<String> = (0..3_000).map(|number| format!("{number}")).collect();
    let mut members: Vec<(&str, &[u8])> = names.iter().map(|name| (&**name, &b"nothing"[..])).collect();
    members.push(("e.com", &virus));
    mail("a.tar.gz", &gzip(&tar(&members)), 0)
}

/// The verdict, how much was cleared before the end, and how many calls it took.
fn drive(mut inspection: Inspection, content: &[u8], fuel: u64) -> (Verdict, u64, u32) {
    let (mut cleared, mut calls, mut verdict) = (0, 0, None);
    let mut work = |inspection: &mut Inspection| {
        loop {
            calls += 1;
            let progress = inspection.work(&mut Fuel::new(fuel));
            while let Some(out) = inspection.hear() {
                match out {
                    Out::Cleared(offset) => cleared = offset,
                    Out::Verdict(told) => verdict = Some(told),
                    _ => {}
                }
            }
            if progress != Progress::Tired {
                return (progress, cleared);
            }
        }
    };
    for mut piece in content.chunks(1_000) {
        while !piece.is_empty() {
            piece = &piece[inspection.tell(In::Feed(piece))..];
            work(&mut inspection);
        }
    }
    let before = work(&mut inspection).1;
    inspection.tell(In::Finish);
    assert_eq!(work(&mut inspection).0, Progress::Done);
    (verdict.expect("a verdict"), before, calls)
}

#[test]
fn what_takes_too_long_ends_with_a_finding_and_a_verdict() {
    let content = many();
    for fuel in [10_000, u64::MAX] {
        let (verdict, cleared, _) = drive(inspection(20, Policy::default()), &content, fuel);
        let names: Vec<&str> = verdict.findings.iter().map(|spotted| &*spotted.finding.name).collect();
        assert_eq!(names, [TIME], "and nothing more was opened");
        assert_eq!((verdict.action, cleared), (Action::Reject, content.len() as u64));
        let (verdict, ..) = drive(inspection(1_000_000, Policy::default()), &content, fuel);
        assert!(verdict.findings.iter().all(|spotted| spotted.finding.name != TIME), "there is time enough");
        assert_eq!(verdict.action, Action::Reject, "the last member is found");
    }
}

#[test]
fn what_was_not_looked_at_cannot_be_blanked_in_part() {
    let policy = Policy { on_limit: Action::Blank, ..Policy::default() };
    let (verdict, ..) = drive(inspection(20, policy), &many(), u64::MAX);
    assert_eq!((verdict.action, verdict.blankable), (Action::Blank, false));
    let policy = Policy { on_limit: Action::Pass, ..Policy::default() };
    assert_eq!(drive(inspection(20, policy), &many(), u64::MAX).0.action, Action::Pass);
}

#[test]
fn one_call_with_much_fuel_is_bounded_too() {
    let bomb = gzip(&vec![0; 60 << 20]);
    let mut inspection = inspection(100, Policy::default());
    let mut rest = &bomb[..];
    while !rest.is_empty() && !inspection.is_stopped() {
        let before = NOW.get();
        rest = &rest[inspection.tell(In::Feed(rest))..];
        inspection.work(&mut Fuel::unlimited());
        assert!(NOW.get() - before < 200_000_000, "in the middle of a call");
    }
    assert!(inspection.is_stopped());
}

#[test]
fn a_thread_that_waits_is_not_charged() {
    let content = many();
    let clocks = Clocks { passed: hours, worked: || 0 };
    let engine = inspection(20, Policy::default()).with_clocks(clocks);
    let (verdict, ..) = drive(engine, &content, u64::MAX);
    assert!(verdict.findings.iter().all(|spotted| spotted.finding.name != TIME), "{:?}", verdict.findings);
}

/// A clock that runs an hour whenever it is read.
fn hours() -> u64 {
    NOW.set(NOW.get() + 3_600_000_000_000);
    NOW.get()
}
