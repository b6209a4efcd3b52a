//! Hexadecimal digits, two a byte, in either case.

use alloc::string::String;
use alloc::vec::Vec;

/// What a digit stands for.
pub const fn digit(character: u8) -> Option<u8> {
    match character {
        b'0'..=b'9' => Some(character - b'0'),
        b'a'..=b'f' => Some(character - b'a' + 10),
        b'A'..=b'F' => Some(character - b'A' + 10),
        _ => None,
    }
}

/// The byte that two digits stand for.
pub const fn pair(high: u8, low: u8) -> Option<u8> {
    match (digit(high), digit(low)) {
        (Some(high), Some(low)) => Some(high << 4 | low),
        _ => None,
    }
}

/// The bytes that digits stand for; nothing if one is none, or half of a byte is left over.
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
