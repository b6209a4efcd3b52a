//! Vacation answers (RFC 5230): their recipients and content.
//!
//! The host remembers recent answers to a sender, by [`Vacation::handle`] and [`Vacation::seconds`].

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use super::action::fold;
use super::{Machine, cut};
use crate::address::{self, Address};
use crate::date::Date;
use crate::program::{self, Text};
use text::base64;

/// For how long a sender gets no second answer, if the script does not say.
const SECONDS: u64 = 7 * 86_400;
/// The longest subject, and the longest name of a sender, in bytes.
const SUBJECT_BYTES_MAX: usize = 512;
/// The longest line of a mail, without its end (RFC 5322, section 2.1.1).
const LINE_BYTES_MAX: usize = 998;

/// An answer to the sender.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Vacation {
    /// The recipient.
    pub to: String,
    /// From whom.
    pub from: String,
    /// Subject, as characters.
    pub subject: String,
    /// Text of the script.
    pub reason: String,
    /// For how long the same sender gets no second one.
    pub seconds: u64,
    /// Handle that distinguishes this answer from others of the same user.
    pub handle: String,
    /// The whole answer; the host adds `Message-ID`.
    pub message: String,
    /// Why none is to be sent (RFC 5230, sections 4.5 and 4.6).
    pub withheld: Option<&'static str>,
}

impl Machine<'_> {
    pub(super) fn vacation(&mut self, vacation: &program::Vacation) -> Result<Vacation, String> {
        let reason = self.text(&vacation.reason)?;
        let subject = vacation.subject.as_ref().map(|subject| self.text(subject)).transpose()?;
        let given_from = vacation.from.as_ref().map(|from| self.text(from)).transpose()?;
        if vacation.mime && has_long_line(&reason) {
            return Err(format!("a line of the answer has more than {LINE_BYTES_MAX} bytes"));
        }
        let handle = vacation.handle.as_ref().map(|handle| self.text(handle)).transpose()?;
        let addresses = self.texts(&vacation.addresses)?;
        let handle = handle.unwrap_or_else(|| default_handle(vacation));
        let to = Address::of_envelope(self.setting.from).map_or(String::new(), |from| from.in_ascii());
        // What variables make of it may be no address: the answer comes from the recipient.
        let from = given_from.and_then(|from| author(&from)).unwrap_or_else(|| self.own());
        let subject = subject.filter(|subject| !subject.trim().is_empty());
        let mut subject = subject.unwrap_or_else(|| match self.field("subject") {
            Some(subject) => format!("Auto: {subject}"),
            None => "Automated reply".into(),
        });
        cut(&mut subject, SUBJECT_BYTES_MAX);
        let subject = one_line(&subject);
        let withheld = self.withheld(&to, &addresses);
        let message = self.answer(&to, &from, &subject, &reason, vacation.mime);
        let seconds = vacation.seconds.unwrap_or(SECONDS);
        Ok(Vacation { to, from, subject, reason, seconds, handle, message, withheld })
    }

    /// The recipient of the envelope.
    fn own(&self) -> String {
        Address::of_envelope(self.setting.to).map_or(String::new(), |own| own.whole())
    }

    fn field(&self, name: &str) -> Option<&str> {
        let found = self.fields.iter().find(|field| field.name.eq_ignore_ascii_case(name));
        found.map(|field| field.value.as_str())
    }

    fn all<'b>(&'b self, name: &'b str) -> impl Iterator<Item = &'b str> {
        let found = self.fields.iter().filter(move |field| field.name.eq_ignore_ascii_case(name));
        found.map(|field| field.value.as_str())
    }

    /// Words of all fields of a name, split at commas, without comments and parameters, in lower case.
    fn words(&self, name: &str) -> Vec<String> {
        let bare = self.all(name).map(mime::without_comments);
        let words = bare.flat_map(|value| {
            let words = value.split(',').map(|word| word.split(';').next().unwrap_or_default());
            words.map(|word| word.trim().to_ascii_lowercase()).collect::<Vec<_>>()
        });
        words.collect()
    }

    fn withheld(&self, sender: &str, addresses: &[String]) -> Option<&'static str> {
        if sender.is_empty() {
            return Some("the mail has no sender");
        }
        let given = self.setting.addresses.iter().chain(addresses).flat_map(|text| address::list(text));
        let own: Vec<String> = core::iter::once(self.own()).chain(given.map(|address| address.whole())).collect();
        let is_own = |address: &str| own.iter().any(|own| own.eq_ignore_ascii_case(address));
        if is_own(sender) {
            return Some("the sender is the recipient");
        }
        let local = sender.rsplit_once('@').map_or(sender, |(local, _)| local).to_ascii_lowercase();
        let is_machine = ["mailer-daemon", "listserv", "majordomo", "noreply", "no-reply"].contains(&local.as_str());
        if is_machine || local.starts_with("owner-") || local.ends_with("-request") || local.ends_with("-owner") {
            return Some("the sender is no person");
        }
        if self.fields.iter().any(|field| field.name.to_ascii_lowercase().starts_with("list-")) {
            return Some("the mail comes from a list");
        }
        if self.words("auto-submitted").iter().any(|word| word != "no") {
            return Some("the mail was sent automatically");
        }
        // [MS-OXCMAIL], section 2.2.3.2.14; `AutoReply` is of answers other than these, `DR` and others of receipts.
        if self.words("x-auto-response-suppress").iter().any(|word| ["oof", "all"].contains(&&**word)) {
            return Some("the mail asks for no automatic answer");
        }
        if self.words("precedence").iter().any(|word| ["bulk", "junk", "list"].contains(&&**word)) {
            return Some("the mail was sent to many");
        }
        const RECIPIENTS: [&str; 6] = ["to", "cc", "bcc", "resent-to", "resent-cc", "resent-bcc"];
        let named =
            self.fields.iter().filter(|field| RECIPIENTS.iter().any(|name| name.eq_ignore_ascii_case(&field.name)));
        let is_named = named.flat_map(|field| address::list(&field.raw)).any(|address| is_own(&address.whole()));
        (!is_named).then_some("the mail names no address of the recipient")
    }

    fn answer(&self, to: &str, from: &str, subject: &str, reason: &str, is_mime: bool) -> String {
        let date = Date::new(self.setting.now, self.setting.zone).part("std11").unwrap_or_default();
        let mut out = Vec::new();
        let mut field = |name: &str, value: &str| {
            out.extend_from_slice(name.as_bytes());
            out.extend_from_slice(b": ");
            fold(&mut out, value, name.len().saturating_add(2));
            out.extend_from_slice(b"\r\n");
        };
        for (name, value) in [("From", from), ("To", to), ("Subject", &encoded(subject)), ("Date", &date)] {
            field(name, &plain(value));
        }
        let id = self.fields.iter().find(|field| field.name.eq_ignore_ascii_case("message-id"));
        if let Some(id) = id.map(|field| one_line(&field.raw)).filter(|id| id.len() <= 900 && id.is_ascii()) {
            let references = self.fields.iter().find(|field| field.name.eq_ignore_ascii_case("references"));
            let before = references.map(|field| one_line(&field.raw)).filter(|before| {
                before.len() <= 2_000 && before.is_ascii() && before.split(' ').all(|word| word.len() <= 900)
            });
            let before: String = before.into_iter().flat_map(|before| [before, " ".into()]).collect();
            field("In-Reply-To", &id);
            field("References", &format!("{before}{id}"));
        }
        field("Auto-Submitted", "auto-replied (vacation)");
        field("X-Auto-Response-Suppress", "All");
        field("Precedence", "bulk");
        field("MIME-Version", "1.0");
        let mut out = String::from_utf8_lossy(&out).into_owned();
        let reason = reason.replace("\r\n", "\n").replace('\r', "\n").replace('\n', "\r\n");
        if is_mime {
            out.push_str(&reason);
        } else if has_long_line(&reason) {
            out.push_str("Content-Type: text/plain; charset=utf-8\r\nContent-Transfer-Encoding: base64\r\n\r\n");
            for line in base64::encode(reason.as_bytes()).as_bytes().chunks(76) {
                out.push_str(&String::from_utf8_lossy(line));
                out.push_str("\r\n");
            }
        } else {
            out.push_str("Content-Type: text/plain; charset=utf-8\r\nContent-Transfer-Encoding: 8bit\r\n\r\n");
            out.push_str(&reason);
        }
        if !out.ends_with("\r\n") {
            out.push_str("\r\n");
        }
        out
    }
}

/// Handle of an answer without `:handle`: its strings as the script has them, so that it does not depend on variables
/// (RFC 5230, section 4.2).
fn default_handle(vacation: &program::Vacation) -> String {
    let source = |text: &Option<Text>, default: &str| text.as_ref().map_or(default.to_string(), Text::source);
    let subject = source(&vacation.subject, "<default-subject>");
    let from = source(&vacation.from, "<default-from>");
    let kind = if vacation.mime { "<MIME>" } else { "<NO-MIME>" };
    format!("{}{subject}{from}{kind}", vacation.reason.source())
}

/// A mailbox as `From` has it: its name quoted, or in encoded words.
fn author(text: &str) -> Option<String> {
    let (name, address) = address::mailbox(text)?;
    let Some(mut name) = name.map(|name| one_line(&name)).filter(|name| !name.is_empty()) else {
        return Some(address.in_ascii());
    };
    cut(&mut name, SUBJECT_BYTES_MAX);
    let is_atoms = name.split(' ').all(|word| !word.is_empty() && word.chars().all(address::is_atom_text));
    let is_encoded = name.split(' ').all(is_encoded_word);
    let name = match name.is_ascii() && (is_encoded || !name.contains("=?")) {
        true if is_atoms || is_encoded => name,
        true => address::quoted(&name),
        false => encoded(&name),
    };
    Some(format!("{name} <{}>", address.in_ascii()))
}

/// Whether it has the form of an encoded word (RFC 2047, section 2).
fn is_encoded_word(word: &str) -> bool {
    let parts = word.strip_prefix("=?").and_then(|word| word.strip_suffix("?=")).map(|word| word.split('?'));
    word.len() <= 75
        && parts.is_some_and(|parts| parts.clone().count() == 3 && parts.clone().all(|part| !part.is_empty()))
}

fn has_long_line(text: &str) -> bool {
    text.split(['\r', '\n']).any(|line| line.len() > LINE_BYTES_MAX)
}

/// A text that ends no header field.
fn plain(text: &str) -> String {
    text.chars().map(|character| if character.is_control() { ' ' } else { character }).collect()
}

/// The same with one blank between words.
fn one_line(text: &str) -> String {
    plain(text).split_whitespace().collect::<Vec<_>>().join(" ")
}

/// As encoded words, if it has to be.
fn encoded(text: &str) -> String {
    if text.is_ascii() && !text.contains("=?") {
        return text.to_string();
    }
    let mut words = Vec::new();
    let mut word = String::new();
    for character in text.chars() {
        if word.len() >= 42 {
            words.push(core::mem::take(&mut word));
        }
        word.push(character);
    }
    words.push(word);
    let encoded = words.iter().map(|word| format!("=?utf-8?b?{}?=", base64::encode(word.as_bytes())));
    encoded.collect::<Vec<_>>().join(" ")
}
