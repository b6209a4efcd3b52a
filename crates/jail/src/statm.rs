//! How much memory a process has in RAM.

use std::os::fd::AsFd;

/// Resident memory in `/proc/PID/statm` (proc_pid_statm(5)), in bytes; 0 where that cannot be read.
pub fn resident_bytes(statm: impl AsFd) -> u64 {
    let mut text = [0; 128];
    let count = rustix::io::pread(statm, &mut text, 0).unwrap_or(0);
    let text = std::str::from_utf8(&text[..count]).unwrap_or_default();
    let pages: u64 = text.split(' ').nth(1).and_then(|pages| pages.parse().ok()).unwrap_or(0);
    pages * rustix::param::page_size() as u64
}
