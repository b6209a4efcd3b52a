//! Expressions over short texts: what they match is taken out or written anew.

use std::ops::Range;

use pattern::expression::{Expression, Flags, Progress, Search, Want};
use stream::Fuel;

/// Maximum steps for one text; the rest of the text stays unchanged.
const STEPS_MAX: u64 = 5_000_000;

/// An expression of this crate.
///
/// # Panics
/// Where it cannot be read: a mistake of ours, which each test of the module shows.
fn own(text: &str) -> Expression {
    match Expression::new(text.as_bytes(), Flags::NONE) {
        Ok(expression) => expression,
        Err(error) => unreachable!("{text}: {error:?}"),
    }
}

/// Search that tests for a match, with memory that the next text reuses.
pub(crate) fn search(expression: &Expression) -> Search {
    expression.search(Want::Hit)
}

/// Whether an expression matches somewhere.
pub(crate) fn matches(search: &mut Search, text: &[u8]) -> bool {
    search.restart(0);
    matches!(search.run(text, &mut Fuel::new(STEPS_MAX)), Progress::Match(_))
}

/// Search for ranges that are removed or rewritten, with its memory.
pub(crate) fn places(text: &str) -> Search {
    own(text).search(Want::Span)
}

/// The same, with groups.
pub(crate) fn groups(text: &str) -> Search {
    own(text).search(Want::Groups)
}

/// Writes each match anew, or the first alone.
pub(crate) fn replace(
    search: &mut Search,
    text: &mut Vec<u8>,
    matches_max: usize,
    mut with: impl FnMut(&Groups<'_>, &mut Vec<u8>),
) {
    let mut fuel = Fuel::new(STEPS_MAX);
    let (mut out, mut at) = (Vec::new(), 0);
    for _ in 0..matches_max {
        search.restart(at);
        let Progress::Match(span) = search.run(text, &mut fuel) else { break };
        if span.is_empty() {
            break;
        }
        out.extend_from_slice(text.get(at..span.start).unwrap_or_default());
        with(&Groups { search, text }, &mut out);
        at = span.end;
    }
    if at > 0 {
        out.extend_from_slice(text.get(at..).unwrap_or_default());
        *text = out;
    }
}

/// Text of the groups of a match.
pub(crate) struct Groups<'m> {
    search: &'m Search,
    text: &'m [u8],
}

impl Groups<'_> {
    /// A group by its number, 0 is the whole; nothing where it took nothing.
    pub(crate) fn get(&self, number: usize) -> &[u8] {
        let span: Option<Range<usize>> = self.search.group(number);
        span.and_then(|span| self.text.get(span)).unwrap_or_default()
    }
}
