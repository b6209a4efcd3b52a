//! `template.html` of a language: a page with words such as `-URL-`, in the place of which stands what is known of a block.
//!
//! What is filled in is text of clients and of servers. It is escaped so that it stays text within elements, within attributes and
//! within quoted strings of scripts, and is written in ASCII, so that it is the same in each charset that a template may be in.
//! Bounds: a template of 1 MiB, 64 words in it, 2,000 characters in the place of a word, and the length of a link.

use core::net::IpAddr;
use std::borrow::Cow;
use std::fmt::Write;

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
}

/// A template, taken apart.
#[derive(Debug)]
pub(super) struct Template(Vec<Piece>);

#[derive(Debug)]
enum Piece {
    Text(Box<[u8]>),
    Slot(Slot),
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

/// What is known of a block.
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
        let (mut pieces, mut start, mut at) = (Vec::new(), 0, 0);
        while let Some(found) = memchr::memchr(b'-', bytes.get(at..)?) {
            at += found;
            let Some((word, slot)) = SLOTS.iter().find(|(word, _)| bytes[at..].starts_with(word)) else {
                at += 1;
                continue;
            };
            pieces.push(Piece::Text(bytes[start..at].into()));
            pieces.push(Piece::Slot(*slot));
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
                Piece::Slot(slot) => page.extend_from_slice(filling.slot(*slot).as_bytes()),
            }
        }
        page
    }
}

impl Filling<'_> {
    fn slot(&self, slot: Slot) -> String {
        let or = |text: &str, other: &str| escaped(if text.is_empty() { other } else { text }, SHOWN_CHARACTERS_MAX);
        match slot {
            Slot::Url => or(&self.url, ""),
            Slot::ShortUrl => escaped(&self.url, SHORT_CHARACTERS),
            Slot::Reason => or(self.told.text, ""),
            Slot::LoggedReason => or(self.told.log, ""),
            Slot::User => or(self.user.unwrap_or_default(), "-"),
            Slot::Client => self.client.map(|client| client.to_canonical().to_string()).unwrap_or_default(),
            Slot::Group => or(self.group, "-"),
            Slot::GroupNumber => self.number.to_string(),
            Slot::Categories => or(self.told.categories, "N/A"),
            Slot::Link => escaped(self.link, usize::MAX),
            Slot::Nothing => String::new(),
        }
    }
}

/// Text as it is written into a page, cut after some characters.
fn escaped(text: &str, characters_max: usize) -> String {
    let mut out = String::with_capacity(text.len());
    for (count, letter) in text.chars().enumerate() {
        if count == characters_max {
            out.push_str("...");
            break;
        }
        match letter {
            letter if letter.is_control() => out.push_str("&#65533;"),
            '&' | '<' | '>' | '"' | '\'' | '`' | '\\' | '$' | '\u{80}'.. => _ = write!(out, "&#{};", u32::from(letter)),
            letter => out.push(letter),
        }
    }
    out
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
        let told = Told { text: "Why: \u{fc}", log: "log", categories: "" };
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
