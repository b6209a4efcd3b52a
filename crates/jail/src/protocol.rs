//! Messages between a host and its jail: frames on the rings; and requests of a host to the template of its jails, over
//! a socket.
//!
//! ```text
//!  host ── Open (context), Feed (bytes), Want (bytes inspected), Finish, Stop (name), Answer, Recalled, Close ──► jail
//!       ◄── Out, Took (bytes inspected), Hungry | Stopped | Done | Lost; Waits (answers heard) ──
//! ```
//!
//! What is larger than a frame comes in pieces, all but the last marked as such; bounds: [`MESSAGE_BYTES_MAX`].
//!
//! ```text
//!  host ── Start (signatures, rules); Copy (rings, bells, account, socket), End (process) ──► template
//!       ◄── Ready (process, memory); the process or less than 0, how it has ended ──
//! ```

use flow::{Progress, Unfinished};
use serde::{Deserialize, Serialize};
use stream::Limits;

use crate::ring::{PAYLOAD_BYTES_MAX, Writer};

/// The largest message in pieces: a verdict of many findings with long names.
pub const MESSAGE_BYTES_MAX: usize = 4 << 20;

/// Bytes that may be on their way to one inspection.
pub const CREDIT_BYTES: u64 = 512 << 10;

/// Facts for all jails of a set, along with the descriptors of the compiled signatures, and of rules.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Start {
    /// The bounds of each inspection.
    pub limits: Limits,
    /// Whether signatures that have changed since lie over the others, in a file of their own.
    pub has_overlay: bool,
    /// The files whose signatures of before are not in force any more.
    pub replaced: Vec<Box<str>>,
    /// The time, in seconds since 1970.
    pub now: i64,
    /// Whether there are rules to score mails with, in a file of their own.
    pub has_rules: bool,
    /// Whether there are phrases to score web pages with, in a file of their own.
    pub has_pages: bool,
    /// Whether there are intrusion rules, in a file of their own.
    pub has_intrusion: bool,
}

/// Message of a template once it has read its files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ready {
    /// Its process.
    pub pid: u32,
    /// Its memory that is in RAM, signatures that are mapped included.
    pub resident_bytes: u64,
}

impl Ready {
    /// How many bytes it takes.
    pub const BYTES: usize = 12;

    /// As it is said: both numbers, the lowest byte first.
    pub fn to_bytes(self) -> [u8; Ready::BYTES] {
        let mut bytes = [0; Ready::BYTES];
        bytes[..4].copy_from_slice(&self.pid.to_le_bytes());
        bytes[4..].copy_from_slice(&self.resident_bytes.to_le_bytes());
        bytes
    }

    /// Decodes the message.
    pub fn of([a, b, c, d, resident @ ..]: [u8; Ready::BYTES]) -> Ready {
        Ready { pid: u32::from_le_bytes([a, b, c, d]), resident_bytes: u64::from_le_bytes(resident) }
    }
}

/// Request to a template.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub enum Request {
    /// One more jail, with the descriptors of its rings' memory, both bells, the account, its own way to the
    /// host, and the bells of event loops.
    Copy(Place),
    /// A jail is to go, if it is still there.
    End(u32),
}

/// A jail's place in its set.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Place {
    /// Number in the set, from 1 on.
    pub number: u32,
    /// Bytes that its inspections together may hold of its own, that one may, and those of the account.
    pub memory_bytes: u64,
    /// See [`Place::memory_bytes`].
    pub share_bytes: u64,
    /// See [`Place::memory_bytes`].
    pub account_bytes: u64,
}

/// Kind of a frame to a jail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Asked {
    /// A piece of a context.
    OpenMore,
    /// The last piece of a context, in front of which stands the bell of whoever waits: an inspection begins.
    Open,
    /// Content.
    Feed,
    /// Somebody waits until so much is inspected: of less, the host need not hear at once.
    Want,
    /// End of the content.
    Finish,
    /// It ends before its content, with this finding.
    Stop,
    /// Nobody wants it any more.
    Close,
    /// A further piece of an answer to a question of the jail.
    AnswerMore,
    /// The last piece of an answer.
    Answer,
    /// A piece of what was learned of the words that it has asked about.
    RecalledMore,
    /// The last piece of it.
    Recalled,
}

/// Kind of a frame from a jail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Told {
    /// A piece of what it reports.
    OutMore,
    /// The last piece of what it reports.
    Out,
    /// All that was fed up to here is inspected, and what follows from that.
    Took(Progress),
    /// It comes no further without more answers than it has heard so far.
    Waits,
}

impl Asked {
    const ALL: [Asked; 11] = [
        Asked::OpenMore,
        Asked::Open,
        Asked::Feed,
        Asked::Want,
        Asked::Finish,
        Asked::Stop,
        Asked::Close,
        Asked::AnswerMore,
        Asked::Answer,
        Asked::RecalledMore,
        Asked::Recalled,
    ];

    /// The kind of its frame.
    pub const fn kind(self) -> u8 {
        self as u8
    }

    /// Decodes the kind of a frame.
    pub fn of(kind: u8) -> Option<Asked> {
        Asked::ALL.get(usize::from(kind)).copied()
    }
}

impl Told {
    const ALL: [Told; 9] = [
        Told::OutMore,
        Told::Out,
        Told::Took(Progress::Hungry),
        Told::Took(Progress::Stopped),
        Told::Took(Progress::Done),
        Told::Took(Progress::Lost(Unfinished::Starved)),
        Told::Took(Progress::Lost(Unfinished::Late)),
        Told::Took(Progress::Lost(Unfinished::Gone)),
        Told::Waits,
    ];

    /// The kind of its frame.
    pub fn kind(self) -> u8 {
        Told::ALL.iter().position(|told| *told == self).map_or(u8::MAX, |at| at as u8)
    }

    /// Decodes the kind of a frame.
    pub fn of(kind: u8) -> Option<Told> {
        Told::ALL.get(usize::from(kind)).copied()
    }
}

/// Writes what fits of a message, from `at` on: as pieces, the last of them as `last`. Returns how far it came.
pub fn write_pieces(writer: &mut Writer, stream: u32, [more, last]: [u8; 2], message: &[u8], mut at: usize) -> usize {
    while at < message.len() {
        let rest = &message[at..];
        let is_last = rest.len() <= PAYLOAD_BYTES_MAX;
        let piece = &rest[..rest.len().min(PAYLOAD_BYTES_MAX)];
        if !writer.write(stream, if is_last { last } else { more }, piece) {
            break;
        }
        at += piece.len();
    }
    at
}
