//! HTTP/1 as peers of rules read it: tolerant, and of use for rules alone. What decides on traffic is `proto::http`, which is strict.
//!
//! A head ends at an empty line, whatever ends its lines; fields that are repeated are joined; a body is chunked if any coding says so.

use std::collections::VecDeque;

use super::super::buffer::Direction;
use super::exchange::{Content, Exchange, Ways};
use super::faults;
use super::head::{
    Head, interim_head, is_bare, is_simple, joined, length, request_head, request_line, response_head, status_line,
    trailer,
};

/// Bytes of a head.
const HEAD_BYTES_MAX: usize = 128 << 10;
/// Bytes of the line of a chunk's size, and of a trailer's.
const LINE_BYTES_MAX: usize = 64 << 10;
/// Requests without a response.
const EXCHANGES_MAX: usize = 256;

/// Both sides of a connection.
#[derive(Default)]
pub(super) struct Http {
    sides: [Side; 2],
    exchanges: VecDeque<Exchange>,
    /// Exchanges that have begun.
    count: u64,
    /// The end of HTTP/1 in the middle of the connection.
    turn: Turn,
}

/// The protocol that follows, whose bytes wait.
#[derive(Default)]
enum Turn {
    #[default]
    None,
    /// Any, behind `CONNECT`.
    Tunnel,
    /// HTTP/2, whose first stream is this exchange.
    Upgrade(Box<Exchange>),
}

/// The exchange that goes on as the first stream of HTTP/2, and the bytes of each side that follow.
pub(super) type Upgraded = (Box<Exchange>, [Vec<u8>; 2]);

#[derive(Default)]
struct Side {
    pending: Vec<u8>,
    /// The place of the line of a head that is not yet whole.
    line: usize,
    state: State,
}

#[derive(Default)]
enum State {
    #[default]
    Head,
    Body(Box<Body>),
    /// Another protocol, or nothing that can be read.
    Over,
}

struct Body {
    left: Left,
    /// A chunk has no size that can be read.
    is_broken: bool,
    content: Content,
    /// The fields in front of chunks, and the lines behind the last one.
    fields: Vec<u8>,
    trailer: Vec<u8>,
}

enum Left {
    Length(u64),
    /// Bytes of the chunk; none where the line of its size comes next.
    Chunk(Option<u64>),
    Trailer,
    Close,
}

impl Http {
    /// Takes bytes of one side.
    pub fn feed(&mut self, direction: Direction, bytes: &[u8], ways: &mut Ways<'_, '_>) {
        if direction == Direction::ToClient {
            self.end_simple_request(ways);
        }
        self.side(direction).pending.extend_from_slice(bytes);
        while self.step(direction, ways) {}
    }

    /// Once `CONNECT` was granted, the bytes of each side behind it.
    pub fn tunnelled(&mut self) -> Option<[Vec<u8>; 2]> {
        matches!(self.turn, Turn::Tunnel).then(|| self.take_pending())
    }

    /// Once the server has changed to HTTP/2, the exchange that it answers in it.
    pub fn upgraded(&mut self) -> Option<Upgraded> {
        match std::mem::take(&mut self.turn) {
            Turn::Upgrade(exchange) => Some((exchange, self.take_pending())),
            turn => {
                self.turn = turn;
                None
            }
        }
    }

    fn take_pending(&mut self) -> [Vec<u8>; 2] {
        self.sides.each_mut().map(|side| std::mem::take(&mut side.pending))
    }

    /// Ends a request that has no fields, as of HTTP/0.9, when it is answered.
    fn end_simple_request(&mut self, ways: &mut Ways<'_, '_>) {
        let side = &mut self.sides[0];
        let is_simple = matches!(side.state, State::Head) && self.exchanges.is_empty() && is_simple(&side.pending);
        if is_simple {
            side.pending.extend_from_slice(b"\r\n");
            while self.step(Direction::ToServer, ways) {}
        }
    }

    /// Bytes that both sides hold.
    pub fn held_bytes(&self) -> usize {
        let pending: usize = self.sides.iter().map(|side| side.pending.len()).sum();
        pending + self.exchanges.iter().map(|exchange| exchange.transaction.held_bytes()).sum::<usize>()
    }

    /// Ends one side.
    pub fn close(&mut self, direction: Direction, ways: &mut Ways<'_, '_>) {
        if direction == Direction::ToClient && self.begin_bare(true, ways) {
            while self.step(direction, ways) {}
        }
        let side = self.side(direction);
        match side.state {
            State::Head if !side.pending.is_empty() => {
                side.pending.extend_from_slice(b"\r\n\r\n");
                while self.step(direction, ways) {}
                self.end(direction, ways);
            }
            State::Body(_) => {
                // What waits for a line of a chunk is the body as it is.
                let rest = std::mem::take(&mut side.pending);
                let mut decoded = Vec::new();
                if let State::Body(body) = &mut side.state {
                    body.content.codings.decode(&rest, &mut |bytes| decoded.extend_from_slice(bytes));
                }
                self.body(direction, &decoded, ways);
                self.end(direction, ways);
            }
            _ => {}
        }
    }

    /// Ends what is left of both sides.
    pub fn finish(&mut self, ways: &mut Ways<'_, '_>) {
        for direction in [Direction::ToServer, Direction::ToClient] {
            self.close(direction, ways);
        }
        for mut exchange in self.exchanges.drain(..) {
            for direction in [Direction::ToServer, Direction::ToClient] {
                ways.flow.end(&mut exchange.transaction, direction, ways.desk);
            }
            exchange.record(ways.log);
        }
    }

    fn side(&mut self, direction: Direction) -> &mut Side {
        &mut self.sides[usize::from(direction == Direction::ToClient)]
    }

    /// The exchange that a side is at.
    fn exchange(&mut self, direction: Direction) -> &mut Exchange {
        if direction == Direction::ToServer {
            let is_new = self.exchanges.back().is_none_or(|exchange| exchange.is_asked);
            if is_new {
                self.exchanges.truncate(EXCHANGES_MAX);
                self.open(false);
            }
            let last = self.exchanges.len() - 1;
            return &mut self.exchanges[last];
        }
        if self.exchanges.is_empty() {
            self.open(true);
        }
        &mut self.exchanges[0]
    }

    fn open(&mut self, is_asked: bool) {
        self.exchanges.push_back(Exchange::new(self.count, is_asked));
        self.count = self.count.wrapping_add(1);
    }

    /// Begins the body of a response without a head, as of HTTP/0.9, which may answer any first request. Behind it the beginning of a
    /// head may be missing instead.
    fn begin_bare(&mut self, is_ended: bool, ways: &mut Ways<'_, '_>) -> bool {
        let side = &mut self.sides[1];
        if !matches!(side.state, State::Head) || !is_bare(&side.pending, is_ended) {
            return false;
        }
        match self.exchanges.front() {
            Some(exchange) if exchange.number == 0 && exchange.asks_http() => {
                let head = Head { first: Vec::new(), raw: Vec::new(), fields: Vec::new() };
                self.begin(Direction::ToClient, &head, Some(Left::Close), ways);
                true
            }
            // Between two responses a line is no part of the next one.
            None if self.count > 0 => {
                let mut end = 0;
                while is_bare(&side.pending[end..], is_ended)
                    && let Some(at) = memchr::memchr(b'\n', &side.pending[end..])
                {
                    end += at + 1;
                }
                side.pending.drain(..end);
                end > 0
            }
            _ => false,
        }
    }

    fn step(&mut self, direction: Direction, ways: &mut Ways<'_, '_>) -> bool {
        if direction == Direction::ToClient && self.begin_bare(false, ways) {
            return true;
        }
        let is_turn = !matches!(self.turn, Turn::None);
        let side = self.side(direction);
        match &mut side.state {
            State::Over if is_turn => false,
            State::Over => {
                side.pending.clear();
                false
            }
            State::Head => {
                let Some(head) = take_head(&mut side.pending, &mut side.line) else {
                    if side.pending.len() > HEAD_BYTES_MAX {
                        side.state = State::Over;
                    }
                    return false;
                };
                match direction {
                    Direction::ToServer => self.request(&head, ways),
                    Direction::ToClient => self.response(&head, ways),
                }
                true
            }
            State::Body(body) => {
                let mut decoded = Vec::new();
                let (taken, is_end) = body.take(&side.pending, &mut decoded);
                let is_broken = std::mem::take(&mut body.is_broken);
                side.pending.drain(..taken);
                if is_broken {
                    self.exchange(direction).odd(direction, faults::chunk_size(direction), ways);
                }
                if direction == Direction::ToClient {
                    let bytes = &mut self.exchange(direction).told.bytes;
                    *bytes = bytes.saturating_add(taken as u64);
                }
                self.body(direction, &decoded, ways);
                if is_end {
                    self.end(direction, ways);
                }
                is_end || taken > 0
            }
        }
    }

    fn request(&mut self, head: &Head, ways: &mut Ways<'_, '_>) {
        let (method, ..) = request_line(&head.first);
        let exchange = self.exchange(Direction::ToServer);
        exchange.method = method.to_vec();
        exchange.told.request = Some(head.told());
        faults::of_request(head).into_iter().for_each(|event| exchange.odd(Direction::ToServer, event, ways));
        let transaction = &mut exchange.transaction;
        let rules = ways.desk.rules;
        let mut fill = |buffer, bytes: &[u8]| transaction.fill(rules, Direction::ToServer, buffer, bytes);
        request_head(head, &mut fill);
        let left = match (head.field(b"transfer-encoding"), length(head)) {
            (Some(coding), _) if coding.to_ascii_lowercase().ends_with(b"chunked") => Some(Left::Chunk(None)),
            (_, Some(length)) if length > 0 => Some(Left::Length(length)),
            _ => None,
        };
        ways.flow.inspect(transaction, Direction::ToServer, ways.desk);
        self.begin(Direction::ToServer, head, left, ways);
    }

    fn response(&mut self, head: &Head, ways: &mut Ways<'_, '_>) {
        let (_, status, _) = status_line(&head.first);
        let is_asked = !self.exchanges.is_empty();
        let exchange = self.exchange(Direction::ToClient);
        // One that names a length has a body all the same.
        let is_interim = status.len() == 3 && status.starts_with(b"1") && status != b"101" && length(head).is_none();
        if is_interim {
            let (rules, transaction) = (ways.desk.rules, &mut exchange.transaction);
            let mut fill = |buffer, bytes: &[u8]| transaction.fill(rules, Direction::ToClient, buffer, bytes);
            interim_head(head, &mut fill);
            ways.flow.inspect(transaction, Direction::ToClient, ways.desk);
            return;
        }
        exchange.told.response = Some(head.told());
        let unasked = (!is_asked).then_some(faults::UNASKED);
        let events = faults::of_response(head).into_iter().chain(unasked);
        events.for_each(|event| exchange.odd(Direction::ToClient, event, ways));
        let (method, transaction) = (exchange.method.clone(), &mut exchange.transaction);
        let rules = ways.desk.rules;
        let mut fill = |buffer, bytes: &[u8]| transaction.fill(rules, Direction::ToClient, buffer, bytes);
        response_head(head, &mut fill);
        ways.flow.inspect(transaction, Direction::ToClient, ways.desk);
        let is_upgrade =
            status == b"101" && head.field(b"upgrade").is_some_and(|name| name.eq_ignore_ascii_case(b"h2c"));
        if is_upgrade && let Some(exchange) = self.exchanges.pop_front() {
            self.sides.iter_mut().for_each(|side| side.state = State::Over);
            self.turn = Turn::Upgrade(Box::new(exchange));
            return;
        }
        let is_tunnel = status == b"101" || method == b"CONNECT" && status.starts_with(b"2");
        if is_tunnel {
            self.end(Direction::ToClient, ways);
            self.sides.iter_mut().for_each(|side| side.state = State::Over);
            self.turn = if status == b"101" { Turn::None } else { Turn::Tunnel };
            return;
        }
        let is_chunked = |coding: &[u8]| {
            let coding: Vec<u8> = coding.iter().filter(|byte| **byte != 0).map(u8::to_ascii_lowercase).collect();
            memchr::memmem::find(&coding, b"chunked").is_some()
        };
        let left = match length(head) {
            _ if method == b"HEAD" || status == b"304" => None,
            _ if head.field(b"transfer-encoding").is_some_and(is_chunked) => Some(Left::Chunk(None)),
            Some(0) => None,
            None if status == b"204" => None,
            Some(length) => Some(Left::Length(length)),
            None => Some(Left::Close),
        };
        self.begin(Direction::ToClient, head, left, ways);
    }

    fn begin(&mut self, direction: Direction, head: &Head, left: Option<Left>, ways: &mut Ways<'_, '_>) {
        let Some(left) = left else { return self.end(direction, ways) };
        let content = self.exchange(direction).begin(direction, head, ways);
        let fields = if matches!(left, Left::Chunk(_)) { head.raw.clone() } else { Vec::new() };
        let body = Body { left, is_broken: false, content, fields, trailer: Vec::new() };
        self.side(direction).state = State::Body(Box::new(body));
    }

    /// Hands decoded bytes of a body to the rules.
    fn body(&mut self, direction: Direction, bytes: &[u8], ways: &mut Ways<'_, '_>) {
        let mut state = std::mem::take(&mut self.side(direction).state);
        if let State::Body(body) = &mut state {
            self.exchange(direction).body(direction, &mut body.content, bytes, ways);
        }
        self.side(direction).state = state;
    }

    /// Ends a message.
    fn end(&mut self, direction: Direction, ways: &mut Ways<'_, '_>) {
        let (content, is_whole) = match std::mem::take(&mut self.side(direction).state) {
            State::Body(body) => {
                if !body.trailer.trim_ascii().is_empty() {
                    let (transaction, rules) = (&mut self.exchange(direction).transaction, ways.desk.rules);
                    trailer(&body.fields, &body.trailer, direction, &mut |buffer, bytes| {
                        transaction.fill(rules, direction, buffer, bytes);
                    });
                }
                (Some(body.content), matches!(body.left, Left::Length(0) | Left::Trailer | Left::Close))
            }
            _ => (None, true),
        };
        let exchange = self.exchange(direction);
        exchange.end(direction, content, is_whole, ways);
        exchange.is_asked = true;
        if direction == Direction::ToClient
            && let Some(exchange) = self.exchanges.pop_front()
        {
            exchange.record(ways.log);
        }
    }
}

impl Body {
    /// Takes bytes of the wire; says how many, and whether the body is over.
    fn take(&mut self, input: &[u8], decoded: &mut Vec<u8>) -> (usize, bool) {
        let mut out = |bytes: &[u8]| decoded.extend_from_slice(bytes);
        match &mut self.left {
            Left::Close => {
                self.content.codings.decode(input, &mut out);
                (input.len(), false)
            }
            Left::Length(left) => {
                let taken = usize::try_from(*left).unwrap_or(usize::MAX).min(input.len());
                self.content.codings.decode(&input[..taken], &mut out);
                *left = left.saturating_sub(taken as u64);
                (taken, *left == 0)
            }
            Left::Chunk(Some(left)) => {
                let taken = usize::try_from(*left).unwrap_or(usize::MAX).min(input.len());
                self.content.codings.decode(&input[..taken], &mut out);
                *left = left.saturating_sub(taken as u64);
                if *left == 0 {
                    self.left = Left::Chunk(None);
                }
                (taken, false)
            }
            Left::Chunk(None) => {
                let end = match memchr::memchr(b'\n', input) {
                    Some(end) => end,
                    None if input.len() < LINE_BYTES_MAX => return (0, false),
                    None => return self.unframe(input, decoded),
                };
                let line = input[..end].trim_ascii();
                let line = line.strip_prefix(b"\x0b").unwrap_or(line);
                if !line.is_empty() {
                    self.left = match chunk_size(line) {
                        Some(0) => Left::Trailer,
                        Some(size) => Left::Chunk(Some(size)),
                        None => return self.unframe(input, decoded),
                    };
                }
                (end + 1, false)
            }
            Left::Trailer => {
                let Some(end) = memchr::memchr(b'\n', input) else {
                    let is_endless = input.len() >= LINE_BYTES_MAX;
                    return (if is_endless { input.len() } else { 0 }, is_endless);
                };
                if self.trailer.len() < LINE_BYTES_MAX {
                    self.trailer.extend_from_slice(&input[..=end]);
                }
                (end + 1, input[..end].trim_ascii().is_empty())
            }
        }
    }

    /// Takes what comes for the body: a chunk has no size.
    fn unframe(&mut self, input: &[u8], decoded: &mut Vec<u8>) -> (usize, bool) {
        (self.left, self.is_broken) = (Left::Close, true);
        self.take(input, decoded)
    }
}

fn chunk_size(line: &[u8]) -> Option<u64> {
    let end = line.iter().position(|byte| !byte.is_ascii_hexdigit()).unwrap_or(line.len());
    u64::from_str_radix(std::str::from_utf8(&line[..end]).ok()?, 16).ok()
}

/// Takes a whole head from the bytes that wait: up to a line that is blank. Lines that were looked at before are passed over.
fn take_head(pending: &mut Vec<u8>, at: &mut usize) -> Option<Head> {
    let start = pending.iter().position(|byte| !matches!(byte, b'\r' | b'\n')).unwrap_or(pending.len());
    pending.drain(..start);
    loop {
        let end = *at + memchr::memchr(b'\n', pending.get(*at..)?)?;
        let line = &pending[*at..end];
        // Blanks in front of a carriage return are a folded line.
        if *at > 0 && (matches!(line, b"" | b"\r") || line.iter().all(|byte| matches!(byte, b' ' | b'\t'))) {
            *at = 0;
            let all: Vec<u8> = pending.drain(..=end).collect();
            // A lone carriage return ends lines, too.
            let first = all.iter().position(|byte| matches!(byte, b'\r' | b'\n')).unwrap_or(all.len());
            let rest = all.get(first..).unwrap_or_default();
            let raw = rest.strip_prefix(b"\r\n").unwrap_or(rest.get(1..).unwrap_or_default());
            return Some(Head { first: all[..first].to_vec(), fields: joined(raw), raw: raw.to_vec() });
        }
        *at = end + 1;
    }
}
