//! Every substring of a document finds it; if the query is exact, it finds no other document.

use std::collections::BTreeSet;

use index::{Builder, Cutter, Document, Field, Merger, Query, Segment, lowered};
use proptest::prelude::*;

const FIELD: Field = Field::Body;

fn built<'a>(documents: impl Iterator<Item = (u64, &'a str)>) -> Vec<u8> {
    let mut builder = Builder::default();
    for (number, text) in documents {
        builder.begin(Document { number, is_partial: false });
        let mut cutter = Cutter::default();
        let mut tell = |term: &str| builder.add(FIELD, term);
        cutter.read(text, &mut tell);
        cutter.end(&mut tell);
    }
    builder.finish().concat()
}

fn merged(segments: &[Vec<u8>], stays: impl Fn(u64) -> bool) -> Vec<u8> {
    let segments = segments.iter().map(|segment| Segment::open(&segment[..]).unwrap()).collect();
    let mut merger = Merger::new(segments, stays);
    let mut out = Vec::new();
    while let Some(block) = merger.next_block().unwrap() {
        out.extend_from_slice(&block);
    }
    out
}

fn found(segment: &[u8], fields: &[Field], text: &str) -> BTreeSet<u64> {
    let mut segment = Segment::open(segment).unwrap();
    let places = segment.search(fields, &Query::new(text)).unwrap();
    places.iter().map(|place| segment.documents()[place].number).collect()
}

/// Short texts of few characters, so that queries often match.
fn text() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        8 => "[ab]{1,4}", 2 => "[ab]{30,60}", 4 => "[ ,.@\n]{1,2}", 2 => "[密码压]{1,6}", 1 => "[ÄßςΣİi\u{307}1]{1,3}",
    ];
    prop::collection::vec(piece, 0..6).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn every_substring_is_found(
        texts in prop::collection::vec(text(), 1..8), split in 0usize..8, at in any::<prop::sample::Index>(),
        from in any::<prop::sample::Index>(), to in any::<prop::sample::Index>(), gone in prop::option::of(0u64..8),
    ) {
        let numbered = || texts.iter().enumerate().map(|(number, text)| (number as u64 * 3 + 1, text.as_str()));
        let whole = built(numbered());
        // The first documents in one segment, the others in another, mixed.
        let one = built(numbered().filter(|(number, _)| *number % 2 == (split % 2) as u64));
        let other = built(numbered().filter(|(number, _)| *number % 2 != (split % 2) as u64));
        let gone = gone.map(|gone| gone * 3 + 1);
        let merged = merged(&[one, other], |number| Some(number) != gone);

        let text: Vec<char> = texts[at.index(texts.len())].chars().collect();
        let (from, to) = (from.index(text.len() + 1), to.index(text.len() + 1));
        let wanted: String = text[from.min(to)..from.max(to)].iter().collect();
        let query = Query::new(&wanted);
        let holds = |text: &str| lowered(text).contains(&lowered(&wanted));
        let expected: BTreeSet<u64> = numbered().filter(|(_, text)| holds(text)).map(|(number, _)| number).collect();
        for (segment, gone) in [(&whole, None), (&merged, gone)] {
            let found = found(segment, &[FIELD], &wanted);
            let expected: BTreeSet<u64> = expected.iter().copied().filter(|number| Some(*number) != gone).collect();
            prop_assert!(found.is_superset(&expected), "{wanted:?} in {texts:?}: {found:?}, {expected:?}");
            if query.is_exact() {
                prop_assert_eq!(&found, &expected, "{:?} in {:?}", wanted, texts);
            }
        }
        prop_assert!(query.is_empty() || found(&whole, &[Field::From], &wanted).is_empty());
    }

    #[test]
    fn what_is_damaged_is_an_error_or_harmless(flip in any::<prop::sample::Index>(), bit in 0u8..8, cut in any::<prop::sample::Index>()) {
        let mut segment = built([(1, "one two three"), (2, "two four"), (90, "five")].into_iter());
        let at = flip.index(segment.len());
        segment[at] ^= 1 << bit;
        index::fuzz_segment(&segment);
        segment.truncate(cut.index(segment.len()));
        index::fuzz_segment(&segment);
    }
}

#[test]
fn many_terms_and_long_lists_are_found_in_their_blocks() {
    let texts: Vec<String> =
        (0..3_000).map(|number| format!("common t{number} u{} {:x}", number / 7, number * 7919)).collect();
    let numbered = || texts.iter().enumerate().map(|(number, text)| (number as u64 + 10, text.as_str()));
    let whole = built(numbered());
    let merged = merged(&[built(numbered().take(1_000)), built(numbered().skip(1_000))], |_| true);
    assert_eq!(whole, merged, "however it came to be");
    assert_eq!(found(&whole, &[FIELD], "ommo").len(), 3_000);
    assert_eq!(found(&whole, &[FIELD], "t2999"), [3_009].into());
    assert_eq!(found(&whole, &[FIELD], "u428"), (2_996..3_000).map(|number| number + 10).collect());
    assert_eq!(found(&whole, &[FIELD], "t29").len(), 111);
    assert!(found(&whole, &[FIELD], "t3000").is_empty());
}

#[test]
fn what_is_partial_may_hold_anything() {
    let mut builder = Builder::default();
    builder.begin(Document { number: 4, is_partial: false });
    builder.add(Field::Subject, "one");
    builder.begin(Document { number: 5, is_partial: false });
    builder.is_partial();
    assert_eq!((builder.documents(), builder.bytes() > 0), (2, true));
    let segment = builder.finish().concat();
    assert_eq!(found(&segment, &Field::ALL, "one"), [4, 5].into());
    assert_eq!(found(&segment, &[Field::From], "one"), [5].into());
}
