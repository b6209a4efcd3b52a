//! `N G obj` wherever it stands: what a cross-reference table could point at; and `trailer`.

use memchr::memmem;

/// Looks for the head of an object, byte by byte. A comment within a head may be one, or not: both are tried.
#[derive(Debug, Default)]
pub(super) struct Mark {
    plain: Lane,
    /// Heads with a comment behind their number, and behind their generation: the last of each.
    commented: [Option<CommentedHead>; 2],
}

/// One reading of the bytes.
#[derive(Debug, Default, Clone, Copy)]
struct Lane {
    state: State,
    number: u64,
    generation: u64,
}

/// A head that has a comment.
#[derive(Debug, Clone, Copy)]
struct CommentedHead {
    lane: Lane,
    /// Whether the comment has not ended.
    is_open: bool,
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
        let mut marked = None;
        if byte == b'%' {
            self.comment();
        } else if self.commented.iter().any(Option::is_some) {
            marked = self.push_commented(byte);
        }
        self.plain.push(byte).or(marked)
    }

    /// A comment begins, perhaps.
    fn comment(&mut self) {
        let again = self.commented.map(|head| head.filter(|head| !head.is_open).map(|head| head.lane));
        self.commented.iter_mut().for_each(|head| *head = head.take().filter(|head| head.is_open));
        for lane in again.into_iter().flatten().chain([self.plain]) {
            let place = match lane.state {
                State::Number | State::NumberSpace => 0,
                State::Generation | State::GenerationSpace => 1,
                _ => continue,
            };
            self.commented[place] = Some(CommentedHead { lane, is_open: true });
        }
    }

    fn push_commented(&mut self, byte: u8) -> Option<Marked> {
        let mut marked = None;
        for place in &mut self.commented {
            let Some(head) = place else { continue };
            if !head.is_open {
                marked = head.lane.push(byte).or(marked);
            } else if matches!(byte, b'\r' | b'\n') {
                head.is_open = false;
                head.lane.push(byte);
            }
            if head.lane.state == State::Out {
                *place = None;
            }
        }
        marked
    }
}

impl Lane {
    /// Reads a byte; with the last one of `obj` or `trailer` tells what it is.
    fn push(&mut self, byte: u8) -> Option<Marked> {
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
///
/// They are looked for by their last word, and read forward from up to [`HEAD_BYTES_MAX`] in front of it: on from where
/// the head before was read to, so that each byte is read once at most.
#[derive(Debug, Default)]
pub(super) struct Heads {
    /// The last bytes seen, up to [`HEAD_BYTES_MAX`].
    tail: Vec<u8>,
    /// Bytes seen.
    at: u64,
    /// Reads up to `marked`.
    mark: Mark,
    marked: u64,
    /// No head ends up to here but `found`.
    searched: u64,
    found: Option<(u64, Marked)>,
    /// The object behind a trailer that was found.
    next: Option<(u64, Marked)>,
}

/// Bytes of a head, its white space, zeros and comments among them.
const HEAD_BYTES_MAX: usize = 4_096;

const OBJECT: &[u8] = b"obj";

impl Heads {
    /// How many bytes of `data` there are up to the end of the first head, and what it is.
    pub fn find(&mut self, data: &[u8]) -> Option<(usize, Marked)> {
        if self.found.is_none_or(|(end, _)| end <= self.at) {
            self.found = self.search(data);
            self.searched = self.found.map_or(self.at + data.len() as u64, |(end, _)| end);
        }
        let (end, marked) = self.found?;
        let end = (end - self.at) as usize;
        (end <= data.len()).then_some((end, marked))
    }

    fn search(&mut self, data: &[u8]) -> Option<(u64, Marked)> {
        let from = (self.searched.saturating_sub(self.at) as usize).min(data.len());
        let mut from_object = from;
        let mut object = self.next.take().filter(|(end, _)| *end > self.at);
        while object.is_none()
            && let Some(end) = self.word(OBJECT, data, from_object)
        {
            object = self.head(data, end).map(|marked| (self.at + end as u64, marked));
            from_object = end;
        }
        let before = object.map_or(data.len(), |(end, _)| (end - self.at) as usize);
        let Some(end) = self.word(TRAILER, &data[..before], from.min(before)) else { return object };
        self.next = object;
        Some((self.at + end as u64, Marked::Trailer))
    }

    /// Where the first `word` ends that ends behind `from`.
    fn word(&self, word: &[u8], data: &[u8], from: usize) -> Option<usize> {
        let seam_bytes = word.len() - 1;
        if from < seam_bytes {
            let before = &self.tail[self.tail.len().saturating_sub(seam_bytes)..];
            let seam = [before, &data[..data.len().min(seam_bytes)]].concat();
            let ends = memmem::find_iter(&seam, word).filter_map(|at| (at + word.len()).checked_sub(before.len()));
            if let Some(end) = { ends }.find(|&end| end > from) {
                return Some(end);
            }
        }
        let start = from.saturating_sub(seam_bytes);
        memmem::find(&data[start..], word).map(|at| start + at + word.len())
    }

    /// So much of the data was used.
    pub fn advance(&mut self, data: &[u8]) {
        self.at += data.len() as u64;
        self.tail.extend_from_slice(&data[data.len().saturating_sub(HEAD_BYTES_MAX)..]);
        // Moved seldom: the vector is twice as long as what it holds for.
        if self.tail.len() > 2 * HEAD_BYTES_MAX {
            self.tail.drain(..self.tail.len() - HEAD_BYTES_MAX);
        }
    }

    /// The head that ends with the first `end` bytes of the data.
    fn head(&mut self, data: &[u8], end: usize) -> Option<Marked> {
        let start = end.saturating_sub(HEAD_BYTES_MAX);
        let before = self.tail.len().saturating_sub(HEAD_BYTES_MAX - (end - start));
        let (tail, data) = (&self.tail[before..], &data[start..end]);
        let mut last = tail.iter().chain(data).rev().skip(OBJECT.len());
        let last = *last.next()?;
        if !last.is_ascii_digit() && !super::lexer::is_space(last) {
            return None;
        }
        let stop = self.at + end as u64;
        let begin = stop - (tail.len() + data.len()) as u64;
        if !(begin..stop).contains(&self.marked) {
            (self.mark, self.marked) = (Mark::default(), begin);
        }
        let read = (self.marked - begin) as usize;
        let rest = [tail.get(read..).unwrap_or_default(), &data[read.saturating_sub(tail.len())..]];
        let mut marked = None;
        rest.into_iter().flatten().for_each(|&byte| marked = self.mark.push(byte));
        self.marked = stop;
        // A comment that fills the window is one for all that is known.
        let is_long = || {
            let mut line =
                tail.iter().chain(data).rev().skip(OBJECT.len()).skip_while(|byte| super::lexer::is_space(**byte));
            matches!(last, b'\r' | b'\n') && !line.any(|byte| matches!(byte, b'\r' | b'\n'))
        };
        let is_full = tail.len() + data.len() == HEAD_BYTES_MAX;
        marked.or_else(|| (is_full && is_long()).then_some(Marked::Object((0, 0))))
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
        let data = b"\x00endobj 7 0 obj 00000012\r\n 3   obj obj trailer 4 0%x\n%obj\nobj 5%\r0%8 0 obj";
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
            assert_eq!(found.len(), 5);
        }
    }

    #[test]
    fn heads_of_objects_are_found_behind_other_numbers() {
        let object = |number, generation| Marked::Object((number, generation));
        assert_eq!(marks(b"9 12 0 obj 3\n 1\r\nobj"), [(object(12, 0), 10), (object(3, 1), 20)]);
        assert_eq!(marks(b"endobj 0 object obj 1 objx 5 obj 2 0 ob"), []);
    }

    #[test]
    fn comments_within_heads_are_passed_over() {
        let object = |number, generation| Marked::Object((number, generation));
        let found = |text: &[u8]| marks(text).into_iter().map(|(marked, _)| marked).collect::<Vec<_>>();
        for text in
            [&b"4 0%x\nobj"[..], b"4 %x\n0 obj", b"4%\r0%\nobj", b"4 %a\n%z\n 0 %b \r%c x\r obj", b"1 4%a\n0%b\nobj"]
        {
            assert_eq!(found(text), [object(4, 0)], "{}", text.escape_ascii());
        }
        assert_eq!(found(b"4 %5 0 obj"), [object(5, 0)]);
        assert_eq!(found(b"4 %5 0\nobj"), [object(5, 0)]);
        assert_eq!(found(b"4 %x\nobj 4 0 %obj\n"), []);
    }

    #[test]
    fn a_comment_of_any_length_within_a_head_in_data_is_passed_over() {
        for length in [60, 3_000, 5_000, 100_000] {
            let data = [b"4 0 %", &vec![b'x'; length][..], b"\nobj x 5 0\nobj\n"].concat();
            let (mut heads, mut found, mut at) = (Heads::default(), Vec::new(), 0);
            while at < data.len() {
                let rest = &data[at..data.len().min(at + 1_000)];
                let head = heads.find(rest);
                let count = head.map_or(rest.len(), |(end, _)| end);
                heads.advance(&rest[..count]);
                at += count;
                found.extend(head.map(|_| at));
            }
            assert_eq!(found, [length + 9, length + 19], "{length}");
        }
    }

    #[test]
    fn trailers_are_found_anywhere() {
        assert_eq!(marks(b"(ttrailer trail) 1 0 trailer\n"), [(Marked::Trailer, 9), (Marked::Trailer, 28)]);
        assert_eq!(marks(b"traile trail er"), []);
    }
}
