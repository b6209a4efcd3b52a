//! The model of variant I, revision 1 (Shkarin, 2002), as zip has it.
//!
//! It differs from variant H (see there for the words) in what is counted how much, in that a context may lack the
//! successor that a longer one has, and in what happens when the memory is exhausted: the model starts over, or it is cut
//! off (see `restore`).
//!
//! Freezing the model, the third way, is not read: revisions of the format disagree about it.

mod restore;

use super::arena::{Arena, STATE, Variant};
use super::estimate::{Escape, FREQUENCY_MAX, Mask, Single, high, position, steps, suffix_kind};
use super::{Model, ORDER_MAX, Symbol};
use crate::codec::ppmd::range::Coder;

/// Bytes of a context: number of symbols less one (1), flags (1), sum of frequencies (2), address of the states (4),
/// suffix (4). A context of one symbol has its state in place of sum and address.
const FLAGS: u32 = 1;
const SUM: u32 = 2;
const ONE_STATE: u32 = 2;
const STATES: u32 = 4;
const SUFFIX: u32 = 8;

/// The flags: the frequencies have been halved; a symbol is high; the symbol that led here was. They index estimates.
const RESCALED: u8 = 4;
const LED_BY_HIGH: u8 = 16;

/// Which estimate by how many symbols there are, or how frequent the one symbol is.
const STEPS: [u8; 260] = steps(5);
const FIRST_STEP: usize = 3;

/// A model of variant I.
pub(crate) struct ModelI {
    order_max: u32,
    size: u32,
    restore: Restore,
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
    singles: Box<[[Single; 64]; 25]>,
    escapes: Box<[[Escape; 32]; 24]>,
    root_escape: Escape,
    mask: Mask,
}

/// What happens when the memory is exhausted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Restore {
    Restart,
    CutOff,
}

/// The memory was exhausted when this context was to be enlarged, or before.
struct ExhaustedAt(u32);

impl ModelI {
    /// A model of this order with this many bytes of memory, of which at most `codec_bytes_max` are taken; `None` if there
    /// is no such model.
    pub fn new(order_max: u32, memory_bytes: u32, restore: Restore, codec_bytes_max: usize) -> Option<ModelI> {
        const MEMORY_BYTES_MIN: u32 = 1 << 11;
        const MEMORY_BYTES_MAX: u32 = 256 << 20;
        if !(2..=ORDER_MAX).contains(&order_max) || !(MEMORY_BYTES_MIN..=MEMORY_BYTES_MAX).contains(&memory_bytes) {
            return None;
        }
        let run_length = -(order_max.min(12) as i32) - 1;
        let mut model = ModelI {
            order_max,
            size: memory_bytes,
            restore,
            arena: Arena::new(Variant::I, memory_bytes, codec_bytes_max),
            shortest: 0,
            longest: 0,
            found: 0,
            order_fall: 0,
            escape_worth: 0,
            successes: false,
            run_length,
            run_length_first: run_length,
            singles: Box::new([[Single::first(0, 2); 64]; 25]),
            escapes: Box::new([[Escape::ROOT; 32]; 24]),
            root_escape: Escape::ROOT,
            mask: Mask::new(),
        };
        model.restart();
        (!model.arena.is_over_limit()).then_some(model)
    }

    /// Forgets everything: one context, of order 0, with all symbols.
    fn restart(&mut self) {
        self.arena.reset();
        self.order_fall = self.order_max;
        self.run_length = self.run_length_first;
        self.successes = false;
        let (Some(root), Some(states)) = (self.arena.context(), self.arena.block(128)) else {
            return;
        };
        self.set_symbols(root, 256);
        self.set_flags(root, 0);
        self.arena.set_u16(root + SUM, 257);
        self.arena.set_u32(root + STATES, states);
        self.arena.set_u32(root + SUFFIX, 0);
        for (symbol, state) in self.arena.states_mut(states, 256).iter_mut().enumerate() {
            *state = [symbol as u8, 1, 0, 0, 0, 0];
        }
        (self.shortest, self.longest, self.found) = (root, root, states);
        let behind = |step: usize| STEPS.iter().position(|&other| usize::from(other) > step).unwrap_or(0) as u32;
        for (step, kinds) in self.singles.iter_mut().enumerate() {
            for (kind, single) in kinds.iter_mut().enumerate() {
                *single = Single::first(kind, behind(step) + 1);
            }
        }
        for (step, escapes) in self.escapes.iter_mut().enumerate() {
            let symbols = behind(step + FIRST_STEP) - FIRST_STEP as u32;
            escapes.fill(Escape::new(2 * symbols + 5, 7));
        }
    }

    fn symbols(&self, context: u32) -> u32 {
        u32::from(self.arena.u8(context)) + 1
    }

    fn set_symbols(&mut self, context: u32, count: u32) {
        self.arena.set_u8(context, (count - 1) as u8);
    }

    fn flags(&self, context: u32) -> u8 {
        self.arena.u8(context + FLAGS)
    }

    fn set_flags(&mut self, context: u32, flags: u8) {
        self.arena.set_u8(context + FLAGS, flags);
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
        let (count, states) = (self.symbols(self.shortest), self.states(self.shortest));
        let sum = self.sum(self.shortest).clamp(1, coder.range().max(1));
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
        let kind = usize::from(self.successes)
            + (self.run_length >> 26 & 0x20) as usize
            + suffix_kind(self.symbols(self.suffix(self.shortest)))
            + usize::from(self.flags(self.shortest));
        let step = usize::from(STEPS[usize::from(frequency.saturating_sub(1))]);
        let single = &mut self.singles[step.min(24)][kind & 63];
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
        self.set_frequency(state, u32::from(frequency) + u32::from(frequency < 196));
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
            let parts = total.min(coder.range()).max(1);
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
        let step = usize::from(STEPS[count as usize + 1]).saturating_sub(FIRST_STEP);
        let kind = usize::from(self.sum(context) > 11 * count)
            + 2 * usize::from(2 * count < self.symbols(self.suffix(context)) + masked)
            + usize::from(self.flags(context));
        Some((step.min(23), kind & 31))
    }

    /// Counts a symbol that was found as the first of its context.
    fn count_first(&mut self) {
        let frequency = self.frequency(self.found);
        self.successes = 2 * frequency >= self.sum(self.shortest);
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
        if self.order_fall == 0 && successor >= self.arena.units_start() {
            (self.shortest, self.longest) = (successor, successor);
        } else {
            self.update();
        }
    }

    fn update(&mut self) {
        if let Err(ExhaustedAt(context)) = self.try_update() {
            self.restore(context);
        }
    }

    /// Adds the symbol to the contexts that escaped, and finds or makes the next context.
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
        let mut added = self.arena.text_end();
        if next == 0 {
            next = self.reduce_order(counted, self.shortest).ok_or(exhausted)?;
        } else if next < self.arena.units_start() {
            next = self.make_successors(false, counted, self.shortest).ok_or(exhausted)?;
        }
        self.order_fall = self.order_fall.wrapping_sub(1);
        if self.order_fall == 0 {
            added = next;
            if self.longest != self.shortest {
                self.arena.pop_text();
            }
        }
        self.add_to_contexts(symbol, u32::from(frequency), added)?;
        (self.shortest, self.longest) = (next, next);
        Ok(())
    }

    /// The symbol counts a little in the suffix, if it is not frequent; returns its state there.
    fn count_in_suffix(&mut self, symbol: u8, frequency: u32) -> Option<u32> {
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
    fn count_more(&mut self, context: u32, state: u32, more: u32) {
        let frequency = self.frequency(state);
        if frequency < FREQUENCY_MAX - 9 {
            self.set_frequency(state, frequency + more);
            self.add_to_sum(context, more);
        }
    }

    /// Adds the symbol to the contexts from the longest down to the shortest, which has it.
    fn add_to_contexts(&mut self, symbol: u8, frequency: u32, successor: u32) -> Result<(), ExhaustedAt> {
        let end = self.shortest;
        let others = self.symbols(end) - 1;
        let escaping = self.sum(end).wrapping_sub(others).wrapping_sub(frequency);
        let mut context = self.longest;
        while context != end {
            let count = self.symbols(context);
            let sum = match count {
                1 => self.make_list(context, others),
                _ => self.lengthen_list(context, count, others),
            };
            let mut sum = sum.ok_or(ExhaustedAt(context))?;
            let share = 2 * frequency * (sum + 6);
            let total = escaping.wrapping_add(sum);
            let first = if share < total.wrapping_mul(6) {
                sum += 4;
                1 + u32::from(share > total) + u32::from(share >= 4 * total)
            } else {
                let first =
                    4 + u32::from(share > 9 * total) + u32::from(share > 12 * total) + u32::from(share > 15 * total);
                sum += first;
                first
            };
            let [a, b, c, d] = successor.to_le_bytes();
            let state = self.states(context) + count * STATE;
            self.arena.set_state(state, [symbol, first as u8, a, b, c, d]);
            self.set_symbols(context, count + 1);
            self.set_flags(context, self.flags(context) | high(symbol) as u8);
            self.arena.set_u16(context + SUM, sum);
            context = self.suffix(context);
        }
        Ok(())
    }

    /// Makes room for another state in a list; returns the new sum of frequencies.
    fn lengthen_list(&mut self, context: u32, count: u32, others: u32) -> Option<u32> {
        if count.is_multiple_of(2) {
            let states = self.states(context);
            let longer = self.arena.expand(states, count / 2)?;
            self.arena.set_u32(context + STATES, longer);
        }
        Some(self.sum(context) + u32::from(3 * (count - 1) + 1 < others))
    }

    /// Makes a list of the one state of a context; returns the sum of frequencies.
    fn make_list(&mut self, context: u32, others: u32) -> Option<u32> {
        let states = self.arena.block(1)?;
        let mut state = self.arena.state(context + ONE_STATE);
        let frequency = u32::from(state[1]);
        let frequency = if frequency < FREQUENCY_MAX / 4 - 1 { 2 * frequency } else { FREQUENCY_MAX - 4 };
        state[1] = frequency as u8;
        self.arena.set_state(states, state);
        self.arena.set_u32(context + STATES, states);
        Some(frequency + self.escape_worth + u32::from(others > 2))
    }

    /// The successor of the last symbol is in the text: makes the contexts that it stands for, from short to long.
    /// `counted` is the state in the suffix of `context` where the symbol has been counted already.
    fn make_successors(&mut self, skip: bool, mut counted: Option<u32>, mut context: u32) -> Option<u32> {
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
            let state = counted.take().unwrap_or_else(|| self.count_on_the_way(context, symbol));
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
        let flags = (2 * high(symbol) + high(next)) as u8;
        let frequency = self.inherited_frequency(context, next);
        let [a, b, c, d] = (branch + 1).to_le_bytes();
        for &state in waiting[..count].iter().rev() {
            let longer = self.arena.context()?;
            self.set_symbols(longer, 1);
            self.set_flags(longer, flags);
            self.arena.set_state(longer + ONE_STATE, [next, frequency as u8, a, b, c, d]);
            self.arena.set_u32(longer + SUFFIX, context);
            self.set_successor(state, longer);
            context = longer;
        }
        Some(context)
    }

    /// Counts the symbol once more in a context whose successor is being made; returns its state.
    fn count_on_the_way(&mut self, context: u32, symbol: u8) -> u32 {
        let state = self.state_of(context, symbol);
        if self.symbols(context) > 1 {
            self.count_more(context, state, 1);
        } else {
            let frequency = self.frequency(state);
            let alone = self.symbols(self.suffix(context)) == 1;
            self.set_frequency(state, frequency + u32::from(alone && frequency < 24));
        }
        state
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

    /// What a new context expects of its one symbol, from the context that it extends.
    fn inherited_frequency(&self, context: u32, symbol: u8) -> u32 {
        let frequency = self.frequency(self.state_of(context, symbol));
        if self.symbols(context) == 1 {
            return frequency;
        }
        let this = frequency.wrapping_sub(1);
        let others = self.sum(context).wrapping_sub(self.symbols(context) - 1).wrapping_sub(this).max(1);
        1 + match this.wrapping_mul(2) <= others {
            true => u32::from(this.wrapping_mul(5) > others),
            false => this.wrapping_add(others.wrapping_mul(2)).wrapping_sub(3) / others,
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
                let frequency = (2 * self.frequency(states)).wrapping_add(escaping).wrapping_sub(1) / escaping.max(1);
                self.unmake_list(context, frequency.min(FREQUENCY_MAX / 3));
                self.found = context + ONE_STATE;
                return self.arena.release(states, count.div_ceil(2));
            }
            let states = self.arena.shrink(states, count.div_ceil(2), left.div_ceil(2));
            self.arena.set_u32(context + STATES, states);
        }
        self.arena.set_u16(context + SUM, halved.wrapping_add(escaping.div_ceil(2)));
        self.set_flags(context, self.flags(context) | RESCALED);
        self.found = self.states(context);
    }

    /// Only one state is left: it goes into the context. The list is the caller's to free.
    fn unmake_list(&mut self, context: u32, frequency: u32) {
        let mut state = self.arena.state(self.states(context));
        self.set_flags(context, (self.flags(context) & LED_BY_HIGH) + high(state[0]) as u8);
        state[1] = frequency as u8;
        self.arena.set_state(context + ONE_STATE, state);
    }
}

impl Model for ModelI {
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
