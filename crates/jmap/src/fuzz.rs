//! Fuzz body: requests to an account without mails.

use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

use store::{Mailbox, State};

use crate::host::{Account, Failure, Field, Host, Layout, Place, Sending, Work};
use crate::{Problem, Value, answer};

/// Fuzz body: every body is answered with a response that holds a reply for each call, or refused.
///
/// # Panics
/// If not.
pub fn fuzz_request(data: &[u8]) {
    let calls = |value: &Value| value["methodCalls"].as_array().map(Vec::len);
    let asked = crate::json::read(data).as_ref().and_then(calls);
    match answer(&mut Empty::default(), data) {
        Ok(response) => {
            let response = crate::json::read(response.as_bytes());
            let replies = response.as_ref().and_then(|value| value["methodResponses"].as_array().map(Vec::len));
            assert!(replies >= asked && replies.is_some(), "{response:?}");
        }
        Err(Problem::NotJson | Problem::NotRequest | Problem::UnknownCapability | Problem::Limit(_)) => {}
    }
}

/// Uploads that are kept.
const UPLOADS_MAX: usize = 8;

/// An account without mails.
pub(crate) struct Empty {
    pub account: Account,
    uploads: Vec<Arc<[u8]>>,
}

impl Default for Empty {
    fn default() -> Empty {
        let account = Account { number: 1, name: "ann".into(), addresses: ["ann@mx.test".into()].into() };
        Empty { account, uploads: Vec::new() }
    }
}

impl Host for Empty {
    fn account(&self) -> &Account {
        &self.account
    }

    fn hostname(&self) -> &str {
        "mx.test"
    }

    fn now(&self) -> i64 {
        837_595_405
    }

    fn random(&mut self) -> [u8; 16] {
        [7; 16]
    }

    fn state(&self) -> State {
        State::default()
    }

    fn layout(&mut self, _: u64) -> Option<Layout> {
        None
    }

    fn layout_of(&self, content: &[u8]) -> Layout {
        Layout { end: content.len() as u64, ..Layout::default() }
    }

    fn read(&mut self, _: u64, _: u64, _: &mut [u8]) -> Option<usize> {
        None
    }

    fn find(&mut self, _: &[(u32, Arc<Mailbox>)], _: Field, _: &str) -> Vec<(u32, u32)> {
        Vec::new()
    }

    fn apply(&mut self, _: Vec<Work>) -> Result<u32, Failure> {
        Err(Failure::Store)
    }

    fn deliver(&mut self, _: Vec<u8>, _: Vec<Place>, _: i64) -> Result<(u32, u32), Failure> {
        Err(Failure::Store)
    }

    fn send(&mut self, _: Sending) -> Result<(), Failure> {
        Err(Failure::NoRelay)
    }

    fn former(&mut self, _: u64) -> Option<State> {
        None
    }

    fn remember(&mut self, _: u64, _: State) {}

    fn upload(&mut self, id: &str) -> Option<(String, Arc<[u8]>)> {
        let number = id.strip_prefix('U')?;
        let kept = number.parse::<usize>().ok().and_then(|number| self.uploads.get(number).cloned());
        Some(("text/plain".into(), kept.unwrap_or_else(|| Arc::from(&b"Subject: a\r\n\r\nb\r\n"[..]))))
    }

    fn keep_upload(&mut self, _: &str, content: Vec<u8>) -> Option<String> {
        let number = self.uploads.len();
        (number < UPLOADS_MAX).then(|| {
            self.uploads.push(content.into());
            alloc::format!("U{number}")
        })
    }
}
