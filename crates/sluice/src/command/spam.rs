//! `sluice spam`: mails checked with SpamAssassin's rules, by several threads at once.
//!
//! Mails are read whole, each within a bound, and nothing is changed; in the ledger of what was learned neither, unless what senders
//! are known for is to be noted there. What rules want to
//! know of the DNS is asked for each mail, unless it is to be left alone.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{Read as _, Write as _};
use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, PoisonError, mpsc};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use std::{fs, io, thread};

use flow::{Alike, Answer, Ask, Points, Standing};
use inspect::{Inquest, Reputation, RuleFile, Study, fuzzy};
use ledger::Ledger;
use rules::spam::message::{Message, MessageLimits};
use rules::spam::preferences::BYTES_MAX;
use rules::spam::run::{Beside, Engine, EngineOptions, Expressions, Hit, Outcome, Report, Scratch};
use rules::spam::{File, Preferences, Recalled, ScoreSet};
use serde_json::{Value, json};

use crate::cli::{self, SpamCheck, SpamCommand};
use crate::cluster;
use crate::config::{Config, rule_files};
use crate::learned::conduct::{compared, noted, rated};
use crate::learned::{self, Waits};
use crate::output::Failure;
use crate::process::confine::Reach;
use crate::process::privileges;
use crate::resolver::source::{Asks, Source};

/// The longest mail that is checked, in bytes.
const MAIL_BYTES_MAX: u64 = 64 << 20;

/// Threads at the least where mails wait for answers.
const ASKING_THREADS: usize = 16;

/// Does what the command line says.
pub fn run(args: &cli::Spam) -> Result<ExitCode, Failure> {
    match &args.command {
        SpamCommand::Check(args) => check(args),
    }
}

/// Result for a mail: the text to print, and whether it is spam; or the error of reading it.
type Told = Result<(String, bool), String>;

/// What a check stands on: of the command line, and of a configuration where one is named.
struct Basis {
    folders: Vec<PathBuf>,
    more: Vec<RuleFile>,
    ledger: Option<PathBuf>,
    /// The ledger of a cluster, in place of the folder's.
    shared: Option<learned::Source>,
    resolvers: Vec<SocketAddr>,
    is_local: bool,
    required: Option<f64>,
}

impl Basis {
    fn of(args: &SpamCheck) -> Result<Basis, Failure> {
        let mut basis = Basis {
            folders: args.folders.clone(),
            more: Vec::new(),
            ledger: args.ledger.clone(),
            shared: None,
            resolvers: args.resolvers.clone(),
            is_local: args.local,
            required: None,
        };
        if let Some(path) = &args.config {
            basis.fill(path)?;
        }
        basis.is_local &= args.zone.is_none();
        if basis.folders.is_empty() {
            basis.folders = rule_files::standard();
        }
        if basis.ledger.is_none() && (args.note || !args.user.is_empty()) {
            return Err("--user and --note need a ledger: --ledger DIR, or a --config with [spam.bayes]".into());
        }
        Ok(basis)
    }

    /// Takes from a configuration what was not given.
    fn fill(&mut self, path: &Path) -> Result<(), Failure> {
        let config = Config::read(path)?;
        let Some(spam) = &config.spam else { return Err(format!("{}: there is no [spam]", path.display()).into()) };
        self.more = config.more_rules();
        self.is_local |= !spam.network;
        self.required = spam.required.map(Points::value);
        if let Some(bayes) = spam.bayes.as_ref().filter(|_| self.ledger.is_none()) {
            let source = cluster::ledger::source(&config, &bayes.ledger)?;
            self.shared = Some(source).filter(learned::Source::is_shared);
            self.ledger = Some(bayes.ledger.clone());
        }
        if self.folders.is_empty() {
            self.folders = config.rule_folders().unwrap_or_default();
        }
        if self.resolvers.is_empty() && !self.is_local {
            self.resolvers = config.dns.servers()?;
        }
        Ok(())
    }
}

fn check(args: &SpamCheck) -> Result<ExitCode, Failure> {
    let basis = Basis::of(args)?;
    privileges::harden()?;
    let held = basis.ledger.as_deref().map(privileges::enter_reading).transpose()?;
    let mut reach = Reach::reading();
    if !basis.is_local && args.zone.is_none() || basis.shared.is_some() {
        reach.connect();
    }
    reach.confine(&held.iter().collect::<Vec<_>>())?;
    let wait = Duration::from_secs(args.timeout);
    let source = (!basis.is_local).then(|| Source::new(args.zone.as_deref(), &basis.resolvers, wait)).transpose()?;
    let rules = rule_files::load(&basis.folders, basis.is_local, &basis.more, &Expressions)?;
    let errors = rules.errors();
    if errors > 0 {
        eprintln!("sluice: {errors} errors in the rules: sluice rules lint names them");
    }
    let set = ScoreSet { net: !basis.is_local, bayes: held.is_some() };
    let engine = Engine::new(rules, EngineOptions { set, ..EngineOptions::default() });
    let preferences = args.prefs.as_deref().map(|path| preferences(&engine, path)).transpose()?;
    let learned = match (&basis.shared, &held) {
        (Some(shared), _) => Some(shared.open(Waits::COMMAND)?),
        (None, Some(held)) => Some(Box::new(learned::open(held)?) as Box<dyn Ledger>),
        (None, None) => None,
    };
    let learned = learned.map(Mutex::new);
    let study = Study::new(&engine);
    let reputation = Reputation::new(&engine).filter(|_| learned.is_some());
    let (required, host, now) = (basis.required, host(), now());
    let checker =
        Checker { engine: &engine, source, study, reputation, preferences, learned, required, args, host, now };
    let (mut is_spam, mut has_failed) = (false, false);
    let mut failure = None;
    checker.all(|told| match told {
        Ok((text, spam)) => {
            is_spam |= spam;
            failure = failure.take().or(crate::output::out().write_all(text.as_bytes()).err());
        }
        Err(reason) => {
            has_failed = true;
            eprintln!("sluice: {reason}");
        }
    });
    match failure {
        Some(error) => Err(error.into()),
        None => Ok(ExitCode::from(if has_failed { 2 } else { u8::from(is_spam) })),
    }
}

/// Preferences of a user; wrong lines are reported.
fn preferences(engine: &Engine, path: &Path) -> Result<Preferences, Failure> {
    let failed = |error: io::Error| format!("{}: {error}", path.display());
    let mut bytes = Vec::new();
    let file = fs::File::open(path).map_err(failed)?;
    file.take(BYTES_MAX as u64 + 1).read_to_end(&mut bytes).map_err(failed)?;
    let own = engine.preferences(&File { name: path.display().to_string().into(), bytes });
    own.errors().iter().for_each(|error| eprintln!("sluice: {error}"));
    Ok(own)
}

fn now() -> i64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |now| now.as_secs());
    i64::try_from(now).unwrap_or(i64::MAX)
}

/// The name of this machine.
fn host() -> String {
    let name = fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    if name.trim().is_empty() { "localhost".into() } else { name.trim().into() }
}

struct Checker<'c> {
    engine: &'c Engine,
    /// Source of answers from the network; none without network.
    source: Option<Source>,
    study: Study,
    reputation: Option<Reputation>,
    preferences: Option<Preferences>,
    learned: Option<Mutex<Box<dyn Ledger>>>,
    /// The score of spam that a configuration sets.
    required: Option<f64>,
    args: &'c SpamCheck,
    host: String,
    now: i64,
}

impl Checker<'_> {
    /// Checks all mails, by as many threads as there are cores, and tells of them in their order.
    fn all(&self, mut tell: impl FnMut(Told)) {
        let files = &self.args.files;
        let cores = thread::available_parallelism().map_or(1, NonZeroUsize::get);
        // Whoever waits for answers leaves its core to others.
        let threads = match self.source {
            // Each mail counts for the next.
            _ if self.args.note => 1,
            Some(_) => cores.max(ASKING_THREADS).min(files.len()),
            None => cores.min(files.len()),
        };
        let next = AtomicUsize::new(0);
        let scratches = Scratches::new(cores);
        let (sender, receiver) = mpsc::channel();
        thread::scope(|scope| {
            for _ in 0..threads {
                let (sender, next) = (sender.clone(), &next);
                let scratches = &scratches;
                scope.spawn(move || {
                    loop {
                        let place = next.fetch_add(1, Ordering::Relaxed);
                        let Some(file) = files.get(place) else { return };
                        if sender.send((place, self.one(file, scratches))).is_err() {
                            return;
                        }
                    }
                });
            }
            drop(sender);
            let (mut waiting, mut wanted) = (BTreeMap::new(), 0);
            for (place, told) in receiver {
                waiting.insert(place, told);
                while let Some(told) = waiting.remove(&wanted) {
                    tell(told);
                    wanted += 1;
                }
            }
        });
    }

    fn one(&self, file: &Path, scratches: &Scratches) -> Told {
        let bytes = read(file).map_err(|error| format!("{}: {error}", file.display()))?;
        let mail = Message::read(&bytes, self.engine.reading(), &MessageLimits::default());
        let inquest = self.inquire(&mail, &bytes).map_err(|error| format!("{}: {error}", file.display()))?;
        let recalled = self.recall(&mail).map_err(|error| error.to_string())?;
        let inquiry = inquest.as_ref().map(Inquest::inquiry);
        let alike = self.alike(&mail).map_err(|error| error.to_string())?;
        let beside = Beside { inquiry, recalled, preferences: self.preferences.as_ref(), alike };
        let mut outcome =
            scratches.with(|scratch| self.engine.check_known(&mail, self.now, self.args.matches, beside, scratch));
        self.rate(&mail, inquest.as_ref(), &mut outcome).map_err(|error| error.to_string())?;
        if let Some(required) = self.required
            && self.preferences.as_ref().and_then(Preferences::required).is_none()
        {
            outcome.required = required;
        }
        if self.learned.is_none() {
            self.study.tell_unlearned(self.engine, &mut outcome);
        }
        let text = match self.args.json {
            true => format!("{}\n", self.json(file, &outcome)),
            false => self.report(file, &mail, &outcome),
        };
        Ok((text, outcome.is_spam()))
    }

    /// Asks what rules want to know, and waits for the answers.
    fn inquire(&self, mail: &Message, bytes: &[u8]) -> io::Result<Option<Inquest>> {
        let Some(source) = &self.source else { return Ok(None) };
        let inquest = Inquest::new(self.engine, mail, bytes, &self.host, self.now, None);
        let mut asked = Asked { inquest, engine: self.engine };
        source.settle(&mut asked)?;
        Ok(Some(asked.inquest))
    }

    /// Looks the words of a mail up in the ledger.
    fn recall(&self, mail: &Message) -> Result<Option<Recalled>, ledger::Error> {
        let Some(learned) = &self.learned else { return Ok(None) };
        let Some(tokens) = self.study.question(self.engine, mail) else { return Ok(None) };
        let mut learned = learned.lock().unwrap_or_else(PoisonError::into_inner);
        let (corpus, counts) = learned.recall(&self.args.user, tokens.keys())?;
        Ok(self.study.recalled(tokens.keys().len(), corpus, &counts).map(|(recalled, _)| recalled))
    }

    /// How much a mail is like one that was reported.
    fn alike(&self, mail: &Message) -> Result<Option<Alike>, ledger::Error> {
        let Some(learned) = &self.learned else { return Ok(None) };
        let Some(fuzzy) = fuzzy(self.engine, mail) else { return Ok(None) };
        let mut learned = learned.lock().unwrap_or_else(PoisonError::into_inner);
        let alike = learned.alike(&self.args.user, &compared(fuzzy))?;
        Ok(Some(Alike { places: alike.places, has_part: alike.has_part }))
    }

    /// Moves the score by what the sender is known for, and notes it where that is wanted.
    fn rate(&self, mail: &Message, inquest: Option<&Inquest>, outcome: &mut Outcome) -> Result<(), ledger::Error> {
        let Some((reputation, learned)) = self.reputation.as_ref().zip(self.learned.as_ref()) else { return Ok(()) };
        let Some(sent) = reputation.sent(self.engine, mail) else { return Ok(()) };
        let known = inquest.and_then(|inquest| inquest.inquiry().known());
        let named = reputation.named(&sent, self.engine.settings(), known);
        let mut learned = learned.lock().unwrap_or_else(PoisonError::into_inner);
        let standings = learned.standings(&self.args.user, &named.asked().collect::<Vec<_>>())?;
        let standings = standings.into_iter().map(|known| Standing::new(known.count, known.total));
        let conduct = reputation.rate(self.engine, &named, &standings.collect::<Vec<_>>(), outcome);
        let Some(conduct) = conduct.filter(|_| self.args.note) else { return Ok(()) };
        let counts = rated(&conduct);
        learned.count(&self.args.user, &noted(conduct), counts, self.now)
    }

    fn json(&self, file: &Path, outcome: &Outcome) -> Value {
        let names = |rules: &[u32]| rules.iter().map(|&rule| self.rule(rule).name.to_string()).collect::<Vec<_>>();
        let hits =
            outcome.hits.iter().filter(|hit| !self.rule(hit.rule).is_subrule()).map(|hit| self.hit(outcome, hit));
        let mut value = json!({
            "file": file.to_string_lossy(),
            "score": rounded(outcome.total.value()),
            "required": outcome.required,
            "spam": outcome.is_spam(),
            "hits": hits.collect::<Vec<_>>(),
        });
        if let Some(recalled) = &outcome.recalled {
            value["bayes"] = recalled.probability.into();
        }
        if !outcome.exhausted.is_empty() {
            value["exhausted"] = names(&outcome.exhausted).into();
        }
        if outcome.is_truncated {
            value["truncated"] = true.into();
        }
        value
    }

    fn rule(&self, id: u32) -> &rules::spam::Rule {
        &self.engine.rules().names()[id as usize]
    }

    fn hit(&self, outcome: &Outcome, hit: &Hit) -> Value {
        let rule = self.rule(hit.rule);
        let score = hit.points(self.engine.rules(), outcome.set());
        let description = rule.description.as_ref().map(|text| String::from_utf8_lossy(text).into_owned());
        let mut value = json!({ "rule": rule.name, "score": rounded(score), "description": description });
        if let Some(matched) = &hit.matched {
            value["matched"] = String::from_utf8_lossy(matched).into();
        }
        value
    }

    fn report(&self, file: &Path, mail: &Message, outcome: &Outcome) -> String {
        let mut out = String::new();
        if self.args.files.len() > 1 {
            let _ = writeln!(out, "==> {} <==", file.display());
        }
        out += &Report::new(self.engine, mail, outcome, &self.host).of(self.preferences.as_ref()).text();
        for hit in outcome.hits.iter().filter(|hit| hit.matched.is_some()) {
            let matched = hit.matched.as_deref().unwrap_or_default();
            let _ = writeln!(out, "{}: {}", self.rule(hit.rule).name, matched.escape_ascii());
        }
        for &rule in &outcome.exhausted {
            let _ = writeln!(out, "{}: gave up, its expression takes too long on this mail", self.rule(rule).name);
        }
        out.push('\n');
        out
    }
}

/// One scratch a core. A thread holds one only while it matches, not while it waits for answers: each scratch learns the
/// states of the automata anew, which costs as much as a hundred mails.
struct Scratches {
    free: Mutex<Vec<Scratch>>,
    returned: Condvar,
}

impl Scratches {
    fn new(count: usize) -> Scratches {
        let free = std::iter::repeat_with(Scratch::default).take(count.max(1)).collect();
        Scratches { free: Mutex::new(free), returned: Condvar::new() }
    }

    /// Waits for a scratch, and lends it to a check.
    fn with<T>(&self, check: impl FnOnce(&mut Scratch) -> T) -> T {
        let free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
        let free = self.returned.wait_while(free, |free| free.is_empty());
        let scratch = free.unwrap_or_else(PoisonError::into_inner).pop().unwrap_or_default();
        check(&mut Lent { scratch, to: self }.scratch)
    }
}

/// A scratch that goes back when it is dropped; a new one in its place after a panic.
struct Lent<'s> {
    scratch: Scratch,
    to: &'s Scratches,
}

impl Drop for Lent<'_> {
    fn drop(&mut self) {
        let scratch = std::mem::take(&mut self.scratch);
        let scratch = if thread::panicking() { Scratch::default() } else { scratch };
        self.to.free.lock().unwrap_or_else(PoisonError::into_inner).push(scratch);
        self.to.returned.notify_one();
    }
}

/// Questions of the rules about a mail.
struct Asked<'e> {
    inquest: Inquest,
    engine: &'e Engine,
}

impl Asks for Asked<'_> {
    fn ask(&mut self) -> Option<Ask> {
        self.inquest.ask()
    }

    fn answer(&mut self, answer: Answer) {
        self.inquest.answer(self.engine, answer);
    }
}

/// Two decimals.
fn rounded(score: f64) -> f64 {
    let score = (score * 100.0).round() / 100.0;
    if score == 0.0 { 0.0 } else { score }
}

/// Reads one byte more than the bound, so that a longer file is noticed.
fn read(file: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    if file == Path::new("-") {
        io::stdin().lock().take(MAIL_BYTES_MAX + 1).read_to_end(&mut bytes)?;
    } else {
        fs::File::open(file)?.take(MAIL_BYTES_MAX + 1).read_to_end(&mut bytes)?;
    }
    if bytes.len() as u64 > MAIL_BYTES_MAX {
        return Err(io::Error::other(format!("it has more than {} MiB", MAIL_BYTES_MAX >> 20)));
    }
    Ok(bytes)
}
