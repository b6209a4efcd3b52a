//! HTTP/2 in the clear (RFC 9113), after a preface or an upgrade, for rules alone: frames, field lists, and contents of streams.
//!
//! Rules see a stream as a message of HTTP/1: `:method` and `:path` make a request line, `:authority` is the host. The
//! pseudo-header fields are among the fields, as in Suricata. Flow control, priorities and windows are not looked at. A block of
//! fields has at most 128 KiB, and a connection 256 streams that hold 32 MiB: beyond that the oldest ends.

mod hpack;
mod stream;

use std::collections::BTreeMap;

use super::super::buffer::Direction;
use super::exchange::{Exchange, Ways};
use hpack::Decoder;
use stream::Stream;

/// The bytes with which a client begins.
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// The beginning of these bytes that tells the protocol.
pub(super) const MAGIC: &[u8] = b"PRI * HTTP/2.0";
const HEAD_BYTES: usize = 9;
/// Bytes of a block of fields.
const BLOCK_BYTES_MAX: usize = 128 << 10;
const STREAMS_MAX: usize = 256;
/// Bytes of contents that all streams hold.
const CONTENT_BYTES_MAX: usize = 32 << 20;

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
const SETTINGS: u8 = 4;
const PUSH_PROMISE: u8 = 5;
const CONTINUATION: u8 = 9;

const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;
const PADDED: u8 = 8;
const PRIORITY: u8 = 32;

/// Both sides of a connection.
#[derive(Default)]
pub(super) struct Http2 {
    sides: [Side; 2],
    streams: BTreeMap<u32, Stream>,
    /// Streams that have begun.
    count: u64,
}

#[derive(Default)]
struct Side {
    pending: Vec<u8>,
    state: State,
    decoder: Decoder,
    block: Block,
}

#[derive(Default)]
enum State {
    #[default]
    Frame,
    /// A frame of data: bytes of the content, and of its padding.
    Data { stream: u32, left: usize, padding: usize, is_end: bool },
    /// A frame that is passed over.
    Skip(usize),
    /// Nothing that can be read.
    Over,
}

/// A block of fields of which parts have come.
#[derive(Default)]
struct Block {
    stream: u32,
    is_end: bool,
    is_promise: bool,
    bytes: Vec<u8>,
}

/// Whether bytes of a server are a frame of settings, which begins HTTP/2.
pub(super) fn is_greeting(bytes: &[u8]) -> bool {
    let Some((head, _)) = bytes.split_at_checked(HEAD_BYTES) else { return false };
    head[..2] == [0, 0] && head[2] % 6 == 0 && head[2] <= 60 && head[3..] == [SETTINGS, 0, 0, 0, 0, 0]
}

fn side(direction: Direction) -> usize {
    usize::from(direction == Direction::ToClient)
}

impl Http2 {
    /// One whose first stream has its request already, which rules about HTTP/2 are tried on now.
    pub fn upgraded(mut exchange: Exchange, ways: &mut Ways<'_, '_>) -> Http2 {
        ways.flow.inspect(&mut exchange.transaction, Direction::ToServer, ways.desk);
        Http2 { streams: BTreeMap::from([(1, Stream::asked(exchange))]), count: 1, ..Http2::default() }
    }

    /// Takes bytes of one side.
    pub fn feed(&mut self, direction: Direction, bytes: &[u8], ways: &mut Ways<'_, '_>) {
        let mut pending = std::mem::take(&mut self.sides[side(direction)].pending);
        pending.extend_from_slice(bytes);
        let mut rest = &pending[..];
        while let Some(taken) = self.step(direction, rest, ways) {
            rest = &rest[taken..];
        }
        let taken = pending.len() - rest.len();
        pending.drain(..taken);
        self.sides[side(direction)].pending = pending;
    }

    /// Bytes that both sides hold.
    pub fn held_bytes(&self) -> usize {
        let of_side = |side: &Side| side.pending.len() + side.block.bytes.len() + side.decoder.held_bytes();
        let of_streams = self.streams.values().map(|stream| stream.held_bytes());
        self.sides.iter().map(of_side).chain(of_streams).sum()
    }

    /// Ends what is left of both sides.
    pub fn finish(&mut self, ways: &mut Ways<'_, '_>) {
        while let Some((_, stream)) = self.streams.pop_first() {
            stream.finish(ways);
        }
    }

    /// Does one step; says how many bytes it has taken, and none where it needs more.
    fn step(&mut self, direction: Direction, input: &[u8], ways: &mut Ways<'_, '_>) -> Option<usize> {
        let own = &mut self.sides[side(direction)];
        match &mut own.state {
            State::Over => (!input.is_empty()).then_some(input.len()),
            State::Skip(left) => {
                let taken = input.len().min(*left);
                *left -= taken;
                if *left == 0 {
                    own.state = State::Frame;
                    return Some(taken);
                }
                (taken > 0).then_some(taken)
            }
            State::Data { stream, left, padding, is_end } => {
                let (taken, number) = (input.len().min(*left), *stream);
                *left -= taken;
                if *left > 0 && taken == 0 {
                    return None;
                }
                let ended = (*left == 0).then_some((*padding, *is_end));
                if let Some((padding, _)) = ended {
                    own.state = State::Skip(padding);
                }
                self.content(direction, number, &input[..taken], ways);
                if ended.is_some_and(|(_, is_end)| is_end) {
                    self.end(direction, number, ways);
                }
                Some(taken)
            }
            State::Frame => self.frame(direction, input, ways),
        }
    }

    fn frame(&mut self, direction: Direction, input: &[u8], ways: &mut Ways<'_, '_>) -> Option<usize> {
        if direction == Direction::ToServer && PREFACE.starts_with(&input[..input.len().min(PREFACE.len())]) {
            return (input.len() >= PREFACE.len()).then_some(PREFACE.len());
        }
        let head = input.get(..HEAD_BYTES)?;
        let length = usize::from(head[0]) << 16 | usize::from(head[1]) << 8 | usize::from(head[2]);
        let (kind, flags) = (head[3], head[4]);
        let stream = u32::from_be_bytes([head[5] & 0x7f, head[6], head[7], head[8]]);
        let own = &mut self.sides[side(direction)];
        match kind {
            DATA => {
                let is_padded = flags & PADDED != 0 && length > 0;
                let padding = if is_padded { usize::from(*input.get(HEAD_BYTES)?) } else { 0 };
                let left = length - usize::from(is_padded);
                let padding = padding.min(left);
                own.state = State::Data { stream, left: left - padding, padding, is_end: flags & END_STREAM != 0 };
                Some(HEAD_BYTES + usize::from(is_padded))
            }
            HEADERS | PUSH_PROMISE | CONTINUATION if length + own.block.bytes.len() <= BLOCK_BYTES_MAX => {
                let payload = input.get(HEAD_BYTES..HEAD_BYTES + length)?;
                if own.begin_block(kind, flags, stream, payload).is_none() {
                    own.state = State::Over;
                } else if flags & END_HEADERS != 0 {
                    self.block(direction, ways);
                }
                Some(HEAD_BYTES + length)
            }
            // Without its fields no later block can be read.
            HEADERS | PUSH_PROMISE | CONTINUATION => {
                own.state = State::Over;
                Some(HEAD_BYTES)
            }
            _ => {
                if kind == RST_STREAM
                    && let Some(stream) = self.streams.remove(&stream)
                {
                    stream.finish(ways);
                }
                self.sides[side(direction)].state = State::Skip(length);
                Some(HEAD_BYTES)
            }
        }
    }

    /// Reads a block of fields that is whole.
    fn block(&mut self, direction: Direction, ways: &mut Ways<'_, '_>) {
        let own = &mut self.sides[side(direction)];
        let Block { stream: number, is_end, is_promise, bytes } = std::mem::take(&mut own.block);
        let Some(fields) = own.decoder.block(&bytes) else {
            own.state = State::Over;
            return;
        };
        // A promise has the request that the server answers unasked.
        let direction = if is_promise { Direction::ToServer } else { direction };
        self.open(number, ways);
        let Some(stream) = self.streams.get_mut(&number) else { return };
        stream.head(direction, &fields, ways);
        if is_end || is_promise {
            self.end(direction, number, ways);
        }
    }

    /// Begins a stream if it is new; where there are too many, the oldest ends.
    fn open(&mut self, number: u32, ways: &mut Ways<'_, '_>) {
        if self.streams.contains_key(&number) {
            return;
        }
        if self.streams.len() >= STREAMS_MAX
            && let Some((_, oldest)) = self.streams.pop_first()
        {
            oldest.finish(ways);
        }
        self.streams.insert(number, Stream::new(self.count));
        self.count = self.count.wrapping_add(1);
    }

    fn content(&mut self, direction: Direction, number: u32, bytes: &[u8], ways: &mut Ways<'_, '_>) {
        if let Some(stream) = self.streams.get_mut(&number) {
            stream.content(direction, bytes, ways);
        }
        while self.streams.len() > 1
            && self.streams.values().map(Stream::held_bytes).sum::<usize>() > CONTENT_BYTES_MAX
            && let Some((_, oldest)) = self.streams.pop_first()
        {
            oldest.finish(ways);
        }
    }

    /// Ends a half of a stream, and the stream with its second one.
    fn end(&mut self, direction: Direction, number: u32, ways: &mut Ways<'_, '_>) {
        let Some(stream) = self.streams.get_mut(&number) else { return };
        stream.end(direction, true, ways);
        if stream.is_over()
            && let Some(stream) = self.streams.remove(&number)
        {
            stream.finish(ways);
        }
    }
}

impl Side {
    /// Takes the part of a block that a frame has; none where the frame breaks the format.
    fn begin_block(&mut self, kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Option<()> {
        let is_open = self.block.stream != 0;
        if is_open != (kind == CONTINUATION) || is_open && self.block.stream != stream || stream == 0 {
            return None;
        }
        let (mut number, mut rest) = (stream, payload);
        if kind != CONTINUATION && flags & PADDED != 0 {
            let (&padding, padded) = rest.split_first()?;
            rest = padded.get(..padded.len().checked_sub(usize::from(padding))?)?;
        }
        if kind == HEADERS && flags & PRIORITY != 0 {
            rest = rest.get(5..)?;
        }
        if kind == PUSH_PROMISE {
            number = u32::from_be_bytes(rest.get(..4)?.try_into().ok()?) & 0x7fff_ffff;
            rest = &rest[4..];
        }
        if kind != CONTINUATION {
            let is_end = kind == HEADERS && flags & END_STREAM != 0;
            self.block = Block { stream: number, is_end, is_promise: kind == PUSH_PROMISE, bytes: Vec::new() };
        }
        self.block.bytes.extend_from_slice(rest);
        Some(())
    }
}
