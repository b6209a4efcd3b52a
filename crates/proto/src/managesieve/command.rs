//! The grammar of commands (RFC 5804, sections 2 and 4).

use alloc::string::String;
use alloc::vec::Vec;

/// A command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Command {
    /// AUTHENTICATE, with the first response as it stands, in Base64.
    Authenticate {
        /// The mechanism, in upper case.
        mechanism: String,
        /// The first response.
        initial: Option<Vec<u8>>,
    },
    /// STARTTLS.
    StartTls,
    /// LOGOUT.
    Logout,
    /// CAPABILITY.
    Capability,
    /// HAVESPACE.
    HaveSpace {
        /// Name of the script.
        name: String,
        /// Its size.
        bytes: u64,
    },
    /// PUTSCRIPT.
    PutScript {
        /// Name of the script.
        name: String,
        /// Its text.
        script: Vec<u8>,
    },
    /// LISTSCRIPTS.
    ListScripts,
    /// SETACTIVE; an empty name is no script.
    SetActive(String),
    /// GETSCRIPT.
    GetScript(String),
    /// DELETESCRIPT.
    DeleteScript(String),
    /// RENAMESCRIPT.
    RenameScript {
        /// Its name.
        from: String,
        /// The one that it gets.
        to: String,
    },
    /// CHECKSCRIPT.
    CheckScript(Vec<u8>),
    /// NOOP, with what is to be said again.
    Noop(Option<Vec<u8>>),
    /// UNAUTHENTICATE.
    Unauthenticate,
}

/// A word of a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Token {
    Atom(String),
    Text(Vec<u8>),
}

/// Words of a command: a client sends four at most.
const TOKENS_MAX: usize = 8;

/// Reads a line, or what of it stands before a literal; its size if it ends with one.
pub(super) fn tokens(line: &[u8], tokens: &mut Vec<Token>) -> Result<Option<u64>, &'static str> {
    let mut rest = line;
    loop {
        let blanks = rest.iter().take_while(|&&byte| byte == b' ').count();
        rest = rest.get(blanks..).unwrap_or_default();
        let Some(&first) = rest.first() else { return Ok(None) };
        if tokens.len() >= TOKENS_MAX {
            return Err("Too many arguments");
        }
        let (token, behind) = match first {
            b'"' => quoted(rest).ok_or("A string has no end")?,
            b'{' => return literal(rest).map(Some).ok_or("Not a literal: {SIZE+}"),
            _ => atom(rest).ok_or("Neither a word nor a string")?,
        };
        if !matches!(behind.first(), None | Some(b' ')) {
            return Err("Blanks go between arguments");
        }
        tokens.push(token);
        rest = behind;
    }
}

fn atom(text: &[u8]) -> Option<(Token, &[u8])> {
    let length = text.iter().take_while(|byte| byte.is_ascii_alphanumeric() || b"-_*".contains(byte)).count();
    let (atom, behind) = text.split_at_checked(length).filter(|_| length > 0)?;
    Some((Token::Atom(core::str::from_utf8(atom).ok()?.into()), behind))
}

fn quoted(text: &[u8]) -> Option<(Token, &[u8])> {
    let mut out = Vec::new();
    let mut rest = text.get(1..)?;
    loop {
        match rest {
            [b'"', behind @ ..] => return Some((Token::Text(out), behind)),
            [b'\\', byte @ (b'"' | b'\\'), behind @ ..] => {
                out.push(*byte);
                rest = behind;
            }
            [byte, behind @ ..] if !matches!(*byte, 0 | b'\r' | b'\\') => {
                out.push(*byte);
                rest = behind;
            }
            _ => return None,
        }
    }
}

/// `{SIZE+}` at the end of a line; clients do not wait (section 4).
fn literal(text: &[u8]) -> Option<u64> {
    let digits = text.strip_prefix(b"{")?.strip_suffix(b"+}")?;
    let is_number = (1..=10).contains(&digits.len()) && digits.iter().all(u8::is_ascii_digit);
    let number: u64 = core::str::from_utf8(digits).ok().filter(|_| is_number)?.parse().ok()?;
    (number <= u64::from(u32::MAX)).then_some(number)
}

/// The size of the literal that follows a line, whatever else is wrong with it.
pub(super) fn trailing_literal(line: &[u8]) -> Option<u64> {
    literal(line.get(line.iter().rposition(|&byte| byte == b'{')?..)?)
}

impl Command {
    /// Reads the words of a command.
    pub(super) fn parse(tokens: Vec<Token>) -> Result<Command, &'static str> {
        const ARGUMENTS: &str = "Wrong arguments";
        let mut tokens = tokens.into_iter();
        let Some(Token::Atom(verb)) = tokens.next() else { return Err("A command is needed") };
        let arguments: Vec<Token> = tokens.collect();
        let verb = verb.to_ascii_uppercase();
        let text = |token: &Token| match token {
            Token::Text(text) => Ok(text.clone()),
            Token::Atom(_) => Err(ARGUMENTS),
        };
        let name = |token: &Token| String::from_utf8(text(token)?).map_err(|_| "A name is not UTF-8");
        Ok(match (verb.as_str(), arguments.as_slice()) {
            ("AUTHENTICATE", [mechanism, initial @ ..]) if initial.len() < 2 => Command::Authenticate {
                mechanism: name(mechanism)?.to_ascii_uppercase(),
                initial: initial.first().map(text).transpose()?,
            },
            ("STARTTLS", []) => Command::StartTls,
            ("LOGOUT", []) => Command::Logout,
            ("CAPABILITY", []) => Command::Capability,
            ("HAVESPACE", [of, Token::Atom(bytes)]) => {
                let is_number = bytes.len() <= 10 && bytes.bytes().all(|byte| byte.is_ascii_digit());
                let bytes = bytes.parse().ok().filter(|_| is_number).ok_or(ARGUMENTS)?;
                Command::HaveSpace { name: name(of)?, bytes }
            }
            ("PUTSCRIPT", [of, script]) => Command::PutScript { name: name(of)?, script: text(script)? },
            ("LISTSCRIPTS", []) => Command::ListScripts,
            ("SETACTIVE", [of]) => Command::SetActive(name(of)?),
            ("GETSCRIPT", [of]) => Command::GetScript(name(of)?),
            ("DELETESCRIPT", [of]) => Command::DeleteScript(name(of)?),
            ("RENAMESCRIPT", [from, to]) => Command::RenameScript { from: name(from)?, to: name(to)? },
            ("CHECKSCRIPT", [script]) => Command::CheckScript(text(script)?),
            ("NOOP", []) => Command::Noop(None),
            ("NOOP", [said]) => Command::Noop(Some(text(said)?)),
            ("UNAUTHENTICATE", []) => Command::Unauthenticate,
            ("AUTHENTICATE" | "STARTTLS" | "LOGOUT" | "CAPABILITY" | "HAVESPACE" | "PUTSCRIPT" | "LISTSCRIPTS", _)
            | ("SETACTIVE" | "GETSCRIPT" | "DELETESCRIPT" | "RENAMESCRIPT" | "CHECKSCRIPT" | "NOOP", _)
            | ("UNAUTHENTICATE", _) => return Err(ARGUMENTS),
            _ => return Err("Unknown command"),
        })
    }
}

#[cfg(test)]
mod tests {
    use alloc::string::ToString;

    use super::*;

    fn read(line: &str) -> Result<Command, &'static str> {
        let mut words = Vec::new();
        match tokens(line.as_bytes(), &mut words)? {
            Some(_) => Err("a literal"),
            None => Command::parse(words),
        }
    }

    #[test]
    fn commands_are_read() {
        let name = |name: &str| name.to_string();
        assert_eq!(read("setactive \"a \\\"b\\\\\""), Ok(Command::SetActive(name("a \"b\\"))));
        assert_eq!(read("HAVESPACE \"x\" 99"), Ok(Command::HaveSpace { name: name("x"), bytes: 99 }));
        assert_eq!(
            read("Authenticate \"plain\" \"AA==\""),
            Ok(Command::Authenticate { mechanism: name("PLAIN"), initial: Some(b"AA==".to_vec()) })
        );
        assert_eq!(read("NOOP"), Ok(Command::Noop(None)));
        for wrong in [
            "",
            "NOPE",
            "GETSCRIPT",
            "GETSCRIPT x",
            "GETSCRIPT \"x",
            "GETSCRIPT \"x\"y",
            "GETSCRIPT \"x\\\"",
            "HAVESPACE \"x\" -1",
            "HAVESPACE \"x\" 99999999999",
            "\"NOOP\"",
            "NOOP \"\0\"",
            "NOOP \"\\n\"",
            "PUTSCRIPT \"a\" {5}",
            "PUTSCRIPT \"a\" {99999999999+}",
            "PUTSCRIPT \"a\" {5+} x",
            "1 2 3 4 5 6 7 8 9",
        ] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
        let mut words = Vec::new();
        assert_eq!(tokens(b"PUTSCRIPT \"a\" {4294967295+}", &mut words), Ok(Some(4_294_967_295)));
    }
}
