//! Frames of an inspection between two processes: a kind, a length, a payload.
//!
//! ```text
//!  store:    Open CONTEXT, then Feed BYTES as often as needed, and Finish: each but the first waits for its Progress
//!  gateway:  Out REPORT, as many as there are, and then Progress, for Feed and Finish
//! ```
//!
//! Bounds: [`ASKED_BYTES_MAX`] to the gateway, [`TOLD_BYTES_MAX`] to the store.

use flow::{Progress, Unfinished};

/// Bytes of content in one frame.
pub const PIECE_BYTES: usize = 64 << 10;

/// The longest payload to the gateway: a context with a long phrase that is searched for.
pub const ASKED_BYTES_MAX: usize = 256 << 10;

/// The longest payload to the store: a verdict of many findings with long names.
pub const TOLD_BYTES_MAX: usize = 4 << 20;

const HEAD_BYTES: usize = 5;

/// Kind of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Open = b'O' as isize,
    Feed = b'F' as isize,
    Finish = b'E' as isize,
    Out = b'o' as isize,
    Progress = b'p' as isize,
}

/// Bytes that are no frame, or one that is too long.
#[derive(Debug, PartialEq, Eq)]
pub struct Broken;

impl From<Broken> for std::io::Error {
    fn from(Broken: Broken) -> std::io::Error {
        std::io::Error::other("a frame of an inspection makes no sense")
    }
}

impl Kind {
    fn of(byte: u8) -> Option<Kind> {
        let all = [Kind::Open, Kind::Feed, Kind::Finish, Kind::Out, Kind::Progress];
        all.into_iter().find(|kind| *kind as u8 == byte)
    }
}

/// Appends a frame.
pub fn write(kind: Kind, payload: &[u8], to: &mut Vec<u8>) {
    // Both sides bound payloads far below that.
    let length = u32::try_from(payload.len()).unwrap_or(u32::MAX);
    to.push(kind as u8);
    to.extend_from_slice(&length.to_le_bytes());
    to.extend_from_slice(payload);
}

/// Frames that come in.
pub struct Frames {
    input: Vec<u8>,
    most: usize,
}

impl Frames {
    /// No frame may be longer.
    pub const fn new(most: usize) -> Frames {
        Frames { input: Vec::new(), most }
    }

    /// Bytes that have come, to which others are appended.
    pub const fn input(&mut self) -> &mut Vec<u8> {
        &mut self.input
    }

    /// The next frame that is whole.
    ///
    /// # Errors
    /// When it cannot be one.
    pub fn next(&mut self) -> Result<Option<(Kind, Vec<u8>)>, Broken> {
        let Some((&[kind, a, b, c, d], rest)) = self.input.split_first_chunk::<HEAD_BYTES>() else { return Ok(None) };
        let kind = Kind::of(kind).ok_or(Broken)?;
        let length = usize::try_from(u32::from_le_bytes([a, b, c, d])).map_err(|_| Broken)?;
        if length > self.most {
            return Err(Broken);
        }
        let Some(payload) = rest.get(..length).map(<[u8]>::to_vec) else { return Ok(None) };
        self.input.drain(..HEAD_BYTES + length);
        if self.input.is_empty() {
            // Nobody holds room while nothing comes.
            self.input = Vec::new();
        }
        Ok(Some((kind, payload)))
    }
}

/// Progress as a payload.
pub const fn told(progress: Progress) -> u8 {
    match progress {
        Progress::Hungry | Progress::Tired => b'h',
        Progress::Stopped => b's',
        Progress::Done => b'd',
        Progress::Lost(Unfinished::Late) => b'l',
        Progress::Lost(Unfinished::Starved) => b'm',
        // No answers come for what is asked.
        Progress::Lost(Unfinished::Gone) | Progress::Waiting => b'g',
    }
}

/// Progress of a payload.
pub const fn progress(payload: &[u8]) -> Option<Progress> {
    Some(match payload {
        b"h" => Progress::Hungry,
        b"s" => Progress::Stopped,
        b"d" => Progress::Done,
        b"l" => Progress::Lost(Unfinished::Late),
        b"m" => Progress::Lost(Unfinished::Starved),
        b"g" => Progress::Lost(Unfinished::Gone),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frames() -> Vec<(Kind, Vec<u8>)> {
        let progress = Progress::Lost(Unfinished::Starved);
        vec![
            (Kind::Open, vec![1, 2, 3]),
            (Kind::Feed, vec![7; 300]),
            (Kind::Finish, Vec::new()),
            (Kind::Out, vec![0; 70]),
            (Kind::Progress, vec![told(progress)]),
        ]
    }

    #[test]
    fn frames_are_the_same_wherever_they_are_cut() {
        let mut bytes = Vec::new();
        frames().iter().for_each(|(kind, payload)| write(*kind, payload, &mut bytes));
        for size in 1..bytes.len() {
            let (mut reader, mut read) = (Frames::new(300), Vec::new());
            for piece in bytes.chunks(size) {
                reader.input().extend_from_slice(piece);
                while let Some(frame) = reader.next().unwrap() {
                    read.push(frame);
                }
            }
            assert_eq!(read, frames(), "in pieces of {size}");
        }
    }

    #[test]
    fn a_frame_without_a_kind_or_beyond_the_bound_is_refused() {
        for bytes in [b"x\0\0\0\0".as_slice(), b"F\x2d\x01\0\0", b"F\xff\xff\xff\xff"] {
            let mut reader = Frames::new(300);
            reader.input().extend_from_slice(bytes);
            assert_eq!(reader.next(), Err(Broken));
        }
    }

    #[test]
    fn progress_has_a_byte_form() {
        let lost = [Unfinished::Late, Unfinished::Starved, Unfinished::Gone].map(Progress::Lost);
        let all = [Progress::Hungry, Progress::Stopped, Progress::Done];
        for one in all.into_iter().chain(lost) {
            assert_eq!(progress(&[told(one)]), Some(one));
        }
        assert_eq!(progress(b"hh"), None);
    }
}
