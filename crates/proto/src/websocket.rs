//! Frames of WebSocket (RFC 6455, section 5), read in one direction and written in the other.
//!
//! [`Reader`] takes the bytes of one side and says what its messages hold, unmasked, however they are cut into frames. [`frame`]
//! writes one frame. Between the two a message keeps its bytes and its kind, and nothing else.
//!
//! Bounds: 14 bytes of a head, 125 of a control frame, what the host feeds of a message. Not here: extensions, so that reserved bits
//! are refused, and whether text is UTF-8.
#![deny(clippy::arithmetic_side_effects)]

use alloc::vec::Vec;

/// Bytes of a control frame's content (section 5.5).
pub const CONTROL_BYTES_MAX: usize = 125;

/// Close codes that this side sends (section 7.4.1).
pub const POLICY_VIOLATION: u16 = 1008;

/// The side whose frames are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sender {
    /// Its frames are masked.
    Client,
    /// Its frames are not.
    Server,
}

/// The kind of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// More of the message under way.
    Continuation,
    /// A message of text.
    Text,
    /// A message of bytes.
    Binary,
    /// The last frame of a side.
    Close,
    /// A question whether the other side is there.
    Ping,
    /// The answer to it.
    Pong,
}

impl Kind {
    const fn of(opcode: u8) -> Option<Kind> {
        Some(match opcode {
            0 => Kind::Continuation,
            1 => Kind::Text,
            2 => Kind::Binary,
            8 => Kind::Close,
            9 => Kind::Ping,
            10 => Kind::Pong,
            _ => return None,
        })
    }

    const fn opcode(self) -> u8 {
        match self {
            Kind::Continuation => 0,
            Kind::Text => 1,
            Kind::Binary => 2,
            Kind::Close => 8,
            Kind::Ping => 9,
            Kind::Pong => 10,
        }
    }

    const fn is_control(self) -> bool {
        matches!(self, Kind::Close | Kind::Ping | Kind::Pong)
    }
}

/// An event of a reader.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event {
    /// More input is needed.
    Idle,
    /// A message begins.
    Begin(Kind),
    /// [`Reader::content`] has more of the message.
    Content,
    /// The message is complete.
    End,
    /// [`Reader::content`] has all of a control frame.
    Control(Kind),
    /// The bytes are no frames: the connection is of no more use.
    Refused(Refusal),
}

/// The reason why frames are refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// Reserved bits are set, and no extension is in force.
    Reserved,
    /// The opcode is not known.
    Opcode,
    /// The frame is masked and must not be, or the other way round.
    Mask,
    /// The length is not written in its shortest form, or too large.
    Length,
    /// A control frame is cut in pieces, or too long.
    Control,
    /// A message begins within another, or goes on without a beginning.
    Order,
}

impl Refusal {
    /// The reason in words, for the log.
    pub const fn reason(self) -> &'static str {
        match self {
            Refusal::Reserved => "reserved bits in a frame",
            Refusal::Opcode => "a frame of an unknown kind",
            Refusal::Mask => "a frame whose mask is missing, or must not be there",
            Refusal::Length => "a malformed length of a frame",
            Refusal::Control => "a malformed control frame",
            Refusal::Order => "a frame of no message",
        }
    }
}

/// Reads the frames of one side.
#[derive(Debug)]
pub struct Reader {
    sender: Sender,
    frame: Option<Frame>,
    is_within_message: bool,
    content: Vec<u8>,
}

/// A frame whose content is read.
#[derive(Debug, Clone, Copy)]
struct Frame {
    kind: Kind,
    is_final: bool,
    left: u64,
    mask: [u8; 4],
    /// The byte of the mask that is next.
    at: usize,
}

impl Reader {
    /// Begins a side.
    pub const fn new(sender: Sender) -> Reader {
        Reader { sender, frame: None, is_within_message: false, content: Vec::new() }
    }

    /// The content of the last event, unmasked.
    pub fn content(&self) -> &[u8] {
        &self.content
    }

    /// Bytes of the frame of a message that are still to come, as its head says.
    pub fn left(&self) -> u64 {
        self.frame.map_or(0, |frame| frame.left)
    }

    /// Takes a prefix of the input, and emits one event.
    pub fn step(&mut self, input: &[u8]) -> (usize, Event) {
        self.read(input).unwrap_or_else(|refusal| (0, Event::Refused(refusal)))
    }

    fn read(&mut self, input: &[u8]) -> Result<(usize, Event), Refusal> {
        match self.frame {
            None => self.begin(input),
            Some(frame) if frame.kind.is_control() => Ok(self.control(frame, input)),
            Some(frame) if frame.left == 0 => {
                self.frame = None;
                self.is_within_message = !frame.is_final;
                if frame.is_final { Ok((0, Event::End)) } else { self.begin(input) }
            }
            Some(frame) => {
                let count = usize::try_from(frame.left).map_or(input.len(), |left| left.min(input.len()));
                self.take(frame, &input[..count]);
                Ok((count, if count == 0 { Event::Idle } else { Event::Content }))
            }
        }
    }

    /// Reads the head of a frame (section 5.2).
    fn begin(&mut self, input: &[u8]) -> Result<(usize, Event), Refusal> {
        let [first, second, rest @ ..] = input else { return Ok((0, Event::Idle)) };
        if first & 0x70 != 0 {
            return Err(Refusal::Reserved);
        }
        let kind = Kind::of(first & 0x0f).ok_or(Refusal::Opcode)?;
        let (is_final, is_masked) = (first & 0x80 != 0, second & 0x80 != 0);
        if is_masked != (self.sender == Sender::Client) {
            return Err(Refusal::Mask);
        }
        let length_bytes: usize = match second & 0x7f {
            126 => 2,
            127 => 8,
            _ => 0,
        };
        let mask_bytes: usize = if is_masked { 4 } else { 0 };
        let Some(length) = rest.get(..length_bytes) else { return Ok((0, Event::Idle)) };
        let Some(mask) = rest.get(length_bytes..length_bytes.saturating_add(mask_bytes)) else {
            return Ok((0, Event::Idle));
        };
        let number = length.iter().fold(0_u64, |number, &byte| number << 8 | u64::from(byte));
        let (left, shortest) = match length_bytes {
            0 => (u64::from(second & 0x7f), 0),
            2 => (number, 126),
            _ => (number, 1 << 16),
        };
        if left < shortest || left >> 63 != 0 {
            return Err(Refusal::Length);
        }
        if kind.is_control() && (!is_final || left > CONTROL_BYTES_MAX as u64) {
            return Err(Refusal::Control);
        }
        if !kind.is_control() && (kind == Kind::Continuation) != self.is_within_message {
            return Err(Refusal::Order);
        }
        let mask = mask.try_into().unwrap_or_default();
        self.frame = Some(Frame { kind, is_final, left, mask, at: 0 });
        self.content.clear();
        let event = if matches!(kind, Kind::Text | Kind::Binary) { Event::Begin(kind) } else { Event::Idle };
        Ok((length_bytes.saturating_add(mask_bytes).saturating_add(2), event))
    }

    fn control(&mut self, frame: Frame, input: &[u8]) -> (usize, Event) {
        let wanted = usize::try_from(frame.left).unwrap_or(usize::MAX);
        let Some(content) = input.get(..wanted) else { return (0, Event::Idle) };
        self.take(frame, content);
        self.frame = None;
        (wanted, Event::Control(frame.kind))
    }

    fn take(&mut self, mut frame: Frame, bytes: &[u8]) {
        self.content.clear();
        self.content.extend_from_slice(bytes);
        frame.at = mask(frame.mask, frame.at, &mut self.content);
        frame.left = frame.left.saturating_sub(bytes.len() as u64);
        self.frame = Some(frame);
    }
}

/// Masks bytes, or unmasks them (section 5.3); the byte of the mask that is next.
fn mask(mask: [u8; 4], at: usize, bytes: &mut [u8]) -> usize {
    let at = at & 3;
    if mask != [0; 4] {
        bytes.iter_mut().zip(mask.iter().cycle().skip(at)).for_each(|(byte, key)| *byte ^= key);
    }
    at.wrapping_add(bytes.len()) & 3
}

/// Writes a frame; `key`: the mask of a client, none of a server.
pub fn frame(kind: Kind, is_final: bool, key: Option<[u8; 4]>, content: &[u8], out: &mut Vec<u8>) {
    let masked = if key.is_some() { 0x80 } else { 0 };
    out.push(if is_final { 0x80 } else { 0 } | kind.opcode());
    match content.len() {
        length @ 0..126 => out.push(masked | length as u8),
        length @ 126..0x1_0000 => {
            out.push(masked | 126);
            out.extend_from_slice(&(length as u16).to_be_bytes());
        }
        length => {
            out.push(masked | 127);
            out.extend_from_slice(&(length as u64).to_be_bytes());
        }
    }
    let begin = out.len().saturating_add(if key.is_some() { 4 } else { 0 });
    out.extend_from_slice(key.as_ref().map_or(&[], |key| &key[..]));
    out.extend_from_slice(content);
    mask(key.unwrap_or_default(), 0, &mut out[begin..]);
}

/// The body of the fuzz target: what a side says is the same however its bytes are cut, and what is written of it is read as it was.
pub fn fuzz(data: &[u8]) {
    let [control, bytes @ ..] = data else { return };
    let sender = if control & 1 == 0 { Sender::Client } else { Sender::Server };
    let (whole, cut) =
        (messages(sender, bytes, bytes.len()), messages(sender, bytes, usize::from(control >> 1).max(1)));
    assert_eq!(whole, cut);
    let key = (sender == Sender::Client).then_some([7, 0, 255, 3]);
    let mut written = Vec::new();
    whole.iter().for_each(|(kind, content)| frame(*kind, true, key, content, &mut written));
    assert_eq!(messages(sender, &written, written.len()), whole);
}

/// The whole messages and control frames of a side that is fed in pieces of this size, up to what is refused.
fn messages(sender: Sender, bytes: &[u8], piece: usize) -> Vec<(Kind, Vec<u8>)> {
    let mut reader = Reader::new(sender);
    let (mut found, mut under_way) = (Vec::new(), None);
    let (mut at, mut end) = (0, 0);
    loop {
        let (taken, event) = reader.step(&bytes[at..end]);
        at = at.saturating_add(taken);
        match event {
            Event::Idle if taken == 0 && end == bytes.len() => return found,
            Event::Idle if taken == 0 => end = end.saturating_add(piece.max(1)).min(bytes.len()),
            Event::Idle => {}
            Event::Begin(kind) => under_way = Some((kind, Vec::new())),
            Event::Content => under_way.iter_mut().for_each(|(_, all)| all.extend_from_slice(reader.content())),
            Event::End => found.extend(under_way.take()),
            Event::Control(kind) => found.push((kind, reader.content().to_vec())),
            Event::Refused(_) => return found,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::String;
    use alloc::{format, vec};

    /// Messages of a side, in words; fed in pieces of this size.
    fn said(sender: Sender, bytes: &[u8], piece: usize) -> String {
        let mut reader = Reader::new(sender);
        let (mut words, mut rest, mut fed) = (String::new(), bytes, piece.min(bytes.len()));
        loop {
            let (taken, event) = reader.step(&rest[..fed]);
            rest = &rest[taken..];
            fed = fed.saturating_sub(taken);
            match event {
                Event::Idle if taken == 0 && fed == rest.len() => return words,
                Event::Idle => fed = fed.saturating_add(piece).min(rest.len()),
                Event::Begin(kind) => words.push_str(&format!("{kind:?}(")),
                Event::Content => words.push_str(&String::from_utf8_lossy(reader.content())),
                Event::End => words.push(')'),
                Event::Control(kind) => {
                    words.push_str(&format!("[{kind:?} {}]", String::from_utf8_lossy(reader.content())));
                }
                Event::Refused(refusal) => {
                    words.push_str(&format!("!{refusal:?}"));
                    return words;
                }
            }
        }
    }

    /// The same however it is cut.
    fn law(sender: Sender, bytes: &[u8]) -> String {
        let whole = said(sender, bytes, bytes.len().max(1));
        (1..bytes.len().min(12)).for_each(|piece| assert_eq!(said(sender, bytes, piece), whole, "{piece}"));
        whole
    }

    #[test]
    fn the_examples_of_the_rfc_are_read() {
        // Section 5.7.
        assert_eq!(law(Sender::Server, b"\x81\x05Hello"), "Text(Hello)");
        assert_eq!(law(Sender::Client, b"\x81\x85\x37\xfa\x21\x3d\x7f\x9f\x4d\x51\x58"), "Text(Hello)");
        assert_eq!(law(Sender::Server, b"\x01\x03Hel\x80\x02lo"), "Text(Hello)");
        assert_eq!(law(Sender::Server, b"\x89\x05Hello"), "[Ping Hello]");
        assert_eq!(law(Sender::Client, b"\x8a\x85\x37\xfa\x21\x3d\x7f\x9f\x4d\x51\x58"), "[Pong Hello]");
        assert_eq!(law(Sender::Server, b"\x01\x03Hel\x89\x00\x00\x00\x80\x02lo\x82\x00"), "Text(Hel[Ping ]lo)Binary()");
    }

    #[test]
    fn what_is_written_is_read() {
        for length in [0, 1, 125, 126, 65_535, 65_536, 70_000] {
            let content = vec![b'x'; length];
            let mut bytes = Vec::new();
            frame(Kind::Binary, false, Some([1, 2, 3, 4]), &content, &mut bytes);
            frame(Kind::Continuation, true, Some([0, 9, 0, 9]), b"end", &mut bytes);
            frame(Kind::Close, true, Some([5, 6, 7, 8]), b"ab", &mut bytes);
            let whole = said(Sender::Client, &bytes, 1 << 20);
            assert_eq!(whole, format!("Binary({}end)[Close ab]", String::from_utf8(content).unwrap()), "{length}");
            assert_eq!(said(Sender::Client, &bytes, 1_000), whole);
        }
    }

    #[test]
    fn what_two_readers_could_read_differently_is_refused() {
        for (bytes, refusal) in [
            (&b"\xc1\x00"[..], "Reserved"),
            (b"\x83\x00", "Opcode"),
            (b"\x8b\x00", "Opcode"),
            (b"\x81\x80abcd", "Mask"),
            (b"\x81\x7e\x00\x7d", "Length"),
            (b"\x81\x7f\x00\x00\x00\x00\x00\x00\xff\xff", "Length"),
            (b"\x81\x7f\x80\x00\x00\x00\x00\x00\x00\x00", "Length"),
            (b"\x09\x00", "Control"),
            (b"\x89\x7e\x00\x7e", "Control"),
            (b"\x80\x00", "Order"),
            (b"\x01\x00\x81\x00", "Text(!Order"),
        ] {
            let expected = if refusal.contains('!') { refusal.into() } else { format!("!{refusal}") };
            assert_eq!(law(Sender::Server, bytes), expected);
        }
        assert_eq!(law(Sender::Client, b"\x81\x00"), "!Mask");
    }
}
