//! Over addresses.

use super::{View, truth};
use crate::spam::message::Message;
use crate::spam::message::perl::{begins, find};

pub(super) const FUNCTIONS: &[(&str, View)] =
    &[("check_https_ip_mismatch", ip_mismatch), ("check_uri_truncated", is_cut)];

fn is_cut(message: &Message, _: &[Box<[u8]>]) -> f64 {
    truth(message.has_long_uri)
}

/// A link to an address in numbers that says it is another.
fn ip_mismatch(message: &Message, _: &[Box<[u8]>]) -> f64 {
    let is_other = |text: &[u8]| !is_in_numbers(text, &["https:"]) && find(text, b"https:", 0).is_some();
    let links = message.uris().iter().filter(|uri| is_in_numbers(&uri.raw, &["https:", "http:"]));
    truth(links.into_iter().any(|uri| uri.anchor_texts.iter().any(|text| is_other(text))))
}

fn is_in_numbers(text: &[u8], schemes: &[&str]) -> bool {
    let Some(scheme) = schemes.iter().find(|scheme| begins(text, scheme.as_bytes())) else { return false };
    let rest = &text[scheme.len()..];
    let rest = &rest[rest.iter().take_while(|byte| **byte == b'/').count()..];
    let user = rest.iter().take_while(|byte| !b"@/".contains(byte)).count();
    let host = if user > 0 && rest.get(user) == Some(&b'@') { &rest[user + 1..] } else { rest };
    let mut labels = host.splitn(4, |byte| *byte == b'.');
    let is_number = |label: &[u8]| !label.is_empty() && label.iter().all(u8::is_ascii_digit);
    let mut next = |whole: bool| {
        labels
            .next()
            .is_some_and(|label| if whole { is_number(label) } else { label.first().is_some_and(u8::is_ascii_digit) })
    };
    next(true) && next(true) && next(true) && next(false)
}
