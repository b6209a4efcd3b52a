//! Packets of a capture: pcap in either byte order with micro- or nanoseconds, and the blocks of pcapng that hold packets.

/// The longest packet.
const PACKET_BYTES_MAX: u32 = 256 << 10;
/// Interfaces of one section of pcapng.
const INTERFACES_MAX: usize = 256;

/// A packet as it was captured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Captured<'a> {
    pub micros: u64,
    /// The type of the link.
    pub link: u32,
    pub bytes: &'a [u8],
}

/// A capture.
#[derive(Debug)]
pub(super) struct Capture<'a> {
    rest: &'a [u8],
    form: Form,
    is_big: bool,
    /// The time of the packet before.
    micros: u64,
}

#[derive(Debug)]
enum Form {
    Plain { link: u32, is_nano: bool },
    Blocks(Vec<Interface>),
}

#[derive(Debug, Clone, Copy)]
struct Interface {
    link: u32,
    /// Bytes of a packet that are kept; 0 for all.
    bytes_max: u32,
    /// How many units a second has.
    units: u64,
}

impl<'a> Capture<'a> {
    /// Reads the head of a file; none where it is no capture.
    pub fn new(bytes: &'a [u8]) -> Option<Capture<'a>> {
        let magic: [u8; 4] = bytes.get(..4)?.try_into().ok()?;
        let (is_big, is_nano) = match magic {
            [0xd4, 0xc3, 0xb2, 0xa1] => (false, false),
            [0x4d, 0x3c, 0xb2, 0xa1] => (false, true),
            [0xa1, 0xb2, 0xc3, 0xd4] => (true, false),
            [0xa1, 0xb2, 0x3c, 0x4d] => (true, true),
            [0x0a, 0x0d, 0x0d, 0x0a] => {
                return Some(Capture { rest: bytes, form: Form::Blocks(Vec::new()), is_big: false, micros: 0 });
            }
            _ => return None,
        };
        let link = word(bytes, 20, is_big)? & 0xffff;
        Some(Capture { rest: bytes.get(24..)?, form: Form::Plain { link, is_nano }, is_big, micros: 0 })
    }

    fn plain(&mut self, link: u32, is_nano: bool) -> Option<Captured<'a>> {
        let (seconds, part) = (word(self.rest, 0, self.is_big)?, word(self.rest, 4, self.is_big)?);
        let length = word(self.rest, 8, self.is_big).filter(|length| *length <= PACKET_BYTES_MAX)?;
        let end = usize::try_from(length).ok()?.checked_add(16)?;
        let bytes = self.rest.get(16..end)?;
        self.rest = &self.rest[end..];
        let micros = u64::from(seconds) * 1_000_000 + u64::from(if is_nano { part / 1000 } else { part });
        Some(Captured { micros, link, bytes })
    }

    /// Bytes that are no packet: none once a whole file was read.
    pub fn rest(&self) -> usize {
        self.rest.len()
    }

    /// The next block; none at the end. Each section has its own byte order.
    fn block(&mut self) -> Option<(u32, &'a [u8])> {
        let kind = word(self.rest, 0, self.is_big)?;
        if kind == SECTION {
            self.is_big = self.rest.get(8..12)? == [0x1a, 0x2b, 0x3c, 0x4d];
        }
        let length = usize::try_from(word(self.rest, 4, self.is_big)?).ok()?;
        let block = self.rest.get(..length).filter(|block| block.len() >= 12)?;
        self.rest = &self.rest[length..];
        Some((kind, block))
    }

    fn blocks(&mut self) -> Option<Captured<'a>> {
        loop {
            let (kind, block) = self.block()?;
            let is_big = self.is_big;
            let Form::Blocks(interfaces) = &mut self.form else { return None };
            match kind {
                1 if interfaces.len() < INTERFACES_MAX => {
                    let (link, bytes_max) = (half(block, 8, is_big)?, word(block, 12, is_big)?);
                    let units = units(block.get(16..)?, is_big);
                    interfaces.push(Interface { link: u32::from(link), bytes_max, units });
                }
                PACKET | PACKET_OF_OLD => {
                    let number = match kind {
                        PACKET => word(block, 8, is_big)?,
                        _ => u32::from(half(block, 8, is_big)?),
                    };
                    let &Interface { link, units, .. } = interfaces.get(usize::try_from(number).ok()?)?;
                    let stamp = u64::from(word(block, 12, is_big)?) << 32 | u64::from(word(block, 16, is_big)?);
                    let micros = u128::from(stamp) * 1_000_000 / u128::from(units.max(1));
                    self.micros = u64::try_from(micros).unwrap_or(u64::MAX);
                    let bytes = content(block, 28, word(block, 20, is_big)?)?;
                    return Some(Captured { micros: self.micros, link, bytes });
                }
                PACKET_ALONE => {
                    let &Interface { link, bytes_max, .. } = interfaces.first()?;
                    let bytes_max = if bytes_max == 0 { u32::MAX } else { bytes_max };
                    let bytes = content(block, 12, word(block, 8, is_big)?.min(bytes_max))?;
                    return Some(Captured { micros: self.micros, link, bytes });
                }
                SECTION => interfaces.clear(),
                _ => {}
            }
        }
    }
}

/// Blocks of pcapng: a section, a packet, one without an interface and a time, and one as old programs wrote it.
const SECTION: u32 = 0x0a0d_0d0a;
const PACKET: u32 = 6;
const PACKET_ALONE: u32 = 3;
const PACKET_OF_OLD: u32 = 2;

/// Bytes of a packet in its block.
fn content(block: &[u8], start: usize, length: u32) -> Option<&[u8]> {
    let length = usize::try_from(length).ok().filter(|_| length <= PACKET_BYTES_MAX)?;
    block.get(start..start + length)
}

impl<'a> Iterator for Capture<'a> {
    type Item = Captured<'a>;

    fn next(&mut self) -> Option<Captured<'a>> {
        match self.form {
            Form::Plain { link, is_nano } => self.plain(link, is_nano),
            Form::Blocks(_) => self.blocks(),
        }
    }
}

/// How many units a second has, by the option of an interface.
fn units(mut options: &[u8], is_big: bool) -> u64 {
    while let Some(head) = options.get(..4) {
        let Some((code, length)) = half(head, 0, is_big).zip(half(head, 2, is_big)) else { break };
        if code == 9
            && let Some(&value) = options.get(4)
        {
            let exponent = u32::from(value & 0x7f);
            let base: u64 = if value & 0x80 == 0 { 10 } else { 2 };
            return base.checked_pow(exponent).unwrap_or(1_000_000);
        }
        let step = usize::from(length).next_multiple_of(4) + 4;
        options = options.get(step..).unwrap_or_default();
    }
    1_000_000
}

fn word(bytes: &[u8], at: usize, is_big: bool) -> Option<u32> {
    let four: [u8; 4] = bytes.get(at..at + 4)?.try_into().ok()?;
    Some(if is_big { u32::from_be_bytes(four) } else { u32::from_le_bytes(four) })
}

fn half(bytes: &[u8], at: usize, is_big: bool) -> Option<u16> {
    let two: [u8; 2] = bytes.get(at..at + 2)?.try_into().ok()?;
    Some(if is_big { u16::from_be_bytes(two) } else { u16::from_le_bytes(two) })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A block with its length on both sides.
    fn block(kind: u32, is_big: bool, words: &[&[u8]]) -> Vec<u8> {
        let number = |value: u32| if is_big { value.to_be_bytes() } else { value.to_le_bytes() };
        let content = words.concat();
        let length = u32::try_from(content.len() + 12).expect("a block");
        [&number(kind)[..], &number(length), &content, &number(length)].concat()
    }

    fn section(is_big: bool) -> Vec<u8> {
        let half = |value: u16| if is_big { value.to_be_bytes() } else { value.to_le_bytes() };
        let number = |value: u32| if is_big { value.to_be_bytes() } else { value.to_le_bytes() };
        let alone = block(PACKET_ALONE, is_big, &[&number(9), b"abcd"]);
        let old = [&half(0)[..], &half(7), &number(0), &number(5), &number(3), &number(3), b"xyz\0"].concat();
        [
            block(SECTION, is_big, &[&number(0x1a2b_3c4d), &half(1), &half(0), &[0xff; 8]]),
            block(1, is_big, &[&half(1), &half(0), &number(4)]),
            block(PACKET_OF_OLD, is_big, &[&old]),
            alone,
            block(PACKET, is_big, &[&number(0), &number(0), &number(8), &number(2), &number(2), b"hi\0\0"]),
        ]
        .concat()
    }

    #[test]
    fn blocks_are_read_in_either_byte_order() {
        let file = [section(true), section(false), section(true)].concat();
        let mut capture = Capture::new(&file).expect("a capture");
        let packets: Vec<Captured<'_>> = capture.by_ref().collect();
        let of_section = [(5, &b"xyz"[..]), (5, &b"abcd"[..]), (8, &b"hi"[..])];
        let wanted = [of_section; 3].concat().into_iter();
        let wanted: Vec<Captured<'_>> = wanted.map(|(micros, bytes)| Captured { micros, link: 1, bytes }).collect();
        assert_eq!((packets, capture.rest()), (wanted, 0));
        let mut cut = Capture::new(&file[..file.len() - 3]).expect("a capture");
        assert_eq!((cut.by_ref().count(), cut.rest()), (8, 33));
    }
}
