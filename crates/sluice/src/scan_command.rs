//! `sluice scan`: files and folders, like clamscan.

use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, mpsc};
use std::time::Instant;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use inspect::{Action, Engine, Policy, Spotted, Verdict};
use stream::{Class, Limits};

use crate::cli::Scan;
use crate::examine::{self, Look};
use crate::{Failure, database};

/// Scans what the command line names. The exit status is clamscan's: 0 clean, 1 found, 2 error.
pub fn run(args: &Scan) -> Result<ExitCode, Failure> {
    let started = Instant::now();
    let loaded = database::load(&args.database.databases, true)?;
    let engine = Arc::new(Engine { database: loaded.database.clone(), limits: Limits::default() });
    let bar = progress_bar(args);
    let tally = Tally::default();
    let (work, queue) = mpsc::sync_channel::<PathBuf>(256);
    let queue = Mutex::new(queue);
    std::thread::scope(|scope| {
        for _ in 0..jobs(args) {
            scope.spawn(|| {
                // The queue is unlocked before the file is looked at.
                while let Some(path) = { queue.lock().expect("no holder panics").recv().ok() } {
                    scan_file(args, &engine, &path, &tally, &bar);
                }
            });
        }
        for path in &args.paths {
            walk(path, &work, &tally, &bar);
        }
        drop(work);
    });
    bar.finish_and_clear();
    if !args.json && !args.no_summary {
        tally.summary(&loaded, started);
    }
    Ok(tally.exit_code())
}

/// What is summed up at the end.
#[derive(Default)]
struct Tally {
    files: AtomicU64,
    folders: AtomicU64,
    infected: AtomicU64,
    errors: AtomicU64,
    read_bytes: AtomicU64,
    scanned_bytes: AtomicU64,
}

impl Tally {
    fn summary(&self, loaded: &database::Loaded, started: Instant) {
        let megabytes = |count: &AtomicU64| count.load(Relaxed) as f64 / (1 << 20) as f64;
        let seconds = started.elapsed().as_secs_f64();
        println!("\n----------- SCAN SUMMARY -----------");
        println!("Known viruses: {}", loaded.signatures);
        println!("Engine version: {}", env!("CARGO_PKG_VERSION"));
        println!("Scanned directories: {}", self.folders.load(Relaxed));
        println!("Scanned files: {}", self.files.load(Relaxed));
        println!("Infected files: {}", self.infected.load(Relaxed));
        if self.errors.load(Relaxed) > 0 {
            println!("Total errors: {}", self.errors.load(Relaxed));
        }
        println!("Data scanned: {:.2} MB", megabytes(&self.scanned_bytes));
        println!("Data read: {:.2} MB", megabytes(&self.read_bytes));
        println!("Time: {seconds:.3} sec ({} m {} s)", seconds as u64 / 60, seconds as u64 % 60);
    }

    fn exit_code(&self) -> ExitCode {
        if self.infected.load(Relaxed) > 0 {
            return ExitCode::from(1);
        }
        ExitCode::from(if self.errors.load(Relaxed) > 0 { 2 } else { 0 })
    }

    fn error(&self, bar: &ProgressBar, path: &Path, error: impl std::fmt::Display) {
        self.errors.fetch_add(1, Relaxed);
        bar.suspend(|| eprintln!("{}: {error} ERROR", path.display()));
    }
}

fn jobs(args: &Scan) -> usize {
    match args.jobs {
        0 => std::thread::available_parallelism().map_or(1, usize::from),
        jobs => jobs,
    }
}

/// Sends each file below `path`; links are not followed.
fn walk(path: &Path, work: &mpsc::SyncSender<PathBuf>, tally: &Tally, bar: &ProgressBar) {
    if path == Path::new("-") {
        let _ = work.send(path.into());
        return;
    }
    for entry in walkdir::WalkDir::new(path).sort_by_file_name() {
        match entry {
            Err(error) => tally.error(bar, path, error),
            Ok(entry) if entry.file_type().is_dir() => {
                tally.folders.fetch_add(1, Relaxed);
            }
            Ok(entry) if entry.path().is_file() => {
                bar.inc_length(entry.metadata().map_or(0, |facts| facts.len()));
                let _ = work.send(entry.into_path());
            }
            Ok(_) => {}
        }
    }
}

fn scan_file(args: &Scan, engine: &Arc<Engine>, path: &Path, tally: &Tally, bar: &ProgressBar) {
    let policy = policy(args);
    let look = Look { policy, ..Look::default() };
    let source = match examine::open(path) {
        Ok(source) => source,
        Err(error) => return tally.error(bar, path, error),
    };
    let examined = match examine::examine(engine, &look, source, |count| bar.inc(count)) {
        Ok(examined) => examined,
        Err(error) => return tally.error(bar, path, error),
    };
    tally.files.fetch_add(1, Relaxed);
    tally.read_bytes.fetch_add(examined.bytes, Relaxed);
    tally.scanned_bytes.fetch_add(examined.verdict.bytes, Relaxed);
    let found = examined.verdict.action > Action::Pass;
    if found {
        tally.infected.fetch_add(1, Relaxed);
    }
    if !found && args.infected {
        return;
    }
    let line = match args.json {
        true => json_line(path, &examined.verdict, examined.bytes),
        false => text_line(path, &examined.verdict, &policy),
    };
    bar.suspend(|| {
        // A closed pipe is the reader's way to say that it has seen enough.
        let _ = writeln!(std::io::stdout().lock(), "{line}");
    });
}

/// Which findings count: matches alone, or everything that leaves doubt.
fn policy(args: &Scan) -> Policy {
    let doubt = if args.strict { Action::Reject } else { Action::Pass };
    Policy {
        on_infected: Action::Reject,
        on_limit: doubt,
        on_ambiguous: doubt,
        on_encrypted: doubt,
        on_malformed: Action::Pass,
    }
}

fn text_line(path: &Path, verdict: &Verdict, policy: &Policy) -> String {
    let shown = if path == Path::new("-") { "stdin".into() } else { path.display().to_string() };
    match verdict.reason(policy) {
        Some(spotted) if verdict.action > Action::Pass => {
            let (on, off) = if std::io::stdout().is_terminal() { ("\x1b[1;31m", "\x1b[0m") } else { ("", "") };
            format!("{}: {on}{} FOUND{off}", position(&shown, spotted), spotted.finding.name)
        }
        _ => match verdict.findings.iter().find(|spotted| spotted.finding.class >= Class::Encrypted) {
            Some(doubt) => format!("{}: OK ({})", position(&shown, doubt), doubt.finding.name),
            None => format!("{shown}: OK"),
        },
    }
}

/// The file, and the way into it: `mail.eml » invoice.zip » a.exe`.
fn position(file: &str, spotted: &Spotted) -> String {
    let mut position = file.to_string();
    for name in spotted.path.iter() {
        position.push_str(" » ");
        position.extend(name.chars().map(|c| if c.is_control() { '?' } else { c }));
    }
    position
}

fn json_line(path: &Path, verdict: &Verdict, bytes: u64) -> String {
    let findings = verdict.findings.iter().map(|spotted| {
        serde_json::json!({
            "name": spotted.finding.name,
            "class": spotted.finding.class.name(),
            "path": spotted.path.iter().collect::<Vec<_>>(),
            "offset": spotted.finding.offset,
        })
    });
    serde_json::json!({
        "file": path.display().to_string(),
        "status": if verdict.action > Action::Pass { "found" } else { "ok" },
        "bytes": bytes,
        "objects": verdict.objects,
        "findings": findings.collect::<Vec<_>>(),
    })
    .to_string()
}

/// On a terminal, when the output does not run over the same screen anyway.
fn progress_bar(args: &Scan) -> ProgressBar {
    let hidden = args.json || !std::io::stderr().is_terminal();
    let target = if hidden { ProgressDrawTarget::hidden() } else { ProgressDrawTarget::stderr() };
    let style = ProgressStyle::with_template("{bar:30} {bytes}/{total_bytes} {bytes_per_sec} {eta}");
    ProgressBar::with_draw_target(Some(0), target).with_style(style.expect("the template is right"))
}
