//! Fuzz bodies: an expression and a haystack, or several expressions and haystacks, from one input.

use stream::Fuel;

use super::factor::Parts;
use super::{
    Ask, Expression, Flags, Joint, JointRoom, Limits, LiteralLimits, Needs, Progress, Reader, Toil, Want, fold,
};

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
    let flags = flags(*choices);
    let Ok(expression) = Expression::within(text, flags, LIMITS) else {
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

const LIMITS: Limits = Limits {
    text_bytes_max: 1 << 20,
    depth_max: 200,
    steps_max: 200_000,
    frames_max: 1 << 14,
    memo_bytes_max: 4 << 20,
    cache_bytes: 128 << 10,
};

fn flags(choices: u8) -> Flags {
    Flags {
        ignore_case: choices & 1 != 0,
        multi_line: choices & 2 != 0,
        dot_all: choices & 4 != 0,
        extended: choices & 8 != 0,
        extended_more: choices & 24 == 24,
        no_capture: choices & 32 != 0,
    }
}

/// Fuzz body: a byte of choices, how long haystacks are, what a walk may cost, how many expressions there are, each behind its
/// length; the rest is cut into haystacks. What is read with what others have in common is what is read alone; a walk tells of
/// each expression what a walk for it alone tells, in memory that is new or was used, and leaves none out that matches.
///
/// # Panics
/// If not.
pub fn fuzz_joint(data: &[u8]) {
    let [choices, length, toil, count, rest @ ..] = data else {
        return;
    };
    let mut rest = rest;
    let mut reader = Reader::default();
    let mut joint = Joint::default();
    let mut members: Vec<(Expression, Parts)> = Vec::new();
    for _ in 0..=count % MEMBERS_MAX {
        let Some((&length, behind)) = rest.split_first() else { break };
        let (text, behind) = behind.split_at(usize::from(length).min(behind.len()));
        rest = behind;
        let text = if choices & 64 != 0 { [b"(?:", text, b")z?(?:", text, b")"].concat() } else { text.to_vec() };
        let read = read(&mut reader, &text, flags(*choices));
        assert_eq!(read.is_some(), Expression::within(&text, flags(*choices), LIMITS).is_ok());
        if let Some((expression, Needs { parts: Some(parts), .. })) = read {
            joint.push(&parts);
            members.push((expression, parts));
        }
    }
    let haystack: Vec<u8> = rest.iter().take(HAYSTACK_MAX).map(|byte| byte & 0x7f).collect();
    let mut room = JointRoom::default();
    for haystack in haystack.chunks(usize::from(*length) * 8 + 1) {
        let told = walk(&joint, &mut room, haystack, u64::MAX);
        assert_eq!(told, walk(&joint, &mut JointRoom::default(), haystack, u64::MAX), "in memory that was used");
        let short = walk(&joint, &mut JointRoom::default(), haystack, u64::from(*toil) * 8);
        assert!(short.is_none() || short == told, "{short:?} of a walk that may be given up, {told:?} of the other");
        let Some(told) = told else { continue };
        for (place, (expression, parts)) in (0..).zip(&members) {
            let mut alone = Joint::default();
            alone.push(parts);
            let is_told = told.contains(&place);
            if let Some(alone) = walk(&alone, &mut JointRoom::default(), haystack, u64::MAX) {
                assert_eq!(is_told, alone == [0], "{expression:?} among others, and alone");
            }
            let is_match = is_match(&search(expression, Want::Hit, haystack, u64::MAX));
            assert!(is_told || !is_match, "{expression:?} matches and is not told");
        }
    }
}

/// The most expressions of an input, and the most bytes of its haystacks.
const MEMBERS_MAX: u8 = 8;
const HAYSTACK_MAX: usize = 2048;

/// Reads an expression by a reader that knows others, and checks that it is what one reads that knows none.
fn read(reader: &mut Reader, text: &[u8], flags: Flags) -> Option<(Expression, Needs)> {
    let limits = |count_max, bytes_min| LiteralLimits { count_max, bytes_min, bytes_max: 24 };
    let (any, ascii) = ([limits(64, 3), limits(64, 2)], [limits(512, 3), limits(64, 2), limits(512, 2)]);
    let ask = Ask { any: &any, ascii: &ascii, share_rare: 1e-6, share_common: 1e-4 };
    let (expression, node) = reader.within(text, flags, LIMITS).ok()?;
    let mut other = Reader::forgetful();
    let (_, plain) = other.within(text, flags, LIMITS).expect("another reader reads it");
    assert_eq!(node, plain, "{expression:?} by a reader of others");
    assert_eq!(Needs::of(&node, &ask, &reader.facts), Needs::of(&plain, &ask, &other.facts), "{expression:?}");
    let parts = Ask { any: &[], ascii: &[], share_rare: 0.0, share_common: 0.0 };
    Some((expression, Needs::of(&node, &parts, &reader.facts)))
}

/// The places that a walk tells; none where it is given up.
fn walk(joint: &Joint, room: &mut JointRoom, haystack: &[u8], toil: u64) -> Option<Vec<u32>> {
    let mut told = Vec::new();
    joint.find(room, haystack, &mut Toil::new(toil), |place| told.push(place)).then_some(told)
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
