//! Commands: read, bounded, and written as the server gets them.

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use crate::sasl;

/// Command word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verb {
    /// A name.
    User,
    /// A password.
    Pass,
    /// A name and a digest.
    Apop,
    /// A SASL exchange.
    Auth,
    /// CAPA.
    Capa,
    /// TLS.
    Stls,
    /// The end.
    Quit,
    /// Number and size of all messages.
    Stat,
    /// Sizes.
    List,
    /// A message.
    Retr,
    /// A message goes.
    Dele,
    /// Nothing.
    Noop,
    /// No message goes.
    Rset,
    /// The top of a message.
    Top,
    /// Names of messages that last.
    Uidl,
    /// UTF-8 in addresses.
    Utf8,
    /// The language of texts.
    Lang,
}

impl Verb {
    /// As it is written.
    pub fn name(self) -> &'static str {
        VERBS.iter().find(|(_, verb)| *verb == self).map_or("NOOP", |(name, _)| name)
    }
}

const VERBS: [(&str, Verb); 17] = [
    ("USER", Verb::User),
    ("PASS", Verb::Pass),
    ("APOP", Verb::Apop),
    ("AUTH", Verb::Auth),
    ("CAPA", Verb::Capa),
    ("STLS", Verb::Stls),
    ("QUIT", Verb::Quit),
    ("STAT", Verb::Stat),
    ("LIST", Verb::List),
    ("RETR", Verb::Retr),
    ("DELE", Verb::Dele),
    ("NOOP", Verb::Noop),
    ("RSET", Verb::Rset),
    ("TOP", Verb::Top),
    ("UIDL", Verb::Uidl),
    ("UTF8", Verb::Utf8),
    ("LANG", Verb::Lang),
];

/// How a reply that says yes goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// Not at all.
    Line,
    /// By lines up to a dot.
    Lines,
    /// By a message up to a dot.
    Message,
    /// Challenges come before it.
    Exchange,
}

/// A command: one line without its end, free of control characters.
#[derive(Clone, PartialEq, Eq)]
pub struct Command {
    /// Command word.
    pub verb: Verb,
    argument: Vec<u8>,
}

impl Command {
    /// Reads a line without its end.
    ///
    /// # Errors
    /// What the client is told.
    pub fn parse(line: &[u8]) -> Result<Command, &'static str> {
        if line.iter().any(|&byte| byte < b' ' && byte != b'\t' || byte == 0x7f) {
            return Err("Control characters in a command");
        }
        let end = line.iter().position(|&byte| byte == b' ').unwrap_or(line.len());
        let (word, rest) = line.split_at(end);
        let known = VERBS.iter().find(|(name, _)| name.as_bytes().eq_ignore_ascii_case(word));
        let Some(&(_, verb)) = known else { return Err("Unknown command") };
        let argument = rest.strip_prefix(b" ").unwrap_or(rest);
        // A password may end in blanks.
        let argument = if verb == Verb::Pass { argument } else { argument.trim_ascii() };
        Command { verb, argument: argument.into() }.checked()
    }

    fn checked(self) -> Result<Command, &'static str> {
        let words = self.words().count();
        let fits = match self.verb {
            Verb::Retr | Verb::Dele => words == 1 && self.number(0).is_some(),
            Verb::Top => words == 2 && self.number(0).is_some() && self.number(1).is_some(),
            Verb::List | Verb::Uidl => words == 0 || words == 1 && self.number(0).is_some(),
            Verb::User | Verb::Pass => !self.argument.is_empty(),
            Verb::Apop => words == 2,
            Verb::Auth => words <= 2,
            Verb::Lang => words <= 1,
            Verb::Capa | Verb::Stls | Verb::Quit | Verb::Stat | Verb::Noop | Verb::Rset | Verb::Utf8 => words == 0,
        };
        if fits { Ok(self) } else { Err("Wrong arguments") }
    }

    /// The command that asks for the lasting name of one message.
    pub fn uidl(message: u32) -> Command {
        Command { verb: Verb::Uidl, argument: alloc::format!("{message}").into_bytes() }
    }

    /// A command without an argument.
    pub const fn plain(verb: Verb) -> Command {
        Command { verb, argument: Vec::new() }
    }

    /// Appends it as it goes over the wire.
    pub fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(self.verb.name().as_bytes());
        if !self.argument.is_empty() {
            out.push(b' ');
            out.extend_from_slice(&self.argument);
        }
        out.extend_from_slice(b"\r\n");
    }

    /// How a reply that says yes goes on.
    pub fn shape(&self) -> Shape {
        match self.verb {
            Verb::Retr | Verb::Top => Shape::Message,
            Verb::Capa => Shape::Lines,
            Verb::List | Verb::Uidl | Verb::Auth | Verb::Lang if self.argument.is_empty() => Shape::Lines,
            Verb::Auth => Shape::Exchange,
            _ => Shape::Line,
        }
    }

    /// The message that it is about.
    pub fn message(&self) -> Option<u32> {
        self.number(0).filter(|_| matches!(self.verb, Verb::Retr | Verb::Top | Verb::Dele))
    }

    /// Everything behind the verb and a blank: a password, as it was written.
    pub fn argument(&self) -> &[u8] {
        &self.argument
    }

    /// The message that it is about, of LIST and UIDL too.
    pub fn message_number(&self) -> Option<u32> {
        let is_about_one = matches!(self.verb, Verb::Retr | Verb::Top | Verb::Dele | Verb::List | Verb::Uidl);
        self.number(0).filter(|_| is_about_one)
    }

    /// How many lines TOP asks for.
    pub fn lines(&self) -> Option<u64> {
        self.number(1).filter(|_| self.verb == Verb::Top).map(u64::from)
    }

    /// The first response of a SASL exchange, if it came with the command.
    pub fn initial(&self) -> Option<&[u8]> {
        self.words().nth(1).filter(|_| self.verb == Verb::Auth)
    }

    /// The name of a mailbox, if the command tells one.
    pub fn user(&self) -> Option<String> {
        let name = match self.verb {
            Verb::User => self.argument.as_slice(),
            Verb::Apop => self.words().next()?,
            Verb::Auth => return sasl::user(self.mechanism()?, self.words().nth(1)?),
            _ => return None,
        };
        core::str::from_utf8(name).ok().map(String::from)
    }

    /// The mechanism of a SASL exchange.
    pub fn mechanism(&self) -> Option<&str> {
        let word = self.words().next().filter(|_| self.verb == Verb::Auth)?;
        core::str::from_utf8(word).ok()
    }

    /// Whether it is a SASL exchange that cannot pass through somebody in the middle.
    pub fn is_impassable(&self) -> bool {
        self.verb == Verb::Auth && !self.argument.is_empty() && !self.mechanism().is_some_and(sasl::is_passable)
    }

    fn words(&self) -> impl Iterator<Item = &[u8]> {
        self.argument.split(|&byte| byte == b' ').filter(|word| !word.is_empty())
    }

    fn number(&self, index: usize) -> Option<u32> {
        let word = self.words().nth(index)?;
        let digits = word.len() <= 10 && word.iter().all(u8::is_ascii_digit);
        digits.then(|| core::str::from_utf8(word).ok()?.parse().ok())?
    }
}

/// Without what could be a password.
impl fmt::Debug for Command {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.verb.name())
    }
}

/// The name of a mailbox in a response of a SASL exchange.
pub(super) fn user_in_response(mechanism: &str, response: &[u8]) -> Option<String> {
    sasl::user(mechanism, response)
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;

    fn wire(line: &str) -> Result<String, &'static str> {
        let command = Command::parse(line.as_bytes())?;
        let mut out = Vec::new();
        command.write(&mut out);
        Ok(String::from_utf8(out).unwrap())
    }

    #[test]
    fn commands_are_written_as_they_were_understood() {
        for (line, written) in [
            ("retr  7", "RETR 7\r\n"),
            ("TOP 1 20 ", "TOP 1 20\r\n"),
            ("pass  two  blanks ", "PASS  two  blanks \r\n"),
            ("uidl", "UIDL\r\n"),
            ("AUTH PLAIN AHRpbQB4", "AUTH PLAIN AHRpbQB4\r\n"),
        ] {
            assert_eq!(wire(line).as_deref(), Ok(written));
        }
    }

    #[test]
    fn what_is_not_understood_does_not_pass() {
        for line in
            ["", "XTND XLST", "RETR", "RETR x", "RETR 1 2", "TOP 1", "RETR 99999999999", "USER a\rQUIT", "STAT 1"]
        {
            assert!(wire(line).is_err(), "{line}");
        }
    }

    #[test]
    fn the_mailbox_is_known_and_a_password_is_not_shown() {
        let user = |line: &str| Command::parse(line.as_bytes()).unwrap().user();
        assert_eq!(user("USER tim").as_deref(), Some("tim"));
        assert_eq!(user("APOP tim c4c9334bac560ecc979e58001b3e22fb").as_deref(), Some("tim"));
        assert_eq!(user("AUTH PLAIN AHRpbQB0YW5zdGFhZnRhbnN0YWFm").as_deref(), Some("tim"));
        let pass = Command::parse(b"PASS secret").unwrap();
        assert_eq!(alloc::format!("{pass:?}").to_string(), "PASS");
    }
}
