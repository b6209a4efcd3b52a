//! The memory of a PPMd model: a text that grows up from address 0, and above it units of 12 bytes.
//!
//! Which address a block gets decides when the memory is exhausted and the model starts over, so the bookkeeping is part
//! of the format: blocks of 38 sizes, a free list for each, fresh units from both ends of the gap between `lo` and `hi`,
//! neighbours joined now and then. The addresses span the size that the stream declares. Memory stands behind them only
//! where something has been written: at both ends of the gap, doubling as they fill.
//!
//! ```text
//! 0 ─text─▶ … units_start ─blocks─▶ lo … gap … hi ◀─contexts─ size
//! ```
//!
//! Bounds: what has been written, at most twice the declared size (text and blocks may each have been anywhere) and the cap;
//! beyond the cap allocation fails and [`Arena::is_over_limit`] says why.

/// Bytes of a unit.
pub(super) const UNIT: u32 = 12;

/// Bytes of a state: symbol, frequency, successor.
pub(super) const STATE: u32 = 6;

/// The sizes of blocks: steps of 1, 2, 3 and 4 units, up to 128.
const CLASSES: usize = 38;
const BLOCK_UNITS_MAX: usize = 128;
const UNITS_OF_CLASS: [u32; CLASSES] = units_of_class();
const CLASS_OF_UNITS: [u8; BLOCK_UNITS_MAX] = class_of_units();

/// Mark at the start of a free unit; no state and no context begins so.
const FREE: u32 = u32::MAX;

/// How free blocks that are neighbours are joined, which the variants do differently.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Gluing {
    /// How many searches for a block there are between two times.
    pub every: u32,
    /// The longest run that is made.
    pub run_units_max: u32,
    /// Whether the blocks of the last list are joined first.
    pub last_first: bool,
}

/// The memory of one model.
pub(crate) struct Arena {
    gluing: Gluing,
    size: u32,
    bytes_max: usize,
    over_limit: bool,
    memory: Memory,
    text: Vec<u8>,
    text_end: u32,
    units_start: u32,
    lo: u32,
    hi: u32,
    glue_in: u32,
    free: [u32; CLASSES],
    free_blocks: [u32; CLASSES],
}

impl Arena {
    /// Makes an arena of `size` bytes, of which at most `bytes_max` may be used. Memory is allocated later.
    pub fn new(gluing: Gluing, size: u32, bytes_max: usize) -> Arena {
        let units_start = size - size / 8 / UNIT * 7 * UNIT;
        Arena {
            gluing,
            size,
            bytes_max,
            over_limit: false,
            memory: Memory::new(units_start, size),
            text: Vec::new(),
            text_end: 0,
            units_start,
            lo: units_start,
            hi: size,
            glue_in: 0,
            free: [0; CLASSES],
            free_blocks: [0; CLASSES],
        }
    }

    /// Forgets all blocks and the text. Memory taken is kept.
    pub fn reset(&mut self) {
        self.text_end = 0;
        self.units_start = self.size - self.size / 8 / UNIT * 7 * UNIT;
        self.lo = self.units_start;
        self.hi = self.size;
        self.glue_in = 0;
        self.free = [0; CLASSES];
        self.free_blocks = [0; CLASSES];
    }

    /// Whether an allocation has failed for the cap, and not for the size that was declared.
    pub const fn is_over_limit(&self) -> bool {
        self.over_limit
    }

    /// The size that was declared.
    pub const fn size(&self) -> u32 {
        self.size
    }

    /// Bytes of memory taken now.
    #[cfg(test)]
    pub fn memory_bytes(&self) -> usize {
        self.memory.bytes.capacity() + self.text.capacity()
    }

    /// Where the next byte of text goes.
    pub const fn text_end(&self) -> u32 {
        self.text_end
    }

    /// Beginning of the blocks; text is below.
    pub const fn units_start(&self) -> u32 {
        self.units_start
    }

    /// Appends to the text; whether there is still room behind it.
    pub fn push_text(&mut self, symbol: u8) -> bool {
        let at = self.text_end as usize;
        match self.text.get_mut(at) {
            Some(byte) => *byte = symbol,
            None => {
                if at + self.memory.bytes.len() >= self.bytes_max {
                    self.over_limit = true;
                    return false;
                }
                if at == self.text.capacity() {
                    let room = (self.size as usize).min(self.bytes_max - self.memory.bytes.len());
                    self.text.reserve_exact(at.max(4096).min(room - at));
                }
                self.text.push(symbol);
            }
        }
        self.text_end += 1;
        self.text_end < self.units_start
    }

    /// Takes back the last byte of text.
    pub fn pop_text(&mut self) {
        self.text_end = self.text_end.saturating_sub(1);
    }

    /// Forgets the text.
    pub fn clear_text(&mut self) {
        self.text_end = 0;
    }

    /// The byte of text at an address.
    pub fn text(&self, address: u32) -> u8 {
        self.text.get(address as usize).copied().unwrap_or(0)
    }

    /// A unit for a context.
    pub fn context(&mut self) -> Option<u32> {
        if self.hi != self.lo {
            self.hi = self.reach(self.hi - UNIT, UNIT)?;
            return Some(self.hi);
        }
        if self.free[0] != 0 { Some(self.take(0)) } else { self.search(0) }
    }

    /// A block for `units` units.
    pub fn block(&mut self, units: u32) -> Option<u32> {
        let class = class_of(units);
        if self.free[class] != 0 {
            return Some(self.take(class));
        }
        let bytes = UNITS_OF_CLASS[class] * UNIT;
        if self.hi - self.lo >= bytes {
            let block = self.reach(self.lo, bytes)?;
            self.lo += bytes;
            return Some(block);
        }
        self.search(class)
    }

    /// Puts a block of `units` units on its free list.
    pub fn release(&mut self, block: u32, units: u32) {
        self.put(block, class_of(units));
    }

    /// Frees a unit; at the border to the text it goes there.
    pub fn release_unit(&mut self, unit: u32) {
        if unit == self.units_start { self.units_start += UNIT } else { self.put(unit, 0) }
    }

    /// A block for one unit more than the `units` that `block` holds; the old one is released if it was too small.
    pub fn expand(&mut self, block: u32, units: u32) -> Option<u32> {
        let class = class_of(units);
        if class == class_of(units + 1) {
            return Some(block);
        }
        let larger = self.block(units + 1)?;
        self.memory.copy(block, larger, units * UNIT);
        self.put(block, class);
        Some(larger)
    }

    /// Makes a block smaller, from `old` units to `new`; returns where it is now.
    pub fn shrink(&mut self, block: u32, old: u32, new: u32) -> u32 {
        let (old_class, new_class) = (class_of(old), class_of(new));
        if old_class == new_class {
            return block;
        }
        if self.free[new_class] != 0 {
            let smaller = self.take(new_class);
            self.memory.copy(block, smaller, new * UNIT);
            self.put(block, old_class);
            return smaller;
        }
        self.split(block, old_class, new_class);
        block
    }

    /// Moves a block away from the border to the text, if there is a free one further up.
    pub fn move_up(&mut self, block: u32, units: u32) -> u32 {
        const NEAR: u32 = 1 << 14;
        let class = class_of(units);
        if block > self.units_start + NEAR || block > self.free[class] {
            return block;
        }
        let upper = self.take(class);
        self.memory.copy(block, upper, units * UNIT);
        if block == self.units_start {
            self.units_start += UNITS_OF_CLASS[class] * UNIT;
        } else {
            self.put(block, class);
        }
        upper
    }

    /// Gives free blocks at the border to the text.
    pub fn expand_text_area(&mut self) {
        let mut given = [0; CLASSES];
        let mut unit = self.units_start;
        while self.is_free(unit) {
            let units = self.units(unit);
            self.memory.set_u32(unit, 0);
            given[class_of(units)] += 1;
            unit += units * UNIT;
        }
        self.units_start = unit;
        for (class, &given) in given.iter().enumerate() {
            self.unlist(class, given);
        }
    }

    /// Takes the `count` blocks that have been given away off a list.
    fn unlist(&mut self, class: usize, mut count: u32) {
        self.free_blocks[class] -= count;
        let mut before = None;
        let mut node = self.free[class];
        while count > 0 && node != 0 {
            let next = self.next(node);
            if self.memory.u32(node) != 0 {
                before = Some(node);
            } else {
                match before {
                    Some(before) => self.set_next(before, next),
                    None => self.free[class] = next,
                }
                count -= 1;
            }
            node = next;
        }
    }

    /// Bytes that are neither in the gaps nor on a free list.
    pub fn used(&self) -> u32 {
        let free: u32 = self.free_blocks.iter().zip(UNITS_OF_CLASS).map(|(&blocks, units)| blocks * units).sum();
        self.size - (self.hi - self.lo) - (self.units_start - self.text_end) - free * UNIT
    }

    /// Joins neighbours at the next occasion.
    pub fn glue_soon(&mut self) {
        self.glue_in = 0;
    }

    /// A block of a class that has none and for which the gap is too small.
    fn search(&mut self, class: usize) -> Option<u32> {
        if self.glue_in == 0 {
            self.glue();
            if self.free[class] != 0 {
                return Some(self.take(class));
            }
        }
        if let Some(larger) = (class + 1..CLASSES).find(|&larger| self.free[larger] != 0) {
            let block = self.take(larger);
            self.split(block, larger, class);
            return Some(block);
        }
        self.glue_in = self.glue_in.saturating_sub(1);
        let bytes = UNITS_OF_CLASS[class] * UNIT;
        if self.units_start - self.text_end <= bytes {
            return None;
        }
        self.units_start = self.reach(self.units_start - bytes, bytes)?;
        Some(self.units_start)
    }

    /// Joins free blocks that are neighbours, and sorts them into the lists anew.
    fn glue(&mut self) {
        let mut nodes = self.collect();
        nodes.retain(|&node| self.join(node));
        for node in nodes {
            let units = self.units(node);
            if units != 0 {
                self.put_run(node, units);
            }
        }
    }

    /// Joins a free block with those behind it; whether it has not itself been joined before.
    fn join(&mut self, node: u32) -> bool {
        let mut units = self.units(node);
        if units == 0 {
            return false;
        }
        while self.is_free(node + units * UNIT) {
            let neighbour = node + units * UNIT;
            let joined = units + self.units(neighbour);
            if joined > self.gluing.run_units_max {
                break;
            }
            units = joined;
            self.set_units(neighbour, 0);
            self.set_units(node, units);
        }
        true
    }

    /// All free blocks, off their lists, in the order in which they are joined.
    fn collect(&mut self) -> Vec<u32> {
        let mut nodes = Vec::with_capacity(self.free_blocks.iter().sum::<u32>() as usize);
        for class in 0..CLASSES {
            let mut node = std::mem::take(&mut self.free[class]);
            while node != 0 {
                nodes.push(node);
                node = self.next(node);
            }
        }
        self.free_blocks = [0; CLASSES];
        self.glue_in = self.gluing.every;
        if self.gluing.last_first {
            nodes.reverse();
        }
        nodes
    }

    fn put_run(&mut self, mut node: u32, mut units: u32) {
        while units > BLOCK_UNITS_MAX as u32 {
            self.put(node, CLASSES - 1);
            units -= BLOCK_UNITS_MAX as u32;
            node += BLOCK_UNITS_MAX as u32 * UNIT;
        }
        self.put_two(node, units);
    }

    /// Puts a free run of units on the lists: as one block, or as the largest that fits and the rest.
    fn put_two(&mut self, node: u32, units: u32) {
        let mut class = class_of(units);
        if UNITS_OF_CLASS[class] != units {
            class -= 1;
            let first = UNITS_OF_CLASS[class];
            self.put(node + first * UNIT, class_of(units - first));
        }
        self.put(node, class);
    }

    fn split(&mut self, block: u32, class: usize, wanted: usize) {
        let units = UNITS_OF_CLASS[wanted];
        self.put_two(block + units * UNIT, UNITS_OF_CLASS[class] - units);
    }

    fn put(&mut self, block: u32, class: usize) {
        self.memory.set_u32(block, FREE);
        self.set_next(block, self.free[class]);
        self.set_units(block, UNITS_OF_CLASS[class]);
        self.free[class] = block;
        self.free_blocks[class] += 1;
    }

    fn take(&mut self, class: usize) -> u32 {
        let block = self.free[class];
        self.free[class] = self.next(block);
        self.free_blocks[class] -= 1;
        block
    }

    /// Returns whether a free block begins at `unit`. The gap has no blocks.
    fn is_free(&self, unit: u32) -> bool {
        !(unit == self.lo && self.lo != self.hi) && self.memory.u32(unit) == FREE
    }

    fn next(&self, node: u32) -> u32 {
        self.memory.u32(node + 4)
    }

    fn set_next(&mut self, node: u32, next: u32) {
        self.memory.set_u32(node + 4, next);
    }

    fn units(&self, node: u32) -> u32 {
        self.memory.u32(node + 8)
    }

    fn set_units(&mut self, node: u32, units: u32) {
        self.memory.set_u32(node + 8, units);
    }

    /// Makes sure that there is memory behind these addresses.
    #[inline]
    fn reach(&mut self, address: u32, bytes: u32) -> Option<u32> {
        if !self.memory.holds(address, bytes) {
            let bytes_max = self.bytes_max.saturating_sub(self.text.capacity());
            if !self.memory.grow(address, bytes, bytes_max) {
                self.over_limit = true;
                return None;
            }
        }
        Some(address)
    }

    #[inline(always)]
    pub fn u8(&self, address: u32) -> u8 {
        self.memory.bytes[self.memory.index(address)]
    }

    #[inline(always)]
    pub fn set_u8(&mut self, address: u32, value: u8) {
        let index = self.memory.index(address);
        self.memory.bytes[index] = value;
    }

    #[inline(always)]
    pub fn u16(&self, address: u32) -> u32 {
        u32::from(u16::from_le_bytes(*self.memory.field(address)))
    }

    #[inline(always)]
    pub fn set_u16(&mut self, address: u32, value: u32) {
        *self.memory.field_mut(address) = (value as u16).to_le_bytes();
    }

    #[inline(always)]
    pub fn u32(&self, address: u32) -> u32 {
        self.memory.u32(address)
    }

    #[inline(always)]
    pub fn set_u32(&mut self, address: u32, value: u32) {
        self.memory.set_u32(address, value);
    }

    /// The state at an address.
    #[inline(always)]
    pub fn state(&self, address: u32) -> [u8; STATE as usize] {
        *self.memory.field(address)
    }

    #[inline(always)]
    pub fn set_state(&mut self, address: u32, state: [u8; STATE as usize]) {
        *self.memory.field_mut(address) = state;
    }

    /// `count` states in a row.
    #[inline(always)]
    pub fn states(&self, address: u32, count: u32) -> &[[u8; STATE as usize]] {
        let index = self.memory.index(address);
        self.memory.bytes[index..index + (count * STATE) as usize].as_chunks().0
    }

    #[inline(always)]
    pub fn states_mut(&mut self, address: u32, count: u32) -> &mut [[u8; STATE as usize]] {
        let index = self.memory.index(address);
        self.memory.bytes[index..index + (count * STATE) as usize].as_chunks_mut().0
    }
}

/// Bytes behind two ranges of addresses, `start..low_end` and `high_start..end`, which in time become one.
struct Memory {
    bytes: Vec<u8>,
    start: u32,
    low_end: u32,
    high_start: u32,
    end: u32,
    /// Distance by which addresses of the upper range are ahead of their index.
    ahead: u32,
}

impl Memory {
    const FIRST_BYTES: u32 = 32 << 10;

    fn new(start: u32, end: u32) -> Memory {
        Memory { bytes: Vec::new(), start, low_end: start, high_start: end, end, ahead: end }
    }

    #[inline(always)]
    fn index(&self, address: u32) -> usize {
        let ahead = if address < self.high_start { self.start } else { self.ahead };
        address.wrapping_sub(ahead) as usize
    }

    fn holds(&self, address: u32, bytes: u32) -> bool {
        let end = address + bytes;
        if self.low_end == self.high_start {
            return address >= self.start;
        }
        address >= self.start && end <= self.low_end || address >= self.high_start
    }

    /// Takes more memory, so that these addresses have some; whether that was within `bytes_max`.
    fn grow(&mut self, address: u32, bytes: u32, bytes_max: usize) -> bool {
        if address < self.start {
            return self.grow_whole(bytes_max);
        }
        let is_low = address <= self.low_end;
        let (side, needed) = match is_low {
            true => (self.low_end - self.start, address + bytes - self.low_end),
            false => (self.end - self.high_start, self.high_start - address),
        };
        let gap = self.high_start - self.low_end;
        let room = u32::try_from(bytes_max.saturating_sub(self.bytes.len())).unwrap_or(u32::MAX).min(gap);
        let wanted = side.max(Memory::FIRST_BYTES).min(if room == gap { gap } else { room / 2 }).max(needed);
        // A side has whole units.
        let more = wanted.next_multiple_of(UNIT).min(gap);
        if more > room {
            return false;
        }
        self.extend(more, is_low);
        true
    }

    fn extend(&mut self, more: u32, is_low: bool) {
        let low = (self.low_end - self.start) as usize;
        let old = self.bytes.len();
        self.bytes.reserve_exact(more as usize);
        self.bytes.resize(old + more as usize, 0);
        // Fresh memory within the old one: below the old upper range in both cases.
        self.bytes.copy_within(low..old, low + more as usize);
        if is_low {
            self.low_end += more
        } else {
            self.high_start -= more
        }
        self.ahead = self.high_start - (self.low_end - self.start);
    }

    /// Takes the whole of the declared size, the text's part included: blocks have grown into it.
    fn grow_whole(&mut self, bytes_max: usize) -> bool {
        if self.end as usize > bytes_max {
            return false;
        }
        let below = self.start as usize;
        let old = self.bytes.len();
        self.bytes.reserve_exact(below);
        self.bytes.resize(old + below, 0);
        self.bytes.copy_within(..old, below);
        let gap = self.high_start - self.low_end;
        self.start = 0;
        self.ahead = gap;
        if gap > 0 {
            self.extend(gap, true);
        }
        true
    }

    #[inline(always)]
    fn field<const N: usize>(&self, address: u32) -> &[u8; N] {
        let index = self.index(address);
        self.bytes[index..].first_chunk().expect("blocks lie within the memory")
    }

    #[inline(always)]
    fn field_mut<const N: usize>(&mut self, address: u32) -> &mut [u8; N] {
        let index = self.index(address);
        self.bytes[index..].first_chunk_mut().expect("blocks lie within the memory")
    }

    #[inline(always)]
    fn u32(&self, address: u32) -> u32 {
        u32::from_le_bytes(*self.field(address))
    }

    #[inline(always)]
    fn set_u32(&mut self, address: u32, value: u32) {
        *self.field_mut(address) = value.to_le_bytes();
    }

    fn copy(&mut self, from: u32, to: u32, bytes: u32) {
        let (from, to) = (self.index(from), self.index(to));
        self.bytes.copy_within(from..from + bytes as usize, to);
    }
}

#[inline(always)]
fn class_of(units: u32) -> usize {
    usize::from(CLASS_OF_UNITS[units as usize - 1])
}

const fn units_of_class() -> [u32; CLASSES] {
    let mut all = [0; CLASSES];
    let (mut class, mut units) = (0, 0);
    while class < CLASSES {
        units += if class >= 12 { 4 } else { class as u32 / 4 + 1 };
        all[class] = units;
        class += 1;
    }
    all
}

const fn class_of_units() -> [u8; BLOCK_UNITS_MAX] {
    let mut all = [0; BLOCK_UNITS_MAX];
    let (mut units, mut class) = (1, 0);
    while units <= BLOCK_UNITS_MAX {
        if units > UNITS_OF_CLASS[class] as usize {
            class += 1;
        }
        all[units - 1] = class as u8;
        units += 1;
    }
    all
}
