//! Patterns in a file: they tell the same, and what is changed in them is refused or harmless.

use std::sync::Arc;

use pattern::flat::{Aligned, Reader, Unfit, Writer, reseal};
use pattern::{Builder, ByteSet, Edge, Match, Patterns, Piece, State};

fn patterns() -> Patterns {
    let alnum = ByteSet::of(|byte| byte.is_ascii_alphanumeric());
    let behind = Edge::Byte { set: alnum.complement(), at_border: true };
    let one_of = Piece::OneOf(vec![Piece::bytes(b"cat"), Piece::bytes(b"mouse")]);
    let mut builder = Builder::new();
    for pieces in [
        Piece::bytes(b"a window of fifteen and more"),
        Piece::bytes(b"seven b"),
        Piece::bytes(b"four"),
        Piece::bytes(b"Q!"),
        b"CaseLess words".iter().map(|&byte| Piece::caseless(byte)).collect(),
        [Piece::bytes(b"gap"), vec![Piece::Gap { min: 1, max: 4 }, Piece::Set(alnum)]].concat(),
        [vec![one_of], Piece::bytes(b" in the house"), vec![Piece::Skip(140)], Piece::bytes(b"far")].concat(),
        [vec![Piece::Behind(behind)], Piece::bytes(b"word"), vec![Piece::Ahead(Edge::Line)]].concat(),
        [Piece::bytes(b"nib"), vec![Piece::Byte { value: 0x60, mask: 0xf0 }], Piece::bytes(b"ble")].concat(),
        [Piece::bytes(b"not"), vec![Piece::NoneOf(vec![b"ab".to_vec()])], Piece::bytes(b"this")].concat(),
    ] {
        builder.add(&pieces).expect("a part");
    }
    builder.add_at(&[Piece::Skip(1), Piece::byte(b'y')], 3..=9).expect("a part");
    builder.build()
}

const STREAM: &[u8] = b"1. yy window a window of fifteen and more seven b four Q! cASELESS wORDS gap123z mouse in the house \
    word\r\nnibcble notacthis and much more, so that nothing that is told here is told for lack of what comes behind it: \
    a cat in the house, four, and so far, so good";

fn stored() -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut writer = Writer::new(&mut bytes).expect("memory");
    patterns().store(&mut writer).expect("memory");
    writer.finish().expect("memory");
    bytes
}

fn load(bytes: &[u8]) -> Result<Patterns, Unfit> {
    Patterns::load(&mut Reader::open(Arc::new(Aligned::new(bytes)))?)
}

fn scan(patterns: &Patterns) -> Vec<Match> {
    let (mut state, mut told) = (State::new(), Vec::new());
    for piece in STREAM.chunks(70) {
        patterns.scan(&mut state, piece, &mut |found| told.push(found));
    }
    patterns.finish(&mut state, &mut |found| told.push(found));
    told
}

#[test]
fn stored_patterns_tell_the_same() {
    let loaded = load(&stored()).expect("what was stored");
    assert!(scan(&patterns()).len() >= 9);
    assert_eq!(scan(&loaded), scan(&patterns()));
    assert_eq!((loaded.len(), loaded.bytes()), (patterns().len(), patterns().bytes()));
}

#[test]
fn what_is_changed_behind_the_digest_is_refused_or_harmless() {
    let bytes = stored();
    let (mut refused, mut harmless) = (0, 0);
    let mut changed = bytes.clone();
    for at in 0..bytes.len() {
        // Filters are long, and any bits make one.
        if bytes[at] == 0 && at % 61 > 0 {
            continue;
        }
        for change in [1 << (at % 8), 0xff, 0x80] {
            changed[at] ^= change;
            reseal(&mut changed);
            match load(&changed) {
                Ok(patterns) => {
                    scan(&patterns);
                    harmless += 1;
                }
                Err(_) => refused += 1,
            }
            changed[at] = bytes[at];
        }
    }
    assert!(refused > 500 && harmless > 100, "{refused} refused, {harmless} harmless");
}
