//! Compiles rules into the items of their views, fields, parts and addresses.

use std::collections::HashMap;

use super::{Criterion, Detail, DetailKey, Eval, HeaderItem, HeaderPass, Item, PartTest, Templated, ViewPass};
use crate::spam::eval::{self, Does};
use crate::spam::header::Request;
use crate::spam::rule::{Rule, Test, View};
use crate::spam::syntax::call::Call;
use crate::spam::syntax::expression::Expression;
use crate::spam::syntax::field::HeaderTest;
use crate::spam::total::ScoreSet;

#[derive(Default)]
pub(super) struct Parts {
    pub(super) header: HeaderPass,
    pub(super) views: [ViewPass; 4],
    pub(super) parts: Vec<PartTest>,
    pub(super) details: Vec<Detail>,
    pub(super) evals: Vec<Eval>,
    pub(super) templated: Vec<Templated>,
}

pub(super) struct Builder {
    pub(super) engine: Parts,
    pub(super) requests: HashMap<Request, u32>,
    pub(super) expressions: u32,
    pub(super) set: ScoreSet,
}

impl Builder {
    pub(super) fn add(&mut self, id: u32, rule: &Rule) {
        let Some(test) = &rule.test else { return };
        if let Some(expression) = test.expression().filter(|expression| expression.has_captured_tag()) {
            self.engine.templated.push(Templated::new(id, rule, test, expression));
            return;
        }
        match test {
            Test::Header(test) => self.header(id, rule, test),
            // These call functions in SpamAssassin, and functions that are `net` wait for the network.
            Test::MimeHeader(_) | Test::UriDetail(_) if rule.flags.has("net") && !self.set.net => {}
            Test::MimeHeader(test) => self.part(id, rule, test),
            Test::Pattern(view, expression) => {
                if let Some(item) = self.item(id, rule, expression) {
                    self.engine.views[place(*view)].items.push(item);
                }
            }
            Test::Eval(view, call) => self.eval(id, rule, *view, call),
            Test::UriDetail(text) => self.detail(id, text),
            Test::AskDns(_) | Test::Meta(_) | Test::Placeholder => {}
        }
    }

    fn number(&mut self) -> u32 {
        self.expressions += 1;
        self.expressions - 1
    }

    fn item(&mut self, id: u32, rule: &Rule, expression: &Expression) -> Option<Item> {
        let ready = expression.ready().ok()?;
        let captures = expression.captures_tag();
        let is_of_body = matches!(rule.test, Some(Test::Pattern(View::Body, _)));
        Some(Item {
            rule: id,
            number: self.number(),
            ready,
            hits_max: rule.flags.hits_max(),
            is_without_subject: rule.flags.has("nosubject") && is_of_body,
            captures,
            can_wait: waits(rule) && !captures,
        })
    }

    fn header(&mut self, id: u32, rule: &Rule, test: &HeaderTest) {
        let request = Request::of(test.field());
        let requests = &mut self.engine.header.requests;
        let known = *self.requests.entry(request.clone()).or_insert_with(|| {
            requests.push(request);
            requests.len() as u32 - 1
        });
        match test {
            HeaderTest::Exists(_) => self.engine.header.exists.push((id, known)),
            HeaderTest::Matches { negated, expression, if_unset, .. } => {
                let Some(item) = self.item(id, rule, expression) else { return };
                self.engine.header.tests.push(HeaderItem {
                    item,
                    request: known,
                    is_negated: *negated,
                    if_unset: if_unset.clone().unwrap_or_default(),
                });
            }
        }
    }

    fn part(&mut self, id: u32, rule: &Rule, test: &HeaderTest) {
        let HeaderTest::Matches { field, negated, expression, if_unset } = test else { return };
        let Some(mut item) = self.item(id, rule, expression) else { return };
        const HITS_MAX: u32 = 1000;
        if rule.flags.has("multiple") {
            item.hits_max = item.hits_max.min(HITS_MAX);
        }
        self.engine.parts.push(PartTest {
            item,
            field: field.name.as_bytes().into(),
            is_raw: !field.modifiers.is_empty(),
            is_negated: *negated,
            if_unset: if_unset.clone().unwrap_or_default(),
            range: range(rule.flags.value("range").unwrap_or_default()),
            is_joined: rule.flags.has("concat"),
        });
    }

    fn eval(&mut self, id: u32, rule: &Rule, view: View, call: &Call) {
        let Some(function) = eval::find(&call.function, view) else { return };
        let runs = match function.does {
            // What asks is answered by the host.
            Does::List | Does::Ask | Does::Reputation => false,
            Does::Know(_) => self.set.net,
            Does::Look(_) | Does::View(_) | Does::Recall(_) => self.set.net || !rule.flags.has("net"),
        };
        if runs && !call.is_rbl() {
            let expressions = eval::compiled(call);
            let can_wait = waits(rule);
            self.engine.evals.push(Eval { rule: id, view, call: call.clone(), function, expressions, can_wait });
        }
    }

    /// `KEY =~ /.../ KEY !~ /.../ ...`
    fn detail(&mut self, id: u32, text: &[u8]) {
        let mut criteria = Vec::new();
        let mut rest = text.trim_ascii();
        while let Some((key, is_negated, expression, behind)) = criterion(rest) {
            let Ok(ready) = expression.ready() else { return };
            let expression = ready.expression.clone();
            let number = self.number();
            criteria.retain(|criterion: &Criterion| criterion.key != key);
            criteria.push(Criterion { key, is_negated, expression, number });
            rest = behind.trim_ascii_start();
        }
        if !criteria.is_empty() {
            self.engine.details.push(Detail { rule: id, criteria });
        }
    }
}

/// Whether a rule is run only where a meta has to know it.
pub(super) fn waits(rule: &Rule) -> bool {
    rule.is_subrule() && rule.shortcircuit.is_none()
}

/// The place of a view among the four that expressions look at.
pub(super) fn place(view: View) -> usize {
    match view {
        View::Header | View::Body => 0,
        View::Rawbody => 1,
        View::Uri => 2,
        View::Full => 3,
    }
}

/// `range=2-5`, `2-`, `-5`, `3`.
pub(super) fn range(text: &[u8]) -> (u32, u32) {
    const ALL: (u32, u32) = (0, 1000);
    let text = core::str::from_utf8(text).unwrap_or_default();
    let number = |text: &str, default| if text.is_empty() { default } else { text.parse().unwrap_or(default) };
    match text.split_once('-') {
        Some((start, end)) => (number(start, ALL.0), number(end, ALL.1)),
        None if text.is_empty() => ALL,
        None => (number(text, ALL.0), number(text, ALL.1)),
    }
}

/// The first criterion of a test of addresses, and what is behind it.
fn criterion(text: &[u8]) -> Option<(DetailKey, bool, Expression, &[u8])> {
    let end = text.iter().position(|byte| !byte.is_ascii_alphanumeric())?;
    let key = match &text[..end] {
        b"raw" => DetailKey::Raw,
        b"type" => DetailKey::Kind,
        b"cleaned" => DetailKey::Cleaned,
        b"text" => DetailKey::Text,
        b"domain" => DetailKey::Domain,
        b"host" => DetailKey::Host,
        _ => return None,
    };
    let rest = text[end..].trim_ascii_start();
    let (is_negated, rest) = match rest.split_at_checked(2)? {
        (b"=~", rest) => (false, rest),
        (b"!~", rest) => (true, rest),
        _ => return None,
    };
    let rest = rest.trim_ascii_start();
    // The shortest that can be read, with blanks or nothing behind it.
    let ends = (1..=rest.len()).filter(|&end| rest.get(end).is_none_or(u8::is_ascii_whitespace));
    let read = |end: usize| Expression::read(&rest[..end]).ok().map(|expression| (end, expression));
    let (end, expression) = ends.filter_map(read).next()?;
    Some((key, is_negated, expression, &rest[end..]))
}
