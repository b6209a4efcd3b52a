//! How a group tells that something is blocked: `reportinglevel`, and what belongs to it.

use std::sync::Arc;

use super::squidguard::Redirects;
use super::template::Template;

/// How much those who are blocked are told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Level {
    /// Nothing: blocks are logged alone.
    Stealth,
    /// That it is blocked.
    Bare,
    /// Why.
    Reason,
    /// Why, as the log has it.
    Full,
    /// Why, on the page of the template.
    Template,
}

impl Level {
    pub fn of_number(number: i32) -> Option<Level> {
        Some(match number {
            -1 => Level::Stealth,
            0 => Level::Bare,
            1 => Level::Reason,
            2 => Level::Full,
            3 => Level::Template,
            _ => return None,
        })
    }
}

/// How a group tells that something is blocked.
#[derive(Debug)]
pub(super) struct Manner {
    pub level: Level,
    /// The site that shows the reason, in the place of a page.
    pub address: Option<Box<str>>,
    /// Its parameters stand between `::`, with `==` before the value.
    pub has_own_delimiters: bool,
    pub template: Option<Arc<Template>>,
    /// The redirects of squidGuard.
    pub redirects: Redirects,
}
