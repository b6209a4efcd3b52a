//! MB/s of whole scans in segments of 8 KB, by number of signatures, kind of data, and with and without hashes:
//! `cargo bench -p sluice-scan`. Under a minute.
//!
//! Signatures are made after the recipe of the Avfs paper: 4 to 12 real bytes of libraries, then bytes of which at
//! least four and about half are random; lengths log-normal, median 48; 2 % logical, 4 % with wildcards or in parts,
//! and where hashes are on, 2 % of those. Libraries are those of the machine; without any there is random data only.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use digest::Batch;
use scan::{Builder, Database, Scan};
use stream::{Event, FileType, Fuel, Nothing, Stage, Window};

const DATA_BYTES: usize = 48 << 20;
const SEGMENT: usize = 8192;

/// Seconds that this thread has been on a processor, where the system tells; else since some moment.
fn seconds(since: Instant) -> f64 {
    let told = fs::read_to_string("/proc/thread-self/schedstat").ok();
    let nanos = told.and_then(|text| text.split(' ').next()?.parse::<u64>().ok());
    nanos.map_or_else(|| since.elapsed().as_secs_f64(), |nanos| nanos as f64 / 1e9)
}

struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound as u64) as usize
    }

    fn normal(&mut self) -> f64 {
        let sum: f64 = (0..12).map(|_| self.next() as f64 / u64::MAX as f64).sum();
        sum - 6.0
    }

    fn bytes(&mut self, count: usize) -> Vec<u8> {
        (0..count.div_ceil(8)).flat_map(|_| self.next().to_le_bytes()).collect()
    }
}

fn libraries() -> Vec<u8> {
    let mut data = Vec::new();
    let Ok(folder) = fs::read_dir(Path::new("/usr/lib/x86_64-linux-gnu")) else {
        return data;
    };
    let mut paths: Vec<_> = folder.flatten().map(|entry| entry.path()).collect();
    paths.sort();
    for path in paths {
        if path.is_file() && path.to_string_lossy().contains(".so") && data.len() < DATA_BYTES {
            data.extend(fs::read(path).unwrap_or_default());
        }
    }
    data.truncate(DATA_BYTES);
    data
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// A body of about `length` bytes that begins like something real.
fn body(random: &mut Random, real: &[u8], length: usize) -> String {
    loop {
        let at = random.below(real.len() - 256);
        let mut bytes = real[at..at + length].to_vec();
        let mut first = bytes[..8].to_vec();
        first.sort_unstable();
        first.dedup();
        if first.len() < 4 {
            continue;
        }
        let keep = 4 + random.below(9.min(length - 8));
        for (index, byte) in bytes[keep..].iter_mut().enumerate() {
            if index < 4 || random.below(2) == 0 {
                *byte = byte.wrapping_add(1 + random.below(255) as u8);
            }
        }
        return hex(&bytes);
    }
}

fn length(random: &mut Random) -> usize {
    ((random.normal() * 0.6 + 48f64.ln()).exp() as usize).clamp(10, 200)
}

fn database(count: usize, real: &[u8], hashes: bool) -> Database {
    let mut random = Random(1);
    let (mut ndb, mut ldb, mut hdb) = (String::new(), String::new(), String::new());
    for number in 0..count {
        let length = length(&mut random);
        let kind = random.below(100);
        let half = (length / 2).max(10);
        let one = body(&mut random, real, if kind < 6 { half } else { length });
        let _ = match kind {
            0 | 1 => {
                let two = body(&mut random, real, half);
                writeln!(ldb, "Bench.L.{number};Engine:81-255,Target:0;0&1;{one};{two}")
            }
            2 | 3 => {
                let two = body(&mut random, real, half);
                writeln!(ndb, "Bench.P.{number}:0:*:{one}*{two}")
            }
            4 => {
                let two = body(&mut random, real, half);
                writeln!(ndb, "Bench.G.{number}:0:*:{one}{{3-40}}{two}")
            }
            5 => writeln!(ndb, "Bench.A.{number}:0:*:{one}(61|6263|{{2}}64)6566??6768"),
            6 | 7 if hashes => {
                let digest = hex(&random.bytes(16));
                let size = 200 + random.below(200 << 20);
                writeln!(hdb, "{digest}:{size}:Bench.H.{number}")
            }
            _ => writeln!(ndb, "Bench.B.{number}:0:*:{one}"),
        };
    }
    let mut builder = Builder::new();
    for (name, text) in [("bench.ndb", ndb), ("bench.ldb", ldb), ("bench.hdb", hdb)] {
        builder.add(name, text.as_bytes()).expect("the generator writes what can be read");
    }
    builder.build()
}

/// The best of two runs in MB/s, and what was found.
fn measure(database: &Arc<Database>, data: &[u8]) -> (f64, usize) {
    let mut best = 0.0f64;
    let mut found = 0;
    for _ in 0..2 {
        let since = Instant::now();
        let begin = seconds(since);
        found = run(Scan::new(database.clone(), FileType::Binary, None), data);
        best = best.max(data.len() as f64 / 1e6 / (seconds(since) - begin));
    }
    (best, found)
}

fn run(mut scan: Scan, data: &[u8]) -> usize {
    let mut window = Window::with_capacity(1);
    let mut fuel = Fuel::unlimited();
    let mut found = 0;
    for segment in data.chunks(SEGMENT) {
        let mut rest = segment;
        while !rest.is_empty() {
            let step = scan.step(rest, &mut window, &mut fuel);
            rest = &rest[step.taken..];
            found += usize::from(step.event != Event::Idle);
        }
    }
    while scan.finish(&Nothing, &mut window, &mut fuel) != Event::End {
        found += 1;
    }
    found
}

/// Microseconds for a whole small object.
fn small(database: &Arc<Database>, data: &[u8]) -> f64 {
    let since = Instant::now();
    let begin = seconds(since);
    let mut count = 0;
    for object in data.chunks_exact(4096).take(2000) {
        run(Scan::new(database.clone(), FileType::Text, None), object);
        count += 1;
    }
    (seconds(since) - begin) * 1e6 / f64::from(count.max(1))
}

/// MB/s of so many objects in turns with nothing to do but their MD5.
fn objects(data: &[u8], count: usize) -> f64 {
    let mut builder = Builder::new();
    let signature = format!("{}:*:Bench.Any:73\n", "0".repeat(32));
    builder.add("bench.hdb", signature.as_bytes()).expect("the generator writes what can be read");
    let database = Arc::new(builder.build());
    let mut scans: Vec<_> = (0..count).map(|_| Scan::new(database.clone(), FileType::Binary, None)).collect();
    let mut batch = Batch::new(count * (64 << 10), 64 << 10);
    let since = Instant::now();
    let begin = seconds(since);
    for segment in data.chunks_exact(16 << 10) {
        for scan in &mut scans {
            scan.step_beside(&mut batch, segment, &mut Fuel::unlimited());
            if batch.is_due() {
                batch.run();
            }
        }
    }
    (data.len() * count) as f64 / 1e6 / (seconds(since) - begin)
}

fn main() {
    let noise = Random(7).bytes(DATA_BYTES);
    let libraries = libraries();
    let real = if libraries.len() > 1 << 20 { &libraries } else { &noise };
    println!(
        "{:>10} {:>6} {:>8} {:>9} {:>11} {:>12} {:>6} {:>9}",
        "signatures", "hashes", "load ms", "table kB", "random MB/s", "library MB/s", "found", "4 kB µs"
    );
    for (count, hashes) in [
        (0, false),
        (30, false),
        (1_024, false),
        (1_024, true),
        (19_807, false),
        (19_807, true),
        (131_072, false),
        (131_072, true),
    ] {
        let begin = Instant::now();
        let database = Arc::new(database(count, real, hashes));
        let load = begin.elapsed().as_millis();
        let (on_noise, _) = measure(&database, &noise);
        let (on_libraries, found) = measure(&database, &libraries);
        let micros = small(&database, &noise);
        let table = database.pattern_bytes() / 1000;
        println!(
            "{count:>10} {hashes:>6} {load:>8} {table:>9} {on_noise:>11.0} {on_libraries:>12.0} {found:>6} {micros:>9.1}"
        );
    }
    let rates = [1, 2, 3, 4, 8].map(|count| format!("{count}: {:.0}", objects(&noise, count)));
    println!("MD5 of objects side by side, MB/s in all: {}", rates.join(", "));
}
