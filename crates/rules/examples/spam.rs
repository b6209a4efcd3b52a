//! How long it takes to compile a configuration, and to check mails with it, on one core: `spam ROUNDS MAIL...` with the rules
//! of the packages. `bench/spam` runs it beside SpamAssassin.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use std::{env, fs};

use rules::spam::message::{Message, MessageLimits};
use rules::spam::run::{Engine, EngineOptions, Expressions, Scratch};
use rules::spam::{File, Limits, Loader, Options, source};

fn main() {
    let mut arguments = env::args().skip(1);
    let rounds: u32 = arguments.next().and_then(|rounds| rounds.parse().ok()).unwrap_or(1);
    let mails: Vec<Vec<u8>> = arguments.filter_map(|path| fs::read(path).ok()).collect();
    if mails.is_empty() {
        eprintln!("usage: spam ROUNDS MAIL...");
        return;
    }
    let start = Instant::now();
    let rules = load();
    let read = start.elapsed();
    let engine = Engine::new(rules, EngineOptions::default());
    let compiled = start.elapsed() - read;
    engine.prepare();
    let prepared = start.elapsed() - read - compiled;
    println!(
        "start: {:.0} ms to read the rules, {:.0} to compile them, {:.0} for the literals",
        millis(read),
        millis(compiled),
        millis(prepared)
    );
    println!("{}", engine.describe());
    for round in 1..=rounds {
        measure(&engine, &mails, round);
    }
}

fn measure(engine: &Engine, mails: &[Vec<u8>], round: u32) {
    let mut scratch = Scratch::default();
    let (mut views, mut checks, mut hits) = (Duration::ZERO, Vec::with_capacity(mails.len()), 0);
    for mail in mails {
        let start = Instant::now();
        let message = Message::read(mail, engine.reading(), &MessageLimits::default());
        views += start.elapsed();
        let start = Instant::now();
        hits += engine.check(&message, 1_700_000_000, false, &mut scratch).hits.len();
        checks.push(start.elapsed());
    }
    let total: Duration = checks.iter().sum();
    checks.sort_unstable();
    let bytes: usize = mails.iter().map(Vec::len).sum();
    println!(
        "round {round}: {:.0} mails/s on a core, {:.2} ms a mail: {:.2} for the views, {:.2} for the rules (median {:.2}, 99 % \
         {:.2}, worst {:.1}); {} hits, {:.1} kB a mail, {:.1} MB kept",
        mails.len() as f64 / (total + views).as_secs_f64(),
        millis(total + views) / mails.len() as f64,
        millis(views) / mails.len() as f64,
        millis(total) / mails.len() as f64,
        millis(checks[checks.len() / 2]),
        millis(checks[checks.len() * 99 / 100]),
        millis(checks[checks.len() - 1]),
        hits,
        bytes as f64 / mails.len() as f64 / 1e3,
        scratch.bytes() as f64 / 1e6,
    );
}

fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

fn load() -> rules::spam::Rules {
    let mut paths: Vec<PathBuf> = Vec::new();
    for folder in ["/usr/share/spamassassin", "/etc/spamassassin"] {
        let entries = fs::read_dir(folder).into_iter().flatten().flatten();
        let mut names = entries.filter_map(|entry| entry.file_name().into_string().ok()).collect();
        source::order(&mut names);
        paths.extend(names.into_iter().map(|name| Path::new(folder).join(name)));
    }
    paths.sort_by_key(|path| path.extension().is_some_and(|end| end == "cf"));
    let options = Options { local_tests_only: true, ..Options::default() };
    let mut loader = Loader::new(options, Limits::default());
    for path in paths {
        let Ok(bytes) = fs::read(&path) else { continue };
        loader.read(&File { name: path.display().to_string().into(), bytes }, &mut |_, name| Err(name.into()));
    }
    loader.finish(&Expressions)
}
