//! `N G obj` wherever it stands: what a cross-reference table could point at; and `trailer`.

/// Looks for the head of an object, byte by byte.
#[derive(Debug, Default)]
pub(super) struct Mark {
    state: State,
    number: u64,
    generation: u64,
    start: u64,
    generation_start: u64,
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
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Marked {
    /// An object, its number and generation.
    Object((u64, u64)),
    Trailer,
}

impl Mark {
    /// Reads the byte at `at`; with the last one of `obj` or `trailer` tells what it is, and where it began.
    pub fn push(&mut self, byte: u8, at: u64) -> Option<(Marked, u64)> {
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
                (self.generation, self.generation_start) = (digit, at);
                State::Generation
            }
            (State::GenerationSpace, Some(digit)) => {
                (self.number, self.start) = (self.generation, self.generation_start);
                (self.generation, self.generation_start) = (digit, at);
                State::Generation
            }
            (_, Some(digit)) => {
                (self.number, self.start) = (digit, at);
                State::Number
            }
            (State::Number | State::NumberSpace, None) if is_space => State::NumberSpace,
            (State::Generation | State::GenerationSpace, None) if is_space => State::GenerationSpace,
            (State::Generation | State::GenerationSpace, None) if byte == b'o' => State::O,
            (State::O, None) if byte == b'b' => State::B,
            (State::B, None) if byte == b'j' => {
                self.state = State::Out;
                return Some((Marked::Object((self.number, self.generation)), self.start));
            }
            (State::Trailer(letters), None) if TRAILER.get(usize::from(letters)) == Some(&byte) => {
                if usize::from(letters) + 1 == TRAILER.len() {
                    self.state = State::Out;
                    return Some((Marked::Trailer, at.saturating_sub(u64::from(letters))));
                }
                State::Trailer(letters + 1)
            }
            _ if byte == TRAILER[0] => State::Trailer(1),
            _ => State::Out,
        };
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn marks(text: &[u8]) -> Vec<(Marked, u64)> {
        let mut mark = Mark::default();
        (0..).zip(text).filter_map(|(at, &byte)| mark.push(byte, at)).collect()
    }

    #[test]
    fn heads_of_objects_are_found_behind_other_numbers() {
        let object = |number, generation| Marked::Object((number, generation));
        assert_eq!(marks(b"9 12 0 obj 3\n 1\r\nobj"), [(object(12, 0), 2), (object(3, 1), 11)]);
        assert_eq!(marks(b"endobj 0 object obj 1 objx 5 obj 2 0 ob"), []);
    }

    #[test]
    fn trailers_are_found_anywhere() {
        assert_eq!(marks(b"(ttrailer trail) 1 0 trailer\n"), [(Marked::Trailer, 2), (Marked::Trailer, 21)]);
        assert_eq!(marks(b"traile trail er"), []);
    }
}
