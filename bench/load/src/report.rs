//! The answer to one run, as one line of JSON.
//!
//! | field | meaning |
//! |---|---|
//! | `delivered` | mails that arrived at the sink (without a sink: were accepted) |
//! | `accepted`, `refused`, `lost` | how they ended for their sender; `reply` is one of the refusals |
//! | `duplicates`, `strangers` | arrivals too many, and arrivals that belong to no mail of this run |
//! | `sink_bytes` | bytes on the wire of the mails that arrived |
//! | `wall_s`, `mails_s`, `payload_mbit_s` | from the first connection to the last arrival |
//! | `latency_ms` | connection begun to arrival at the sink: `{"median": ..., "min": ..., "p95": ..., "max": ...}` |
//! | `accept_ms` | connection begun to the reply to the final dot |
//! | `dot_ms` | final dot handed to the system to the reply to it |
//!
//! Times of mails that were not delivered (latency) or not accepted (the others) are left out.

use crate::ledger::Ledger;
use crate::run::Run;
use crate::sender::{Outcome, Record};

/// What is said of an order that cannot be done.
pub fn refusal(reason: &str) -> String {
    format!("{{\"error\": {}}}", quoted(reason))
}

/// What is said of a run.
pub fn report(run: &Run, ledger: &Ledger, records: &[Record]) -> String {
    let accepted: Vec<&Record> = records.iter().filter(|record| record.outcome == Outcome::Accepted).collect();
    let ends = ends(ledger, records);
    let wall_s = ends.iter().map(|&(_, end)| end).max().unwrap_or(0) as f64 / 1e9;
    let payload: u64 = ends.iter().map(|&(index, _)| run.source.payload_bytes(index)).sum();
    let per_second = |amount: f64| if wall_s > 0.0 { amount / wall_s } else { 0.0 };
    let refusals: Vec<&str> = records.iter().filter_map(refusal_text).collect();
    let lost = records.iter().filter(|record| record.outcome == Outcome::Lost).count();
    let fields = [
        ("mails", run.mails.to_string()),
        ("senders", run.senders.to_string()),
        ("delivered", ends.len().to_string()),
        ("accepted", accepted.len().to_string()),
        ("refused", refusals.len().to_string()),
        ("lost", lost.to_string()),
        ("duplicates", ledger.duplicates().to_string()),
        ("strangers", ledger.strangers().to_string()),
        ("sink_bytes", ledger.bytes().to_string()),
        ("wall_s", format!("{wall_s:.6}")),
        ("mails_s", format!("{:.2}", per_second(ends.len() as f64))),
        ("payload_mbit_s", format!("{:.3}", per_second(payload as f64 * 8.0 / 1e6))),
        ("latency_ms", spread(ends.iter().map(|&(index, end)| end - records[index].begun).collect())),
        ("accept_ms", spread(accepted.iter().map(|record| record.replied - record.begun).collect())),
        ("dot_ms", spread(accepted.iter().map(|record| record.replied - record.dotted).collect())),
        ("reply", quoted(refusals.first().unwrap_or(&""))),
    ];
    let fields: Vec<String> = fields.iter().map(|(name, value)| format!("\"{name}\": {value}")).collect();
    format!("{{{}}}", fields.join(", "))
}

/// Index and end of each delivered mail.
fn ends(ledger: &Ledger, records: &[Record]) -> Vec<(usize, u64)> {
    let end = |(index, record): (usize, &Record)| match record.outcome {
        _ if ledger.sunk => Some((index, ledger.arrival(index))).filter(|&(_, time)| time > 0),
        Outcome::Accepted => Some((index, record.replied)),
        _ => None,
    };
    records.iter().enumerate().filter_map(end).collect()
}

fn refusal_text(record: &Record) -> Option<&str> {
    match &record.outcome {
        Outcome::Refused(text) => Some(text),
        _ => None,
    }
}

/// Median and limits of some times, in milliseconds.
pub fn spread(mut nanoseconds: Vec<u64>) -> String {
    nanoseconds.sort_unstable();
    let at = |hundredths: usize| {
        let index = (nanoseconds.len() * hundredths / 100).min(nanoseconds.len().saturating_sub(1));
        nanoseconds.get(index).copied().unwrap_or(0) as f64 / 1e6
    };
    let (min, median, p95, max) = (at(0), at(50), at(95), at(100));
    format!("{{\"median\": {median:.4}, \"min\": {min:.4}, \"p95\": {p95:.4}, \"max\": {max:.4}}}")
}

fn quoted(text: &str) -> String {
    let plain: String = text.chars().map(|c| if c.is_control() || c == '"' || c == '\\' { ' ' } else { c }).collect();
    format!("\"{plain}\"")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_of_an_even_number_is_the_upper_one() {
        let text = spread(vec![4_000_000, 1_000_000, 2_000_000, 3_000_000]);
        assert_eq!(text, r#"{"median": 3.0000, "min": 1.0000, "p95": 4.0000, "max": 4.0000}"#);
    }

    #[test]
    fn a_reply_cannot_break_the_line() {
        assert_eq!(refusal("a \"b\"\\\r"), r#"{"error": "a  b   "}"#);
    }
}
