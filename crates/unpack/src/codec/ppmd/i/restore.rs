//! Behaviour of variant I when its memory is exhausted: it takes back the step that was under way, and starts over or
//! cuts off. Cutting off removes, from the longest contexts on, all that leads to the text or to nothing; the rest is
//! moved up, so that the text has room again.

use super::super::arena::STATE;
use super::super::estimate::high;
use super::super::model::{ONE_STATE, STATES, SUM};
use super::{I, LED_BY_HIGH, ModelI, RESCALED, Restore};

impl ModelI {
    /// The memory was exhausted when `failed` was to be enlarged.
    pub(super) fn restore(&mut self, failed: u32) {
        if self.arena.is_over_limit() {
            return;
        }
        self.arena.clear_text();
        self.take_back(failed);
        if self.variant.restore == Restore::Restart || self.arena.used() < self.arena.size() / 2 {
            self.restart();
        } else {
            while self.suffix(self.longest) != 0 {
                self.longest = self.suffix(self.longest);
            }
            loop {
                self.cut_off(self.longest, 0);
                self.arena.expand_text_area();
                if self.arena.used() <= 3 * (self.arena.size() / 4) {
                    break;
                }
            }
            self.arena.glue_soon();
            self.order_fall = self.order_max();
        }
        self.shortest = self.longest;
    }

    /// Takes the symbol that was last added out of the contexts longer than `failed`; those from there on escape more.
    fn take_back(&mut self, failed: u32) {
        let mut context = self.longest;
        while context != failed {
            let count = self.symbols(context) - 1;
            self.set_symbols(context, count);
            if count == 1 {
                let states = self.states(context);
                self.unmake_list(context, (self.frequency(states) + 11) >> 3);
                self.arena.release_unit(states);
            } else {
                self.refresh(context, (count + 2) / 2, false);
            }
            context = self.suffix(context);
        }
        while context != self.shortest {
            let count = self.symbols(context);
            if count == 1 {
                let state = context + ONE_STATE;
                self.set_frequency(state, self.frequency(state).div_ceil(2));
            } else {
                self.add_to_sum(context, 4);
                if self.sum(context) > 128 + 4 * (count - 1) {
                    self.refresh(context, count.div_ceil(2), true);
                }
            }
            context = self.suffix(context);
        }
    }

    /// Makes the list of a context, which had `units`, as small as it can be; halves its frequencies if asked to.
    fn refresh(&mut self, context: u32, units: u32, halve: bool) {
        let count = self.symbols(context);
        let states = self.arena.shrink(self.states(context), units, count.div_ceil(2));
        self.arena.set_u32(context + STATES, states);
        let sum = self.sum(context);
        let scale = u32::from(halve || sum >= 1 << 15);
        let (mut escaping, mut all, mut highest) = (sum, 0, 0);
        for state in self.arena.states_mut(states, count) {
            let frequency = u32::from(state[1]);
            escaping = escaping.wrapping_sub(frequency);
            state[1] = ((frequency + scale) >> scale) as u8;
            all += u32::from(state[1]);
            highest |= high(state[0]) as u8;
        }
        self.arena.set_u16(context + SUM, all.wrapping_add(escaping.wrapping_add(scale) >> scale));
        let kept = LED_BY_HIGH + RESCALED * scale as u8;
        let flags = (I::flags(&self.arena, context) & kept) + highest;
        I::set_flags(&mut self.arena, context, flags);
    }

    /// Cuts off a context and the longer ones that it leads to; where it is now, or 0 if it is gone. The depth is at most
    /// the order of the model.
    fn cut_off(&mut self, context: u32, order: u32) -> u32 {
        let count = self.symbols(context);
        if count == 1 {
            return self.cut_off_single(context, order);
        }
        let units = count.div_ceil(2);
        let states = self.arena.move_up(self.states(context), units);
        self.arena.set_u32(context + STATES, states);
        let left = self.cut_off_list(states, count, order);
        if left == count || order == 0 {
            return context;
        }
        if left == 0 {
            self.arena.release(states, units);
            self.arena.release_unit(context);
            return 0;
        }
        self.set_symbols(context, left);
        if left == 1 {
            self.unmake_list(context, (self.frequency(states) + 11) >> 3);
            self.arena.release(states, units);
        } else {
            let halve = self.sum(context) > 16 * (left - 1);
            self.refresh(context, units, halve);
        }
        context
    }

    fn cut_off_single(&mut self, context: u32, order: u32) -> u32 {
        const KEPT_ORDER_MAX: u32 = 9;
        let state = context + ONE_STATE;
        if self.successor(state) >= self.arena.units_start() {
            let successor = self.cut_off_successor(state, order);
            if successor != 0 || order <= KEPT_ORDER_MAX {
                return context;
            }
        }
        self.arena.release_unit(context);
        0
    }

    /// Cuts off the successors of a list of states; states without one are removed, except for those of the root.
    /// Returns how many are left.
    fn cut_off_list(&mut self, states: u32, count: u32, order: u32) -> u32 {
        let mut left = count;
        for at in (0..count).rev() {
            let state = states + at * STATE;
            if self.successor(state) >= self.arena.units_start() {
                self.cut_off_successor(state, order);
                continue;
            }
            left -= 1;
            let last = states + left * STATE;
            let (this, moved) = (self.arena.state(state), self.arena.state(last));
            self.arena.set_state(state, moved);
            if order == 0 {
                self.arena.set_state(last, this);
                self.set_successor(last, 0);
            }
        }
        left
    }

    fn cut_off_successor(&mut self, state: u32, order: u32) -> u32 {
        let longer = self.successor(state);
        let successor = if order < self.order_max() { self.cut_off(longer, order + 1) } else { 0 };
        self.set_successor(state, successor);
        successor
    }
}
