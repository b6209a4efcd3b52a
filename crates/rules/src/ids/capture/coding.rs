//! Content codings of HTTP bodies, decoded as they come; what is not what it says passes as it is.
//!
//! Heads of gzip are passed over without looking at their checksum or at flags that mean nothing, as browsers do.

use flate2::{Decompress, FlushDecompress, Status};
use stream::{Event, FileType, Fuel, Limits, Nothing, Stage, Window};
use unpack::Passwords;

/// Bytes that a body may become.
const DECODED_BYTES_MAX: u64 = 256 << 20;
/// Bytes that are made at once.
const PIECE_BYTES: usize = 16 << 10;
/// Bytes of a head of gzip.
const HEAD_BYTES_MAX: usize = 64 << 10;

/// The codings of one body, the last first.
pub(super) struct Codings(Vec<Layer>);

#[derive(Clone, Copy, PartialEq, Eq)]
enum Coding {
    Gzip,
    Deflate,
    Lzma,
}

struct Layer {
    coding: Coding,
    state: State,
    pending: Vec<u8>,
    made: u64,
}

enum State {
    /// The head is not yet whole.
    Head,
    Data {
        decoder: Box<Decompress>,
        is_gzip: bool,
    },
    Lzma(Box<dyn Stage>),
    /// The end of a member of gzip.
    Tail,
    /// The content is not in this coding.
    Plain,
    Over,
}

impl Codings {
    /// The codings that a field names.
    pub fn of(field: &[u8]) -> Codings {
        let field: Vec<u8> = field.iter().filter(|byte| **byte != 0).map(u8::to_ascii_lowercase).collect();
        let named = |name: &[u8]| {
            let (_, coding) = NAMES.iter().find(|(known, _)| memchr::memmem::find(name, known).is_some())?;
            Some(Layer { coding: *coding, state: State::Head, pending: Vec::new(), made: 0 })
        };
        let mut layers: Vec<Layer> = field.split(|&byte| byte == b',').filter_map(named).take(4).collect();
        layers.reverse();
        Codings(layers)
    }

    /// Decodes a piece.
    pub fn decode(&mut self, piece: &[u8], out: &mut dyn FnMut(&[u8])) {
        push(&mut self.0, piece, out);
    }

    /// Hands on what was waited with.
    pub fn finish(&mut self, out: &mut dyn FnMut(&[u8])) {
        for at in 0..self.0.len() {
            // A head that never became whole is none.
            let Some((layer, rest)) = self.0[at..].split_first_mut() else { return };
            let is_plain = matches!(layer.state, State::Head | State::Plain) && layer.made == 0;
            let left = if is_plain { std::mem::take(&mut layer.pending) } else { Vec::new() };
            push(rest, &left, out);
            layer.finish(&mut |made| push(rest, made, out));
        }
    }
}

fn push(layers: &mut [Layer], piece: &[u8], out: &mut dyn FnMut(&[u8])) {
    if piece.is_empty() {
        return;
    }
    let Some((first, rest)) = layers.split_first_mut() else { return out(piece) };
    first.pending.extend_from_slice(piece);
    first.decode(&mut |made| push(rest, made, out));
}

impl Layer {
    fn decode(&mut self, out: &mut dyn FnMut(&[u8])) {
        while self.step(out) {}
    }

    /// Does one step, and says whether there may be another.
    fn step(&mut self, out: &mut dyn FnMut(&[u8])) -> bool {
        match &mut self.state {
            State::Head => {
                self.state = match head(&self.pending, self.coding) {
                    Head::Short => return false,
                    Head::Gzip(length) => {
                        self.pending.drain(..length);
                        State::Data { decoder: Box::new(Decompress::new(false)), is_gzip: true }
                    }
                    // Only gzip has further members.
                    Head::Zlib | Head::Bare | Head::Lzma(_) | Head::Other if self.made > 0 => State::Over,
                    Head::Zlib => State::Data { decoder: Box::new(Decompress::new(true)), is_gzip: false },
                    Head::Bare => State::Data { decoder: Box::new(Decompress::new(false)), is_gzip: false },
                    Head::Lzma(stage) => State::Lzma(stage),
                    Head::Other => State::Plain,
                };
                true
            }
            State::Data { decoder, is_gzip } => {
                let mut buffer = [0; PIECE_BYTES];
                let (read, made) = (decoder.total_in(), decoder.total_out());
                let status = decoder.decompress(&self.pending, &mut buffer, FlushDecompress::None);
                let read = usize::try_from(decoder.total_in() - read).unwrap_or(usize::MAX);
                let made = usize::try_from(decoder.total_out() - made).unwrap_or(usize::MAX);
                self.made = self.made.saturating_add(made as u64);
                out(&buffer[..made.min(PIECE_BYTES)]);
                if status.is_err() && self.made == 0 {
                    self.state = State::Plain;
                    return true;
                }
                self.pending.drain(..read.min(self.pending.len()));
                match status {
                    Ok(Status::StreamEnd) => self.state = if *is_gzip { State::Tail } else { State::Over },
                    Ok(_) if self.made <= DECODED_BYTES_MAX => return read > 0 || made > 0,
                    _ => self.state = State::Over,
                }
                true
            }
            State::Lzma(_) if self.pending.is_empty() => false,
            State::Lzma(stage) => {
                let mut window = Window::with_capacity(PIECE_BYTES);
                let step = stage.step(&self.pending, &mut window, &mut Fuel::unlimited());
                self.pending.drain(..step.taken);
                let is_idle = step.taken == 0 && step.event == Event::Idle;
                self.lzma(&step.event, &window, out);
                !is_idle
            }
            State::Tail => {
                let is_whole = self.pending.len() > 8;
                if is_whole {
                    self.pending.drain(..8);
                    self.state = State::Head;
                }
                is_whole
            }
            State::Plain => {
                out(&std::mem::take(&mut self.pending));
                false
            }
            State::Over => {
                self.pending.clear();
                false
            }
        }
    }

    /// Takes what the decoder of LZMA tells, and what it has made.
    fn lzma(&mut self, event: &Event, window: &Window, out: &mut dyn FnMut(&[u8])) {
        self.made = self.made.saturating_add(window.len() as u64);
        if !window.is_empty() {
            out(window.filled());
        }
        if *event == Event::End || self.made > DECODED_BYTES_MAX {
            self.state = State::Over;
        }
    }

    /// Decodes what waited for more.
    fn finish(&mut self, out: &mut dyn FnMut(&[u8])) {
        while let State::Lzma(stage) = &mut self.state {
            let mut window = Window::with_capacity(PIECE_BYTES);
            let event = stage.finish(&Nothing, &mut window, &mut Fuel::unlimited());
            self.lzma(&event, &window, out);
        }
    }
}

/// Names of codings, with anything around them.
const NAMES: [(&[u8], Coding); 3] = [(b"gzip", Coding::Gzip), (b"deflate", Coding::Deflate), (b"lzma", Coding::Lzma)];

/// The beginning of encoded data: servers send gzip and zlib under either name.
enum Head {
    /// So many bytes in front of the data.
    Gzip(usize),
    Zlib,
    /// Data alone.
    Bare,
    Lzma(Box<dyn Stage>),
    Short,
    Other,
}

fn head(bytes: &[u8], coding: Coding) -> Head {
    if bytes.len() < 2 {
        return Head::Short;
    }
    if coding == Coding::Lzma {
        return lzma_head(bytes);
    }
    if bytes[..2] == [0x1f, 0x8b] {
        return match gzip_head(bytes) {
            Some(length) => Head::Gzip(length),
            None if bytes.len() > HEAD_BYTES_MAX => Head::Other,
            None => Head::Short,
        };
    }
    if bytes[0] & 15 == 8 && (u16::from(bytes[0]) << 8 | u16::from(bytes[1])) % 31 == 0 {
        return Head::Zlib;
    }
    if coding == Coding::Deflate { Head::Bare } else { Head::Other }
}

/// Bytes of a head of LZMA, and of the first byte behind it, which is 0.
const LZMA_HEAD_BYTES: usize = 14;

fn lzma_head(bytes: &[u8]) -> Head {
    let Some(head) = bytes.first_chunk::<LZMA_HEAD_BYTES>() else { return Head::Short };
    let is_one = head[0] < 225 && head[LZMA_HEAD_BYTES - 1] == 0;
    let reader = || unpack::reader(FileType::Lzma, &Limits::default(), &Passwords::default());
    is_one.then(reader).flatten().map_or(Head::Other, Head::Lzma)
}

fn gzip_head(bytes: &[u8]) -> Option<usize> {
    let flags = *bytes.get(3)?;
    let mut at = 10;
    if flags & 4 != 0 {
        at += 2 + usize::from(u16::from_le_bytes([*bytes.get(at)?, *bytes.get(at + 1)?]));
    }
    for flag in [8, 16] {
        if flags & flag != 0 {
            at += bytes.get(at..)?.iter().position(|&byte| byte == 0)? + 1;
        }
    }
    if flags & 2 != 0 {
        at += 2;
    }
    (at <= bytes.len()).then_some(at)
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn decoded(field: &[u8], body: &[u8]) -> Vec<u8> {
        let mut results = [1, body.len().max(1)].map(|size| {
            let (mut codings, mut out) = (Codings::of(field), Vec::new());
            body.chunks(size).for_each(|piece| codings.decode(piece, &mut |made| out.extend_from_slice(made)));
            codings.finish(&mut |made| out.extend_from_slice(made));
            out
        });
        assert_eq!(results[0], results[1]);
        std::mem::take(&mut results[0])
    }

    /// `hello`, as `xz --format=lzma` writes it.
    const LZMA: &[u8] = &[
        0x5d, 0, 0, 0x80, 0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0, 0x34, 0x19, 0x49, 0xee, 0x8e, 0x68,
        0x21, 0xff, 0xff, 0xb9, 0xe0, 0, 0,
    ];

    /// A stream of deflate with one stored block.
    fn stored(bytes: &[u8]) -> Vec<u8> {
        let length = u16::try_from(bytes.len()).expect("a short text");
        [&[1][..], &length.to_le_bytes(), &(!length).to_le_bytes(), bytes].concat()
    }

    #[test]
    fn bodies_are_decoded_by_what_they_are() {
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        gzip.write_all(b"hello").expect("a vector takes all");
        let gzip = gzip.finish().expect("a vector takes all");
        assert_eq!(decoded(b"gzip", &[&gzip[..], &gzip].concat()), b"hellohello");
        let mut flagged = gzip.clone();
        flagged[3] |= 0x20;
        assert_eq!(decoded(b"x-gzip;", &flagged), b"hello");
        let raw = &gzip[10..gzip.len() - 8];
        assert_eq!(decoded(b": deflate\xa0", raw), b"hello");
        assert_eq!(decoded(b"gzip", b"no gzip"), b"no gzip");
        let mut zlib = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::fast());
        zlib.write_all(b"hello").expect("a vector takes all");
        let zlib = zlib.finish().expect("a vector takes all");
        for name in [&b"gzip"[..], b"deflate"] {
            assert_eq!(decoded(name, &gzip), b"hello");
            assert_eq!(decoded(name, &zlib), b"hello");
            assert_eq!(decoded(name, &[&gzip[..], &zlib].concat()), b"hello");
        }
        assert_eq!(decoded(b"identity", b"plain"), b"plain");
        assert_eq!(decoded(b"lzma", LZMA), b"hello");
        assert_eq!(decoded(b"lzma", b"no lzma, but plain"), b"no lzma, but plain");
        let twice = [&[0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0][..], &stored(LZMA)].concat();
        assert_eq!(decoded(b"lzma, gzip", &twice), b"hello");
    }
}
