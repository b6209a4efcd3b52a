//! Functions about addresses of providers where anyone gets one.

use std::sync::LazyLock;

use pattern::expression::Flags;

use super::{Arguments, Context, Function, look, truth};
use crate::spam::search::Pooled;

/// The functions.
pub(super) const FUNCTIONS: &[Function] = &[
    look("check_freemail_from", from),
    look("check_freemail_header", header),
    look("check_freemail_body", body),
    look("check_freemail_replyto", reply_to),
];
/// Functions whose arguments are expressions.
pub(super) const TAKES_EXPRESSION: [&str; 3] = ["check_freemail_from", "check_freemail_header", "check_freemail_body"];

/// Expressions for users that mean nobody in particular, and for senders of lists.
struct Common {
    nobody: Option<Pooled>,
    bulk: Option<Pooled>,
}

static COMMON: LazyLock<Common> = LazyLock::new(|| {
    let read = |text: &str| Pooled::new(text.as_bytes(), Flags { ignore_case: true, ..Flags::NONE }).ok();
    Common {
        nobody: read(concat!(
            r"^(?:abuse|support|sales|info|helpdesk|contact|kontakt|postmaster|hostmaster|domainmaster|undisclosed.*|",
            r"request-[a-f0-9]{16}|bounced?-|[a-f0-9]{8}(?:\.[a-f0-9]{8}|-[a-f0-9]{4}-[a-f0-9]{4}-[a-f0-9]{4}-[a-f0-9]{12})|",
            r".+=.+=.+)@"
        )),
        bulk: read(concat!(
            r"(?:^(?:post|host|domain)master|^double-bounce|^(?:sentto|owner|return|bounced?|grbounced?)-.+|",
            r"-(?:request|bounces?|admin|owner)|\b(?:do[._-t]?)?no[._-t]?repl(?:y|ies)|.+=.+)@"
        )),
    }
});

/// Whether anyone gets an address of this kind; those that are welcome are left out.
fn is_freemail(context: &Context<'_>, address: &[u8]) -> bool {
    let freemail = &context.settings.freemail;
    let domain = address.rsplit(|&byte| byte == b'@').next().unwrap_or_default();
    // What says no to most addresses, and costs little, comes first.
    let is_listed = freemail.exact.contains(domain)
        || (domain.len() < address.len() && freemail.globs.iter().any(|glob| fits_domain(glob, domain)));
    let is_out = !is_listed || freemail.welcome.contains(address) || freemail.welcome.contains(domain);
    if is_out || address.is_empty() || COMMON.nobody.as_ref().is_some_and(|nobody| context.matches(nobody, address)) {
        return false;
    }
    let imports = |list: &str| {
        context.settings.number(&format!("freemail_import_{list}"), 0.0) != 0.0 && context.settings.has(list, address)
    };
    !imports("welcomelist_auth") && !imports("def_welcomelist_auth")
}

/// As a glob, but that `*` stands for text without dots.
fn fits_domain(glob: &[u8], domain: &[u8]) -> bool {
    let dots = |text: &[u8]| text.iter().filter(|&&byte| byte == b'.').count();
    fn parts(text: &[u8]) -> impl Iterator<Item = &[u8]> {
        text.split(|&byte| byte == b'.')
    }
    dots(glob) == dots(domain)
        && parts(glob).zip(parts(domain)).all(|(glob, label)| crate::spam::settings::fits(glob, label))
}

fn is_available(context: &Context<'_>) -> bool {
    let freemail = &context.settings.freemail;
    !freemail.exact.is_empty() || !freemail.globs.is_empty()
}

fn lower(values: &[Box<[u8]>]) -> Vec<Box<[u8]>> {
    values.iter().map(|value| value.to_ascii_lowercase().into()).collect()
}

/// Adds the address to the report, so that nobody collects it there.
fn note(context: &Context<'_>, address: &[u8]) {
    if context.settings.number("freemail_add_describe_email", 1.0) != 0.0 {
        context.note(&address.split(|&byte| byte == b'@').collect::<Vec<_>>().join(&b"(at)"[..]));
    }
}

/// Whether one of several addresses is free and fits an expression, if there is one.
fn any(context: &Context<'_>, addresses: &[Box<[u8]>], expression: Option<&Pooled>) -> f64 {
    let fits = |address: &[u8]| expression.is_none_or(|expression| context.matches(expression, address));
    let found = addresses.iter().find(|address| is_freemail(context, address) && fits(address));
    if let Some(address) = found {
        note(context, address);
    }
    truth(found.is_some())
}

fn from(context: &Context<'_>, arguments: &Arguments<'_>) -> f64 {
    if !is_available(context) || (!arguments.is_empty() && arguments.expression(0).is_none()) {
        return 0.0;
    }
    any(context, &lower(context.senders()), arguments.expression(0))
}

fn header(context: &Context<'_>, arguments: &Arguments<'_>) -> f64 {
    if !is_available(context) || (arguments.len() > 1 && arguments.expression(1).is_none()) {
        return 0.0;
    }
    let addresses = context.fields.values(&format!("{}:addr", arguments.text(0)));
    any(context, &lower(&addresses), arguments.expression(1))
}

fn body(context: &Context<'_>, arguments: &Arguments<'_>) -> f64 {
    let Some(addresses) = in_body(context).filter(|_| is_available(context)) else { return 0.0 };
    let Some(expression) = arguments.expression(0) else { return truth(!addresses.is_empty() && arguments.is_empty()) };
    truth(addresses.iter().any(|address| context.matches(expression, address)))
}

/// The free addresses in the body; `None` where there are too many to say anything.
fn in_body<'c>(context: &'c Context<'_>) -> Option<&'c Vec<Box<[u8]>>> {
    context.body_freemail.get_or_init(|| find_in_body(context)).as_ref()
}

fn find_in_body(context: &Context<'_>) -> Option<Vec<Box<[u8]>>> {
    const LINKS_MAX: usize = 20;
    const ADDRESSES_MAX: usize = 40;
    let mut found: Vec<Box<[u8]>> = Vec::new();
    for uri in context.mail.uris() {
        let has = |kind: &str| uri.kinds.contains(kind);
        let rest = uri.raw.get(..7).filter(|start| start.eq_ignore_ascii_case(b"mailto:")).map(|_| &uri.raw[7..]);
        let Some(rest) = rest.filter(|_| has("a") && !has("parsed")) else { continue };
        if let Some((0, end)) = address_at_or_behind(context, rest, 0) {
            add(&rest[..end], &mut found);
        }
        if found.len() >= LINKS_MAX {
            break;
        }
    }
    'body: for line in context.mail.body().iter().filter(|line| line.contains(&b'@')) {
        let line = without_links(line);
        let line = without_fields(context, &line);
        let mut from = 0;
        while let Some((start, end)) = address_at_or_behind(context, &line, from) {
            add(&line[start..end], &mut found);
            from = end;
            if found.len() >= ADDRESSES_MAX {
                break 'body;
            }
        }
    }
    let (all_max, free_max) = (
        context.settings.number("freemail_max_body_emails", 5.0),
        context.settings.number("freemail_max_body_freemails", 3.0),
    );
    let skips = context.settings.number("freemail_skip_when_over_max", 1.0) != 0.0;
    let mut free = Vec::new();
    for (count, address) in found.into_iter().enumerate() {
        if skips && (count + 1) as f64 == all_max {
            return None;
        }
        if is_freemail(context, &address) {
            free.push(address);
            if skips && free.len() as f64 == free_max {
                return None;
            }
        }
    }
    Some(free)
}

fn add(address: &[u8], found: &mut Vec<Box<[u8]>>) {
    let address: Box<[u8]> = address.to_ascii_lowercase().into();
    if !found.contains(&address) {
        found.push(address);
    }
}

fn is_local(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+/=?^_`{|}~-".contains(&byte)
}

/// The first mail address at or behind a place: where it begins and ends.
fn address_at_or_behind(context: &Context<'_>, text: &[u8], from: usize) -> Option<(usize, usize)> {
    const LOCAL_MAX: usize = 64;
    let mut at = from;
    while let Some(sign) = text.get(at..)?.iter().position(|&byte| byte == b'@') {
        let sign = at + sign;
        at = sign + 1;
        let floor = from.max(sign.saturating_sub(LOCAL_MAX));
        let mut start = sign;
        while start > floor
            && (is_local(text[start - 1]) || (text[start - 1] == b'.' && start < sign && text[start] != b'.'))
        {
            start -= 1;
        }
        // No dot stands at the front, and nothing of a name before it.
        while start < sign && text[start] == b'.' {
            start += 1;
        }
        let is_free = start.checked_sub(1).is_none_or(|before| !is_local(text[before]));
        if start < sign
            && is_free
            && text[sign - 1] != b'.'
            && let Some(length) = domain_length(context, &text[sign + 1..])
        {
            return Some((start, sign + 1 + length));
        }
    }
    None
}

/// How long the name with a known top level is that begins here: one to four labels before it.
fn domain_length(context: &Context<'_>, text: &[u8]) -> Option<usize> {
    let letters = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'-';
    let mut ends = Vec::new();
    let mut at = 0;
    for _ in 0..5 {
        let length = text[at..].iter().take_while(|byte| letters(byte)).count();
        if length == 0 || text[at] == b'-' {
            break;
        }
        if !ends.is_empty() {
            ends.push(at + length);
        } else {
            ends.push(0);
        }
        let is_label = length <= 61 && text[at + length - 1] != b'-';
        if !is_label || text.get(at + length) != Some(&b'.') {
            break;
        }
        at += length + 1;
    }
    // The longest that is known, letter by letter from the end.
    let end = *ends.last().filter(|_| ends.len() > 1)?;
    (1..=end).rev().find(|&end| {
        let name = &text[..end];
        name.contains(&b'.') && !name.ends_with(b".") && context.settings.reading.is_known(name)
    })
}

/// Without links that hold an address.
fn without_links(line: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(line.len());
    let mut rest = line;
    while !rest.is_empty() {
        let inner = rest.strip_prefix(b"<").unwrap_or(rest);
        let scheme = [&b"http://"[..], b"https://"]
            .into_iter()
            .find(|scheme| inner.get(..scheme.len()).is_some_and(|start| start.eq_ignore_ascii_case(scheme)));
        if let Some(scheme) = scheme {
            let behind = &inner[scheme.len()..];
            let run = behind.iter().take_while(|byte| !byte.is_ascii_whitespace()).count();
            let sign = (0..run).rev().filter(|&at| at <= 255).find_map(|at| match &behind[at..] {
                [b'@', ..] => Some(at + 1),
                [b'%', b'4', b'0', ..] => Some(at + 3),
                _ => None,
            });
            if let Some(end) = sign {
                let length = scheme.len() + end + run.saturating_sub(end).min(255);
                out.push(b' ');
                rest = &inner[length..];
                continue;
            }
        }
        out.push(rest[0]);
        rest = &rest[1..];
    }
    out
}

/// Without addresses in brackets, and those that stand before the name of a field.
fn without_fields(context: &Context<'_>, line: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(line.len());
    let mut from = 0;
    let mut search = from;
    while let Some((start, end)) = address_at_or_behind(context, line, search) {
        search = end;
        let opened = start.checked_sub(1).filter(|&at| line[at] == b'<').unwrap_or(start);
        let is_link = line[..start].to_ascii_lowercase().ends_with(b"mailto:");
        let length = behind_length(&line[end..]);
        if let Some(length) = length.filter(|_| !is_link) {
            out.extend_from_slice(&line[from..opened.max(from)]);
            out.push(b' ');
            from = end + length;
            search = from;
        }
    }
    out.extend_from_slice(&line[from..]);
    out
}

/// `>`, or blanks and the name of a field with its colon, that is none for another way to reach someone.
fn behind_length(text: &[u8]) -> Option<usize> {
    if text.first() == Some(&b'>') {
        return Some(1);
    }
    let blank = text.iter().take_while(|byte| byte.is_ascii_whitespace()).count();
    let name = text[blank..].iter().take_while(|byte| byte.is_ascii_lowercase()).count();
    let word = text[blank..].to_ascii_lowercase();
    let is_way =
        ["fax", "facsi", "tel", "phone", "email", "e-mail", "mail"].iter().any(|way| word.starts_with(way.as_bytes()));
    let name = if name == 0 { word.iter().take_while(|byte| byte.is_ascii_alphabetic()).count() } else { name };
    let fits = (1..=10).contains(&blank) && (2..=11).contains(&name) && text.get(blank + name) == Some(&b':');
    (fits && !is_way).then_some(blank + name + 1)
}

fn reply_to(context: &Context<'_>, arguments: &Arguments<'_>) -> f64 {
    let what = if arguments.is_empty() { "replyto" } else { arguments.text(0) };
    if !is_available(context) || !["replyto", "reply"].contains(&what) {
        return 0.0;
    }
    if context.settings.number("freemail_skip_bulk_envfrom", 1.0) != 0.0 {
        let sender = context.fields.values("EnvelopeFrom");
        let is_bulk = |sender: &[u8]| COMMON.bulk.as_ref().is_some_and(|bulk| context.matches(bulk, sender));
        if sender.first().is_some_and(|sender| is_bulk(sender)) {
            return 0.0;
        }
    }
    let from = lower(&context.fields.values("From:addr"));
    let reply = lower(&context.fields.values("Reply-To:addr"));
    let is_free = |all: &[Box<[u8]>]| all.iter().any(|address| is_freemail(context, address));
    let (from_free, reply_free) = (is_free(&from), is_free(&reply));
    if from_free && reply_free && !from.iter().any(|address| reply.contains(address)) {
        return 1.0;
    }
    let goes_on = match what {
        "replyto" => reply_free,
        _ => (reply.is_empty() || reply_free) && from_free,
    };
    if !goes_on {
        return 0.0;
    }
    let Some(in_body) = in_body(context) else { return 0.0 };
    let answered = if what == "replyto" || reply_free { &reply } else { &from };
    let differs = in_body.iter().find(|address| answered.iter().any(|reply| reply != *address));
    if let (Some(address), Some(reply)) = (differs, answered.first()) {
        note(context, &[reply, &b", "[..], address].concat());
    }
    truth(differs.is_some())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matches(expression: &Pooled, text: &str) -> bool {
        expression.with_search(|search| {
            let progress = search.run(text.as_bytes(), &mut stream::Fuel::unlimited());
            matches!(progress, pattern::expression::Progress::Match(_))
        })
    }

    #[test]
    fn users_that_are_nobody_are_known() {
        let nobody = COMMON.nobody.as_ref().unwrap();
        assert!(matches(nobody, "info@x.com") && matches(nobody, "undisclosed-recipients@x.com"));
        assert!(!matches(nobody, "joe@x.com"));
        let bulk = COMMON.bulk.as_ref().unwrap();
        assert!(matches(bulk, "list-bounces@x.com") && matches(bulk, "noreply@x.com") && !matches(bulk, "joe@x.com"));
    }

    #[test]
    fn stars_stand_for_one_label() {
        assert!(fits_domain(b"*.yahoo.com", b"mail.yahoo.com") && !fits_domain(b"*.yahoo.com", b"a.b.yahoo.com"));
        assert_eq!(without_links(b"see <http://x/y?a@b.c>, ok"), b"see   ok");
        assert_eq!(behind_length(b" To: x"), Some(4));
        assert_eq!(behind_length(b" phone: 1"), None);
    }
}
