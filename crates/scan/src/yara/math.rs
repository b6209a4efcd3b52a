//! Questions of conditions to the module `math`: about a range of the object, or a text in the condition.
//!
//! After the YARA manual, "Math module"; the serial correlation and the share of points in a circle are those of ENT (John
//! Walker, "A Pseudorandom Number Sequence Test Program"). This file knows nothing of where the bytes are from.

use super::id::{NodeId, TextId};

/// The bytes that are asked about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Over {
    /// From an offset on so many, or fewer where the object ends before.
    Range(NodeId, NodeId),
    Text(TextId),
    /// All of the object.
    Object,
}

/// Measure with a fraction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Measure {
    /// Bits of information in a byte, from 0 to 8.
    Entropy,
    /// The middle of their values.
    Mean,
    /// How much of a byte follows from the byte before: from -1 to 1, and 0 if nothing does.
    SerialCorrelation,
    /// How far pi is, as a share of it, from what comes of six bytes each that are taken for a point.
    MonteCarloPi,
    /// How far they are from that value, in the middle.
    Deviation(NodeId),
    /// The share that this byte has.
    Percentage(NodeId),
}

/// How often each byte is there.
#[derive(Debug, Clone)]
pub(crate) struct Histogram([u64; 256]);

impl Histogram {
    pub(crate) fn of(bytes: &[u8]) -> Histogram {
        let mut counts = [0; 256];
        bytes.iter().for_each(|&byte| counts[usize::from(byte)] += 1);
        Histogram(counts)
    }

    pub(crate) fn count(&self, byte: u8) -> u64 {
        self.0[usize::from(byte)]
    }

    fn total(&self) -> f64 {
        self.0.iter().sum::<u64>() as f64
    }

    /// The middle of what something is of each byte.
    fn mean_of(&self, of: impl Fn(f64) -> f64) -> f64 {
        let sum: f64 = (0u8..=255).zip(self.0).map(|(byte, count)| of(byte.into()) * count as f64).sum();
        sum / self.total()
    }

    pub(crate) fn mean(&self) -> f64 {
        self.mean_of(|byte| byte)
    }

    pub(crate) fn deviation(&self, mean: f64) -> f64 {
        self.mean_of(|byte| (byte - mean).abs())
    }

    pub(crate) fn percentage(&self, byte: u8) -> f64 {
        self.count(byte) as f64 / self.total()
    }

    pub(crate) fn entropy(&self) -> f64 {
        let total = self.total();
        let shares = self.0.iter().filter(|&&count| count > 0).map(|&count| count as f64 / total);
        -shares.map(|share| share * share.log2()).sum::<f64>()
    }

    /// The byte that is there most often, the first of several.
    pub(crate) fn mode(&self) -> u8 {
        let most = self.0.iter().max().copied().unwrap_or_default();
        (0u8..=255).zip(self.0).find(|(_, count)| *count == most).map_or(0, |(byte, _)| byte)
    }
}

/// The last byte is followed by itself, as in YARA: in ENT it is followed by the first. Of bytes that are all the same it
/// is -100,000.
pub(crate) fn serial_correlation(bytes: &[u8]) -> f64 {
    let (mut last, mut products, mut sum, mut squares) = (0.0, 0.0, 0.0, 0.0);
    for &byte in bytes {
        let byte = f64::from(byte);
        products += last * byte;
        sum += byte;
        squares += byte * byte;
        last = byte;
    }
    products += last * last;
    let (count, sum_squared) = (bytes.len() as f64, sum * sum);
    let spread = count * squares - sum_squared;
    if spread == 0.0 { -100_000.0 } else { (count * products - sum_squared) / spread }
}

/// None where there is not even one point.
pub(crate) fn monte_carlo_pi(bytes: &[u8]) -> Option<f64> {
    let points = bytes.chunks_exact(6);
    let count = points.len();
    let radius = f64::from((1u32 << 24) - 1);
    let coordinate = |bytes: &[u8]| bytes.iter().fold(0.0, |value, &byte| value * 256.0 + f64::from(byte));
    let is_within = |point: &&[u8]| {
        let (x, y) = (coordinate(&point[..3]), coordinate(&point[3..]));
        x * x + y * y <= radius * radius
    };
    let within = points.filter(is_within).count();
    let pi = 4.0 * within as f64 / count as f64;
    (count > 0).then(|| ((pi - std::f64::consts::PI) / std::f64::consts::PI).abs())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_known_of_simple_bytes() {
        let histogram = Histogram::of(b"AABB");
        assert_eq!((histogram.entropy(), histogram.mean(), histogram.deviation(65.0)), (1.0, 65.5, 0.5));
        assert_eq!((histogram.mode(), histogram.count(b'B'), histogram.percentage(b'A')), (b'A', 2, 0.5));
        let all: Vec<u8> = (0..=255).collect();
        assert_eq!((Histogram::of(&all).entropy(), Histogram::of(&all).mean()), (8.0, 127.5));
        assert_eq!(serial_correlation(&[7; 9]), -100_000.0);
        assert!(serial_correlation(&all) > 0.9 && serial_correlation(&[255, 0, 255, 0]) == -1.0);
        assert_eq!((monte_carlo_pi(&[0; 5]), monte_carlo_pi(&[0; 6]).map(|far| far < 0.28)), (None, Some(true)));
    }
}
