//! Expressions of a configuration, checked.

use pattern::expression::Reader;

use crate::spam::syntax::expression::{Checker, Expression};

/// Checks expressions as they are read: those that cannot run are errors of the configuration. What it reads is kept for the
/// engine.
#[derive(Debug, Clone, Copy, Default)]
pub struct Expressions;

/// The same for a configuration of which no engine is made here: nothing is kept, and nothing else is looked for in them.
#[derive(Debug, Clone, Copy, Default)]
pub struct Syntax;

impl Checker for Syntax {
    fn check(&self, expressions: &[&Expression]) -> Vec<Result<(), String>> {
        let mut reader = Reader::default();
        expressions.iter().map(|expression| expression.alone_by(&mut reader).map(drop)).collect()
    }
}

impl Checker for Expressions {
    fn check(&self, expressions: &[&Expression]) -> Vec<Result<(), String>> {
        let mut reader = Reader::default();
        expressions.iter().map(|expression| expression.ready_by(&mut reader).map(drop)).collect()
    }
}
