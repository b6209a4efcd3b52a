//! The commands: one table, read from the top.

use alloc::string::String;
use alloc::vec::Vec;

/// A client's request. Each is answered, and ended by [`Server::done`](super::Server::done).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Request {
    /// The server's version and, if asked for, its list of commands.
    Version {
        /// Whether the commands are to be listed too.
        commands: bool,
    },
    /// The signatures are to be read anew.
    Reload,
    /// The program is to end.
    Shutdown,
    /// The state of the queue, and memory.
    Stats,
    /// Statistics of detections, or to forget them.
    Detections,
    /// A file or a folder is to be scanned.
    Scan {
        /// How.
        scan: Scan,
        /// Path as the client gave it, not validated.
        path: Vec<u8>,
    },
    /// A stream follows: content until [`ServerEvent::StreamEnd`](super::ServerEvent::StreamEnd).
    Stream,
    /// The file is to be scanned whose descriptor came with the byte just taken.
    Descriptor,
}

/// The ways to scan a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scan {
    /// Up to the first file in which something is found.
    First,
    /// All files.
    All,
    /// All files, side by side.
    Parallel,
    /// As [`Scan::First`], with everything that is found in that file.
    AllMatches,
}

impl Scan {
    /// The command that requests it.
    pub const fn command(self) -> &'static str {
        match self {
            Scan::First => "SCAN",
            Scan::All => "CONTSCAN",
            Scan::Parallel => "MULTISCAN",
            Scan::AllMatches => "ALLMATCHSCAN",
        }
    }
}

/// Action of a command word.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Verb {
    Ping,
    Session,
    End,
    Stream,
    Descriptor,
    Scan(Scan),
    /// A request without further input.
    Plain(Request),
}

struct Word {
    name: &'static str,
    verb: Verb,
    /// May be said without `n` or `z` in front.
    bare: bool,
    /// May be said inside a session.
    inside: bool,
}

const fn word(name: &'static str, verb: Verb, bare: bool, inside: bool) -> Word {
    Word { name, verb, bare, inside }
}

/// In clamd's order, which VERSIONCOMMANDS shows.
static WORDS: [Word; 17] = [
    word("SCAN", Verb::Scan(Scan::First), true, true),
    word("QUIT", Verb::Plain(Request::Shutdown), true, false),
    word("RELOAD", Verb::Plain(Request::Reload), true, false),
    word("PING", Verb::Ping, true, true),
    word("CONTSCAN", Verb::Scan(Scan::All), true, false),
    word("VERSIONCOMMANDS", Verb::Plain(Request::Version { commands: true }), false, true),
    word("VERSION", Verb::Plain(Request::Version { commands: false }), true, true),
    word("END", Verb::End, false, true),
    word("SHUTDOWN", Verb::Plain(Request::Shutdown), true, false),
    word("MULTISCAN", Verb::Scan(Scan::Parallel), true, false),
    word("FILDES", Verb::Descriptor, true, true),
    word("STATS", Verb::Plain(Request::Stats), false, true),
    word("IDSESSION", Verb::Session, false, false),
    word("INSTREAM", Verb::Stream, false, true),
    word("DETSTATSCLEAR", Verb::Plain(Request::Detections), true, false),
    word("DETSTATS", Verb::Plain(Request::Detections), true, false),
    word("ALLMATCHSCAN", Verb::Scan(Scan::AllMatches), false, false),
];

/// The words of all commands, separated by spaces, as VERSIONCOMMANDS shows them.
pub fn commands() -> String {
    WORDS.each_ref().map(|word| word.name).join(" ")
}

/// How a command came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Manner {
    pub bare: bool,
    pub inside: bool,
}

impl Verb {
    /// Reads a command without its prefix and its end, and returns its argument with it. None if it is not known, not
    /// allowed here, or has an argument too many or too few.
    pub fn parse(line: &[u8], manner: Manner) -> Option<(&'static Verb, &[u8])> {
        let end = line.iter().position(u8::is_ascii_whitespace).unwrap_or(line.len());
        let (name, rest) = line.split_at(end);
        let word = WORDS.iter().find(|word| word.name.as_bytes() == name)?;
        let allowed = match manner {
            Manner { bare: true, inside: true } => false,
            Manner { bare: true, .. } => word.bare,
            Manner { inside: true, .. } => word.inside,
            _ => word.verb != Verb::End,
        };
        if !allowed {
            return None;
        }
        match (&word.verb, rest.split_first()) {
            // One space divides; the next belongs to the path.
            (Verb::Scan(_), Some((_, path))) => Some((&word.verb, path)),
            (Verb::Scan(_), None) => None,
            (verb, None) => Some((verb, rest)),
            (_, Some(_)) => None,
        }
    }
}
