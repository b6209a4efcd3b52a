//! Steps of automata: expressions as steps of one byte, branches between them, and assertions.

use std::collections::HashMap;

use super::side::{Look, Side, told_apart};
use crate::ByteSet;
use crate::expression::syntax::{Assertion, Node, Repeat, UNBOUNDED, has_case};

/// Expressions as steps; the first of all of them begin at step 0.
#[derive(Debug, Default)]
pub(super) struct Program {
    pub steps: Vec<Step>,
    pub sets: Vec<ByteSet>,
    /// Sides that its assertions distinguish.
    pub sides: [Side; Side::ALL.len()],
    /// Whether it takes the bytes of a match from the last to the first.
    pub is_reverse: bool,
}

/// A step; those that take a byte, and assertions, go on behind themselves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    Byte(u8),
    /// A letter, in either case.
    Letter(u8),
    /// One byte of a set.
    Set(u32),
    Look(Look),
    /// The next step, or else that one.
    Branch(u32),
    /// That step, or else the next one.
    Away(u32),
    Jump(u32),
    /// A match of this pattern ends.
    Match(u32),
    Fail,
}

/// The most steps of a program, of eight bytes each.
const STEPS_MAX: usize = 1 << 20;

impl Program {
    /// Program of many expressions, the number of each being its place; `None` if one of them is not regular, or they
    /// are too large.
    pub fn of(nodes: &[Node], is_reverse: bool) -> Option<Program> {
        let program = Program { is_reverse, ..Program::default() };
        let mut compiler = Compiler { program, known: HashMap::new() };
        for (pattern, node) in (0..).zip(nodes) {
            let is_last = pattern as usize + 1 == nodes.len();
            let branch = if is_last { None } else { Some(compiler.emit(Step::Branch(0))?) };
            compiler.node(node, true)?;
            compiler.emit(Step::Match(pattern))?;
            branch.into_iter().for_each(|branch| compiler.lead_here(branch));
        }
        if nodes.is_empty() {
            compiler.emit(Step::Fail)?;
        }
        let mut program = compiler.program;
        program.sides = told_apart(program.steps.iter().filter_map(|step| match step {
            Step::Look(look) => Some(*look),
            _ => None,
        }));
        program.steps.shrink_to_fit();
        program.sets.shrink_to_fit();
        Some(program)
    }

    /// Whether a step takes the byte.
    #[inline]
    pub fn takes(&self, step: u32, byte: u8) -> bool {
        match self.steps[step as usize] {
            Step::Byte(of) => byte == of,
            Step::Letter(of) => byte | 0x20 == of | 0x20,
            Step::Set(set) => self.sets[set as usize].has(byte),
            _ => false,
        }
    }
}

struct Compiler {
    program: Program,
    known: HashMap<ByteSet, u32>,
}

impl Compiler {
    fn emit(&mut self, step: Step) -> Option<usize> {
        let steps = &mut self.program.steps;
        steps.push(step);
        (steps.len() <= STEPS_MAX).then(|| steps.len() - 1)
    }

    fn here(&self) -> u32 {
        self.program.steps.len() as u32
    }

    /// Lets a branch lead to what comes next.
    fn lead_here(&mut self, branch: usize) {
        let here = self.here();
        if let Step::Branch(to) | Step::Away(to) | Step::Jump(to) = &mut self.program.steps[branch] {
            *to = here;
        }
    }

    fn node(&mut self, node: &Node, is_end: bool) -> Option<()> {
        match node {
            Node::Empty => {}
            Node::Never => drop(self.emit(Step::Fail)?),
            Node::Literal { bytes, fold } => self.literal(bytes, *fold)?,
            Node::Set(set) => self.set(set)?,
            Node::Assert(assertion) => self.assert(*assertion, is_end)?,
            Node::Concat(nodes) => self.concat(nodes, is_end)?,
            Node::Alternate(nodes) => self.alternatives(nodes, is_end)?,
            Node::Repeat(repeat) => self.repeat(repeat, is_end)?,
            Node::Group(node, _) => self.node(node, is_end)?,
            Node::Look(_) | Node::Atomic(_) | Node::Backreference { .. } => return None,
        }
        Some(())
    }

    fn literal(&mut self, bytes: &[u8], fold: bool) -> Option<()> {
        let step = |byte| if fold && has_case(byte) { Step::Letter(byte) } else { Step::Byte(byte) };
        match self.program.is_reverse {
            false => bytes.iter().try_for_each(|&byte| self.emit(step(byte)).map(drop)),
            true => bytes.iter().rev().try_for_each(|&byte| self.emit(step(byte)).map(drop)),
        }
    }

    fn set(&mut self, set: &ByteSet) -> Option<()> {
        let sets = &mut self.program.sets;
        let place = *self.known.entry(*set).or_insert_with(|| {
            sets.push(*set);
            sets.len() as u32 - 1
        });
        self.emit(Step::Set(place)).map(drop)
    }

    fn assert(&mut self, assertion: Assertion, is_end: bool) -> Option<()> {
        let look = match assertion {
            Assertion::Start => Look::Start,
            Assertion::LineStart => Look::LineStart,
            Assertion::End => Look::End,
            Assertion::LineEnd => Look::LineEnd,
            Assertion::Word => Look::Word,
            Assertion::NotWord => Look::NotWord,
            Assertion::LastLine if is_end => return self.last_line(),
            Assertion::LastLine | Assertion::From => return None,
        };
        self.emit(Step::Look(look)).map(drop)
    }

    /// The end, and a line feed in front of it if there is one.
    fn last_line(&mut self) -> Option<()> {
        if self.program.is_reverse {
            self.emit(Step::Look(Look::End))?;
        }
        let branch = self.emit(Step::Branch(0))?;
        self.emit(Step::Byte(b'\n'))?;
        self.lead_here(branch);
        if !self.program.is_reverse {
            self.emit(Step::Look(Look::End))?;
        }
        Some(())
    }

    fn concat(&mut self, nodes: &[Node], is_end: bool) -> Option<()> {
        let (last, is_reverse) = (nodes.len().saturating_sub(1), self.program.is_reverse);
        let mut node = |(at, node)| self.node(node, is_end && at == last);
        match is_reverse {
            false => nodes.iter().enumerate().try_for_each(&mut node),
            true => nodes.iter().enumerate().rev().try_for_each(&mut node),
        }
    }

    fn alternatives(&mut self, nodes: &[Node], is_end: bool) -> Option<()> {
        let Some((last, others)) = nodes.split_last() else {
            return self.emit(Step::Fail).map(drop);
        };
        if let Some(set) = one_of(nodes) {
            return self.set(&set);
        }
        let mut ends = Vec::with_capacity(others.len());
        for node in others {
            let branch = self.emit(Step::Branch(0))?;
            self.node(node, is_end)?;
            ends.push(self.emit(Step::Jump(0))?);
            self.lead_here(branch);
        }
        self.node(last, is_end)?;
        ends.into_iter().for_each(|end| self.lead_here(end));
        Some(())
    }

    fn repeat(&mut self, repeat: &Repeat, is_end: bool) -> Option<()> {
        let is_end = is_end && repeat.max == 1;
        let again = |turn| if repeat.lazy { Step::Branch(turn) } else { Step::Away(turn) };
        let away = |exit| if repeat.lazy { Step::Away(exit) } else { Step::Branch(exit) };
        let mut turn = self.here();
        for _ in 0..repeat.min {
            turn = self.here();
            self.node(&repeat.node, is_end)?;
            if self.here() == turn {
                // Nothing, however often.
                return Some(());
            }
        }
        if repeat.max == UNBOUNDED {
            if repeat.min > 0 {
                return self.emit(again(turn)).map(drop);
            }
            let exit = self.emit(away(0))?;
            let turn = self.here();
            self.node(&repeat.node, is_end)?;
            self.emit(again(turn))?;
            self.lead_here(exit);
            return Some(());
        }
        let mut exits = Vec::new();
        for _ in repeat.min..repeat.max {
            exits.push(self.emit(away(0))?);
            self.node(&repeat.node, is_end)?;
        }
        exits.into_iter().for_each(|exit| self.lead_here(exit));
        Some(())
    }
}

/// The bytes of which one is taken, where each alternative takes one.
fn one_of(nodes: &[Node]) -> Option<ByteSet> {
    nodes.iter().try_fold(ByteSet::EMPTY, |set, node| match node {
        Node::Set(one) => Some(set.union(one)),
        Node::Literal { bytes, .. } if bytes.len() == 1 => Some(set.union(&node.first()?)),
        _ => None,
    })
}
