//! The method `lh1`: LZSS with a Huffman code that follows what has been seen (LZHUF by Yoshizaki).
//!
//! The code is a tree whose nodes stand in the order of their frequencies. Each symbol read adds one to the nodes on its
//! way to the root; a node that overtakes others changes places with the last of them. When the root has seen
//! [`FREQUENCY_MAX`] symbols all frequencies are halved and the tree is made anew.

use super::decoder::{Method, Run};
use crate::bits::Bits;
use crate::history::History;
use crate::huffman::Huffman;

/// Literals, and lengths from 3 to 60.
const SYMBOLS: usize = 314;
const NODES: usize = 2 * SYMBOLS - 1;
const ROOT: usize = NODES - 1;
const FREQUENCY_MAX: u16 = 0x8000;
/// The longest code is as deep as the tree; but in 32768 symbols it cannot become deeper than this.
const SYMBOL_BITS: usize = 8 * 48;

/// The method.
pub(super) struct Adaptive {
    tree: Tree,
    /// The upper six bits of a distance.
    distances: Huffman,
}

/// The tree. Children are pairs of neighbours: a node holds the first of them, or a symbol beyond all nodes.
struct Tree {
    frequencies: [u16; NODES + 1],
    children: [u16; NODES],
    /// The parent of each node, and behind those of each symbol its leaf.
    parents: [u16; NODES + SYMBOLS],
}

impl Adaptive {
    pub fn new() -> Adaptive {
        const COUNTS: [(u8, usize); 6] = [(3, 1), (4, 3), (5, 8), (6, 12), (7, 24), (8, 16)];
        let lengths: Vec<u8> = COUNTS.iter().flat_map(|&(length, count)| std::iter::repeat_n(length, count)).collect();
        let mut distances = Huffman::new();
        debug_assert_eq!(distances.set(&lengths), Ok(()));
        let _ = distances.set(&lengths);
        Adaptive { tree: Tree::new(), distances }
    }
}

impl Method for Adaptive {
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

impl Tree {
    /// All symbols have been seen once.
    fn new() -> Tree {
        let mut tree = Tree { frequencies: [0; NODES + 1], children: [0; NODES], parents: [0; NODES + SYMBOLS] };
        for symbol in 0..SYMBOLS {
            tree.frequencies[symbol] = 1;
            tree.children[symbol] = (symbol + NODES) as u16;
            tree.parents[symbol + NODES] = symbol as u16;
        }
        for node in SYMBOLS..NODES {
            let child = 2 * (node - SYMBOLS);
            tree.frequencies[node] = tree.frequencies[child] + tree.frequencies[child + 1];
            tree.children[node] = child as u16;
            tree.parents[child] = node as u16;
            tree.parents[child + 1] = node as u16;
        }
        // Nothing is ever greater than what stands behind the root.
        tree.frequencies[NODES] = u16::MAX;
        tree
    }

    fn read(&mut self, bits: &mut Bits) -> usize {
        let mut node = usize::from(self.children[ROOT]);
        while node < NODES {
            node = usize::from(self.children[node + bits.take(1) as usize]);
        }
        let symbol = node - NODES;
        self.count(symbol);
        symbol
    }

    fn count(&mut self, symbol: usize) {
        if self.frequencies[ROOT] == FREQUENCY_MAX {
            self.rebuild();
        }
        let mut node = usize::from(self.parents[symbol + NODES]);
        loop {
            self.frequencies[node] += 1;
            let frequency = self.frequencies[node];
            if frequency > self.frequencies[node + 1] {
                let mut last = node + 1;
                while frequency > self.frequencies[last + 1] {
                    last += 1;
                }
                self.swap(node, last);
                node = last;
            }
            if node == ROOT {
                return;
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

    /// Tells a node's children who their parent is.
    fn adopt(&mut self, node: usize) {
        let child = usize::from(self.children[node]);
        self.parents[child] = node as u16;
        if child < NODES {
            self.parents[child + 1] = node as u16;
        }
    }

    /// Halves all frequencies and makes the tree anew from its leaves, in their order.
    fn rebuild(&mut self) {
        let mut count = 0;
        for node in 0..NODES {
            if usize::from(self.children[node]) >= NODES {
                self.frequencies[count] = self.frequencies[node].div_ceil(2);
                self.children[count] = self.children[node];
                count += 1;
            }
        }
        for node in SYMBOLS..NODES {
            let child = 2 * (node - SYMBOLS);
            let frequency = self.frequencies[child] + self.frequencies[child + 1];
            let mut place = node;
            while frequency < self.frequencies[place - 1] {
                place -= 1;
            }
            self.frequencies.copy_within(place..node, place + 1);
            self.children.copy_within(place..node, place + 1);
            self.frequencies[place] = frequency;
            self.children[place] = child as u16;
        }
        (0..NODES).for_each(|node| self.adopt(node));
    }
}
