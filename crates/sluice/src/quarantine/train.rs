//! Having a program learn from a message: it gets the mail on its standard input, as it came.
//!
//! It is started without a shell, from `/`, with no more of our environment than PATH, and has so many seconds; after that it
//! is killed with all that it has started. The message is marked when it has ended with 0, so that what was learnt from
//! can be found again.

use std::io::{self, Read as _};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::time::{Duration, Instant};

use edge::quarantine::{Kept, Trained, now};
use edge::settings::Learners;
use rustix::process::{Pid, Signal, kill_process_group};

use crate::cli::values::Kind;
use crate::output::Failure;

/// How much of what a program says is told.
const COMPLAINT_BYTES_MAX: u64 = 1_000;

/// How long is waited for that, once the program has ended.
const COMPLAINT_WAIT: Duration = Duration::from_secs(1);

/// How often is looked whether it has ended.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// Has the learner for this kind learn from a message, and marks that.
///
/// # Errors
/// When there is no learner, somebody else is at the message, or the program does not end with 0 in time.
pub fn train(kept: &mut Kept, kind: Kind, learners: &Learners) -> Result<(), Failure> {
    let command = match kind {
        Kind::Spam => &learners.spam,
        Kind::Ham => &learners.ham,
    };
    let Some((program, arguments)) = command.split_first() else {
        return Err(format!("no learner is set: [quarantine.train] {} = [\"PROGRAM\"]", kind.name()).into());
    };
    let mail = edge::quarantine::read(&kept.mail())?;
    if !edge::quarantine::lock(&mail)? {
        return Err("another command is using it".into());
    }
    // What was read before the lock may be old.
    *kept = Kept::open(&kept.folder, &kept.facts.id)?;
    let mut learner = Command::new(program);
    learner.args(arguments).stdin(edge::quarantine::read(&kept.mail())?).stdout(Stdio::null()).stderr(Stdio::piped());
    learner.env_clear().envs(std::env::var_os("PATH").map(|path| ("PATH", path)));
    let child = learner.current_dir("/").process_group(0).spawn();
    let mut child = child.map_err(|error| format!("{program}: {error}"))?;
    let complaint = collect(&mut child);
    let ended = wait(&mut child, Duration::from_secs(learners.seconds_max))?;
    let said = complaint.recv_timeout(COMPLAINT_WAIT).unwrap_or_default();
    match ended {
        Some(status) if status.success() => {}
        Some(status) => return Err(format!("{program}: {status}: {said}").into()),
        None => return Err(format!("{program}: timed out after {} s, killed", learners.seconds_max).into()),
    }
    kept.facts.trained.push(Trained { date: now(), kind: kind.name().into(), by: program.clone() });
    kept.rewrite().map_err(|error| format!("it was learnt, and could not be marked: {error}").into())
}

/// Waits for the program to end; after the timeout the program and its children are killed.
fn wait(child: &mut Child, most: Duration) -> io::Result<Option<ExitStatus>> {
    let started = Instant::now();
    while started.elapsed() < most {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        std::thread::sleep(LOOK_EVERY);
    }
    let group = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    group.map_or(Ok(()), |group| kill_process_group(group, Signal::KILL))?;
    child.wait()?;
    Ok(None)
}

/// The beginning of what it complains of; the rest is read, too, so that it can go on.
fn collect(child: &mut Child) -> Receiver<String> {
    let (sender, receiver) = mpsc::channel();
    let errors = child.stderr.take().expect("it is piped");
    std::thread::spawn(move || {
        let mut start = Vec::new();
        let mut errors = errors.take(COMPLAINT_BYTES_MAX);
        let _ = errors.read_to_end(&mut start);
        let _ = io::copy(&mut errors.into_inner(), &mut io::sink());
        let _ = sender.send(String::from_utf8_lossy(&start).trim().to_string());
    });
    receiver
}
