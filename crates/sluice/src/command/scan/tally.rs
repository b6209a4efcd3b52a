//! Summary at the end of `scan`, in clamscan's words.

use std::fmt::Write as _;
use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Instant;

use edge::inspector::examine::Examined;
use time::OffsetDateTime;
use time::format_description::BorrowedFormatItem;

/// A number that grows.
#[derive(Default)]
pub struct Count(AtomicU64);

impl Count {
    /// So many more.
    pub fn add(&self, count: u64) {
        self.0.fetch_add(count, Relaxed);
    }

    fn get(&self) -> u64 {
        self.0.load(Relaxed)
    }

    fn megabytes(&self) -> f64 {
        self.get() as f64 / (1 << 20) as f64
    }
}

/// Counters of a scan.
#[derive(Default)]
pub struct Tally {
    /// Folders entered.
    pub folders: Count,
    /// Files in which something was found.
    pub infected: Count,
    /// Files that were OK, and not wholly inspected.
    pub doubtful: Count,
    /// Files that could not be scanned.
    pub errors: Count,
    /// Files that are known to be clean since an earlier scan.
    pub known: Count,
    files: Count,
    read_bytes: Count,
    scanned_bytes: Count,
}

/// When it began.
pub struct Start {
    clock: Instant,
    date: OffsetDateTime,
}

impl Start {
    /// Now.
    pub fn now() -> Start {
        Start { clock: Instant::now(), date: OffsetDateTime::now_utc() }
    }
}

/// clamscan's form of a date; in UTC.
const DATE: &[BorrowedFormatItem<'_>] =
    time::macros::format_description!("[year]:[month]:[day] [hour]:[minute]:[second]");

impl Tally {
    /// A file was looked at.
    pub fn count(&self, examined: &Examined) {
        self.files.add(1);
        self.read_bytes.add(examined.bytes);
        self.scanned_bytes.add(examined.verdict.bytes);
    }

    /// The summary.
    pub fn summary(&self, signatures: u64, start: &Start) -> String {
        let (read, scanned) = (self.read_bytes.megabytes(), self.scanned_bytes.megabytes());
        let ratio = if read > 0.0 { scanned / read } else { 0.0 };
        let seconds = start.clock.elapsed().as_secs_f64();
        let date = |date: OffsetDateTime| date.format(DATE).unwrap_or_default();
        let mut text = String::from("\n----------- SCAN SUMMARY -----------\n");
        let _ = writeln!(text, "Known viruses: {signatures}");
        let _ = writeln!(text, "Engine version: {}", env!("CARGO_PKG_VERSION"));
        let _ = writeln!(text, "Scanned directories: {}", self.folders.get());
        let _ = writeln!(text, "Scanned files: {}", self.files.get());
        if self.known.get() > 0 {
            let _ = writeln!(text, "Unchanged files: {}", self.known.get());
        }
        let _ = writeln!(text, "Infected files: {}", self.infected.get());
        if self.doubtful.get() > 0 {
            let _ = writeln!(text, "Not wholly inspected: {}", self.doubtful.get());
        }
        if self.errors.get() > 0 {
            let _ = writeln!(text, "Total errors: {}", self.errors.get());
        }
        let _ = writeln!(text, "Data scanned: {scanned:.2} MB");
        let _ = writeln!(text, "Data read: {read:.2} MB (ratio {ratio:.2}:1)");
        let _ = writeln!(text, "Time: {seconds:.3} sec ({} m {} s)", seconds as u64 / 60, seconds as u64 % 60);
        let _ = writeln!(text, "Start Date: {}", date(start.date));
        let _ = writeln!(text, "End Date:   {}", date(OffsetDateTime::now_utc()));
        text
    }

    /// clamscan's exit status.
    pub fn exit_code(&self) -> ExitCode {
        ExitCode::from(match (self.infected.get(), self.errors.get()) {
            (1.., _) => 1,
            (0, 1..) => 2,
            (0, 0) => 0,
        })
    }
}
