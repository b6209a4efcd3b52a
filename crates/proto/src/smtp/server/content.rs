//! Content by `BDAT`: chunks that are taken, and those that are swallowed.

use stream::Window;

use super::{Server, ServerEvent, State};
use crate::smtp::Reply;

impl Server {
    pub(super) fn chunk(&mut self, input: &[u8], content: &mut Window) -> (usize, ServerEvent) {
        let State::Chunk { left, last } = &mut self.state else { unreachable!("called in a chunk") };
        let reader = self.transaction.chunks.as_mut().expect("set when the first chunk began");
        let offered = usize::try_from(*left).map_or(input.len(), |left| left.min(input.len()));
        let read = reader.read(&input[..offered], content);
        *left -= read.taken as u64;
        if *left > 0 || !content.is_empty() {
            let event = if content.is_empty() { ServerEvent::Idle } else { ServerEvent::Content };
            return (read.taken, event);
        }
        if !*last {
            self.state = State::Command;
            Reply::new(250, (2, 0, 0), "Chunk received").write(&mut self.outbox);
            // Idle without a byte taken would say that there is nothing left to do.
            return if read.taken > 0 { (read.taken, ServerEvent::Idle) } else { self.command(input) };
        }
        reader.finish(content);
        if !content.is_empty() {
            return (read.taken, ServerEvent::Content);
        }
        let bare_line_ends = reader.has_bare_line_ends();
        (read.taken, self.end(bare_line_ends))
    }

    pub(super) fn swallow(&mut self, input: &[u8]) -> (usize, ServerEvent) {
        let State::Swallow { left, .. } = &mut self.state else { unreachable!("called when swallowing") };
        let count = usize::try_from(*left).map_or(input.len(), |left| left.min(input.len()));
        *left -= count as u64;
        self.swallow_nothing();
        (count, ServerEvent::Idle)
    }

    /// Answers when the unwanted chunk is gone.
    pub(super) fn swallow_nothing(&mut self) {
        let State::Swallow { left: 0, reply } = &mut self.state else {
            return;
        };
        let reply = reply.take();
        self.state = State::Command;
        if let Some(reply) = reply {
            reply.write(&mut self.outbox);
        }
        self.end_if_too_much();
    }
}
