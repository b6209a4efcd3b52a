//! The prediction of sound in RAR 2.0 and in the audio filter of RAR 3: a linear predictor whose weights follow the
//! signal by one step every 32 samples.

/// The predictor of one channel, over `N` differences: 3, or 5 with the neighbouring channel.
pub(super) struct Predictor<const N: usize> {
    weights: [i32; N],
    /// The last difference between samples, the differences between such differences, the neighbour's last difference.
    deltas: [i32; N],
    /// How much error there would have been with a weight of 0 changed: unchanged, then each delta taken off and added.
    errors: [u32; ERRORS],
    last: u8,
    last_delta: i32,
    /// Samples seen.
    count: u32,
}

const ERRORS: usize = 11;
/// Samples between two changes of weights.
const PERIOD: u32 = 32;
const WEIGHT_MAX: i32 = 16;
const NEIGHBOUR: usize = 4;

impl<const N: usize> Predictor<N> {
    /// A predictor that counts samples from `count` on: weights are changed at 0 and at every 32nd.
    pub const fn new(count: u32) -> Predictor<N> {
        Predictor { weights: [0; N], deltas: [0; N], errors: [0; ERRORS], last: 0, last_delta: 0, count }
    }

    /// The last difference between two samples.
    pub const fn last_delta(&self) -> i32 {
        self.last_delta
    }

    /// The sample that differs from the expected one by `difference`; `neighbour` is the last delta next door.
    pub fn next(&mut self, difference: u8, neighbour: i32) -> u8 {
        self.shift(neighbour);
        let weighted = self.weights.iter().zip(&self.deltas).map(|(weight, delta)| weight * delta);
        let expected = (8 * i32::from(self.last) + weighted.sum::<i32>()) >> 3;
        let sample = (expected as u8).wrapping_sub(difference);
        self.measure(i32::from(difference as i8) << 3);
        self.last_delta = i32::from(sample.wrapping_sub(self.last) as i8);
        self.last = sample;
        if self.count.is_multiple_of(PERIOD) {
            self.adapt();
        }
        self.count = self.count.wrapping_add(1);
        sample
    }

    fn shift(&mut self, neighbour: i32) {
        let second = self.last_delta - self.deltas[0];
        let moved = N.min(NEIGHBOUR);
        self.deltas.copy_within(1..moved - 1, 2);
        self.deltas[1] = second;
        self.deltas[0] = self.last_delta;
        if let Some(delta) = self.deltas.get_mut(NEIGHBOUR) {
            *delta = neighbour;
        }
    }

    fn measure(&mut self, error: i32) {
        let (unchanged, changed) = self.errors.split_at_mut(1);
        unchanged[0] = unchanged[0].wrapping_add(error.unsigned_abs());
        for (errors, delta) in changed.chunks_exact_mut(2).zip(&self.deltas) {
            errors[0] = errors[0].wrapping_add((error - delta).unsigned_abs());
            errors[1] = errors[1].wrapping_add((error + delta).unsigned_abs());
        }
    }

    /// Moves the weight that would have made the least error.
    fn adapt(&mut self) {
        let measured = &self.errors[..1 + 2 * N];
        let best = (0..measured.len()).min_by_key(|&index| measured[index]).unwrap_or(0);
        self.errors = [0; ERRORS];
        let Some(change) = best.checked_sub(1) else {
            return;
        };
        let weight = &mut self.weights[change / 2];
        match change % 2 {
            0 if *weight >= -WEIGHT_MAX => *weight -= 1,
            1 if *weight < WEIGHT_MAX => *weight += 1,
            _ => {}
        }
    }
}
