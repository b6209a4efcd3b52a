//! Views of the HTML of a mail: its text, the visible part of it, addresses, and facts for tests of HTML.

mod elements;
mod links;
mod style;

use std::collections::{BTreeMap, BTreeSet};

use text::lenient::{Attributes, Reader, Token};

use super::colour::{BLACK, WHITE};
use super::perl::{Text, is_space, is_word};
use crate::spam::map::HashMap;
use elements::{ELEMENTS, TRICKS, gap, is_office};
use style::{STYLED, Style, is_face, size};

/// Contents of the HTML of a mail, by the names that SpamAssassin's own tests ask for.
#[derive(Debug, Clone, Default)]
pub struct Html {
    /// Whether there is any.
    pub is_html: bool,
    /// Counts, ratios and areas: `image_area`, `ratio`, `length`, `html_length`, `obfuscation_ratio`, `font_low_contrast`, ...
    pub numbers: BTreeMap<&'static str, f64>,
    /// The names of elements, and how many of each were left open.
    pub tags: BTreeMap<Box<str>, i64>,
    /// Texts in order: `title`, `anchor` (what links say), `comment`, `script`.
    pub texts: BTreeMap<&'static str, Vec<Box<[u8]>>>,
}

/// An address in HTML.
#[derive(Debug, Clone, Default)]
pub(super) struct Link {
    pub(super) uri: Vec<u8>,
    /// The elements that it was in; none where it has but a text.
    pub(super) kinds: BTreeSet<&'static str>,
    pub(super) texts: Vec<Text>,
}

/// A page, read.
#[derive(Debug, Default)]
pub(super) struct Page {
    pub(super) html: Html,
    pub(super) text: Text,
    pub(super) visible: Text,
    pub(super) invisible: Text,
    pub(super) links: Vec<Link>,
    pub(super) is_cut: bool,
    /// An address was cut.
    pub(super) has_long_uri: bool,
}

/// Bytes of an address that count.
pub(super) const URI_BYTES_MAX: usize = 8192;

/// A run of the page's text.
#[derive(Debug, Clone, Copy)]
struct Run {
    end: usize,
    is_gap: bool,
    is_invisible: bool,
    is_wide: bool,
}

#[derive(Debug)]
struct Builder {
    out: Page,
    is_wide: bool,
    styles_max: usize,
    styles: Vec<Style>,
    /// How many of each are among the styles.
    open: HashMap<&'static str, usize>,
    inside: HashMap<Box<str>, i64>,
    runs: Vec<Run>,
    base_size: f64,
    sizes: (f64, f64),
    image_area: f64,
    elements: [u32; 2],
    tags: [u32; 2],
    closed_extra: u32,
    obfuscation: u32,
    backhair: BTreeSet<(usize, usize)>,
    base: Vec<u8>,
    /// The address of the link that was opened last.
    anchor: Vec<u8>,
    anchors: Vec<Text>,
    titles: Vec<Text>,
    scripts: Vec<Text>,
    comments: Vec<Text>,
    links: HashMap<Vec<u8>, usize>,
    links_max: usize,
}

impl Page {
    /// Reads a page that came as so many bytes.
    pub(super) fn read(text: &Text, bytes: usize, styles_max: usize, links_max: usize) -> Page {
        let mut builder = Builder::new(text.is_wide, styles_max, links_max);
        let page = prepared(&text.characters, text.is_wide);
        let mut reader = Reader::new();
        reader.read(&page, &mut |token| builder.token(token));
        for name in ["style", "script"] {
            // What is never closed would hide the rest.
            for _ in 0..3 {
                if !builder.is_inside(name) {
                    break;
                }
                reader.read(&format!("</{name}>"), &mut |token| builder.token(token));
            }
        }
        reader.end(&mut |token| builder.token(token));
        let length = text.characters.chars().count();
        builder.finish(length, bytes)
    }
}

/// The page as it is read: some spellings of the same made one.
fn prepared(page: &str, is_wide: bool) -> String {
    let page = page.replace("&nbsp;", " ");
    let page = if is_wide { page.replace(['\u{201c}', '\u{201d}'], "\"") } else { page };
    let mut out = String::with_capacity(page.len());
    let mut rest = page.as_str();
    // `<br />` is `<br>`.
    while let Some(at) = rest.find('<') {
        out.push_str(&rest[..=at]);
        rest = &rest[at + 1..];
        let word: usize = rest.chars().take_while(|c| is_word(*c, is_wide)).map(char::len_utf8).sum();
        let blanks: usize = rest[word..].chars().take_while(|c| is_space(*c, is_wide)).map(char::len_utf8).sum();
        if word > 0 && rest[word + blanks..].starts_with("/>") {
            out.push_str(&rest[..word]);
            rest = &rest[word + blanks + 1..];
        }
    }
    out.push_str(rest);
    out
}

impl Builder {
    fn new(is_wide: bool, styles_max: usize, links_max: usize) -> Builder {
        let style = Style { tag: "default", text: BLACK, ground: WHITE, size: 3.0, is_hidden: [false; 2] };
        Builder {
            out: Page::default(),
            is_wide,
            styles_max,
            styles: vec![style],
            open: HashMap::default(),
            inside: HashMap::default(),
            runs: Vec::new(),
            base_size: 3.0,
            sizes: (3.0, 3.0),
            image_area: 0.0,
            elements: [0; 2],
            tags: [0; 2],
            closed_extra: 0,
            obfuscation: 0,
            backhair: BTreeSet::new(),
            base: Vec::new(),
            anchor: Vec::new(),
            anchors: Vec::new(),
            titles: Vec::new(),
            scripts: Vec::new(),
            comments: Vec::new(),
            links: HashMap::default(),
            links_max,
        }
    }

    fn is_inside(&self, name: &str) -> bool {
        self.inside.get(name).is_some_and(|count| *count > 0)
    }

    /// A text of the page: it is held as the page is, or as characters where one is beyond U+00FF.
    fn held(&self, text: &str) -> Text {
        Text { characters: text.to_owned(), is_wide: self.is_wide || text.chars().any(|c| c > '\u{ff}') }
    }

    fn flag(&mut self, name: &'static str) {
        self.out.html.numbers.insert(name, 1.0);
    }

    fn token(&mut self, token: Token<'_>) {
        match token {
            Token::Open { name, attributes } => self.tag(name, Some(attributes)),
            Token::Close(name) => self.tag(name, None),
            Token::Text(text) => self.text(&text),
            Token::Comment(text) => {
                let text = self.held(text);
                self.comments.push(text);
            }
            Token::Declaration(_) => {
                self.elements[0] += 1;
                self.tags[0] += 1;
                self.inside.insert("!doctype".into(), 0);
            }
        }
    }

    /// A tag, with attributes if it opens an element.
    fn tag(&mut self, name: &str, attributes: Option<Attributes>) {
        let element = ELEMENTS.binary_search(&name).ok().map(|at| ELEMENTS[at]);
        let is_namespace = is_office(name, self.is_wide);
        let is_new = !self.inside.contains_key(name);
        for (counts, counted) in [(&mut self.elements, element.is_some() || is_namespace), (&mut self.tags, true)] {
            counts[0] += u32::from(counted);
            counts[1] += u32::from(counted && is_new);
        }
        if is_new {
            self.inside.insert(name.into(), 0);
        }
        if let Some(count) = self.inside.get_mut(name) {
            *count += if attributes.is_some() { 1 } else { -1 };
            if *count < 0 {
                *count = 0;
                self.closed_extra += 1;
            }
        }
        if is_namespace {
            return;
        }
        let trick = TRICKS.iter().find(|trick| **trick == name).copied();
        let Some(name) = element.or(trick) else { return };
        if STYLED.contains(&name) {
            // A heading of a table is a cell.
            let tag = if name == "th" { "td" } else { name };
            match &attributes {
                Some(attributes) => self.open_style(tag, attributes),
                None if tag != "body" => self.close_style(tag),
                None => {}
            }
        }
        if let Some(gap) = gap(name) {
            self.gap(gap);
        }
        if let Some(mut attributes) = attributes {
            self.links(name, &mut attributes);
            self.tests(name, &attributes);
        }
    }

    fn gap(&mut self, gap: &str) {
        if self.runs.last().is_some_and(|run| !run.is_gap && !run.is_invisible) && self.last_run().ends_with(' ') {
            self.out.text.characters.pop();
            if let Some(run) = self.runs.last_mut() {
                run.end -= 1;
            }
        }
        self.out.text.characters.push_str(gap);
        self.run(true, false, false);
    }

    /// Ends a run of text that was added.
    fn run(&mut self, is_gap: bool, is_invisible: bool, is_wide: bool) {
        self.runs.push(Run { end: self.out.text.characters.len(), is_gap, is_invisible, is_wide });
    }

    fn last_run(&self) -> &str {
        let begin = self.runs.len().checked_sub(2).and_then(|at| self.runs.get(at)).map_or(0, |run| run.end);
        &self.out.text.characters[begin..]
    }

    fn text(&mut self, text: &str) {
        let held = self.held(text);
        if self.is_inside("script") {
            self.scripts.push(held);
            return;
        }
        if self.is_inside("style") {
            return;
        }
        if self.is_inside("a") {
            self.link_text(&held);
        }
        if let (true, Some(title)) = (self.is_inside("title"), self.titles.last_mut()) {
            title.push(&held);
        }
        let is_invisible = !is_empty(text) && self.is_invisible();
        if !self.runs.is_empty() {
            self.obfuscated(text, held.is_wide);
        }
        let follows_gap = self.runs.last().is_some_and(|run| run.is_gap);
        let mut is_first = follows_gap && !is_invisible;
        let mut rest = text.chars().peekable();
        while let Some(character) = rest.next() {
            let is_gap = match character {
                '\t'..='\r' | ' ' => {
                    while rest.next_if(|next| matches!(next, '\t'..='\r' | ' ')).is_some() {}
                    true
                }
                '\u{c2}' => rest.next_if_eq(&'\u{a0}').is_some(),
                _ => false,
            };
            match (is_gap, is_first) {
                (true, true) => {}
                (true, false) => self.out.text.characters.push(' '),
                (false, _) => self.out.text.characters.push(character),
            }
            is_first = false;
        }
        self.run(false, is_invisible, held.is_wide);
    }

    /// Adds a text to the link that is open.
    fn link_text(&mut self, text: &Text) {
        if let Some(anchor) = self.anchors.last_mut() {
            anchor.push(text);
        }
        let found = self.links.get(&self.anchor).and_then(|at| self.out.links.get_mut(*at));
        if let Some(last) = found.and_then(|link| link.texts.last_mut()) {
            last.push(text);
        }
    }

    /// Counts words that tags cut in two.
    fn obfuscated(&mut self, text: &str, is_wide: bool) {
        let last_wide = self.runs.last().is_some_and(|run| run.is_wide);
        let before: Vec<char> = self.last_run().chars().rev().take(8).collect();
        let behind: Vec<char> = text.chars().take(8).collect();
        let (Some(&last), Some(&first)) = (before.first(), behind.first()) else { return };
        if !is_letter(last, last_wide) {
            return;
        }
        self.obfuscation += u32::from(is_letter(first, is_wide));
        let length = |characters: &[char], is_wide| {
            characters.iter().take(7).take_while(|character| is_letter(**character, is_wide)).count()
        };
        // A word's edge is between a letter and what is none.
        let is_edge = |characters: &[char], at: usize, is_wide: bool| {
            let here = is_word(characters[at - 1], is_wide);
            characters.get(at).is_some_and(|next| is_word(*next, is_wide)) != here
        };
        let longest = |characters: &[char], is_wide| {
            (1..=length(characters, is_wide)).rev().find(|at| is_edge(characters, *at, is_wide))
        };
        if let (Some(start), Some(end)) = (longest(&before, last_wide), longest(&behind, is_wide)) {
            self.backhair.insert((start, end));
        }
    }

    /// Counts a tag that opens an element.
    fn tests(&mut self, name: &'static str, attributes: &Attributes) {
        let get = |name: &str| value(attributes, name);
        match name {
            "font" if get("face").is_some_and(|face| !is_face(face, self.is_wide)) => self.flag("font_face_bad"),
            "img" => {
                if self.is_inside("a") {
                    self.link_text(&Text::narrow(b"<img>\n"));
                }
                if let (Some(width), Some(height)) = (get("width"), get("height")) {
                    self.image_area += size(width, 8.0) * size(height, 6.0);
                }
            }
            "form" if get("action").is_some_and(|action| contains(action, "mailto:")) => {
                self.flag("form_action_mailto");
            }
            "object" | "embed" => self.flag("embeds"),
            "a" => {
                self.anchor = get("href").map(|uri| self.canonical(uri)).unwrap_or_default();
                let anchor = self.anchor.clone();
                if let Some(link) = self.entry(anchor) {
                    link.texts.push(Text::default());
                }
                self.anchors.push(Text::default());
            }
            "title" => self.titles.push(Text::default()),
            _ => {}
        }
    }

    fn finish(mut self, length: usize, bytes: usize) -> Page {
        let [visible, invisible] = [false, true].map(|is_invisible| self.chosen(is_invisible));
        self.out.text.is_wide = self.runs.iter().any(|run| run.is_wide);
        (self.out.visible, self.out.invisible) = (visible, invisible);
        let text = &self.out.text;
        let shown = text.characters.chars().count();
        let is_gap = |c: &char| if text.is_wide { is_space(*c, true) } else { is_space(*c, false) && *c != '\x0c' };
        let gaps = text.characters.chars().filter(is_gap).count();
        let html = &mut self.out.html;
        html.is_html = true;
        let mut put = |name: &'static str, value: f64| html.numbers.insert(name, value);
        put("html", 1.0);
        put("image_area", self.image_area);
        put("length", length as f64);
        put("min_size", self.sizes.0);
        put("max_size", self.sizes.1);
        let [tags, tags_seen] = self.tags.map(f64::from);
        let [elements, elements_seen] = self.elements.map(f64::from);
        if tags > 0.0 {
            put("closed_extra_ratio", f64::from(self.closed_extra) / tags);
        }
        if !self.backhair.is_empty() {
            put("backhair_count", self.backhair.len() as f64);
        }
        if elements > 0.0 && tags > 0.0 {
            put("bad_tag_ratio", (tags - elements) / tags);
        }
        if elements_seen > 0.0 && tags_seen > 0.0 {
            put("non_element_ratio", (tags_seen - elements_seen) / tags_seen);
        }
        if tags > 0.0 && self.obfuscation > 0 {
            put("obfuscation_ratio", f64::from(self.obfuscation) / tags);
        }
        put("html_length", shown as f64);
        put("non_space_len", (shown - gaps) as f64);
        if bytes > 0 {
            put("ratio", (bytes as f64 - shown as f64) / bytes as f64);
        }
        html.tags = self.inside.into_iter().collect();
        let lists =
            [("anchor", self.anchors), ("title", self.titles), ("script", self.scripts), ("comment", self.comments)];
        for (name, texts) in lists {
            if !texts.is_empty() {
                html.texts.insert(name, texts.iter().map(|text| text.bytes().into()).collect());
            }
        }
        self.out
    }

    /// The text that can be seen, or that which cannot.
    fn chosen(&self, is_invisible: bool) -> Text {
        let mut out = Text::default();
        let mut begin = 0;
        for run in &self.runs {
            if run.is_invisible == is_invisible {
                out.characters.push_str(&self.out.text.characters[begin..run.end]);
                out.is_wide |= run.is_wide;
            }
            begin = run.end;
        }
        out
    }
}

/// The value of an attribute.
fn value<'a>(attributes: &'a Attributes, name: &str) -> Option<&'a str> {
    attributes.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
}

/// Nothing but gaps.
fn is_empty(text: &str) -> bool {
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        let is_gap = match character {
            '\t'..='\r' | ' ' => true,
            '\u{c2}' => characters.next() == Some('\u{a0}'),
            _ => false,
        };
        if !is_gap {
            return false;
        }
    }
    true
}

/// Neither a blank nor punctuation.
fn is_letter(character: char, is_wide: bool) -> bool {
    !is_space(character, is_wide) && !character.is_ascii_punctuation()
}

fn contains(text: &str, lower: &str) -> bool {
    super::perl::find(text.as_bytes(), lower.as_bytes(), 0).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(text: &str) -> Page {
        Page::read(&Text::narrow(text.as_bytes()), text.len(), 100, 100)
    }

    #[test]
    fn what_is_seen_is_told_from_what_is_not() {
        let page = page("<p>a <b> b</b><font color=#fefefe>hidden</font><span style='display:none'>x</span>&euro;</p>");
        assert_eq!(page.text.characters, "\n\na  bhiddenx€\n\n");
        assert_eq!(page.visible.characters, "\n\na  b€\n\n");
        assert_eq!(page.invisible.characters, "hiddenx");
        assert!(page.text.is_wide && page.html.numbers.contains_key("font_low_contrast"));
    }

    #[test]
    fn links_have_what_they_say() {
        let page = page("<base href='http://a/b/c.html'><a href='d'>x<img src=e></a><a href=mailto:f@g>y</a>");
        let links: Vec<_> = page.links.iter().map(|link| String::from_utf8_lossy(&link.uri).into_owned()).collect();
        assert_eq!(links, ["http://a/b/c.html", "http://a/b/d", "d", "http://a/b/e", "mailto:f@g"]);
        assert_eq!(page.html.texts["anchor"].len(), 2);
    }

    #[test]
    fn elements_are_in_order() {
        assert!(ELEMENTS.is_sorted());
    }
}
