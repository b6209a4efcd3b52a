//! UTF-16 to UTF-8.
//!
//! The byte order is that of the byte order mark, else that of the label, else the likelier one by the first two bytes.
//! The mark is dropped. Surrogates without a partner and an odd last byte become U+FFFD. Memory is a few bytes.

use core::char::{REPLACEMENT_CHARACTER, decode_utf16};

use stream::{Event, Fuel, ReadAt, Stage, Step, Window};

use crate::decoder::{Sink, Spill};

/// Turns UTF-16 into UTF-8. One unnamed output.
#[derive(Debug, Clone)]
pub struct Utf16 {
    order: Order,
    /// The first byte of a unit whose second has not come.
    half: Option<u8>,
    /// A first surrogate.
    high: Option<u16>,
    spill: Spill,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Order {
    /// Not known before the first unit; what it is without a mark, if the label says so.
    Open(Option<Endian>),
    Known(Endian),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Endian {
    Little,
    Big,
}

impl Utf16 {
    /// A converter for text with the charset label `label`, in any case; one that names no byte order is as good as
    /// none.
    pub fn new(label: &str) -> Utf16 {
        let is = |name| label.trim().eq_ignore_ascii_case(name);
        let declared = if is("utf-16le") {
            Some(Endian::Little)
        } else if is("utf-16be") {
            Some(Endian::Big)
        } else {
            None
        };
        Utf16 { order: Order::Open(declared), half: None, high: None, spill: Spill::default() }
    }

    fn decode(&mut self, input: &[u8], sink: &mut Sink) -> usize {
        let mut taken = 0;
        while taken < input.len() && !sink.is_full() {
            if let (None, None, Order::Known(endian)) = (self.half, self.high, self.order) {
                taken += ascii_run(&input[taken..], endian, sink);
            }
            let Some(&byte) = input.get(taken).filter(|_| !sink.is_full()) else {
                break;
            };
            taken += 1;
            match self.half.take() {
                None => self.half = Some(byte),
                Some(first) => self.pair(first, byte, sink),
            }
        }
        taken
    }

    fn pair(&mut self, first: u8, second: u8, sink: &mut Sink) {
        let endian = match self.order {
            Order::Known(endian) => endian,
            Order::Open(declared) => {
                let (endian, mark) = order(first, second, declared);
                self.order = Order::Known(endian);
                if mark {
                    return;
                }
                endian
            }
        };
        self.unit(
            match endian {
                Endian::Little => u16::from_le_bytes([first, second]),
                Endian::Big => u16::from_be_bytes([first, second]),
            },
            sink,
        );
    }

    fn unit(&mut self, unit: u16, sink: &mut Sink) {
        if let Some(high) = self.high.take() {
            if let Some(Ok(character)) = decode_utf16([high, unit]).next() {
                return push(character, sink);
            }
            push(REPLACEMENT_CHARACTER, sink);
        }
        if is_high(unit) {
            self.high = Some(unit);
            return;
        }
        let character = char::from_u32(u32::from(unit));
        push(character.unwrap_or(REPLACEMENT_CHARACTER), sink);
    }
}

impl Stage for Utf16 {
    fn step(&mut self, input: &[u8], output: &mut Window, fuel: &mut Fuel) -> Step {
        if fuel.is_empty() {
            return Step::idle(0);
        }
        if self.spill.flush(output) {
            fuel.burn(output.len());
            return Step::tell(0, Event::Wrote);
        }
        let input = &input[..fuel.allows(input.len())];
        let mut spill = core::mem::take(&mut self.spill);
        let taken = self.decode(input, &mut Sink::new(output, &mut spill));
        self.spill = spill;
        fuel.burn(taken.max(output.len()).max(1));
        match output.is_empty() {
            true => Step::idle(taken),
            false => Step::tell(taken, Event::Wrote),
        }
    }

    fn finish(&mut self, _: &dyn ReadAt, output: &mut Window, fuel: &mut Fuel) -> Event {
        if fuel.is_empty() {
            return Event::Idle;
        }
        fuel.burn(1);
        let mut spill = core::mem::take(&mut self.spill);
        if spill.is_empty() && (self.half.take().is_some() | self.high.take().is_some()) {
            push(REPLACEMENT_CHARACTER, &mut Sink::new(output, &mut spill));
        } else {
            spill.flush(output);
        }
        self.spill = spill;
        match output.is_empty() {
            true => Event::End,
            false => Event::Wrote,
        }
    }
}

/// Writes the ASCII characters at the front of `input`; how many bytes they took.
fn ascii_run(input: &[u8], endian: Endian, sink: &mut Sink) -> usize {
    let (units, _) = input.as_chunks::<2>();
    let mut count = 0;
    for (unit, room) in units.iter().zip(sink.spare()) {
        let unit = match endian {
            Endian::Little => u16::from_le_bytes(*unit),
            Endian::Big => u16::from_be_bytes(*unit),
        };
        match u8::try_from(unit) {
            Ok(byte) if byte.is_ascii() => *room = byte,
            _ => break,
        }
        count += 1;
    }
    sink.wrote(count);
    2 * count
}

/// The byte order by the first unit, and whether that is a byte order mark.
fn order(first: u8, second: u8, declared: Option<Endian>) -> (Endian, bool) {
    match (first, second) {
        (0xff, 0xfe) => (Endian::Little, true),
        (0xfe, 0xff) => (Endian::Big, true),
        _ if declared.is_some() => (declared.unwrap_or(Endian::Little), false),
        (0, 1..) => (Endian::Big, false),
        _ => (Endian::Little, false),
    }
}

const fn is_high(unit: u16) -> bool {
    matches!(unit, 0xd800..=0xdbff)
}

fn push(character: char, sink: &mut Sink) {
    sink.push(character.encode_utf8(&mut [0; 4]).as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;
    use stream::law::{content, holds, holds_at_every_cut, tell};

    fn utf16(text: &str, endian: Endian) -> Vec<u8> {
        let bytes = |unit: u16| match endian {
            Endian::Little => unit.to_le_bytes(),
            Endian::Big => unit.to_be_bytes(),
        };
        text.encode_utf16().flat_map(bytes).collect()
    }

    fn decode(label: &str, input: &[u8]) -> String {
        holds(|| Utf16::new(label), input);
        holds_at_every_cut(|| Utf16::new(label), input);
        String::from_utf8(content(&tell(Utf16::new(label), input))).expect("UTF-8 is written")
    }

    #[test]
    fn the_byte_order_is_found_by_mark_label_or_first_unit() {
        let text = "aä€😀";
        for endian in [Endian::Little, Endian::Big] {
            let marked = utf16("\u{feff}aä€😀", endian);
            assert_eq!(decode("", &marked), text);
            assert_eq!(decode("UTF-16LE", &marked), text);
            assert_eq!(decode("utf-16", &utf16(text, endian)), text);
        }
        assert_eq!(decode("utf-16be", &utf16("€", Endian::Big)), "€");
    }

    #[test]
    fn halves_become_replacement_characters() {
        assert_eq!(decode("utf-16le", b"a\0\x00\xd8b\0"), "a\u{fffd}b");
        assert_eq!(decode("utf-16le", b"\x00\xdca\0b"), "\u{fffd}a\u{fffd}");
        assert_eq!(decode("utf-16le", b"\x3d\xd8\x3d\xd8\x00\xde"), "\u{fffd}😀");
        assert_eq!(decode("utf-16le", b"\x3d\xd8"), "\u{fffd}");
    }
}
