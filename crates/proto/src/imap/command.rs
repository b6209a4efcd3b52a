//! Commands: what a client says, bounded and checked, and written as the server gets it.
//!
//! The arguments are kept as they stand, text and literals in turn: the text holds no control characters and no quoted
//! string without an end, and each literal is announced anew. So nothing in a command can be taken for the next one.

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use super::section::number;
use crate::sasl;

/// Command word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verb {
    /// A SASL exchange.
    Authenticate,
    /// CAPABILITY.
    Capability,
    /// Messages are added.
    Append,
    /// The mailbox is left.
    Close,
    /// Parts of messages, by sequence number or by UID.
    Fetch,
    /// IDLE: changes are sent as they happen.
    Idle,
    /// A name and a password.
    Login,
    /// The end.
    Logout,
    /// A mailbox is entered.
    Select,
    /// TLS.
    Starttls,
    /// A message takes the place of another.
    Replace,
    /// A command for the server alone, allowed in any state.
    Always,
    /// The same, about mailboxes, of somebody who has logged in.
    OfAccount,
    /// The same, about messages of the mailbox that is selected.
    OfMailbox,
}

impl Verb {
    /// The commands that ask for it.
    pub fn names(self) -> impl Iterator<Item = &'static str> {
        NAMES.iter().filter(move |(_, verb)| *verb == self).map(|(name, _)| *name)
    }
}

/// The names of commands that pass. Not here, with the reason, are those of `docs/doors/imap.md`.
const NAMES: [(&str, Verb); 55] = [
    ("AUTHENTICATE", Verb::Authenticate),
    ("CAPABILITY", Verb::Capability),
    ("APPEND", Verb::Append),
    ("CLOSE", Verb::Close),
    ("UNSELECT", Verb::Close),
    ("FETCH", Verb::Fetch),
    ("UID FETCH", Verb::Fetch),
    ("IDLE", Verb::Idle),
    ("LOGIN", Verb::Login),
    ("LOGOUT", Verb::Logout),
    ("SELECT", Verb::Select),
    ("EXAMINE", Verb::Select),
    ("STARTTLS", Verb::Starttls),
    ("CHECK", Verb::OfMailbox),
    ("COPY", Verb::OfMailbox),
    ("CREATE", Verb::OfAccount),
    ("DELETE", Verb::OfAccount),
    ("DELETEACL", Verb::OfAccount),
    ("ENABLE", Verb::OfAccount),
    ("EXPUNGE", Verb::OfMailbox),
    ("GETACL", Verb::OfAccount),
    ("GETQUOTA", Verb::OfAccount),
    ("GETQUOTAROOT", Verb::OfAccount),
    ("ID", Verb::Always),
    ("LIST", Verb::OfAccount),
    ("LISTRIGHTS", Verb::OfAccount),
    ("LSUB", Verb::OfAccount),
    ("MOVE", Verb::OfMailbox),
    ("MYRIGHTS", Verb::OfAccount),
    ("NAMESPACE", Verb::OfAccount),
    ("NOOP", Verb::Always),
    ("RENAME", Verb::OfAccount),
    ("SEARCH", Verb::OfMailbox),
    ("SETACL", Verb::OfAccount),
    ("SETQUOTA", Verb::OfAccount),
    ("SORT", Verb::OfMailbox),
    ("STATUS", Verb::OfAccount),
    ("STORE", Verb::OfMailbox),
    ("SUBSCRIBE", Verb::OfAccount),
    ("THREAD", Verb::OfMailbox),
    ("UNSUBSCRIBE", Verb::OfAccount),
    ("XLIST", Verb::OfAccount),
    ("UID COPY", Verb::OfMailbox),
    ("UID EXPUNGE", Verb::OfMailbox),
    ("UID MOVE", Verb::OfMailbox),
    ("COMPRESS", Verb::OfAccount),
    ("GETMETADATA", Verb::OfAccount),
    ("NOTIFY", Verb::OfAccount),
    ("SETMETADATA", Verb::OfAccount),
    ("REPLACE", Verb::Replace),
    ("UID REPLACE", Verb::Replace),
    ("UID SEARCH", Verb::OfMailbox),
    ("UID SORT", Verb::OfMailbox),
    ("UID STORE", Verb::OfMailbox),
    ("UID THREAD", Verb::OfMailbox),
];

/// Commands that only a host understands that keeps the mail itself.
const KEPT: [&str; 6] = ["COMPRESS", "NOTIFY", "GETMETADATA", "SETMETADATA", "REPLACE", "UID REPLACE"];

/// A run of a command's arguments.
#[derive(Clone, PartialEq, Eq)]
pub enum Piece {
    /// On one line.
    Text(Vec<u8>),
    /// Announced by its length.
    Literal {
        /// Content of the literal.
        bytes: Vec<u8>,
        /// Whether it may hold NULs (`~{n}`).
        binary: bool,
    },
}

/// A command.
#[derive(Clone, PartialEq, Eq)]
pub struct Command {
    /// By what its answer is known.
    pub tag: Vec<u8>,
    /// Command word.
    pub verb: Verb,
    /// The name, as it is written to the server: with `UID` in front where it is so.
    pub name: &'static str,
    /// Arguments after the name and a blank; text first, if there is anything.
    pub pieces: Vec<Piece>,
}

impl Command {
    /// Reads the beginning of a command: a line without its end, or what stands before its first literal. With `keeps` it is for
    /// a host that keeps the mail itself.
    ///
    /// # Errors
    /// The tag to answer to, `*` if there is none, and what the client is told.
    pub(super) fn parse(line: &[u8], keeps: bool) -> Result<Command, (Vec<u8>, &'static str)> {
        let (tag, rest) = word(line);
        let odd = |byte: &u8| !byte.is_ascii_graphic() || b"(){%*\"\\+".contains(byte);
        if tag.is_empty() || tag.len() > 100 || tag.iter().any(odd) {
            return Err((b"*".to_vec(), "Unknown command"));
        }
        let (first, after) = word(rest);
        let (name, arguments) = match first.eq_ignore_ascii_case(b"UID") {
            true => {
                let (second, after) = word(after);
                ([b"UID ", second].concat(), after)
            }
            false => (first.to_vec(), after),
        };
        let known = known(&name).filter(|(_, name)| keeps || !KEPT.contains(name));
        let (verb, name) = known.ok_or((tag.to_vec(), "Unknown command"))?;
        let pieces = if arguments.is_empty() { Vec::new() } else { alloc::vec![Piece::Text(arguments.to_vec())] };
        Ok(Command { tag: tag.to_vec(), verb, name, pieces })
    }

    /// A command of our own without arguments.
    pub const fn plain(verb: Verb, name: &'static str) -> Command {
        Command { tag: Vec::new(), verb, name, pieces: Vec::new() }
    }

    /// Whether it brings messages.
    pub fn is_append(&self) -> bool {
        matches!(self.verb, Verb::Append | Verb::Replace)
    }

    /// Whether untagged responses repeat its tag: ESEARCH, which may come much later (RFC 4731, section 3.1; RFC 5267).
    pub(super) fn is_repeated(&self) -> bool {
        !self.tag.is_empty() && ["SEARCH", "UID SEARCH", "SORT", "UID SORT"].contains(&self.name)
    }

    /// Whether it is by UID.
    pub fn by_uid(&self) -> bool {
        self.name.starts_with("UID ")
    }

    /// Its arguments as far as they are strings at the top: atoms, quoted strings and literals, at most two.
    pub fn strings(&self) -> Vec<Vec<u8>> {
        let mut strings = Vec::new();
        for piece in &self.pieces {
            match piece {
                Piece::Literal { bytes, .. } => strings.push(bytes.clone()),
                Piece::Text(text) => {
                    let mut rest = text.as_slice();
                    while let Some((string, after)) = string(rest) {
                        strings.push(string);
                        rest = after;
                    }
                }
            }
        }
        strings.truncate(2);
        strings
    }

    /// The arguments, if they are one run of text.
    pub(super) fn text(&self) -> Option<&[u8]> {
        match self.pieces.as_slice() {
            [] => Some(b""),
            [Piece::Text(text)] => Some(text),
            _ => None,
        }
    }

    /// The mailbox that it enters or adds to; INBOX is one, however it is written.
    pub fn mailbox(&self) -> Option<Vec<u8>> {
        let name = self.strings().into_iter().next().filter(|_| matches!(self.verb, Verb::Select | Verb::Append))?;
        Some(super::name::canonical(name))
    }

    /// Login name, if the command has one.
    pub fn user(&self) -> Option<String> {
        let mut strings = self.strings().into_iter();
        let first = strings.next()?;
        match self.verb {
            Verb::Login => String::from_utf8(first).ok(),
            Verb::Authenticate => sasl::user(core::str::from_utf8(&first).ok()?, &strings.next()?),
            _ => None,
        }
    }

    /// The mechanism of a SASL exchange, if it works through somebody in the middle.
    pub fn mechanism(&self) -> Option<String> {
        let name = String::from_utf8(self.strings().into_iter().next()?).ok()?;
        (self.verb == Verb::Authenticate && sasl::is_passable(&name)).then_some(name)
    }

    /// Bytes of all arguments.
    pub(super) fn len(&self) -> usize {
        let len = |piece: &Piece| match piece {
            Piece::Text(bytes) | Piece::Literal { bytes, .. } => bytes.len(),
        };
        self.pieces.iter().map(len).sum()
    }
}

/// Without what could be a password.
impl fmt::Debug for Command {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

/// The name of a mailbox in a response of a SASL exchange, if the mechanism tells one there.
pub fn user_in_response(mechanism: &str, response: &[u8]) -> Option<String> {
    sasl::user(mechanism, response)
}

fn known(name: &[u8]) -> Option<(Verb, &'static str)> {
    let named = NAMES.iter().find(|(known, _)| name.eq_ignore_ascii_case(known.as_bytes()));
    named.map(|&(known, verb)| (verb, known))
}

/// The first word, and what stands behind the blank that follows.
pub(super) fn word(text: &[u8]) -> (&[u8], &[u8]) {
    match text.iter().position(|&byte| byte == b' ') {
        Some(at) => (&text[..at], &text[at + 1..]),
        None => (text, b""),
    }
}

/// The first string of a text, an atom or quoted, and what follows it.
fn string(text: &[u8]) -> Option<(Vec<u8>, &[u8])> {
    let text = text.trim_ascii_start();
    if text.first()? != &b'"' {
        let (atom, after) = word(text);
        return Some((atom.to_vec(), after));
    }
    let (mut string, mut at) = (Vec::new(), 1);
    loop {
        match text.get(at)? {
            b'"' => return Some((string, &text[at + 1..])),
            b'\\' => {
                string.push(*text.get(at + 1)?);
                at += 2;
            }
            byte => {
                string.push(*byte);
                at += 1;
            }
        }
    }
}

/// How a line ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LineEnd {
    /// The command is complete.
    Complete,
    /// A literal follows.
    Literal(Announced),
}

/// A literal that was announced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Announced {
    pub len: u64,
    /// Whether it comes without waiting for leave (LITERAL+).
    pub at_once: bool,
    pub binary: bool,
    /// Where on the line the announcement begins.
    pub at: usize,
}

/// Checks a line of a command, and whether it announces a literal at its end.
///
/// # Errors
/// What the client is told.
pub(super) fn line_end(line: &[u8]) -> Result<LineEnd, &'static str> {
    if line.iter().any(|&byte| byte < b' ' && byte != b'\t' || byte == 0x7f) {
        return Err("Control characters in a command");
    }
    let (mut quoted, mut escaped) = (false, false);
    for &byte in line {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if quoted => escaped = true,
            b'"' => quoted = !quoted,
            _ => {}
        }
    }
    if quoted {
        return Err("A quoted string without an end");
    }
    let Some(inner) = line.strip_suffix(b"}") else { return Ok(LineEnd::Complete) };
    // A name may end so.
    let Some(open) = inner.iter().rposition(|&byte| byte == b'{') else { return Ok(LineEnd::Complete) };
    let digits = &inner[open + 1..];
    let (digits, at_once) = match digits.strip_suffix(b"+") {
        Some(digits) => (digits, true),
        None => (digits, false),
    };
    let len = number(digits).ok_or("Not a literal")?;
    let binary = open > 0 && line[open - 1] == b'~';
    Ok(LineEnd::Literal(Announced { len, at_once, binary, at: open - usize::from(binary) }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;

    fn parse(line: &str) -> Command {
        Command::parse(line.as_bytes(), false).unwrap()
    }

    #[test]
    fn only_known_commands_pass() {
        assert_eq!(parse("a1 uid fetch 1 FLAGS").name, "UID FETCH");
        assert_eq!(parse("a1 Noop").name, "NOOP");
        for line in
            ["", "a", "a XFOO", "a UID", "a UID NOOP", "a COMPRESS DEFLATE", "a NOTIFY NONE", "a* NOOP", " NOOP"]
        {
            assert!(Command::parse(line.as_bytes(), false).is_err(), "{line}");
        }
        let replace = b"a UID REPLACE 1 x ";
        assert!(Command::parse(replace, false).is_err() && Command::parse(replace, true).is_ok());
    }

    #[test]
    fn strings_are_read_however_they_are_written() {
        let mut command = parse(r#"a LOGIN "ti\"m" secret"#);
        assert_eq!(command.user().as_deref(), Some("ti\"m"));
        assert_eq!(alloc::format!("{command:?}").to_string(), "LOGIN");
        command.pieces = alloc::vec![Piece::Literal { bytes: b"tim".to_vec(), binary: false }];
        assert_eq!(command.user().as_deref(), Some("tim"));
        assert_eq!(parse("a SELECT inbox").mailbox().unwrap(), b"INBOX");
        assert_eq!(parse("a EXAMINE \"a b\" (CONDSTORE)").mailbox().unwrap(), b"a b");
        assert_eq!(parse("a AUTHENTICATE PLAIN AHRpbQB0YW5zdGFhZnRhbnN0YWFm").user().as_deref(), Some("tim"));
        assert_eq!(parse("a AUTHENTICATE GSSAPI").mechanism(), None);
    }

    #[test]
    fn literals_are_announced_outside_of_quotes_only() {
        let literal = |len, at_once, binary, at| Ok(LineEnd::Literal(Announced { len, at_once, binary, at }));
        assert_eq!(line_end(b"a LOGIN {3}"), literal(3, false, false, 8));
        assert_eq!(line_end(b"a X ~{30+}"), literal(30, true, true, 4));
        assert_eq!(line_end(br#"a X "{3}""#), Ok(LineEnd::Complete));
        assert_eq!(line_end(b"a SELECT x}"), Ok(LineEnd::Complete));
        for line in [&b"a X \"{3}"[..], b"a X {}", b"a X {-1}", b"a X {99999999999999999999}", b"a\rb"] {
            assert!(line_end(line).is_err());
        }
    }
}
