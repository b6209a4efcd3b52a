//! Numbers of bytes: an integer, or a text with a unit.

use std::fmt;
use std::marker::PhantomData;

use serde::de::{Deserializer, Error, Visitor};

/// The units, each 1024 times the one before.
const UNITS: [&str; 5] = ["", "k", "m", "g", "t"];

/// Reads a number of bytes: `1048576`, `"1M"`, `"1MB"` or `"1 MiB"`, whatever the case; all units are powers of 1024.
///
/// # Errors
/// When it is none, or larger than `T` can hold.
pub fn size<'de, D: Deserializer<'de>, T: TryFrom<u64>>(deserializer: D) -> Result<T, D::Error> {
    deserializer.deserialize_any(Size(PhantomData))
}

/// Reads one that may be missing.
///
/// # Errors
/// As [`size`].
pub fn some_size<'de, D: Deserializer<'de>, T: TryFrom<u64>>(deserializer: D) -> Result<Option<T>, D::Error> {
    size(deserializer).map(Some)
}

struct Size<T>(PhantomData<T>);

impl<T: TryFrom<u64>> Visitor<'_> for Size<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a number of bytes, such as 65536, \"64K\" or \"1 GiB\"")
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<T, E> {
        let bytes = u64::try_from(number).ok().and_then(|number| T::try_from(number).ok());
        bytes.ok_or_else(|| E::custom(format!("{number} is out of range")))
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<T, E> {
        T::try_from(number).map_err(|_| E::custom(format!("{number} is out of range")))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<T, E> {
        let bytes = bytes(text).ok_or_else(|| E::invalid_value(serde::de::Unexpected::Str(text), &self))?;
        T::try_from(bytes).map_err(|_| E::custom(format!("{text:?} is out of range")))
    }
}

/// The bytes that a text stands for.
fn bytes(text: &str) -> Option<u64> {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    let unit = unit.trim_start().to_ascii_lowercase();
    let letter = unit.strip_suffix("ib").or(unit.strip_suffix('b')).unwrap_or(&unit);
    let power = UNITS.iter().position(|known| *known == letter)?;
    number.parse::<u64>().ok()?.checked_mul(1 << (10 * power))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_are_powers_of_1024() {
        for (text, wanted) in [
            ("0", Some(0)),
            ("12", Some(12)),
            ("12b", Some(12)),
            ("64K", Some(64 << 10)),
            ("64 kB", Some(64 << 10)),
            ("1MiB", Some(1 << 20)),
            ("2g", Some(2 << 30)),
            ("1 TiB", Some(1 << 40)),
            ("", None),
            ("M", None),
            ("-1", None),
            ("1.5M", None),
            ("1ki", None),
            ("1 M B", None),
            ("99999999999T", None),
        ] {
            assert_eq!(bytes(text), wanted, "{text:?}");
        }
    }

    #[test]
    fn what_does_not_fit_is_refused_where_it_stands() {
        #[derive(Debug, serde::Deserialize)]
        struct Settings {
            #[serde(deserialize_with = "size")]
            small: u32,
        }
        let read = |text: &str| toml::from_str::<Settings>(text);
        assert_eq!(read("small = '1K'").unwrap().small, 1024);
        for text in ["small = '4G'", "small = -1", "small = 'x'", "small = 1.5"] {
            assert_eq!(read(text).unwrap_err().span().unwrap().start, 8, "{text}");
        }
    }
}
