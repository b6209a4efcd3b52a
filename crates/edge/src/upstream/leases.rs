//! Connections that wait for their next message.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

/// Connections that have finished a message and wait for the next: for each hop of this event loop, or the one over
/// which a client has logged in.
pub struct Idle<C> {
    idle: Rc<RefCell<HashMap<String, Vec<C>>>>,
    /// Set if a client has logged in over it: another connection would not be logged in.
    pub logged_in: bool,
}

/// A connection that may wait for its next message.
pub trait Connection {
    /// Whether it can be used yet.
    fn is_fresh(&self) -> bool;
}

impl<C> Clone for Idle<C> {
    fn clone(&self) -> Idle<C> {
        Idle { idle: self.idle.clone(), logged_in: self.logged_in }
    }
}

impl<C> Default for Idle<C> {
    fn default() -> Idle<C> {
        Idle { idle: Rc::default(), logged_in: false }
    }
}

/// Idle connections kept to one hop by one event loop.
const IDLE_MAX: usize = 32;

impl<C: Connection> Idle<C> {
    /// For a client that has logged in: nothing waits yet.
    pub fn of_one_client() -> Idle<C> {
        Idle { logged_in: true, ..Idle::default() }
    }

    /// For what is not the client's own: over its connection it would be sent in its name.
    pub fn of_nobody(&self) -> Idle<C> {
        if self.logged_in { Idle::default() } else { self.clone() }
    }

    /// Whether nothing waits.
    pub fn is_empty(&self) -> bool {
        self.idle.borrow().values().all(Vec::is_empty)
    }

    /// A connection that waits.
    pub fn take(&self, key: &str) -> Option<C> {
        let mut idle = self.idle.borrow_mut();
        let waiting = idle.get_mut(key)?;
        // The longest unused ones are closed one by one, as load goes down.
        while let Some(hop) = waiting.pop() {
            if hop.is_fresh() {
                return Some(hop);
            }
        }
        None
    }

    /// A connection that may be used again.
    pub fn give(&self, key: &str, hop: C) {
        let mut idle = self.idle.borrow_mut();
        let waiting = idle.entry(key.to_string()).or_default();
        waiting.retain(C::is_fresh);
        if waiting.len() < IDLE_MAX {
            waiting.push(hop);
        }
    }

    /// Closes all of them.
    pub fn clear(&self) {
        self.idle.borrow_mut().clear();
    }
}
