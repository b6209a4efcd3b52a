//! A model of PPMd (Shkarin, 2001 and 2002), of either variant.
//!
//! A context has states, one for each symbol seen in it, with frequencies and successors; its suffix is the context
//! that is shorter by the oldest symbol. A successor is 0 (none yet), an address in the text (a context not needed so
//! far), or a longer context. Decoding a symbol is:
//! ```text
//! from the longest context: choose a symbol of it, or escape to the suffix, with the offered symbols masked
//! count the symbol where it was found, and a little in the suffix
//! add it to the contexts that escaped, and make the contexts that it leads to
//! ```
//! The increments are arbitrary and exact: decoder and encoder must agree. Where the variants differ, [`Variant`] has a
//! method.

use super::arena::{Arena, Gluing, STATE, UNIT};
use super::estimate::{Escape, FREQUENCY_MAX, Mask, Single, position};
use super::range::Coder;
use super::{ORDER_MAX, Symbol};

/// Layout of a context: number of symbols and data of the variant (2 bytes), sum of frequencies (2), address of the
/// states (4), suffix (4). A context of one symbol has its state in place of sum and address.
pub(super) const SUM: u32 = 2;
pub(super) const ONE_STATE: u32 = 2;
pub(super) const STATES: u32 = 4;
pub(super) const SUFFIX: u32 = 8;

/// Estimates for contexts of one symbol, by its frequency and by the kind of context.
pub(super) type Singles = [[Single; 64]; 128];

/// Estimates of escapes after masked symbols, by the number of symbols and by the kind of context.
pub(super) type Escapes = [[Escape; 32]; 25];

/// Differences between the variants.
pub(crate) trait Variant: Sized + Send {
    const MEMORY_BYTES_MAX: u32;

    /// How free memory is joined.
    const GLUING: Gluing;

    /// The one symbol of a context counts up to here.
    const ONE_FREQUENCY_MAX: u8;

    /// Addition of a new state of low frequency to the sum of its context.
    const LOW_WORTH: u32;

    /// Sets the estimates that a model starts with.
    fn first_estimates(singles: &mut Singles, escapes: &mut Escapes);

    /// The number of symbols of a context.
    fn symbols(arena: &Arena, context: u32) -> u32;

    fn set_symbols(arena: &mut Arena, context: u32, count: u32);

    /// By which total a range is divided for a choice; `None` if no encoder divides it so.
    fn total(sum: u32, range: u32) -> Option<u32>;

    /// The estimate of the one symbol of the shortest context.
    fn single(model: &Model<Self>, symbol: u8, frequency: u8) -> (usize, usize);

    /// The estimate of an escape from the shortest context, which does not have all symbols.
    fn escape(model: &Model<Self>, masked: u32) -> (usize, usize);

    /// Whether to have found the first symbol of a context, of this frequency, is a success.
    fn is_success(frequency: u32, sum: u32) -> bool;

    /// Whether a successor is a context, and not in the text.
    fn is_context(arena: &Arena, successor: u32) -> bool;

    /// Adds the symbol that was found to the contexts that escaped, and finds or makes the next context; or sees to it that
    /// the model goes on where its memory is exhausted.
    fn update(model: &mut Model<Self>);

    /// Gain of the sum of a context, besides the frequency, when it gets another symbol that a shorter context of
    /// `end_count` symbols has.
    fn gain(sum: u32, count: u32, end_count: u32) -> u32;

    /// Whether a symbol has so great a share that it counts for one more.
    fn is_great(share: u32, bound: u32) -> bool;

    /// A context has got a symbol.
    fn has_added(_arena: &mut Arena, _context: u32, _symbol: u8) {}

    /// A context of one symbol, `next`, has been made behind `symbol`.
    fn has_made(_arena: &mut Arena, _context: u32, _symbol: u8, _next: u8) {}

    /// The state of `symbol` in a context whose successor is being made, and perhaps counts it.
    fn on_the_way(model: &mut Model<Self>, context: u32, symbol: u8) -> u32 {
        model.state_of(context, symbol)
    }

    /// The frequency of the one symbol of a new context, from that in a context of several symbols.
    fn inherited(frequency: u32, sum: u32, count: u32) -> u32;

    /// The frequency of the only symbol that is left when a context is rescaled.
    fn left_alone(frequency: u32, escaping: u32) -> u32;

    /// The frequencies of a context of several symbols have been halved.
    fn has_rescaled(_arena: &mut Arena, _context: u32) {}

    /// A context is left with one symbol.
    fn has_shrunk(_arena: &mut Arena, _context: u32, _symbol: u8) {}
}

/// A model of a variant.
pub(crate) struct Model<V> {
    pub(super) variant: V,
    order_max: u32,
    pub(super) arena: Arena,
    pub(super) shortest: u32,
    pub(super) longest: u32,
    /// Address of the state of the last symbol.
    pub(super) found: u32,
    pub(super) order_fall: u32,
    /// Worth of the last escape from a context of one symbol.
    escape_worth: u32,
    pub(super) successes: bool,
    pub(super) run_length: i32,
    run_length_first: i32,
    singles: Box<Singles>,
    escapes: Box<Escapes>,
    root_escape: Escape,
    mask: Mask,
}

/// The memory was exhausted when this context was to be enlarged, or before.
pub(super) struct ExhaustedAt(pub u32);

impl<V: Variant> Model<V> {
    /// Makes a model of this order with this many bytes of memory, of which at most `codec_bytes_max` are taken; `None`
    /// for invalid values.
    pub(super) fn of(variant: V, order_max: u32, memory_bytes: u32, codec_bytes_max: usize) -> Option<Model<V>> {
        const MEMORY_BYTES_MIN: u32 = 1 << 11;
        if !(2..=ORDER_MAX).contains(&order_max) || !(MEMORY_BYTES_MIN..=V::MEMORY_BYTES_MAX).contains(&memory_bytes) {
            return None;
        }
        let run_length = -(order_max.min(12) as i32) - 1;
        let mut model = Model {
            variant,
            order_max,
            arena: Arena::new(V::GLUING, memory_bytes, codec_bytes_max),
            shortest: 0,
            longest: 0,
            found: 0,
            order_fall: 0,
            escape_worth: 0,
            successes: false,
            run_length,
            run_length_first: run_length,
            singles: Box::new([[Single::first(0, 2); 64]; 128]),
            escapes: Box::new([[Escape::ROOT; 32]; 25]),
            root_escape: Escape::ROOT,
            mask: Mask::new(),
        };
        model.restart();
        (!model.arena.is_over_limit()).then_some(model)
    }

    /// Decodes one symbol and learns from it.
    pub(crate) fn symbol(&mut self, coder: &mut impl Coder) -> Symbol {
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

    /// The order that was asked for.
    pub(crate) fn order_max(&self) -> u32 {
        self.order_max
    }

    /// Forgets everything: one context, of order 0, with all symbols.
    pub(crate) fn restart(&mut self) {
        self.arena.reset();
        self.order_fall = self.order_max;
        self.run_length = self.run_length_first;
        self.successes = false;
        let (Some(root), Some(states)) = (self.arena.context(), self.arena.block(128)) else {
            return;
        };
        self.arena.set_u16(root, 0);
        self.set_symbols(root, 256);
        self.arena.set_u16(root + SUM, 257);
        self.arena.set_u32(root + STATES, states);
        self.arena.set_u32(root + SUFFIX, 0);
        for (symbol, state) in self.arena.states_mut(states, 256).iter_mut().enumerate() {
            *state = [symbol as u8, 1, 0, 0, 0, 0];
        }
        (self.shortest, self.longest, self.found) = (root, root, states);
        V::first_estimates(&mut self.singles, &mut self.escapes);
    }

    /// Bytes of memory taken now.
    #[cfg(test)]
    pub(super) fn memory_bytes(&self) -> usize {
        self.arena.memory_bytes()
    }

    #[inline(always)]
    pub(super) fn symbols(&self, context: u32) -> u32 {
        V::symbols(&self.arena, context)
    }

    #[inline(always)]
    pub(super) fn set_symbols(&mut self, context: u32, count: u32) {
        V::set_symbols(&mut self.arena, context, count);
    }

    pub(super) fn states(&self, context: u32) -> u32 {
        self.arena.u32(context + STATES)
    }

    pub(super) fn suffix(&self, context: u32) -> u32 {
        self.arena.u32(context + SUFFIX)
    }

    pub(super) fn sum(&self, context: u32) -> u32 {
        self.arena.u16(context + SUM)
    }

    pub(super) fn add_to_sum(&mut self, context: u32, more: u32) {
        self.arena.set_u16(context + SUM, self.sum(context) + more);
    }

    pub(super) fn successor(&self, state: u32) -> u32 {
        self.arena.u32(state + 2)
    }

    pub(super) fn set_successor(&mut self, state: u32, successor: u32) {
        self.arena.set_u32(state + 2, successor);
    }

    pub(super) fn frequency(&self, state: u32) -> u32 {
        u32::from(self.arena.u8(state + 1))
    }

    pub(super) fn set_frequency(&mut self, state: u32, frequency: u32) {
        self.arena.set_u8(state + 1, frequency as u8);
    }

    /// The address of the state of `symbol` in a context that has it.
    pub(super) fn state_of(&self, context: u32, symbol: u8) -> u32 {
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
        let (count, states) = (self.symbols(self.shortest), self.states(self.shortest));
        let Some(sum) = V::total(self.sum(self.shortest), coder.range()) else {
            return Some(Symbol::Broken);
        };
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
                    self.count_first();
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
        None
    }

    /// A choice in a context of one symbol; `None` is an escape.
    #[inline(always)]
    fn choose_single(&mut self, coder: &mut impl Coder) -> Option<Symbol> {
        let state = self.shortest + ONE_STATE;
        let [symbol, frequency, ..] = self.arena.state(state);
        let (step, kind) = V::single(self, symbol, frequency);
        let single = &mut self.singles[step & 127][kind & 63];
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
        self.set_frequency(state, u32::from(frequency) + u32::from(frequency < V::ONE_FREQUENCY_MAX));
        self.next_context();
        Some(Symbol::Byte(symbol))
    }

    /// Choices in ever shorter contexts, behind an escape.
    #[inline(never)]
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
            let estimate = match count {
                256 => &mut self.root_escape,
                _ => {
                    let (step, kind) = V::escape(self, masked);
                    &mut self.escapes[step.min(24)][kind & 31]
                }
            };
            let total = offered + estimate.frequency();
            let Some(parts) = V::total(total, coder.range()) else {
                return Symbol::Broken;
            };
            let meant = coder.threshold(parts);
            if meant < offered {
                estimate.found();
                return self.choose_offered(meant, coder);
            }
            if meant >= parts {
                return Symbol::Broken;
            }
            coder.decode(offered, parts - offered);
            estimate.escaped(total);
            self.mask.add_all(self.arena.states(states, count));
        }
    }

    #[inline(always)]
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

    /// Counts a symbol that was found as the first of its context.
    fn count_first(&mut self) {
        let frequency = self.frequency(self.found);
        self.successes = V::is_success(frequency, self.sum(self.shortest));
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
        V::update(self);
    }

    #[inline(always)]
    fn next_context(&mut self) {
        let successor = self.successor(self.found);
        if self.order_fall == 0 && V::is_context(&self.arena, successor) {
            (self.shortest, self.longest) = (successor, successor);
        } else {
            V::update(self);
        }
    }

    /// The symbol counts a little in the suffix, if it is not frequent; returns its state there.
    pub(super) fn count_in_suffix(&mut self, symbol: u8, frequency: u32) -> Option<u32> {
        let suffix = self.suffix(self.shortest);
        if frequency >= FREQUENCY_MAX / 4 || suffix == 0 {
            return None;
        }
        let mut state = self.state_of(suffix, symbol);
        if self.symbols(suffix) == 1 {
            let frequency = self.frequency(state);
            self.set_frequency(state, frequency + u32::from(frequency < 32));
            return Some(state);
        }
        if state != self.states(suffix) && self.frequency(state) >= self.frequency(state - STATE) {
            self.arena.states_mut(state - STATE, 2).swap(0, 1);
            state -= STATE;
        }
        self.count_more(suffix, state, 2);
        Some(state)
    }

    /// Adds to the frequency of a state in a list, unless it is high.
    pub(super) fn count_more(&mut self, context: u32, state: u32, more: u32) {
        let frequency = self.frequency(state);
        if frequency < FREQUENCY_MAX - 9 {
            self.set_frequency(state, frequency + more);
            self.add_to_sum(context, more);
        }
    }

    /// Lowers the order, with `next` as the next context, if any. Returns the successor of the contexts that escaped.
    pub(super) fn fall(&mut self, next: u32) -> u32 {
        self.order_fall = self.order_fall.wrapping_sub(1);
        if self.order_fall != 0 {
            return self.arena.text_end();
        }
        if self.longest != self.shortest {
            self.arena.pop_text();
        }
        next
    }

    /// Adds the symbol to the contexts from the longest down to the shortest, which has it.
    pub(super) fn add_to_contexts(&mut self, symbol: u8, frequency: u32, successor: u32) -> Result<(), ExhaustedAt> {
        let end = self.shortest;
        let end_count = self.symbols(end);
        let escaping = self.sum(end).wrapping_sub(end_count - 1).wrapping_sub(frequency);
        let mut context = self.longest;
        while context != end {
            let count = self.symbols(context);
            let sum = match count {
                1 => self.make_list(context, end_count),
                _ => self.lengthen_list(context, count, end_count),
            };
            let mut sum = sum.ok_or(ExhaustedAt(context))?;
            let share = 2 * frequency * (sum + 6);
            let total = escaping.wrapping_add(sum);
            let first = if share < total.wrapping_mul(6) {
                sum += V::LOW_WORTH;
                1 + u32::from(share > total) + u32::from(share >= 4 * total)
            } else {
                let first =
                    4 + [9, 12, 15].map(|times| u32::from(V::is_great(share, times * total))).iter().sum::<u32>();
                sum += first;
                first
            };
            let [a, b, c, d] = successor.to_le_bytes();
            let state = self.states(context) + count * STATE;
            self.arena.set_state(state, [symbol, first as u8, a, b, c, d]);
            self.set_symbols(context, count + 1);
            V::has_added(&mut self.arena, context, symbol);
            self.arena.set_u16(context + SUM, sum);
            context = self.suffix(context);
        }
        Ok(())
    }

    /// Makes room for another state in a list; returns the new sum of frequencies.
    fn lengthen_list(&mut self, context: u32, count: u32, end_count: u32) -> Option<u32> {
        if count.is_multiple_of(2) {
            let states = self.states(context);
            let longer = self.arena.expand(states, count / 2)?;
            self.arena.set_u32(context + STATES, longer);
        }
        let sum = self.sum(context);
        Some(sum + V::gain(sum, count, end_count))
    }

    /// Makes a list of the one state of a context; returns the sum of frequencies.
    fn make_list(&mut self, context: u32, end_count: u32) -> Option<u32> {
        let states = self.arena.block(1)?;
        let mut state = self.arena.state(context + ONE_STATE);
        let frequency = u32::from(state[1]);
        let frequency = if frequency < FREQUENCY_MAX / 4 - 1 { 2 * frequency } else { FREQUENCY_MAX - 4 };
        state[1] = frequency as u8;
        self.arena.set_state(states, state);
        self.arena.set_u32(context + STATES, states);
        Some(frequency + self.escape_worth + u32::from(end_count > 3))
    }

    /// The successor of the last symbol is in the text: makes the contexts that it stands for, from short to long.
    /// `counted` is the state in the suffix of `context` where the symbol has been counted already.
    pub(super) fn make_successors(&mut self, skip: bool, mut counted: Option<u32>, mut context: u32) -> Option<u32> {
        let symbol = self.arena.u8(self.found);
        let branch = self.successor(self.found);
        let mut waiting = [0; ORDER_MAX as usize + 1];
        let mut count = 0;
        if !skip {
            waiting[0] = self.found;
            count = 1;
        }
        while self.suffix(context) != 0 {
            context = self.suffix(context);
            let state = counted.take().unwrap_or_else(|| V::on_the_way(self, context, symbol));
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
        if count == 0 {
            return Some(context);
        }
        let next = self.arena.text(branch);
        let frequency = self.inherited_frequency(context, next);
        let [a, b, c, d] = (branch + 1).to_le_bytes();
        for &state in waiting[..count].iter().rev() {
            let longer = self.arena.context()?;
            self.set_symbols(longer, 1);
            V::has_made(&mut self.arena, longer, symbol, next);
            self.arena.set_state(longer + ONE_STATE, [next, frequency as u8, a, b, c, d]);
            self.arena.set_u32(longer + SUFFIX, context);
            self.set_successor(state, longer);
            context = longer;
        }
        Some(context)
    }

    /// Frequency that a new context expects of its one symbol, from the context that it extends.
    fn inherited_frequency(&self, context: u32, symbol: u8) -> u32 {
        let frequency = self.frequency(self.state_of(context, symbol));
        match self.symbols(context) {
            1 => frequency,
            count => V::inherited(frequency, self.sum(context), count),
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
            self.set_symbols(context, left);
            if left == 1 {
                self.unmake_list(context, V::left_alone(self.frequency(states), escaping));
                self.found = context + ONE_STATE;
                return self.arena.release(states, count.div_ceil(2));
            }
            let states = self.arena.shrink(states, count.div_ceil(2), left.div_ceil(2));
            self.arena.set_u32(context + STATES, states);
        }
        self.arena.set_u16(context + SUM, halved.wrapping_add(escaping.div_ceil(2)));
        V::has_rescaled(&mut self.arena, context);
        self.found = self.states(context);
    }

    /// Only one state is left: it goes into the context. The list is the caller's to free.
    pub(super) fn unmake_list(&mut self, context: u32, frequency: u32) {
        let mut state = self.arena.state(self.states(context));
        V::has_shrunk(&mut self.arena, context, state[0]);
        state[1] = frequency as u8;
        self.arena.set_state(context + ONE_STATE, state);
    }
}

const _: () = assert!(STATE * 2 == UNIT, "two states fill a unit");
