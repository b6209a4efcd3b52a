//! `sluice update`, begun from the page: one run at a time, as a process of its own, whose outcome is held until the next one.

use std::io::Read as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::{Value, json};

use crate::audit;

/// Bytes of the output of a run that are held.
const OUTPUT_BYTES_MAX: u64 = 16 << 10;

/// Runs that were begun here.
#[derive(Debug, Clone, Default)]
pub struct Updates(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    begun: Option<String>,
    is_running: bool,
    outcome: Option<Outcome>,
}

/// The end of a run.
#[derive(Debug)]
struct Outcome {
    ended: String,
    is_right: bool,
    output: String,
}

impl Updates {
    /// Begins a run, unless one is under way.
    ///
    /// # Errors
    /// When one is, or the program cannot be started.
    pub fn begin(&self, config: &Path) -> Result<(), String> {
        let mut state = self.lock();
        if state.is_running {
            return Err("an update is under way".into());
        }
        let program = std::env::current_exe().map_err(|error| error.to_string())?;
        let mut command = Command::new(program);
        command.args(["update", "--config"]).arg(config);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let child = command.spawn().map_err(|error| error.to_string())?;
        (state.begun, state.is_running) = (Some(audit::now()), true);
        let updates = self.clone();
        let wait = move || updates.end(watched(child));
        let thread = std::thread::Builder::new().name("update".into()).spawn(wait);
        thread.map(drop).map_err(|error| {
            state.is_running = false;
            error.to_string()
        })
    }

    fn end(&self, (is_right, output): (bool, String)) {
        let mut state = self.lock();
        state.outcome = Some(Outcome { ended: audit::now(), is_right, output });
        state.is_running = false;
    }

    /// The last run that was begun here.
    pub fn told(&self) -> Value {
        let state = self.lock();
        let outcome = state.outcome.as_ref().filter(|_| !state.is_running);
        json!({
            "begun": state.begun, "is_running": state.is_running, "ended": outcome.map(|outcome| &outcome.ended),
            "is_right": outcome.map(|outcome| outcome.is_right), "output": outcome.map(|outcome| &outcome.output),
        })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Waits for a run; returns whether it succeeded, and its output.
fn watched(mut child: std::process::Child) -> (bool, String) {
    let (out, error) = (child.stdout.take(), child.stderr.take());
    let read = |pipe: &mut dyn std::io::Read| {
        let mut text = Vec::new();
        let _ = pipe.take(OUTPUT_BYTES_MAX).read_to_end(&mut text);
        // The rest is read, so that the run does not wait for a reader.
        let _ = std::io::copy(pipe, &mut std::io::sink());
        String::from_utf8_lossy(&text).into_owned()
    };
    let errors = std::thread::spawn(move || error.map(|mut pipe| read(&mut pipe)).unwrap_or_default());
    let mut output = out.map(|mut pipe| read(&mut pipe)).unwrap_or_default();
    output.push_str(&errors.join().unwrap_or_default());
    let is_right = child.wait().is_ok_and(|status| status.success());
    (is_right, output)
}
