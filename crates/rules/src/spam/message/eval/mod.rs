//! The functions over bodies, HTML, addresses and MIME parts that rules call by `eval:NAME(...)`.
//!
//! Each takes the mail and the arguments as they are written, and gives 0 for no hit. [`find`] has those of SpamAssassin's
//! plugins BodyEval, HTMLEval, ImageInfo, MIMEEval and URIEval that need no expression, no locale and no network.
//!
//! What is left out: `html_text_match`, `html_text_not_match` and what depends on locales (see [`crate::spam::eval`]),
//! `image_name_regex`.

mod body;
mod html;
mod image;
mod mime;
mod stock;
mod web;

use super::Message;
use crate::spam::rule;
pub(super) use mime::Facts;
pub(crate) use mime::{declared_charset, mime, part_charsets};

/// A function: 0 is no hit, all else how often the rule counts.
pub type View = fn(&Message, &[Box<[u8]>]) -> f64;

/// All of them, in groups.
const GROUPS: [&[(&str, View)]; 5] =
    [body::FUNCTIONS, html::FUNCTIONS, image::FUNCTIONS, mime::FUNCTIONS, web::FUNCTIONS];

/// The function of that name, for rules over that view: what one means by text depends on it.
pub fn find(name: &str, over: rule::View) -> Option<(&'static str, View)> {
    if let (image::TEXT_RATIO, rule::View::Rawbody) = (name, over) {
        return Some((image::TEXT_RATIO, image::raw_text_ratio));
    }
    all().find(|(known, _)| *known == name)
}

/// All functions with their names.
pub fn all() -> impl Iterator<Item = (&'static str, View)> {
    GROUPS.into_iter().flatten().copied()
}

/// An argument as text; empty where there is none.
fn text(arguments: &[Box<[u8]>], at: usize) -> &str {
    arguments.get(at).and_then(|value| std::str::from_utf8(value).ok()).unwrap_or_default()
}

/// An argument as a number, as Perl reads one: what begins as one is one, all else is 0.
fn number(arguments: &[Box<[u8]>], at: usize) -> f64 {
    perl_number(text(arguments, at))
}

fn perl_number(text: &str) -> f64 {
    let text = text.trim();
    let fits = |(at, byte): &(usize, u8)| byte.is_ascii_digit() || *byte == b'.' || (*at == 0 && b"+-".contains(byte));
    let length = text.bytes().enumerate().take_while(fits).count();
    text[..length].parse().unwrap_or(0.0)
}

/// A bound, if there is that argument.
fn bound(arguments: &[Box<[u8]>], at: usize) -> Option<f64> {
    arguments.get(at).map(|_| number(arguments, at))
}

/// 1 where it holds.
fn truth(holds: bool) -> f64 {
    f64::from(u8::from(holds))
}

/// Whether `value` compares as the expression says: `> 5`, `!= 0`.
fn compares(value: f64, expression: &str) -> bool {
    let expression = expression.trim();
    let signs = ["==", "!=", ">=", "<=", ">", "<"];
    let Some(sign) = signs.into_iter().find(|sign| expression.starts_with(sign)) else { return false };
    let Ok(other) = expression[sign.len()..].trim().parse::<f64>() else { return false };
    match sign {
        "==" => value == other,
        "!=" => value != other,
        ">=" => value >= other,
        "<=" => value <= other,
        ">" => value > other,
        _ => value < other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spam::message::{MessageLimits, Reading};

    fn call(mail: &str, name: &str, arguments: &[&str]) -> f64 {
        let message = Message::read(mail.as_bytes(), &Reading::default(), &MessageLimits::default());
        let arguments: Vec<Box<[u8]>> = arguments.iter().map(|text| text.as_bytes().into()).collect();
        find(name, rule::View::Body).unwrap().1(&message, &arguments)
    }

    #[test]
    fn functions_see_what_they_ask_for() {
        let html = "Content-Type: text/html\n\n<title>a</title><img src=x width=10 height=10><p>";
        assert_eq!(call(html, "html_tag_exists", &["img"]), 1.0);
        assert_eq!(call(html, "html_tag_balance", &["p", "> 0"]), 1.0);
        assert_eq!(call(html, "html_range", &["image_area", "99", "100"]), 1.0);
        assert_eq!(call(html, "check_for_mime_html_only", &[]), 1.0);
        assert_eq!(call("\nx\n\n\ny\n", "check_blank_line_ratio", &["40", "60", "1"]), 1.0);
        assert_eq!(call("\nabc", "check_body_length", &["3"]), 1.0);
    }

    #[test]
    fn names_are_there_once() {
        let mut names: Vec<_> = all().map(|(name, _)| name).collect();
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count);
    }
}
