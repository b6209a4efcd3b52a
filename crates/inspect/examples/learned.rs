//! Cost of the question about learned words: `learned ROUNDS MAIL...` takes mails apart into words with the rules of
//! the packages, once to warm up and then ROUNDS times. For
//! `valgrind --tool=callgrind --collect-atstart=no --toggle-collect=learned::rounds`, which counts the rounds alone.

use std::path::{Path, PathBuf};
use std::{env, fs};

use inspect::Study;
use rules::spam::message::{Message, MessageLimits};
use rules::spam::run::{Engine, EngineOptions, Expressions};
use rules::spam::{File, Limits, Loader, Options, ScoreSet, source};

fn main() {
    let mut arguments = env::args().skip(1);
    let count: u32 = arguments.next().and_then(|count| count.parse().ok()).unwrap_or(1);
    let mails: Vec<Vec<u8>> = arguments.filter_map(|path| fs::read(path).ok()).collect();
    let mut loader = Loader::new(Options { local_tests_only: true, ..Options::default() }, Limits::default());
    for path in files() {
        let Ok(bytes) = fs::read(&path) else { continue };
        loader.read(&File { name: path.display().to_string().into(), bytes }, &mut |_, name| Err(name.into()));
    }
    let set = ScoreSet { net: false, bayes: true };
    let engine = Engine::new(loader.finish(&Expressions), EngineOptions { set, ..EngineOptions::default() });
    let study = Study::new(&engine);
    let read = |mail: &Vec<u8>| Message::read(mail, engine.reading(), &MessageLimits::default());
    let mails: Vec<Message> = mails.iter().map(read).collect();
    let first = rounds(1, &study, &engine, &mails);
    println!("{} mails, {first} words, {} in all rounds", mails.len(), rounds(count, &study, &engine, &mails));
}

#[inline(never)]
fn rounds(count: u32, study: &Study, engine: &Engine, mails: &[Message]) -> usize {
    let words = |mail| study.question(engine, mail).map_or(0, |tokens| tokens.keys().len());
    (0..count).map(|_| mails.iter().map(words).sum::<usize>()).sum()
}

fn files() -> Vec<PathBuf> {
    let mut paths: Vec<PathBuf> = Vec::new();
    for folder in ["/usr/share/spamassassin", "/etc/spamassassin"] {
        let entries = fs::read_dir(folder).into_iter().flatten().flatten();
        let mut names = entries.filter_map(|entry| entry.file_name().into_string().ok()).collect();
        source::order(&mut names);
        paths.extend(names.into_iter().map(|name| Path::new(folder).join(name)));
    }
    paths.sort_by_key(|path| path.extension().is_some_and(|end| end == "cf"));
    paths
}
