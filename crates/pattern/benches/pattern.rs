//! MB/s of the pattern scan in segments of 8 KB, by number of parts and kind of data:
//! `cargo bench -p sluice-pattern`.
//!
//! Parts are made after the recipe of the Avfs paper: 4 to 12 real bytes of libraries, then bytes of which at least
//! four and about half are random; lengths log-normal, median 48. Libraries are those of the machine; without any the
//! table has random data only.

use std::fs;
use std::path::Path;
use std::time::Instant;

use pattern::{Builder, Patterns, Piece, State};

const DATA_BYTES: usize = 64 << 20;
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
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound as u64) as usize
    }

    fn normal(&mut self) -> f64 {
        (0..12).map(|_| self.next() as f64 / u64::MAX as f64).sum::<f64>() - 6.0
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

fn part(random: &mut Random, real: &[u8]) -> Vec<u8> {
    let length = ((random.normal() * 0.6 + 48f64.ln()).exp() as usize).clamp(10, 200);
    loop {
        let at = random.below(real.len() - 256);
        let mut bytes = real[at..at + length].to_vec();
        let mut seen = [false; 256];
        bytes[..8].iter().for_each(|&byte| seen[usize::from(byte)] = true);
        if seen.iter().filter(|&&seen| seen).count() < 4 {
            continue;
        }
        let keep = 4 + random.below(9.min(length - 8));
        for (index, byte) in bytes[keep..].iter_mut().enumerate() {
            if index < 4 || random.below(2) == 0 {
                *byte = byte.wrapping_add(1 + random.below(255) as u8);
            }
        }
        return bytes;
    }
}

fn build(count: usize, real: &[u8]) -> Patterns {
    let mut random = Random(1);
    let mut builder = Builder::new();
    for _ in 0..count {
        let _ = builder.add(&Piece::bytes(&part(&mut random, real)));
    }
    builder.build()
}

/// The best of three runs, in MB/s, and the matches.
fn measure(patterns: &Patterns, data: &[u8]) -> (f64, u64) {
    let mut best = 0.0f64;
    let mut matches = 0;
    for _ in 0..3 {
        matches = 0;
        let mut state = State::new();
        let since = Instant::now();
        let begin = seconds(since);
        for segment in data.chunks(SEGMENT) {
            patterns.scan(&mut state, segment, &mut |_| matches += 1);
        }
        best = best.max(data.len() as f64 / 1e6 / (seconds(since) - begin));
    }
    (best, matches)
}

fn main() {
    let mut random = Random(7);
    let noise: Vec<u8> = (0..DATA_BYTES / 8).flat_map(|_| random.next().to_le_bytes()).collect();
    let libraries = libraries();
    let real = if libraries.len() > 1 << 20 { &libraries } else { &noise };
    println!(
        "{:>8} {:>9} {:>9} {:>11} {:>11} {:>8}",
        "parts", "build ms", "table kB", "random MB/s", "library MB/s", "matches"
    );
    for count in [32, 1_000, 19_807, 131_072] {
        let begin = Instant::now();
        let patterns = build(count, real);
        let built = begin.elapsed().as_millis();
        let (on_noise, _) = measure(&patterns, &noise);
        let (on_libraries, matches) = measure(&patterns, &libraries);
        let table = patterns.bytes() / 1000;
        println!("{count:>8} {built:>9} {table:>9} {on_noise:>11.0} {on_libraries:>11.0} {matches:>8}");
    }
}
