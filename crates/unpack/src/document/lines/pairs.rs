//! Bytes of a line as pairs of hexadecimal digits: between blanks, colons or commas, behind `\x`, or two pairs together as `xxd`
//! prints them.
//!
//! Bounds: the line.

/// Bytes of a line that count.
const BYTES_MIN: usize = 8;

/// The bytes of a line, and where their text begins and ends.
#[derive(Debug, PartialEq)]
pub(super) struct Pairs {
    pub start: usize,
    pub end: usize,
    pub bytes: Vec<u8>,
}

impl Pairs {
    /// The first run of pairs that is long enough.
    pub fn find(line: &[u8]) -> Option<Pairs> {
        let mut at = 0;
        while at < line.len() {
            let before = at.checked_sub(1).map_or(b' ', |before| line[before]);
            if before.is_ascii_alphanumeric() {
                at += 1;
                continue;
            }
            let pairs = Pairs::escaped(line, at).or_else(|| Pairs::parted(line, at));
            match pairs {
                Some(pairs) if pairs.bytes.len() >= BYTES_MIN => return Some(pairs),
                Some(pairs) => at = pairs.next(),
                None => at += 1,
            }
        }
        None
    }

    /// The run that begins there, of any length.
    pub fn at(line: &[u8], start: usize) -> Option<Pairs> {
        Pairs::escaped(line, start).or_else(|| Pairs::parted(line, start))
    }

    /// Where the search goes on: behind the first pair of a short run.
    fn next(&self) -> usize {
        self.start.saturating_add(if self.bytes.len() == 1 { 2 } else { 3 })
    }

    fn escaped(line: &[u8], start: usize) -> Option<Pairs> {
        let mut pairs = Pairs { start, end: start, bytes: Vec::new() };
        while let Some([b'\\', b'x', high, low, ..]) = line.get(pairs.end..) {
            let Some(byte) = pair(*high, *low) else { break };
            pairs.bytes.push(byte);
            pairs.end += 4;
        }
        (!pairs.bytes.is_empty()).then_some(pairs)
    }

    fn parted(line: &[u8], start: usize) -> Option<Pairs> {
        let mut pairs = Pairs { start, end: start, bytes: Vec::new() };
        let word = word(&line[start..]);
        let (width, separator) = (word.len(), line.get(start + word.len()).copied());
        if !matches!(width, 2 | 4) {
            return None;
        }
        let mut at = start;
        loop {
            let next = self::word(line.get(at..)?);
            let is_last = next.len() == 2 && width == 4;
            if next.len() != width && !is_last {
                break;
            }
            let Some(bytes) = next.chunks_exact(2).map(|two| pair(two[0], two[1])).collect::<Option<Vec<_>>>() else {
                break;
            };
            pairs.bytes.extend(bytes);
            pairs.end = at + next.len();
            let parts = line.get(pairs.end).is_some_and(|byte| Some(*byte) == separator && b" :,-".contains(byte));
            if !parts || is_last {
                break;
            }
            at = pairs.end + 1;
            // A second blank parts the halves of a line of `hexdump`.
            let is_half = pairs.bytes.len() == 8 && width == 2 && separator == Some(b' ');
            at += usize::from(is_half && line.get(at) == Some(&b' '));
        }
        (!pairs.bytes.is_empty()).then_some(pairs)
    }
}

fn pair(high: u8, low: u8) -> Option<u8> {
    let digit = |byte: u8| char::from(byte).to_digit(16).map(|digit| digit as u8);
    Some(digit(high)? << 4 | digit(low)?)
}

/// The letters and digits at the front, as far as they matter.
fn word(text: &[u8]) -> &[u8] {
    let length = text.iter().take(5).take_while(|byte| byte.is_ascii_alphanumeric()).count();
    &text[..length]
}

/// Whether a line begins with an address, as dumps have it.
pub(super) fn is_address(before: &[u8]) -> bool {
    let digits = before.iter().take_while(|byte| byte.is_ascii_hexdigit()).count();
    digits >= 4 && before[digits..].iter().all(|byte| matches!(byte, b':' | b' ' | b'\t' | b'-'))
}

/// Whether two texts differ in nothing but numbers.
pub(super) fn are_alike(mut one: &[u8], mut other: &[u8]) -> bool {
    let number = |text: &[u8]| {
        let word = text.iter().take_while(|byte| byte.is_ascii_alphanumeric()).count();
        let is_number = text[..word].iter().all(u8::is_ascii_hexdigit) && text[..word].iter().any(u8::is_ascii_digit);
        if is_number { word } else { 0 }
    };
    let mut in_word = false;
    while let ([first, one_rest @ ..], [second, other_rest @ ..]) = (one, other) {
        let (first_digits, second_digits) = if in_word { (0, 0) } else { (number(one), number(other)) };
        if first_digits > 0 && second_digits > 0 {
            (one, other, in_word) = (&one[first_digits..], &other[second_digits..], true);
            continue;
        }
        if first != second {
            return false;
        }
        in_word = first.is_ascii_alphanumeric();
        (one, other) = (one_rest, other_rest);
    }
    one.is_empty() && other.is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_of_pairs_are_found() {
        let bytes: Vec<u8> = b"PK\x03\x04\x00\x7f\x80\xff\x0a\x0b".to_vec();
        for (line, start) in [
            ("echo 50 4b 03 04 00 7f 80 ff 0a 0b>>x", 5),
            ("echo e 0100 50 4b 03 04 00 7f 80 ff 0a 0b>>x", 12),
            ("printf '\\x50\\x4b\\x03\\x04\\x00\\x7f\\x80\\xff\\x0a\\x0b' >> x", 8),
            ("00000010: 504b 0304 007f 80ff 0a0b  PK........", 10),
            ("00000010: 504B 0304 007F 80FF 0A0B  4b4c ....", 10),
            ("00000010  50 4b 03 04 00 7f 80 ff  0a 0b   |PK|", 10),
            ("    50:4b:03:04:00:7f:80:ff:0a:0b:", 4),
        ] {
            let pairs = Pairs::find(line.as_bytes()).expect(line);
            assert_eq!((pairs.start, &pairs.bytes), (start, &bytes), "{line}");
        }
        for line in
            ["echo 50 4b 03 04", "a word or two and 12 34 56 of them", "12:30:45 10:20:30", "", "504b0304007f80ff0a0b"]
        {
            assert_eq!(Pairs::find(line.as_bytes()), None, "{line}");
        }
    }

    #[test]
    fn frames_differ_in_numbers() {
        assert!(are_alike(b"echo e 0100 ", b"echo e 0a20 "));
        assert!(are_alike(b"00000000: ", b"000000f0: "));
        assert!(are_alike(b"", b""));
        assert!(!are_alike(b"echo e ", b"echo f "));
        assert!(!are_alike(b"echo 12 ", b"echo 12  "));
        assert!(is_address(b"00000010: ") && is_address(b"0010\t") && !is_address(b"echo "));
    }
}
