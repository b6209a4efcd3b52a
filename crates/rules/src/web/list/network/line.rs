//! A line of an Adblock list: its pattern and its options.

use std::borrow::Cow;

use pattern::expression::{Expression, Flags};

use super::options::Options;
use super::pattern::Pattern;
use super::refusal::Refusal;
use crate::web::list::FLAGS;
use crate::web::url::in_ascii;

#[derive(Debug)]
pub(super) enum Matcher {
    Pattern(Pattern),
    /// `/.../`
    Expression(Expression),
}

#[derive(Debug)]
pub(super) struct Line {
    pub is_exception: bool,
    /// It takes away the rule that is the same without `badfilter`.
    pub takes_away: bool,
    pub matcher: Matcher,
    pub options: Options,
    /// The rule without `badfilter`, its options in order.
    pub canonical: String,
}

impl Line {
    /// Reads a line; `None` where it is empty or a comment.
    pub fn read(line: &str) -> Result<Option<Line>, Refusal> {
        let line = line.trim();
        let is_header = line.starts_with('[') && line.ends_with(']') && !line.contains('#');
        if line.is_empty() || line.starts_with('!') || is_header || line == "#" || line.starts_with("# ") {
            return Ok(None);
        }
        if hides(line) {
            return Err(Refusal::Hides);
        }
        Line::rule(line).map(Some)
    }

    fn rule(line: &str) -> Result<Line, Refusal> {
        let (is_exception, rule) = line.strip_prefix("@@").map_or((false, line), |rule| (true, rule));
        let (pattern, options) = split(rule);
        let mut texts: Vec<&str> = options.split(',').filter(|text| !text.is_empty()).collect();
        let count = texts.len();
        texts.retain(|text| *text != "badfilter");
        let takes_away = texts.len() < count;
        texts.sort_unstable();
        let canonical = format!("{is_exception} {pattern} {}", texts.join(","));
        let mut options = Options::read(&texts)?;
        let matcher = match expression(pattern) {
            Some(text) => {
                let flags = Flags { ignore_case: !options.has_case, ..FLAGS };
                Matcher::Expression(Expression::new(text.as_bytes(), flags).map_err(|_| Refusal::Unknown)?)
            }
            None => {
                let pattern = with_mapped_host(pattern);
                if pattern.contains([' ', '\t']) || !pattern.is_ascii() {
                    return Err(Refusal::Unknown);
                }
                Matcher::Pattern(Pattern::read(&pattern, options.has_case))
            }
        };
        let pattern = match &matcher {
            Matcher::Pattern(pattern) => Some(pattern),
            Matcher::Expression(_) => None,
        };
        if texts.is_empty() && pattern.is_some_and(Pattern::is_empty) {
            return Err(Refusal::Unknown);
        }
        options.default_to(pattern.is_some_and(Pattern::is_of_host));
        Ok(Line { is_exception, takes_away, matcher, options, canonical })
    }
}

/// A pattern with the host behind `||` in ASCII.
fn with_mapped_host(pattern: &str) -> Cow<'_, str> {
    match pattern.strip_prefix("||").filter(|_| !pattern.is_ascii()) {
        Some(rest) => {
            let end = rest.find(['/', '^', ':', '?', '*', '|']).unwrap_or(rest.len());
            Cow::Owned(format!("||{}{}", in_ascii(&rest[..end]), &rest[end..]))
        }
        None => Cow::Borrowed(pattern),
    }
}

/// The text between the slashes of an expression.
fn expression(pattern: &str) -> Option<&str> {
    pattern.strip_prefix('/')?.strip_suffix('/').filter(|text| !text.is_empty())
}

/// Whether a line is about elements of pages: `##`, `#@#`, `#?#`, `$$` and others.
fn hides(line: &str) -> bool {
    let mut rest = line;
    while let Some((_, after)) = rest.split_once('#') {
        let mark = after.trim_start_matches(['@', '?', '$', '%']);
        if mark.starts_with('#') && after.len() - mark.len() <= 3 {
            return true;
        }
        rest = after;
    }
    let element = line.split_once("$$").or_else(|| line.split_once("$@$"));
    element.is_some_and(|(_, element)| element.starts_with(|first: char| first.is_ascii_alphabetic()))
}

/// The pattern and the options of a rule: those behind the first `$` before the name of an option, or before texts with the form of one.
fn split(rule: &str) -> (&str, &str) {
    let from = rule.strip_prefix('/').and_then(|rest| rest.rfind('/')).unwrap_or(0);
    let mut signs = rule.match_indices('$').filter(|(at, _)| *at >= from);
    let is_known = |at: usize| Options::is_name(rule[at + 1..].split([',', '=']).next().unwrap_or_default());
    if let Some((at, _)) = signs.find(|(at, _)| is_known(*at)) {
        return (&rule[..at], &rule[at + 1..]);
    }
    let has_form = |text: &str| {
        let name = text.split('=').next().unwrap_or_default();
        !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"~_-".contains(&byte))
    };
    match rule.rsplit_once('$') {
        Some((pattern, options)) if options.split(',').all(has_form) => (pattern, options),
        _ => (rule, ""),
    }
}
