//! Instructions to match a tree in one direction, and the places in them where each byte of the tree stands.
//!
//! A quantifier is laid out as in YARA: a first copy of its operand (if one is needed at least), a counted loop, and a last
//! copy. A search that begins at an atom within the operand begins in the first copy forwards and in the last one backwards.
//! An operand that may be left out is skipped by a split before it, which a program that begins at the operand does not
//! see: so the first `a?` of an expression without atoms is no longer optional, for YARA and here.

use pattern::ByteSet;

use super::tree::{Id, Node, Tree};

/// The most instructions.
const INSTRUCTIONS_MAX: usize = 16_384;
/// The most splits, as in YARA.
const SPLITS_MAX: u8 = 128;
/// The deepest nesting of counted loops.
pub(crate) const LOOPS_MAX: usize = 6;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Instruction {
    Byte {
        value: u8,
        mask: u8,
    },
    Any,
    /// A set of [`Program::sets`].
    Set(u16),
    Boundary(bool),
    Start,
    End,
    /// Goes on with both, the next instruction first if `next_first`.
    Split {
        number: u8,
        to: u32,
        next_first: bool,
    },
    Jump(u32),
    /// Counts turns from 0; may skip the loop if `min` is 0.
    LoopStart {
        min: u16,
        lazy: bool,
        behind: u32,
    },
    LoopEnd {
        min: u16,
        max: u16,
        lazy: bool,
        body: u32,
    },
    /// [`Instruction::Any`], from `min` to `max` times.
    Many {
        min: u16,
        max: u16,
        lazy: bool,
    },
    Match,
}

/// The instructions of a tree in one direction.
#[derive(Debug, Clone, Default)]
pub(crate) struct Program {
    pub(crate) code: Vec<Instruction>,
    pub(crate) sets: Vec<ByteSet>,
    /// For each node of the tree: forwards where its instructions begin, backwards where they end.
    pub(crate) places: Vec<Option<u32>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Direction {
    Forwards,
    Backwards,
}

/// A tree of which the program would be too large.
#[derive(Debug)]
pub(crate) struct TooLarge;

impl Program {
    /// The instructions for a part of a tree.
    pub(crate) fn new(tree: &Tree, root: Id, direction: Direction) -> Result<Program, TooLarge> {
        let places = vec![None; tree.nodes.len()];
        let mut writer =
            Writer { tree, direction, program: Program { places, ..Program::default() }, splits: 0, loops: 0 };
        writer.node(root, Places { forwards: true, backwards: true })?;
        writer.add(Instruction::Match)?;
        Ok(writer.program)
    }

    /// The instructions alone.
    pub(crate) fn without_places(self) -> Program {
        Program { places: Vec::new(), ..self }
    }
}

/// The places to note: no search begins at the copy of an operand within a loop.
#[derive(Clone, Copy)]
struct Places {
    forwards: bool,
    backwards: bool,
}

struct Writer<'t> {
    tree: &'t Tree,
    direction: Direction,
    program: Program,
    splits: u8,
    loops: usize,
}

impl Writer<'_> {
    fn here(&self) -> u32 {
        self.program.code.len() as u32
    }

    fn add(&mut self, instruction: Instruction) -> Result<u32, TooLarge> {
        if self.program.code.len() >= INSTRUCTIONS_MAX {
            return Err(TooLarge);
        }
        self.program.code.push(instruction);
        Ok(self.here() - 1)
    }

    fn split(&mut self, to: u32, next_first: bool) -> Result<u32, TooLarge> {
        if self.splits == SPLITS_MAX {
            return Err(TooLarge);
        }
        self.splits += 1;
        self.add(Instruction::Split { number: self.splits - 1, to, next_first })
    }

    /// Sets the goal of a jump forwards to the next instruction.
    fn land(&mut self, at: u32) {
        let here = self.here();
        if let Some(Instruction::Split { to, .. } | Instruction::Jump(to) | Instruction::LoopStart { behind: to, .. }) =
            self.program.code.get_mut(at as usize)
        {
            *to = here;
        }
    }

    /// Writes a node; where a search begins that begins with it.
    fn node(&mut self, id: Id, places: Places) -> Result<Option<u32>, TooLarge> {
        let begins = self.instructions(id, places)?;
        let place = match self.direction {
            Direction::Forwards if places.forwards => begins,
            Direction::Backwards if places.backwards => Some(self.here()),
            _ => return Ok(begins),
        };
        if let Some(known) = self.program.places.get_mut(id as usize) {
            *known = place;
        }
        Ok(begins)
    }

    fn instructions(&mut self, id: Id, places: Places) -> Result<Option<u32>, TooLarge> {
        let tree = self.tree;
        let one = match tree.get(id) {
            &Node::Byte { value, mask } => Instruction::Byte { value, mask },
            Node::Any => Instruction::Any,
            Node::Set(set) => Instruction::Set(self.set(set)?),
            Node::Boundary(holds) => Instruction::Boundary(*holds),
            Node::Start => Instruction::Start,
            Node::End => Instruction::End,
            Node::Empty => return Ok(None),
            Node::Concat(all) => return self.sequence(all, places),
            &Node::Either(left, right) => return self.either(left, right, places).map(Some),
            &Node::Star { of, lazy } => return self.star(of, lazy, places).map(Some),
            &Node::Plus { of, lazy } => return self.plus(of, lazy, places),
            &Node::Times { of, min, max, lazy } => return self.times(of, (min, max), lazy, places),
            &Node::Jump { min, max, lazy } => {
                let bound = |bound: u32| u16::try_from(bound).map_err(|_| TooLarge);
                Instruction::Many { min: bound(min)?, max: bound(max)?, lazy }
            }
        };
        self.add(one).map(Some)
    }

    fn set(&mut self, set: &ByteSet) -> Result<u16, TooLarge> {
        let known = self.program.sets.iter().position(|known| known == set);
        let index = known.unwrap_or_else(|| {
            self.program.sets.push(*set);
            self.program.sets.len() - 1
        });
        u16::try_from(index).map_err(|_| TooLarge)
    }

    fn sequence(&mut self, all: &[Id], places: Places) -> Result<Option<u32>, TooLarge> {
        let mut begins = None;
        for index in 0..all.len() {
            let index = match self.direction {
                Direction::Forwards => index,
                Direction::Backwards => all.len() - 1 - index,
            };
            let one = self.node(all[index], places)?;
            let is_first = match self.direction {
                Direction::Forwards => index == 0,
                Direction::Backwards => index + 1 == all.len(),
            };
            if is_first {
                begins = one;
            }
        }
        Ok(begins)
    }

    fn either(&mut self, left: Id, right: Id, places: Places) -> Result<u32, TooLarge> {
        let split = self.split(0, true)?;
        self.node(left, places)?;
        let jump = self.add(Instruction::Jump(0))?;
        self.land(split);
        self.node(right, places)?;
        self.land(jump);
        Ok(split)
    }

    fn star(&mut self, of: Id, lazy: bool, places: Places) -> Result<u32, TooLarge> {
        let split = self.split(0, !lazy)?;
        self.node(of, places)?;
        self.add(Instruction::Jump(split))?;
        self.land(split);
        Ok(split)
    }

    fn plus(&mut self, of: Id, lazy: bool, places: Places) -> Result<Option<u32>, TooLarge> {
        let start = self.here();
        let begins = self.node(of, places)?;
        self.split(begins.unwrap_or(start), lazy)?;
        Ok(begins)
    }

    fn times(&mut self, of: Id, (min, max): (u16, u16), lazy: bool, places: Places) -> Result<Option<u32>, TooLarge> {
        let (has_first, has_split) = (min > 0, max > min);
        let has_loop = max > min.saturating_add(1) || max > 2;
        let mut begins = None;
        if has_first {
            begins = self.node(of, places)?;
        }
        if has_loop {
            // The first copy and the last one are no turns of the loop.
            let (mut least, mut most) = (min - u16::from(has_first), max - u16::from(has_first));
            (least, most) = (least - u16::from(!has_split), most - 1);
            let start = self.counted(of, (least, most), lazy)?;
            begins = if has_first { begins } else { Some(start) };
        }
        let split = if has_split { Some(self.split(0, !lazy)?) } else { None };
        if has_split || max > 1 {
            let last = self.node(of, Places { forwards: places.forwards && !has_first, ..places })?;
            begins = if has_first || has_loop { begins } else { last };
        }
        if let Some(split) = split {
            self.land(split);
        }
        Ok(begins)
    }

    fn counted(&mut self, of: Id, (min, max): (u16, u16), lazy: bool) -> Result<u32, TooLarge> {
        self.loops += 1;
        if self.loops > LOOPS_MAX {
            return Err(TooLarge);
        }
        let start = self.add(Instruction::LoopStart { min, lazy, behind: 0 })?;
        self.node(of, Places { forwards: false, backwards: false })?;
        self.add(Instruction::LoopEnd { min, max, lazy, body: start + 1 })?;
        self.land(start);
        self.loops -= 1;
        Ok(start)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quantifier_has_a_first_copy_a_loop_and_a_last_copy() {
        let lengths = [((0, 1), 3), ((0, 2), 6), ((1, 1), 2), ((1, 2), 4), ((1, 3), 7), ((2, 2), 3), ((3, 3), 6)];
        for ((min, max), length) in lengths {
            let nodes = vec![Node::Byte { value: b'a', mask: 255 }, Node::Times { of: 0, min, max, lazy: false }];
            let mut tree = Tree::of_text(b"", false);
            (tree.nodes, tree.root) = (nodes, 1);
            let program = Program::new(&tree, 1, Direction::Forwards).expect("a small one");
            assert_eq!(program.code.len(), length, "{min} to {max}");
        }
    }
}
