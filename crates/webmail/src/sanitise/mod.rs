//! HTML of mails made safe: read by the tokeniser of `text`, and written anew from a list of what is allowed.
//!
//! ```text
//!  mail ─ tokens ─► tags that are allowed, their attributes typed ─► a stack of open elements ─► markup, balanced
//! ```
//! Nothing of the input is copied: text is decoded and escaped, an attribute is parsed to its type and written from that, a style is
//! parsed to its declarations. Not in the list: scripts, styles, forms, frames, objects, SVG, MathML, `meta`, `base`, `link`,
//! identifiers and classes; names of places, to which links within a mail lead, have a prefix.
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
pub(crate) use link::{LINK_BYTES_MAX, link};

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
        foreign: None,
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
    /// The element that the input is within and nothing of is shown: of another language, or a list to choose from.
    foreign: Option<&'static str>,
    picture: &'p mut Pictures<'q>,
}

/// The tag under way.
#[derive(Debug, Clone, Copy)]
enum Tag {
    None,
    Open(&'static Element),
    Foreign(&'static str),
    Other,
}

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
            _ if self.foreign.is_some() => return,
            Within::Page | Within::Escapable("textarea") => decoded(bytes, Place::Page),
            Within::Raw("xmp" | "plaintext") => String::from_utf8_lossy(bytes),
            Within::Escapable(_) | Within::Raw(_) => return,
        };
        escape(&text, &mut self.safe.html);
    }

    /// The meaning of a tag that opens an element.
    fn opens(&mut self, name: &[u8]) -> Tag {
        let foreign = ["svg", "math", "select", "datalist"].into_iter().find(|foreign| foreign.as_bytes() == name);
        let element = element::find(name);
        match (self.foreign, foreign, element) {
            // Elements of HTML end those of other languages, and lists that were left open.
            (Some(_), _, Some(element)) if element.breaks_out => self.foreign = None,
            (Some(_), ..) => return Tag::Other,
            (None, Some(foreign), _) => return Tag::Foreign(foreign),
            _ => {}
        }
        element.map_or(Tag::Other, Tag::Open)
    }

    fn end_tag(&mut self, is_closed: bool) {
        match core::mem::replace(&mut self.tag, Tag::None) {
            Tag::Open(element) => self.open(element),
            Tag::Foreign(name) if !is_closed => self.foreign = Some(name),
            Tag::Foreign(_) | Tag::Other | Tag::None => {}
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
        let remote = attribute::write(element, &mut self.attributes, &mut *self.picture, out);
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

    /// A row ends a row, a cell ends a cell.
    fn close_table_parts(&mut self, next: &Element) {
        let Kind::Table(rank) = next.kind else { return };
        let table = self.open.iter().rposition(|element| element.written == "table");
        let Some(table) = table.filter(|_| rank > 0) else {
            // A table ends a paragraph.
            if rank == 0 {
                let from =
                    self.open.iter().rposition(|element| element.is_wall(Kind::Block)).map_or(0, |wall| wall + 1);
                if let Some(at) = self.open.iter().skip(from).position(|element| element.written == "p") {
                    self.close_to(from + at);
                }
            }
            return;
        };
        let is_same_or_within = |element: &&Element| matches!(element.kind, Kind::Table(other) if other >= rank);
        if let Some(at) = self.open.iter().skip(table + 1).position(is_same_or_within) {
            self.close_to(table + 1 + at);
        }
    }

    /// A tag that closes an element: closes those within it, too. One whose element is not open here is left out.
    fn close(&mut self, name: &[u8]) {
        if let Some(foreign) = self.foreign {
            if foreign.as_bytes() == name {
                self.foreign = None;
            }
            return;
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
        if let Some(at) = at {
            self.close_to(from + at);
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
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::fuzz_sanitise;

    fn safe(page: &str) -> String {
        fuzz_sanitise(page.as_bytes());
        sanitise(page, &mut |picture| (picture == Picture::Part("a@b")).then(|| "data:image/png;base64,AAAA".into()))
            .html
    }

    #[test]
    fn a_page_is_written_anew() {
        for (page, wanted) in [
            ("<p>a<p>b<div>c</p>", "<p>a</p><p>b</p><div>c</div>"),
            ("<ul><li>a<li>b<ul><li>c</ul></ul>", "<ul><li>a</li><li>b<ul><li>c</li></ul></li></ul>"),
            (
                "<table><tr><td>a<td>b<tr><td>c</table>d",
                "<table><tr><td>a</td><td>b</td></tr><tr><td>c</td></tr></table>d",
            ),
            ("<div><table><td>a</div>b</table></div>", "<div><table><td>ab</td></table></div>"),
            ("<b><i>a</b>b</i>", "<b><i>a</i></b>b"),
            ("<body bgcolor=red>a</body>", "<div style=\"background-color:red;\">a</div>"),
            (
                "<body bgcolor=FFFFFF text=Black link=x><body text=#fff style='margin:0'>a",
                "<div style=\"background-color:#ffffff;color:black;\"><div style=\"color:#fff;margin:0;\">a</div></div>",
            ),
            (
                "<p hidden>a<td bgcolor=eee><p text=red>",
                "<p hidden=\"hidden\">a<td bgcolor=\"#0e0e0e\"><p></p></td></p>",
            ),
            (
                "<font face=\"'Segoe UI', Arial\">a<font face='\u{ff2d}\u{ff33} P'>",
                "<font face=\"&#39;Segoe UI&#39;, Arial\">a<font face=\"\u{ff2d}\u{ff33} P\"></font></font>",
            ),
            ("a<br/>b<hr>", "a<br>b<hr>"),
            ("1 < 2 &amp; &lt;b&gt; &#x3c;", "1 &lt; 2 &amp; &lt;b&gt; &lt;"),
            ("a&nbsp|b &copy 2002 &lt3 &checkmark;", "a\u{a0}|b © 2002 &lt;3 ✓"),
            ("<p title='&copy=1 &eacute'>a", "<p title=\"&amp;copy=1 é\">a</p>"),
            ("<font color=RED face='a b' size=+1 onclick=x>a", "<font color=\"red\" face=\"a b\" size=\"+1\">a</font>"),
            (
                "<a href='#top'>a</a><a name=top id=x>b</a><a href='#'>c</a><a name='a b'>d</a><p name=top>",
                "<a href=\"#mail-top\">a</a><a name=\"mail-top\">b</a><a>c</a><a>d</a><p></p>",
            ),
            (
                "<td height='+007px' ALIGN=Left width='50 %' border=000 colspan=1001 align=right>",
                "<td align=\"left\" width=\"50%\" height=\"7\" border=\"0\"></td>",
            ),
            (
                "<a href='&#104;ttp://a.example/&uuml;&amp;' href=x>a",
                "<a href=\"http://a.example/%C3%BC&amp;\" target=\"_blank\" rel=\"noopener noreferrer nofollow\">a</a>",
            ),
        ] {
            assert_eq!(safe(page), wanted, "{page}");
        }
    }

    #[test]
    fn what_runs_or_fetches_is_left_out() {
        for (page, wanted) in [
            ("<script>alert(1)</script>a", "a"),
            ("<style>a{}</style><title>t</title>a", "a"),
            ("<svg><script>x</script><a href=javascript:x>y</a></svg>a", "a"),
            ("<math><mtext><table><mglyph><style><img src=x onerror=alert(1)>", "<table></table>"),
            ("<svg><p>a", "<p>a</p>"),
            ("<form action=x><input name=y><button>b</button></form>", "b"),
            ("a<select><option>b<option value=c>d</select>e<select><option>f<p>g", "ae<p>g</p>"),
            ("<iframe src=x>y</iframe><object data=x>z</object>", "z"),
            ("<a href=javascript:alert(1)>a</a>", "<a>a</a>"),
            ("<a href='jav&#x09;ascript:x'>a</a>", "<a>a</a>"),
            ("<base href=//x><meta http-equiv=refresh content=0><link rel=stylesheet href=x>a", "a"),
            ("<img src=x onerror=alert(1) id=y class=z>", "<img alt=\"\">"),
            ("<img src=cid:a@b alt='<b>'>", "<img src=\"data:image/png;base64,AAAA\" alt=\"&lt;b&gt;\">"),
            ("<img src='data:image/svg+xml;base64,AAAA'>", "<img alt=\"\">"),
            ("<p style='background:url(//x);color:red'>a", "<p style=\"color:red;\">a</p>"),
            (
                "<noscript><p title='</noscript><img src=x onerror=alert(1)>'>",
                "<p title=\"&lt;/noscript&gt;&lt;img src=x onerror=alert(1)&gt;\"></p>",
            ),
            ("<textarea><b>a</textarea><xmp><i></xmp>", "&lt;b&gt;a&lt;i&gt;"),
            ("<!--a--><?b?><!DOCTYPE c><![CDATA[d]]>e", "e"),
            ("<p onclick=x ONLOAD=y \0title=z>a", "<p>a</p>"),
            (
                "<a href='https://a.example' target=_self rel=opener>a",
                "<a href=\"https://a.example\" target=\"_blank\" rel=\"noopener noreferrer nofollow\">a</a>",
            ),
            ("<b", ""),
        ] {
            assert_eq!(safe(page), wanted, "{page}");
        }
    }

    #[test]
    fn pictures_elsewhere_are_counted() {
        let page = "<img src=http://a/b><img src='//a/b'><td background=https://a/c><img src=cid:x><img src=data:,>";
        assert_eq!(sanitise(page, &mut |_| None).remote, 3);
    }

    #[test]
    fn depth_and_attributes_are_bounded() {
        safe(&"<div>".repeat(100_000));
        safe(&"<table><tr><td>".repeat(10_000));
        safe(&format!("<p {}>a", "title=x ".repeat(10_000)));
        safe(&format!("<p {}>a", (0..10_000).map(|at| format!("a{at}=b ")).collect::<String>()));
        safe(&"</b></table></td>".repeat(50_000));
    }

    /// Pages of little else than tags.
    fn page() -> impl Strategy<Value = String> {
        let piece = prop::sample::select(vec![
            "<p>",
            "</p>",
            "<div>",
            "</div>",
            "<table>",
            "</table>",
            "<tr>",
            "<td>",
            "</td>",
            "</tr>",
            "<tbody>",
            "<th>",
            "<ul>",
            "<ol>",
            "<li>",
            "</li>",
            "</ul>",
            "<dl>",
            "<dt>",
            "<dd>",
            "<b>",
            "</b>",
            "<i>",
            "</i>",
            "<a href=\"https://a/&amp;\">",
            "</a>",
            "<svg>",
            "</svg>",
            "<math>",
            "<style>",
            "</style>",
            "<script>",
            "</script>",
            "<textarea>",
            "</textarea>",
            "<title>",
            "</title>",
            "<xmp>",
            "<plaintext>",
            "<img src=cid:a>",
            "<br>",
            "<hr/>",
            "<body>",
            "</body>",
            "<h1>",
            "<caption>",
            "<col>",
            "<colgroup>",
            "<pre>\n",
            "</pre>",
            "<!--",
            "-->",
            "&lt;",
            "&#60;",
            "&amp;amp;",
            "&#",
            "x",
            "<p title='&quot;<'>",
            "<p style='color:red;font-family:\"a\"'>",
            "<font size=+9>",
            "<noscript>",
            "<template>",
            "<",
            ">",
            "\"",
            "'",
            "\0",
            "\u{e9}",
            "&nbsp;",
            "<details>",
            "<summary>",
            "<q/>",
            "<body bgcolor=#fff style=margin:0>",
        ]);
        prop::collection::vec(piece, 0..40).prop_map(|pieces| pieces.concat())
    }

    proptest! {
        #[test]
        fn the_law_holds(page in page()) {
            fuzz_sanitise(page.as_bytes());
        }
    }
}
