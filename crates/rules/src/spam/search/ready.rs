//! Expressions as rules write them, ready to be searched for.

use std::sync::{Arc, OnceLock};

use memchr::memmem::Finder;
use pattern::ByteSet;
use pattern::expression::{Ask, Expression as Compiled, Flags, LiteralLimits, Needs, Reader, fold};

/// An expression, with what every match of it needs.
#[derive(Debug)]
pub(crate) struct Ready {
    pub(crate) expression: Compiled,
    pub(crate) needs: Needs,
    /// Finder of each literal, made at first use.
    finders: OnceLock<Vec<Finder<'static>>>,
}

/// The literals that are asked for first: long enough to be rare.
const LONG: LiteralLimits = LiteralLimits { count_max: 64, bytes_min: 3, bytes_max: 24 };
/// And those that are taken where there are none: two bytes are the least that can be searched for.
const SHORT: LiteralLimits = LiteralLimits { count_max: 64, bytes_min: 2, bytes_max: 24 };
/// Where a set is small otherwise, many strings may come of it.
const MANY: LiteralLimits = LiteralLimits { count_max: 512, bytes_min: 3, bytes_max: 24 };
/// Better two bytes than none: a match may need several.
const LAST: LiteralLimits = LiteralLimits { count_max: 512, bytes_min: 2, bytes_max: 24 };

/// From this share of places on literals are common.
pub(crate) const SHARE_COMMON: f64 = 1e-4;
/// So rare, they stand by chance in one text of 4 kB in twenty.
const SHARE_RARE: f64 = 1e-5;

const ASK: Ask<'_> =
    Ask { any: &[LONG, SHORT], ascii: &[MANY, SHORT, LAST], share_rare: SHARE_RARE, share_common: SHARE_COMMON };

impl Ready {
    /// Reads an expression, once for the search and for what it needs.
    pub(crate) fn new(source: &[u8], flags: &str, reader: &mut Reader) -> Result<Ready, String> {
        let flags = Flags::of(flags).map_err(|flag| format!("the flag {flag} is not supported"))?;
        let (expression, needs) = reader.read(source, flags, &ASK).map_err(|error| error.to_string())?;
        Ok(Ready { expression, needs, finders: OnceLock::new() })
    }
}

impl Ready {
    /// Whether a haystack is long enough and has a byte of each set that a match needs.
    pub(crate) fn may_be_in(&self, haystack: &[u8]) -> bool {
        let has_sets = || {
            let bytes = ByteSet::present(haystack);
            self.needs.sets.iter().all(|set| set.meets(&bytes))
        };
        haystack.len() >= self.needs.bytes_min && has_sets()
    }

    /// Whether a literal that every match has stands in one of the haystacks, or there is none.
    pub(crate) fn may_match(&self, haystacks: &[&[u8]]) -> bool {
        let Some(literals) = &self.needs.any else { return true };
        let finders = || literals.strings.iter().map(|string| Finder::new(string).into_owned()).collect();
        let finders: &Vec<Finder<'static>> = self.finders.get_or_init(finders);
        let mut folded = Vec::new();
        haystacks.iter().any(|haystack| {
            folded.clear();
            folded.extend_from_slice(haystack);
            fold(&mut folded);
            finders.iter().any(|finder| finder.find(&folded).is_some())
        })
    }
}

/// Compiled form of an expression, kept from its check for later runs. It is not stored.
#[derive(Debug, Clone, Default)]
pub(crate) struct Kept(OnceLock<Arc<Ready>>);

impl Kept {
    /// Returns the kept form, or compiles the expression.
    pub(crate) fn ready(&self, source: &[u8], flags: &str, reader: &mut Reader) -> Result<Arc<Ready>, String> {
        if let Some(ready) = self.0.get() {
            return Ok(Arc::clone(ready));
        }
        let ready = Arc::new(Ready::new(source, flags, reader)?);
        Ok(Arc::clone(self.0.get_or_init(|| ready)))
    }
}

impl PartialEq for Kept {
    fn eq(&self, _: &Kept) -> bool {
        true
    }
}

impl Eq for Kept {}
