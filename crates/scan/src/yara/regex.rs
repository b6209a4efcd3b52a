//! Strings of YARA rules that are regular expressions.
//!
//! What has few forms becomes a part and is exact on the stream. Any other is looked for in the kept beginning of the object
//! at its end (`finder`), if one of its *hints* was seen: runs of bytes of which every match has one.
//!
//! The syntax is YARA's ("Regular expressions" in its manual): bytes, a dot that is no line feed, `^` and `$` at the ends
//! of the object, where `\b` always holds. Not supported: look-around beyond `^`, `$`, `\b` and `\B`.
//!
//! An expression without a hint, and a body in hexadecimal digits that cannot be looked for on the stream, is looked for in
//! every object whose conditions ask for it.

use pattern::{ByteSet, Piece};
use regex_automata::Input;
use regex_automata::meta::Regex;
use regex_syntax::ParserBuilder;
use regex_syntax::ast;
use regex_syntax::hir::{Class, ClassBytesRange, Hir, HirKind, Look, Repetition};

use super::finder::Kept;
use super::spelling::translated;
use super::text::Modifiers;
use super::tree::{NESTING_MAX, Tree};
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
    /// The same to be looked for at the end.
    pub(crate) kept: Kept,
    /// Each match contains one of these; empty if none were found.
    pub(crate) hints: Vec<Vec<Piece>>,
}

/// An expression over a text that is known of the object.
#[derive(Debug, Clone)]
pub(crate) struct Expression(Regex);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Flags {
    caseless: bool,
    dot_all: bool,
    wide: bool,
}

/// Reads an expression.
pub(crate) fn read(text: &[u8], flags: &str, modifiers: &Modifiers) -> Result<Made, Reject> {
    let text = std::str::from_utf8(text).map_err(|_| "a regular expression that is not text".to_owned())?;
    if modifiers.xor.is_some() || modifiers.base64 || modifiers.base64_wide {
        return Err(Reject::Malformed("a regular expression takes no xor and no base64".to_owned()));
    }
    let caseless = modifiers.caseless || flags.contains('i');
    let forms = [(modifiers.ascii || !modifiers.wide).then_some(false), modifiers.wide.then_some(true)];
    let (mut parts, mut hints, mut filters) = (Some(Vec::new()), Some(Vec::new()), Some(Vec::new()));
    for wide in forms.into_iter().flatten() {
        let hir = Flags { caseless, dot_all: flags.contains('s'), wide }.spread(text)?;
        parts =
            parts.zip(spelt_out(&hir)).map(|(parts, pieces)| [parts, vec![modifiers.bounded(pieces, wide)]].concat());
        hints = hints.zip(hints_of(&hir)).map(|(hints, more)| [hints, more].concat());
        // In wide form the expression looks at other bytes than the filter.
        filters = filters.filter(|_| !wide || hir.properties().look_set().is_empty());
        filters.iter_mut().for_each(|filters| filters.push(hir.clone()));
    }
    let kept = Kept {
        tree: tree(text, caseless)?,
        filter: filters.map(Hir::alternation),
        dot_all: flags.contains('s'),
        modifiers: Modifiers { caseless, ..modifiers.clone() },
    };
    Ok(Made { forms: parts, kept, hints: hints.unwrap_or_default() })
}

fn tree(text: &str, caseless: bool) -> Result<Tree, Reject> {
    let mut parser = ast::parse::ParserBuilder::new().nest_limit(NESTING_MAX).build();
    let ast = parser.parse(&translated(text)?).map_err(|error| refused(&error))?;
    Tree::of_ast(&ast, caseless)
}

fn refused(error: &dyn std::error::Error) -> Reject {
    let error = error.to_string();
    Reject::Unsupported(format!("regular expression: {}", error.lines().last().unwrap_or_default()))
}

/// An expression over a text that is known of the object.
pub(crate) fn of_text(text: &[u8], flags: &str) -> Result<Expression, Reject> {
    let text = std::str::from_utf8(text).map_err(|_| "a regular expression that is not text".to_owned())?;
    let (caseless, dot_all) = (flags.contains('i'), flags.contains('s'));
    let hir = Flags { caseless, dot_all, wide: false }.spread(text)?;
    let config = Regex::config().utf8_empty(false).nfa_size_limit(Some(COMPILED_BYTES_MAX));
    let regex = Regex::builder().configure(config).build_from_hir(&hir);
    let regex = regex.map_err(|_| Reject::Unsupported("a regular expression that is too large".to_owned()))?;
    Ok(Expression(regex))
}

impl Expression {
    /// Whether it matches bytes of a text, at least one.
    pub(crate) fn is_in(&self, text: &[u8]) -> bool {
        let mut from = 0;
        while let Some(found) = self.0.find(Input::new(text).range(from..)) {
            if !found.is_empty() {
                return true;
            }
            from = found.start() + 1;
            if from > text.len() {
                return false;
            }
        }
        false
    }
}

impl Flags {
    fn read(self, text: &str) -> Result<Hir, Reject> {
        let mut parser = ParserBuilder::new()
            .unicode(false)
            .utf8(false)
            .case_insensitive(self.caseless)
            .dot_matches_new_line(self.dot_all)
            .nest_limit(NESTING_MAX)
            .build();
        parser.parse(&translated(text)?).map_err(|error| refused(&error))
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

#[cfg(test)]
mod tests {
    use super::*;

    fn starts(text: &str, content: &[u8]) -> Vec<u64> {
        let made = read(text.as_bytes(), "", &Modifiers::default()).expect(text);
        let found = made.kept.finder().expect("a small one").find(content, usize::MAX, u64::MAX);
        found.places.into_iter().map(|(start, _)| start).collect()
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
