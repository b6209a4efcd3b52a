//! How values are kept and when they are old: the same for all implementations of the trait.

use learn::Key;

use crate::{Fuzzy, NAME_BYTES_MAX};

/// A token that was of use is noted so many seconds after the last time, so that few mails write anything.
pub const TOUCH_SECONDS: i64 = 21_600;

/// Beyond so many times the bound the oldest tokens are forgotten, however new.
pub const SURPLUS_FACTOR: u64 = 2;

/// Seconds in the future beyond which a date is ignored.
pub const AHEAD_SECONDS: i64 = 86_400;

/// Number of new marks after which old ones are forgotten.
pub const FORGET_MARKS_EVERY: u64 = 100_000;

/// Maximum time until a retry, in seconds: two days, then the wait begins anew.
pub const COME_SECONDS: i64 = 172_800;

/// Time for which a mark is kept after its last use: 36 days, for monthly mail.
pub const KEEP_SECONDS: i64 = 36 * 86_400;

/// Time within which a repeated mark is not written, and counts once.
pub const HOUR_SECONDS: i64 = 3_600;

/// Number of hours with deliveries that exempt a sender.
pub const DELIVERIES_MIN: i64 = 3;

/// Number of equal shingles from which on a text counts as reported already.
pub const SAME_PLACES: u8 = 29;

/// Maximum number of compared texts with one shingle.
pub const ROWS_MAX: i64 = 256;

/// Count of a mail with a lesson, by its own name.
pub const TAUGHT: u32 = 2;

/// A key as a number: its bytes in their order.
pub fn number(key: Key) -> i64 {
    key.iter().fold(0, |number, byte| number << 8 | i64::from(*byte))
}

/// The key of a number.
pub fn key(number: i64) -> Key {
    let [.., a, b, c, d, e] = number.to_be_bytes();
    [a, b, c, d, e]
}

/// A count as it is kept, at most `i64::MAX`.
pub fn signed(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

/// The count that was kept; 0 for what is none.
pub fn count(number: i64) -> u64 {
    u64::try_from(number).unwrap_or(0)
}

/// Cuts a name at [`NAME_BYTES_MAX`] bytes.
pub fn cut(name: &str) -> &str {
    let mut end = name.len().min(NAME_BYTES_MAX);
    while !name.is_char_boundary(end) {
        end -= 1;
    }
    &name[..end]
}

/// Returns the rows of a text: its shingles as numbers that include the position.
pub fn rows(fuzzy: &Fuzzy) -> impl Iterator<Item = i64> {
    let place = |(place, value): (u32, &u64)| value.rotate_left(place).wrapping_add(u64::from(place)).cast_signed();
    (0..).zip(&fuzzy.shingles).map(place)
}
