//! How rare a q-gram is in ordinary content, by a model of byte pairs.
//!
//! The table was made by `examples/rarity.rs` from libraries and programs, mails, and web pages; each pair has the
//! cost it has in the kind of content where it is commonest. A model of pairs cannot know that a whole instruction
//! sequence is common; the worst of what it does not know is in a list of its own ([`common`]).

mod common;

use std::sync::LazyLock;

/// 256 costs of a byte, then 65,536 costs of a byte after another, in eighths of a bit.
static TABLE: &[u8; 256 + 65536] = include_bytes!("../data/rarity.bin");

/// The cost of a byte, in eighths of a bit.
pub(crate) fn alone(byte: u8) -> u32 {
    u32::from(TABLE[usize::from(byte)])
}

/// The cost of `byte` after `before`, in eighths of a bit.
pub(crate) fn after(before: u8, byte: u8) -> u32 {
    u32::from(TABLE[256 + (usize::from(before) << 8 | usize::from(byte))])
}

/// How often a gram of each cost stands at an offset, by the model.
static SHARES: LazyLock<[f32; COST_MAX + 1]> =
    LazyLock::new(|| std::array::from_fn(|cost| (cost as f32 / -8.0).exp2()));

/// The highest cost of eight bytes.
const COST_MAX: usize = 8 * 255;

/// How often each gram of `q` bytes in `run` stands at an offset, by the model.
pub(crate) fn shares(run: &[u8], q: usize) -> Vec<f32> {
    let shares = &*SHARES;
    grams(run, q).into_iter().map(|cost| shares[(cost as usize).min(COST_MAX)]).collect()
}

/// The cost of each gram of `q` bytes in `run`.
pub(crate) fn grams(run: &[u8], q: usize) -> Vec<u32> {
    // What all pairs up to each place cost together.
    let mut sums = Vec::with_capacity(run.len());
    sums.push(0);
    sums.extend(run.windows(2).scan(0, |sum, pair| {
        *sum += after(pair[0], pair[1]);
        Some(*sum)
    }));
    let of_gram = |(at, gram): (usize, &[u8])| {
        let cost = alone(gram[0]) + sums[at + q - 1] - sums[at];
        common::cost(gram, q).map_or(cost, |known| known.min(cost))
    };
    run.windows(q).enumerate().map(of_gram).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zeros_are_common_and_noise_is_rare() {
        let zeros = grams(&[0; 8], 8)[0];
        let words = grams(b" the for", 8)[0];
        let noise = grams(&[0x9e, 0x37, 0xc1, 0x6b, 0xd2, 0xa9, 0x1b, 0xee], 8)[0];
        assert!(zeros < words && words < noise, "{zeros} {words} {noise}");
    }

    #[test]
    fn common_sequences_are_common() {
        // What compilers fill the room between functions with: no-operations of several bytes.
        let filling = [0x66, 0x2e, 0x0f, 0x1f, 0x84, 0, 0, 0, 0, 0];
        let (long, short) = (grams(&filling, 8), grams(&filling, 4));
        assert!(long.iter().all(|&cost| cost < 16 * 8), "{long:?}");
        assert!(short.iter().all(|&cost| cost < 14 * 8), "{short:?}");
    }
}
