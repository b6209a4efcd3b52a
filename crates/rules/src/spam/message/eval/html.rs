//! Over the HTML of a mail, each of its pages.

use super::{View, bound, compares, number, perl_number, text, truth};
use crate::spam::message::{Html, Message};

pub(super) const FUNCTIONS: &[(&str, View)] = &[
    ("check_iframe_src", iframe),
    ("html_eval", eval),
    ("html_image_only", image_only),
    ("html_image_ratio", image_ratio),
    ("html_range", range),
    ("html_tag_balance", balance),
    ("html_tag_exists", exists),
    ("html_test", test),
    ("html_title_subject_ratio", title_ratio),
];

fn any(message: &Message, holds: impl FnMut(&Html) -> bool) -> f64 {
    truth(message.pages().iter().any(holds))
}

fn get(html: &Html, name: &str) -> Option<f64> {
    html.numbers.get(name).copied()
}

fn balance(message: &Message, arguments: &[Box<[u8]>]) -> f64 {
    let expression = text(arguments, 1);
    any(message, |html| html.tags.get(text(arguments, 0)).is_some_and(|open| compares(*open as f64, expression)))
}

fn image_only(message: &Message, arguments: &[Box<[u8]>]) -> f64 {
    let (min, max) = (number(arguments, 0), number(arguments, 1));
    let fits = |length: f64| length > min && length <= max;
    any(message, |html| html.tags.contains_key("img") && get(html, "length").is_some_and(fits))
}

fn image_ratio(message: &Message, arguments: &[Box<[u8]>]) -> f64 {
    let (min, max) = (number(arguments, 0), number(arguments, 1));
    any(message, |html| {
        let (Some(letters), Some(area)) = (get(html, "non_space_len"), get(html, "image_area")) else { return false };
        area > 0.0 && letters / area > min && letters / area <= max
    })
}

fn exists(message: &Message, arguments: &[Box<[u8]>]) -> f64 {
    any(message, |html| html.tags.contains_key(text(arguments, 0)))
}

fn test(message: &Message, arguments: &[Box<[u8]>]) -> f64 {
    let name = text(arguments, 0);
    any(message, |html| get(html, name).is_some_and(|value| value != 0.0) || html.texts.contains_key(name))
}

fn eval(message: &Message, arguments: &[Box<[u8]>]) -> f64 {
    any(message, |html| get(html, text(arguments, 0)).is_some_and(|value| compares(value, text(arguments, 1))))
}

fn range(message: &Message, arguments: &[Box<[u8]>]) -> f64 {
    let min = perl_number(text(arguments, 1));
    let max = bound(arguments, 2).filter(|_| text(arguments, 2) != "inf").unwrap_or(f64::INFINITY);
    any(message, |html| get(html, text(arguments, 0)).is_some_and(|value| value > min && value <= max))
}

fn title_ratio(message: &Message, arguments: &[Box<[u8]>]) -> f64 {
    let subjects = message.fields().iter().filter(|field| field.is(b"subject"));
    let length: usize = subjects.map(|field| field.value.len() + 1).sum();
    if length == 0 {
        return 0.0;
    }
    let longest = |html: &Html| html.texts.get("title").into_iter().flatten().map(|title| title.len()).max();
    let ratio = number(arguments, 0);
    any(message, |html| longest(html).is_some_and(|title| title as f64 / length as f64 > ratio))
}

fn iframe(message: &Message, _: &[Box<[u8]>]) -> f64 {
    truth(message.uris().iter().any(|uri| uri.kinds.contains("iframe")))
}
