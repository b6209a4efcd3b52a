//! Libraries that search for many strings: `peers PEER SET INPUT SECONDS` prints a line of JSON as `engine scan` does. What
//! they search for is the longest string of each signature; `yara-x` has a rule for each.
//!
//! None of them keeps state from one segment to the next: each is given pieces of 16 MB, or whole objects that are shorter.

mod input;

use std::error::Error;
use std::fs;
use std::path::Path;

use aho_corasick::{AhoCorasick, AhoCorasickKind};
use daachorse::DoubleArrayAhoCorasick;

use input::{Took, objects, seconds};

const PIECE: usize = 16 << 20;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [peer, set, input, seconds] = &arguments[..] else {
        return Err("PEER SET INPUT SECONDS".into());
    };
    scan(peer, set, input, seconds.parse()?)
}

/// Searches with one of them.
fn scan(peer: &str, set: &str, input: &str, limit: f64) -> Result<(), Box<dyn Error>> {
    let digits = fs::read_to_string(Path::new(set).join("set.txt"))?;
    let strings: Vec<Vec<u8>> = digits.lines().map(bytes).collect::<Result<_, _>>()?;
    let objects = objects(input)?;
    let begin = seconds();
    match peer {
        "aho-corasick" => {
            let engine = AhoCorasick::builder().kind(Some(AhoCorasickKind::ContiguousNFA)).build(&strings)?;
            run(&objects, limit, begin, |piece| engine.find_overlapping_iter(piece).count());
        }
        "daachorse" => {
            let mut strings = strings;
            strings.sort();
            strings.dedup();
            let engine = DoubleArrayAhoCorasick::<u32>::new(&strings).map_err(|error| error.to_string())?;
            run(&objects, limit, begin, |piece| engine.find_overlapping_iter(piece).count());
        }
        "yara-x" => {
            let mut compiler = yara_x::Compiler::new();
            for (index, line) in digits.lines().enumerate() {
                compiler.add_source(format!("rule r{index} {{ strings: $a = {{{line}}} condition: $a }}").as_str())?;
            }
            let rules = compiler.build();
            let mut scanner = yara_x::Scanner::new(&rules);
            run(&objects, limit, begin, |piece| scanner.scan(piece).map_or(0, |told| told.matching_rules().len()));
        }
        _ => return Err(format!("there is no peer {peer}").into()),
    }
    Ok(())
}

fn run(objects: &[Vec<u8>], limit: f64, begin: f64, mut find: impl FnMut(&[u8]) -> usize) {
    let load = seconds() - begin;
    let mut took = Took::new(limit);
    for piece in objects.iter().flat_map(|object| object.chunks(PIECE)) {
        took.found += find(piece) as u64;
        if !took.goes_on(piece.len()) {
            break;
        }
    }
    took.print(load, "");
}

fn bytes(digits: &str) -> Result<Vec<u8>, Box<dyn Error>> {
    let pairs = (0..digits.len()).step_by(2);
    Ok(pairs.map(|at| u8::from_str_radix(&digits[at..at + 2], 16)).collect::<Result<_, _>>()?)
}
