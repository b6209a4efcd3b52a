//! Over the text: how long it is, how much of it is blank, and whether its two versions say the same.

use super::stock;
use super::{View, bound, number, text, truth};
use crate::spam::message::{Message, perl};

pub(super) const FUNCTIONS: &[(&str, View)] = &[
    ("check_blank_line_ratio", blank_line_ratio),
    ("check_body_length", body_length),
    ("check_stock_info", stock_info),
    ("multipart_alternative_difference", difference),
    ("multipart_alternative_difference_count", difference_count),
    ("plaintext_body_length", plain_body_length),
    ("plaintext_body_sig_ratio", plain_ratio),
    ("plaintext_sig_length", plain_signature_length),
    ("tvd_vertical_words", vertical_words),
];

fn body_length(message: &Message, arguments: &[Box<[u8]>]) -> f64 {
    truth(message.full_body().len() as f64 <= number(arguments, 0))
}

/// How many kinds of facts about stocks the first plain part has.
fn stock_info(message: &Message, arguments: &[Box<[u8]>]) -> f64 {
    let part = message.parts().iter().find(|part| *part.kind == *"text/plain");
    let kinds = part.map_or(0, |part| stock::kinds(part.decoded()));
    let least = number(arguments, 0);
    truth(least == 0.0 || kinds as f64 >= least)
}

fn blank_line_ratio(message: &Message, arguments: &[Box<[u8]>]) -> f64 {
    let (min, max, least) = (number(arguments, 0), number(arguments, 1), number(arguments, 2).max(1.0));
    let lines = || message.raw_body().iter().flat_map(|chunk| perl::lines(chunk));
    let is_blank = |line: &&[u8]| line.iter().all(|byte| matches!(byte, b'\t'..=b'\r' | b' '));
    let count = lines().count() as f64;
    let ratio = if count < least { -1.0 } else { 100.0 * lines().filter(is_blank).count() as f64 / count };
    truth(ratio <= max && (min == 0.0 || ratio > min))
}

/// Spaces against what stands between them, in the worst line, in percent.
fn vertical_words(message: &Message, arguments: &[Box<[u8]>]) -> f64 {
    let (min, max) = (number(arguments, 0), number(arguments, 1));
    let max = if max >= 100.0 { 101.0 } else { max };
    let percent = |line: &[u8]| {
        let spaces = memchr::memchr_iter(b' ', line).count();
        let others = line.len() - spaces;
        if spaces > others { 100 } else { 100 * spaces / others.max(1) }
    };
    let worst = message.body().iter().filter(|line| line.len() > 5).map(|line| percent(line)).max();
    let worst = worst.map_or(-1.0, |percent| percent as f64);
    truth(worst >= min && worst < max)
}

fn difference(message: &Message, arguments: &[Box<[u8]>]) -> f64 {
    let found = message.alternatives;
    let above = number(arguments, 0) == 0.0 || found.percent > number(arguments, 0);
    truth(above && (text(arguments, 1) == "undef" || found.percent <= number(arguments, 1)))
}

fn difference_count(message: &Message, arguments: &[Box<[u8]>]) -> f64 {
    let (html, plain) = (f64::from(message.alternatives.html_words), f64::from(message.alternatives.plain_words));
    truth(html > number(arguments, 1) && plain / html > number(arguments, 0))
}

/// The lengths of the first plain part before and behind its signature.
fn lengths(message: &Message) -> Option<(f64, f64)> {
    let part = message.parts().iter().find(|part| part.kind.starts_with("text/plain"))?;
    let text = part.decoded();
    let (mut body, mut signature, mut at) = (text.len(), 0, 0);
    for line in text.split_inclusive(|byte| *byte == b'\n') {
        let bare = line.strip_suffix(b"\n").unwrap_or(line);
        let bare_end = at + bare.len();
        if matches!(bare, b"--" | b"-- " | b"--\r" | b"-- \r") && text.len() - bare_end > 4 {
            (body, signature) = (at, text.len() - bare_end);
        }
        at += line.len();
    }
    Some((body as f64, signature as f64))
}

fn within(value: Option<f64>, arguments: &[Box<[u8]>], otherwise: f64) -> f64 {
    let max = bound(arguments, 1).unwrap_or(otherwise);
    truth(value.is_some_and(|value| value >= number(arguments, 0) && value <= max))
}

fn plain_body_length(message: &Message, arguments: &[Box<[u8]>]) -> f64 {
    within(lengths(message).map(|(body, _)| body), arguments, f64::INFINITY)
}

fn plain_signature_length(message: &Message, arguments: &[Box<[u8]>]) -> f64 {
    within(lengths(message).map(|(_, signature)| signature), arguments, f64::INFINITY)
}

fn plain_ratio(message: &Message, arguments: &[Box<[u8]>]) -> f64 {
    let ratio = lengths(message).map(|(body, signature)| if signature > 0.0 { body / signature } else { 1e6 });
    within(ratio, arguments, 1e6)
}
