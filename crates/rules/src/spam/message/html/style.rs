//! Styles that are in force where a text stands: size, colour, visibility.

use text::lenient::Attributes;

use super::{Builder, value};
use crate::spam::message::colour::{self, Colour, WHITE};
use crate::spam::message::perl::is_space;

pub(super) const STYLED: [&str; 13] =
    ["body", "font", "table", "tr", "th", "td", "big", "small", "basefont", "span", "p", "div", "a"];

/// How text looks.
#[derive(Debug, Clone)]
pub(super) struct Style {
    pub(super) tag: &'static str,
    pub(super) text: Colour,
    pub(super) ground: Colour,
    pub(super) size: f64,
    pub(super) is_hidden: [bool; 2],
}

impl Builder {
    pub(super) fn is_invisible(&mut self) -> bool {
        let Some(style) = self.styles.last() else { return false };
        match colour::contrast(&style.text, &style.ground) {
            colour::Contrast::Low => self.flag("font_low_contrast"),
            colour::Contrast::Invalid => self.flag("font_invalid_color"),
            colour::Contrast::Enough => return style.size <= 1.0 || style.is_hidden.contains(&true),
        }
        true
    }

    fn push_style(&mut self, style: Style) {
        if self.styles.len() >= self.styles_max {
            self.out.is_cut = true;
            return;
        }
        *self.open.entry(style.tag).or_default() += 1;
        self.styles.push(style);
    }

    fn pop_style(&mut self) -> Option<&'static str> {
        let style = self.styles.pop()?;
        if let Some(count) = self.open.get_mut(style.tag) {
            *count -= 1;
        }
        Some(style.tag)
    }

    fn is_open(&self, tag: &str) -> bool {
        self.open.get(tag).is_some_and(|count| *count > 0)
    }

    pub(super) fn close_style(&mut self, tag: &str) {
        if !self.is_open(tag) {
            return;
        }
        while self.pop_style().is_some_and(|closed| closed != tag) {}
    }

    pub(super) fn open_style(&mut self, tag: &'static str, attributes: &Attributes) {
        if tag == "basefont"
            && let Some(size) = value(attributes, "size").and_then(number)
        {
            self.base_size = size;
            return;
        }
        if (tag == "td" || tag == "tr") && self.is_open(tag) {
            let closes = |top: &str| matches!(top, "font" | "td") || (tag == "tr" && top == "tr");
            while self.styles.last().is_some_and(|style| closes(style.tag)) {
                self.pop_style();
            }
        }
        let Some(mut style) = self.styles.last().cloned() else { return };
        style.tag = tag;
        match tag {
            "big" => style.size += 1.0,
            "small" => style.size -= 1.0,
            _ => self.styled(&mut style, attributes),
        }
        self.push_style(style);
    }

    /// Applies the attributes of an element to a style.
    fn styled(&mut self, style: &mut Style, attributes: &Attributes) {
        let allowed: &[&str] = match style.tag {
            "basefont" | "font" => &["color", "face", "size"],
            "body" => &["text", "bgcolor", "link", "alink", "vlink", "background"],
            "table" | "td" | "tr" => &["bgcolor", "style"],
            _ => &["style"],
        };
        for (name, value) in attributes.iter().filter(|(name, _)| allowed.contains(&name.as_str())) {
            match name.as_str() {
                "text" | "color" => style.text = Colour::read(value),
                "size" => {
                    let text = value.trim_start_matches(|c| is_space(c, self.is_wide));
                    let amount = text.strip_prefix(['+', '-']).and_then(number);
                    match amount {
                        Some(amount) if text.starts_with('-') => style.size = self.base_size - amount,
                        Some(amount) => style.size = self.base_size + amount,
                        None => style.size = number(text).unwrap_or(style.size),
                    }
                }
                "style" => self.declared(style, value),
                _ => {}
            }
            if style.size > self.sizes.1 {
                self.sizes.1 = style.size;
            } else if style.size < self.sizes.0 {
                self.sizes.0 = style.size;
            }
        }
    }

    /// Applies a `style` attribute to a style.
    fn declared(&self, style: &mut Style, value: &str) {
        for part in value.split(';') {
            let part = part.trim_matches(|c| is_space(c, self.is_wide));
            let Some((name, value)) = part.split_once(':') else { continue };
            let value = value.trim_start_matches(|c| is_space(c, self.is_wide));
            if value.is_empty() || value.contains('\n') {
                continue;
            }
            let lower = name.to_ascii_lowercase();
            match lower.as_str() {
                "color" => colour::declared(&mut style.text, value),
                "background-color" => colour::declared(&mut style.ground, value),
                "background" if name == lower => {
                    if let Some(found) = colour::of_background(&value.to_lowercase()) {
                        style.ground = found;
                    }
                }
                _ => match name.trim_end_matches(|c| is_space(c, self.is_wide)) {
                    "display" => style.is_hidden[0] = value.eq_ignore_ascii_case("none"),
                    "visibility" => style.is_hidden[1] = value.eq_ignore_ascii_case("hidden"),
                    _ => {}
                },
            }
        }
        if style.ground.is_transparent() {
            style.ground = self.styles.last().map_or(WHITE, |style| style.ground.clone());
        }
        if style.text.is_transparent() {
            style.text = style.ground.clone();
        }
    }
}

/// The number that a text begins with.
fn number(text: &str) -> Option<f64> {
    let text = text.trim_start();
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    text[..digits].parse().ok()
}

/// A width or height in points of the screen.
pub(super) fn size(text: &str, of_percent: f64) -> f64 {
    let text = text.strip_suffix('\n').unwrap_or(text);
    let (digits, factor) = match text.strip_suffix('%') {
        Some(digits) => (digits, of_percent),
        None => (text, 1.0),
    };
    let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    let size = if is_number { digits.parse().unwrap_or(0.0) * factor } else { 0.0 };
    if size > 0.0 { size } else { 200.0 }
}

/// Whether a text is a plausible list of fonts.
pub(super) fn is_face(face: &str, is_wide: bool) -> bool {
    let face = face.strip_suffix('\n').unwrap_or(face);
    let face = face.strip_suffix(';').unwrap_or(face);
    face.split(',').enumerate().all(|(at, name)| {
        let name = name.trim_start_matches(|c| is_space(c, is_wide));
        let name = match at {
            0 => name.strip_prefix(['"', '\'', '.']).unwrap_or(name),
            _ => name.strip_prefix(['"', '\'']).unwrap_or(name),
        };
        let name = name.strip_suffix(['"', '\'']).unwrap_or(name);
        let name = name.strip_suffix(|c: char| c.is_ascii_digit()).unwrap_or(name);
        let name = name.as_bytes();
        let first = |byte: &u8| byte.is_ascii_alphabetic() || (at == 0 && *byte == b' ');
        name.len() >= 2
            && name.first().is_some_and(first)
            && name.last().is_some_and(u8::is_ascii_alphabetic)
            && name.iter().all(|byte| byte.is_ascii_alphabetic() || matches!(byte, b' ' | b'-'))
    })
}
