//! Records of a program in hexadecimal, of Intel and of Motorola (S-records). Both have a count of their bytes, and end in a
//! checksum, which is not compared: a script that reads them need not.

/// The longest record: a count of one byte, and what it counts.
const BYTES_MAX: usize = 262;

/// A record.
#[derive(Debug, PartialEq)]
pub(super) struct Record {
    pub data: Vec<u8>,
    /// Whether no other follows.
    pub is_last: bool,
}

impl Record {
    /// The record that a line is.
    pub fn read(line: &[u8]) -> Option<Record> {
        match line {
            [b':', digits @ ..] => intel(&bytes(digits)?),
            [b'S' | b's', kind @ b'0'..=b'9', digits @ ..] => motorola(*kind, &bytes(digits)?),
            _ => None,
        }
    }
}

fn bytes(digits: &[u8]) -> Option<Vec<u8>> {
    if !digits.len().is_multiple_of(2) || digits.len() > 2 * BYTES_MAX {
        return None;
    }
    let digit = |byte: u8| char::from(byte).to_digit(16).map(|digit| digit as u8);
    digits.chunks_exact(2).map(|pair| Some(digit(pair[0])? << 4 | digit(pair[1])?)).collect()
}

/// Count, address of two bytes, kind, data, checksum.
fn intel(bytes: &[u8]) -> Option<Record> {
    let [count, _, _, kind, rest @ ..] = bytes else { return None };
    let (_, data) = rest.split_last()?;
    if data.len() != usize::from(*count) || *kind > 5 {
        return None;
    }
    let data = if *kind == 0 { data.to_vec() } else { Vec::new() };
    Some(Record { data, is_last: *kind == 1 })
}

/// Count, address of two to four bytes, data, checksum.
fn motorola(kind: u8, bytes: &[u8]) -> Option<Record> {
    let (count, rest) = bytes.split_first()?;
    if rest.len() != usize::from(*count) {
        return None;
    }
    let address_bytes = match kind {
        b'1'..=b'3' => usize::from(kind - b'0') + 1,
        _ => return Some(Record { data: Vec::new(), is_last: kind >= b'7' }),
    };
    let data = rest.get(address_bytes..rest.len().checked_sub(1)?)?.to_vec();
    Some(Record { data, is_last: false })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_have_the_bytes_that_they_count() {
        let data = |line: &str| Record::read(line.as_bytes()).map(|record| (record.data, record.is_last));
        assert_eq!(data(":0300300002337A1E"), Some((vec![2, 0x33, 0x7a], false)));
        assert_eq!(data(":00000001FF"), Some((vec![], true)));
        assert_eq!(
            data("S1137AF00A0A0D0000000000000000000000000061"),
            Some((b"\n\n\r\0\0\0\0\0\0\0\0\0\0\0\0\0".into(), false))
        );
        assert_eq!(data("S9030000FC"), Some((vec![], true)));
        assert_eq!(data(":0300300002337A00"), Some((vec![2, 0x33, 0x7a], false)));
        for line in
            [":0400300002337A1E", ":", "S", "S1", "S100", "S1030000FC0", ":0300300002337A1", "S102FDZZ", "S1040000FC"]
        {
            assert_eq!(data(line), None, "{line}");
        }
    }
}
