//! Expressions over the same haystacks: one pass for their literals, then only those run of which one was found.
//!
//! The plain way: run each expression over each haystack. Instead the haystacks are laid end to end in lower case and
//! searched once for literals of which every match of an expression contains one; that leaves a few pairs of an expression
//! and a haystack. Expressions without such literals are run over all.

use std::collections::HashMap;

use pattern::expression::{Expression, LiteralLimits};
use pattern::{Builder, Patterns, Piece, State};

/// The literals that are asked for first: at most so many, long enough to be rare.
const LONG: LiteralLimits = LiteralLimits { count_max: 128, bytes_min: 3, bytes_max: 24 };
/// And those that are taken where there are none: two bytes are the least that can be searched for.
const SHORT: LiteralLimits = LiteralLimits { count_max: 64, bytes_min: 2, bytes_max: 24 };

/// An expression by its place in a [`Pass`], and the number of a haystack.
pub(super) type Pair = (u32, u32);

/// The literals of a number of expressions.
#[derive(Debug)]
pub(super) struct Pass {
    patterns: Patterns,
    /// Of each literal, the expressions that it belongs to.
    owners: Vec<Vec<u32>>,
    /// Expressions without literals.
    always: Vec<u32>,
}

/// Haystacks end to end, in lower case.
#[derive(Debug, Default)]
pub(super) struct Joined {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl Joined {
    /// No haystack, in the memory that there is.
    pub(super) fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
    }

    /// Adds a haystack behind the others.
    pub(super) fn push(&mut self, haystack: &[u8]) {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(haystack);
        self.bytes[start..].make_ascii_lowercase();
        self.ends.push(self.bytes.len());
    }

    /// How many there are.
    pub(super) fn len(&self) -> u32 {
        u32::try_from(self.ends.len()).unwrap_or(u32::MAX)
    }
}

impl Pass {
    /// Collects the literals of expressions, which are known by their places from here on.
    pub(super) fn new<'a>(expressions: impl Iterator<Item = &'a Expression>) -> Pass {
        let mut builder = Builder::new();
        let mut owners: HashMap<u32, Vec<u32>> = HashMap::new();
        let mut always = Vec::new();
        for (place, expression) in (0..).zip(expressions) {
            let literals = expression.literals(LONG).or_else(|| expression.literals(SHORT));
            let parts = literals.and_then(|literals| parts(&literals, &mut builder));
            match parts {
                Some(parts) => parts.into_iter().for_each(|part| owners.entry(part).or_default().push(place)),
                None => always.push(place),
            }
        }
        let patterns = builder.build();
        let owners = (0..patterns.len()).map(|part| owners.remove(&(part as u32)).unwrap_or_default()).collect();
        Pass { patterns, owners, always }
    }

    /// Which expressions may match in which haystacks, in order of both, each pair once.
    pub(super) fn candidates(&self, joined: &Joined, pairs: &mut Vec<Pair>) {
        pairs.clear();
        for &place in &self.always {
            pairs.extend((0..joined.len()).map(|haystack| (place, haystack)));
        }
        let mut state = State::new();
        // Literals that repeat are noted once in each haystack.
        let mut noted = vec![u32::MAX; self.owners.len()];
        let mut note = |found: pattern::Match| {
            let start = usize::try_from(found.start).unwrap_or(usize::MAX);
            let haystack = joined.ends.partition_point(|&end| end <= start) as u32;
            if noted.get_mut(found.part as usize).is_some_and(|noted| std::mem::replace(noted, haystack) == haystack) {
                return;
            }
            let owners = self.owners.get(found.part as usize).map_or(&[][..], Vec::as_slice);
            pairs.extend(owners.iter().map(|&place| (place, haystack)));
        };
        self.patterns.scan(&mut state, &joined.bytes, &mut note);
        self.patterns.finish(&mut state, &mut note);
        if state.lost() > 0 {
            // Some literal may have been missed: nothing is ruled out.
            let places = self.owners.iter().flatten();
            pairs.extend(places.flat_map(|&place| (0..joined.len()).map(move |haystack| (place, haystack))));
        }
        pairs.sort_unstable();
        pairs.dedup();
    }

    /// Expressions without literals.
    pub(super) fn always(&self) -> &[u32] {
        &self.always
    }

    /// Literals.
    pub(super) fn literals(&self) -> usize {
        self.patterns.len()
    }
}

/// Adds literals; `None` where one cannot be searched for.
fn parts(literals: &[Vec<u8>], builder: &mut Builder) -> Option<Vec<u32>> {
    let piece = |&value: &u8| Piece::Byte { value, mask: 0xff };
    literals.iter().map(|literal| builder.add(&literal.iter().map(piece).collect::<Vec<_>>()).ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use pattern::expression::Flags;

    fn pass(texts: &[&str]) -> Pass {
        let flags = Flags { ignore_case: true, ..Flags::NONE };
        let all: Vec<_> = texts.iter().map(|text| Expression::new(text.as_bytes(), flags).unwrap()).collect();
        Pass::new(all.iter())
    }

    fn candidates(pass: &Pass, haystacks: &[&str]) -> Vec<Pair> {
        let (mut joined, mut pairs) = (Joined::default(), Vec::new());
        haystacks.iter().for_each(|haystack| joined.push(haystack.as_bytes()));
        pass.candidates(&joined, &mut pairs);
        pairs
    }

    #[test]
    fn only_what_a_literal_was_found_of_is_a_candidate() {
        let pass = pass(&["free money", "viagra|cialis", r"\d"]);
        assert_eq!(pass.always(), [2]);
        let pairs = candidates(&pass, &["Viagra\n", "nothing\n", "FREE MONEY and cialis\n"]);
        assert_eq!(pairs, [(0, 2), (1, 0), (1, 2), (2, 0), (2, 1), (2, 2)]);
    }

    #[test]
    fn a_literal_belongs_to_all_that_have_it() {
        let pass = pass(&["abcdef", "abcdef+"]);
        assert_eq!(candidates(&pass, &["xabcdefx"]), [(0, 0), (1, 0)]);
    }
}
