//! Makes `data/common.bin` from itself and samples of ordinary content, one kind an argument:
//! `cargo run --release --example common -- OUTPUT libraries.bin mails.txt pages.html`.
//!
//! What is in it is said where it is read, `src/rarity/common.rs`. Samples that signatures are measured on later have to be
//! others than these.

#[path = "../src/rarity/common.rs"]
#[allow(dead_code)]
mod common;

use std::{env, fs, io};

use common::{COUNTS, key};

/// Grams are worth an entry if pairs of bytes make them seem rarer by so many eighths of a bit.
const SURPRISE: u32 = 16;

fn main() -> io::Result<()> {
    let mut arguments = env::args().skip(1);
    let output = arguments.next().expect("the output file");
    let samples = arguments.map(fs::read).collect::<io::Result<Vec<_>>>()?;
    let pairs = fs::read(concat!(env!("CARGO_MANIFEST_DIR"), "/data/rarity.bin"))?;
    let before = fs::read(concat!(env!("CARGO_MANIFEST_DIR"), "/data/common.bin"))?;
    let (mut table, mut before) = (Vec::new(), before.as_slice());
    for (q, count) in COUNTS {
        let (old, rest) = before.split_at(5 * count.min(before.len() / 5));
        before = rest;
        let old = old.as_chunks::<5>().0.iter();
        let old = old.map(|&[a, b, c, d, cost]| (u32::from_le_bytes([a, b, c, d]), u32::from(cost)));
        let new = samples.iter().flat_map(|sample| costs(sample, q, &pairs));
        let mut known: Vec<(u32, u32)> = old.chain(new.map(|(cost, gram)| (key(gram, q), cost))).collect();
        known.sort_unstable();
        known.dedup_by_key(|(key, _)| *key);
        known.sort_unstable_by_key(|&(key, cost)| (cost, key));
        known.truncate(count);
        known.resize(count, (key(0, q), u32::from(u8::MAX)));
        for (key, cost) in known {
            table.extend(key.to_le_bytes());
            table.push(cost.min(u32::from(u8::MAX)) as u8);
        }
    }
    fs::write(output, table)
}

/// The cost of each gram that surprises, in eighths of a bit.
fn costs(sample: &[u8], q: usize, pairs: &[u8]) -> Vec<(u32, u64)> {
    let mut grams: Vec<u64> = sample.windows(q).map(common::number).collect();
    grams.sort_unstable();
    let all = grams.len() as f64;
    let groups = grams.chunk_by(|a, b| a == b).filter(|group| group.len() > 15);
    let costs = groups.map(|group| ((-(group.len() as f64 / all).log2() * 8.0).round() as u32, group[0]));
    costs.filter(|(cost, gram)| cost + SURPRISE <= seeming(*gram, q, pairs)).collect()
}

/// The cost by pairs of bytes.
fn seeming(gram: u64, q: usize, pairs: &[u8]) -> u32 {
    let bytes = &gram.to_le_bytes()[..q];
    let after = bytes.windows(2).map(|pair| 256 + (usize::from(pair[0]) << 8 | usize::from(pair[1])));
    u32::from(pairs[usize::from(bytes[0])]) + after.map(|place| u32::from(pairs[place])).sum::<u32>()
}
