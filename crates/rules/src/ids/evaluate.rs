//! Tests of one section over one buffer.
//!
//! A test that finds its text goes on with the tests behind it; where the next is relative and fails, the next place of the
//! text is tried, and so on back to the first. Places are counted, and beyond the bound the section does not match.

use std::cell::{OnceCell, RefCell};
use std::ops::Range;

use pattern::expression::{Opening, Progress, Want};
use stream::Fuel;

use super::limits::Limits;
use super::order::begin_at_end;
use super::rule::{Bytes, Content, From, Pcre, SetChange, Test, Value, Verb};
use super::sets::{Added, Sets};

/// Work of a step of an expression.
const STEP_WORK: usize = 8;
/// Bytes of a number in digits.
pub(super) const DIGITS_MAX: usize = 23;
/// Bytes in which an expression is searched for without an automaton, which each search would build.
const SHORT_BYTES: usize = 256;

/// A buffer, or a window of a long one.
pub(super) struct View<'a> {
    bytes: &'a [u8],
    /// Bytes of the buffer in front of the window.
    base: i64,
    /// Whether the buffer ends here.
    is_end: bool,
    /// The bytes in lower case, made when a test asks for them.
    folded: Folded<'a>,
}

enum Folded<'a> {
    Own(OnceCell<Vec<u8>>),
    Shared(&'a LowerCase),
}

/// The bytes of a window in lower case, made when a test asks for them, and kept while the window moves on.
#[derive(Debug, Default)]
pub(super) struct LowerCase {
    now: OnceCell<Vec<u8>>,
    /// Those of the first bytes of the window, where not all of them are known.
    some: RefCell<Vec<u8>>,
}

impl LowerCase {
    fn of(&self, bytes: &[u8]) -> &[u8] {
        self.now.get_or_init(|| {
            let mut folded = self.some.take();
            let known = folded.len().min(bytes.len());
            folded.extend_from_slice(&bytes[known..]);
            folded[known..].make_ascii_lowercase();
            folded
        })
    }

    /// Bytes have come behind the others.
    pub fn grow(&mut self) {
        if let Some(folded) = self.now.take() {
            *self.some.get_mut() = folded;
        }
    }

    /// The first bytes have gone.
    pub fn drain(&mut self, count: usize) {
        self.grow();
        let folded = self.some.get_mut();
        folded.drain(..count.min(folded.len()));
    }
}

impl<'a> View<'a> {
    pub fn new(bytes: &'a [u8], base: u64, is_end: bool) -> View<'a> {
        let base = i64::try_from(base).unwrap_or(i64::MAX);
        View { bytes, base, is_end, folded: Folded::Own(OnceCell::new()) }
    }

    /// One of many views of the same bytes, which keep them in lower case together.
    pub fn folded_once(bytes: &'a [u8], folded: &'a LowerCase, base: u64, is_end: bool) -> View<'a> {
        View { folded: Folded::Shared(folded), ..View::new(bytes, base, is_end) }
    }

    /// A view of bytes that are derived from these.
    pub fn derived<'d>(&self, bytes: &'d [u8]) -> View<'d> {
        View { bytes, base: self.base, is_end: self.is_end, folded: Folded::Own(OnceCell::new()) }
    }

    /// The bytes.
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    fn length(&self) -> i64 {
        i64::try_from(self.bytes.len()).unwrap_or(i64::MAX)
    }

    fn folded(&self) -> &[u8] {
        match &self.folded {
            Folded::Own(cell) => cell.get_or_init(|| self.bytes.to_ascii_lowercase()),
            Folded::Shared(lower) => lower.of(self.bytes),
        }
    }

    /// The bytes from a place on, where it is one.
    fn from(&self, place: i64) -> Option<&'a [u8]> {
        self.bytes.get(usize::try_from(place).ok()?..)
    }
}

/// State that the tests of one rule share while they run.
pub(super) struct Run<'r> {
    pub limits: &'r Limits,
    pub sets: &'r Sets,
    pub added: &'r mut Added,
    pub tries: u32,
    pub fuel: Fuel,
    /// Bytes that may be looked at.
    pub work: u64,
    pub variables: Vec<i64>,
    /// A test that depends on no place of those before it has failed, so that no other place of theirs helps.
    pub is_settled: bool,
}

impl Run<'_> {
    /// Whether all tests hold.
    pub fn holds(&mut self, tests: &[Test], view: &View<'_>) -> bool {
        self.is_settled = false;
        self.from(tests, view, 0)
    }

    fn from(&mut self, tests: &[Test], view: &View<'_>, cursor: i64) -> bool {
        let holds = self.try_from(tests, view, cursor);
        if !holds && self.variables.is_empty() && !begin_at_end(tests) {
            self.is_settled = true;
        }
        holds
    }

    fn try_from(&mut self, tests: &[Test], view: &View<'_>, cursor: i64) -> bool {
        let Some((test, rest)) = tests.split_first() else { return true };
        match test {
            Test::Content(content) => self.content(content, rest, view, cursor),
            Test::Pcre(pcre) => self.pcre(pcre, rest, view, cursor),
            Test::Bytes(bytes) => self.bytes(bytes, view, cursor).is_some_and(|cursor| self.from(rest, view, cursor)),
            Test::DataAt { count, is_relative, is_negated } => {
                let count = self.value(*count);
                let is_there = if *is_relative {
                    cursor.saturating_add(count) <= view.length()
                } else {
                    count < view.length().saturating_add(view.base)
                };
                let holds = if *is_negated { !is_there && view.is_end } else { is_there };
                holds && self.from(rest, view, cursor)
            }
            Test::Size(sizes) => {
                view.is_end && sizes.has(view.base.saturating_add(view.length())) && self.from(rest, view, cursor)
            }
            Test::Base64 { bytes, offset, is_relative, tests } => {
                let start = if *is_relative { cursor } else { 0 };
                let start = start.saturating_add(i64::try_from(*offset).unwrap_or(i64::MAX));
                let decoded = view.from(start).map(|from| base64(from, *bytes)).unwrap_or_default();
                let has = !decoded.is_empty() && self.from(tests, &View::new(&decoded, 0, true), 0);
                // The tests of what is decoded here know nothing of other places.
                self.is_settled = false;
                has && self.from(rest, view, cursor)
            }
            // What changes a set is done when all else holds.
            Test::Set { set, change } if matches!(change, SetChange::Set | SetChange::Unset) => {
                self.from(rest, view, cursor) && self.set(*set, *change, view)
            }
            Test::Set { set, change } => self.set(*set, *change, view) && self.from(rest, view, cursor),
            Test::Reputation { set, order, value } => {
                let reputation = self.sets.reputation(*set, view.bytes);
                reputation.is_some_and(|reputation| order.holds(reputation, *value)) && self.from(rest, view, cursor)
            }
            Test::Absent { or_else } => *or_else && self.from(rest, view, cursor),
        }
    }

    fn set(&mut self, set: usize, change: SetChange, view: &View<'_>) -> bool {
        view.is_end && view.base == 0 && self.sets.try_value(set, change, view.bytes, self.added, self.limits)
    }

    /// Whether a bound was reached, so that what has not matched might have.
    pub fn is_spent(&self) -> bool {
        self.work == 0 || self.fuel.is_empty() || self.tries > self.limits.tries_max
    }

    fn value(&self, value: Value) -> i64 {
        match value {
            Value::Number(number) => number,
            Value::Variable(at) => self.variables.get(at).copied().unwrap_or(0),
        }
    }

    /// Burns work; whether there was enough.
    fn burn(&mut self, bytes: usize) -> bool {
        let left = self.work.checked_sub(bytes as u64);
        self.work = left.unwrap_or(0);
        left.is_some()
    }

    fn try_place(&mut self) -> bool {
        self.tries = self.tries.saturating_add(1);
        self.tries <= self.limits.tries_max
    }

    fn content(&mut self, content: &Content, rest: &[Test], view: &View<'_>, cursor: i64) -> bool {
        let Some(region) = self.region(content, view, cursor) else {
            return content.is_negated && self.from(rest, view, cursor);
        };
        if content.is_negated {
            let is_known = !content.at_end || view.is_end;
            let is_enough = self.burn(region.len());
            return is_enough && is_known && find(content, view, region).is_none() && self.from(rest, view, cursor);
        }
        let has_relative_next = begin_at_end(rest);
        let Range { mut start, end } = region;
        loop {
            let found = find(content, view, start..end);
            if !self.burn(found.unwrap_or(end).saturating_sub(start)) {
                return false;
            }
            let Some(at) = found else { return false };
            let behind = i64::try_from(at + content.bytes.len()).unwrap_or(i64::MAX);
            if !self.try_place() {
                return false;
            }
            if self.from(rest, view, behind) {
                return true;
            }
            if !has_relative_next || self.is_settled {
                return false;
            }
            start = at + 1;
        }
    }

    /// Where a content may stand; none where it cannot.
    fn region(&self, content: &Content, view: &View<'_>, cursor: i64) -> Option<Range<usize>> {
        let (mut start, mut end) = (0, view.length());
        if content.is_relative() {
            let from = cursor.saturating_add(content.distance.map_or(0, |distance| self.value(distance)));
            start = from.max(0);
            if let Some(within) = content.within {
                end = end.min(from.saturating_add(self.value(within)));
            }
        }
        let offset = content.offset.map_or(0, |offset| self.value(offset)).saturating_sub(view.base);
        if content.offset.is_some() {
            start = start.max(offset);
        }
        if let Some(depth) = content.depth {
            end = end.min(offset.saturating_add(self.value(depth)));
        }
        let range = usize::try_from(start).ok()?..usize::try_from(end).ok()?;
        (range.end.saturating_sub(range.start) >= content.bytes.len()).then_some(range)
    }

    fn pcre(&mut self, pcre: &Pcre, rest: &[Test], view: &View<'_>, cursor: i64) -> bool {
        let start = if pcre.is_relative { cursor } else { 0 };
        let Some(haystack) = view.from(start) else { return pcre.is_negated && self.from(rest, view, cursor) };
        let folded = || view.folded().get(view.bytes.len() - haystack.len()..).unwrap_or_default();
        if !pcre.literals.is_empty() {
            let (is_enough, folded) = (self.burn(haystack.len()), folded());
            if !pcre.literals.iter().any(|literal| memchr::memmem::find(folded, literal).is_some()) {
                return is_enough && pcre.is_negated && self.from(rest, view, cursor);
            }
        }
        let has_relative_next = begin_at_end(rest);
        let want = if has_relative_next { Want::Span } else { Want::Hit };
        let mut search = if haystack.len() <= SHORT_BYTES {
            pcre.expression.search_once(want)
        } else {
            pcre.expression.search(want)
        };
        let opening = pcre.opening.as_ref().filter(|_| !has_relative_next && haystack.len() > SHORT_BYTES);
        let first = opening.map_or(Some(0), |opening| self.first(opening, haystack, folded()));
        let Some(mut place) = first else {
            return self.work > 0 && pcre.is_negated && self.from(rest, view, cursor);
        };
        loop {
            search.restart(place);
            let before = self.fuel.left();
            let progress = search.run(haystack, &mut self.fuel);
            let steps = usize::try_from(before.saturating_sub(self.fuel.left())).unwrap_or(usize::MAX);
            if !self.burn(steps.saturating_mul(STEP_WORK)) {
                return false;
            }
            let found = match progress {
                Progress::Match(found) => found,
                Progress::None => return pcre.is_negated && self.from(rest, view, cursor),
                Progress::Tired | Progress::Exhausted => return false,
            };
            if pcre.is_negated || !self.try_place() {
                return false;
            }
            let behind = start.saturating_add(i64::try_from(found.end).unwrap_or(i64::MAX));
            if self.from(rest, view, behind) {
                return true;
            }
            if !has_relative_next || self.is_settled || found.start >= haystack.len() {
                return false;
            }
            place = found.start + 1;
        }
    }

    /// The place of the first match, or of a beginning in front of it; none without a match. Where many places of the text fail,
    /// the rest is left to a search, which does not try one after the other.
    fn first(&mut self, opening: &Opening, haystack: &[u8], folded: &[u8]) -> Option<usize> {
        let mut search = opening.here().search_once(Want::Hit);
        let mut fuel = Fuel::new(haystack.len() as u64);
        let mut fails = |place: usize| {
            search.restart(place);
            search.run(haystack, &mut fuel) == Progress::None
        };
        let first = opening.places(haystack, folded).find(|place| !fails(*place));
        let steps = haystack.len().saturating_sub(fuel.left() as usize);
        self.burn(haystack.len().saturating_add(steps.saturating_mul(STEP_WORK)));
        first
    }

    /// Does a numeric test, and says where the next test begins.
    fn bytes(&mut self, bytes: &Bytes, view: &View<'_>, cursor: i64) -> Option<i64> {
        let start = if bytes.is_relative { cursor } else { view.base.checked_neg()? };
        let start = start.checked_add(self.value(bytes.offset))?;
        let count = usize::try_from(self.value(bytes.count)).ok()?;
        let input = view.from(start)?;
        // Without a count all digits are taken.
        let is_open = count == 0 && bytes.base.is_some();
        let input = if is_open { &input[..input.len().min(DIGITS_MAX)] } else { input.get(..count)? };
        let (mut found, length) = number(bytes, input)?;
        // A jump begins behind the digits that were read.
        let count = if is_open || matches!(bytes.verb, Verb::Jump { .. }) { length } else { count };
        if let Some(mask) = bytes.mask {
            // The bits that count are moved down to the last.
            found = found.checked_shr(mask.trailing_zeros()).unwrap_or(0)
                & mask.checked_shr(mask.trailing_zeros()).unwrap_or(0);
        }
        let found = found.cast_signed();
        let behind = start.checked_add(i64::try_from(count).ok()?)?;
        match &bytes.verb {
            Verb::Test { order, is_negated, value } => {
                let holds = order.holds_unsigned(found, self.value(*value));
                (holds != *is_negated).then_some(cursor)
            }
            Verb::Jump { multiplier, align, from, post_offset } => {
                let mut by = found.checked_mul(*multiplier)?;
                if *align {
                    by = by.checked_add(3)? & !3;
                }
                let from = match from {
                    From::Here => behind,
                    From::Beginning => view.base.checked_neg()?,
                    From::End => view.length(),
                };
                // A jump in front of the buffer ends at its beginning.
                let place = from.checked_add(by)?.checked_add(self.value(*post_offset))?;
                let place = place.max(view.base.checked_neg()?);
                (0..=view.length()).contains(&place).then_some(place)
            }
            Verb::Extract { variable, multiplier, align } => {
                let value = found.checked_mul(*multiplier)?;
                let value = value.checked_add(align.checked_sub(1)?)?.checked_div(*align)?.checked_mul(*align)?;
                *self.variables.get_mut(*variable)? = value;
                Some(behind)
            }
            Verb::Math { variable, operator, value } => {
                let value = self.value(*value);
                let result = match operator {
                    b'+' => found.checked_add(value)?,
                    b'-' => found.checked_sub(value)?,
                    b'*' => found.checked_mul(value)?,
                    b'/' => found.checked_div(value)?,
                    b'<' => found.checked_shl(u32::try_from(value).ok()?)?,
                    _ => found.checked_shr(u32::try_from(value).ok()?)?,
                };
                *self.variables.get_mut(*variable)? = result;
                Some(behind)
            }
        }
    }
}

/// The first place of a content within a region.
fn find(content: &Content, view: &View<'_>, region: Range<usize>) -> Option<usize> {
    let haystack = if content.is_caseless { view.folded() } else { view.bytes };
    if content.at_end {
        let at = haystack.len().checked_sub(content.bytes.len())?;
        let fits = view.is_end && at >= region.start && haystack.len() <= region.end;
        return (fits && haystack.ends_with(&content.bytes)).then_some(at);
    }
    let at = memchr::memmem::find(haystack.get(region.clone())?, &content.bytes)?;
    Some(region.start + at)
}

/// The number that bytes stand for, binary or as digits that `strtoull` of C reads, and how many bytes of it there are.
fn number(bytes: &Bytes, input: &[u8]) -> Option<(u64, usize)> {
    let Some(base) = bytes.base else {
        let fold = |value: u64, byte: &u8| value << 8 | u64::from(*byte);
        let value = if bytes.is_little { input.iter().rev().fold(0, fold) } else { input.iter().fold(0, fold) };
        return Some((value, input.len()));
    };
    let start = input.iter().position(|byte| !matches!(byte, b' ' | b'\t'..=b'\r')).unwrap_or(input.len());
    let (is_negative, digits) = match &input[start..] {
        [b'-', rest @ ..] => (true, rest),
        [b'+', rest @ ..] => (false, rest),
        rest => (false, rest),
    };
    let digits = match digits {
        [b'0', b'x' | b'X', rest @ ..] if base == 16 && rest.first().is_some_and(u8::is_ascii_hexdigit) => rest,
        _ => digits,
    };
    let end = digits.iter().position(|byte| !char::from(*byte).is_digit(base)).unwrap_or(digits.len());
    let value = u64::from_str_radix(std::str::from_utf8(&digits[..end]).ok()?, base).ok()?;
    Some((if is_negative { value.wrapping_neg() } else { value }, input.len() - digits.len() + end))
}

/// Decodes Base64 up to the first byte that is not of it; line ends inside are skipped.
fn base64(input: &[u8], bytes: usize) -> Vec<u8> {
    let input = if bytes > 0 { &input[..bytes.min(input.len())] } else { input };
    let digits = input.iter().copied().filter(|byte| !matches!(byte, b'\r' | b'\n'));
    text::base64::decode(digits.take_while(|byte| text::base64::value(*byte).is_some())).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_ends_where_the_alphabet_does() {
        assert_eq!(base64(b"YWJj\r\nZGVm!xx", 0), b"abcdef");
    }
}
