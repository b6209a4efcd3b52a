//! Mutants: lengths and other fields set to values at which sums wrap, counts explode and loops stand still, and the
//! checksums of headers mended, so that readers go on behind them.

/// A generator whose numbers are the same on every machine (xorshift64*).
pub struct Random(u64);

impl Random {
    pub const fn new(seed: u64) -> Random {
        Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    pub fn below(&mut self, end: usize) -> usize {
        (self.next() % end.max(1) as u64) as usize
    }
}

/// A mutant of a stream.
pub fn of(seed: &[u8], random: &mut Random) -> Vec<u8> {
    let mut bytes = seed.to_vec();
    if bytes.is_empty() {
        return bytes;
    }
    for _ in 0..1 + random.below(3) {
        mutate(&mut bytes, random);
    }
    mend(&mut bytes);
    bytes
}

fn mutate(bytes: &mut Vec<u8>, random: &mut Random) {
    // Most of what frames something stands in front, or at the end.
    let length = bytes.len();
    let at = match random.below(4) {
        0 => random.below(length),
        1 => length - 1 - random.below(length.min(512)),
        _ => random.below(length.min(256)),
    };
    let value = boundary(random, length, at);
    match random.below(12) {
        0..=3 => put(bytes, at, &value.to_le_bytes()[..1 << random.below(4)]),
        4..=5 => {
            let width = 1 << random.below(4);
            put(bytes, at, &value.to_be_bytes()[8 - width..]);
        }
        6 => put(bytes, at, &vint(value)),
        7 => rar5_number(bytes, value, random),
        8 => digits(bytes, at, value),
        9 => {
            // A block once more.
            let end = (at + 1 + random.below(64)).min(length);
            let block = bytes[at..end].to_vec();
            bytes.splice(at..at, block);
        }
        10 => bytes.truncate(at + 1),
        _ => bytes[at] ^= 1 << random.below(8),
    }
}

/// A value at which something happens.
fn boundary(random: &mut Random, length: usize, at: usize) -> u64 {
    let small = random.below(300) as u64;
    match random.below(14) {
        0 => 0,
        1 => 1,
        2 => small,
        3 => 0xffff,
        4 => 1 << 31,
        5 => (1 << 31) - 1,
        6 => 0xffff_ffff,
        7 => 0xffff_ffff - small,
        8 => 1 << 63,
        9 => (1 << 63) - 1,
        10 => u64::MAX - small,
        11 => length as u64,
        12 => (length - at) as u64,
        _ => u64::MAX - (length as u64).min(small * 16),
    }
}

fn put(bytes: &mut [u8], at: usize, value: &[u8]) {
    let room = bytes.len().saturating_sub(at).min(value.len());
    bytes[at..at + room].copy_from_slice(&value[..room]);
}

/// Numbers that stand as text, as those of tar, ar, cpio, PDF and XML do, filled up or cut to as many digits.
fn digits(bytes: &mut [u8], at: usize, value: u64) {
    let Some(start) = bytes[at..].iter().position(u8::is_ascii_digit).map(|found| at + found) else { return };
    let run = bytes[start..].iter().take_while(|byte| byte.is_ascii_hexdigit()).count();
    let text = if value.is_multiple_of(2) { format!("{value:0run$}") } else { "7".repeat(run) };
    put(&mut bytes[..start + run], start, text.as_bytes());
}

/// A number in groups of seven bits, the lowest first, in ten bytes.
fn vint(value: u64) -> [u8; 10] {
    std::array::from_fn(|index| ((value >> (7 * index)) as u8 & 0x7f) | if index < 9 { 0x80 } else { 0 })
}

const MARK_4: &[u8] = b"Rar!\x1a\x07\0";
const MARK_5: &[u8] = b"Rar!\x1a\x07\x01\0";

/// Reads a number in groups of seven bits; its value and its bytes.
fn read_vint(bytes: &[u8]) -> Option<(u64, usize)> {
    let length = 1 + bytes.iter().take(10).position(|byte| byte & 0x80 == 0)?;
    Some((bytes[..length].iter().rev().fold(0, |value, byte| value << 7 | u64::from(byte & 0x7f)), length))
}

/// Another number in the place of one of those in the first headers of a RAR 5 archive; the header grows with it.
fn rar5_number(bytes: &mut Vec<u8>, value: u64, random: &mut Random) {
    if !bytes.starts_with(MARK_5) {
        return;
    }
    let mut at = MARK_5.len();
    for _ in 0..random.below(3) {
        let Some((size, width)) = bytes.get(at + 4..).and_then(read_vint) else { break };
        let next = at.saturating_add(4 + width).saturating_add(usize::try_from(size).unwrap_or(usize::MAX));
        if next >= bytes.len() {
            break;
        }
        at = next;
    }
    let Some((size, width)) = bytes.get(at + 4..).and_then(read_vint) else { return };
    let mut field = at + 4 + width;
    for _ in 0..random.below(6) {
        let Some((_, width)) = bytes.get(field..).and_then(read_vint) else { return };
        field += width;
    }
    let Some((_, old)) = bytes.get(field..).and_then(read_vint) else { return };
    bytes.splice(field..field + old, vint(value));
    let size = size.wrapping_add(10).wrapping_sub(old as u64);
    if size < 1 << 14 {
        bytes.splice(at + 4..at + 4 + width, [size as u8 | 0x80, (size >> 7) as u8]);
    }
}

/// Mends the checksums that headers have.
fn mend(bytes: &mut [u8]) {
    match bytes {
        [b'R', b'a', b'r', b'!', 0x1a, 7, 1, 0, ..] => mend_rar5(bytes),
        [b'R', b'a', b'r', b'!', 0x1a, 7, 0, ..] => mend_rar4(bytes),
        [b'7', b'z', 0xbc, 0xaf, 0x27, 0x1c, ..] => mend_7z(bytes),
        [0x60, 0xea, ..] => mend_arj(bytes),
        [0x1f, 0x8b, 8, ..] => mend_gzip(bytes),
        [0xfd, b'7', b'z', b'X', b'Z', 0, ..] => mend_xz(bytes),
        [_, _, b'-', _, _, _, b'-', ..] => mend_lha(bytes),
        _ => {}
    }
}

const HEADERS_MAX: usize = 64;

fn mend_rar5(bytes: &mut [u8]) {
    let mut at = MARK_5.len();
    for _ in 0..HEADERS_MAX {
        let Some((size, width)) = bytes.get(at + 4..).and_then(read_vint) else { return };
        let end = usize::try_from(size).ok().and_then(|size| (at + 4 + width).checked_add(size));
        let Some(end) = end.filter(|end| *end <= bytes.len()) else { return };
        let crc = crc32(&bytes[at + 4..end]);
        put(bytes, at, &crc.to_le_bytes());
        let mut field = at + 4 + width;
        let mut next = || {
            let (value, width) = bytes.get(field..).and_then(read_vint).unwrap_or((0, 0));
            field += width;
            value
        };
        let (_kind, flags) = (next(), next());
        if flags & 1 != 0 {
            next();
        }
        let data = if flags & 2 != 0 { next() } else { 0 };
        let Some(next) = usize::try_from(data).ok().and_then(|data| end.checked_add(data)) else { return };
        at = next.min(bytes.len());
    }
}

fn mend_rar4(bytes: &mut [u8]) {
    let mut at = MARK_4.len();
    for _ in 0..HEADERS_MAX {
        let Some(head) = bytes.get(at..).filter(|head| head.len() >= 11) else { return };
        let (flags, size) = (le16(head, 3), usize::from(le16(head, 5)));
        let data = if flags & 0x8000 != 0 || matches!(head[2], 0x74 | 0x7a) { le32(head, 7) as usize } else { 0 };
        if size < 7 || size > head.len() {
            return;
        }
        let crc = crc32(&head[2..size]) as u16;
        put(bytes, at, &crc.to_le_bytes());
        at = (at + size + data).min(bytes.len());
    }
}

fn mend_7z(bytes: &mut [u8]) {
    if bytes.len() < 32 {
        return;
    }
    let number = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"));
    let start = usize::try_from(number(12)).ok().and_then(|offset| offset.checked_add(32));
    let end = start.and_then(|start| start.checked_add(usize::try_from(number(20)).ok()?));
    if let Some(header) = start.zip(end).and_then(|(start, end)| bytes.get(start..end)) {
        let crc = crc32(header);
        put(bytes, 28, &crc.to_le_bytes());
    }
    let crc = crc32(&bytes[12..32]);
    put(bytes, 8, &crc.to_le_bytes());
}

fn mend_arj(bytes: &mut [u8]) {
    let mut at = 0;
    for _ in 0..HEADERS_MAX {
        let Some(head) = bytes.get(at..).filter(|head| head.len() > 32 && head.starts_with(b"\x60\xea")) else {
            return;
        };
        let size = usize::from(le16(head, 2));
        let Some(header) = head.get(4..4 + size).filter(|header| header.len() >= 16) else { return };
        let (crc, data) = (crc32(header), if header[6] == 2 { 0 } else { le32(header, 12) as usize });
        put(bytes, at + 4 + size, &crc.to_le_bytes());
        // Behind the checksum the length of the extended header, which archivers leave out.
        at = (at + 4 + size + 4 + 2 + data).min(bytes.len());
    }
}

fn mend_gzip(bytes: &mut [u8]) {
    const HAS_CRC: u8 = 2;
    const OTHERS: u8 = 0x1c;
    if bytes.len() > 12 && bytes[3] & HAS_CRC != 0 && bytes[3] & OTHERS == 0 {
        let crc = crc32(&bytes[..10]) as u16;
        put(bytes, 10, &crc.to_le_bytes());
    }
}

fn mend_xz(bytes: &mut [u8]) {
    if bytes.len() < 13 {
        return;
    }
    let crc = crc32(&bytes[6..8]);
    put(bytes, 8, &crc.to_le_bytes());
    let block = (usize::from(bytes[12]) + 1) * 4;
    if let Some(header) = bytes.get(12..12 + block - 4) {
        let crc = crc32(header);
        put(bytes, 12 + block - 4, &crc.to_le_bytes());
    }
}

fn mend_lha(bytes: &mut [u8]) {
    let mut at = 0;
    for _ in 0..HEADERS_MAX {
        let Some(head) = bytes.get(at..).filter(|head| head.len() > 24 && head[2] == b'-' && head[20] < 2) else {
            return;
        };
        let end = usize::from(head[0]) + 2;
        let Some(header) = head.get(2..end) else { return };
        let (sum, data) = (header.iter().fold(0u8, |sum, &byte| sum.wrapping_add(byte)), le32(head, 7) as usize);
        bytes[at + 1] = sum;
        at = (at + end + data).min(bytes.len());
    }
}

fn le16(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes([bytes[at], bytes[at + 1]])
}

fn le32(bytes: &[u8], at: usize) -> u32 {
    u32::from(le16(bytes, at)) | u32::from(le16(bytes, at + 2)) << 16
}

fn crc32(bytes: &[u8]) -> u32 {
    let step = |crc: u32, _| if crc & 1 != 0 { crc >> 1 ^ 0xedb8_8320 } else { crc >> 1 };
    !bytes.iter().fold(!0, |crc, &byte| (0..8).fold(crc ^ u32::from(byte), step))
}

/// Streams at which readers once stood still, or took half a gigabyte.
pub fn standing() -> Vec<(&'static str, Vec<u8>)> {
    vec![
        ("rar 5 whose header and data come to nothing", rar5(u64::MAX - 16, true)),
        ("rar 5 of that kind, with a wrong checksum", rar5(u64::MAX - 16, false)),
        ("rar 4 whose header and data come to nothing", rar4()),
        ("lha whose header and data come to nothing", lha()),
        ("an encrypted document with a key of half a gigabyte", agile()),
    ]
}

/// A main header with data, of so many bytes.
fn rar5(data: u64, is_right: bool) -> Vec<u8> {
    let fields = [&[1, 2][..], &vint(data)].concat();
    let body = [&[fields.len() as u8][..], &fields].concat();
    let crc = crc32(&body) ^ u32::from(!is_right);
    [MARK_5, &crc.to_le_bytes(), &body, &[0; 64]].concat()
}

/// The header of a folder whose packed size, of 64 bits, is 2^64 less that of the header.
fn rar4() -> Vec<u8> {
    const LENGTH: u16 = 32 + 8 + 1;
    const LARGE: u16 = 0x100;
    const DIRECTORY: u16 = 0xe0;
    let packed = 0u64.wrapping_sub(u64::from(LENGTH));
    let mut header = vec![0x74];
    header.extend((LARGE | DIRECTORY | 0x8000).to_le_bytes());
    header.extend(LENGTH.to_le_bytes());
    header.extend((packed as u32).to_le_bytes());
    // Size, system, checksum, time, version, method, the name's length, attributes.
    header.extend([0; 4 + 1 + 4 + 4]);
    header.extend([29, 0x30, 1, 0, 0, 0, 0, 0]);
    header.extend(((packed >> 32) as u32).to_le_bytes());
    header.extend([0; 4]);
    header.push(b'd');
    let crc = crc32(&header) as u16;
    [MARK_4, &crc.to_le_bytes(), &header, &[0; 64]].concat()
}

/// A folder of level 2 whose packed size, of 64 bits, is 2^64 less that of the header.
fn lha() -> Vec<u8> {
    const LENGTH: u16 = 26 + 17 + 2;
    let mut header = LENGTH.to_le_bytes().to_vec();
    header.extend(b"-lhd-");
    header.extend([0; 4 + 4 + 4]);
    header.extend([0x20, 2, 0, 0, b'U']);
    header.extend((17u16 + 2).to_le_bytes());
    header.push(0x42);
    header.extend(0u64.wrapping_sub(u64::from(LENGTH)).to_le_bytes());
    header.extend([0; 8]);
    header.extend([0, 0]);
    header.extend([0; 64]);
    header
}

/// The seed of a document encrypted the agile way, with `keyBits` of ten digits and no rounds; the salt pays for the digits.
fn agile() -> Vec<u8> {
    let mut bytes = include_bytes!("../../../../fuzz/corpus/unpack_ole2/agile.xlsx")[1..].to_vec();
    let find = |bytes: &[u8], from: usize, text: &[u8]| {
        let found = bytes[from..].windows(text.len()).position(|window| window == text);
        from + found.expect("the seed says so") + text.len()
    };
    let key = find(&bytes, 0, b"encryptedKey ");
    let spins = find(&bytes, key, b"spinCount=\"");
    let end = find(&bytes, spins, b"\"") - 1;
    bytes[spins..end].fill(b'0');
    let bits = find(&bytes, key, b"keyBits=\"");
    let end = find(&bytes, bits, b"\"") - 1;
    let salt = find(&bytes, bits, b"saltValue=\"");
    let digits = b"4294967288";
    let more = digits.len() - (end - bits);
    bytes.drain(salt..salt + more);
    bytes.splice(bits..end, *digits);
    bytes
}
