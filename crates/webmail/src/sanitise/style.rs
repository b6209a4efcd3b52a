//! Declarations of an inline style (CSS 2.1 with what mails use of later levels), parsed to typed values and written from those.
//!
//! A declaration with anything else in it is left out, and none beside it: an escape, a quote where no font is named, a function other than
//! those of colours and `calc` for sizes. Of a list of fonts the names that are understood stay, of `background` the colour. No property of
//! the list fetches something or takes an element out of its place: lengths below zero are small, see [`NEGATIVE_PIXELS_MAX`].

mod property;
mod reader;
mod sheet;

use alloc::string::String;
use alloc::vec::Vec;

use property::{BELOW_ZERO, CALCS, COLOURS, COMMAS, LENGTHS, NAMES, PROPERTIES, SLASHES};
use reader::Reader;
use sheet::{Sheet, without_comments};

/// Declarations of one style.
const DECLARATIONS_MAX: usize = 100;

/// The longest way against the direction of the text, in pixels: the indent of a list.
const NEGATIVE_PIXELS_MAX: u32 = 100;

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
    /// What stands in the brackets of a `calc`, of lengths and operators.
    Calc(&'a str),
    /// In quotes.
    Name(&'a str),
    Comma,
    Slash,
}

/// A number: its digits before the point, without zeros before them, and behind it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Number<'a> {
    is_negative: bool,
    whole: &'a str,
    fraction: &'a str,
}

/// Units, and the pixels of each, about.
const UNITS: [(&str, u32); 16] = [
    ("", 1),
    ("px", 1),
    ("em", 16),
    ("rem", 16),
    ("pt", 2),
    ("%", 10),
    ("ex", 8),
    ("ch", 8),
    ("cm", 38),
    ("mm", 4),
    ("in", 96),
    ("pc", 16),
    ("vw", 20),
    ("vh", 20),
    ("vmin", 20),
    ("vmax", 20),
];

/// Functions of colours.
const FUNCTIONS: [&str; 4] = ["rgb", "rgba", "hsl", "hsla"];

/// The longest word.
const WORD_BYTES_MAX: usize = 40;

/// Writes the declarations of a style that are allowed.
pub(super) fn clean(style: &str, out: &mut String) {
    let style = without_comments(style);
    let (mut sheet, mut values) = (Sheet { rest: &style, is_open: false }, Vec::new());
    for _ in 0..DECLARATIONS_MAX {
        let Some(declaration) = sheet.declaration() else { break };
        values.clear();
        if let Some(name) = (Reader { rest: declaration }).declaration(&mut values) {
            write(name, &values, out);
        }
    }
}

/// Writes a declaration, if its values are those of its property.
fn write(name: &str, values: &[Value<'_>], out: &mut String) {
    let (name, values) = match name.to_ascii_lowercase().as_str() {
        // Of the short form the colour alone: the rest is a picture.
        "background" => ("background-color", values.iter().find(|value| is_colour(value)).map(core::slice::from_ref)),
        // The way in which Outlook hides.
        "mso-hide" if values == [Value::Word("all")] => ("display", Some(&[Value::Word("none")][..])),
        _ => (name, Some(values)),
    };
    let (Some((name, takes)), Some(values)) = (property(name), values) else { return };
    let takes = |kind: u8| takes & kind != 0;
    let fits = |value: &Value<'_>| match value {
        Value::Word(_) => true,
        Value::Length(number, unit) => {
            takes(LENGTHS) && (!number.is_negative || takes(BELOW_ZERO) && number.is_small(unit))
        }
        Value::Digits(_) | Value::Function(..) => takes(COLOURS),
        Value::Calc(_) => takes(CALCS),
        Value::Name(_) => takes(NAMES),
        Value::Comma => takes(COMMAS),
        Value::Slash => takes(SLASHES),
    };
    let values = without_loose_commas(values);
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

/// Values without commas that separate nothing, of names that were left out.
fn without_loose_commas<'v>(values: &[Value<'v>]) -> Vec<Value<'v>> {
    let mut kept: Vec<Value<'v>> = Vec::with_capacity(values.len());
    for value in values {
        let is_loose = *value == Value::Comma && kept.last().is_none_or(|last| *last == Value::Comma);
        if !is_loose {
            kept.push(*value);
        }
    }
    if kept.last() == Some(&Value::Comma) {
        kept.pop();
    }
    kept
}

/// The property of a name, whatever its case.
fn property(name: &str) -> Option<&'static (&'static str, u8)> {
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
            Value::Calc(terms) => {
                out.push_str("calc(");
                out.push_str(&terms.split_ascii_whitespace().collect::<Vec<_>>().join(" "));
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
        if self.is_negative {
            out.push('-');
        }
        out.push_str(if self.whole.is_empty() { "0" } else { self.whole });
        if !self.fraction.is_empty() {
            out.push('.');
            out.push_str(self.fraction);
        }
        out.push_str(unit);
    }

    /// Whether a length below zero leads nowhere else.
    fn is_small(&self, unit: &str) -> bool {
        let pixels = UNITS.iter().find(|(known, _)| *known == unit).map_or(u32::MAX, |(_, pixels)| *pixels);
        let whole: u32 = if self.whole.is_empty() { 0 } else { self.whole.parse().unwrap_or(u32::MAX) };
        whole.saturating_add(u32::from(!self.fraction.is_empty())).saturating_mul(pixels) <= NEGATIVE_PIXELS_MAX
    }
}

/// Whether the short form of backgrounds means a colour by a value.
fn is_colour(value: &Value<'_>) -> bool {
    const OTHERS: [&str; 22] = [
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
        "auto",
        "local",
        "round",
        "space",
        "text",
        "border-box",
        "padding-box",
        "content-box",
    ];
    match value {
        Value::Digits(_) | Value::Function(..) => true,
        Value::Word(word) => !OTHERS.contains(word),
        _ => false,
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
            ("/* x */color/**/:red;/*", "color:red;"),
            ("margin:-10px 0 -101px", ""),
            ("font:12px/1.5 Arial", "font:12px / 1.5 Arial;"),
            ("color:red}body{display:none", ""),
            ("color:\"red\"", ""),
            ("behavior:url(x);-moz-binding:url(x);color:blue", "color:blue;"),
        ] {
            assert_eq!(cleaned(style), wanted, "{style}");
            assert_eq!(cleaned(wanted), wanted);
        }
    }

    #[test]
    fn a_value_takes_nothing_beside_it_along() {
        for (style, wanted) in [
            (
                "font-family:-apple-system,BlinkMacSystemFont,'Segoe UI',Roboto,sans-serif;color:red",
                "font-family:-apple-system, BlinkMacSystemFont, \"Segoe UI\", Roboto, sans-serif;color:red;",
            ),
            ("font-family: var(--x), a b$ c, 'x\\41', Arial ,, 'Fira.Code'", "font-family:Arial, \"Fira.Code\";"),
            ("font-family:$, 'a'!important", "font-family:\"a\";"),
            ("margin-left:36pt;text-indent:-18.0pt", "margin-left:36pt;text-indent:-18.0pt;"),
            (
                "letter-spacing:-0.02em;margin:0 -10px;vertical-align:-2px",
                "letter-spacing:-0.02em;margin:0 -10px;vertical-align:-2px;",
            ),
            ("margin-top:-999px;text-indent:-9999px;padding:-1px;width:-1px;color:red", "color:red;"),
            ("background: #fff url('https://a.example/x.png') center / cover no-repeat", "background-color:#fff;"),
            ("background:linear-gradient(red,blue),#eee", "background-color:#eee;"),
            ("background:url(a;b),url(\"c)d\") RED;width:1px", "background-color:RED;width:1px;"),
            ("list-style:none url(x)", "list-style:none;"),
            (
                "border-radius:8px 8px 0 0 / 4px;border-top-left-radius:3px",
                "border-radius:8px 8px 0 0 / 4px;border-top-left-radius:3px;",
            ),
            (
                "opacity:.5;overflow:hidden;cursor:pointer;object-fit:cover;gap:4px",
                "opacity:0.5;overflow:hidden;cursor:pointer;object-fit:cover;gap:4px;",
            ),
            ("cursor:url(x),auto;width:50ch", "width:50ch;"),
            ("box-shadow:0 -1px 2px #000, 0 0 2px red", "box-shadow:0 -1px 2px #000, 0 0 2px red;"),
            (
                "text-align:-webkit-center;text-decoration:underline #F00;outline:none",
                "text-align:-webkit-center;text-decoration:underline #f00;outline:none;",
            ),
            (
                "color:hsl(120DEG 50% 50%);width:calc( 100%  - 10px )",
                "color:hsl(120deg,50%,50%);width:calc(100% - 10px);",
            ),
            ("margin:calc(1px - 999px);width:calc(1px url(x));height:calc((1px));color:red", "color:red;"),
            ("color:red /* ; */;width:2px", "color:red;width:2px;"),
            ("content:\"a;b/*\";color:red", "color:red;"),
            ("font-family:'a;color:red;width:1px", "color:red;width:1px;"),
            ("mso-hide:all", "display:none;"),
            ("-moz-box-shadow:0 0 1px red;--x:y;color:red", "color:red;"),
            ("position:absolute;transform:scale(2);inset:0;list-style-position:inside", "list-style-position:inside;"),
        ] {
            assert_eq!(cleaned(style), wanted, "{style}");
            assert_eq!(cleaned(wanted), wanted);
        }
    }

    #[test]
    fn a_hostile_style_takes_the_time_of_another() {
        const BYTES: usize = 256 << 10;
        let time = |style: &str| {
            let once = || {
                let begun = std::time::Instant::now();
                std::hint::black_box(cleaned(style));
                begun.elapsed()
            };
            (0..3).map(|_| once()).min().unwrap_or_default()
        };
        let of = |piece: &str| piece.repeat(BYTES.div_ceil(piece.len())) + "\"";
        let wanted = time(&of("/* a comment of words */")) * 20 + std::time::Duration::from_millis(250);
        for piece in [
            "/*",
            "/**/",
            "/",
            "background:(;",
            "background:x(\";\"",
            "a:",
            "color:",
            "background:x ",
            "rgb(",
            "margin:-",
            "font-family:\"",
            "1",
            ",",
            "'",
            "\\",
        ] {
            let took = time(&of(piece));
            assert!(
                took < wanted,
                "a style of {piece:?} takes {took:?}, and {wanted:?} is twenty times that of a comment and the noise of a busy machine"
            );
        }
    }
}
