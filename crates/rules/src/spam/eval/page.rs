//! Functions over HTML that need expressions or domains: SpamAssassin's HTTPSMismatch, and of HTMLEval what the views leave out.

use super::{Arguments, Context, Function, look, truth};
use crate::spam::message::{Reading, ascii, is_address};
use crate::spam::search::Pooled;

/// The functions.
pub(super) const FUNCTIONS: &[Function] = &[
    look("check_https_http_mismatch", https_mismatch),
    look("html_text_match", text_match),
    look("html_text_not_match", text_not_match),
];

/// Functions whose arguments are expressions.
pub(super) const TAKES_EXPRESSION: [&str; 2] = ["html_text_match", "html_text_not_match"];

/// Whether a text of this kind is in a page: `comment`, `title`, `anchor`, and matches.
fn text_match(context: &Context<'_>, arguments: &Arguments<'_>) -> f64 {
    any(context, arguments, |expression, text| context.matches(expression, text))
}

/// The same of one that does not match.
fn text_not_match(context: &Context<'_>, arguments: &Arguments<'_>) -> f64 {
    any(context, arguments, |expression, text| !context.matches(expression, text))
}

fn any(context: &Context<'_>, arguments: &Arguments<'_>, holds: impl Fn(&Pooled, &[u8]) -> bool) -> f64 {
    let Some(expression) = arguments.expression(1) else { return 0.0 };
    let texts = context.mail.pages().iter().filter_map(|html| html.texts.get(arguments.text(0)));
    truth(texts.flatten().any(|text| holds(expression, text)))
}

/// Whether a link says that it goes to one domain by `https`, and goes to another. The number of links with a domain is from the
/// first argument on, and below the second.
fn https_mismatch(context: &Context<'_>, arguments: &Arguments<'_>) -> f64 {
    let least = if arguments.number(0) == 0.0 { 1.0 } else { arguments.number(0) };
    let bound = arguments.get(1).map_or(f64::INFINITY, |_| arguments.number(1));
    let reading = &context.settings.reading;
    let (mut links, mut differs) = (0.0, false);
    for uri in context.mail.uris().iter().filter(|uri| !uri.anchor_texts.is_empty()) {
        let Some(own) = web_host(&uri.raw).filter(|host| !is_address(host)) else { continue };
        let Some(own) = registered(reading, &own) else { continue };
        links += 1.0;
        let others = uri.anchor_texts.iter().filter_map(|text| told_host(text));
        differs |= others.filter_map(|host| registered(reading, &host)).any(|other| other != own);
    }
    truth(differs && links >= least && links < bound)
}

/// The host of an address of the web.
fn web_host(uri: &[u8]) -> Option<Vec<u8>> {
    let begins = |scheme: &[u8]| uri.get(..scheme.len()).is_some_and(|own| own.eq_ignore_ascii_case(scheme));
    let scheme = [&b"https://"[..], b"http://"].into_iter().find(|scheme| begins(scheme))?;
    host(&uri[scheme.len()..])
}

/// The host of the first address by `https` in a text.
fn told_host(text: &[u8]) -> Option<Vec<u8>> {
    const SCHEME: &[u8] = b"https://";
    let at = |at: &usize| text[*at..*at + SCHEME.len()].eq_ignore_ascii_case(SCHEME);
    let mut places = (0..=text.len().checked_sub(SCHEME.len())?).filter(at);
    places.find_map(|at| host(&text[at + SCHEME.len()..]))
}

fn host(rest: &[u8]) -> Option<Vec<u8>> {
    let length = rest.iter().take_while(|byte| !b"/:?#".contains(byte) && !byte.is_ascii_whitespace()).count();
    (length > 0).then(|| ascii(&rest[..length]).to_ascii_lowercase())
}

/// An address, or the domain that is registered, below a known one.
fn registered(reading: &Reading, host: &[u8]) -> Option<Vec<u8>> {
    if is_address(host) {
        return Some(host.to_vec());
    }
    reading.is_known(host).then(|| reading.registered(host))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_are_those_of_addresses_of_the_web() {
        assert_eq!(web_host(b"HTTP://Www.A.Example:80/x"), Some(b"www.a.example".to_vec()));
        assert_eq!(web_host(b"https://?"), None);
        assert_eq!(web_host(b"ftp://a.example"), None);
        assert_eq!(told_host(b"see HTTPS://bank.example/ now"), Some(b"bank.example".to_vec()));
        assert_eq!(told_host(b"https:///x https://b.example"), Some(b"b.example".to_vec()));
        assert_eq!(told_host(b"http://bank.example"), None);
        assert_eq!(told_host(b""), None);
    }
}
