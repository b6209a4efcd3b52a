//! Makes `data/rarity.bin` from samples of ordinary content, one kind an argument:
//! `cargo run --release --example rarity -- OUTPUT libraries.bin mails.txt pages.html`.
//!
//! For each kind: 256 costs of a byte, then 65,536 costs of a byte after another, in eighths of a bit. A byte's cost
//! in the table is the least over the kinds, since an anchor should be rare in all of them.

use std::{env, fs, io};

fn main() -> io::Result<()> {
    let mut arguments = env::args().skip(1);
    let output = arguments.next().expect("the output file");
    let mut table = vec![u8::MAX; 256 + 65536];
    for path in arguments {
        for (cost, other) in table.iter_mut().zip(costs(&fs::read(path)?)) {
            *cost = other.min(*cost);
        }
    }
    fs::write(output, table)
}

fn costs(sample: &[u8]) -> Vec<u8> {
    let mut single = vec![1u64; 256];
    let mut pair = vec![0u64; 65536];
    for window in sample.windows(2) {
        single[usize::from(window[0])] += 1;
        pair[usize::from(window[0]) << 8 | usize::from(window[1])] += 1;
    }
    let all = single.iter().sum::<u64>() as f64;
    let alone = single.iter().map(|&count| count as f64 / all);
    let after = pair.iter().enumerate().map(|(index, &count)| {
        let before = single[index >> 8] as f64;
        // A pair never seen is taken to be as likely as chance after a rare byte.
        (count as f64 + 0.5) / (before + 128.0)
    });
    let eighths = |share: f64| (-share.log2() * 8.0).round().clamp(0.0, 255.0) as u8;
    alone.chain(after.collect::<Vec<_>>()).map(eighths).collect()
}
