//! The filter of pictures: the three colours stand apart, as differences to what left, upper and upper-left neighbours
//! let expect; then red and blue as differences to green.

const PIXEL: usize = 3;

/// Undoes it; `stride` is three bytes more than a row has, `red_at` the place of the first red byte.
pub(super) fn undo(packed: &[u8], plain: &mut [u8], stride: usize, red_at: usize) {
    let mut differences = packed.iter();
    for colour in 0..PIXEL {
        let mut left = 0u8;
        for place in (colour..plain.len()).step_by(PIXEL) {
            let Some(difference) = differences.next() else {
                return;
            };
            let expected = match place.checked_sub(stride) {
                Some(corner) => nearest(left, plain[(corner + PIXEL).min(place)], plain[corner]),
                None => left,
            };
            left = expected.wrapping_sub(*difference);
            plain[place] = left;
        }
    }
    for place in (red_at..plain.len().saturating_sub(2)).step_by(PIXEL) {
        let green = plain[place + 1];
        plain[place] = plain[place].wrapping_add(green);
        plain[place + 2] = plain[place + 2].wrapping_add(green);
    }
}

/// The neighbour that comes nearest to `left + up - corner`.
fn nearest(left: u8, up: u8, corner: u8) -> u8 {
    let (left_error, up_error) = (up.abs_diff(corner), left.abs_diff(corner));
    let corner_error = (i32::from(left) + i32::from(up) - 2 * i32::from(corner)).unsigned_abs();
    if u32::from(left_error) <= u32::from(up_error).min(corner_error) {
        left
    } else if u32::from(up_error) <= corner_error {
        up
    } else {
        corner
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_two_rows_the_second_is_told_by_the_first() {
        // Two pixels a row; differences are subtracted.
        let packed = [246, 0, 0, 0, 0, 0, 0, 0, 255, 0, 0, 0];
        let mut plain = [0; 12];
        undo(&packed, &mut plain, 9, 0);
        assert_eq!(plain, [10, 0, 1, 10, 0, 1, 10, 0, 1, 10, 0, 1].map(|byte: u8| byte));
    }
}
