//! Random expressions by a grammar, over random haystacks of few letters: the same as Perl, and the same under any fuel.

use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};

use pattern::expression::{
    Ask, Expression, Flags, Joint, JointRoom, Limits, LiteralLimits, Outlines, Progress, Toil, Want, fold,
};
use stream::Fuel;

use super::perl::{Case, ask};
use super::{Found, find};

/// Letters of expressions and of haystacks.
const LETTERS: &[u8] = b"aabbcAB_ \n\xe9\xc9";

fn letter() -> impl Strategy<Value = Vec<u8>> {
    prop::sample::select(LETTERS).prop_map(|byte| match byte {
        b'\n' => b"\\n".to_vec(),
        byte => vec![byte],
    })
}

fn simple() -> impl Strategy<Value = Vec<u8>> {
    let fixed = |all: &'static [&'static str]| prop::sample::select(all).prop_map(|text| text.as_bytes().to_vec());
    prop_oneof![
        6 => letter(),
        2 => (letter(), letter()).prop_map(|(a, b)| [a, b].concat()),
        3 => fixed(&[".", r"\w", r"\W", r"\s", r"\d", "[ab]", "[^a]", r"[^b\n]", "[a-c]", r"[[:alpha:]\xe9]", r"[\xc0-\xcf]", r"\x{e9}", r"[a\x{456}]", r"\x{2028}", r"\N", r"\h", r"\R"]),
        2 => fixed(&["^", "$", r"\b", r"\B", r"\A", r"\z", r"\Z"]),
        1 => fixed(&[r"\1", r"\2", r"\g{-1}", r"\g1", r"\k<n>"]),
    ]
}

fn quantifier() -> impl Strategy<Value = &'static str> {
    const PLAIN: [&str; 9] = ["*", "+", "?", "{2}", "{0,2}", "{1,3}", "{2,}", "{,2}", "{3,5}"];
    (prop::sample::select(&PLAIN[..]), 0..6).prop_map(|(plain, kind)| match kind {
        0 | 1 => Box::leak(format!("{plain}?").into_boxed_str()) as &str,
        2 => Box::leak(format!("{plain}+").into_boxed_str()) as &str,
        _ => plain,
    })
}

fn expressions() -> impl Strategy<Value = Vec<u8>> {
    let opened = |open: &'static str| move |inside: Vec<u8>| [open.as_bytes(), &inside, b")"].concat();
    simple().prop_recursive(5, 24, 4, move |inner| {
        prop_oneof![
            5 => prop::collection::vec(inner.clone(), 1..4).prop_map(|all| all.concat()),
            3 => prop::collection::vec(inner.clone(), 2..4).prop_map(|all| all.join(&b'|')),
            3 => inner.clone().prop_map(opened("(")),
            2 => inner.clone().prop_map(opened("(?:")),
            1 => inner.clone().prop_map(opened("(?<n>")),
            1 => inner.clone().prop_map(opened("(?i:")),
            1 => inner.clone().prop_map(opened("(?m:")),
            1 => inner.clone().prop_map(opened("(?s-i:")),
            1 => inner.clone().prop_map(opened("(?>")),
            1 => inner.clone().prop_map(opened("(?=")),
            1 => inner.clone().prop_map(opened("(?!")),
            1 => inner.clone().prop_map(opened("(?<=")),
            1 => inner.clone().prop_map(opened("(?<!")),
            4 => (inner.clone(), quantifier()).prop_map(|(inside, quantifier)| {
                [b"(?:", &inside[..], b")", quantifier.as_bytes()].concat()
            }),
            4 => (inner, quantifier()).prop_map(|(inside, quantifier)| {
                [b"(", &inside[..], b")", quantifier.as_bytes()].concat()
            }),
            3 => (letter(), quantifier()).prop_map(|(letter, quantifier)| [&letter[..], quantifier.as_bytes()].concat()),
        ]
    })
}

fn haystacks() -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(prop::sample::select(LETTERS), 0..14)
}

fn cases() -> Vec<Case> {
    let count = Config::default().cases.max(1500);
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &[7; 32]);
    let mut runner = TestRunner::new_with_rng(Config::default(), rng);
    let flags = prop::sample::select(&["", "", "", "i", "m", "s", "x", "ms", "n"][..]);
    let all = (expressions(), flags, prop::collection::vec(haystacks(), 4), 0usize..3);
    let mut cases = Vec::new();
    for _ in 0..count {
        let (text, flags, haystacks, from) = all.new_tree(&mut runner).expect("a case").current();
        for haystack in haystacks {
            let from = if from == 2 { haystack.len() / 2 } else { 0 };
            cases.push(Case { text: text.clone(), flags: flags.to_owned(), haystack, from });
        }
    }
    cases
}

#[test]
fn random_expressions_match_as_in_perl() {
    let cases = cases();
    let Some(answers) = ask(&cases) else {
        return;
    };
    let mut wrong = Vec::new();
    let (mut matched, mut accepted) = (0, 0);
    for (case, answer) in cases.iter().zip(&answers) {
        let ours = Expression::new(&case.text, Flags::of(case.flags.as_str()).expect("flags"));
        let (Ok(expression), Some(answer)) = (&ours, answer) else {
            if ours.is_ok() != answer.is_some() {
                wrong.push(format!("{case:?}: ours {ours:?}, Perl {answer:?}"));
            }
            continue;
        };
        accepted += 1;
        let groups = find(expression, Want::Groups, &case.haystack, case.from, u64::MAX);
        let span = find(expression, Want::Span, &case.haystack, case.from, u64::MAX);
        let hit = find(expression, Want::Hit, &case.haystack, case.from, u64::MAX);
        matched += usize::from(span.span().is_some());
        let padded = padded(answer, expression.groups());
        let is_same_span = span.span() == answer.span()
            && groups.span() == answer.span()
            && hit.span().is_some() == answer.span().is_some();
        let is_same = is_same_span && groups == padded || is_known(&case.text, is_same_span);
        if !is_same {
            let text = case.text.escape_ascii();
            let haystack = case.haystack.escape_ascii();
            wrong.push(format!(
                "/{text}/{} on \"{haystack}\" from {}: {groups:?} {span:?} {hit:?}, Perl {padded:?}",
                case.flags, case.from
            ));
        }
    }
    println!("{} cases, {accepted} accepted by both, {matched} with a match", cases.len());
    let some = wrong.iter().take(40).cloned().collect::<Vec<_>>().join("\n");
    assert!(wrong.is_empty(), "{} of {} differ:\n{some}", wrong.len(), cases.len());
}

/// Whether Perl is known to differ from its own manual here: an atomic group matches behind a place only at the end, and a
/// group whose loop took no turn forgets what an earlier turn of the loop around it had set.
fn is_known(text: &[u8], is_same_span: bool) -> bool {
    let has = |part: &[u8]| text.windows(part.len()).any(|here| here == part);
    let is_atomic = has(b"(?>") || has(b"\\R") || [b"*+", b"++", b"?+", b"}+"].into_iter().any(|part| has(part));
    let loops = text.windows(2).filter(|pair| pair[0] == b')' && b"*+?{".contains(&pair[1])).count();
    is_same_span && (loops >= 2 || is_atomic) || is_atomic && (has(b"(?<=") || has(b"(?<!"))
}

/// The answer with groups that did not match up to the last.
fn padded(answer: &Found, count: usize) -> Found {
    match answer {
        Found::Match(span, groups) => {
            let mut groups = groups.clone();
            groups.resize(count, None);
            Found::Match(*span, groups)
        }
        other => other.clone(),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    /// The law: whatever the fuel, the same.
    #[test]
    fn any_fuel_finds_the_same(text in expressions(), haystack in haystacks(), units in 1u64..40) {
        let Ok(expression) = Expression::new(&text, Flags::NONE) else {
            return Ok(());
        };
        for want in [Want::Hit, Want::Span, Want::Groups] {
            let at_once = find(&expression, want, &haystack, 0, u64::MAX);
            prop_assert_eq!(&find(&expression, want, &haystack, 0, units), &at_once);
            prop_assert_eq!(&find(&expression, want, &haystack, 0, 1), &at_once);
        }
    }

    /// The law: however few states are kept, the same.
    #[test]
    fn any_room_for_states_finds_the_same(text in expressions(), haystacks in prop::collection::vec(haystacks(), 4)) {
        let Ok(expression) = Expression::new(&text, Flags::NONE) else {
            return Ok(());
        };
        let limits = Limits { cache_bytes: 1, ..Limits::default() };
        let cramped = Expression::within(&text, Flags::NONE, limits).expect("the same expression");
        for want in [Want::Hit, Want::Span] {
            let mut search = cramped.search(want);
            for haystack in &haystacks {
                search.restart(0);
                let span = match search.run(haystack, &mut Fuel::unlimited()) {
                    Progress::Match(span) => Some((span.start, span.end)),
                    progress => { prop_assert_eq!(progress, Progress::None); None }
                };
                let roomy = find(&expression, want, haystack, 0, u64::MAX).span();
                prop_assert_eq!(span, roomy, "{:?} of {:?}", want, expression);
            }
        }
    }

    /// The first match is found where a search is told that it lies.
    #[test]
    fn a_match_is_found_within_its_place(text in expressions(), haystack in haystacks()) {
        let Ok(expression) = Expression::new(&text, Flags::NONE) else {
            return Ok(());
        };
        let Some((start, end)) = find(&expression, Want::Span, &haystack, 0, u64::MAX).span() else {
            return Ok(());
        };
        for want in [Want::Hit, Want::End, Want::Span].into_iter().filter(|_| !text.windows(2).any(|two| two == b"\\G")) {
            let mut search = expression.search(want);
            search.restart_within(start..end + 1);
            let progress = search.run(&haystack, &mut Fuel::unlimited());
            let is_found = match progress {
                Progress::Match(span) => want == Want::Hit || span.end == end,
                _ => false,
            };
            prop_assert!(is_found, "{want:?} {start}..{end} in {}", haystack.escape_ascii());
        }
    }

    /// A match contains one of the literals, in lower case.
    #[test]
    fn every_match_contains_a_literal(text in expressions(), haystacks in prop::collection::vec(haystacks(), 8), least in 1usize..3) {
        let limits = LiteralLimits { bytes_min: least, bytes_max: 3, ..LiteralLimits::default() };
        let Ok(expression) = Expression::new(&text, Flags::NONE) else {
            return Ok(());
        };
        let Some(literals) = expression.literals(limits) else {
            return Ok(());
        };
        for haystack in haystacks {
            if let Some((start, end)) = find(&expression, Want::Span, &haystack, 0, u64::MAX).span() {
                let mut matched = haystack[start..end].to_vec();
                fold(&mut matched);
                let has = |literal: &Vec<u8>| matched.windows(literal.len()).any(|here| here == &literal[..]);
                prop_assert!(literals.iter().any(has), "{:?} in {}", literals, matched.escape_ascii());
            }
        }
    }

    /// Where an expression matches, its outline stands in the haystack.
    #[test]
    fn every_match_goes_through_the_outline(text in expressions(), haystacks in prop::collection::vec(haystacks(), 8)) {
        let ask = Ask { any: &[], ascii: &[], share_rare: 0.0, share_common: 0.0 };
        let Ok((expression, needs)) = Expression::with_needs(&text, Flags::NONE, &ask) else {
            return Ok(());
        };
        let Some(outline) = needs.outline else {
            return Ok(());
        };
        let mut outlines = Outlines::default();
        outlines.add(7, &outline);
        for haystack in haystacks {
            let mut found = Vec::new();
            outlines.find(&haystack, |number| found.push(number));
            if find(&expression, Want::Span, &haystack, 0, u64::MAX).span().is_some() {
                prop_assert_eq!(&found, &[7], "{:?} in {}", outline, haystack.escape_ascii());
            }
        }
    }

    /// Where an expression matches in ASCII, its parts stand there; walked with those of another.
    #[test]
    fn every_match_has_its_parts(texts in [expressions(), expressions()], haystacks in prop::collection::vec(haystacks(), 8)) {
        let ask = Ask { any: &[], ascii: &[], share_rare: 0.0, share_common: 0.0 };
        let mut joint = Joint::default();
        let mut members = Vec::new();
        for text in &texts {
            let Ok((expression, needs)) = Expression::with_needs(text, Flags::NONE, &ask) else { continue };
            let Some(parts) = needs.parts else { continue };
            joint.push(&parts);
            members.push(expression);
        }
        let mut room = JointRoom::default();
        for haystack in haystacks.iter().filter(|haystack| haystack.is_ascii()) {
            let mut found = Vec::new();
            prop_assert!(joint.find(&mut room, haystack, &mut Toil::new(u64::MAX), |member| found.push(member)));
            for (member, expression) in (0..).zip(&members) {
                if find(expression, Want::Span, haystack, 0, u64::MAX).span().is_some() {
                    prop_assert!(found.contains(&member), "{:?} in {}", expression, haystack.escape_ascii());
                }
            }
        }
    }
}
