//! Expressions beside Perl, and under any fuel.

mod grammar;
mod perl;
mod rules;

use std::time::{Duration, Instant};

use pattern::expression::{Ask, Expression, Flags, Limits, LiteralLimits, Progress, Search, Want};
use stream::Fuel;

/// Runs a search to its end with `units` of fuel at a time. Without an automaton the same is found, as far as its steps reach.
fn find(expression: &Expression, want: Want, haystack: &[u8], from: usize, units: u64) -> Found {
    let found = run(expression, expression.search(want), haystack, from, units);
    if matches!(want, Want::Span | Want::Groups) && units == u64::MAX {
        let once = run(expression, expression.search_once(want), haystack, from, units);
        assert!(once == found || [&once, &found].contains(&&Found::Exhausted), "{once:?} {found:?} {haystack:?}");
    }
    found
}

fn run(expression: &Expression, mut search: Search, haystack: &[u8], from: usize, units: u64) -> Found {
    search.restart(from);
    loop {
        let progress = search.run(haystack, &mut Fuel::new(units));
        match progress {
            Progress::Tired => assert!(search.steps() > 0),
            Progress::None => return Found::None,
            Progress::Exhausted => return Found::Exhausted,
            Progress::Match(span) => {
                let groups = (1..=expression.groups()).map(|group| search.group(group).map(|at| (at.start, at.end)));
                return Found::Match((span.start, span.end), groups.collect());
            }
        }
    }
}

/// Result of a search.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Found {
    Match((usize, usize), Vec<Option<(usize, usize)>>),
    None,
    Exhausted,
}

impl Found {
    fn span(&self) -> Option<(usize, usize)> {
        match self {
            Found::Match(span, _) => Some(*span),
            _ => None,
        }
    }
}

fn expression(text: &str, flags: &str) -> Expression {
    Expression::new(text.as_bytes(), Flags::of(flags).expect("flags")).unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn span(text: &str, haystack: &str) -> Option<(usize, usize)> {
    let expression = expression(text, "");
    let all = find(&expression, Want::Groups, haystack.as_bytes(), 0, u64::MAX).span();
    assert_eq!(find(&expression, Want::Span, haystack.as_bytes(), 0, u64::MAX).span(), all, "{text}");
    all
}

#[test]
fn the_first_alternative_that_leads_to_a_match_is_taken() {
    assert_eq!(span("a|ab", "xab"), Some((1, 2)));
    assert_eq!(span("(?:a|ab)$", "xab"), Some((1, 3)));
    assert_eq!(span("a??b", "aab"), Some((0, 2)).map(|_| (1, 3)));
}

#[test]
fn a_dollar_stands_in_front_of_the_last_line_feed() {
    assert_eq!(span("b$", "ab\n"), Some((1, 2)));
    assert_eq!(span(r"b\s*$", "ab\n"), Some((1, 3)));
    assert_eq!(span(r"b\z", "ab\n"), None);
    assert_eq!(span("(?m)^b$", "a\nb\nc"), Some((2, 3)));
    assert_eq!(span("(?m)^", "a\n"), Some((0, 0)));
}

#[test]
fn an_empty_turn_ends_a_loop() {
    assert_eq!(span("(?:a?)*b", "aab"), Some((0, 3)));
    assert_eq!(span("(?:|a)*", "aab"), Some((0, 0)));
    assert_eq!(span("(?:|a)+$", "aa"), Some((0, 2)));
    assert_eq!(span("(?:(?:a*)*)*c", &"a".repeat(64)), None);
}

#[test]
fn a_group_has_matched_only_once_it_is_closed() {
    assert_eq!(span(r"(\1x|a)+", "aaxaxx"), Some((0, 6)));
    assert_eq!(span(r"^(?:(\1b|a))*$", "aababb"), Some((0, 6)));
}

#[test]
fn angles_are_no_boundaries() {
    assert_eq!(span(r"\<a\>", "x<a>"), Some((1, 4)));
}

#[test]
fn matches_that_begin_with_a_line_are_found_whichever_line_it_is() {
    let lines = "ab\n".repeat(2000) + "\n\nbc\nb";
    let all = [("^b", "\nb", Some((1, 2))), ("^bc", &lines, Some((6002, 6004))), ("^a[^c]*c", &lines, Some((0, 6004)))];
    for (text, haystack, span) in
        all.into_iter().chain([("^b.c", &*lines, None), ("^(?:ab\n)+x|^bc", &lines, Some((6002, 6004)))])
    {
        let expression = expression(text, "m");
        assert_eq!(find(&expression, Want::Span, haystack.as_bytes(), 0, u64::MAX).span(), span, "{text}");
        assert_eq!(find(&expression, Want::Span, haystack.as_bytes(), 0, 7).span(), span, "{text} in pieces");
        let hit = find(&expression, Want::Hit, haystack.as_bytes(), 0, u64::MAX);
        assert_eq!(hit.span().is_some(), span.is_some(), "{text}");
    }
}

/// Their loops are so long that a smaller automaton looks first.
#[test]
fn what_a_smaller_automaton_lets_through_is_decided_by_the_whole() {
    for (text, haystacks) in [
        (
            r"(?:\b(?:name|address|phone|city|age)(?:[ :.]|&#\d{1,3};){1,60}){4}$",
            &[
                "name: address. phone: city: ",
                "name: address. phone: x city: age:",
                "name: name: age: age:\n",
                "name:age:",
            ][..],
        ),
        (
            r"^(?:[a-f]{3,9}[^a-z\n]{1,9}){6}z",
            &["abc1abc1abc1abc1abc1abc1z", "abc1abc1abc1abc1abc1ab1z", "x\nabc1abc1z"],
        ),
        (r"(?:ab?){100}c", &[&"a".repeat(300), &("ab".repeat(99) + "c"), &("b".to_owned() + &"ab".repeat(100) + "c")]),
    ] {
        let expression = expression(text, "m");
        for haystack in haystacks.iter().map(|haystack| haystack.as_bytes()) {
            for want in [Want::Hit, Want::End, Want::Span, Want::Groups] {
                let once = run(&expression, expression.search_once(want), haystack, 0, u64::MAX);
                for units in [1, 7, u64::MAX] {
                    let found = find(&expression, want, haystack, 0, units);
                    let is_same = match want {
                        Want::Hit | Want::End => found.span().map(|span| span.1) == once.span().map(|span| span.1),
                        _ => found == once,
                    };
                    assert!(
                        is_same || (want == Want::Hit && found.span().is_some() == once.span().is_some()),
                        "{text}"
                    );
                }
            }
        }
    }
}

#[test]
fn what_cannot_be_decided_in_the_steps_there_are_is_not_a_no() {
    let limits = Limits { steps_max: 10_000, ..Limits::default() };
    let haystack = format!("{}c", "a".repeat(40));
    let hard = Expression::within(br"^(a|aa)+\1?$", Flags::NONE, limits).expect("an expression");
    assert_eq!(find(&hard, Want::Span, haystack.as_bytes(), 0, u64::MAX), Found::Exhausted);
}

#[test]
fn literals_are_the_rarest_that_every_match_needs() {
    let literals = |text: &str| {
        let literals = expression(text, "i").literals(LiteralLimits::default())?;
        Some(literals.into_iter().map(|literal| String::from_utf8_lossy(&literal).into_owned()).collect::<Vec<_>>())
    };
    let some = |all: &[&str]| Some(all.iter().map(|&one| one.to_owned()).collect::<Vec<_>>());
    assert_eq!(literals(r"\bColou?r TV\b"), some(&["color tv", "colour tv"]));
    assert_eq!(literals(r"\w+ (?:viagra|cialis)x* the"), some(&[" cialis", " viagra"]));
    assert_eq!(literals("(?:foo|ba)+"), None);
    assert_eq!(literals("a[bc]d{2}e*"), some(&["abdd", "acdd"]));
    assert_eq!(literals("(?!quux)a(?:quux)?"), None);
    assert_eq!(literals(".*"), None);
}

#[test]
fn where_each_match_is_a_byte_of_a_set_these_are_as_many_as_the_matches() {
    let ask = Ask { any: &[], ascii: &[], share_rare: 0.0, share_common: 0.0 };
    let haystack = b"The Kelvin scale, e-mail and the Eel; abcd\n";
    let all = [
        ("e", "", true),
        ("E", "i", true),
        (r"(?:e|\xc3[\xa8\xa9]|\xe9)", "", true),
        ("[a-c]|d", "", true),
        ("(?>k)", "i", true),
        (r"\xe9", "i", true),
        (r"(a|\xc3.|l)", "", true),
        ("ee", "i", false),
        ("a|cd", "", false),
        (r"e\b", "", false),
        ("e(?!l)", "", false),
        ("e?", "", false),
        ("e+", "", false),
        ("^e", "m", false),
    ];
    for (text, flags, is_byte) in all {
        let (expression, needs) =
            Expression::with_needs(text.as_bytes(), Flags::of(flags).expect("flags"), &ask).expect("an expression");
        assert_eq!(needs.byte.is_some(), is_byte, "{text}");
        let Some(set) = needs.byte else { continue };
        let (mut from, mut count) = (0, 0);
        while let Some((start, end)) = find(&expression, Want::Span, haystack, from, u64::MAX).span() {
            assert_eq!(end, start + 1, "{text}");
            (from, count) = (end, count + 1);
        }
        assert_eq!(haystack.iter().filter(|&&byte| set.has(byte)).count(), count, "{text}");
    }
}

#[test]
fn hostile_expressions_and_lines_stay_within_their_steps() {
    let line = "a".repeat(1 << 20);
    let texts = [
        "(a+)+$x",
        "(?:a*)*b",
        "(a|aa)+c",
        "(?:(?:a?){20}){20}b",
        "a.{0,200}a.{0,200}b",
        "(?=(a+))a*b\\1",
        "(.*)*=",
        "^(?:a|a|a)*b",
    ];
    for text in texts {
        let limits = Limits { steps_max: 3_000_000, ..Limits::default() };
        let expression = Expression::within(text.as_bytes(), Flags::NONE, limits).expect("an expression");
        let mut search = expression.search(Want::Groups);
        let progress = search.run(line.as_bytes(), &mut Fuel::unlimited());
        assert!(matches!(progress, Progress::None | Progress::Exhausted), "{text}: {progress:?}");
        assert!(search.steps() < 5_000_000, "{text}: {}", search.steps());
        assert!(search.memory() < 32 << 20, "{text}: {}", search.memory());
    }
}

#[test]
fn a_search_in_a_large_automaton_is_left_after_little() {
    let expression = expression("(?:(?:a?){1000}){100}b", "");
    let (haystack, mut search) = ([&[b'a'; 64][..], b"b"].concat(), expression.search(Want::End));
    let mut before = 0;
    while search.run(&haystack, &mut Fuel::new(1000)) == Progress::Tired {
        // A byte or two, of 200,000 steps each.
        assert!(search.steps() - before < 250_000, "{} units in one run", search.steps() - before);
        before = search.steps();
    }
}

#[test]
fn what_is_nested_or_long_is_compiled_at_once() {
    for text in [
        format!("{}a{}b", "(?>".repeat(150), "){2}".repeat(150)),
        format!("(?=a){}a", ".*".repeat(400_000)),
        format!("(?=a){}a", "a?".repeat(400_000)),
    ] {
        let begun = Instant::now();
        expression(&text, "").build();
        assert!(begun.elapsed() < Duration::from_secs(20), "{}...", &text[..20]);
    }
}
