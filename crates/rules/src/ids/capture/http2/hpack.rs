//! Field lists of HTTP/2 as they are compressed (RFC 7541): the static and the dynamic table, and Huffman's code.
//!
//! The dynamic table has at most 64 KiB and a list of fields 128 KiB, names and values counted; fields beyond are passed over. A
//! block that breaks the format is told, since nothing behind it can be read.

use std::collections::VecDeque;
use std::sync::Arc;

/// Bytes of the dynamic table, each entry with 32 more.
const TABLE_BYTES_MAX: usize = 64 << 10;
/// Bytes of a list of fields, each with 32 more.
const LIST_BYTES_MAX: usize = 128 << 10;
const TABLE_BYTES: usize = 4096;
const ENTRY_BYTES: usize = 32;
/// Bits of the longest code.
const BITS_MAX: usize = 30;

/// A name and its value.
pub(super) type Field = (Arc<[u8]>, Arc<[u8]>);

/// A decoder of the blocks of one side.
pub(super) struct Decoder {
    table: VecDeque<Field>,
    bytes: usize,
    bytes_max: usize,
}

impl Default for Decoder {
    fn default() -> Decoder {
        Decoder { table: VecDeque::new(), bytes: 0, bytes_max: TABLE_BYTES }
    }
}

impl Decoder {
    /// Bytes that its table holds.
    pub fn held_bytes(&self) -> usize {
        self.bytes
    }

    /// Decodes a block; none where it breaks the format.
    pub fn block(&mut self, mut block: &[u8]) -> Option<Vec<Field>> {
        let (mut fields, mut room) = (Vec::new(), LIST_BYTES_MAX);
        while let Some(&first) = block.first() {
            let field = match first {
                0x80.. => self.entry(integer(&mut block, 7)?)?,
                0x40.. => {
                    let field = self.literal(&mut block, 6)?;
                    self.insert(field.clone());
                    field
                }
                0x20.. => {
                    self.bytes_max = Some(integer(&mut block, 5)?).filter(|bytes| *bytes <= TABLE_BYTES_MAX)?;
                    self.shrink(0);
                    continue;
                }
                _ => self.literal(&mut block, 4)?,
            };
            if let Some(left) = room.checked_sub(size(&field)) {
                room = left;
                fields.push(field);
            }
        }
        Some(fields)
    }

    fn literal(&self, block: &mut &[u8], bits: u32) -> Option<Field> {
        let name = match integer(block, bits)? {
            0 => string(block)?,
            at => self.entry(at)?.0,
        };
        Some((name, string(block)?))
    }

    fn entry(&self, at: usize) -> Option<Field> {
        let at = at.checked_sub(1)?;
        match STATIC.get(at) {
            Some((name, value)) => Some((name.as_bytes().into(), value.as_bytes().into())),
            None => self.table.get(at - STATIC.len()).cloned(),
        }
    }

    fn insert(&mut self, field: Field) {
        let bytes = size(&field);
        self.shrink(bytes);
        if bytes <= self.bytes_max {
            self.bytes += bytes;
            self.table.push_front(field);
        }
    }

    /// Makes room for so many bytes.
    fn shrink(&mut self, room: usize) {
        while self.bytes + room > self.bytes_max
            && let Some(oldest) = self.table.pop_back()
        {
            self.bytes -= size(&oldest);
        }
    }
}

fn size((name, value): &Field) -> usize {
    name.len() + value.len() + ENTRY_BYTES
}

/// An integer behind the flags of its first byte, of at most four bytes more.
fn integer(block: &mut &[u8], bits: u32) -> Option<usize> {
    let mask = (1_usize << bits) - 1;
    let mut value = usize::from(take(block)?) & mask;
    if value < mask {
        return Some(value);
    }
    for shift in [0, 7, 14, 21] {
        let byte = usize::from(take(block)?);
        value += (byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}

fn take(block: &mut &[u8]) -> Option<u8> {
    let (&first, rest) = block.split_first()?;
    *block = rest;
    Some(first)
}

fn string(block: &mut &[u8]) -> Option<Arc<[u8]>> {
    let is_coded = block.first()? & 0x80 != 0;
    let length = integer(block, 7)?;
    let (text, rest) = block.split_at_checked(length)?;
    *block = rest;
    if is_coded { Some(decoded(text)?.into()) } else { Some(text.into()) }
}

/// A text in Huffman's code, whose last bits are the beginning of a code that never ends.
fn decoded(coded: &[u8]) -> Option<Vec<u8>> {
    let mut text = Vec::with_capacity(coded.len());
    let (mut code, mut length) = (0_u32, 0_usize);
    for &byte in coded {
        for shift in (0..8).rev() {
            code = code << 1 | u32::from(byte >> shift & 1);
            length += 1;
            if length > BITS_MAX {
                return None;
            }
            let row = CODES.rows[length];
            if let Some(at) = code.checked_sub(row.first).filter(|at| *at < row.count) {
                text.push(CODES.symbols[(row.start + at) as usize]);
                (code, length) = (0, 0);
            }
        }
    }
    Some(text)
}

/// Codes of one length: the first one, how many there are, and the place of their symbols.
#[derive(Clone, Copy)]
struct Row {
    first: u32,
    count: u32,
    start: u32,
}

/// The code is canonical: codes of a length follow each other in the order of their symbols.
struct Codes {
    rows: [Row; BITS_MAX + 1],
    symbols: [u8; 256],
}

const CODES: Codes = {
    let mut codes = Codes { rows: [Row { first: 0, count: 0, start: 0 }; BITS_MAX + 1], symbols: [0; 256] };
    let (mut length, mut placed, mut next) = (1, 0, 0);
    while length <= BITS_MAX {
        let (mut symbol, start) = (0, placed);
        while symbol < 256 {
            if LENGTHS[symbol] as usize == length {
                codes.symbols[placed] = symbol as u8;
                placed += 1;
            }
            symbol += 1;
        }
        let count = (placed - start) as u32;
        codes.rows[length] = Row { first: next, count, start: start as u32 };
        next = (next + count) << 1;
        length += 1;
    }
    codes
};

/// The lengths of the codes of all bytes (RFC 7541, appendix B).
#[rustfmt::skip]
const LENGTHS: [u8; 256] = [
    13, 23, 28, 28, 28, 28, 28, 28, 28, 24, 30, 28, 28, 30, 28, 28, 28, 28, 28, 28, 28, 28, 30, 28, 28, 28, 28, 28, 28, 28, 28, 28,
    6, 10, 10, 12, 13, 6, 8, 11, 10, 10, 8, 11, 8, 6, 6, 6, 5, 5, 5, 6, 6, 6, 6, 6, 6, 6, 7, 8, 15, 6, 12, 10,
    13, 6, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 8, 7, 8, 13, 19, 13, 14, 6,
    15, 5, 6, 5, 6, 5, 6, 6, 6, 5, 7, 7, 6, 6, 6, 5, 6, 7, 6, 5, 5, 6, 7, 7, 7, 7, 7, 15, 11, 14, 13, 28,
    20, 22, 20, 20, 22, 22, 22, 23, 22, 23, 23, 23, 23, 23, 24, 23, 24, 24, 22, 23, 24, 23, 23, 23, 23, 21, 22, 23, 22, 23, 23, 24,
    22, 21, 20, 22, 22, 23, 23, 21, 23, 22, 22, 24, 21, 22, 23, 23, 21, 21, 22, 21, 23, 22, 23, 23, 20, 22, 22, 22, 23, 22, 22, 23,
    26, 26, 20, 19, 22, 23, 22, 25, 26, 26, 26, 27, 27, 26, 24, 25, 19, 21, 26, 27, 27, 26, 27, 24, 21, 21, 26, 26, 28, 27, 27, 27,
    20, 24, 20, 21, 22, 21, 21, 23, 22, 22, 25, 25, 24, 24, 26, 23, 26, 27, 26, 26, 27, 27, 27, 27, 27, 28, 27, 27, 27, 27, 27, 26,
];

/// The static table (RFC 7541, appendix A).
#[rustfmt::skip]
const STATIC: [(&str, &str); 61] = [
    (":authority", ""), (":method", "GET"), (":method", "POST"), (":path", "/"), (":path", "/index.html"),
    (":scheme", "http"), (":scheme", "https"), (":status", "200"), (":status", "204"), (":status", "206"),
    (":status", "304"), (":status", "400"), (":status", "404"), (":status", "500"), ("accept-charset", ""),
    ("accept-encoding", "gzip, deflate"), ("accept-language", ""), ("accept-ranges", ""), ("accept", ""),
    ("access-control-allow-origin", ""), ("age", ""), ("allow", ""), ("authorization", ""), ("cache-control", ""),
    ("content-disposition", ""), ("content-encoding", ""), ("content-language", ""), ("content-length", ""),
    ("content-location", ""), ("content-range", ""), ("content-type", ""), ("cookie", ""), ("date", ""), ("etag", ""),
    ("expect", ""), ("expires", ""), ("from", ""), ("host", ""), ("if-match", ""), ("if-modified-since", ""),
    ("if-none-match", ""), ("if-range", ""), ("if-unmodified-since", ""), ("last-modified", ""), ("link", ""),
    ("location", ""), ("max-forwards", ""), ("proxy-authenticate", ""), ("proxy-authorization", ""), ("range", ""),
    ("referer", ""), ("refresh", ""), ("retry-after", ""), ("server", ""), ("set-cookie", ""),
    ("strict-transport-security", ""), ("transfer-encoding", ""), ("user-agent", ""), ("vary", ""), ("via", ""),
    ("www-authenticate", ""),
];

#[cfg(test)]
mod tests {
    use super::*;

    fn fields(decoder: &mut Decoder, hex: &str) -> Option<Vec<String>> {
        let digits: Vec<u8> = hex.bytes().filter_map(super::super::super::super::transform::hex).collect();
        let block: Vec<u8> = digits.chunks(2).map(|pair| pair[0] << 4 | pair[1]).collect();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        Some(decoder.block(&block)?.iter().map(|(name, value)| text(name) + "=" + &text(value)).collect())
    }

    #[test]
    fn blocks_of_the_rfc_are_read_with_their_table() {
        // RFC 7541, C.4 and C.6: requests and responses in Huffman's code; the responses with a table of 256 bytes.
        let mut requests = Decoder::default();
        let first = fields(&mut requests, "8286 8441 8cf1 e3c2 e5f2 3a6b a0ab 90f4 ff").expect("a block");
        assert_eq!(first, [":method=GET", ":scheme=http", ":path=/", ":authority=www.example.com"]);
        let second = fields(&mut requests, "8286 84be 5886 a8eb 1064 9cbf").expect("a block");
        assert_eq!(second[3..], [":authority=www.example.com", "cache-control=no-cache"]);
        let third = fields(&mut requests, "8287 85bf 4088 25a8 49e9 5ba9 7d7f 8925 a849 e95b b8e8 b4bf").expect("one");
        assert_eq!(third[3..], [":authority=www.example.com", "custom-key=custom-value"]);
        assert_eq!(requests.held_bytes(), 164);
        let mut responses = Decoder::default();
        assert_eq!(fields(&mut responses, "3fe1 01"), Some(vec![]));
        let first = "4882 6402 5885 aec3 771a 4b61 96d0 7abe 9410 54d4 44a8 2005 9504 0b81 66e0 82a6 2d1b ff6e \
            919d 29ad 1718 63c7 8f0b 97c8 e9ae 82ae 43d3";
        let first = fields(&mut responses, first).expect("a block");
        assert_eq!(first[2..], ["date=Mon, 21 Oct 2013 20:13:21 GMT", "location=https://www.example.com"]);
        let second = fields(&mut responses, "4883 640e ffc1 c0bf").expect("a block");
        assert_eq!(
            (&second[0][..], &second[1][..], responses.held_bytes()),
            (":status=307", "cache-control=private", 222)
        );
    }

    #[test]
    fn blocks_that_break_the_format_or_would_grow_are_bounded() {
        for broken in ["80", "ff ff ff ff ff ff", "be", "00", "0005 61", "3fe2 ff07", "0084 ffff ffff 00"] {
            assert_eq!(fields(&mut Decoder::default(), broken), None, "{broken}");
        }
        // An entry of 4 kB, referred to by single bytes.
        let mut block = [&[0x40, 1, b'a', 0x7f, 0xa1, 0x1e][..], &[b'x'; 4000]].concat();
        block.extend([0xbe; 100_000]);
        let fields = Decoder::default().block(&block).expect("a block");
        assert_eq!(fields.len(), LIST_BYTES_MAX / 4033);
    }
}
