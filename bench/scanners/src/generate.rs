//! Signatures after the recipe of the Avfs paper: where it had statistics of a real base, ours are these. 92 % are one
//! string, 4 % two or three strings with anything between, 4 % logical over two to four. Lengths are log-normal with median 48,
//! from 10 to 200 bytes. Each string begins at a random place of real programs, at one whose first eight bytes have four
//! values or more, as the author of a signature would choose it.
//!
//! Of the kind `tails` four bytes are real and the others random, as in the paper. Of the kind `code` all are real, cut
//! from other files than those that are scanned, and what occurs there all the same is left out.

use std::error::Error;
use std::fmt::Write as _;
use std::fs;
use std::io::{BufWriter, Write as _};
use std::path::Path;

use pattern::{Builder, Piece, State};

/// The most strings of one signature.
const STRINGS_MAX: usize = 4;
const SEGMENT: usize = 64 << 10;

/// Writes `set.ndb`, `set.ldb`, and `set.txt` with the longest string of each signature in hexadecimal digits.
pub fn write(kind: &str, count: usize, corpus: &str, clean: &str, set: &str) -> Result<(), Box<dyn Error>> {
    let (corpus, clean) = (fs::read(corpus)?, fs::read(clean)?);
    let mut random = Random(count as u64);
    // Some are left out, of code more than of tails.
    let wanted = count + count / 4 + 64;
    let strings: Vec<Vec<u8>> = (0..2 * wanted).map(|_| string(&mut random, &corpus, kind == "code")).collect();
    let mut strings = absent(strings, &clean).into_iter();
    let file = |ending: &str| fs::File::create(Path::new(set).join(format!("set.{ending}"))).map(BufWriter::new);
    let (mut ndb, mut ldb, mut txt) = (file("ndb")?, file("ldb")?, file("txt")?);
    for index in 0..count {
        let strings: Vec<Vec<u8>> = strings.by_ref().take(random.strings()).collect();
        let longest =
            strings.iter().max_by_key(|string| string.len()).ok_or("too many of them occur in the clean input")?;
        writeln!(txt, "{}", hex(longest))?;
        let digits: Vec<String> = strings.iter().map(|string| hex(string)).collect();
        if strings.len() > 1 && index % 2 == 0 {
            let all: Vec<String> = (0..digits.len()).map(|number| number.to_string()).collect();
            writeln!(ldb, "Bench.L.{index};Engine:81-255,Target:0;{};{}", all.join("&"), digits.join(";"))?;
        } else {
            writeln!(ndb, "Bench.B.{index}:0:*:{}", digits.join("*"))?;
        }
    }
    Ok(())
}

fn string(random: &mut Random, corpus: &[u8], is_code: bool) -> Vec<u8> {
    let length = ((random.normal() * 0.6 + 48f64.ln()).exp() as usize).clamp(10, 200);
    loop {
        let at = random.below(corpus.len() - 256);
        let mut bytes = corpus[at..at + length].to_vec();
        let mut seen = [false; 256];
        bytes[..8].iter().for_each(|&byte| seen[usize::from(byte)] = true);
        if seen.iter().filter(|&&seen| seen).count() >= 4 {
            let tail = if is_code { &mut [] } else { &mut bytes[4..] };
            tail.iter_mut().for_each(|byte| *byte = random.next() as u8);
            return bytes;
        }
    }
}

/// The strings that do not occur in `clean`.
fn absent(strings: Vec<Vec<u8>>, clean: &[u8]) -> Vec<Vec<u8>> {
    let mut builder = Builder::new();
    let parts: Vec<_> = strings.iter().map(|string| builder.add(&Piece::bytes(string))).collect();
    let patterns = builder.build();
    let mut occurs = vec![false; patterns.len()];
    let mut state = State::new();
    for segment in clean.chunks(SEGMENT) {
        patterns.scan(&mut state, segment, &mut |found| occurs[found.part as usize] = true);
    }
    let is_absent = |part: Result<u32, _>| part.is_ok_and(|part| !occurs[part as usize]);
    strings.into_iter().zip(parts).filter(|(_, part)| is_absent(*part)).map(|(string, _)| string).collect()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(2 * bytes.len()), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// SplitMix64.
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

    /// The sum of twelve numbers, near enough.
    fn normal(&mut self) -> f64 {
        (0..12).map(|_| self.next() as f64 / u64::MAX as f64).sum::<f64>() - 6.0
    }

    /// How many strings a signature has.
    fn strings(&mut self) -> usize {
        if self.below(100) < 92 { 1 } else { 2 + self.below(STRINGS_MAX - 1) }
    }
}
