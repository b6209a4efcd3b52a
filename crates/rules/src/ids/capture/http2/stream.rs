//! A stream of HTTP/2: a request with its response, whose fields become heads as HTTP/1 has them.

use super::super::super::buffer::{Buffer, Direction};
use super::super::exchange::{Content, Exchange, Ways};
use super::super::head::{Head, request_head, response_head};
use super::hpack::Field;
use super::side;

/// A stream.
#[derive(Default)]
pub(super) struct Stream {
    exchange: Exchange,
    halves: [Half; 2],
}

/// What comes next on one side.
#[derive(Default)]
enum Half {
    #[default]
    Head,
    Body(Box<Content>),
    Over,
}

impl Stream {
    /// One that begins, with its number among all.
    pub fn new(number: u64) -> Stream {
        Stream { exchange: Exchange::new(number, false), halves: Default::default() }
    }

    /// One whose request has come.
    pub fn asked(exchange: Exchange) -> Stream {
        Stream { exchange, halves: [Half::Over, Half::Head] }
    }

    /// Bytes of its content that it holds.
    pub fn held_bytes(&self) -> usize {
        self.exchange.transaction.held_bytes()
    }

    /// Whether both sides have ended.
    pub fn is_over(&self) -> bool {
        self.halves.iter().all(|half| matches!(half, Half::Over))
    }

    /// Takes bytes of a content as they are on the wire.
    pub fn content(&mut self, direction: Direction, bytes: &[u8], ways: &mut Ways<'_, '_>) {
        let Half::Body(content) = &mut self.halves[side(direction)] else { return };
        if direction == Direction::ToClient {
            self.exchange.told.bytes = self.exchange.told.bytes.saturating_add(bytes.len() as u64);
        }
        let mut decoded = Vec::new();
        content.codings.decode(bytes, &mut |bytes| decoded.extend_from_slice(bytes));
        self.exchange.body(direction, content, &decoded, ways);
    }

    /// Takes a list of fields; the first one of each side begins a message, a later one is its trailer.
    pub fn head(&mut self, direction: Direction, fields: &[Field], ways: &mut Ways<'_, '_>) {
        match self.halves[side(direction)] {
            Half::Head => {}
            Half::Body(_) => return self.trailer(direction, fields, ways),
            Half::Over => return,
        }
        let head = message(direction, fields);
        // An interim response comes before the one that counts.
        let is_interim = direction == Direction::ToClient
            && head.first.strip_prefix(b"HTTP/2 1").is_some_and(|rest| rest.len() == 2);
        if is_interim {
            return;
        }
        let (told, exchange) = (head.told_without_pseudo(), &mut self.exchange);
        let (transaction, rules) = (&mut exchange.transaction, ways.desk.rules);
        let mut fill = |buffer, bytes: &[u8]| transaction.fill(rules, direction, buffer, bytes);
        if direction == Direction::ToServer {
            exchange.told.request = Some(told);
            request_head(&head, &mut fill);
        } else {
            exchange.told.response = Some(told);
            response_head(&head, &mut fill);
        }
        fields.iter().for_each(|(name, _)| transaction.fill(rules, direction, Buffer::Http2HeaderName, name));
        ways.flow.inspect(transaction, direction, ways.desk);
        self.halves[side(direction)] = Half::Body(Box::new(exchange.begin(direction, &head, ways)));
    }

    /// Takes the fields behind a content: they are among the others, as in Suricata.
    fn trailer(&mut self, direction: Direction, fields: &[Field], ways: &mut Ways<'_, '_>) {
        let each = if direction == Direction::ToServer { Buffer::RequestHeader } else { Buffer::ResponseHeader };
        let (transaction, rules, mut lines) = (&mut self.exchange.transaction, ways.desk.rules, Vec::new());
        for (name, value) in fields {
            let line = [name, &b": "[..], value].concat();
            transaction.fill(rules, direction, each, &line);
            lines.extend([&line[..], b"\r\n"].concat());
        }
        transaction.fill(rules, direction, Buffer::Header, &lines);
    }

    /// Ends one side.
    pub fn end(&mut self, direction: Direction, is_whole: bool, ways: &mut Ways<'_, '_>) {
        let content = match std::mem::replace(&mut self.halves[side(direction)], Half::Over) {
            Half::Over => return,
            Half::Head => None,
            Half::Body(content) => Some(*content),
        };
        self.exchange.end(direction, content, is_whole, ways);
    }

    /// Ends what is left of it, and tells of it.
    pub fn finish(mut self, ways: &mut Ways<'_, '_>) {
        for direction in [Direction::ToServer, Direction::ToClient] {
            self.end(direction, false, ways);
        }
        self.exchange.record(ways.log);
    }
}

/// Fields as the head of a message of HTTP/1, with the pseudo-header fields among the others.
fn message(direction: Direction, fields: &[Field]) -> Head {
    let (mut raw, mut joined) = (Vec::new(), Vec::<(Vec<u8>, Vec<u8>)>::new());
    for (name, value) in fields {
        raw.extend([name, &b": "[..], value, b"\r\n"].concat());
        let between = if **name == *b"cookie" { b"; " } else { b", " };
        match joined.iter_mut().find(|(known, _)| known.eq_ignore_ascii_case(name)) {
            Some((_, before)) => before.extend([&between[..], value].concat()),
            None => joined.push((name.to_vec(), value.to_vec())),
        }
    }
    let field = |wanted: &[u8]| {
        let found = joined.iter().find(|(name, _)| name == wanted);
        found.map_or(&b""[..], |(_, value)| value)
    };
    let first = match direction {
        Direction::ToClient => [b"HTTP/2 ", field(b":status")].concat(),
        Direction::ToServer => {
            let target = if field(b":path").is_empty() { field(b":authority") } else { field(b":path") };
            [field(b":method"), b" ", target, b" HTTP/2"].concat()
        }
    };
    Head { first, raw, fields: joined }
}
