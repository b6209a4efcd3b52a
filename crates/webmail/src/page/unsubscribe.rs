//! Mailing lists that a user leaves, as `List-Unsubscribe` (RFC 2369) says: by a request of this server in one step (RFC 8058), by a mail, or
//! on a page of the list that the browser opens.
//!
//! The one step is offered where a signature of the mail claims to cover both fields; the host verifies it before it asks the list. Of
//! junk nothing is left: an answer tells its sender that somebody reads it.

use alloc::format;
use alloc::string::{String, ToString};

use crate::call::Call;
use crate::compose::{Letter, compose};
use crate::envelope::{Envelope, shown};
use crate::html::{Html, Text, put};
use crate::mail::{Message, Origin, Purpose, Sending};
use crate::percent::decoded;
use crate::recipients::typed;
use crate::reply::Reply;
use crate::sanitise::link;
use crate::structure::Header;

use super::{Pages, Place};

/// Characters of a subject and a text that a list asks for.
const WORDS_MAX: usize = 200;

/// The fields that one step needs (RFC 8058, section 3.1).
const LIST: &str = "list-unsubscribe";
const POST: &str = "list-unsubscribe-post";

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
        let Some(header) = self.list_header(message) else { return };
        let words = &self.words.read;
        if self.mail.fetches()
            && let Some(page) = at_once(&header)
        {
            self.form(main, "action=\"/unsubscribe\" class=\"bar\"");
            put!(main, "<input type=\"hidden\" name=\"at\" value=\"", place.folder, ".", place.uid, "\">");
            put!(main, "<button name=\"do\" value=\"once\">", words.unsubscribe, "</button><span class=\"soft\">");
            main.say(words.at_once, &[host(&page)]);
            main.put("</span></form>");
        }
        match self.way(&header) {
            None => {}
            Some(Way::Mail { to, .. }) => {
                self.form(main, "action=\"/unsubscribe\" class=\"bar\"");
                put!(main, "<input type=\"hidden\" name=\"at\" value=\"", place.folder, ".", place.uid, "\">");
                put!(main, "<button>", words.unsubscribe, "</button><span class=\"soft\">");
                main.say(words.by_mail, &[&to]);
                main.put("</span></form>");
            }
            Some(Way::Page(page)) => {
                put!(
                    main,
                    "<p class=\"bar\"><a class=\"button\" target=\"_blank\" rel=\"noopener noreferrer nofollow\" href=\""
                );
                put!(main, Text(&page), "\">", words.unsubscribe, "</a><span class=\"soft\">");
                main.say(words.on_page, &[host(&page)]);
                main.put("</span></p>");
            }
        }
    }

    /// Leaves a list by a request, or by a mail.
    pub fn unsubscribe(&mut self, call: &Call) -> Reply {
        let place = Place::parse(call.form.get("at"));
        let Some(message) = place.and_then(|place| self.found(place.folder, place.uid)) else { return self.missing() };
        let Some(header) = self.list_header(&message) else { return self.missing() };
        if call.form.get("do") == "once" {
            let Some(page) = at_once(&header) else { return self.missing() };
            return match self.mail.leave(message.number, &page) {
                Ok(()) => Reply::see(&format!("/m/{}/{}?told=left", message.row.folder, message.row.uid)),
                Err(failure) => self.failed(failure),
            };
        }
        let Some(Way::Mail { to, subject, text }) = self.way(&header) else { return self.missing() };
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
        let origin = Origin { id: random, ..Origin::default() };
        let (to, content, private) = (composed.recipients, composed.content, composed.private);
        match self.mail.send(Sending { origin, from, to, content, private }) {
            Ok(()) => Reply::see(&format!("/m/{}?told=sent", message.row.folder)),
            Err(failure) => self.failed(failure),
        }
    }

    /// The header of a message whose list may be left.
    fn list_header(&mut self, message: &Message) -> Option<Header> {
        let purpose = self.folder(message.row.folder)?.purpose;
        let is_left = !matches!(purpose, Purpose::Junk | Purpose::Sent | Purpose::Drafts);
        is_left.then(|| Header::read(self.mail, message.number, &message.layout))
    }

    fn way(&self, header: &Header) -> Option<Way> {
        way(&shown(&header.get(LIST)?))
    }
}

/// The URL by which a list is left in one step: each field is there once, and a signature names both.
fn at_once(header: &Header) -> Option<String> {
    let ([value], [post]) = (&header.all(LIST)[..], &header.all(POST)[..]) else { return None };
    let is_covered = |signature: &[u8]| {
        let signature = String::from_utf8_lossy(signature).to_ascii_lowercase();
        let tag = signature.split(';').filter_map(|tag| tag.split_once('=')).find(|(name, _)| name.trim() == "h");
        tag.is_some_and(|(_, names)| [LIST, POST].iter().all(|name| names.split(':').any(|one| one.trim() == *name)))
    };
    let is_meant = post.eq_ignore_ascii_case(b"List-Unsubscribe=One-Click");
    if !is_meant || !header.all("dkim-signature").iter().any(|one| is_covered(one)) {
        return None;
    }
    pages(&shown(value)).next()
}

/// The way that a field names: a mail before a page.
fn way(value: &str) -> Option<Way> {
    links(value).find_map(by_mail).or_else(|| pages(value).next().map(Way::Page))
}

fn links(value: &str) -> impl Iterator<Item = &str> {
    value.split('<').skip(1).filter_map(|item| Some(item.split_once('>')?.0.trim())).take(10)
}

fn pages(value: &str) -> impl Iterator<Item = String> {
    links(value).filter(|one| starts(one, "https:")).filter_map(link)
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

    #[test]
    fn one_step_needs_both_fields_once_and_a_signature_that_names_them() {
        let list = "List-Unsubscribe: <mailto:u@l.example>,\r\n <https://l.example/u?a=1>\r\n";
        let post = "List-Unsubscribe-Post: List-Unsubscribe=One-Click\r\n";
        let signed =
            "DKIM-Signature: v=1; a=rsa-sha256;\r\n h=From : list-unsubscribe:\r\n List-Unsubscribe-Post; b=x\r\n";
        let told = |header: String| at_once(&Header::of(header.as_bytes()));
        assert_eq!(told(format!("{signed}{list}{post}")).as_deref(), Some("https://l.example/u?a=1"));
        for header in [
            format!("{list}{post}"),
            format!("{signed}{post}"),
            format!("{signed}{list}"),
            format!("{signed}{list}{list}{post}"),
            format!("{signed}{list}{post}{post}"),
            format!("{signed}{list}List-Unsubscribe-Post: no\r\n"),
            format!("{signed}List-Unsubscribe: <mailto:u@l.example>\r\n{post}"),
            format!("{signed}List-Unsubscribe: <http://l.example/>\r\n{post}"),
            format!("DKIM-Signature: h=from:list-unsubscribe; b=x\r\n{list}{post}"),
        ] {
            assert_eq!(told(header.clone()), None, "{header}");
        }
    }
}
