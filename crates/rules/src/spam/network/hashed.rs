//! Lists of digests (`check_hashbl_...`): of e-mail addresses, addresses of the web, what an expression finds, values of tags
//! and attachments.
//!
//! Left out: expressions of a site's own for e-mail addresses (`hashbl_email_regex`, `hashbl_email_welcomelist`), and tags that
//! say who has signed the mail.

use std::collections::HashSet;
use std::sync::LazyLock;

use flow::RecordKind;
use pattern::expression::{Expression, Flags, Want};

use super::hosts::is_mailto;
use super::list::zone;
use super::scope::Scope;
use super::subtest::Subtest;
use crate::spam::eval::Context;
use crate::spam::header::{parse_ip, reversed};
use crate::spam::message::{ascii, is_host};
use crate::spam::rule::{Rule, View};
use crate::spam::search::Pooled;
use crate::spam::syntax::call::Call;

/// Subject of a look-up.
#[derive(Debug)]
enum Subject {
    /// Addresses in these fields, of all senders, or in the body.
    /// With the name of the list of domains that they have to be of.
    Emails(Vec<Box<str>>, Option<Box<str>>),
    /// Addresses of the web.
    Uris,
    /// The first group of what matches in a view.
    Found(View, Expression),
    /// The values of a tag.
    Tag(Box<str>),
    /// Attachments.
    Attachments,
}

/// A rule with such a list.
#[derive(Debug)]
pub(super) struct Hashed {
    pub(super) rule: u32,
    subject: Subject,
    options: Options,
    pub(super) zone: Box<[u8]>,
    pub(super) kind: RecordKind,
    pub(super) subtest: Subtest,
    pub(super) hits_max: u32,
}

/// `sha1/max=10/...`
#[derive(Debug, Default)]
struct Options(Vec<(Box<str>, Box<str>)>);

impl Options {
    fn read(text: &[u8]) -> Options {
        let text = String::from_utf8_lossy(text).to_ascii_lowercase();
        let option = |part: &str| match part.trim().split_once('=') {
            Some((name, value)) => (name.into(), value.into()),
            None => (part.trim().into(), "1".into()),
        };
        Options(text.split('/').filter(|part| !part.trim().is_empty()).map(option).collect())
    }

    fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(known, _)| **known == *name).map(|(_, value)| &**value)
    }

    fn has(&self, name: &str) -> bool {
        self.get(name).is_some_and(|value| !value.is_empty() && value != "0")
    }

    fn number(&self, name: &str) -> Option<usize> {
        self.get(name)?.parse().ok().filter(|&number| number > 0)
    }
}

/// Look-ups of one rule: the default, and the maximum.
const COUNT: usize = 10;
const COUNT_MAX: usize = 100;

/// Matches of one expression in a mail.
const MATCHES_MAX: usize = 1_000;

impl Hashed {
    pub(super) fn new(id: u32, rule: &Rule, view: View, call: &Call) -> Option<Hashed> {
        let argument = |place: usize| call.arguments.get(place).map(|text| &**text).filter(|text| !text.is_empty());
        let words = |text: &[u8]| -> Vec<Box<str>> {
            text.split(|&byte| byte == b'/').map(|word| String::from_utf8_lossy(word.trim_ascii()).into()).collect()
        };
        let (subject, usual, subtest): (_, &[u8], _) = match &*call.function {
            "check_hashbl_emails" => {
                let from = argument(2).unwrap_or(b"ALLFROM/Reply-To/body");
                let list = argument(4).map(|name| String::from_utf8_lossy(name).into());
                (Subject::Emails(words(from), list), b"sha1/notag/noquote/max=10", argument(3))
            }
            "check_hashbl_uris" => (Subject::Uris, b"sha1/max=10", argument(2)),
            "check_hashbl_bodyre" => {
                let expression = Expression::new(argument(2)?, Flags::of("s").ok()?).ok()?;
                (Subject::Found(view, expression), b"sha1/max=10", argument(3))
            }
            "check_hashbl_tag" => {
                let name = String::from_utf8_lossy(argument(2)?).trim_matches('_').to_ascii_uppercase();
                (Subject::Tag(name.into()), b"sha1/max=10", argument(3))
            }
            "check_hashbl_attachments" => (Subject::Attachments, b"sha1/max=10", argument(2)),
            _ => return None,
        };
        let list = argument(0)?.to_ascii_lowercase();
        let (list, kind) = match list.strip_suffix(b"/txt") {
            Some(list) => (list, RecordKind::Txt),
            None => (list.strip_suffix(b"/a").unwrap_or(&list), RecordKind::A),
        };
        Some(Hashed {
            rule: id,
            subject,
            options: Options::read(argument(1).unwrap_or(usual)),
            zone: zone(list),
            kind,
            subtest: Subtest::of_digest(subtest)?,
            hits_max: rule.flags.hits_max(),
        })
    }

    /// Values to look up, each with its digest in the list. `values` has those of tags.
    pub(super) fn values(
        &self,
        context: &Context<'_>,
        scope: &Scope,
        values: impl Fn(&str) -> Vec<Vec<u8>>,
    ) -> Vec<(Vec<u8>, Vec<u8>)> {
        if let Subject::Attachments = self.subject {
            return self.chosen(self.attachments(context, scope), |digest| digest.to_vec());
        }
        let found = match &self.subject {
            Subject::Emails(from, list) => self.emails(context, scope, from, list.as_deref()),
            Subject::Uris => self.uris(context, scope),
            Subject::Found(view, expression) => self.matches(context, *view, expression),
            Subject::Tag(name) => self.tagged(context, scope, values(name)),
            Subject::Attachments => Vec::new(),
        };
        let is_asked = |value: &Vec<u8>| !value.is_empty() && !scope.ignored.contains(&value.to_ascii_lowercase()[..]);
        self.chosen(found.into_iter().filter(is_asked).collect(), |value| self.digest(value))
    }

    /// Each value once, so many as the rule may ask.
    fn chosen(&self, found: Vec<Vec<u8>>, digest: impl Fn(&[u8]) -> Vec<u8>) -> Vec<(Vec<u8>, Vec<u8>)> {
        let mut seen = HashSet::new();
        let most = self.options.number("max").unwrap_or(COUNT).min(COUNT_MAX);
        let distinct = found.into_iter().filter(|value| seen.insert(value.clone())).take(most);
        distinct
            .map(|value| {
                let digest = digest(&value);
                (value, digest)
            })
            .collect()
    }

    fn cased(&self, value: &[u8]) -> Vec<u8> {
        if self.options.has("case") { value.to_vec() } else { value.to_ascii_lowercase() }
    }

    fn digest(&self, value: &[u8]) -> Vec<u8> {
        let options = &self.options;
        match () {
            () if options.has("sha256") => base32(&digest::sha256::digest(value)),
            () if options.has("sha1") => text::hex::encode(&digest::sha1::digest(value)).into_bytes(),
            () if options.has("md5") => text::hex::encode(&digest::md5::digest(value)).into_bytes(),
            () => value.to_vec(),
        }
    }

    fn matches(&self, context: &Context<'_>, view: View, expression: &Expression) -> Vec<Vec<u8>> {
        let mail = context.mail;
        let haystacks: Vec<&[u8]> = match view {
            View::Full => vec![mail.full()],
            View::Rawbody => mail.raw_body().iter().map(|line| &**line).collect(),
            _ => mail.body().iter().map(|line| &**line).collect(),
        };
        let mut found = Vec::new();
        let mut search = expression.search(Want::Groups);
        let mut budget = context.budget.borrow_mut();
        budget.next_rule();
        for haystack in haystacks {
            let mut from = 0;
            while from <= haystack.len() && found.len() < MATCHES_MAX {
                let Ok(Some(span)) = budget.find(&mut search, haystack, from) else { break };
                if let Some(group) = search.group(1).and_then(|group| haystack.get(group)) {
                    let mut value = self.cased(group);
                    if self.options.has("num") {
                        value.retain(u8::is_ascii_digit);
                    }
                    found.push(value);
                }
                from = if span.is_empty() { span.end + 1 } else { span.end };
            }
        }
        found
    }

    fn uris(&self, context: &Context<'_>, scope: &Scope) -> Vec<Vec<u8>> {
        let mut found = Vec::new();
        for uri in context.mail.uris() {
            let is_linked = uri.kinds.contains("a") || uri.kinds.contains("parsed");
            let is_skipped = uri.hosts.iter().any(|(host, domain)| scope.skips(host, domain));
            if !is_mailto(&uri.raw) && is_linked && !uri.hosts.is_empty() && !is_skipped {
                found.extend(uri.cleaned.iter().map(|spelling| self.cased(spelling)));
            }
        }
        found
    }

    fn tagged(&self, context: &Context<'_>, scope: &Scope, values: Vec<Vec<u8>>) -> Vec<Vec<u8>> {
        let options = &self.options;
        let reading = &context.settings.reading;
        let (is_name, is_registered) =
            (options.has("fqdn") || options.has("trim"), options.has("tld") || options.has("trim"));
        values
            .into_iter()
            .filter_map(|value| {
                let value = self.cased(&value);
                if let Some(address) = parse_ip(&value) {
                    let fits =
                        (!options.has("ipv4") || address.is_ipv4()) && (!options.has("ipv6") || address.is_ipv6());
                    let turned = options.has("revip").then(|| reversed(&value)).flatten();
                    return fits.then(|| turned.unwrap_or(value));
                }
                let host = ascii(&value);
                let fits = !["ip", "ipv4", "ipv6"].iter().any(|name| options.has(name))
                    && (!is_name || is_host(&host))
                    && (!is_registered || reading.is_known(&host));
                let domain = reading.registered(&host);
                if !fits || is_host(&host) && scope.skips(&value, &domain) {
                    return None;
                }
                Some(if options.has("trim") && is_host(&host) { domain } else { value })
            })
            .collect()
    }

    fn attachments(&self, context: &Context<'_>, scope: &Scope) -> Vec<Vec<u8>> {
        let options = &self.options;
        let mut found = Vec::new();
        for part in context.mail.parts().iter().filter(|part| !part.has_parts && !part.decoded().is_empty()) {
            let bytes = part.decoded();
            let name = part.name.as_deref().unwrap_or_default().to_ascii_lowercase();
            let is_ignored = scope.ignored.contains(part.kind.as_bytes()) || scope.ignored.contains(&name[..]);
            let fits = options.number("minsize").is_none_or(|least| bytes.len() >= least)
                && options.number("maxsize").is_none_or(|most| bytes.len() <= most);
            if fits && !is_ignored {
                found.push(self.digest(bytes));
            }
        }
        found
    }

    fn emails(&self, context: &Context<'_>, scope: &Scope, from: &[Box<str>], list: Option<&str>) -> Vec<Vec<u8>> {
        let options = &self.options;
        let reading = &context.settings.reading;
        let own: Vec<Vec<u8>> = ["X-Original-To:addr", "Apparently-To:addr", "Delivered-To:addr", "Envelope-To:addr"]
            .map(|name| context.fields.get(name).to_ascii_lowercase())
            .to_vec();
        let mut out = Vec::new();
        for email in from.iter().flat_map(|place| emails_in(context, place)) {
            let Some(at) = email.iter().rposition(|&byte| byte == b'@') else { continue };
            let (mut user, domain) = (email[..at].to_vec(), email[at + 1..].to_ascii_lowercase());
            let domain = main_domain(context, domain);
            let email = [&user[..], b"@", &domain].concat();
            let is_common = WELCOME.as_ref().is_some_and(|expression| context.matches(expression, &email));
            let registered = reading.registered(&ascii(&domain));
            let is_skipped = match list {
                None => scope.skips(&domain, &registered),
                Some(list) => !is_listed(context, list, &domain),
            };
            if own.contains(&email.to_ascii_lowercase()) || is_common || is_skipped {
                continue;
            }
            if options.has("nodot") {
                user.retain(|&byte| byte != b'.');
            }
            if options.has("notag") {
                user.truncate(user.iter().position(|&byte| byte == b'+').unwrap_or(user.len()));
            }
            out.push(self.cased(&match () {
                () if options.has("domain") => registered,
                () if options.has("host") => domain,
                () if options.has("user") => user,
                () => [&user[..], b"@", &domain].concat(),
            }));
        }
        out
    }
}

/// Whether a list of domains (`hashbl_acl_NAME`) has one; `all` has all.
fn is_listed(context: &Context<'_>, list: &str, domain: &[u8]) -> bool {
    let words = context.settings.all_words(&format!("hashbl_acl_{list}"));
    let has = |entry: &[u8]| words.iter().any(|word| word.eq_ignore_ascii_case(entry));
    list == "all" || (has(domain) && !has(&[b"!", domain].concat()))
}

/// The domain of which another is an alias (`hashbl_email_domain_alias`).
fn main_domain(context: &Context<'_>, domain: Vec<u8>) -> Vec<u8> {
    let lines = context.settings.all_words("hashbl_email_domain_alias").as_chunks::<2>().0;
    let is_alias = |aliases: &[u8]| {
        let mut aliases = aliases.split(u8::is_ascii_whitespace);
        aliases.any(|alias| !alias.is_empty() && alias.eq_ignore_ascii_case(&domain))
    };
    let found = lines.iter().rev().find(|[_, aliases]| is_alias(aliases)).map(|[main, _]| main.to_ascii_lowercase());
    found.unwrap_or(domain)
}

/// Addresses that many sites have, and those that machines make up.
static WELCOME: LazyLock<Option<Pooled>> = LazyLock::new(|| {
    const PATTERN: &[u8] = b"^(?:abuse|support|sales|info|helpdesk|contact|kontakt|(?:post|host|domain)master\
        |undisclosed.*|request-[a-f0-9]{16}|bounced?-\
        |[a-f0-9]{8}(?:\\.[a-f0-9]{8}|-[a-f0-9]{4}-[a-f0-9]{4}-[a-f0-9]{4}-[a-f0-9]{12})|.+=.+=.+)@";
    Pooled::new(PATTERN, Flags::of("i").ok()?).ok()
});

fn emails_in(context: &Context<'_>, place: &str) -> Vec<Vec<u8>> {
    if place == "ALLFROM" {
        return context.senders().iter().map(|address| address.to_vec()).collect();
    }
    let mut text = Vec::new();
    if place == "body" {
        for uri in context.mail.uris().iter().filter(|uri| uri.kinds.contains("a") && !uri.kinds.contains("parsed")) {
            if is_mailto(&uri.raw) {
                text.extend_from_slice(&uri.raw[7..]);
                text.push(b'\n');
            }
        }
        context.mail.body().iter().for_each(|line| text.extend_from_slice(line));
    } else {
        text = context.fields.get(place);
    }
    emails(&text, |host| context.settings.reading.is_known(host))
}

/// The e-mail addresses in a text, each once.
fn emails(text: &[u8], is_known: impl Fn(&[u8]) -> bool) -> Vec<Vec<u8>> {
    const USER_BYTES_MAX: usize = 64;
    const HOST_BYTES_MAX: usize = 253;
    const LABELS_MAX: usize = 5;
    let is_user = |byte: &u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+/=?^_`{|}~-".contains(byte);
    let mut found: Vec<Vec<u8>> = Vec::new();
    for at in memchr::memchr_iter(b'@', text).take(MATCHES_MAX) {
        let mut user = 0;
        while user <= USER_BYTES_MAX && user < at {
            let byte = text[at - user - 1];
            let is_inner_dot = byte == b'.' && user > 0 && text[at - user] != b'.';
            if !is_user(&byte) && !is_inner_dot {
                break;
            }
            user += 1;
        }
        let start = &text[at - user..at];
        let start = start.strip_prefix(b".").unwrap_or(start);
        let fits = |byte: &&u8| byte.is_ascii_alphanumeric() || b".-".contains(byte);
        let length = text[at + 1..].iter().take(HOST_BYTES_MAX).take_while(fits).count();
        let host = &text[at + 1..at + 1 + length];
        let labels: Vec<&[u8]> = host.split(|&byte| byte == b'.').take_while(|label| !label.is_empty()).collect();
        let lengths = (2..=labels.len().min(LABELS_MAX)).rev().map(|count| labels[..count].join(&b'.'));
        let Some(host) = lengths.into_iter().find(|host| is_known(host) && is_host(&ascii(host))) else { continue };
        if start.is_empty() || user > USER_BYTES_MAX {
            continue;
        }
        let email = [start, b"@", &host].concat();
        if !found.contains(&email) {
            found.push(email);
        }
    }
    found
}

/// RFC 4648 section 6, without padding, in lower case.
fn base32(bytes: &[u8]) -> Vec<u8> {
    const LETTERS: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";
    let mut out = Vec::new();
    for chunk in bytes.chunks(5) {
        let mut word = [0; 8];
        word[3..3 + chunk.len()].copy_from_slice(chunk);
        let bits = u64::from_be_bytes(word);
        let count = (chunk.len() * 8).div_ceil(5);
        out.extend((0..count).map(|place| LETTERS[(bits >> (35 - 5 * place) & 31) as usize]));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digests_are_written_in_letters() {
        for (bytes, text) in [("", ""), ("f", "my"), ("fo", "mzxq"), ("foobar", "mzxw6ytboi"), ("fooba", "mzxw6ytb")] {
            assert_eq!(base32(bytes.as_bytes()), text.as_bytes(), "{bytes}");
        }
    }

    #[test]
    fn addresses_are_found_in_text() {
        let known = |host: &[u8]| host.ends_with(b".com") || host.ends_with(b".uk");
        let found = |text: &str| {
            emails(text.as_bytes(), known)
                .into_iter()
                .map(|email| String::from_utf8(email).unwrap())
                .collect::<Vec<_>>()
        };
        assert_eq!(found("write a.b+c@x.com, or <d@mail.y.co.uk>."), ["a.b+c@x.com", "d@mail.y.co.uk"]);
        assert_eq!(found("..a@x.com.b.c a@x.com"), ["a@x.com"]);
        assert!(found("@x.com a@com a@x.nowhere a@-x.com").is_empty());
        assert!(found(&format!("{}@x.com", "a".repeat(65))).is_empty());
    }

    #[test]
    fn addresses_of_listed_domains_are_looked_up_by_their_main_names() {
        use crate::spam::message::{Message, MessageLimits};
        use crate::spam::run::{Engine, EngineOptions, Expressions};
        use crate::spam::total::ScoreSet;
        use crate::spam::{File, Limits, Loader, Options as Reading};

        let asked = |arguments: &str| {
            let text = format!(
                "util_rb_tld com\nhashbl_email_domain_alias gmail.com googlemail.com\nhashbl_acl_free gmail.com mail.com !gmx.com\n\
                 hashbl_acl_free gmx.com\nuridnsbl_skip_domain mail.com\n\
                 header A eval:check_hashbl_emails('l.test/A', 'max=10', 'X-A'{arguments})\ntflags A net\n"
            );
            let mut loader = Loader::new(Reading { default_plugins: true, ..Reading::default() }, Limits::default());
            loader.read(&File { name: "a.cf".into(), bytes: text.into() }, &mut |_, _| Err(String::new()));
            let set = ScoreSet { net: true, bayes: false };
            let engine = Engine::new(loader.finish(&Expressions), EngineOptions { set, ..EngineOptions::default() });
            assert_eq!(engine.rules().errors(), 0, "{:?}", engine.rules().problems());
            let mail = b"X-A: joe@Googlemail.com, jim@mail.com, a@gmx.com, b@other.com, info@gmail.com\n\nx\n";
            let mail = Message::read(mail, engine.reading(), &MessageLimits::default());
            let mut inquiry = engine.inquire(&mail, 0);
            let mut names: Vec<String> =
                std::iter::from_fn(|| Some(inquiry.ask()?.question.name.to_string())).collect();
            names.sort();
            names.join(" ")
        };
        assert_eq!(asked(""), "a@gmx.com.l.test b@other.com.l.test joe@gmail.com.l.test");
        assert_eq!(asked(", '127', 'free'"), "jim@mail.com.l.test joe@gmail.com.l.test");
        let all = "a@gmx.com.l.test b@other.com.l.test jim@mail.com.l.test joe@gmail.com.l.test";
        assert_eq!(asked(", '127', 'all'"), all);
        assert_eq!(asked(", '127', 'none'"), "");
    }

    #[test]
    fn options_have_names_and_values() {
        let options = Options::read(b"SHA1/max=3/ nodot /shuffle=0");
        assert!(options.has("sha1") && options.has("nodot") && !options.has("shuffle") && !options.has("md5"));
        assert_eq!(options.number("max"), Some(3));
    }
}
