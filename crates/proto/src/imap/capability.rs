//! The capabilities (RFC 9051, section 7.2.2): which of the server's the client may see, wherever they stand.
//!
//! What is not known is not offered: it could change what a response looks like, or let content pass by another way.
//! Left out on purpose, with what they would do:
//!
//! | capability | |
//! |---|---|
//! | COMPRESS=DEFLATE | The stream could not be read. |
//! | CATENATE, URLAUTH, URL-PARTIAL, REPLACE | Messages that are put together on the server, or come by a URL. |
//! | CONVERT, FILTERS, ANNOTATE-EXPERIMENT-1, METADATA | Content under other names. |
//! | NOTIFY | Content that comes unasked. |
//! | UIDONLY | Other responses in place of FETCH. |
//! | LOGIN-REFERRALS, MAILBOX-REFERRALS | Another server, past us. |
//! | UNAUTHENTICATE | Another user in the same session. |
//! | MULTISEARCH, LANGUAGE, COMPARATOR, JMAPACCESS | Nothing here knows them. |

use alloc::vec::Vec;

use crate::sasl;

/// Capabilities that pass if the server has them.
const KNOWN: [&str; 45] = [
    "IMAP4REV1",
    "IMAP4REV2",
    "ACL",
    "APPENDLIMIT",
    "BINARY",
    "CHILDREN",
    "CONDSTORE",
    "CONTEXT=SEARCH",
    "CONTEXT=SORT",
    "CREATE-SPECIAL-USE",
    "ENABLE",
    "ESEARCH",
    "ESORT",
    "ID",
    "IDLE",
    "INPROGRESS",
    "LIST-EXTENDED",
    "LIST-MYRIGHTS",
    "LIST-STATUS",
    "LITERAL+",
    "LITERAL-",
    "MOVE",
    "MULTIAPPEND",
    "NAMESPACE",
    "OBJECTID",
    "PARTIAL",
    "PREVIEW",
    "QRESYNC",
    "QUOTA",
    "QUOTASET",
    "SASL-IR",
    "SAVEDATE",
    "SEARCH=FUZZY",
    "SEARCHRES",
    "SNIPPET=FUZZY",
    "SORT",
    "SORT=DISPLAY",
    "SPECIAL-USE",
    "STATUS=SIZE",
    "UIDPLUS",
    "UNSELECT",
    "UTF8=ACCEPT",
    "WITHIN",
    "X-GM-EXT-1",
    "XLIST",
];

/// Families of them, by how they begin.
const FAMILIES: [&str; 7] =
    ["APPENDLIMIT=", "I18NLEVEL=", "MESSAGELIMIT=", "QUOTA=", "RIGHTS=", "SAVELIMIT=", "THREAD="];

/// Capabilities that the door adds and removes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Terms {
    /// Whether STARTTLS is offered.
    pub starttls: bool,
    /// Whether the client may log in.
    pub login: bool,
}

/// Whether `name` is among the words.
pub fn offers(words: &[Vec<u8>], name: &str) -> bool {
    words.iter().any(|word| word.eq_ignore_ascii_case(name.as_bytes()))
}

/// The words that the client is told, with blanks between them.
pub fn offers_to_client(words: &[Vec<u8>], terms: Terms) -> Vec<u8> {
    let mut told: Vec<&[u8]> = words.iter().map(Vec::as_slice).filter(|word| passes(word, terms)).collect();
    if terms.starttls {
        told.push(b"STARTTLS");
    }
    if !terms.login {
        told.push(b"LOGINDISABLED");
    }
    told.join(&b' ')
}

fn passes(word: &[u8], terms: Terms) -> bool {
    let upper = word.to_ascii_uppercase();
    let Ok(upper) = core::str::from_utf8(&upper) else { return false };
    if !upper.bytes().all(|byte| byte.is_ascii_graphic() && !b"\"(){}[]\\%*".contains(&byte)) {
        return false;
    }
    if let Some(mechanism) = upper.strip_prefix("AUTH=") {
        return terms.login && sasl::is_passable(mechanism);
    }
    match upper {
        "LOGINDISABLED" | "SASL-IR" => terms.login,
        _ => KNOWN.contains(&upper) || FAMILIES.iter().any(|family| upper.starts_with(family)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::String;

    fn told(words: &str, starttls: bool, login: bool) -> String {
        let words: Vec<Vec<u8>> = words.split(' ').map(|word| word.as_bytes().to_vec()).collect();
        String::from_utf8(offers_to_client(&words, Terms { starttls, login })).unwrap()
    }

    #[test]
    fn only_what_can_pass_is_offered() {
        let all = "IMAP4rev1 STARTTLS COMPRESS=DEFLATE CATENATE NOTIFY X-ODD idle AUTH=PLAIN AUTH=GSSAPI THREAD=REFS";
        assert_eq!(told(all, false, true), "IMAP4rev1 idle AUTH=PLAIN THREAD=REFS");
        assert_eq!(told(all, true, false), "IMAP4rev1 idle THREAD=REFS STARTTLS LOGINDISABLED");
        assert_eq!(told("IMAP4rev2 LOGINDISABLED", false, true), "IMAP4rev2 LOGINDISABLED");
        assert_eq!(told("IMAP4rev2 LOGINDISABLED", true, false), "IMAP4rev2 STARTTLS LOGINDISABLED");
    }
}
