//! Fuzz body: an expression and a haystack from one input.

use stream::Fuel;

use super::{Ask, Expression, Flags, Joint, JointRoom, Limits, LiteralLimits, Needs, Progress, Toil, Want, fold};

/// Fuzz body: two bytes of choices, the length of the expression, the expression; the rest is the haystack. Whatever the
/// fuel, a search ends within its steps and says the same; the engines agree, and a match contains a literal.
///
/// # Panics
/// If not.
pub fn fuzz_expression(data: &[u8]) {
    let [choices, units, length, rest @ ..] = data else {
        return;
    };
    let (text, haystack) = rest.split_at(usize::from(*length).min(rest.len()));
    let haystack = &haystack[..haystack.len().min(4096)];
    let flags = Flags {
        ignore_case: choices & 1 != 0,
        multi_line: choices & 2 != 0,
        dot_all: choices & 4 != 0,
        extended: choices & 8 != 0,
        extended_more: choices & 24 == 24,
        no_capture: choices & 32 != 0,
    };
    let limits = Limits { steps_max: 200_000, frames_max: 1 << 14, ..Limits::default() };
    let Ok(expression) = Expression::within(text, flags, limits) else {
        return;
    };
    let groups = search(&expression, Want::Groups, haystack, u64::MAX);
    let span = search(&expression, Want::Span, haystack, u64::MAX);
    let hit = search(&expression, Want::Hit, haystack, u64::MAX);
    for (want, at_once) in [(Want::Groups, &groups), (Want::Span, &span), (Want::Hit, &hit)] {
        let in_pieces = search(&expression, want, haystack, u64::from(*units) + 1);
        assert!(is_same(&in_pieces, at_once), "{want:?}: {in_pieces:?} in pieces, {at_once:?} at once");
    }
    assert!(is_same(&groups, &span), "{groups:?} with groups, {span:?} without");
    if let (Progress::Match(at), Some(literals)) = (&span, expression.literals(LiteralLimits::default())) {
        let mut matched = haystack[at.clone()].to_vec();
        fold(&mut matched);
        let has = |literal: &Vec<u8>| memchr::memmem::find(&matched, literal).is_some();
        assert!(literals.iter().any(has), "no literal in {}", matched.escape_ascii());
    }
    if is_match(&span) && haystack.is_ascii() {
        assert!(has_parts(text, flags, haystack), "a match without its parts");
    }
    assert!(hit == Progress::Exhausted || span == Progress::Exhausted || is_match(&hit) == is_match(&span));
}

/// Whether the parts of an expression stand in a haystack, as far as it has any.
fn has_parts(text: &[u8], flags: Flags, haystack: &[u8]) -> bool {
    let ask = Ask { any: &[], ascii: &[], share_rare: 0.0, share_common: 0.0 };
    let Ok((_, Needs { parts: Some(parts), .. })) = Expression::with_needs(text, flags, &ask) else { return true };
    let mut joint = Joint::default();
    joint.push(&parts);
    let mut is_found = false;
    let is_known = joint.find(&mut JointRoom::default(), haystack, &mut Toil::new(1 << 20), |_| is_found = true);
    is_found || !is_known
}

fn is_match(progress: &Progress) -> bool {
    matches!(progress, Progress::Match(_))
}

/// Whether two searches came to the same, as far as they came.
fn is_same(one: &Progress, other: &Progress) -> bool {
    one == other || *one == Progress::Exhausted || *other == Progress::Exhausted
}

/// Runs a search in pieces of `units` of fuel.
fn search(expression: &Expression, want: Want, haystack: &[u8], units: u64) -> Progress {
    let mut search = expression.search(want);
    let mut turns = 0u64;
    loop {
        match search.run(haystack, &mut Fuel::new(units)) {
            Progress::Tired => turns += 1,
            progress => return progress,
        }
        assert!(turns <= 300_000, "more turns than steps");
    }
}
