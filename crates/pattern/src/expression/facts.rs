//! Facts about alternatives that occur in several places, kept by their address: rules write each letter as all that
//! look like it, some hundred times over.
//!
//! Nothing here says anything of its own: each fact is what its function said the first time.

use std::cell::{OnceCell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;

use super::line::Line;
use super::strings::{Alternatives, LiteralLimits};
use super::syntax::Node;
use crate::ByteSet;

/// Facts of all alternatives that were met.
#[derive(Default)]
pub(super) struct Facts(RefCell<HashMap<*const Node, Rc<Fact>>>);

/// Facts about alternatives; they are held, so that nothing else comes to their place.
pub(super) struct Fact {
    _nodes: Arc<[Node]>,
    pub line: OnceCell<Line>,
    pub pruned: OnceCell<Node>,
    /// The rarest set of each, together.
    pub rarest: OnceCell<Option<ByteSet>>,
    strings: RefCell<Vec<(LiteralLimits, Alternatives)>>,
}

impl Facts {
    /// The facts of alternatives that stand elsewhere too; none of those that stand here alone, which are met once.
    pub fn of(&self, nodes: &Arc<[Node]>) -> Option<Rc<Fact>> {
        if Arc::strong_count(nodes) < 2 {
            return None;
        }
        let fact = || {
            Rc::new(Fact {
                _nodes: Arc::clone(nodes),
                line: OnceCell::new(),
                pruned: OnceCell::new(),
                rarest: OnceCell::new(),
                strings: RefCell::default(),
            })
        };
        Some(Rc::clone(self.0.borrow_mut().entry(nodes.as_ptr()).or_insert_with(fact)))
    }
}

impl Fact {
    /// Literals of the alternatives within limits, computed once.
    pub fn strings(&self, limits: LiteralLimits, find: impl FnOnce() -> Alternatives) -> Alternatives {
        let known =
            self.strings.borrow().iter().find(|(known, _)| *known == limits).map(|(_, strings)| strings.clone());
        known.unwrap_or_else(|| {
            let strings = find();
            self.strings.borrow_mut().push((limits, strings.clone()));
            strings
        })
    }
}

impl std::fmt::Debug for Facts {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(to, "Facts({})", self.0.borrow().len())
    }
}
