//! `sluice scan`: files and folders, like clamscan.
//!
//! ```text
//!  walk ── numbered files ──► as many threads as cores ── what is said of each ──► report: in the order of the numbers
//! ```

pub mod clamscan;
mod keep;
mod known;
mod report;
mod tally;
mod walk;

use std::fs::File;
use std::io::{self, IsTerminal, Read, Write};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::FileTypeExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::{Arc, Mutex, mpsc};
use std::time::{Duration, Instant};

use flow::{Action, Policy, Protocol, Spotted, Verdict};
use inspect::Engine;
use jail::Local;
use stream::{Class, Finding, Limits};

use self::keep::Keep;
use self::known::{Asked, Known};
use self::report::{Report, Text, line, shown};
use self::tally::Tally;
use self::walk::Step;
use crate::cli::{Scan, ScanLook};
use crate::config::clamd_conf;
use crate::database;
use crate::output::Failure;
use crate::process::confine::Reach;
use crate::process::held::Held;
use crate::process::privileges;
use edge::inspector::examine::{self, Examined, Look};

/// State that all threads share.
struct Shared<'a> {
    args: &'a Scan,
    inspector: Local,
    look: Look,
    keep: Keep,
    known: Known,
    report: Report<'a>,
    tally: Tally,
}

/// Scans what the command line names. The exit status is clamscan's: 0 clean, 1 found, 2 error.
pub fn run(args: &Scan) -> Result<ExitCode, Failure> {
    let started = tally::Start::now();
    if let Some(days) = args.fail_if_cvd_older_than {
        let seconds = database::now().saturating_sub_unsigned(days.saturating_mul(24 * 3_600));
        let (newest, _) = database::releases(&args.database.databases)?;
        if newest.is_none_or(|newest| i64::try_from(newest.built).is_ok_and(|built| built < seconds)) {
            return Err(format!("the signatures are older than {days} days").into());
        }
    }
    let loaded = database::open(&args.database)?;
    let mut generation = loaded.identity();
    let options = (&args.database.pua, &args.look, limits(&args.look));
    generation.extend(format!("scan {} {options:?}", env!("CARGO_PKG_VERSION")).bytes());
    let shared = Shared {
        args,
        inspector: Local::new(Arc::new(Engine { database: loaded.database.clone(), limits: limits(&args.look) }), None),
        look: Look {
            protocol: Protocol::File,
            name: None,
            policy: policy(&args.look),
            explain: false,
            first_match: !args.look.allmatch && !args.output.json,
            all_findings: args.look.allmatch,
            until: None,
        },
        keep: Keep::new(&args.keep).map_err(|error| format!("the folder for infected files: {error}"))?,
        known: Known::open(args.state.as_deref(), &generation)?,
        report: Report::new(&args.output).map_err(|error| format!("the log: {error}"))?,
        tally: Tally::default(),
    };
    confine(args, shared.known.folder())?;
    if args.output.csv {
        shared.report.begin(CSV_HEADER);
    }
    let (work, queue) = mpsc::sync_channel::<(u64, PathBuf)>(256);
    let queue = Mutex::new(queue);
    std::thread::scope(|scope| {
        for _ in 0..jobs(args) {
            scope.spawn(|| {
                // The queue is unlocked before the file is looked at.
                while let Some((number, path)) = { queue.lock().expect("no holder panics").recv().ok() } {
                    shared.scan(number, &path);
                }
            });
        }
        shared.hand_out(work)
    })?;
    shared.known.end();
    let quiet = args.output.json || args.output.csv || args.output.no_summary || args.output.quiet;
    shared.report.end(&if quiet { String::new() } else { shared.tally.summary(loaded.signatures, &started) });
    Ok(shared.tally.exit_code())
}

/// From here on files are read, and only those that the options name are written or taken away.
fn confine(args: &Scan, state: Option<&Held>) -> Result<(), Failure> {
    privileges::harden()?;
    let mut reach = Reach::reading();
    let keep = &args.keep;
    keep.move_to.iter().chain(&keep.copy_to).for_each(|folder| _ = reach.write(folder));
    if keep.move_to.is_some() || keep.remove == Some(true) {
        reach.remove();
    }
    reach.confine(&state.into_iter().collect::<Vec<_>>())?;
    Ok(())
}

fn jobs(args: &Scan) -> usize {
    match args.jobs {
        0 => std::thread::available_parallelism().map_or(1, usize::from),
        jobs => jobs,
    }
}

/// The processor time for a file where no time is asked for.
const CPU_MS_MAX: u64 = 120_000;

fn limits(look: &ScanLook) -> Limits {
    let limits = Limits::default();
    Limits {
        depth_max: look.max_recursion.filter(|&depth| depth > 0).unwrap_or(limits.depth_max),
        objects_max: look.max_files.map_or(limits.objects_max, clamd_conf::objects),
        // Nobody waits for an answer here: as long as clamscan takes for a file, or what is asked for.
        cpu_ms_max: if look.max_scantime > 0 { look.max_scantime } else { CPU_MS_MAX },
        ..limits
    }
}

/// Policy of a scan: matches count, and doubtful findings if asked for.
fn policy(look: &ScanLook) -> Policy {
    let when = |counts| if counts { Action::Reject } else { Action::Pass };
    Policy {
        on_infected: Action::Reject,
        signatures: Arc::default(),
        on_forbidden: Action::Pass,
        on_limit: when(look.strict || look.alert_exceeds_max),
        on_ambiguous: when(look.strict),
        on_unopened: when(look.strict || look.alert_exceeds_max),
        on_encrypted: when(look.strict || look.alert_encrypted),
        on_external: Action::Pass,
        on_partial: when(look.strict || look.alert_exceeds_max),
        on_malformed: Action::Pass,
    }
}

impl Shared<'_> {
    /// Goes through the paths, and numbers everything of which something may be said.
    fn hand_out(&self, work: mpsc::SyncSender<(u64, PathBuf)>) -> io::Result<()> {
        let mut number = 0;
        walk::walk(&self.args.choice, &self.args.paths, |step| {
            self.report.wait(number);
            match step {
                Step::Folder => return self.tally.folders.add(1),
                Step::File(path, bytes) => {
                    self.report.bar().inc_length(bytes);
                    let _ = work.send((number, path));
                }
                Step::Said(text) => self.report.hand_in(number, vec![text]),
                Step::Failed(path, reason) => self.report.hand_in(number, vec![self.failed(&path, &reason)]),
            }
            number += 1;
        })
    }

    /// Scans one file, and hands in what is said of it whatever happens.
    fn scan(&self, number: u64, path: &Path) {
        let texts = catch_unwind(AssertUnwindSafe(|| self.scan_file(path)));
        self.report.hand_in(number, texts.unwrap_or_else(|_| vec![self.failed(path, "Internal error")]));
    }

    fn scan_file(&self, path: &Path) -> Vec<Text> {
        let opened = if path == Path::new("-") { Ok(None) } else { open(path).map(Some) };
        let file = match opened {
            Ok(file) => file,
            Err(error) => return vec![self.failed(path, &error.to_string())],
        };
        let before = match file.as_ref().map(|file| self.known.ask(file)) {
            Some(Asked::Clean) => return vec![self.unchanged(path, file.as_ref())],
            Some(Asked::Unknown(before)) => before,
            None => None,
        };
        let examined = match &file {
            Some(file) => self.examine(path, file, file.metadata().map_or(0, |facts| facts.len())),
            None => self.examine(path, io::stdin().lock(), 0),
        };
        let examined = match examined {
            Ok(examined) => examined,
            Err(error) => return vec![self.failed(path, &error.to_string())],
        };
        let is_clean = examined.bytes > 0 && examined.verdict.findings.is_empty();
        if let (Some(file), Some(before), true) = (&file, before, is_clean) {
            self.known.learn(&before, file);
        }
        let mut texts = self.told(path, &examined);
        if examined.verdict.action > Action::Pass {
            self.tally.infected.add(1);
            if self.args.output.bell {
                let _ = io::stderr().write_all(b"\x07");
            }
            if let Some(file) = &file {
                match self.keep.act(path, file) {
                    Ok(done) => texts.extend(done.map(|done| Text::found([&*line(path, ""), &done].concat()))),
                    Err(error) => texts.push(self.failed(path, &error.to_string())),
                }
            }
        }
        texts
    }

    /// Looks at a file, as far as the options allow.
    fn examine(&self, path: &Path, source: impl Read, bytes: u64) -> io::Result<Examined> {
        let look = &self.args.look;
        let time = Some(look.max_scantime).filter(|&ms| ms > 0).map(Duration::from_millis);
        let until = time.and_then(|time| Instant::now().checked_add(time));
        let mut source =
            Bounded { source, left: if look.max_scansize > 0 { look.max_scansize } else { u64::MAX }, reached: None };
        if look.max_filesize > 0 && bytes > look.max_filesize {
            source.left = 0;
            source.reached = Some("Heuristics.Limits.Exceeded.MaxFileSize");
        }
        let look = Look { until, name: examine::name(path), ..self.look.clone() };
        let mut examined = examine::examine(&self.inspector, &look, &mut source, |count| self.report.bar().inc(count))?;
        if let Some(name) = source.reached {
            let finding = Finding::new(Class::Limit, name, examined.bytes);
            let verdict = &mut examined.verdict;
            verdict.findings.push(Spotted { finding, path: Arc::new([]), object: 0 });
            verdict.action = verdict.action.max(self.look.policy.on_limit);
        }
        self.tally.count(&examined);
        Ok(examined)
    }

    /// Lines about a file that was clean before and has not changed.
    fn unchanged(&self, path: &Path, file: Option<&File>) -> Text {
        let bytes = file.and_then(|file| file.metadata().ok()).map_or(0, |facts| facts.len());
        self.tally.known.add(1);
        self.report.bar().inc(bytes);
        if self.args.output.csv {
            return Text::clean(csv_line(path, bytes, None));
        }
        if !self.args.output.json {
            return Text::clean(line(path, "OK"));
        }
        let facts = serde_json::json!({
            "file": path.display().to_string(), "status": "ok", "bytes": bytes, "unchanged": true, "findings": [],
        });
        Text::clean(facts.to_string())
    }

    /// Lines about a file.
    fn told(&self, path: &Path, examined: &Examined) -> Vec<Text> {
        let verdict = &examined.verdict;
        if self.args.output.json {
            let line = json_line(path, verdict, examined.bytes);
            return vec![if verdict.action > Action::Pass { Text::found(line) } else { Text::clean(line) }];
        }
        let is_stdin = path == Path::new("-");
        let path = if is_stdin { Path::new("stdin") } else { path };
        let told = examine::told(verdict, &self.look.policy, self.args.look.allmatch);
        if self.args.output.csv {
            let found = |spotted: &&Spotted| Text::found(csv_line(path, examined.bytes, Some(spotted)));
            let texts: Vec<Text> = told.iter().map(found).collect();
            return if texts.is_empty() { vec![Text::clean(csv_line(path, examined.bytes, None))] } else { texts };
        }
        let mut texts: Vec<Text> = told.iter().map(|spotted| Text::found(self.found(path, spotted))).collect();
        if texts.is_empty() {
            texts.push(match examined.bytes == 0 && verdict.findings.is_empty() && !is_stdin {
                true => Text::passed_over(path, "Empty file"),
                false => Text::clean(line(path, "OK")),
            });
            let doubt = verdict.findings.iter().find(|spotted| spotted.finding.class >= Class::Encrypted);
            texts.extend(
                doubt.map(|spotted| Text::warning(path, &format!("not wholly inspected: {}", spotted.finding.name))),
            );
            self.tally.doubtful.add(doubt.is_some().into());
        }
        if self.args.look.allmatch && !told.is_empty() && verdict.more_findings > 0 {
            texts.push(Text::warning(path, &format!("{} more findings are not listed", verdict.more_findings)));
        }
        texts
    }

    fn found(&self, path: &Path, spotted: &Spotted) -> Vec<u8> {
        let place = if self.args.output.archive_verbose { position(spotted) } else { String::new() };
        let colour = io::stdout().is_terminal() && self.args.output.log.is_none();
        let (on, off) = if colour { ("\x1b[1;31m", "\x1b[0m") } else { ("", "") };
        [shown(path), format!("{place}: {on}{} FOUND{off}", spotted.finding.name).into()].concat()
    }

    fn failed(&self, path: &Path, reason: &str) -> Text {
        self.tally.errors.add(1);
        Text::error(path, reason.split(" (os error").next().unwrap_or_default())
    }
}

/// Opens a file; what was put in its place since it was seen is not waited for.
fn open(path: &Path) -> io::Result<File> {
    let kind = std::fs::metadata(path)?.file_type();
    if kind.is_fifo() || kind.is_socket() || kind.is_char_device() || kind.is_block_device() {
        return Err(io::Error::other("Not supported file type"));
    }
    File::open(path)
}

/// A source that ends where the options say, and then says why.
struct Bounded<R> {
    source: R,
    left: u64,
    reached: Option<&'static str>,
}

impl<R: Read> Read for Bounded<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.reached.is_some() {
            return Ok(0);
        }
        // One byte more would be too many: whether there is one has to be known.
        let most = usize::try_from(self.left).map_or(buffer.len(), |left| buffer.len().min(left.max(1)));
        let count = self.source.read(&mut buffer[..most])?;
        if count as u64 > self.left {
            self.reached = Some("Heuristics.Limits.Exceeded.MaxScanSize");
            return Ok(0);
        }
        self.left -= count as u64;
        Ok(count)
    }
}

/// The way into a file: ` » invoice.zip » a.exe`.
fn position(spotted: &Spotted) -> String {
    let mut position = String::new();
    for name in spotted.path.iter() {
        position.push_str(" » ");
        position.extend(name.chars().map(|c| if c.is_control() { '?' } else { c }));
    }
    position
}

/// The names of the fields of [`csv_line`].
const CSV_HEADER: &str = "file,status,signature,within,bytes";

/// A record as of RFC 4180, but for the end of the line, which is a line feed alone, and bytes of a path that are not UTF-8.
fn csv_line(path: &Path, bytes: u64, spotted: Option<&Spotted>) -> Vec<u8> {
    let status = if spotted.is_some() { "found" } else { "ok" };
    let name = spotted.map(|spotted| spotted.finding.name.to_string()).unwrap_or_default();
    let within = spotted
        .map(|spotted| spotted.path.iter().map(|name| &**name).collect::<Vec<_>>().join("/"))
        .unwrap_or_default();
    let fields = [path.as_os_str().as_bytes(), status.as_bytes(), name.as_bytes(), within.as_bytes()];
    let mut line: Vec<u8> = fields.iter().flat_map(|field| [&*quoted(field), b","].concat()).collect();
    line.extend(bytes.to_string().bytes());
    line
}

/// A field, in quotes where it has something that means something.
fn quoted(field: &[u8]) -> Vec<u8> {
    // With a control character a name could pass for another line.
    let is_plain = !field.iter().any(|byte| b",\"".contains(byte) || byte.is_ascii_control());
    if is_plain {
        return field.to_vec();
    }
    let inner = field.iter().flat_map(|&byte| match byte {
        b'"' => vec![b'"', b'"'],
        _ if byte.is_ascii_control() => vec![b'?'],
        _ => vec![byte],
    });
    [b'"'].into_iter().chain(inner).chain([b'"']).collect()
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
