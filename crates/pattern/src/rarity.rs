//! How rare a q-gram is in ordinary content, by a model of byte pairs.
//!
//! The table was made by `examples/rarity.rs` from libraries and programs, mails, and web pages; each pair has the
//! cost it has in the kind of content where it is commonest. A model of pairs cannot know that a whole instruction
//! sequence is common; the worst of what it does not know is in a list of its own ([`common`]).

mod common;

use std::sync::LazyLock;

use crate::alphabet;

pub(crate) use common::number;

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

/// The cost at most of a gram of one byte, whichever: compilers fill the room between functions with some, formats that of blocks.
const ROW_COST: u32 = 64;

/// The highest cost of eight bytes.
const COST_MAX: usize = 8 * 255;

/// Tells how often each gram of `q` bytes in `run` stands at an offset, by the model.
pub(crate) fn shares(run: &[u8], q: usize, shares: &mut Vec<f32>) {
    match q {
        8 => shares.extend(weighed::<8>(run)),
        6 => shares.extend(weighed::<6>(run)),
        4 => shares.extend(weighed::<4>(run)),
        _ => shares.extend(weighed::<2>(run)),
    }
}

/// The cost of a few bytes by their pairs, in eighths of a bit.
pub(crate) fn cost(bytes: &[u8]) -> u32 {
    bytes.first().map_or(0, |&first| alone(first)) + bytes.windows(2).map(|pair| after(pair[0], pair[1])).sum::<u32>()
}

fn weighed<const Q: usize>(run: &[u8]) -> impl Iterator<Item = f32> {
    let (all, more) = (&*SHARES, alphabet_share(Q));
    let mut members = 0;
    let in_alphabet = run.iter().map(move |&byte| {
        members = if alphabet::has(byte) { members + 1 } else { 0 };
        members >= Q
    });
    let share = move |(cost, is_member)| all[usize::min(cost, COST_MAX)] + if is_member { more } else { 0.0 };
    grams::<Q>(run).map(|cost| cost as usize).zip(in_alphabet.skip(Q - 1)).map(share)
}

/// Additional weight of a gram that is all of [the alphabet](crate::alphabet) of Base64, since that is searched for
/// where others are not: its chance there, and for long grams a little that decides among rare ones only.
fn alphabet_share(q: usize) -> f32 {
    64_f32.powi(-(q as i32)).max(1e-9)
}

/// The cost of each gram of `Q` bytes in `run`.
fn grams<const Q: usize>(run: &[u8]) -> impl Iterator<Item = u32> {
    let pair = |pair: &[u8]| after(pair[0], pair[1]);
    let common = common::Common::of(Q);
    // What the pairs of a gram cost together, but for the last of them: those of the one before without its first.
    let mut sum = run.get(..Q - 1).into_iter().flat_map(move |pairs| pairs.windows(2).map(pair)).sum::<u32>();
    let pairs = run.windows(2).map(pair);
    let last = run.get(Q - 2..).unwrap_or_default().windows(2).map(pair);
    run.windows(Q).zip(pairs.zip(last)).map(move |(gram, (first, last))| {
        let cost = alone(gram[0]) + sum + last;
        sum = sum + last - first;
        let number = exactly::<Q>(gram);
        let cost = if number & (u64::MAX >> (72 - 8 * Q)) == number >> 8 { cost.min(ROW_COST) } else { cost };
        common.and_then(|common| common.cost(number)).map_or(cost, |known| known.min(cost))
    })
}

/// `Q` bytes as a number, the lowest first: four, six or eight.
#[inline(always)]
fn exactly<const Q: usize>(gram: &[u8]) -> u64 {
    let four = |at: usize| gram[at..].first_chunk().map_or(0, |four| u64::from(u32::from_le_bytes(*four)));
    match Q {
        4 => four(0),
        6 => four(0) | four(2) >> 16 << 32,
        8 => four(0) | four(4) << 32,
        _ => number(gram),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zeros_are_common_and_noise_is_rare() {
        let cost = |gram: &[u8; 8]| grams::<8>(gram).next().expect("a gram");
        let (zeros, words) = (cost(&[0; 8]), cost(b" the for"));
        let noise = cost(&[0x9e, 0x37, 0xc1, 0x6b, 0xd2, 0xa9, 0x1b, 0xee]);
        assert!(zeros < words && words < noise, "{zeros} {words} {noise}");
    }

    #[test]
    fn common_sequences_are_common() {
        // What compilers fill the room between functions with: no-operations of several bytes.
        let filling = [0x66, 0x2e, 0x0f, 0x1f, 0x84, 0, 0, 0, 0, 0];
        let (long, short): (Vec<_>, Vec<_>) = (grams::<8>(&filling).collect(), grams::<4>(&filling).collect());
        assert!(long.iter().all(|&cost| cost < 16 * 8), "{long:?}");
        assert!(short.iter().all(|&cost| cost < 14 * 8), "{short:?}");
    }

    #[test]
    fn rows_of_any_byte_are_common() {
        for byte in 0..=255 {
            let row = [byte; 8];
            let costs =
                [grams::<8>(&row).next(), grams::<6>(&row).next(), grams::<4>(&row).next(), grams::<2>(&row).next()];
            assert!(costs.iter().flatten().all(|&cost| cost <= ROW_COST), "{byte:02x} {costs:?}");
        }
        let nearly = [0x91, 0x91, 0x91, 0x91, 0x91, 0x91, 0x91, 0x3c];
        assert!(grams::<8>(&nearly).next() > Some(ROW_COST));
    }

    #[test]
    fn a_gram_costs_the_same_wherever_it_stands_in_a_run() {
        let run = b"\x91\x3c\0\0 the for\x07\x5d\xb8\xff\xff\xff";
        for q in [2, 4, 6, 8] {
            let (mut all, mut alone) = (Vec::new(), Vec::new());
            shares(run, q, &mut all);
            run.windows(q).for_each(|gram| shares(gram, q, &mut alone));
            assert_eq!((all.len(), &all), (run.len() + 1 - q, &alone));
            shares(&run[..q - 1], q, &mut all);
            assert_eq!(all, alone, "too short for any");
        }
    }
}
