//! Predictors (ISO 32000-2, 7.4.4.4): the PNG filters, row by row, and the TIFF predictor.
//!
//! Bounds: two rows, of `codec_bytes_max` / 4 at most.

use stream::Limits;

use super::layer::{Layer, Parameters};
use crate::frame::codec::Progress;

/// Undoes a predictor.
pub(super) struct Predictor {
    is_png: bool,
    /// Bytes from a sample to the one before it in the row; at least 1.
    step: usize,
    colors: usize,
    bits: usize,
    row_bytes: usize,
    /// The incoming row, with its PNG tag; partly decoded.
    row: Vec<u8>,
    /// The row above, decoded; partly emitted.
    above: Vec<u8>,
    told: usize,
}

impl Predictor {
    /// `None` if the parameters make no sense, or a row is too long.
    pub fn new(parameters: &Parameters, limits: &Limits) -> Option<Predictor> {
        let is_png = parameters.predictor >= 10;
        let sample_bits = parameters.colors.checked_mul(parameters.bits)?;
        let row_bytes = sample_bits.checked_mul(parameters.columns)?.div_ceil(8);
        let fits = row_bytes > 0 && row_bytes <= u64::from(limits.codec_bytes_max / 4);
        if !fits || !(is_png || parameters.predictor == 2) || !matches!(parameters.bits, 1 | 2 | 4 | 8 | 16) {
            return None;
        }
        Some(Predictor {
            is_png,
            step: sample_bits.div_ceil(8) as usize,
            colors: parameters.colors as usize,
            bits: parameters.bits as usize,
            row_bytes: row_bytes as usize,
            row: Vec::new(),
            above: Vec::new(),
            told: 0,
        })
    }

    fn undo(&mut self) {
        if self.is_png {
            let tag = self.row.first().copied().unwrap_or(0);
            self.row.drain(..1.min(self.row.len()));
            undo_png(tag, &mut self.row, &self.above, self.step);
        } else {
            self.undo_tiff();
        }
        std::mem::swap(&mut self.row, &mut self.above);
        self.row.clear();
        self.told = 0;
    }

    /// Samples of a byte, two bytes, or less; those of less are rare and of one colour or more.
    fn undo_tiff(&mut self) {
        match self.bits {
            8 => {
                for at in self.step..self.row.len() {
                    self.row[at] = self.row[at].wrapping_add(self.row[at - self.step]);
                }
            }
            16 => {
                for at in (self.step..self.row.len().saturating_sub(1)).step_by(2) {
                    let before = u16::from_be_bytes([self.row[at - self.step], self.row[at - self.step + 1]]);
                    let sum = u16::from_be_bytes([self.row[at], self.row[at + 1]]).wrapping_add(before);
                    self.row[at..at + 2].copy_from_slice(&sum.to_be_bytes());
                }
            }
            bits => undo_small(&mut self.row, bits, self.colors),
        }
    }
}

/// The TIFF predictor over samples of less than a byte.
fn undo_small(row: &mut [u8], bits: usize, colors: usize) {
    let mask = (1u8 << bits) - 1;
    let samples = row.len() * 8 / bits;
    let place = |sample: usize| (sample * bits / 8, 8 - bits - sample * bits % 8);
    for sample in colors..samples {
        let (from, from_shift) = place(sample - colors);
        let (to, to_shift) = place(sample);
        let sum = (row[from] >> from_shift).wrapping_add(row[to] >> to_shift) & mask;
        row[to] = row[to] & !(mask << to_shift) | sum << to_shift;
    }
}

/// Undoes a PNG filter; `above` is empty for the first row.
fn undo_png(tag: u8, row: &mut [u8], above: &[u8], step: usize) {
    for at in 0..row.len() {
        let left = at.checked_sub(step).map_or(0, |before| row[before]);
        let up = above.get(at).copied().unwrap_or(0);
        let corner = at.checked_sub(step).and_then(|before| above.get(before)).copied().unwrap_or(0);
        let predicted = match tag {
            1 => left,
            2 => up,
            3 => ((u16::from(left) + u16::from(up)) / 2) as u8,
            4 => paeth(left, up, corner),
            _ => 0,
        };
        row[at] = row[at].wrapping_add(predicted);
    }
}

fn paeth(left: u8, up: u8, corner: u8) -> u8 {
    let guess = i16::from(left) + i16::from(up) - i16::from(corner);
    let distance = |value: u8| (guess - i16::from(value)).abs();
    if distance(left) <= distance(up) && distance(left) <= distance(corner) {
        left
    } else if distance(up) <= distance(corner) {
        up
    } else {
        corner
    }
}

impl Layer for Predictor {
    fn decode(&mut self, input: &[u8], last: bool, output: &mut [u8]) -> Progress {
        let (mut taken, mut wrote) = (0, 0);
        let whole = self.row_bytes + usize::from(self.is_png);
        loop {
            let owed = &self.above[self.told..];
            let count = owed.len().min(output.len() - wrote);
            output[wrote..wrote + count].copy_from_slice(&owed[..count]);
            (wrote, self.told) = (wrote + count, self.told + count);
            if wrote == output.len() {
                break;
            }
            let count = (whole - self.row.len()).min(input.len() - taken);
            self.row.extend_from_slice(&input[taken..taken + count]);
            taken += count;
            let ends = last && taken == input.len() && !self.row.is_empty();
            if self.row.len() < whole && !ends {
                break;
            }
            self.undo();
        }
        Progress { wrote, ..Progress::took(taken) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decode(predictor: u64, bits: u64, colors: u64, columns: u64, input: &[u8]) -> Vec<u8> {
        let parameters = Parameters { predictor, bits, colors, columns, ..Parameters::default() };
        let mut layer = Predictor::new(&parameters, &Limits::default()).expect("these make sense");
        let mut output = [0; 4096];
        let progress = layer.decode(input, true, &mut output);
        assert_eq!(progress.taken, input.len());
        output[..progress.wrote].to_vec()
    }

    #[test]
    fn every_png_filter_is_undone() {
        let rows = [[0, 1, 2, 3], [1, 1, 1, 1], [2, 1, 1, 1], [3, 1, 1, 1], [4, 1, 1, 1]].concat();
        assert_eq!(decode(15, 8, 1, 3, &rows), [1, 2, 3, 1, 2, 3, 2, 3, 4, 2, 3, 4, 3, 4, 5]);
        assert_eq!(decode(12, 8, 1, 3, &[2, 7, 8]), [7, 8]);
    }

    #[test]
    fn the_tiff_predictor_adds_samples_of_each_width() {
        assert_eq!(decode(2, 8, 1, 4, &[1, 1, 1, 1, 5, 0, 0, 255]), [1, 2, 3, 4, 5, 5, 5, 4]);
        assert_eq!(decode(2, 16, 1, 2, &[0, 255, 0, 1]), [0, 255, 1, 0]);
        assert_eq!(decode(2, 4, 1, 4, &[0x11, 0x1f]), [0x12, 0x32]);
    }

    #[test]
    fn rows_that_are_too_long_are_refused() {
        let parameters = Parameters { predictor: 12, columns: u64::MAX, ..Parameters::default() };
        assert!(Predictor::new(&parameters, &Limits::default()).is_none());
        let parameters = Parameters { predictor: 12, columns: 1 << 30, ..Parameters::default() };
        assert!(Predictor::new(&parameters, &Limits::default()).is_none());
    }
}
