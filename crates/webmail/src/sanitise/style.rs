//! Declarations of an inline style (CSS 2.1 with what mails use of later levels), parsed to typed values and written from those.
//!
//! A declaration with anything else in it is left out: an escape, a quote where no font is named, a function other than those of
//! colours, a negative length. No property of the list takes an element out of its place or fetches something.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

/// Declarations of one style.
const DECLARATIONS_MAX: usize = 100;

/// Values of one declaration.
const VALUES_MAX: usize = 16;

/// A value.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Value {
    /// A keyword, or the name of a colour or a font.
    Word(String),
    Length(String),
    Colour(String),
    /// In quotes.
    Name(String),
    Comma,
    Slash,
}

/// Values that a property takes besides keywords.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Takes {
    Words,
    Lengths,
    Colours,
    /// Lengths and colours: borders.
    Both,
    /// Names of fonts, sizes, and what separates them.
    Fonts,
}

const PROPERTIES: [(&str, Takes); 72] = [
    ("background-color", Takes::Colours),
    ("border", Takes::Both),
    ("border-bottom", Takes::Both),
    ("border-bottom-color", Takes::Colours),
    ("border-bottom-style", Takes::Words),
    ("border-bottom-width", Takes::Lengths),
    ("border-collapse", Takes::Words),
    ("border-color", Takes::Colours),
    ("border-left", Takes::Both),
    ("border-left-color", Takes::Colours),
    ("border-left-style", Takes::Words),
    ("border-left-width", Takes::Lengths),
    ("border-radius", Takes::Lengths),
    ("border-right", Takes::Both),
    ("border-right-color", Takes::Colours),
    ("border-right-style", Takes::Words),
    ("border-right-width", Takes::Lengths),
    ("border-spacing", Takes::Lengths),
    ("border-style", Takes::Words),
    ("border-top", Takes::Both),
    ("border-top-color", Takes::Colours),
    ("border-top-style", Takes::Words),
    ("border-top-width", Takes::Lengths),
    ("border-width", Takes::Lengths),
    ("box-sizing", Takes::Words),
    ("caption-side", Takes::Words),
    ("clear", Takes::Words),
    ("color", Takes::Colours),
    ("direction", Takes::Words),
    ("display", Takes::Words),
    ("empty-cells", Takes::Words),
    ("float", Takes::Words),
    ("font", Takes::Fonts),
    ("font-family", Takes::Fonts),
    ("font-size", Takes::Lengths),
    ("font-style", Takes::Words),
    ("font-variant", Takes::Words),
    ("font-weight", Takes::Lengths),
    ("height", Takes::Lengths),
    ("hyphens", Takes::Words),
    ("letter-spacing", Takes::Lengths),
    ("line-height", Takes::Lengths),
    ("list-style-position", Takes::Words),
    ("list-style-type", Takes::Words),
    ("margin", Takes::Lengths),
    ("margin-bottom", Takes::Lengths),
    ("margin-left", Takes::Lengths),
    ("margin-right", Takes::Lengths),
    ("margin-top", Takes::Lengths),
    ("max-height", Takes::Lengths),
    ("max-width", Takes::Lengths),
    ("min-height", Takes::Lengths),
    ("min-width", Takes::Lengths),
    ("overflow-wrap", Takes::Words),
    ("padding", Takes::Lengths),
    ("padding-bottom", Takes::Lengths),
    ("padding-left", Takes::Lengths),
    ("padding-right", Takes::Lengths),
    ("padding-top", Takes::Lengths),
    ("table-layout", Takes::Words),
    ("text-align", Takes::Words),
    ("text-decoration", Takes::Words),
    ("text-indent", Takes::Lengths),
    ("text-transform", Takes::Words),
    ("unicode-bidi", Takes::Words),
    ("vertical-align", Takes::Lengths),
    ("visibility", Takes::Words),
    ("white-space", Takes::Words),
    ("width", Takes::Lengths),
    ("word-break", Takes::Words),
    ("word-spacing", Takes::Lengths),
    ("word-wrap", Takes::Words),
];

const UNITS: [&str; 11] = ["", "px", "em", "rem", "pt", "%", "ex", "cm", "mm", "in", "pc"];

/// The declarations of a style that are allowed.
pub(super) fn clean(style: &str) -> String {
    let mut reader = Reader { rest: style };
    let mut out = String::new();
    for _ in 0..DECLARATIONS_MAX {
        reader.skip_blanks();
        if reader.rest.is_empty() {
            break;
        }
        let declaration = reader.declaration();
        if let Some((name, values)) = declaration
            && let Some(text) = written(&name, values)
        {
            out.push_str(&text);
        }
        reader.skip_declaration();
    }
    out
}

fn written(name: &str, values: Vec<Value>) -> Option<String> {
    let (name, values) = match name {
        // Of the short form the colour alone: the rest is a picture.
        "background" => ("background-color", values.into_iter().find(is_colour).into_iter().collect()),
        name => (name, values),
    };
    let at = PROPERTIES.binary_search_by(|(known, _)| (*known).cmp(name)).ok()?;
    let (name, takes) = PROPERTIES.get(at)?;
    let fits = |value: &Value| match value {
        Value::Word(_) => true,
        Value::Length(_) => matches!(takes, Takes::Lengths | Takes::Both | Takes::Fonts),
        Value::Colour(_) => matches!(takes, Takes::Colours | Takes::Both),
        Value::Name(_) | Value::Comma | Value::Slash => *takes == Takes::Fonts,
    };
    if values.is_empty() || !values.iter().all(fits) {
        return None;
    }
    let mut text = format!("{name}:");
    for (at, value) in values.iter().enumerate() {
        if at > 0 && *value != Value::Comma {
            text.push(' ');
        }
        match value {
            Value::Word(word) | Value::Length(word) | Value::Colour(word) => text.push_str(word),
            Value::Name(name) => text.push_str(&format!("\"{name}\"")),
            Value::Comma => text.push(','),
            Value::Slash => text.push('/'),
        }
    }
    text.push(';');
    Some(text)
}

/// Whether the short form of backgrounds means a colour by a value.
fn is_colour(value: &Value) -> bool {
    const OTHERS: [&str; 14] = [
        "repeat",
        "no-repeat",
        "repeat-x",
        "repeat-y",
        "scroll",
        "fixed",
        "center",
        "top",
        "left",
        "right",
        "bottom",
        "none",
        "cover",
        "contain",
    ];
    match value {
        Value::Colour(_) => true,
        Value::Word(word) => !OTHERS.contains(&word.as_str()),
        _ => false,
    }
}

struct Reader<'a> {
    rest: &'a str,
}

impl<'a> Reader<'a> {
    fn skip_blanks(&mut self) {
        loop {
            self.rest = self.rest.trim_start_matches(|c: char| c.is_ascii_whitespace() || c == ';');
            let Some(comment) = self.rest.strip_prefix("/*") else { return };
            self.rest = comment.split_once("*/").map_or("", |(_, behind)| behind);
        }
    }

    /// The next declaration, if all of it is understood.
    fn declaration(&mut self) -> Option<(String, Vec<Value>)> {
        let name = self.word()?.to_ascii_lowercase();
        self.rest = self.rest.trim_ascii_start().strip_prefix(':')?;
        let mut values = Vec::new();
        loop {
            self.rest = self.rest.trim_ascii_start();
            match self.rest.chars().next() {
                None | Some(';') => break,
                Some('!') => {
                    self.rest = &self.rest[1..];
                    self.rest = self.rest.trim_ascii_start();
                    let word = self.word()?;
                    if !word.eq_ignore_ascii_case("important") {
                        return None;
                    }
                }
                Some(_) if values.len() >= VALUES_MAX => return None,
                Some(_) => match self.value() {
                    Some(value) => values.push(value),
                    None if name == "background" => self.skip_value()?,
                    None => return None,
                },
            }
        }
        Some((name, values))
    }

    fn value(&mut self) -> Option<Value> {
        let first = self.rest.chars().next()?;
        match first {
            ',' => self.single(Value::Comma),
            '/' if !self.rest.starts_with("/*") => self.single(Value::Slash),
            '#' => {
                self.rest = &self.rest[1..];
                let digits = self.run(|c| c.is_ascii_hexdigit());
                matches!(digits.len(), 3 | 4 | 6 | 8)
                    .then(|| Value::Colour(format!("#{}", digits.to_ascii_lowercase())))
            }
            '"' | '\'' => self.name(first),
            '0'..='9' | '.' | '+' => self.length(),
            _ if first.is_ascii_alphabetic() => self.word_or_colour(),
            _ => None,
        }
    }

    fn single(&mut self, value: Value) -> Option<Value> {
        self.rest = self.rest.get(1..)?;
        Some(value)
    }

    fn run(&mut self, fits: impl Fn(char) -> bool) -> &'a str {
        let end = self.rest.find(|c| !fits(c)).unwrap_or(self.rest.len());
        let (run, rest) = self.rest.split_at(end);
        self.rest = rest;
        run
    }

    fn word(&mut self) -> Option<&'a str> {
        let word = self.run(|c| c.is_ascii_alphanumeric() || c == '-');
        let is_word = word.starts_with(|c: char| c.is_ascii_alphabetic()) && word.len() <= 40;
        is_word.then_some(word)
    }

    fn name(&mut self, quote: char) -> Option<Value> {
        self.rest = self.rest.get(1..)?;
        let name = self.run(|c| c.is_ascii_alphanumeric() || " -_".contains(c) || (c.is_alphabetic() && !c.is_ascii()));
        self.rest = self.rest.strip_prefix(quote)?;
        (name.len() <= 80).then(|| Value::Name(name.trim().into()))
    }

    fn length(&mut self) -> Option<Value> {
        let number = self.number()?;
        let unit = match self.rest.strip_prefix('%') {
            Some(rest) => {
                self.rest = rest;
                "%".to_string()
            }
            None => self.run(|c| c.is_ascii_alphabetic()).to_ascii_lowercase(),
        };
        UNITS.contains(&unit.as_str()).then(|| Value::Length(format!("{number}{unit}")))
    }

    /// A number of at most five digits before the point and three behind it.
    fn number(&mut self) -> Option<String> {
        self.rest = self.rest.strip_prefix('+').unwrap_or(self.rest);
        let whole = self.run(|c| c.is_ascii_digit());
        let mut number = match whole.trim_start_matches('0') {
            "" => "0".to_string(),
            whole => whole.into(),
        };
        let mut fraction = "";
        if let Some(rest) = self.rest.strip_prefix('.') {
            self.rest = rest;
            fraction = self.run(|c| c.is_ascii_digit());
        }
        if number.len() > 5 || whole.is_empty() && fraction.is_empty() {
            return None;
        }
        let fraction = fraction.get(..fraction.len().min(3)).unwrap_or_default();
        if !fraction.is_empty() {
            number.push('.');
            number.push_str(fraction);
        }
        Some(number)
    }

    fn word_or_colour(&mut self) -> Option<Value> {
        let word = self.word()?.to_string();
        let Some(rest) = self.rest.strip_prefix('(') else { return Some(Value::Word(word)) };
        let function = word.to_ascii_lowercase();
        if !["rgb", "rgba", "hsl", "hsla"].contains(&function.as_str()) {
            return None;
        }
        self.rest = rest;
        let mut parts: Vec<String> = Vec::new();
        loop {
            self.rest = self.rest.trim_start_matches(|c: char| c.is_ascii_whitespace() || c == ',' || c == '/');
            if let Some(rest) = self.rest.strip_prefix(')') {
                self.rest = rest;
                break;
            }
            let number = self.number()?;
            let unit = match self.rest.strip_prefix('%') {
                Some(rest) => {
                    self.rest = rest;
                    "%"
                }
                None => "",
            };
            parts.push(format!("{number}{unit}"));
            if parts.len() > 4 {
                return None;
            }
        }
        (parts.len() >= 3).then(|| Value::Colour(format!("{function}({})", parts.join(","))))
    }

    /// Passes over a value that is not understood: up to a blank or the end of the declaration, with what stands in brackets.
    fn skip_value(&mut self) -> Option<()> {
        let mut depth = 0u32;
        for (at, character) in self.rest.char_indices() {
            match character {
                '"' | '\'' | '\\' => return None,
                '(' => depth = depth.saturating_add(1),
                ')' => depth = depth.saturating_sub(1),
                ';' | ' ' | '\t' | '\n' if depth == 0 && at > 0 => {
                    self.rest = &self.rest[at..];
                    return Some(());
                }
                _ => {}
            }
        }
        self.rest = "";
        Some(())
    }

    /// Goes on behind the next semicolon.
    fn skip_declaration(&mut self) {
        self.rest = self.rest.split_once(';').map_or("", |(_, behind)| behind);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_in_order() {
        assert!(PROPERTIES.windows(2).all(|pair| pair[0].0 < pair[1].0));
    }

    #[test]
    fn declarations_are_typed_and_others_are_left_out() {
        for (style, wanted) in [
            ("color:#FFF; font-size : 12PX", "color:#fff;font-size:12px;"),
            ("font-family: 'Segoe UI', Arial , sans-serif", "font-family:\"Segoe UI\", Arial, sans-serif;"),
            ("margin:0 auto !important", "margin:0 auto;"),
            ("background: #fff url(http://a.example/x.png) no-repeat", "background-color:#fff;"),
            ("background:url('x')", ""),
            ("color: rgba(1, 2,3 , .5)", "color:rgba(1,2,3,0.5);"),
            ("position:fixed;top:0;z-index:9;color:red", "color:red;"),
            ("width:expression(alert(1));height:1px", "height:1px;"),
            ("color:var(--x);c\\6f lor:red", ""),
            ("/* x */color/**/:red;/*", ""),
            ("margin:-10px", ""),
            ("font:12px/1.5 Arial", "font:12px / 1.5 Arial;"),
            ("color:red}body{display:none", ""),
            ("color:\"red\"", ""),
            ("behavior:url(x);-moz-binding:url(x);color:blue", "color:blue;"),
        ] {
            assert_eq!(clean(style), wanted, "{style}");
            assert_eq!(clean(wanted), wanted);
        }
    }
}
