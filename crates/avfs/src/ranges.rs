//! Sets of ranges of bytes: what of a file has been written and waits for its verdict.

/// Ranges `start..end`, in order, that neither overlap nor touch.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Ranges(Vec<(u64, u64)>);

/// Where an offset lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// In a range that ends there.
    Inside(u64),
    /// Before a range that begins there, or before nothing.
    Outside(Option<u64>),
}

impl Ranges {
    /// Adds `start..end`; an empty one changes nothing.
    pub fn add(&mut self, start: u64, end: u64) {
        if start >= end {
            return;
        }
        let first = self.0.partition_point(|range| range.1 < start);
        let last = self.0.partition_point(|range| range.0 <= end);
        let (mut low, mut high) = (start, end);
        if first < last {
            low = low.min(self.0[first].0);
            high = high.max(self.0[last - 1].1);
        }
        self.0.splice(first..last, [(low, high)]);
    }

    /// Takes away what lies at `end` or behind it.
    pub fn cut(&mut self, end: u64) {
        self.0.retain(|range| range.0 < end);
        if let Some(last) = self.0.last_mut() {
            last.1 = last.1.min(end);
        }
    }

    /// Where an offset lies.
    pub fn place(&self, offset: u64) -> Place {
        let next = self.0.partition_point(|range| range.1 <= offset);
        match self.0.get(next) {
            Some(range) if range.0 <= offset => Place::Inside(range.1),
            Some(range) => Place::Outside(Some(range.0)),
            None => Place::Outside(None),
        }
    }

    /// The ranges, in order.
    pub fn iter(&self) -> impl Iterator<Item = (u64, u64)> {
        self.0.iter().copied()
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Bytes in all of them.
    pub fn bytes(&self) -> u64 {
        self.0.iter().map(|range| range.1 - range.0).sum()
    }

    /// Gaps between the ranges, from the first to the last.
    pub fn gaps(&self) -> Vec<(u64, u64)> {
        self.0.windows(2).map(|pair| (pair[0].1, pair[1].0)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn they_are_the_set_of_their_bytes(steps in proptest::collection::vec((0_u64..64, 0_u64..24, 0_u8..5), 0..40)) {
            let (mut ranges, mut bytes) = (Ranges::default(), [false; 128]);
            for (start, length, kind) in steps {
                if kind == 0 {
                    ranges.cut(start);
                    bytes[start as usize..].fill(false);
                } else {
                    ranges.add(start, start + length);
                    bytes[start as usize..(start + length) as usize].fill(true);
                }
                for (offset, &is_in) in bytes.iter().enumerate() {
                    let rest = &bytes[offset..];
                    let until = rest.iter().position(|&other| other != is_in).map(|count| (offset + count) as u64);
                    let expected = if is_in { Place::Inside(until.unwrap_or(128)) } else { Place::Outside(until) };
                    prop_assert_eq!(ranges.place(offset as u64), expected);
                }
                prop_assert_eq!(ranges.bytes(), bytes.iter().filter(|&&byte| byte).count() as u64);
                prop_assert!(ranges.gaps().iter().all(|gap| gap.0 < gap.1));
            }
        }
    }
}
