//! Where the data of a stream ends: at its `Length` if `endstream` stands there, else at the first `endstream` or
//! `endobj` behind it, as readers have it that repair files.
//!
//! Bounds: what may still turn out to be the end, [`HELD_MAX`] bytes.

use memchr::memmem;

use super::lexer::is_space;

const ENDS: [&[u8]; 2] = [b"endstream", b"endobj"];
/// White space in front of the end that is not data.
const SPACES_MAX: usize = 4;
const HELD_MAX: usize = SPACES_MAX + ENDS[0].len();

/// A search for the end of a stream's data.
pub(super) struct Extent {
    /// How much of the declared length is still to come.
    left: Option<u64>,
    /// The declared length is a lie: data were found behind it.
    pub is_wrong: bool,
    /// How far from the start the first `endstream` within the declared length ends.
    pub inner_end: Option<u64>,
    /// The last bytes seen within the declared length.
    tail: Vec<u8>,
    seen: u64,
    /// Possible end.
    held: Vec<u8>,
    /// So many of the held bytes are data.
    decided: usize,
    /// The end has come.
    ended: bool,
}

/// Part of the input.
#[derive(Debug, PartialEq)]
pub(super) enum Part {
    /// So many bytes are data; say by [`Extent::advance`] how many were used.
    Data(usize),
    /// So many bytes were taken, and are held.
    Held(usize),
    /// The data are over, so many bytes behind them were taken.
    End(usize),
}

impl Extent {
    pub fn new(length: Option<u64>) -> Extent {
        Extent {
            left: length,
            is_wrong: false,
            inner_end: None,
            tail: Vec::new(),
            seen: 0,
            held: Vec::with_capacity(HELD_MAX),
            decided: 0,
            ended: false,
        }
    }

    /// Held bytes that are data after all.
    pub fn released(&self) -> &[u8] {
        &self.held[..self.decided]
    }

    /// The first `count` released bytes have been used.
    pub fn release(&mut self, count: usize) {
        self.held.drain(..count);
        self.decided -= count;
    }

    /// Returns the held bytes that have not been read.
    pub fn into_held(self) -> Vec<u8> {
        if self.ended { Vec::new() } else { self.held }
    }

    /// The end has come. White space in front of it is released if filters can tell data from it, else it is none of them.
    pub fn end(&mut self, is_released: bool) {
        self.ended = true;
        let spaces = self.held.iter().take_while(|&&byte| is_space(byte)).count();
        self.held.truncate(if is_released { spaces } else { 0 });
        self.decided = self.held.len();
    }

    /// Whether the end has come, and nothing is released.
    pub fn is_over(&self) -> bool {
        self.ended && self.held.is_empty()
    }

    /// Whether the declared length has not been reached.
    pub fn is_short(&self) -> bool {
        self.left.is_some_and(|left| left > 0)
    }

    /// Looks at the input, when nothing is released.
    pub fn part(&mut self, input: &[u8]) -> Part {
        if let Some(left) = self.left.filter(|&left| left > 0) {
            let count = input.len().min(usize::try_from(left).unwrap_or(usize::MAX));
            // Not beyond an end: where it is found must not depend on the cut.
            let inner = if self.inner_end.is_none() { self.find(&input[..count]) } else { None };
            return Part::Data(inner.unwrap_or(count));
        }
        if self.held.is_empty() {
            let data = input.iter().position(|&byte| byte == b'e' || is_space(byte)).unwrap_or(input.len());
            if data > 0 {
                self.is_wrong |= self.left.is_some();
                return Part::Data(data);
            }
        }
        for (at, &byte) in input.iter().enumerate() {
            self.held.push(byte);
            if self.is_complete() {
                return Part::End(at + 1);
            }
            self.decided = self.impossible();
            if self.decided > 0 {
                self.is_wrong |= self.left.is_some();
                return Part::Held(at + 1);
            }
        }
        Part::Held(input.len())
    }

    /// Returns whether the held bytes are white space and an end; bytes before these have been released already.
    fn is_complete(&self) -> bool {
        let spaces = self.held.iter().take_while(|&&byte| is_space(byte)).count();
        ENDS.contains(&&self.held[spaces..])
    }

    /// How many of the first bytes held cannot belong to an end.
    fn impossible(&self) -> usize {
        let is_possible = |from: usize| {
            let held = &self.held[from..];
            let spaces = held.iter().take_while(|&&byte| is_space(byte)).count();
            spaces <= SPACES_MAX && ENDS.iter().any(|end| end.starts_with(&held[spaces..]))
        };
        (0..self.held.len()).find(|&from| is_possible(from)).unwrap_or(self.held.len())
    }

    /// So much of the data was used.
    pub fn advance(&mut self, data: &[u8]) {
        if let Some(left) = self.left.as_mut().filter(|left| **left > 0) {
            *left -= data.len() as u64;
            self.search(data);
        }
    }

    /// How many bytes of `data` there are up to the end of the first `endstream`.
    fn find(&self, data: &[u8]) -> Option<usize> {
        let end = ENDS[0];
        let seam = [&self.tail, &data[..data.len().min(end.len() - 1)]].concat();
        let at_seam = memmem::find(&seam, end).map(|at| at + end.len() - self.tail.len());
        at_seam.or_else(|| memmem::find(data, end).map(|at| at + end.len()))
    }

    /// Looks for an end within the declared length: if the length is a lie, the data end there.
    fn search(&mut self, data: &[u8]) {
        if self.inner_end.is_none() {
            self.inner_end = self.find(data).map(|count| self.seen + count as u64);
            let keep = ENDS[0].len() - 1;
            self.tail.extend_from_slice(&data[data.len().saturating_sub(keep)..]);
            self.tail.drain(..self.tail.len().saturating_sub(keep));
        }
        self.seen += data.len() as u64;
    }

    /// Where the first end within the declared length stands, if the length was a lie, or has not come.
    pub fn second_reading(&self) -> Option<u64> {
        self.inner_end.filter(|_| self.is_wrong || self.is_short())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The data, and how many bytes were taken with the end.
    fn data(length: Option<u64>, bytes: &[u8], piece: usize) -> (Vec<u8>, usize, bool, Option<u64>) {
        let mut extent = Extent::new(length);
        let (mut data, mut at) = (Vec::new(), 0);
        loop {
            data.extend_from_slice(extent.released());
            extent.release(extent.released().len());
            let input = &bytes[at..bytes.len().min(at + piece)];
            match extent.part(input) {
                _ if input.is_empty() => return (data, at, extent.is_wrong, extent.second_reading()),
                Part::Data(count) => {
                    data.extend_from_slice(&input[..count]);
                    extent.advance(&input[..count]);
                    at += count;
                }
                Part::Held(count) => at += count,
                Part::End(count) => return (data, at + count, extent.is_wrong, extent.second_reading()),
            }
        }
    }

    #[test]
    fn the_end_is_found_however_the_input_is_cut() {
        for piece in [1, 2, 3, 5, 100] {
            assert_eq!(data(Some(4), b"a\ne\n\nendstream x", piece), (b"a\ne\n".to_vec(), 14, false, None));
            assert_eq!(data(None, b"a eends\nendstream", piece), (b"a eends".to_vec(), 17, false, None));
            assert_eq!(data(None, b"\r\r\r\r\r\r\nendobj", piece), (b"\r\r\r".to_vec(), 13, false, None));
            assert_eq!(data(Some(1), b"abc\nendstream", piece), (b"abc".to_vec(), 13, true, None));
            let long = b"ab endstream cd\nendstream";
            assert_eq!(data(Some(9), long, piece), (b"ab endstream cd".to_vec(), 25, true, None));
            assert_eq!(data(Some(14), long, piece), (b"ab endstream cd".to_vec(), 25, true, Some(12)));
            assert_eq!(data(Some(15), long, piece), (b"ab endstream cd".to_vec(), 25, false, None));
            assert_eq!(data(Some(99), long, piece), (long.to_vec(), 25, false, Some(12)));
        }
    }
}
