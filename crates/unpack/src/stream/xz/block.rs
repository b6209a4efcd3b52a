//! One block: LZMA2, the filters behind it, and what is counted for the index and the check.

use super::check::Check;
use super::filter::{Chain, FILTER_BYTES};
use super::header::Header;
use super::lzma2::{Broken, Lzma2};
use crate::frame::codec::{Progress, Told};

/// A block on its way in.
pub(super) struct Block {
    header: Header,
    header_bytes: u64,
    chain: Chain,
    check: Check,
    compressed: u64,
    uncompressed: u64,
    /// Whether LZMA2 has ended, so that only the filters hold content.
    drained: bool,
}

impl Block {
    pub const fn new(header: Header, header_bytes: u64, chain: Chain, check: Check) -> Block {
        Block { header, header_bytes, chain, check, compressed: 0, uncompressed: 0, drained: false }
    }

    /// Decodes some of the content; [`Told::Over`] at its end.
    pub fn decode(&mut self, lzma2: &mut Lzma2, input: &[u8], output: &mut [u8]) -> Result<Progress, Broken> {
        let progress = match self.chain.is_empty() {
            true => lzma2.decode(input, output)?,
            false => self.filtered(lzma2, input, output)?,
        };
        self.compressed += progress.taken as u64;
        self.uncompressed += progress.wrote as u64;
        self.check.update(&output[..progress.wrote]);
        Ok(progress)
    }

    /// Returns whether the sizes agree with those of the header, if it has any.
    pub fn sizes_are_right(&self) -> bool {
        let right = |told: Option<u64>, seen: u64| told.is_none_or(|told| told == seen);
        right(self.header.compressed, self.compressed) && right(self.header.uncompressed, self.uncompressed)
    }

    /// Zeros between the data and the check.
    pub const fn padding(&self) -> usize {
        (4 - self.compressed % 4) as usize % 4
    }

    /// Bytes of the header, the data and a check of this length.
    pub const fn unpadded(&self, check_bytes: usize) -> u64 {
        self.header_bytes + self.compressed + check_bytes as u64
    }

    pub const fn uncompressed(&self) -> u64 {
        self.uncompressed
    }

    pub fn check_agrees_with(self, told: &[u8]) -> bool {
        self.check.agrees_with(told)
    }

    /// Decodes through the filters: content that is ready first, then another piece.
    fn filtered(&mut self, lzma2: &mut Lzma2, input: &[u8], output: &mut [u8]) -> Result<Progress, Broken> {
        let mut taken = 0;
        loop {
            let wrote = self.chain.take(output);
            if wrote > 0 || self.drained {
                let told = if wrote > 0 { Told::Nothing } else { Told::Over };
                return Ok(Progress { taken, wrote, told });
            }
            let mut piece = [0; FILTER_BYTES];
            let progress = lzma2.decode(&input[taken..], &mut piece);
            let progress = progress.map_err(|broken| Broken { taken: taken + broken.taken, ..broken })?;
            taken += progress.taken;
            self.chain.push(&piece[..progress.wrote]);
            if progress.told == Told::Over {
                self.drained = true;
                self.chain.finish();
            } else if progress == Progress::took(0) {
                return Ok(Progress::took(taken));
            }
        }
    }
}
