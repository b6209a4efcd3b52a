//! Scans in progress, as STATS shows them: clamdtop reads this.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::{Arc, Mutex};
use std::time::Instant;

/// Requests that STATS lists one by one.
const SHOWN_MAX: usize = 100;

/// The requests under way.
#[derive(Debug, Default)]
pub struct Queue {
    entries: Mutex<Entries>,
}

#[derive(Debug, Default)]
struct Entries {
    next: u64,
    under_way: BTreeMap<u64, Entry>,
}

#[derive(Debug)]
struct Entry {
    command: &'static str,
    subject: String,
    since: Instant,
}

/// A place in the queue, until it is dropped.
#[derive(Debug)]
pub struct Place {
    queue: Arc<Queue>,
    number: u64,
}

impl Queue {
    /// Puts a request on the list.
    pub fn enter(self: &Arc<Queue>, command: &'static str, subject: &str) -> Place {
        let mut entries = self.entries.lock().expect("no holder panics");
        let number = entries.next;
        entries.next += 1;
        let entry = Entry { command, subject: subject.into(), since: Instant::now() };
        entries.under_way.insert(number, entry);
        Place { queue: self.clone(), number }
    }

    /// The text of STATS, in clamd's form. `threads` is how many scans can go on at a time.
    pub fn text(&self, threads: usize) -> String {
        let entries = self.entries.lock().expect("no holder panics");
        let count = entries.under_way.len();
        let live = count.min(threads);
        let mut text = String::from("POOLS: 1\n\nSTATE: VALID PRIMARY\n");
        let _ = writeln!(text, "THREADS: live {live}  idle {} max {threads} idle-timeout 30", threads - live);
        let _ = writeln!(text, "QUEUE: {} items", count.saturating_sub(threads));
        for entry in entries.under_way.values().take(SHOWN_MAX) {
            let subject: String = entry.subject.chars().map(|c| if c.is_control() { '?' } else { c }).collect();
            let _ = writeln!(text, "\t{} {:.6} {subject}", entry.command, entry.since.elapsed().as_secs_f64());
        }
        let (resident, own) = memory_megabytes().unwrap_or_default();
        let _ = write!(
            text,
            "\nMEMSTATS: heap N/A mmap N/A used N/A free N/A releasable N/A pools 1 \
             pools_used {own:.3}M pools_total {resident:.3}M\nEND"
        );
        text
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.queue.entries.lock().expect("no holder panics").under_way.remove(&self.number);
    }
}

/// Memory of this program: resident, and of that what is its own and not a file's. From `/proc/self/statm`, in pages.
fn memory_megabytes() -> Option<(f64, f64)> {
    let text = std::fs::read_to_string("/proc/self/statm").ok()?;
    let mut pages = text.split_ascii_whitespace().skip(1).map_while(|word| word.parse::<f64>().ok());
    let (resident, shared) = (pages.next()?, pages.next()?);
    let megabytes = |pages: f64| pages * rustix::param::page_size() as f64 / (1 << 20) as f64;
    Some((megabytes(resident), megabytes(resident - shared)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_under_way_is_listed_until_it_is_done() {
        let queue = Arc::new(Queue::default());
        let place = queue.enter("MULTISCAN", "/a\nb");
        let text = queue.text(2);
        assert!(
            text.contains("THREADS: live 1  idle 1 max 2 idle-timeout 30\nQUEUE: 0 items\n\tMULTISCAN 0.0"),
            "{text}"
        );
        assert!(text.contains(" /a?b\n\nMEMSTATS: heap N/A") && text.ends_with("\nEND"), "{text}");
        drop(place);
        assert!(queue.text(2).contains("QUEUE: 0 items\n\nMEMSTATS"));
    }
}
