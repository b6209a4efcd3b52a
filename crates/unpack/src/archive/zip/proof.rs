//! The proof that a key is right: the check behind all of an encrypted member's data.
//!
//! AES has a code of the data behind them, whatever their method; the traditional cipher has nothing but the checksum of the
//! content, so that the data are decrypted and decoded to their end.
//!
//! Bounds: one decoder, [`SLICE_BYTES`] of data and content a turn, each slice paid for like the making of a key.

use zlib_rs::crc32::crc32;

use super::cipher::Cipher;
use crate::frame::codec::{Decoder, Progress, Told};
use crate::frame::password::Passwords;

/// Bytes of data and content of one turn.
const SLICE_BYTES: usize = 64 << 10;
/// Data decrypted and content decoded at once.
const PIECE_BYTES: usize = 4096;

/// A candidate on its way through all of the data.
pub(super) struct Proof {
    /// The cipher at the beginning of the data.
    start: Cipher,
    cipher: Cipher,
    decoder: Box<dyn Decoder>,
    expected: u32,
    /// Data that are decrypted.
    decrypted: usize,
    piece: Vec<u8>,
    /// Bytes of the piece that are decoded.
    at: usize,
    crc: u32,
}

/// The outcome of a turn.
pub(super) enum Proved {
    More,
    Right,
    Wrong,
    /// The key is right by its own check, and the data are not.
    Damaged,
    /// No work is granted any more.
    Unknown,
}

impl Proof {
    pub fn new(cipher: Cipher, decoder: Box<dyn Decoder>, expected: u32) -> Proof {
        let start = cipher.clone();
        Proof { start, cipher, decoder, expected, decrypted: 0, piece: Vec::new(), at: 0, crc: 0 }
    }

    /// The cipher at the beginning of the data.
    pub fn into_cipher(self) -> Cipher {
        self.start
    }

    /// Works on the next slice of `data`, which `tail` follows.
    pub fn go_on(&mut self, data: &[u8], tail: &[u8], passwords: &Passwords, work: &mut usize) -> Proved {
        if !passwords.grants(SLICE_BYTES as u64) {
            return Proved::Unknown;
        }
        let mut worked = 0;
        while worked < SLICE_BYTES {
            let before = self.decrypted;
            let mut content = [0; PIECE_BYTES];
            let told =
                if tail.is_empty() { self.decode(data, &mut content, &mut worked) } else { self.pass(data, tail) };
            if let Some(proved) = told {
                *work = work.saturating_add(worked.max(1));
                return proved;
            }
            worked = worked.saturating_add((self.decrypted - before).max(1));
        }
        *work = work.saturating_add(worked);
        Proved::More
    }

    /// Feeds the code of the cipher.
    fn pass(&mut self, data: &[u8], tail: &[u8]) -> Option<Proved> {
        if self.refill(data) {
            return None;
        }
        Some(if self.cipher.vouches(tail) { Proved::Right } else { Proved::Damaged })
    }

    /// Decodes a piece.
    fn decode(&mut self, data: &[u8], content: &mut [u8], worked: &mut usize) -> Option<Proved> {
        if self.at == self.piece.len() {
            self.refill(data);
        }
        let progress = self.decoder.decode(&self.piece[self.at..], content);
        self.at += progress.taken;
        self.crc = crc32(self.crc, &content[..progress.wrote]);
        *worked = worked.saturating_add(progress.wrote);
        match progress.told {
            Told::Over if self.crc == self.expected => Some(Proved::Right),
            Told::Over => Some(Proved::Wrong),
            Told::Fault(fault) if fault.fatal => Some(Proved::Wrong),
            Told::Nothing if progress == Progress::took(0) && self.at == self.piece.len() && !self.has_more(data) => {
                Some(if self.crc == self.expected { Proved::Right } else { Proved::Wrong })
            }
            _ => None,
        }
    }

    const fn has_more(&self, data: &[u8]) -> bool {
        self.decrypted < data.len()
    }

    /// Decrypts the next piece; whether there was one.
    fn refill(&mut self, data: &[u8]) -> bool {
        let rest = data.get(self.decrypted..).unwrap_or_default();
        let count = rest.len().min(PIECE_BYTES);
        self.piece.clear();
        self.piece.extend_from_slice(&rest[..count]);
        self.cipher.decrypt(&mut self.piece);
        (self.decrypted, self.at) = (self.decrypted + count, 0);
        count > 0
    }
}
