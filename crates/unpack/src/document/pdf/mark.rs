//! `N G obj` wherever it stands: what a cross-reference table could point at; and `trailer`.

use memchr::memmem;

/// Looks for the head of an object, byte by byte.
#[derive(Debug, Default)]
pub(super) struct Mark {
    state: State,
    number: u64,
    generation: u64,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum State {
    #[default]
    Out,
    Number,
    NumberSpace,
    Generation,
    GenerationSpace,
    O,
    B,
    /// So many letters of [`TRAILER`].
    Trailer(u8),
}

const TRAILER: &[u8] = b"trailer";

/// What was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Marked {
    /// An object, its number and generation.
    Object((u64, u64)),
    Trailer,
}

impl Marked {
    /// Number and generation, if it is an object.
    pub fn id(self) -> Option<(u64, u64)> {
        match self {
            Marked::Object(id) => Some(id),
            Marked::Trailer => None,
        }
    }
}

impl Mark {
    /// Reads a byte; with the last one of `obj` or `trailer` tells what it is.
    pub fn push(&mut self, byte: u8) -> Option<Marked> {
        let is_space = super::lexer::is_space(byte);
        let digit = byte.is_ascii_digit().then(|| u64::from(byte - b'0'));
        self.state = match (self.state, digit) {
            (State::Number, Some(digit)) => {
                self.number = self.number.saturating_mul(10).saturating_add(digit);
                State::Number
            }
            (State::Generation, Some(digit)) => {
                self.generation = self.generation.saturating_mul(10).saturating_add(digit);
                State::Generation
            }
            (State::NumberSpace, Some(digit)) => {
                self.generation = digit;
                State::Generation
            }
            (State::GenerationSpace, Some(digit)) => {
                (self.number, self.generation) = (self.generation, digit);
                State::Generation
            }
            (_, Some(digit)) => {
                self.number = digit;
                State::Number
            }
            (State::Number | State::NumberSpace, None) if is_space => State::NumberSpace,
            (State::Generation | State::GenerationSpace, None) if is_space => State::GenerationSpace,
            (State::Generation | State::GenerationSpace, None) if byte == b'o' => State::O,
            (State::O, None) if byte == b'b' => State::B,
            (State::B, None) if byte == b'j' => {
                self.state = State::Out;
                return Some(Marked::Object((self.number, self.generation)));
            }
            (State::Trailer(letters), None) if TRAILER.get(usize::from(letters)) == Some(&byte) => {
                if usize::from(letters) + 1 == TRAILER.len() {
                    self.state = State::Out;
                    return Some(Marked::Trailer);
                }
                State::Trailer(letters + 1)
            }
            _ if byte == TRAILER[0] => State::Trailer(1),
            _ => State::Out,
        };
        None
    }
}

/// Heads of objects in bytes that are not read as words.
#[derive(Debug, Default)]
pub(super) struct Heads {
    /// The last bytes seen, up to [`HEAD_BYTES_MAX`].
    tail: Vec<u8>,
}

/// Bytes of a head, its white space and zeros among them.
const HEAD_BYTES_MAX: usize = 64;

impl Heads {
    /// How many bytes of `data` there are up to the end of the first head, and what it is.
    pub fn find(&self, data: &[u8]) -> Option<(usize, Marked)> {
        let first = |word: &[u8]| {
            let seam = [&self.tail, &data[..data.len().min(word.len() - 1)]].concat();
            let in_seam =
                memmem::find_iter(&seam, word).filter_map(|at| (at + word.len()).checked_sub(self.tail.len()));
            let in_seam: Vec<usize> = in_seam.filter(|&end| end > 0).collect();
            let mut ends = in_seam.into_iter().chain(memmem::find_iter(data, word).map(|at| at + word.len()));
            ends.find_map(|end| Some((end, self.head(data, end)?)))
        };
        let (object, trailer) = (first(b"obj"), first(TRAILER));
        object.into_iter().chain(trailer).min_by_key(|(end, _)| *end)
    }

    /// So much of the data was used.
    pub fn advance(&mut self, data: &[u8]) {
        self.tail.extend_from_slice(&data[data.len().saturating_sub(HEAD_BYTES_MAX)..]);
        self.tail.drain(..self.tail.len().saturating_sub(HEAD_BYTES_MAX));
    }

    /// The head that ends with the first `end` bytes of the data.
    fn head(&self, data: &[u8], end: usize) -> Option<Marked> {
        let start = end.saturating_sub(HEAD_BYTES_MAX);
        let before = self.tail.len().saturating_sub(HEAD_BYTES_MAX - (end - start));
        let (mut mark, mut marked) = (Mark::default(), None);
        self.tail[before..].iter().chain(&data[start..end]).for_each(|&byte| marked = mark.push(byte));
        marked
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is found, and where it ends.
    fn marks(text: &[u8]) -> Vec<(Marked, u64)> {
        let mut mark = Mark::default();
        (1..).zip(text).filter_map(|(at, &byte)| Some((mark.push(byte)?, at))).collect()
    }

    #[test]
    fn heads_in_data_are_found_however_they_are_cut() {
        let data = b"\x00endobj 7 0 obj 00000012\r\n 3   obj obj trailer";
        for piece in 1..data.len() {
            let (mut heads, mut at, mut found) = (Heads::default(), 0, Vec::new());
            while at < data.len() {
                let rest = &data[at..data.len().min(at + piece)];
                let head = heads.find(rest);
                let count = head.map_or(rest.len(), |(end, _)| end);
                heads.advance(&rest[..count]);
                at += count;
                found.extend(head.map(|(_, marked)| (marked, at as u64)));
            }
            assert_eq!(found, marks(data), "{piece}");
            assert_eq!(found.len(), 3);
        }
    }

    #[test]
    fn heads_of_objects_are_found_behind_other_numbers() {
        let object = |number, generation| Marked::Object((number, generation));
        assert_eq!(marks(b"9 12 0 obj 3\n 1\r\nobj"), [(object(12, 0), 10), (object(3, 1), 20)]);
        assert_eq!(marks(b"endobj 0 object obj 1 objx 5 obj 2 0 ob"), []);
    }

    #[test]
    fn trailers_are_found_anywhere() {
        assert_eq!(marks(b"(ttrailer trail) 1 0 trailer\n"), [(Marked::Trailer, 9), (Marked::Trailer, 28)]);
        assert_eq!(marks(b"traile trail er"), []);
    }
}
