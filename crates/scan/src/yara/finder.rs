//! A string that is looked for at the end, with the matches that YARA has: what `search` needs of it.
//!
//! A string is cut at its long jumps. Each part has its atoms and a program for each direction; one that has no atoms is
//! begun at every byte with which it may begin. Learnt from YARA 4.2 by trials; `tests/yara_matches.rs` compares.

use pattern::ByteSet;
use regex_automata::meta::Regex;
use regex_syntax::hir::Hir;

use super::atoms::{self, Atom};
use super::program::{Direction, Instruction, Program, TooLarge};
use super::text::Modifiers;
use super::tree::{Id, Tree};
use super::walk::Mode;
use crate::syntax::body::BodyPart;

/// The most parts of a string.
const PARTS_MAX: usize = 128;
/// The most bytes of a compiled filter.
const COMPILED_BYTES_MAX: usize = 2 << 20;

/// The source of a finder.
#[derive(Debug, Clone)]
pub(crate) struct Kept {
    pub(crate) tree: Tree,
    /// An expression that matches wherever the tree does, if there is one.
    pub(crate) filter: Option<Hir>,
    pub(crate) dot_all: bool,
    pub(crate) modifiers: Modifiers,
}

impl Kept {
    /// A body; nothing if it has what no body of YARA has.
    pub(crate) fn of_body(parts: &[BodyPart]) -> Option<Kept> {
        Some(Kept { tree: Tree::of_body(parts)?, filter: None, dot_all: true, modifiers: Modifiers::default() })
    }

    /// A text; of those with keys (`xor`) a single byte.
    pub(crate) fn of_text(text: &[u8], modifiers: &Modifiers) -> Kept {
        let tree = match (text, modifiers.xor) {
            (&[byte], Some((first, last))) => Tree::of_set(ByteSet::of(|of| (first..=last).contains(&(of ^ byte)))),
            _ => Tree::of_text(text, modifiers.caseless),
        };
        Kept { tree, filter: None, dot_all: false, modifiers: modifiers.clone() }
    }

    /// Whether YARA may miss a match: as in [`Tree::may_be_missed`], the wide form where the other form matches, and if a part
    /// has no atoms.
    pub(crate) fn may_be_missed(&self) -> bool {
        let both = self.modifiers.wide && self.modifiers.ascii && !self.tree.is_text(self.tree.root);
        let mut tree = self.tree.clone();
        let mut is_bare = || {
            let parts = tree.cut();
            parts.iter().any(|(root, _)| atoms::of(&tree, *root).is_ok_and(|atoms| atoms.is_empty()))
        };
        both || self.tree.may_be_missed() || is_bare()
    }

    /// The finder.
    pub(crate) fn finder(&self) -> Result<Finder, TooLarge> {
        let mut finder = Finder::new(self.tree.clone(), self.dot_all, &self.modifiers)?;
        let is_short = |sought: &Sought| sought.atom.len() < 2;
        let is_slow = finder.parts.len() == 1 && (finder.atoms.is_empty() || finder.atoms.iter().any(is_short));
        let filter = self.filter.as_ref().filter(|_| is_slow);
        let config = Regex::config().utf8_empty(false).nfa_size_limit(Some(COMPILED_BYTES_MAX));
        finder.filter =
            filter.and_then(|hir| Regex::builder().configure(config).build_from_hir(hir).ok()).map(Box::new);
        Ok(finder)
    }
}

/// A string.
#[derive(Debug, Clone)]
pub(crate) struct Finder {
    pub(super) parts: Vec<Part>,
    /// The atoms of all parts, those first that YARA tries first where several end at one place.
    pub(super) atoms: Vec<Sought>,
    pub(super) ascii: bool,
    pub(super) wide: bool,
    pub(super) fullword: bool,
    pub(super) greedy: bool,
    pub(super) mode: Mode,
    /// Matches wherever the string does, if that has no atoms, or short ones.
    pub(super) filter: Option<Box<Regex>>,
}

#[derive(Debug, Clone)]
pub(super) struct Part {
    pub(super) forwards: Program,
    pub(super) backwards: Program,
    /// The bounds of the jump before it.
    pub(super) gap: (u64, u64),
    /// Where it is begun if it has no atoms, and the bytes with which a match may begin then.
    pub(super) bare: Option<(u32, ByteSet)>,
    /// Length of the text, if atoms cover all of it.
    pub(super) fits: Option<usize>,
}

/// An atom of a part, in the form in which it is looked for.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sought {
    pub(super) part: u16,
    pub(super) atom: Atom,
    /// Where the programs are begun.
    pub(super) begin: u32,
    pub(super) back: u32,
}

impl Finder {
    /// The finder of a tree.
    fn new(mut tree: Tree, dot_all: bool, modifiers: &Modifiers) -> Result<Finder, TooLarge> {
        let Modifiers { caseless, wide, fullword, .. } = *modifiers;
        let ascii = modifiers.ascii || !wide;
        let mode = Mode { caseless, dot_all, wide: false, in_row: tree.is_row };
        let mut finder = Finder {
            parts: Vec::new(),
            atoms: Vec::new(),
            ascii,
            wide,
            fullword,
            greedy: tree.greedy,
            mode,
            filter: None,
        };
        let parts = tree.cut();
        if parts.len() > PARTS_MAX {
            return Err(TooLarge);
        }
        for (root, gap) in parts {
            finder.add(&tree, root, gap)?;
        }
        finder.atoms.sort_by_key(|sought| std::cmp::Reverse(sought.atom.len()));
        if finder.atoms.len() > usize::from(u16::MAX) { Err(TooLarge) } else { Ok(finder) }
    }

    fn add(&mut self, tree: &Tree, root: Id, (min, max): (u32, u32)) -> Result<(), TooLarge> {
        let number = u16::try_from(self.parts.len()).map_err(|_| TooLarge)?;
        let mut atoms = atoms::of(tree, root)?;
        let forwards = Program::new(tree, root, Direction::Forwards)?;
        let begin = forwards.places.get(root as usize).copied().flatten().filter(|_| atoms.is_empty());
        let bare = begin.map(|at| (at, firsts(&forwards, at, self.mode.caseless)));
        let length = forwards.code.len() - 1;
        let fits = tree.is_text(root) && length * if self.wide { 2 } else { 1 } <= atoms::ATOM_MAX;
        let wide: Vec<Atom> = atoms.iter().rev().filter(|_| self.wide).map(Atom::widened).collect();
        atoms.retain(|_| self.ascii);
        atoms.extend(wide);
        let backwards = Program::new(tree, root, Direction::Backwards)?;
        let place = |program: &Program, atom: &Atom| program.places.get(atom.first as usize).copied().flatten();
        // What was added last is tried first.
        let sought = atoms.into_iter().rev().filter_map(|atom| {
            let (begin, back) = (place(&forwards, &atom)?, place(&backwards, &atom)?);
            Some(Sought { part: number, atom, begin, back })
        });
        self.atoms.splice(0..0, sought);
        let gap = (min.into(), if max == u32::MAX { u64::MAX } else { max.into() });
        let (forwards, backwards) = (forwards.without_places(), backwards.without_places());
        self.parts.push(Part { forwards, backwards, gap, bare, fits: fits.then_some(length) });
        Ok(())
    }

    pub(super) fn is_byte(&self, byte: u8, value: u8, mask: u8) -> bool {
        byte & mask == value || self.mode.caseless && mask == u8::MAX && byte.eq_ignore_ascii_case(&value)
    }

    pub(super) fn is_at(&self, atom: &Atom, bytes: &[u8]) -> bool {
        atom.bytes().zip(bytes).all(|((value, mask), &byte)| self.is_byte(byte, value, mask))
    }
}

/// The bytes with which a match may begin that a program finds from there.
fn firsts(program: &Program, at: u32, caseless: bool) -> ByteSet {
    let mut firsts = ByteSet::EMPTY;
    let mut seen = vec![false; program.code.len()];
    let mut left = vec![at];
    while let Some(at) = left.pop() {
        let Some(&instruction) = program.code.get(at as usize).filter(|_| !seen[at as usize]) else {
            continue;
        };
        seen[at as usize] = true;
        match instruction {
            Instruction::Byte { value, mask } => {
                let is = |byte: u8| byte & mask == value || caseless && byte.eq_ignore_ascii_case(&value);
                firsts = firsts.union(&ByteSet::of(is));
            }
            Instruction::Any | Instruction::Many { .. } => return ByteSet::of(|_| true),
            Instruction::Set(set) => {
                firsts = program.sets.get(usize::from(set)).map_or(firsts, |set| firsts.union(set));
            }
            Instruction::Boundary(_) | Instruction::Start | Instruction::End => left.push(at + 1),
            Instruction::Split { to, .. } => left.extend([at + 1, to]),
            Instruction::Jump(to) => left.push(to),
            Instruction::LoopStart { behind, .. } => left.extend([at + 1, behind]),
            Instruction::LoopEnd { body, .. } => left.extend([at + 1, body]),
            Instruction::Match => {}
        }
    }
    firsts
}
