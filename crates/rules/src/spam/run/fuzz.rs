//! Fuzz body.

use super::{Engine, EngineOptions, Expressions, Outcome, Report, RunLimits, Scratch};
use crate::spam::limits::Limits;
use crate::spam::loader::{File, Loader, Options};
use crate::spam::message::{Message, MessageLimits};

/// Fuzz body: rules, and behind the first zero byte a mail, with small limits. The mail comes to the same twice, in used
/// memory, too; every score is a number, and a report can be made.
pub fn fuzz_check(data: &[u8]) {
    let split = data.iter().position(|&byte| byte == 0).unwrap_or(data.len());
    let (rules, mail) = (&data[..split], data.get(split + 1..).unwrap_or_default());
    let limits =
        Limits { rules_max: 100, expression_bytes_max: 2048, replaced_bytes_max: 8 << 10, ..Limits::default() };
    let options = Options { default_plugins: true, local_tests_only: true, ..Options::default() };
    let mut loader = Loader::new(options, limits);
    loader.read(&File { name: "a.cf".into(), bytes: rules.to_vec() }, &mut |_, _| Err(String::new()));
    let limits = RunLimits {
        steps_max: 200_000,
        rule_steps_max: 20_000,
        hits_max: 100,
        addresses_max: 50,
        received_max: 10,
        scratch_bytes_max: 1 << 20,
    };
    let engine = Engine::new(loader.finish(&Expressions), EngineOptions { limits, ..EngineOptions::default() });
    let small = MessageLimits { fields_max: 200, parts_max: 20, uris_max: 50, ..MessageLimits::default() };
    let mail = Message::read(mail, engine.reading(), &small);
    let mut scratch = Scratch::default();
    let outcome = engine.check(&mail, 1_000_000_000, true, &mut scratch);
    assert_eq!(shown(&outcome), shown(&engine.check(&mail, 1_000_000_000, true, &mut scratch)));
    assert!(outcome.total.value().is_finite());
    assert!(outcome.hits.iter().all(|hit| (hit.rule as usize) < engine.rules().names().len()));
    let _ = Report::new(&engine, &mail, &outcome, "host").text();
}

fn shown(outcome: &Outcome) -> String {
    format!("{:?} {:?} {}", outcome.hits, outcome.exhausted, outcome.total)
}
