//! Rules as they were read, and everything else that a configuration says.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::problem::{Place, Problem, Severity};
use super::syntax::call::Call;
use super::syntax::dns::{AskDns, UriList};
use super::syntax::expression::Expression;
use super::syntax::field::HeaderTest;
use super::syntax::flags::Flags;
use super::syntax::meta::Meta;
use super::syntax::value::Value;
use super::template::Templates;

/// View of a message that an expression or a function reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum View {
    /// The header.
    Header,
    /// The text as it is shown, paragraph by paragraph, the subject first.
    Body,
    /// Decoded text parts, in pieces.
    Rawbody,
    /// The whole message as it came.
    Full,
    /// Each URI.
    Uri,
}

impl View {
    /// The view's keyword.
    pub fn name(self) -> &'static str {
        match self {
            View::Header => "header",
            View::Body => "body",
            View::Rawbody => "rawbody",
            View::Full => "full",
            View::Uri => "uri",
        }
    }
}

/// Test of a rule.
#[derive(Debug, Clone, PartialEq)]
pub enum Test {
    /// A header field of the message.
    Header(HeaderTest),
    /// A header field of one of its parts.
    MimeHeader(HeaderTest),
    /// An expression over a view.
    Pattern(View, Expression),
    /// A function over a view.
    Eval(View, Call),
    /// Test of a URI and its link by `uri_detail`, as written.
    UriDetail(Box<[u8]>),
    /// A question to the DNS.
    AskDns(AskDns),
    /// Other rules.
    Meta(Meta),
    /// Nothing: the name is there, and something else may make it hit.
    Placeholder,
}

/// The kinds of rules, as SpamAssassin counts them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// An expression over a view, or the existence of a header field.
    Pattern(View),
    /// A function over a view.
    Eval(View),
    /// A function that asks lists in the DNS about hosts.
    Rbl,
    /// An expression over a header field of a part.
    MimeHeader,
    /// An expression over parts of a URI.
    UriDetail,
    /// Other rules.
    Meta,
    /// Nothing, `askdns` among it.
    Placeholder,
}

impl Kind {
    /// The name of a kind, in words that can stand in JSON.
    pub fn name(self) -> String {
        match self {
            Kind::Pattern(view) => view.name().into(),
            Kind::Eval(view) => format!("{}_eval", view.name()),
            Kind::Rbl => "rbl_eval".into(),
            Kind::MimeHeader => "mimeheader".into(),
            Kind::UriDetail => "uri_detail".into(),
            Kind::Meta => "meta".into(),
            Kind::Placeholder => "placeholder".into(),
        }
    }
}

impl Test {
    /// Its kind.
    pub fn kind(&self) -> Kind {
        match self {
            Test::Header(_) => Kind::Pattern(View::Header),
            Test::MimeHeader(_) => Kind::MimeHeader,
            Test::Pattern(view, _) => Kind::Pattern(*view),
            Test::Eval(View::Header, call) if call.is_rbl() => Kind::Rbl,
            Test::Eval(view, _) => Kind::Eval(*view),
            Test::UriDetail(_) => Kind::UriDetail,
            Test::AskDns(_) | Test::Placeholder => Kind::Placeholder,
            Test::Meta(_) => Kind::Meta,
        }
    }

    /// Its expression, if there is one.
    pub fn expression(&self) -> Option<&Expression> {
        match self {
            Test::Header(HeaderTest::Matches { expression, .. })
            | Test::MimeHeader(HeaderTest::Matches { expression, .. })
            | Test::Pattern(_, expression) => Some(expression),
            _ => None,
        }
    }

    /// Its expression, where tags may be replaced in it: not in one over parts.
    pub(super) fn replaceable(&mut self) -> Option<&mut Expression> {
        match self {
            Test::Header(HeaderTest::Matches { expression, .. }) | Test::Pattern(_, expression) => Some(expression),
            _ => None,
        }
    }
}

/// Rule that hits where another has ended a check.
pub const SHORTCIRCUIT: &str = "SHORTCIRCUIT";

/// Classification of a mail whose check a rule has ended (`shortcircuit`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// By the score of the rule.
    Score,
    /// Ham, with the points of `shortcircuit_ham_score`.
    Ham,
    /// Spam, with the points of `shortcircuit_spam_score`.
    Spam,
}

/// Facts about a rule's name. A name without a test has a score, a flag or the like and no definition.
#[derive(Debug, Clone, Default)]
pub struct Rule {
    /// The name.
    pub name: Box<str>,
    /// Test: the last definition counts.
    pub test: Option<Test>,
    /// Where that stands, or else the first line that names it.
    pub place: Place,
    /// Scores of `score`, one for each score set.
    pub given_scores: Option<[f64; 4]>,
    /// Flags of `tflags`.
    pub flags: Flags,
    /// Priority of `priority`.
    pub given_priority: Option<i64>,
    /// Text of `describe`.
    pub description: Option<Box<[u8]>>,
    /// Prefix for the subject.
    pub subject_prefix: Option<Box<[u8]>>,
    /// The list that a rule with `check_uridnsbl` asks.
    pub uri_list: Option<UriList>,
    /// Classification of `shortcircuit`: a hit ends the check.
    pub shortcircuit: Option<Ending>,
    /// The names that it had in the results of others.
    pub reused: Vec<Box<str>>,
    /// A meta that asks the network since one of those does that it is made of.
    pub inherits_net: bool,
}

impl Rule {
    /// The scores, one for each score set: what is given, or 1, or 0.01 where the name begins with `T_`; negative where
    /// the rule is `nice`.
    pub fn scores(&self) -> [f64; 4] {
        self.given_scores.unwrap_or_else(|| {
            let score = if self.name.starts_with("T_") { 0.01 } else { 1.0 };
            [if self.flags.has("nice") { -score } else { score }; 4]
        })
    }

    /// The priority: what is given, or 0. What captures tags for other rules comes before these.
    pub fn priority(&self) -> i64 {
        const CAPTURING: i64 = -10_000;
        let captures = self.test.as_ref().and_then(Test::expression).is_some_and(Expression::captures_tag);
        self.given_priority.unwrap_or(if captures { CAPTURING } else { 0 })
    }

    /// Whether it is part of metas only: it has no score of its own.
    pub fn is_subrule(&self) -> bool {
        self.name.starts_with("__")
    }

    /// Whether it asks the network, by its flags or by what it is made of.
    pub fn is_net(&self) -> bool {
        self.inherits_net || self.flags.has("net")
    }
}

/// A setting that is no rule.
#[derive(Debug, Clone, PartialEq)]
pub struct Setting {
    /// Its name, as this version writes it.
    pub name: Box<str>,
    /// Its value.
    pub value: Value,
    /// Where it stands.
    pub place: Place,
}

/// A test of a rule: `test NAME ok TEXT`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedTest {
    /// The rule.
    pub rule: Box<str>,
    /// Whether the text has to match.
    pub ok: bool,
    /// The text.
    pub text: Box<[u8]>,
    /// Where it stands.
    pub place: Place,
}

/// A configuration that was read.
#[derive(Debug, Clone, Default)]
pub struct Rules {
    pub(super) rules: Vec<Rule>,
    pub(super) index: HashMap<Box<str>, u32>,
    /// Settings in the order in which they were read; the last of a name counts, or all for those that are lists.
    pub settings: Vec<Setting>,
    /// Templates written into messages.
    pub templates: Templates,
    /// Tests of rules.
    pub self_tests: Vec<NamedTest>,
    /// Versions of the rules that `sa-update` brings, by file.
    pub versions: BTreeMap<Box<str>, String>,
    /// Plugins that were loaded.
    pub plugins: BTreeSet<&'static str>,
    /// Lines that are meant for a language, and were not read.
    pub translated: u64,
    /// Lines whose condition does not hold.
    pub skipped: u64,
    /// Files that were read, those that are included among them.
    pub files: u64,
    pub(super) problems: Vec<Problem>,
    /// Problems beyond those that are kept.
    pub problems_left_out: u64,
    pub(super) errors: u64,
}

impl Rules {
    /// All names, in the order in which they were first read.
    pub fn names(&self) -> &[Rule] {
        &self.rules
    }

    /// The rules that have a test.
    pub fn live(&self) -> impl Iterator<Item = &Rule> {
        self.rules.iter().filter(|rule| rule.test.is_some())
    }

    /// The rule of a name.
    pub fn get(&self, name: &str) -> Option<&Rule> {
        self.index.get(name).and_then(|&id| self.rules.get(id as usize))
    }

    /// The number of a rule: its place in [`names`](Rules::names).
    pub fn id(&self, name: &str) -> Option<u32> {
        self.index.get(name).copied()
    }

    /// The last value of a setting.
    pub fn setting(&self, name: &str) -> Option<&Value> {
        self.settings.iter().rev().find(|setting| *setting.name == *name).map(|setting| &setting.value)
    }

    /// From which score on a message is spam.
    pub fn required_score(&self) -> f64 {
        match self.setting("required_score") {
            Some(&Value::Number(score)) => score,
            _ => 5.0,
        }
    }

    /// Errors, by file and line.
    pub fn problems(&self) -> &[Problem] {
        &self.problems
    }

    /// How many of the problems are errors, those that are left out among them.
    pub fn errors(&self) -> u64 {
        self.errors
    }

    /// Adds a problem, within bounds.
    pub(super) fn report(&mut self, problem: Problem, problems_max: usize) {
        self.errors += u64::from(problem.severity == Severity::Error);
        if self.problems.len() < problems_max {
            self.problems.push(problem);
        } else {
            self.problems_left_out += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_without_a_score_has_one_by_its_name_and_flags() {
        let rule = |name: &str, flags: &str| Rule {
            name: name.into(),
            flags: Flags::read(flags.as_bytes()),
            ..Rule::default()
        };
        assert_eq!(rule("A", "").scores(), [1.0; 4]);
        assert_eq!(rule("T_A", "net").scores(), [0.01; 4]);
        assert_eq!(rule("A", "nice").scores(), [-1.0; 4]);
        assert_eq!(rule("T_A", "nice").scores(), [-0.01; 4]);
        assert!(rule("__A", "").is_subrule());
    }
}
