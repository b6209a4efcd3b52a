//! The model of variant I, revision 1 (Shkarin, 2002), as zip has it.
//!
//! It differs from variant H in its increments, in that a context may lack the successor that a longer one has, and in
//! the action when the memory is exhausted: the model starts over, or is cut off (see `restore`).
//!
//! Freezing the model, the third action, is not supported: revisions of the format disagree about it.

mod restore;

use super::arena::{Arena, Gluing};
use super::estimate::{Escape, FREQUENCY_MAX, Single, high, steps, suffix_kind};
use super::model::{Escapes, ExhaustedAt, Model, Singles, Variant};

/// The flags of a context, in its second byte: the frequencies have been halved; a symbol is high; the symbol that led here
/// was. They index estimates.
const FLAGS: u32 = 1;
const RESCALED: u8 = 4;
const LED_BY_HIGH: u8 = 16;

/// Index of the estimate by the number of symbols, or the frequency of the one symbol.
const STEPS: [u8; 260] = steps(5);
const FIRST_STEP: usize = 3;
const SINGLES: usize = 25;
const ESCAPES: usize = 24;

/// Action when the memory is exhausted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Restore {
    Restart,
    CutOff,
}

/// The variant I.
pub(crate) struct I {
    restore: Restore,
}

/// A model of variant I.
pub(crate) type ModelI = Model<I>;

impl ModelI {
    /// Makes a model of this order with this many bytes of memory, of which at most `codec_bytes_max` are taken; `None`
    /// for invalid values.
    pub fn new(order_max: u32, memory_bytes: u32, restore: Restore, codec_bytes_max: usize) -> Option<ModelI> {
        Model::of(I { restore }, order_max, memory_bytes, codec_bytes_max)
    }

    fn try_update(&mut self) -> Result<(), ExhaustedAt> {
        let [symbol, frequency, ..] = self.arena.state(self.found);
        let mut next = self.successor(self.found);
        let counted = self.count_in_suffix(symbol, u32::from(frequency));
        let exhausted = ExhaustedAt(self.longest);
        if self.order_fall == 0 && next != 0 {
            let Some(made) = self.make_successors(true, counted, self.shortest) else {
                self.set_successor(self.found, 0);
                return Err(exhausted);
            };
            self.set_successor(self.found, made);
            (self.shortest, self.longest) = (made, made);
            return Ok(());
        }
        if !self.arena.push_text(symbol) {
            return Err(exhausted);
        }
        if next == 0 {
            next = self.reduce_order(counted, self.shortest).ok_or(exhausted)?;
        } else if next < self.arena.units_start() {
            next = self.make_successors(false, counted, self.shortest).ok_or(exhausted)?;
        }
        let added = self.fall(next);
        self.add_to_contexts(symbol, u32::from(frequency), added)?;
        (self.shortest, self.longest) = (next, next);
        Ok(())
    }

    /// The symbol has no successor yet, in longer contexts neither: it gets the text, and the next context is found
    /// further down.
    fn reduce_order(&mut self, mut counted: Option<u32>, start: u32) -> Option<u32> {
        let symbol = self.arena.u8(self.found);
        let branch = self.arena.text_end();
        self.set_successor(self.found, branch);
        self.order_fall += 1;
        let mut context = start;
        let state = loop {
            if self.suffix(context) == 0 {
                return Some(context);
            }
            context = self.suffix(context);
            let state = counted.take().unwrap_or_else(|| self.count_on_the_way_down(context, symbol));
            if self.successor(state) != 0 {
                break state;
            }
            self.set_successor(state, branch);
            self.order_fall += 1;
        };
        if self.successor(state) <= branch {
            let found = std::mem::replace(&mut self.found, state);
            let made = self.make_successors(false, None, context);
            self.set_successor(state, made.unwrap_or(0));
            self.found = found;
        }
        let successor = self.successor(state);
        if self.order_fall == 1 && start == self.longest {
            self.set_successor(self.found, successor);
            self.arena.pop_text();
        }
        (successor != 0).then_some(successor)
    }

    /// Counts the symbol once more in a context that is passed; returns its state.
    fn count_on_the_way_down(&mut self, context: u32, symbol: u8) -> u32 {
        let state = self.state_of(context, symbol);
        if self.symbols(context) > 1 {
            self.count_more(context, state, 2);
        } else {
            let frequency = self.frequency(state);
            self.set_frequency(state, frequency + u32::from(frequency < 32));
        }
        state
    }
}

impl I {
    #[inline(always)]
    fn flags(arena: &Arena, context: u32) -> u8 {
        arena.u8(context + FLAGS)
    }

    #[inline(always)]
    fn set_flags(arena: &mut Arena, context: u32, flags: u8) {
        arena.set_u8(context + FLAGS, flags);
    }
}

impl Variant for I {
    const MEMORY_BYTES_MAX: u32 = 256 << 20;
    const GLUING: Gluing = Gluing { every: 1 << 13, run_units_max: u32::MAX, last_first: false };
    const ONE_FREQUENCY_MAX: u8 = 196;
    const LOW_WORTH: u32 = 4;

    fn first_estimates(singles: &mut Singles, escapes: &mut Escapes) {
        let behind = |step: usize| STEPS.iter().position(|&other| usize::from(other) > step).unwrap_or(0) as u32;
        for (step, kinds) in singles[..SINGLES].iter_mut().enumerate() {
            for (kind, single) in kinds.iter_mut().enumerate() {
                *single = Single::first(kind, behind(step) + 1);
            }
        }
        for (step, escapes) in escapes[..ESCAPES].iter_mut().enumerate() {
            let symbols = behind(step + FIRST_STEP) - FIRST_STEP as u32;
            escapes.fill(Escape::new(2 * symbols + 5, 7));
        }
    }

    #[inline(always)]
    fn symbols(arena: &Arena, context: u32) -> u32 {
        u32::from(arena.u8(context)) + 1
    }

    #[inline(always)]
    fn set_symbols(arena: &mut Arena, context: u32, count: u32) {
        arena.set_u8(context, (count - 1) as u8);
    }

    #[inline(always)]
    fn total(sum: u32, range: u32) -> Option<u32> {
        Some(sum.min(range).max(1))
    }

    #[inline(always)]
    fn single(model: &ModelI, _symbol: u8, frequency: u8) -> (usize, usize) {
        let kind = usize::from(model.successes)
            + (model.run_length >> 26 & 0x20) as usize
            + suffix_kind(model.symbols(model.suffix(model.shortest)))
            + usize::from(I::flags(&model.arena, model.shortest));
        let step = usize::from(STEPS[usize::from(frequency.saturating_sub(1))]);
        (step.min(SINGLES - 1), kind)
    }

    #[inline(always)]
    fn escape(model: &ModelI, masked: u32) -> (usize, usize) {
        let context = model.shortest;
        let count = model.symbols(context);
        let step = usize::from(STEPS[count as usize + 1]).saturating_sub(FIRST_STEP);
        let kind = usize::from(model.sum(context) > 11 * count)
            + 2 * usize::from(2 * count < model.symbols(model.suffix(context)) + masked)
            + usize::from(I::flags(&model.arena, context));
        (step.min(ESCAPES - 1), kind)
    }

    #[inline(always)]
    fn is_success(frequency: u32, sum: u32) -> bool {
        2 * frequency >= sum
    }

    #[inline(always)]
    fn is_context(arena: &Arena, successor: u32) -> bool {
        successor >= arena.units_start()
    }

    fn update(model: &mut ModelI) {
        if let Err(ExhaustedAt(context)) = model.try_update() {
            model.restore(context);
        }
    }

    fn gain(_sum: u32, count: u32, end_count: u32) -> u32 {
        u32::from(3 * (count - 1) + 1 < end_count - 1)
    }

    #[inline(always)]
    fn is_great(share: u32, bound: u32) -> bool {
        share > bound
    }

    #[inline(always)]
    fn has_added(arena: &mut Arena, context: u32, symbol: u8) {
        I::set_flags(arena, context, I::flags(arena, context) | high(symbol) as u8);
    }

    #[inline(always)]
    fn has_made(arena: &mut Arena, context: u32, symbol: u8, next: u8) {
        I::set_flags(arena, context, (2 * high(symbol) + high(next)) as u8);
    }

    fn on_the_way(model: &mut ModelI, context: u32, symbol: u8) -> u32 {
        let state = model.state_of(context, symbol);
        if model.symbols(context) > 1 {
            model.count_more(context, state, 1);
        } else {
            let frequency = model.frequency(state);
            let alone = model.symbols(model.suffix(context)) == 1;
            model.set_frequency(state, frequency + u32::from(alone && frequency < 24));
        }
        state
    }

    fn inherited(frequency: u32, sum: u32, count: u32) -> u32 {
        let this = frequency.wrapping_sub(1);
        let others = sum.wrapping_sub(count - 1).wrapping_sub(this).max(1);
        1 + match this.wrapping_mul(2) <= others {
            true => u32::from(this.wrapping_mul(5) > others),
            false => this.wrapping_add(others.wrapping_mul(2)).wrapping_sub(3) / others,
        }
    }

    fn left_alone(frequency: u32, escaping: u32) -> u32 {
        let frequency = (2 * frequency).wrapping_add(escaping).wrapping_sub(1) / escaping.max(1);
        frequency.min(FREQUENCY_MAX / 3)
    }

    fn has_rescaled(arena: &mut Arena, context: u32) {
        I::set_flags(arena, context, I::flags(arena, context) | RESCALED);
    }

    fn has_shrunk(arena: &mut Arena, context: u32, symbol: u8) {
        I::set_flags(arena, context, (I::flags(arena, context) & LED_BY_HIGH) + high(symbol) as u8);
    }
}
