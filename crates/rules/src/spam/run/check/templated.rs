//! Rules whose expressions contain tags, such as captures of other rules: compiled anew for each mail.

use pattern::expression::{Search, Want, fold};

use super::{Finding, Run};
use crate::spam::header::Request;
use crate::spam::rule::{Rule, Test, View};
use crate::spam::run::engine::Templated;
use crate::spam::run::waiting::Job;
use crate::spam::syntax::expression::Expression;
use crate::spam::syntax::field::HeaderTest;
use crate::spam::tags;

impl<'r> Run<'r> {
    /// Rules that hold what others captured: where nothing was, they do not run.
    pub(super) fn templated(&mut self) {
        for templated in &self.engine.templated {
            let has_values = |name: &str| !self.tag(name).is_empty();
            match templated.names.iter().all(|name| has_values(name)) {
                true if self.waits(templated.can_wait) => self.waiting.push(Job::Templated(templated), 0),
                true => drop(self.fill(templated)),
                false => {}
            }
        }
    }

    /// Values of a tag in an expression: of a capture, or of the mail.
    fn tag(&self, text: &str) -> Vec<Box<[u8]>> {
        if let Some(values) = self.captured.get(text) {
            return values.clone();
        }
        let (name, argument) = tags::parts(text);
        let signed = || self.context.known.and_then(|known| tags::signed(known.authentic, name));
        let hosts = || self.engine.lists.hosts_of(self.mail);
        let is_known = self.set.net || !name.starts_with("URI");
        let values = tags::of_mail(self.context, hosts, name, argument).filter(|_| is_known).or_else(signed);
        values.unwrap_or_default().into_iter().filter(|value| !value.is_empty()).map(Into::into).collect()
    }

    /// Runs a rule with what was captured in its place.
    pub(super) fn fill(&mut self, templated: &Templated) -> f64 {
        let [body, raw_body, uris, full] = self.haystacks;
        let rule = &self.engine.rules.names()[templated.rule as usize];
        let Some(expression) = templated.test.expression() else { return 0.0 };
        // Most mails name nobody in an address, so that no expression is read.
        let is_of_uris = matches!(templated.test, Test::Pattern(View::Uri, _));
        let uris = match &templated.needed {
            Some(name) if is_of_uris => self.with_captured(name, uris),
            _ => uris.to_vec(),
        };
        if is_of_uris && !templated.loose.as_ref().is_none_or(|loose| loose.may_match(&uris)) {
            return 0.0;
        }
        let Some(filled) = expression.filled(|name| Some(self.tag(name)).filter(|values| !values.is_empty())) else {
            return 0.0;
        };
        let found = match &templated.test {
            Test::Header(test) => self.filled_header(rule, &filled, test),
            Test::Pattern(View::Uri, _) if uris.is_empty() => None,
            Test::Pattern(View::Uri, _) => {
                filled.alone().ok().map(|alone| self.search_fresh(rule, alone.search_once(Want::Span), &uris))
            }
            Test::Pattern(View::Rawbody, _) => self.filled(rule, &filled, raw_body),
            Test::Pattern(View::Full, _) => self.filled(rule, &filled, full),
            Test::Pattern(View::Body | View::Header, _) => {
                let skipped = usize::from(rule.flags.has("nosubject"));
                self.filled(rule, &filled, body.get(skipped..).unwrap_or_default())
            }
            _ => None,
        };
        found.map_or(0.0, |found| self.settle(templated.rule, area(&templated.test), found))
    }

    /// The haystacks in which one of the values stands that were captured under a name, in whatever case.
    fn with_captured<'h>(&self, name: &str, haystacks: &[&'h [u8]]) -> Vec<&'h [u8]> {
        let folded = |text: &[u8]| {
            let mut text = text.to_vec();
            fold(&mut text);
            text
        };
        let values: Vec<Vec<u8>> = self.tag(name).iter().map(|value| folded(value)).collect();
        let has_one = |haystack: &&&[u8]| {
            let haystack = folded(haystack);
            values.iter().any(|value| memchr::memmem::find(&haystack, value).is_some())
        };
        haystacks.iter().filter(has_one).copied().collect()
    }

    fn filled_header(&mut self, rule: &Rule, filled: &Expression, test: &HeaderTest) -> Option<Finding> {
        let HeaderTest::Matches { field, negated, if_unset, .. } = test else { return None };
        let value = self.context.fields.haystack(&Request::of(field));
        let value = value.unwrap_or_else(|| if_unset.clone().unwrap_or_default().into());
        Some(self.filled(rule, filled, &[&value])?.unless(*negated))
    }

    /// Matches of a filled expression; none where it cannot run.
    fn filled(&mut self, rule: &Rule, filled: &Expression, haystacks: &[&[u8]]) -> Option<Finding> {
        let ready = filled.ready().ok()?;
        Some(match ready.may_match(haystacks) {
            true => self.search_fresh(rule, ready.expression.search(Want::Span), haystacks),
            false => Finding::default(),
        })
    }

    /// As [`search`](Run::search), over all haystacks and without memory that is kept.
    fn search_fresh(&mut self, rule: &Rule, mut search: Search, haystacks: &[&[u8]]) -> Finding {
        let hits_max = rule.flags.hits_max().min(self.engine.options.limits.hits_max);
        let mut budget = self.context.budget.borrow_mut();
        budget.next_rule();
        let mut found = Finding::default();
        for haystack in haystacks {
            let mut from = 0;
            while from <= haystack.len() {
                match budget.find(&mut search, haystack, from) {
                    Ok(Some(span)) => {
                        found.count += 1;
                        found.matched = found.matched.or_else(|| self.explain.then(|| haystack[span.clone()].into()));
                        from = if span.is_empty() { span.end + 1 } else { span.end };
                    }
                    Ok(None) => break,
                    Err(_) => return Finding { is_exhausted: true, ..found },
                }
                if found.count >= hits_max {
                    return found;
                }
            }
        }
        found
    }
}

fn area(test: &Test) -> &'static str {
    match test {
        Test::Pattern(View::Body, _) => "BODY: ",
        Test::Pattern(View::Rawbody, _) => "RAW: ",
        Test::Pattern(View::Uri, _) => "URI: ",
        Test::Pattern(View::Full, _) => "FULL: ",
        _ => "",
    }
}
