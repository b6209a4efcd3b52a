//! Values of options: contents, expressions, numbers that stand in bytes, sizes.

use pattern::expression::{Expression, Flags, Limits as ExpressionLimits, LiteralLimits};

use super::buffer::Buffer;
use super::evaluate::DIGITS_MAX;
use super::lexer::{BEHIND_QUOTES, items, negated, quoted, text};
use super::rule::{Bytes, Content, From, Order, Pcre, Sizes, Value, Verb};
use super::transform::hex;

/// Names of values that tests hand on, in the order of their numbers.
#[derive(Debug, Default)]
pub(super) struct Names(Vec<String>);

impl Names {
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// The number of a name; a new one where it is new.
    pub fn define(&mut self, name: &str) -> usize {
        self.0.iter().position(|known| known == name).unwrap_or_else(|| {
            self.0.push(name.into());
            self.0.len() - 1
        })
    }

    /// A number of 64 bits without a sign, or what is one otherwise.
    pub fn unsigned(&self, value: &str) -> Result<Value, String> {
        let value = value.trim();
        let number = match value.strip_prefix("0x").or_else(|| value.strip_prefix("0X")) {
            Some(hex) => u64::from_str_radix(hex, 16),
            None => value.parse(),
        };
        number.map_or_else(|_| self.value(value), |number| Ok(Value::Number(number.cast_signed())))
    }

    /// A number, or a name that a test before has defined.
    pub fn value(&self, value: &str) -> Result<Value, String> {
        let value = value.trim();
        if let Some(number) = number(value) {
            return Ok(Value::Number(number));
        }
        let at = self.0.iter().position(|known| known == value);
        at.map(Value::Variable).ok_or_else(|| format!("{value:?} is no number and no value of a test before"))
    }
}

/// A number, decimal or with `0x`.
pub(super) fn number(value: &str) -> Option<i64> {
    let (sign, digits) = value.strip_prefix('-').map_or((1, value), |rest| (-1, rest));
    let number = match digits.strip_prefix("0x").or_else(|| digits.strip_prefix("0X")) {
        Some(hex) => i64::from_str_radix(hex, 16).ok()?,
        None => digits.strip_prefix('+').unwrap_or(digits).parse::<i64>().ok()?,
    };
    // Sums of a few of them stay in range.
    let number = number.checked_mul(sign)?;
    (number.unsigned_abs() < 1 << 62).then_some(number)
}

/// The bytes of a content: `|` around hexadecimal, `\` before what would mean something else.
pub(super) fn content_bytes(quoted: &[u8]) -> Result<Vec<u8>, String> {
    let (mut bytes, mut is_hex, mut high, mut is_escaped) = (Vec::new(), false, None, false);
    for &byte in quoted {
        if is_hex {
            match (byte, high) {
                (b'|', None) => is_hex = false,
                (b'|', Some(_)) => return Err("half a byte between | |".into()),
                (b' ', _) => {}
                (digit, _) => {
                    let digit = hex(digit).ok_or("between | | stands what is not hexadecimal")?;
                    match high.take() {
                        None => high = Some(digit),
                        Some(high) => bytes.push(high << 4 | digit),
                    }
                }
            }
        } else if is_escaped {
            is_escaped = false;
            if !matches!(byte, b'"' | b';' | b'\\' | b':' | b'|') {
                return Err(format!("\\{} stands for nothing", char::from(byte)));
            }
            bytes.push(byte);
        } else {
            match byte {
                b'\\' => is_escaped = true,
                b'|' => is_hex = true,
                _ => bytes.push(byte),
            }
        }
    }
    if is_hex || is_escaped {
        return Err("| or \\ at the end".into());
    }
    if bytes.is_empty() { Err("an empty content".into()) } else { Ok(bytes) }
}

/// A content, and what stands behind its quotes as Snort 3 has it.
pub(super) fn content(value: &[u8]) -> Result<(Content, &[u8]), String> {
    let (is_negated, value) = negated(value);
    if !value.starts_with(b"\"") {
        return Err("a content without quotes".into());
    }
    let (inner, rest) = quoted(value)?;
    Ok((Content { bytes: content_bytes(inner)?, is_negated, ..Content::default() }, rest))
}

/// Bounds of expressions in rules.
const EXPRESSION: ExpressionLimits = ExpressionLimits {
    text_bytes_max: 16 << 10,
    depth_max: 100,
    steps_max: 2_000_000,
    frames_max: 1 << 16,
    memo_bytes_max: 1 << 20,
    cache_bytes: 128 << 10,
};

/// So many texts are looked for in front of an expression.
const LITERALS_MAX: usize = 4;

/// An expression between its first and its last quote: those within stand for themselves.
fn unquoted(value: &[u8]) -> Result<&[u8], String> {
    let Some(inner) = value.strip_prefix(b"\"") else { return Ok(value) };
    let end = inner.iter().rposition(|&byte| byte == b'"');
    let end = end.ok_or("a quote that is not closed; a ; inside is written \\;")?;
    if inner.len() > end + 1 { Err(BEHIND_QUOTES.into()) } else { Ok(&inner[..end]) }
}

/// An expression with its slashes and letters, and the buffer that a letter names.
pub(super) fn pcre(value: &[u8]) -> Result<(Pcre, Option<Buffer>), String> {
    let (is_negated, value) = negated(value);
    let source = unquoted(value)?;
    let inner = source
        .strip_prefix(b"m")
        .filter(|rest| rest.first().is_some_and(|byte| !byte.is_ascii_alphanumeric()))
        .unwrap_or(source);
    let (&slash, rest) = inner.split_first().ok_or("an empty expression")?;
    let end = rest.iter().rposition(|&byte| byte == slash).ok_or("an expression without a slash at its end")?;
    let (body, letters) = (&rest[..end], without_names(&rest[end + 1..])?);
    let (mut flags, mut buffer) = (Flags::NONE, None);
    let (mut is_relative, mut is_anchored, mut is_ungreedy) = (false, false, false);
    for &letter in letters {
        match letter {
            b'i' => flags.ignore_case = true,
            b'm' => flags.multi_line = true,
            b's' => flags.dot_all = true,
            b'x' => flags.extended = true,
            b'R' => is_relative = true,
            b'A' => is_anchored = true,
            b'G' => is_ungreedy = true,
            b'O' | b'B' | b'E' => {}
            b'U' => buffer = Some(Buffer::Uri),
            b'I' => buffer = Some(Buffer::UriRaw),
            b'P' => buffer = Some(Buffer::RequestBody),
            b'Q' => buffer = Some(Buffer::ResponseBody),
            b'H' => buffer = Some(Buffer::Header),
            b'D' => buffer = Some(Buffer::HeaderRaw),
            b'M' => buffer = Some(Buffer::Method),
            b'C' | b'K' => buffer = Some(Buffer::Cookie),
            b'S' => buffer = Some(Buffer::StatCode),
            b'Y' => buffer = Some(Buffer::StatMsg),
            b'V' => buffer = Some(Buffer::UserAgent),
            b'W' => buffer = Some(Buffer::Host),
            b'Z' => buffer = Some(Buffer::HostRaw),
            _ => return Err(format!("the letter {} is not supported", char::from(letter))),
        }
    }
    let body = unescaped(body);
    let body = if is_anchored { [b"\\A(?:", &body[..], b")"].concat() } else { body };
    let expression = Expression::within(&body, flags, EXPRESSION).map_err(|error| error.to_string())?;
    let (literals, opening) = (literals(&expression), expression.opening());
    Ok((Pcre { expression, source: source.into(), is_relative, is_negated, is_ungreedy, literals, opening }, buffer))
}

/// The letters behind an expression without the names under which Suricata keeps what its groups match.
fn without_names(letters: &[u8]) -> Result<&[u8], String> {
    let mut list = letters.split(|&byte| byte == b',').map(<[u8]>::trim_ascii);
    let letters = list.next().unwrap_or_default();
    let kept = |name: &[u8]| [&b"flow:"[..], b"pkt:", b"alert:"].iter().any(|kind| name.starts_with(kind));
    match list.find(|name| !kept(name)) {
        Some(other) => Err(format!("{} is no name of a capture", text(other))),
        None => Ok(letters),
    }
}

/// Texts of which each match of an expression has one. The matcher tells them with all blanks as spaces, so they are cut there.
fn literals(expression: &Expression) -> Vec<Box<[u8]>> {
    let limits = LiteralLimits { count_max: LITERALS_MAX, ..LiteralLimits::default() };
    let cut = |text: Vec<u8>| {
        let longest = text.split(|&byte| byte == b' ').max_by_key(|piece| piece.len())?;
        (longest.len() >= limits.bytes_min).then(|| longest.into())
    };
    expression.literals(limits).and_then(|texts| texts.into_iter().map(cut).collect()).unwrap_or_default()
}

/// An expression in which `\;` and `\"` are written as the characters alone.
fn unescaped(body: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(body.len());
    let mut bytes = body.iter().copied().peekable();
    while let Some(byte) = bytes.next() {
        match (byte, bytes.peek()) {
            (b'\\', Some(b';' | b'"')) => {}
            (b'\\', Some(_)) => {
                out.push(byte);
                out.extend(bytes.next());
            }
            _ => out.push(byte),
        }
    }
    out
}

/// A length: a number, `<`, `>`, `!` before one, or `low<>high`.
pub(super) fn sizes(value: &[u8]) -> Result<Sizes, String> {
    let value = text(value);
    let parse = |value: &str| number(value.trim()).ok_or_else(|| format!("{value:?} is no number"));
    // Snort 3 has a range with its ends.
    if let Some((low, high)) = value.split_once("<=>") {
        return Ok(Sizes::Between(parse(low)? - 1, parse(high)? + 1));
    }
    // Suricata 8 writes a range with a dash, too.
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let dashed = || value.split_once('-').filter(|(low, _)| is_number(low.trim()));
    if let Some((low, high)) = value.split_once("<>").or_else(dashed) {
        let (low, high) = (parse(low)?, parse(high)?);
        return if low < high { Ok(Sizes::Between(low, high)) } else { Err("a range that holds nothing".into()) };
    }
    let digits = value.trim_start_matches(['<', '>', '=', '!']);
    let order = &value[..value.len() - digits.len()];
    let order = if order.is_empty() { Some(Order::Equal) } else { Order::named(order.as_bytes()) };
    Ok(Sizes::Compared(order.ok_or("an order that is not known")?, parse(digits)?))
}

/// A numeric test by its keyword: `byte_test`, `byte_jump`, `byte_extract`, `byte_math`.
pub(super) fn bytes(name: &str, value: &[u8], names: &mut Names) -> Result<Bytes, String> {
    let list: Vec<String> = items(value).map(text).collect();
    let mut at = 0;
    let mut next = || {
        at += 1;
        list.get(at - 1).cloned().ok_or_else(|| "values are missing".to_string())
    };
    let mut bytes = Bytes {
        count: Value::default(),
        offset: Value::default(),
        is_relative: false,
        is_little: false,
        base: None,
        mask: None,
        verb: Verb::Jump { multiplier: 1, align: false, from: From::Here, post_offset: Value::default() },
    };
    let mut defined = None;
    match name {
        "byte_test" => {
            bytes.count = names.value(&next()?)?;
            let order = next()?;
            // Both `!<` and `!=` are written; a lone `!` is no negation.
            let (is_negated, order) = match order.strip_prefix('!') {
                Some(rest) if !rest.trim().is_empty() => (true, rest.trim().to_string()),
                _ => (false, order),
            };
            let order = Order::named(order.as_bytes()).ok_or("an order that is not known")?;
            bytes.verb = Verb::Test { order, is_negated, value: names.unsigned(&next()?)? };
            bytes.offset = names.value(&next()?)?;
        }
        "byte_jump" => {
            bytes.count = names.value(&next()?)?;
            bytes.offset = names.value(&next()?)?;
        }
        "byte_extract" => {
            bytes.count = names.value(&next()?)?;
            bytes.offset = names.value(&next()?)?;
            defined = Some(next()?);
            bytes.verb = Verb::Extract { variable: 0, multiplier: 1, align: 1 };
        }
        _ => bytes.verb = Verb::Math { variable: 0, operator: 0, value: Value::default() },
    }
    for item in list.iter().skip(at) {
        let (word, rest) = item.split_once(char::is_whitespace).unwrap_or((item, ""));
        if word == "result" {
            defined = Some(rest.trim().into());
        } else {
            modify(&mut bytes, word, rest.trim(), names)?;
        }
    }
    if let Some(name) = defined {
        let number = names.define(name.trim());
        if let Verb::Extract { variable, .. } | Verb::Math { variable, .. } = &mut bytes.verb {
            *variable = number;
        }
    }
    let bytes_max = if bytes.base.is_some() { DIGITS_MAX } else { 8 };
    if let Value::Number(count) = bytes.count
        && usize::try_from(count).map_or(true, |count| count > bytes_max)
    {
        return Err(format!("{count} bytes are no number"));
    }
    Ok(bytes)
}

/// Applies a word after the values of a numeric test.
fn modify(bytes: &mut Bytes, word: &str, rest: &str, names: &Names) -> Result<(), String> {
    let parsed = || number(rest).ok_or_else(|| format!("{word} needs a number"));
    match (word, &mut bytes.verb) {
        ("relative", _) => bytes.is_relative = true,
        ("little", _) => bytes.is_little = true,
        ("big", _) => bytes.is_little = false,
        ("endian", _) => bytes.is_little = rest == "little",
        ("string", _) => bytes.base = Some(base_of(rest).or(bytes.base).unwrap_or(10)),
        ("dec" | "hex" | "oct", _) => bytes.base = base_of(word),
        ("bitmask", _) => bytes.mask = u64::try_from(number_or_hex(rest)?).ok(),
        ("multiplier", Verb::Jump { multiplier, .. } | Verb::Extract { multiplier, .. }) => {
            *multiplier = parsed()?.clamp(0, 65_535);
        }
        ("align", Verb::Jump { align, .. }) => *align = true,
        ("align", Verb::Extract { align, .. }) => *align = parsed()?.clamp(1, 16),
        ("from_beginning", Verb::Jump { from, .. }) => *from = From::Beginning,
        ("from_end", Verb::Jump { from, .. }) => *from = From::End,
        ("post_offset", Verb::Jump { post_offset, .. }) => *post_offset = names.value(rest)?,
        ("bytes", Verb::Math { .. }) => bytes.count = names.value(rest)?,
        ("offset", Verb::Math { .. }) => bytes.offset = names.value(rest)?,
        ("oper", Verb::Math { operator, .. }) => {
            *operator = match rest {
                "+" | "-" | "*" | "/" => rest.as_bytes()[0],
                "<<" => b'<',
                ">>" => b'>',
                _ => return Err(format!("no operator {rest}")),
            }
        }
        ("rvalue", Verb::Math { value, .. }) => *value = names.value(rest)?,
        _ => return Err(format!("{word} is not supported")),
    }
    Ok(())
}

fn number_or_hex(value: &str) -> Result<i64, String> {
    let hex = value.trim_start_matches("0x");
    i64::from_str_radix(hex, 16).map_err(|_| "a mask that is not hexadecimal".into())
}

fn base_of(word: &str) -> Option<u32> {
    match word {
        "dec" => Some(10),
        "hex" => Some(16),
        "oct" => Some(8),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_literals_of_an_expression_are_cut_at_blanks() {
        let literals = |text: &str| pcre(text.as_bytes()).expect("an expression").0.literals;
        let wanted = |texts: &[&str]| texts.iter().map(|text| text.as_bytes().into()).collect::<Vec<Box<[u8]>>>();
        assert_eq!(literals(r#""/(\x5c[^\x5c]{16,}|\x2f[^\x2f]{16,})\.CDA$/ims""#), wanted(&[".cda"]));
        assert_eq!(literals(r#""/a\tlonger text/""#), wanted(&["longer"]));
        assert_eq!(literals(r#""/[0-9]+ab?/""#), wanted(&[]));
        assert_eq!(literals(r#""/long"quoted/i""#), wanted(&["long\"quoted"]));
    }

    #[test]
    fn contents_have_hexadecimal_and_escapes() {
        assert_eq!(content_bytes(br#"a|0d 0A|\;\"|41|"#), Ok(b"a\r\n;\"A".to_vec()));
        assert!(content_bytes(b"|4|").is_err() && content_bytes(b"").is_err() && content_bytes(b"\\n").is_err());
    }

    #[test]
    fn sizes_are_compared_and_ranges_leave_their_ends_out() {
        let size = |text: &str| sizes(text.as_bytes()).expect("a size");
        assert!(
            size("3<>5").has(4)
                && !size("3<>5").has(5)
                && size("3-5").has(4)
                && !size("3-5").has(3)
                && size("3<=>5").has(5)
                && size(">2").has(3)
                && size("7").has(7)
        );
        assert!(sizes(b"5<>3").is_err());
    }
}
