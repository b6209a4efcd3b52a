//! One `Received` field: which host handed the mail over, as far as the field tells.
//!
//! There is no grammar that servers keep to, so the forms that are known are tried in a fixed order, the particular ones
//! first ([`forms`]). What they have in common (who received it, the queue's name of the mail, whether the client was
//! authenticated) is looked for before.

mod forms;

use memchr::memmem::Finder;
use pattern::expression::{Expression, Flags, Progress, Search, Want};
use std::ops::Range;
use std::sync::{LazyLock, Mutex};
use stream::Fuel;

use self::forms::{Form, Outcome};
use super::ip;

/// A host that handed a mail over, and who to.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Relay {
    /// Its address, as text.
    pub ip: Box<[u8]>,
    /// The name that the receiver found for the address.
    pub rdns: Box<[u8]>,
    /// The name that it gave itself.
    pub helo: Box<[u8]>,
    /// Receiver of the mail.
    pub by: Box<[u8]>,
    /// Answer of the ident protocol.
    pub ident: Box<[u8]>,
    /// The sender in the envelope.
    pub envelope_from: Option<Box<[u8]>>,
    /// The queue's name of the mail.
    pub id: Box<[u8]>,
    /// How the client was authenticated; empty where it was not.
    pub auth: Box<[u8]>,
    /// The receiver looked for a name and found none.
    pub has_no_rdns: bool,
    /// The address is that of a private network.
    pub is_private: bool,
    /// Nothing outside of the site's own servers stands before it.
    pub is_internal: bool,
    /// It is one of the servers that take mail from the site's own users.
    pub is_msa: bool,
}

/// Result of reading a field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Read {
    /// A host handed the mail over.
    Relay(Box<Relay>),
    /// No handover between hosts.
    Local,
    /// As before, by a scanner that tells the sender of the next one.
    LocalFrom(Option<Box<[u8]>>),
    /// A program fetched the mail: what stands before it is no path.
    Fetched,
    /// It is not understood.
    Unknown,
}

/// Fields that are longer are cut: no server writes so much.
const BYTES_MAX: usize = 8192;
/// Steps of one search. Fields are short; what needs more is not understood.
const STEPS_MAX: u64 = 200_000;

/// An expression of ours, with the memory of searches for it that nobody uses.
struct Known {
    expression: Expression,
    /// Text that has none of this is not searched.
    needed: Option<Finder<'static>>,
    idle: Mutex<Vec<Search>>,
}

/// A match with its groups.
struct Groups<'k> {
    known: &'k Known,
    search: Option<Search>,
}

impl Known {
    /// An expression, or one that matches nothing where it cannot be read: the tests read all.
    fn new(needed: &'static str, text: &str, flags: Flags) -> Known {
        let read = Expression::new(text.as_bytes(), flags);
        let expression = read.unwrap_or_else(|_| Expression::new(b"(?!)", Flags::NONE).expect("an empty look ahead"));
        let needed = (!needed.is_empty()).then(|| Finder::new(needed));
        Known { expression, needed, idle: Mutex::default() }
    }

    /// The first match.
    fn groups(&self, text: &[u8], fuel: &mut Fuel) -> Option<Groups<'_>> {
        if self.needed.as_ref().is_some_and(|needed| needed.find(text).is_none()) {
            return None;
        }
        let idle = self.idle.lock().ok().and_then(|mut idle| idle.pop());
        let mut search = idle.unwrap_or_else(|| self.expression.search(Want::Groups));
        search.restart(0);
        let mut given = Fuel::new(fuel.left().min(STEPS_MAX));
        let before = given.left();
        let is_match = matches!(search.run(text, &mut given), Progress::Match(_));
        fuel.burn(usize::try_from(before - given.left()).unwrap_or(usize::MAX));
        let groups = Groups { known: self, search: Some(search) };
        is_match.then_some(groups)
    }

    /// First group of the first match; empty without one.
    fn captured(&self, text: &[u8], fuel: &mut Fuel) -> Box<[u8]> {
        let found = self.groups(text, fuel);
        found.and_then(|found| found.text(1, text).map(Box::from)).unwrap_or_default()
    }
}

impl Groups<'_> {
    fn span(&self, number: usize) -> Option<Range<usize>> {
        self.search.as_ref().and_then(|search| search.group(number))
    }

    fn text<'t>(&self, number: usize, text: &'t [u8]) -> Option<&'t [u8]> {
        self.span(number).and_then(|span| text.get(span))
    }

    /// A group by its name: of several, the one that took part.
    fn named<'t>(&self, name: &str, text: &'t [u8]) -> Option<&'t [u8]> {
        let mut numbers = self.known.expression.names().filter(|(known, _)| *known == name);
        numbers.find_map(|(_, number)| self.text(number, text))
    }
}

impl Drop for Groups<'_> {
    fn drop(&mut self) {
        const IDLE_MAX: usize = 64;
        if let (Some(search), Ok(mut idle)) = (self.search.take(), self.known.idle.lock())
            && idle.len() < IDLE_MAX
        {
            idle.push(search);
        }
    }
}

/// Expressions for what fields have in common; the first group is what is wanted.
struct Common {
    date: Known,
    id: Known,
    helo_is: Known,
    helo: Known,
    by: Known,
    local: Known,
    envelope: Known,
    logins: Vec<(Known, Login)>,
}

/// Login of a client.
enum Login {
    /// The first group.
    Group,
    /// Words.
    Text(&'static str),
    /// Words, with the groups.
    Two(&'static str, &'static str, &'static str),
    /// Postfix, or a product that behaves like it: the first group.
    Postfix,
}

const NAME: &str = r"[-A-Za-z0-9.^+_&:=?!@%*$\\/]";

static COMMON: LazyLock<Common> = LazyLock::new(|| {
    let plain = |needed, text: &str| Known::new(needed, text, Flags::NONE);
    let either = |needed, text: &str| Known::new(needed, text, Flags { ignore_case: true, ..Flags::NONE });
    let ip = forms::IP;
    Common {
        date: plain(
            "",
            r"[\s;]+(?:(?:Mon|Tue|Thu|Wed|Fri|Sat|Sun), )?\d+ (?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec) \d+ \d+:\d+(?::\d+)? \S+$",
        ),
        id: plain(" id ", r" id <?([^\s<>;]{3,})"),
        helo_is: plain("helo=", &format!(r"\bhelo=({NAME}+)(?:{}|$)", NAME.replacen('[', "[^", 1))),
        helo: plain("LO ", &format!(r"\b[HE][EH]LO ({NAME}+)(?:{}|$)", NAME.replacen('[', "[^", 1))),
        by: plain(" by ", r" by (\S+)(?:[^-A-Za-z0-9;.]|$)"),
        local: either("", r"^from (\S+) by [^\s;]+ ?;"),
        envelope: either("", r"(?:return-path:? |envelope-(?:sender|from)[ =])(\S+)\b"),
        logins: vec![
            // The first and the last are only meant of who received the mail.
            (either(" by ", r" with ((?:ESMTP|LMTP|UTF8SMTP|UTF8LMTP)S?A|ASMTP|HTTP[SU]?)(?: |;|$)"), Login::Group),
            (
                plain(
                    "google.com",
                    r" by mx\.google\.com with ESMTPS id [a-z0-9]{1,4}sm\d{2,9}[a-z]{3}\.\d{1,3}\.\d{4}\.(?:[0-6]\d\.){4}[0-6]\d.*?\(version=([^ ]+) cipher=([^)]+)\)",
                ),
                Login::Two("GMail - transport=", " cipher=", ""),
            ),
            (
                plain("AUTH:", r"^from .*?(?:\]\)|\)\]) \(AUTH: (LOGIN|PLAIN|DIGEST-MD5|CRAM-MD5) \S+(?:, .*?)?\) by "),
                Login::Group,
            ),
            (
                plain("authenticated", r"^from .*?(?:\](?: \([^)]*\))?\)|\)\]) .*?\(.*?authenticated.*?\).*? by"),
                Login::Text("Sendmail"),
            ),
            (
                plain(
                    "gmx",
                    &format!(
                        r"from \S* \([HE][EH]LO \S*\) \[{ip}\] by (mail\.gmx\.(?:net|com)) \([^)]+\) with (E?SMTP)"
                    ),
                ),
                Login::Two("GMX (", " / ", ")"),
            ),
            (
                plain(
                    " (authenticated as ",
                    r" \(authenticated as .*\) by .+ \(\d{1,2}\.\d\.\d{3}(?:\.\d{1,3})?\) \(authenticated as .+\) id ",
                ),
                Login::Text("CriticalPath"),
            ),
            (
                plain("Authenticated sender", r"\) \(Authenticated sender: \S+\) by \S+ \(([^)]+)\) with "),
                Login::Postfix,
            ),
            (
                plain("CommuniGate Pro ", r"^(?=.* \(account ).*CommuniGate Pro (?:HTTP|SMTP|XIMSS|IMAP)"),
                Login::Text("Communigate"),
            ),
            (plain("HTTP-DAV", r" with Microsoft Exchange Server HTTP-DAV\b"), Login::Text("HTTP-DAV")),
            (either(" by ", r" \(via (HTTP.?)\)(?: |;|$)"), Login::Group),
        ],
    }
});

/// Reads a field, unfolded. Without fuel it is not understood.
pub fn read(field: &[u8], fuel: &mut Fuel) -> Read {
    let field = &field[..field.len().min(BYTES_MAX)];
    let mut line = spaced(field);
    while let Some(rest) = line.strip_suffix(b";") {
        line.truncate(rest.trim_ascii_end().len().max(rest.len().saturating_sub(1)));
    }
    let is_from = |line: &[u8]| {
        let line = line.strip_prefix(b"(").unwrap_or(line);
        line.get(..5).is_some_and(|start| start.eq_ignore_ascii_case(b"from "))
    };
    if !is_from(&line) || has_words(&line, b"with local for") {
        return Read::Local;
    }
    let common = &*COMMON;
    if let Some(found) = common.local.groups(&line, fuel) {
        let name = found.text(1, &line).unwrap_or_default();
        let inner = name.strip_prefix(b"[").and_then(|name| name.strip_suffix(b"]"));
        let is_address =
            |inner: &[u8]| !inner.is_empty() && inner.iter().all(|byte| byte.is_ascii_digit() || *byte == b'.');
        if !inner.is_some_and(is_address) {
            return Read::Local;
        }
    }
    if let Some(span) = common.date.groups(&line, fuel).and_then(|found| found.span(0)) {
        line.truncate(span.start);
    }
    if let Some(at) = find(&line, b")by ") {
        line.splice(at..at + 4, *b") by ");
    }
    let mut relay =
        Relay { id: common.id.captured(&line, fuel), by: common.by.captured(&line, fuel), ..Relay::default() };
    relay.helo = common.helo_is.captured(&line, fuel);
    if relay.helo.is_empty() {
        relay.helo = common.helo.captured(&line, fuel);
    }
    relay.auth = login(&line, fuel).into();
    by_forms(&line, relay, fuel)
}

/// How the client was authenticated.
fn login(line: &[u8], fuel: &mut Fuel) -> Vec<u8> {
    for (known, login) in &COMMON.logins {
        let Some(found) = known.groups(line, fuel) else { continue };
        let part = |number| found.text(number, line).unwrap_or_default();
        return match login {
            Login::Group => part(1).to_vec(),
            Login::Text(text) => text.as_bytes().to_vec(),
            Login::Two("GMX (", between, behind) => {
                [b"GMX (", part(2), between.as_bytes(), part(1), behind.as_bytes()].concat()
            }
            Login::Two(before, between, behind) => {
                [before.as_bytes(), part(1), between.as_bytes(), part(2), behind.as_bytes()].concat()
            }
            Login::Postfix if part(1) == b"Postfix" => b"Postfix".to_vec(),
            Login::Postfix => [b"Postfix (", part(1), b")"].concat(),
        };
    }
    Vec::new()
}

/// Tries the forms, in their order.
fn by_forms(line: &[u8], mut relay: Relay, fuel: &mut Fuel) -> Read {
    let (start, rest) = if let Some(rest) = line.strip_prefix(b"from ") {
        (forms::Start::From, rest)
    } else if let Some(rest) = line.strip_prefix(b"FROM ") {
        (forms::Start::Capitals, rest)
    } else if let Some(rest) = line.strip_prefix(b"(from ") {
        (forms::Start::Parenthesis, rest)
    } else {
        (forms::Start::Other, line)
    };
    let mut envelope = None;
    if start == forms::Start::From {
        envelope = COMMON.envelope.groups(rest, fuel).and_then(|found| found.text(1, rest).map(clean_sender));
    }
    for form in forms::all().iter().filter(|form| form.start == start) {
        let Some(found) = form.known.groups(rest, fuel) else { continue };
        match form.outcome {
            Outcome::Local => return Read::Local,
            Outcome::LocalFrom => return Read::LocalFrom(envelope),
            Outcome::Fetched => return Read::Fetched,
            Outcome::Relay | Outcome::IfAddress => {}
        }
        let is_looked_up = take(form, &found, rest, &mut relay);
        if form.outcome == Outcome::IfAddress && (relay.ip.is_empty() || relay.by.is_empty()) {
            continue;
        }
        return finish(relay, envelope, is_looked_up);
    }
    if start == forms::Start::From && relay.helo.is_empty() {
        let end = rest.iter().take_while(|byte| !byte.is_ascii_whitespace()).count();
        if end > 0 && rest.len() > end {
            relay.helo = rest[..end].into();
        }
    }
    relay.ip = forms::in_brackets().captured(rest, fuel);
    if relay.ip.is_empty() || relay.by.is_empty() { Read::Unknown } else { finish(relay, envelope, false) }
}

/// Takes what a form names into the relay; whether the receiver looked for a name of the host.
fn take(form: &Form, found: &Groups<'_>, line: &[u8], relay: &mut Relay) -> bool {
    let text = |name: &str| found.named(name, line).map(Box::<[u8]>::from);
    for (name, place) in [
        ("helo", &mut relay.helo),
        ("rdns", &mut relay.rdns),
        ("ip", &mut relay.ip),
        ("by", &mut relay.by),
        ("ident", &mut relay.ident),
        ("id", &mut relay.id),
    ] {
        if let Some(text) = text(name) {
            *place = text;
        }
    }
    if let Some(sender) = text("from") {
        relay.envelope_from = Some(clean_sender(&sender));
    }
    if let Some(both) = text("both") {
        (relay.helo, relay.rdns) = (both.clone(), both);
    }
    if let Some(inner) = text("inner") {
        for (mark, place) in [(&b"helo="[..], &mut relay.helo), (b"ident=", &mut relay.ident)] {
            if let Some(at) = find(&inner, mark) {
                let behind = &inner[at + mark.len()..];
                let end = behind.iter().take_while(|byte| !byte.is_ascii_whitespace()).count();
                if end > 0 || mark == b"ident=" {
                    *place = behind[..end].into();
                }
            }
        }
    }
    if form.has("no id") {
        relay.id = Box::default();
    }
    // What stands before the name is what the ident protocol said.
    if form.has("ident in rdns")
        && let Some(at) = relay.rdns.iter().position(|&byte| byte == b'@')
    {
        let ident = &relay.rdns[..at];
        relay.ident = ident.strip_prefix(b"IDENT:").unwrap_or(ident).into();
        relay.rdns = relay.rdns[at + 1..].into();
    }
    let nothing: &[&[u8]] = match () {
        () if form.has("unknown") => &[b"unknown"],
        () if form.has("unverified") => &[b"unverified"],
        () if form.has("softdnserr") && *relay.rdns == *b"softdnserr" => {
            relay.rdns = Box::default();
            return false;
        }
        () => &[],
    };
    let is_nothing = nothing.contains(&&*relay.rdns);
    if is_nothing {
        relay.rdns = Box::default();
    }
    form.has("looked up")
        && !(form.has("not if unknown") && is_nothing)
        && !(form.has("claims") && *relay.rdns == *b"UNKNOWN")
}

/// Cleans what was found.
fn finish(mut relay: Relay, envelope: Option<Box<[u8]>>, is_looked_up: bool) -> Read {
    let rdns = relay.rdns.iter().rposition(|&byte| byte != b'.').map_or(0, |last| last + 1);
    relay.rdns = relay.rdns[..rdns].into();
    if relay.rdns.eq_ignore_ascii_case(b"unknown") || relay.rdns.starts_with(b"[") {
        relay.rdns = Box::default();
    }
    relay.ip = clean_ip(&relay.ip);
    if let Some(by) = relay.by.strip_suffix(b";") {
        relay.by = by.into();
    }
    for text in [&mut relay.ip, &mut relay.rdns, &mut relay.helo, &mut relay.by, &mut relay.ident] {
        defuse(text);
    }
    relay.envelope_from = relay.envelope_from.or(envelope);
    relay.has_no_rdns = relay.rdns.is_empty() && is_looked_up;
    relay.is_private = ip::is_private(&relay.ip);
    Read::Relay(Box::new(relay))
}

/// Without `IPv6:`, brackets and a zone; an address of IPv4 in one of IPv6 is one of IPv4.
fn clean_ip(ip: &[u8]) -> Box<[u8]> {
    let start = ip.get(..5).filter(|start| start.eq_ignore_ascii_case(b"ipv6:"));
    let ip = start.map_or(ip, |_| &ip[5..]);
    let ip = ip.strip_prefix(b"[").unwrap_or(ip);
    let ip = ip.strip_suffix(b"]").unwrap_or(ip);
    let ip = ip.split(|&byte| byte == b'%').next().unwrap_or_default();
    let mapped = match ip::parse(ip) {
        Some(core::net::IpAddr::V6(address)) if ip.contains(&b'.') => address.to_ipv4_mapped(),
        _ => None,
    };
    mapped.map_or_else(|| ip.into(), |address| address.to_string().into_bytes().into())
}

fn clean_sender(text: &[u8]) -> Box<[u8]> {
    let text = text.trim_ascii_start();
    let start = text.iter().take_while(|&&byte| byte == b'<').count();
    let text = text[start..].trim_ascii_end();
    let end = text.iter().rposition(|&byte| byte != b'>').map_or(0, |last| last + 1);
    let mut text: Box<[u8]> = text[..end].into();
    defuse(&mut text);
    text
}

/// Replaces characters by `!` that would break the list of relays.
fn defuse(text: &mut [u8]) {
    for byte in text.iter_mut().filter(|byte| byte.is_ascii_whitespace() || b"\0#[]()<>|".contains(byte)) {
        *byte = b'!';
    }
}

/// Blanks as one space each, none at the ends.
fn spaced(text: &[u8]) -> Vec<u8> {
    let blank = |byte: &u8| byte.is_ascii_whitespace() || *byte == 0x0b;
    text.split(blank).filter(|word| !word.is_empty()).collect::<Vec<_>>().join(&b' ')
}

/// Where a text begins in another.
pub(crate) fn find(text: &[u8], wanted: &[u8]) -> Option<usize> {
    memchr::memmem::find(text, wanted)
}

fn has_words(line: &[u8], words: &[u8]) -> bool {
    let word = |byte: Option<&u8>| byte.is_some_and(|byte| byte.is_ascii_alphanumeric() || *byte == b'_');
    find(line, words).is_some_and(|at| {
        let before = at.checked_sub(1).and_then(|before| line.get(before));
        !word(before) && !word(line.get(at + words.len()))
    })
}

impl Relay {
    /// As the list has it that rules look at.
    pub fn append_to(&self, out: &mut Vec<u8>) {
        let digit = |is: bool| if is { &b"1"[..] } else { b"0" };
        for (name, value) in [
            (&b"[ ip="[..], &*self.ip),
            (b" rdns=", &self.rdns),
            (b" helo=", &self.helo),
            (b" by=", &self.by),
            (b" ident=", &self.ident),
            (b" envfrom=", self.envelope_from.as_deref().filter(|from| *from != b"0").unwrap_or_default()),
            (b" intl=", digit(self.is_internal)),
            (b" id=", &self.id),
            (b" auth=", &self.auth),
            (b" msa=", digit(self.is_msa)),
        ] {
            out.extend_from_slice(name);
            out.extend_from_slice(value);
        }
        out.extend_from_slice(b" ]");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn relay(field: &str) -> String {
        match read(field.as_bytes(), &mut Fuel::new(1_000_000)) {
            Read::Relay(relay) => {
                let mut out = Vec::new();
                relay.append_to(&mut out);
                String::from_utf8(out).unwrap()
            }
            other => format!("{other:?}"),
        }
    }

    #[test]
    fn each_form_names_the_host() {
        for (field, expected) in [
            (
                "from mx.a.example (mx.b.example [192.0.2.1]) by in.c.example (8.11.6/8.11.6) with ESMTP id g7MBYrZ04811 for <x@y.z>; Thu, 22 Aug 2002 12:34:53 +0100",
                "[ ip=192.0.2.1 rdns=mx.b.example helo=mx.a.example by=in.c.example ident= envfrom= intl=0 id=g7MBYrZ04811 auth= msa=0 ]",
            ),
            (
                "from a.example (unknown [192.0.2.1])\n\tby in.c.example (Postfix) with ESMTP id 10CF8406D7; Thu, 22 Aug 2002 07:34:07 -0400 (EDT)",
                "[ ip=192.0.2.1 rdns= helo=a.example by=in.c.example ident= envfrom= intl=0 id=10CF8406D7 auth= msa=0 ]",
            ),
            (
                "from unknown (HELO mail.a.example) (192.0.2.7) by in.c.example with SMTP; 22 Aug 2002 11:00:00 -0000",
                "[ ip=192.0.2.7 rdns= helo=mail.a.example by=in.c.example ident= envfrom= intl=0 id= auth= msa=0 ]",
            ),
            (
                "from [192.0.2.9] (helo=a.example ident=joe) by in.c.example with esmtp (Exim 4.50) id 1DK-3",
                "[ ip=192.0.2.9 rdns= helo=a.example by=in.c.example ident=joe envfrom= intl=0 id=1DK-3 auth= msa=0 ]",
            ),
            ("by 10.0.0.1 with SMTP id x; Thu, 22 Aug 2002 12:34:53 +0100", "Local"),
            ("from a by b; Thu, 22 Aug 2002 12:34:53 +0100", "Local"),
            ("from x (x [y]) something", "Unknown"),
        ] {
            assert_eq!(relay(field), expected, "{field}");
        }
    }
}
