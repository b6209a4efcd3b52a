//! What the HTML of a mail shows.

use std::collections::BTreeMap;

/// What is told about an element's name.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tag {
    /// How often it was opened or closed.
    pub seen: u32,
    /// How often it was opened.
    pub opened: u32,
}

/// A picture in a page.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Image {
    /// What it says of its width.
    pub width: Option<u32>,
    /// What it says of its height.
    pub height: Option<u32>,
}

/// What the HTML of a mail shows, by the names that SpamAssassin's own tests ask for.
#[derive(Debug, Clone, Default)]
pub struct Html {
    /// Whether there is any.
    pub is_html: bool,
    /// Counts, ratios and areas: `image_area`, `ratio`, `length`, `obfuscation`, `font_low_contrast`, ...
    pub numbers: BTreeMap<Box<str>, f64>,
    /// Elements by name.
    pub tags: BTreeMap<Box<str>, Tag>,
    /// What stands in `title` elements, in order.
    pub titles: Vec<Box<[u8]>>,
    /// What stands in links, in order.
    pub anchors: Vec<Box<[u8]>>,
    /// What scripts and styles say, in order: `html_text_match` looks at it.
    pub texts: BTreeMap<Box<str>, Vec<Box<[u8]>>>,
    /// What event handlers do.
    pub events: Vec<Box<[u8]>>,
}
