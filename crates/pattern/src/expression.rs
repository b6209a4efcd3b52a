//! Regular expressions as Perl means them, over bytes, bounded, and searched in steps that can be left at any time.
//!
//! An [`Expression`] is read once ([`Expression::new`]) and compiled when it is first searched for; a [`Search`] looks
//! for its first match, under fuel. Expressions that are regular run on lazy automata in time linear in the haystack; the
//! others, and groups, on a backtracking matcher with an explicit stack. Both are bounded by [`Limits`]: a search that goes
//! beyond says so ([`Progress::Exhausted`]) and never that there is no match.
//!
//! [`Expression::literals`] tells strings of which every match contains one, so that many expressions can be ruled out by
//! one pass of this crate's other half.
//!
//! It knows nothing of characters beyond bytes: classes are those of ASCII, and cases those of
//! Latin-1, as under Perl's `/aa`. Unsupported,
//! and refused by name: recursion, conditions, branch reset, verbs, code, `\K`, `\X`, Unicode properties and boundaries.
//! `docs/engine/expressions.md` has the whole list.

mod automaton;
mod compile;
mod error;
mod factor;
mod facts;
mod flags;
mod fuzz;
mod joint;
mod line;
mod literals;
mod loose;
mod machine;
mod meter;
mod needs;
mod opening;
mod outline;
mod parse;
mod program;
mod regular;
mod search;
mod strings;
mod syntax;
mod trie;
mod walk;

use std::fmt;
use std::sync::{Arc, OnceLock};

use automaton::{Automaton, Wanted};
pub use error::{SyntaxError, Wrong};
pub use factor::Parts;
pub use flags::Flags;
pub use fuzz::{fuzz_expression, fuzz_joint};
pub use joint::{Joint, JointRoom, Toil};
pub use literals::{Literals, fold, rarest_gram};
pub use needs::{Ask, Needs};
pub use opening::Opening;
pub use outline::{Outline, Outlines};
pub use parse::REPEAT_MAX;
use program::{Program, Start};
pub use search::{Progress, Search, Want};
pub use strings::LiteralLimits;
use syntax::Node;

/// The most bytes that a look behind may take, as in Perl.
pub const BEHIND_MAX: usize = 255;

/// The bounds of an expression and of the searches for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of the expression; more are refused.
    pub text_bytes_max: usize,
    /// Groups in groups; more are refused. They cost stack.
    pub depth_max: usize,
    /// Steps of one search, after which it is exhausted. A step is about one byte of an automaton or one instruction.
    pub steps_max: u64,
    /// Entries of a search's stack, of 24 bytes each, beyond which it is exhausted.
    pub frames_max: usize,
    /// Bytes in which a search remembers what has failed. Where they do not suffice it does without.
    pub memo_bytes_max: usize,
    /// Bytes of the states of one automaton that a search keeps, beyond the one without which it cannot run. Those of large
    /// expressions may take eight times as many.
    pub cache_bytes: usize,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            text_bytes_max: 1 << 20,
            depth_max: 200,
            steps_max: 50_000_000,
            frames_max: 1 << 19,
            memo_bytes_max: 4 << 20,
            cache_bytes: 128 << 10,
        }
    }
}

/// A regular expression.
#[derive(Clone)]
pub struct Expression(Arc<Compiled>);

/// Forms of an expression. Automata and programs are built when they are first needed, from the text.
struct Compiled {
    text: Box<[u8]>,
    flags: Flags,
    limits: Limits,
    groups: u32,
    names: Box<[(String, u32)]>,
    is_regular: bool,
    /// Whether `$` stands in it.
    has_last_line: bool,
    start: Start,
    forward: OnceLock<Option<Box<Automaton>>>,
    hits: OnceLock<Option<Box<Automaton>>>,
    gate: OnceLock<Option<Box<Automaton>>>,
    reverse: OnceLock<Option<Box<Automaton>>>,
    program: OnceLock<Box<Program>>,
    capturing: OnceLock<Box<Program>>,
}

impl Expression {
    /// Reads an expression, without the delimiters around it, within the default [`Limits`].
    ///
    /// # Errors
    /// What is wrong with it and where.
    pub fn new(text: &[u8], flags: Flags) -> Result<Expression, SyntaxError> {
        Expression::within(text, flags, Limits::default())
    }

    /// Reads an expression within bounds of the caller's.
    ///
    /// # Errors
    /// What is wrong with it and where.
    pub fn within(text: &[u8], flags: Flags, limits: Limits) -> Result<Expression, SyntaxError> {
        Ok(Reader::default().within(text, flags, limits)?.0)
    }

    /// As [`Expression::new`], with what every match needs: the expression is read once for both.
    ///
    /// # Errors
    /// What is wrong with it and where.
    pub fn with_needs(text: &[u8], flags: Flags, ask: &Ask) -> Result<(Expression, Needs), SyntaxError> {
        Reader::default().read(text, flags, ask)
    }

    /// The expression, and the tree that it was read to.
    fn of(text: &[u8], flags: Flags, limits: Limits, parsed: parse::Parsed) -> (Expression, Node) {
        let may_have_last_line = memchr::memchr2(b'$', b'Z', text).is_some();
        let expression = Expression(Arc::new(Compiled {
            text: text.into(),
            flags,
            limits,
            groups: parsed.groups,
            names: parsed.names.into(),
            is_regular: regular::is_regular(&parsed.node),
            has_last_line: may_have_last_line && regular::has_last_line(&parsed.node),
            start: compile::start(&parsed.node),
            forward: OnceLock::new(),
            hits: OnceLock::new(),
            gate: OnceLock::new(),
            reverse: OnceLock::new(),
            program: OnceLock::new(),
            capturing: OnceLock::new(),
        }));
        (expression, parsed.node)
    }

    /// A search that begins at byte 0; [`Search::restart`] begins it elsewhere.
    pub fn search(&self, want: Want) -> Search {
        Search::new(Arc::clone(&self.0), want)
    }

    /// Builds what searches for [`Want::Hit`] run on now, and not with the first.
    pub fn build(&self) {
        self.0.gate();
        if self.0.hits().is_none() || !self.0.is_regular {
            self.0.program(false);
        }
    }

    /// The same for a search or two in short haystacks: no automaton is built, which would cost more than it saves. What is found
    /// is the same.
    pub fn search_once(&self, want: Want) -> Search {
        Search::new(Arc::clone(&self.0), want).without_automaton()
    }

    /// Strings of which every match contains one, once it is folded ([`fold`]); none if no such set lies within the limits. Of
    /// all sets it is the one that is rarest in ordinary content. An empty set belongs to an expression that matches nothing.
    pub fn literals(&self, limits: LiteralLimits) -> Option<Vec<Vec<u8>>> {
        literals::needed(&self.0.node(), limits, &facts::Facts::default()).map(|needed| needed.strings)
    }

    /// The text with which every match begins; none if matches begin in several ways.
    pub fn opening(&self) -> Option<Opening> {
        let Compiled { text, flags, limits, .. } = &*self.0;
        Opening::of(&self.0.node(), text, *flags, *limits)
    }

    /// Whether searches run on automata, in time linear in the haystack.
    pub fn is_regular(&self) -> bool {
        self.0.is_regular
    }

    /// How many groups capture, without the whole.
    pub fn groups(&self) -> usize {
        self.0.groups as usize
    }

    /// The names of groups and their numbers, in their order. Several groups may have one name.
    pub fn names(&self) -> impl Iterator<Item = (&str, usize)> {
        self.0.names.iter().map(|(name, number)| (&**name, *number as usize))
    }

    /// The expression as it was given.
    pub fn text(&self) -> &[u8] {
        &self.0.text
    }
}

/// Reads many expressions: what stands in several of them, or in several places of one, is read and looked into once.
#[derive(Debug, Default)]
pub struct Reader {
    memo: parse::Memo,
    facts: facts::Facts,
}

impl Reader {
    /// One that remembers nothing.
    fn forgetful() -> Reader {
        Reader { memo: parse::Memo::full(), facts: facts::Facts::default() }
    }

    /// Reads an expression and what every match of it needs, as [`Expression::with_needs`] does.
    ///
    /// # Errors
    /// What is wrong with it and where.
    pub fn read(&mut self, text: &[u8], flags: Flags, ask: &Ask) -> Result<(Expression, Needs), SyntaxError> {
        let (expression, node) = self.within(text, flags, Limits::default())?;
        let needs = Needs::of(&node, ask, &self.facts);
        Ok((expression, needs))
    }

    /// Reads an expression, as [`Expression::new`] does.
    ///
    /// # Errors
    /// What is wrong with it and where.
    pub fn read_alone(&mut self, text: &[u8], flags: Flags) -> Result<Expression, SyntaxError> {
        Ok(self.within(text, flags, Limits::default())?.0)
    }

    fn within(&mut self, text: &[u8], flags: Flags, limits: Limits) -> Result<(Expression, Node), SyntaxError> {
        if text.len() > limits.text_bytes_max {
            return Err(SyntaxError { offset: limits.text_bytes_max, wrong: Wrong::TooLong });
        }
        let parsed = parse::parse(text, flags, limits.depth_max, &mut self.memo)?;
        Ok(Expression::of(text, flags, limits, parsed))
    }
}

impl fmt::Debug for Expression {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(to, "Expression({})", self.0.text.escape_ascii())
    }
}

impl Compiled {
    /// The tree, read again.
    fn node(&self) -> Node {
        let memo = &mut parse::Memo::default();
        let parsed = parse::parse(&self.text, self.flags, self.limits.depth_max, memo);
        parsed.map_or(Node::Never, |parsed| parsed.node)
    }

    /// The automaton that finds where the first match ends; none if the expression is not regular, or too large.
    fn forward(&self) -> Option<&Automaton> {
        if !self.is_regular {
            return None;
        }
        self.forward.get_or_init(|| self.automaton(&self.node(), Wanted::First)).as_deref()
    }

    /// The automaton that finds whether there is a match, or, where the expression is not regular, whether there may be one; none if
    /// it is too large.
    fn hits(&self) -> Option<&Automaton> {
        let build = || {
            let node = if self.is_regular { self.node() } else { loose::loosened(&self.node()) };
            self.automaton(&trie::for_hits(&node), Wanted::Any)
        };
        self.hits.get_or_init(build).as_deref()
    }

    /// The automaton that finds whether there may be a match of a regular expression, where that takes far fewer states than to
    /// find whether there is one.
    fn gate(&self) -> Option<&Automaton> {
        let build = || {
            let node = Some(self.node()).filter(loose::is_worth_it)?;
            self.automaton(&trie::for_hits(&loose::shrunk(&node)), Wanted::Any)
        };
        if !self.is_regular {
            return None;
        }
        self.gate.get_or_init(build).as_deref()
    }

    fn automaton(&self, node: &Node, wanted: Wanted) -> Option<Box<Automaton>> {
        // The state in which nothing has begun stands out only where the next start is found faster.
        let marks_start = walk::leaps(&self.start);
        Automaton::forward(node, wanted, marks_start, self.limits.cache_bytes).map(Box::new)
    }

    /// The automaton that finds where a match begins.
    fn reverse(&self) -> Option<&Automaton> {
        self.reverse.get_or_init(|| Automaton::reverse(&self.node(), self.limits.cache_bytes).map(Box::new)).as_deref()
    }

    /// Program of the backtracking matcher.
    fn program(&self, captures: bool) -> &Program {
        let program = if captures { &self.capturing } else { &self.program };
        program.get_or_init(|| Box::new(compile::compile(&self.node(), self.groups, captures)))
    }
}
