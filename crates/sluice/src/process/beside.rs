//! A child process that ends with its parent.

use std::process::{Command, Stdio};

use rustix::process::{Signal, set_parent_process_death_signal};

/// Starts this program with other arguments. Where that fails, the one that starts it goes on without, and says so.
pub fn start(words: &[&str]) {
    let started =
        std::env::current_exe().and_then(|program| Command::new(program).args(words).stdin(Stdio::null()).spawn());
    if let Err(error) = started {
        eprintln!("sluice: {}: {error}", words.join(" "));
    }
}

/// Has this process end when the one ends that has started it.
///
/// # Errors
/// When the kernel refuses, and when the other has ended already.
pub fn end_with_parent() -> Result<(), String> {
    let parent = rustix::process::getppid();
    set_parent_process_death_signal(Some(Signal::TERM))
        .map_err(|error| format!("cannot end with its parent: {error}"))?;
    match rustix::process::getppid() == parent {
        true => Ok(()),
        false => Err("the process that has started this one has ended".into()),
    }
}
