//! The elements that are allowed.

/// An element that is allowed.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Element {
    /// Its name in the mail.
    pub name: &'static str,
    /// Its name in the output.
    pub written: &'static str,
    pub kind: Kind,
    /// Whether it ends SVG and MathML (WHATWG HTML, 13.2.6.5).
    pub breaks_out: bool,
}

/// The way in which an element nests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Inline,
    /// Ends a paragraph.
    Block,
    /// Ends an item of the same list.
    Item,
    /// A part of a table: the table is 0, the cell is the innermost.
    Table(u8),
    /// Has no content.
    Void,
}

impl Element {
    /// Whether tags within it close nothing around it, for an element of this kind.
    pub fn is_wall(&self, next: Kind) -> bool {
        let is_list = matches!(self.written, "ul" | "ol" | "dl");
        matches!(self.kind, Kind::Table(_)) || (next == Kind::Item && is_list)
    }
}

pub(super) const fn of(name: &'static str, kind: Kind) -> Element {
    Element { name, written: name, kind, breaks_out: false }
}

const fn out(name: &'static str, kind: Kind) -> Element {
    Element { breaks_out: true, ..of(name, kind) }
}

/// In the order of their names.
const ELEMENTS: [Element; 81] = [
    of("a", Kind::Inline),
    of("abbr", Kind::Inline),
    of("acronym", Kind::Inline),
    of("address", Kind::Block),
    of("area", Kind::Void),
    of("article", Kind::Block),
    of("aside", Kind::Block),
    out("b", Kind::Inline),
    of("bdi", Kind::Inline),
    of("bdo", Kind::Inline),
    out("big", Kind::Inline),
    out("blockquote", Kind::Block),
    Element { written: "div", ..out("body", Kind::Block) },
    out("br", Kind::Void),
    of("caption", Kind::Table(1)),
    out("center", Kind::Block),
    of("cite", Kind::Inline),
    out("code", Kind::Inline),
    // Its attributes are those of columns, which no mail program writes; its rows would be out of place elsewhere.
    of("col", Kind::Void),
    of("colgroup", Kind::Table(1)),
    out("dd", Kind::Item),
    of("del", Kind::Inline),
    of("details", Kind::Block),
    of("dfn", Kind::Inline),
    of("dir", Kind::Block),
    out("div", Kind::Block),
    out("dl", Kind::Block),
    out("dt", Kind::Item),
    out("em", Kind::Inline),
    of("figcaption", Kind::Block),
    of("figure", Kind::Block),
    of("font", Kind::Inline),
    of("footer", Kind::Block),
    out("h1", Kind::Block),
    out("h2", Kind::Block),
    out("h3", Kind::Block),
    out("h4", Kind::Block),
    out("h5", Kind::Block),
    out("h6", Kind::Block),
    of("header", Kind::Block),
    out("hr", Kind::Void),
    out("i", Kind::Inline),
    out("img", Kind::Void),
    of("ins", Kind::Inline),
    of("kbd", Kind::Inline),
    out("li", Kind::Item),
    of("main", Kind::Block),
    of("map", Kind::Inline),
    of("mark", Kind::Inline),
    of("nav", Kind::Block),
    out("nobr", Kind::Inline),
    out("ol", Kind::Block),
    out("p", Kind::Block),
    out("pre", Kind::Block),
    of("q", Kind::Inline),
    of("rp", Kind::Inline),
    of("rt", Kind::Inline),
    of("ruby", Kind::Inline),
    out("s", Kind::Inline),
    of("samp", Kind::Inline),
    of("section", Kind::Block),
    out("small", Kind::Inline),
    out("span", Kind::Inline),
    out("strike", Kind::Inline),
    out("strong", Kind::Inline),
    out("sub", Kind::Inline),
    of("summary", Kind::Block),
    out("sup", Kind::Inline),
    out("table", Kind::Table(0)),
    of("tbody", Kind::Table(1)),
    of("td", Kind::Table(3)),
    of("tfoot", Kind::Table(1)),
    of("th", Kind::Table(3)),
    of("thead", Kind::Table(1)),
    of("time", Kind::Inline),
    of("tr", Kind::Table(2)),
    out("tt", Kind::Inline),
    out("u", Kind::Inline),
    out("ul", Kind::Block),
    out("var", Kind::Inline),
    of("wbr", Kind::Void),
];

/// The element of a name in lower case.
pub(super) fn find(name: &[u8]) -> Option<&'static Element> {
    let letter = usize::from(name.first()?.checked_sub(b'a')?);
    let (from, to) = (*BEGINNINGS.get(letter)?, *BEGINNINGS.get(letter.checked_add(1)?)?);
    ELEMENTS.get(from..to)?.iter().find(|element| element.name.as_bytes() == name)
}

/// Where the elements of each letter begin.
const BEGINNINGS: [usize; 27] = beginnings();

#[allow(clippy::indexing_slicing, clippy::arithmetic_side_effects, reason = "evaluated by the compiler")]
const fn beginnings() -> [usize; 27] {
    let (mut all, mut letter, mut at) = ([0; 27], 0, 0);
    while letter < 27 {
        while at < ELEMENTS.len() && (ELEMENTS[at].name.as_bytes()[0] as usize) < b'a' as usize + letter {
            at += 1;
        }
        all[letter] = at;
        letter += 1;
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_in_order() {
        assert!(ELEMENTS.windows(2).all(|pair| pair[0].name < pair[1].name));
        assert!(ELEMENTS.iter().all(|element| find(element.name.as_bytes()) == Some(element)));
        assert!(["", "A", "zz", "div ", "{"].iter().all(|name| find(name.as_bytes()).is_none()));
    }
}
