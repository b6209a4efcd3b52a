//! A reader of CBOR (RFC 8949), as far as authenticators write it: numbers, byte strings, texts, arrays, maps, and `false`, `true` and `null`.
//!
//! Lengths are definite, and the keys of a map differ. Other items (tags, floats, indefinite lengths) are refused. Bounds: [`DEPTH_MAX`] and
//! [`ITEMS_MAX`]; nothing is allocated by a length that the text only promises.

/// Arrays and maps within each other; CTAP allows four.
const DEPTH_MAX: u8 = 4;

/// Items of one text.
const ITEMS_MAX: u16 = 256;

/// An item.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Item<'a> {
    Number(i64),
    Bytes(&'a [u8]),
    Text(&'a str),
    /// An array, or a value without a content of interest.
    Other,
    Map(Vec<(Item<'a>, Item<'a>)>),
}

impl<'a> Item<'a> {
    /// The item at the beginning of a text, and the bytes behind it.
    pub fn read(text: &'a [u8]) -> Option<(Item<'a>, &'a [u8])> {
        let mut reader = Reader { rest: text, items_left: ITEMS_MAX };
        Some((reader.item(DEPTH_MAX)?, reader.rest))
    }

    /// The value of a key in a map.
    pub fn get(&self, key: &Item<'_>) -> Option<&Item<'a>> {
        let Item::Map(pairs) = self else { return None };
        pairs.iter().find(|(known, _)| known == key).map(|(_, value)| value)
    }

    /// The number at a key of a map.
    pub fn number(&self, key: i64) -> Option<i64> {
        match self.get(&Item::Number(key))? {
            Item::Number(number) => Some(*number),
            _ => None,
        }
    }

    /// The bytes at a key of a map.
    pub fn bytes(&self, key: &Item<'_>) -> Option<&'a [u8]> {
        match self.get(key)? {
            Item::Bytes(bytes) => Some(*bytes),
            _ => None,
        }
    }
}

struct Reader<'a> {
    rest: &'a [u8],
    items_left: u16,
}

impl<'a> Reader<'a> {
    fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.rest.split_at_checked(count)?;
        self.rest = rest;
        Some(taken)
    }

    fn item(&mut self, depth_left: u8) -> Option<Item<'a>> {
        self.items_left = self.items_left.checked_sub(1)?;
        let head = *self.take(1)?.first()?;
        let number = self.number(head & 31)?;
        match head >> 5 {
            0 => i64::try_from(number).ok().map(Item::Number),
            1 => i64::try_from(number).ok().map(|number| Item::Number(-1 - number)),
            2 => self.take(usize::try_from(number).ok()?).map(Item::Bytes),
            3 => std::str::from_utf8(self.take(usize::try_from(number).ok()?)?).ok().map(Item::Text),
            4 => self.array(number, depth_left.checked_sub(1)?),
            5 => self.map(number, depth_left.checked_sub(1)?),
            7 if (20..=22).contains(&(head & 31)) => Some(Item::Other),
            _ => None,
        }
    }

    /// The number of a head: a value, or a length.
    fn number(&mut self, low: u8) -> Option<u64> {
        let bytes = match low {
            0..24 => return Some(u64::from(low)),
            24..28 => self.take(1 << (low - 24))?,
            _ => return None,
        };
        Some(bytes.iter().fold(0, |number, &byte| number << 8 | u64::from(byte)))
    }

    fn array(&mut self, count: u64, depth_left: u8) -> Option<Item<'a>> {
        for _ in 0..count {
            self.item(depth_left)?;
        }
        Some(Item::Other)
    }

    fn map(&mut self, count: u64, depth_left: u8) -> Option<Item<'a>> {
        let mut pairs = Vec::new();
        for _ in 0..count {
            let key = self.item(depth_left)?;
            if pairs.iter().any(|(known, _)| *known == key) {
                return None;
            }
            pairs.push((key, self.item(depth_left)?));
        }
        Some(Item::Map(pairs))
    }
}

#[cfg(test)]
mod tests {
    use text::hex;

    use super::*;

    /// Texts of RFC 8949, appendix A.
    #[test]
    fn items_of_the_standard_are_read() {
        for (text, number) in [
            ("17", 23),
            ("1818", 24),
            ("1903e8", 1_000),
            ("1b000000e8d4a51000", 1_000_000_000_000),
            ("20", -1),
            ("3903e7", -1_000),
            ("3b7fffffffffffffff", i64::MIN),
        ] {
            assert_eq!(
                Item::read(&hex::decode(text.as_bytes()).unwrap()),
                Some((Item::Number(number), &b""[..])),
                "{text}"
            );
        }
        let text = hex::decode(b"a46161016162820203026161204401020304f6").unwrap();
        let (map, rest) = Item::read(&text).unwrap();
        assert_eq!((map.get(&Item::Text("b")), rest), (Some(&Item::Other), &b"\xf6"[..]));
        assert_eq!((map.get(&Item::Number(2)), map.number(2)), (Some(&Item::Text("a")), None));
        assert_eq!(map.bytes(&Item::Number(-1)), Some(&[1, 2, 3, 4][..]));
    }

    #[test]
    fn other_items_and_broken_ones_are_refused_however_they_are_cut() {
        for text in [
            "",
            "1bffffffffffffffff",
            "3bffffffffffffffff",
            "5fff",
            "9fff",
            "bfff",
            "c074",
            "f97e00",
            "e0",
            "f8ff",
            "1c",
            "61ff",
            "a201020103",
            "818181818100",
            "9bffffffffffffffff",
            "bbffffffffffffffff",
            "5bffffffffffffffff",
            "4301",
        ] {
            assert_eq!(Item::read(&hex::decode(text.as_bytes()).unwrap()), None, "{text}");
        }
        assert!(Item::read(&hex::decode(b"8181818100").unwrap()).is_some());
        let many = |count: u16| [&[0x99][..], &count.to_be_bytes(), &vec![0; usize::from(count)]].concat();
        assert!(Item::read(&many(ITEMS_MAX - 1)).is_some() && Item::read(&many(ITEMS_MAX)).is_none());
        let text = hex::decode(b"a26161016162820203").unwrap();
        for cut in 0..text.len() {
            assert_eq!(Item::read(&text[..cut]), None, "{cut}");
        }
    }
}
