//! Cycles a byte of the digests by how many streams are hashed side by side, of all streams together, beside the crates
//! that hash one at a time: `cargo bench -p sluice-digest`. The fastest of a hundred rounds; cycles are those of the time stamp
//! counter, where there is one, else nanoseconds.

use std::hint::black_box;
use std::time::Instant;

use digest::lanes::{Block, LANES};
use digest::{md5 as own_md5, sha1 as own_sha1, sha256 as own_sha256};
use md5::Digest;

const STREAM_BYTES: usize = 64 << 10;

fn main() {
    let contents: Vec<Vec<u8>> = (0..LANES).map(|seed| vec![seed as u8; STREAM_BYTES]).collect();
    println!("{:<10} {:>15} {:>15} {:>15}   cycles a byte, MB/s", "streams", "MD5", "SHA-1", "SHA-256");
    let crates = [
        rate(1, || _ = black_box(md5::Md5::digest(&contents[0]))),
        rate(1, || _ = black_box(sha1::Sha1::digest(&contents[0]))),
        rate(1, || _ = black_box(sha2::Sha256::digest(&contents[0]))),
    ];
    print("crate", crates);
    for count in 1..=LANES {
        let blocks: Vec<&[Block]> = contents[..count].iter().map(|content| content.as_chunks().0).collect();
        let own = [
            rate(count, || side_by_side(own_md5::INITIAL, &blocks, own_md5::compress)),
            rate(count, || side_by_side(own_sha1::INITIAL, &blocks, own_sha1::compress)),
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

/// Cycles a byte, and MB/s.
fn rate(streams: usize, work: impl Fn()) -> (f64, f64) {
    let once = |_| {
        let (begin, ticks) = (Instant::now(), ticks());
        work();
        ((self::ticks() - ticks) as f64, begin.elapsed().as_secs_f64())
    };
    let least = |(one, seconds): (f64, f64), (other, more): (f64, f64)| (one.min(other), seconds.min(more));
    let (cycles, seconds) = (0..101).map(once).fold((f64::MAX, f64::MAX), least);
    let bytes = (streams * STREAM_BYTES) as f64;
    (cycles / bytes, bytes / 1e6 / seconds)
}

#[cfg(target_arch = "x86_64")]
fn ticks() -> u64 {
    // SAFETY: every x86-64 has the counter, and reading it has no effect.
    unsafe { std::arch::x86_64::_rdtsc() }
}

#[cfg(not(target_arch = "x86_64"))]
fn ticks() -> u64 {
    use std::sync::OnceLock;
    static START: OnceLock<Instant> = OnceLock::new();
    START.get_or_init(Instant::now).elapsed().as_nanos() as u64
}

fn print(streams: &str, rates: [(f64, f64); 3]) {
    let text = rates.map(|(cycles, rate)| format!("{cycles:.2} {rate:>6.0}"));
    println!("{streams:<10} {:>15} {:>15} {:>15}", text[0], text[1], text[2]);
}
