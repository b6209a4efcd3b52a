//! Filters of tables and sound: each channel's bytes stand together, as differences.

use crate::archive::rar::predictor::Predictor;

/// Plain differences to the byte before in the channel.
pub(super) fn bytes(packed: &[u8], plain: &mut [u8], channels: usize) {
    let mut differences = packed.iter();
    for channel in 0..channels {
        let mut last = 0u8;
        for (byte, difference) in plain.iter_mut().skip(channel).step_by(channels).zip(&mut differences) {
            last = last.wrapping_sub(*difference);
            *byte = last;
        }
    }
}

/// Undoes the differences from the prediction of the channel's [`Predictor`].
pub(super) fn audio(packed: &[u8], plain: &mut [u8], channels: usize) {
    let mut differences = packed.iter();
    for channel in 0..channels {
        let mut predictor = Predictor::<3>::new(0);
        for (byte, difference) in plain.iter_mut().skip(channel).step_by(channels).zip(&mut differences) {
            *byte = predictor.next(*difference, 0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differences_add_up_in_each_channel() {
        let mut plain = [0; 5];
        bytes(&[255, 255, 255, 246, 1], &mut plain, 2);
        assert_eq!(plain, [1, 10, 2, 9, 3]);
    }
}
