//! Commands (RFC 5321, section 4.1), frame first: a line is found by its end before anybody looks at its words.

use super::Reply;

/// A command with its argument, not yet looked into.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Command<'a> {
    Hello { domain: &'a str, verb: Hello },
    Mail(&'a str),
    Rcpt(&'a str),
    Data,
    Bdat { bytes: u64, last: bool },
    Rset,
    Noop,
    Vrfy,
    Help,
    Quit,
    Xforward(&'a str),
    Xclient(&'a str),
    StartTls,
    Auth { mechanism: &'a str, initial: Option<&'a str> },
}

/// How a client greets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Hello {
    Helo,
    Ehlo,
    Lhlo,
}

impl Hello {
    /// Reply to a greeting without a name.
    fn syntax(self) -> &'static str {
        match self {
            Hello::Helo => "Syntax: HELO hostname",
            Hello::Ehlo => "Syntax: EHLO hostname",
            Hello::Lhlo => "Syntax: LHLO hostname",
        }
    }
}

impl Command<'_> {
    /// Commands that RFC 3207, section 4, allows before TLS where that is required. A chunk has to be read in any
    /// case: it is refused for want of a sender.
    pub fn is_allowed_in_the_clear(&self) -> bool {
        use Command::{Bdat, Hello, Noop, Quit, StartTls};
        matches!(self, Hello { .. } | StartTls | Noop | Quit | Bdat { .. })
    }
}

impl<'a> Command<'a> {
    /// Reads a line without its end.
    pub fn parse(line: &'a [u8]) -> Result<Command<'a>, Reply> {
        let line = core::str::from_utf8(line).map_err(|_| Reply::new(500, (5, 5, 2), "Not UTF-8"))?;
        if line.bytes().any(|byte| byte.is_ascii_control() && byte != b'\t') {
            return Err(Reply::new(500, (5, 5, 2), "Control characters in a command"));
        }
        let line = line.trim_end_matches([' ', '\t']);
        let (verb, argument) = line.split_once([' ', '\t']).unwrap_or((line, ""));
        let argument = argument.trim_start_matches([' ', '\t']);
        let hello = |verb: Hello| match argument {
            "" => Err(Reply::new(501, (5, 5, 4), verb.syntax())),
            domain => Ok(Command::Hello { domain, verb }),
        };
        match verb.to_ascii_uppercase().as_str() {
            "HELO" => hello(Hello::Helo),
            "EHLO" => hello(Hello::Ehlo),
            "LHLO" => hello(Hello::Lhlo),
            "MAIL" => Ok(Command::Mail(behind(argument, "FROM:")?)),
            "RCPT" => Ok(Command::Rcpt(behind(argument, "TO:")?)),
            "DATA" if argument.is_empty() => Ok(Command::Data),
            "BDAT" => Command::bdat(argument),
            "RSET" if argument.is_empty() => Ok(Command::Rset),
            "QUIT" if argument.is_empty() => Ok(Command::Quit),
            "STARTTLS" if argument.is_empty() => Ok(Command::StartTls),
            "DATA" | "RSET" | "QUIT" | "STARTTLS" => Err(Reply::new(501, (5, 5, 4), "No argument allowed")),
            "NOOP" => Ok(Command::Noop),
            "VRFY" => Ok(Command::Vrfy),
            "HELP" => Ok(Command::Help),
            "XFORWARD" => Ok(Command::Xforward(argument)),
            "XCLIENT" => Ok(Command::Xclient(argument)),
            "AUTH" => Command::auth(argument),
            "EXPN" | "ETRN" | "TURN" => Err(Reply::new(502, (5, 5, 1), "Command not implemented")),
            _ => Err(Reply::new(500, (5, 5, 2), "Command unrecognized")),
        }
    }

    fn auth(argument: &'a str) -> Result<Command<'a>, Reply> {
        let mut words = argument.split([' ', '\t']).filter(|word| !word.is_empty());
        match (words.next(), words.next(), words.next()) {
            (Some(mechanism), initial, None) => Ok(Command::Auth { mechanism, initial }),
            _ => Err(Reply::new(501, (5, 5, 4), "Syntax: AUTH mechanism [response]")),
        }
    }

    fn bdat(argument: &str) -> Result<Command<'a>, Reply> {
        let wrong = || Reply::new(501, (5, 5, 4), "Syntax: BDAT count [LAST]");
        let mut words = argument.split_ascii_whitespace();
        let count = words.next().filter(|word| word.len() <= 18 && word.bytes().all(|byte| byte.is_ascii_digit()));
        let bytes = count.and_then(|word| word.parse().ok()).ok_or_else(wrong)?;
        let last = match words.next() {
            None => false,
            Some(word) if word.eq_ignore_ascii_case("LAST") => true,
            Some(_) => return Err(wrong()),
        };
        if words.next().is_some() {
            return Err(wrong());
        }
        Ok(Command::Bdat { bytes, last })
    }
}

/// Whether a line belongs to another protocol: a request of HTTP, a header field, or bytes that are no text, such as a
/// handshake. What follows it would be read as commands that somebody else has written.
pub(super) fn is_foreign(line: &[u8]) -> bool {
    const VERBS: [&[u8]; 9] = [b"CONNECT", b"DELETE", b"GET", b"HEAD", b"OPTIONS", b"PATCH", b"POST", b"PUT", b"TRACE"];
    let Some(first) = line.first() else { return false };
    let verb = line.split(|byte| matches!(byte, b' ' | b'\t')).next().unwrap_or_default();
    let is_text = first.is_ascii_alphabetic() || matches!(first, b' ' | b'\t');
    !is_text || verb.ends_with(b":") || VERBS.iter().any(|known| verb.eq_ignore_ascii_case(known))
}

fn behind<'a>(argument: &'a str, keyword: &str) -> Result<&'a str, Reply> {
    match argument.split_at_checked(keyword.len()) {
        Some((word, rest)) if word.eq_ignore_ascii_case(keyword) => Ok(rest),
        _ => Err(Reply::new(501, (5, 5, 4), "Syntax: MAIL FROM:<path>, RCPT TO:<path>")),
    }
}
