//! Expressions over text, each engine beside its peers: `cargo bench -p sluice-pattern --bench expression`.
//!
//! The text is made of words, with what the expressions look for now and then. Printed are MB/s when all matches are looked
//! for, the number of matches, and the bytes that a search holds. `regex` cannot do those that are not regular, and
//! `fancy-regex` searches text, not bytes.

use std::time::Instant;

use pattern::expression::{Expression, Flags, Progress, Want};
use stream::Fuel;

const TEXT_BYTES: usize = 1 << 20;

const EXPRESSIONS: [(&str, &str); 8] = [
    ("a word", r"\bviagra\b"),
    ("words, in either case", r"(?i)\b(?:cheap|discount)\s+(?:pills|meds?)\b"),
    ("a line", r"(?m)^Subject: .{1,40}free.{0,20}$"),
    ("an address", r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+"),
    ("disguised", r"(?i)v[i1l!|]+[a4@]+g+r+[a4@]+"),
    ("not followed", r"(?i)\bfree\b(?! of charge)"),
    ("not behind", r"(?<!not )\bspam\b"),
    ("twice", r"\b(\w{4,}) \1\b"),
];

fn text() -> String {
    const WORDS: [&str; 16] = [
        "the",
        "of",
        "money",
        "and",
        "free",
        "offer",
        "spam",
        "Cheap",
        "meds",
        "v1agra",
        "please",
        "Subject:",
        "user@example.org",
        "that",
        "that",
        "with",
    ];
    let (mut text, mut state) = (String::new(), 1u64);
    while text.len() < TEXT_BYTES {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let draw = (state >> 33) as usize;
        let word = if draw % 16 < 12 { ["the", "of", "and", "with"][draw % 4] } else { WORDS[draw / 16 % 16] };
        text.push_str(word);
        text.push(if draw.is_multiple_of(11) { '\n' } else { ' ' });
    }
    text
}

fn main() {
    let text = text();
    let mb = text.len() as f64 / 1e6;
    println!("{:24} {:>8} {:>10} {:>10} {:>10} {:>12}", "MB/s", "matches", "ours", "regex", "fancy", "bytes");
    for (name, source) in EXPRESSIONS {
        let expression = Expression::new(source.as_bytes(), Flags::NONE).expect("an expression");
        let mut search = expression.search(Want::Span);
        let (count, ours) = timed(|| matches(&mut search, text.as_bytes()));
        let other = regex::bytes::RegexBuilder::new(source).unicode(false).build().ok();
        let other = other.map(|other| timed(|| other.find_iter(text.as_bytes()).count()));
        // Without Unicode, as it is compiled here.
        let fancy = fancy_regex::Regex::new(&format!("(?-u){source}")).ok();
        let fancy = fancy.map(|fancy| timed(|| fancy.find_iter(&text).filter(Result::is_ok).count()));
        let is_same = |of: Option<(usize, f64)>| of.is_none_or(|(found, _)| found == count);
        assert!(is_same(other) && is_same(fancy), "{name}: {count} {other:?} {fancy:?}");
        let speed = |of: Option<(usize, f64)>| of.map_or("-".to_owned(), |(_, seconds)| format!("{:.1}", mb / seconds));
        let (ours, other, fancy) = (mb / ours, speed(other), speed(fancy));
        println!("{name:24} {count:>8} {ours:>10.1} {other:>10} {fancy:>10} {:>12}", search.memory());
    }
}

/// How many matches there are, none of which is empty.
fn matches(search: &mut pattern::expression::Search, text: &[u8]) -> usize {
    let (mut count, mut from) = (0, 0);
    loop {
        search.restart(from);
        match search.run(text, &mut Fuel::unlimited()) {
            Progress::Match(at) => (count, from) = (count + 1, at.end.max(at.start + 1)),
            _ => return count,
        }
    }
}

/// The best of three.
fn timed(mut work: impl FnMut() -> usize) -> (usize, f64) {
    let runs = (0..3).map(|_| {
        let begun = Instant::now();
        (work(), begun.elapsed().as_secs_f64())
    });
    runs.min_by(|one, other| one.1.total_cmp(&other.1)).unwrap_or_default()
}
