//! DER (X.690) as far as certificates and signatures need it: a walk over elements, nothing is copied.
//!
//! Lengths are definite and of at most four bytes, tags of one byte; anything else is not read. No recursion, so that
//! nesting costs nothing.

/// Bytes left to be read.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Der<'a>(pub(crate) &'a [u8]);

/// One element.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Element<'a> {
    pub(crate) tag: u8,
    pub(crate) content: &'a [u8],
    /// The element with its tag and its length.
    pub(crate) whole: &'a [u8],
}

pub(crate) const BOOLEAN: u8 = 0x01;
pub(crate) const INTEGER: u8 = 0x02;
pub(crate) const BIT_STRING: u8 = 0x03;
pub(crate) const OCTET_STRING: u8 = 0x04;
pub(crate) const OBJECT: u8 = 0x06;
pub(crate) const UTC_TIME: u8 = 0x17;
pub(crate) const GENERALIZED_TIME: u8 = 0x18;
pub(crate) const SEQUENCE: u8 = 0x30;
pub(crate) const SET: u8 = 0x31;

/// A tag of the context, constructed.
pub(crate) const fn context(number: u8) -> u8 {
    0xa0 | number
}

impl<'a> Der<'a> {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The next element; nothing at the end, and of what is no DER.
    pub(crate) fn next(&mut self) -> Option<Element<'a>> {
        let all = self.0;
        let (&tag, rest) = all.split_first()?;
        let (&first, mut rest) = rest.split_first()?;
        let length = match first {
            0..=0x7f => usize::from(first),
            0x81..=0x84 => {
                let (bytes, after) = rest.split_at_checked(usize::from(first & 0x7f))?;
                rest = after;
                bytes.iter().fold(0, |length, &byte| length << 8 | usize::from(byte))
            }
            _ => return None,
        };
        if tag & 0x1f == 0x1f {
            return None;
        }
        let (content, after) = rest.split_at_checked(length)?;
        self.0 = after;
        Some(Element { tag, content, whole: &all[..all.len() - after.len()] })
    }

    /// The content of the next element, which has to have this tag.
    pub(crate) fn take(&mut self, tag: u8) -> Option<&'a [u8]> {
        Some(self.next().filter(|element| element.tag == tag)?.content)
    }

    /// Content of the next element, which has to have this tag.
    pub(crate) fn enter(&mut self, tag: u8) -> Option<Der<'a>> {
        self.take(tag).map(Der)
    }

    /// The next element if it has this tag; else it stays.
    pub(crate) fn take_if(&mut self, tag: u8) -> Option<Element<'a>> {
        let element = Der(self.0).next().filter(|element| element.tag == tag)?;
        self.0 = &self.0[element.whole.len()..];
        Some(element)
    }

    /// A point in time, in seconds since 1970.
    pub(crate) fn time(&mut self) -> Option<i64> {
        let element = self.next()?;
        time(element.tag, element.content)
    }
}

/// `YYMMDDhhmm[ss]Z` of 1950 to 2049, or `YYYYMMDDhhmm[ss[.f]]Z`. Some authorities leave the seconds out; fractions of one do not
/// count.
fn time(tag: u8, text: &[u8]) -> Option<i64> {
    let (digits, zone) = text.split_at_checked(text.len().checked_sub(1)?)?;
    let digits = match tag {
        GENERALIZED_TIME => digits.split(|&byte| byte == b'.').next()?,
        _ => digits,
    };
    if zone != b"Z" || digits.len() % 2 != 0 {
        return None;
    }
    let pairs: Option<Vec<i64>> = digits.chunks(2).map(pair).collect();
    let pairs = pairs?;
    let (year, rest) = match (tag, pairs.as_slice()) {
        (UTC_TIME, [year, rest @ ..]) => (if *year < 50 { 2000 + year } else { 1900 + year }, rest),
        (GENERALIZED_TIME, [century, year, rest @ ..]) => (century * 100 + year, rest),
        _ => return None,
    };
    let (month, day, hour, minute, second) = match *rest {
        [month, day, hour, minute] => (month, day, hour, minute, 0),
        [month, day, hour, minute, second] => (month, day, hour, minute, second),
        _ => return None,
    };
    let is_time = (1..=12).contains(&month) && (1..=31).contains(&day) && hour < 24 && minute < 60 && second < 61;
    is_time.then(|| days(year, month, day) * 86_400 + hour * 3_600 + minute * 60 + second)
}

fn pair(digits: &[u8]) -> Option<i64> {
    match digits {
        [tens @ b'0'..=b'9', ones @ b'0'..=b'9'] => Some(i64::from(tens - b'0') * 10 + i64::from(ones - b'0')),
        _ => None,
    }
}

/// Days from 1970 to a day of the Gregorian calendar: years begin in March, so that the leap day is their last one.
fn days(year: i64, month: i64, day: i64) -> i64 {
    let year = if month > 2 { year } else { year - 1 };
    let months = (month + 9) % 12;
    365 * year + year / 4 - year / 100 + year / 400 + (153 * months + 2) / 5 + day - 1 - 719_468
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_follow_each_other_and_what_is_cut_is_none() {
        let mut der = Der(&[0x02, 1, 5, 0x30, 0x81, 3, 0x04, 1, 7]);
        assert_eq!(der.take(INTEGER), Some(&[5][..]));
        assert_eq!(der.take_if(OBJECT), None);
        assert_eq!(der.enter(SEQUENCE).and_then(|mut inner| inner.take(OCTET_STRING)), Some(&[7][..]));
        assert!(der.is_empty());
        for cut in [&[0x30][..], &[0x30, 0x80, 0, 0], &[0x30, 2, 0], &[0x30, 0x85, 0, 0, 0, 0, 0], &[0x1f, 0]] {
            assert_eq!(Der(cut).next(), None, "{cut:?}");
        }
    }

    #[test]
    fn times_are_seconds() {
        for (tag, text, seconds) in [
            (UTC_TIME, "700101000000Z", Some(0)),
            (UTC_TIME, "250329173442Z", Some(1_743_269_682)),
            (UTC_TIME, "2503291734Z", Some(1_743_269_640)),
            (GENERALIZED_TIME, "20990124184525Z", Some(4_072_963_525)),
            (GENERALIZED_TIME, "20240229000000Z", Some(1_709_164_800)),
            (UTC_TIME, "251329173442Z", None),
            (UTC_TIME, "250329173442", None),
            (UTC_TIME, "Z", None),
            (UTC_TIME, "", None),
        ] {
            assert_eq!(time(tag, text.as_bytes()), seconds, "{text}");
        }
    }
}
