//! The process that compiles: it may use what it was given (a pipe to read from, a file to write to, a pipe for its last
//! words) and nothing else.
//!
//! It is `sluice database worker`, started by [`compile`](super::compile) and by nobody else. Before it reads a byte it
//! forbids itself every path and every network connection, where the kernel knows Landlock, and every gain of
//! privileges.

use std::io::{self, BufRead, BufWriter, Read};
use std::process::ExitCode;
use std::sync::Mutex;

use landlock::{ABI, Access, AccessFs, AccessNet, Ruleset, RulesetAttr, RulesetStatus};
use scan::Job;

use super::cache::Note;
use super::compile::{Done, Line, Outcome};
use crate::output::Failure;

/// The longest line between files.
const LINE_BYTES_MAX: u64 = 64 << 10;

/// Compiles what comes in at the standard input to the standard output.
pub fn run() -> ExitCode {
    let outcome = work(&mut io::stdin().lock(), io::stdout().lock());
    let (outcome, code) = match outcome {
        Ok(done) => (Outcome::Done(done), ExitCode::SUCCESS),
        Err(error) => (Outcome::Failed(error.to_string()), ExitCode::from(2)),
    };
    eprintln!("{}", serde_json::to_string(&outcome).unwrap_or_default());
    code
}

fn work(input: &mut impl BufRead, output: impl io::Write) -> Result<Done, Failure> {
    crate::process::privileges::harden()?;
    crate::name_thread("sluice-compiler");
    let confined = confine()?;
    let Line::Begin(choice) = line(input)? else { return Err("files without a beginning".into()) };
    let mut builder = choice.builder();
    let mut sources = Vec::new();
    loop {
        let (path, bytes) = match line(input)? {
            Line::File { path, bytes } => (path, bytes),
            Line::End => break,
            Line::Refused(reason) => return Err(reason.into()),
            Line::Begin(_) | Line::Read(_) => return Err("a file without a beginning".into()),
        };
        let mut content = Vec::new();
        input.take(bytes).read_to_end(&mut content)?;
        let source = match line(input)? {
            Line::Read(source) => source,
            Line::Refused(reason) => return Err(reason.into()),
            _ => return Err("a file without an end".into()),
        };
        builder.add(&path, &content)?;
        sources.push(source);
    }
    if choice.builtin {
        builder.add_builtin();
    }
    let database = builder.build_with(&together);
    let note = serde_json::to_string(&Note::new(choice, sources))?;
    let stored = database.store(&note, &mut BufWriter::with_capacity(1 << 20, output));
    stored.map_err(|error| format!("the compiled signatures cannot be written: {error}"))?;
    let census = database.census();
    Ok(Done { signatures: census.signatures(), refused: census.refused.len() as u64, confined: confined.into() })
}

/// Runs these jobs on as many threads as there are cores; when it returns, they have ended.
fn together(jobs: Vec<Job<'_>>) {
    let threads = std::thread::available_parallelism().map_or(1, usize::from).min(jobs.len());
    let jobs = Mutex::new(jobs.into_iter());
    let next = || jobs.lock().expect("no job runs under the lock").next();
    let work = || std::iter::from_fn(next).for_each(|job| job());
    std::thread::scope(|scope| {
        // Where there can be no other thread, this one does it all.
        for _ in 1..threads {
            let _ = std::thread::Builder::new().name("sluice-compiler".into()).spawn_scoped(scope, work);
        }
        work();
    });
}

fn line(input: &mut impl BufRead) -> Result<Line, Failure> {
    let mut text = String::new();
    input.by_ref().take(LINE_BYTES_MAX).read_line(&mut text)?;
    Ok(serde_json::from_str(&text)?)
}

/// Gives up everything that is not needed; how far that went.
fn confine() -> Result<&'static str, Failure> {
    let ruleset = Ruleset::default().handle_access(AccessFs::from_all(ABI::V5))?;
    let status = ruleset.handle_access(AccessNet::from_all(ABI::V5))?.create()?.restrict_self()?;
    Ok(match status.ruleset {
        RulesetStatus::FullyEnforced => "fully",
        RulesetStatus::PartiallyEnforced => "partly",
        RulesetStatus::NotEnforced => "not",
    })
}
