//! One header block: POSIX.1-1988 ustar, and what v7, GNU and star make of it.

#![cfg_attr(not(test), deny(clippy::arithmetic_side_effects))]

/// The size of a block.
pub(crate) const BLOCK: usize = 512;

/// The most bytes of a name without its prefix.
pub(super) const NAME_BYTES: usize = 100;

/// The largest size that eleven octal digits can tell.
pub(super) const OCTAL_SIZE_MAX: u64 = 0o777_7777_7777;

/// Used fields of a header.
pub(super) struct Header {
    pub name: Vec<u8>,
    /// `None` if the field is no number.
    pub size: Option<u64>,
    pub kind: u8,
    pub is_ustar: bool,
    pub is_gnu: bool,
    pub checksum_is_right: bool,
    /// GNU sparse: the first entries of the map.
    pub sparse_entries: [u8; 96],
    /// GNU sparse: further blocks of the map follow.
    pub sparse_goes_on: bool,
    /// GNU sparse: the size of the content, holes included.
    pub sparse_size: Option<u64>,
}

impl Header {
    /// Reads the fields; garbage makes a header whose checksum is wrong.
    pub fn parse(block: &[u8; BLOCK], name_bytes_max: usize) -> Header {
        let is_ustar = block[257..262] == *b"ustar";
        let is_gnu = is_ustar && block[262] == b' ';
        let is_star = block[508..512] == *b"tar\0";
        let mut name = Vec::new();
        if is_ustar && !is_gnu {
            let prefix_length = if is_star { 131 } else { 155 };
            name.extend_from_slice(text(&block[345..][..prefix_length]));
        }
        if !name.is_empty() {
            name.push(b'/');
        }
        name.extend_from_slice(text(&block[..100]));
        name.truncate(name_bytes_max);
        Header {
            name,
            size: number(&block[124..136]),
            kind: block[156],
            is_ustar,
            is_gnu,
            checksum_is_right: checksum_is_right(block),
            sparse_entries: *block[386..].first_chunk().expect("the block is longer"),
            sparse_goes_on: block[482] != 0,
            sparse_size: number(&block[483..495]),
        }
    }
}

/// Whether `block` is a header: its checksum is right, or it says `ustar` and tells a size.
pub(crate) fn looks_like_header(block: &[u8]) -> bool {
    let Some(block) = block.first_chunk::<BLOCK>() else {
        return false;
    };
    let is_ustar = block[257..262] == *b"ustar" && number(&block[124..136]).is_some();
    is_ustar || checksum_is_right(block)
}

/// The sum of all bytes with the field itself as spaces; some old writers summed signed bytes.
fn checksum_is_right(block: &[u8; BLOCK]) -> bool {
    let Some(told) = octal(&block[148..156]).filter(|&told| told > 0) else {
        return false;
    };
    let others = || block[..148].iter().chain(&block[156..]);
    const SPACES: u64 = 8 * 32;
    let unsigned = others().map(|&byte| u64::from(byte)).fold(SPACES, u64::saturating_add);
    let signed = others().map(|&byte| i64::from(byte as i8)).fold(SPACES as i64, i64::saturating_add);
    told == unsigned || i64::try_from(told) == Ok(signed)
}

/// Up to the first NUL.
fn text(field: &[u8]) -> &[u8] {
    let end = memchr::memchr(0, field).unwrap_or(field.len());
    &field[..end]
}

/// Parses octal digits, or base 256 if the first bit is set; an empty field is zero, a negative number `None`.
pub(super) fn number(field: &[u8]) -> Option<u64> {
    match *field.first()? {
        0x80 => field[1..].iter().try_fold(0u64, |value, &byte| value.checked_mul(256)?.checked_add(u64::from(byte))),
        0x81.. => None,
        _ => octal(field),
    }
}

fn octal(field: &[u8]) -> Option<u64> {
    let digits = field.iter().skip_while(|&&byte| byte == b' ' || byte == 0);
    let mut value = 0u64;
    for &byte in digits {
        match byte {
            b'0'..=b'7' => value = value.checked_mul(8)?.checked_add(u64::from(byte & 7))?,
            b' ' | 0 => break,
            _ => return None,
        }
    }
    Some(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_octal_or_base_256() {
        assert_eq!(number(b"00000001040\0"), Some(544));
        assert_eq!(number(b"       1040 "), Some(544));
        assert_eq!(number(b"\0\0\0\0\0\0\0\0\0\0\0\0"), Some(0));
        assert_eq!(number(b"\x80\0\0\0\0\0\0\x02\0\0\0\x01"), Some(0x2_0000_0001));
        assert_eq!(number(b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff"), None);
        assert_eq!(number(b"\x80\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff"), None);
        assert_eq!(number(b"12x45678901\0"), None);
    }

    #[test]
    fn an_empty_block_is_no_header() {
        assert!(!looks_like_header(&[0; BLOCK]));
        assert!(!looks_like_header(b"ustar"));
    }
}
