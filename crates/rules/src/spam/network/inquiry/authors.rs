//! The sender and the authors of a mail, and the practices that the authors' domains publish (ADSP, RFC 5617).

use flow::{Outcome, Record, RecordKind};

use super::{Inquiry, Use};
use crate::spam::authentic::{Authentic, Sender};
use crate::spam::eval::Context;
use crate::spam::header::parse_ip;
use crate::spam::message::ascii;
use crate::spam::network::lists::Lists;

impl Inquiry {
    /// Asks what authors say of their signatures, where they have not signed.
    pub(super) fn practices(&mut self, lists: &Lists, authentic: &Authentic) {
        for author in self.authors.clone() {
            let of_author = |signer: &str| signer.as_bytes().eq_ignore_ascii_case(&author);
            if authentic.valid().any(|signature| of_author(signature.signer()))
                || authentic.signatures.iter().any(|known| known.is_unavailable && of_author(known.signer()))
            {
                continue;
            }
            if let Some(practice) = overridden(lists, &author) {
                self.practices.insert(author, practice);
                continue;
            }
            let name = [b"_adsp._domainkey.", &author[..]].concat();
            self.want(lists, &name, RecordKind::Txt, b"", Use::Practice(author));
        }
    }

    /// Asks for the practice that an author publishes; if there is none, whether the domain exists.
    pub(super) fn practice(&mut self, lists: &Lists, place: usize, author: Box<[u8]>) {
        let told = match &self.asked[place].outcome {
            Some(Outcome::Records(records)) => records.iter().find_map(practice_of),
            Some(Outcome::Unavailable) | None => Some(b'U'),
            Some(Outcome::NoData | Outcome::NoName) => None,
        };
        match told {
            Some(practice) => drop(self.practices.insert(author, practice)),
            None => self.want(lists, &author.clone(), RecordKind::Mx, b"", Use::Domain(author)),
        }
    }
}

/// Sender for SPF: the relay that has handed the mail to the site, and the sender that it told.
pub(super) fn sender(context: &Context<'_>) -> Sender {
    let text = |bytes: &[u8]| Box::from(String::from_utf8_lossy(bytes));
    let relay = context.path.external.first();
    let by_relay = relay.and_then(|relay| relay.envelope_from.as_ref()).map(|sender| sender.to_ascii_lowercase());
    let is_believed =
        context.path.trusted.is_empty() || context.settings.number("always_trust_envelope_sender", 0.0) != 0.0;
    let by_header = || context.fields.text("EnvelopeFrom:addr").filter(|_| is_believed);
    let envelope = by_relay.or_else(by_header).filter(|sender| !sender.is_empty());
    Sender {
        client: relay.and_then(|relay| parse_ip(&relay.ip)),
        helo: relay.map(|relay| text(&relay.helo)).unwrap_or_default(),
        envelope: envelope.map(|sender| text(&sender.to_ascii_lowercase())),
    }
}

/// The domains of authors, each once.
pub(super) fn authors(context: &Context<'_>) -> Vec<Box<[u8]>> {
    const AUTHORS_MAX: usize = 4;
    let mut found: Vec<Box<[u8]>> = Vec::new();
    for address in context.fields.values("From:addr").iter() {
        let Some(at) = address.iter().rposition(|&byte| byte == b'@') else { continue };
        let domain: Box<[u8]> = ascii(address[at + 1..].trim_ascii_end()).into();
        let last = domain.rsplit(|&byte| byte == b'.').next().filter(|last| last.len() + 1 < domain.len());
        let is_name = last
            .is_some_and(|last| last.len() > 1 && last.iter().all(|byte| byte.is_ascii_alphabetic() || *byte == b'-'));
        if is_name && !found.contains(&domain) && found.len() < AUTHORS_MAX {
            found.push(domain);
        }
    }
    found
}

/// Practice that the site sets for an author, or of all below a domain: `*.example`, `*`.
fn overridden(lists: &Lists, author: &[u8]) -> Option<u8> {
    if let Some(&practice) = lists.scope.practices.get(author) {
        return Some(practice);
    }
    let dots = author.iter().enumerate().filter(|(_, byte)| **byte == b'.').map(|(at, _)| at);
    let above = dots.map(|at| [b"*", &author[at..]].concat());
    above.chain([b"*".to_vec()]).find_map(|name| lists.scope.practices.get(&name[..]).copied())
}

/// `dkim=all` (RFC 5617): none where the record says nothing.
fn practice_of(record: &Record) -> Option<u8> {
    let Record::Txt(text) = record else { return None };
    let mut tags = text.split(|&byte| byte == b';').map(<[u8]>::trim_ascii);
    let value = tags.find_map(|tag| tag.strip_prefix(b"dkim"))?.trim_ascii_start().strip_prefix(b"=")?.trim_ascii();
    Some(match value {
        b"all" => b'A',
        b"discardable" | b"strict" => b'D',
        _ => b'U',
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn authors_say_what_they_sign() {
        let record = |text: &str| Record::Txt(text.as_bytes().into());
        assert_eq!(practice_of(&record("dkim=all")), Some(b'A'));
        assert_eq!(practice_of(&record("t=y; dkim = discardable")), Some(b'D'));
        assert_eq!(practice_of(&record("dkim=unknown")), Some(b'U'));
        assert_eq!(practice_of(&record("v=spf1 -all")), None);
        let mut lists = Lists::default();
        lists.scope.practices.insert(b"*.example"[..].into(), b'A');
        assert_eq!(overridden(&lists, b"mail.a.example"), Some(b'A'));
        assert_eq!(overridden(&lists, b"example"), None);
    }
}
