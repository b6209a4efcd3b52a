//! Names of files and folders for mailboxes and accounts: different mailboxes have different ones, and none leads elsewhere.
//!
//! Characters that would mean something else are written as `%` and two digits. A name that is too long for a file ends in `%~` and a
//! part of its hash; [`is_cut`] tells.

use std::fmt::Write as _;

use sha2::{Digest as _, Sha256};

/// Bytes of a name, which gets a dot in front or `.mbox` behind: file systems take 255.
const BYTES_MAX: usize = 240;

/// Bytes of a long name that are kept.
const BYTES_KEPT: usize = 200;

/// Mark at the end of a name that was cut.
const CUT: &str = "%~";

/// The folder of an account.
pub fn folder(account: &str) -> String {
    let first = if account.starts_with('.') { "%2E" } else { "" };
    bounded(format!("{first}{}", escaped(account.strip_prefix('.').unwrap_or(account), &['/'])))
}

/// The name of a folder of Maildir++ for a mailbox, without the dot in front: dots part its levels.
pub fn maildir(mailbox: &str) -> String {
    let levels: Vec<String> = mailbox.split('/').map(|level| escaped(level, &['.'])).collect();
    // Where levels are empty a dot would mean another folder.
    let is_plain = levels.iter().all(|level| !level.is_empty());
    bounded(if is_plain { levels.join(".") } else { escaped(mailbox, &['.', '/']) })
}

/// The mailbox that such a folder is for.
pub fn mailbox(folder: &str) -> String {
    let mut name = folder.replace('.', "/");
    for special in ['.', '/', '\0', '%'] {
        name = name.replace(&code(special), &special.to_string());
    }
    name
}

/// The file of a mailbox in the form mbox: underscores part its levels.
pub fn mbox(mailbox: &str) -> String {
    let name = escaped(mailbox, &['_']).replace('/', "_");
    let name = if name.starts_with('.') { name.replacen('.', &code('.'), 1) } else { name };
    format!("{}.mbox", bounded(name))
}

/// Whether a name is not all of it.
pub fn is_cut(name: &str) -> bool {
    name.contains(CUT)
}

fn escaped(text: &str, special: &[char]) -> String {
    let mut out = String::new();
    for character in text.chars() {
        match special.contains(&character) || matches!(character, '%' | '\0') {
            true => out.push_str(&code(character)),
            false => out.push(character),
        }
    }
    out
}

fn code(character: char) -> String {
    format!("%{:02X}", u32::from(character))
}

fn bounded(name: String) -> String {
    if name.len() <= BYTES_MAX {
        return name;
    }
    let mut hash = String::new();
    for byte in Sha256::digest(name.as_bytes()).iter().take(16) {
        let _ = write!(hash, "{byte:02x}");
    }
    let kept = (0..=BYTES_KEPT).rev().find_map(|end| name.get(..end)).unwrap_or_default();
    format!("{kept}{CUT}{hash}")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn names_differ_and_lead_nowhere_else() {
        let long = "é".repeat(500);
        let all = [
            "INBOX",
            "a/b",
            "a_b",
            "a.b",
            "a%2Eb",
            "a%b",
            "..",
            "../../etc/passwd",
            "/",
            "//",
            "/a",
            "a/",
            "a",
            ".a",
            "%2Ea",
            "nul\0",
            &long,
            &format!("{long}x"),
            "Lists/rust",
        ];
        for name in [maildir, mbox, folder] {
            let names: BTreeSet<String> = all.iter().map(|mailbox| name(mailbox)).collect();
            assert_eq!(names.len(), all.len(), "{names:?}");
            for name in names {
                assert!(!name.contains(['/', '\0']) && name.len() <= 250 && !name.is_empty(), "{name}");
            }
        }
        assert_eq!((maildir("Lists/rust"), mbox("Lists/rust")), ("Lists.rust".into(), "Lists_rust.mbox".into()));
        for name in all.into_iter().filter(|name| name.len() < 240) {
            assert_eq!(mailbox(&maildir(name)), name);
            assert!(!maildir(name).starts_with('.') && !folder(name).starts_with('.') && !mbox(name).starts_with('.'));
        }
        assert!(is_cut(&maildir(&long)));
    }
}
