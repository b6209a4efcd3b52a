//! Filters and the answer of who is away, as forms have them, and the Sieve script (RFC 5228) that does them.
//!
//! ```text
//!  #: rule Bills                                       values of the form
//!  #: if subject contains invoice
//!  #: folder Bills
//!  require ["copy", "date", "fileinto", ...];
//!  if allof(header :contains "subject" "invoice") {    the commands for them
//!    fileinto "Bills";
//!  }
//! ```
//! The values stand before all commands, so no text of theirs is taken for one. A script is one of the form if writing its values anew
//! gives the same text; any other is a text, and the form leaves it alone.
//! Bounds: [`RULES_MAX`], [`TESTS_MAX`], [`VALUE_MAX`], [`TEXT_MAX`].

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use text::date::timestamp;

/// Rules of a script.
pub const RULES_MAX: usize = 50;

/// Tests of a rule.
pub const TESTS_MAX: usize = 4;

/// Characters of a value.
pub const VALUE_MAX: usize = 200;

/// Characters of the answer of who is away.
pub const TEXT_MAX: usize = 4_000;

/// The first line of a script.
const HEAD: &str = "# Made by the form of the webmail, which does not know what is changed here.\n";

/// The capabilities of all that is written.
const REQUIRE: &str = "require [\"copy\", \"date\", \"fileinto\", \"imap4flags\", \"relational\", \"vacation\"];\n";

/// The comparator of values beyond ASCII, and the capability for it.
const COMPARATOR: &str = ":comparator \"i;unicode-casemap\" ";
const REQUIRE_COMPARATOR: &str = "require \"comparator-i;unicode-casemap\";\n";

/// The beginning of a line that has a value of the form.
const MARK: &str = "#: ";

/// The answer of who has written none.
const AWAY: &str = "I am away and shall read your mail later.";

/// Days after which the same sender is answered again.
const DAYS: u32 = 7;

/// All that a script does.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Filters {
    /// The answer of who is away.
    pub vacation: Vacation,
    /// Rules, in the order in which they are tried.
    pub rules: Vec<Rule>,
}

/// The answer of who is away.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Vacation {
    /// Whether it is sent.
    pub is_on: bool,
    /// When it begins, seconds since 1970.
    pub from: Option<i64>,
    /// When it has ended.
    pub until: Option<i64>,
    /// Its subject; empty for that of the server.
    pub subject: String,
    /// Its text.
    pub text: String,
}

/// A rule.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Rule {
    /// Its name.
    pub name: String,
    /// Whether one of its tests is enough.
    pub is_any: bool,
    /// Its tests.
    pub tests: Vec<Test>,
    /// The place for the mail.
    pub place: Place,
    /// Whether the mail is marked as read.
    pub is_seen: bool,
    /// Whether it is flagged.
    pub is_flagged: bool,
    /// The address that gets a copy, if there is one.
    pub forward: String,
    /// Whether no later rule is tried.
    pub is_last: bool,
}

impl Rule {
    /// Whether it does something.
    pub fn acts(&self) -> bool {
        self.place != Place::Usual || self.is_seen || self.is_flagged || self.is_last || !self.forward.is_empty()
    }
}

/// A test.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs, reason = "their names say it")]
pub enum Field {
    From,
    To,
    Subject,
    List,
}

/// A way to compare.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs, reason = "their names say it")]
pub enum Match {
    Contains,
    Lacks,
    Is,
}

/// A test of a rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Test {
    /// The field that is compared.
    pub field: Field,
    /// How it is compared.
    pub how: Match,
    /// The value that it is compared with.
    pub value: String,
}

/// The place for a mail.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Place {
    /// Where it comes in without a rule.
    #[default]
    Usual,
    /// A folder.
    Folder(String),
    /// Nowhere.
    Nowhere,
}

impl Field {
    /// All fields, by the words that forms and scripts have for them.
    pub const ALL: [(&'static str, Field); 4] =
        [("from", Field::From), ("to", Field::To), ("subject", Field::Subject), ("list", Field::List)];

    fn headers(self) -> &'static str {
        match self {
            Field::From => "\"from\"",
            Field::To => "[\"to\", \"cc\"]",
            Field::Subject => "\"subject\"",
            Field::List => "\"list-id\"",
        }
    }
}

impl Match {
    /// All ways, by the words that forms and scripts have for them.
    pub const ALL: [(&'static str, Match); 3] =
        [("contains", Match::Contains), ("lacks", Match::Lacks), ("is", Match::Is)];
}

/// The value that a word stands for.
pub fn by_word<T: Copy>(all: &[(&'static str, T)], word: &str) -> Option<T> {
    all.iter().find(|(known, _)| *known == word).map(|(_, value)| *value)
}

/// The word for a value.
pub fn word_of<T: PartialEq>(all: &[(&'static str, T)], value: T) -> &'static str {
    all.iter().find(|(_, known)| *known == value).map_or("", |(word, _)| word)
}

impl Filters {
    /// The script.
    pub fn script(&self) -> String {
        self.written(true)
    }

    /// The script, with the comparator of values beyond ASCII or, as earlier versions wrote it, without.
    fn written(&self, has_comparator: bool) -> String {
        let (mut marks, mut commands) = (String::from(HEAD), String::from(REQUIRE));
        let needs_comparator = |rule: &Rule| rule.tests.iter().any(|test| !test.value.is_ascii());
        if has_comparator && self.rules.iter().any(needs_comparator) {
            commands.push_str(REQUIRE_COMPARATOR);
        }
        self.vacation.write(&mut marks, &mut commands);
        self.rules.iter().for_each(|rule| rule.write(has_comparator, &mut marks, &mut commands));
        marks + &commands
    }

    /// The filters of a script that [`Filters::script`] has written; `None` for any other. An empty one has none.
    pub fn read(script: &str) -> Option<Filters> {
        if script.trim().is_empty() {
            return Some(Filters::default());
        }
        let script = script.replace("\r\n", "\n");
        let mut filters = Filters::default();
        let head = script.lines().take_while(|line| line.starts_with('#'));
        for line in head.filter_map(|line| line.strip_prefix(MARK)) {
            let (word, value) = line.split_once(' ').unwrap_or((line, ""));
            match (word, filters.rules.last_mut()) {
                ("rule", _) => filters.rules.push(Rule { name: value.into(), ..Rule::default() }),
                (_, None) => filters.vacation.read(word, value)?,
                (_, Some(rule)) => rule.read(word, value)?,
            }
        }
        [true, false].into_iter().any(|comparator| filters.written(comparator) == script).then_some(filters)
    }
}

impl Vacation {
    /// The answer of values that are typed, as far as they fit.
    pub fn new(is_on: bool, (from, until): (Option<i64>, Option<i64>), subject: &str, text: &str) -> Vacation {
        Vacation { is_on, from, until, subject: line(subject), text: lines(text) }
    }

    fn read(&mut self, word: &str, value: &str) -> Option<()> {
        match word {
            "away" => self.is_on = value == "on",
            "from" => self.from = Some(value.parse().ok()?),
            "until" => self.until = Some(value.parse().ok()?),
            "subject" => self.subject = value.into(),
            "text" => self.text = unescaped(value),
            _ => return None,
        }
        Some(())
    }

    fn write(&self, marks: &mut String, commands: &mut String) {
        if *self == Vacation::default() {
            return;
        }
        let Vacation { is_on, from, until, subject, text } = self;
        marks.push_str(&format!("{MARK}away {}\n", if *is_on { "on" } else { "off" }));
        for (word, time) in [("from", from), ("until", until)] {
            if let Some(time) = time {
                marks.push_str(&format!("{MARK}{word} {time}\n"));
            }
        }
        if !subject.is_empty() {
            marks.push_str(&format!("{MARK}subject {subject}\n"));
        }
        marks.push_str(&format!("{MARK}text {}\n", escaped(text)));
        if *is_on {
            commands.push_str(&self.command());
        }
    }

    fn command(&self) -> String {
        let limit = |(how, time): (&str, Option<i64>)| {
            let time = timestamp(time?);
            Some(format!("currentdate :zone \"+0000\" :value \"{how}\" \"iso8601\" \"{time}\""))
        };
        let limits: Vec<String> = [("ge", self.from), ("lt", self.until)].into_iter().filter_map(limit).collect();
        let subject = match self.subject.as_str() {
            "" => String::new(),
            subject => format!(" :subject {}", quoted(subject)),
        };
        let text = if self.text.is_empty() { AWAY } else { self.text.as_str() };
        let command = format!("vacation :days {DAYS}{subject} {};\n", quoted(text));
        match limits.is_empty() {
            true => command,
            false => format!("if allof({}) {{\n  {command}}}\n", limits.join(", ")),
        }
    }
}

impl Rule {
    fn read(&mut self, word: &str, value: &str) -> Option<()> {
        match word {
            "any" => self.is_any = true,
            "if" => self.tests.push(Test::read(value)?),
            "folder" => self.place = Place::Folder(value.into()),
            "nowhere" => self.place = Place::Nowhere,
            "seen" => self.is_seen = true,
            "flagged" => self.is_flagged = true,
            "forward" => self.forward = value.into(),
            "last" => self.is_last = true,
            _ => return None,
        }
        Some(())
    }

    fn write(&self, has_comparator: bool, marks: &mut String, commands: &mut String) {
        let tests: Vec<String> = self.tests.iter().map(|test| test.command(has_comparator)).collect();
        let how = if self.is_any { "anyof" } else { "allof" };
        marks.push_str(&format!("{MARK}rule {}\n", self.name));
        commands.push_str(&format!("if {how}({}) {{\n", tests.join(", ")));
        let mut add = |is_wanted: bool, mark: String, command: &str| {
            if is_wanted {
                marks.push_str(&format!("{MARK}{mark}\n"));
                commands.push_str(command);
            }
        };
        add(self.is_any, "any".into(), "");
        self.tests.iter().for_each(|test| add(true, test.mark(), ""));
        add(self.is_seen, "seen".into(), "  addflag \"\\\\Seen\";\n");
        add(self.is_flagged, "flagged".into(), "  addflag \"\\\\Flagged\";\n");
        let forward = format!("  redirect :copy {};\n", quoted(&self.forward));
        add(!self.forward.is_empty(), format!("forward {}", self.forward), &forward);
        match &self.place {
            Place::Usual => {}
            Place::Folder(name) => add(true, format!("folder {name}"), &format!("  fileinto {};\n", quoted(name))),
            Place::Nowhere => add(true, "nowhere".into(), "  discard;\n"),
        }
        add(self.is_last, "last".into(), "  stop;\n");
        commands.push_str("}\n");
    }
}

impl Test {
    fn read(text: &str) -> Option<Test> {
        let mut words = text.splitn(3, ' ');
        let (field, how) = (by_word(&Field::ALL, words.next()?)?, by_word(&Match::ALL, words.next()?)?);
        Some(Test { field, how, value: words.next()?.into() })
    }

    fn mark(&self) -> String {
        format!("if {} {} {}", word_of(&Field::ALL, self.field), word_of(&Match::ALL, self.how), self.value)
    }

    fn command(&self, has_comparator: bool) -> String {
        let (headers, value) = (self.field.headers(), quoted(&self.value));
        let by = if has_comparator && !self.value.is_ascii() { COMPARATOR } else { "" };
        match self.how {
            Match::Contains => format!("header {by}:contains {headers} {value}"),
            Match::Lacks => format!("not header {by}:contains {headers} {value}"),
            Match::Is if matches!(self.field, Field::From | Field::To) => format!("address {by}:is {headers} {value}"),
            Match::Is => format!("header {by}:is {headers} {value}"),
        }
    }
}

/// A text as a string of Sieve.
fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

/// A text on one line.
fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('\n', "\\n")
}

fn unescaped(line: &str) -> String {
    let (mut out, mut characters) = (String::with_capacity(line.len()), line.chars());
    while let Some(character) = characters.next() {
        match character {
            '\\' => out.extend(characters.next().map(|next| if next == 'n' { '\n' } else { next })),
            character => out.push(character),
        }
    }
    out
}

/// A value of a form on one line, without what nobody sees.
pub(crate) fn line(text: &str) -> String {
    let text: String = text.chars().filter(|&c| !text::hazard::is_hazard(c)).take(VALUE_MAX).collect();
    text.trim().to_string()
}

/// A text of a form.
pub(crate) fn lines(text: &str) -> String {
    let is_kept = |&c: &char| c == '\n' || c == '\t' || !c.is_control();
    let text: String = text.replace("\r\n", "\n").chars().filter(is_kept).take(TEXT_MAX).collect();
    text.trim_end().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filters() -> Filters {
        let hostile = "\"; discard; #: rule x \\ ${a} */";
        let test = |field, how, value: &str| Test { field, how, value: value.into() };
        Filters {
            vacation: Vacation {
                is_on: true,
                from: Some(1_796_083_200),
                until: Some(1_796_688_000),
                subject: hostile.into(),
                text: format!("I am away.\n.\n#: rule evil\n\"; stop;\n\\n{hostile}\n\tBye"),
            },
            rules: [
                Rule {
                    name: hostile.into(),
                    is_any: true,
                    tests: [
                        test(Field::From, Match::Contains, hostile),
                        test(Field::To, Match::Is, "ann@x.example"),
                        test(Field::Subject, Match::Lacks, "a  b"),
                        test(Field::List, Match::Is, ""),
                    ]
                    .into(),
                    place: Place::Folder(hostile.into()),
                    is_seen: true,
                    is_flagged: true,
                    forward: "bob@x.example".into(),
                    is_last: true,
                },
                Rule {
                    tests: [test(Field::Subject, Match::Contains, "x")].into(),
                    place: Place::Nowhere,
                    ..Rule::default()
                },
            ]
            .into(),
        }
    }

    #[test]
    fn a_script_of_the_form_comes_back_and_a_changed_one_does_not() {
        let filters = filters();
        let script = filters.script();
        assert_eq!(Filters::read(&script).as_ref(), Some(&filters), "{script}");
        assert_eq!(Filters::read(&script.replace('\n', "\r\n")).as_ref(), Some(&filters));
        assert_eq!(Filters::read(" \r\n"), Some(Filters::default()));
        assert_eq!(Filters::read(&Filters::default().script()), Some(Filters::default()));
        for at in (0..script.len()).filter(|&at| script.is_char_boundary(at)) {
            let changed = format!("{} {}", &script[..at], &script[at..]);
            let read = Filters::read(&changed);
            assert!(read.is_none_or(|read| read != filters && read.script() == changed), "{changed}");
            let _ = Filters::read(&script[..at]);
        }
        for other in ["keep;", "#: x", "#: if a", "require \"fileinto\";\n#: rule x\nif true { discard; }"] {
            assert_eq!(Filters::read(other), None, "{other}");
        }
    }

    #[test]
    fn values_beyond_ascii_are_compared_in_any_case() {
        let test = Test { field: Field::From, how: Match::Contains, value: "j\u{f6}rg".into() };
        let rule = Rule { tests: [test].into(), is_seen: true, ..Rule::default() };
        let filters = Filters { rules: [rule].into(), ..Filters::default() };
        let script = filters.script();
        assert!(script.contains("header :comparator \"i;unicode-casemap\" :contains \"from\""), "{script}");
        assert_eq!(Filters::read(&script).as_ref(), Some(&filters));
        let before = filters.written(false);
        assert!(!before.contains("comparator"), "{before}");
        assert_eq!(Filters::read(&before), Some(filters));
    }

    #[test]
    fn what_is_off_stays_and_does_nothing() {
        let mut filters = filters();
        filters.vacation.is_on = false;
        let script = filters.script();
        assert!(!script.contains("\nvacation") && !script.contains("  vacation"), "{script}");
        assert_eq!(Filters::read(&script), Some(filters));
    }

    #[test]
    fn values_of_a_form_are_of_one_line() {
        assert_eq!(line(" a\r\n#: rule b\u{202e} "), "a#: rule b");
        assert_eq!(lines("a\r\nb\u{0}\r\n\r\n"), "a\nb");
    }
}
