//! The methods `lh1` and `lh2`: LZSS with adaptive Huffman codes (LZHUF by Yoshizaki).
//!
//! A code is a tree whose nodes are ordered by their frequencies, the root first. Each symbol adds one to the nodes on
//! its way to the root; a node that overtakes others changes places with the first of them. After [`TOTAL_MAX`] symbols
//! all frequencies are halved and the tree is rebuilt. `lh1` has such a code for literals and lengths, `lh2` another
//! one for distances, which gets a leaf for each 64 bytes of output.
//!
//! Source: LZHUF.C; for `lh2` the behaviour of public readers (LHa for UNIX, XADMaster).

// A bit machine: its sums are those of the code, and overflow checks are on.
#![allow(clippy::arithmetic_side_effects)]

use super::method::{Method, Run};
use crate::bits::history::History;
use crate::bits::huffman::Huffman;
use crate::bits::pushed::Bits;

const TOTAL_MAX: u16 = 0x8000;
/// The longest code is as deep as the tree; but in 32768 symbols it cannot become deeper than this.
const SYMBOL_BITS: usize = 8 * 48;
/// Flag of a leaf in place of a child: the rest is its symbol.
const LEAF: u16 = 0x8000;

/// The method `lh1`.
pub(super) struct Lh1 {
    tree: Tree,
    /// The upper six bits of a distance.
    distances: Huffman,
}

impl Lh1 {
    pub fn new() -> Lh1 {
        /// Literals, and lengths from 3 to 60.
        const SYMBOLS: u16 = 314;
        const COUNTS: [(u8, usize); 6] = [(3, 1), (4, 3), (5, 8), (6, 12), (7, 24), (8, 16)];
        let lengths: Vec<u8> = COUNTS.iter().flat_map(|&(length, count)| std::iter::repeat_n(length, count)).collect();
        let mut distances = Huffman::new();
        let is_code = distances.set(&lengths);
        debug_assert_eq!(is_code, Ok(()));
        Lh1 { tree: Tree::of(SYMBOLS), distances }
    }
}

impl Method for Lh1 {
    fn run(&mut self, bits: &mut Bits, history: &mut History, end: u64) -> Option<Run> {
        while history.position() < end {
            if !bits.has(SYMBOL_BITS) || bits.is_at_end() {
                return Some(Run::Input);
            }
            match self.tree.read(bits) {
                literal @ 0..256 => history.dictionary.push(literal as u8),
                symbol => {
                    let high = self.distances.read(bits)?;
                    let distance = (high << 6 | bits.take(6) as usize) + 1;
                    history.copy(distance, symbol - 256 + 3, end).ok()?;
                }
            }
        }
        Some(Run::Full)
    }
}

/// The method `lh2`.
pub(super) struct Lh2 {
    tree: Tree,
    distances: Tree,
    /// Where the history began.
    start: u64,
}

impl Lh2 {
    /// The method, its history beginning at `start`.
    pub fn new(start: u64) -> Lh2 {
        /// Literals, lengths from 3 to 31, and one for those above.
        const SYMBOLS: u16 = 286;
        Lh2 { tree: Tree::of(SYMBOLS), distances: Tree::growing(), start }
    }

    fn distance(&mut self, bits: &mut Bits, told: u64) -> usize {
        const DISTANCES: u64 = 8192 / 64;
        while told > self.distances.symbols() * 64 && self.distances.symbols() < DISTANCES {
            self.distances.grow();
        }
        (self.distances.read(bits) << 6 | bits.take(6) as usize) + 1
    }
}

impl Method for Lh2 {
    fn run(&mut self, bits: &mut Bits, history: &mut History, end: u64) -> Option<Run> {
        const LONG: usize = 285;
        while history.position() < end {
            if !bits.has(2 * SYMBOL_BITS) || bits.is_at_end() {
                return Some(Run::Input);
            }
            let symbol = match self.tree.read(bits) {
                LONG => LONG + bits.take(8) as usize,
                symbol => symbol,
            };
            if symbol < 256 {
                history.dictionary.push(symbol as u8);
                continue;
            }
            let distance = self.distance(bits, history.position() - self.start);
            history.copy(distance, symbol - 256 + 3, end).ok()?;
        }
        Some(Run::Full)
    }
}

/// The tree. Children are pairs of neighbours: a node holds the second of them, or [`LEAF`] and a symbol.
struct Tree {
    frequencies: Vec<u16>,
    children: Vec<u16>,
    parents: Vec<u16>,
    /// The node of each symbol.
    leaves: Vec<u16>,
    /// Symbols seen, halved with the frequencies.
    total: u16,
}

impl Tree {
    /// Makes the tree of as many symbols, each with the frequency 1.
    fn of(symbols: u16) -> Tree {
        let mut tree = Tree::empty(symbols);
        tree.build((0..symbols).map(|symbol| (1, LEAF | symbol)).collect());
        tree.total = symbols;
        tree
    }

    /// A tree that has one symbol and will have others.
    fn growing() -> Tree {
        let mut tree = Tree::empty(1);
        tree.build(vec![(1, LEAF)]);
        tree
    }

    fn empty(symbols: u16) -> Tree {
        let leaves = vec![0; usize::from(symbols)];
        Tree { frequencies: Vec::new(), children: Vec::new(), parents: Vec::new(), leaves, total: 0 }
    }

    fn symbols(&self) -> u64 {
        self.leaves.len() as u64
    }

    fn read(&mut self, bits: &mut Bits) -> usize {
        let mut node = self.children[0];
        while node & LEAF == 0 {
            node = self.children[usize::from(node) - bits.take(1) as usize];
        }
        let symbol = usize::from(node & !LEAF);
        self.count(symbol);
        symbol
    }

    fn count(&mut self, symbol: usize) {
        if self.total == TOTAL_MAX {
            self.halve();
        }
        self.total += 1;
        let mut node = usize::from(self.leaves[symbol]);
        while node > 0 {
            self.frequencies[node] += 1;
            let frequency = self.frequencies[node];
            if frequency > self.frequencies[node - 1] && node > 1 {
                let mut first = node - 1;
                while first > 1 && frequency > self.frequencies[first - 1] {
                    first -= 1;
                }
                self.swap(node, first);
                node = first;
            }
            node = usize::from(self.parents[node]);
        }
    }

    /// Two nodes change places, with all that hangs on them.
    fn swap(&mut self, a: usize, b: usize) {
        self.frequencies.swap(a, b);
        self.children.swap(a, b);
        self.adopt(a);
        self.adopt(b);
    }

    /// Sets the parent of a node's children.
    fn adopt(&mut self, node: usize) {
        let child = self.children[node];
        if child & LEAF != 0 {
            self.leaves[usize::from(child & !LEAF)] = node as u16;
            return;
        }
        self.parents[usize::from(child)] = node as u16;
        self.parents[usize::from(child) - 1] = node as u16;
    }

    /// Gives the last leaf a neighbour, the next symbol, as though that had been read.
    fn grow(&mut self) {
        let last = self.frequencies.len() - 1;
        let symbol = self.leaves.len();
        self.leaves.push(0);
        self.frequencies.extend([self.frequencies[last], 0]);
        self.children.extend([self.children[last], LEAF | symbol as u16]);
        self.parents.extend([last as u16; 2]);
        self.children[last] = last as u16 + 2;
        self.adopt(last + 1);
        self.adopt(last + 2);
        self.count(symbol);
    }

    /// Halves all frequencies and makes the tree anew from its leaves, in their order.
    fn halve(&mut self) {
        let nodes = self.frequencies.iter().zip(&self.children).rev();
        let leaves = nodes.filter(|(_, child)| **child & LEAF != 0);
        self.build(leaves.map(|(frequency, &child)| (frequency.div_ceil(2), child)).collect());
        self.total = self.frequencies[0];
    }

    /// Makes the tree of nodes that stand in the order of their frequencies, the lowest first.
    fn build(&mut self, mut nodes: Vec<(u16, u16)>) {
        let count = 2 * nodes.len() - 1;
        let mut pair = 0;
        while nodes.len() < count {
            let frequency = nodes[pair].0 + nodes[pair + 1].0;
            let place = nodes.iter().rposition(|&(other, _)| other <= frequency).map_or(0, |before| before + 1);
            nodes.insert(place, (frequency, (count - 1 - pair) as u16));
            pair += 2;
        }
        self.frequencies = nodes.iter().rev().map(|node| node.0).collect();
        self.children = nodes.iter().rev().map(|node| node.1).collect();
        self.parents = vec![0; count];
        (0..count).for_each(|node| self.adopt(node));
    }
}
