//! Syntax around the messages of an APPEND (RFC 9051, section 6.3.12; RFC 3502; RFC 6855).
//!
//! ```text
//! APPEND mailbox [(flags)] ["date"] [UTF8 (] {n} message [)] [ (flags) "date" {n} message ...]
//! ```
//!
//! For hosts that inspect what is appended: a message that is put together of parts on the server (CATENATE) is refused, since its
//! parts are not seen. Hosts that keep the mail read it by [`appended`](super::appended).

use super::command::{Command, Piece};

/// Whether the message may follow; what is wrong if not.
///
/// # Errors
/// What the client is told.
pub(super) fn check_head(command: &Command) -> Result<(), &'static str> {
    let text = match command.pieces.as_slice() {
        [Piece::Text(text)] => after_string(text).ok_or("Not an APPEND")?,
        [Piece::Literal { .. }, Piece::Text(text)] => text,
        _ => return Err("Not an APPEND"),
    };
    if options(text) { Ok(()) } else { Err("Not an APPEND that can be inspected") }
}

/// Whether this may stand behind the last message.
pub(super) fn check_tail(text: &[u8]) -> bool {
    matches!(text.trim_ascii(), b"" | b")")
}

/// Whether this may stand between two messages.
pub(super) fn check_between(text: &[u8]) -> bool {
    options(text.strip_prefix(b")").unwrap_or(text))
}

/// Text after the mailbox's name.
fn after_string(text: &[u8]) -> Option<&[u8]> {
    let text = text.trim_ascii_start();
    match text.strip_prefix(b"\"") {
        None => text.iter().position(|&byte| byte == b' ').map(|at| &text[at..]),
        Some(rest) => {
            let mut escaped = false;
            let end = rest.iter().position(|&byte| {
                let ends = byte == b'"' && !escaped;
                escaped = byte == b'\\' && !escaped;
                ends
            })?;
            Some(&rest[end + 1..])
        }
    }
}

/// Flags, a date and `UTF8 (`, each at most once, in this order, with a blank before and after.
fn options(text: &[u8]) -> bool {
    let Some(mut text) = text.strip_prefix(b" ") else { return false };
    if text.starts_with(b"(") {
        let Some(end) = text.iter().position(|&byte| byte == b')') else { return false };
        if text[1..end].iter().any(|byte| b"(\"{".contains(byte)) || text.get(end + 1) != Some(&b' ') {
            return false;
        }
        text = &text[end + 2..];
    }
    if let Some(rest) = text.strip_prefix(b"\"") {
        let Some(end) = rest.iter().position(|&byte| byte == b'"') else { return false };
        if rest.get(end + 1) != Some(&b' ') {
            return false;
        }
        text = &rest[end + 2..];
    }
    text.is_empty() || text.eq_ignore_ascii_case(b"UTF8 (")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head(line: &str) -> Result<(), &'static str> {
        check_head(&Command::parse(line.as_bytes(), false).unwrap())
    }

    #[test]
    fn what_servers_take_passes() {
        for line in [
            "a APPEND INBOX ",
            "a APPEND \"a \\\"b\" (\\Seen $x) ",
            "a APPEND x (\\Seen) \"17-Jul-1996 02:44:25 -0700\" ",
            "a APPEND x UTF8 (",
        ] {
            assert_eq!(head(line), Ok(()), "{line}");
        }
        assert!(check_tail(b"") && check_tail(b")") && check_between(b") (\\Seen) ") && check_between(b" "));
    }

    #[test]
    fn what_cannot_be_inspected_does_not() {
        for line in [
            "a APPEND INBOX",
            "a APPEND INBOX CATENATE (TEXT ",
            "a APPEND INBOX (\\Seen) CATENATE (URL \"/x\" TEXT ",
            "a APPEND INBOX (\\Seen)",
            "a APPEND INBOX ANNOTATION (/comment (value \"x\")) ",
        ] {
            assert!(head(line).is_err(), "{line}");
        }
        assert!(!check_tail(b" NOOP") && !check_between(b"") && !check_between(b") x "));
    }
}
