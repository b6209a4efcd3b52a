//! Strings of YARA rules that are regular expressions.
//!
//! What has few forms becomes a part and is exact on the stream. Any other is run over the kept beginning of the object
//! at its end, if one of its *hints* was seen: runs of bytes of which every match has one.
//!
//! The syntax is YARA's ("Regular expressions" in its manual): bytes, a dot that is no line feed, `^` and `$` at the ends
//! of the object, where `\b` always holds. Not supported: look-around beyond `^`, `$`, `\b` and `\B`. Those in wide form are
//! run over the lower bytes of each run of two-byte units whose upper byte is 0.
//!
//! An expression without a hint, and a body in hexadecimal digits that cannot be looked for on the stream, is run over
//! every object whose conditions ask for it.

use std::fmt::Write as _;
use std::ops::Range;
use std::sync::OnceLock;

use pattern::{ByteSet, Piece};
use regex_automata::meta::Regex;
use regex_automata::{Anchored, Input};
use regex_syntax::ParserBuilder;
use regex_syntax::hir::{Class, ClassBytesRange, Hir, HirKind, Look, Repetition};

use super::text::Modifiers;
use crate::syntax::body::BodyPart;
use crate::syntax::line::Reject;

/// The most pieces that an expression is spelt out to.
const PIECES_MAX: usize = 400;
/// The most optional bytes that are spelt out.
const OPTIONAL_MAX: u32 = 8;
/// The most places where a hint may be.
const HINTS_MAX: usize = 64;
/// The longest hint.
const HINT_BYTES_MAX: usize = 32;
/// The most bytes of a compiled expression.
const COMPILED_BYTES_MAX: usize = 2 << 20;

/// The ways to look for an expression.
pub(crate) struct Made {
    /// Its forms on the stream, if it has few. They tell where it matches, and not how long the match is.
    pub(crate) forms: Option<Vec<Vec<Piece>>>,
    /// The same run at the end.
    pub(crate) expressions: Vec<Expression>,
    /// Each match contains one of these; empty if none were found.
    pub(crate) hints: Vec<Vec<Piece>>,
    /// Whether a match has to stand alone, which depends on its length.
    pub(crate) fullword: bool,
}

/// An expression that is run at the end.
#[derive(Debug, Clone)]
pub(crate) struct Expression {
    text: Box<str>,
    flags: Flags,
    /// Compiled when it is first run.
    compiled: OnceLock<Option<Box<Compiled>>>,
}

#[derive(Debug, Clone)]
struct Compiled {
    regex: Regex,
    over: Over,
}

/// What an expression is run over.
#[derive(Debug, Clone, Copy)]
enum Over {
    Bytes,
    /// The lower bytes of two-byte units. Whether it asks for the very first and for the very last place of the object: where
    /// it does not, a single byte before or behind the units is as good as none.
    Units {
        first: bool,
        last: bool,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Flags {
    caseless: bool,
    dot_all: bool,
    wide: bool,
    fullword: bool,
}

/// Reads an expression.
pub(crate) fn read(text: &[u8], flags: &str, modifiers: &Modifiers) -> Result<Made, Reject> {
    let text = std::str::from_utf8(text).map_err(|_| "a regular expression that is not text".to_owned())?;
    if modifiers.xor.is_some() || modifiers.base64 || modifiers.base64_wide {
        return Err(Reject::Malformed("a regular expression takes no xor and no base64".to_owned()));
    }
    let forms = [(modifiers.ascii || !modifiers.wide).then_some(false), modifiers.wide.then_some(true)];
    let (mut parts, mut expressions, mut hints) = (Some(Vec::new()), Vec::new(), Some(Vec::new()));
    for wide in forms.into_iter().flatten() {
        let flags = Flags {
            caseless: modifiers.caseless || flags.contains('i'),
            dot_all: flags.contains('s'),
            wide,
            fullword: modifiers.fullword,
        };
        let hir = flags.spread(text)?;
        parts =
            parts.zip(spelt_out(&hir)).map(|(parts, pieces)| [parts, vec![modifiers.bounded(pieces, wide)]].concat());
        hints = hints.zip(hints_of(&hir)).map(|(hints, more)| [hints, more].concat());
        expressions.push(Expression { text: text.into(), flags, compiled: OnceLock::new() });
    }
    Ok(Made { forms: parts, expressions, hints: hints.unwrap_or_default(), fullword: modifiers.fullword })
}

/// A text of one byte as expressions.
pub(crate) fn of_byte(byte: u8, modifiers: &Modifiers) -> Result<Vec<Expression>, Reject> {
    Ok(read(format!("\\x{byte:02x}").as_bytes(), "", modifiers)?.expressions)
}

/// A body as an expression; nothing if it has what an expression has not.
pub(crate) fn of_body(parts: &[BodyPart]) -> Option<Expression> {
    let mut text = String::new();
    for (index, part) in parts.iter().enumerate() {
        if index > 0 && part.gap.is_open() {
            let _ = write!(text, ".{{{},}}?", part.gap.min);
        } else if index > 0 {
            let _ = write!(text, ".{{{},{}}}?", part.gap.min, part.gap.max);
        }
        write_pieces(&part.pieces, &mut text)?;
    }
    let flags = Flags { caseless: false, dot_all: true, wide: false, fullword: false };
    let expression = Expression { text: text.into(), flags, compiled: OnceLock::new() };
    expression.compiles().then_some(expression)
}

fn write_pieces(pieces: &[Piece], text: &mut String) -> Option<()> {
    for piece in pieces {
        match piece {
            Piece::Byte { value, mask: u8::MAX } => {
                let _ = write!(text, "\\x{value:02x}");
            }
            Piece::Byte { value, mask } => write_set(&|byte| byte & mask == value & mask, text),
            Piece::Set(set) => write_set(&|byte| set.has(byte), text),
            Piece::Skip(count) => {
                let _ = write!(text, ".{{{count}}}");
            }
            Piece::Gap { min, max } => {
                let _ = write!(text, ".{{{min},{max}}}?");
            }
            Piece::OneOf(all) => {
                for (index, one) in all.iter().enumerate() {
                    text.push_str(if index == 0 { "(?:" } else { "|" });
                    write_pieces(one, text)?;
                }
                text.push(')');
            }
            Piece::NoneOf(all) if all.iter().all(|one| one.len() == 1) => {
                write_set(&|byte| !all.iter().any(|one| one.first() == Some(&byte)), text);
            }
            Piece::NoneOf(_) | Piece::Behind(_) | Piece::Ahead(_) => return None,
        }
    }
    Some(())
}

fn write_set(has: &dyn Fn(u8) -> bool, text: &mut String) {
    text.push('[');
    (0..=u8::MAX).filter(|&byte| has(byte)).for_each(|byte| {
        let _ = write!(text, "\\x{byte:02x}");
    });
    text.push(']');
}

/// An expression over a text that is known of the object.
pub(crate) fn of_text(text: &[u8], flags: &str) -> Result<Expression, Reject> {
    let text = std::str::from_utf8(text).map_err(|_| "a regular expression that is not text".to_owned())?;
    let (caseless, dot_all) = (flags.contains('i'), flags.contains('s'));
    let flags = Flags { caseless, dot_all, wide: false, fullword: false };
    flags.read(text)?;
    let expression = Expression { text: text.into(), flags, compiled: OnceLock::new() };
    match expression.compiles() {
        true => Ok(expression),
        false => Err(Reject::Unsupported("a regular expression that is too large".to_owned())),
    }
}

impl Flags {
    fn read(self, text: &str) -> Result<Hir, Reject> {
        let mut parser = ParserBuilder::new()
            .unicode(false)
            .utf8(false)
            .case_insensitive(self.caseless)
            .dot_matches_new_line(self.dot_all)
            .build();
        let hir = parser.parse(&translated(text)).map_err(|error| {
            let error = error.to_string();
            Reject::Unsupported(format!("regular expression: {}", error.lines().last().unwrap_or_default()))
        })?;
        Ok(hir)
    }

    /// The expression as it stands in the object: if it is wide, each byte followed by NUL, and without what it looks at.
    fn spread(self, text: &str) -> Result<Hir, Reject> {
        let hir = at_the_ends(&self.read(text)?);
        Ok(if self.wide { widened(&hir) } else { hir })
    }
}

/// With `\b` that holds at the ends of the object, whatever stands there.
fn at_the_ends(hir: &Hir) -> Hir {
    match hir.kind() {
        HirKind::Look(Look::WordAscii) => {
            Hir::alternation([Look::WordAscii, Look::Start, Look::End].map(Hir::look).to_vec())
        }
        HirKind::Empty | HirKind::Literal(_) | HirKind::Class(_) | HirKind::Look(_) => hir.clone(),
        HirKind::Repetition(repetition) => {
            Hir::repetition(Repetition { sub: Box::new(at_the_ends(&repetition.sub)), ..repetition.clone() })
        }
        HirKind::Capture(capture) => at_the_ends(&capture.sub),
        HirKind::Concat(all) => Hir::concat(all.iter().map(at_the_ends).collect()),
        HirKind::Alternation(all) => Hir::alternation(all.iter().map(at_the_ends).collect()),
    }
}

/// From YARA's syntax to that of `regex-syntax`: braces and brackets that stand for themselves, needless escapes.
fn translated(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 8);
    let mut rest = text;
    let mut in_class = false;
    while let Some(next) = rest.chars().next() {
        let mut length = next.len_utf8();
        match (next, in_class) {
            ('\\', _) => {
                let escaped = rest[1..].chars().next().unwrap_or('\\');
                length += escaped.len_utf8();
                if !escaped.is_ascii() || escaped.is_ascii_alphanumeric() || escaped == '\\' {
                    out.push('\\');
                    out.push(escaped);
                } else {
                    literal(escaped, &mut out);
                }
            }
            ('[', false) => {
                in_class = true;
                let opening = ["[^]", "[]", "[^", "["].iter().find(|opening| rest.starts_with(**opening));
                let opening = opening.copied().unwrap_or("[");
                out.push_str(&opening.replace(']', "\\]"));
                length = opening.len();
            }
            (']', true) => {
                in_class = false;
                out.push(']');
            }
            ('[' | '&' | '~', true) => literal(next, &mut out),
            ('{', false) if !repeats(rest) => out.push_str("\\{"),
            ('{', false) if rest.starts_with("{,") => out.push_str("{0"),
            ('}', false) if !out_repeats(&out) => out.push_str("\\}"),
            _ => out.push(next),
        }
        rest = &rest[length..];
    }
    out
}

/// A character that stands for itself, wherever it stands.
fn literal(character: char, out: &mut String) {
    if regex_syntax::is_meta_character(character) {
        out.push('\\');
    }
    out.push(character);
}

/// Whether a repetition begins here: `{3}`, `{3,}`, `{,3}` or `{3,5}`.
fn repeats(rest: &str) -> bool {
    let inside = rest[1..].split_once('}').map_or("", |(inside, _)| inside);
    inside.bytes().any(|byte| byte.is_ascii_digit()) && inside.bytes().all(|byte| byte.is_ascii_digit() || byte == b',')
}

/// Whether a repetition is still open in what was written.
fn out_repeats(out: &str) -> bool {
    out.rfind('{').is_some_and(|at| {
        !out[..at].ends_with('\\') && out[at + 1..].bytes().all(|byte| byte.is_ascii_digit() || byte == b',')
    })
}

/// Each byte followed by NUL.
fn widened(hir: &Hir) -> Hir {
    let nul = || Hir::literal([0]);
    match hir.kind() {
        HirKind::Empty => Hir::empty(),
        HirKind::Literal(literal) => Hir::literal(literal.0.iter().flat_map(|&byte| [byte, 0]).collect::<Vec<_>>()),
        HirKind::Class(class) => Hir::concat(vec![Hir::class(class.clone()), nul()]),
        // It stays one, so that the expression is not taken for its parts.
        HirKind::Look(look) => Hir::look(*look),
        HirKind::Repetition(repetition) => {
            Hir::repetition(Repetition { sub: Box::new(widened(&repetition.sub)), ..repetition.clone() })
        }
        HirKind::Capture(capture) => widened(&capture.sub),
        HirKind::Concat(all) => Hir::concat(all.iter().map(widened).collect()),
        HirKind::Alternation(all) => Hir::alternation(all.iter().map(widened).collect()),
    }
}

/// The expression as pieces, if that is short.
fn spelt_out(hir: &Hir) -> Option<Vec<Piece>> {
    let mut left = PIECES_MAX;
    pieces_of(hir, 0, &mut left).filter(|pieces| !pieces.is_empty())
}

fn pieces_of(hir: &Hir, depth: usize, left: &mut usize) -> Option<Vec<Piece>> {
    const NESTING_MAX: usize = 6;
    if depth > NESTING_MAX {
        return None;
    }
    let pieces = match hir.kind() {
        HirKind::Empty => Vec::new(),
        HirKind::Literal(literal) => Piece::bytes(&literal.0),
        HirKind::Class(class) => vec![piece_of(class)?],
        HirKind::Look(_) => return None,
        HirKind::Capture(capture) => return pieces_of(&capture.sub, depth, left),
        HirKind::Concat(all) => {
            let mut pieces = Vec::new();
            for one in all {
                pieces.extend(pieces_of(one, depth, left)?);
            }
            return Some(pieces);
        }
        HirKind::Alternation(all) => {
            let all = all.iter().map(|one| pieces_of(one, depth + 1, left)).collect::<Option<Vec<_>>>()?;
            vec![Piece::OneOf(all)]
        }
        HirKind::Repetition(Repetition { min, max, sub, .. }) => {
            let max = max.filter(|max| max - min <= OPTIONAL_MAX)?;
            let mut pieces = Vec::new();
            for _ in 0..*min {
                pieces.extend(pieces_of(sub, depth, left)?);
            }
            if max > *min {
                let lengths = (0..=max - min).map(|count| {
                    let mut one = Vec::new();
                    for _ in 0..count {
                        one.extend(pieces_of(sub, depth + 1, left)?);
                    }
                    Some(one)
                });
                pieces.push(Piece::OneOf(lengths.collect::<Option<Vec<_>>>()?));
            }
            return Some(pieces);
        }
    };
    *left = left.checked_sub(pieces.len())?;
    Some(pieces)
}

fn piece_of(class: &Class) -> Option<Piece> {
    let Class::Bytes(bytes) = class else {
        return None;
    };
    let has =
        |byte: u8| bytes.ranges().iter().any(|range: &ClassBytesRange| (range.start()..=range.end()).contains(&byte));
    let all: Vec<u8> = (0..=u8::MAX).filter(|&byte| has(byte)).collect();
    Some(match all.as_slice() {
        [one] => Piece::byte(*one),
        [upper, lower] if upper.is_ascii_alphabetic() && *lower == upper.to_ascii_lowercase() => {
            Piece::caseless(*lower)
        }
        all if all.len() == 256 => Piece::Skip(1),
        _ => Piece::Set(ByteSet::of(has)),
    })
}

/// Runs of bytes of which every match has one, the longest that are found in a row.
fn hints_of(hir: &Hir) -> Option<Vec<Vec<Piece>>> {
    let sequence = match hir.kind() {
        HirKind::Concat(all) => all.as_slice(),
        HirKind::Alternation(all) => {
            let hints = all.iter().map(hints_of).collect::<Option<Vec<_>>>()?.concat();
            return (hints.len() <= HINTS_MAX).then_some(hints);
        }
        HirKind::Capture(capture) => return hints_of(&capture.sub),
        HirKind::Repetition(Repetition { min: 1.., sub, .. }) => return hints_of(sub),
        _ => std::slice::from_ref(hir),
    };
    let mut runs = vec![Vec::new()];
    let mut best: Option<Vec<Vec<Piece>>> = None;
    for one in sequence {
        match one.kind() {
            HirKind::Literal(literal) => extend(&mut runs, Piece::bytes(&literal.0)),
            HirKind::Class(class) => match piece_of(class).filter(|piece| matches!(piece, Piece::Byte { .. })) {
                Some(piece) => extend(&mut runs, vec![piece]),
                None => runs.push(Vec::new()),
            },
            HirKind::Look(_) => {}
            HirKind::Alternation(all) if all.iter().all(|one| matches!(one.kind(), HirKind::Look(_))) => {}
            _ => {
                if let HirKind::Repetition(Repetition { min: 1.., sub, .. }) = one.kind()
                    && let HirKind::Literal(literal) = sub.kind()
                {
                    extend(&mut runs, Piece::bytes(&literal.0));
                }
                runs.push(Vec::new());
                // A sequence of its own is taken if nothing here is long enough.
                if !std::ptr::eq(one, hir) {
                    best = best.or_else(|| hints_of(one));
                }
            }
        }
    }
    let longest = runs.into_iter().max_by_key(Vec::len).unwrap_or_default();
    match longest.len() {
        0 | 1 => best,
        2 | 3 => best.filter(|hints| hints.iter().all(|hint| hint.len() > 3)).or(Some(vec![longest])),
        _ => Some(vec![longest.into_iter().take(HINT_BYTES_MAX).collect()]),
    }
}

fn extend(runs: &mut [Vec<Piece>], pieces: Vec<Piece>) {
    if let Some(last) = runs.last_mut() {
        last.extend(pieces);
    }
}

/// A search that is under way: how much of it was done, and how much it may look at.
struct Looked {
    bytes: u64,
    max: u64,
}

impl Expression {
    fn regex(&self) -> Option<&Compiled> {
        let compile = || {
            let hir = self.flags.read(&self.text).ok()?;
            let looks = hir.properties().look_set();
            let over = match self.flags.wide && !looks.is_empty() {
                true => Over::Units { first: looks.contains(Look::Start), last: looks.contains(Look::End) },
                false => Over::Bytes,
            };
            let hir = at_the_ends(&hir);
            let hir = if self.flags.wide && matches!(over, Over::Bytes) { widened(&hir) } else { hir };
            let config = Regex::config().utf8_empty(false).nfa_size_limit(Some(COMPILED_BYTES_MAX));
            let regex = Regex::builder().configure(config).build_from_hir(&hir).ok()?;
            Some(Box::new(Compiled { regex, over }))
        };
        self.compiled.get_or_init(compile).as_deref()
    }

    /// Whether it can be compiled within the bound.
    pub(crate) fn compiles(&self) -> bool {
        self.regex().is_some()
    }

    /// Tells where it matches, start and length, until `tell` has enough or it has looked at more than `bytes_max`; how many
    /// bytes it looked at, and whether that was all that there is to see.
    pub(crate) fn matches(
        &self,
        content: &[u8],
        bytes_max: u64,
        tell: &mut dyn FnMut(u64, u64) -> bool,
    ) -> (u64, bool) {
        let mut looked = Looked { bytes: 0, max: bytes_max };
        let whole = match self.regex() {
            None => true,
            Some(Compiled { regex, over: Over::Units { first, last } }) => {
                self.matches_of_units(regex, content, (*first, *last), &mut looked, tell).is_some()
            }
            Some(Compiled { regex, over: Over::Bytes }) => {
                let mut fits =
                    |start, end| !self.stands_alone(content, start, end) || tell(start as u64, (end - start) as u64);
                find_all(regex, content, 0..content.len(), &mut looked, &mut fits).is_some()
            }
        };
        (looked.bytes, whole)
    }

    /// Searches the lower bytes of each run of units whose upper bytes are 0.
    fn matches_of_units(
        &self,
        regex: &Regex,
        content: &[u8],
        (first, last): (bool, bool),
        looked: &mut Looked,
        tell: &mut dyn FnMut(u64, u64) -> bool,
    ) -> Option<()> {
        /// Stands for what is beside a run.
        const OTHER: u8 = 1;
        let mut more = true;
        let mut run = Vec::new();
        for begins in 0..2 {
            let mut at = begins;
            while more && at < content.len() {
                let units = content[at..].chunks_exact(2).take_while(|unit| unit[1] == 0);
                run.clear();
                run.extend((at > usize::from(!first)).then_some(OTHER));
                let before = run.len();
                run.extend(units.map(|unit| unit[0]));
                let end = at + 2 * (run.len() - before);
                let range = before..run.len();
                run.extend((content.len() - end > usize::from(!last)).then_some(OTHER));
                let mut fits = |start: usize, to: usize| {
                    let (start, to) = (at + 2 * (start - before), at + 2 * (to - before));
                    more = !self.stands_alone(content, start, to) || tell(start as u64, (to - start) as u64);
                    more
                };
                looked.bytes += 2;
                find_all(regex, &run, range, looked, &mut fits)?;
                at = end + 2;
            }
        }
        Some(())
    }

    /// Whether no letter and no digit stands beside a match, if that matters.
    fn stands_alone(&self, content: &[u8], start: usize, end: usize) -> bool {
        let letter = |at: usize| content.get(at).is_some_and(u8::is_ascii_alphanumeric);
        let zero = |at: usize| content.get(at) == Some(&0);
        let (before, after) = match self.flags.wide {
            true => (start >= 2 && letter(start - 2) && zero(start - 1), letter(end) && zero(end + 1)),
            false => (start >= 1 && letter(start - 1), letter(end)),
        };
        !self.flags.fullword || !(before || after)
    }
}

/// Finds each match of an expression that is not empty, until there are enough; nothing if it looked at too much before.
fn find_all(
    regex: &Regex,
    content: &[u8],
    range: Range<usize>,
    looked: &mut Looked,
    tell: &mut dyn FnMut(usize, usize) -> bool,
) -> Option<()> {
    let mut from = range.start;
    while from < range.end {
        if looked.bytes > looked.max {
            return None;
        }
        let input = Input::new(content).range(from..range.end).anchored(Anchored::No);
        let found = regex.find(input);
        looked.bytes += (found.map_or(range.end, |found| found.end()) - from) as u64;
        let Some(found) = found else {
            return Some(());
        };
        if !found.is_empty() && !tell(found.start(), found.end()) {
            return Some(());
        }
        from = found.start() + 1;
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(text: &str) -> Expression {
        read(text.as_bytes(), "", &Modifiers::default()).expect(text).expressions.remove(0)
    }

    fn starts(text: &str, content: &[u8]) -> Vec<u64> {
        let mut starts = Vec::new();
        kept(text).matches(content, u64::MAX, &mut |start, _| {
            starts.push(start);
            true
        });
        starts
    }

    #[test]
    fn short_expressions_are_spelt_out() {
        for (text, length) in [("ab(c|de)f?", 4), ("[a-f]bcd", 4), ("a.{2}bc{1,3}", 6)] {
            let made = read(text.as_bytes(), "", &Modifiers::default());
            let parts = made.expect(text).forms.expect(text);
            assert_eq!((parts.len(), parts[0].len()), (1, length), "{text}");
        }
        let wide = Modifiers { wide: true, ascii: true, ..Modifiers::default() };
        let parts = read(b"ab[0-9]", "i", &wide).expect("an expression").forms.expect("forms");
        assert_eq!((parts.len(), parts[1].len()), (2, 6));
    }

    #[test]
    fn others_are_run_where_they_may_match() {
        assert_eq!(starts("ab.*cd", b"xabcd abxcd\nabc\ncd"), [1, 6]);
        assert_eq!(starts(r"\bab[^x]{1,90}y", b"ab1y cab2y"), [0]);
        assert_eq!(starts(r"^ab+c{,90}", b"abbab"), [0]);
        assert_eq!(starts(r"x\{[{]a{20,}", b"x{{aaaaaaaaaaaaaaaaaaaaa"), [0]);
    }

    #[test]
    fn hints_are_runs_that_each_match_has() {
        let hints = |text: &str| read(text.as_bytes(), "", &Modifiers::default()).expect(text).hints.len();
        assert_eq!(hints("abcd.*ef"), 1);
        assert_eq!(hints("(abcd|efgh).*"), 2);
        assert_eq!(hints("(x.*(abcd|efgh)+.*)+"), 2);
        assert_eq!(hints("[a-z].*[0-9]"), 0);
    }
}
