//! Content codings of HTTP bodies, decoded as they come; what is not what it says passes as it is.
//!
//! Heads of gzip are passed over without looking at their checksum or at flags that mean nothing, as browsers do.

use flate2::{Decompress, FlushDecompress, Status};

/// Bytes that a body may become.
const DECODED_BYTES_MAX: u64 = 256 << 20;
/// Bytes that are made at once.
const PIECE_BYTES: usize = 16 << 10;
/// Bytes of a head of gzip.
const HEAD_BYTES_MAX: usize = 64 << 10;

/// The codings of one body, the last first.
pub(super) struct Codings(Vec<Layer>);

struct Layer {
    is_gzip: bool,
    state: State,
    pending: Vec<u8>,
    made: u64,
}

enum State {
    /// The head is not yet whole.
    Head,
    Data(Box<Decompress>),
    /// The end of a member of gzip.
    Tail,
    /// The content is not in this coding.
    Plain,
    Over,
}

impl Codings {
    /// Codings that a field names, with anything around their names.
    pub fn of(field: &[u8]) -> Codings {
        let field: Vec<u8> = field.iter().filter(|byte| **byte != 0).map(u8::to_ascii_lowercase).collect();
        let layer = |is_gzip| Layer { is_gzip, state: State::Head, pending: Vec::new(), made: 0 };
        let coding = |name: &[u8]| match () {
            () if memchr::memmem::find(name, b"gzip").is_some() => Some(layer(true)),
            () if memchr::memmem::find(name, b"deflate").is_some() => Some(layer(false)),
            () => None,
        };
        let mut layers: Vec<Layer> = field.split(|&byte| byte == b',').filter_map(coding).take(4).collect();
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
            let layer = &mut self.0[at];
            let is_plain = matches!(layer.state, State::Head | State::Plain) && layer.made == 0;
            let left = if is_plain { std::mem::take(&mut layer.pending) } else { Vec::new() };
            push(&mut self.0[at + 1..], &left, out);
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
            State::Head => match head(&self.pending, self.is_gzip) {
                Head::Whole(length, is_zlib) => {
                    self.pending.drain(..length);
                    self.state = State::Data(Box::new(Decompress::new(is_zlib)));
                    true
                }
                Head::Short => false,
                Head::Other => {
                    self.state = if self.made == 0 { State::Plain } else { State::Over };
                    true
                }
            },
            State::Data(decoder) => {
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
                    Ok(Status::StreamEnd) => self.state = if self.is_gzip { State::Tail } else { State::Over },
                    Ok(_) if self.made <= DECODED_BYTES_MAX => return read > 0 || made > 0,
                    _ => self.state = State::Over,
                }
                true
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
}

enum Head {
    /// So many bytes, and whether zlib follows.
    Whole(usize, bool),
    Short,
    Other,
}

fn head(bytes: &[u8], is_gzip: bool) -> Head {
    if bytes.len() < 2 {
        return Head::Short;
    }
    let is_zlib = bytes[0] & 15 == 8 && (u16::from(bytes[0]) << 8 | u16::from(bytes[1])) % 31 == 0;
    if !is_gzip {
        // Servers send either under this name.
        return Head::Whole(0, is_zlib);
    }
    if bytes[..2] != [0x1f, 0x8b] {
        return Head::Other;
    }
    match gzip_head(bytes) {
        Some(length) => Head::Whole(length, false),
        None if bytes.len() > HEAD_BYTES_MAX => Head::Other,
        None => Head::Short,
    }
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
        assert_eq!(decoded(b"identity", b"plain"), b"plain");
    }
}
