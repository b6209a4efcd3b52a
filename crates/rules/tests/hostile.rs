//! Mails and expressions that are made to cost: time is bounded, what is given up is named, and all else still runs.

use std::path::Path;
use std::time::{Duration, Instant};

use rules::spam::message::{Message, MessageLimits};
use rules::spam::run::{Engine, EngineOptions, Expressions, Outcome, RunLimits, Scratch};
use rules::spam::{File, Limits, Loader, Options};

use super::peer::{STOCK, load_with};

const RULES: &str = "body SLOW /^(\\w+\\s?)*(?=!)\\1$/\nbody PLAIN /needle/\nheader TO ToCc:addr =~ /last@example\\.com/\n\
                     header COUNT eval:check_header_count_range('X-A', '1', '100000')\nfull END /the end/\n\
                     body MANY /a/\ntflags MANY multiple\nmeta BOTH PLAIN && END\n";

fn engine(text: &str, limits: RunLimits) -> Engine {
    let mut loader = Loader::new(Options { default_plugins: true, ..Options::default() }, Limits::default());
    loader.read(&File { name: "a.cf".into(), bytes: text.as_bytes().to_vec() }, &mut |_, _| Err(String::new()));
    Engine::new(loader.finish(&Expressions), EngineOptions { limits, ..EngineOptions::default() })
}

fn check(engine: &Engine, mail: &str) -> (Outcome, Duration) {
    let start = Instant::now();
    let message = Message::read(mail.as_bytes(), engine.reading(), &MessageLimits::default());
    let outcome = engine.check(&message, 1_700_000_000, false, &mut Scratch::default());
    (outcome, start.elapsed())
}

fn names(engine: &Engine, outcome: &Outcome) -> Vec<String> {
    outcome.hits.iter().map(|hit| engine.rules().names()[hit.rule as usize].name.to_string()).collect()
}

#[test]
fn a_rule_that_costs_too_much_is_named_and_the_others_run() {
    let limits = RunLimits { rule_steps_max: 100_000, ..RunLimits::default() };
    let engine = engine(RULES, limits);
    let text = format!("Subject: x\n\n{}?\n\nneedle\n\nthe end\n", "a".repeat(2000));
    let (outcome, _) = check(&engine, &text);
    let exhausted: Vec<&str> =
        outcome.exhausted.iter().map(|&rule| &*engine.rules().names()[rule as usize].name).collect();
    assert_eq!(exhausted, ["SLOW"]);
    let names = names(&engine, &outcome);
    assert!(["PLAIN", "END", "MANY", "BOTH"].iter().all(|name| names.iter().any(|hit| hit == name)), "{names:?}");
    assert!(!names.iter().any(|name| name == "SLOW"));
}

/// Mails that are large in one way each; the stock set where it is installed.
#[test]
fn large_mails_take_bounded_time() {
    let stock = Path::new(STOCK[0]).join("72_active.cf").exists();
    let engine = match stock {
        true => {
            let rules = load_with(&STOCK.map(Path::new), true, &Expressions);
            Engine::new(rules, EngineOptions::default())
        }
        false => engine(RULES, RunLimits::default()),
    };
    engine.prepare();
    let mails = [
        ("fields", format!("{}\n\nthe end\n", "X-A: some words in a field\n".repeat(10_000))),
        (
            "received",
            format!(
                "{}\n\nx\n",
                "Received: from a (b [192.0.2.1]) by c with SMTP id x; Thu, 22 Aug 2002 12:34:53 +0100\n"
                    .repeat(10_000)
            ),
        ),
        ("addresses", format!("To: x@example.com{}\n\nx\n", ",\n \"A B\" <a@b.example>".repeat(100_000))),
        ("recipients", format!("{}\n\nx\n", "To: a@b.example, c@d.example\n".repeat(50_000))),
        ("a line", format!("Subject: x\n\n{}\n", "http://a.b.example/x ".repeat(50_000))),
        ("one word", format!("Subject: x\n\n{}\n", "a".repeat(1 << 20))),
        ("one byte a line", format!("Subject: x\n\n{}\n", "a\n\n".repeat(200_000))),
        ("quotes", format!("From: {}\n\nx\n", "\"<".repeat(100_000))),
        ("markup", format!("Content-Type: text/html\n\n{}\n", "<div><a href='http://a.example/'>x".repeat(20_000))),
    ];
    // What is allowed here is many times what it takes, so that a busy machine does not fail.
    const SECONDS_MAX: f64 = 60.0;
    for (name, mail) in &mails {
        let (outcome, time) = check(&engine, mail);
        eprintln!(
            "{name}: {} kB, {:.2} s, {} hits, {} given up",
            mail.len() >> 10,
            time.as_secs_f64(),
            outcome.hits.len(),
            outcome.exhausted.len()
        );
        assert!(time.as_secs_f64() < SECONDS_MAX, "{name} took {time:?}");
    }
}
