//! Declarations of an inline style (CSS 2.1 with what mails use of later levels), parsed to typed values and written from those.
//!
//! A declaration with anything else in it is left out: an escape, a quote where no font is named, a function other than those of
//! colours, a negative length. No property of the list takes an element out of its place or fetches something.

use alloc::string::String;
use alloc::vec::Vec;

/// Declarations of one style.
const DECLARATIONS_MAX: usize = 100;

/// Values of one declaration.
const VALUES_MAX: usize = 16;

/// A value, as it stands in the style.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Value<'a> {
    /// A keyword, or the name of a colour or a font.
    Word(&'a str),
    Length(Number<'a>, &'static str),
    /// The digits of a colour.
    Digits(&'a str),
    /// A function of colours, and its values.
    Function(&'static str, [Option<(Number<'a>, &'static str)>; 4]),
    /// In quotes.
    Name(&'a str),
    Comma,
    Slash,
}

/// A number without signs: its digits before the point, without zeros before them, and behind it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Number<'a> {
    whole: &'a str,
    fraction: &'a str,
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

/// Functions of colours.
const FUNCTIONS: [&str; 4] = ["rgb", "rgba", "hsl", "hsla"];

/// The longest word.
const WORD_BYTES_MAX: usize = 40;

/// Writes the declarations of a style that are allowed.
pub(super) fn clean(style: &str, out: &mut String) {
    let (mut reader, mut values) = (Reader { rest: style }, Vec::new());
    for _ in 0..DECLARATIONS_MAX {
        reader.skip_blanks();
        if reader.rest.is_empty() {
            break;
        }
        values.clear();
        if let Some(name) = reader.declaration(&mut values) {
            write(name, &values, out);
        }
        reader.skip_declaration();
    }
}

/// Writes a declaration, if its values are those of its property.
fn write(name: &str, values: &[Value<'_>], out: &mut String) {
    let (name, values) = match name.eq_ignore_ascii_case("background") {
        // Of the short form the colour alone: the rest is a picture.
        true => ("background-color", values.iter().find(|value| is_colour(value)).map(core::slice::from_ref)),
        false => (name, Some(values)),
    };
    let (Some((name, takes)), Some(values)) = (property(name), values) else { return };
    let fits = |value: &Value<'_>| match value {
        Value::Word(_) => true,
        Value::Length(..) => matches!(takes, Takes::Lengths | Takes::Both | Takes::Fonts),
        Value::Digits(_) | Value::Function(..) => matches!(takes, Takes::Colours | Takes::Both),
        Value::Name(_) | Value::Comma | Value::Slash => *takes == Takes::Fonts,
    };
    if values.is_empty() || !values.iter().all(fits) {
        return;
    }
    out.push_str(name);
    out.push(':');
    for (at, value) in values.iter().enumerate() {
        if at > 0 && *value != Value::Comma {
            out.push(' ');
        }
        value.write(out);
    }
    out.push(';');
}

/// The property of a name, whatever its case.
fn property(name: &str) -> Option<&'static (&'static str, Takes)> {
    let mut lower = [0; WORD_BYTES_MAX];
    let lower = lower.get_mut(..name.len())?;
    lower.copy_from_slice(name.as_bytes());
    lower.make_ascii_lowercase();
    let at = PROPERTIES.binary_search_by(|(known, _)| known.as_bytes().cmp(lower)).ok()?;
    PROPERTIES.get(at)
}

impl Value<'_> {
    fn write(&self, out: &mut String) {
        match self {
            Value::Word(word) => out.push_str(word),
            Value::Length(number, unit) => number.write(unit, out),
            Value::Digits(digits) => {
                out.push('#');
                out.extend(digits.chars().map(|digit| digit.to_ascii_lowercase()));
            }
            Value::Function(function, values) => {
                out.push_str(function);
                for (at, (number, unit)) in values.iter().flatten().enumerate() {
                    out.push(if at == 0 { '(' } else { ',' });
                    number.write(unit, out);
                }
                out.push(')');
            }
            Value::Name(name) => {
                out.push('"');
                out.push_str(name);
                out.push('"');
            }
            Value::Comma => out.push(','),
            Value::Slash => out.push('/'),
        }
    }
}

impl Number<'_> {
    fn write(&self, unit: &str, out: &mut String) {
        out.push_str(if self.whole.is_empty() { "0" } else { self.whole });
        if !self.fraction.is_empty() {
            out.push('.');
            out.push_str(self.fraction);
        }
        out.push_str(unit);
    }
}

/// Whether the short form of backgrounds means a colour by a value.
fn is_colour(value: &Value<'_>) -> bool {
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
        Value::Digits(_) | Value::Function(..) => true,
        Value::Word(word) => !OTHERS.contains(word),
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

    /// The next declaration, if all of it is understood: its name, and its values behind those that are there.
    fn declaration(&mut self, values: &mut Vec<Value<'a>>) -> Option<&'a str> {
        let name = self.word()?;
        self.rest = self.rest.trim_ascii_start().strip_prefix(':')?;
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
                    None if name.eq_ignore_ascii_case("background") => self.skip_value()?,
                    None => return None,
                },
            }
        }
        Some(name)
    }

    fn value(&mut self) -> Option<Value<'a>> {
        let first = self.rest.chars().next()?;
        match first {
            ',' => self.single(Value::Comma),
            '/' if !self.rest.starts_with("/*") => self.single(Value::Slash),
            '#' => {
                self.rest = &self.rest[1..];
                let digits = self.run(|c| c.is_ascii_hexdigit());
                matches!(digits.len(), 3 | 4 | 6 | 8).then_some(Value::Digits(digits))
            }
            '"' | '\'' => self.name(first),
            '0'..='9' | '.' | '+' => self.length(),
            _ if first.is_ascii_alphabetic() => self.word_or_colour(),
            _ => None,
        }
    }

    fn single(&mut self, value: Value<'a>) -> Option<Value<'a>> {
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
        let is_word = word.starts_with(|c: char| c.is_ascii_alphabetic()) && word.len() <= WORD_BYTES_MAX;
        is_word.then_some(word)
    }

    fn name(&mut self, quote: char) -> Option<Value<'a>> {
        self.rest = self.rest.get(1..)?;
        let name = self.run(|c| c.is_ascii_alphanumeric() || " -_".contains(c) || (c.is_alphabetic() && !c.is_ascii()));
        self.rest = self.rest.strip_prefix(quote)?;
        (name.len() <= 80).then_some(Value::Name(name.trim()))
    }

    fn length(&mut self) -> Option<Value<'a>> {
        let number = self.number()?;
        let unit = match self.percent() {
            "" => self.run(|c| c.is_ascii_alphabetic()),
            percent => percent,
        };
        let unit = UNITS.iter().find(|known| known.eq_ignore_ascii_case(unit))?;
        Some(Value::Length(number, unit))
    }

    /// A number of at most five digits before the point and three behind it.
    fn number(&mut self) -> Option<Number<'a>> {
        self.rest = self.rest.strip_prefix('+').unwrap_or(self.rest);
        let digits = self.run(|c| c.is_ascii_digit());
        let mut fraction = "";
        if let Some(rest) = self.rest.strip_prefix('.') {
            self.rest = rest;
            fraction = self.run(|c| c.is_ascii_digit());
        }
        let whole = digits.trim_start_matches('0');
        if whole.len() > 5 || digits.is_empty() && fraction.is_empty() {
            return None;
        }
        Some(Number { whole, fraction: fraction.get(..fraction.len().min(3)).unwrap_or_default() })
    }

    fn percent(&mut self) -> &'static str {
        let Some(rest) = self.rest.strip_prefix('%') else { return "" };
        self.rest = rest;
        "%"
    }

    fn word_or_colour(&mut self) -> Option<Value<'a>> {
        let word = self.word()?;
        let Some(rest) = self.rest.strip_prefix('(') else { return Some(Value::Word(word)) };
        let function = FUNCTIONS.iter().find(|known| known.eq_ignore_ascii_case(word))?;
        self.rest = rest;
        let (mut parts, mut count) = ([None; 4], 0usize);
        loop {
            self.rest = self.rest.trim_start_matches(|c: char| c.is_ascii_whitespace() || c == ',' || c == '/');
            if let Some(rest) = self.rest.strip_prefix(')') {
                self.rest = rest;
                break;
            }
            let (number, unit) = (self.number()?, self.percent());
            *parts.get_mut(count)? = Some((number, unit));
            count = count.saturating_add(1);
        }
        (count >= 3).then_some(Value::Function(function, parts))
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

    fn cleaned(style: &str) -> String {
        let mut out = String::new();
        clean(style, &mut out);
        out
    }

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
            assert_eq!(cleaned(style), wanted, "{style}");
            assert_eq!(cleaned(wanted), wanted);
        }
    }
}
