//! The command in flight, on its way to the server.
//!
//! It goes out up to its first literal; each literal, and what follows it, when the server says so.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use super::command::{Command, Piece};
use super::event::Message;

/// One command at a time, under tags of our own but where responses repeat the tag.
#[derive(Debug, Clone, Default)]
pub(super) struct Request {
    outbox: Vec<u8>,
    /// Commands so far.
    count: u64,
    tag: Vec<u8>,
    in_flight: bool,
    /// Pieces not written yet.
    waiting: VecDeque<Out>,
}

#[derive(Debug, Clone)]
enum Out {
    Text(Vec<u8>),
    /// Goes when the server says so.
    Literal(Vec<u8>),
    /// The host's to write, when the server says so.
    Message,
}

impl Request {
    pub(super) fn outbox(&self) -> &[u8] {
        &self.outbox
    }

    pub(super) fn sent(&mut self) {
        self.outbox.clear();
        self.outbox.shrink_to(512);
    }

    pub(super) fn is_in_flight(&self) -> bool {
        self.in_flight
    }

    /// Whether a response with this tag answers it.
    pub(super) fn is_answered_under(&self, tag: &[u8]) -> bool {
        self.in_flight && tag == self.tag
    }

    /// It has been answered; what was not written never will be.
    pub(super) fn answered(&mut self) {
        self.in_flight = false;
        self.waiting.clear();
    }

    pub(super) fn command(&mut self, command: &Command) {
        self.open(command);
        self.waiting.push_back(Out::Text(b"\r\n".to_vec()));
        self.release();
    }

    pub(super) fn append(&mut self, command: &Command, message: Message) {
        self.open(command);
        self.announce(message);
    }

    pub(super) fn append_more(&mut self, text: &[u8], message: Message) {
        self.waiting.push_back(Out::Text(text.to_vec()));
        self.announce(message);
    }

    pub(super) fn bytes(&mut self, bytes: &[u8]) {
        self.outbox.extend_from_slice(bytes);
    }

    /// The server says so; whether it was a literal of ours that it waited for, and not the host.
    ///
    /// # Errors
    /// When it had nothing to wait for.
    pub(super) fn go_on(&mut self) -> Result<bool, &'static str> {
        match self.waiting.pop_front() {
            Some(Out::Literal(bytes)) => {
                self.outbox.extend_from_slice(&bytes);
                self.release();
                Ok(true)
            }
            Some(Out::Text(_)) => Err("it goes on with nothing"),
            Some(Out::Message) | None => Ok(false),
        }
    }

    fn open(&mut self, command: &Command) {
        debug_assert!(!self.in_flight, "one command at a time");
        self.count += 1;
        self.tag = match command.is_repeated() {
            true => command.tag.clone(),
            false => alloc::format!("s{}", self.count).into_bytes(),
        };
        self.in_flight = true;
        let blank: &[u8] = if command.pieces.is_empty() { b"" } else { b" " };
        let start = [self.tag.as_slice(), b" ", command.name.as_bytes(), blank].concat();
        self.waiting.push_back(Out::Text(start));
        for piece in &command.pieces {
            match piece {
                Piece::Text(text) => self.waiting.push_back(Out::Text(text.clone())),
                Piece::Literal { bytes, binary } => {
                    self.waiting.push_back(Out::Text(announcement(bytes.len() as u64, *binary)));
                    self.waiting.push_back(Out::Literal(bytes.clone()));
                }
            }
        }
    }

    fn announce(&mut self, Message { len, binary }: Message) {
        self.waiting.push_back(Out::Text(announcement(len, binary)));
        self.waiting.push_back(Out::Message);
        self.release();
    }

    fn release(&mut self) {
        while let Some(Out::Text(_)) = self.waiting.front() {
            if let Some(Out::Text(text)) = self.waiting.pop_front() {
                self.outbox.extend_from_slice(&text);
            }
        }
    }
}

fn announcement(len: u64, binary: bool) -> Vec<u8> {
    alloc::format!("{}{{{len}}}\r\n", if binary { "~" } else { "" }).into_bytes()
}
