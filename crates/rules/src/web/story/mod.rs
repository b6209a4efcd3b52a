//! Storyboards: the order in which lists are asked, and what is done then.
//!
//! `function(name)` begins a function; a later one of its name replaces it. A line is `if(state,list,message,log) action`, or
//! `ifnot(...)`; `return` before the action leaves the function behind it, `returnif` if the action came to something. All names
//! are known in any case. A storyboard is compiled when it is loaded, and runs in bounded steps.

mod names;
mod read;
mod run;

use std::collections::HashMap;

pub(super) use names::{Action, Flag, State};
pub(super) use read::Reader;
pub(super) use run::World;

/// A storyboard, compiled.
#[derive(Debug, Default)]
pub(super) struct Story {
    functions: Vec<Vec<Step>>,
    names: HashMap<Box<str>, usize>,
}

/// A line.
#[derive(Debug, Clone)]
struct Step {
    is_negated: bool,
    state: State,
    /// Places in the group's lists.
    lists: Box<[usize]>,
    messages: Messages,
    ending: Ending,
    what: What,
}

/// Numbers of messages that a line sets in the place of those of its list; 0 sets none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Messages {
    pub shown: u32,
    pub logged: u32,
}

/// Whether a function is left behind a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ending {
    GoesOn,
    Returns,
    ReturnsIfTrue,
}

/// Effect of a line.
#[derive(Debug, Clone, Copy)]
enum What {
    Do(Action),
    Call(usize),
}

/// The order of a configuration that has no storyboard, as DansGuardian's.
pub(super) const STANDARD: &str = include_str!("standard.story");
