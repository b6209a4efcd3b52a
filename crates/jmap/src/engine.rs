//! The account while the calls of one request are carried out.

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

use crate::arguments::Arguments;
use crate::error::Error;
use crate::host::Host;
use crate::index::Index;
use crate::limits::RESPONSE_BYTES_MAX;
use crate::references::{Reply, created};
use crate::session::account_id;
use crate::{Map, Value};

/// The calls of one request while they are carried out.
pub(crate) struct Engine<'a> {
    pub host: &'a mut dyn Host,
    pub account: u32,
    /// Ids of objects that were created, by their creation ids.
    pub created: BTreeMap<String, String>,
    /// Replies that follow the one of the method which is carried out.
    pub implied: Vec<(&'static str, Value)>,
    /// Replies so far.
    pub replies: Vec<Reply>,
    index: Option<Arc<Index>>,
    /// Bytes that replies may still have.
    pub bytes_left: usize,
}

impl<'a> Engine<'a> {
    pub fn new(host: &'a mut dyn Host, created: BTreeMap<String, String>) -> Engine<'a> {
        let account = host.account().number;
        let (implied, replies) = (Vec::new(), Vec::new());
        Engine { host, account, created, implied, replies, index: None, bytes_left: RESPONSE_BYTES_MAX }
    }

    /// Counts bytes of replies.
    pub fn spend(&mut self, bytes: usize) -> Result<(), Error> {
        match self.bytes_left.checked_sub(bytes) {
            Some(left) => {
                self.bytes_left = left;
                Ok(())
            }
            None => {
                self.bytes_left = 0;
                Err(Error::new("requestTooLarge"))
            }
        }
    }

    /// The account of a call, which is the only one.
    pub fn account(&self, arguments: &mut Arguments) -> Result<String, Error> {
        let id = arguments.string("accountId")?.ok_or_else(|| Error::arguments("accountId"))?;
        if id == account_id(self.account) { Ok(id) } else { Err(Error::new("accountNotFound")) }
    }

    /// The Emails as they are now.
    pub fn index(&mut self) -> Arc<Index> {
        let (host, account) = (&self.host, self.account);
        self.index.get_or_insert_with(|| Arc::new(Index::new(host.state(), account))).clone()
    }

    /// The id that `#id` stands for, or the id itself, which may be of nothing.
    pub fn resolved(&self, id: String) -> String {
        created(&id, &self.created).map(String::from).unwrap_or(id)
    }

    /// The store has changed.
    pub fn changed(&mut self) {
        self.index = None;
    }

    /// The state of the account, which is told to the client.
    pub fn state(&mut self) -> String {
        let index = self.index();
        let state = Index::state(&index.snapshot, self.account);
        self.host.remember(state, index.snapshot.clone());
        format!("{state:x}")
    }

    /// The Emails as they were in a state.
    pub fn former(&mut self, state: u64) -> Result<Arc<Index>, Error> {
        let index = self.index();
        if Index::state(&index.snapshot, self.account) == state {
            return Ok(index);
        }
        let former = self.host.former(state).ok_or_else(|| Error::new("cannotCalculateChanges"))?;
        Ok(Arc::new(Index::new(former, self.account)))
    }

    /// A condition of a `set`: the state is this one.
    pub fn check_state(&mut self, arguments: &mut Arguments) -> Result<String, Error> {
        let wanted = arguments.string("ifInState")?;
        let state = self.state();
        match wanted {
            Some(wanted) if wanted != state => Err(Error::new("stateMismatch")),
            _ => Ok(state),
        }
    }
}

/// The reply of a `get`.
pub(crate) fn got(account: String, state: String, list: Vec<Value>, missing: Vec<String>) -> Value {
    let mut reply = Map::new();
    reply.insert("accountId".into(), account.into());
    reply.insert("state".into(), state.into());
    reply.insert("list".into(), list.into());
    reply.insert("notFound".into(), missing.into());
    Value::Object(reply)
}
