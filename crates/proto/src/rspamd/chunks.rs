//! The chunks of a body (RFC 9112, section 7.1), undone as they come.

use alloc::vec::Vec;

/// The longest line of a chunk's size or of the trailer, in bytes.
const LINE_BYTES_MAX: usize = 1 << 10;

/// Lines of the trailer.
const TRAILER_LINES_MAX: u32 = 64;

/// A body that comes in chunks.
#[derive(Debug, Default)]
pub(super) struct Chunks {
    state: State,
    line: Vec<u8>,
}

#[derive(Debug, Default)]
enum State {
    /// The line of a size comes.
    #[default]
    Size,
    /// So many bytes of content come.
    Content(u64),
    /// The line end behind a chunk comes.
    After,
    /// Lines of the trailer come, so many of them came.
    Trailer(u32),
    /// All of it has come.
    End,
}

/// What the next bytes are.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Piece {
    /// So many bytes of framing.
    Frame(usize),
    /// So many bytes of content.
    Content(usize),
    /// Nothing: the body is complete.
    End,
}

impl Chunks {
    /// What a prefix of the input is.
    ///
    /// # Errors
    /// When it is no chunk.
    pub(super) fn step(&mut self, input: &[u8]) -> Result<Piece, &'static str> {
        match &mut self.state {
            State::Content(left) => {
                let count = usize::try_from(*left).map_or(input.len(), |left| left.min(input.len()));
                *left = left.saturating_sub(count as u64);
                if *left == 0 {
                    self.state = State::After;
                }
                Ok(Piece::Content(count))
            }
            State::End => Ok(Piece::End),
            State::Size | State::After | State::Trailer(_) => self.step_line(input),
        }
    }

    fn step_line(&mut self, input: &[u8]) -> Result<Piece, &'static str> {
        let end = input.iter().position(|&byte| byte == b'\n');
        let count = end.map_or(input.len(), |end| end + 1);
        if self.line.len() + count > LINE_BYTES_MAX {
            return Err("malformed chunk");
        }
        self.line.extend_from_slice(&input[..count]);
        if end.is_none() {
            return Ok(Piece::Frame(count));
        }
        let line = core::mem::take(&mut self.line);
        let line = line.trim_ascii();
        self.state = match self.state {
            State::Size => match size(line)? {
                0 => State::Trailer(0),
                bytes => State::Content(bytes),
            },
            State::After if line.is_empty() => State::Size,
            State::Trailer(_) if line.is_empty() => State::End,
            State::Trailer(lines) if lines < TRAILER_LINES_MAX => State::Trailer(lines + 1),
            _ => return Err("malformed chunk"),
        };
        Ok(Piece::Frame(count))
    }
}

/// The size of a chunk, in hexadecimal digits; extensions are passed over.
fn size(line: &[u8]) -> Result<u64, &'static str> {
    let digits = line.split(|&byte| byte == b';').next().unwrap_or_default().trim_ascii_end();
    let is_size = (1..=15).contains(&digits.len()) && digits.iter().all(u8::is_ascii_hexdigit);
    let text = core::str::from_utf8(digits).ok().filter(|_| is_size).ok_or("malformed chunk")?;
    u64::from_str_radix(text, 16).map_err(|_| "malformed chunk")
}
