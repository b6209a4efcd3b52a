//! The words of header fields: those of well-known fields are left out or made to say less of one mail and more of many.

use crate::line::{addresses, is_word_byte};
use crate::searches::Searches;
use crate::tokens::{Collector, Region};

/// A name, an address, or both, in a field.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Mailbox {
    /// The name beside the address.
    pub phrase: Option<Vec<u8>>,
    /// The address.
    pub address: Option<Vec<u8>>,
}

/// Fields that say more of the way of a mail than of the mail: lists, archives, other filters, mailboxes. A `*` is one letter or
/// more; `?` stands for an `x-` that may be there.
#[rustfmt::skip]
const IGNORED: &[&str] = &[
    "content-class", "content-length", "date", "delivered-to", "delivery-date", "?envelope-to", "forwarded", "lines",
    "?list-admin", "?list-archive", "?list-comment", "?list-help", "?list-host", "?list-id", "?list-manager",
    "?list-name", "?list-owner", "?list-post", "?list-subscribe", "?list-unsubscribe", "?list-url",
    "mail-followup-to", "?mailing-list", "?original-date", "?original-from", "?original-to", "replied",
    "?resent-date", "?resent-from", "?resent-to", "?sender", "spam", "?spam-apparently-to", "?status", "subject",
    "thread-index", "thread-topic", "x-antispam", "x-ap-spam-score", "x-ap-spam-status", "x-beenthere", "x-bogosity",
    "x-bugzilla-*", "x-converted-to-plain-text", "x-dcc-*-metrics", "x-egroups-from", "x-egroups-return",
    "x-filtered-by", "x-flags", "x-gnus-mail-source", "x-imapbase", "x-keywords", "x-list", "x-loop",
    "x-mailman-version", "x-mailscanner", "x-mailscanner-spamcheck", "x-mass-check-id", "x-mdaemon-deliver-to",
    "x-mdmailing-list", "x-mime-autoconverted", "x-originalarrivaltime", "x-perlmx-spam", "x-pyzor", "x-rbl-warning",
    "x-ripe-spam-status", "x-scanned-by", "x-scanner", "x-smtpd", "x-spam", "x-spam-checker-version", "x-spam-flag",
    "x-spam-hits", "x-spam-level", "x-spam-report", "x-spam-score", "x-spam-status", "x-spamcop-*", "x-sympa-to",
    "x-uid", "x-uidl", "x-unsub", "x-unsubscribe", "x-virus-scanned", "x-vm-bookmark", "x-vm-imap-retrieved",
    "x-vm-labels", "x-vm-last-modified", "x-vm-message-order", "x-vm-pop-retrieved", "x-vm-summary-format",
    "x-vm-v*-data", "x-vm-vheader", "x-xemacs-list", "xref",
];

/// Fields of which only the presence counts.
#[rustfmt::skip]
const MARKED: &[&str] = &[
    "arc-message-signature", "arc-seal", "autocrypt", "dkim-signature", "domainkey-signature", "x-face",
    "x-gnu-pg-fingerprint", "x-gnu-pg-key-fingerprint", "x-gnupg-fingerprint", "x-gnupg-key-fingerprint",
    "x-google-dkim-signature", "x-gpg-fingerprint", "x-gpg-key-fingerprint", "x-pgp-fingerprint", "x-pgp-key-fingerprint",
];

/// Returns whether a list has a name, without regard to case.
fn is_among(names: &[&str], name: &[u8]) -> bool {
    let name = name.to_ascii_lowercase();
    let is_it = |one: &&str| {
        let (one, name) = match one.strip_prefix('?') {
            Some(one) => (one, name.strip_prefix(b"x-").unwrap_or(&name)),
            None => (*one, &name[..]),
        };
        match one.split_once('*') {
            None => name == one.as_bytes(),
            Some((first, last)) => {
                let rest = name.strip_prefix(first.as_bytes()).and_then(|rest| rest.strip_suffix(last.as_bytes()));
                rest.is_some_and(|rest| !rest.is_empty())
            }
        }
    };
    names.iter().any(is_it)
}

/// Names that are kept short.
const SHORT_NAMES: [(&str, &str); 19] = [
    ("Message-Id", "*m"),
    ("Message-ID", "*M"),
    ("Received", "*r"),
    ("User-Agent", "*u"),
    ("References", "*f"),
    ("In-Reply-To", "*i"),
    ("From", "*F"),
    ("Reply-To", "*R"),
    ("Return-Path", "*p"),
    ("Return-path", "*rp"),
    ("X-Mailer", "*x"),
    ("X-Authentication-Warning", "*a"),
    ("Organization", "*o"),
    ("Organisation", "*o"),
    ("Content-Type", "*ct"),
    ("Content-Disposition", "*cd"),
    ("Content-Transfer-Encoding", "*ce"),
    ("x-spam-relays-trusted", "*RT"),
    ("x-spam-relays-untrusted", "*RU"),
];

/// Fields whose words are taken once more, together with those of their like.
const GROUPS: [(&str, &[&str]); 3] = [
    ("*MI", &["in-reply-to", "references", "message-id"]),
    ("*Ad", &["from", "to", "cc"]),
    ("*UA", &["x-mailer", "user-agent"]),
];

/// Fields that hold addresses.
const ADDRESSED: [&str; 8] = ["return-path", "from", "to", "cc", "reply-to", "errors-to", "mail-followup-to", "sender"];

/// How many `Received` fields are looked at, from the oldest on.
const RECEIVED_MAX: usize = 2;

/// The bytes of all fields together that are looked at.
const HEADER_BYTES_MAX: usize = 65_536;

impl Collector<'_> {
    /// Returns the fields of a header in order: name, and value unfolded and decoded. `mailboxes` reads the addresses
    /// of a value.
    pub fn header<'f>(
        &mut self,
        fields: impl Iterator<Item = (&'f [u8], &'f [u8])> + Clone,
        mailboxes: &dyn Fn(&[u8]) -> Vec<Mailbox>,
    ) {
        if !self.terms.sources.header {
            return;
        }
        let mut bytes = 0_usize;
        let fields = fields.take_while(|(name, value)| {
            bytes = bytes.saturating_add(name.len()).saturating_add(value.len()).saturating_add(3);
            bytes <= HEADER_BYTES_MAX
        });
        let fields: Vec<(&[u8], &[u8])> = fields.collect();
        let (received, others): (Vec<_>, Vec<_>) =
            fields.into_iter().partition(|(name, _)| name.eq_ignore_ascii_case(b"received"));
        for (name, value) in others {
            if !is_among(IGNORED, name) {
                self.field(name, value, mailboxes);
            }
        }
        for (name, value) in received.into_iter().rev().take(RECEIVED_MAX) {
            self.field(name, value, mailboxes);
        }
    }

    /// Adds knowledge about a mail that is in no field, as a field of this name: the relays on its way.
    pub fn known(&mut self, name: &str, value: &[u8]) {
        if !self.terms.sources.header {
            return;
        }
        let is_path = ["external", "internal", "trusted", "untrusted"]
            .iter()
            .any(|kind| name.strip_prefix("x-spam-relays-") == Some(kind));
        let mut value = [b" ", value].concat();
        if is_path {
            self.room.fields.path(&mut value);
        }
        self.named(name.as_bytes(), &value);
    }

    fn field(&mut self, name: &[u8], value: &[u8], mailboxes: &dyn Fn(&[u8]) -> Vec<Mailbox>) {
        let small: Box<[u8]> = name.to_ascii_lowercase().into();
        if self.terms.ignored_fields.contains(&small) {
            return;
        }
        let value = self::value(&mut self.room.fields, name, &small, value, mailboxes);
        for (group, names) in GROUPS {
            if names.iter().any(|known| known.as_bytes() == &*small) {
                self.named(group.as_bytes(), &value);
            }
        }
        self.named(name, &value);
    }

    fn named(&mut self, name: &[u8], value: &[u8]) {
        let short = SHORT_NAMES.iter().find(|(long, _)| long.as_bytes() == name);
        let name = short.map_or(name, |(_, short)| short.as_bytes());
        self.line(value, &[b"H", name, b":"].concat(), Region::Header);
    }
}

/// Takes the tokens of a field's value.
fn value(
    searches: &mut Searches,
    name: &[u8],
    small: &[u8],
    value: &[u8],
    mailboxes: &dyn Fn(&[u8]) -> Vec<Mailbox>,
) -> Vec<u8> {
    let base = small.strip_prefix(b"x-").or_else(|| small.strip_prefix(b"resent-")).unwrap_or(small);
    let mut value = [b" ", value].concat();
    match name {
        _ if base == b"message-id" => {
            searches.message_id(&mut value);
            value.iter_mut().filter(|byte| !is_word_byte(**byte)).for_each(|byte| *byte = b' ');
        }
        _ if ADDRESSED.iter().any(|known| known.as_bytes() == base) => return people(&mailboxes(&value)),
        b"Received" => searches.received(&mut value),
        b"Content-Type" => searches.content_type(&mut value),
        b"MIME-Version" => searches.version(&mut value),
        _ if is_among(MARKED, name) => value = b"1".to_vec(),
        _ => {}
    }
    value
}

/// The names of people, their addresses, and the domains of those.
fn people(mailboxes: &[Mailbox]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut add = |part: &[u8]| {
        out.extend_from_slice(part);
        out.push(b' ');
    };
    for mailbox in mailboxes {
        let phrase = mailbox.phrase.as_deref().unwrap_or_default();
        let words = phrase.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
        words.for_each(|word| add(&[b"N*", word].concat()));
        addresses(mailbox.address.as_deref().unwrap_or_default(), &mut add);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn looked_at(name: &str, text: &str) -> String {
        let small = name.to_ascii_lowercase();
        let nobody = |_: &[u8]| Vec::new();
        let found = value(&mut Searches::default(), name.as_bytes(), small.as_bytes(), text.as_bytes(), &nobody);
        String::from_utf8(found).unwrap()
    }

    #[test]
    fn fields_say_what_mails_share() {
        for (name, text, wanted) in [
            (
                "Message-Id",
                "<0123abcd4567$89abcdef$01234567@host.example>",
                "  OEA0123 OEB89ab OEC01234567 host example ",
            ),
            (
                "Received",
                "from a ([192.0.2.1]) by b id ABCDEFG; Mon, 1 Jan 2024 00:00:00 +0000 (GMT)",
                "   a ([192.0.2 ip*192.0.2.1 ]) by b  ; ",
            ),
            ("Content-Type", "text/plain; boundary=\"=_a1-x\"", "  /plain;   =_ HH - x"),
            ("MIME-Version", "1.0 (x)", "  (x)"),
            ("DKIM-Signature", "v=1; a=b", "1"),
            ("X-Other", "1.0", " 1.0"),
        ] {
            assert_eq!(looked_at(name, text), wanted, "{name}");
        }
    }

    #[test]
    fn names_of_known_fields_are_ignored_whole() {
        for (name, is_ignored) in
            [("Subject", true), ("SUBJECT", true), ("Subjects", false), ("X-Status", true), ("X-Spam-Foo", false)]
        {
            assert_eq!(is_among(IGNORED, name.as_bytes()), is_ignored, "{name}");
        }
    }
}
