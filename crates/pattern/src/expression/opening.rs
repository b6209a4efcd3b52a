//! The text with which every match begins, so that matches are tried only where it stands.
//!
//! It may begin a line, and bytes of one set may stand in front of it, as in `^\s*Content-Type`. Texts are found much faster than an
//! automaton walks, and most of their places fail within a few bytes.

use memchr::memmem::Finder;

use super::syntax::{Assertion, Node, UNBOUNDED};
use super::{Expression, Flags, Limits};
use crate::ByteSet;

/// Shorter texts stand nearly everywhere.
const TEXT_BYTES_MIN: usize = 3;

/// The beginning of every match of an expression.
#[derive(Debug, Clone)]
pub struct Opening {
    begins_line: bool,
    /// Bytes that may stand in front of the text, as many as there are.
    lead: ByteSet,
    /// In lower case.
    text: Finder<'static>,
    /// The expression, at the place where a search begins and nowhere else.
    here: Expression,
}

impl Opening {
    /// The opening of an expression that was read to a node.
    pub(super) fn of(node: &Node, source: &[u8], flags: Flags, limits: Limits) -> Option<Opening> {
        let Node::Concat(nodes) = node else { return None };
        // Behind a comment the parenthesis would be one; `\G` means where the whole search began.
        if flags.extended || node.any(&mut |node| *node == Node::Assert(Assertion::From)) {
            return None;
        }
        let mut nodes = nodes.iter().peekable();
        let begins_line = nodes.next_if_eq(&&Node::Assert(Assertion::LineStart)).is_some();
        let lead = nodes.peek().and_then(|node| any_number(node));
        if lead.is_some() {
            nodes.next();
        }
        let lead = lead.unwrap_or(ByteSet::EMPTY);
        let Some(Node::Literal { bytes, .. }) = nodes.next() else { return None };
        if bytes.len() < TEXT_BYTES_MIN || !bytes.is_ascii() {
            return None;
        }
        let text = Finder::new(&bytes.to_ascii_lowercase()).into_owned();
        let here = Expression::within(&[b"\\G(?:", source, b")"].concat(), flags, limits).ok()?;
        Some(Opening { begins_line, lead, text, here })
    }

    /// The expression, matched where a search begins ([`Search::restart`](super::Search::restart)) and nowhere else.
    pub fn here(&self) -> &Expression {
        &self.here
    }

    /// Places of a haystack in order, by the same bytes with letters in lower case: if there is a match, one begins at one of them.
    pub fn places<'h>(&'h self, haystack: &'h [u8], folded: &'h [u8]) -> impl Iterator<Item = usize> + 'h {
        let mut low = 0;
        std::iter::from_fn(move || {
            loop {
                let at = low + self.text.find(folded.get(low..)?)?;
                let front = haystack.get(low..at)?;
                // What begins in front of an earlier text can begin as early as that.
                let place = self.place(front, low.checked_sub(1).map(|before| haystack[before]));
                let place = place.map(|place| low + place);
                low = at + 1;
                if place.is_some() {
                    return place;
                }
            }
        })
    }

    /// The first place at which a match may begin of which the text is behind these bytes; `before` is in front of them.
    fn place(&self, front: &[u8], before: Option<u8>) -> Option<usize> {
        let lead = front.iter().rev().take_while(|&&byte| self.lead.has(byte)).count();
        let place = front.len() - lead;
        let before = if place == 0 { before } else { front.get(place - 1).copied() };
        if !self.begins_line || before.is_none_or(|before| before == b'\n') {
            return Some(place);
        }
        memchr::memchr(b'\n', &front[place..]).map(|feed| place + feed + 1)
    }
}

/// The set of which a node takes any number of bytes.
fn any_number(node: &Node) -> Option<ByteSet> {
    match node {
        Node::Repeat(repeat) if (repeat.min, repeat.max) == (0, UNBOUNDED) => match repeat.node {
            Node::Set(set) => Some(set),
            _ => None,
        },
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places(text: &str, flags: &str, haystack: &str) -> Option<Vec<usize>> {
        let flags = Flags::of(flags).expect("flags");
        let opening = Expression::new(text.as_bytes(), flags).expect("an expression").opening()?;
        let folded = haystack.to_ascii_lowercase();
        Some(opening.places(haystack.as_bytes(), folded.as_bytes()).collect())
    }

    #[test]
    fn a_match_begins_where_its_text_stands() {
        assert_eq!(places("HELP[^\\n]{9}", "i", "a Help\nhelp"), Some(vec![2, 7]));
        assert_eq!(places("^help\\s", "m", "a help\nhelp"), Some(vec![7]));
        assert_eq!(places("^\\s*type\\s*:", "im", "x  type\n\n \n Type:"), Some(vec![8]));
        assert_eq!(places("^[A-Z\\n]*foo", "m", "abc\nABCfoo"), Some(vec![4]), "cases count in front of it");
        assert_eq!(places("[ad]*bab(.)\\1", "", "aaababab"), Some(vec![0, 4]));
        assert_eq!(places("\\w*bab", "m", "xbabybab"), Some(vec![0, 2]), "what follows begins in front of the first");
    }

    #[test]
    fn an_expression_that_begins_otherwise_has_no_opening() {
        for text in ["(?:help|helo) x", "he.p", "\\s{2}help x", "\\Ghelp x", "h\\xe9lp x", "[ab]help x", "help|x"] {
            assert_eq!(places(text, "i", ""), None, "{text}");
        }
    }
}
