//! Addresses without a domain in a header that a command has written: they get the one of this host, as those of the envelope do.

use keep::header::{fields, is_named};

/// Fields with addresses (RFC 5322, sections 3.6.2 and 3.6.3).
const FIELDS: [&[u8]; 5] = [b"from", b"sender", b"reply-to", b"to", b"cc"];

/// Addresses of a header that get a domain; others stay as they are.
const ADDRESSES_MAX: usize = 1_000;

/// A header whose addresses have domains.
pub(super) fn qualified(header: &[u8], hostname: &str) -> Vec<u8> {
    let mut out = Vec::with_capacity(header.len());
    let mut left = ADDRESSES_MAX;
    for field in fields(header) {
        let colon = field.iter().position(|&byte| byte == b':');
        match colon.filter(|_| FIELDS.iter().any(|name| is_named(field, name))) {
            Some(colon) => {
                let (name, list) = field.split_at(colon + 1);
                out.extend_from_slice(name);
                List { out: &mut out, domain: hostname, left: &mut left, address: Address::default() }.read(list);
            }
            None => out.extend_from_slice(field),
        }
    }
    out
}

/// A list of addresses while it is read.
struct List<'a> {
    out: &'a mut Vec<u8>,
    domain: &'a str,
    left: &'a mut usize,
    address: Address,
}

/// The address that is being read.
#[derive(Default)]
struct Address {
    words: usize,
    /// It has something besides letters of atoms outside of comments.
    is_other: bool,
    /// The end of its last word, in what is written.
    end: usize,
    is_in_word: bool,
}

impl List<'_> {
    fn read(mut self, list: &[u8]) {
        let (mut comments, mut is_quoted, mut is_escaped, mut is_angle) = (0usize, false, false, false);
        for &byte in list {
            let was_escaped = std::mem::replace(&mut is_escaped, false);
            match byte {
                _ if was_escaped => {}
                b'\\' if is_quoted || comments > 0 => is_escaped = true,
                b'"' if comments == 0 => (is_quoted, self.address.is_other) = (!is_quoted, true),
                _ if is_quoted => {}
                b'(' => (comments, self.address.is_in_word) = (comments + 1, false),
                b')' if comments > 0 => comments -= 1,
                _ if comments > 0 => {}
                b'<' => {
                    // What stood before is a name.
                    is_angle = true;
                    self.address = Address::default();
                }
                b'>' if is_angle => {
                    is_angle = false;
                    self.end();
                    self.address.is_other = true;
                }
                // A name of a group stands before a colon.
                b':' if !is_angle => self.address = Address::default(),
                b',' | b';' if !is_angle => self.end(),
                b' ' | b'\t' | b'\r' | b'\n' => self.address.is_in_word = false,
                byte => self.word(byte),
            }
            self.out.push(byte);
            if self.address.is_in_word {
                self.address.end = self.out.len();
            }
        }
        let is_whole = comments == 0 && !is_quoted && !is_angle;
        if is_whole {
            self.end();
        }
    }

    fn word(&mut self, byte: u8) {
        let address = &mut self.address;
        let is_letter = byte.is_ascii_alphanumeric() || b"!#$%&'*+-/=?^_`{|}~.".contains(&byte) || byte >= 0x80;
        address.is_other |= !is_letter;
        address.words += usize::from(!std::mem::replace(&mut address.is_in_word, true));
    }

    /// An address ends here: one word is a user of this host.
    fn end(&mut self) {
        let Address { words, is_other, end, .. } = std::mem::take(&mut self.address);
        if words == 1 && !is_other && *self.left > 0 {
            *self.left -= 1;
            let domain = format!("@{}", self.domain);
            self.out.splice(end..end, domain.into_bytes());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_without_a_domain_get_that_of_this_host() {
        for (text, wanted) in [
            ("From: root (Cron Daemon)\r\n", "From: root@mx.test (Cron Daemon)\r\n"),
            ("from: Ann <ann>\r\n", "from: Ann <ann@mx.test>\r\n"),
            ("From: \"Cron, (x\" <root>\r\n", "From: \"Cron, (x\" <root@mx.test>\r\n"),
            ("To: a,b@x.test, c\r\n d\r\n", "To: a@mx.test,b@x.test, c\r\n d\r\n"),
            ("Cc: a.b,\r\n\tc (d, \\) e)\r\n", "Cc: a.b@mx.test,\r\n\tc@mx.test (d, \\) e)\r\n"),
            ("To: undisclosed-recipients:;\r\n", "To: undisclosed-recipients:;\r\n"),
            ("To: team: ann, <bob>;\r\n", "To: team: ann@mx.test, <bob@mx.test>;\r\n"),
            ("To: <@a,@b:c@d>\r\n", "To: <@a,@b:c@d>\r\n"),
            ("Sender: ann\r\nReply-To: <>\r\n", "Sender: ann@mx.test\r\nReply-To: <>\r\n"),
            ("To: \"ann\", Ann Example\r\n", "To: \"ann\", Ann Example\r\n"),
            ("To: a (not, closed\r\n", "To: a (not, closed\r\n"),
            ("To:\r\nSubject: root\r\nX-To: root\r\n\r\n", "To:\r\nSubject: root\r\nX-To: root\r\n\r\n"),
        ] {
            assert_eq!(String::from_utf8(qualified(text.as_bytes(), "mx.test")).unwrap(), wanted);
        }
    }

    #[test]
    fn a_header_of_many_addresses_does_not_grow_without_end() {
        let header = format!("To: {}\r\n", "a,".repeat(100_000));
        let most = header.len() + ADDRESSES_MAX * "@mx.test".len();
        assert_eq!(qualified(header.as_bytes(), "mx.test").len(), most);
    }
}
