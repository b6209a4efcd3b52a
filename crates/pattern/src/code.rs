//! Verifier programs, and how they lie in memory or in a file: eight bytes an op.
//!
//! A program is a run of [`Op`]s in one flat array, from the first op of the part to its [`Op::End`]. Every op that
//! consumes bytes consumes at most [`STRIDE`] of them, so that a verification which must wait for more input can be
//! parked at the start of its op: the bytes it has not finished with are still in the history.
//!
//! What is loaded is checked once: every op leads to ops, bytes, sets and edges that are there, and no op that goes on
//! is the last. Whatever else an op says, running it is bounded by the budget.

use std::io;

use bytemuck::{Pod, Zeroable};

use crate::flat::{Flat, Reader, Unfit, Writer};
use crate::piece::{ByteSet, Edge};

/// The most bytes that one op looks at.
pub(crate) const STRIDE: usize = 128;

/// One instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Op {
    /// `length` bytes equal to those at `at` in the literal pool.
    Exact { length: u16, at: u32 },
    /// `length` bytes that, masked by those at `at + length`, equal those at `at`.
    Masked { length: u16, at: u32 },
    /// `length` bytes, whatever they are.
    Skip { length: u16 },
    /// A byte of the set.
    Set { set: u32 },
    /// None of the `count` sequences of `length` bytes at `at`.
    NoneOf { length: u16, count: u16, at: u32 },
    /// Goes on at each of the `count` ops listed at `at` in the target pool.
    Split { count: u16, at: u32 },
    /// Goes on at that op, where alternatives meet again.
    Jump { to: u32 },
    /// Looks behind.
    Behind { edge: u32 },
    /// The part is complete.
    End { part: u32 },
    /// Looks past the end; the next op is the part's [`Op::End`].
    Ahead { edge: u32 },
}

/// An op in eight bytes.
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct PlainOp {
    kind: u8,
    length: u8,
    count: u16,
    at: u32,
}

/// Lengths fit into a byte.
const _: () = assert!(STRIDE <= u8::MAX as usize);

impl From<Op> for PlainOp {
    fn from(op: Op) -> PlainOp {
        let (kind, length, count, at) = match op {
            Op::Exact { length, at } => (0, length, 0, at),
            Op::Masked { length, at } => (1, length, 0, at),
            Op::Skip { length } => (2, length, 0, 0),
            Op::Set { set } => (3, 0, 0, set),
            Op::NoneOf { length, count, at } => (4, length, count, at),
            Op::Split { count, at } => (5, 0, count, at),
            Op::Jump { to } => (6, 0, 0, to),
            Op::Behind { edge } => (7, 0, 0, edge),
            Op::Ahead { edge } => (8, 0, 0, edge),
            Op::End { part } => (9, 0, 0, part),
        };
        PlainOp { kind, length: length as u8, count, at }
    }
}

impl PlainOp {
    /// The op that it stands for, if any.
    #[inline(always)]
    pub(crate) fn op(self) -> Option<Op> {
        let (length, count, at) = (u16::from(self.length), self.count, self.at);
        Some(match self.kind {
            0 => Op::Exact { length, at },
            1 => Op::Masked { length, at },
            2 => Op::Skip { length },
            3 => Op::Set { set: at },
            4 => Op::NoneOf { length, count, at },
            5 => Op::Split { count, at },
            6 => Op::Jump { to: at },
            7 => Op::Behind { edge: at },
            8 => Op::Ahead { edge: at },
            9 => Op::End { part: at },
            _ => return None,
        })
    }
}

/// All programs and the pools that they refer to.
#[derive(Debug, Clone)]
pub(crate) struct Programs {
    pub(crate) ops: Flat<PlainOp>,
    pub(crate) literals: Flat<u8>,
    pub(crate) sets: Flat<ByteSet>,
    pub(crate) targets: Flat<u32>,
    pub(crate) edges: Vec<Edge>,
}

impl Programs {
    /// The bytes that the programs take.
    pub(crate) fn bytes(&self) -> usize {
        self.ops.len() * size_of::<PlainOp>()
            + self.literals.len()
            + self.sets.len() * size_of::<ByteSet>()
            + self.targets.len() * 4
            + self.edges.len() * size_of::<Edge>()
    }

    pub(crate) fn store(&self, writer: &mut Writer<'_>) -> io::Result<()> {
        writer.array(&self.ops)?;
        writer.array(&self.literals)?;
        writer.array(&self.sets)?;
        writer.array(&self.targets)?;
        let edges: Vec<PlainEdge> = self.edges.iter().map(PlainEdge::from).collect();
        writer.array(&edges)
    }

    /// Stored programs of so many parts.
    pub(crate) fn load(reader: &mut Reader, parts: u32) -> Result<Programs, Unfit> {
        let (ops, literals, sets) = (reader.array()?, reader.array()?, reader.array()?);
        let (targets, edges): (_, Flat<PlainEdge>) = (reader.array()?, reader.array()?);
        let edges = edges.iter().map(|edge| edge.edge()).collect::<Option<_>>().ok_or(Unfit::Malformed)?;
        let programs = Programs { ops, literals, sets, targets, edges };
        let count_fits =
            [programs.ops.len(), programs.literals.len()].iter().all(|&count| i32::try_from(count).is_ok());
        let targets_fit = programs.targets.iter().all(|&to| (to as usize) < programs.ops.len());
        let ops_fit = (0..programs.ops.len()).all(|at| programs.fits(at, parts));
        if count_fits && targets_fit && ops_fit { Ok(programs) } else { Err(Unfit::Malformed) }
    }

    /// Whether what the op refers to is there.
    fn fits(&self, at: usize, parts: u32) -> bool {
        let below = |index: u32, count: usize| (index as usize) < count;
        let literals = |at: u32, bytes: usize| at as usize + bytes <= self.literals.len();
        let Some(op) = self.ops[at].op() else {
            return false;
        };
        let goes_on = at + 1 < self.ops.len();
        match op {
            Op::Exact { length, at } => goes_on && short(length) && literals(at, length.into()),
            Op::Masked { length, at } => goes_on && short(length) && literals(at, 2 * usize::from(length)),
            Op::Skip { length } => goes_on && short(length),
            Op::Set { set } => goes_on && below(set, self.sets.len()),
            Op::NoneOf { length, count, at } => {
                goes_on && short(length) && literals(at, usize::from(length) * usize::from(count))
            }
            Op::Split { count, at } => at as usize + usize::from(count) <= self.targets.len(),
            Op::Jump { to } => below(to, self.ops.len()),
            Op::Behind { edge } | Op::Ahead { edge } => goes_on && below(edge, self.edges.len()),
            Op::End { part } => part < parts,
        }
    }
}

/// Whether an op can wait for so many bytes in the history.
fn short(length: u16) -> bool {
    usize::from(length) <= STRIDE
}

/// An edge in 40 bytes.
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
#[repr(C)]
struct PlainEdge {
    kind: u64,
    set: ByteSet,
}

impl From<&Edge> for PlainEdge {
    fn from(edge: &Edge) -> PlainEdge {
        match edge {
            Edge::Byte { set, at_border } => PlainEdge { kind: (*at_border).into(), set: *set },
            Edge::NotWide(set) => PlainEdge { kind: 2, set: *set },
            Edge::Line => PlainEdge { kind: 3, set: ByteSet::EMPTY },
        }
    }
}

impl PlainEdge {
    fn edge(&self) -> Option<Edge> {
        Some(match self.kind {
            0 | 1 => Edge::Byte { set: self.set, at_border: self.kind == 1 },
            2 => Edge::NotWide(self.set),
            3 => Edge::Line,
            _ => return None,
        })
    }
}
