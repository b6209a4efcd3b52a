//! The base subject of a message: without `Re:`, `(fwd)` and the names of lists (RFC 5256, section 2.1).

use alloc::borrow::ToOwned;
use alloc::string::String;
use alloc::vec::Vec;

use crate::normal::{capital, composed};

/// The base subject in capitals and composed characters, and whether it is one of a reply or of a forwarded message. Time grows with
/// the square of the length: callers bound it.
pub fn base(subject: &str) -> (String, bool) {
    let words: Vec<&str> = subject.split_whitespace().collect();
    let capitals: String = words.join(" ").chars().map(capital).collect();
    let whole = composed(&capitals);
    let mut rest = &*whole;
    let mut is_reply = false;
    loop {
        rest = rest.trim_end();
        if let Some(before) = rest.strip_suffix("(FWD)") {
            (rest, is_reply) = (before, true);
            continue;
        }
        rest = rest.trim_start();
        if let Some(behind) = leader(rest) {
            (rest, is_reply) = (behind, true);
            continue;
        }
        if let Some(behind) = blob(rest).filter(|behind| !behind.trim().is_empty()) {
            rest = behind;
            continue;
        }
        match rest.strip_prefix("[FWD:").and_then(|rest| rest.strip_suffix(']')) {
            Some(inner) => (rest, is_reply) = (inner, true),
            None => return (rest.to_owned(), is_reply),
        }
    }
}

/// Strips `[list] Re: ` and the like from the beginning.
fn leader(text: &str) -> Option<&str> {
    let mut rest = text;
    while let Some(behind) = blob(rest) {
        rest = behind;
    }
    let words = ["RE", "FWD", "FW"];
    words.iter().find_map(|word| {
        let behind = rest.strip_prefix(word)?.trim_start();
        blob(behind).unwrap_or(behind).strip_prefix(':')
    })
}

/// Strips `[list] ` from the beginning.
fn blob(text: &str) -> Option<&str> {
    let (inside, behind) = text.strip_prefix('[')?.split_once(']')?;
    (!inside.contains('[') && !inside.starts_with("FWD:")).then(|| behind.trim_start())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn subjects_are_the_same_with_and_without_what_was_added() {
        assert_eq!(base("Re: \u{e4}pfel"), (base("A\u{308}PFEL").0, true));
        for (subject, wanted) in [
            ("hello", ("HELLO", false)),
            ("Re: hello", ("HELLO", true)),
            ("RE :  [list] Fwd[2]: hello  (fwd) ", ("HELLO", true)),
            ("[list] hello", ("HELLO", false)),
            ("[list]", ("[LIST]", false)),
            ("[fwd: hello]", ("HELLO", true)),
            ("Reply", ("REPLY", false)),
            ("re:", ("", true)),
            ("[[x]", ("[[X]", false)),
        ] {
            let (text, is_reply) = base(subject);
            assert_eq!((text.as_str(), is_reply), wanted, "{subject}");
        }
    }
}
