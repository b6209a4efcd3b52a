//! A stream that is compressed in both directions (RFC 4978, RFC 1951), each chunk flushed so that it can be read at once.
//!
//! What comes is decompressed a piece at a time, so a little that stands for much is never held as such. Memory: 160 KiB for what is
//! sent, 48 KiB for what comes.

use std::io;

use zlib_rs::{Deflate, DeflateConfig, DeflateFlush, Inflate, InflateFlush, Status};

/// Bytes that are decompressed, or compressed, at a time.
const PIECE_BYTES: usize = 16 << 10;

pub(crate) struct Deflated {
    inflate: Inflate,
    deflate: Deflate,
    /// Input that is not decompressed yet.
    waiting: Vec<u8>,
    /// Set if consumed input may still yield output.
    has_more: bool,
    /// Bytes that came so far.
    received: u64,
}

impl Deflated {
    /// A stream whose first bytes have come already.
    pub fn new(waiting: Vec<u8>) -> Deflated {
        // A window of 4 KiB, and little memory for symbols: replies are short, and mail is compressed by itself where it is large.
        let config = DeflateConfig { window_bits: -12, mem_level: 5, ..DeflateConfig::new(1) };
        let has_more = !waiting.is_empty();
        Deflated {
            inflate: Inflate::new(false, 15),
            deflate: Deflate::new_with_config(config),
            waiting,
            has_more,
            received: 0,
        }
    }

    /// Bytes that came.
    pub fn came(&mut self, bytes: &[u8]) {
        self.waiting.extend_from_slice(bytes);
        self.received = self.received.saturating_add(bytes.len() as u64);
        self.has_more = true;
    }

    /// Bytes that have come and are not decompressed.
    pub fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// Bytes that came so far.
    pub const fn received(&self) -> u64 {
        self.received
    }

    /// Appends what can be made of what came, at most a piece; whether that was anything.
    ///
    /// # Errors
    /// When it is not compressed, or has come to an end, which this stream has not.
    pub fn inflate(&mut self, out: &mut Vec<u8>) -> io::Result<bool> {
        if !self.has_more {
            return Ok(false);
        }
        let mut piece = [0; PIECE_BYTES];
        let (taken, made) = (self.inflate.total_in(), self.inflate.total_out());
        let status = self.inflate.decompress(&self.waiting, &mut piece, InflateFlush::NoFlush);
        let wrong = |why| io::Error::new(io::ErrorKind::InvalidData, why);
        if !matches!(status, Ok(Status::Ok | Status::BufError)) {
            return Err(wrong("not a compressed stream"));
        }
        let count = |after: u64, before: u64| usize::try_from(after.saturating_sub(before)).unwrap_or(0);
        let (taken, made) = (count(self.inflate.total_in(), taken), count(self.inflate.total_out(), made));
        self.waiting.drain(..taken);
        if self.waiting.is_empty() {
            self.waiting = Vec::new();
        }
        out.extend_from_slice(&piece[..made]);
        // What did not fill the piece has nothing more to give.
        self.has_more = made == piece.len();
        Ok(made > 0)
    }

    /// The bytes as they are sent.
    ///
    /// # Errors
    /// None that is known.
    pub fn deflate(&mut self, mut bytes: &[u8]) -> io::Result<Vec<u8>> {
        let (mut out, mut piece) = (Vec::new(), [0; PIECE_BYTES]);
        loop {
            let (taken, made) = (self.deflate.total_in(), self.deflate.total_out());
            let status = self.deflate.compress(bytes, &mut piece, DeflateFlush::SyncFlush);
            status.map_err(|error| io::Error::other(error.as_str()))?;
            let taken = usize::try_from(self.deflate.total_in() - taken).unwrap_or(0);
            let made = usize::try_from(self.deflate.total_out() - made).unwrap_or(0);
            bytes = &bytes[taken..];
            out.extend_from_slice(&piece[..made]);
            if bytes.is_empty() && made < piece.len() {
                return Ok(out);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(stream: &mut Deflated, packed: &[u8], cut: usize) -> Vec<u8> {
        let mut out = Vec::new();
        for piece in packed.chunks(cut) {
            stream.came(piece);
            while stream.inflate(&mut out).unwrap() {}
        }
        out
    }

    #[test]
    fn what_is_sent_comes_whole_however_it_is_cut() {
        let random: Vec<u8> = (0..200_000u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
        for text in [&b"a"[..], b"* OK\r\n", &[b'x'; 100_000], &random] {
            let packed = Deflated::new(Vec::new()).deflate(text).unwrap();
            for cut in [1, 7, 1000, packed.len()] {
                assert_eq!(all(&mut Deflated::new(Vec::new()), &packed, cut), text, "{cut}");
            }
            let mut stream = Deflated::new(packed);
            let mut out = Vec::new();
            while stream.inflate(&mut out).unwrap() {}
            assert_eq!(out, text);
        }
    }

    #[test]
    fn a_little_that_stands_for_much_comes_in_pieces() {
        let packed = Deflated::new(Vec::new()).deflate(&vec![0; 10 << 20]).unwrap();
        assert!(packed.len() < 100 << 10);
        let mut stream = Deflated::new(packed);
        let (mut out, mut pieces) = (Vec::new(), 0);
        while stream.inflate(&mut out).unwrap() {
            assert!(out.len() <= PIECE_BYTES);
            out.clear();
            pieces += 1;
        }
        assert_eq!(pieces, (10 << 20) / PIECE_BYTES);
    }

    #[test]
    fn what_is_not_compressed_is_an_error() {
        let mut stream = Deflated::new(b"a NOOP\r\n\xff\xff\xff\xff".to_vec());
        let mut out = Vec::new();
        assert!((0..100).any(|_| stream.inflate(&mut out).is_err()));
        assert!(out.len() < 100);
    }
}
