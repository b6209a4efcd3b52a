//! Cost of intrusion rules: `intrusion ROUNDS RULES... -- FILE...` inspects the files as bodies of HTTP responses, and
//! a mail of 4 kB, with the rules and without. Prints processor time; signatures are the built-in ones alone.

use std::sync::Arc;
use std::{env, fs};

use flow::{Context, Flow, Head, In, Protocol, Watched};
use inspect::{Engine, Inspection, IntrusionFiles, IntrusionRules, Progress};
use scan::Database;
use stream::{Fuel, Limits, Object};

fn main() {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let rounds: u32 = arguments.first().and_then(|rounds| rounds.parse().ok()).unwrap_or(1);
    let mut halves = arguments.get(1..).unwrap_or_default().split(|word| word == "--");
    let (rules, files) = (halves.next().unwrap_or_default(), halves.next().unwrap_or_default());
    let rules = rules.iter().filter_map(|path| Some((path.as_str().into(), fs::read(path).ok()?))).collect();
    let bodies: Vec<Vec<u8>> = files.iter().filter_map(|path| fs::read(path).ok()).collect();
    let began = seconds();
    let rules = IntrusionFiles { rules, ..IntrusionFiles::default() }.compile();
    println!("{} rules active, compiled in {:.2} s", rules.set().census().active, seconds() - began);
    let engine = Arc::new(Engine { database: Arc::new(Database::with_builtin()), limits: Limits::default() });
    let bytes: usize = bodies.iter().map(Vec::len).sum();
    let text: Vec<u8> = b"Some words of a mail that nobody has to fear.\r\n".repeat(86);
    let mail = [b"From: a@b.test\r\nSubject: words\r\n\r\n", &text[..]].concat();
    for (name, rules) in [("without", None), ("with", Some(&rules))] {
        let began = seconds();
        (0..rounds).for_each(|_| bodies.iter().for_each(|body| inspect(&engine, page(), body, rules)));
        let spent = (seconds() - began).max(1e-9);
        println!("{name} rules: bodies {:.0} MB/s", bytes as f64 * f64::from(rounds) / 1e6 / spent);
        let began = seconds();
        (0..rounds * 100).for_each(|_| inspect(&engine, letter(), &mail, rules));
        println!("{name} rules: a mail {:.3} ms", (seconds() - began) * 1e3 / f64::from(rounds * 100));
    }
}

fn page() -> Context {
    let head = |line: &str, fields: &str| Some(Head { line: line.as_bytes().into(), fields: fields.as_bytes().into() });
    let watched = Watched {
        request: head("GET /index.html HTTP/1.1", "Host: www.site.test\r\nUser-Agent: Mozilla/5.0\r\nAccept: */*\r\n"),
        response: head("HTTP/1.1 200 OK", "Server: nginx\r\nContent-Type: text/html\r\n"),
        ..Watched::default()
    };
    let flow = Flow { protocol: Protocol::Http, ..Flow::default() };
    Context { flow, watched: Some(Box::new(watched)), ..Context::default() }
}

fn letter() -> Context {
    let flow = Flow { protocol: Protocol::Smtp, sender: "a@b.test".into(), ..Flow::default() };
    let object = Object { media_type: Some("message/rfc822".into()), ..Object::default() };
    Context { flow, object, watched: Some(Box::default()), ..Context::default() }
}

#[inline(never)]
fn inspect(engine: &Arc<Engine>, context: Context, content: &[u8], rules: Option<&IntrusionRules>) {
    let mut inspection = Inspection::new(engine.clone(), context).with_intrusion(rules);
    let mut rest = content;
    while !rest.is_empty() {
        rest = &rest[inspection.tell(In::Feed(rest))..];
        while inspection.work(&mut Fuel::unlimited()) == Progress::Tired {}
        while inspection.hear().is_some() {}
    }
    inspection.tell(In::Finish);
    while inspection.work(&mut Fuel::unlimited()) != Progress::Done {}
}

/// Processor time of this process.
fn seconds() -> f64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}
