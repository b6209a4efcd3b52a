//! Mailing lists that a user leaves, as `List-Unsubscribe` (RFC 2369) says: by a mail, or on a page of the list that the browser opens.
//!
//! This server asks no address that a mail names, so a request in one step (RFC 8058) is none of its ways. Of junk nothing is left: an
//! answer tells its sender that somebody reads it.

use alloc::format;
use alloc::string::{String, ToString};

use crate::call::Call;
use crate::compose::{Letter, compose, typed};
use crate::envelope::{Envelope, shown};
use crate::form::decoded;
use crate::html::{Html, Text, put};
use crate::mail::{Message, Purpose, Sending};
use crate::reply::Reply;
use crate::sanitise::link;
use crate::structure::Header;

use super::{Pages, Place};

/// Characters of a subject and a text that a list asks for.
const WORDS_MAX: usize = 200;

/// A way to leave a list.
enum Way {
    /// A mail to an address, with a subject and a text.
    Mail { to: String, subject: String, text: String },
    /// A page.
    Page(String),
}

impl Pages<'_> {
    /// The button or the link by which the list of a message is left.
    pub fn leaving(&mut self, main: &mut Html, message: &Message) {
        let place = Place { folder: message.row.folder, uid: message.row.uid };
        match self.way(message) {
            None => {}
            Some(Way::Mail { to, .. }) => {
                self.form(main, "action=\"/unsubscribe\" class=\"bar\"");
                put!(main, "<input type=\"hidden\" name=\"at\" value=\"", place.folder, ".", place.uid, "\">");
                put!(main, "<button>Unsubscribe</button><span class=\"soft\">by a mail to <bdi>", Text(&to));
                put!(main, "</bdi></span></form>");
            }
            Some(Way::Page(page)) => {
                put!(
                    main,
                    "<p class=\"bar\"><a class=\"button\" target=\"_blank\" rel=\"noopener noreferrer nofollow\" href=\""
                );
                put!(main, Text(&page), "\">Unsubscribe</a><span class=\"soft\">on <bdi>", Text(host(&page)));
                put!(main, "</bdi></span></p>");
            }
        }
    }

    /// Leaves a list by a mail.
    pub fn unsubscribe(&mut self, call: &Call) -> Reply {
        let place = Place::parse(call.form.get("at"));
        let Some(message) = place.and_then(|place| self.found(place.folder, place.uid)) else { return self.missing() };
        let Some(Way::Mail { to, subject, text }) = self.way(&message) else { return self.missing() };
        let own = self.mail.addresses();
        let envelope = Envelope::parse(&message.row.envelope);
        let mut all = envelope.to.iter().chain(&envelope.cc).map(|one| &one.address);
        let reached = all.find(|address| own.iter().any(|own| own.eq_ignore_ascii_case(address)));
        let from = reached.or(own.first()).cloned().unwrap_or_default();
        let letter = Letter { from: from.clone(), to, subject, text, ..Letter::default() };
        let (now, random) = (self.mail.now(), self.mail.random());
        let composed = match compose(&letter, now, random, self.mail.hostname()) {
            Ok(composed) => composed,
            Err(_) => return self.missing(),
        };
        let (to, content, private) = (composed.recipients, composed.content, composed.private);
        match self.mail.send(Sending { from, to, content, private, draft: None, answers: None }) {
            Ok(()) => Reply::see(&format!("/m/{}?told=sent", message.row.folder)),
            Err(failure) => self.failed(failure),
        }
    }

    fn way(&mut self, message: &Message) -> Option<Way> {
        let purpose = self.folder(message.row.folder)?.purpose;
        if matches!(purpose, Purpose::Junk | Purpose::Sent | Purpose::Drafts) {
            return None;
        }
        let value = Header::read(self.mail, message.number, &message.layout).get("list-unsubscribe")?;
        way(&shown(&value))
    }
}

/// The way that a field names: a mail before a page.
fn way(value: &str) -> Option<Way> {
    let links = || value.split('<').skip(1).filter_map(|item| Some(item.split_once('>')?.0.trim())).take(10);
    let page = || links().filter(|one| starts(one, "https:")).find_map(link);
    links().find_map(by_mail).or_else(|| page().map(Way::Page))
}

fn by_mail(link: &str) -> Option<Way> {
    let rest = link.get("mailto:".len()..).filter(|_| starts(link, "mailto:"))?;
    let (to, query) = rest.split_once('?').unwrap_or((rest, ""));
    let to = match &typed(&decoded(to.as_bytes(), false)).ok()?[..] {
        [(_, to)] => to.clone(),
        _ => return None,
    };
    let value = |name: &str| {
        let pairs = || query.split('&').filter_map(|pair| pair.split_once('='));
        let found = pairs().find(|(known, _)| known.eq_ignore_ascii_case(name));
        found.map(|(_, value)| decoded(value.as_bytes(), false).chars().take(WORDS_MAX).collect::<String>())
    };
    let subject = value("subject").unwrap_or_else(|| "unsubscribe".to_string());
    Some(Way::Mail { to, subject, text: value("body").unwrap_or_default() })
}

fn starts(link: &str, scheme: &str) -> bool {
    link.get(..scheme.len()).is_some_and(|head| head.eq_ignore_ascii_case(scheme))
}

/// The host of a link, without a name and a password before it.
fn host(page: &str) -> &str {
    let rest = page.split_once("//").map_or(page, |(_, rest)| rest);
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    authority.rsplit('@').next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(value: &str) -> String {
        match way(value) {
            None => "none".into(),
            Some(Way::Page(page)) => format!("{} {page}", host(&page)),
            Some(Way::Mail { to, subject, text }) => format!("{to}|{subject}|{text}"),
        }
    }

    #[test]
    fn a_mail_goes_before_a_page_and_to_one_address_alone() {
        for (value, wanted) in [
            ("<https://l.example/u?a=1>, <mailto:u@l.example?subject=a%20b+c&body=x%0Ay>", "u@l.example|a b+c|x\ny"),
            ("<MAILTO:u%2B1@l.example>", "u+1@l.example|unsubscribe|"),
            ("<mailto:a@x.example,b@x.example>, <https://a@l.example/>", "l.example https://a@l.example/"),
            ("<mailto:u@l.example?cc=eve@x.example&bcc=eve@x.example>", "u@l.example|unsubscribe|"),
            ("<http://l.example/>, <javascript:alert(1)>", "none"),
            ("https://l.example/", "none"),
            ("<mailto:u@l.example%0D%0ABcc:eve@x.example>", "none"),
            ("", "none"),
        ] {
            assert_eq!(told(value), wanted, "{value}");
        }
    }
}
