//! Keys against values: comparators (RFC 4790, RFC 5051) and match types (RFC 5228, section 2.7; RFC 5231).

use alloc::borrow::Cow;
use alloc::string::String;
use alloc::vec::Vec;
use core::cmp::Ordering;

use text::normal::{capital, caseless, composed};

use crate::program::{Comparator, Relation};

impl Comparator {
    /// Whether capitals and small letters are equal.
    pub fn folds(self) -> bool {
        matches!(self, Comparator::AsciiCasemap | Comparator::UnicodeCasemap)
    }

    fn are_equal(self, wanted: char, found: char) -> bool {
        match self {
            Comparator::AsciiCasemap => wanted.eq_ignore_ascii_case(&found),
            Comparator::UnicodeCasemap => capital(wanted) == capital(found),
            Comparator::Octet | Comparator::AsciiNumeric => wanted == found,
        }
    }

    /// A text as wildcards read it: letters with their accents in one way.
    fn read(self, text: &str) -> Cow<'_, str> {
        if self == Comparator::UnicodeCasemap { composed(text) } else { Cow::Borrowed(text) }
    }

    pub(super) fn order(self, left: &str, right: &str) -> Ordering {
        match self {
            Comparator::Octet => left.cmp(right),
            Comparator::AsciiCasemap => {
                let folded = |text: &str| text.bytes().map(|byte| byte.to_ascii_uppercase()).collect::<Vec<u8>>();
                folded(left).cmp(&folded(right))
            }
            Comparator::UnicodeCasemap => caseless(left).cmp(&caseless(right)),
            Comparator::AsciiNumeric => number(left).cmp(&number(right)),
        }
    }

    pub(super) fn contains(self, value: &str, key: &str) -> bool {
        match self {
            Comparator::AsciiCasemap => value.to_ascii_lowercase().contains(&key.to_ascii_lowercase()),
            Comparator::UnicodeCasemap => caseless(value).contains(&caseless(key)),
            Comparator::Octet | Comparator::AsciiNumeric => value.contains(key),
        }
    }
}

/// Reads a number of any length; text without a leading digit is greater than all numbers (RFC 4790, section 9.1).
fn number(text: &str) -> (bool, usize, &str) {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let digits = text.get(..digits).unwrap_or_default();
    let is_infinite = digits.is_empty();
    let digits = digits.trim_start_matches('0');
    (is_infinite, digits.len(), digits)
}

impl Relation {
    pub(super) fn holds(self, order: Ordering) -> bool {
        match self {
            Relation::Greater => order.is_gt(),
            Relation::GreaterOrEqual => order.is_ge(),
            Relation::Less => order.is_lt(),
            Relation::LessOrEqual => order.is_le(),
            Relation::Equal => order.is_eq(),
            Relation::NotEqual => order.is_ne(),
        }
    }
}

#[derive(Debug, Clone, Copy)]
enum Element {
    Character(char),
    One,
    Many,
}

/// Matches `*` and `?`. Every `*` takes as little as it can, so going back to the last one is enough, and the time is at most
/// the product of both lengths; `steps` are counted down, and none are left if it is cut off.
pub(super) fn wildcards(value: &str, key: &str, comparator: Comparator, steps: &mut u64) -> Option<Vec<String>> {
    let pattern = elements(&comparator.read(key));
    let value: Vec<char> = comparator.read(value).chars().collect();
    let mut spans: Vec<(usize, usize)> = Vec::new();
    // Where to go on when the last `*` takes one more: in the pattern, and how many spans there are then.
    let mut last: Option<(usize, usize)> = None;
    let (mut at, mut position) = (0usize, 0usize);
    loop {
        *steps = steps.checked_sub(1)?;
        let character = value.get(position);
        let fits = match (pattern.get(at), character) {
            (None, None) => return Some(captures(&value, &spans)),
            (Some(Element::Many), _) => {
                spans.push((position, position));
                at = at.saturating_add(1);
                last = Some((at, spans.len()));
                continue;
            }
            (Some(Element::One), Some(_)) => {
                spans.push((position, position.saturating_add(1)));
                true
            }
            (Some(Element::Character(wanted)), Some(found)) => comparator.are_equal(*wanted, *found),
            _ => false,
        };
        if fits {
            (at, position) = (at.saturating_add(1), position.saturating_add(1));
            continue;
        }
        let (behind, count) = last?;
        spans.truncate(count);
        let span = spans.last_mut()?;
        if span.1 >= value.len() {
            return None;
        }
        span.1 = span.1.saturating_add(1);
        (at, position) = (behind, span.1);
    }
}

fn captures(value: &[char], spans: &[(usize, usize)]) -> Vec<String> {
    let text = |from: usize, to: usize| value.get(from..to).unwrap_or_default().iter().collect::<String>();
    let whole = core::iter::once(text(0, value.len()));
    whole.chain(spans.iter().map(|&(from, to)| text(from, to))).collect()
}

fn elements(key: &str) -> Vec<Element> {
    let mut elements = Vec::new();
    let mut characters = key.chars();
    while let Some(character) = characters.next() {
        elements.push(match character {
            '*' => Element::Many,
            '?' => Element::One,
            '\\' => Element::Character(characters.next().unwrap_or('\\')),
            other => Element::Character(other),
        });
    }
    elements
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wildcards_take_as_little_as_they_can() {
        for (value, key, wanted) in [
            ("Hello [acme] you", "*[*]*", Some("Hello [acme] you|Hello |acme| you")),
            ("abcabc", "*b*", Some("abcabc|a|cabc")),
            ("abcabc", "*bc", Some("abcabc|abca")),
            ("ABC", "a?c", Some("ABC|B")),
            ("a*c", "a\\*c", Some("a*c")),
            ("axc", "a\\*c", None),
            ("", "*", Some("|")),
            ("", "?", None),
            ("x", "", None),
            ("a-b-c", "?*-*?", Some("a-b-c|a||b-|c")),
            ("grün", "gr?n", Some("grün|ü")),
        ] {
            let found = wildcards(value, key, Comparator::AsciiCasemap, &mut 1_000);
            assert_eq!(found.map(|found| found.join("|")).as_deref(), wanted, "{value} {key}");
        }
        let mut steps = 1_000;
        assert!(wildcards(&"a".repeat(1_000), "*a*a*a*b", Comparator::Octet, &mut steps).is_none());
        assert_eq!(steps, 0);
    }

    #[test]
    fn unicode_casemap_knows_all_letters() {
        let compared = Comparator::UnicodeCasemap;
        assert!(compared.contains("J\u{d6}RG M\u{dc}LLER <j@x>", "j\u{f6}rg m\u{fc}ller"));
        assert!(compared.contains("JO\u{308}RG", "j\u{f6}rg") && !compared.contains("JORG", "j\u{f6}rg"));
        assert!(compared.order("\u{3a3}\u{df}", "\u{3c3}\u{df}").is_eq());
        assert!(!Comparator::AsciiCasemap.contains("J\u{d6}RG", "j\u{f6}rg"));
        let found = wildcards("Re: GRU\u{308}N x", "*gr\u{fc}n*", compared, &mut 1_000);
        assert_eq!(found.map(|found| found.join("|")).as_deref(), Some("Re: GR\u{dc}N x|Re: | x"));
    }

    #[test]
    fn numbers_have_any_length() {
        let order = |left, right| Comparator::AsciiNumeric.order(left, right);
        assert_eq!(order("007x", "7"), Ordering::Equal);
        assert_eq!(order("99999999999999999999999", "100000000000000000000000"), Ordering::Less);
        assert_eq!(order("x", "1"), Ordering::Greater);
        assert_eq!(order("x", ""), Ordering::Equal);
    }
}
