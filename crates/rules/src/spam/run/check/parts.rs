//! Tests of MIME parts and of addresses in detail.

use std::borrow::Cow;

use pattern::expression::Want;

use super::{Finding, Run};
use crate::spam::map::HashSet;
use crate::spam::message::{Message, Part, Uri};
use crate::spam::run::engine::{Criterion, Detail, DetailKey, PartTest};
use crate::spam::run::pass::ANYWHERE;
use crate::spam::run::profile::Work;
use crate::spam::run::waiting::Job;

impl<'r> Run<'r> {
    pub(super) fn parts(&mut self) {
        for test in &self.engine.parts {
            match self.waits(test.item.can_wait) {
                true => self.waiting.push(Job::Part(test), 0),
                false => drop(self.part(test)),
            }
        }
    }

    /// Runs a test of a field of each part.
    pub(super) fn part(&mut self, test: &PartTest) -> f64 {
        let begun = self.scratch.now();
        let found = self.part_found(test);
        self.scratch.spent(Work::Expression(test.item.rule), begun);
        self.settle(test.item.rule, "", found)
    }

    fn part_found(&mut self, test: &PartTest) -> Finding {
        self.context.budget.borrow_mut().next_rule();
        let mut found = Finding::default();
        let mut joined = Vec::new();
        const BYTES_MAX: usize = 1 << 20;
        for (number, part) in (1..).zip(self.mail.parts()) {
            if number > test.range.1 || number < test.range.0 {
                continue;
            }
            let value = part_value(part, test);
            if test.is_joined {
                joined.extend_from_slice(&value);
                if !value.ends_with(b"\n") {
                    joined.push(b'\n');
                }
                joined.truncate(BYTES_MAX);
                continue;
            }
            if test.item.ready.may_be_in(&value) {
                self.search_one(&test.item, &value, &ANYWHERE, &mut found);
            }
            if found.count > 0 || found.is_exhausted {
                break;
            }
        }
        if test.is_joined {
            self.search_one(&test.item, &joined, &ANYWHERE, &mut found);
        }
        found.unless(test.is_negated)
    }

    pub(super) fn details(&mut self) {
        for detail in &self.engine.details {
            self.context.budget.borrow_mut().next_rule();
            let mail = self.mail;
            let begun = self.scratch.now();
            let fits = mail.uris().iter().any(|uri| self.fits(detail, uri));
            self.scratch.spent(Work::Expression(detail.rule), begun);
            if fits {
                self.hit(detail.rule, "BODY: ", 1.0, 1, None);
            }
        }
    }

    fn fits(&mut self, detail: &Detail, uri: &Uri) -> bool {
        detail.criteria.iter().all(|criterion| match criterion.key {
            DetailKey::Raw => self.holds(criterion, &uri.raw),
            DetailKey::Kind => uri.kinds.iter().any(|kind| self.holds(criterion, kind.as_bytes())),
            DetailKey::Cleaned => uri.cleaned.iter().any(|text| self.holds(criterion, text)),
            DetailKey::Text => uri.anchor_texts.iter().any(|text| self.holds(criterion, text)),
            DetailKey::Domain => uri.hosts.values().any(|domain| self.holds(criterion, domain)),
            DetailKey::Host => uri.hosts.keys().any(|host| self.holds(criterion, host)),
        })
    }

    fn holds(&mut self, criterion: &Criterion, text: &[u8]) -> bool {
        let search = self.scratch.search(criterion.number, &criterion.expression, Want::Hit);
        let found = self.context.budget.borrow_mut().find(search, text, 0);
        found.is_ok_and(|found| found.is_some() != criterion.is_negated)
    }
}

/// All spellings of all addresses, each once.
pub(super) fn distinct_uris(mail: &Message) -> Vec<&[u8]> {
    let mut seen = HashSet::default();
    mail.uris().iter().flat_map(|uri| &uri.cleaned).map(|text| &**text).filter(|text| seen.insert(*text)).collect()
}

/// Value of a part that a test looks at.
fn part_value<'p>(part: &'p Part, test: &'p PartTest) -> Cow<'p, [u8]> {
    if *test.field == *b"ALL" {
        let line = |field: &crate::spam::message::Field| {
            let value = if test.is_raw { field.raw.to_vec() } else { field.line() };
            [&field.name, &b": "[..], &value].concat()
        };
        return part.fields.iter().flat_map(line).collect::<Vec<u8>>().into();
    }
    match part.field(&test.field) {
        Some(field) if test.is_raw => (&*field.raw).into(),
        Some(field) => field.line().into(),
        None => (&*test.if_unset).into(),
    }
}
