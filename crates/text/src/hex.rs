//! Hexadecimal digits, two a byte, in either case.

use alloc::string::String;
use alloc::vec::Vec;

/// The value of a character that is not a digit.
const NONE: u8 = u8::MAX;

/// The value of each character, in a table: on digits of random bytes no branch can be predicted.
const VALUES: [u8; 256] = {
    let mut values = [NONE; 256];
    let mut digit = 0;
    while digit < 16 {
        values[b"0123456789abcdef"[digit] as usize] = digit as u8;
        values[b"0123456789ABCDEF"[digit] as usize] = digit as u8;
        digit += 1;
    }
    values
};

/// The value of a digit.
pub const fn digit(character: u8) -> Option<u8> {
    match VALUES[character as usize] {
        NONE => None,
        value => Some(value),
    }
}

/// The byte that two digits stand for.
pub const fn pair(high: u8, low: u8) -> Option<u8> {
    let (high, low) = (VALUES[high as usize], VALUES[low as usize]);
    if high | low == NONE { None } else { Some(high << 4 | low) }
}

/// Decodes digits; `None` after an invalid digit or an odd number of them.
pub fn decode(digits: &[u8]) -> Option<Vec<u8>> {
    let (pairs, rest) = digits.as_chunks::<2>();
    rest.is_empty().then(|| pairs.iter().map(|&[high, low]| pair(high, low)).collect())?
}

/// Bytes in digits, in lower case.
pub fn encode(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let digits = bytes.iter().flat_map(|byte| [byte >> 4, byte & 15]);
    digits.map(|digit| char::from(DIGITS[usize::from(digit)])).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_is_no_byte_is_not_decoded() {
        assert_eq!(decode(b"0aF0"), Some(vec![0x0a, 0xf0]));
        for text in ["0", "0g", "0a0", " 0a", "+1"] {
            assert_eq!(decode(text.as_bytes()), None, "{text}");
        }
    }

    #[test]
    fn each_digit_is_what_the_standard_library_says() {
        for byte in 0..=u8::MAX {
            assert_eq!(digit(byte).map(u32::from), char::from(byte).to_digit(16));
        }
    }

    proptest! {
        #[test]
        fn what_is_encoded_comes_back(bytes: Vec<u8>) {
            let text = encode(&bytes);
            prop_assert_eq!(decode(text.as_bytes()), Some(bytes.clone()));
            prop_assert_eq!(decode(text.to_ascii_uppercase().as_bytes()), Some(bytes));
        }
    }
}
