//! A client that is not one of our halves: it says what it has prepared, a request when the answer before has come.

use std::collections::VecDeque;

use super::Host;

/// How long it waits for the server.
pub(super) const PATIENCE_MS: u64 = 600_000;

pub(super) struct Script {
    requests: VecDeque<Vec<u8>>,
    /// How long the answer is that stands at the beginning, if all of it is there.
    frame: fn(&[u8]) -> Option<usize>,
    said: Vec<u8>,
    heard: Vec<u8>,
    pub answers: Vec<Vec<u8>>,
    heard_at: u64,
    over: bool,
}

impl Script {
    /// A client that begins with the first of its requests.
    pub fn new(requests: Vec<Vec<u8>>, frame: fn(&[u8]) -> Option<usize>) -> Script {
        let mut requests = VecDeque::from(requests);
        let said = requests.pop_front().unwrap_or_default();
        Script { requests, frame, said, heard: Vec::new(), answers: Vec::new(), heard_at: 0, over: false }
    }
}

impl Host for Script {
    fn hear(&mut self, now: u64, bytes: &[u8]) {
        self.heard_at = now;
        self.heard.extend_from_slice(bytes);
        while let Some(length) = (self.frame)(&self.heard) {
            self.answers.push(self.heard.drain(..length).collect());
            match self.requests.pop_front() {
                Some(request) => self.said.extend(request),
                None => self.over = true,
            }
        }
    }

    fn say(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.said)
    }

    fn deadline(&self) -> u64 {
        self.heard_at + PATIENCE_MS
    }

    fn timeout(&mut self, _: u64) {
        self.over = true;
    }

    fn lose(&mut self) {
        self.over = true;
    }

    fn is_over(&self) -> bool {
        self.over
    }
}
