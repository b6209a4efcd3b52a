//! Compiling signatures in a process of its own.
//!
//! Who asks reads the files and hands them to the child through a pipe; the child, which may read and open nothing,
//! compiles ([`worker`](super::worker)) and writes to the one file that it was given. An edge has its supervisor start it. So
//! what parses signatures can at worst write a bad database, and what is written is checked before it is used.
//!
//! ```text
//!  files ──► who asks ──► pipe: a line of JSON and its bytes, for each file ──► child ──► the file
//!                ◄── one line of JSON: how it went ◄───────────────────────────
//! ```

use std::fs::File;
use std::io::{self, PipeWriter, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command};

use serde::{Deserialize, Serialize};

use super::Choice;
use super::signed::Checker;
use super::source::{Reading, Source};
use crate::output::Failure;
use crate::process::privileges::NOBODY;
use crate::process::supervise::lead::{COMPILER, SUCCESS, Started, lead};

/// The most that a child is listened to.
const SAID_BYTES_MAX: u64 = 64 << 10;

/// A line in front of a file's bytes, or after them.
#[derive(Debug, Serialize, Deserialize)]
pub enum Line {
    /// Selection of signatures in the files that follow.
    Begin(Choice),
    /// So many bytes of this file come next.
    File {
        /// Its path.
        path: String,
        /// Its size.
        bytes: u64,
    },
    /// End of a file, with its identity.
    Read(Source),
    /// End of a file that is not to be used, with the reason.
    Refused(String),
    /// No more files follow.
    End,
}

/// How it went.
#[derive(Debug, Serialize, Deserialize)]
pub enum Outcome {
    /// It is written.
    Done(Done),
    /// Why it is not.
    Failed(String),
}

/// Result of a compilation.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Done {
    /// Signatures that are looked for.
    pub signatures: u64,
    /// Signatures that are not.
    pub refused: u64,
    /// How far the child was confined: `fully`, `partly` or `not`.
    pub confined: String,
}

/// Called with the bytes handed over, and their total.
pub type Progress<'p> = dyn FnMut(u64, u64) + Send + 'p;

/// Compiles `files` into `sink`.
///
/// # Errors
/// When a file cannot be read or understood, or the child ends before its time; the message says why.
pub fn compile(
    files: &[PathBuf],
    choice: &Choice,
    checker: &Checker,
    sink: File,
    progress: &mut Progress<'_>,
) -> Result<Done, Failure> {
    let (theirs, input) = std::io::pipe()?;
    let (output, said) = std::io::pipe()?;
    let worker = Worker::start([theirs.into(), sink.into(), said.into()]);
    let worker = worker.map_err(|error| format!("cannot start the compiler: {error}"))?;
    let mut said = String::new();
    let fed = std::thread::scope(|scope| {
        let feeding = scope.spawn(|| feed(files, choice, checker, input, progress).map_err(|error| error.to_string()));
        let heard = output.take(SAID_BYTES_MAX).read_to_string(&mut said);
        let fed = feeding.join().unwrap_or_else(|_| Err("the files could not be read".into()));
        heard.map_err(|error| error.to_string()).and(fed)
    });
    let (succeeded, status) = worker.wait();
    // What the child says explains why it took no more.
    match (said.lines().last().map(serde_json::from_str), fed) {
        (Some(Ok(Outcome::Failed(reason))), _) => Err(reason.into()),
        (_, Err(reason)) => Err(reason.into()),
        (Some(Ok(Outcome::Done(done))), Ok(())) if succeeded => Ok(done),
        _ => Err(format!("the compiler ended with {status}: {}", said.trim()).into()),
    }
}

/// The process that compiles.
enum Worker {
    /// A child of this one.
    Child(Child),
    /// One that the supervisor has started.
    Led(Started),
}

impl Worker {
    /// Starts it with these as its standard input, output and error.
    fn start([input, output, error]: [OwnedFd; 3]) -> io::Result<Worker> {
        if let Some(lead) = lead() {
            return Ok(Worker::Led(lead.compile([&input, &output, &error])?));
        }
        let mut command = Command::new("/proc/self/exe");
        command.arg0("sluice").args(COMPILER).env_clear().current_dir("/");
        if rustix::process::geteuid().is_root() {
            command.uid(NOBODY).gid(NOBODY);
        }
        Ok(Worker::Child(command.stdin(input).stdout(output).stderr(error).spawn()?))
    }

    /// Waits for its end: whether it succeeded, and how it has ended.
    fn wait(self) -> (bool, String) {
        match self {
            Worker::Child(mut child) => match child.wait() {
                Ok(status) => (status.success(), status.to_string()),
                Err(error) => (false, error.to_string()),
            },
            Worker::Led(started) => {
                let status = started.wait();
                (status == SUCCESS, status)
            }
        }
    }
}

/// Hands the files over.
fn feed(
    files: &[PathBuf],
    choice: &Choice,
    checker: &Checker,
    mut input: PipeWriter,
    progress: &mut Progress<'_>,
) -> Result<(), Failure> {
    let total = files.iter().filter_map(|file| std::fs::metadata(file).ok()).map(|facts| facts.len()).sum();
    let mut done = 0;
    say(&mut input, &Line::Begin(choice.clone()))?;
    for file in files {
        let failed = |error: io::Error| format!("{}: {error}", file.display());
        let reading = match Reading::open(file).map_err(failed) {
            Ok(reading) => reading,
            Err(reason) => {
                say(&mut input, &Line::Refused(reason.clone()))?;
                return Err(reason.into());
            }
        };
        say(&mut input, &Line::File { path: file.display().to_string(), bytes: reading.stamp.bytes })
            .map_err(failed)?;
        let source = reading.copy(&mut |piece| {
            done += piece.len() as u64;
            progress(done, total);
            input.write_all(piece)
        });
        let source = source.map_err(failed)?;
        let line = match checker.check(&source) {
            Ok(_) => Line::Read(source),
            Err(reason) => Line::Refused(reason),
        };
        say(&mut input, &line).map_err(failed)?;
    }
    say(&mut input, &Line::End)?;
    Ok(())
}

fn say(input: &mut PipeWriter, line: &Line) -> io::Result<()> {
    let mut text = serde_json::to_string(line)?;
    text.push('\n');
    input.write_all(text.as_bytes())
}
