//! The questions of one mail, and what their answers came to.

mod authors;

use std::collections::{BTreeMap, HashMap, HashSet};

use flow::{Answer, Ask, Outcome, Question, Record, RecordKind};

use super::hosts::{self, Hosts};
use super::list::About;
use super::lists::Lists;
use super::relays::{self, Relays};
use crate::spam::authentic::{Authentic, Known, Sender};
use crate::spam::eval::Context;
use crate::spam::header::{is_private_ip, parse_ip, reversed};
use crate::spam::message::{Reading, ascii};
use crate::spam::syntax::dns::Subject;
use crate::spam::tags;
use authors::{authors, sender};

/// Bounds of an [`Inquiry`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Questions of one mail; what is beyond is not asked, and lists nobody.
    pub questions_max: usize,
    /// Records of one answer that lead to further questions.
    pub records_max: usize,
    /// Notes of one rule.
    pub notes_max: usize,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits { questions_max: 500, records_max: 16, notes_max: 20 }
    }
}

/// Use of an answer.
#[derive(Debug, Clone)]
enum Use {
    /// A list of hosts in the header.
    Host(usize),
    /// The name servers that such a list is asked about.
    ServersOf(usize),
    /// A list of hosts in addresses: about what it was asked, and the host that has led there.
    Address(usize, Box<[u8]>, Option<Box<[u8]>>),
    /// The name servers of a domain in an address.
    Servers,
    /// The addresses of a host or a name server.
    Addresses(Box<[u8]>),
    Template(usize),
    /// A list of digests, with what was looked up.
    Hashed(usize, Box<[u8]>),
    /// Practice of an author, and whether there is such a domain.
    Practice(Box<[u8]>),
    Domain(Box<[u8]>),
}

/// A question, its uses, and its outcome.
#[derive(Debug)]
struct Query {
    question: Question,
    /// The list that is asked; empty where none is.
    zone: Box<str>,
    uses: Vec<Use>,
    outcome: Option<Outcome>,
}

/// A rule that hit.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Listed {
    /// How often, where it is `multiple`.
    pub count: u32,
    /// Prefix of its description.
    pub area: &'static str,
    /// Notes shown below it.
    pub notes: Vec<Box<[u8]>>,
}

/// Questions of the rules about one mail. A plain value: neither the mail nor the rules are borrowed.
#[derive(Debug, Default)]
pub struct Inquiry {
    limits: Limits,
    asked: Vec<Query>,
    places: HashMap<Question, usize>,
    handed_out: usize,
    open: usize,
    hits: BTreeMap<u32, Listed>,
    seen: HashSet<(usize, Box<[u8]>)>,
    sender: Sender,
    authors: Vec<Box<[u8]>>,
    authentic: Option<Authentic>,
    practices: BTreeMap<Box<[u8]>, u8>,
}

impl Lists {
    /// The questions of a mail, as far as they do not depend on others.
    pub(crate) fn inquire(&self, context: &Context<'_>, limits: Limits) -> Inquiry {
        let mut inquiry = Inquiry { limits, sender: sender(context), ..Inquiry::default() };
        inquiry.authors = authors(context);
        let relays = Relays::of(context);
        for (place, list) in self.hosts.iter().enumerate() {
            if list.about == About::NameServers {
                let domain = relays::envelope_domain(context);
                domain.into_iter().for_each(|domain| {
                    inquiry.want(self, &ascii(&domain), RecordKind::Ns, b"", Use::ServersOf(place));
                });
            }
            for subject in relays::subjects(list, &self.scope, &relays, context) {
                inquiry.want_in(self, &subject, &list.zone, list.kind, Use::Host(place));
            }
        }
        let hosts = hosts::chosen(context.mail, &self.scope);
        inquiry.addresses(self, &hosts);
        let value = |tag: &str, argument: Option<&str>| {
            let values = tags::of_mail(context, || hosts.clone(), tag, argument).unwrap_or_default();
            values.iter().map(|value| value.trim_ascii().to_vec()).filter(|value| !value.is_empty()).collect()
        };
        for (place, template) in self.templates.iter().enumerate().filter(|(_, template)| !template.needs_signatures())
        {
            inquiry.template(self, place, template.names(value));
        }
        for (place, hashed) in self.hashed.iter().enumerate() {
            for (value, digest) in hashed.values(context, &self.scope, |tag| value(tag, None)) {
                let used = Use::Hashed(place, value.into());
                inquiry.want_in(self, &digest, &hashed.zone, hashed.kind, used);
            }
        }
        inquiry
    }

    /// Says who has signed the mail, and what is known of its sender: once, and there may be further questions.
    pub fn learn(&self, inquiry: &mut Inquiry, authentic: Authentic) {
        for (place, template) in self.templates.iter().enumerate().filter(|(_, template)| template.needs_signatures()) {
            // Values of other tags are not at hand any more.
            if template.tags().all(|(tag, _)| tag.starts_with("DKIM")) {
                let names = template.names(|tag, _| tags::signed(&authentic, tag).unwrap_or_default());
                inquiry.template(self, place, names);
            }
        }
        if self.has_practices {
            inquiry.practices(self, &authentic);
        }
        inquiry.authentic = Some(authentic);
    }

    /// Takes an answer, which may lead to further questions. One to a question that was not asked, or has been answered, is
    /// passed over.
    pub fn answer(&self, inquiry: &mut Inquiry, reading: &Reading, answer: Answer) {
        let Some(asked) = inquiry.asked.get_mut(answer.id as usize).filter(|asked| asked.outcome.is_none()) else {
            return;
        };
        let uses = std::mem::take(&mut asked.uses);
        asked.outcome = Some(answer.outcome);
        inquiry.open -= 1;
        for used in uses {
            inquiry.apply(self, reading, answer.id as usize, used);
        }
    }
}

impl Inquiry {
    /// The next question that has not been handed out.
    pub fn ask(&mut self) -> Option<Ask> {
        let asked = self.asked.get(self.handed_out)?;
        let id = u32::try_from(self.handed_out).ok()?;
        self.handed_out += 1;
        Some(Ask { id, question: asked.question.clone(), list: asked.zone.clone() })
    }

    /// Whether everything that was asked is answered.
    pub fn is_settled(&self) -> bool {
        self.open == 0
    }

    /// How many questions there are.
    pub fn questions(&self) -> usize {
        self.asked.len()
    }

    /// Sender for SPF.
    pub fn sender(&self) -> &Sender {
        &self.sender
    }

    /// Facts about the sender and the signatures of the mail, once they are known.
    pub fn known(&self) -> Option<Known<'_>> {
        let authentic = self.authentic.as_ref()?;
        Some(Known { authentic, sender: &self.sender, practices: &self.practices })
    }

    /// The rules that hit, by their ids.
    pub fn hits(&self) -> &BTreeMap<u32, Listed> {
        &self.hits
    }

    /// Wants to know about a name below a zone.
    fn want_in(&mut self, lists: &Lists, subject: &[u8], zone: &[u8], kind: RecordKind, used: Use) {
        self.want(lists, &[subject, b".", zone].concat(), kind, zone, used);
    }

    /// Wants to know about a name. What cannot be a name, may not be asked, or is one too many is not asked.
    fn want(&mut self, lists: &Lists, name: &[u8], kind: RecordKind, zone: &[u8], used: Use) {
        let Some(name) = fitting(name).filter(|name| !lists.scope.is_restricted(name.as_bytes())) else { return };
        let question = Question { name, kind };
        if let Some(&place) = self.places.get(&question) {
            match self.asked[place].outcome {
                None => self.asked[place].uses.push(used),
                Some(_) => match &used {
                    Use::Addresses(host) => self.follow(lists, place, host),
                    // The others that lead to further questions are asked once.
                    used => self.settle(lists, place, used),
                },
            }
            return;
        }
        if self.asked.len() >= self.limits.questions_max {
            return;
        }
        self.places.insert(question.clone(), self.asked.len());
        self.asked.push(Query {
            question,
            zone: String::from_utf8_lossy(zone).into(),
            uses: vec![used],
            outcome: None,
        });
        self.open += 1;
    }

    fn template(&mut self, lists: &Lists, place: usize, names: Vec<Vec<u8>>) {
        for name in names {
            for &kind in &lists.templates[place].kinds {
                self.want(lists, &name, kind, b"", Use::Template(place));
            }
        }
    }

    /// Asks about the hosts in addresses.
    fn addresses(&mut self, lists: &Lists, hosts: &Hosts) {
        let is_by_server = |subject: Subject| subject != Subject::Domain;
        let has_servers = lists
            .addresses
            .iter()
            .any(|list| is_by_server(list.subject) && (list.subject != Subject::Address || !list.by_address));
        let has_addresses = lists.addresses.iter().any(|list| list.subject == Subject::Address && list.by_address);
        for (host, domain) in hosts {
            let is_address = is_numeric(host);
            if is_address && (parse_ip(host).is_none_or(|ip| !ip.is_ipv4()) || is_private_ip(host)) {
                continue;
            }
            if !is_address && has_servers {
                self.want(lists, domain, RecordKind::Ns, b"", Use::Servers);
            }
            if !is_address && has_addresses {
                self.want_addresses(lists, host);
            }
            let subject = |is_whole: bool| if is_whole || is_address { host } else { domain };
            for (place, list) in lists.addresses.iter().enumerate() {
                if list.subject == Subject::Domain && list.only.takes(is_address) {
                    self.look_up(lists, place, subject(list.is_whole), None);
                }
            }
        }
    }

    fn want_addresses(&mut self, lists: &Lists, host: &[u8]) {
        self.want(lists, host, RecordKind::A, b"", Use::Addresses(host.into()));
    }

    /// Looks something up in a list of hosts in addresses, once.
    fn look_up(&mut self, lists: &Lists, place: usize, subject: &[u8], origin: Option<&[u8]>) {
        if !self.seen.insert((place, subject.into())) {
            return;
        }
        let list = &lists.addresses[place];
        let turned = if is_numeric(subject) { reversed(subject) } else { None };
        let used = Use::Address(place, subject.into(), origin.map(Into::into));
        self.want_in(lists, turned.as_deref().unwrap_or(subject), &list.zone, list.kind, used);
    }

    /// Does what an answer is for.
    fn apply(&mut self, lists: &Lists, reading: &Reading, place: usize, used: Use) {
        match used {
            Use::ServersOf(place_of_list) => {
                let list = &lists.hosts[place_of_list];
                for server in self.servers(place) {
                    self.want_in(lists, &server, &list.zone, list.kind, Use::Host(place_of_list));
                }
            }
            Use::Servers => self.servers(place).iter().for_each(|server| self.server(lists, reading, server)),
            Use::Addresses(host) => self.follow(lists, place, &host),
            Use::Practice(author) => self.practice(lists, place, author),
            used => self.settle(lists, place, &used),
        }
    }

    /// The name servers that an answer names.
    fn servers(&self, place: usize) -> Vec<Box<[u8]>> {
        let Some(Outcome::Records(records)) = &self.asked[place].outcome else { return Vec::new() };
        let names = records.iter().take(self.limits.records_max).filter_map(server);
        names.map(Into::into).collect()
    }

    /// Looks the addresses of a host up.
    fn follow(&mut self, lists: &Lists, place: usize, host: &[u8]) {
        let Some(Outcome::Records(records)) = &self.asked[place].outcome else { return };
        let found: Vec<String> = records.iter().take(self.limits.records_max).filter_map(address).collect();
        for address in found {
            for list in by_address(lists) {
                self.look_up(lists, list, address.as_bytes(), Some(host));
            }
        }
    }

    /// A name server of a domain in an address.
    fn server(&mut self, lists: &Lists, reading: &Reading, server: &[u8]) {
        if lists.addresses.iter().any(|list| list.subject == Subject::Address && list.by_address) {
            self.want_addresses(lists, server);
        }
        let domain = reading.registered(server);
        for (place, list) in lists.addresses.iter().enumerate() {
            match list.subject {
                Subject::NameServerDomain => self.look_up(lists, place, &domain, None),
                Subject::NameServer => self.look_up(lists, place, server, None),
                Subject::Address | Subject::Domain => {}
            }
        }
    }

    /// Does what an answer is for that leads to no further question.
    fn settle(&mut self, lists: &Lists, place: usize, used: &Use) {
        let Query { question, outcome: Some(outcome), .. } = &self.asked[place] else { return };
        let mut found: Vec<(u32, u32, &'static str, Vec<u8>)> = Vec::new();
        match used {
            Use::Host(list) => {
                let list = &lists.hosts[*list];
                let parts = lists.parts.get(&list.set).into_iter().flatten();
                for (rule, subtest) in
                    std::iter::once((list.rule, &list.subtest)).chain(parts.map(|(id, test)| (*id, test)))
                {
                    if let Some(text) = subtest.hits(list.kind, outcome).first() {
                        found.push((rule, 1, "RBL: ", host_note(&question.name, list.kind, text)));
                    }
                }
            }
            Use::Address(list, subject, origin) => {
                let list = &lists.addresses[*list];
                let origin = origin.as_ref().map(|origin| [&origin[..], b"/"].concat()).unwrap_or_default();
                let note = || [b"URI: ", &origin[..], subject].concat();
                found.extend(
                    list.subtest.hits(list.kind, outcome).iter().map(|_| (list.rule, list.hits_max, "", note())),
                );
            }
            Use::Template(template) => {
                let template = &lists.templates[*template];
                let kind = question.kind;
                let note = |text: &[u8]| [question.name.as_bytes(), b" ", kind.name().as_bytes(), b":", text].concat();
                let hits = template.subtest.hits(kind, outcome);
                found.extend(hits.iter().map(|text| (template.rule, template.hits_max, "ASKDNS: ", note(text))));
            }
            Use::Hashed(list, value) => {
                let list = &lists.hashed[*list];
                if !list.subtest.hits(list.kind, outcome).is_empty() {
                    let note = String::from_utf8_lossy(value).replace('@', "[at]").into_bytes();
                    found.push((list.rule, list.hits_max, "", note));
                }
            }
            Use::Domain(author) => {
                let practice = if *outcome == Outcome::NoName { b'N' } else { b'U' };
                self.practices.insert(author.clone(), practice);
            }
            Use::ServersOf(_) | Use::Servers | Use::Addresses(_) | Use::Practice(_) => {}
        }
        for (rule, most, area, note) in found {
            self.hit(rule, most, area, &note);
        }
    }

    fn hit(&mut self, rule: u32, most: u32, area: &'static str, note: &[u8]) {
        const NOTE_BYTES_MAX: usize = 300;
        let listed = self.hits.entry(rule).or_insert_with(|| Listed { area, ..Listed::default() });
        listed.count = (listed.count + 1).min(most.max(1));
        let note = &note[..note.len().min(NOTE_BYTES_MAX)];
        if listed.notes.len() < self.limits.notes_max && !listed.notes.iter().any(|known| **known == *note) {
            listed.notes.push(note.into());
        }
    }
}

/// Lists that are asked about the addresses of hosts. Those of name servers go to the same, as in SpamAssassin 4.0.1, and lists
/// of the addresses of name servers alone are asked about nothing.
fn by_address(lists: &Lists) -> impl Iterator<Item = usize> {
    let lists = lists.addresses.iter().enumerate();
    lists.filter(|(_, list)| list.subject == Subject::Address && list.by_address).map(|(place, _)| place)
}

fn server(record: &Record) -> Option<&[u8]> {
    match record {
        Record::Ns(name) => Some(name.as_bytes()),
        _ => None,
    }
}

fn address(record: &Record) -> Option<String> {
    match record {
        Record::A(address) => Some(address.to_string()),
        _ => None,
    }
}

/// Whether a host is four numbers, or stands in brackets.
fn is_numeric(host: &[u8]) -> bool {
    let is_number = |part: &[u8]| !part.is_empty() && part.iter().all(u8::is_ascii_digit);
    let parts: Vec<&[u8]> = host.splitn(5, |&byte| byte == b'.').collect();
    host.starts_with(b"[") || parts.len() == 4 && parts.into_iter().all(is_number)
}

/// A name that can be asked for, in lower case.
fn fitting(name: &[u8]) -> Option<Box<str>> {
    const NAME_BYTES_MAX: usize = 253;
    const LABEL_BYTES_MAX: usize = 63;
    let name = core::str::from_utf8(name).ok().filter(|name| name.is_ascii() && name.len() <= NAME_BYTES_MAX)?;
    let fits = |label: &str| (1..=LABEL_BYTES_MAX).contains(&label.len());
    name.split('.').all(fits).then(|| name.to_ascii_lowercase().into())
}

/// `192.0.2.7 listed in list.example`, or what the list says.
fn host_note(name: &str, kind: RecordKind, text: &[u8]) -> Vec<u8> {
    if kind == RecordKind::Txt {
        return text.to_vec();
    }
    let labels: Vec<&str> = name.split('.').collect();
    let is_four = labels.len() > 4 && labels[..4].iter().all(|label| label.parse::<u8>().is_ok());
    match is_four {
        true => format!("{}.{}.{}.{} listed in {}", labels[3], labels[2], labels[1], labels[0], labels[4..].join(".")),
        false => format!("listed in {name}"),
    }
    .into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_can_be_asked_for_are_asked_for() {
        assert_eq!(fitting(b"A.example").as_deref(), Some("a.example"));
        for name in [&b""[..], b"a..b", b".a", b"\xff.example", &[b'a'; 64], &[b'.'; 3]] {
            assert_eq!(fitting(name), None, "{name:?}");
        }
    }

    #[test]
    fn notes_say_who_is_listed_where() {
        assert_eq!(host_note("7.2.0.192.l.test", RecordKind::A, b"127.0.0.2"), b"192.0.2.7 listed in l.test");
        assert_eq!(host_note("a.example.l.test", RecordKind::A, b""), b"listed in a.example.l.test");
        assert_eq!(host_note("x", RecordKind::Txt, b"see there"), b"see there");
    }
}
