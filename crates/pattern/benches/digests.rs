//! MB/s of the digests by how many streams are hashed side by side, all streams together, beside the crates that hash one
//! at a time: `cargo bench -p sluice-pattern --bench digests`. The fastest of eleven rounds.

use std::hint::black_box;
use std::time::Instant;

use md5::Digest;
use pattern::lanes::{Block, LANES};
use pattern::{md5 as own_md5, sha256 as own_sha256};

const STREAM_BYTES: usize = 1 << 20;

fn main() {
    let contents: Vec<Vec<u8>> = (0..LANES).map(|seed| vec![seed as u8; STREAM_BYTES]).collect();
    println!("{:<10} {:>8} {:>8}", "streams", "MD5", "SHA-256");
    let crates = [
        rate(1, || _ = black_box(md5::Md5::digest(&contents[0]))),
        rate(1, || _ = black_box(sha2::Sha256::digest(&contents[0]))),
    ];
    print("crate", crates);
    for count in [1, 2, 4, LANES] {
        let blocks: Vec<&[Block]> = contents[..count].iter().map(|content| content.as_chunks().0).collect();
        let own = [
            rate(count, || side_by_side(own_md5::INITIAL, &blocks, own_md5::compress)),
            rate(count, || side_by_side(own_sha256::INITIAL, &blocks, own_sha256::compress)),
        ];
        print(&count.to_string(), own);
    }
}

fn side_by_side<S: Copy>(initial: S, blocks: &[&[Block]], compress: impl Fn(&mut [(&mut S, &[Block])])) {
    let mut states = vec![initial; blocks.len()];
    let mut streams: Vec<_> = states.iter_mut().zip(blocks.iter().copied()).collect();
    compress(&mut streams);
    black_box(states);
}

fn rate(streams: usize, work: impl Fn()) -> f64 {
    let seconds = |_| {
        let begin = Instant::now();
        work();
        begin.elapsed().as_secs_f64()
    };
    (streams * STREAM_BYTES) as f64 / 1e6 / (0..11).map(seconds).fold(f64::MAX, f64::min)
}

fn print(streams: &str, [md5, sha256]: [f64; 2]) {
    println!("{streams:<10} {md5:>8.0} {sha256:>8.0}");
}
