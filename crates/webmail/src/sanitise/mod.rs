//! HTML of mails made safe: read by the tokeniser of `text`, and written anew from a list of what is allowed.
//!
//! ```text
//!  mail ─ tokens ─► tags that are allowed, their attributes typed ─► a stack of open elements ─► markup, balanced
//! ```
//! Nothing of the input is copied: text is decoded and escaped, an attribute is parsed to its type and written from that, a style is
//! parsed to its declarations. Not in the list: scripts, styles, forms, frames, objects, SVG, MathML, `meta`, `link`
//! and classes; of controls and pictures of other languages the text stays. Names and identifiers of places, to which links within a mail
//! lead, have a prefix, and the links of a page with a `base` are of that.
//! No element of the list changes how a browser reads what is within it, so a browser reads the output as it was
//! written, and nothing is done to it behind this.
//!
//! Bounds: [`DEPTH_MAX`] open elements; what is beyond is left out, its text stays. The output is a constant times the input.

mod attribute;
mod element;
mod link;
mod style;

use alloc::borrow::Cow;
use alloc::string::String;
use alloc::vec::Vec;

use text::html::reference::{self, Place};
use text::html::{Token, Tokeniser, Within};

use crate::html::escape;
use attribute::Attributes;
use element::{Element, Kind};
pub(crate) use link::{LINK_BYTES_MAX, is_link, link};

/// Elements that are open at a time.
pub const DEPTH_MAX: usize = 120;

/// A page that was made safe.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Safe {
    /// Markup of a body.
    pub html: String,
    /// Pictures elsewhere, which are not loaded.
    pub remote: u32,
}

/// A picture that a page names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Picture<'a> {
    /// A part of the mail, by its identifier as it stands in a URL.
    Part(&'a str),
    /// A part of the mail, by its place: a URL without a scheme.
    Place(&'a str),
    /// A file of another server, by a URL of `http` or `https`.
    Remote(&'a str),
}

/// Makes a `data:` URL of a picture; `None` if it is not to be had.
pub type Pictures<'p> = dyn FnMut(Picture<'_>) -> Option<String> + 'p;

/// Makes a page safe, with the pictures that `picture` gives.
pub fn sanitise(page: &str, picture: &mut Pictures<'_>) -> Safe {
    let mut sanitiser = Sanitiser {
        safe: Safe { html: String::with_capacity(page.len()), remote: 0 },
        open: Vec::new(),
        tag: Tag::None,
        attributes: Attributes::default(),
        unshown: None,
        base: None,
        picture,
    };
    let mut tokeniser = Tokeniser::new();
    tokeniser.read(page.as_bytes(), &mut |_, token| sanitiser.token(token));
    tokeniser.end(&mut |_, token| sanitiser.token(token));
    sanitiser.close_to(0);
    sanitiser.safe
}

/// Whether the output may hold an element, or an attribute of it.
pub(crate) fn is_allowed(name: &[u8], attribute: Option<&[u8]>) -> bool {
    let element = element::find(name).filter(|element| element.written.as_bytes() == name);
    element.is_some_and(|element| attribute.is_none_or(|attribute| attribute::is_written(element, attribute)))
}

struct Sanitiser<'p, 'q> {
    safe: Safe,
    /// Elements that are open in the output, the innermost last.
    open: Vec<&'static Element>,
    tag: Tag,
    attributes: Attributes,
    /// The element that the input is within and nothing of is shown, and how many of it are open within each other.
    unshown: Option<(&'static str, u32)>,
    /// The URL that links of the page begin with.
    base: Option<String>,
    picture: &'p mut Pictures<'q>,
}

/// The tag under way.
#[derive(Debug, Clone, Copy)]
enum Tag {
    None,
    Open(&'static Element),
    /// Of an element with nothing in it that is shown.
    Unshown(&'static str),
    Other,
}

/// Elements with nothing in them that browsers show.
const UNSHOWN: [&str; 6] = ["template", "datalist", "annotation", "annotation-xml", "desc", "metadata"];

/// A button of a form, of which the text stays.
static INPUT: Element = element::of("input", Kind::Void);

static BASE: Element = element::of("base", Kind::Void);

impl Sanitiser<'_, '_> {
    fn token(&mut self, token: Token<'_>) {
        match token {
            Token::Text { within, bytes } => self.text(within, bytes),
            Token::Open(name) => {
                self.attributes.clear();
                self.tag = self.opens(name);
            }
            Token::Close(name) => {
                self.tag = Tag::Other;
                self.close(name);
            }
            Token::Attribute(name) => {
                if let Tag::Open(element) = self.tag {
                    self.attributes.begin(element, name);
                }
            }
            Token::Value(bytes) => self.attributes.value(bytes),
            Token::End { is_closed } => self.end_tag(is_closed),
            Token::Comment(_) | Token::Declaration(_) => {}
        }
    }

    fn text(&mut self, within: Within, bytes: &[u8]) {
        let text = match within {
            _ if self.unshown.is_some() => return,
            Within::Page | Within::Escapable("textarea") => decoded(bytes, Place::Page),
            Within::Raw("xmp" | "plaintext") => String::from_utf8_lossy(bytes),
            Within::Escapable(_) | Within::Raw(_) => return,
        };
        escape(&text, &mut self.safe.html);
    }

    /// The meaning of a tag that opens an element.
    fn opens(&mut self, name: &[u8]) -> Tag {
        let element = element::find(name);
        if let Some((unshown, depth)) = &mut self.unshown {
            if unshown.as_bytes() == name {
                *depth = depth.saturating_add(1);
            }
            // Elements of HTML end those of other languages, and lists that were left open.
            if *unshown == "template" || element.is_none_or(|element| !element.breaks_out) {
                return Tag::Other;
            }
            self.unshown = None;
        }
        match (element, name) {
            (Some(element), _) if self.is_loose_part(element) => Tag::Other,
            (Some(element), _) => Tag::Open(element),
            (None, b"input") => Tag::Open(&INPUT),
            (None, b"base") => Tag::Open(&BASE),
            (None, b"option") => {
                self.safe.html.push(' ');
                Tag::Other
            }
            _ => UNSHOWN.into_iter().find(|one| one.as_bytes() == name).map_or(Tag::Other, Tag::Unshown),
        }
    }

    fn end_tag(&mut self, is_closed: bool) {
        match core::mem::replace(&mut self.tag, Tag::None) {
            Tag::Open(element) if element == &INPUT => {
                let button = self.attributes.button();
                escape(&button.unwrap_or_default(), &mut self.safe.html);
            }
            Tag::Open(element) if element == &BASE => {
                self.base = self.base.take().or_else(|| self.attributes.base());
            }
            Tag::Open(element) => self.open(element),
            Tag::Unshown(name) if !is_closed || name == "template" => self.unshown = Some((name, 1)),
            Tag::Unshown(_) | Tag::Other | Tag::None => {}
        }
        self.attributes.clear();
    }

    fn open(&mut self, element: &'static Element) {
        self.close_implied(element);
        if element.kind != Kind::Void && self.open.len() >= DEPTH_MAX {
            return;
        }
        let out = &mut self.safe.html;
        out.push('<');
        out.push_str(element.written);
        let remote = attribute::write(element, &mut self.attributes, self.base.as_deref(), &mut *self.picture, out);
        out.push('>');
        self.safe.remote = self.safe.remote.saturating_add(remote);
        if element.kind != Kind::Void {
            self.open.push(element);
        }
    }

    /// Closes elements that the one that begins ends in a browser, too.
    fn close_implied(&mut self, next: &Element) {
        let closes: &[&str] = match next.kind {
            Kind::Block | Kind::Item if next.name == "li" => &["li", "p"],
            Kind::Item => &["dt", "dd", "p"],
            Kind::Block => &["p"],
            Kind::Table(_) => return self.close_table_parts(next),
            Kind::Inline | Kind::Void => return,
        };
        // A rule ends a paragraph as well, but is no block here: it is void.
        let from = self.open.iter().rposition(|element| element.is_wall(next.kind)).map_or(0, |wall| wall + 1);
        if let Some(at) = self.open.iter().skip(from).position(|element| closes.contains(&element.written)) {
            self.close_to(from + at);
        }
    }

    /// The place of the innermost table that is open.
    fn table(&self) -> Option<usize> {
        self.open.iter().rposition(|element| element.kind == Kind::Table(0))
    }

    /// Whether an element is a part of a table, and no table is open: browsers ignore its tag, and what ends around it ends.
    fn is_loose_part(&self, element: &Element) -> bool {
        matches!(element.kind, Kind::Table(1..)) && self.table().is_none()
    }

    /// A row ends a row, a cell ends a cell, and each ends what stands between it and the table's parts around it.
    fn close_table_parts(&mut self, next: &Element) {
        let Kind::Table(rank) = next.kind else { return };
        let Some(table) = self.table().filter(|_| rank > 0) else { return self.close_before_table() };
        let within = self.open.iter().skip(table + 1);
        let around = within.take_while(|element| matches!(element.kind, Kind::Table(other) if other < rank)).count();
        self.close_to(table + 1 + around);
    }

    /// A table ends a paragraph, and a table in which no cell is open.
    fn close_before_table(&mut self) {
        let wall = self.open.iter().rposition(|element| element.is_wall(Kind::Block));
        let takes_tables = |element: &Element| matches!(element.name, "td" | "th" | "caption");
        if wall.and_then(|wall| self.open.get(wall)).is_some_and(|element| !takes_tables(element)) {
            return self.close_to(self.table().unwrap_or(0));
        }
        let from = wall.map_or(0, |wall| wall + 1);
        if let Some(at) = self.open.iter().skip(from).position(|element| element.written == "p") {
            self.close_to(from + at);
        }
    }

    /// A tag that closes an element: closes those within it, too. Most of those whose element is not open here are left out.
    fn close(&mut self, name: &[u8]) {
        if let Some((unshown, depth)) = self.unshown {
            if unshown.as_bytes() == name {
                self.unshown = depth.checked_sub(1).filter(|&depth| depth > 0).map(|depth| (unshown, depth));
            }
            return;
        }
        if name == b"select" {
            self.safe.html.push(' ');
        }
        let Some(element) = element::find(name) else { return };
        let from = match element.kind {
            Kind::Table(0) => 0,
            Kind::Table(_) => {
                self.open.iter().rposition(|open| open.written == "table").map_or(self.open.len(), |at| at + 1)
            }
            _ => self.open.iter().rposition(|open| matches!(open.kind, Kind::Table(_))).map_or(0, |at| at + 1),
        };
        let at = self.open.iter().skip(from).rposition_of(element.name);
        match (at, element.name) {
            (Some(at), _) => self.close_to(from + at),
            // Browsers make a break of `</br>`, and an empty paragraph of `</p>`.
            (None, "br") => self.open(element),
            (None, "p") => {
                let count = self.open.len();
                self.open(element);
                self.close_to(count);
            }
            (None, _) => {}
        }
    }

    /// Closes elements until so many are open.
    fn close_to(&mut self, count: usize) {
        while self.open.len() > count {
            let Some(element) = self.open.pop() else { return };
            let out = &mut self.safe.html;
            out.push_str("</");
            out.push_str(element.written);
            out.push('>');
        }
    }
}

/// Text with its references decoded.
fn decoded(raw: &[u8], place: Place) -> Cow<'_, str> {
    match reference::decode(raw, place) {
        // Of text the check alone is faster than a reading that looks for what is wrong.
        Cow::Borrowed(plain) => {
            core::str::from_utf8(plain).map_or_else(|_| String::from_utf8_lossy(plain), Cow::Borrowed)
        }
        Cow::Owned(plain) => Cow::Owned(
            String::from_utf8(plain).unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned()),
        ),
    }
}

/// The last place of an element with a name.
trait LastPlace {
    fn rposition_of(self, name: &str) -> Option<usize>;
}

impl<'a, I: Iterator<Item = &'a &'static Element>> LastPlace for I {
    fn rposition_of(self, name: &str) -> Option<usize> {
        let places = self.enumerate().filter(|(_, element)| element.name == name);
        places.last().map(|(at, _)| at)
    }
}

#[cfg(test)]
mod tests;
