//! The lines of LIST, UIDL and the like: what of the server's the client may see.
//!
//! A listing is not content and is not inspected, so no content may come by as one. Of a scan listing the number and the
//! size remain, of a unique-id listing the number and the id (RFC 1939, sections 5 and 7: what follows the size is
//! discouraged, and an id is of visible characters); of mechanisms the known ones, of languages a tag and a few words. The
//! lines of one listing are bounded where they do not stand for messages: [`LINES_MAX`].

use alloc::vec::Vec;

use super::capability::offers_to_client;
use super::command::Verb;
use crate::sasl;

/// Lines of what a server can do.
const LINES_MAX: u32 = 100;

/// Bytes of an id; the standard has 70, and some servers are more generous.
const ID_BYTES_MAX: usize = 255;

/// Bytes of a language tag with its description.
const LANGUAGE_BYTES_MAX: usize = 200;

/// Line to send to the client for line `number` of the server's listing; none if it is dropped.
pub fn listed_to_client(verb: Verb, number: u32, line: &[u8]) -> Option<Vec<u8>> {
    match verb {
        Verb::List | Verb::Uidl => answer_to_client(verb, line),
        _ if number >= LINES_MAX => None,
        Verb::Capa => offers_to_client(line),
        Verb::Auth => {
            let mechanism = core::str::from_utf8(line).ok()?.trim_ascii();
            sasl::is_passable(mechanism).then(|| mechanism.into())
        }
        Verb::Lang => {
            let tag = line.split(|&byte| byte == b' ').next()?;
            let is_tag = !tag.is_empty() && tag.iter().all(|byte| byte.is_ascii_alphanumeric() || *byte == b'-');
            let is_text = line.len() <= LANGUAGE_BYTES_MAX && !line.iter().any(u8::is_ascii_control);
            (is_tag && is_text).then(|| line.into())
        }
        _ => None,
    }
}

/// Text to send to the client for a one-line answer to LIST, UIDL or STAT: a number, and a size or an id. None if it
/// does not
/// begin with these. Bytes of an id that are not visible are shown as `_`, blanks within it too: cut off, ids of several
/// messages would be one.
pub fn answer_to_client(verb: Verb, text: &[u8]) -> Option<Vec<u8>> {
    let text = text.trim_ascii();
    let (first, behind) = text.split_at(text.iter().position(u8::is_ascii_whitespace)?);
    let behind = behind.trim_ascii_start();
    let is_number = |word: &[u8]| !word.is_empty() && word.len() <= 20 && word.iter().all(u8::is_ascii_digit);
    let second: Vec<u8> = match verb {
        Verb::Uidl => behind.iter().map(|&byte| if byte.is_ascii_graphic() { byte } else { b'_' }).collect(),
        _ => behind.split(u8::is_ascii_whitespace).next().filter(|word| is_number(word))?.into(),
    };
    (is_number(first) && second.len() <= ID_BYTES_MAX).then(|| [first, b" ", &second].concat())
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::String;

    fn told(verb: Verb, line: &str) -> Option<String> {
        listed_to_client(verb, 0, line.as_bytes()).map(|line| String::from_utf8(line).unwrap())
    }

    #[test]
    fn no_content_comes_by_as_a_listing() {
        for (verb, line, shown) in [
            (Verb::List, "1 120", Some("1 120")),
            (Verb::List, "1 120 Subject: evil", Some("1 120")),
            (Verb::List, "Subject: evil", None),
            (Verb::List, "1 evil", None),
            (Verb::List, "", None),
            (Verb::Uidl, "7  whqtswO00WBw418f9t5JxYwZ evil", Some("7 whqtswO00WBw418f9t5JxYwZ_evil")),
            (Verb::Uidl, "7 n\u{e4}me", Some("7 n__me")),
            (Verb::Uidl, "1\tMon 1 Jan", Some("1 Mon_1_Jan")),
            (Verb::Uidl, "1 ", None),
            (Verb::List, "1\t120", Some("1 120")),
            (Verb::Uidl, "seven name", None),
            (Verb::Auth, "PLAIN", Some("PLAIN")),
            (Verb::Auth, "From: evil", None),
            (Verb::Lang, "de Deutsch", Some("de Deutsch")),
            (Verb::Lang, "From: evil", None),
            (Verb::Capa, "TOP", Some("TOP")),
            (Verb::Noop, "1 2", None),
        ] {
            assert_eq!(told(verb, line).as_deref(), shown, "{verb:?} {line}");
        }
        let long = "x".repeat(256);
        assert_eq!(told(Verb::Uidl, &alloc::format!("1 {long}")), None);
        assert_eq!(told(Verb::Lang, &alloc::format!("de {long}")), None);
        assert!(
            listed_to_client(Verb::Capa, 100, b"TOP").is_none() && listed_to_client(Verb::List, 100, b"1 2").is_some()
        );
        assert_eq!(answer_to_client(Verb::Stat, b"2 320 and more"), Some(b"2 320".to_vec()));
        assert_eq!(answer_to_client(Verb::Stat, b"fine"), None);
    }
}
