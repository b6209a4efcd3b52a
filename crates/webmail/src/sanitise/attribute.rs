//! Attributes, each parsed to its type and written from that.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use text::entities;

use super::element::Element;
use super::{Picture, Pictures, link::link, style};
use crate::html::escape;

/// Characters of a text in an attribute.
const TEXT_CHARACTERS_MAX: usize = 1_000;

/// Attributes of all elements.
const EVERYWHERE: [&str; 17] = [
    "style",
    "dir",
    "lang",
    "title",
    "align",
    "valign",
    "width",
    "height",
    "bgcolor",
    "border",
    "cellpadding",
    "cellspacing",
    "colspan",
    "rowspan",
    "nowrap",
    "start",
    "type",
];

/// Attributes that were written.
#[derive(Default)]
pub(super) struct Written {
    pub text: String,
    /// Pictures elsewhere.
    pub remote: u32,
}

/// Whether something is made of an attribute.
pub(super) fn is_wanted(element: &Element, name: &[u8]) -> bool {
    let own: &[&str] = match element.name {
        "a" => &["href"],
        "img" => &["src", "alt"],
        "font" => &["color", "face", "size"],
        _ => &[],
    };
    own.iter().chain(&EVERYWHERE).chain(&["background"]).any(|known| known.as_bytes() == name)
}

/// Whether an attribute may be in the output.
pub(super) fn is_written(element: &Element, name: &[u8]) -> bool {
    let is_of_link = element.name == "a" && (name == b"target" || name == b"rel");
    is_of_link || (name != b"background" && is_wanted(element, name))
}

/// Writes the attributes of an element, in a fixed order.
pub(super) fn write(element: &Element, attributes: &[(Vec<u8>, Vec<u8>)], picture: &mut Pictures<'_>) -> Written {
    if attributes.is_empty() && element.name != "img" {
        return Written::default();
    }
    let value = |name: &str| {
        let (_, value) = attributes.iter().find(|(known, _)| known == name.as_bytes())?;
        Some(String::from_utf8_lossy(&entities::decode(value)).into_owned())
    };
    let mut written = Written::default();
    let mut add = |name: &str, value: &str| {
        written.text.push(' ');
        written.text.push_str(name);
        written.text.push_str("=\"");
        escape(value, &mut written.text);
        written.text.push('"');
    };
    let mut remote = u32::from(value("background").is_some_and(|value| is_remote(&value)));
    if element.name == "a"
        && let Some(link) = value("href").and_then(|value| link(&value))
    {
        add("href", &link);
        add("target", "_blank");
        add("rel", "noopener noreferrer nofollow");
    }
    if element.name == "img" {
        match value("src").map(|value| source(&value, picture)) {
            Some(Source::Here(url)) => add("src", &url),
            Some(Source::Remote) => remote = remote.saturating_add(1),
            Some(Source::Nothing) | None => {}
        }
        // Always: a picture without a text is announced by the name of its file.
        add("alt", &value("alt").map(|text| shortened(&text)).unwrap_or_default());
    }
    if element.name == "font" {
        for (name, typed) in [("color", colour as fn(&str) -> Option<String>), ("face", face), ("size", step)] {
            if let Some(value) = value(name).and_then(|value| typed(&value)) {
                add(name, &value);
            }
        }
    }
    for name in EVERYWHERE {
        let Some(value) = value(name) else { continue };
        let typed = match name {
            "style" => {
                let background = if element.name == "body" { colour_of(attributes) } else { None };
                Some(format!("{}{}", background.unwrap_or_default(), style::clean(&value)))
                    .filter(|style| !style.is_empty())
            }
            "bgcolor" if element.name == "body" => None,
            name => everywhere(name, &value),
        };
        if let Some(value) = typed {
            add(name, &value);
        }
    }
    if element.name == "body"
        && value("style").is_none()
        && let Some(background) = colour_of(attributes)
    {
        add("style", &background);
    }
    written.remote = remote;
    written
}

/// The colour behind a body, as a style.
fn colour_of(attributes: &[(Vec<u8>, Vec<u8>)]) -> Option<String> {
    let (_, value) = attributes.iter().find(|(known, _)| known == b"bgcolor")?;
    let colour = colour(&String::from_utf8_lossy(&entities::decode(value)))?;
    Some(style::clean(&format!("background-color:{colour}")))
}

fn everywhere(name: &str, value: &str) -> Option<String> {
    let value = value.trim();
    match name {
        "title" => Some(shortened(value)).filter(|text| !text.is_empty()),
        "dir" => keyword(value, &["ltr", "rtl", "auto"]),
        "lang" => {
            let is_tag = |c: char| c.is_ascii_alphanumeric() || c == '-';
            (!value.is_empty() && value.len() <= 35 && value.chars().all(is_tag)).then(|| value.into())
        }
        "align" => keyword(value, &["left", "right", "center", "justify", "middle", "top", "bottom"]),
        "valign" => keyword(value, &["top", "middle", "bottom", "baseline"]),
        "width" | "height" => length(value),
        "border" | "cellpadding" | "cellspacing" | "colspan" | "rowspan" | "start" => number(value, 1_000),
        "bgcolor" => colour(value),
        "nowrap" => Some("nowrap".into()),
        "type" if ["1", "a", "A", "i", "I"].contains(&value) => Some(value.into()),
        "type" => keyword(value, &["disc", "circle", "square"]),
        _ => None,
    }
}

enum Source {
    Here(String),
    Remote,
    Nothing,
}

/// The picture that a value names: a part of the mail, a file elsewhere, or one that stands in the value.
fn source(value: &str, picture: &mut Pictures<'_>) -> Source {
    let value = value.trim();
    let prefix = value.get(..5).unwrap_or_default().to_ascii_lowercase();
    match prefix.as_str() {
        "data:" => picture_within(value).map_or(Source::Nothing, Source::Here),
        _ if prefix.starts_with("cid:") => {
            let url = value.get(4..).and_then(|id| picture(Picture::Part(id)));
            url.as_deref().and_then(picture_within).map_or(Source::Nothing, Source::Here)
        }
        _ if is_remote(value) => {
            let url = remote(value).and_then(|url| picture(Picture::Remote(&url)));
            url.as_deref().and_then(picture_within).map_or(Source::Remote, Source::Here)
        }
        _ => Source::Nothing,
    }
}

fn is_remote(value: &str) -> bool {
    let value = value.trim().to_ascii_lowercase();
    value.starts_with("http:") || value.starts_with("https:") || value.starts_with("//")
}

/// The URL of a picture elsewhere, without a fragment. One without a scheme is of HTTPS.
fn remote(value: &str) -> Option<String> {
    let value = value.split('#').next().unwrap_or_default();
    if value.starts_with("//") { link(&format!("https:{value}")) } else { link(value) }
}

/// A picture in Base64, of a kind that holds nothing but pixels.
fn picture_within(value: &str) -> Option<String> {
    let (head, content) = value.split_once(',')?;
    let head = head.to_ascii_lowercase();
    let kind = ["image/png", "image/jpeg", "image/gif", "image/webp", "image/avif"]
        .into_iter()
        .find(|kind| head.strip_prefix("data:").and_then(|head| head.strip_prefix(kind)) == Some(";base64"))?;
    let is_digit = |c: char| c.is_ascii_alphanumeric() || "+/=".contains(c);
    let content: String = content.chars().filter(|c| !c.is_ascii_whitespace()).collect();
    (!content.is_empty() && content.chars().all(is_digit)).then(|| format!("data:{kind};base64,{content}"))
}

fn shortened(text: &str) -> String {
    text.chars().filter(|character| !character.is_control()).take(TEXT_CHARACTERS_MAX).collect::<String>().trim().into()
}

fn keyword(value: &str, all: &[&str]) -> Option<String> {
    all.iter().find(|known| known.eq_ignore_ascii_case(value)).map(|known| known.to_string())
}

fn number(value: &str, most: u32) -> Option<String> {
    let number: u32 = value.trim_end_matches("px").parse().ok()?;
    (number <= most).then(|| number.to_string())
}

/// Pixels or a percentage.
fn length(value: &str) -> Option<String> {
    match value.strip_suffix('%') {
        Some(share) => number(share.trim(), 100).map(|share| format!("{share}%")),
        None => number(value, 10_000),
    }
}

/// A size of a font: 1 to 7, or a step from the one around it.
fn step(value: &str) -> Option<String> {
    let value = value.trim();
    let (sign, digits) = match value.split_at_checked(1) {
        Some((sign @ ("+" | "-"), digits)) => (sign, digits),
        _ => ("", value),
    };
    number(digits, 7).map(|number| format!("{sign}{number}"))
}

fn face(value: &str) -> Option<String> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || " ,-".contains(c);
    let value = value.trim();
    (!value.is_empty() && value.len() <= 200 && value.chars().all(is_plain)).then(|| value.into())
}

/// `#` and digits, or a name.
pub(super) fn colour(value: &str) -> Option<String> {
    let value = value.trim().to_ascii_lowercase();
    let is_name = (3..=24).contains(&value.len()) && value.bytes().all(|byte| byte.is_ascii_lowercase());
    let digits = value.strip_prefix('#').unwrap_or(&value);
    let is_number = matches!(digits.len(), 3 | 6) && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    match (is_number, is_name) {
        (true, false) => Some(format!("#{digits}")),
        (_, true) => Some(value),
        _ => None,
    }
}
