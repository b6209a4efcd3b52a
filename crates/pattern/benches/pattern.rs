//! MB/s of the pattern scan in segments of 8 KB, by number of parts and kind of data:
//! `cargo bench -p sluice-pattern`, or `cargo bench -p sluice-pattern -- 19807 Avx2` for one row.
//!
//! Parts are made after the recipe of the Avfs paper: 4 to 12 real bytes of libraries, then bytes of which at least
//! four and about half are random; lengths log-normal, median 48. Libraries are those of the machine; without any the
//! table has random data only.

use std::fs;
use std::time::Instant;

use pattern::{Builder, Path, Patterns, Piece, State};

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
    let Ok(folder) = fs::read_dir("/usr/lib/x86_64-linux-gnu") else {
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

/// The median of five runs of at least a fifth of a second, in MB/s, and the matches.
fn measure(patterns: &Patterns, data: &[u8]) -> (f64, u64) {
    let mut speeds: Vec<f64> = (0..5).map(|_| run(patterns, data)).collect();
    speeds.sort_by(f64::total_cmp);
    let mut matches = 0;
    scan(patterns, data, &mut matches);
    (speeds[2], matches)
}

fn run(patterns: &Patterns, data: &[u8]) -> f64 {
    let since = Instant::now();
    let begin = seconds(since);
    let mut passes = 0.0;
    loop {
        scan(patterns, data, &mut 0);
        passes += 1.0;
        let spent = seconds(since) - begin;
        if spent > 0.2 {
            return passes * data.len() as f64 / 1e6 / spent;
        }
    }
}

fn scan(patterns: &Patterns, data: &[u8], matches: &mut u64) {
    let mut state = State::new();
    for segment in data.chunks(SEGMENT) {
        patterns.scan(&mut state, segment, &mut |_| *matches += 1);
    }
}

fn main() {
    let mut random = Random(7);
    let noise: Vec<u8> = (0..DATA_BYTES / 8).flat_map(|_| random.next().to_le_bytes()).collect();
    let libraries = libraries();
    let real = if libraries.len() > 1 << 20 { &libraries } else { &noise };
    println!(
        "{:>8} {:>9} {:>9} {:>9} {:>11} {:>12} {:>8}",
        "parts", "build ms", "table kB", "path", "random MB/s", "library MB/s", "matches"
    );
    let wanted: Option<usize> = std::env::args().nth(1).and_then(|count| count.parse().ok());
    for count in [32, 1_000, 19_807, 131_072].into_iter().filter(|&count| wanted.is_none_or(|wanted| wanted == count)) {
        let begin = Instant::now();
        let mut patterns = build(count, real);
        let built = begin.elapsed().as_millis();
        let table = patterns.bytes() / 1000;
        for path in Path::available()
            .into_iter()
            .filter(|path| std::env::args().nth(2).is_none_or(|wanted| format!("{path:?}") == wanted))
        {
            patterns = patterns.on(path);
            let (on_noise, _) = measure(&patterns, &noise);
            let (on_libraries, matches) = measure(&patterns, &libraries);
            let path = format!("{path:?}");
            println!("{count:>8} {built:>9} {table:>9} {path:>9} {on_noise:>11.0} {on_libraries:>12.0} {matches:>8}");
        }
    }
}
