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
    let account = Account { number: 1, name: "ann".into(), addresses: ["ann@mx.test".into()].into() };
    let calls = |value: &Value| value["methodCalls"].as_array().map(Vec::len);
    let asked = crate::json::read(data).as_ref().and_then(calls);
    match answer(&mut Empty { account }, data) {
        Ok(response) => {
            let response = crate::json::read(response.as_bytes());
            let replies = response.as_ref().and_then(|value| value["methodResponses"].as_array().map(Vec::len));
            assert!(replies >= asked && replies.is_some(), "{response:?}");
        }
        Err(Problem::NotJson | Problem::NotRequest | Problem::UnknownCapability | Problem::Limit(_)) => {}
    }
}

struct Empty {
    account: Account,
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

    fn upload(&mut self, _: &str) -> Option<(String, Arc<[u8]>)> {
        Some(("text/plain".into(), Arc::from(&b"Subject: a\r\n\r\nb\r\n"[..])))
    }

    fn keep_upload(&mut self, _: &str, _: Vec<u8>) -> Option<String> {
        None
    }
}
