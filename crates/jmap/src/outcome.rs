//! The arguments that each `set` has, and the outcomes of its objects (RFC 8620, section 5.3).

use alloc::string::String;
use alloc::vec::Vec;

use crate::arguments::Arguments;
use crate::engine::Engine;
use crate::error::Error;
use crate::limits::SET_MAX;
use crate::{Map, Value, json};

/// The arguments of a `set` that are the same for all types.
pub(crate) struct Set {
    pub account: String,
    pub old_state: String,
    pub create: Map<String, Value>,
    pub update: Map<String, Value>,
    pub destroy: Vec<String>,
}

impl Set {
    /// Takes them. Further ones are the type's.
    ///
    /// # Errors
    /// Why the method is not carried out.
    pub fn read(engine: &mut Engine<'_>, arguments: &mut Arguments) -> Result<Set, Error> {
        let account = engine.account(arguments)?;
        let old_state = engine.check_state(arguments)?;
        let (create, update) = (arguments.object("create")?, arguments.object("update")?);
        let destroy = arguments.strings("destroy")?.unwrap_or_default();
        if create.len().saturating_add(update.len()).saturating_add(destroy.len()) > SET_MAX {
            return Err(Error::new("requestTooLarge"));
        }
        Ok(Set { account, old_state, create, update, destroy })
    }
}

/// Result for each object.
#[derive(Default)]
pub(crate) struct Outcome {
    created: Map<String, Value>,
    not_created: Map<String, Value>,
    updated: Map<String, Value>,
    not_updated: Map<String, Value>,
    destroyed: Vec<String>,
    not_destroyed: Map<String, Value>,
}

impl Outcome {
    /// An object was created, of which calls that follow may speak by its creation id.
    pub fn created(&mut self, engine: &mut Engine<'_>, creation: String, outcome: Result<Value, Error>) {
        match outcome {
            Ok(value) => {
                let id = value["id"].as_str().unwrap_or_default().into();
                engine.created.insert(creation.clone(), id);
                self.created.insert(creation, value);
            }
            Err(error) => _ = self.not_created.insert(creation, error.value()),
        }
    }

    /// An object was changed: `()` as the client wants it, or a value of what is otherwise.
    pub fn updated(&mut self, id: String, outcome: Result<impl Into<Value>, Error>) {
        match outcome {
            Ok(other) => self.updated.insert(id, other.into()),
            Err(error) => self.not_updated.insert(id, error.value()),
        };
    }

    /// An object was removed.
    pub fn destroyed(&mut self, id: String, outcome: Result<(), Error>) {
        match outcome {
            Ok(()) => self.destroyed.push(id),
            Err(error) => _ = self.not_destroyed.insert(id, error.value()),
        }
    }

    /// The reply of the method.
    pub fn reply(self, account: &str, old_state: &str, new_state: &str) -> Value {
        json!({
            "accountId": account, "oldState": old_state, "newState": new_state,
            "created": self.created, "notCreated": self.not_created, "updated": self.updated, "notUpdated": self.not_updated,
            "destroyed": self.destroyed, "notDestroyed": self.not_destroyed,
        })
    }
}
