//! Base64 (RFC 2045, section 6.8; RFC 4648).
//!
//! White space is skipped silently, other junk with one remark. Padding ends a quantum and what follows begins a new
//! one; the first time that data follows padding is a remark, another one where it does so in the same line, since some readers
//! skip padding and go on with the quantum ([`Base64::skipping`]), and one more where half of the padding is missing. Missing padding at the end is no fault. A
//! single character left over is dropped.
//!
//! Plainly: look up each character, collect four, write three bytes. Made fast by tables that hold the six bits already
//! shifted for each of the four places, so that eight characters are decoded by eight loads and checked by one
//! comparison; everything unusual goes the plain way. With the feature `simd`, lines of nothing but the alphabet are gathered
//! and decoded together by vector instructions.

use text::base64::ALPHABET;

use super::Remark;
use super::sink::Sink;

/// Table value of a byte outside of the alphabet: above all 24 bits of a quantum.
const NONE: u32 = 1 << 31;

/// The six bits of each character, shifted for its place in the quantum.
static TABLES: [[u32; 256]; 4] = [table(18), table(12), table(6), table(0)];

const fn table(shift: u32) -> [u32; 256] {
    let mut table = [NONE; 256];
    let mut value = 0;
    while value < ALPHABET.len() {
        table[ALPHABET[value] as usize] = (value as u32) << shift;
        value += 1;
    }
    table
}

#[derive(Debug, Clone, Default)]
pub(super) struct Base64 {
    /// The bits of the quantum so far, in their final places.
    bits: u32,
    /// How many characters of the quantum have been read, 0 to 3.
    count: u8,
    /// How many of its bytes have been written already.
    written: u8,
    /// The quantum that padding ended last: its bits, and how many characters it had.
    ended: (u32, u8),
    /// Padding is skipped.
    skips: bool,
    /// Padding was the last thing read.
    padded: bool,
    /// It is one character of two.
    half: bool,
    /// Nothing has come since, not even the end of a line.
    adjoins: bool,
    /// Characters to come that are not decoded together, since something unusual stands among them.
    #[cfg(feature = "simd")]
    scattered: u16,
    /// Bytes that are not of the alphabet.
    junk: u64,
    junk_told: bool,
    padding_told: bool,
    half_told: bool,
}

impl Base64 {
    /// Another reading from here on: the quantum that padding has ended goes on, and padding is skipped.
    pub(super) fn skipping(&self) -> Base64 {
        let (bits, count) = self.ended;
        Base64 {
            bits,
            count,
            written: count.saturating_sub(1),
            skips: true,
            junk_told: self.junk_told,
            ..Base64::default()
        }
    }

    /// How many bytes were not of the alphabet.
    pub(super) const fn junk_bytes(&self) -> u64 {
        self.junk
    }

    /// Decodes a prefix of `input`; how long it was. After a remark nothing more is decoded.
    pub(super) fn decode(&mut self, input: &[u8], sink: &mut Sink) -> (usize, Option<Remark>) {
        let mut taken = 0;
        while taken < input.len() && !sink.is_full() {
            if self.count == 0 && !self.padded {
                taken += self.run(&input[taken..], sink);
            }
            let Some(&byte) = input.get(taken) else {
                break;
            };
            if sink.is_full() {
                break;
            }
            let value = TABLES[3][usize::from(byte)];
            if value != NONE {
                if self.padded && self.half && !self.half_told {
                    self.half_told = true;
                    return (taken, Some(Remark::DataInPadding));
                }
                if self.padded && !self.padding_told {
                    self.padding_told = true;
                    let remark = if self.adjoins { Remark::DataBesidePadding } else { Remark::DataAfterPadding };
                    return (taken, Some(remark));
                }
                self.character(value, sink);
            } else if byte == b'=' && self.skips {
                // It is nothing here.
            } else if byte == b'=' && self.count != 1 {
                // One character alone makes no byte; behind it padding is junk.
                self.half = self.count == 2;
                if self.count > 0 {
                    self.ended = (self.bits, self.count);
                }
                self.end_quantum(sink);
                (self.padded, self.adjoins) = (true, true);
            } else if matches!(byte, b'\r' | b'\n') {
                self.adjoins = false;
            } else if !matches!(byte, b' ' | b'\t') {
                self.junk += 1;
                if !core::mem::replace(&mut self.junk_told, true) {
                    return (taken + 1, Some(Remark::Junk));
                }
            }
            taken += 1;
        }
        (taken, None)
    }

    /// Ends the input; an incomplete quantum counts.
    pub(super) fn finish(&mut self, sink: &mut Sink) {
        self.end_quantum(sink);
    }

    fn character(&mut self, value: u32, sink: &mut Sink) {
        self.padded = false;
        self.bits |= value << (18 - 6 * u32::from(self.count));
        self.count += 1;
        if self.count == 4 {
            self.end_quantum(sink);
        }
    }

    fn end_quantum(&mut self, sink: &mut Sink) {
        let bytes = &self.bits.to_be_bytes()[1..1 + usize::from(self.count.saturating_sub(1))];
        sink.push(&bytes[usize::from(self.written)..]);
        (self.bits, self.count, self.written) = (0, 0, 0);
    }
}

#[cfg(feature = "simd")]
impl Base64 {
    /// Decodes whole quanta of nothing but the alphabet, and the ends of lines between them; how many bytes that took.
    fn run(&mut self, input: &[u8], sink: &mut Sink) -> usize {
        let mut taken = 0;
        while self.scattered == 0 {
            match together(&input[taken..], sink) {
                Some(0) => break,
                Some(count) => taken += count,
                None => self.scattered = GATHERED_BYTES as u16,
            }
        }
        let rest = &input[taken..];
        let rest = if self.scattered == 0 { rest } else { &rest[..rest.len().min(self.scattered.into())] };
        let count = run(rest, sink);
        self.scattered = self.scattered.saturating_sub(count.max(1) as u16);
        taken + count
    }
}

/// The most characters that are decoded together, and the fewest for which it pays.
#[cfg(feature = "simd")]
const GATHERED_BYTES: usize = 4096;
#[cfg(feature = "simd")]
const GATHERED_BYTES_MIN: usize = 128;

/// Decodes lines of nothing but the alphabet together; how many bytes that took. None if there is something else among them.
#[cfg(feature = "simd")]
fn together(input: &[u8], sink: &mut Sink) -> Option<usize> {
    let spare = sink.spare();
    let room = (spare.len() / 3 * 4).min(GATHERED_BYTES);
    if input.len().min(room) < GATHERED_BYTES_MIN {
        return Some(0);
    }
    let mut gathered = [0; GATHERED_BYTES];
    let (count, taken) = gather(input, &mut gathered[..room]);
    if count < GATHERED_BYTES_MIN {
        return Some(0);
    }
    let out = base64_simd::Out::from_slice(&mut spare[..count / 4 * 3]);
    let wrote = base64_simd::STANDARD_NO_PAD.decode(&gathered[..count], out).ok()?.len();
    sink.wrote(wrote);
    Some(taken)
}

/// Copies whole quanta without the ends of lines between them; how many characters, and how many bytes of the input.
#[cfg(feature = "simd")]
fn gather(input: &[u8], gathered: &mut [u8]) -> (usize, usize) {
    let (mut count, mut taken, mut length) = (0, 0, 0);
    while count < gathered.len() {
        let rest = &input[taken..];
        let rest = &rest[..rest.len().min(gathered.len() - count)];
        // Most lines are as long as the one before; one that ended earlier is noticed when it is decoded.
        if !matches!(rest.get(length), Some(b'\r' | b'\n')) || length == 0 {
            length = memchr::memchr2(b'\r', b'\n', rest).unwrap_or(rest.len());
        }
        gathered[count..count + length].copy_from_slice(&rest[..length]);
        (count, taken) = (count + length, taken + length);
        taken += match &input[taken..] {
            [b'\r', b'\n', ..] => 2,
            [b'\n', ..] => 1,
            _ => break,
        };
    }
    // Leaves an incomplete quantum in place.
    for _ in 0..count % 4 {
        taken = input[..taken].iter().rposition(|byte| !matches!(byte, b'\r' | b'\n')).unwrap_or(0);
    }
    (count / 4 * 4, taken)
}

#[cfg(not(feature = "simd"))]
impl Base64 {
    /// Decodes whole quanta of nothing but the alphabet, and the ends of lines between them; how many bytes that took.
    fn run(&mut self, input: &[u8], sink: &mut Sink) -> usize {
        run(input, sink)
    }
}

/// Decodes eight and four characters at a time, and the ends of lines between them; how many bytes that took.
fn run(input: &[u8], sink: &mut Sink) -> usize {
    let spare = sink.spare();
    let (mut taken, mut wrote) = (0, 0);
    loop {
        let (pairs, rooms) = (input[taken..].as_chunks::<8>().0, spare[wrote..].as_chunks_mut::<6>().0);
        let done = pairs.iter().zip(rooms).position(|(pair, room)| !decode_pair(pair, room));
        let done = done.unwrap_or(pairs.len().min(spare[wrote..].len() / 6));
        (taken, wrote) = (taken + 8 * done, wrote + 6 * done);
        if let (Some(single), Some(room)) = (input[taken..].first_chunk(), spare[wrote..].first_chunk_mut()) {
            let value = quantum(*single);
            if value & NONE == 0 {
                let [_, bytes @ ..] = value.to_be_bytes();
                *room = bytes;
                (taken, wrote) = (taken + 4, wrote + 3);
            }
        }
        match &input[taken..] {
            [b'\r', b'\n', ..] => taken += 2,
            [b'\n', ..] => taken += 1,
            _ => break,
        }
    }
    sink.wrote(wrote);
    taken
}

/// Decodes two quanta; whether they are of nothing but the alphabet.
#[inline(always)]
fn decode_pair(pair: &[u8; 8], room: &mut [u8; 6]) -> bool {
    let [a, b, c, d, e, f, g, h] = *pair;
    let (first, second) = (quantum([a, b, c, d]), quantum([e, f, g, h]));
    let [_, _, bytes @ ..] = (u64::from(first) << 24 | u64::from(second)).to_be_bytes();
    *room = bytes;
    (first | second) & NONE == 0
}

#[inline]
fn quantum([a, b, c, d]: [u8; 4]) -> u32 {
    TABLES[0][usize::from(a)] | TABLES[1][usize::from(b)] | TABLES[2][usize::from(c)] | TABLES[3][usize::from(d)]
}
