//! UTF-16, whole or byte by byte.
//!
//! Surrogates without a partner become U+FFFD. [`Reader`] finds the byte order by the byte order mark, which it drops,
//! else by the label, else by the likelier order of the first two bytes; it replaces an odd last byte by U+FFFD, and
//! the functions for whole texts drop it.

use alloc::string::String;
use alloc::vec::Vec;
use core::char::{REPLACEMENT_CHARACTER, decode_utf16};

/// Byte order of a unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Endian {
    /// The lower one.
    Little,
    /// The higher one.
    Big,
}

impl Endian {
    /// The unit of two bytes.
    pub const fn unit(self, bytes: [u8; 2]) -> u16 {
        match self {
            Endian::Little => u16::from_le_bytes(bytes),
            Endian::Big => u16::from_be_bytes(bytes),
        }
    }
}

/// The text of bytes.
pub fn decode(bytes: &[u8], endian: Endian) -> String {
    let units = bytes.as_chunks().0.iter().map(|&pair| endian.unit(pair));
    decode_utf16(units).map(|character| character.unwrap_or(REPLACEMENT_CHARACTER)).collect()
}

/// A text in bytes, without a byte order mark.
pub fn encode(text: &str, endian: Endian) -> Vec<u8> {
    let bytes = |unit: u16| match endian {
        Endian::Little => unit.to_le_bytes(),
        Endian::Big => unit.to_be_bytes(),
    };
    text.encode_utf16().flat_map(bytes).collect()
}

/// Reads text byte by byte.
#[derive(Debug, Clone)]
pub struct Reader {
    order: Order,
    /// The first byte of a unit whose second has not come.
    half: Option<u8>,
    /// A first surrogate.
    high: Option<u16>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Order {
    /// Unknown before the first unit, with the order of the label for a text without a mark.
    Open(Option<Endian>),
    Known(Endian),
}

impl Reader {
    /// For text with the charset label `label`, in any case; one that names no byte order is as good as none.
    pub fn new(label: &str) -> Reader {
        let is = |name| label.trim().eq_ignore_ascii_case(name);
        let declared = if is("utf-16le") {
            Some(Endian::Little)
        } else if is("utf-16be") {
            Some(Endian::Big)
        } else {
            None
        };
        Reader { order: Order::Open(declared), half: None, high: None }
    }

    /// The byte order, where it is known and no character is begun: units can be read in runs from there.
    pub const fn between_characters(&self) -> Option<Endian> {
        match (self.half, self.high, self.order) {
            (None, None, Order::Known(endian)) => Some(endian),
            _ => None,
        }
    }

    /// Reads a byte and tells the characters that end with it: at most two.
    pub fn read(&mut self, byte: u8, tell: &mut impl FnMut(char)) {
        match self.half.take() {
            None => self.half = Some(byte),
            Some(first) => self.pair([first, byte], tell),
        }
    }

    /// Ends the text. Returns U+FFFD for an incomplete character.
    pub fn end(&mut self) -> Option<char> {
        (self.half.take().is_some() | self.high.take().is_some()).then_some(REPLACEMENT_CHARACTER)
    }

    fn pair(&mut self, bytes: [u8; 2], tell: &mut impl FnMut(char)) {
        let endian = match self.order {
            Order::Known(endian) => endian,
            Order::Open(declared) => {
                let (endian, mark) = order(bytes, declared);
                self.order = Order::Known(endian);
                if mark {
                    return;
                }
                endian
            }
        };
        self.unit(endian.unit(bytes), tell);
    }

    fn unit(&mut self, unit: u16, tell: &mut impl FnMut(char)) {
        if let Some(high) = self.high.take() {
            if let Some(Ok(character)) = decode_utf16([high, unit]).next() {
                return tell(character);
            }
            tell(REPLACEMENT_CHARACTER);
        }
        if is_high(unit) {
            self.high = Some(unit);
            return;
        }
        tell(char::from_u32(u32::from(unit)).unwrap_or(REPLACEMENT_CHARACTER));
    }
}

/// The byte order by the first unit, and whether that is a byte order mark.
fn order(first: [u8; 2], declared: Option<Endian>) -> (Endian, bool) {
    match first {
        [0xff, 0xfe] => (Endian::Little, true),
        [0xfe, 0xff] => (Endian::Big, true),
        _ if declared.is_some() => (declared.unwrap_or(Endian::Little), false),
        [0, 1..=u8::MAX] => (Endian::Big, false),
        _ => (Endian::Little, false),
    }
}

const fn is_high(unit: u16) -> bool {
    matches!(unit, 0xd800..=0xdbff)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn read(label: &str, bytes: &[u8]) -> String {
        let (mut reader, mut text) = (Reader::new(label), String::new());
        bytes.iter().for_each(|&byte| reader.read(byte, &mut |character| text.push(character)));
        text.extend(reader.end());
        text
    }

    #[test]
    fn the_byte_order_is_that_of_the_mark_then_of_the_label_then_the_likelier_one() {
        assert_eq!(read("utf-16be", b"\xff\xfea\0"), "a");
        assert_eq!(read("UTF-16BE ", b"\x20\xac"), "€");
        assert_eq!(read("utf-16", b"\0a\0b"), "ab");
        assert_eq!(read("", b"a\0b\0"), "ab");
    }

    #[test]
    fn half_a_character_is_replaced_once() {
        assert_eq!(read("utf-16le", b"\x3d\xd8\x3d\xd8\x00\xde"), "\u{fffd}😀");
        assert_eq!(read("utf-16le", b"\x3d\xd8\x00"), "\u{fffd}");
        assert_eq!(decode(b"\x3d\xd8a\0\x00\xdcb", Endian::Little), "\u{fffd}a\u{fffd}");
    }

    proptest! {
        #[test]
        fn what_is_encoded_comes_back_whole_and_byte_by_byte(text: String) {
            for (endian, label) in [(Endian::Little, "utf-16le"), (Endian::Big, "utf-16be")] {
                let bytes = encode(&text, endian);
                prop_assert_eq!(&decode(&bytes, endian), &text);
                if !text.starts_with(['\u{feff}', '\u{fffe}']) {
                    prop_assert_eq!(&read(label, &bytes), &text);
                }
            }
        }

        #[test]
        fn any_units_are_decoded_alike_whole_and_byte_by_byte(bytes: Vec<u8>) {
            let bytes = &bytes[..bytes.len() & !1];
            let marked = [b"\xff\xfe", bytes].concat();
            prop_assert_eq!(read("", &marked), decode(bytes, Endian::Little));
        }
    }
}
