//! The patterns of a LIST, compiled: all of them are matched in one pass over a name (RFC 9051, section 6.3.9).
//!
//! ```text
//! state s of a pattern: its first s literals are matched. For each byte of the name:
//!     state s stays      if a `*` stands there, or a `%` and the byte is no delimiter
//!     state s becomes s + 1 if the byte is the next literal
//! ```
//!
//! A state is a bit; the states of all patterns stand side by side in words of 64, so a byte costs a few operations a word, and
//! nothing is tried twice. A wildcard is a property of the state that it stands in, so runs of wildcards cost nothing.
//! Memory: a word for each 64 literals, times the number of different literals.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

const WORD_BITS: usize = 64;

/// Patterns, of which one has to match. `*` stands for anything, `%` for anything within a level.
#[derive(Debug, Default)]
pub struct Patterns {
    delimiter: u8,
    /// The states in which a pattern begins, and in which it has matched.
    starts: Vec<u64>,
    ends: Vec<u64>,
    /// States that stay at a delimiter, and at any other byte.
    stars: Vec<u64>,
    wildcards: Vec<u64>,
    /// By byte: the states whose next literal it is.
    literals: BTreeMap<u8, Vec<u64>>,
}

/// Working memory of a match; it can be used again.
#[derive(Debug, Default)]
pub struct Scratch {
    states: Vec<u64>,
}

impl Patterns {
    /// Compiles them. A pattern that is given twice counts once.
    pub fn new<P: AsRef<[u8]>>(patterns: &[P], delimiter: u8) -> Patterns {
        let mut distinct: Vec<&[u8]> = patterns.iter().map(AsRef::as_ref).collect();
        distinct.sort_unstable();
        distinct.dedup();
        let mut compiled = Patterns { delimiter, ..Patterns::default() };
        let mut state = 0;
        for pattern in distinct {
            set(&mut compiled.starts, state);
            for &byte in pattern {
                match byte {
                    b'*' => {
                        set(&mut compiled.stars, state);
                        set(&mut compiled.wildcards, state);
                    }
                    b'%' => set(&mut compiled.wildcards, state),
                    literal => {
                        set(compiled.literals.entry(literal).or_default(), state);
                        state = state.saturating_add(1);
                    }
                }
            }
            set(&mut compiled.ends, state);
            state = state.saturating_add(1);
        }
        let words = state.div_ceil(WORD_BITS);
        let bitmaps = [&mut compiled.starts, &mut compiled.ends, &mut compiled.stars, &mut compiled.wildcards];
        bitmaps.into_iter().chain(compiled.literals.values_mut()).for_each(|bits| bits.resize(words, 0));
        compiled
    }

    /// True if one of the patterns matches all of `name`.
    pub fn matches(&self, name: &[u8], scratch: &mut Scratch) -> bool {
        let states = &mut scratch.states;
        states.clear();
        states.extend_from_slice(&self.starts);
        for &byte in name {
            let stays = if byte == self.delimiter { &self.stars } else { &self.wildcards };
            let next = self.literals.get(&byte);
            let (mut carry, mut alive) = (0, 0);
            for (at, (word, stays)) in states.iter_mut().zip(stays).enumerate() {
                let moves = *word & next.and_then(|next| next.get(at)).copied().unwrap_or(0);
                *word = *word & stays | moves << 1 | carry;
                carry = moves >> (WORD_BITS - 1);
                alive |= *word;
            }
            if alive == 0 {
                return false;
            }
        }
        states.iter().zip(&self.ends).any(|(word, ends)| word & ends != 0)
    }
}

fn set(bits: &mut Vec<u64>, state: usize) {
    let (word, bit) = (state / WORD_BITS, state % WORD_BITS);
    if bits.len() <= word {
        bits.resize(word.saturating_add(1), 0);
    }
    if let Some(word) = bits.get_mut(word) {
        *word |= 1 << bit;
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec;

    use super::*;

    /// The plain way: what is left of the pattern against what is left of the name.
    fn plainly(pattern: &[u8], name: &[u8]) -> bool {
        match (pattern.split_first(), name.split_first()) {
            (None, None) => true,
            (None, Some(_)) => false,
            (Some((b'*', rest)), None) | (Some((b'%', rest)), None) => plainly(rest, name),
            (Some((b'*', rest)), Some((_, behind))) => plainly(rest, name) || plainly(pattern, behind),
            (Some((b'%', rest)), Some((byte, behind))) => {
                plainly(rest, name) || *byte != b'/' && plainly(pattern, behind)
            }
            (Some((literal, rest)), Some((byte, behind))) => literal == byte && plainly(rest, behind),
            (Some(_), None) => false,
        }
    }

    fn matches(patterns: &[&[u8]], name: &[u8]) -> bool {
        Patterns::new(patterns, b'/').matches(name, &mut Scratch::default())
    }

    #[test]
    fn patterns_are_matched() {
        for (pattern, name, fits) in [
            ("*", "a/b/c", true),
            ("%", "a/b", false),
            ("%", "a", true),
            ("a/%", "a/b", true),
            ("a/%", "a/b/c", false),
            ("%/c", "a/b/c", false),
            ("*/c", "a/b/c", true),
            ("*%c", "a/b/c", true),
            ("%*", "a/b", true),
            ("a*b%c", "axxb/bc", true),
            ("", "", true),
            ("", "a", false),
            ("inbox", "INBOX", false),
            ("%x%", "axb", true),
            ("*a%b*", "a/ab/", true),
        ] {
            assert_eq!(matches(&[pattern.as_bytes()], name.as_bytes()), fits, "{pattern} {name}");
        }
    }

    #[test]
    fn compiled_and_plain_patterns_agree() {
        let letters = b"ab/*%";
        let mut seed = 1_u32;
        let mut word = |most: u32, letters: &[u8]| -> Vec<u8> {
            let mut next = |most: u32| {
                seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                (seed >> 16) % most
            };
            let length = next(most);
            (0..length).map(|_| letters[next(letters.len() as u32) as usize]).collect()
        };
        for _ in 0..3_000 {
            let patterns = [word(9, letters), word(9, letters), word(9, letters)];
            let name = word(9, b"ab/");
            let patterns: Vec<&[u8]> = patterns.iter().map(Vec::as_slice).collect();
            let wanted = patterns.iter().any(|pattern| plainly(pattern, &name));
            assert_eq!(matches(&patterns, &name), wanted, "{patterns:?} {name:?}");
        }
    }

    #[test]
    fn many_patterns_are_independent_of_each_other() {
        let patterns: Vec<Vec<u8>> = (0..500_u32).map(|number| alloc::format!("box{number}/%").into_bytes()).collect();
        let compiled = Patterns::new(&patterns, b'/');
        let mut scratch = Scratch::default();
        assert!(compiled.matches(b"box499/x", &mut scratch) && compiled.matches(b"box0/", &mut scratch));
        assert!(!compiled.matches(b"box500/x", &mut scratch) && !compiled.matches(b"box1", &mut scratch));
        assert!(!Patterns::new::<&[u8]>(&[], b'/').matches(b"", &mut scratch));
    }

    #[test]
    fn equal_patterns_cost_as_much_as_one() {
        let one = Patterns::new(&[&b"*ab*ac"[..]], b'/');
        assert_eq!(Patterns::new(&vec![&b"*ab*ac"[..]; 9_000], b'/').starts.len(), one.starts.len());
    }
}
