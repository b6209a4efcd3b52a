//! Base64 (RFC 2045, section 6.8; RFC 4648).
//!
//! White space is skipped silently, other junk with one remark. Padding ends a quantum and what follows begins a new
//! one; the first time that data follows padding is a remark. Missing padding at the end is no fault. A single character
//! left over is dropped.
//!
//! Plainly: look up each character, collect four, write three bytes. Made fast by tables that hold the six bits already
//! shifted for each of the four places, so that eight characters are decoded by eight loads and checked by one
//! comparison; everything unusual goes the plain way.

use super::Remark;
use super::sink::Sink;

/// Table value of a byte outside of the alphabet: above all 24 bits of a quantum.
const NONE: u32 = 1 << 31;

/// The six bits of each character, shifted for its place in the quantum.
static TABLES: [[u32; 256]; 4] = [table(18), table(12), table(6), table(0)];

const fn table(shift: u32) -> [u32; 256] {
    let alphabet = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut table = [NONE; 256];
    let mut value = 0;
    while value < alphabet.len() {
        table[alphabet[value] as usize] = (value as u32) << shift;
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
    /// Padding was the last thing read.
    padded: bool,
    junk_told: bool,
    padding_told: bool,
}

impl Base64 {
    /// Decodes a prefix of `input`; how long it was. After a remark nothing more is decoded.
    pub(super) fn decode(&mut self, input: &[u8], sink: &mut Sink) -> (usize, Option<Remark>) {
        let mut taken = 0;
        while taken < input.len() && !sink.is_full() {
            if self.count == 0 && !self.padded {
                taken += run(&input[taken..], sink);
            }
            let Some(&byte) = input.get(taken) else {
                break;
            };
            if sink.is_full() {
                break;
            }
            let value = TABLES[3][usize::from(byte)];
            if value != NONE {
                if self.padded && !self.padding_told {
                    self.padding_told = true;
                    return (taken, Some(Remark::DataAfterPadding));
                }
                self.character(value, sink);
            } else if byte == b'=' && self.count != 1 {
                // One character alone makes no byte; behind it padding is junk.
                self.end_quantum(sink);
                self.padded = true;
            } else if !matches!(byte, b'\r' | b'\n' | b' ' | b'\t') && !self.junk_told {
                self.junk_told = true;
                return (taken + 1, Some(Remark::Junk));
            }
            taken += 1;
        }
        (taken, None)
    }

    /// The input is over: what is left of a quantum counts.
    pub(super) fn finish(&mut self, sink: &mut Sink) {
        self.end_quantum(sink);
    }

    fn character(&mut self, value: u32, sink: &mut Sink) {
        self.padded = false;
        self.bits |= value << (18 - 6 * u32::from(self.count));
        self.count += 1;
        if self.count == 4 {
            sink.push(&self.bits.to_be_bytes()[1..]);
            self.bits = 0;
            self.count = 0;
        }
    }

    fn end_quantum(&mut self, sink: &mut Sink) {
        let bytes = usize::from(self.count.saturating_sub(1));
        sink.push(&self.bits.to_be_bytes()[1..1 + bytes]);
        self.bits = 0;
        self.count = 0;
    }
}

/// Decodes whole quanta of nothing but the alphabet; how many bytes that took.
fn run(input: &[u8], sink: &mut Sink) -> usize {
    let spare = sink.spare();
    let (pairs, _) = input.as_chunks::<8>();
    let (rooms, _) = spare.as_chunks_mut::<6>();
    let mut done = 0;
    for (pair, room) in pairs.iter().zip(rooms) {
        let [a, b, c, d, e, f, g, h] = *pair;
        let (first, second) = (quantum([a, b, c, d]), quantum([e, f, g, h]));
        if (first | second) & NONE != 0 {
            break;
        }
        let both = u64::from(first) << 40 | u64::from(second) << 16;
        let [r0, r1, r2, r3, r4, r5, ..] = both.to_be_bytes();
        *room = [r0, r1, r2, r3, r4, r5];
        done += 1;
    }
    let (mut taken, mut wrote) = (8 * done, 6 * done);
    if let (Some(single), Some(room)) = (input[taken..].first_chunk::<4>(), spare[wrote..].first_chunk_mut::<3>()) {
        let value = quantum(*single);
        if value & NONE == 0 {
            let [_, r0, r1, r2] = value.to_be_bytes();
            *room = [r0, r1, r2];
            taken += 4;
            wrote += 3;
        }
    }
    sink.wrote(wrote);
    taken
}

#[inline]
fn quantum([a, b, c, d]: [u8; 4]) -> u32 {
    TABLES[0][usize::from(a)] | TABLES[1][usize::from(b)] | TABLES[2][usize::from(c)] | TABLES[3][usize::from(d)]
}
