//! An index from keys to rules: the numbers of rules in the order of their keys, and where each range of keys begins.

/// Numbers of rules by their keys.
#[derive(Debug, Default)]
pub(super) struct Index {
    /// The entries of a range of keys are those from its start to the next.
    starts: Box<[u32]>,
    entries: Box<[(u32, u32)]>,
    /// A key without its lowest bits is the number of its range.
    shift: u32,
}

impl Index {
    /// An index of keys and numbers, with about one entry in a range.
    pub fn new(mut entries: Vec<(u32, u32)>) -> Index {
        entries.sort_unstable();
        entries.dedup();
        let bits = entries.len().next_power_of_two().ilog2().clamp(1, 24);
        let shift = u32::BITS - bits;
        let range = |number: u32| entries.partition_point(|(key, _)| key >> shift < number);
        let starts = (0..=1 << bits).map(|number| u32::try_from(range(number)).unwrap_or(u32::MAX)).collect();
        Index { starts, entries: entries.into(), shift }
    }

    /// The numbers under a key.
    pub fn of(&self, key: u32) -> impl Iterator<Item = u32> {
        let range = (key.checked_shr(self.shift).unwrap_or(0)) as usize;
        let bounds = self.starts.get(range).zip(self.starts.get(range + 1));
        let entries = bounds.and_then(|(&from, &to)| self.entries.get(from as usize..to as usize));
        entries.unwrap_or_default().iter().filter(move |(known, _)| *known == key).map(|(_, number)| *number)
    }

    /// The bytes that it takes.
    pub fn bytes(&self) -> usize {
        size_of_val(&*self.starts) + size_of_val(&*self.entries)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_key_has_its_numbers() {
        let of = |index: &Index, key| index.of(key).collect::<Vec<_>>();
        let index = Index::new(vec![(7, 1), (u32::MAX, 2), (0, 3), (7, 4), (1 << 31, 5)]);
        assert_eq!(of(&index, 7), [1, 4]);
        assert_eq!((of(&index, u32::MAX), of(&index, 0), of(&index, 1 << 31)), (vec![2], vec![3], vec![5]));
        assert!(
            of(&index, 8).is_empty()
                && of(&Index::new(Vec::new()), 7).is_empty()
                && of(&Index::default(), 7).is_empty()
        );
    }
}
