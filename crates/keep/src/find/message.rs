//! One message of a search: read as far as its conditions ask for, and no further.

use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;
use core::cell::OnceCell;

use sieve::View as _;
use store::{Entry, State};

use super::Place;
use super::text::{Window, holds, text_holds};
use crate::content::{Messages, Reader};
use crate::digest::{Text, has_more_than_text};
use crate::header::{fields, plain_addresses, split};
use crate::view::{email_id, thread_id};

/// Bytes of a header that are looked at.
pub const HEADER_BYTES_MAX: usize = 256 << 10;

/// The largest message whose parts are decoded to be searched, in bytes: it is held.
pub const DECODED_BYTES_MAX: u64 = 16 << 20;

/// A message of a view.
pub struct Message<'a, M> {
    number: u32,
    uid: u32,
    entry: Entry,
    messages: &'a M,
    state: &'a State,
    header: OnceCell<Vec<u8>>,
}

impl<'a, M: Messages> Message<'a, M> {
    pub(super) fn new(messages: &'a M, state: &'a State, (number, uid): (u32, u32), entry: Entry) -> Self {
        Message { number, uid, entry, messages, state, header: OnceCell::new() }
    }

    /// Its number in the view.
    pub fn number(&self) -> u32 {
        self.number
    }

    /// Its UID.
    pub fn uid(&self) -> u32 {
        self.uid
    }

    /// Its flags and dates.
    pub fn entry(&self) -> &Entry {
        &self.entry
    }

    /// Its number in the store.
    pub fn stored(&self) -> u64 {
        self.entry.message.get()
    }

    /// Its size, in bytes.
    pub fn size(&self) -> u64 {
        self.state.message(self.stored()).map_or(0, |message| message.size)
    }

    pub(super) fn email_id(&self) -> String {
        email_id(self.state, self.stored())
    }

    pub(super) fn thread_id(&self) -> Option<String> {
        thread_id(self.state, self.stored())
    }

    /// The values of the fields with this name, unfolded.
    pub fn field<'b>(&'b self, name: &'b [u8]) -> impl Iterator<Item = Vec<u8>> + 'b {
        let values = fields(self.header()).filter_map(split);
        let named = values.filter(move |(found, _)| found.eq_ignore_ascii_case(name));
        named.map(|(_, value)| mime::unfolded(value).trim_ascii().to_vec())
    }

    /// Whether a text is there.
    pub(super) fn holds(&self, place: Place<'_>, text: &[u8]) -> bool {
        match place {
            Place::Field(name) => self.field_holds(name, text),
            Place::Body => self.body_holds(text, self.header().len()),
            Place::Anywhere => value_holds(&mime::unfolded(self.header()), text) || self.body_holds(text, 0),
        }
    }

    /// Whether it has other parts than plain text, as far as is known of it.
    pub(super) fn has_more_than_text(&self) -> bool {
        let digest = self.messages.digest(self.stored()).unwrap_or_default();
        Text::BodyStructure.of(&digest).is_none_or(has_more_than_text)
    }

    /// Up to the empty line. Of a damaged message, as much as stands before the damage.
    fn header(&self) -> &[u8] {
        self.header.get_or_init(|| {
            let mut header = Vec::new();
            if let Some(mut reader) = self.messages.reader(self.stored()) {
                let _ = reader.read_header(HEADER_BYTES_MAX, &mut header);
            }
            header
        })
    }

    fn field_holds(&self, name: &[u8], text: &[u8]) -> bool {
        self.field(name)
            .any(|value| value_holds(&value, text) || (is_of_addresses(name) && an_address_holds(&value, text)))
    }

    fn body_holds(&self, text: &[u8], from: usize) -> bool {
        if text.is_empty() {
            return true;
        }
        let Some(mut reader) = self.messages.reader(self.stored()) else { return false };
        let mut window = Window::new(text);
        let mut offset = from as u64;
        loop {
            let piece = reader.piece(offset).unwrap_or_default();
            if piece.is_empty() {
                return self.a_part_holds(&mut reader, text);
            }
            if window.holds(piece) {
                return true;
            }
            offset += piece.len() as u64;
        }
    }

    fn a_part_holds(&self, reader: &mut M::Reader<'_>, text: &[u8]) -> bool {
        if core::str::from_utf8(text).is_err() || self.size() > DECODED_BYTES_MAX {
            return false;
        }
        let mut mail = vec![0; usize::try_from(self.size()).unwrap_or(0)];
        let mut done = 0;
        while done < mail.len() {
            match reader.read(done as u64, &mut mail[done..]) {
                Ok(length @ 1..) => done += length,
                _ => return false,
            }
        }
        if !may_hide(&mail) && text.is_ascii() {
            return false;
        }
        let parts = sieve::Mail::new(&mail, mail.len() as u64).parts();
        let mut texts = parts.iter().filter(|part| part.kind.starts_with("text/") || part.kind == "message/rfc822");
        texts.any(|part| {
            let holds = |content: &str| text_holds(content, text);
            holds(&part.content) || (part.kind == "text/html" && holds(&words_of_page(&part.content)))
        })
    }
}

/// Whether an unfolded value holds a text, as it stands or in one line.
fn value_holds(value: &[u8], text: &[u8]) -> bool {
    let holds = |value: &[u8]| text_holds(&mime::header_text(value, usize::MAX), text);
    let is_blank = |byte: &u8| b" \t".contains(byte);
    let is_spread = value.contains(&b'\t') || value.windows(2).any(|pair| pair.iter().all(is_blank));
    holds(value) || (is_spread && holds(&mime::one_line(value)))
}

/// Whether a transfer coding, a charset or the tags of a page may hide a text from those who read bytes.
fn may_hide(mail: &[u8]) -> bool {
    ["base64", "quoted-printable", "charset", "text/html"].iter().any(|word| holds(mail, word.as_bytes()))
}

fn is_of_addresses(name: &[u8]) -> bool {
    ["from", "to", "cc", "bcc", "sender", "reply-to"].iter().any(|known| name.eq_ignore_ascii_case(known.as_bytes()))
}

/// Whether an address with its name holds it, without what may stand between their parts (RFC 3501, section 6.4.4: the field of the envelope).
fn an_address_holds(value: &[u8], text: &[u8]) -> bool {
    plain_addresses(value).any(|address| value_holds(&address, text))
}

/// The words of a page with one blank between them, as it is seen.
fn words_of_page(page: &str) -> String {
    sieve::mail::of_html(page).split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_found_whatever_blanks_part_them() {
        for value in [&b"two \tmixed"[..], b"two  mixed", b"two\tmixed", b"two mixed", b"=?utf-8?q?two?=  mixed"] {
            assert!(value_holds(value, b"TWO mixed"), "{}", value.escape_ascii());
        }
        assert!(value_holds(b"two  mixed", b"two  mixed") && value_holds(b"two\tmixed", b"two\tmixed"));
        assert!(!value_holds(b"twomixed", b"two mixed") && !value_holds(b"=?utf-8?q?two=20=20mixed?=", b"two mixed"));
    }

    #[test]
    fn addresses_are_found_whatever_stands_between_their_parts() {
        let field = b"Tim <tim (at home)@ (of) example.org>, <ann@example.net>";
        assert!(an_address_holds(field, b"TIM@example.org") && an_address_holds(field, b"ann@"));
        assert!(!an_address_holds(field, b"home") && !an_address_holds(field, b"organn"));
        for (field, text) in [
            (&b"ann @example.org"[..], "ann@example.org"),
            (b"ann(c)@example.org", "ann@example.org"),
            (b"\"ann\"@example.org", "ann@example.org"),
            (b"Ann <ann @ example.org>", "Ann <ann@example.org>"),
            (b"\"Ann\" \"Lee\" <x@y.org>", "Ann Lee"),
            (b"\"Ann\\ Lee\" <x@y.org>", "Ann Lee"),
            (b"Ann (c) Lee <x@y.org>", "Ann Lee"),
            (b"=?utf-8?q?Ann?= Lee <x@y.org>", "Ann Lee <x@"),
        ] {
            assert!(an_address_holds(field, text.as_bytes()), "{} {text}", field.escape_ascii());
        }
    }
}
