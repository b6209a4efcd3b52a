//! The model of variant H (Shkarin, 2001), as 7z and RAR have it: what is counted how much in it, and that it starts over
//! when its memory is exhausted.

use super::arena::{Arena, Gluing};
use super::estimate::{Escape, Single, high, steps, suffix_kind};
use super::model::{Escapes, ExhaustedAt, Model, Singles, Variant};

/// See [`Escape`]: which estimate by how many symbols are not masked.
const STEP_OF_SYMBOLS: [u8; 256] = steps(3);

/// The variant H.
pub(crate) struct H;

/// A model of variant H.
pub(crate) type ModelH = Model<H>;

impl ModelH {
    /// Makes a model of this order with this many bytes of memory, of which at most `codec_bytes_max` are taken; `None`
    /// for invalid values.
    pub fn new(order_max: u32, memory_bytes: u32, codec_bytes_max: usize) -> Option<ModelH> {
        Model::of(H, order_max, memory_bytes, codec_bytes_max)
    }

    fn try_update(&mut self) -> Result<(), ExhaustedAt> {
        let [symbol, frequency, ..] = self.arena.state(self.found);
        let counted = self.count_in_suffix(symbol, u32::from(frequency));
        let exhausted = ExhaustedAt(self.longest);
        if self.order_fall == 0 {
            let next = self.make_successors(true, counted, self.shortest).ok_or(exhausted)?;
            (self.shortest, self.longest) = (next, next);
            self.set_successor(self.found, next);
            return Ok(());
        }
        if !self.arena.push_text(symbol) {
            return Err(exhausted);
        }
        let mut added = self.arena.text_end();
        let mut next = self.successor(self.found);
        if next == 0 {
            self.set_successor(self.found, added);
            next = self.shortest;
        } else {
            if next <= added {
                next = self.make_successors(false, counted, self.shortest).ok_or(exhausted)?;
            }
            added = self.fall(next);
        }
        self.add_to_contexts(symbol, u32::from(frequency), added)?;
        (self.shortest, self.longest) = (next, next);
        Ok(())
    }
}

impl Variant for H {
    const MEMORY_BYTES_MAX: u32 = u32::MAX - 12 * 3;
    const GLUING: Gluing = Gluing { every: 255, run_units_max: 0xffff, last_first: true };
    const ONE_FREQUENCY_MAX: u8 = 128;
    const LOW_WORTH: u32 = 3;

    fn first_estimates(singles: &mut Singles, escapes: &mut Escapes) {
        for (times, kinds) in singles.iter_mut().enumerate() {
            for (kind, single) in kinds.iter_mut().enumerate() {
                *single = Single::first(kind, times as u32 + 2);
            }
        }
        for (step, escapes) in escapes.iter_mut().enumerate() {
            escapes.fill(Escape::new(5 * step as u32 + 10, 4));
        }
    }

    #[inline(always)]
    fn symbols(arena: &Arena, context: u32) -> u32 {
        arena.u16(context)
    }

    #[inline(always)]
    fn set_symbols(arena: &mut Arena, context: u32, count: u32) {
        arena.set_u16(context, count);
    }

    #[inline(always)]
    fn total(sum: u32, range: u32) -> Option<u32> {
        let sum = sum.max(1);
        (sum <= range).then_some(sum)
    }

    #[inline(always)]
    fn single(model: &ModelH, symbol: u8, frequency: u8) -> (usize, usize) {
        let kind = usize::from(model.successes)
            + (model.run_length >> 26 & 0x20) as usize
            + suffix_kind(model.symbols(model.suffix(model.shortest)))
            + 2 * high(symbol)
            + high(model.arena.u8(model.found));
        (usize::from(frequency).saturating_sub(1), kind)
    }

    #[inline(always)]
    fn escape(model: &ModelH, masked: u32) -> (usize, usize) {
        let context = model.shortest;
        let count = model.symbols(context);
        let open = count.wrapping_sub(masked);
        let step = STEP_OF_SYMBOLS[open.wrapping_sub(1) as usize & 0xff];
        let kind = usize::from(open < model.symbols(model.suffix(context)).wrapping_sub(count))
            + 2 * usize::from(model.sum(context) < 11 * count)
            + 4 * usize::from(masked > open)
            + high(model.arena.u8(model.found));
        (usize::from(step), kind)
    }

    #[inline(always)]
    fn is_success(frequency: u32, sum: u32) -> bool {
        2 * frequency > sum
    }

    #[inline(always)]
    fn is_context(arena: &Arena, successor: u32) -> bool {
        successor > arena.text_end()
    }

    fn update(model: &mut ModelH) {
        if model.try_update().is_err() {
            model.restart();
        }
    }

    fn gain(sum: u32, count: u32, end_count: u32) -> u32 {
        let few = 4 * count <= end_count && sum <= 8 * count;
        u32::from(2 * count < end_count) + 2 * u32::from(few)
    }

    #[inline(always)]
    fn is_great(share: u32, bound: u32) -> bool {
        share >= bound
    }

    fn inherited(frequency: u32, sum: u32, count: u32) -> u32 {
        let this = frequency.wrapping_sub(1);
        let others = sum.wrapping_sub(count).wrapping_sub(this).max(1);
        1 + match this.wrapping_mul(2) <= others {
            true => u32::from(this.wrapping_mul(5) > others),
            false => this.wrapping_mul(2).wrapping_add(others - 1) / others.wrapping_mul(2).max(1) + 1,
        }
    }

    fn left_alone(mut frequency: u32, mut escaping: u32) -> u32 {
        loop {
            escaping >>= 1;
            frequency = (frequency + 1) >> 1;
            if escaping <= 1 {
                return frequency;
            }
        }
    }
}
