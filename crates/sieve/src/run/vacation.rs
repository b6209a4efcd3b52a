//! Answers to a sender while one is away (RFC 5230): who gets one, and what it says.
//!
//! Whether the same sender had one lately is the host's to know, by [`Vacation::handle`] and [`Vacation::seconds`].

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use super::{Machine, cut};
use crate::address::{self, Address};
use crate::date::Date;
use crate::program;
use text::base64;

/// For how long a sender gets no second answer, if the script does not say.
const SECONDS: u64 = 7 * 86_400;
/// The longest subject, in bytes.
const SUBJECT_BYTES_MAX: usize = 512;

/// An answer to the sender.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Vacation {
    /// To whom.
    pub to: String,
    /// From whom.
    pub from: String,
    /// What it is about, as characters.
    pub subject: String,
    /// What the script says.
    pub reason: String,
    /// For how long the same sender gets no second one.
    pub seconds: u64,
    /// What tells this answer from others of the same user.
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
        if given_from.as_ref().is_some_and(|from| address::plain(from).is_none()) {
            return Err(":from takes an address".into());
        }
        let handle = vacation.handle.as_ref().map(|handle| self.text(handle)).transpose()?;
        let addresses = self.texts(&vacation.addresses)?;
        let default_handle = || {
            let subject = subject.as_deref().unwrap_or("<default-subject>");
            let from = given_from.as_deref().unwrap_or("<default-from>");
            format!("{reason}{subject}{from}{}", if vacation.mime { "<MIME>" } else { "<NO-MIME>" })
        };
        let handle = handle.unwrap_or_else(default_handle);
        let to = Address::of_envelope(self.setting.from).map_or(String::new(), |from| from.whole());
        let from = given_from.unwrap_or_else(|| self.setting.to.trim_matches(['<', '>']).to_string());
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

    fn field(&self, name: &str) -> Option<&str> {
        let found = self.fields.iter().find(|field| field.name.eq_ignore_ascii_case(name));
        found.map(|field| field.value.as_str())
    }

    fn withheld(&self, sender: &str, addresses: &[String]) -> Option<&'static str> {
        if sender.is_empty() {
            return Some("the mail has no sender");
        }
        let own = [self.setting.to.trim_matches(['<', '>']).to_string()];
        let own: Vec<&String> = own.iter().chain(self.setting.addresses).chain(addresses).collect();
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
        let automatic = self.field("auto-submitted").map(|value| value.split(';').next().unwrap_or_default().trim());
        if automatic.is_some_and(|automatic| !automatic.eq_ignore_ascii_case("no")) {
            return Some("the mail was sent automatically");
        }
        let precedence = self.field("precedence").unwrap_or_default().to_ascii_lowercase();
        if ["bulk", "junk", "list"].contains(&precedence.as_str()) {
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
        let mut out = String::new();
        for (name, value) in [("From", from), ("To", to), ("Subject", &encoded(subject)), ("Date", &date)] {
            out.push_str(&format!("{name}: {}\r\n", one_line(value)));
        }
        let id = self.fields.iter().find(|field| field.name.eq_ignore_ascii_case("message-id"));
        if let Some(id) = id.map(|field| one_line(&field.raw)).filter(|id| id.len() <= 900 && id.is_ascii()) {
            let references = self.fields.iter().find(|field| field.name.eq_ignore_ascii_case("references"));
            let before = references.map(|field| one_line(&field.raw)).filter(|before| before.len() <= 2_000);
            let before: String = before.into_iter().flat_map(|before| [before, "\r\n ".into()]).collect();
            out.push_str(&format!("In-Reply-To: {id}\r\nReferences: {before}{id}\r\n"));
        }
        out.push_str("Auto-Submitted: auto-replied (vacation)\r\nPrecedence: bulk\r\nMIME-Version: 1.0\r\n");
        let reason = reason.replace("\r\n", "\n").replace('\r', "\n").replace('\n', "\r\n");
        if !is_mime {
            out.push_str("Content-Type: text/plain; charset=utf-8\r\nContent-Transfer-Encoding: 8bit\r\n\r\n");
        }
        out.push_str(&reason);
        if !out.ends_with("\r\n") {
            out.push_str("\r\n");
        }
        out
    }
}

/// What ends no header field.
fn one_line(text: &str) -> String {
    let plain: String = text.chars().map(|character| if character.is_control() { ' ' } else { character }).collect();
    plain.split_whitespace().collect::<Vec<_>>().join(" ")
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
