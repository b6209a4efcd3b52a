//! Attributes, each parsed to its type and written from that.

use alloc::borrow::Cow;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use text::html::reference::Place;

use super::element::Element;
use super::link::{link, resolved};
use super::{Picture, Pictures, decoded, style};
use crate::html::escape;

/// Characters of a text in an attribute.
const TEXT_CHARACTERS_MAX: usize = 1_000;

/// Attributes that something is made of, in the order in which they are written.
const NAMES: [&str; 40] = [
    "background",
    "href",
    "src",
    "alt",
    "color",
    "face",
    "size",
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
    "name",
    "id",
    "hidden",
    "text",
    "reversed",
    "value",
    "open",
    "noshade",
    "hspace",
    "vspace",
    "usemap",
    "shape",
    "coords",
    "span",
    "scope",
    "rules",
];

/// Begins the names of places in a mail, so that they are not those of a page around it.
const PLACE: &str = "mail-";

/// Bytes of the name of a place.
const PLACE_BYTES_MAX: usize = 200;

/// Attributes of the tag under way, each of [`NAMES`] at most once; others are left out.
#[derive(Debug, Default)]
pub(super) struct Attributes {
    /// In the order in which they came.
    all: Vec<Attribute>,
    /// Their values, one behind the other.
    values: Vec<u8>,
    /// Whether the last one of these takes the pieces of a value that come.
    takes: bool,
}

/// The place of an attribute among [`NAMES`], and of its value among the others.
#[derive(Debug, Clone, Copy)]
struct Attribute {
    name: usize,
    begin: usize,
    end: usize,
}

impl Attributes {
    pub fn clear(&mut self) {
        self.all.clear();
        self.values.clear();
        self.takes = false;
    }

    /// An attribute begins.
    pub fn begin(&mut self, element: &Element, name: &[u8]) {
        let wanted = wanted(element, name).filter(|&name| self.find(name).is_none());
        self.takes = wanted.is_some();
        if let Some(name) = wanted {
            self.add(name);
        }
    }

    fn add(&mut self, name: usize) {
        let end = self.values.len();
        self.all.push(Attribute { name, begin: end, end });
    }

    /// A piece of its value.
    pub fn value(&mut self, piece: &[u8]) {
        if let Some(last) = self.all.last_mut().filter(|_| self.takes) {
            self.values.extend_from_slice(piece);
            last.end = self.values.len();
        }
    }

    fn find(&self, name: usize) -> Option<&Attribute> {
        self.all.iter().find(|known| known.name == name)
    }

    /// The value of an attribute, its references decoded.
    fn get(&self, attribute: &Attribute) -> Cow<'_, str> {
        decoded(self.values.get(attribute.begin..attribute.end).unwrap_or_default(), Place::Value)
    }

    fn named(&self, name: &[u8]) -> Option<Cow<'_, str>> {
        self.find(place_of(name)?).map(|attribute| self.get(attribute))
    }

    /// The text of a control, if it is a button.
    pub fn button(&self) -> Option<String> {
        let is_button =
            |kind: &str| ["submit", "button", "reset"].into_iter().any(|one| kind.eq_ignore_ascii_case(one));
        self.named(b"type").filter(|kind| is_button(kind))?;
        self.named(b"value").map(|value| shortened(&value))
    }

    /// The URL that a page gives its links as their base.
    pub fn base(&self) -> Option<String> {
        link(&self.named(b"href")?).filter(|base| base.starts_with("http"))
    }

    /// The colours of a body, as a style.
    fn colours(&self) -> String {
        let colour = |name| self.named(name).and_then(|value| colour(&value));
        let behind = colour(b"bgcolor").map(|colour| format!("background-color:{colour};"));
        let text = colour(b"text").map(|colour| format!("color:{colour};"));
        [behind.unwrap_or_default(), text.unwrap_or_default()].concat()
    }
}

/// The place of a name among [`NAMES`].
fn place_of(name: &[u8]) -> Option<usize> {
    NAMES.iter().position(|known| known.as_bytes() == name)
}

/// The place of an attribute of an element, if something is made of it.
fn wanted(element: &Element, name: &[u8]) -> Option<usize> {
    let place = place_of(name)?;
    let is_wanted = match *NAMES.get(place)? {
        "href" => matches!(element.name, "a" | "area" | "base"),
        "name" => matches!(element.name, "a" | "map"),
        "src" | "hspace" | "vspace" | "usemap" => element.name == "img",
        "alt" => matches!(element.name, "img" | "area"),
        "shape" | "coords" => element.name == "area",
        "color" | "size" => matches!(element.name, "font" | "hr"),
        "face" => element.name == "font",
        "start" | "reversed" => element.name == "ol",
        "value" => matches!(element.name, "li" | "input"),
        "open" => element.name == "details",
        "noshade" => element.name == "hr",
        "span" => matches!(element.name, "col" | "colgroup"),
        "scope" => element.name == "th",
        "rules" => element.name == "table",
        "text" => element.name == "body",
        _ => true,
    };
    is_wanted.then_some(place)
}

/// Whether an attribute may be in the output.
pub(super) fn is_written(element: &Element, name: &[u8]) -> bool {
    let is_of_link = matches!(element.name, "a" | "area") && (name == b"target" || name == b"rel");
    is_of_link || (name != b"background" && wanted(element, name).is_some())
}

/// Writes the attributes of an element, in a fixed order; how many pictures elsewhere they name.
pub(super) fn write(
    element: &Element,
    given: &mut Attributes,
    base: Option<&str>,
    picture: &mut Pictures<'_>,
    out: &mut String,
) -> u32 {
    // A picture without a text is announced by the name of its file, and the colour of a body is a style.
    let always = match element.name {
        "img" => place_of(b"alt"),
        "body" => place_of(b"style"),
        _ => None,
    };
    if let Some(name) = always.filter(|&name| given.find(name).is_none()) {
        given.add(name);
    }
    given.all.sort_unstable_by_key(|attribute| attribute.name);
    let mut remote = 0u32;
    for attribute in &given.all {
        let value = given.get(attribute);
        let name = NAMES.get(attribute.name).copied().unwrap_or_default();
        match name {
            "background" => remote = remote.saturating_add(u32::from(is_remote(&value))),
            "src" => match source(&value, base, picture) {
                Source::Here(url) => put(name, &url, out),
                Source::Remote => remote = remote.saturating_add(1),
                Source::Nothing => {}
            },
            "href" => {
                if let Some(place) = value.trim().strip_prefix('#').and_then(place) {
                    put(name, &["#", &place].concat(), out);
                } else if let Some(link) = resolved(&value, base) {
                    put(name, &link, out);
                    out.push_str(" target=\"_blank\" rel=\"noopener noreferrer nofollow\"");
                }
            }
            "usemap" => {
                if let Some(place) = value.trim().strip_prefix('#').and_then(place) {
                    put(name, &["#", &place].concat(), out);
                }
            }
            "alt" => put(name, &shortened(&value), out),
            "style" => {
                let mut style = if element.name == "body" { given.colours() } else { String::new() };
                style::clean(&value, &mut style);
                if !style.is_empty() {
                    put(name, &style, out);
                }
            }
            "bgcolor" | "text" if element.name == "body" => {}
            name => {
                if let Some(value) = typed(element, name, &value) {
                    put(name, &value, out);
                }
            }
        }
    }
    remote
}

fn put(name: &str, value: &str, out: &mut String) {
    out.push(' ');
    out.push_str(name);
    out.push_str("=\"");
    escape(value, out);
    out.push('"');
}

/// The value of an attribute as its type; `None` if it is of another.
fn typed<'v>(element: &Element, name: &str, value: &'v str) -> Option<Cow<'v, str>> {
    let value = value.trim();
    match name {
        "color" | "bgcolor" => colour(value).map(Cow::Owned),
        "face" => face(value).map(Cow::Borrowed),
        "size" if element.name == "hr" => number(value, 100).map(Cow::Borrowed),
        "size" => step(value).map(Cow::Owned),
        "title" => Some(shortened(value)).filter(|text| !text.is_empty()).map(Cow::Owned),
        "dir" => keyword(value, &["ltr", "rtl", "auto"]),
        "lang" => {
            let is_tag = |c: char| c.is_ascii_alphanumeric() || c == '-';
            (!value.is_empty() && value.len() <= 35 && value.chars().all(is_tag)).then_some(Cow::Borrowed(value))
        }
        "align" => keyword(
            value,
            &[
                "left",
                "right",
                "center",
                "justify",
                "middle",
                "top",
                "bottom",
                "absmiddle",
                "absbottom",
                "texttop",
                "baseline",
                "char",
            ],
        ),
        "valign" => keyword(value, &["top", "middle", "bottom", "baseline"]),
        "width" | "height" => length(value),
        "border" | "cellpadding" | "cellspacing" | "colspan" | "rowspan" | "span" | "hspace" | "vspace" => {
            number(value, 1_000).map(Cow::Borrowed)
        }
        // The number of an item is content: a year, a clause, one below zero.
        "start" | "value" => ordinal(value).map(Cow::Owned),
        "nowrap" => Some(Cow::Borrowed("nowrap")),
        "hidden" => Some(Cow::Borrowed("hidden")),
        "reversed" => Some(Cow::Borrowed("reversed")),
        "open" => Some(Cow::Borrowed("open")),
        "noshade" => Some(Cow::Borrowed("noshade")),
        "shape" => keyword(value, &["rect", "circle", "poly", "default"]),
        "coords" => {
            let is_list = |c: char| c.is_ascii_digit() || matches!(c, ',' | ' ' | '.' | '%');
            (!value.is_empty() && value.len() <= 1_000 && value.chars().all(is_list)).then_some(Cow::Borrowed(value))
        }
        "scope" => keyword(value, &["row", "col", "rowgroup", "colgroup"]),
        "rules" => keyword(value, &["none", "groups", "rows", "cols", "all"]),
        "type" if ["1", "a", "A", "i", "I"].contains(&value) => Some(Cow::Borrowed(value)),
        "type" => keyword(value, &["disc", "circle", "square"]),
        "name" | "id" => place(value).map(Cow::Owned),
        _ => None,
    }
}

/// The name of a place in a mail: its letters and digits, others as numbers. A link has it %-coded.
fn place(value: &str) -> Option<String> {
    let name = crate::percent::decoded(value.as_bytes(), false);
    let name = name.strip_prefix(PLACE).unwrap_or(&name);
    if name.is_empty() || name.len() > PLACE_BYTES_MAX {
        return None;
    }
    let mut place = String::from(PLACE);
    for character in name.chars() {
        match character.is_alphanumeric() || "-_.:".contains(character) {
            true => place.push(character),
            false => place.push_str(&format!("_{:x}_", u32::from(character))),
        }
    }
    (place.len() <= PLACE_BYTES_MAX).then_some(place)
}

enum Source {
    Here(String),
    Remote,
    Nothing,
}

/// The picture that a value names: a part of the mail, a file elsewhere, or one that stands in the value.
fn source(value: &str, base: Option<&str>, picture: &mut Pictures<'_>) -> Source {
    let value = value.trim();
    let part = |url: Option<String>| url.as_deref().and_then(picture_within).map_or(Source::Nothing, Source::Here);
    match () {
        () if begins(value, "data:") => picture_within(value).map_or(Source::Nothing, Source::Here),
        () if begins(value, "cid:") => part(value.get(4..).and_then(|id| picture(Picture::Part(id)))),
        () if is_remote(value) => fetched(remote(value), picture),
        () if value.contains(':') || value.is_empty() => Source::Nothing,
        () => match (part(picture(Picture::Place(value))), resolved(value, base)) {
            (Source::Nothing, Some(url)) => fetched(remote(&url), picture),
            (found, _) => found,
        },
    }
}

fn fetched(url: Option<String>, picture: &mut Pictures<'_>) -> Source {
    let found = url.and_then(|url| picture(Picture::Remote(&url)));
    found.as_deref().and_then(picture_within).map_or(Source::Remote, Source::Here)
}

fn is_remote(value: &str) -> bool {
    let value = value.trim();
    ["http:", "https:", "//"].into_iter().any(|beginning| begins(value, beginning))
}

fn begins(value: &str, beginning: &str) -> bool {
    value.get(..beginning.len()).is_some_and(|head| head.eq_ignore_ascii_case(beginning))
}

/// The URL of a picture elsewhere, without a fragment. One without a scheme is of HTTPS.
fn remote(value: &str) -> Option<String> {
    let value = value.split('#').next().unwrap_or_default();
    let url = if value.starts_with("//") { link(&format!("https:{value}")) } else { link(value) };
    url.filter(|url| url.starts_with("http"))
}

/// Kinds of pictures that hold nothing but pixels.
const KINDS: [&str; 6] = ["image/png", "image/jpeg", "image/gif", "image/webp", "image/avif", "image/bmp"];

/// A picture in Base64, of a kind that holds nothing but pixels.
fn picture_within(value: &str) -> Option<String> {
    let (head, content) = value.split_once(',')?;
    let head = head.to_ascii_lowercase();
    let head = head.strip_prefix("data:")?.trim().strip_suffix("base64")?.trim_end().strip_suffix(';')?;
    let kind = match head.split(';').next().unwrap_or_default().trim() {
        "image/jpg" | "image/pjpeg" => "image/jpeg",
        "image/x-png" => "image/png",
        "image/x-ms-bmp" => "image/bmp",
        kind => KINDS.into_iter().find(|known| *known == kind)?,
    };
    let is_digit = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'=');
    let mut url = format!("data:{kind};base64,");
    let before = url.len();
    url.reserve(content.len());
    url.extend(content.split_ascii_whitespace());
    (url.len() > before && url.bytes().skip(before).all(is_digit)).then_some(url)
}

fn shortened(text: &str) -> String {
    text.chars().filter(|character| !character.is_control()).take(TEXT_CHARACTERS_MAX).collect::<String>().trim().into()
}

fn keyword(value: &str, all: &'static [&'static str]) -> Option<Cow<'static, str>> {
    all.iter().find(|known| known.eq_ignore_ascii_case(value)).map(|known| Cow::Borrowed(*known))
}

/// The digits of a number, without zeros before them.
fn number(value: &str, most: u32) -> Option<&str> {
    let digits = value.trim_end_matches("px");
    let number: u32 = digits.parse().ok()?;
    let shown = if number == 0 { "0" } else { digits.trim_start_matches(['+', '0']) };
    (number <= most).then_some(shown)
}

/// The number of an item of a list.
fn ordinal(value: &str) -> Option<String> {
    let number: i32 = value.trim_end_matches('.').parse().ok()?;
    Some(format!("{number}"))
}

/// Pixels or a percentage.
fn length(value: &str) -> Option<Cow<'_, str>> {
    match value.strip_suffix('%') {
        Some(share) => number(share.trim(), 100).map(|share| Cow::Owned([share, "%"].concat())),
        None => number(value, 10_000).map(Cow::Borrowed),
    }
}

/// A size of a font: 1 to 7, or a step from the one around it.
fn step(value: &str) -> Option<String> {
    let (sign, digits) = match value.split_at_checked(1) {
        Some((sign @ ("+" | "-"), digits)) => (sign, digits),
        _ => ("", value),
    };
    number(digits, 7).map(|number| [sign, number].concat())
}

fn face(value: &str) -> Option<&str> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || " ,-_.+'\"".contains(c) || c.is_alphabetic() && !c.is_ascii();
    (!value.is_empty() && value.len() <= 200 && value.chars().all(is_plain)).then_some(value)
}

/// `#` and digits, or a name. Digits without a `#` are those of browsers: of three, each is a small number.
fn colour(value: &str) -> Option<String> {
    let value = value.trim().to_ascii_lowercase();
    let is_name = (3..=24).contains(&value.len()) && value.bytes().all(|byte| byte.is_ascii_lowercase());
    let is_number = |digits: &str| digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    match (value.strip_prefix('#'), value.len()) {
        (Some(digits), 4 | 7) if is_number(digits) => Some(value),
        (None, 6) if is_number(&value) => Some(format!("#{value}")),
        (None, 3) if is_number(&value) => Some(["#0", &value[..1], "0", &value[1..2], "0", &value[2..]].concat()),
        _ => is_name.then_some(value),
    }
}
