//! How long it takes to compile a configuration, and to check mails with it, on one core: `spam ROUNDS MAIL...` with the rules
//! of the packages, once to warm up and then ROUNDS times. Times are those of the processor. `bench/spam` runs it beside
//! SpamAssassin. With SPAM_PROFILE=N, a last round is added up by kind of work, and the N rules that cost most are told; with SPAM_HITS=FILE, what hits each mail is written there, to compare two builds.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::{Duration, Instant};
use std::{env, fs};

use rules::spam::message::{Message, MessageLimits};
use rules::spam::run::{Engine, EngineOptions, Expressions, Scratch, Work};
use rules::spam::{File, Limits, Loader, Options, source};

fn main() {
    let mut arguments = env::args().skip(1);
    let rounds: u32 = arguments.next().and_then(|rounds| rounds.parse().ok()).unwrap_or(1);
    let mails: Vec<Vec<u8>> = arguments.filter_map(|path| fs::read(path).ok()).collect();
    if mails.is_empty() {
        eprintln!("usage: spam ROUNDS MAIL...");
        return;
    }
    let idle = peak();
    let clock = Clock::start();
    let rules = load();
    let read = clock.spent();
    let engine = Engine::new(rules, EngineOptions::default());
    engine.prepare();
    let start = clock.spent();
    println!("start ms: {:.1}, {:.1} of it to read the rules", millis(start), millis(read));
    let clock = Clock::start();
    engine.build();
    println!("all automata built in ms: {:.1}", millis(clock.spent()));
    println!("literals: {}", engine.describe());
    let mut scratch = Scratch::default();
    let clock = Clock::start();
    check(&engine, &mails[0], &mut scratch);
    println!("first mail ms: {:.2}", millis(clock.spent()));
    let _: usize = mails.iter().map(|mail| check(&engine, mail, &mut scratch)).sum();
    measure(&engine, &mails, rounds, &mut scratch);
    if let Some(path) = env::var_os("SPAM_HITS") {
        let lines: String = mails.iter().map(|mail| hits(&engine, mail, &mut scratch)).collect();
        fs::write(path, lines).expect("the file of SPAM_HITS can be written");
    }
    if let Some(rows) = env::var("SPAM_PROFILE").ok().and_then(|rows| rows.parse().ok()) {
        profile(&engine, &mails, rows, &mut scratch);
    }
    println!("kept MB: {:.1}", scratch.bytes() as f64 / 1e6);
    println!("peak MB: {:.1}, {idle:.1} of it before the rules were read, the mails among it", peak());
}

fn check(engine: &Engine, mail: &[u8], scratch: &mut Scratch) -> usize {
    let message = Message::read(mail, engine.reading(), &MessageLimits::default());
    engine.check(&message, 1_700_000_000, false, scratch).hits.len()
}

/// What hits a mail, and how often: a line. Which sub-rules are run depends on what else hits, so they are left out.
fn hits(engine: &Engine, mail: &[u8], scratch: &mut Scratch) -> String {
    let message = Message::read(mail, engine.reading(), &MessageLimits::default());
    let outcome = engine.check(&message, 1_700_000_000, false, scratch);
    let name = |rule: u32| &engine.rules().names()[rule as usize].name;
    let visible = outcome.hits.iter().filter(|hit| !engine.rules().names()[hit.rule as usize].is_subrule());
    let mut all: Vec<String> = visible.map(|hit| format!("{}={}", name(hit.rule), hit.count)).collect();
    all.extend(outcome.exhausted.iter().map(|&rule| format!("{}=exhausted", name(rule))));
    all.sort();
    format!("{}\n", all.join(" "))
}

#[inline(never)]
fn measure(engine: &Engine, mails: &[Vec<u8>], rounds: u32, scratch: &mut Scratch) {
    let count = mails.len() as f64 * f64::from(rounds.max(1));
    let clock = Clock::start();
    let mut hits = 0;
    for _ in 0..rounds {
        hits += mails.iter().map(|mail| check(engine, mail, scratch)).sum::<usize>();
    }
    let total = clock.spent();
    let clock = Clock::start();
    for _ in 0..rounds {
        mails.iter().for_each(|mail| drop(Message::read(mail, engine.reading(), &MessageLimits::default())));
    }
    println!("ms a mail: {:.4}", millis(total) / count);
    println!("ms for the views: {:.4}", millis(clock.spent()) / count);
    println!("hits a mail: {:.1}", hits as f64 / count);
}

/// Where the time of one round goes, by kind of work, and the rules that cost most.
fn profile(engine: &Engine, mails: &[Vec<u8>], rows: usize, scratch: &mut Scratch) {
    scratch.measure(nanoseconds);
    let _: usize = mails.iter().map(|mail| check(engine, mail, scratch)).sum();
    let table = scratch.profile().map(|profile| profile.table()).unwrap_or_default();
    let micros = |time: u64| time as f64 / 1e3 / mails.len() as f64;
    let kind = |work: &Work| match work {
        Work::Expression(_) => "expressions".to_string(),
        Work::Function(_) => "functions".to_string(),
        work => format!("{work:?}").to_lowercase(),
    };
    let mut kinds: BTreeMap<String, u64> = BTreeMap::new();
    table.iter().for_each(|(work, spent)| *kinds.entry(kind(work)).or_default() += spent.time);
    for (kind, time) in kinds {
        println!("  {:9.1} us a mail  {kind}", micros(time));
    }
    let rules = table.iter().filter_map(|(work, spent)| match work {
        Work::Expression(rule) | Work::Function(rule) => Some((*rule, kind(work), spent)),
        _ => None,
    });
    for (rule, kind, spent) in rules.take(rows) {
        let rule = &engine.rules().names()[rule as usize].name;
        println!("  {:9.2} us a mail, run {:6} times  {rule} ({kind})", micros(spent.time), spent.times);
    }
}

fn nanoseconds() -> u64 {
    static BEGUN: OnceLock<Instant> = OnceLock::new();
    BEGUN.get_or_init(Instant::now).elapsed().as_nanos() as u64
}

/// The time of the processor that this thread takes; that of the clock where the system does not tell it.
struct Clock {
    start: Instant,
    spent: Option<Duration>,
}

impl Clock {
    fn start() -> Clock {
        Clock { start: Instant::now(), spent: processor() }
    }

    fn spent(&self) -> Duration {
        match (self.spent, processor()) {
            (Some(before), Some(now)) => now.saturating_sub(before),
            _ => self.start.elapsed(),
        }
    }
}

fn processor() -> Option<Duration> {
    let text = fs::read_to_string("/proc/self/schedstat").ok()?;
    text.split_whitespace().next()?.parse().ok().map(Duration::from_nanos)
}

/// The most memory that there was, in megabytes.
fn peak() -> f64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kilobytes = line.and_then(|line| line.trim().trim_end_matches(" kB").parse::<f64>().ok());
    kilobytes.unwrap_or_default() * 1024.0 / 1e6
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
