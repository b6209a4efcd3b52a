//! The compression of RAR 2: LZ77 under Huffman codes, or sound as predicted differences.

use super::lz::{DATA, Model, Stop};
use super::predictor::Predictor;
use super::slots::{LENGTHS as LENGTH_SLOTS, SHORT_DISTANCES, Slot, distances};
use crate::bits::history::History;
use crate::bits::huffman::Huffman;
use crate::bits::pushed::Bits;

const MAIN: usize = 298;
const DISTANCES: usize = 48;
const REPEATED_LENGTHS: usize = 28;
const CHANNELS_MAX: usize = 4;
/// The codes of one channel of sound: differences, and the end of a block.
const CHANNEL: usize = 257;
const CODES_MAX: usize = CHANNEL * CHANNELS_MAX;
const LENGTH_CODES: usize = 19;

const HEADER_BITS: usize = 8 * 3000;
const SYMBOL_BITS: usize = 160;

const AGAIN: usize = 256;
const OLD_DISTANCES: usize = 257;
const SHORT: usize = 261;
const END: usize = 269;
const LENGTHS: usize = 270;
/// The end of a block of sound.
const SOUND_END: usize = 256;

/// The model.
pub(super) struct Lz20 {
    lengths: [u8; CODES_MAX],
    main: Huffman,
    distances: Huffman,
    repeated_lengths: Huffman,
    slots: [Slot; DISTANCES],
    wants_codes: bool,
    /// The last four distances; the last is in front.
    old: [usize; 4],
    last_length: usize,
    sound: Option<Sound>,
}

/// A block of sound.
struct Sound {
    codes: Vec<Huffman>,
    predictors: Vec<Predictor<5>>,
    channel: usize,
    /// The last difference in the channel before.
    neighbour: i32,
}

impl Lz20 {
    pub fn new() -> Lz20 {
        Lz20 {
            lengths: [0; CODES_MAX],
            main: Huffman::new(),
            distances: Huffman::new(),
            repeated_lengths: Huffman::new(),
            slots: distances(),
            wants_codes: true,
            old: [0; 4],
            last_length: 0,
            sound: None,
        }
    }

    /// Reads the head of a block.
    fn codes(&mut self, bits: &mut Bits) -> Option<()> {
        let is_sound = bits.flag();
        if !bits.flag() {
            self.lengths = [0; CODES_MAX];
        }
        let channels = if is_sound { bits.take(2) as usize + 1 } else { 0 };
        let wanted = if is_sound { channels * CHANNEL } else { MAIN + DISTANCES + REPEATED_LENGTHS };
        self.read_codes(wanted, bits)?;
        self.wants_codes = false;
        if is_sound {
            return self.begin_sound(channels);
        }
        self.sound = None;
        let (main, rest) = self.lengths.split_at(MAIN);
        let (distances, rest) = rest.split_at(DISTANCES);
        self.main.set(main).ok()?;
        self.distances.set(distances).ok()?;
        self.repeated_lengths.set(&rest[..REPEATED_LENGTHS]).ok()
    }

    fn read_codes(&mut self, wanted: usize, bits: &mut Bits) -> Option<()> {
        let mut lengths = [0; LENGTH_CODES];
        lengths.fill_with(|| bits.take(4) as u8);
        let mut code = Huffman::new();
        code.set(&lengths).ok()?;
        let mut at = 0;
        while at < wanted {
            let (count, length) = match code.read(bits)? {
                difference @ 0..16 => (1, (self.lengths[at] + difference as u8) & 15),
                16 => (3 + bits.take(2), self.lengths[at.checked_sub(1)?]),
                17 => (3 + bits.take(3), 0),
                _ => (11 + bits.take(7), 0),
            };
            let until = wanted.min(at + count as usize);
            self.lengths[at..until].fill(length);
            at = until;
        }
        Some(())
    }

    /// Sound goes on from block to block as long as there are as many channels.
    fn begin_sound(&mut self, channels: usize) -> Option<()> {
        let mut codes = Vec::new();
        for lengths in self.lengths.chunks_exact(CHANNEL).take(channels) {
            let mut code = Huffman::new();
            code.set(lengths).ok()?;
            codes.push(code);
        }
        let before = self.sound.take();
        let mut sound = before.unwrap_or(Sound { codes: Vec::new(), predictors: Vec::new(), channel: 0, neighbour: 0 });
        sound.codes = codes;
        while sound.predictors.len() < CHANNELS_MAX {
            sound.predictors.push(Predictor::new(1));
        }
        if sound.channel >= channels {
            sound.channel = 0;
        }
        self.sound = Some(sound);
        Some(())
    }

    fn fresh(&mut self, symbol: usize, bits: &mut Bits) -> Option<(usize, usize)> {
        let length = LENGTH_SLOTS.get(symbol - LENGTHS)?.read(bits) + 3;
        let slot = *self.slots.get(self.distances.read(bits)?)?;
        let distance = slot.read(bits) + 1;
        let longer = [0x2000, 0x4_0000].iter().filter(|&&limit| distance >= limit).count();
        Some((distance, length + longer))
    }

    fn old(&mut self, index: usize, bits: &mut Bits) -> Option<(usize, usize)> {
        let distance = self.old[index];
        let slot = self.repeated_lengths.read(bits)?;
        let longer = [0x101, 0x2000, 0x4_0000].iter().filter(|&&limit| distance >= limit).count();
        Some((distance, LENGTH_SLOTS.get(slot)?.read(bits) + 2 + longer))
    }

    fn match_of(&mut self, symbol: usize, bits: &mut Bits) -> Option<(usize, usize)> {
        match symbol {
            AGAIN => Some((self.old[0], self.last_length)),
            OLD_DISTANCES..SHORT => self.old(symbol - OLD_DISTANCES, bits),
            SHORT..END => Some((SHORT_DISTANCES.get(symbol - SHORT)?.read(bits) + 1, 2)),
            _ => self.fresh(symbol, bits),
        }
    }

    fn symbol(&mut self, bits: &mut Bits, history: &mut History, end: u64) -> Result<(), Stop> {
        let symbol = self.main.read(bits).ok_or(Stop::Fault(DATA))?;
        if symbol < AGAIN {
            history.dictionary.push(symbol as u8);
            return Ok(());
        }
        if symbol == END {
            self.wants_codes = true;
            return Ok(());
        }
        let (distance, length) = self.match_of(symbol, bits).ok_or(Stop::Fault(DATA))?;
        self.old.rotate_right(1);
        self.old[0] = distance;
        self.last_length = length;
        Ok(history.copy(distance, length, end)?)
    }
}

impl Sound {
    /// The next sample, or the end of the block.
    fn sample(&mut self, bits: &mut Bits) -> Option<Option<u8>> {
        let symbol = self.codes.get(self.channel)?.read(bits)?;
        if symbol == SOUND_END {
            return Some(None);
        }
        let predictor = self.predictors.get_mut(self.channel)?;
        let sample = predictor.next(symbol as u8, self.neighbour);
        self.neighbour = predictor.last_delta();
        self.channel = if self.channel + 1 == self.codes.len() { 0 } else { self.channel + 1 };
        Some(Some(sample))
    }
}

/// Fewer bytes behind a member are none that count.
const CODES_BYTES_MIN: usize = 4;

impl Model for Lz20 {
    fn start(&mut self, solid: bool) {
        if !solid {
            *self = Lz20::new();
        }
    }

    fn run(&mut self, bits: &mut Bits, history: &mut History, end: u64) -> Stop {
        while history.position() < end {
            let most = if self.wants_codes { HEADER_BITS } else { SYMBOL_BITS };
            if !bits.has(most) || bits.is_at_end() {
                return Stop::Input;
            }
            if self.wants_codes {
                if self.codes(bits).is_none() {
                    return Stop::Fault(DATA);
                }
                continue;
            }
            let result = match self.sound.as_mut().map(|sound| sound.sample(bits)) {
                Some(Some(Some(sample))) => {
                    history.dictionary.push(sample);
                    Ok(())
                }
                Some(Some(None)) => {
                    self.wants_codes = true;
                    Ok(())
                }
                Some(None) => Err(Stop::Fault(DATA)),
                None => self.symbol(bits, history, end),
            };
            if let Err(stop) = result {
                return stop;
            }
        }
        Stop::Full
    }

    /// A member may end with the codes of the next.
    fn conclude(&mut self, bits: &mut Bits, _: &mut History) -> bool {
        if !bits.has(SYMBOL_BITS + HEADER_BITS) {
            return false;
        }
        if bits.unread().len() >= CODES_BYTES_MIN {
            let ends_block = match &mut self.sound {
                _ if self.wants_codes => true,
                Some(sound) => sound.codes.get(sound.channel).and_then(|code| code.read(bits)) == Some(SOUND_END),
                None => self.main.read(bits) == Some(END),
            };
            self.wants_codes = ends_block && self.codes(bits).is_none();
        }
        true
    }
}
