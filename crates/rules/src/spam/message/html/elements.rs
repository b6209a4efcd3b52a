//! The elements that SpamAssassin counts, and names that are no elements.

use text::lenient::Attributes;

use crate::spam::message::perl::is_word;

pub(super) const ELEMENTS: [&str; 94] = [
    "a",
    "abbr",
    "acronym",
    "address",
    "applet",
    "area",
    "b",
    "base",
    "basefont",
    "bdo",
    "big",
    "blockquote",
    "body",
    "br",
    "button",
    "caption",
    "center",
    "cite",
    "code",
    "col",
    "colgroup",
    "dd",
    "del",
    "dfn",
    "dir",
    "div",
    "dl",
    "dt",
    "em",
    "fieldset",
    "font",
    "form",
    "frame",
    "frameset",
    "h1",
    "h2",
    "h3",
    "h4",
    "h5",
    "h6",
    "head",
    "hr",
    "html",
    "i",
    "iframe",
    "img",
    "input",
    "ins",
    "isindex",
    "kbd",
    "label",
    "legend",
    "li",
    "link",
    "map",
    "menu",
    "meta",
    "nobr",
    "noframes",
    "noscript",
    "object",
    "ol",
    "optgroup",
    "option",
    "p",
    "param",
    "pre",
    "q",
    "s",
    "samp",
    "script",
    "select",
    "small",
    "span",
    "strike",
    "strong",
    "style",
    "sub",
    "sup",
    "table",
    "tbody",
    "td",
    "textarea",
    "tfoot",
    "th",
    "thead",
    "title",
    "tr",
    "tt",
    "u",
    "ul",
    "var",
    "x-sigsep",
    "x-tab",
];

/// Not elements, and read as if they were.
pub(super) const TRICKS: [&str; 5] = ["bgsound", "embed", "listing", "plaintext", "xmp"];

/// `x/href` counts as `href`.
pub(super) fn misspelt(attributes: &mut Attributes, name: &str, is_wide: bool) {
    let tail = format!("/{name}");
    let at = attributes.iter().position(|(known, _)| {
        known.find(&tail).is_some_and(|at| known[..at].chars().next_back().is_some_and(|c| is_word(c, is_wide)))
    });
    let Some(at) = at else { return };
    let (_, value) = attributes.remove(at);
    attributes.retain(|(known, _)| known != name);
    attributes.push((name.to_owned(), value));
}

/// Tags of Microsoft's namespaces: `o:p`, `st1:place`.
pub(super) fn is_office(name: &str, is_wide: bool) -> bool {
    let Some((space, rest)) = name.split_once(':') else { return false };
    let is_space_name = space == "o"
        || space.strip_prefix("st").is_some_and(|digit| digit.len() == 1 && digit.as_bytes()[0].is_ascii_digit());
    let rest = rest.strip_suffix('/').unwrap_or(rest);
    is_space_name && !rest.is_empty() && rest.chars().all(|c| is_word(c, is_wide) || c == '-')
}

/// White space in the text for a tag.
pub(super) fn gap(name: &str) -> Option<&'static str> {
    match name {
        "br" | "div" => Some("\n"),
        "li" | "td" | "th" | "dd" | "dt" | "embed" | "h1" | "h2" | "h3" | "h4" | "h5" | "h6" => Some(" "),
        "p" | "hr" | "blockquote" | "pre" | "listing" | "plaintext" | "xmp" | "title" => Some("\n\n"),
        _ => None,
    }
}
