//! Output of a scan: in the order of the files, although they are inspected in parallel.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{self, IsTerminal, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::{Condvar, Mutex};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::cli::ScanOutput;
use crate::output::note;

/// Files that may be under way or done before an earlier one is: what bounds the memory of what is not printed yet.
const AHEAD_MAX: u64 = 4_096;

/// A line and its weight.
#[derive(Debug, Clone)]
pub struct Text {
    line: Vec<u8>,
    kind: Kind,
}

/// Kind of a line, which decides whether it is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Found,
    Clean,
    PassedOver,
    Warning,
    Error,
}

impl Text {
    /// Something was found.
    pub fn found(line: impl Into<Vec<u8>>) -> Text {
        Text { line: line.into(), kind: Kind::Found }
    }

    /// A line about a clean file.
    pub fn clean(line: impl Into<Vec<u8>>) -> Text {
        Text { line: line.into(), kind: Kind::Clean }
    }

    /// It was not looked at, as asked for.
    pub fn passed_over(path: &Path, what: &str) -> Text {
        Text { line: line(path, what), kind: Kind::PassedOver }
    }

    /// Not all of it was looked at.
    pub fn warning(path: &Path, what: &str) -> Text {
        Text { line: [b"WARNING: ", &*line(path, what)].concat(), kind: Kind::Warning }
    }

    /// It could not be looked at.
    pub fn error(path: &Path, what: &str) -> Text {
        Text { line: line(path, &format!("{what} ERROR")), kind: Kind::Error }
    }
}

/// `PATH: WHAT`
pub fn line(path: &Path, what: &str) -> Vec<u8> {
    [&*shown(path), b": ", what.as_bytes()].concat()
}

/// A path as it is printed: byte for byte, so that whoever reads the line finds the file, but for control characters, with
/// which a name could pass for another line.
pub fn shown(path: &Path) -> Vec<u8> {
    let bytes = path.as_os_str().as_bytes().iter();
    bytes.map(|&byte| if byte.is_ascii_control() { b'?' } else { byte }).collect()
}

/// Takes what is said of each file and prints it when its turn has come.
pub struct Report<'a> {
    args: &'a ScanOutput,
    bar: ProgressBar,
    state: Mutex<State>,
    moved: Condvar,
}

struct State {
    next: u64,
    waiting: BTreeMap<u64, Vec<Text>>,
    log: Option<File>,
}

impl<'a> Report<'a> {
    /// # Errors
    /// When the log cannot be written.
    pub fn new(args: &'a ScanOutput) -> io::Result<Report<'a>> {
        let log = args.log.as_ref().map(|path| OpenOptions::new().create(true).append(true).open(path)).transpose()?;
        Ok(Report {
            args,
            bar: progress_bar(args),
            state: Mutex::new(State { next: 0, waiting: BTreeMap::new(), log }),
            moved: Condvar::new(),
        })
    }

    /// The progress bar.
    pub fn bar(&self) -> &ProgressBar {
        &self.bar
    }

    /// Waits until a file with this number may be begun.
    pub fn wait(&self, number: u64) {
        let state = self.state.lock().expect("no holder panics");
        drop(self.moved.wait_while(state, |state| number >= state.next + AHEAD_MAX).expect("no holder panics"));
    }

    /// Takes the lines about the file with this number. Each number from 0 on comes once.
    pub fn hand_in(&self, number: u64, texts: Vec<Text>) {
        let mut state = self.state.lock().expect("no holder panics");
        state.waiting.insert(number, texts);
        while let Some(texts) = {
            let next = state.next;
            state.waiting.remove(&next)
        } {
            state.next += 1;
            let wanted: Vec<Text> = texts.into_iter().filter(|text| self.wants(text.kind)).collect();
            if !wanted.is_empty() {
                self.bar.suspend(|| wanted.iter().for_each(|text| self.print(text, &mut state.log)));
            }
        }
        drop(state);
        self.moved.notify_all();
    }

    /// Prints what comes first.
    pub fn begin(&self, header: &str) {
        self.print(&Text::found(header), &mut self.state.lock().expect("no holder panics").log);
    }

    /// Prints the end.
    pub fn end(&self, summary: &str) {
        self.bar.finish_and_clear();
        let mut state = self.state.lock().expect("no holder panics");
        for line in summary.lines() {
            self.print(&Text::found(line), &mut state.log);
        }
    }

    fn wants(&self, kind: Kind) -> bool {
        let only_found = self.args.infected;
        match kind {
            Kind::Error => true,
            _ if self.args.quiet => false,
            Kind::Found | Kind::Warning => true,
            Kind::Clean => !only_found && !self.args.suppress_ok_results,
            Kind::PassedOver => !only_found && !self.args.json && !self.args.csv,
        }
    }

    fn print(&self, text: &Text, log: &mut Option<File>) {
        let line = [&*text.line, b"\n"].concat();
        match text.kind {
            Kind::Warning | Kind::Error if !self.args.stdout => drop(io::stderr().lock().write_all(&line)),
            _ => note(io::stdout().lock().write_all(&line)),
        }
        if let Some(log) = log
            && let Err(error) = log.write_all(&line)
        {
            let _ = writeln!(io::stderr().lock(), "sluice: the log: {error}");
        }
    }
}

/// On a terminal, when the output does not run over the same screen anyway.
fn progress_bar(args: &ScanOutput) -> ProgressBar {
    let hidden = args.json || args.csv || args.quiet || !io::stderr().is_terminal();
    let target = if hidden { ProgressDrawTarget::hidden() } else { ProgressDrawTarget::stderr() };
    let style = ProgressStyle::with_template("{bar:30} {bytes}/{total_bytes} {bytes_per_sec} {eta}");
    ProgressBar::with_draw_target(Some(0), target).with_style(style.expect("the template is right"))
}
