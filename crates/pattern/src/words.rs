//! Words: many short texts in one pass, where most bytes begin or go on with one. [`Patterns`](crate::Patterns) are for texts that occur seldom.
//!
//! In plain words: the automaton of Aho and Corasick. Its state is the longest beginning of a word with which the bytes so far end, and
//! the next byte leads to another. The tricks, and what each buys:
//! * **Classes.** The bytes that stand in no word are one class, so rows are short. A caller's folding of bytes is a part of the
//!   table of classes, and costs nothing.
//! * **Rows and a comb.** Beginnings of two bytes at most have a row of all classes. A longer one has what differs from the row of
//!   the longest suffix of it that has one, in a comb that all share: 2.3 MB in place of 44 for 6,200 words.
//! * **States in one number.** A state is its places in both tables, so a step looks up nothing else. No two states have the same place
//!   in the comb, so a tooth belongs to a state if it is as far behind that place as the class that it names.
//! * **Lanes.** A step waits for the one before it, so four stretches of the bytes are walked side by side; the states of more do not
//!   fit the registers. A lane begins before its stretch by the bytes of the longest word less one, which is all that matters to what
//!   ends in it.
//!
//! The words of a segment are told in no order, each as often as it occurs. How the bytes are cut does not change which.
//!
//! Bounds: a byte costs a step, and a call for each word that ends with it: the words of a set that are suffixes of each other. Words
//! beyond 32 MiB in all are left out.

use std::array;
use std::hint::select_unpredictable;

/// Beginnings up to this length have a row.
const ROW_DEPTH_MAX: usize = 2;

/// Stretches that are walked side by side.
const LANES: usize = 4;

/// Places of the comb that are tried again before the last one that was taken.
const BEHIND_MAX: usize = 256;

/// Bytes of all words: their tables stay far below what the places in a state can count.
const BYTES_MAX: usize = 32 << 20;

const NONE: u32 = u32::MAX;

/// Words that are searched for. Immutable, to be shared by any number of scans.
#[derive(Debug, Clone)]
pub struct Words {
    classes: [u8; 256],
    /// The row of the first state, the comb, and the other rows.
    steps: Vec<State>,
    /// By the places of states in the comb.
    ends: Vec<End>,
    /// Bytes of the longest word.
    longest: usize,
}

/// The classes of bytes.
#[derive(Debug, Clone)]
pub struct Classes(Box<[u8; 256]>);

/// How far a scan has come.
#[derive(Debug, Clone, Copy, Default)]
pub struct Place(State);

/// A state: its place in the comb, the row that holds where it has no tooth, and whether a word ends in it; where it stands in the comb, also
/// the class of the byte that leads to it. The first state is 0.
#[derive(Debug, Clone, Copy, Default)]
struct State(u64);

/// The word that ends in a state, and the place of the state of the next shorter one that ends there, too.
#[derive(Debug, Clone, Copy)]
struct End {
    word: u32,
    shorter: u32,
}

impl State {
    /// A class, or [`State::NO_CLASS`], in the lowest bits, then the place, then a bit that marks the end of a word, then the row.
    const PLACE_BIT: u32 = 9;
    const END_BIT: u32 = 36;
    const ROW_BIT: u32 = 37;
    const NO_CLASS: u64 = (1 << State::PLACE_BIT) - 1;
    /// A place of the comb where no state has a tooth.
    const GAP: State = State(State::NO_CLASS);

    fn new(place: u32, row: usize, is_end: bool) -> State {
        let (place, row) = (u64::from(place) << State::PLACE_BIT, row as u64);
        debug_assert!(place < 1 << State::END_BIT && row < 1 << (u64::BITS - State::ROW_BIT));
        State(place | u64::from(is_end) << State::END_BIT | row << State::ROW_BIT)
    }

    const fn behind(self, class: u8) -> State {
        State(self.0 | class as u64)
    }

    /// The state as it stands in a row.
    const fn beside(self) -> State {
        State(self.0 | State::NO_CLASS)
    }

    const fn place(self) -> usize {
        (self.0 >> State::PLACE_BIT) as usize & ((1 << (State::END_BIT - State::PLACE_BIT)) - 1)
    }

    const fn row(self) -> usize {
        (self.0 >> State::ROW_BIT) as usize
    }

    const fn is_end(self) -> bool {
        self.0 >> State::END_BIT & 1 != 0
    }

    const fn is_behind(self, class: u8) -> bool {
        (self.0 ^ class as u64) & State::NO_CLASS == 0
    }
}

impl Words {
    /// Compiles words, which are numbered in their order. Empty ones are left out, and so are equal ones behind the first.
    pub fn new<'w>(words: impl IntoIterator<Item = &'w [u8]>) -> Words {
        let mut room = BYTES_MAX;
        let mut has_room = |word: &[u8]| room.checked_sub(word.len()).map(|left| room = left).is_some();
        let words = words.into_iter().zip(0..);
        let mut sorted: Vec<(&[u8], u32)> = words.filter(|(word, _)| !word.is_empty() && has_room(word)).collect();
        sorted.sort_unstable();
        sorted.dedup_by_key(|(word, _)| *word);
        let mut is_used = [false; 256];
        sorted.iter().flat_map(|(word, _)| word.iter()).for_each(|&byte| is_used[usize::from(byte)] = true);
        let mut width = usize::from(is_used.contains(&false));
        let classes = array::from_fn(|byte| {
            let class = if is_used[byte] { width as u8 } else { 0 };
            width += usize::from(is_used[byte]);
            class
        });
        let longest = sorted.iter().map(|(word, _)| word.len()).max().unwrap_or(0);
        Builder::new(width).build(&Trie::of(&sorted, &classes), classes, longest)
    }

    /// The classes of bytes that are folded so before they are compared.
    pub fn classes(&self, fold: impl Fn(u8) -> u8) -> Classes {
        Classes(Box::new(array::from_fn(|byte| self.classes[usize::from(fold(byte as u8))])))
    }

    /// The bytes that the tables take.
    pub fn bytes(&self) -> usize {
        size_of_val(&*self.steps) + size_of_val(&*self.ends)
    }

    /// Scans the next segment, and calls `hit` with the number of each word that ends in it.
    pub fn scan(&self, classes: &Classes, place: &mut Place, segment: &[u8], hit: &mut impl FnMut(u32)) {
        let (lead, stretch) = (self.longest.saturating_sub(1), segment.len() / LANES);
        let mut rest = segment;
        if stretch > lead {
            let mut lanes = [State::default(); LANES];
            lanes[0] = place.0;
            for at in 0..lead {
                for (number, lane) in lanes.iter_mut().enumerate().skip(1) {
                    *lane = self.step(*lane, classes, segment[number * stretch - lead + at]);
                }
            }
            let part = |number: usize| &segment[number * stretch..][..stretch];
            let parts: [&[u8]; LANES] = array::from_fn(part);
            let [a, b, c, d] = parts;
            for ((&a, &b), (&c, &d)) in a.iter().zip(b).zip(c.iter().zip(d)) {
                for (lane, byte) in lanes.iter_mut().zip([a, b, c, d]) {
                    *lane = self.step(*lane, classes, byte);
                }
                if State(lanes.iter().fold(0, |all, lane| all | lane.0)).is_end() {
                    lanes.iter().for_each(|&lane| self.tell(lane, hit));
                }
            }
            place.0 = lanes[LANES - 1];
            rest = &segment[stretch * LANES..];
        }
        for &byte in rest {
            place.0 = self.step(place.0, classes, byte);
            self.tell(place.0, hit);
        }
    }

    /// Both tables are read in any case: no processor could guess which it is.
    #[inline]
    fn step(&self, state: State, classes: &Classes, byte: u8) -> State {
        let class = classes.0[usize::from(byte)];
        let tooth = self.steps[state.place() + usize::from(class)];
        let usual = self.steps[state.row() + usize::from(class)];
        select_unpredictable(tooth.is_behind(class), tooth, usual)
    }

    #[inline]
    fn tell(&self, state: State, hit: &mut impl FnMut(u32)) {
        let mut left = if state.is_end() { state.place() } else { 0 };
        while left != 0 {
            let End { word, shorter } = self.ends[left];
            if word != NONE {
                hit(word);
            }
            left = shorter as usize;
        }
    }
}

/// The beginnings of all words, the shorter first, those of one parent in a row. The first is empty.
struct Trie {
    /// The class of its last byte.
    class: Vec<u8>,
    depth: Vec<usize>,
    parent: Vec<u32>,
    /// The first of its children; those of the next one follow. One more than there are states.
    children: Vec<usize>,
    word: Vec<u32>,
}

impl Trie {
    fn of(sorted: &[(&[u8], u32)], classes: &[u8; 256]) -> Trie {
        let mut trie = Trie { class: vec![0], depth: vec![0], parent: vec![0], children: Vec::new(), word: Vec::new() };
        // The words that begin so.
        let mut spans = vec![sorted];
        let mut state = 0;
        while let Some(&span) = spans.get(state) {
            let depth = trie.depth[state];
            let own = span.first().filter(|(word, _)| word.len() == depth);
            trie.word.push(own.map_or(NONE, |(_, number)| *number));
            trie.children.push(spans.len());
            let mut rest = &span[usize::from(own.is_some())..];
            while let Some((word, _)) = rest.first() {
                let byte = word[depth];
                let (same, others) = rest.split_at(rest.partition_point(|(word, _)| word[depth] == byte));
                spans.push(same);
                trie.class.push(classes[usize::from(byte)]);
                trie.depth.push(depth + 1);
                trie.parent.push(state as u32);
                rest = others;
            }
            state += 1;
        }
        trie.children.push(spans.len());
        trie
    }
}

/// Makes the tables, state by state: all that a state needs is of shorter ones. States are numbers here.
struct Builder {
    width: usize,
    nodes: Vec<Node>,
    rows: Vec<u32>,
    comb: Vec<Tooth>,
    ends: Vec<End>,
    /// The teeth of all states so far, by class, and where those of each end.
    teeth: Vec<(u8, u32)>,
    ranges: Vec<usize>,
    /// Where a place in the comb is looked for from, and the places that states have.
    from: usize,
    is_taken: Vec<bool>,
}

/// The places of a state in both tables.
#[derive(Debug, Clone, Copy)]
struct Node {
    base: u32,
    row: u32,
}

/// A step of one state.
#[derive(Debug, Clone, Copy)]
struct Tooth {
    state: u32,
    next: u32,
}

impl Builder {
    fn new(width: usize) -> Builder {
        Builder {
            width,
            nodes: Vec::new(),
            rows: Vec::new(),
            comb: vec![Tooth { state: NONE, next: 0 }; width],
            ends: Vec::new(),
            teeth: Vec::new(),
            ranges: vec![0],
            from: width,
            is_taken: vec![true; width],
        }
    }

    fn build(mut self, trie: &Trie, classes: [u8; 256], longest: usize) -> Words {
        let mut suffixes: Vec<u32> = Vec::with_capacity(trie.class.len());
        for state in 0..trie.class.len() {
            let suffix = match trie.depth[state] {
                0 | 1 => 0,
                _ => self.next(suffixes[trie.parent[state] as usize], trie.class[state]),
            };
            suffixes.push(suffix);
            let children = trie.children[state]..trie.children[state + 1];
            let children = children.map(|child| (trie.class[child], child as u32));
            let node = if trie.depth[state] <= ROW_DEPTH_MAX {
                self.row(state, suffix, children)
            } else {
                self.grow(state, suffix, children)
            };
            self.nodes.push(node);
            self.ranges.push(self.teeth.len());
            let shorter =
                self.ends.get(suffix as usize).map_or(0, |end| if end.word == NONE { end.shorter } else { suffix });
            self.ends.push(End { word: trie.word[state], shorter });
        }
        self.pack(classes, longest)
    }

    fn next(&self, state: u32, class: u8) -> u32 {
        let node = self.nodes[state as usize];
        let tooth = self.comb[node.base as usize + usize::from(class)];
        let usual = self.rows[node.row as usize + usize::from(class)];
        if tooth.state == state { tooth.next } else { usual }
    }

    /// The tables with states in place of their numbers.
    fn pack(self, classes: [u8; 256], longest: usize) -> Words {
        // The first row stands in place of the first teeth.
        let row = |begin: u32| if begin == 0 { 0 } else { self.comb.len() - self.width + begin as usize };
        let state = |number: u32| {
            let (Node { base, row: begin }, End { word, shorter }) =
                (self.nodes[number as usize], self.ends[number as usize]);
            State::new(base, row(begin), word != NONE || shorter != 0)
        };
        let tooth = |(place, tooth): (usize, &Tooth)| match self.nodes.get(tooth.state as usize) {
            None => State::GAP,
            Some(node) => state(tooth.next).behind((place - node.base as usize) as u8),
        };
        let mut ends = vec![End { word: NONE, shorter: 0 }; self.comb.len()];
        for (node, &End { word, shorter }) in self.nodes.iter().zip(&self.ends) {
            ends[node.base as usize] = End { word, shorter: self.nodes[shorter as usize].base };
        }
        let comb = self.comb.iter().enumerate().skip(self.width).map(tooth);
        let (first, rows) = self.rows.split_at(self.width);
        let row = |row: &[u32]| row.iter().map(|&number| state(number).beside()).collect::<Vec<_>>();
        let steps = [row(first), comb.collect(), row(rows)].concat();
        Words { classes, steps, ends, longest }
    }

    /// A row: that of the suffix, and the children.
    fn row(&mut self, state: usize, suffix: u32, children: impl Iterator<Item = (u8, u32)>) -> Node {
        let (width, rows) = (self.width, &mut self.rows);
        let begin = rows.len();
        match state {
            0 => rows.resize(width, 0),
            _ => rows.extend_from_within(suffix as usize * width..(suffix as usize + 1) * width),
        }
        children.for_each(|(class, child)| rows[begin + usize::from(class)] = child);
        let base = if state == 0 { 0 } else { self.place(&[]) };
        Node { base: base as u32, row: begin as u32 }
    }

    /// Teeth: the children, and those of the suffix.
    fn grow(&mut self, state: usize, suffix: u32, children: impl Iterator<Item = (u8, u32)>) -> Node {
        let mut own: Vec<(u8, u32)> = children.collect();
        let inherited = self.ranges[suffix as usize]..self.ranges[suffix as usize + 1];
        for &(class, next) in &self.teeth[inherited] {
            if own.iter().all(|(other, _)| *other != class) {
                own.push((class, next));
            }
        }
        let base = self.place(&own);
        for &(class, next) in &own {
            self.comb[base + usize::from(class)] = Tooth { state: state as u32, next };
        }
        self.teeth.extend(own);
        Node { base: base as u32, row: self.nodes[suffix as usize].row }
    }

    /// A place of the comb that no state has, and where these teeth fit between the others.
    fn place(&mut self, own: &[(u8, u32)]) -> usize {
        let comb = &mut self.comb;
        let is_free = |place: usize| comb.get(place).is_none_or(|tooth| tooth.state == NONE);
        let fits = |base: &usize| {
            !self.is_taken.get(*base).copied().unwrap_or_default()
                && own.iter().all(|(class, _)| is_free(base + usize::from(*class)))
        };
        // It ends: everything fits behind the last tooth.
        let base = (self.from..).find(fits).unwrap_or(comb.len());
        self.from = self.from.max(base.saturating_sub(BEHIND_MAX));
        let length = comb.len().max(base + self.width);
        comb.resize(length, Tooth { state: NONE, next: 0 });
        self.is_taken.resize(length, false);
        self.is_taken[base] = true;
        base
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How often each word occurs, by the definition.
    fn counted(words: &[Vec<u8>], bytes: &[u8]) -> Vec<usize> {
        let count = |word: &Vec<u8>| bytes.windows(word.len()).filter(|window| window == word).count();
        words.iter().map(count).collect()
    }

    fn scanned(words: &Words, count: usize, pieces: &[&[u8]]) -> Vec<usize> {
        let (classes, mut place, mut counts) = (words.classes(|byte| byte), Place::default(), vec![0; count]);
        for piece in pieces {
            words.scan(&classes, &mut place, piece, &mut |word| counts[word as usize] += 1);
        }
        counts
    }

    /// Bytes of a small alphabet, so that words are parts of each other.
    fn sample(state: &mut u32, length: usize) -> Vec<u8> {
        let mut next = || {
            *state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            b"ab\xff"[(*state >> 16) as usize % 3]
        };
        (0..length).map(|_| next()).collect()
    }

    #[test]
    fn each_word_is_told_as_often_as_it_occurs_however_the_bytes_are_cut() {
        let mut state = 7;
        for round in 0..40_usize {
            let mut words: Vec<Vec<u8>> = (0..60).map(|at| sample(&mut state, 1 + (at * round) % 9)).collect();
            words.sort();
            words.dedup();
            let compiled = Words::new(words.iter().map(Vec::as_slice));
            let bytes = sample(&mut state, 300);
            let wanted = counted(&words, &bytes);
            assert!(wanted.iter().sum::<usize>() > 0);
            for at in 0..=bytes.len() {
                let (head, tail) = bytes.split_at(at);
                assert_eq!(scanned(&compiled, words.len(), &[head, tail]), wanted, "{round} {at}");
            }
        }
    }

    #[test]
    fn the_first_of_equal_words_counts_and_an_empty_one_never_occurs() {
        let words: [&[u8]; 4] = [b"", b"a", b"a", b"aa"];
        assert_eq!(scanned(&Words::new(words), 4, &[b"baaa"]), [0, 3, 0, 2]);
        assert_eq!(scanned(&Words::new([]), 0, &[b"baaa"]), [0; 0]);
    }

    #[test]
    fn bytes_are_folded_and_all_values_may_occur() {
        let all: Vec<[u8; 1]> = (0..=255).map(|byte| [byte]).collect();
        let words = Words::new(all.iter().map(|word| &word[..]));
        let mut told = Vec::new();
        words.scan(&words.classes(|byte| byte.to_ascii_lowercase()), &mut Place::default(), b"Zz\0\xff", &mut |word| {
            told.push(word);
        });
        assert_eq!(told, [b'z'.into(), b'z'.into(), 0, 255]);
    }
}
