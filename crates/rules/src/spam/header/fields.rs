//! Header requests of rules: fields by name with modifiers, and names that stand for several fields or for the path.

use std::cell::RefCell;
use std::rc::Rc;

use super::path::Path;
use super::received::find;
use crate::spam::map::HashMap;
use crate::spam::message::{Field as Written, Fold, Message, Reading, taken, unfolded};
use crate::spam::search::RunLimits;
use crate::spam::syntax::field::{Field, MODIFIERS, Modifier};

/// A request: a name, and modifiers.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Request {
    name: Box<str>,
    /// Flags for [`MODIFIERS`].
    modifiers: [bool; MODIFIERS.len()],
    /// The name in lower case, of one that stands for the fields of that name and nothing else.
    only: Option<Box<[u8]>>,
}

/// Names that stand for more than the fields of that name, in lower case.
const MADE: [&[u8]; 14] = [
    b"all",
    b"all-trusted",
    b"all-internal",
    b"all-untrusted",
    b"all-external",
    b"envelopefrom",
    b"x-spam-relays-untrusted",
    b"x-spam-relays-trusted",
    b"x-spam-relays-external",
    b"x-spam-relays-internal",
    b"tocc",
    b"messageid",
    b"x-senderdomain",
    b"x-authordomain",
];

impl Request {
    fn new(name: &str, modifiers: [bool; MODIFIERS.len()]) -> Request {
        let only = Some(lower(name.as_bytes())).filter(|name| !MADE.contains(&&**name));
        Request { name: name.into(), modifiers, only }
    }

    /// Request of a rule.
    pub fn of(field: &Field) -> Request {
        Request::new(&field.name, MODIFIERS.map(|(_, modifier)| field.modifiers.contains(&modifier)))
    }

    /// Reads a request from a text: `From:addr`. Unknown modifiers are ignored.
    pub fn read(text: &str) -> Request {
        let Some((name, modifiers)) = text.split_once(':') else {
            return Request::new(text, [false; MODIFIERS.len()]);
        };
        Request::new(name, MODIFIERS.map(|(word, _)| modifiers.split(':').any(|modifier| modifier == word)))
    }

    fn has(&self, modifier: Modifier) -> bool {
        MODIFIERS.iter().zip(self.modifiers).any(|((_, known), is)| is && *known == modifier)
    }

    /// Whether one value counts, and not all together.
    fn is_single(&self) -> bool {
        [Modifier::Addr, Modifier::Name, Modifier::Host, Modifier::Domain, Modifier::Ip, Modifier::Revip]
            .into_iter()
            .any(|modifier| self.has(modifier))
            || &*self.name == "EnvelopeFrom"
    }
}

/// The bit of a name, whatever its case.
fn bit(name: &[u8]) -> u64 {
    let first = name.first().map_or(0, u8::to_ascii_lowercase);
    1 << ((usize::from(first) + 7 * name.len()) % 64)
}

/// Values, in the order of the header.
pub type Values = Rc<[Box<[u8]>]>;

/// The header of one mail, with its path.
pub struct Fields<'m> {
    mail: &'m Message,
    path: &'m Path,
    reading: &'m Reading,
    sender_field: Option<&'m str>,
    limits: &'m RunLimits,
    known: RefCell<HashMap<Request, Values>>,
    /// The same by what a text asks for.
    by_text: RefCell<HashMap<Box<str>, Values>>,
    /// A bit for each of the names that there are, which several may share.
    names: u64,
    by_name: HashMap<Box<[u8]>, Vec<&'m Written>>,
}

/// The bytes of all fields together that `ALL` has.
const ALL_BYTES_MAX: usize = 65_536;

impl<'m> Fields<'m> {
    /// The header of a mail. `sender_field`: the field that tells the sender of the envelope, where one is configured.
    pub fn new(
        mail: &'m Message,
        path: &'m Path,
        reading: &'m Reading,
        sender_field: Option<&'m str>,
        limits: &'m RunLimits,
    ) -> Fields<'m> {
        let mut by_name: HashMap<Box<[u8]>, Vec<&Written>> = HashMap::default();
        let mut names = 0;
        for field in mail.fields().iter().filter(|field| is_seen(field)) {
            names |= bit(&field.name);
            by_name.entry(lower(&field.name)).or_default().push(field);
        }
        Fields {
            mail,
            path,
            reading,
            sender_field,
            limits,
            known: RefCell::default(),
            by_text: RefCell::default(),
            names,
            by_name,
        }
    }

    /// All values.
    pub fn all(&self, request: &Request) -> Values {
        if self.has_none(request) {
            return Values::default();
        }
        if let Some(values) = self.known.borrow().get(request) {
            return Rc::clone(values);
        }
        let values: Values = self.find(request).into();
        self.known.borrow_mut().insert(request.clone(), Rc::clone(&values));
        values
    }

    /// All values of what a text asks for.
    pub fn values(&self, text: &str) -> Values {
        if self.lacks(text) {
            return Values::default();
        }
        if let Some(values) = self.by_text.borrow().get(text) {
            return Rc::clone(values);
        }
        let values = self.all(&Request::read(text));
        self.by_text.borrow_mut().insert(text.into(), Rc::clone(&values));
        values
    }

    /// As functions see it: the first value of an address, a name or a host; otherwise all values, one behind the other. `None`
    /// where there is none.
    pub fn text(&self, text: &str) -> Option<Vec<u8>> {
        if self.lacks(text) {
            return None;
        }
        let request = Request::read(text);
        let values = self.all(&request);
        let first = values.first()?;
        Some(if request.is_single() { without_line_feed(first).to_vec() } else { values.concat() })
    }

    /// The same, empty where there is none.
    pub fn get(&self, text: &str) -> Vec<u8> {
        self.text(text).unwrap_or_default()
    }

    /// As rules look at it: all values, a line each. `None` where there is none.
    pub fn haystack(&self, request: &Request) -> Option<Vec<u8>> {
        if self.has_none(request) {
            return None;
        }
        if let Some(name) = request.only.as_ref().filter(|_| request.modifiers == [false; MODIFIERS.len()]) {
            let lines = self.by_name.get(name)?.iter().flat_map(|field| [&field.value[..], b"\n"]);
            return Some(lines.collect::<Vec<_>>().concat());
        }
        let values = self.all(request);
        let first = values.first()?;
        let separator = if first.ends_with(b"\n") { &b""[..] } else { b"\n" };
        Some(values.join(separator))
    }

    /// The fields of a name as they came.
    pub fn written(&self, name: &str) -> &[&'m Written] {
        self.by_name.get(&*lower(name.as_bytes())).map_or(&[], Vec::as_slice)
    }

    /// Whether what a text asks for is known not to be there by its name.
    fn lacks(&self, text: &str) -> bool {
        let name = text.split(':').next().unwrap_or_default().as_bytes();
        self.names & bit(name) == 0 && !MADE.iter().any(|made| made.eq_ignore_ascii_case(name))
    }

    /// Whether there is no field of the name, and nothing else that it stands for: most names that rules ask for.
    fn has_none(&self, request: &Request) -> bool {
        let is_missing = |name: &[u8]| self.names & bit(name) == 0 || !self.by_name.contains_key(name);
        request.only.as_ref().is_some_and(|name| is_missing(name))
    }

    fn find(&self, request: &Request) -> Vec<Box<[u8]>> {
        let raw = request.has(Modifier::Raw);
        let values = match &*request.name {
            "ALL" if raw => return self.pristine(),
            "ALL" => return self.everything(),
            "ALL-TRUSTED" => return self.range(None, Some(self.path.trusted_fields), raw),
            "ALL-INTERNAL" => return self.range(None, Some(self.path.internal_fields), raw),
            "ALL-UNTRUSTED" => return self.range(Some(self.path.trusted_fields), None, raw),
            "ALL-EXTERNAL" => return self.range(Some(self.path.internal_fields), None, raw),
            _ => self.named(request, raw),
        };
        let texts = values.into_iter().map(Vec::from).collect();
        let taken = taken(texts, |modifier| request.has(modifier), self.limits.addresses_max, self.reading);
        taken.into_iter().map(Into::into).collect()
    }

    fn named(&self, request: &Request, raw: bool) -> Vec<Box<[u8]>> {
        let decoded = |name: &str| {
            self.written(name)
                .iter()
                .map(|field| if raw { unfolded(&field.raw, Fold::OfRule) } else { field.line() }.into())
                .collect::<Vec<Box<[u8]>>>()
        };
        match &*request.name.to_ascii_lowercase() {
            "envelopefrom" => self.envelope_from().into_iter().collect(),
            "x-spam-relays-untrusted" => vec![Path::text(&self.path.untrusted).into()],
            "x-spam-relays-trusted" => vec![Path::text(&self.path.trusted).into()],
            "x-spam-relays-external" => vec![Path::text(&self.path.external).into()],
            "x-spam-relays-internal" => vec![Path::text(&self.path.internal).into()],
            "tocc" => [decoded("To"), decoded("Cc")].concat(),
            _ if &*request.name == "MESSAGEID" => {
                let names = ["X-Message-Id", "Resent-Message-Id", "X-Original-Message-ID", "Message-Id"];
                names.into_iter().flat_map(decoded).filter(|value| !value.is_empty()).collect()
            }
            "x-senderdomain" if self.written(&request.name).is_empty() => {
                self.values("EnvelopeFrom:first:addr:host").iter().take(1).cloned().collect()
            }
            "x-authordomain" if self.written(&request.name).is_empty() => {
                let mut hosts: Vec<Box<[u8]>> = Vec::new();
                for host in self.values("From:addr:host").iter().map(|host| lower(host)) {
                    if !hosts.contains(&host) {
                        hosts.push(host);
                    }
                }
                if hosts.is_empty() { hosts } else { vec![hosts.join(&b' ').into()] }
            }
            _ => {
                let needs_raw = raw || request.has(Modifier::Addr) || request.has(Modifier::Name);
                let value = |field: &&Written| if needs_raw { field.raw.clone() } else { field.line().into() };
                self.written(&request.name).iter().map(value).collect()
            }
        }
    }

    /// The header as it came, a field each.
    fn pristine(&self) -> Vec<Box<[u8]>> {
        let mut fields: Vec<Vec<u8>> = Vec::new();
        for line in self.mail.full_header().split_inclusive(|&byte| byte == b'\n') {
            match fields.last_mut() {
                Some(last) if line.starts_with(b" ") || line.starts_with(b"\t") => last.extend_from_slice(line),
                _ if line.trim_ascii().is_empty() && line.len() <= 1 => {}
                _ => fields.push(line.to_vec()),
            }
        }
        fields.into_iter().filter(|field| field.ends_with(b"\n")).map(Into::into).collect()
    }

    /// All fields, decoded, in order, each with its name. Beyond a bound, fields whose name comes later are left out.
    fn everything(&self) -> Vec<Box<[u8]>> {
        let seen: Vec<&Written> = self.mail.fields().iter().filter(|field| is_seen(field)).collect();
        let bytes: usize = seen.iter().map(|field| field.name.len() + field.value.len() + 3).sum();
        let kept = (bytes > ALL_BYTES_MAX).then(|| self.kept(&seen));
        let is_kept = |place: usize| kept.as_ref().is_none_or(|kept| kept[place]);
        let line = |field: &&Written| [&field.name, &b": "[..], &field.value, b"\n"].concat().into();
        let fields = seen.iter().enumerate().filter(|(place, _)| is_kept(*place));
        fields.map(|(_, field)| line(field)).collect()
    }

    /// Selects the fields within the bound, name by name.
    fn kept(&self, seen: &[&Written]) -> Vec<bool> {
        let mut places: HashMap<Box<[u8]>, Vec<usize>> = HashMap::default();
        let mut order = Vec::new();
        for (place, field) in seen.iter().enumerate() {
            let name = lower(&field.name);
            places.entry(name.clone()).or_insert_with(|| {
                order.push(name);
                Vec::new()
            });
            places.entry(lower(&field.name)).or_default().push(place);
        }
        let mut kept = vec![false; seen.len()];
        let mut bytes = 0;
        for place in order.iter().filter_map(|name| places.get(name)).flatten() {
            bytes += seen[*place].name.len() + seen[*place].value.len() + 3;
            if bytes > ALL_BYTES_MAX {
                break;
            }
            kept[*place] = true;
        }
        kept
    }

    /// The fields from one `Received` field on to another and with it, by their numbers. Without a start, from the first field
    /// of all; without an end, to the last.
    fn range(&self, start: Option<usize>, end: Option<usize>, raw: bool) -> Vec<Box<[u8]>> {
        let lines = if raw { self.pristine() } else { self.everything() };
        let mut number: Option<usize> = None;
        let mut found = Vec::new();
        for line in lines {
            if line.get(..9).is_some_and(|name| name.eq_ignore_ascii_case(b"received:")) {
                number = Some(number.map_or(0, |number| number + 1));
            }
            let is_last = end.is_some() && number == end;
            if start.is_none_or(|start| number.is_some_and(|number| start <= number)) {
                found.push(line);
            }
            if is_last {
                break;
            }
        }
        found
    }

    /// The sender of the envelope, as far as the header tells it.
    fn envelope_from(&self) -> Option<Box<[u8]>> {
        let first = |name: &str| self.values(&format!("{name}:first:addr")).first().cloned();
        if let Some(name) = self.sender_field {
            return first(name).filter(|sender| sender.is_empty() || is_sender(sender));
        }
        let hop = self.path.untrusted.first().or(self.path.trusted.last());
        if let Some(sender) = hop.and_then(|hop| hop.envelope_from.clone())
            && (sender.is_empty() || is_sender(&sender))
        {
            return Some(sender);
        }
        let is_fetched = || self.values("Received").iter().any(|field| find(field, b"(fetchmail").is_some());
        if first("X-Sender").is_some_and(|sender| sender.contains(&b'@')) && is_fetched() {
            return None;
        }
        if let Some(sender) = first("X-Envelope-From") {
            return (!self.is_behind_received("X-Envelope-From")).then_some(sender);
        }
        let others = ["Envelope-Sender", "Return-Path"];
        others.into_iter().find_map(|name| first(name).filter(|_| !self.is_behind_received(name)))
    }

    /// Whether a field stands behind the first `Received` field.
    fn is_behind_received(&self, name: &str) -> bool {
        let mut seen = self.mail.fields().iter().skip_while(|field| !field.is(b"Received"));
        seen.any(|field| field.is(name.as_bytes()))
    }
}

/// Fields that a scanner left are not looked at.
fn is_seen(field: &Written) -> bool {
    !field.name.get(..7).is_some_and(|start| start.eq_ignore_ascii_case(b"x-spam-"))
}

fn is_sender(text: &[u8]) -> bool {
    text.iter().position(|&byte| byte == b'@').is_some_and(|at| at > 0)
}

/// Without the line feed at the end.
pub fn without_line_feed(text: &[u8]) -> &[u8] {
    text.strip_suffix(b"\n").unwrap_or(text)
}

/// Lower case, in ASCII.
fn lower(text: &[u8]) -> Box<[u8]> {
    text.to_ascii_lowercase().into()
}
