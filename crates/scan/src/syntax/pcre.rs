//! Regular expressions over an object: `[offset:]trigger/expression/flags`.
//!
//! They are run at the end of the object, over the first [`KEPT_BYTES`] of it, and only if the trigger, an expression
//! over the subsignatures before, holds. `fancy-regex` runs them: in linear time where the expression allows it, by
//! backtracking where it looks around or refers back. Expressions in a syntax that only PCRE has are refused one by one.
//!
//! A [`Search`] stops after each match, and after at most [`BACKTRACKS_MAX`] steps back: then it goes on place by place, as
//! PCRE itself does, with as many steps for each, a few places at a time. One place that takes more is given up. What all
//! searches of an inspection cost is bounded by its `Allowance`. Known wrong: a step of the engine may itself read to the end
//! of what is kept.
//!
//! Differences in syntax that are put right: `$` before a last line feed, `[` and `{` that stand for themselves, blanks
//! (`\h`, `\v`), control and octal characters, and what `\Q` quotes.

use std::sync::OnceLock;

use fancy_regex::{BytesMode, Regex, RegexBuilder, RegexInput};

use crate::layout::Layout;
use crate::syntax::expression::Expression;
use crate::syntax::line::Reject;
use crate::syntax::location::Location;

/// How much of an object is kept for them.
pub(crate) const KEPT_BYTES: u64 = 4 << 20;
/// The most steps back without a stop: a millisecond or two.
const BACKTRACKS_MAX: usize = 20_000;
/// The places that are tried without a stop, and what they cost at the most in fuel and at the least in work.
const PLACES: usize = 4;
const PLACES_FUEL: u64 = 64 << 10;
/// Cost of a search that is cut off.
const CUT_OFF_WORK: u64 = 256 << 10;
/// The most bytes of one compiled expression.
const COMPILED_BYTES_MAX: usize = 1 << 20;
/// The most matches that are counted.
const MATCHES_MAX: u32 = 256;

/// A regular expression of a logical signature.
#[derive(Debug, Clone)]
pub(crate) struct Pcre {
    /// Number of the subsignature.
    pub(crate) sub: u8,
    pub(crate) trigger: Expression,
    pub(crate) location: Location,
    expression: String,
    flags: Flags,
    /// Compiled when it is first run: most never are.
    compiled: OnceLock<Option<Box<Regex>>>,
}

#[derive(Debug, Clone, Copy, Default)]
struct Flags {
    global: bool,
    rolling: bool,
    encompass: bool,
    caseless: bool,
    dot_all: bool,
    multi_line: bool,
    extended: bool,
    anchored: bool,
    dollar_end: bool,
    ungreedy: bool,
}

/// A search that is under way, from turn to turn.
#[derive(Debug, Clone)]
pub(crate) struct Search {
    /// Where the subject begins: nothing stands before it for `^`, `\b` and what looks behind. All other places count from it.
    base: usize,
    /// Where the next match may start.
    from: usize,
    /// Where the last one may.
    last: usize,
    /// Where the subject ends.
    end: usize,
    /// Whether it goes on place by place.
    by_place: bool,
    /// How many matches were found.
    pub(crate) count: u32,
}

/// How a turn of a search ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Turn {
    /// It has to go on.
    More,
    /// It is over.
    Over,
    /// It was given up.
    GivenUp,
}

impl Pcre {
    /// Whether a subsignature is a regular expression.
    pub(crate) fn looks_like_one(text: &str) -> bool {
        text.contains('/')
    }

    pub(crate) fn parse(text: &str, sub: u8) -> Result<Pcre, Reject> {
        let (trigger, rest) = text.split_once('/').ok_or_else(|| "no regular expression".to_owned())?;
        let (expression, flags) =
            rest.rsplit_once('/').ok_or_else(|| "a regular expression without an end".to_owned())?;
        let (offset, trigger) = trigger.rsplit_once(':').unwrap_or(("*", trigger));
        let trigger = Expression::parse(trigger).map_err(Reject::Unsupported)?;
        if expression.is_empty() || trigger.subsignatures() > usize::from(sub) {
            return Err(Reject::Malformed("a regular expression that is empty or triggers itself".to_owned()));
        }
        let location = Location::parse(offset).map_err(Reject::Unsupported)?;
        if location == Location::Version {
            return Err(Reject::Unsupported("regular expressions over version information".to_owned()));
        }
        let flags = Flags::parse(flags).map_err(Reject::Unsupported)?;
        let expression = translate(expression, flags.multi_line || flags.dollar_end);
        let compiled = compile(&expression, flags).map_err(|error| format!("regular expression: {error}"));
        compiled.map_err(Reject::Unsupported)?;
        Ok(Pcre { sub, trigger, location, expression, flags, compiled: OnceLock::new() })
    }

    /// A search in an object of that size, of which `content` is the beginning; none where it cannot match.
    pub(crate) fn search(&self, content: &[u8], size: u64, layout: Option<&Layout>) -> Option<Search> {
        let places = self.location.at_end(layout, size).into_iter().next()?;
        let anywhere = self.location == Location::Anywhere;
        let base = usize::try_from(*places.start()).unwrap_or(usize::MAX);
        let rest = content.len().checked_sub(base)?;
        let last = match places.end() {
            _ if anywhere || (self.flags.rolling && places.start() == places.end()) => usize::MAX,
            &last => usize::try_from(last).unwrap_or(usize::MAX).saturating_sub(base),
        };
        // A place alone is no region.
        let end = if self.flags.encompass && last > 0 { last.min(rest) } else { rest };
        let last = if self.flags.anchored { 0 } else { last };
        Some(Search { base, from: 0, last, end, by_place: false, count: 0 })
    }

    /// Goes on with a search until something is to be said, and says how much work that was.
    pub(crate) fn turn(&self, search: &mut Search, content: &[u8]) -> (Turn, u64) {
        let regex = self.compiled.get_or_init(|| compile(&self.expression, self.flags).ok().map(Box::new));
        let subject = content.get(search.base..).unwrap_or_default();
        let content = subject.get(..search.end).unwrap_or(subject);
        let Some(regex) = regex.as_ref().filter(|_| search.from <= content.len().min(search.last)) else {
            return (Turn::Over, 1);
        };
        if search.by_place {
            return self.turn_by_place(regex, search, content);
        }
        let left = (content.len() - search.from) as u64 + 1;
        match regex.find_from_pos(content, search.from) {
            Err(_) => {
                search.by_place = true;
                (Turn::More, CUT_OFF_WORK)
            }
            Ok(Some(found)) if found.start() <= search.last => {
                let work = (found.end() - search.from) as u64 + 1;
                (self.matched(search, found.start(), found.end()), work)
            }
            Ok(_) => (Turn::Over, left),
        }
    }

    fn turn_by_place(&self, regex: &Regex, search: &mut Search, content: &[u8]) -> (Turn, u64) {
        for _ in 0..PLACES {
            if search.from > content.len().min(search.last) {
                return (Turn::Over, PLACES_FUEL);
            }
            let input = RegexInput::new(content).from_pos(search.from).anchored(true);
            match regex.find_input(input) {
                Err(_) => return (Turn::GivenUp, CUT_OFF_WORK),
                Ok(Some(found)) => return (self.matched(search, found.start(), found.end()), PLACES_FUEL),
                Ok(None) => search.from += 1,
            }
        }
        (Turn::More, PLACES_FUEL)
    }

    /// Counts a match; whether others are looked for.
    fn matched(&self, search: &mut Search, start: usize, end: usize) -> Turn {
        search.count += 1;
        search.from = end.max(start + 1);
        if self.flags.anchored {
            search.last = search.from;
        }
        if self.flags.global && search.count < MATCHES_MAX { Turn::More } else { Turn::Over }
    }
}

impl Flags {
    fn parse(text: &str) -> Result<Flags, String> {
        let mut flags = Flags::default();
        for letter in text.chars() {
            *match letter {
                'g' => &mut flags.global,
                'r' => &mut flags.rolling,
                'e' => &mut flags.encompass,
                'i' => &mut flags.caseless,
                's' => &mut flags.dot_all,
                'm' => &mut flags.multi_line,
                'x' => &mut flags.extended,
                'A' => &mut flags.anchored,
                'E' => &mut flags.dollar_end,
                'U' => &mut flags.ungreedy,
                _ => return Err(format!("there is no flag {letter:?} of a regular expression")),
            } = true;
        }
        Ok(flags)
    }
}

/// Compiles an expression without flags, which is no part of a signature's body.
pub(crate) fn compile_plain(expression: &str) -> Result<Regex, String> {
    compile(&translate(expression, false), Flags::default())
}

fn compile(expression: &str, flags: Flags) -> Result<Regex, String> {
    let expression = if flags.ungreedy { format!("(?U){expression}") } else { expression.to_owned() };
    RegexBuilder::new(&expression)
        .bytes_mode(BytesMode::Ascii)
        .case_insensitive(flags.caseless)
        .dot_matches_new_line(flags.dot_all)
        .multi_line(flags.multi_line)
        .ignore_whitespace(flags.extended)
        .backtrack_limit(BACKTRACKS_MAX)
        .delegate_size_limit(COMPILED_BYTES_MAX)
        .build()
        .map_err(|error| error.to_string().lines().last().unwrap_or_default().to_owned())
}

/// From PCRE's syntax to that of `fancy-regex`.
fn translate(expression: &str, dollar_is_end: bool) -> String {
    let mut text = String::with_capacity(expression.len() + 16);
    let mut rest = expression;
    let mut class: Option<usize> = None;
    while let Some(next) = rest.chars().next() {
        let length = match (next, class) {
            ('\\', _) => escape(rest, &mut text),
            ('[', None) => {
                let opening =
                    ["[^]", "[]", "[^", "["].iter().find(|opening| rest.starts_with(**opening)).unwrap_or(&"[");
                // A bracket that comes first stands for itself.
                text.push_str(&opening.replace(']', "\\]"));
                class = Some(0);
                opening.len()
            }
            ('[', Some(_)) => match posix_class(rest) {
                Some(name) => push(&mut text, name),
                None => push_as(&mut text, "\\[", 1),
            },
            (']', Some(_)) => {
                class = None;
                push(&mut text, "]")
            }
            ('&' | '~', Some(_)) => push_as(&mut text, if next == '&' { "\\&" } else { "\\~" }, 1),
            ('$', None) if !dollar_is_end => push_as(&mut text, "(?=\\n?\\z)", 1),
            ('{', None) if !is_repetition(rest) => push_as(&mut text, "\\{", 1),
            _ => push(&mut text, &rest[..next.len_utf8()]),
        };
        rest = &rest[length..];
    }
    text
}

/// An escape sequence; how long it is.
fn escape(rest: &str, text: &mut String) -> usize {
    let letter = rest[1..].chars().next().map_or(0, char::len_utf8);
    match &rest[1..1 + letter] {
        "h" => push_as(text, "[\\t\\x20\\xa0]", 2),
        "H" => push_as(text, "[^\\t\\x20\\xa0]", 2),
        "v" => push_as(text, "[\\n-\\r\\x85]", 2),
        "V" => push_as(text, "[^\\n-\\r\\x85]", 2),
        "R" => push_as(text, "(?>\\r\\n|[\\n-\\r\\x85])", 2),
        "c" if rest[2..].starts_with(|next: char| next.is_ascii_graphic()) => {
            push_as(text, &format!("\\x{:02x}", rest.as_bytes()[2].to_ascii_uppercase() ^ 0x40), 3)
        }
        "Q" => {
            let quoted = rest[2..].split("\\E").next().unwrap_or_default();
            push_as(text, &fancy_regex::escape(quoted), (quoted.len() + 4).min(rest.len()))
        }
        "0" | "1" | "2" | "3" => match octal(&rest[1..]) {
            Some((byte, length)) => push_as(text, &format!("\\x{byte:02x}"), 1 + length),
            None => push(text, &rest[..2]),
        },
        // What needs no escape in either syntax and is unknown as one in the other.
        other @ ("<" | ">" | "'" | "\"" | "%" | "," | ";" | ":" | "=" | "@" | "`" | "!" | "/" | "_") => {
            push_as(text, other, 1 + letter)
        }
        _ => push(text, &rest[..1 + letter]),
    }
}

/// The byte that up to three octal digits stand for, and how many they are. Fewer than three refer to a group, but for 0.
fn octal(digits: &str) -> Option<(u8, usize)> {
    let length = digits.bytes().take(3).take_while(|digit| (b'0'..=b'7').contains(digit)).count();
    let is_byte = length == 3 || digits.starts_with('0');
    let byte = u8::from_str_radix(&digits[..length], 8).ok();
    byte.filter(|_| is_byte).map(|byte| (byte, length))
}

fn push(text: &mut String, piece: &str) -> usize {
    push_as(text, piece, piece.len())
}

fn push_as(text: &mut String, piece: &str, length: usize) -> usize {
    text.push_str(piece);
    length
}

/// `[:alpha:]` and the like.
fn posix_class(rest: &str) -> Option<&str> {
    let end = rest.strip_prefix("[:")?.find(":]")?;
    let name = &rest[2..2 + end];
    name.trim_start_matches('^').bytes().all(|byte| byte.is_ascii_lowercase()).then(|| &rest[..end + 4])
}

/// `{3}`, `{3,}` or `{3,5}`.
fn is_repetition(rest: &str) -> bool {
    let Some(inside) = rest[1..].split_once('}').map(|(inside, _)| inside) else {
        return false;
    };
    let (min, max) = inside.split_once(',').unwrap_or((inside, ""));
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    !min.is_empty() && digits(min) && digits(max)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(text: &str, content: &[u8]) -> u32 {
        let (turn, count) = searched(&Pcre::parse(text, 1).expect(text), content);
        assert_eq!(turn, Turn::Over, "{text}");
        count
    }

    fn searched(pcre: &Pcre, content: &[u8]) -> (Turn, u32) {
        let Some(mut search) = pcre.search(content, content.len() as u64, None) else { return (Turn::Over, 0) };
        loop {
            match pcre.turn(&mut search, content).0 {
                Turn::More => {}
                turn => return (turn, search.count),
            }
        }
    }

    #[test]
    fn flags_and_offsets_say_where_and_how_often() {
        for (text, content, matches) in [
            ("0/a.c/", "abcabc", 1),
            ("0/a.c/g", "abcabc", 2),
            ("0/A.C/", "abc", 0),
            ("0/A.C/i", "abc", 1),
            ("3:0/abc/", "abcabc", 1),
            ("2:0/abc/", "abcabc", 0),
            ("2:0/abc/r", "abcabc", 1),
            ("1,2:0/abc/", "abcabc", 1),
            ("1,1:0/abc/", "abcabc", 0),
            ("1,3:0/abc/e", "abcabc", 0),
            ("1,5:0/abc/e", "abcabc", 1),
            ("1,3:0/bca/e", "abcabc", 1),
            ("1,3:0/cab/e", "abcabc", 0),
            ("1:0/bc/e", "abcabc", 1),
            ("1:0/ca/e", "abcabc", 0),
            ("1,0:0/bcabc/e", "abcabc", 1),
            ("2:0/ab/er", "abcabc", 1),
            ("1:0/^bc/", "abcabc", 1),
            ("1:0/\\Abc/", "abcabc", 1),
            ("1:0/\\bbc/", "abcabc", 1),
            ("1:0/(?<!a)bc/", "abcabc", 1),
            ("1:0/(?<=a)bc/", "abcabc", 0),
            ("1:0/\\Bbc/", "abcabc", 0),
            ("1,3:0/^ca/", "abcabc", 0),
            ("9:0/a*/", "abcabc", 0),
            ("0/b$/", "ab\n", 1),
            ("0/b$/E", "ab\n", 0),
            ("0/b$/m", "ab\nc", 1),
            ("0/a.c/s", "a\nc", 1),
            ("0/a b/x", "ab", 1),
            ("0/(a)\\1/", "xaa", 1),
            ("0/a(?=b)/", "ab", 1),
            ("0/[[a]b{x}/", "[b{x}", 1),
            ("0/[]a]+\\x3B\\//", "]a;/", 1),
            ("0/\\xff\\x00/", "", 0),
            ("0/a/A", "ba", 0),
            ("0/a.c/Ag", "abcabcxabc", 2),
            ("0/a.c/Ag", "xabcabc", 0),
            ("3:0/a.c/Ag", "abcabcabc", 2),
            ("0/a\\hb\\H/", "a\tbc", 1),
            ("0/a[\\h]b/", "aab", 0),
            ("0/a\\v+b\\V/", "a\r\x0bbc", 1),
            ("0/a\\Rb\\Rc/", "a\r\nb\x0cc", 1),
            ("0/a\\R\\nb/", "a\r\nb", 0),
            ("0/\\101\\cJ\\011/", "A\n\t", 1),
            ("0/\\Qa.\\E./", "a.b", 1),
            ("0/\\Qa.\\E./", "abb", 0),
        ] {
            assert_eq!(count(text, content.as_bytes()), matches, "{text} in {content:?}");
        }
        assert_eq!(count("0/\\xff[^\\x00-\\x7f]/", b"a\xff\xfe"), 1);
    }

    #[test]
    fn too_many_steps_are_given_up() {
        let given_up = |text| searched(&Pcre::parse(text, 1).expect(text), &[b'a'; 4000]) == (Turn::GivenUp, 0);
        let texts = ["0/(?=(a+)+$)(a+)+\\1b/", "0/(a|aa)+\\1b/", "0/(?:(a)|a)+(?!a)b\\1/", "0/(a*)*\\1b/"];
        let outcome = texts.map(given_up);
        assert!(outcome.iter().any(|&it| it), "{outcome:?}");
    }

    #[test]
    fn what_only_pcre_has_is_refused_and_nonsense_too() {
        assert!(matches!(Pcre::parse("0/(?C1)a/", 1), Err(Reject::Unsupported(_))));
        for text in ["0/a/q", "x/a/", "/a/"] {
            assert!(matches!(Pcre::parse(text, 1), Err(Reject::Unsupported(_))), "{text}");
        }
        for text in ["0/a", "0//", "1/a/"] {
            assert!(matches!(Pcre::parse(text, 1), Err(Reject::Malformed(_))), "{text}");
        }
    }
}
