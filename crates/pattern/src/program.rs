//! The assembly of programs: what a part compiles to.

use crate::code::{Op, PlainOp, Programs, STRIDE};
use crate::entry::Start;
use crate::piece::{ByteSet, Edge, Piece};

/// The most bytes of literals, and the most ops.
const POOL_MAX: usize = 1 << 30;

/// All programs and the pools that they refer to, as parts are added.
#[derive(Debug, Clone, Default)]
pub(crate) struct Assembly {
    ops: Vec<Op>,
    literals: Vec<u8>,
    sets: Vec<ByteSet>,
    targets: Vec<u32>,
    edges: Vec<Edge>,
}

impl Assembly {
    /// The programs, to be run.
    pub(crate) fn finish(self) -> Programs {
        let ops: Vec<PlainOp> = self.ops.into_iter().map(PlainOp::from).collect();
        Programs {
            ops: ops.into(),
            literals: self.literals.into(),
            sets: self.sets.into(),
            targets: self.targets.into(),
            edges: self.edges,
        }
    }

    /// Whether no part can be added.
    pub(crate) fn is_full(&self) -> bool {
        self.literals.len().max(self.ops.len()) >= POOL_MAX
    }

    /// Takes in a part of nothing but these bytes, [`STRIDE`] at most.
    pub(crate) fn literal(&mut self, bytes: &[u8]) -> Start {
        let at = index(self.literals.len());
        self.literals.extend_from_slice(bytes);
        Start::Literal { at, length: bytes.len() as u8 }
    }

    /// The bytes of a literal.
    pub(crate) fn read(&self, at: u32, length: u8) -> &[u8] {
        &self.literals[at as usize..][..length.into()]
    }

    /// Compiles a part and returns its first op.
    pub(crate) fn add_program(&mut self, pieces: &[Piece], part: u32) -> u32 {
        let first = self.next();
        let (body, ahead) = match pieces.split_last() {
            Some((Piece::Ahead(edge), body)) => (body, Some(edge)),
            _ => (pieces, None),
        };
        self.sequence(body);
        let end = match ahead {
            Some(edge) => Op::Ahead { edge: self.edge(edge) },
            None => Op::End { part },
        };
        self.ops.push(end);
        if matches!(end, Op::Ahead { .. }) {
            self.ops.push(Op::End { part });
        }
        first
    }

    fn next(&self) -> u32 {
        index(self.ops.len())
    }

    fn sequence(&mut self, pieces: &[Piece]) {
        let mut rest = pieces;
        while let Some(piece) = rest.first() {
            let run = rest.iter().take_while(|piece| is_run(piece)).count();
            if run > 0 {
                self.compare(&rest[..run]);
                rest = &rest[run..];
                continue;
            }
            self.piece(piece);
            rest = &rest[1..];
        }
    }

    /// Bytes and short skips between bytes, compared under masks in one go.
    fn compare(&mut self, run: &[Piece]) {
        let bytes: Vec<(u8, u8)> = run.iter().flat_map(masked).collect();
        for chunk in bytes.chunks(STRIDE) {
            let length = chunk.len() as u16;
            let at = index(self.literals.len());
            self.literals.extend(chunk.iter().map(|&(value, _)| value));
            if chunk.iter().all(|&(_, mask)| mask == 0xff) {
                self.ops.push(Op::Exact { length, at });
                continue;
            }
            self.literals.extend(chunk.iter().map(|&(_, mask)| mask));
            self.ops.push(Op::Masked { length, at });
        }
    }

    fn piece(&mut self, piece: &Piece) {
        match piece {
            Piece::Byte { .. } => self.compare(std::slice::from_ref(piece)),
            Piece::Set(set) => {
                let set = intern(&mut self.sets, set);
                self.ops.push(Op::Set { set });
            }
            Piece::Skip(count) => self.skip(usize::from(*count)),
            Piece::Gap { min, max } => {
                self.skip(usize::from(*min));
                let all = (0..=max.saturating_sub(*min)).map(|more| vec![Piece::Skip(more)]);
                self.one_of(&all.collect::<Vec<_>>());
            }
            Piece::OneOf(all) => self.one_of(all),
            Piece::NoneOf(all) => self.none_of(all),
            Piece::Behind(edge) => {
                let edge = self.edge(edge);
                self.ops.push(Op::Behind { edge });
            }
            Piece::Ahead(_) => debug_assert!(false, "looking ahead is refused elsewhere"),
        }
    }

    fn skip(&mut self, mut count: usize) {
        while count > 0 {
            let length = count.min(STRIDE);
            self.ops.push(Op::Skip { length: length as u16 });
            count -= length;
        }
    }

    fn one_of(&mut self, all: &[Vec<Piece>]) {
        let at = index(self.targets.len());
        self.targets.resize(self.targets.len() + all.len(), 0);
        self.ops.push(Op::Split { count: all.len() as u16, at });
        let mut jumps = Vec::with_capacity(all.len());
        for (one, slot) in all.iter().zip(at as usize..) {
            self.targets[slot] = self.next();
            self.sequence(one);
            jumps.push(self.ops.len());
            self.ops.push(Op::Jump { to: 0 });
        }
        let to = self.next();
        for jump in jumps {
            self.ops[jump] = Op::Jump { to };
        }
    }

    fn none_of(&mut self, all: &[Vec<u8>]) {
        let at = index(self.literals.len());
        self.literals.extend(all.iter().flatten());
        self.ops.push(Op::NoneOf { length: all.first().map_or(0, Vec::len) as u16, count: all.len() as u16, at });
    }

    fn edge(&mut self, edge: &Edge) -> u32 {
        intern(&mut self.edges, edge)
    }
}

/// The place of `item` in `pool`, which holds few distinct items.
fn intern<T: PartialEq + Clone>(pool: &mut Vec<T>, item: &T) -> u32 {
    let recent = pool.iter().rev().take(64).position(|known| known == item);
    if let Some(back) = recent {
        return index(pool.len() - 1 - back);
    }
    pool.push(item.clone());
    index(pool.len() - 1)
}

/// Skips this short are compared along with the bytes around them, under a mask of nothing.
const SKIP_IN_RUN: u16 = 16;

fn is_run(piece: &Piece) -> bool {
    match piece {
        Piece::Byte { .. } => true,
        Piece::Skip(count) => *count <= SKIP_IN_RUN,
        _ => false,
    }
}

fn masked(piece: &Piece) -> impl Iterator<Item = (u8, u8)> {
    let (one, count) = match *piece {
        Piece::Byte { value, mask } => ((value & mask, mask), 1),
        Piece::Skip(count) => ((0, 0), usize::from(count)),
        _ => ((0, 0), 0),
    };
    std::iter::repeat_n(one, count)
}

/// An index into one of the flat arrays. More than 4 G of anything is beyond what [`crate::Builder`] accepts.
fn index(length: usize) -> u32 {
    u32::try_from(length).expect("the builder bounds the pools")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_bytes_become_one_comparison() {
        let mut programs = Assembly::default();
        programs.add_program(&Piece::bytes(b"abcdef"), 7);
        let run = Op::Exact { length: 6, at: 0 };
        assert_eq!(programs.ops, [run, Op::End { part: 7 }]);
    }

    #[test]
    fn long_runs_are_cut_so_that_each_can_wait_in_the_history() {
        let mut programs = Assembly::default();
        programs.add_program(&Piece::bytes(&[7; 300]), 0);
        let lengths = programs.ops.iter().filter_map(|op| match op {
            Op::Exact { length, .. } => Some(*length),
            _ => None,
        });
        assert_eq!(lengths.collect::<Vec<_>>(), [128, 128, 44]);
    }

    #[test]
    fn alternatives_meet_again() {
        let mut programs = Assembly::default();
        let all = vec![Piece::bytes(b"a"), Piece::bytes(b"bc")];
        programs.add_program(&[Piece::OneOf(all), Piece::byte(1)], 0);
        assert_eq!(programs.ops[2], Op::Jump { to: 5 });
        assert_eq!(programs.ops[4], Op::Jump { to: 5 });
        assert_eq!(programs.targets, [1, 3]);
    }
}
