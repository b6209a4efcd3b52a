//! Content codings of HTTP bodies, decoded as they come; what is not what it says passes as it is.

use std::io::Write;

use flate2::write::{DeflateDecoder, MultiGzDecoder, ZlibDecoder};

/// Bytes that a body may become.
const DECODED_BYTES_MAX: u64 = 256 << 20;
/// Bytes that are decoded at once, so that little is made at once.
const PIECE_BYTES: usize = 512;

/// A decoder.
pub(super) enum Coding {
    Gzip(Box<MultiGzDecoder<Vec<u8>>>),
    /// Until the first two bytes are there.
    Deflate(Vec<u8>),
    Zlib(Box<ZlibDecoder<Vec<u8>>>),
    Raw(Box<DeflateDecoder<Vec<u8>>>),
}

/// The codings of one body, the last first.
pub(super) struct Codings {
    layers: Vec<Layer>,
}

struct Layer {
    coding: Coding,
    made: u64,
    is_broken: bool,
}

impl Codings {
    /// Those that a field names.
    pub fn of(field: &[u8]) -> Codings {
        let names = field.to_ascii_lowercase();
        let names = names.split(|&byte| byte == b',').map(<[u8]>::trim_ascii);
        let coding = |name: &[u8]| match name {
            b"gzip" | b"x-gzip" => Some(Coding::Gzip(Box::new(MultiGzDecoder::new(Vec::new())))),
            b"deflate" | b"x-deflate" => Some(Coding::Deflate(Vec::new())),
            _ => None,
        };
        let mut layers: Vec<Layer> =
            names.filter_map(coding).take(4).map(|coding| Layer { coding, made: 0, is_broken: false }).collect();
        layers.reverse();
        Codings { layers }
    }

    /// Decodes a piece.
    pub fn decode(&mut self, piece: &[u8], out: &mut dyn FnMut(&[u8])) {
        for piece in piece.chunks(PIECE_BYTES) {
            push(&mut self.layers, piece, out);
        }
    }

    /// Hands on what is left.
    pub fn finish(&mut self, out: &mut dyn FnMut(&[u8])) {
        for at in 0..self.layers.len() {
            let left = self.layers[at].finish();
            push(&mut self.layers[at + 1..], &left, out);
        }
    }
}

fn push(layers: &mut [Layer], piece: &[u8], out: &mut dyn FnMut(&[u8])) {
    if piece.is_empty() {
        return;
    }
    let Some((first, rest)) = layers.split_first_mut() else { return out(piece) };
    let made = first.decode(piece);
    push(rest, &made, out);
}

impl Layer {
    fn decode(&mut self, piece: &[u8]) -> Vec<u8> {
        if let Coding::Deflate(head) = &mut self.coding {
            head.extend_from_slice(piece);
            if head.len() < 2 {
                return Vec::new();
            }
            let head = std::mem::take(head);
            let is_zlib = head[0] & 15 == 8 && (u16::from(head[0]) << 8 | u16::from(head[1])) % 31 == 0;
            self.coding = if is_zlib {
                Coding::Zlib(Box::new(ZlibDecoder::new(Vec::new())))
            } else {
                Coding::Raw(Box::new(DeflateDecoder::new(Vec::new())))
            };
            return self.decode(&head);
        }
        if self.is_broken || self.made > DECODED_BYTES_MAX {
            return if self.made == 0 { piece.to_vec() } else { Vec::new() };
        }
        let (result, out) = match &mut self.coding {
            Coding::Deflate(_) => return piece.to_vec(),
            Coding::Gzip(decoder) => (decoder.write_all(piece).and_then(|()| decoder.flush()), decoder.get_mut()),
            Coding::Zlib(decoder) => (decoder.write_all(piece).and_then(|()| decoder.flush()), decoder.get_mut()),
            Coding::Raw(decoder) => (decoder.write_all(piece).and_then(|()| decoder.flush()), decoder.get_mut()),
        };
        let out = std::mem::take(out);
        self.made = self.made.saturating_add(out.len() as u64);
        self.is_broken = result.is_err();
        if self.is_broken && self.made == 0 { piece.to_vec() } else { out }
    }

    fn finish(&mut self) -> Vec<u8> {
        match &mut self.coding {
            Coding::Deflate(head) => std::mem::take(head),
            Coding::Gzip(decoder) => {
                let _ = decoder.try_finish();
                std::mem::take(decoder.get_mut())
            }
            Coding::Zlib(decoder) => {
                let _ = decoder.try_finish();
                std::mem::take(decoder.get_mut())
            }
            Coding::Raw(decoder) => {
                let _ = decoder.try_finish();
                std::mem::take(decoder.get_mut())
            }
        }
    }
}
