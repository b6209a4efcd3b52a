//! The model of variant H (Shkarin, 2001), as 7z and RAR have it.
//!
//! A context has states, one for each symbol seen in it, with frequencies and successors; its suffix is the context that
//! is shorter by the oldest symbol. A successor is 0 (none yet), an address in the text (a context that nobody needed so
//! far), or a longer context. Decoding a symbol is:
//! ```text
//! from the longest context: choose a symbol of it, or escape to the suffix, what was offered masked
//! count the symbol where it was found, and a little in the suffix
//! add it to the contexts that escaped, and make the contexts that it leads to
//! ```
//! What is counted how much is arbitrary and exact: decoder and encoder must do the same.

use super::arena::{Arena, STATE, UNIT, Variant};
use super::estimate::{Escape, FREQUENCY_MAX, Mask, Single, high, position, steps, suffix_kind};
use super::{Model, ORDER_MAX, Symbol};
use crate::codec::ppmd::range::Coder;

/// Bytes of a context: number of symbols (2), sum of frequencies (2), address of the states (4), suffix (4). A context of
/// one symbol has its state in place of sum and address.
const SUM: u32 = 2;
const ONE_STATE: u32 = 2;
const STATES: u32 = 4;
const SUFFIX: u32 = 8;

/// See [`Escape`]: which estimate by how many symbols are not masked.
const STEP_OF_SYMBOLS: [u8; 256] = steps(3);

/// A model of variant H.
pub(crate) struct ModelH {
    order_max: u32,
    arena: Arena,
    shortest: u32,
    longest: u32,
    /// Address of the state of the last symbol.
    found: u32,
    order_fall: u32,
    /// What the last escape from a context of one symbol was worth.
    escape_worth: u32,
    successes: bool,
    run_length: i32,
    run_length_first: i32,
    last_was_high: usize,
    singles: Box<[[Single; 64]; 128]>,
    escapes: Box<[[Escape; 16]; 25]>,
    root_escape: Escape,
    mask: Mask,
}

/// The memory is exhausted.
struct Exhausted;

impl ModelH {
    /// A model of this order with this many bytes of memory, of which at most `codec_bytes_max` are taken; `None` if there
    /// is no such model.
    pub fn new(order_max: u32, memory_bytes: u32, codec_bytes_max: usize) -> Option<ModelH> {
        const MEMORY_BYTES_MIN: u32 = 1 << 11;
        const MEMORY_BYTES_MAX: u32 = u32::MAX - 12 * 3;
        if !(2..=ORDER_MAX).contains(&order_max) || !(MEMORY_BYTES_MIN..=MEMORY_BYTES_MAX).contains(&memory_bytes) {
            return None;
        }
        let run_length = -(order_max.min(12) as i32) - 1;
        let mut model = ModelH {
            order_max,
            arena: Arena::new(Variant::H, memory_bytes, codec_bytes_max),
            shortest: 0,
            longest: 0,
            found: 0,
            order_fall: 0,
            escape_worth: 0,
            successes: false,
            run_length,
            run_length_first: run_length,
            last_was_high: 0,
            singles: Box::new([[Single::first(0, 2); 64]; 128]),
            escapes: Box::new([[Escape::ROOT; 16]; 25]),
            root_escape: Escape::ROOT,
            mask: Mask::new(),
        };
        model.restart();
        (!model.arena.is_over_limit()).then_some(model)
    }

    /// Forgets everything: one context, of order 0, with all symbols.
    pub fn restart(&mut self) {
        self.arena.reset();
        self.order_fall = self.order_max;
        self.run_length = self.run_length_first;
        self.successes = false;
        let (Some(root), Some(states)) = (self.arena.context(), self.arena.block(128)) else {
            return;
        };
        self.arena.set_u16(root, 256);
        self.arena.set_u16(root + SUM, 257);
        self.arena.set_u32(root + STATES, states);
        self.arena.set_u32(root + SUFFIX, 0);
        for (symbol, state) in self.arena.states_mut(states, 256).iter_mut().enumerate() {
            *state = [symbol as u8, 1, 0, 0, 0, 0];
        }
        (self.shortest, self.longest, self.found) = (root, root, states);
        for (times, kinds) in self.singles.iter_mut().enumerate() {
            for (kind, single) in kinds.iter_mut().enumerate() {
                *single = Single::first(kind, times as u32 + 2);
            }
        }
        for (step, escapes) in self.escapes.iter_mut().enumerate() {
            escapes.fill(Escape::new(5 * step as u32 + 10, 4));
        }
    }

    /// Bytes of memory taken now.
    #[cfg(test)]
    pub fn memory_bytes(&self) -> usize {
        self.arena.memory_bytes()
    }

    fn symbols(&self, context: u32) -> u32 {
        self.arena.u16(context)
    }

    fn states(&self, context: u32) -> u32 {
        self.arena.u32(context + STATES)
    }

    fn suffix(&self, context: u32) -> u32 {
        self.arena.u32(context + SUFFIX)
    }

    fn sum(&self, context: u32) -> u32 {
        self.arena.u16(context + SUM)
    }

    fn add_to_sum(&mut self, context: u32, more: u32) {
        self.arena.set_u16(context + SUM, self.sum(context) + more);
    }

    fn successor(&self, state: u32) -> u32 {
        self.arena.u32(state + 2)
    }

    fn set_successor(&mut self, state: u32, successor: u32) {
        self.arena.set_u32(state + 2, successor);
    }

    fn frequency(&self, state: u32) -> u32 {
        u32::from(self.arena.u8(state + 1))
    }

    fn set_frequency(&mut self, state: u32, frequency: u32) {
        self.arena.set_u8(state + 1, frequency as u8);
    }

    /// The address of the state of `symbol` in a context that has it.
    fn state_of(&self, context: u32, symbol: u8) -> u32 {
        let count = self.symbols(context);
        if count == 1 {
            return context + ONE_STATE;
        }
        let states = self.states(context);
        states + STATE * position(self.arena.states(states, count), symbol) as u32
    }

    /// A choice in a context of several symbols; `None` is an escape.
    #[inline(always)]
    fn choose(&mut self, coder: &mut impl Coder) -> Option<Symbol> {
        let (count, states, sum) =
            (self.symbols(self.shortest), self.states(self.shortest), self.sum(self.shortest).max(1));
        if sum > coder.range() {
            return Some(Symbol::Broken);
        }
        let meant = coder.threshold(sum);
        let list = self.arena.states(states, count);
        let mut below = 0;
        for (at, &[symbol, frequency, ..]) in list.iter().enumerate() {
            let frequency = u32::from(frequency);
            if meant < below + frequency {
                coder.decode(below, frequency);
                coder.normalise();
                self.found = states + STATE * at as u32;
                if at == 0 {
                    self.count_first(sum);
                } else {
                    self.successes = false;
                    self.count();
                }
                return Some(Symbol::Byte(symbol));
            }
            below += frequency;
        }
        self.successes = false;
        if meant >= sum {
            return Some(Symbol::Broken);
        }
        self.mask.clear();
        self.mask.add_all(list);
        coder.decode(below, sum - below);
        self.last_was_high = high(self.arena.u8(self.found));
        None
    }

    /// A choice in a context of one symbol; `None` is an escape.
    #[inline(always)]
    fn choose_single(&mut self, coder: &mut impl Coder) -> Option<Symbol> {
        let state = self.shortest + ONE_STATE;
        let [symbol, frequency, ..] = self.arena.state(state);
        self.last_was_high = high(self.arena.u8(self.found));
        let kind = usize::from(self.successes)
            + (self.run_length >> 26 & 0x20) as usize
            + suffix_kind(self.symbols(self.suffix(self.shortest)))
            + 2 * high(symbol)
            + self.last_was_high;
        let single = &mut self.singles[usize::from(frequency).saturating_sub(1) & 127][kind & 63];
        if !coder.first(single.probability()) {
            self.escape_worth = single.escaped();
            self.successes = false;
            self.mask.clear();
            self.mask.add(symbol);
            return None;
        }
        single.found();
        coder.normalise();
        self.found = state;
        self.successes = true;
        self.run_length = self.run_length.wrapping_add(1);
        self.set_frequency(state, u32::from(frequency) + u32::from(frequency < 128));
        self.next_context();
        Some(Symbol::Byte(symbol))
    }

    /// Choices in ever shorter contexts, behind an escape.
    fn choose_masked(&mut self, coder: &mut impl Coder) -> Symbol {
        loop {
            coder.normalise();
            let masked = self.symbols(self.shortest);
            let mut context = self.shortest;
            while self.symbols(context) == masked {
                self.order_fall += 1;
                context = self.suffix(context);
                if context == 0 {
                    return Symbol::End;
                }
            }
            self.shortest = context;
            let (count, states) = (self.symbols(context), self.states(context));
            let list = self.arena.states(states, count);
            let offered: u32 = list.iter().map(|state| self.mask.frequency(state)).sum();
            let estimate = match self.escape(masked) {
                Some((step, kind)) => &mut self.escapes[step][kind],
                None => &mut self.root_escape,
            };
            let total = offered + estimate.frequency();
            if total > coder.range() {
                return Symbol::Broken;
            }
            let meant = coder.threshold(total);
            if meant < offered {
                estimate.found();
                return self.choose_offered(meant, coder);
            }
            if meant >= total {
                return Symbol::Broken;
            }
            coder.decode(offered, total - offered);
            estimate.escaped(total);
            self.mask.add_all(self.arena.states(states, count));
        }
    }

    fn choose_offered(&mut self, meant: u32, coder: &mut impl Coder) -> Symbol {
        let (count, states) = (self.symbols(self.shortest), self.states(self.shortest));
        let mut below = 0;
        for (at, state) in self.arena.states(states, count).iter().enumerate() {
            let frequency = self.mask.frequency(state);
            if meant < below + frequency {
                let symbol = state[0];
                coder.decode(below, frequency);
                coder.normalise();
                self.found = states + STATE * at as u32;
                self.count_masked();
                return Symbol::Byte(symbol);
            }
            below += frequency;
        }
        Symbol::Broken
    }

    /// Which estimate tells how often the context escapes; the root has none.
    fn escape(&self, masked: u32) -> Option<(usize, usize)> {
        let context = self.shortest;
        let count = self.symbols(context);
        if count == 256 {
            return None;
        }
        let open = count.wrapping_sub(masked);
        let step = STEP_OF_SYMBOLS[open.wrapping_sub(1) as usize & 0xff];
        let kind = usize::from(open < self.symbols(self.suffix(context)).wrapping_sub(count))
            + 2 * usize::from(self.sum(context) < 11 * count)
            + 4 * usize::from(masked > open)
            + self.last_was_high;
        Some((usize::from(step), kind))
    }

    /// Counts a symbol that was found as the first of its context.
    fn count_first(&mut self, sum: u32) {
        let frequency = self.frequency(self.found);
        self.successes = 2 * frequency > sum;
        self.run_length = self.run_length.wrapping_add(i32::from(self.successes));
        self.add_to_sum(self.shortest, 4);
        self.set_frequency(self.found, frequency + 4);
        if frequency + 4 > FREQUENCY_MAX {
            self.rescale();
        }
        self.next_context();
    }

    /// Counts a symbol that was found elsewhere in its context; it moves up if it is more frequent than its neighbour.
    fn count(&mut self) {
        let frequency = self.frequency(self.found) + 4;
        self.add_to_sum(self.shortest, 4);
        self.set_frequency(self.found, frequency);
        if frequency > self.frequency(self.found - STATE) {
            self.swap_with_neighbour();
            if frequency > FREQUENCY_MAX {
                self.rescale();
            }
        }
        self.next_context();
    }

    fn swap_with_neighbour(&mut self) {
        self.arena.states_mut(self.found - STATE, 2).swap(0, 1);
        self.found -= STATE;
    }

    /// Counts a symbol that was found behind an escape.
    fn count_masked(&mut self) {
        let frequency = self.frequency(self.found) + 4;
        self.run_length = self.run_length_first;
        self.add_to_sum(self.shortest, 4);
        self.set_frequency(self.found, frequency);
        if frequency > FREQUENCY_MAX {
            self.rescale();
        }
        self.update();
    }

    #[inline(always)]
    fn next_context(&mut self) {
        let successor = self.successor(self.found);
        if self.order_fall == 0 && successor > self.arena.text_end() {
            (self.shortest, self.longest) = (successor, successor);
        } else {
            self.update();
        }
    }

    fn update(&mut self) {
        if self.try_update().is_err() {
            self.restart();
        }
    }

    /// Adds the symbol to the contexts that escaped, and finds or makes the next context.
    fn try_update(&mut self) -> Result<(), Exhausted> {
        let [symbol, frequency, ..] = self.arena.state(self.found);
        self.count_in_suffix(symbol, u32::from(frequency));
        if self.order_fall == 0 {
            let next = self.make_successors()?;
            (self.shortest, self.longest) = (next, next);
            self.set_successor(self.found, next);
            return Ok(());
        }
        if !self.arena.push_text(symbol) {
            return Err(Exhausted);
        }
        let mut added = self.arena.text_end();
        let mut next = self.successor(self.found);
        if next == 0 {
            self.set_successor(self.found, added);
            next = self.shortest;
        } else {
            if next <= added {
                next = self.make_successors()?;
            }
            self.order_fall -= 1;
            if self.order_fall == 0 {
                added = next;
                if self.longest != self.shortest {
                    self.arena.pop_text();
                }
            }
        }
        let (context, end) = (self.longest, self.shortest);
        (self.shortest, self.longest) = (next, next);
        self.add_to_contexts(context, end, symbol, u32::from(frequency), added)
    }

    /// The symbol counts a little in the suffix, if it is not frequent.
    fn count_in_suffix(&mut self, symbol: u8, frequency: u32) {
        let suffix = self.suffix(self.shortest);
        if frequency >= FREQUENCY_MAX / 4 || suffix == 0 {
            return;
        }
        let mut state = self.state_of(suffix, symbol);
        if self.symbols(suffix) == 1 {
            let frequency = self.frequency(state);
            return self.set_frequency(state, frequency + u32::from(frequency < 32));
        }
        if state != self.states(suffix) && self.frequency(state) >= self.frequency(state - STATE) {
            self.arena.states_mut(state - STATE, 2).swap(0, 1);
            state -= STATE;
        }
        let frequency = self.frequency(state);
        if frequency < FREQUENCY_MAX - 9 {
            self.set_frequency(state, frequency + 2);
            self.add_to_sum(suffix, 2);
        }
    }

    /// Adds the symbol to the contexts from `context` down to `end`, which has it.
    fn add_to_contexts(
        &mut self,
        mut context: u32,
        end: u32,
        symbol: u8,
        frequency: u32,
        successor: u32,
    ) -> Result<(), Exhausted> {
        if context == end {
            return Ok(());
        }
        let end_count = self.symbols(end);
        let escaping = self.sum(end).wrapping_sub(end_count).wrapping_sub(frequency.wrapping_sub(1));
        while context != end {
            let count = self.symbols(context);
            let mut sum = match count {
                1 => self.make_list(context, end_count)?,
                _ => self.lengthen_list(context, count, end_count)?,
            };
            let share = 2 * frequency * (sum + 6);
            let total = escaping.wrapping_add(sum);
            let first = if share < 6 * total {
                sum += 3;
                1 + u32::from(share > total) + u32::from(share >= 4 * total)
            } else {
                let first =
                    4 + u32::from(share >= 9 * total) + u32::from(share >= 12 * total) + u32::from(share >= 15 * total);
                sum += first;
                first
            };
            let [a, b, c, d] = successor.to_le_bytes();
            let state = self.states(context) + count * STATE;
            self.arena.set_state(state, [symbol, first as u8, a, b, c, d]);
            self.arena.set_u16(context, count + 1);
            self.arena.set_u16(context + SUM, sum);
            context = self.suffix(context);
        }
        Ok(())
    }

    /// Makes room for another state in a list; returns the new sum of frequencies.
    fn lengthen_list(&mut self, context: u32, count: u32, end_count: u32) -> Result<u32, Exhausted> {
        if count.is_multiple_of(2) {
            let states = self.states(context);
            let longer = self.arena.expand(states, count / 2).ok_or(Exhausted)?;
            self.arena.set_u32(context + STATES, longer);
        }
        let sum = self.sum(context);
        let few = 4 * count <= end_count && sum <= 8 * count;
        Ok(sum + u32::from(2 * count < end_count) + 2 * u32::from(few))
    }

    /// Makes a list of the one state of a context; returns the sum of frequencies.
    fn make_list(&mut self, context: u32, end_count: u32) -> Result<u32, Exhausted> {
        let states = self.arena.block(1).ok_or(Exhausted)?;
        let mut state = self.arena.state(context + ONE_STATE);
        let frequency = u32::from(state[1]);
        let frequency = if frequency < FREQUENCY_MAX / 4 - 1 { 2 * frequency } else { FREQUENCY_MAX - 4 };
        state[1] = frequency as u8;
        self.arena.set_state(states, state);
        self.arena.set_u32(context + STATES, states);
        Ok(frequency + self.escape_worth + u32::from(end_count > 3))
    }

    /// The successor of the last symbol is in the text: makes the contexts that it stands for, from short to long.
    fn make_successors(&mut self) -> Result<u32, Exhausted> {
        let symbol = self.arena.u8(self.found);
        let branch = self.successor(self.found);
        let mut waiting = [0; ORDER_MAX as usize + 1];
        let mut count = 0;
        if self.order_fall != 0 {
            waiting[0] = self.found;
            count = 1;
        }
        let mut context = self.shortest;
        while self.suffix(context) != 0 {
            context = self.suffix(context);
            let state = self.state_of(context, symbol);
            let successor = self.successor(state);
            if successor != branch {
                context = successor;
                break;
            }
            if let Some(place) = waiting.get_mut(count) {
                *place = state;
                count += 1;
            }
        }
        let next = self.arena.text(branch);
        let frequency = if count == 0 { 0 } else { self.inherited_frequency(context, next) };
        let [a, b, c, d] = (branch + 1).to_le_bytes();
        for &state in waiting[..count].iter().rev() {
            let longer = self.arena.context().ok_or(Exhausted)?;
            self.arena.set_u16(longer, 1);
            self.arena.set_state(longer + ONE_STATE, [next, frequency as u8, a, b, c, d]);
            self.arena.set_u32(longer + SUFFIX, context);
            self.set_successor(state, longer);
            context = longer;
        }
        Ok(context)
    }

    /// What a new context expects of its one symbol, from the context that it extends.
    fn inherited_frequency(&self, context: u32, symbol: u8) -> u32 {
        let frequency = self.frequency(self.state_of(context, symbol));
        if self.symbols(context) == 1 {
            return frequency;
        }
        let this = frequency.wrapping_sub(1);
        let others = self.sum(context).wrapping_sub(self.symbols(context)).wrapping_sub(this).max(1);
        1 + match this.wrapping_mul(2) <= others {
            true => u32::from(this.wrapping_mul(5) > others),
            false => this.wrapping_mul(2).wrapping_add(others - 1) / others.wrapping_mul(2).max(1) + 1,
        }
    }

    /// Halves the frequencies of the shortest context; symbols that are left with none go if it is a longest one.
    fn rescale(&mut self) {
        let context = self.shortest;
        let (count, states) = (self.symbols(context), self.states(context));
        let keep = u32::from(self.order_fall != 0);
        let at = ((self.found - states) / STATE) as usize;
        let sum = self.sum(context);
        let list = self.arena.states_mut(states, count);
        list[..=at].rotate_right(1);
        let mut escaping = sum.wrapping_sub(u32::from(list[0][1]));
        let mut halved = (u32::from(list[0][1]) + 4 + keep) >> 1;
        list[0][1] = halved as u8;
        for i in 1..list.len() {
            let frequency = u32::from(list[i][1]);
            escaping = escaping.wrapping_sub(frequency);
            let frequency = (frequency + keep) >> 1;
            halved += frequency;
            list[i][1] = frequency as u8;
            let before = list[1..i].iter().rposition(|state| u32::from(state[1]) >= frequency);
            let to = match before {
                Some(before) => before + 2,
                None if frequency > u32::from(list[0][1]) => 0,
                None => 1,
            };
            list[to..=i].rotate_right(1);
        }
        let left = list.iter().rposition(|state| state[1] != 0).map_or(1, |last| last as u32 + 1);
        if left < count {
            escaping = escaping.wrapping_add(count - left);
            self.arena.set_u16(context, left);
            if left == 1 {
                return self.unmake_list(context, states, count, escaping);
            }
            let states = self.arena.shrink(states, count.div_ceil(2), left.div_ceil(2));
            self.arena.set_u32(context + STATES, states);
        }
        self.arena.set_u16(context + SUM, halved.wrapping_add(escaping.div_ceil(2)));
        self.found = self.states(context);
    }

    /// Only one state is left: it goes into the context.
    fn unmake_list(&mut self, context: u32, states: u32, count: u32, mut escaping: u32) {
        let mut state = self.arena.state(states);
        let mut frequency = u32::from(state[1]);
        loop {
            escaping >>= 1;
            frequency = (frequency + 1) >> 1;
            if escaping <= 1 {
                break;
            }
        }
        state[1] = frequency as u8;
        self.arena.set_state(context + ONE_STATE, state);
        self.found = context + ONE_STATE;
        self.arena.release(states, count.div_ceil(2));
    }
}

impl Model for ModelH {
    fn symbol(&mut self, coder: &mut impl Coder) -> Symbol {
        if self.arena.is_over_limit() {
            return Symbol::OverLimit;
        }
        let choice = match self.symbols(self.shortest) {
            1 => self.choose_single(coder),
            _ => self.choose(coder),
        };
        let symbol = choice.unwrap_or_else(|| self.choose_masked(coder));
        if self.arena.is_over_limit() { Symbol::OverLimit } else { symbol }
    }

    fn order_max(&self) -> u32 {
        self.order_max
    }
}

const _: () = assert!(STATE * 2 == UNIT, "two states fill a unit");
