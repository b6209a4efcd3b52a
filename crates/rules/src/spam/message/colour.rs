//! Colours of text in HTML, and whether a reader can tell them from their ground.

/// A colour: six hexadecimal digits behind `#`, or fewer where it says fewer, or a word.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Colour {
    /// Red, green, blue.
    Rgb([u8; 3]),
    /// `#` alone: nothing that it said was a digit.
    Empty,
    /// None that is known.
    Invalid,
    /// That of what is behind it; until it is known what that is.
    Transparent,
}

pub(super) const BLACK: Colour = Colour::Rgb([0; 3]);
pub(super) const WHITE: Colour = Colour::Rgb([255; 3]);

/// The names of the CSS 3 colour module.
const NAMES: [(&str, u32); 147] = [
    ("aliceblue", 0xf0f8ff),
    ("antiquewhite", 0xfaebd7),
    ("aqua", 0x00ffff),
    ("aquamarine", 0x7fffd4),
    ("azure", 0xf0ffff),
    ("beige", 0xf5f5dc),
    ("bisque", 0xffe4c4),
    ("black", 0x000000),
    ("blanchedalmond", 0xffebcd),
    ("blue", 0x0000ff),
    ("blueviolet", 0x8a2be2),
    ("brown", 0xa52a2a),
    ("burlywood", 0xdeb887),
    ("cadetblue", 0x5f9ea0),
    ("chartreuse", 0x7fff00),
    ("chocolate", 0xd2691e),
    ("coral", 0xff7f50),
    ("cornflowerblue", 0x6495ed),
    ("cornsilk", 0xfff8dc),
    ("crimson", 0xdc143c),
    ("cyan", 0x00ffff),
    ("darkblue", 0x00008b),
    ("darkcyan", 0x008b8b),
    ("darkgoldenrod", 0xb8860b),
    ("darkgray", 0xa9a9a9),
    ("darkgreen", 0x006400),
    ("darkgrey", 0xa9a9a9),
    ("darkkhaki", 0xbdb76b),
    ("darkmagenta", 0x8b008b),
    ("darkolivegreen", 0x556b2f),
    ("darkorange", 0xff8c00),
    ("darkorchid", 0x9932cc),
    ("darkred", 0x8b0000),
    ("darksalmon", 0xe9967a),
    ("darkseagreen", 0x8fbc8f),
    ("darkslateblue", 0x483d8b),
    ("darkslategray", 0x2f4f4f),
    ("darkslategrey", 0x2f4f4f),
    ("darkturquoise", 0x00ced1),
    ("darkviolet", 0x9400d3),
    ("deeppink", 0xff1493),
    ("deepskyblue", 0x00bfff),
    ("dimgray", 0x696969),
    ("dimgrey", 0x696969),
    ("dodgerblue", 0x1e90ff),
    ("firebrick", 0xb22222),
    ("floralwhite", 0xfffaf0),
    ("forestgreen", 0x228b22),
    ("fuchsia", 0xff00ff),
    ("gainsboro", 0xdcdcdc),
    ("ghostwhite", 0xf8f8ff),
    ("gold", 0xffd700),
    ("goldenrod", 0xdaa520),
    ("gray", 0x808080),
    ("green", 0x008000),
    ("greenyellow", 0xadff2f),
    ("grey", 0x808080),
    ("honeydew", 0xf0fff0),
    ("hotpink", 0xff69b4),
    ("indianred", 0xcd5c5c),
    ("indigo", 0x4b0082),
    ("ivory", 0xfffff0),
    ("khaki", 0xf0e68c),
    ("lavender", 0xe6e6fa),
    ("lavenderblush", 0xfff0f5),
    ("lawngreen", 0x7cfc00),
    ("lemonchiffon", 0xfffacd),
    ("lightblue", 0xadd8e6),
    ("lightcoral", 0xf08080),
    ("lightcyan", 0xe0ffff),
    ("lightgoldenrodyellow", 0xfafad2),
    ("lightgray", 0xd3d3d3),
    ("lightgreen", 0x90ee90),
    ("lightgrey", 0xd3d3d3),
    ("lightpink", 0xffb6c1),
    ("lightsalmon", 0xffa07a),
    ("lightseagreen", 0x20b2aa),
    ("lightskyblue", 0x87cefa),
    ("lightslategray", 0x778899),
    ("lightslategrey", 0x778899),
    ("lightsteelblue", 0xb0c4de),
    ("lightyellow", 0xffffe0),
    ("lime", 0x00ff00),
    ("limegreen", 0x32cd32),
    ("linen", 0xfaf0e6),
    ("magenta", 0xff00ff),
    ("maroon", 0x800000),
    ("mediumaquamarine", 0x66cdaa),
    ("mediumblue", 0x0000cd),
    ("mediumorchid", 0xba55d3),
    ("mediumpurple", 0x9370db),
    ("mediumseagreen", 0x3cb371),
    ("mediumslateblue", 0x7b68ee),
    ("mediumspringgreen", 0x00fa9a),
    ("mediumturquoise", 0x48d1cc),
    ("mediumvioletred", 0xc71585),
    ("midnightblue", 0x191970),
    ("mintcream", 0xf5fffa),
    ("mistyrose", 0xffe4e1),
    ("moccasin", 0xffe4b5),
    ("navajowhite", 0xffdead),
    ("navy", 0x000080),
    ("oldlace", 0xfdf5e6),
    ("olive", 0x808000),
    ("olivedrab", 0x6b8e23),
    ("orange", 0xffa500),
    ("orangered", 0xff4500),
    ("orchid", 0xda70d6),
    ("palegoldenrod", 0xeee8aa),
    ("palegreen", 0x98fb98),
    ("paleturquoise", 0xafeeee),
    ("palevioletred", 0xdb7093),
    ("papayawhip", 0xffefd5),
    ("peachpuff", 0xffdab9),
    ("peru", 0xcd853f),
    ("pink", 0xffc0cb),
    ("plum", 0xdda0dd),
    ("powderblue", 0xb0e0e6),
    ("purple", 0x800080),
    ("red", 0xff0000),
    ("rosybrown", 0xbc8f8f),
    ("royalblue", 0x4169e1),
    ("saddlebrown", 0x8b4513),
    ("salmon", 0xfa8072),
    ("sandybrown", 0xf4a460),
    ("seagreen", 0x2e8b57),
    ("seashell", 0xfff5ee),
    ("sienna", 0xa0522d),
    ("silver", 0xc0c0c0),
    ("skyblue", 0x87ceeb),
    ("slateblue", 0x6a5acd),
    ("slategray", 0x708090),
    ("slategrey", 0x708090),
    ("snow", 0xfffafa),
    ("springgreen", 0x00ff7f),
    ("steelblue", 0x4682b4),
    ("tan", 0xd2b48c),
    ("teal", 0x008080),
    ("thistle", 0xd8bfd8),
    ("tomato", 0xff6347),
    ("turquoise", 0x40e0d0),
    ("violet", 0xee82ee),
    ("wheat", 0xf5deb3),
    ("white", 0xffffff),
    ("whitesmoke", 0xf5f5f5),
    ("yellow", 0xffff00),
    ("yellowgreen", 0x9acd32),
];

/// Whether text can be told from its ground.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Contrast {
    Enough,
    Low,
    /// One of the two is no colour.
    Invalid,
}

/// How well text in one colour is seen on the other.
pub(super) fn contrast(text: &Colour, ground: &Colour) -> Contrast {
    if text == ground {
        return Contrast::Low;
    }
    if let (Colour::Rgb(text), Colour::Rgb(ground)) = (text, ground) {
        // The distance, weighted by how bright each of the three is; the largest is about 191.
        let weights = [0.2126, 0.7152, 0.0722];
        let squares = text.iter().zip(ground).zip(weights).map(|((text, ground), weight)| {
            let part = weight * (f64::from(*text) - f64::from(*ground));
            part * part
        });
        return if squares.sum::<f64>().sqrt() < 12.0 { Contrast::Low } else { Contrast::Enough };
    }
    match text == &Colour::Invalid || ground == &Colour::Invalid {
        true => Contrast::Invalid,
        false => Contrast::Enough,
    }
}

impl Colour {
    /// Reads a colour: a name, `#` and digits, or `rgb(1,2,3)`.
    pub(super) fn read(text: &str) -> Colour {
        let text = text.to_lowercase();
        let name = text.trim_matches(|c: char| matches!(c, '\t'..='\r' | ' '));
        if let Ok(at) = NAMES.binary_search_by_key(&name, |(name, _)| name) {
            let [_, rgb @ ..] = NAMES[at].1.to_be_bytes();
            return Colour::Rgb(rgb);
        }
        let digits = match rgb_function(name) {
            Some(digits) => digits,
            None if name.bytes().all(|byte| matches!(byte, b'#' | b'a'..=b'f' | b'0'..=b'9')) => name.to_owned(),
            None => return Colour::Invalid,
        };
        match digits.strip_prefix('#') {
            Some(digits) => of_digits(digits),
            None => Colour::Invalid,
        }
    }

    /// Whether it is that of what is behind it.
    pub(super) fn is_transparent(&self) -> bool {
        matches!(self, Colour::Transparent)
    }
}

/// `rgb(1, 2, 3)` or `rgb(10%, 20%, 30%)` as digits behind `#`.
fn rgb_function(text: &str) -> Option<String> {
    let inner = &text[text.find("rgb(")? + 4..];
    let inner = &inner[..inner.find(')')?];
    if !inner.bytes().all(|byte| byte.is_ascii_digit() || matches!(byte, b'%' | b',' | b' ')) {
        return None;
    }
    let mut out = String::from("#");
    let parts: Vec<&str> = inner.split(',').map(str::trim).collect();
    let [_, _, _] = parts[..] else { return Some(String::new()) };
    let of_percent = parts.iter().all(|part| part.ends_with('%'));
    for part in parts {
        let digits = if of_percent { part.trim_end_matches('%') } else { part };
        let Ok(number) = digits.parse::<u32>() else { return Some(String::new()) };
        let number = if of_percent { (f64::from(number) / 100.0 * 255.0) as u32 } else { number };
        out.push_str(&format!("{number:02x}"));
    }
    Some(out)
}

fn of_digits(text: &str) -> Colour {
    let mut digits: Vec<u8> = text.bytes().filter(u8::is_ascii_hexdigit).collect();
    match digits.len() {
        0 => return Colour::Empty,
        1..=3 => digits.resize(3, b'0'),
        4 | 5 => digits.truncate(3),
        _ => digits.truncate(6),
    }
    let value = |digit: u8| char::from(digit).to_digit(16).and_then(|value| u8::try_from(value).ok()).unwrap_or(0);
    let pair = |at: usize| match digits.len() {
        3 => value(digits[at]) * 17,
        _ => value(digits[at * 2]) * 16 + value(digits[at * 2 + 1]),
    };
    Colour::Rgb([pair(0), pair(1), pair(2)])
}

/// Applies a declaration to a colour.
pub(super) fn declared(colour: &mut Colour, value: &str) {
    let lower = value.to_lowercase();
    let value =
        match lower.trim_end().strip_suffix("important").map(str::trim_end).and_then(|text| text.strip_suffix('!')) {
            Some(text) => text.trim_end(),
            None => &lower,
        };
    if value.contains("rgb") {
        let digits: String = value.chars().filter(|c| c.is_ascii_digit() || *c == ',').collect();
        let mut parts =
            digits.split(',').map(|part| part.parse::<u32>().unwrap_or(if part.is_empty() { 0 } else { 255 }));
        let mut next = || u8::try_from(parts.next().unwrap_or(0)).unwrap_or(255);
        *colour = Colour::Rgb([next(), next(), next()]);
        return;
    }
    match value {
        "inherit" => {}
        "transparent" => *colour = Colour::Transparent,
        _ => *colour = Colour::read(value),
    }
}

/// The first colour in the bottom layer of a `background`.
pub(super) fn of_background(value: &str) -> Option<Colour> {
    let mut tokens: Vec<String> = Vec::new();
    let mut last: Vec<String> = Vec::new();
    let mut token = String::new();
    // What is open: parentheses, quotes.
    let mut open: Vec<char> = Vec::new();
    for character in value.chars() {
        match (open.last(), character) {
            (None, ' ') => tokens.extend(Some(std::mem::take(&mut token)).filter(|token| !token.is_empty())),
            (None, ',') => {
                tokens.extend(Some(std::mem::take(&mut token)).filter(|token| !token.is_empty()));
                last = std::mem::take(&mut tokens);
            }
            (None | Some('('), '"' | '\'') | (None, '(') => {
                token.push(character);
                open.push(character);
            }
            (Some('('), ')') => {
                token.push(')');
                tokens.push(std::mem::take(&mut token));
                open.pop();
            }
            (Some(quote), _) if *quote == character && character != '(' => {
                token.push(character);
                open.pop();
            }
            _ => token.push(character),
        }
    }
    tokens.extend(Some(token).filter(|token| !token.is_empty()));
    let layer = if tokens.is_empty() { last } else { tokens };
    layer.iter().map(|token| Colour::read(token)).find(|colour| *colour != Colour::Invalid)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_are_read_as_they_are_misspelt() {
        assert!(NAMES.is_sorted());
        assert_eq!(Colour::read(" White "), WHITE);
        assert_eq!(Colour::read("#fff"), WHITE);
        assert_eq!(Colour::read("#ffff"), WHITE);
        assert_eq!(Colour::read("#f"), Colour::Rgb([255, 0, 0]));
        assert_eq!(Colour::read("ffffff"), Colour::Invalid);
        assert_eq!(Colour::read("rgb(100%, 0%, 0%)"), Colour::Rgb([255, 0, 0]));
        assert_eq!(of_background("url(x, y) no-repeat, #fff 5px"), Some(WHITE));
        let mut colour = BLACK;
        declared(&mut colour, "rgb(1, 2, 300) !important");
        assert_eq!(colour, Colour::Rgb([1, 2, 255]));
    }

    #[test]
    fn contrast_is_a_matter_of_distance() {
        assert_eq!(contrast(&WHITE, &Colour::Rgb([250; 3])), Contrast::Low);
        assert_eq!(contrast(&WHITE, &BLACK), Contrast::Enough);
        assert_eq!(contrast(&Colour::Invalid, &BLACK), Contrast::Invalid);
    }
}
