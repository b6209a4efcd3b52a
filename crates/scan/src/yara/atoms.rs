//! Atoms: runs of up to four bytes of which every match of a tree contains one.
//!
//! YARA looks for atoms first and goes on from each, forwards and backwards; which match it tells of a start, and how long
//! that is, depends on them. So they are chosen here as YARA chooses them: by a quality that prefers many different bytes
//! that are no letters, the first of equal ones, and of alternatives one of each side.

use super::program::TooLarge;
use super::tree::{Id, Node, Tree};

/// The most bytes of an atom.
pub(crate) const ATOM_MAX: usize = 4;
/// The best quality; an atom that has it is not compared with others.
const BEST: i32 = 255;
/// The quality of no atom.
const NONE: i32 = 0;
/// The most atoms of a tree.
const ATOMS_MAX: usize = 4096;
/// The most nodes that are passed, operands of quantifiers several times.
const NODES_MAX: u32 = 1 << 20;

/// An atom.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Atom {
    bytes: [u8; ATOM_MAX],
    masks: [u8; ATOM_MAX],
    length: u8,
    /// The node of its first byte.
    pub(crate) first: Id,
}

impl Atom {
    pub(crate) fn len(&self) -> usize {
        self.length.into()
    }

    /// Its values with the bits of them that count.
    pub(crate) fn bytes(&self) -> impl DoubleEndedIterator<Item = (u8, u8)> + '_ {
        self.bytes.iter().copied().zip(self.masks).take(self.len())
    }

    /// Each byte followed by NUL, as far as there is room.
    pub(crate) fn widened(&self) -> Atom {
        let mut wide = Atom { bytes: [0; ATOM_MAX], masks: [u8::MAX; ATOM_MAX], length: 0, first: self.first };
        for (index, (byte, mask)) in self.bytes().enumerate().take(ATOM_MAX / 2) {
            (wide.bytes[2 * index], wide.masks[2 * index]) = (byte, mask);
        }
        wide.length = (2 * self.length).min(ATOM_MAX as u8);
        wide
    }

    fn quality(&self) -> i32 {
        let points = |(byte, mask): (u8, u8)| match mask {
            0 => -10,
            0x0f | 0xf0 => 4,
            _ if matches!(byte, 0 | 0x20 | 0xcc | 0xff) => 12,
            _ if byte.is_ascii_alphabetic() => 18,
            _ => 20,
        };
        let mut different: Vec<u8> = self.bytes().filter(|(_, mask)| *mask == u8::MAX).map(|(byte, _)| byte).collect();
        different.sort_unstable();
        different.dedup();
        let bonus = match different.as_slice() {
            [0 | 0x20 | 0x90 | 0xcc | 0xff] => -10 * i32::from(self.length),
            all => 2 * all.len() as i32,
        };
        BEST - 22 * ATOM_MAX as i32 + self.bytes().map(points).sum::<i32>() + bonus
    }
}

/// The atoms of a part of a tree, in the order in which YARA adds them; empty if a match may contain none.
pub(crate) fn of(tree: &Tree, root: Id) -> Result<Vec<Atom>, TooLarge> {
    let mut reader = Reader { tree, recent: Vec::new(), best: None, choices: vec![Vec::new()], passed: 0 };
    reader.node(root);
    reader.flush();
    let choices = reader.choices.pop().unwrap_or_default();
    let (atoms, _) = best_of(choices);
    if atoms.len() > ATOMS_MAX || reader.passed > NODES_MAX { Err(TooLarge) } else { Ok(atoms) }
}

/// Atoms that stand for a place of a tree, and the quality of the worst.
type Choice = (Vec<Atom>, i32);

/// The first of the best.
fn best_of(choices: Vec<Choice>) -> Choice {
    let mut best = (Vec::new(), NONE);
    for choice in choices {
        if choice.1 > best.1 {
            best = choice;
        }
        if best.1 == BEST {
            break;
        }
    }
    best
}

/// Passes over a tree from left to right.
struct Reader<'t> {
    tree: &'t Tree,
    /// The last bytes that followed each other.
    recent: Vec<Id>,
    /// The best atom of those that they were, once there were more than fit.
    best: Option<(Atom, i32)>,
    /// The choices so far, of each alternative that is open.
    choices: Vec<Vec<Choice>>,
    passed: u32,
}

impl Reader<'_> {
    fn node(&mut self, id: Id) {
        self.passed += 1;
        if self.passed > NODES_MAX {
            return;
        }
        match self.tree.get(id) {
            Node::Byte { .. } | Node::Any => self.byte(id),
            Node::Concat(all) => all.iter().for_each(|&one| self.node(one)),
            &Node::Either(left, right) => self.either(left, right),
            &Node::Plus { of, .. } => {
                self.node(of);
                self.flush();
            }
            &Node::Times { of, min, .. } => {
                (0..usize::from(min).min(ATOM_MAX)).for_each(|_| self.node(of));
                self.flush();
            }
            _ => self.flush(),
        }
    }

    /// Takes one of each side, as one choice.
    fn either(&mut self, left: Id, right: Id) {
        // It comes before what ends with it.
        let at = self.choices.last().map_or(0, Vec::len);
        self.flush();
        let mut both: Choice = (Vec::new(), BEST);
        for side in [left, right] {
            self.choices.push(Vec::new());
            self.node(side);
            self.flush();
            let (mut atoms, quality) = best_of(self.choices.pop().unwrap_or_default());
            both.1 = both.1.min(quality);
            atoms.append(&mut both.0);
            both.0 = atoms;
        }
        both.0.truncate(ATOMS_MAX + 1);
        if let Some(choices) = self.choices.last_mut() {
            choices.insert(at, both);
        }
    }

    fn byte(&mut self, id: Id) {
        if self.recent.len() == ATOM_MAX {
            if self.best.is_some_and(|(_, quality)| quality == BEST) {
                return;
            }
            self.consider();
            self.recent.remove(0);
        }
        self.recent.push(id);
    }

    /// Compares the last bytes with the best atom.
    fn consider(&mut self) {
        let atom = self.trimmed();
        let quality = atom.quality();
        if self.best.is_none_or(|(_, best)| quality > best) {
            self.best = Some((atom, quality));
        }
    }

    /// Ends a run of bytes.
    fn flush(&mut self) {
        if !self.recent.is_empty() {
            self.consider();
        }
        self.recent.clear();
        let Some((atom, quality)) = self.best.take() else {
            return;
        };
        let choice = if atom.length > 0 { (vec![atom], quality) } else { (Vec::new(), NONE) };
        if let Some(choices) = self.choices.last_mut() {
            choices.push(choice);
        }
    }

    /// The last bytes as an atom, without unknown ones at its ends; the first byte alone if most are unknown.
    fn trimmed(&self) -> Atom {
        let known = |id: &Id| match self.tree.get(*id) {
            &Node::Byte { value, mask } => (value, mask),
            _ => (0, 0),
        };
        let all: Vec<(u8, u8)> = self.recent.iter().map(known).collect();
        let start = all.iter().position(|(_, mask)| *mask != 0).unwrap_or(all.len());
        let end = all.iter().rposition(|(_, mask)| *mask != 0).map_or(start, |last| last + 1);
        let mut all = all.get(start..end).unwrap_or(&[]);
        let count = |wanted: u8| all.iter().filter(|(_, mask)| *mask == wanted).count();
        if !all.is_empty() && count(0) >= count(u8::MAX) {
            all = &all[..1];
        }
        let mut atom = Atom { bytes: [0; ATOM_MAX], masks: [0; ATOM_MAX], length: all.len() as u8, first: 0 };
        atom.first = self.recent.get(start).copied().unwrap_or(0);
        for (index, &(byte, mask)) in all.iter().enumerate() {
            (atom.bytes[index], atom.masks[index]) = (byte, mask);
        }
        atom
    }
}
