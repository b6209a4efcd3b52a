//! `template.html` of a language: a page with words such as `-URL-`, in the place of which stands what is known of a block.
//!
//! What is filled in is text of clients and of servers. It is escaped for its place: in text and in attributes by references, in
//! scripts, styles and attributes that are such by the escapes of strings. It is ASCII, so that it is the same in each charset
//! that a template may be in.
//! Bounds: a template of 1 MiB, 64 words in it, 2,000 characters in the place of a word, and the length of a link.

use core::net::IpAddr;
use std::borrow::Cow;
use std::fmt::Write;

use text::html::{Token, Tokeniser, Within};

const TEMPLATE_BYTES_MAX: usize = 1 << 20;
const SLOTS_MAX: usize = 64;
const SHOWN_CHARACTERS_MAX: usize = 2_000;

/// Characters of a URL in its short form.
const SHORT_CHARACTERS: usize = 40;

/// The words about a block.
#[derive(Debug, Clone, Copy, Default)]
pub struct Told<'t> {
    /// For those who are blocked.
    pub text: &'t str,
    /// For the log.
    pub log: &'t str,
    /// Categories.
    pub categories: &'t str,
    /// The name of the list; empty where it is none.
    pub list: &'t str,
}

/// A template, taken apart.
#[derive(Debug)]
pub(super) struct Template(Vec<Piece>);

#[derive(Debug)]
enum Piece {
    Text(Box<[u8]>),
    Slot(Slot, Spot),
}

/// The place of a word in the page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Spot {
    /// Text and comments, where references count or nothing does.
    Text,
    /// The value of an attribute, in quotes or without.
    Value,
    /// Code: scripts, styles, attributes of events, addresses that may be scripts, and what is neither text nor a value.
    Code,
}

/// A word in the place of which something stands.
#[derive(Debug, Clone, Copy)]
enum Slot {
    Url,
    ShortUrl,
    Reason,
    LoggedReason,
    User,
    Client,
    Group,
    GroupNumber,
    Categories,
    Link,
    /// Known to E2Guardian, and not here.
    Nothing,
}

const SLOTS: [(&[u8], Slot); 12] = [
    (b"-URL-", Slot::Url),
    (b"-SHORTURL-", Slot::ShortUrl),
    (b"-REASONGIVEN-", Slot::Reason),
    (b"-REASONLOGGED-", Slot::LoggedReason),
    (b"-USER-", Slot::User),
    (b"-IP-", Slot::Client),
    (b"-FILTERGROUP-", Slot::Group),
    (b"-RAWFILTERGROUP-", Slot::GroupNumber),
    (b"-CATEGORIES-", Slot::Categories),
    (b"-BYPASS-", Slot::Link),
    (b"-HOST-", Slot::Nothing),
    (b"-SERVERIP-", Slot::Nothing),
];

/// Facts about a block.
pub(super) struct Filling<'f> {
    pub url: Cow<'f, str>,
    pub told: Told<'f>,
    pub user: Option<&'f str>,
    pub client: Option<IpAddr>,
    pub group: &'f str,
    pub number: u32,
    /// The URL that leads past the block; empty where none does.
    pub link: &'f str,
}

impl Template {
    /// Takes a template apart; `None` where it is too large.
    pub fn read(bytes: &[u8]) -> Option<Template> {
        let (mut pieces, mut start, mut at, mut spots) = (Vec::new(), 0, 0, Spots::new());
        while let Some(found) = memchr::memchr(b'-', bytes.get(at..)?) {
            at += found;
            let Some((word, slot)) = SLOTS.iter().find(|(word, _)| bytes[at..].starts_with(word)) else {
                at += 1;
                continue;
            };
            pieces.push(Piece::Text(bytes[start..at].into()));
            spots.read(&bytes[start..at]);
            pieces.push(Piece::Slot(*slot, spots.of(*slot, word)));
            at += word.len();
            start = at;
        }
        pieces.push(Piece::Text(bytes[start..].into()));
        (bytes.len() <= TEMPLATE_BYTES_MAX && pieces.len() <= 2 * SLOTS_MAX + 1).then_some(Template(pieces))
    }

    /// The page.
    pub fn filled(&self, filling: &Filling<'_>) -> Vec<u8> {
        let mut page = Vec::new();
        for piece in &self.0 {
            match piece {
                Piece::Text(text) => page.extend_from_slice(text),
                Piece::Slot(slot, spot) => page.extend_from_slice(filling.slot(*slot, *spot).as_bytes()),
            }
        }
        page
    }
}

/// Attributes whose values are addresses.
const ADDRESSES: [&[u8]; 9] =
    [b"href", b"src", b"action", b"formaction", b"data", b"poster", b"background", b"xlink:href", b"codebase"];
/// Schemes of addresses that are no code.
const SCHEMES: [&[u8]; 3] = [b"http:", b"https:", b"mailto:"];
/// As much of a value is looked at for its scheme.
const SCHEME_BYTES_MAX: usize = 256;

/// Follows a template to the places of its words.
struct Spots {
    tokeniser: Tokeniser,
    attribute: Vec<u8>,
    /// The beginning of its value.
    value: Vec<u8>,
}

impl Spots {
    const fn new() -> Spots {
        Spots { tokeniser: Tokeniser::new(), attribute: Vec::new(), value: Vec::new() }
    }

    /// Reads a piece; the place of its last token.
    fn read(&mut self, piece: &[u8]) -> Option<Spot> {
        let (mut spot, attribute, value) = (None, &mut self.attribute, &mut self.value);
        self.tokeniser.read(piece, &mut |_, token| {
            spot = Some(match token {
                Token::Text { within: Within::Page | Within::Escapable(_), .. } | Token::Comment(_) => Spot::Text,
                Token::Value(_) => Spot::Value,
                _ => Spot::Code,
            });
            match token {
                Token::Attribute(name) => {
                    *attribute = name.into();
                    value.clear();
                }
                Token::Value(bytes) if value.len() < SCHEME_BYTES_MAX => value.extend_from_slice(bytes),
                _ => {}
            }
        });
        spot
    }

    /// The place of a word, which is read.
    fn of(&mut self, slot: Slot, word: &[u8]) -> Spot {
        // The word may be the first token of its value.
        let before = std::mem::take(&mut self.value);
        self.value.clone_from(&before);
        let spot = self.read(word).unwrap_or(Spot::Code);
        let before = if self.value.len() > word.len() { &before[..] } else { b"" };
        if spot == Spot::Value && self.is_code(slot, before) { Spot::Code } else { spot }
    }

    /// Whether a word behind this much of a value may become code.
    fn is_code(&self, slot: Slot, before: &[u8]) -> bool {
        let name = &*self.attribute;
        if name.starts_with(b"on") || matches!(name, b"style" | b"srcdoc") {
            return true;
        }
        let before = before.trim_ascii_start().to_ascii_lowercase();
        let is_address = matches!(slot, Slot::Url | Slot::ShortUrl | Slot::Link);
        let is_plain = if before.is_empty() { is_address } else { SCHEMES.iter().any(|name| before.starts_with(name)) };
        ADDRESSES.contains(&name) && !is_plain && (before.is_empty() || !before.starts_with(b"/"))
    }
}

impl Filling<'_> {
    fn slot(&self, slot: Slot, spot: Spot) -> String {
        let cut = |text: &str, characters_max: usize| escaped(text, spot, characters_max);
        let or = |text: &str, other: &str| cut(if text.is_empty() { other } else { text }, SHOWN_CHARACTERS_MAX);
        match slot {
            Slot::Url => or(&self.url, ""),
            Slot::ShortUrl => cut(&self.url, SHORT_CHARACTERS),
            Slot::Reason => or(self.told.text, ""),
            Slot::LoggedReason => or(self.told.log, ""),
            Slot::User => or(self.user.unwrap_or_default(), "-"),
            Slot::Client => self.client.map(|client| client.to_canonical().to_string()).unwrap_or_default(),
            Slot::Group => or(self.group, "-"),
            Slot::GroupNumber => self.number.to_string(),
            Slot::Categories => or(self.told.categories, "N/A"),
            Slot::Link => cut(self.link, usize::MAX),
            Slot::Nothing => String::new(),
        }
    }
}

/// Text as it is written into a place of a page, cut after some characters.
fn escaped(text: &str, spot: Spot, characters_max: usize) -> String {
    let mut out = String::with_capacity(text.len());
    for (count, letter) in text.chars().enumerate() {
        if count == characters_max {
            out.push_str("...");
            break;
        }
        match (spot, letter) {
            (Spot::Code, letter) => as_code(letter, &mut out),
            (_, letter) if letter.is_control() => out.push_str("&#65533;"),
            (Spot::Value, ' ') | (_, '&' | '<' | '>' | '"' | '\'' | '`' | '\\' | '$' | '\u{80}'..) => {
                _ = write!(out, "&#{};", u32::from(letter));
            }
            (_, letter) => out.push(letter),
        }
    }
    out
}

/// A character within a string of a script. Outside of one it is no call and ends nothing.
fn as_code(letter: char, out: &mut String) {
    if letter.is_ascii_alphanumeric() {
        return out.push(letter);
    }
    for unit in letter.encode_utf16(&mut [0; 2]) {
        _ = if *unit < 0x100 { write!(out, "\\x{unit:02x}") } else { write!(out, "\\u{unit:04x}") };
    }
}

/// As much of a URL as is told elsewhere.
pub(super) fn cut(url: &[u8]) -> &[u8] {
    &url[..url.len().min(SHOWN_CHARACTERS_MAX)]
}

/// Text as the value of a parameter.
pub(super) fn encoded(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes().take(3 * SHOWN_CHARACTERS_MAX) {
        match byte {
            byte if byte.is_ascii_alphanumeric() || b"-._~/".contains(&byte) => out.push(char::from(byte)),
            byte => _ = write!(out, "%{byte:02X}"),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(template: &str, url: &str, user: Option<&str>) -> String {
        let told = Told { text: "Why: \u{fc}", log: "log", ..Told::default() };
        let url = Cow::Borrowed(url);
        let client = "10.0.0.1".parse().ok();
        let filling =
            Filling { url, told, user, client, group: "pupils", number: 2, link: "http://a.test/?x&GBYPASS=1" };
        String::from_utf8(Template::read(template.as_bytes()).expect("a template").filled(&filling)).expect("text")
    }

    #[test]
    fn words_of_a_template_are_filled_in() {
        let template = "a -URL-|-SHORTURL-|-REASONGIVEN-|-REASONLOGGED-|-USER-|-IP-|-FILTERGROUP-|-RAWFILTERGROUP-|\
                        -CATEGORIES-|-HOST-|-SERVERIP-|<a href=\"-BYPASS-\"> -OTHER- --URL-";
        let wanted = "a http://a.test/|http://a.test/|Why: &#252;|log|-|10.0.0.1|pupils|2|N/A|||\
                      <a href=\"http://a.test/?x&#38;GBYPASS=1\"> -OTHER- -http://a.test/";
        assert_eq!(page(template, "http://a.test/", None), wanted);
    }

    #[test]
    fn nothing_that_is_filled_in_becomes_markup_or_script() {
        let hostile = "http://a.test/<script>\"'`\\${x}&lt;\n-USER-\u{2028}";
        let wanted = "<p>http://a.test/&#60;script&#62;&#34;&#39;&#96;&#92;&#36;{x}&#38;lt;&#65533;-USER-&#8232;</p>";
        assert_eq!(page("<p>-URL-</p>", hostile, None), wanted);
        assert_eq!(page("-USER-", "", Some("<b>")), "&#60;b&#62;");
    }

    #[test]
    fn what_is_filled_in_stays_within_its_place() {
        let user = Some("x onload='a(1)' \u{20ac}");
        let value = "x&#32;onload=&#39;a(1)&#39;&#32;&#8364;";
        let code = r"x\x20onload\x3d\x27a\x281\x29\x27\x20\u20ac";
        for (before, wanted) in [
            ("<i class=", value),
            ("<i class='a ", value),
            ("<a href=http://a/?", value),
            ("<a href='/?u=", value),
            ("<i onclick=\"f('", code),
            ("<i STYLE=a:", code),
            ("<iframe srcdoc='", code),
            ("<a href='javascript:f(\"", code),
            ("<a href=", code),
            ("<script>f('", code),
            ("<i ", code),
        ] {
            assert_eq!(page(&format!("{before}-USER-"), "", user), format!("{before}{wanted}"));
        }
        assert_eq!(
            page("<a href=\"-URL-\" onclick=f('-URL-')>", "http://a/'", None),
            r#"<a href="http://a/&#39;" onclick=f('http\x3a\x2f\x2fa\x2f\x27')>"#
        );
        assert_eq!(page("<script>-USER-</script><b>-USER-", "", Some("a()")), r"<script>a\x28\x29</script><b>a()");
    }

    #[test]
    fn templates_and_what_is_filled_in_are_bounded() {
        assert!(
            Template::read(&"-URL-".repeat(65).into_bytes()).is_none()
                && Template::read(&vec![b'-'; 1 << 21]).is_none()
        );
        assert!(Template::read(&"-URL-".repeat(64).into_bytes()).is_some());
        assert_eq!(page("-URL-", &"a".repeat(70_000), None).len(), SHOWN_CHARACTERS_MAX + 3);
        assert_eq!(page("-SHORTURL-", &"a".repeat(50), None), format!("{}...", "a".repeat(40)));
    }

    #[test]
    fn values_of_parameters_cannot_become_others() {
        assert_eq!(encoded("http://a/?b=1&c::d==e \u{e9}"), "http%3A//a/%3Fb%3D1%26c%3A%3Ad%3D%3De%20%C3%A9");
    }
}
