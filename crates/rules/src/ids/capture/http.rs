//! HTTP/1 as peers of rules read it: tolerant, and of use for rules alone. What decides on traffic is `proto::http`, which is strict.
//!
//! A head ends at an empty line, whatever ends its lines; fields that are repeated are joined; a body is chunked if any coding says so.

use std::collections::VecDeque;

use super::super::body::Open;
use super::super::buffer::{App, Buffer, Direction};
use super::super::flow::{Desk, Flow};
use super::super::transaction::Transaction;
use super::coding::Codings;
use super::faults;
use super::head::{Head, is_bare, is_simple, request_line};
use super::parts::{Event, Parts, parameter};
use super::record::{self, Anomaly, Content, File, Layer, Log, Message};
use super::uri;

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
    /// Whether a tunnel was opened: bytes behind it are not read.
    is_tunnel: bool,
}

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
    codings: Codings,
    parts: Option<Parts>,
}

enum Left {
    Length(u64),
    /// Bytes of the chunk; none where the line of its size comes next.
    Chunk(Option<u64>),
    Trailer,
    Close,
}

#[derive(Default)]
struct Exchange {
    transaction: Transaction,
    is_asked: bool,
    method: Vec<u8>,
    number: u64,
    told: record::Exchange,
    /// The files that are open, of each way.
    files: [Option<OpenFile>; 2],
}

/// A file by its name, and its bytes so far.
type OpenFile = (Option<Box<[u8]>>, u64);

impl Exchange {
    /// Takes bytes of a file; the first ones begin it.
    fn grow(&mut self, direction: Direction, bytes: usize) {
        let file = &mut self.files[usize::from(direction == Direction::ToClient)];
        let (_, sum) = file.get_or_insert_default();
        *sum = sum.saturating_add(bytes as u64);
    }

    /// The name of a body: the one that its head gives it, or the path of the request.
    fn body_name(&self, head: &Head) -> Option<Vec<u8>> {
        let given = head.field(b"content-disposition").and_then(|value| parameter(value, b"filename"));
        given.or_else(|| Some(uri::path(request_line(&self.told.request.as_ref()?.line).1)))
    }

    fn end_file(&mut self, direction: Direction, is_whole: bool, log: &mut Log) {
        let is_to_client = direction == Direction::ToClient;
        if let Some((name, bytes)) = self.files[usize::from(is_to_client)].take().filter(|(_, bytes)| *bytes > 0) {
            let of = Message::Http(self.told.clone());
            log.tell(self.number, Content::File(File { name, bytes, is_to_client, is_whole, of }));
        }
    }

    /// Whether its request can only be one of HTTP.
    fn asks_http(&self) -> bool {
        let line = self.told.request.as_ref().map(|head| request_line(&head.line));
        line.is_some_and(|(method, _, protocol)| method == b"GET" || !protocol.is_empty())
    }

    fn end(self, log: &mut Log) {
        if self.told.request.is_some() || self.told.response.is_some() {
            log.tell(self.number, Content::Http(self.told));
        }
    }
}

/// The flow, the desk and the log, which travel together.
pub(super) struct Ways<'w, 'd> {
    pub flow: &'w mut Flow,
    pub desk: &'w mut Desk<'d>,
    pub log: &'w mut Log,
}

impl Ways<'_, '_> {
    /// Tells of an event in a transaction of HTTP.
    fn odd(&mut self, transaction: u64, direction: Direction, event: &'static str) {
        let layer = Layer::Parser(App::Http.name());
        self.log.tell(transaction, Content::Anomaly(Anomaly { event, layer, direction }));
    }
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
        let pending = |side: &mut Side| std::mem::take(&mut side.pending);
        self.is_tunnel.then(|| self.sides.each_mut().map(pending))
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
                    body.codings.decode(&rest, &mut |bytes| decoded.extend_from_slice(bytes));
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
            exchange.end(ways.log);
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
        self.exchanges.push_back(Exchange { is_asked, number: self.count, ..Exchange::default() });
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
        let is_tunnel = self.is_tunnel;
        let side = self.side(direction);
        match &mut side.state {
            State::Over if is_tunnel => false,
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
                    ways.odd(self.exchange(direction).number, direction, faults::chunk_size(direction));
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
        faults::of_request(head).into_iter().for_each(|event| ways.odd(exchange.number, Direction::ToServer, event));
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
        let mut words = head.first.splitn(3, |&byte| byte == b' ');
        let status = words.nth(1).unwrap_or_default();
        let is_asked = !self.exchanges.is_empty();
        let exchange = self.exchange(Direction::ToClient);
        // One that names a length has a body all the same.
        let is_interim = status.len() == 3 && status.starts_with(b"1") && status != b"101" && length(head).is_none();
        if is_interim {
            return;
        }
        exchange.told.response = Some(head.told());
        let unasked = (!is_asked).then_some(faults::UNASKED);
        let events = faults::of_response(head).into_iter().chain(unasked);
        events.for_each(|event| ways.odd(exchange.number, Direction::ToClient, event));
        let (method, transaction) = (exchange.method.clone(), &mut exchange.transaction);
        let rules = ways.desk.rules;
        let mut fill = |buffer, bytes: &[u8]| transaction.fill(rules, Direction::ToClient, buffer, bytes);
        response_head(head, &mut fill);
        ways.flow.inspect(transaction, Direction::ToClient, ways.desk);
        let is_tunnel = status == b"101" || method == b"CONNECT" && status.starts_with(b"2");
        if is_tunnel {
            self.end(Direction::ToClient, ways);
            self.sides.iter_mut().for_each(|side| side.state = State::Over);
            self.is_tunnel = status != b"101";
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
        let codings = Codings::of(head.field(b"content-encoding").unwrap_or_default());
        let kind = head.field(b"content-type").unwrap_or_default();
        let is_form = direction == Direction::ToServer && kind.to_ascii_lowercase().starts_with(b"multipart/");
        let parts = is_form.then(|| {
            let mut parts = Parts::new();
            parts.feed(&[b"Content-Type: ", kind, b"\r\n\r\n"].concat(), &mut |_| {});
            parts
        });
        let exchange = self.exchange(direction);
        if let Some(name) = exchange.body_name(head).filter(|_| !is_form) {
            exchange.transaction.fill(ways.desk.rules, direction, Buffer::FileName, &name);
        }
        self.side(direction).state = State::Body(Box::new(Body { left, is_broken: false, codings, parts }));
    }

    /// Hands decoded bytes of a body to the rules.
    fn body(&mut self, direction: Direction, bytes: &[u8], ways: &mut Ways<'_, '_>) {
        if bytes.is_empty() {
            return;
        }
        let parts = match &mut self.side(direction).state {
            State::Body(body) => body.parts.take(),
            _ => None,
        };
        let exchange = self.exchange(direction);
        if parts.is_none() {
            exchange.grow(direction, bytes.len());
        }
        let transaction = &mut exchange.transaction;
        let own = if direction == Direction::ToServer { Buffer::RequestBody } else { Buffer::ResponseBody };
        let Some(mut parts) = parts else {
            let open = Open { also: Some(own), ..Open::of(Buffer::FileData, 0) };
            return ways.flow.feed_open(transaction, direction, open, bytes, ways.desk);
        };
        ways.flow.feed(transaction, direction, own, bytes, ways.desk);
        parts.feed(bytes, &mut |event| upload(event, exchange, ways));
        if let State::Body(body) = &mut self.side(direction).state {
            body.parts = Some(parts);
        }
    }

    /// Ends a message.
    fn end(&mut self, direction: Direction, ways: &mut Ways<'_, '_>) {
        let state = std::mem::take(&mut self.side(direction).state);
        let (mut parts, mut is_whole) = (None, true);
        if let State::Body(mut body) = state {
            is_whole = body.is_whole();
            let mut rest = Vec::new();
            body.codings.finish(&mut |bytes| rest.extend_from_slice(bytes));
            parts = body.parts.take();
            self.body(direction, &rest, ways);
        }
        let exchange = self.exchange(direction);
        if let Some(mut parts) = parts {
            parts.finish(&mut |event| upload(event, exchange, ways));
        }
        exchange.end_file(direction, is_whole, ways.log);
        ways.flow.end(&mut exchange.transaction, direction, ways.desk);
        exchange.is_asked = true;
        if direction == Direction::ToClient
            && let Some(exchange) = self.exchanges.pop_front()
        {
            exchange.end(ways.log);
        }
    }
}

/// Fills what a request has, its first line and its fields as they are on the wire.
pub(in crate::ids) fn fill_request(line: &[u8], fields: &[u8], fill: &mut dyn FnMut(Buffer, &[u8])) {
    request_head(&Head { first: line.to_vec(), fields: joined(fields), raw: fields.to_vec() }, fill);
}

/// Fills what a response has.
pub(in crate::ids) fn fill_response(line: &[u8], fields: &[u8], fill: &mut dyn FnMut(Buffer, &[u8])) {
    response_head(&Head { first: line.to_vec(), fields: joined(fields), raw: fields.to_vec() }, fill);
}

fn request_head(head: &Head, fill: &mut dyn FnMut(Buffer, &[u8])) {
    let (method, target, protocol) = request_line(&head.first);
    fill(Buffer::Method, method);
    fill(Buffer::UriRaw, target);
    if method != b"CONNECT" {
        fill(Buffer::Uri, &uri::normalised(target));
    }
    fill(Buffer::RequestLine, &head.first);
    fill(Buffer::Protocol, protocol);
    let of_target = memchr::memmem::find(target, b"://").map(|at| &target[at + 3..]);
    let of_target = of_target.or((method == b"CONNECT").then_some(target));
    let of_target = of_target.and_then(|rest| rest.split(|byte| matches!(byte, b'/' | b'?')).next());
    // A login stands in front of the host.
    let of_target = of_target.and_then(|authority| authority.rsplit(|&byte| byte == b'@').next());
    if let Some(host) = of_target.or(head.field(b"host")) {
        let name = host
            .iter()
            .rposition(|&byte| byte == b':')
            .filter(|at| !host[*at..].contains(&b']'))
            .map_or(host, |at| &host[..at]);
        fill(Buffer::Host, &name.to_ascii_lowercase());
        fill(Buffer::HostRaw, host);
    }
    common(head, Direction::ToServer, fill);
}

fn response_head(head: &Head, fill: &mut dyn FnMut(Buffer, &[u8])) {
    let mut words = head.first.splitn(3, |&byte| byte == b' ');
    let (protocol, status) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    fill(Buffer::ResponseLine, &head.first);
    fill(Buffer::Protocol, protocol);
    fill(Buffer::StatCode, status);
    fill(Buffer::StatMsg, words.next().unwrap_or_default());
    common(head, Direction::ToClient, fill);
}

/// Hands the files of a form to the rules: parts with a name of a file.
fn upload(event: Event<'_>, exchange: &mut Exchange, ways: &mut Ways<'_, '_>) {
    let direction = Direction::ToServer;
    match event {
        Event::Begin(name) => {
            exchange.files[0] = name.map(|name| (Some(name.into()), 0));
            if let Some(name) = name {
                exchange.transaction.fill(ways.desk.rules, direction, Buffer::FileName, name);
            }
        }
        Event::Data(bytes) if exchange.files[0].is_some() => {
            exchange.grow(direction, bytes.len());
            ways.flow.feed(&mut exchange.transaction, direction, Buffer::FileData, bytes, ways.desk);
        }
        Event::End if exchange.files[0].is_some() => {
            exchange.end_file(direction, true, ways.log);
            ways.flow.end_buffer(&mut exchange.transaction, direction, Buffer::FileData, ways.desk);
        }
        _ => {}
    }
}

impl Body {
    /// Whether its end is where its head says.
    fn is_whole(&self) -> bool {
        matches!(self.left, Left::Length(0) | Left::Trailer | Left::Close)
    }

    /// Takes bytes of the wire; says how many, and whether the body is over.
    fn take(&mut self, input: &[u8], decoded: &mut Vec<u8>) -> (usize, bool) {
        let mut out = |bytes: &[u8]| decoded.extend_from_slice(bytes);
        match &mut self.left {
            Left::Close => {
                self.codings.decode(input, &mut out);
                (input.len(), false)
            }
            Left::Length(left) => {
                let taken = usize::try_from(*left).unwrap_or(usize::MAX).min(input.len());
                self.codings.decode(&input[..taken], &mut out);
                *left = left.saturating_sub(taken as u64);
                (taken, *left == 0)
            }
            Left::Chunk(Some(left)) => {
                let taken = usize::try_from(*left).unwrap_or(usize::MAX).min(input.len());
                self.codings.decode(&input[..taken], &mut out);
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

/// Fields whose lines may be folded anywhere, even in front of the colon. Fields that say how a body is framed count where they
/// look folded, too: some readers see them.
fn lenient_fields(raw: &[u8]) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut lines: Vec<Vec<u8>> = Vec::new();
    for line in raw.split(|byte| matches!(byte, b'\r' | b'\n')).filter(|line| !line.is_empty()) {
        let has_colon = line.contains(&b':');
        let is_blank_first = line.first().is_some_and(|byte| matches!(byte, b' ' | b'\t'));
        // Any other line without a colon is no part of the field before it.
        let is_value = !has_colon && lines.last().is_some_and(|before| is_open_framing(before));
        let looks_folded = is_blank_first || is_value;
        let is_framing = |name: &&[u8]| {
            let Some((first, rest)) = line.trim_ascii().split_at_checked(name.len()) else { return false };
            let rest = rest.trim_ascii_start();
            first.eq_ignore_ascii_case(name) && (rest.is_empty() || rest.starts_with(b":"))
        };
        let frames = FRAMING.iter().any(is_framing);
        match lines.last_mut().filter(|_| looks_folded && !frames) {
            Some(before) => before.extend_from_slice(line),
            None => lines.push(line.to_vec()),
        }
    }
    let field = |line: Vec<u8>| {
        let colon = line.iter().position(|&byte| byte == b':')?;
        let name: Vec<u8> = line[..colon].iter().copied().filter(|byte| *byte != 0).collect();
        Some((name.trim_ascii().to_vec(), line[colon + 1..].trim_ascii().to_vec()))
    };
    lines.into_iter().filter_map(field).collect()
}

/// Whether a line says how a body is framed and has no value.
fn is_open_framing(line: &[u8]) -> bool {
    let name = line.trim_ascii().strip_suffix(b":").map(<[u8]>::trim_ascii_end);
    name.is_some_and(|name| FRAMING.iter().any(|known| name.eq_ignore_ascii_case(known)))
}

const FRAMING: &[&[u8]] = &[b"transfer-encoding", b"content-encoding", b"content-length"];

/// Fields, those of one name joined.
fn joined(raw: &[u8]) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut all: Vec<(Vec<u8>, Vec<u8>)> = Vec::new();
    for (name, value) in lenient_fields(raw) {
        match all.iter_mut().find(|(known, _)| known.eq_ignore_ascii_case(&name)) {
            Some((_, before)) => {
                before.extend_from_slice(b", ");
                before.extend_from_slice(&value);
            }
            None => all.push((name, value)),
        }
    }
    all
}

fn length(head: &Head) -> Option<u64> {
    let value = head.field(b"content-length")?;
    let value = value.split(|&byte| byte == b',').next()?.trim_ascii();
    std::str::from_utf8(value).ok()?.parse().ok()
}

/// Fills what both sides have.
fn common(head: &Head, direction: Direction, fill: &mut dyn FnMut(Buffer, &[u8])) {
    let cookie: &[u8] = if direction == Direction::ToServer { b"cookie" } else { b"set-cookie" };
    let (mut lines, mut names) = (Vec::new(), b"\r\n".to_vec());
    let each = if direction == Direction::ToServer { Buffer::RequestHeader } else { Buffer::ResponseHeader };
    for (name, value) in &head.fields {
        let line = [name, &b": "[..], value].concat();
        fill(each, &line);
        names.extend([&name[..], b"\r\n"].concat());
        match Buffer::of_field(name).filter(|buffer| !matches!(buffer, Buffer::Host | Buffer::Cookie)) {
            Some(buffer) => fill(buffer, value),
            None if name.eq_ignore_ascii_case(cookie) => {
                fill(Buffer::Cookie, value);
                continue;
            }
            None => {}
        }
        lines.extend([&line[..], b"\r\n"].concat());
    }
    names.extend(b"\r\n");
    if !head.fields.is_empty() {
        fill(Buffer::Header, &lines);
        fill(Buffer::HeaderNames, &names);
    }
    fill(Buffer::HeaderRaw, &head.raw);
    fill(Buffer::Start, &[&head.first[..], b"\r\n", &head.raw].concat());
}
