//! Rules of a mount: what holds for which files.
//!
//! One rule a line, the first that matches counts; without one, what was set for the whole mount. A line is conditions, all of
//! which have to hold, and what is done:
//!
//! ```text
//! # a comment
//! path=/databases/ user=postgres            skip
//! type=iso,dmg size>4G                      skip
//! path=*.exe                                mode=full on-infected=deferred
//! ```
//!
//! Whether a file is skipped is decided when it is opened, and the rest when it is first changed. A file that has several names
//! is skipped by no rule that asks for its path: it would be read uninspected by the one name and trusted by the other.
//!
//! Bounds: [`RULES_MAX`] rules; a path is compared in time proportional to its length and the pattern's.

use std::fmt;

use crate::node::{Mode, OnInfected};

/// The most rules.
const RULES_MAX: usize = 1000;

/// Ruling for a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Ruling {
    /// Whether matching files are not inspected.
    pub skips: bool,
    /// When it is inspected.
    pub mode: Mode,
    /// Action for a hit.
    pub on_infected: OnInfected,
}

/// Facts about a file for the rules.
pub struct Subject<'a> {
    /// Its path below the folder that is mounted, which begins with `/`; nothing if it has none any more.
    pub path: Option<&'a [u8]>,
    /// How many names it has.
    pub names: u32,
    /// Its size in bytes.
    pub size: u64,
    /// The user who opens or changes it.
    pub user: u32,
    /// Type of its content.
    pub kind: &'a dyn Fn() -> &'static str,
}

/// Meaning of names in rules.
pub struct Words<'a> {
    /// The number of a user.
    pub user: &'a dyn Fn(&str) -> Result<u32, String>,
    /// Whether there is such a type.
    pub is_kind: &'a dyn Fn(&str) -> bool,
}

/// A line that is no rule.
#[derive(Debug, PartialEq, Eq)]
pub struct Wrong {
    /// Its number, from 1.
    pub line: usize,
    /// The reason, in words.
    pub reason: String,
}

impl fmt::Display for Wrong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.line, self.reason)
    }
}

/// All rules of a mount.
#[derive(Debug, Default)]
pub struct Rules(Vec<Rule>);

#[derive(Debug)]
struct Rule {
    conditions: Vec<Condition>,
    skips: bool,
    mode: Option<Mode>,
    on_infected: Option<OnInfected>,
}

#[derive(Debug)]
enum Condition {
    Path(Pattern),
    Kind(Vec<String>),
    Larger(u64),
    Smaller(u64),
    User(Vec<u32>),
}

impl Rules {
    /// Reads them.
    ///
    /// # Errors
    /// The first line that is no rule, or that is never reached.
    pub fn read(text: &str, words: &Words<'_>) -> Result<Rules, Wrong> {
        let mut rules: Vec<Rule> = Vec::new();
        for (number, line) in text.lines().enumerate() {
            let wrong = |reason: String| Wrong { line: number + 1, reason };
            let parts = parts(line);
            if parts.first().is_none_or(|part| part.starts_with('#')) {
                continue;
            }
            if rules.last().is_some_and(|last| last.conditions.is_empty()) {
                return Err(wrong("never reached: a rule before it is for all files".into()));
            }
            if rules.len() >= RULES_MAX {
                return Err(wrong(format!("more than {RULES_MAX} rules")));
            }
            rules.push(Rule::read(&parts, words).map_err(wrong)?);
        }
        Ok(Rules(rules))
    }

    /// Whether there is no rule.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether one keeps evidence.
    pub fn defers(&self) -> bool {
        self.0.iter().any(|rule| rule.on_infected == Some(OnInfected::Deferred))
    }

    /// The ruling for a file; `otherwise` without a matching rule.
    pub fn ruling(&self, subject: &Subject<'_>, otherwise: Ruling) -> Ruling {
        let Some(rule) = self.0.iter().find(|rule| rule.matches(subject)) else { return otherwise };
        Ruling {
            skips: rule.skips,
            mode: rule.mode.unwrap_or(otherwise.mode),
            on_infected: rule.on_infected.unwrap_or(otherwise.on_infected),
        }
    }
}

/// Words of a line; a backslash keeps a space in a word.
fn parts(line: &str) -> Vec<String> {
    let (mut parts, mut part, mut is_kept) = (Vec::new(), String::new(), false);
    for c in line.chars() {
        if c.is_whitespace() && !is_kept {
            parts.push(std::mem::take(&mut part));
        } else {
            part.push(c);
        }
        is_kept = c == '\\' && !is_kept;
    }
    parts.push(part);
    parts.retain(|part| !part.is_empty());
    parts
}

impl Rule {
    fn read(parts: &[String], words: &Words<'_>) -> Result<Rule, String> {
        let mut rule = Rule { conditions: Vec::new(), skips: false, mode: None, on_infected: None };
        for part in parts {
            let at = part.find(['=', '<', '>']).unwrap_or(part.len());
            let (key, value) = part.split_at(at);
            let sign = value.chars().next();
            let value = value.get(1..).unwrap_or("");
            match (key, sign, value) {
                ("skip", None, _) => rule.skips = true,
                ("mode", Some('='), "regular") => set(&mut rule.mode, Mode::Regular, key)?,
                ("mode", Some('='), "full") => set(&mut rule.mode, Mode::Full, key)?,
                ("mode", Some('='), "skip") => rule.skips = true,
                ("on-infected", Some('='), "immediate") => set(&mut rule.on_infected, OnInfected::Immediate, key)?,
                ("on-infected", Some('='), "deferred") => set(&mut rule.on_infected, OnInfected::Deferred, key)?,
                ("mode", ..) => return Err(format!("{part:?}: mode=regular, mode=full or skip")),
                ("on-infected", ..) => return Err(format!("{part:?}: on-infected=immediate or on-infected=deferred")),
                _ => rule
                    .conditions
                    .push(Condition::read(key, sign, value, words).map_err(|why| format!("{part:?}: {why}"))?),
            }
        }
        let decides = rule.mode.is_some() || rule.on_infected.is_some();
        match (rule.skips, decides) {
            (true, true) => Err("a rule with skip has no mode".into()),
            (false, false) => Err("nothing is done: skip, mode=... or on-infected=...".into()),
            _ => Ok(rule),
        }
    }

    fn matches(&self, subject: &Subject<'_>) -> bool {
        let is_path = |condition: &Condition| matches!(condition, Condition::Path(_));
        if self.skips && subject.names > 1 && self.conditions.iter().any(is_path) {
            return false;
        }
        self.conditions.iter().all(|condition| condition.holds(subject))
    }
}

fn set<T>(place: &mut Option<T>, value: T, key: &str) -> Result<(), String> {
    match place.replace(value) {
        None => Ok(()),
        Some(_) => Err(format!("{key} twice")),
    }
}

impl Condition {
    fn read(key: &str, sign: Option<char>, value: &str, words: &Words<'_>) -> Result<Condition, String> {
        let all = || value.split(',').map(str::to_owned);
        match (key, sign) {
            ("path" | "type" | "user", Some('=')) if value.is_empty() => Err("nothing behind =".into()),
            ("path", Some('=')) => Ok(Condition::Path(Pattern::new(value))),
            ("type", Some('=')) => match all().find(|kind| !(words.is_kind)(kind)) {
                Some(unknown) => Err(format!("there is no type {unknown:?}")),
                None => Ok(Condition::Kind(all().collect())),
            },
            ("user", Some('=')) => {
                Ok(Condition::User(all().map(|user| (words.user)(&user)).collect::<Result<_, _>>()?))
            }
            ("size", Some('>')) => Ok(Condition::Larger(size(value)?)),
            ("size", Some('<')) => Ok(Condition::Smaller(size(value)?)),
            _ => Err("not path=, type=, user=, size>, size<, skip, mode= or on-infected=".into()),
        }
    }

    fn holds(&self, subject: &Subject<'_>) -> bool {
        match self {
            Condition::Path(pattern) => subject.path.is_some_and(|path| pattern.matches(path)),
            Condition::Kind(kinds) => kinds.iter().any(|kind| kind == (subject.kind)()),
            Condition::Larger(size) => subject.size > *size,
            Condition::Smaller(size) => subject.size < *size,
            Condition::User(users) => users.contains(&subject.user),
        }
    }
}

/// `4096`, `64K`, `10M`, `4G`, `1T`.
fn size(text: &str) -> Result<u64, String> {
    let wrong = || format!("{text:?} is not a size: a number, and K, M, G or T behind it");
    let digits = text.trim_end_matches(['K', 'M', 'G', 'T']);
    let unit = match &text[digits.len()..] {
        "" => 1,
        "K" => 1 << 10,
        "M" => 1 << 20,
        "G" => 1 << 30,
        "T" => 1 << 40,
        _ => return Err(wrong()),
    };
    let count: u64 = digits.parse().map_err(|_| wrong())?;
    count.checked_mul(unit).ok_or_else(wrong)
}

/// A pattern of paths.
#[derive(Debug)]
struct Pattern(Vec<Sign>);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sign {
    This(u8),
    /// `?`
    One,
    /// `*`: any but a slash.
    Some,
    /// `**`
    Any,
}

impl Pattern {
    /// `/` at the beginning: from the folder that is mounted on; without it, at any depth. `/` at the end: all below.
    fn new(text: &str) -> Pattern {
        let mut signs = if text.starts_with('/') { Vec::new() } else { vec![Sign::Any, Sign::This(b'/')] };
        let mut rest = text.as_bytes();
        while let [first, behind @ ..] = rest {
            let (sign, behind) = match (*first, behind) {
                (b'\\', [kept, behind @ ..]) => (Sign::This(*kept), behind),
                (b'*', [b'*', behind @ ..]) => (Sign::Any, behind),
                (b'*', behind) => (Sign::Some, behind),
                (b'?', behind) => (Sign::One, behind),
                (byte, behind) => (Sign::This(byte), behind),
            };
            signs.push(sign);
            rest = behind;
        }
        if text.ends_with('/') {
            signs.push(Sign::Any);
        }
        Pattern(signs)
    }

    /// All places of the pattern that the path so far may lead to, byte after byte.
    fn matches(&self, path: &[u8]) -> bool {
        let Pattern(signs) = self;
        let start = |places: &mut [bool]| {
            for (at, sign) in signs.iter().enumerate() {
                places[at + 1] |= places[at] && matches!(sign, Sign::Some | Sign::Any);
            }
        };
        let mut places = vec![false; signs.len() + 1];
        places[0] = true;
        start(&mut places);
        for &byte in path {
            let mut next = vec![false; signs.len() + 1];
            for (at, sign) in signs.iter().enumerate().filter(|(at, _)| places[*at]) {
                match sign {
                    Sign::This(wanted) => next[at + 1] |= *wanted == byte,
                    Sign::One => next[at + 1] |= byte != b'/',
                    Sign::Some => next[at] |= byte != b'/',
                    Sign::Any => next[at] = true,
                }
            }
            start(&mut next);
            places = next;
        }
        places[signs.len()]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Rules, Wrong> {
        let user = |name: &str| match name {
            "postgres" => Ok(70),
            number => number.parse().map_err(|_| format!("there is no user {number:?}")),
        };
        Rules::read(text, &Words { user: &user, is_kind: &|kind| ["iso", "zip"].contains(&kind) })
    }

    fn of(path: &str, size: u64, user: u32) -> Subject<'_> {
        Subject { path: Some(path.as_bytes()), names: 1, size, user, kind: &|| "iso" }
    }

    #[test]
    fn the_first_that_matches_counts() {
        let text = "# what is large\n\npath=*.iso size>4G skip\npath=/db/ user=postgres,71  skip\n\
                    type=iso mode=full\n user=5 on-infected=deferred\n";
        let rules = read(text).expect("rules");
        assert!(rules.defers());
        let ruling = |subject: Subject<'_>| rules.ruling(&subject, Ruling::default());
        assert!(ruling(of("/a/b.iso", (4 << 30) + 1, 0)).skips);
        assert!(!ruling(of("/a/b.iso", 4 << 30, 0)).skips);
        assert!(ruling(of("/db/base/1", 1, 71)).skips);
        assert!(!ruling(of("/db/base/1", 1, 72)).skips);
        assert!(!ruling(of("/a/db/base/1", 1, 71)).skips);
        assert_eq!(ruling(of("/x", 1, 5)).mode, Mode::Full);
        let text = Subject { kind: &|| "text", ..of("/x", 1, 5) };
        assert_eq!(ruling(text), Ruling { on_infected: OnInfected::Deferred, ..Ruling::default() });
        // By another name it may be trusted.
        assert!(!ruling(Subject { names: 2, ..of("/db/base/1", 1, 71) }).skips);
        assert!(!ruling(Subject { path: None, ..of("", 1, 71) }).skips);
    }

    #[test]
    fn patterns_are_of_paths() {
        for (pattern, path, matches) in [
            ("*.exe", "/a/b/x.exe", true),
            ("*.exe", "/a/x.exe/b", false),
            ("/a/*.exe", "/a/x.exe", true),
            ("/a/*.exe", "/a/b/x.exe", false),
            ("/a/**.exe", "/a/b/x.exe", true),
            ("tmp/", "/a/tmp/b/c", true),
            ("tmp/", "/a/tmp", false),
            ("mp/", "/a/tmp/b", false),
            ("?b", "/ab", true),
            ("?b", "/a/b", false),
            (r"a\*b", "/a*b", true),
            (r"a\*b", "/axb", false),
            (r"a\ b", "/a b", true),
            ("**", "/anything/at/all", true),
            ("/", "/anything", true),
        ] {
            assert_eq!(Pattern::new(pattern).matches(path.as_bytes()), matches, "{pattern} {path}");
        }
        // Many stars take no longer than their number.
        assert!(!Pattern::new(&"*a".repeat(50)).matches(&[b'a'; 4000].map(|_| b'b')));
    }

    #[test]
    fn a_line_that_is_no_rule_is_named() {
        for (text, line, reason) in [
            ("path=a", 1, "nothing is done"),
            ("\nskip mode=full", 2, "has no mode"),
            ("mode=slow", 1, "mode=regular"),
            ("size=4 skip", 1, "not path="),
            ("size>4X skip", 1, "not a size"),
            ("size>99999999999G skip", 1, "not a size"),
            ("user=alice skip", 1, "there is no user"),
            ("user= skip", 1, "nothing behind"),
            ("type=isa skip", 1, "there is no type"),
            ("mode=full mode=regular", 1, "twice"),
            ("mode=full\nskip", 2, "never reached"),
        ] {
            let wrong = read(text).expect_err(text);
            assert!(wrong.line == line && wrong.reason.contains(reason), "{text}: {wrong}");
        }
        assert!(read("path=a\\ b skip").is_ok());
    }
}
