//! Many value numbers in as few bytes as their largest one needs, and none at all where they are all the same.

/// A sequence of value numbers.
#[derive(Debug)]
pub enum Ids {
    /// All the same.
    Same(u32),
    /// All below 256.
    Bytes(Vec<u8>),
    /// All below 65,536.
    Words(Vec<u16>),
    /// Any.
    Wide(Vec<u32>),
}

impl Default for Ids {
    fn default() -> Ids {
        Ids::Same(0)
    }
}

impl Ids {
    /// Packs numbers.
    pub fn new(ids: impl Iterator<Item = u32> + Clone) -> Ids {
        let first = ids.clone().next().unwrap_or(0);
        if ids.clone().all(|id| id == first) {
            return Ids::Same(first);
        }
        match ids.clone().max().unwrap_or(0) {
            0..=0xff => Ids::Bytes(ids.map(|id| u8::try_from(id).unwrap_or(0)).collect()),
            0x100..=0xffff => Ids::Words(ids.map(|id| u16::try_from(id).unwrap_or(0)).collect()),
            _ => Ids::Wide(ids.collect()),
        }
    }

    /// Returns the number at `at`; 0 beyond the end.
    pub fn get(&self, at: usize) -> u32 {
        match self {
            Ids::Same(id) => *id,
            Ids::Bytes(ids) => ids.get(at).copied().map_or(0, u32::from),
            Ids::Words(ids) => ids.get(at).copied().map_or(0, u32::from),
            Ids::Wide(ids) => ids.get(at).copied().unwrap_or(0),
        }
    }

    /// How many bytes it takes.
    pub fn memory_bytes(&self) -> usize {
        match self {
            Ids::Same(_) => 0,
            Ids::Bytes(ids) => ids.capacity(),
            Ids::Words(ids) => ids.capacity() * 2,
            Ids::Wide(ids) => ids.capacity() * 4,
        }
    }
}
