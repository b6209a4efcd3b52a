//! Expressions of functions, with the memory of searches for them that nobody uses: what an automaton has built for one mail is
//! there for the next.

use std::sync::Mutex;

use pattern::expression::{Expression, Flags, Search, SyntaxError, Want};

/// An expression of which it matters whether there is a match.
#[derive(Debug)]
pub(crate) struct Pooled {
    expression: Expression,
    idle: Mutex<Vec<Search>>,
}

/// The most searches that are kept: as many as there are threads, in most machines. Each holds what an automaton may
/// ([`pattern::expression::Limits::cache_bytes`]).
const IDLE_MAX: usize = 64;

impl Pooled {
    /// Reads an expression.
    ///
    /// # Errors
    /// What is wrong with it and where.
    pub(crate) fn new(text: &[u8], flags: Flags) -> Result<Pooled, SyntaxError> {
        Ok(Pooled { expression: Expression::new(text, flags)?, idle: Mutex::default() })
    }

    /// Does something with a search for whether it matches.
    pub(crate) fn with_search<T>(&self, run: impl FnOnce(&mut Search) -> T) -> T {
        let idle = self.idle.lock().ok().and_then(|mut idle| idle.pop());
        let mut search = idle.unwrap_or_else(|| self.expression.search(Want::Hit));
        search.restart(0);
        let outcome = run(&mut search);
        if let Ok(mut idle) = self.idle.lock()
            && idle.len() < IDLE_MAX
        {
            idle.push(search);
        }
        outcome
    }
}
