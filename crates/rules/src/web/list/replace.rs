//! Lists of replacements: `"expression"->"text"`, each applied to what those before it have made.

use pattern::expression::{Expression, Progress, Search, Want};
use stream::Fuel;

use super::expressions::{FLAGS, Idle, Needs};

/// The most bytes that a text may grow to.
const TEXT_BYTES_MAX: usize = 64 << 10;
/// Steps that all searches for one text may take.
const STEPS_MAX: u64 = 5_000_000;

/// Replacements of a file, in their order.
///
/// One pass for the strings that they need leaves out those that cannot match, which are nearly all.
#[derive(Debug)]
pub(crate) struct Replacements {
    all: Vec<Replacement>,
    needs: Needs,
    idle: Idle,
}

impl Replacements {
    /// Replacements in the order of their lines.
    pub fn new(all: Vec<Replacement>) -> Replacements {
        Replacements { needs: Needs::new(all.iter().map(|one| &one.expression)), all, idle: Idle::default() }
    }

    /// The text after all of them, each applied to what those before it have made; `None` where nothing is replaced.
    pub fn replaced(&self, text: &[u8]) -> Option<Vec<u8>> {
        let (mut from, mut made) = (0, None);
        while let Some((number, next)) = self.first(made.as_deref().unwrap_or(text), from, Replacement::apply) {
            (from, made) = (number + 1, Some(next));
        }
        made
    }

    /// The text after the first that does anything.
    pub fn replaced_once(&self, text: &[u8]) -> Option<Vec<u8>> {
        Some(self.first(text, 0, Replacement::apply)?.1)
    }

    /// Replacement for the match of the first expression that matches.
    pub fn expanded(&self, text: &[u8]) -> Option<Vec<u8>> {
        Some(self.first(text, 0, Replacement::expand)?.1)
    }

    /// The first at or behind a place that does anything to a text, and what it makes.
    fn first(&self, text: &[u8], from: u32, act: Act) -> Option<(u32, Vec<u8>)> {
        let needed = self.needs.of(text).unwrap_or_else(|| (0..self.len() as u32).collect());
        needed.into_iter().filter(|number| *number >= from).find_map(|number| {
            let one = self.all.get(number as usize)?;
            let new = || one.expression.search(Want::Groups);
            let made = self.idle.run(number, new, |search| act(one, search, text))?;
            Some((number, made))
        })
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.all.len()
    }
}

type Act = fn(&Replacement, &mut Search, &[u8]) -> Option<Vec<u8>>;

/// A replacement.
#[derive(Debug)]
pub(crate) struct Replacement {
    expression: Expression,
    with: Vec<Piece>,
}

/// A piece of what is put in place of a match.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Piece {
    Text(Vec<u8>),
    Group(usize),
}

impl Replacement {
    /// Reads a line; `None` where the expression is empty.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn read(line: &[u8]) -> Result<Option<Replacement>, String> {
        const ARROW: &[u8] = b"\"->\"";
        let wrong = || "this is no replacement".to_string();
        let line = line.strip_prefix(b"\"").ok_or_else(wrong)?;
        let at = line.windows(ARROW.len()).position(|four| four == ARROW).ok_or_else(wrong)?;
        let (expression, with) = (&line[..at], &line[at + ARROW.len()..]);
        let end = with.iter().rposition(|&byte| byte == b'"').ok_or_else(wrong)?;
        if expression.is_empty() {
            return Ok(None);
        }
        let expression = Expression::new(expression, FLAGS).map_err(|error| error.to_string())?;
        Ok(Some(Replacement { expression, with: pieces(&with[..end]) }))
    }

    /// Replaces all matches; `None` where there is none, or where it costs too much.
    fn apply(&self, search: &mut Search, text: &[u8]) -> Option<Vec<u8>> {
        let mut fuel = Fuel::new(STEPS_MAX);
        let (mut out, mut from) = (Vec::new(), 0);
        let mut has_changed = false;
        while from <= text.len() {
            search.restart(from);
            let Progress::Match(span) = search.run(text, &mut fuel) else { break };
            out.extend(&text[from..span.start]);
            self.put(search, text, &mut out);
            has_changed = true;
            from = span.end;
            if span.is_empty() {
                out.extend(text.get(from));
                from += 1;
            }
            if out.len() > TEXT_BYTES_MAX {
                return None;
            }
        }
        out.extend(text.get(from..).unwrap_or(b""));
        has_changed.then_some(out)
    }

    /// Replacement for the first match, alone.
    fn expand(&self, search: &mut Search, text: &[u8]) -> Option<Vec<u8>> {
        search.restart(0);
        let Progress::Match(_) = search.run(text, &mut Fuel::new(STEPS_MAX)) else { return None };
        let mut out = Vec::new();
        self.put(search, text, &mut out);
        Some(out)
    }

    fn put(&self, search: &Search, text: &[u8], out: &mut Vec<u8>) {
        for piece in &self.with {
            match piece {
                Piece::Text(bytes) => out.extend(bytes),
                Piece::Group(number) => {
                    out.extend(search.group(*number).and_then(|group| text.get(group)).unwrap_or(b""))
                }
            }
        }
    }
}

/// `$1` and `\1` are groups, `\\` and `\$` the second byte.
fn pieces(text: &[u8]) -> Vec<Piece> {
    let mut all = Vec::new();
    let mut plain = Vec::new();
    let mut rest = text;
    while let Some((&byte, after)) = rest.split_first() {
        rest = after;
        let next = rest.first().copied();
        match (byte, next) {
            (b'$' | b'\\', Some(digit @ b'1'..=b'9')) => {
                all.push(Piece::Text(std::mem::take(&mut plain)));
                all.push(Piece::Group(usize::from(digit - b'0')));
                rest = &rest[1..];
            }
            (b'\\', Some(next @ (b'\\' | b'$'))) => {
                plain.push(next);
                rest = &rest[1..];
            }
            _ => plain.push(byte),
        }
    }
    all.push(Piece::Text(plain));
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn replacements(lines: &[&str]) -> Replacements {
        let read = |line: &&str| Replacement::read(line.as_bytes()).expect("a line").expect("a replacement");
        Replacements::new(lines.iter().map(read).collect())
    }

    fn apply(line: &str, text: &str) -> Option<String> {
        let made = replacements(&[line]).replaced(text.as_bytes());
        made.map(|text| String::from_utf8_lossy(&text).into_owned())
    }

    #[test]
    fn each_replacement_sees_what_those_before_it_have_made() {
        let all = replacements(&[r#""dogs"->"x""#, r#""cats"->"dogs""#, r#""(do)(gs)"->"birds-$2""#, r#""^$"->"e""#]);
        let text = |made: Option<Vec<u8>>| made.map(|text| String::from_utf8_lossy(&text).into_owned());
        // Twice: the second time on automata that are built already.
        for _ in 0..2 {
            assert_eq!(text(all.replaced(b"two CATS")).as_deref(), Some("two birds-gs"));
            assert_eq!(text(all.replaced(b"")).as_deref(), Some("e"));
            assert_eq!(text(all.replaced(b"a page")), None);
            assert_eq!(text(all.replaced_once(b"two cats")).as_deref(), Some("two dogs"));
            assert_eq!(text(all.expanded(b"hot dogs")).as_deref(), Some("x"));
            assert_eq!(text(all.expanded(b"hot rats")), None);
        }
    }

    #[test]
    fn all_matches_are_replaced_with_groups_and_escapes() {
        assert_eq!(apply(r#""(a)(b)?"->"[$1\2\$1\\]""#, "xabxa").as_deref(), Some(r"x[ab$1\]x[a$1\]"));
        assert_eq!(apply(r#""q=([^&]*)"->"\1""#, "?Q=cats&x").as_deref(), Some("?cats&x"));
        assert_eq!(apply(r#""z"->"y""#, "abc"), None);
        assert_eq!(apply(r#""x*"->"-""#, "ab").as_deref(), Some("-a-b-"));
        assert!(Replacement::read(br#"""->"x""#).expect("a line").is_none());
        assert!(Replacement::read(b"a->b").is_err() && Replacement::read(br#""("->"b""#).is_err());
    }
}
