//! Our engine.

use std::error::Error;
use std::fs::{self, File};
use std::io::{BufWriter, Write as _};
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use digest::Batch;
use memmap2::{Advice, Mmap};
use scan::{Builder, Database, Scan};
use stream::{Event, FileType, Fuel, Nothing};

use crate::input::{Took, objects, seconds};

const SEGMENT: usize = 8192;
/// So many streams are scanned at once.
const STREAMS: usize = 8;

/// Compiles the signature files of a folder.
pub fn compile(set: &str, file: &str) -> Result<(), Box<dyn Error>> {
    let begin = seconds();
    let mut builder = Builder::new();
    for entry in fs::read_dir(set)? {
        let path = entry?.path();
        if let Some(name) = path.file_name().and_then(|name| name.to_str()).filter(|name| is_signatures(name)) {
            builder.add(name, &fs::read(&path)?)?;
        }
    }
    let database = builder.build();
    let mut sink = BufWriter::new(File::create(file)?);
    database.store("", &mut sink)?;
    sink.flush()?;
    let (took, bytes) = (seconds() - begin, fs::metadata(file)?.len());
    let patterns = database.pattern_bytes();
    println!(r#"{{"compile": {took:.3}, "file": {bytes}, "patterns": {patterns}, "peak_kb": {}}}"#, peak_kb());
    Ok(())
}

fn is_signatures(name: &str) -> bool {
    ["ndb", "ldb", "hdb", "hsb", "mdb"].iter().any(|ending| name.ends_with(ending))
}

/// What [`scan`] does besides.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Also {
    Nothing,
    /// The MD5 of every byte.
    Md5,
    /// Eight objects at once, or eight pieces of a large one, by turns on this thread.
    Together,
    /// Both.
    Md5Together,
    /// The file in pages of 4 kB, so that those which are used can be counted one by one.
    SmallPages,
}

/// Maps a compiled file and scans with it.
pub fn scan(file: &str, input: &str, limit: f64, also: Also) -> Result<(), Box<dyn Error>> {
    let objects = objects(input)?;
    let (begin, since) = (seconds(), Instant::now());
    // SAFETY: nothing writes to the file while this runs; the bench made it.
    let map = unsafe { Mmap::map(&File::open(file)?)? };
    if also == Also::SmallPages {
        map.advise(Advice::NoHugePage)?;
    }
    let mut database = Database::load(Arc::new(Mapped(map)))?;
    let (load, elapsed) = (seconds() - begin, since.elapsed().as_secs_f64());
    if matches!(also, Also::Md5 | Also::Md5Together) {
        let mut builder = Builder::new();
        builder.add("bench.hdb", format!("{}:*:Bench.Any:73\n", "0".repeat(32)).as_bytes())?;
        database = database.with_overlay(builder.build(), &[]);
    }
    let database = Arc::new(database);
    // From here on the system counts which pages of the file are used.
    fs::write("/proc/self/clear_refs", "1")?;
    let mut took = Took::new(limit);
    let file_type = if objects.len() > 1 { FileType::Binary } else { FileType::Pe };
    let streams = if matches!(also, Also::Together | Also::Md5Together) { STREAMS } else { 1 };
    let pieces: Vec<&[u8]> = match &objects[..] {
        [only] => only.chunks(only.len().div_ceil(streams).max(1)).collect(),
        all => all.iter().map(Vec::as_slice).collect(),
    };
    for pieces in pieces.chunks(streams) {
        let scans = pieces.iter().map(|piece| (Scan::new(database.clone(), file_type, None), *piece));
        if !by_turns(scans.collect(), &mut took) {
            break;
        }
    }
    let [mapped, hot] = mapped_kb(Path::new(file))?;
    took.print(load, &format!(r#", "load_elapsed": {elapsed:.3}, "mapped_kb": {mapped}, "hot_kb": {hot}"#));
    Ok(())
}

/// Scans objects by turns, a segment of each; whether there is time for more.
fn by_turns(mut scans: Vec<(Scan, &[u8])>, took: &mut Took) -> bool {
    let mut batch = Batch::new(2 * STREAMS, 64 << 10);
    let mut fuel = Fuel::unlimited();
    let mut scanned = 0;
    while scans.iter().any(|(_, rest)| !rest.is_empty()) {
        for (scan, object) in &mut scans {
            let (mut segment, rest) = object.split_at(object.len().min(SEGMENT));
            *object = rest;
            scanned += segment.len();
            while !segment.is_empty() {
                let step = scan.step_beside(&mut batch, segment, &mut fuel);
                if batch.is_due() {
                    batch.run();
                }
                segment = &segment[step.taken..];
                took.found += u64::from(step.event != Event::Idle);
            }
        }
        if scanned >= 1 << 20 && !took.goes_on(std::mem::take(&mut scanned)) {
            return false;
        }
    }
    for (scan, _) in &mut scans {
        loop {
            match scan.finish_beside(&mut batch, &Nothing, &mut fuel) {
                Event::End => break,
                Event::Idle => _ = batch.run(),
                _ => took.found += 1,
            }
        }
    }
    took.goes_on(scanned)
}

struct Mapped(Mmap);

impl AsRef<[u8]> for Mapped {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

/// How much of a file this process has mapped, and how much of that was used since it was last asked to forget, in kB.
fn mapped_kb(file: &Path) -> Result<[u64; 2], Box<dyn Error>> {
    let file = fs::canonicalize(file)?;
    let (mut mapped, mut hot, mut is_it) = (0, 0, false);
    for line in fs::read_to_string("/proc/self/smaps")?.lines() {
        let number = || line.split_whitespace().nth(1).and_then(|number| number.parse::<u64>().ok()).unwrap_or(0);
        match line.split_whitespace().next() {
            Some(key) if !key.ends_with(':') => is_it = line.ends_with(&*file.to_string_lossy()),
            Some("Size:") if is_it => mapped += number(),
            Some("Referenced:") if is_it => hot += number(),
            _ => {}
        }
    }
    Ok([mapped, hot])
}

/// The most memory that this process had.
fn peak_kb() -> u64 {
    let told = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = told.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|line| line.split_whitespace().next()?.parse().ok()).unwrap_or(0)
}
