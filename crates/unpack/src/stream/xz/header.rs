//! The header of a block, and the numbers of variable length in it: the .xz format 1.2, sections 1.2 and 3.1.

use zlib_rs::crc32::crc32;

/// The most bytes that a block header takes.
pub(super) const HEADER_BYTES_MAX: usize = 1024;

/// Values of a block header.
#[derive(Debug, Default)]
pub(super) struct Header {
    pub compressed: Option<u64>,
    pub uncompressed: Option<u64>,
    /// The filters before the last, with their properties.
    pub filters: Vec<(u64, Vec<u8>)>,
    /// The property byte of LZMA2, which is the last.
    pub lzma2: u8,
    pub crc_is_right: bool,
}

/// Why a block header is of no use.
#[derive(Debug, PartialEq)]
pub(super) enum Refused {
    Malformed,
    /// A filter that is not known, or reserved bits.
    Unsupported,
}

impl Header {
    /// Parses the whole header, size byte and checksum included.
    pub fn parse(bytes: &[u8]) -> Result<Header, Refused> {
        const LZMA2: u64 = 0x21;
        const RESERVED: u8 = 0x3c;
        let (fields, crc) = bytes.split_last_chunk::<4>().ok_or(Refused::Malformed)?;
        let crc_is_right = crc32(0, fields) == u32::from_le_bytes(*crc);
        let mut fields = fields.get(1..).ok_or(Refused::Malformed)?;
        let (&flags, rest) = fields.split_first().ok_or(Refused::Malformed)?;
        fields = rest;
        if flags & RESERVED != 0 {
            return Err(Refused::Unsupported);
        }
        let mut header = Header { crc_is_right, ..Header::default() };
        if flags & 0x40 != 0 {
            header.compressed = Some(number(&mut fields)?);
        }
        if flags & 0x80 != 0 {
            header.uncompressed = Some(number(&mut fields)?);
        }
        for _ in 0..=flags & 3 {
            header.filters.push(filter(&mut fields)?);
        }
        if fields.iter().any(|&byte| byte != 0) {
            return Err(Refused::Unsupported);
        }
        match header.filters.pop() {
            Some((LZMA2, properties)) if properties.len() == 1 => header.lzma2 = properties[0],
            _ => return Err(Refused::Unsupported),
        }
        Ok(header)
    }
}

fn filter(fields: &mut &[u8]) -> Result<(u64, Vec<u8>), Refused> {
    let id = number(fields)?;
    let length = usize::try_from(number(fields)?).map_err(|_| Refused::Malformed)?;
    let (properties, rest) = fields.split_at_checked(length).ok_or(Refused::Malformed)?;
    *fields = rest;
    Ok((id, properties.to_vec()))
}

fn number(fields: &mut &[u8]) -> Result<u64, Refused> {
    let mut number = Number::new();
    loop {
        let (&byte, rest) = fields.split_first().ok_or(Refused::Malformed)?;
        *fields = rest;
        match number.push(byte) {
            Ok(Some(value)) => return Ok(value),
            Ok(None) => {}
            Err(TooLong) => return Err(Refused::Malformed),
        }
    }
}

/// A number of variable length on its way in, seven bits a byte, the lowest first.
#[derive(Debug, Clone, Copy)]
pub(super) struct Number {
    value: u64,
    bits: u32,
}

/// A number of more than 63 bits, or with a useless last byte.
#[derive(Debug, PartialEq)]
pub(super) struct TooLong;

impl Number {
    pub const fn new() -> Number {
        Number { value: 0, bits: 0 }
    }

    /// Takes a byte; the number, if that was its last.
    pub fn push(&mut self, byte: u8) -> Result<Option<u64>, TooLong> {
        const BITS_MAX: u32 = 63;
        if self.bits >= BITS_MAX || byte == 0 && self.bits > 0 {
            return Err(TooLong);
        }
        self.value |= u64::from(byte & 0x7f) << self.bits;
        self.bits += 7;
        Ok((byte & 0x80 == 0).then_some(self.value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_one_form_only() {
        assert_eq!(number(&mut &[0x80, 0x01][..]), Ok(128));
        assert_eq!(number(&mut &[0][..]), Ok(0));
        assert_eq!(number(&mut &[0x80, 0][..]), Err(Refused::Malformed));
        assert_eq!(number(&mut &[0xff; 12][..]), Err(Refused::Malformed));
        assert_eq!(number(&mut &[0x80][..]), Err(Refused::Malformed));
    }
}
