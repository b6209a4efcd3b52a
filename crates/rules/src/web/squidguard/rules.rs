//! Access rules of a branch: the words of `pass`. The first that covers a request decides; a request that none covers passes.

use super::time::When;
use crate::web::story::{Action, Messages, World as _};
use crate::web::trial::Trial;

/// The number of the message for URLs that are let through.
const TRUSTED: Messages = Messages { shown: 603, logged: 603 };
/// The messages of the lists.
const OF_LISTS: Messages = Messages { shown: 0, logged: 0 };

/// The words of a branch, of which there is at least one.
#[derive(Debug)]
pub(in crate::web) struct Rules {
    /// The name of the source.
    pub source: Box<str>,
    pub words: Vec<Word>,
}

/// A word: what it covers, and whether that passes.
#[derive(Debug)]
pub(in crate::web) struct Word {
    pub scope: Scope,
    pub passes: bool,
}

/// The requests that a word covers.
#[derive(Debug)]
pub(in crate::web) enum Scope {
    /// `any`, `all` and `none`.
    All,
    /// `in-addr`: those with an address in place of a host name.
    Addresses,
    /// Those of a destination, by its lists' places in the group.
    Destination { lists: Box<[usize]>, when: When },
}

impl Rules {
    pub fn decide(&self, trial: &mut Trial<'_>) {
        trial.act(Action::Intercept);
        let Some(word) = self.words.iter().find(|word| word.covers(trial)) else { return };
        let is_listed = matches!(word.scope, Scope::Destination { .. });
        match (word.passes, &word.scope) {
            (true, _) if !is_listed => return,
            (false, Scope::All) => trial.find("none", format!("the access rules of {} do not pass it", self.source)),
            (false, Scope::Addresses) => {
                trial.find("in-addr", format!("the access rules of {} pass no addresses", self.source));
            }
            _ => {}
        }
        trial.act(if word.passes { Action::Exception } else { Action::Block });
    }
}

impl Word {
    fn covers(&self, trial: &mut Trial<'_>) -> bool {
        match &self.scope {
            Scope::All => true,
            Scope::Addresses => trial.is_address(),
            Scope::Destination { .. } if self.passes && trial.is_claimed() => false,
            Scope::Destination { lists, when } => {
                when.holds(trial.now()) && trial.is_listed(lists, if self.passes { TRUSTED } else { OF_LISTS })
            }
        }
    }
}
