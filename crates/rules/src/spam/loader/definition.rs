//! Definitions of rules, and what lines say about them: scores, flags, priorities, descriptions, tags and templates.

use super::Loader;
use crate::spam::limits::Limits;
use crate::spam::problem::{Fault, shown};
use crate::spam::rule::{Ending, NamedTest, Rule, Test, View};
use crate::spam::syntax::call::Call;
use crate::spam::syntax::dns::{AskDns, UriList};
use crate::spam::syntax::expression::Expression;
use crate::spam::syntax::field::HeaderTest;
use crate::spam::syntax::flags::Flags;
use crate::spam::syntax::meta::Meta;
use crate::spam::syntax::score::Scores;
use crate::spam::syntax::{self, word, words};
use crate::spam::template::Audience;

impl Loader {
    pub(super) fn definition(&mut self, keyword: &str, value: &[u8]) -> Result<(), Fault> {
        let (name, text) = word(value);
        let name = rule_name(name)?;
        if text.is_empty() {
            return Err(Fault::new("the rule has no test", "write one behind its name"));
        }
        let test = match keyword {
            "header" => match Call::read(text) {
                Some(call) => Test::Eval(View::Header, call?),
                None => Test::Header(HeaderTest::read(text)?),
            },
            "body" => pattern(View::Body, text)?,
            "rawbody" => pattern(View::Rawbody, text)?,
            "full" => pattern(View::Full, text)?,
            "uri" => Test::Pattern(View::Uri, Expression::read(text)?),
            "mimeheader" => {
                self.require("MIMEHeader")?;
                match HeaderTest::read(text)? {
                    HeaderTest::Exists(_) => {
                        return Err(Fault::new("exists: is for header only", "write Field =~ /./"));
                    }
                    test => Test::MimeHeader(test),
                }
            }
            "uri_detail" => {
                self.require("URIDetail")?;
                Test::UriDetail(text.into())
            }
            "askdns" => {
                self.require("AskDNS")?;
                Test::AskDns(AskDns::read(text)?)
            }
            _ => Test::Meta(meta(text, &self.limits)?),
        };
        let place = self.place.clone();
        let rule = self.rule(name)?;
        rule.test = Some(test);
        rule.place = place;
        Ok(())
    }

    pub(super) fn attribute(&mut self, keyword: &str, value: &[u8]) -> Result<(), Fault> {
        if keyword == "replace_rules" {
            self.require("ReplaceTags")?;
            self.tagged.extend(words(value).filter_map(syntax::name).map(Into::into));
            return Ok(());
        }
        let (name, text) = word(value);
        let name = rule_name(name)?;
        if text.is_empty() && keyword != "reuse" {
            return Err(Fault::new("the value is missing", "write it behind the rule's name"));
        }
        match keyword {
            "score" => self.score(name, Scores::read(text)?)?,
            "describe" => self.rule(name)?.description = Some(text.into()),
            "tflags" => self.rule(name)?.flags = Flags::read(text),
            "priority" => self.rule(name)?.given_priority = Some(priority(text)?),
            "subjprefix" => self.rule(name)?.subject_prefix = Some(text.into()),
            "reuse" => {
                let rule = self.rule(name)?;
                rule.test.get_or_insert(Test::Placeholder);
                rule.reused = words(text).filter_map(syntax::name).map(Into::into).collect();
            }
            _ => self.self_test(name, text)?,
        }
        Ok(())
    }

    fn score(&mut self, name: &str, scores: Scores) -> Result<(), Fault> {
        let rule = self.rule(name)?;
        let scores = match (scores, rule.given_scores) {
            (Scores::Absolute(scores), _) => scores,
            (Scores::Relative(more), Some(scores)) => core::array::from_fn(|at| scores[at] + more[at]),
            (Scores::Relative(_), None) => {
                return Err(Fault::new("a relative score has nothing before it", "write an absolute score first"));
            }
        };
        rule.given_scores = Some(scores);
        Ok(())
    }

    fn self_test(&mut self, name: &str, text: &[u8]) -> Result<(), Fault> {
        let (outcome, text) = word(text);
        let ok = match outcome {
            b"ok" => true,
            b"fail" => false,
            _ => return Err(Fault::new("a test of a rule is ok or fail", "write test NAME ok TEXT")),
        };
        if self.rules.self_tests.len() >= self.limits.settings_max {
            return Err(self.full());
        }
        self.rules.self_tests.push(NamedTest { rule: name.into(), ok, text: text.into(), place: self.place.clone() });
        Ok(())
    }

    /// `shortcircuit NAME ham|spam|on|off`: the first two set a priority where there is none, and flags.
    pub(super) fn shortcircuit(&mut self, value: &[u8]) -> Result<(), Fault> {
        self.require("Shortcircuit")?;
        let (name, text) = word(value);
        let name = rule_name(name)?;
        let (ending, flags) = match text {
            b"ham" => (Some(Ending::Ham), &b"nice noautolearn"[..]),
            b"spam" => (Some(Ending::Spam), &b"noautolearn"[..]),
            b"on" => (Some(Ending::Score), &b""[..]),
            b"off" => (None, &b""[..]),
            _ => return Err(Fault::new("a rule ends a check with ham, spam, on or off", "write one of them")),
        };
        const EARLY: i64 = -200;
        let rule = self.rule(name)?;
        rule.shortcircuit = ending;
        if !flags.is_empty() {
            rule.given_priority = rule.given_priority.filter(|&priority| priority != 0).or(Some(EARLY));
            rule.flags.add(flags);
        }
        Ok(())
    }

    pub(super) fn uri_list(&mut self, keyword: &str, value: &[u8]) -> Result<(), Fault> {
        self.require("URIDNSBL")?;
        let (name, text) = word(value);
        let name = rule_name(name)?;
        let Some((subject, has_subtest)) = UriList::keyword(keyword) else { return Ok(()) };
        let list = UriList::read(subject, has_subtest, text)?;
        self.rule(name)?.uri_list = Some(list);
        Ok(())
    }

    pub(super) fn tag(&mut self, keyword: &str, value: &[u8]) -> Result<(), Fault> {
        self.require("ReplaceTags")?;
        let (key, text) = word(value);
        let set = self.tags.set(keyword, key, text);
        if set { Ok(()) } else { Err(Fault::new("the value is missing", "write the tag and what stands for it")) }
    }

    pub(super) fn template(&mut self, keyword: &str, value: &[u8]) -> Result<(), Fault> {
        const LINES_MAX: usize = 10_000;
        let templates = &mut self.rules.templates;
        let lines = if keyword.contains("unsafe") { &mut templates.unsafe_report } else { &mut templates.report };
        match keyword {
            "report" | "unsafe_report" | "report_template" | "unsafe_report_template" => {
                if lines.len() >= LINES_MAX {
                    return Err(Fault::new(format!("the report has more than {LINES_MAX} lines"), "shorten it"));
                }
                let quoted = value.strip_prefix(b"\"").and_then(|value| value.strip_suffix(b"\""));
                lines.push(quoted.unwrap_or(value).into());
                return Ok(());
            }
            "clear_report_template" | "clear_unsafe_report_template" => {
                lines.clear();
                return Ok(());
            }
            "clear_headers" => {
                templates.clear_headers();
                return Ok(());
            }
            _ => {}
        }
        let (first, rest) = word(value);
        if keyword == "rewrite_header" {
            let field =
                ["Subject", "From", "To"].into_iter().find(|field| field.as_bytes().eq_ignore_ascii_case(first));
            let field =
                field.ok_or_else(|| Fault::new("only Subject, From and To are rewritten", "name one of them"))?;
            templates.rewrite(field, rest);
            return Ok(());
        }
        let fault = || Fault::new("the field is not named", "write spam, ham or all, a name, and a text");
        let audience = Audience::from_name(first).ok_or_else(fault)?;
        let (name, text) = word(rest);
        let fits = !name.is_empty() && name.iter().all(|&byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte));
        let name = core::str::from_utf8(name).ok().filter(|_| fits).ok_or_else(fault)?;
        match keyword {
            "remove_header" => templates.remove(audience, name),
            _ if text.is_empty() => return Err(fault()),
            _ if templates.spam.len() + templates.ham.len() >= LINES_MAX => {
                return Err(Fault::new(format!("more than {LINES_MAX} fields are added"), "take some away"));
            }
            _ => templates.add(
                audience,
                name,
                text.strip_prefix(b"\"").and_then(|text| text.strip_suffix(b"\"")).unwrap_or(text),
            ),
        }
        Ok(())
    }

    /// The rule of a name, made where there is none.
    fn rule(&mut self, name: &str) -> Result<&mut Rule, Fault> {
        let id = match self.rules.index.get(name) {
            Some(&id) => id as usize,
            None => {
                let id = self.rules.rules.len();
                if id >= self.limits.rules_max {
                    let reason = format!("there are more than {} rules", self.limits.rules_max);
                    return Err(Fault::new(reason, "the line has no effect"));
                }
                let place = self.place.clone();
                self.rules.rules.push(Rule { name: name.into(), place, ..Rule::default() });
                self.rules.index.insert(name.into(), u32::try_from(id).unwrap_or(u32::MAX));
                id
            }
        };
        self.rules.rules.get_mut(id).ok_or_else(|| Fault::new("the rule is not there", ""))
    }
}

fn rule_name(name: &[u8]) -> Result<&str, Fault> {
    let advice = "take letters, digits and _, no digit first, and at most 127 of them";
    if name.is_empty() {
        return Err(Fault::new("no rule is named", advice));
    }
    syntax::name(name).ok_or_else(|| Fault::new(format!("{} is no name of a rule", shown(name)), advice))
}

fn pattern(view: View, text: &[u8]) -> Result<Test, Fault> {
    match Call::read(text) {
        Some(call) => Ok(Test::Eval(view, call?)),
        None => Ok(Test::Pattern(view, Expression::read(text)?)),
    }
}

fn meta(text: &[u8], limits: &Limits) -> Result<Meta, Fault> {
    let meta = Meta::read(text, limits)?;
    if meta.evaluate(|_| 0.0, |_| 0.0).is_none() {
        return Err(Fault::new("it divides by zero where nothing hits", "add 1 to what it divides by"));
    }
    Ok(meta)
}

pub(super) fn priority(text: &[u8]) -> Result<i64, Fault> {
    let fits = text.strip_prefix(b"-").unwrap_or(text).iter().all(u8::is_ascii_digit);
    let number = core::str::from_utf8(text).ok().filter(|_| fits).and_then(|text| text.parse().ok());
    number.ok_or_else(|| Fault::new("a priority is a whole number", "write one behind the rule's name"))
}
