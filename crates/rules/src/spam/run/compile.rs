//! Expressions as rules write them, made ready to be searched for.

use pattern::expression::{Expression as Compiled, Flags};

use crate::spam::syntax::expression::{Checker, Expression};

/// Checks expressions as they are read: those that cannot run are errors of the configuration.
#[derive(Debug, Clone, Copy, Default)]
pub struct Expressions;

impl Checker for Expressions {
    fn check(&self, expression: &Expression) -> Result<(), String> {
        compile(expression).map(drop)
    }
}

/// An expression of a rule, ready to be searched for.
pub(super) fn compile(expression: &Expression) -> Result<Compiled, String> {
    let flags = Flags::of(&expression.flags).map_err(|flag| format!("the flag {flag} is not supported"))?;
    Compiled::new(&expression.source, flags).map_err(|error| error.to_string())
}
