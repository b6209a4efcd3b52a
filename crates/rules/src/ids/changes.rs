//! Changes of rules before they are loaded, as by `suricata-update`: files that disable, enable, drop and modify some of them, in the
//! syntax of its `disable.conf`, `enable.conf`, `drop.conf` and `modify.conf` (its manual, "Example Configuration Files").
//!
//! A line names rules: numbers (`2019401`, `1:2019401`, with a revision, several with commas), a file (`group:emerging-icmp`,
//! `emerging-*.rules`, `filename:`), metadata (`metadata: deployment perimeter`), an expression over the rule (`re:heartbleed`), or
//! all (`*`). A rule that stands behind `#` is disabled, and is what is enabled. Expressions are Python's there and `regex`'s here:
//! without references to groups in them and without a look around, which a problem tells.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock};

use regex::bytes::{Captures, Regex, RegexBuilder};

use super::action::Action;
use super::lexer;
use crate::spam::{Place, Problem, Severity};

/// Lines of one file.
const LINES_MAX: usize = 100_000;

/// The most a compiled expression takes, and how many there may be.
const EXPRESSION_BYTES_MAX: usize = 1 << 20;
const EXPRESSIONS_MAX: usize = 1_000;

/// The longest rule that is modified.
const RULE_BYTES_MAX: usize = 64 << 10;

/// A kind of file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Change {
    /// Rules that are not loaded.
    Disable,
    /// Rules that are, though they stand behind `#`.
    Enable,
    /// Rules that block.
    Drop,
    /// Rules in which something is replaced.
    Modify,
}

impl Change {
    /// Its name, as that of the file.
    pub const fn name(self) -> &'static str {
        match self {
            Change::Disable => "disable",
            Change::Enable => "enable",
            Change::Drop => "drop",
            Change::Modify => "modify",
        }
    }
}

/// A rule as a file has it, whether it is loaded or not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed {
    /// The line.
    pub line: u32,
    /// The generator and the number.
    pub id: (u32, u32),
    /// The revision.
    pub rev: u32,
    /// Whether it does not stand behind `#`.
    pub is_enabled: bool,
    /// The rule, without `#`.
    pub text: Vec<u8>,
}

impl Listed {
    /// The text that an alert has.
    pub fn message(&self) -> String {
        let text = lexer::with_lower_names(&self.text);
        let pieces = lexer::pieces(&text);
        let options = pieces.map(|pieces| pieces.options).unwrap_or_default();
        let value = options.iter().find(|option| option.name == "msg").and_then(|option| option.value);
        let message = value.map(|value| lexer::text(value.trim_ascii()).trim_matches('"').to_owned());
        message.unwrap_or_default().replace('\\', "").replace(char::is_control, "?")
    }
}

/// The rules of a file, those behind `#` among them.
pub fn listed(bytes: &[u8]) -> Vec<Listed> {
    let rule = |line: lexer::Line<'_>| {
        let Line { id, rev, is_enabled, text, .. } = Line::read("", &line.text)?;
        Some(Listed { line: line.number, id, rev, is_enabled, text })
    };
    lexer::all_lines(bytes).filter_map(rule).collect()
}

/// What is done to rules before they are loaded.
#[derive(Debug, Default)]
pub struct Changes {
    disable: Matchers,
    enable: Matchers,
    drop: Matchers,
    modify: Vec<(Matcher, Edit, Place)>,
    expressions: usize,
    problems: Vec<Problem>,
}

/// Which rules, with the lines that name them; numbers are looked up at once.
#[derive(Debug, Default)]
struct Matchers {
    numbers: HashMap<(u32, u32), Place>,
    others: Vec<(Matcher, Place)>,
}

#[derive(Debug)]
enum Matcher {
    All,
    Numbers(Vec<(u32, u32, Option<u32>)>),
    /// By the path of the file.
    Path(flow::Glob),
    /// By the name of the file, with its end or without.
    Group(flow::Glob),
    Metadata(String, String),
    Text(Regex),
}

#[derive(Debug)]
enum Edit {
    Replace(Regex, Vec<u8>),
    AddMetadata(String),
}

/// A rule of a file.
pub(super) struct Line<'a> {
    file: &'a str,
    text: Vec<u8>,
    pub is_enabled: bool,
    /// Generator and number.
    id: (u32, u32),
    rev: u32,
    /// Whether the rule never alerts.
    is_silent: bool,
    /// Names and values, in lower case.
    metadata: Vec<(String, String)>,
}

impl Changes {
    /// Reads a file; what is not understood is a problem, and changes nothing.
    pub fn read(&mut self, change: Change, file: &str, bytes: &[u8]) {
        let name: Arc<str> = file.into();
        for (at, line) in bytes.split(|&byte| byte == b'\n').enumerate().take(LINES_MAX) {
            let line = String::from_utf8_lossy(line);
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let line = line.split_once(" #").map_or(line, |(line, _)| line.trim());
            let place = Place { file: name.clone(), line: u32::try_from(at + 1).unwrap_or(u32::MAX) };
            if let Err(reason) = self.line(change, line, &place) {
                self.problems.push(Problem {
                    severity: Severity::Error,
                    place,
                    rule: None,
                    reason,
                    advice: String::new(),
                });
            }
        }
    }

    fn line(&mut self, change: Change, line: &str, place: &Place) -> Result<(), String> {
        self.expressions += usize::from(change == Change::Modify || line.starts_with("re:"));
        if self.expressions > EXPRESSIONS_MAX {
            return Err(format!("there are more than {EXPRESSIONS_MAX} expressions"));
        }
        let matchers = match change {
            Change::Disable => &mut self.disable,
            Change::Enable => &mut self.enable,
            Change::Drop => &mut self.drop,
            Change::Modify => {
                let (matcher, edit) = edit(line)?;
                self.modify.push((matcher, edit, place.clone()));
                return Ok(());
            }
        };
        match matcher(line)? {
            Matcher::Numbers(all) if all.iter().all(|(.., rev)| rev.is_none()) => {
                for (gid, sid, _) in all {
                    matchers.numbers.entry((gid, sid)).or_insert_with(|| place.clone());
                }
            }
            other => matchers.others.push((other, place.clone())),
        }
        Ok(())
    }

    /// Problems of the files, with file and line.
    pub fn problems(&self) -> &[Problem] {
        &self.problems
    }

    /// Whether nothing is changed.
    pub fn is_empty(&self) -> bool {
        let lists = [&self.disable, &self.enable, &self.drop];
        lists.iter().all(|list| list.numbers.is_empty() && list.others.is_empty()) && self.modify.is_empty()
    }

    /// A file of rules as it is loaded: each rule stays in its line.
    pub fn apply(&self, file: &str, bytes: &[u8]) -> Vec<u8> {
        let mut out = Vec::with_capacity(bytes.len());
        for lexer::Line { place, text, .. } in lexer::all_lines(bytes) {
            let written = &bytes[place];
            let Some(changed) = self.changed(file, &text, &mut |_, _| ()) else {
                out.extend_from_slice(written);
                continue;
            };
            out.extend_from_slice(&changed);
            out.extend(written.iter().filter(|&&byte| byte == b'\n'));
        }
        out
    }

    /// The lines that hold for a rule of a file, in the order in which they are applied.
    pub fn trace(&self, file: &str, text: &[u8]) -> Vec<(Change, Place)> {
        let mut places = Vec::new();
        self.changed(file, text, &mut |change, place| places.push((change, place.clone())));
        places
    }

    /// A line if it is a rule that is changed: in the order disable, enable, drop, modify.
    fn changed(&self, file: &str, text: &[u8], heed: &mut dyn FnMut(Change, &Place)) -> Option<Vec<u8>> {
        let mut line = Line::read(file, text)?;
        let was_enabled = line.is_enabled;
        if let Some(place) = self.disable.find(&line) {
            heed(Change::Disable, place);
            line.is_enabled = false;
        }
        if let Some(place) = self.enable.find(&line) {
            heed(Change::Enable, place);
            line.is_enabled = true;
        }
        let mut is_changed = line.is_enabled != was_enabled;
        if let Some(place) = self.drop.find(&line).filter(|_| !line.is_silent) {
            heed(Change::Drop, place);
            let rest = line.text.iter().position(|byte| !byte.is_ascii_alphanumeric()).unwrap_or(line.text.len());
            line.text.splice(..rest, *b"drop");
            is_changed = true;
        }
        for (matcher, edit, place) in &self.modify {
            if matcher.matches(&line)
                && let Some(edited) = edit.run(&line)
                && let Some(edited) = Line::read(file, &edited)
            {
                heed(Change::Modify, place);
                line = edited;
                is_changed = true;
            }
        }
        is_changed.then(|| line.written())
    }
}

impl Matchers {
    fn find(&self, line: &Line<'_>) -> Option<&Place> {
        let other = || self.others.iter().find(|(matcher, _)| matcher.matches(line)).map(|(_, place)| place);
        self.numbers.get(&line.id).or_else(other)
    }
}

impl Matcher {
    fn matches(&self, line: &Line<'_>) -> bool {
        let name = || line.file.rsplit('/').next().unwrap_or_default().to_lowercase();
        match self {
            Matcher::All => true,
            Matcher::Numbers(all) => {
                all.iter().any(|&(gid, sid, rev)| (gid, sid) == line.id && rev.is_none_or(|rev| rev == line.rev))
            }
            Matcher::Path(pattern) => pattern.matches(&line.file.to_lowercase()) || pattern.matches(&name()),
            Matcher::Group(pattern) => {
                let name = name();
                let stem = name.rsplit_once('.').map_or(&*name, |(stem, _)| stem);
                pattern.matches(&name) || pattern.matches(stem)
            }
            Matcher::Metadata(key, value) => line.metadata.iter().any(|(name, is)| name == key && is == value),
            Matcher::Text(expression) => expression.is_match(&line.text),
        }
    }
}

impl Edit {
    /// The rule that comes of it; none if it is too long.
    fn run(&self, line: &Line<'_>) -> Option<Vec<u8>> {
        let text = match self {
            Edit::Replace(expression, with) => {
                let written = line.written();
                let mut left = RULE_BYTES_MAX;
                let edited = expression.replace_all(&written, |found: &Captures<'_>| {
                    let with = expanded(with, found);
                    left = left.saturating_sub(with.len());
                    if left > 0 { with } else { Vec::new() }
                });
                edited.into_owned()
            }
            Edit::AddMetadata(pair) => {
                let mut text = line.written();
                let text_end = text.trim_ascii_end().len();
                text.truncate(text_end);
                if text.pop_if(|last| *last == b')').is_some() {
                    text.extend_from_slice(format!(" metadata: {pair};)").as_bytes());
                }
                text
            }
        };
        (text.len() < RULE_BYTES_MAX).then_some(text)
    }
}

impl<'a> Line<'a> {
    /// A rule, whether it stands behind `#` or not.
    pub fn read(file: &'a str, text: &[u8]) -> Option<Line<'a>> {
        let bare = text.trim_ascii();
        let is_enabled = !bare.starts_with(b"#");
        let start = bare.iter().position(|&byte| byte != b'#' && !byte.is_ascii_whitespace())?;
        let text = bare.get(start..)?;
        let end = text.iter().position(|byte| !byte.is_ascii_alphanumeric())?;
        Action::named(std::str::from_utf8(text.get(..end)?).ok()?)?;
        let text = lexer::with_lower_names(text);
        let options = lexer::pieces(&text).ok()?.options;
        let option = |name: &str| options.iter().find(|option| option.name == name);
        let number = |name: &str| {
            option(name).and_then(|option| std::str::from_utf8(option.value?).ok()?.trim().parse().ok()).unwrap_or(0)
        };
        let metadata = options.iter().filter(|option| option.name == "metadata").filter_map(|option| option.value);
        let metadata = metadata.flat_map(|value| value.split(|&byte| byte == b',')).filter_map(|pair| {
            let pair = String::from_utf8_lossy(pair).to_lowercase();
            let (name, value) = pair.trim().split_once(' ')?;
            Some((name.to_owned(), value.trim().to_owned()))
        });
        let line = Line {
            file,
            text: text.to_vec(),
            is_enabled,
            id: (if option("gid").is_some() { number("gid") } else { 1 }, number("sid")),
            rev: number("rev"),
            is_silent: options.iter().any(silences),
            metadata: metadata.collect(),
        };
        (line.id.1 > 0).then_some(line)
    }

    /// The values of an option.
    pub fn options(&self, name: &str) -> Vec<&[u8]> {
        let options = lexer::pieces(&self.text).map(|pieces| pieces.options).unwrap_or_default();
        options.into_iter().filter(|option| option.name == name).filter_map(|option| option.value).collect()
    }

    /// The rule, enabled and without alerts.
    pub fn silenced(&self) -> Vec<u8> {
        let text = self.text.trim_ascii_end();
        match text.strip_suffix(b")").filter(|_| !self.is_silent) {
            Some(text) => [text, b" noalert;)"].concat(),
            None => text.to_vec(),
        }
    }

    fn written(&self) -> Vec<u8> {
        [if self.is_enabled { &b""[..] } else { b"# " }, &self.text].concat()
    }
}

/// Whether a rule with the option never alerts.
fn silences(option: &lexer::Opt<'_>) -> bool {
    let is_bits = matches!(option.name, "flowbits" | "xbits" | "hostbits");
    option.name == "noalert" || is_bits && option.value.is_some_and(|value| value.trim_ascii().starts_with(b"noalert"))
}

/// Reads what names rules.
fn matcher(text: &str) -> Result<Matcher, String> {
    if text == "*" {
        return Ok(Matcher::All);
    }
    if text.starts_with(|first: char| first.is_ascii_digit()) && !text.ends_with(".rules") {
        return text.split(',').map(numbers).collect::<Option<_>>().map(Matcher::Numbers).ok_or_else(|| unknown(text));
    }
    match text.split_once(':').map(|(kind, rest)| (kind, rest.trim())) {
        Some(("re", pattern)) => expression(pattern, true).map(Matcher::Text),
        Some(("group", pattern)) => Ok(Matcher::Group(flow::Glob::new(&pattern.to_lowercase()))),
        Some(("filename", pattern)) => Ok(Matcher::Path(flow::Glob::new(&pattern.to_lowercase()))),
        Some(("metadata", pair)) => match pair.to_lowercase().split_once(' ') {
            Some((key, value)) => Ok(Matcher::Metadata(key.into(), value.trim().into())),
            None => Err("metadata: needs a name and a value".into()),
        },
        _ if text.ends_with(".rules") => Ok(Matcher::Group(flow::Glob::new(&text.to_lowercase()))),
        _ => Err(unknown(text)),
    }
}

fn unknown(text: &str) -> String {
    let text: String = text.chars().filter(|c| !c.is_control()).take(80).collect();
    format!("names no rules: {text}")
}

/// `sid`, `gid:sid` or `gid:sid:rev`.
fn numbers(text: &str) -> Option<(u32, u32, Option<u32>)> {
    let numbers: Vec<u32> = text.split(':').map(|part| part.trim().parse().ok()).collect::<Option<_>>()?;
    match *numbers {
        [sid] => Some((1, sid, None)),
        [gid, sid] => Some((gid, sid, None)),
        [gid, sid, rev] => Some((gid, sid, Some(rev))),
        _ => None,
    }
}

fn expression(pattern: &str, ignores_case: bool) -> Result<Regex, String> {
    let built = RegexBuilder::new(pattern)
        .unicode(false)
        .case_insensitive(ignores_case)
        .size_limit(EXPRESSION_BYTES_MAX)
        .build();
    built.map_err(|error| error.to_string().lines().last().unwrap_or("no expression").to_owned())
}

/// Reads a line that modifies: what names rules, an expression and what it is replaced by; or `metadata-add`.
fn edit(line: &str) -> Result<(Matcher, Edit), String> {
    static BRACES: LazyLock<regex::Regex> =
        LazyLock::new(|| regex::Regex::new(r"\$\{(\d+)\}").expect("a constant expression"));
    let words = words(&line.replace("\\$", "$"))?;
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match *words {
        ["metadata-add", rules, key, value] => Ok((matcher(rules)?, Edit::AddMetadata(format!("{key} {value}")))),
        [rules, from, to] | ["modifysid", rules, from, _, to] => {
            let with = BRACES.replace_all(to, r"\$1").into_owned().into_bytes();
            Ok((matcher(rules)?, Edit::Replace(expression(from, false)?, with)))
        }
        _ => Err("wants which rules, what to replace, and by what".into()),
    }
}

/// Words as a shell reads them, with quotes of both kinds.
fn words(line: &str) -> Result<Vec<String>, String> {
    let (mut words, mut word, mut quote) = (Vec::new(), None::<String>, None);
    let mut letters = line.chars();
    while let Some(letter) = letters.next() {
        match (quote, letter) {
            (Some(open), letter) if letter == open => quote = None,
            (Some('"'), '\\') => {
                let next = letters.next().ok_or("nothing behind \\")?;
                let text = word.get_or_insert_default();
                if !matches!(next, '"' | '\\') {
                    text.push('\\');
                }
                text.push(next);
            }
            (None, '"' | '\'') => {
                quote = Some(letter);
                word.get_or_insert_default();
            }
            (None, '\\') => word.get_or_insert_default().push(letters.next().ok_or("nothing behind \\")?),
            (None, letter) if letter.is_whitespace() => words.extend(word.take()),
            (_, letter) => word.get_or_insert_default().push(letter),
        }
    }
    words.extend(word);
    if quote.is_some() { Err("a quotation mark without its other".into()) } else { Ok(words) }
}

/// A replacement as Python reads it: `\1` and `\g<1>` are groups.
fn expanded(with: &[u8], found: &Captures<'_>) -> Vec<u8> {
    let group = |number: usize| found.get(number).map(|group| group.as_bytes()).unwrap_or_default();
    let (mut out, mut rest) = (Vec::new(), with);
    while let Some((&byte, after)) = rest.split_first() {
        rest = after;
        match (byte, after) {
            (b'\\', [digit @ b'0'..=b'9', after @ ..]) => {
                out.extend_from_slice(group(usize::from(digit - b'0')));
                rest = after;
            }
            (b'\\', [b'g', b'<', digit @ b'0'..=b'9', b'>', after @ ..]) => {
                out.extend_from_slice(group(usize::from(digit - b'0')));
                rest = after;
            }
            (b'\\', [b'\\', after @ ..]) => {
                out.push(b'\\');
                rest = after;
            }
            _ => out.push(byte),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    const RULES: &str = "alert tcp any any -> any any (msg:\"one\"; metadata: deployment Perimeter, x y; sid:1; rev:2;)\n\
                         # comment\n\
                         #alert http any any -> any any (msg:\"two\"; \\\n  flowbits:noalert; noalert; sid:2; gid:3;)\n\
                         alert tcp any any -> any any (msg:\"three $X\"; sid:3;)";

    fn changed(change: Change, lines: &str) -> String {
        let mut changes = Changes::default();
        changes.read(change, "a.conf", lines.as_bytes());
        assert_eq!(changes.problems(), []);
        String::from_utf8(changes.apply("/x/emerging-a.rules", RULES.as_bytes())).unwrap()
    }

    /// The numbers of rules that are loaded.
    fn enabled(change: Change, lines: &str) -> String {
        let text = changed(change, lines);
        assert_eq!(text.lines().count(), RULES.lines().count(), "each rule stays in its line");
        let rules = text.lines().filter(|line| line.starts_with("alert") || line.starts_with("drop"));
        rules.filter_map(|rule| Some(rule.split_once("sid:")?.1.split(';').next()?.to_owned() + " ")).collect()
    }

    #[test]
    fn rules_are_named_as_suricata_update_names_them() {
        for (names, left) in [
            ("", "1 3 "),
            ("1", "3 "),
            ("1:1, 3 # both", ""),
            ("1:1:2", "3 "),
            ("1:1:1", "1 3 "),
            ("3:1", "1 3 "),
            ("group:emerging-a", ""),
            ("group:emerging-*", ""),
            ("emerging-a.rules", ""),
            ("emerging-b.rules", "1 3 "),
            ("filename:*/emerging-a.rules", ""),
            ("metadata: deployment perimeter", "3 "),
            ("metadata: deployment other", "1 3 "),
            ("re:MSG:\"t", "1 "),
            ("*", ""),
        ] {
            assert_eq!(enabled(Change::Disable, names), left, "{names}");
        }
        assert_eq!(enabled(Change::Enable, "3:2"), "1 2 3 ");
        assert_eq!(enabled(Change::Enable, "re:two"), "1 2 3 ");
    }

    #[test]
    fn rules_are_dropped_and_modified() {
        let dropped = changed(Change::Drop, "*");
        assert!(dropped.starts_with("drop tcp") && dropped.contains("\ndrop tcp") && dropped.contains("#alert http"));
        let modified = changed(Change::Modify, "1 \"any any -> (\\w+)\" \"10.0.0.1 any -> \\1\"");
        assert!(modified.starts_with("alert tcp 10.0.0.1 any -> any any"), "{modified}");
        let modified = changed(Change::Modify, "modifysid 3 'three \\\\$X' | 'four ${0}'");
        assert!(modified.contains("msg:\"four three $X\""), "{modified}");
        let modified = changed(Change::Modify, "re:. \"^alert\" \"reject\"\nmetadata-add 3 a b");
        assert!(modified.starts_with("reject tcp") && modified.ends_with("sid:3; metadata: a b;)"), "{modified}");
        assert_eq!(changed(Change::Modify, "1 \"sid:1;\" \"\""), RULES, "it is no rule any more");
        let bomb = "* \"msg:\\\"(a+)\\\"\" \"msg:\\\"aa\\\"\"\n".to_owned() + &"1 \"(a+)\" \"\\1\\1\\1\"\n".repeat(40);
        assert!(changed(Change::Modify, &bomb).len() < 2 * RULE_BYTES_MAX);
    }

    #[test]
    fn what_is_not_understood_is_told_and_changes_nothing() {
        let mut changes = Changes::default();
        changes.read(Change::Disable, "disable.conf", b"# ok\n\nnonsense\n1:2:3:4\nre:(?<=x)y\nmetadata: x\n");
        changes.read(Change::Modify, "modify.conf", b"1 \"a\"\n1 \"a\" \"b\n");
        let told: Vec<String> = changes.problems().iter().map(ToString::to_string).collect();
        let places: Vec<u32> = changes.problems().iter().map(|problem| problem.place.line).collect();
        assert_eq!(places, [3, 4, 5, 6, 1, 2], "{told:?}");
        assert!(told[0].contains("disable.conf") && told[0].contains("names no rules: nonsense"), "{told:?}");
        assert!(changes.is_empty());
        assert_eq!(changes.apply("x", RULES.as_bytes()), RULES.as_bytes());
    }
}
