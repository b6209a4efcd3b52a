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
}

#[derive(Debug)]
enum Form {
    Plain {
        link: u32,
        is_nano: bool,
    },
    /// The links of interfaces, and how many units a second has.
    Blocks(Vec<(u32, u64)>),
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
                let is_big = bytes.get(8..12)? == [0x1a, 0x2b, 0x3c, 0x4d];
                return Some(Capture { rest: bytes, form: Form::Blocks(Vec::new()), is_big });
            }
            _ => return None,
        };
        let link = word(bytes, 20, is_big)? & 0xffff;
        Some(Capture { rest: bytes.get(24..)?, form: Form::Plain { link, is_nano }, is_big })
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

    /// The next block; none at the end.
    fn block(&mut self) -> Option<(u32, &'a [u8])> {
        let kind = word(self.rest, 0, self.is_big)?;
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
                    let link = word(block, 8, is_big)? & 0xffff;
                    interfaces.push((link, units(block.get(16..)?, is_big)));
                }
                6 => {
                    let interface = usize::try_from(word(block, 8, is_big)?).ok()?;
                    let &(link, units) = interfaces.get(interface)?;
                    let stamp = u64::from(word(block, 12, is_big)?) << 32 | u64::from(word(block, 16, is_big)?);
                    let length = word(block, 20, is_big).filter(|length| *length <= PACKET_BYTES_MAX)?;
                    let bytes = block.get(28..28 + usize::try_from(length).ok()?)?;
                    let micros = u128::from(stamp) * 1_000_000 / u128::from(units.max(1));
                    return Some(Captured { micros: u64::try_from(micros).unwrap_or(u64::MAX), link, bytes });
                }
                0x0a0d_0d0a => interfaces.clear(),
                _ => {}
            }
        }
    }
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
        let half = |at: usize| {
            let pair = [head[at], head[at + 1]];
            if is_big { u16::from_be_bytes(pair) } else { u16::from_le_bytes(pair) }
        };
        let (code, length) = (half(0), usize::from(half(2)));
        if code == 9
            && let Some(&value) = options.get(4)
        {
            let exponent = u32::from(value & 0x7f);
            let base: u64 = if value & 0x80 == 0 { 10 } else { 2 };
            return base.checked_pow(exponent).unwrap_or(1_000_000);
        }
        let step = length.next_multiple_of(4) + 4;
        options = options.get(step..).unwrap_or_default();
    }
    1_000_000
}

fn word(bytes: &[u8], at: usize, is_big: bool) -> Option<u32> {
    let four: [u8; 4] = bytes.get(at..at + 4)?.try_into().ok()?;
    Some(if is_big { u32::from_be_bytes(four) } else { u32::from_le_bytes(four) })
}
