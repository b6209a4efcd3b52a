//! The scans themselves, away from the event loops.
//!
//! ```text
//!  session ──► stream: a task that takes turns with others ─┐   lines, then that it is done
//!          ──► path:   walks, and scans file by file ───────┼──────────────────────────────► session
//!          ──► file:   a descriptor ────────────────────────┘
//! ```
//!
//! Streams are tasks on as many threads as there are cores; a task moves to the thread that has time. Files are read
//! on threads of their own, where a slow disk holds up nobody else; no more of them are scanned at a time than there
//! are cores. A scan whose client has gone stops at its next segment.
//!
//! A place among those that scan is held for a scan and never while something is sent, so that a client that does not
//! read holds up itself alone. A file gets `scan_seconds_max`: between two reads that is looked at; a read that never returns (a file
//! system whose server does not answer) keeps its thread, and its place is given back.

use std::ffi::OsStr;
use std::fs::File;
use std::future::{Future, poll_fn};
use std::io::{self, Read};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use flow::{Action, Inspector, Policy, Protocol, Unfinished, Verdict};
use proto::clamd::{Scan, Tag};
use tokio::runtime::{Builder, Handle, Runtime};
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tokio::task::{AbortHandle, JoinError, JoinSet};

use super::paths::{self, Found, Refusal};
use super::stats::Place;
use crate::inspector::examine::{self, Examination, Examined, Look, NoVerdict};
use crate::metrics::Metrics;
use crate::settings::ClamdSettings;

/// Pieces of a stream that wait for their scan.
const SEGMENTS_MAX: usize = 2;

/// Threads that read files, or wait for a client to take what is said of them.
const THREADS_MAX: usize = 512;

/// How much later than its time a scan is given up that does not come back from reading.
const GRACE: Duration = Duration::from_secs(5);

/// The threads that scan; one set for the whole run.
pub struct Scanner {
    runtime: Option<Runtime>,
    handle: Handle,
    /// How many scans can go on at a time.
    pub threads: usize,
    /// Files being scanned.
    files: Arc<Semaphore>,
    /// Paths being walked.
    walks: Arc<Semaphore>,
}

/// From a scan to its session.
pub enum Answer {
    /// A line, for the request with this tag.
    Line(Tag, Line),
    /// The request has its whole answer.
    Done,
}

/// Result for one file.
pub struct Line {
    /// The path, `stream`, or `fd[n]`.
    pub subject: Vec<u8>,
    /// Outcome of the file.
    pub outcome: Outcome,
}

/// Outcome for a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// Nothing was found.
    Clean,
    /// This was.
    Found(String),
    /// It was not scanned, or not to its end.
    Failed(String),
    /// The file was excluded by the settings.
    Excluded,
}

impl Outcome {
    /// The name in the log.
    const fn name(&self) -> &'static str {
        match self {
            Outcome::Clean => "clean",
            Outcome::Found(_) => "found",
            Outcome::Failed(_) => "failed",
            Outcome::Excluded => "excluded",
        }
    }

    /// The name of the finding, or why it has failed.
    fn finding(&self) -> Option<&str> {
        match self {
            Outcome::Found(name) | Outcome::Failed(name) => Some(name),
            Outcome::Clean | Outcome::Excluded => None,
        }
    }
}

/// Names of findings, for the log; none of a clean file.
fn names(outcomes: &[Outcome]) -> Option<String> {
    let names: Vec<&str> = outcomes.iter().filter_map(Outcome::finding).collect();
    (!names.is_empty()).then(|| names.join("; "))
}

/// A request under way.
pub struct Job {
    /// Request it belongs to.
    pub tag: Tag,
    /// Where the answer goes.
    pub answers: mpsc::Sender<Answer>,
    /// Inspector in force when it began.
    pub inspector: Arc<dyn Inspector>,
    /// The settings, likewise.
    pub settings: Arc<ClamdSettings>,
    /// Client, for the log.
    pub client: Arc<str>,
    /// The numbers.
    pub metrics: Arc<Metrics>,
    /// Its place in the queue, for as long as it lasts.
    pub _place: Place,
}

/// A piece of a stream.
pub enum Segment {
    /// Content.
    Content(Vec<u8>),
    /// It is complete. Without this the stream was broken off, and nothing is answered.
    End,
}

/// The client is not there any more.
#[derive(Debug)]
struct Gone;

impl Scanner {
    /// Starts the threads.
    pub fn start(threads: usize) -> io::Result<Scanner> {
        let mut builder = Builder::new_multi_thread();
        let walks = 4 * threads;
        let runtime = builder
            .worker_threads(threads)
            .max_blocking_threads(THREADS_MAX)
            .enable_time()
            .thread_name("scan")
            .build()?;
        Ok(Scanner {
            handle: runtime.handle().clone(),
            runtime: Some(runtime),
            threads,
            files: Arc::new(Semaphore::new(threads)),
            walks: Arc::new(Semaphore::new(walks)),
        })
    }

    /// Scans what is sent.
    pub fn stream(&self, job: Job) -> mpsc::Sender<Segment> {
        let (sender, segments) = mpsc::channel(SEGMENTS_MAX);
        self.supervise(job, b"stream".to_vec(), |job| async move {
            let started = Instant::now();
            let Some(examined) = scan_stream(&job, segments).await else { return Ok(()) };
            let outcomes = match examined {
                Ok(examined) => job.outcomes(b"stream", &examined, started, false),
                Err(none) => vec![failed(none)],
            };
            for outcome in outcomes {
                let line = Line { subject: b"stream".to_vec(), outcome };
                let _ = job.answers.send(Answer::Line(job.tag, line)).await;
            }
            Ok(())
        });
        sender
    }

    /// Scans a path.
    pub fn path(&self, job: Job, scan: Scan, path: Vec<u8>) {
        let (handle, files, walks) = (self.handle.clone(), self.files.clone(), self.walks.clone());
        self.supervise(job, path.clone(), |job| async move {
            let place = Mutex::new(walks.clone().acquire_owned().await.ok());
            let walk = Walk { job: Arc::new(job), scan, files, walks, place, handle: handle.clone() };
            handle.spawn_blocking(move || walk.run(&path).unwrap_or(())).await
        });
    }

    /// Scans the file that a descriptor stands for.
    pub fn descriptor(&self, job: Job, descriptor: OwnedFd) {
        let subject = format!("fd[{}]", descriptor.as_raw_fd()).into_bytes();
        let (handle, files) = (self.handle.clone(), self.files.clone());
        self.supervise(job, subject.clone(), |job| async move {
            let place = FilePlace::take(&job, &files, &handle).await;
            let scan = move || {
                let regular = paths::regular(descriptor.into()).map_err(|_| "Not a regular file".to_string());
                let outcomes = job.scan_opened(&subject, regular, false);
                drop(place);
                job.say_all(&subject, outcomes, true).map(|_| ())
            };
            handle.spawn_blocking(move || scan().unwrap_or(())).await
        });
    }

    /// Runs a request to its end, and says so whatever becomes of it.
    fn supervise<F>(&self, job: Job, subject: Vec<u8>, run: impl FnOnce(Job) -> F)
    where
        F: Future<Output = Result<(), JoinError>> + Send + 'static,
    {
        let (tag, answers) = (job.tag, job.answers.clone());
        let scan = self.handle.spawn(run(job));
        self.handle.spawn(async move {
            if !matches!(scan.await, Ok(Ok(()))) {
                tracing::error!(subject = %String::from_utf8_lossy(&subject), "a scan failed");
                let line = Line { subject, outcome: Outcome::Failed(INTERNAL_ERROR.into()) };
                let _ = answers.send(Answer::Line(tag, line)).await;
            }
            let _ = answers.send(Answer::Done).await;
        });
    }
}

impl Drop for Scanner {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

/// Scans a stream; none if it was broken off.
async fn scan_stream(job: &Job, mut segments: mpsc::Receiver<Segment>) -> Option<Result<Examined, NoVerdict>> {
    let mut examination = Examination::new(&*job.inspector, &job.look(b"", false));
    loop {
        let Segment::Content(content) = segments.recv().await? else { break };
        let mut content = &content[..];
        while !content.is_empty() {
            content = &content[examination.take(content)..];
            if let Err(error) = work(&mut examination).await {
                return Some(Err(error));
            }
        }
    }
    examination.close();
    let worked = work(&mut examination).await;
    Some(worked.map(|()| examination.conclude()))
}

async fn work(examination: &mut Examination) -> Result<(), NoVerdict> {
    while !poll_fn(|context| examination.poll(context)).await? {
        tokio::task::yield_now().await;
    }
    Ok(())
}

impl Job {
    fn look(&self, subject: &[u8], all_matches: bool) -> Look {
        let until = self.time().and_then(|time| Instant::now().checked_add(time));
        Look {
            protocol: Protocol::Clamd,
            name: examine::name(Path::new(OsStr::from_bytes(subject))),
            policy: self.settings.policy(),
            explain: false,
            first_match: !all_matches,
            all_findings: false,
            until,
        }
    }

    /// How long the scan of a file may take.
    fn time(&self) -> Option<Duration> {
        Some(self.settings.scan_seconds_max).filter(|&seconds| seconds > 0).map(Duration::from_secs)
    }

    fn scan_found(&self, found: &Found, scan: Scan) -> Vec<Outcome> {
        self.scan_opened(found.shown.as_os_str().as_bytes(), paths::open(found), scan == Scan::AllMatches)
    }

    /// Scans a file, if it could be opened: what was found.
    fn scan_opened(&self, subject: &[u8], file: Result<File, String>, all_matches: bool) -> Vec<Outcome> {
        match file {
            Ok(file) => self.scan_file(subject, file, all_matches),
            Err(reason) => vec![Outcome::Failed(reason)],
        }
    }

    /// Says what was found; of a clean file, if that is wanted too. Returns what was found first.
    fn say_all(&self, subject: &[u8], outcomes: Vec<Outcome>, clean_too: bool) -> Result<Outcome, Gone> {
        let first = outcomes[0].clone();
        for outcome in outcomes.into_iter().filter(|outcome| clean_too || *outcome != Outcome::Clean) {
            self.say(subject, outcome)?;
        }
        Ok(first)
    }

    fn scan_file(&self, subject: &[u8], file: File, all_matches: bool) -> Vec<Outcome> {
        let started = Instant::now();
        let source = Source { file, at: 0, answers: &self.answers };
        match examine::examine(&*self.inspector, &self.look(subject, all_matches), source, |_| ()) {
            Ok(examined) => self.outcomes(subject, &examined, started, all_matches),
            Err(error) => vec![match NoVerdict::of(&error) {
                Some(none) => failed(none),
                None => Outcome::Failed(format!("{}.", paths::reason(&error))),
            }],
        }
    }

    /// Outcomes for a file, counted and logged.
    fn outcomes(&self, subject: &[u8], examined: &Examined, started: Instant, all_matches: bool) -> Vec<Outcome> {
        let outcomes = outcomes(&examined.verdict, &self.settings.policy(), all_matches);
        let found = matches!(outcomes[0], Outcome::Found(_));
        self.metrics.clamd_scans_total.add(1);
        self.metrics.clamd_found_total.add(found.into());
        self.metrics.content_bytes_total.add(examined.bytes);
        let (client, subject) = (&self.client, String::from_utf8_lossy(subject));
        let ms = started.elapsed().as_millis() as u64;
        let (outcome, named) = (outcomes[0].name(), names(&outcomes));
        if found {
            tracing::info!(%client, %subject, bytes = examined.bytes, ms, outcome, found = named, "scanned");
        } else {
            tracing::debug!(%client, %subject, bytes = examined.bytes, ms, outcome, found = named, "scanned");
        }
        outcomes
    }

    fn say(&self, subject: &[u8], outcome: Outcome) -> Result<(), Gone> {
        let line = Line { subject: subject.to_vec(), outcome };
        self.answers.blocking_send(Answer::Line(self.tag, line)).map_err(|_| Gone)
    }
}

/// Outcomes for a verdict; at least one.
fn outcomes(verdict: &Verdict, policy: &Policy, all_matches: bool) -> Vec<Outcome> {
    let told = examine::told(verdict, policy, all_matches).into_iter().map(|spotted| {
        let name = spotted.finding.name.to_string();
        match policy.action(&spotted.finding) {
            Action::Tag => Outcome::Failed(name),
            _ => Outcome::Found(name),
        }
    });
    let mut outcomes: Vec<Outcome> = told.collect();
    if outcomes.is_empty() {
        outcomes.push(Outcome::Clean);
    }
    outcomes
}

/// A file from its beginning, whatever its client has read of it, for as long as there is a client.
struct Source<'a> {
    file: File,
    at: u64,
    answers: &'a mpsc::Sender<Answer>,
}

impl Read for Source<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.answers.is_closed() {
            return Err(io::ErrorKind::ConnectionAborted.into());
        }
        let count = self.file.read_at(buffer, self.at)?;
        self.at += count as u64;
        Ok(count)
    }
}

/// One path on its way.
struct Walk {
    job: Arc<Job>,
    scan: Scan,
    files: Arc<Semaphore>,
    walks: Arc<Semaphore>,
    /// Its own place among the walks; none while it waits for its client.
    place: Mutex<Option<OwnedSemaphorePermit>>,
    handle: Handle,
}

impl Walk {
    fn run(&self, path: &[u8]) -> Result<(), Gone> {
        match paths::find(&self.job.settings, path) {
            Ok(found) if !found.is_folder => self.file(&found, true).map(|_| ()),
            Ok(folder) if self.scan == Scan::Parallel => self.side_by_side(&folder),
            Ok(folder) => self.one_by_one(&folder),
            Err(refusal) => self.refuse(path, refusal),
        }
    }

    /// Scans what lies below a folder. If nothing was found, that is said of the folder itself.
    fn one_by_one(&self, folder: &Found) -> Result<(), Gone> {
        let mut clean = true;
        for (path, found) in paths::below(&self.job.settings, folder) {
            let found = match found {
                Ok(found) => self.file(&found, false)?,
                Err(refusal) => {
                    self.refuse(path.as_os_str().as_bytes(), refusal)?;
                    continue;
                }
            };
            clean &= !matches!(found, Outcome::Found(_));
            if !clean && self.scan != Scan::All {
                break;
            }
        }
        let subject = folder.shown.as_os_str().as_bytes();
        if clean { self.say(subject, Outcome::Clean) } else { Ok(()) }
    }

    /// The same, as many files at a time as may be. Of a clean folder nothing is said, as by clamd.
    fn side_by_side(&self, folder: &Found) -> Result<(), Gone> {
        let mut scans = JoinSet::new();
        for (path, found) in paths::below(&self.job.settings, folder) {
            let found = match found {
                Ok(found) => found,
                Err(refusal) => {
                    self.refuse(path.as_os_str().as_bytes(), refusal)?;
                    continue;
                }
            };
            let place = self.handle.block_on(FilePlace::take(&self.job, &self.files, &self.handle));
            let job = self.job.clone();
            let scan = move || {
                let outcomes = job.scan_found(&found, Scan::Parallel);
                drop(place);
                job.say_all(found.shown.as_os_str().as_bytes(), outcomes, false).map(|_| ())
            };
            scans.spawn_blocking_on(scan, &self.handle);
            while let Some(scanned) = scans.try_join_next() {
                self.joined(folder, scanned)?;
            }
        }
        while let Some(scanned) = self.handle.block_on(scans.join_next()) {
            self.joined(folder, scanned)?;
        }
        Ok(())
    }

    fn joined(&self, folder: &Found, scanned: Result<Result<(), Gone>, JoinError>) -> Result<(), Gone> {
        let failed = Outcome::Failed(INTERNAL_ERROR.into());
        scanned.unwrap_or_else(|_| self.say(folder.shown.as_os_str().as_bytes(), failed))
    }

    fn file(&self, found: &Found, clean_too: bool) -> Result<Outcome, Gone> {
        let place = self.handle.block_on(FilePlace::take(&self.job, &self.files, &self.handle));
        let outcomes = self.job.scan_found(found, self.scan);
        drop(place);
        let first = outcomes[0].clone();
        for outcome in outcomes.into_iter().filter(|outcome| clean_too || *outcome != Outcome::Clean) {
            self.say(found.shown.as_os_str().as_bytes(), outcome)?;
        }
        Ok(first)
    }

    /// Says something; while the client does not take it, another walk has this one's place.
    fn say(&self, subject: &[u8], outcome: Outcome) -> Result<(), Gone> {
        let line = Answer::Line(self.job.tag, Line { subject: subject.to_vec(), outcome });
        match self.job.answers.try_send(line) {
            Ok(()) => Ok(()),
            Err(TrySendError::Closed(_)) => Err(Gone),
            Err(TrySendError::Full(line)) => {
                let place = || self.place.lock().expect("no holder panics");
                drop(place().take());
                let said = self.job.answers.blocking_send(line).map_err(|_| Gone);
                *place() = self.handle.block_on(self.walks.clone().acquire_owned()).ok();
                said
            }
        }
    }

    fn refuse(&self, path: &[u8], refusal: Refusal) -> Result<(), Gone> {
        let outcome = match refusal {
            Refusal::Excluded => Outcome::Excluded,
            Refusal::Failed(reason) => Outcome::Failed(reason),
        };
        self.say(path, outcome)
    }
}

/// A place among the files that are scanned, given back when it is dropped, and at the latest when the scan should long have
/// been over.
struct FilePlace {
    permit: Arc<Mutex<Option<OwnedSemaphorePermit>>>,
    overdue: Option<AbortHandle>,
}

impl FilePlace {
    async fn take(job: &Job, files: &Arc<Semaphore>, handle: &Handle) -> FilePlace {
        let permit = Arc::new(Mutex::new(files.clone().acquire_owned().await.ok()));
        let overdue = job.time().map(|time| {
            let permit = permit.clone();
            let give_back = async move {
                tokio::time::sleep(time.saturating_add(GRACE)).await;
                drop(permit.lock().expect("no holder panics").take());
                tracing::warn!("a scan is overdue: its place is given to the next file");
            };
            handle.spawn(give_back).abort_handle()
        });
        FilePlace { permit, overdue }
    }
}

impl Drop for FilePlace {
    fn drop(&mut self) {
        if let Some(overdue) = &self.overdue {
            overdue.abort();
        }
        drop(self.permit.lock().expect("no holder panics").take());
    }
}

/// Reply when a scan failed.
const INTERNAL_ERROR: &str = "Internal error.";

/// Why there is no verdict, in the words of clamd's engine (CL_EMEM, CL_ETIMEOUT, CL_ERROR).
fn failed(none: NoVerdict) -> Outcome {
    let words = match none.0 {
        Unfinished::Starved => "Can't allocate memory",
        Unfinished::Late => "Time limit reached",
        Unfinished::Gone => "Unspecified error",
    };
    Outcome::Failed(words.into())
}

#[cfg(test)]
mod tests {
    use flow::Spotted;
    use stream::{Class, Finding};

    use super::*;

    fn said(findings: &[(Class, &'static str)], settings: &ClamdSettings, all_matches: bool) -> Vec<Outcome> {
        let policy = settings.policy();
        let spotted = |&(class, name): &(Class, &'static str)| Spotted {
            finding: Finding::new(class, name, 0),
            path: Arc::new([]),
            object: 0,
        };
        let action = findings.iter().map(|(class, _)| policy.by_class(*class)).max().unwrap_or_default();
        let findings = findings.iter().map(spotted).collect();
        outcomes(&Verdict { action, findings, ..Verdict::default() }, &policy, all_matches)
    }

    #[test]
    fn a_match_comes_before_a_limit_and_all_are_told_once() {
        let findings = [(Class::Limit, "L"), (Class::Match, "A"), (Class::Match, "B"), (Class::Match, "A")];
        let settings = ClamdSettings::default();
        assert_eq!(said(&findings, &settings, false), [Outcome::Found("A".into())]);
        assert_eq!(said(&findings, &settings, true), [Outcome::Found("A".into()), Outcome::Found("B".into())]);
        assert_eq!(said(&findings[..1], &settings, true), [Outcome::Found("L".into())]);
    }

    #[test]
    fn the_log_names_what_was_found() {
        let both = [Outcome::Found("A".into()), Outcome::Found("B".into())];
        assert_eq!((both[0].name(), names(&both)), ("found", Some("A; B".into())));
        assert_eq!((Outcome::Clean.name(), names(&[Outcome::Clean])), ("clean", None));
    }

    #[test]
    fn each_class_is_answered_as_configured() {
        use crate::settings::Said;
        let settings = ClamdSettings { on_limit: Said::Ok, on_encrypted: Said::Error, ..ClamdSettings::default() };
        assert_eq!(said(&[(Class::Limit, "L")], &settings, false), [Outcome::Clean]);
        assert_eq!(said(&[(Class::Encrypted, "E")], &settings, false), [Outcome::Failed("E".into())]);
        assert_eq!(said(&[(Class::Malformed, "M")], &settings, false), [Outcome::Clean]);
        assert_eq!(said(&[], &settings, false), [Outcome::Clean]);
    }
}
