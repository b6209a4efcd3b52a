//! Objects in memory, and the clock that they are scanned by.

use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};

/// The objects of a file or of a folder.
pub fn objects(path: &str) -> Result<Vec<Vec<u8>>, Box<dyn Error>> {
    if Path::new(path).is_file() {
        return Ok(vec![fs::read(path)?]);
    }
    let mut paths: Vec<PathBuf> = fs::read_dir(path)?.map(|entry| Ok(entry?.path())).collect::<std::io::Result<_>>()?;
    paths.sort();
    Ok(paths.iter().map(fs::read).collect::<std::io::Result<_>>()?)
}

/// Seconds that this thread has been on a processor, as the system counts them.
pub fn seconds() -> f64 {
    let told = fs::read_to_string("/proc/thread-self/schedstat").expect("Linux tells");
    let nanos: f64 = told.split(' ').next().and_then(|nanos| nanos.parse().ok()).expect("a number comes first");
    nanos / 1e9
}

/// What a scan took, to be told.
pub struct Took {
    begin: f64,
    limit: f64,
    bytes: u64,
    /// What was found.
    pub found: u64,
}

impl Took {
    /// Begins a scan that should end after so many seconds.
    pub fn new(limit: f64) -> Took {
        Took { begin: seconds(), limit, bytes: 0, found: 0 }
    }

    /// Counts bytes that were scanned, and says whether there is time for more.
    pub fn goes_on(&mut self, bytes: usize) -> bool {
        self.bytes += bytes as u64;
        seconds() - self.begin < self.limit
    }

    /// Prints it, with whatever else there is to tell.
    pub fn print(self, load: f64, more: &str) {
        let (took, Took { bytes, found, .. }) = (seconds() - self.begin, self);
        println!(r#"{{"load": {load:.3}, "bytes": {bytes}, "seconds": {took:.4}, "found": {found}{more}}}"#);
    }
}
