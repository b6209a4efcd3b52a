//! Fuzz body: rules, and a text that stands in all kinds of buffers.
//!
//! A seed is rules and the text with a zero byte between them.

use core::net::IpAddr;

use super::buffer::{App, Buffer, Direction};
use super::flow::{Alert, Desk, Flow, Site, Tuple, Verdict};
use super::limits::Limits;
use super::rule::Transport;
use super::set::{Loader, RuleSet};
use super::transaction::Transaction;

/// Limits that mutants reach.
const LIMITS: Limits = Limits {
    file_bytes_max: 64 << 10,
    rule_bytes_max: 4 << 10,
    rules_max: 100,
    tests_max: 20,
    items_max: 50,
    problems_max: 20,
    set_entries_max: 10,
    window_bytes: 64,
    buffers_max: 20,
    tries_max: 200,
    expression_steps_max: 20_000,
    work_max: 1 << 20,
    work_a_byte: 64,
    bits_max: 10,
};

/// Fuzz body: alerts and the verdict are the same however the text is cut.
pub fn fuzz_rules(data: &[u8]) {
    let at = data.iter().position(|&byte| byte == 0).unwrap_or(data.len());
    let (rules, text) = (&data[..at], data.get(at + 1..).unwrap_or_default());
    let mut loader = Loader::new(LIMITS);
    loader.file("rules", rules);
    loader.thresholds("thresholds", text);
    let set = loader.finish();
    assert!(set.problems().len() <= LIMITS.problems_max);
    assert!(set.problems().iter().all(|problem| !problem.to_string().contains('\n')));
    let whole = run(&set, text, text.len().max(1));
    for size in [1, 7] {
        assert_eq!(run(&set, text, size), whole, "in pieces of {size}");
    }
}

fn run(rules: &RuleSet, text: &[u8], size: usize) -> (Vec<Alert>, Verdict) {
    let mut site = Site::default();
    let peer = |last| (IpAddr::from([10, 0, 0, last]), u16::from(last));
    let tuple = Tuple { client: peer(1), server: peer(2), transport: Transport::Tcp };
    let mut flow = Flow::new(tuple, Some(App::Http), &mut site);
    let mut desk = Desk { rules, site: &mut site, now_ms: 0 };
    let mut transaction = Transaction::new();
    for direction in [Direction::ToServer, Direction::ToClient] {
        for buffer in [Buffer::Uri, Buffer::Method, Buffer::StatCode, Buffer::RequestHeader] {
            transaction.fill(rules, direction, buffer, text);
        }
        flow.inspect(&mut transaction, direction, &mut desk);
        for piece in text.chunks(size) {
            flow.payload(direction, piece, &mut desk);
        }
        for piece in text.chunks(size) {
            flow.feed(&mut transaction, direction, Buffer::FileData, piece, &mut desk);
        }
        flow.turn(direction, &mut desk);
        flow.end(&mut transaction, direction, &mut desk);
    }
    (flow.alerts(), flow.verdict())
}
