//! The syntax tree of a string that is no plain text: a regular expression, or a body in hexadecimal digits.
//!
//! YARA takes the bytes that it searches first from this tree, and the order in which it tries alternatives, so the tree
//! keeps the form of the text: sequences of one, alternatives in pairs, quantifiers as they stand.

use pattern::{ByteSet, Piece};
use regex_syntax::ast::{self, Ast};
use regex_syntax::hir::translate::TranslatorBuilder;
use regex_syntax::hir::{Class, Hir, HirKind};

use crate::syntax::body::BodyPart;
use crate::syntax::line::Reject;

/// The number of a node in its tree.
pub(crate) type Id = u32;

/// The upper bound of a quantifier without one.
pub(crate) const OPEN: u16 = i16::MAX as u16;
/// The deepest nesting of groups.
pub(crate) const NESTING_MAX: u32 = 60;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Node {
    /// A byte of which only the bits of the mask count; none of them is any byte.
    Byte {
        value: u8,
        mask: u8,
    },
    /// Any byte, but for a line feed where the dot is not all.
    Any,
    Set(ByteSet),
    /// A boundary of a word, or none.
    Boundary(bool),
    Start,
    End,
    Empty,
    Concat(Vec<Id>),
    Either(Id, Id),
    Star {
        of: Id,
        lazy: bool,
    },
    Plus {
        of: Id,
        lazy: bool,
    },
    Times {
        of: Id,
        min: u16,
        max: u16,
        lazy: bool,
    },
    /// [`Node::Any`], from `min` to `max` times.
    Jump {
        min: u32,
        max: u32,
        lazy: bool,
    },
}

#[derive(Debug, Clone)]
pub(crate) struct Tree {
    pub(crate) nodes: Vec<Node>,
    pub(crate) root: Id,
    /// Whether quantifiers take as much as they can, and whether as little.
    pub(crate) greedy: bool,
    pub(crate) lazy: bool,
    /// Whether it is a body without alternatives.
    pub(crate) is_row: bool,
    caseless: bool,
}

impl Tree {
    fn new(caseless: bool, is_row: bool) -> Tree {
        Tree { nodes: Vec::new(), root: 0, greedy: false, lazy: false, is_row, caseless }
    }

    /// The tree of an expression that `regex-syntax` has read.
    ///
    /// # Errors
    /// Forms that YARA does not have.
    pub(crate) fn of_ast(ast: &Ast, caseless: bool) -> Result<Tree, Reject> {
        let mut tree = Tree::new(caseless, false);
        tree.root = tree.alternative(ast)?;
        match tree.greedy && tree.lazy {
            true => Err(Reject::Malformed("greedy and lazy quantifiers in one regular expression".to_owned())),
            false => Ok(tree),
        }
    }

    /// The tree of a body; nothing if it has pieces that no body of YARA has.
    pub(crate) fn of_body(parts: &[BodyPart]) -> Option<Tree> {
        let mut tree = Tree::new(false, true);
        let mut all = Vec::new();
        for (index, part) in parts.iter().enumerate() {
            if index > 0 {
                all.push(tree.add(Node::Jump { min: part.gap.min, max: part.gap.max, lazy: true }));
            }
            for piece in &part.pieces {
                all.push(tree.piece(piece)?);
            }
        }
        tree.root = tree.row(all);
        Some(tree)
    }

    /// The tree of a text.
    pub(crate) fn of_text(text: &[u8], caseless: bool) -> Tree {
        let mut tree = Tree::new(caseless, false);
        let all = text.iter().map(|&value| tree.add(Node::Byte { value, mask: u8::MAX })).collect();
        tree.root = tree.add(Node::Concat(all));
        tree
    }

    /// The tree of one byte of a set.
    pub(crate) fn of_set(set: ByteSet) -> Tree {
        let mut tree = Tree::new(false, false);
        tree.root = tree.add(Node::Set(set));
        tree
    }

    pub(crate) fn get(&self, id: Id) -> &Node {
        self.nodes.get(id as usize).unwrap_or(&Node::Empty)
    }

    /// Whether it is a sequence of bytes and nothing else.
    pub(crate) fn is_text(&self, root: Id) -> bool {
        let is_byte = |id: &Id| matches!(self.get(*id), Node::Byte { mask: u8::MAX, .. });
        match self.get(root) {
            Node::Concat(all) => all.iter().all(is_byte),
            _ => is_byte(&root),
        }
    }

    /// Whether YARA may miss a match, since it loses places where jumps overlap, and turns of loops whose operand is empty.
    pub(crate) fn may_be_missed(&self) -> bool {
        let is_jump = |node: &&Node| matches!(node, Node::Jump { min, max, .. } if min < max);
        self.is_row && self.nodes.iter().filter(is_jump).count() > 1
            || self.nodes.iter().any(|node| matches!(node, Node::Times { of, max: 2.., .. } if self.is_empty(*of)))
    }

    /// Whether a node may match no byte.
    fn is_empty(&self, id: Id) -> bool {
        match self.get(id) {
            Node::Byte { .. } | Node::Any | Node::Set(_) => false,
            Node::Boundary(_) | Node::Start | Node::End | Node::Empty | Node::Star { .. } => true,
            Node::Concat(all) => all.iter().all(|one| self.is_empty(*one)),
            Node::Either(left, right) => self.is_empty(*left) || self.is_empty(*right),
            Node::Plus { of, .. } => self.is_empty(*of),
            Node::Times { of, min, .. } => *min == 0 || self.is_empty(*of),
            Node::Jump { min, .. } => *min == 0,
        }
    }

    /// Cuts a sequence at its long lazy jumps, as YARA does: its parts, each with the bounds of the jump before it.
    pub(crate) fn cut(&mut self) -> Vec<(Id, (u32, u32))> {
        /// A jump whose bounds are not above is kept.
        const JUMP_MAX: u32 = 200;
        let Node::Concat(all) = self.get(self.root).clone() else {
            return vec![(self.root, (0, 0))];
        };
        let (mut parts, mut open, mut gap) = (Vec::new(), Vec::new(), (0, 0));
        for (index, &id) in all.iter().enumerate() {
            match self.get(id) {
                &Node::Jump { min, max, lazy: true } if max > JUMP_MAX && !open.is_empty() && index + 1 < all.len() => {
                    parts.push((self.add(Node::Concat(std::mem::take(&mut open))), gap));
                    gap = (min, max);
                }
                _ => open.push(id),
            }
        }
        parts.push((if parts.is_empty() { self.root } else { self.add(Node::Concat(open)) }, gap));
        parts
    }

    fn add(&mut self, node: Node) -> Id {
        self.nodes.push(node);
        (self.nodes.len() - 1) as Id
    }

    fn alternative(&mut self, ast: &Ast) -> Result<Id, Reject> {
        let Ast::Alternation(all) = ast else {
            return self.concatenation(ast);
        };
        let mut left = None;
        for one in &all.asts {
            left = Some(match (left, one) {
                (Some(left), Ast::Empty(_)) => {
                    let right = self.add(Node::Empty);
                    self.add(Node::Either(left, right))
                }
                (Some(left), one) => {
                    let right = self.concatenation(one)?;
                    self.add(Node::Either(left, right))
                }
                (None, one) => self.concatenation(one)?,
            });
        }
        left.ok_or_else(empty)
    }

    fn concatenation(&mut self, ast: &Ast) -> Result<Id, Reject> {
        let mut all = Vec::new();
        match ast {
            Ast::Empty(_) => return Err(empty()),
            Ast::Concat(concat) => {
                for one in &concat.asts {
                    self.quantified(one, &mut all)?;
                }
            }
            one => self.quantified(one, &mut all)?,
        }
        Ok(self.add(Node::Concat(all)))
    }

    fn quantified(&mut self, ast: &Ast, all: &mut Vec<Id>) -> Result<(), Reject> {
        let Ast::Repetition(repetition) = ast else {
            if let Ast::Literal(literal) = ast
                && literal.byte().is_none()
                && !literal.c.is_ascii()
            {
                let mut bytes = [0; 4];
                all.extend(
                    literal
                        .c
                        .encode_utf8(&mut bytes)
                        .bytes()
                        .map(|value| self.add(Node::Byte { value, mask: u8::MAX })),
                );
                return Ok(());
            }
            let one = self.single(ast)?;
            all.push(one);
            return Ok(());
        };
        if matches!(&*repetition.ast, Ast::Repetition(_) | Ast::Assertion(_)) {
            return Err(Reject::Malformed("a quantifier of nothing".to_owned()));
        }
        let lazy = !repetition.greedy;
        (self.lazy, self.greedy) = (self.lazy || lazy, self.greedy || !lazy);
        let of = self.single(&repetition.ast)?;
        let (min, max) = match repetition.op.kind {
            ast::RepetitionKind::ZeroOrOne => (0, 1),
            ast::RepetitionKind::ZeroOrMore => {
                all.push(self.add(Node::Star { of, lazy }));
                return Ok(());
            }
            ast::RepetitionKind::OneOrMore => {
                all.push(self.add(Node::Plus { of, lazy }));
                return Ok(());
            }
            ast::RepetitionKind::Range(ast::RepetitionRange::Exactly(count)) => (count, count),
            ast::RepetitionKind::Range(ast::RepetitionRange::AtLeast(least)) => (least, OPEN.into()),
            ast::RepetitionKind::Range(ast::RepetitionRange::Bounded(least, most)) => (least, most),
        };
        if max == 0 || max < min || max > OPEN.into() {
            return Err(Reject::Malformed("a bad repeat interval".to_owned()));
        }
        let node = match self.get(of) {
            Node::Any => Node::Jump { min, max, lazy },
            _ => Node::Times { of, min: min as u16, max: max as u16, lazy },
        };
        all.push(self.add(node));
        Ok(())
    }

    fn single(&mut self, ast: &Ast) -> Result<Id, Reject> {
        let unknown = || Reject::Malformed("a form that YARA's regular expressions do not have".to_owned());
        let node = match ast {
            Ast::Group(group) if matches!(group.kind, ast::GroupKind::CaptureIndex(_)) => {
                return self.alternative(&group.ast);
            }
            Ast::Dot(_) => Node::Any,
            Ast::Literal(literal) => Node::Byte {
                value: literal.byte().or_else(|| u8::try_from(u32::from(literal.c)).ok()).ok_or_else(unknown)?,
                mask: u8::MAX,
            },
            Ast::Assertion(assertion) => match assertion.kind {
                ast::AssertionKind::StartLine => Node::Start,
                ast::AssertionKind::EndLine => Node::End,
                ast::AssertionKind::WordBoundary => Node::Boundary(true),
                ast::AssertionKind::NotWordBoundary => Node::Boundary(false),
                _ => return Err(unknown()),
            },
            Ast::ClassPerl(_) | Ast::ClassBracketed(_) => Node::Set(self.set(ast).ok_or_else(unknown)?),
            _ => return Err(unknown()),
        };
        Ok(self.add(node))
    }

    fn set(&self, ast: &Ast) -> Option<ByteSet> {
        let mut translator =
            TranslatorBuilder::new().unicode(false).utf8(false).case_insensitive(self.caseless).build();
        let hir: Hir = translator.translate("", ast).ok()?;
        match hir.kind() {
            HirKind::Class(Class::Bytes(bytes)) => {
                let has = |byte| bytes.ranges().iter().any(|range| (range.start()..=range.end()).contains(&byte));
                Some(ByteSet::of(has))
            }
            HirKind::Literal(literal) => match *literal.0 {
                [only] => Some(ByteSet::of(|byte| byte == only)),
                _ => None,
            },
            _ => None,
        }
    }

    /// One node alone, or a sequence.
    fn row(&mut self, all: Vec<Id>) -> Id {
        match all.as_slice() {
            [one] => *one,
            _ => self.add(Node::Concat(all)),
        }
    }

    fn piece(&mut self, piece: &Piece) -> Option<Id> {
        let node = match piece {
            Piece::Byte { value, mask } => Node::Byte { value: *value, mask: *mask },
            Piece::Skip(1) => Node::Any,
            Piece::Skip(count) => Node::Jump { min: u32::from(*count), max: u32::from(*count), lazy: true },
            Piece::Gap { min, max } => Node::Jump { min: u32::from(*min), max: u32::from(*max), lazy: true },
            Piece::Set(set) => {
                self.is_row = false;
                Node::Set(*set)
            }
            Piece::OneOf(all) => {
                self.is_row &= all.len() == 1;
                let mut left = None;
                for one in all {
                    let one = one.iter().map(|piece| self.piece(piece)).collect::<Option<Vec<_>>>()?;
                    let right = self.row(one);
                    left = Some(match left {
                        Some(left) => self.add(Node::Either(left, right)),
                        None => right,
                    });
                }
                return left;
            }
            Piece::NoneOf(_) | Piece::Behind(_) | Piece::Ahead(_) => return None,
        };
        Some(self.add(node))
    }
}

fn empty() -> Reject {
    Reject::Malformed("an empty regular expression".to_owned())
}
