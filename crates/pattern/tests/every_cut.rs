//! Every form of part, at every offset modulo 8, cut everywhere, against the naive matcher.

use pattern::{Builder, ByteSet, Edge, Found, Match, Path, Patterns, Piece, State, find_all};
use proptest::prelude::*;

fn alnum() -> ByteSet {
    ByteSet::of(|byte| byte.is_ascii_alphanumeric())
}

fn bytes(text: &str) -> Vec<Piece> {
    Piece::bytes(text.as_bytes())
}

fn with(pieces: Vec<Vec<Piece>>) -> Vec<Piece> {
    pieces.concat()
}

/// One part of every form and tier, with a text that it matches.
fn forms() -> Vec<(Vec<Piece>, &'static str)> {
    let one_of = |all: &[&str]| vec![Piece::OneOf(all.iter().map(|one| bytes(one)).collect())];
    let not_alnum = Edge::Byte { set: alnum().complement(), at_border: true };
    vec![
        (bytes("a window of fifteen and more"), "a window of fifteen and more"),
        (bytes("eleven byte"), "eleven byte"),
        (bytes("seven b"), "seven b"),
        (bytes("sixby"), "sixby"),
        (bytes("four"), "four"),
        (bytes("xyz"), "xyz"),
        (bytes("Q!"), "Q!"),
        (b"CaseLess words".iter().map(|&b| Piece::caseless(b)).collect(), "cASEleSS WORDS"),
        (with(vec![bytes("nib"), vec![Piece::Byte { value: 0x60, mask: 0xf0 }], bytes("ble")]), "nibcble"),
        (with(vec![bytes("low"), vec![Piece::Byte { value: 0x05, mask: 0x0f }], bytes("nib")]), "lowEnib"),
        (with(vec![bytes("skip"), vec![Piece::Skip(5)], bytes("over")]), "skip12345over"),
        (with(vec![bytes("far"), vec![Piece::Skip(200)], bytes("end")]), ""),
        (with(vec![vec![Piece::Skip(3)], bytes("lead"), vec![Piece::Skip(2)]]), "123lead12"),
        (with(vec![bytes("gap"), vec![Piece::Gap { min: 1, max: 4 }], bytes("z")]), "gap12z"),
        (with(vec![one_of(&["cat", "mouse"]), bytes(" in the house today")]), "mouse in the house today"),
        (with(vec![bytes("the "), one_of(&["one", "three", "on"]), bytes("eleven")]), "the threeeleven"),
        (
            with(vec![
                bytes("nest"),
                vec![Piece::OneOf(vec![
                    with(vec![bytes("a"), one_of(&["b", "cc"])]),
                    with(vec![vec![Piece::Skip(2)], bytes("d")]),
                ])],
                bytes("ing"),
            ]),
            "nestacCing",
        ),
        (
            with(vec![bytes("not"), vec![Piece::NoneOf(vec![b"ab".to_vec(), b"cd".to_vec()])], bytes("this")]),
            "notacthis",
        ),
        (with(vec![bytes("set"), vec![Piece::Set(alnum())], bytes("tle")]), "set7tle"),
        (with(vec![vec![Piece::Behind(not_alnum.clone())], bytes("word"), vec![Piece::Ahead(not_alnum)]]), " word."),
        (with(vec![vec![Piece::Behind(Edge::Line)], bytes("line"), vec![Piece::Ahead(Edge::Line)]]), "\nline\r\n"),
        (
            with(vec![
                vec![Piece::Behind(Edge::NotWide(alnum()))],
                bytes("w\0i\0"),
                vec![Piece::Ahead(Edge::NotWide(alnum()))],
            ]),
            "_\0w\0i\0.",
        ),
        (bytes(&"long".repeat(80)), ""),
    ]
}

fn collect(patterns: &Patterns, segments: &[&[u8]]) -> Vec<Match> {
    let mut state = State::new();
    let mut told = Vec::new();
    for segment in segments {
        patterns.scan(&mut state, segment, &mut |found| told.push(found));
    }
    patterns.finish(&mut state, &mut |found| told.push(found));
    assert_eq!(state.lost(), 0);
    told
}

fn expected(forms: &[(Vec<Piece>, &str)], stream: &[u8]) -> Vec<(u32, u64, u64)> {
    let mut all = Vec::new();
    for ((part, _), id) in forms.iter().zip(0u32..) {
        all.extend(find_all(part, stream).into_iter().map(|(start, end)| (id, start, end)));
    }
    all.sort_unstable();
    all
}

fn flat(told: &[Match]) -> Vec<(u32, u64, u64)> {
    let mut all: Vec<_> = told.iter().map(|found| (found.part, found.start, found.end)).collect();
    all.sort_unstable();
    all
}

fn compile(forms: &[(Vec<Piece>, &str)]) -> Patterns {
    let mut builder = Builder::new();
    for ((part, _), id) in forms.iter().zip(0u32..) {
        assert_eq!(builder.add(part), Ok(id));
    }
    builder.build()
}

/// The patterns of these forms on every path that this machine has.
fn on_every_path(forms: &[(Vec<Piece>, &str)]) -> impl Iterator<Item = Patterns> {
    let patterns = compile(forms);
    Path::available().into_iter().map(move |path| patterns.clone().on(path))
}

#[test]
fn every_form_is_found_at_every_offset_whatever_the_cut_on_every_path() {
    let forms = forms();
    for patterns in on_every_path(&forms) {
        for (index, (part, text)) in forms.iter().enumerate() {
            let text = match (index, text.is_empty()) {
                (11, _) => format!("far{}end", "-".repeat(200)),
                (_, true) => "long".repeat(80),
                _ => (*text).to_owned(),
            };
            assert!(!find_all(part, text.as_bytes()).is_empty() || index == 16, "{text:?}");
            for offset in 0..8 {
                every_cut(&patterns, &forms, &text, offset);
            }
        }
    }
}

/// The text at that offset, with enough before and behind it that whole vectors of grams are looked at.
fn every_cut(patterns: &Patterns, forms: &[(Vec<Piece>, &str)], text: &str, offset: usize) {
    let mut stream = vec![b'-'; offset + 67];
    stream.extend_from_slice(text.as_bytes());
    stream.extend_from_slice(&[b'-'; 70]);
    let wanted = expected(forms, &stream);
    let whole = collect(patterns, &[&stream]);
    assert_eq!(flat(&whole), wanted, "{text:?} at {offset}");
    for cut in 0..stream.len() {
        let (one, two) = stream.split_at(cut);
        assert_eq!(collect(patterns, &[one, two]), whole, "{text:?} at {offset} cut at {cut}");
    }
    let single: Vec<&[u8]> = stream.chunks(1).collect();
    assert_eq!(collect(patterns, &single), whole);
}

#[test]
fn matches_across_large_segments_are_found_in_the_same_order() {
    let forms = forms();
    let mut stream = Vec::new();
    while stream.len() < 60_000 {
        for (_, text) in &forms {
            stream.extend_from_slice(text.as_bytes());
            stream.extend(std::iter::repeat_n(b'.', stream.len() % 37));
        }
        stream.extend_from_slice("long".repeat(90).as_bytes());
    }
    let wanted = expected(&forms, &stream);
    for patterns in on_every_path(&forms) {
        let whole = collect(&patterns, &[&stream]);
        assert_eq!(flat(&whole), wanted);
        for size in [100, 255, 256, 257, 300, 511, 1000, 8191, 8192, 8193, 20_000] {
            let segments: Vec<&[u8]> = stream.chunks(size).collect();
            assert_eq!(collect(&patterns, &segments), whole, "segments of {size}");
        }
    }
}

#[test]
fn a_pinned_part_is_found_at_its_offsets_only() {
    let mut builder = Builder::new();
    let part = builder.add_at(&bytes("M"), 5..=7).expect("a part");
    let patterns = builder.build();
    let stream = b"MMMMMMMMMM";
    for cut in 0..stream.len() {
        let told = collect(&patterns, &[&stream[..cut], &stream[cut..]]);
        let starts: Vec<u64> = told.iter().map(|found| found.start).collect();
        assert_eq!((starts, told[0].part), (vec![5, 6, 7], part));
    }
}

#[test]
fn runs_of_one_value_are_passed_over_and_nothing_is_missed() {
    let zeros = |count: usize| Piece::bytes(&vec![0; count]);
    let alternatives = Piece::OneOf(vec![zeros(3), zeros(4), Piece::bytes(b"zq")]);
    let forms = vec![
        zeros(10),
        [zeros(6), bytes("MZ")].concat(),
        [bytes("ab"), zeros(40)].concat(),
        [zeros(5), vec![alternatives], zeros(4)].concat(),
        [zeros(4), vec![Piece::Gap { min: 2, max: 9 }], zeros(3)].concat(),
        [zeros(9), vec![Piece::Ahead(Edge::Byte { set: ByteSet::of(|byte| byte == 0), at_border: false })]].concat(),
        [vec![Piece::Behind(Edge::Line)], zeros(8)].concat(),
        [vec![Piece::Skip(100)], zeros(30), vec![Piece::Skip(100)]].concat(),
        bytes("aaaa"),
    ];
    let forms: Vec<_> = forms.into_iter().map(|form| (form, "")).collect();
    let mut stream = b"ab".to_vec();
    for (length, value) in [(3000, 0), (700, b'a'), (12_000, 0), (1, b'z'), (1, b'q'), (2000, 0), (600, b'a')] {
        stream.resize(stream.len() + length, value);
        stream.extend_from_slice(b"ab\nMZ");
    }
    let wanted = expected(&forms, &stream);
    for patterns in on_every_path(&forms) {
        let whole = collect(&patterns, &[&stream]);
        assert_eq!(flat(&whole), wanted);
        for size in [7, 100, 256, 257, 1000, 8191, 8193] {
            let segments: Vec<&[u8]> = stream.chunks(size).collect();
            assert_eq!(collect(&patterns, &segments), whole, "segments of {size}");
        }
    }
}

#[test]
fn what_begins_in_a_long_run_is_found_wherever_the_run_ends() {
    for (value, before) in [(0, 4), (0, 7), (0, 14), (b'A', 5), (b'A', 8)] {
        let part = [Piece::bytes(&vec![value; before]), bytes("BC")].concat();
        let patterns = compile(&[(part, "")]);
        for length in 2030..2050 {
            let stream = [vec![b'-'; 20], vec![value; length], b"BC..end".to_vec()].concat();
            for cut in [0, 1000, 19 + length, 20 + length, 21 + length] {
                let (first, rest) = stream.split_at(cut);
                let found = flat(&collect(&patterns, &[first, rest]));
                assert_eq!(found.len(), 1, "{before} times {value:02x}, run of {length}, cut at {cut}");
            }
        }
    }
}

#[test]
fn a_long_run_costs_no_work() {
    let mut builder = Builder::new();
    // The long ones are open at hundreds of places at a time.
    let counts = || (8..24).chain(300..340).chain([1000]);
    for count in counts() {
        builder.add(&Piece::bytes(&vec![0; count])).expect("a part");
    }
    let patterns = builder.build();
    let (mut state, mut told, mut calls) = (State::new(), 0, 0);
    let zeros = vec![0; 32 << 10];
    for _ in 0..1000 {
        patterns.scan_runs(&mut state, &zeros, &mut |found| {
            calls += 1;
            told += match found {
                Found::One(_) => 1,
                Found::Repeated { first, times } => first.len() as u64 * times,
            };
        });
    }
    let wanted: u64 = counts().map(|count| (1000 * (32 << 10)) - count as u64 + 1).sum();
    assert_eq!((told, state.lost(), state.work() < 1 << 20), (wanted, 0, true), "{calls} {}", state.work());
    assert!(calls < 1_000_000 && state.work() < 1 << 20, "{calls} {}", state.work());
}

#[test]
fn what_is_too_much_to_park_is_counted() {
    let mut builder = Builder::new();
    for number in 0..2000u32 {
        let mut part = bytes("zq");
        part.extend(std::iter::repeat_n(Piece::Skip(1), 3));
        part.push(Piece::Set(ByteSet::of(|byte| u32::from(byte) != number % 251)));
        part.push(Piece::byte(number as u8));
        part.push(Piece::Skip(1));
        part.push(Piece::byte((number >> 8) as u8));
        builder.add(&part).expect("a part");
    }
    let patterns = builder.build();
    let mut state = State::new();
    patterns.scan(&mut state, b"zq", &mut |_| {});
    assert_eq!(state.lost(), 2000 - pattern::PENDING_MAX as u64);
}

#[test]
fn a_stream_made_of_anchors_is_not_worked_on_without_bound_and_that_is_counted() {
    let mut builder = Builder::new();
    for number in 0..5000u32 {
        let mut part = bytes("a window that all have ");
        part.extend(Piece::bytes(format!("{number}").as_bytes()));
        builder.add(&part).expect("a part");
    }
    let patterns = builder.build();
    let stream = "a window that all have ".repeat(5000);
    let mut state = State::new();
    patterns.scan(&mut state, b"a window that all have nothing behind", &mut |_| {});
    assert_eq!(state.lost(), 0, "a burst is worked off");
    patterns.scan(&mut state, stream.as_bytes(), &mut |_| {});
    assert!(state.lost() > 0);
    assert!(state.work() < (1 << 20) + 4 * state.position() + 1000, "{}", state.work());
    let lost = state.lost();
    patterns.scan(&mut state, &vec![b'.'; 1 << 20], &mut |_| {});
    let mut told = 0;
    patterns.scan(&mut state, b"a window that all have 4711.", &mut |_| told += 1);
    assert_eq!((told, state.lost()), (4, lost), "what follows pays for itself again");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 3000, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn random_parts_agree_with_the_naive_matcher(data in proptest::collection::vec(any::<u8>(), 0..200), letters in proptest::collection::vec(0usize..5, 0..400)) {
        let stream = letters.iter().map(|&letter| b"aAb\n\0"[letter]);
        let input: Vec<u8> = data.into_iter().chain(stream).collect();
        pattern::fuzz_pattern(&input);
    }
}
