//! UTF-16 to UTF-8.
//!
//! The byte order is that of the byte order mark, else that of the label, else the likelier one by the first two bytes.
//! The mark is dropped. Surrogates without a partner and an odd last byte become U+FFFD. Memory is a few bytes.

use stream::{Event, Fuel, ReadAt, Stage, Step, Window};
use text::utf16::{Endian, Reader};

use crate::decoder::{Sink, Spill};

/// Turns UTF-16 into UTF-8. One unnamed output.
#[derive(Debug, Clone)]
pub struct Utf16 {
    reader: Reader,
    spill: Spill,
}

impl Utf16 {
    /// A converter for text with the charset label `label`, in any case; one that names no byte order is as good as
    /// none.
    pub fn new(label: &str) -> Utf16 {
        Utf16 { reader: Reader::new(label), spill: Spill::default() }
    }

    fn decode(&mut self, input: &[u8], sink: &mut Sink) -> usize {
        let mut taken = 0;
        while taken < input.len() && !sink.is_full() {
            if let Some(endian) = self.reader.between_characters() {
                taken += ascii_run(&input[taken..], endian, sink);
            }
            let Some(&byte) = input.get(taken).filter(|_| !sink.is_full()) else {
                break;
            };
            taken += 1;
            self.reader.read(byte, &mut |character| push(character, sink));
        }
        taken
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
        match spill.is_empty().then(|| self.reader.end()).flatten() {
            Some(character) => push(character, &mut Sink::new(output, &mut spill)),
            None => drop(spill.flush(output)),
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
        let unit = endian.unit(*unit);
        match u8::try_from(unit) {
            Ok(byte) if byte.is_ascii() => *room = byte,
            _ => break,
        }
        count += 1;
    }
    sink.wrote(count);
    2 * count
}

fn push(character: char, sink: &mut Sink) {
    sink.push(character.encode_utf8(&mut [0; 4]).as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;
    use stream::law::{content, holds, holds_at_every_cut, tell};
    use text::utf16::encode;

    fn decode(label: &str, input: &[u8]) -> String {
        holds(|| Utf16::new(label), input);
        holds_at_every_cut(|| Utf16::new(label), input);
        String::from_utf8(content(&tell(Utf16::new(label), input))).expect("UTF-8 is written")
    }

    #[test]
    fn the_byte_order_is_found_by_mark_label_or_first_unit() {
        let text = "aä€😀";
        for endian in [Endian::Little, Endian::Big] {
            let marked = encode("\u{feff}aä€😀", endian);
            assert_eq!(decode("", &marked), text);
            assert_eq!(decode("UTF-16LE", &marked), text);
            assert_eq!(decode("utf-16", &encode(text, endian)), text);
        }
        assert_eq!(decode("utf-16be", &encode("€", Endian::Big)), "€");
    }

    #[test]
    fn halves_become_replacement_characters() {
        assert_eq!(decode("utf-16le", b"a\0\x00\xd8b\0"), "a\u{fffd}b");
        assert_eq!(decode("utf-16le", b"\x00\xdca\0b"), "\u{fffd}a\u{fffd}");
        assert_eq!(decode("utf-16le", b"\x3d\xd8\x3d\xd8\x00\xde"), "\u{fffd}😀");
        assert_eq!(decode("utf-16le", b"\x3d\xd8"), "\u{fffd}");
    }
}
