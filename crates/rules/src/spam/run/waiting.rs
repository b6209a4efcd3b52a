//! Sub-rules that may hit and have not been run.
//!
//! Only metas look at a sub-rule, and most metas come to nothing whatever it hits, since what stands beside it does not. So
//! sub-rules of which a pass has found that they may hit wait here until the metas are evaluated, and of those only what decides is run.

use std::ops::Range;

use super::engine::{Eval, HeaderItem, Item, PartTest, Templated, ViewPass};
use super::pass::Pair;
use crate::spam::schedule::Open;

/// Work that waits in the course of a check.
#[derive(Default)]
pub(super) struct Waiting<'r> {
    open: Vec<Open>,
    /// One for each that is open.
    jobs: Vec<Job<'r>>,
}

/// Work to run.
#[derive(Clone)]
pub(super) enum Job<'r> {
    /// An expression over those haystacks of a view that it may match in.
    View(&'r ViewPass, &'r Item, Box<[Pair]>),
    /// An expression over a field, and where in it it may match.
    Header(&'r HeaderItem, Range<u32>),
    Part(&'r PartTest),
    Eval(&'r Eval),
    /// An expression that holds what others captured.
    Templated(&'r Templated),
}

/// Cost of a function or a test of parts, in bytes that an expression reads.
const COST_OF_CALL: u32 = 500;
/// And an expression that is read anew.
const COST_OF_READING: u32 = 20_000;

impl<'r> Waiting<'r> {
    /// Lets a rule wait whose job is to look at so many bytes.
    pub(super) fn push(&mut self, job: Job<'r>, bytes: usize) {
        let bytes = u32::try_from(bytes).unwrap_or(u32::MAX);
        let (rule, cost) = match &job {
            Job::View(_, item, _) => (item.rule, bytes),
            Job::Header(test, _) => (test.item.rule, bytes),
            Job::Part(test) => (test.item.rule, COST_OF_CALL),
            Job::Eval(eval) => (eval.rule, COST_OF_CALL),
            Job::Templated(templated) => (templated.rule, COST_OF_READING),
        };
        self.open.push(Open { rule, cost });
        self.jobs.push(job);
    }

    /// The rules that wait.
    pub(super) fn open(&self) -> &[Open] {
        &self.open
    }

    /// Work of one of them.
    pub(super) fn job(&self, number: u32) -> Job<'r> {
        self.jobs[number as usize].clone()
    }
}
