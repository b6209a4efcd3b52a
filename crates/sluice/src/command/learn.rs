//! `sluice learn`: mails are learned and forgotten, and what was learned goes in and out as a snapshot.
//!
//! Mails are taken apart by several threads, and learned in the order in which they come, some hundred in one transaction: what is
//! broken off has learned what came before. The folder that holds it may belong to the service: root becomes its owner first.

use std::fs::File;
use std::io::{self, BufRead as _, BufReader, BufWriter, Read, Write as _};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use flow::{Conduct, Fuzzy};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use inspect::{Reputation, RuleFile, Studied, Study, fuzzy};
use learn::Snapshot;
use learn::backup::LINE_BYTES_MAX;
use ledger::{Counts, Error, Learned, Ledger, Lesson, Summary};
use rules::spam::message::{Message, MessageLimits};
use rules::spam::run::{Engine, EngineOptions, Expressions};
use serde_json::json;

use crate::cli::{Learn, LearnCommand, LearnMails};
use crate::config::rule_files;

use crate::cluster;
use crate::config::Config;
use crate::learned::conduct::{compared, noted, taught};
use crate::learned::{Source, Waits, now, open};
use crate::mails::{Found, Mails};
use crate::output::Failure;
use crate::process::confine::Reach;
use crate::process::privileges;

/// Mails that are learned in one transaction.
const BATCH_MAILS: usize = 256;

/// And no more bytes of them, but for the last.
const BATCH_BYTES: usize = 16 << 20;

/// The longest mail where no bound is wanted.
const MAIL_BYTES_MAX: u64 = 64 << 20;

/// Words that old ones are looked for in no more often than so, in seconds.
const EXPIRE_SECONDS: i64 = 12 * 3600;

/// Does what the command line says.
pub fn run(args: &Learn) -> Result<ExitCode, Failure> {
    let mails = match &args.command {
        LearnCommand::Ham(of) | LearnCommand::Spam(of) | LearnCommand::Forget(of) => Some(list(of)?),
        _ => None,
    };
    let snapshot = match &args.command {
        LearnCommand::Import { file } if file != Path::new("-") => {
            Some(File::open(file).map_err(|error| format!("{}: {error}", file.display()))?)
        }
        _ => None,
    };
    let Place { folder, shared, sources } = place(args)?;
    privileges::harden()?;
    let held = privileges::enter_reading(&folder)?;
    let mut reach = Reach::reading();
    if shared.is_some() {
        reach.connect();
    }
    reach.confine(&[&held])?;
    let mut ledger = match shared {
        Some(shared) => shared.open(Waits::COMMAND)?,
        None => Box::new(open(&held)?),
    };
    let user = &*args.user;
    match &args.command {
        LearnCommand::Ham(_) => Learner::new(args, &sources, ledger)?.learn(&mails.unwrap_or_default(), Some(false)),
        LearnCommand::Spam(_) => Learner::new(args, &sources, ledger)?.learn(&mails.unwrap_or_default(), Some(true)),
        LearnCommand::Forget(_) => Learner::new(args, &sources, ledger)?.learn(&mails.unwrap_or_default(), None),
        LearnCommand::Import { .. } => import(args, &mut *ledger, snapshot),
        LearnCommand::Export => export(&mut *ledger, user),
        LearnCommand::Stat => {
            print(args, ledger.summary(user)?);
            Ok(ExitCode::SUCCESS)
        }
        LearnCommand::Expire => {
            let words_max = Study::new(&engine(&sources)?).words_max();
            let forgotten = ledger.expire(user, words_max, now())?;
            match args.json {
                true => println!("{}", json!({ "forgotten": forgotten })),
                false => println!("{forgotten} words forgotten"),
            }
            Ok(ExitCode::SUCCESS)
        }
    }
}

fn list(of: &LearnMails) -> Result<Mails, Failure> {
    let bytes_max = if of.size_max == 0 { MAIL_BYTES_MAX } else { of.size_max.min(MAIL_BYTES_MAX) };
    Mails::list(&of.files, of.mbox, of.dir, bytes_max)
}

/// The ledger, and the rules whose settings hold.
struct Place {
    folder: PathBuf,
    /// The ledger of a cluster, in place of the folder's.
    shared: Option<Source>,
    sources: RuleSources,
}

fn place(args: &Learn) -> Result<Place, Failure> {
    let mut sources = RuleSources { folders: args.folders.clone(), more: Vec::new() };
    let (folder, shared) = match &args.ledger {
        Some(ledger) => (ledger.clone(), None),
        None => {
            let config = Config::read(&args.config)?;
            sources.more = config.more_rules();
            if sources.folders.is_empty() {
                sources.folders = config.rule_folders().unwrap_or_default();
            }
            let folder = config.spam.as_ref().and_then(|spam| spam.bayes.as_ref()).map(|bayes| bayes.ledger.clone());
            let folder =
                folder.ok_or_else(|| format!("{}: no [spam.bayes], and no --ledger DIR", args.config.display()))?;
            let source = cluster::ledger::source(&config, &folder)?;
            (folder, Some(source).filter(Source::is_shared))
        }
    };
    if sources.folders.is_empty() {
        sources.folders = rule_files::standard();
    }
    Ok(Place { folder, shared, sources })
}

/// Rules whose settings hold for what is learned: folders, and files that a configuration makes.
struct RuleSources {
    folders: Vec<PathBuf>,
    more: Vec<RuleFile>,
}

fn engine(sources: &RuleSources) -> Result<Engine, Failure> {
    let rules = rule_files::load(&sources.folders, true, &sources.more, &Expressions)?;
    Ok(Engine::new(rules, EngineOptions::default()))
}

/// Counts of mails by outcome.
#[derive(Default)]
struct Tally {
    learned: u64,
    corrected: u64,
    known: u64,
    forgotten: u64,
    unknown: u64,
    ignored: u64,
    too_large: u64,
    failed: u64,
}

struct Learner<'a> {
    args: &'a Learn,
    studies: Studies,
    ledger: Box<dyn Ledger>,
    tally: Tally,
}

/// Facts to learn of a mail besides its words.
struct Beside {
    conduct: Option<Conduct>,
    fuzzy: Option<Fuzzy>,
}

/// How mails are taken apart.
struct Studies {
    engine: Engine,
    study: Study,
    reputation: Option<Reputation>,
}

impl<'a> Learner<'a> {
    fn new(args: &'a Learn, sources: &RuleSources, ledger: Box<dyn Ledger>) -> Result<Learner<'a>, Failure> {
        let engine = engine(sources)?;
        let study = Study::new(&engine);
        if !study.is_on() {
            return Err("the rules say use_bayes 0: nothing is learned".into());
        }
        let reputation = Reputation::new(&engine);
        let studies = Studies { engine, study, reputation };
        Ok(Learner { args, studies, ledger, tally: Tally::default() })
    }

    /// Learns mails, as spam or as ham; none: forgets them.
    fn learn(mut self, mails: &Mails, is_spam: Option<bool>) -> Result<ExitCode, Failure> {
        let bar = bar(mails.total_bytes);
        let (mut batch, mut bytes) = (Vec::new(), 0);
        mails.read(|found: Found| {
            match found {
                Err(reason) => {
                    self.tally.failed += 1;
                    bar.suspend(|| eprintln!("sluice: {reason}"));
                }
                Ok(None) => self.tally.too_large += 1,
                Ok(Some(mail)) if mail.is_empty() => self.tally.ignored += 1,
                Ok(Some(mail)) => {
                    bytes += mail.len();
                    batch.push(mail);
                }
            }
            if batch.len() >= BATCH_MAILS || bytes >= BATCH_BYTES {
                self.batch(&batch, is_spam)?;
                bar.inc(bytes as u64);
                batch.clear();
                bytes = 0;
            }
            Ok(())
        })?;
        self.batch(&batch, is_spam)?;
        bar.finish_and_clear();
        self.expire()?;
        self.tell(is_spam);
        Ok(ExitCode::from(u8::from(self.tally.failed > 0)))
    }

    fn batch(&mut self, mails: &[Vec<u8>], is_spam: Option<bool>) -> Result<(), Failure> {
        let studied = self.studies.all(mails);
        self.tally.ignored += studied.iter().filter(|studied| studied.is_none()).count() as u64;
        let (studied, beside): (Vec<Studied>, Vec<Beside>) = studied.into_iter().flatten().unzip();
        let (user, now) = (&*self.args.user, now());
        let Some(is_spam) = is_spam else {
            for (Studied { ids, tokens, .. }, beside) in studied.iter().zip(beside) {
                let was_there = self.ledger.forget(user, ids, tokens)?;
                *if was_there { &mut self.tally.forgotten } else { &mut self.tally.unknown } += 1;
                count(&mut *self.ledger, user, beside, None, now)?;
            }
            return Ok(());
        };
        let lessons: Vec<Lesson> = studied.into_iter().map(|studied| lesson(studied, is_spam, now)).collect();
        if lessons.is_empty() {
            return Ok(());
        }
        for (learned, beside) in self.ledger.learn(user, &lessons)?.into_iter().zip(beside) {
            *match learned {
                Learned::New => &mut self.tally.learned,
                Learned::Corrected => &mut self.tally.corrected,
                Learned::Known => &mut self.tally.known,
            } += 1;
            if learned != Learned::Known {
                count(&mut *self.ledger, user, beside, Some(is_spam), now)?;
            }
        }
        Ok(())
    }

    /// Forgets old words, where that is due.
    fn expire(&mut self) -> Result<(), Failure> {
        let (user, now) = (&*self.args.user, now());
        if !self.studies.study.expires() {
            return Ok(());
        }
        let summary = self.ledger.summary(user)?;
        let is_due = now.saturating_sub(summary.expired) > EXPIRE_SECONDS;
        if is_due && summary.words > self.studies.study.words_max() {
            self.ledger.expire(user, self.studies.study.words_max(), now)?;
        }
        Ok(())
    }

    fn tell(&self, is_spam: Option<bool>) {
        let Tally { learned, corrected, known, forgotten, unknown, ignored, too_large, failed } = self.tally;
        let done = match is_spam {
            Some(_) => vec![("learned", learned), ("corrected", corrected), ("known", known)],
            None => vec![("forgotten", forgotten), ("unknown", unknown)],
        };
        let counts = done.into_iter().chain([("ignored", ignored), ("too_large", too_large), ("failed", failed)]);
        if self.args.json {
            let object: serde_json::Map<_, _> = counts.map(|(name, count)| (name.into(), count.into())).collect();
            println!("{}", serde_json::Value::Object(object));
            return;
        }
        let told = counts.enumerate().filter(|(place, (_, count))| *place == 0 || *count > 0);
        let told: Vec<String> = told.map(|(_, (name, count))| format!("{count} {}", name.replace('_', " "))).collect();
        println!("{}", told.join(", "));
    }
}

/// Lesson of a mail. A date in the future is ignored.
pub fn lesson(studied: Studied, is_spam: bool, now: i64) -> Lesson {
    const AHEAD_SECONDS: i64 = 86_400;
    let at = studied.at.filter(|at| at.saturating_sub(now) <= AHEAD_SECONDS).unwrap_or(now);
    Lesson { is_spam, ids: studied.ids, at, tokens: studied.tokens, corrects: true }
}

impl Studies {
    /// Takes mails apart, by as many threads as there are cores.
    fn all(&self, mails: &[Vec<u8>]) -> Vec<Option<(Studied, Beside)>> {
        let threads = thread::available_parallelism().map_or(1, NonZeroUsize::get).min(mails.len());
        let next = AtomicUsize::new(0);
        let work = || {
            let mut done = Vec::new();
            loop {
                let place = next.fetch_add(1, Ordering::Relaxed);
                let Some(bytes) = mails.get(place) else { return done };
                done.push((place, self.one(bytes)));
            }
        };
        let mut all = thread::scope(|scope| {
            let threads: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
            let done = threads.into_iter().flat_map(|thread| thread.join().expect("it does not panic"));
            done.collect::<Vec<_>>()
        });
        all.sort_unstable_by_key(|(place, _)| *place);
        all.into_iter().map(|(_, studied)| studied).collect()
    }

    /// Reads one mail: its lesson, and facts about its sender.
    fn one(&self, bytes: &[u8]) -> Option<(Studied, Beside)> {
        let Studies { engine, study, reputation } = self;
        let mail = Message::read(bytes, engine.reading(), &MessageLimits::default());
        let studied = study.lesson(engine, &mail)?;
        let conduct = reputation.and_then(|reputation| {
            let sent = reputation.sent(engine, &mail)?;
            // Nobody asks the network who has signed it.
            Some(reputation.conduct(&reputation.named(&sent, engine.settings(), None)))
        });
        Some((studied, Beside { conduct, fuzzy: fuzzy(engine, &mail) }))
    }
}

/// A mail counts for who has sent it and for those that are like it, as somebody says; none: no more.
fn count(
    ledger: &mut dyn Ledger,
    user: &str,
    Beside { conduct, fuzzy }: Beside,
    is_spam: Option<bool>,
    now: i64,
) -> Result<(), Error> {
    if let Some(fuzzy) = fuzzy {
        ledger.report(user, &compared(fuzzy), is_spam == Some(true), now)?;
    }
    let Some(conduct) = conduct else { return Ok(()) };
    let counts = is_spam.map_or(Counts::Forgotten, |is_spam| taught(&conduct, is_spam));
    ledger.count(user, &noted(conduct), counts, now)
}

/// One that is seen on a terminal only.
fn bar(total_bytes: u64) -> ProgressBar {
    let style = ProgressStyle::with_template("{bar:30} {bytes}/{total_bytes} {eta}").expect("the template is right");
    ProgressBar::with_draw_target(Some(total_bytes), ProgressDrawTarget::stderr()).with_style(style)
}

fn import(args: &Learn, ledger: &mut dyn Ledger, file: Option<File>) -> Result<ExitCode, Failure> {
    let input: Box<dyn Read> = match file {
        Some(file) => Box::new(file),
        None => Box::new(io::stdin().lock()),
    };
    let mut input = BufReader::new(input);
    let mut number = 0;
    let mut line = Vec::new();
    let mut lines = std::iter::from_fn(|| {
        line.clear();
        number += 1;
        match (&mut input).take(LINE_BYTES_MAX as u64 + 2).read_until(b'\n', &mut line) {
            Err(error) => return Some(Err(Error::Io(error))),
            Ok(0) if number == 1 => return Some(Err(Error::Line(1, "it is empty".into()))),
            Ok(0) => return None,
            Ok(_) => {}
        }
        let text = line.strip_suffix(b"\n").unwrap_or(&line);
        let item = Snapshot::read(text.strip_suffix(b"\r").unwrap_or(text));
        let item = match item {
            Ok(item) if number == 1 && item != Snapshot::Version => Err("it does not begin with db_version"),
            item => item,
        };
        Some(item.map_err(|reason| Error::Line(number, reason.into())))
    });
    let summary = ledger.import(&args.user, &mut lines)?;
    print(args, summary);
    Ok(ExitCode::SUCCESS)
}

fn export(ledger: &mut dyn Ledger, user: &str) -> Result<ExitCode, Failure> {
    let mut out = BufWriter::new(crate::output::out());
    ledger.export(user, &mut |item| out.write_all(item.line().as_bytes()))?;
    out.flush()?;
    Ok(ExitCode::SUCCESS)
}

fn print(args: &Learn, summary: Summary) {
    let Summary { corpus, words, oldest, newest, expired, mails, senders, reports } = summary;
    if args.json {
        println!(
            "{}",
            json!({
                "spam": corpus.spam, "ham": corpus.ham, "words": words, "oldest": oldest, "newest": newest,
                "expired": expired, "mails": mails, "senders": senders, "reports": reports,
            })
        );
        return;
    }
    println!("spam     {}", corpus.spam);
    println!("ham      {}", corpus.ham);
    println!("words    {words}");
    println!("mails    {mails} remembered");
    println!("senders  {senders}");
    println!("reports  {reports}");
    for (name, at) in [("oldest", oldest), ("newest", newest), ("expired", expired)] {
        println!("{name:<8} {}", if at == 0 { "never".into() } else { date(at) });
    }
}

/// A date and a time of day, in UTC.
fn date(at: i64) -> String {
    let format = time::macros::format_description!("[year]-[month]-[day] [hour]:[minute]:[second]Z");
    let at = time::OffsetDateTime::from_unix_timestamp(at).ok();
    at.and_then(|at| at.format(&format).ok()).unwrap_or_else(|| "unknown".into())
}
