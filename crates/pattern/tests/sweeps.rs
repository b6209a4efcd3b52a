//! The sweeps of all paths against the filter that they ask, over generated cases: what is swept recurs in itself now and then.

use pattern::fuzz_sweep;

/// Cases with these numbers agree.
fn agree(numbers: std::ops::Range<u64>) {
    for number in numbers {
        let mut state = number.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        let mut next = move || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 32) as u8
        };
        let (length, letters) = (next() as usize * 2, next() % 64 + 2);
        let head: Vec<u8> = (0..5).map(|_| next()).collect();
        let rest = std::iter::repeat_with(|| next() % letters + 0x39).take(length);
        fuzz_sweep(&head.into_iter().chain(rest).collect::<Vec<_>>());
    }
}

#[test]
fn all_paths_agree() {
    agree(0..20_000);
}

/// `cargo test --release -p sluice-pattern ten_million -- --ignored`: minutes.
#[test]
#[ignore = "it takes minutes"]
fn all_paths_agree_ten_million_times() {
    agree(0..10_000_000);
}
