//! From [`Node`]s to a [`Program`].
//!
//! Loops become branches and jumps where nothing has to be counted, or where few instructions are repeated few times; other
//! loops, and those whose inside can match nothing, have a register with a count and the place where the turn began. Runs
//! of one set are one instruction. A program has at most a few instructions for each byte of its expression: once there
//! are too many, nothing is written out any more.

use std::collections::HashMap;

use super::program::{ANY, Bounds, FORGET, Greed, Instruction, LookAround, Program, Start};
use super::syntax::{Assertion, Look, Node, Repeat, UNBOUNDED, has_case};
use crate::ByteSet;

/// The most instructions that a counted loop may become when it is written out.
const WRITTEN_OUT_MAX: usize = 256;
/// The most bytes for which a set is searched for by comparing.
const FEW_MAX: usize = 3;

/// Compiles an expression of `groups` groups. With `captures` all of them are remembered, without only those that are
/// referred to.
pub(super) fn compile(node: &Node, groups: u32, captures: bool) -> Program {
    let mut referred = vec![captures; groups as usize + 1];
    let mut has_references = false;
    node.any(&mut |node| {
        if let Node::Backreference { group, .. } = node {
            has_references = true;
            if let Some(referred) = referred.get_mut(*group as usize) {
                *referred = true;
            }
        }
        false
    });
    let slots = if captures || has_references { 2 * (groups as usize + 1) } else { 2 };
    let mut compiler = Compiler {
        program: Program { slots, start: start(node), ..Program::default() },
        sets: HashMap::new(),
        remembered: referred,
        is_forgetful: has_references,
        follow: None,
    };
    compiler.node(node);
    compiler.emit(Instruction::Match);
    compiler.program
}

/// Where matches can begin.
pub(super) fn start(node: &Node) -> Start {
    match leading(node) {
        Some(Assertion::Start) => return Start::First,
        Some(Assertion::From) => return Start::From,
        Some(Assertion::LineStart) => return Start::Line,
        _ => {}
    }
    match node.first() {
        None => Start::Anywhere,
        Some(set) if set.len() <= FEW_MAX => Start::Few(set.iter().collect()),
        Some(set) if set.len() == 256 => Start::Anywhere,
        Some(set) => Start::Set(set),
    }
}

/// The assertion with which every match begins.
fn leading(node: &Node) -> Option<Assertion> {
    match node {
        Node::Assert(assertion) => Some(*assertion),
        Node::Concat(nodes) => nodes.first().and_then(leading),
        Node::Group(node, _) | Node::Atomic(node) => leading(node),
        Node::Alternate(nodes) => {
            let first = leading(nodes.first()?)?;
            nodes.iter().all(|node| leading(node) == Some(first)).then_some(first)
        }
        Node::Repeat(repeat) if repeat.min > 0 => leading(&repeat.node),
        _ => None,
    }
}

struct Compiler {
    program: Program,
    sets: HashMap<ByteSet, u32>,
    /// Groups that are saved.
    remembered: Vec<bool>,
    /// Whether failures depend on more than place and instruction.
    is_forgetful: bool,
    /// Bytes of which one has to follow the compiled part; `None` if unknown.
    follow: Option<ByteSet>,
}

impl Compiler {
    fn emit(&mut self, instruction: Instruction) -> usize {
        self.program.code.push(instruction);
        self.program.code.len() - 1
    }

    fn here(&self) -> u32 {
        self.program.code.len() as u32
    }

    fn set(&mut self, set: &ByteSet) -> u32 {
        let sets = &mut self.program.sets;
        *self.sets.entry(*set).or_insert_with(|| {
            sets.push(*set);
            sets.len() as u32 - 1
        })
    }

    /// The set of bytes with which the node begins.
    fn first(&mut self, node: &Node) -> u32 {
        node.first().filter(|set| set.len() < 256).map_or(ANY, |set| self.set(&set))
    }

    fn bounds(&mut self, min: u32, max: u32, lazy: bool) -> u32 {
        self.program.bounds.push(Bounds { min, max, lazy });
        self.program.bounds.len() as u32 - 1
    }

    fn memo(&mut self) -> u32 {
        if self.is_forgetful {
            return FORGET;
        }
        self.program.branches += 1;
        self.program.branches - 1
    }

    /// Compiles what stands where failures depend on more than place and instruction.
    fn forgetful(&mut self, inside: impl FnOnce(&mut Self)) {
        let before = std::mem::replace(&mut self.is_forgetful, true);
        inside(self);
        self.is_forgetful = before;
    }

    /// Lets the branch at `branch` lead to what comes next.
    fn lead_here(&mut self, branch: usize) {
        let here = self.here();
        match &mut self.program.code[branch] {
            Instruction::Branch { other, .. } | Instruction::Away { other, .. } => *other = here,
            Instruction::Jump(to) => *to = here,
            Instruction::LoopTest { exit, .. } => *exit = here,
            _ => {}
        }
    }

    fn node(&mut self, node: &Node) {
        match node {
            Node::Empty => {}
            Node::Never => drop(self.emit(Instruction::Fail)),
            Node::Literal { bytes, fold } => self.literal(bytes, *fold),
            Node::Set(set) => {
                let set = self.set(set);
                self.emit(Instruction::Set(set));
            }
            Node::Assert(assertion) => drop(self.emit(Instruction::Assert(*assertion))),
            Node::Concat(nodes) => self.concat(nodes),
            Node::Alternate(nodes) => self.alternatives(nodes),
            Node::Repeat(repeat) => self.repeat(repeat),
            Node::Group(node, number) => self.group(node, *number),
            Node::Look(look) => self.look(look),
            Node::Atomic(node) => self.atomic(node),
            Node::Backreference { group, fold } => {
                self.emit(Instruction::Backreference { group: *group, fold: *fold });
            }
        }
    }

    fn concat(&mut self, nodes: &[Node]) {
        let behind = self.follow;
        for (at, node) in nodes.iter().enumerate() {
            self.follow = if matches!(node, Node::Literal { .. } | Node::Set(_) | Node::Assert(_)) {
                None
            } else {
                following(&nodes[at + 1..], behind)
            };
            self.node(node);
        }
        self.follow = behind;
    }

    /// Compiles what stands where nothing is known of what follows it.
    fn apart(&mut self, inside: impl FnOnce(&mut Self)) {
        let behind = self.follow.take();
        inside(self);
        self.follow = behind;
    }

    /// Compiles a turn of a loop: another follows, or what follows the loop.
    fn looped(&mut self, node: &Node) {
        let behind = self.follow;
        self.follow = following(std::slice::from_ref(node), behind).zip(behind).map(|(all, behind)| all.union(&behind));
        self.node(node);
        self.follow = behind;
    }

    fn literal(&mut self, bytes: &[u8], fold: bool) {
        let fold = fold && bytes.iter().any(|&byte| has_case(byte));
        if let ([byte], false) = (bytes, fold) {
            self.emit(Instruction::Byte(*byte));
            return;
        }
        let (at, length) = (self.program.bytes.len() as u32, bytes.len() as u32);
        self.program.bytes.extend(bytes);
        self.emit(if fold { Instruction::Folded { at, length } } else { Instruction::Literal { at, length } });
    }

    fn alternatives(&mut self, nodes: &[Node]) {
        let Some((last, others)) = nodes.split_last() else {
            return;
        };
        let mut ends = Vec::with_capacity(others.len());
        for node in others {
            let (set, memo) = (self.first(node), self.memo());
            let branch = self.emit(Instruction::Branch { set, other: 0, memo });
            self.node(node);
            ends.push(self.emit(Instruction::Jump(0)));
            self.lead_here(branch);
        }
        self.node(last);
        ends.into_iter().for_each(|end| self.lead_here(end));
    }

    fn group(&mut self, node: &Node, number: u32) {
        if !self.remembered.get(number as usize).copied().unwrap_or(false) {
            return self.node(node);
        }
        self.emit(Instruction::Open(number));
        self.node(node);
        self.emit(Instruction::Close(number));
    }

    fn look(&mut self, look: &Look) {
        let index = self.program.looks.len() as u32;
        self.program.looks.push(LookAround {
            negative: look.negative,
            behind: look.behind,
            enter: self.here() + 1,
            exit: 0,
        });
        self.emit(Instruction::Look(index));
        self.forgetful(|compiler| compiler.apart(|compiler| compiler.node(&look.node)));
        self.emit(Instruction::LookEnd(index));
        self.program.looks[index as usize].exit = self.here();
    }

    fn atomic(&mut self, node: &Node) {
        if let Node::Repeat(repeat) = node
            && let Some(set) = one_byte(&repeat.node)
        {
            return self.run(&set, repeat, Greed::Possessive);
        }
        self.emit(Instruction::Atomic);
        self.apart(|compiler| compiler.node(node));
        self.emit(Instruction::AtomicEnd);
    }

    fn run(&mut self, bytes: &ByteSet, repeat: &Repeat, greed: Greed) {
        let (set, bounds) = (self.set(bytes), self.bounds(repeat.min, repeat.max, repeat.lazy));
        let greed = match greed {
            // Lazy and possessive: no more than it must.
            Greed::Possessive if repeat.lazy => {
                self.program.bounds[bounds as usize].max = repeat.min;
                Greed::Possessive
            }
            // What follows cannot be one of its bytes: to give them back is of no use.
            Greed::Greedy if self.follow.is_some_and(|follow| !follow.meets(bytes)) => Greed::Possessive,
            greed => greed,
        };
        self.emit(Instruction::Run { set, bounds, greed });
    }

    fn repeat(&mut self, repeat: &Repeat) {
        if let Some(set) = one_byte(&repeat.node) {
            return self.run(&set, repeat, if repeat.lazy { Greed::Lazy } else { Greed::Greedy });
        }
        if (repeat.min, repeat.max) == (0, 1) {
            return self.optional(repeat);
        }
        if repeat.node.is_nullable() && repeat.min != repeat.max {
            return self.counted(repeat);
        }
        if (repeat.min, repeat.max) == (0, UNBOUNDED) {
            return self.star(repeat);
        }
        self.written_out(repeat);
    }

    /// A branch between another turn, which comes next, and what `other` becomes.
    fn turn(&mut self, repeat: &Repeat) -> usize {
        let (set, memo) = (self.first(&repeat.node), self.memo());
        self.emit(if repeat.lazy {
            Instruction::Away { set, other: 0, memo }
        } else {
            Instruction::Branch { set, other: 0, memo }
        })
    }

    fn optional(&mut self, repeat: &Repeat) {
        let branch = self.turn(repeat);
        self.node(&repeat.node);
        self.lead_here(branch);
    }

    fn star(&mut self, repeat: &Repeat) {
        let branch = self.turn(repeat);
        self.looped(&repeat.node);
        self.emit(Instruction::Jump(branch as u32));
        self.lead_here(branch);
    }

    /// The inside as often as it must and may be, if that is not too long; else a counted loop.
    fn written_out(&mut self, repeat: &Repeat) {
        let times = if repeat.max == UNBOUNDED { repeat.min as usize + 1 } else { repeat.max as usize };
        let (size, nodes) = (self.program.code.len(), count(&repeat.node).saturating_mul(times));
        if nodes > WRITTEN_OUT_MAX || size > PROGRAM_LARGE {
            return self.counted(repeat);
        }
        for _ in 0..repeat.min {
            self.looped(&repeat.node);
        }
        if repeat.max == UNBOUNDED {
            return self.star(repeat);
        }
        let mut branches = Vec::new();
        for _ in repeat.min..repeat.max {
            branches.push(self.turn(repeat));
            self.looped(&repeat.node);
        }
        branches.into_iter().for_each(|branch| self.lead_here(branch));
    }

    fn counted(&mut self, repeat: &Repeat) {
        let register = self.program.registers as u32;
        self.program.registers += 1;
        let bounds = self.bounds(repeat.min, repeat.max, repeat.lazy);
        self.emit(Instruction::LoopStart(register));
        let test = self.emit(Instruction::LoopTest { register, bounds, exit: 0 });
        self.emit(Instruction::LoopEnter(register));
        self.forgetful(|compiler| compiler.looped(&repeat.node));
        self.emit(Instruction::LoopBack { register, test: test as u32 });
        self.lead_here(test);
    }
}

/// The size of a program from which on nothing is written out.
const PROGRAM_LARGE: usize = 1 << 16;

/// The bytes of which one follows in front of these nodes, and of what is behind them; nothing if that is not known, or
/// depends on too many of them: each node asks.
fn following(nodes: &[Node], behind: Option<ByteSet>) -> Option<ByteSet> {
    let mut set = ByteSet::EMPTY;
    let near = &nodes[..nodes.len().min(NEAR)];
    if !near.iter().all(|node| node.add_first(&mut set)) {
        return Some(set);
    }
    behind.filter(|_| near.len() == nodes.len()).map(|behind| set.union(&behind))
}

/// So many nodes that may take nothing are looked into.
const NEAR: usize = 64;

/// Set of a node that matches exactly one byte.
fn one_byte(node: &Node) -> Option<ByteSet> {
    match node {
        Node::Set(set) => Some(*set),
        Node::Literal { bytes, .. } if bytes.len() == 1 => node.first(),
        _ => None,
    }
}

/// About how many instructions a node becomes.
fn count(node: &Node) -> usize {
    match node {
        Node::Repeat(repeat) if one_byte(&repeat.node).is_none() => {
            let times = if repeat.max == UNBOUNDED { repeat.min as usize + 1 } else { repeat.max as usize };
            let turn = count(&repeat.node);
            let written = turn.saturating_add(1).saturating_mul(times);
            if written > WRITTEN_OUT_MAX { turn.saturating_add(4) } else { written }
        }
        node => node.children().iter().fold(2, |sum, node| sum.saturating_add(count(node))),
    }
}
