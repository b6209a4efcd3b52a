//! The fuzz body of the tokeniser.

use alloc::vec::Vec;

use super::{Token, Tokeniser};

/// Fuzz body: the first byte says in what pieces a page comes. They come to the tokens that it has whole, each of which stands
/// where it is told to be, and no byte is told twice.
///
/// # Panics
/// If not.
pub fn fuzz_html(data: &[u8]) {
    let Some((&piece, page)) = data.split_first() else { return };
    let (mut whole, mut cut) = (Sum::default(), Sum::default());
    let mut tokeniser = Tokeniser::new();
    tokeniser.read(page, &mut |at, token| whole.add(page, at, token));
    tokeniser.end(&mut |at, token| whole.add(page, at, token));
    let mut tokeniser = Tokeniser::new();
    for piece in page.chunks(usize::from(piece).max(1)) {
        tokeniser.read(piece, &mut |at, token| cut.add(page, at, token));
    }
    tokeniser.end(&mut |at, token| cut.add(page, at, token));
    assert!(whole.is_same(&cut), "cuts count");
}

/// The tokens of a page, pieces that belong together joined, as ranges of it.
#[derive(Default)]
struct Sum {
    tokens: Vec<(u8, usize, usize)>,
}

impl Sum {
    fn add(&mut self, page: &[u8], at: u64, token: Token<'_>) {
        let (kind, lead, bytes, is_piece) = match token {
            Token::Text { within, bytes } => (within.element().map_or(0, |name| name.as_bytes()[0]), 0, bytes, true),
            Token::Open(name) => (1, 1, name, false),
            Token::Close(name) => (2, 2, name, false),
            Token::Attribute(name) => (3, 0, name, false),
            Token::Value(bytes) => (4, 0, bytes, true),
            Token::End { is_closed } => (5 + u8::from(is_closed), 0, &b">"[..], false),
            Token::Comment(bytes) => (7, 0, bytes, true),
            Token::Declaration(bytes) => (8, 0, bytes, true),
        };
        let at = usize::try_from(at).expect("it is in memory");
        let end = at + lead + bytes.len();
        assert!(page[at + lead..end].eq_ignore_ascii_case(bytes), "{at}: {token:?} is not there");
        assert!(!bytes.is_empty(), "{at}: {token:?} is nothing");
        match self.tokens.last_mut() {
            Some((last, _, ended)) if *last == kind && *ended == at && is_piece => *ended = end,
            Some((.., ended)) if *ended > at => panic!("{at}: {token:?} is told twice"),
            _ => self.tokens.push((kind, at, end)),
        }
    }

    fn is_same(&self, other: &Sum) -> bool {
        self.tokens == other.tokens
    }
}
