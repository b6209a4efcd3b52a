//! A persistent map from numbers to values: copies share their nodes, so a snapshot costs nothing, and a change copies
//! the path to its leaf.
//!
//! A radix tree over six bits a level, whose nodes hold only existing children. Keys are given in ascending order
//! (UIDs, numbers of messages), so leaves are full except for deletions.

use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;

const BITS: u32 = 6;
/// The level of the root that holds every key of 64 bits.
const LEVEL_MAX: u32 = 10;

/// A map in which `clone` is one reference count.
#[derive(Debug, Clone)]
pub struct Map<V> {
    root: Option<Arc<Node<V>>>,
    /// Level of the root; a leaf has level 0.
    level: u32,
    length: usize,
}

#[derive(Debug, Clone)]
enum Node<V> {
    Branch { present: u64, below: Vec<Arc<Node<V>>> },
    Leaf { present: u64, values: Vec<V> },
}

impl<V> Default for Map<V> {
    fn default() -> Self {
        Map { root: None, level: 0, length: 0 }
    }
}

impl<V: Clone> Map<V> {
    /// How many keys there are.
    pub fn len(&self) -> usize {
        self.length
    }

    /// Returns whether the map is empty.
    pub fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// The value of a key.
    pub fn get(&self, key: u64) -> Option<&V> {
        let mut node = self.root.as_ref().filter(|_| self.spans(key))?;
        let mut level = self.level;
        loop {
            match &**node {
                Node::Branch { present, below } => node = below.get(place(*present, key, level).ok()?)?,
                Node::Leaf { present, values } => return values.get(place(*present, key, 0).ok()?),
            }
            level = level.checked_sub(1)?;
        }
    }

    /// The value of a key, to be changed.
    pub fn get_mut(&mut self, key: u64) -> Option<&mut V> {
        self.get(key)?;
        let mut node = self.root.as_mut()?;
        let mut level = self.level;
        loop {
            match Arc::make_mut(node) {
                Node::Branch { present, below } => node = below.get_mut(place(*present, key, level).ok()?)?,
                Node::Leaf { present, values } => return values.get_mut(place(*present, key, 0).ok()?),
            }
            level = level.checked_sub(1)?;
        }
    }

    /// Sets the value of a key; returns the one it had.
    pub fn insert(&mut self, key: u64, value: V) -> Option<V> {
        while !self.spans(key) {
            if let Some(root) = self.root.take() {
                self.root = Some(Arc::new(Node::Branch { present: 1, below: vec![root] }));
            }
            self.level += 1;
        }
        let level = self.level;
        let root = self.root.get_or_insert_with(|| Arc::new(Node::empty(level)));
        let former = Arc::make_mut(root).insert(key, level, value);
        self.length += usize::from(former.is_none());
        former
    }

    /// Removes a key; returns its value.
    pub fn remove(&mut self, key: u64) -> Option<V> {
        self.get(key)?;
        let root = Arc::make_mut(self.root.as_mut()?);
        let removed = root.remove(key, self.level);
        if root.is_empty() {
            *self = Map::default();
        } else {
            self.length -= usize::from(removed.is_some());
        }
        removed
    }

    /// All from the least key on.
    pub fn iter(&self) -> Iter<'_, V> {
        self.from(0)
    }

    /// All whose keys are at least `key`, the least first.
    pub fn from(&self, key: u64) -> Iter<'_, V> {
        let mut iter = Iter { open: Vec::new() };
        if let Some(root) = self.root.as_ref().filter(|_| self.spans(key)) {
            iter.enter(root, self.level, 0, Some(key));
        }
        iter
    }

    fn spans(&self, key: u64) -> bool {
        self.level >= LEVEL_MAX || key >> (BITS * (self.level + 1)) == 0
    }
}

impl<V: Clone> Node<V> {
    fn empty(level: u32) -> Self {
        match level {
            0 => Node::Leaf { present: 0, values: Vec::new() },
            _ => Node::Branch { present: 0, below: Vec::new() },
        }
    }

    fn is_empty(&self) -> bool {
        matches!(self, Node::Branch { present: 0, .. } | Node::Leaf { present: 0, .. })
    }

    fn insert(&mut self, key: u64, level: u32, value: V) -> Option<V> {
        match self {
            Node::Branch { present, below } => {
                let at = place(*present, key, level).unwrap_or_else(|at| {
                    *present |= 1 << slot(key, level);
                    below.insert(at, Arc::new(Node::empty(level - 1)));
                    at
                });
                Arc::make_mut(&mut below[at]).insert(key, level - 1, value)
            }
            Node::Leaf { present, values } => match place(*present, key, 0) {
                Ok(at) => Some(core::mem::replace(&mut values[at], value)),
                Err(at) => {
                    *present |= 1 << slot(key, 0);
                    values.insert(at, value);
                    None
                }
            },
        }
    }

    fn remove(&mut self, key: u64, level: u32) -> Option<V> {
        match self {
            Node::Branch { present, below } => {
                let at = place(*present, key, level).ok()?;
                let child = Arc::make_mut(&mut below[at]);
                let removed = child.remove(key, level.checked_sub(1)?);
                if child.is_empty() {
                    below.remove(at);
                    *present &= !(1 << slot(key, level));
                }
                removed
            }
            Node::Leaf { present, values } => {
                let at = place(*present, key, 0).ok()?;
                *present &= !(1 << slot(key, 0));
                Some(values.remove(at))
            }
        }
    }
}

fn slot(key: u64, level: u32) -> u32 {
    (key >> (BITS * level)) as u32 & 63
}

/// Returns the position of a key's slot among the present ones, or its place if it is absent.
fn place(present: u64, key: u64, level: u32) -> Result<usize, usize> {
    let bit = 1u64 << slot(key, level);
    let at = (present & (bit - 1)).count_ones() as usize;
    if present & bit == 0 { Err(at) } else { Ok(at) }
}

/// Keys and values in ascending order.
#[derive(Debug)]
pub struct Iter<'a, V> {
    open: Vec<Open<'a, V>>,
}

#[derive(Debug)]
struct Open<'a, V> {
    node: &'a Node<V>,
    level: u32,
    /// The bits of the key above this node.
    above: u64,
    remaining: u64,
    /// No key below this one, where this node is on the way to it.
    least: Option<u64>,
}

impl<'a, V> Iter<'a, V> {
    fn enter(&mut self, node: &'a Node<V>, level: u32, above: u64, least: Option<u64>) {
        let (Node::Branch { present, .. } | Node::Leaf { present, .. }) = node;
        let remaining = present & least.map_or(u64::MAX, |key| u64::MAX << slot(key, level));
        self.open.push(Open { node, level, above, remaining, least });
    }
}

impl<'a, V> Iterator for Iter<'a, V> {
    type Item = (u64, &'a V);

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let open = self.open.last_mut()?;
            if open.remaining == 0 {
                self.open.pop();
                continue;
            }
            let next = u64::from(open.remaining.trailing_zeros());
            open.remaining &= open.remaining - 1;
            let key = open.above | next << (BITS * open.level);
            match open.node {
                Node::Leaf { present, values } => {
                    return Some((key, values.get(place(*present, key, 0).ok()?)?));
                }
                Node::Branch { present, below } => {
                    let level = open.level;
                    let least = open.least.filter(|&least| u64::from(slot(least, level)) == next);
                    let node = below.get(place(*present, key, level).ok()?)?;
                    self.enter(node, level.checked_sub(1)?, key, least);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use alloc::collections::BTreeMap;

    use super::*;

    #[test]
    fn it_is_a_sorted_map_and_copies_of_it_do_not_change() {
        let mut random = 7u64;
        let mut next = move || {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            random
        };
        let (mut map, mut reference) = (Map::default(), BTreeMap::new());
        let mut snapshots = Vec::new();
        for step in 0..20_000u64 {
            let width = [8, 14, 33, 64][next() as usize % 4];
            let key = next() >> (64 - width);
            match next() % 3 {
                0 => assert_eq!(map.remove(key), reference.remove(&key)),
                1 if map.get_mut(key).is_some() => {
                    *map.get_mut(key).unwrap() += 1;
                    *reference.get_mut(&key).unwrap() += 1;
                }
                _ => assert_eq!(map.insert(key, step), reference.insert(key, step)),
            }
            assert_eq!(map.len(), reference.len());
            if step % 2_000 == 0 {
                snapshots.push((map.clone(), reference.clone()));
                let from = next() >> 40;
                assert!(
                    map.from(from).map(|(key, &value)| (key, value)).eq(reference.range(from..).map(|(&k, &v)| (k, v)))
                );
            }
        }
        for (map, reference) in snapshots {
            assert!(map.iter().map(|(key, &value)| (key, value)).eq(reference.into_iter()));
        }
        for key in map.iter().map(|(key, _)| key).collect::<Vec<_>>() {
            map.remove(key);
        }
        assert!(map.is_empty() && map.iter().next().is_none());
    }
}
