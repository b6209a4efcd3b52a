//! A table of bytes in which each that is used moves towards the front, as RAR 1.5 has them.
//!
//! An entry has a rank; used, it changes places with the first of its rank, and rises by one. So the entries stand by rank,
//! and the most used in front. When a rank becomes too high all begin anew, an eighth of the table on each of eight ranks.

/// A place in a table.
#[derive(Debug, Clone, Copy)]
pub(super) struct Byte(u8);

impl Byte {
    /// Makes a byte of a place; `None` for an invalid one: the codes have one symbol more than there are places.
    pub fn of(place: usize) -> Option<Byte> {
        u8::try_from(place).ok().map(Byte)
    }

    pub const fn value(self) -> u8 {
        self.0
    }
}

/// A table.
pub(super) struct Table {
    entries: [(u8, u8); 256],
    /// For each rank: where the first entry of it stands.
    first: [u8; 256],
    /// No entry that is used has this rank.
    rank_max: u8,
}

impl Table {
    /// A table of these bytes, all of them on one rank.
    pub fn new(byte: impl Fn(u8) -> u8, rank_max: u8) -> Table {
        Table { entries: std::array::from_fn(|at| (byte(at as u8), 0)), first: [0; 256], rank_max }
    }

    /// A table of all bytes in order, on eight ranks.
    pub fn ranked(rank_max: u8) -> Table {
        let mut table = Table::new(|at| at, rank_max);
        table.rank();
        table
    }

    fn rank(&mut self) {
        const RANKS: u8 = 8;
        const ON_EACH: usize = 32;
        self.first = [0; 256];
        for (rank, entries) in (0..RANKS).rev().zip(self.entries.chunks_exact_mut(ON_EACH)) {
            entries.iter_mut().for_each(|entry| entry.1 = rank);
            self.first[usize::from(rank)] = (RANKS - 1 - rank) * ON_EACH as u8;
        }
    }

    /// The byte at this place, which is used by that.
    pub fn look_up(&mut self, place: Byte) -> u8 {
        let place = usize::from(place.0);
        if self.entries[place].1 >= self.rank_max {
            self.rank();
        }
        let (byte, rank) = self.entries[place];
        let first = &mut self.first[usize::from(rank)];
        let moved = usize::from(*first);
        *first = first.wrapping_add(1);
        self.entries[place] = self.entries[moved];
        self.entries[moved] = (byte, rank + 1);
        byte
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_used_moves_to_the_front_of_its_rank() {
        let mut table = Table::new(|at| at, 0xff);
        let mut look_up = |place| table.look_up(Byte(place));
        assert_eq!([look_up(200), look_up(0), look_up(200)], [200, 200, 0]);
        assert_eq!([look_up(0), look_up(1), look_up(2)], [200, 0, 2]);
        for _ in 0..1000 {
            look_up(0);
        }
    }
}
