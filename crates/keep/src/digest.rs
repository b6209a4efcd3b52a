//! Digest of a message, made once as it arrives: the places of its parts, and ENVELOPE, BODY and BODYSTRUCTURE as
//! IMAP sends them (RFC 9051, section 7.5.2).
//!
//! Line by line, as other IMAP servers read: a boundary ends what is within it, a header ends at an empty line, and whatever
//! transfer coding a `message/rfc822` claims, it is read as it stands. Not the reading of the inspection, which considers
//! that readers differ; nothing is decided by this one.
//!
//! Bounds: [`PARTS_MAX`], [`DEPTH_MAX`], [`ADDRESSES_BYTES_MAX`] for the message, and [`FIELDS_BYTES_MAX`] for addresses of a part and for all
//! other fields; what is beyond is content of the part around it, or left out. A digest that is larger than [`DIGEST_BYTES_MAX`] is not stored, and made again when it is asked for.

mod address;
mod header;
mod reader;
mod render;

use alloc::vec;
use alloc::vec::Vec;

use crate::digest::reader::Entity;

pub use reader::Digest;

/// Parts of one message.
pub const PARTS_MAX: usize = 1_000;
/// How deep they are nested.
pub const DEPTH_MAX: usize = 32;
/// Lists of addresses in the header of the message that are kept, in bytes: of 3,000 recipients.
pub const ADDRESSES_BYTES_MAX: usize = 256 << 10;
/// Lists of addresses in the header of a part that are kept, and other header fields of the message or a part, in bytes.
pub const FIELDS_BYTES_MAX: usize = 32 << 10;
/// The largest digest that is stored.
pub const DIGEST_BYTES_MAX: usize = 60 << 10;

const VERSION: u8 = 1;

/// A digest that was read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Known {
    /// ENVELOPE, as FETCH has it.
    pub envelope: Vec<u8>,
    /// As FETCH tells it.
    pub body: Vec<u8>,
    /// As FETCH tells it.
    pub body_structure: Vec<u8>,
    /// The message.
    pub root: Part,
    /// Its [`thread`]; 0 if it names none.
    pub thread: u64,
}

/// A text of a digest that was stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs, reason = "their names are those of the items of FETCH")]
pub enum Text {
    Envelope,
    Body,
    BodyStructure,
}

impl Text {
    /// Reads it, and nothing else; nothing if the digest is of another kind.
    pub fn of(self, digest: &[u8]) -> Option<&[u8]> {
        let mut rest = digest.strip_prefix(&[VERSION])?;
        for _ in 0..self as usize {
            text(&mut rest)?;
        }
        text(&mut rest)
    }
}

/// Thread of a message, by its digest: the hash of the first message that its header refers to, by `References` or else
/// `In-Reply-To`, or else of its own `Message-ID`; 0 if it names none.
pub fn thread(digest: &[u8]) -> u64 {
    Known::decode(digest).map_or(0, |known| known.thread)
}

/// Whether a structure has parts of another type than plain text: pages, documents, files with names.
pub fn has_more_than_text(body_structure: &[u8]) -> bool {
    const OTHERS: [&[u8]; 6] = [b"\"html\"", b"\"application\"", b"\"image\"", b"\"audio\"", b"\"video\"", b"\"name\""];
    let told = body_structure.to_ascii_lowercase();
    OTHERS.iter().any(|other| memchr::memmem::find(&told, other).is_some())
}

/// The mailbox of the first address of a field; empty if there is none.
pub fn first_mailbox(field: &[u8]) -> Vec<u8> {
    address::list(field).into_iter().next().and_then(|address| address.mailbox).unwrap_or_default()
}

/// A message or a part: where it is. Offsets from the start of the message.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Part {
    /// Where its header begins.
    pub header: u64,
    /// Where its body begins.
    pub body: u64,
    /// Where it ends.
    pub end: u64,
    /// Whether it is a `message/rfc822`: it has one part, the message in it.
    pub is_message: bool,
    /// The parts of a multipart.
    pub parts: Vec<Part>,
}

impl Known {
    /// Makes the digest of an entity that was read whole.
    fn of(root: &Entity) -> Known {
        let (mut envelope, mut body, mut body_structure) = (Vec::new(), Vec::new(), Vec::new());
        render::envelope(root, &mut envelope);
        render::body(root, false, &mut body);
        render::body(root, true, &mut body_structure);
        Known { envelope, body, body_structure, root: root.part(), thread: header::thread(&root.fields) }
    }

    fn encode(&self) -> Vec<u8> {
        let mut out = vec![VERSION];
        for text in [&self.envelope, &self.body, &self.body_structure] {
            put(&mut out, text.len() as u64);
            out.extend_from_slice(text);
        }
        self.root.encode(&mut out);
        put(&mut out, self.thread);
        out
    }

    /// Reads what [`Digest::finish`] made; nothing if it is of another kind.
    pub fn decode(bytes: &[u8]) -> Option<Known> {
        let mut rest = bytes.strip_prefix(&[VERSION])?;
        let mut text = || text(&mut rest).map(<[u8]>::to_vec);
        let (envelope, body, body_structure) = (text()?, text()?, text()?);
        let root = Part::decode(&mut rest, DEPTH_MAX * 2 + 2)?;
        // Digests of earlier versions end here.
        let thread = number(&mut rest).unwrap_or(0);
        Some(Known { envelope, body, body_structure, root, thread })
    }
}

impl Part {
    fn encode(&self, out: &mut Vec<u8>) {
        let kind = u64::from(self.is_message);
        for value in [self.header, self.body - self.header, self.end - self.body, kind, self.parts.len() as u64] {
            put(out, value);
        }
        self.parts.iter().for_each(|part| part.encode(out));
    }

    fn decode(from: &mut &[u8], depth: usize) -> Option<Part> {
        let header = number(from)?;
        let body = header.checked_add(number(from)?)?;
        let end = body.checked_add(number(from)?)?;
        let (is_message, count) = (number(from)? == 1, number(from)?);
        let depth = depth.checked_sub(1)?;
        let mut parts = Vec::new();
        for _ in 0..count.min(PARTS_MAX as u64) {
            parts.push(Part::decode(from, depth)?);
        }
        Some(Part { header, body, end, is_message, parts })
    }

    /// The part of this message with these numbers (RFC 9051, section 6.4.5.1).
    pub fn at(&self, path: &[u32]) -> Option<&Part> {
        match path.split_first() {
            None => Some(self),
            // What has no parts is its own first part.
            Some((1, rest)) if self.is_message || self.parts.is_empty() => self.within(rest),
            Some((_, _)) if self.is_message || self.parts.is_empty() => None,
            Some(_) => self.within(path),
        }
    }

    fn within(&self, path: &[u32]) -> Option<&Part> {
        let Some((&number, rest)) = path.split_first() else { return Some(self) };
        if let Some(message) = self.message() {
            return message.at(path);
        }
        let index = usize::try_from(number).ok()?.checked_sub(1)?;
        self.parts.get(index)?.within(rest)
    }

    /// The message whose header and text `HEADER` and `TEXT` of this part are.
    pub fn message(&self) -> Option<&Part> {
        self.parts.first().filter(|_| self.is_message)
    }
}

fn put(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

fn text<'a>(from: &mut &'a [u8]) -> Option<&'a [u8]> {
    let length = usize::try_from(number(from)?).ok()?;
    let (text, rest) = from.split_at_checked(length)?;
    *from = rest;
    Some(text)
}

fn number(from: &mut &[u8]) -> Option<u64> {
    let mut value = 0u64;
    for shift in (0..64).step_by(7) {
        let (&byte, rest) = from.split_first()?;
        *from = rest;
        value |= u64::from(byte & 0x7f).checked_shl(shift)?;
        if byte < 0x80 {
            return Some(value);
        }
    }
    None
}

/// Reads a message however it is cut, and its digest again: for fuzzing.
pub fn fuzz_digest(data: &[u8]) {
    let (cut, data) = data.split_first().map_or((0, data), |(&cut, data)| (usize::from(cut), data));
    let mut whole = Digest::default();
    whole.read(data);
    let whole = whole.known();
    let mut pieces = Digest::default();
    data.chunks(cut.max(1)).for_each(|piece| pieces.read(piece));
    assert_eq!(whole, pieces.known(), "however it is cut");
    assert_eq!(Known::decode(&whole.encode()).as_ref(), Some(&whole));
    assert!(whole.root.end == data.len() as u64);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn known(mail: &str) -> Known {
        let mail = mail.replace('\n', "\r\n");
        let mut digest = Digest::default();
        digest.read(mail.as_bytes());
        let known = digest.known();
        for cut in 0..mail.len() {
            let mut digest = Digest::default();
            digest.read(&mail.as_bytes()[..cut]);
            digest.read(&mail.as_bytes()[cut..]);
            assert_eq!(digest.known(), known, "cut at {cut}");
        }
        assert_eq!(Known::decode(&known.encode()), Some(known.clone()));
        known
    }

    fn body(mail: &str) -> String {
        String::from_utf8(known(mail).body).unwrap()
    }

    const NESTED: &str = "From: Ann <ann@example.org>\nSubject: outer\nContent-Type: multipart/mixed; boundary=\"x\"\n\npre\n--x\n\
        Content-Type: text/plain; charset=utf-8\n\none\ntwo\n--x\nContent-Type: message/rfc822\nContent-ID: <i>\n\n\
        Subject: inner\nContent-Type: multipart/alternative; boundary=y\n\n--y\n\na\n--y\nContent-Type: text/html\n\nb\n\
        --y--\n\n--x\nContent-Type: image/png; name=a.png\nContent-Transfer-Encoding: base64\n\nAAAA\n--x--\npost\n";

    #[test]
    fn structures_are_told() {
        assert_eq!(body("Subject: x\n\na\nb\n"), r#"("text" "plain" ("charset" "us-ascii") NIL NIL "7bit" 6 2)"#);
        let told = body(NESTED);
        let wanted = concat!(
            r#"(("text" "plain" ("charset" "utf-8") NIL NIL "7bit" 8 1)"#,
            r#"("message" "rfc822" NIL "<i>" NIL "7bit" 119 "#,
            r#"(NIL "inner" NIL NIL NIL NIL NIL NIL NIL NIL) "#,
            r#"(("text" "plain" ("charset" "us-ascii") NIL NIL "7bit" 1 0)"#,
            r#"("text" "html" ("charset" "us-ascii") NIL NIL "7bit" 1 0) "alternative") 11)"#,
            r#"("image" "png" ("name" "a.png") NIL NIL "base64" 4) "mixed")"#
        );
        assert_eq!(told, wanted);
    }

    #[test]
    fn parts_are_where_they_are() {
        let mail = NESTED.replace('\n', "\r\n");
        let known = known(NESTED);
        let text = |path: &[u32]| {
            let part = known.root.at(path)?;
            mail.get(usize::try_from(part.body).unwrap()..usize::try_from(part.end).unwrap())
        };
        assert_eq!(text(&[1]), Some("one\r\ntwo"));
        assert!(text(&[2]).unwrap().starts_with("Subject: inner\r\n"));
        assert_eq!((text(&[2, 1]), text(&[2, 2])), (Some("a"), Some("b")));
        assert_eq!(text(&[3]), Some("AAAA"));
        assert_eq!((text(&[4]), text(&[1, 1]), text(&[0])), (None, None, None));
        assert_eq!(&mail[..usize::try_from(known.root.body).unwrap()].lines().count(), &4);
    }

    #[test]
    fn envelopes_are_told() {
        let told = known(
            "Date: Wed, 17 Jul 1996 02:23:25 -0700\nSubject: =?utf-8?q?a?=\n b\nFrom: \"A \\\"x\\\" B\" <a@b.example>\n\
             To: c@d.example (C), friends: e@f.example, g@h.example;, i@j.example\nCc: \nMessage-ID: <1@b>\n\n",
        );
        let wanted = concat!(
            r#"("Wed, 17 Jul 1996 02:23:25 -0700" "=?utf-8?q?a?= b" (("A \"x\" B" NIL "a" "b.example")) "#,
            r#"(("A \"x\" B" NIL "a" "b.example")) (("A \"x\" B" NIL "a" "b.example")) "#,
            r#"(("C" NIL "c" "d.example")(NIL NIL "friends" NIL)(NIL NIL "e" "f.example")(NIL NIL "g" "h.example")"#,
            r#"(NIL NIL NIL NIL)(NIL NIL "i" "j.example")) NIL NIL NIL "<1@b>")"#
        );
        assert_eq!(String::from_utf8(told.envelope).unwrap(), wanted);
    }

    #[test]
    fn odd_messages_are_read() {
        for mail in [
            "",
            "\n",
            "x",
            "no colon\n\nbody",
            "Content-Type: multipart/mixed; boundary=x\n\n",
            "Content-Type: multipart/mixed; boundary=x\n\n--x",
            "Content-Type: multipart/mixed; boundary=x\n\n--x--\n",
            "Content-Type: multipart/mixed; boundary=x\n\n--x\nContent-Type: multipart/mixed; boundary=x\n\n--x\n\n--x--\n",
            "Content-Type: message/rfc822\n\n",
            "Content-Type: multipart/digest; boundary=x\n\n--x\n\nSubject: a\n\nb\n--x--\n",
            "Content-Type: multipart/mixed\n\n--\n----\n",
        ] {
            fuzz_digest(&[&[3], mail.as_bytes()].concat());
            fuzz_digest(&[&[1], mail.replace('\n', "\r\n").as_bytes()].concat());
        }
        let deep: String =
            (0..200).map(|at| format!("Content-Type: multipart/mixed; boundary=b{at}\n\n--b{at}\n")).collect();
        fuzz_digest(&[&[9], deep.as_bytes()].concat());
        let wide = format!("Content-Type: multipart/mixed; boundary=x\n\n{}", "--x\n\n".repeat(3_000));
        fuzz_digest(&[&[9], wide.as_bytes()].concat());
    }

    #[test]
    fn many_recipients_hide_nothing_behind_them() {
        let list = (0..4_000).map(|number| format!("Name {number} <n{number}@example.org>")).collect::<Vec<_>>();
        for to in [list.join(",\r\n "), list.join(", "), list[..1_000].join(", ")] {
            let mail = format!("To: {to}\r\nCc: <cc@example.org>\r\nSubject: behind\r\nMessage-ID: <1@x>\r\n\r\n");
            let mut digest = Digest::default();
            digest.read(mail.as_bytes());
            let known = digest.known();
            let envelope = String::from_utf8(known.envelope).unwrap();
            assert!(envelope.contains("\"behind\"") && known.thread != 0);
            assert!(!envelope.contains("MISSING"), "a list is cut between two addresses");
            assert!(envelope.contains("\"n999\""));
            assert!(to.len() < 60_000 || !envelope.contains("\"n3999\""), "within bounds");
        }
    }

    #[test]
    fn languages_have_no_comments() {
        let structure = known("Content-Language: (a, b) de (c), en\n\nx\n").body_structure;
        assert!(String::from_utf8(structure).unwrap().contains("(\"de\" \"en\")"));
    }
}
