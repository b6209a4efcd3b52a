//! Arrays of numbers in as many bytes as the largest of them needs.

use std::io;

use pattern::flat::{Flat, Reader, Unfit, Writer};

/// Numbers.
#[derive(Debug, Clone)]
pub(crate) struct Packed {
    bytes: Flat<u8>,
    /// Width of a number: 1 to 8.
    width: usize,
}

impl Default for Packed {
    fn default() -> Packed {
        Packed::new([].into_iter())
    }
}

impl Packed {
    /// Packs numbers.
    pub(crate) fn new(numbers: impl Iterator<Item = u64> + Clone) -> Packed {
        let most = numbers.clone().max().unwrap_or(0);
        let width = (u64::BITS - most.leading_zeros()).div_ceil(8).max(1) as usize;
        let mut bytes = Vec::with_capacity(numbers.size_hint().0.saturating_mul(width));
        numbers.for_each(|number| bytes.extend_from_slice(&number.to_le_bytes()[..width]));
        Packed { bytes: bytes.into(), width }
    }

    pub(crate) fn len(&self) -> usize {
        self.bytes.len() / self.width
    }

    /// The number at a place.
    #[inline]
    pub(crate) fn get(&self, place: usize) -> Option<u64> {
        let start = place.checked_mul(self.width)?;
        let bytes = self.bytes.get(start..)?.get(..self.width)?;
        let mut number = [0; 8];
        number[..self.width].copy_from_slice(bytes);
        Some(u64::from_le_bytes(number))
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = u64> {
        (0..self.len()).filter_map(|place| self.get(place))
    }

    /// How many of these numbers, which are sorted, come before `number`.
    pub(crate) fn before(&self, number: u64) -> usize {
        let (mut from, mut to) = (0, self.len());
        while from < to {
            let middle = from + (to - from) / 2;
            match self.get(middle) {
                Some(known) if known < number => from = middle + 1,
                _ => to = middle,
            }
        }
        from
    }

    pub(crate) fn store(&self, writer: &mut Writer<'_>) -> io::Result<()> {
        writer.array(&[self.width as u64])?;
        writer.array(&self.bytes)
    }

    pub(crate) fn load(reader: &mut Reader) -> Result<Packed, Unfit> {
        let ([width], bytes) = (reader.values::<u64, 1>()?, reader.array::<u8>()?);
        let width = usize::try_from(width).ok().filter(|width| (1..=8).contains(width)).ok_or(Unfit::Malformed)?;
        if bytes.len() % width == 0 { Ok(Packed { bytes, width }) } else { Err(Unfit::Malformed) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_any_width_come_back() {
        for numbers in [vec![], vec![0], vec![1, 255], vec![3, 256, 65_536], vec![0, u64::from(u32::MAX), u64::MAX]] {
            let packed = Packed::new(numbers.iter().copied());
            assert_eq!(packed.iter().collect::<Vec<_>>(), numbers);
            assert_eq!(packed.get(numbers.len()), None);
            assert_eq!(packed.get(usize::MAX), None);
            for (place, &number) in numbers.iter().enumerate() {
                assert_eq!(packed.before(number), place);
            }
        }
    }
}
