//! Tests of header fields.

use std::ops::Range;

use super::views::length;
use super::{Finding, Run};
use crate::spam::run::engine::HeaderItem;
use crate::spam::run::profile::Work;
use crate::spam::run::searcher::Scratch;
use crate::spam::run::waiting::Job;

impl<'r> Run<'r> {
    pub(super) fn header(&mut self) {
        let (header, fields) = (&self.engine.header, self.fields);
        for &(rule, request) in &header.exists {
            if fields[request as usize].is_some() {
                self.hit(rule, "", 1.0, 1, None);
            }
        }
        let begun = self.scratch.now();
        let tests = self.header_tests();
        self.scratch.spent(Work::Literals, begun);
        for (number, place) in &tests {
            let test = &header.tests[*number as usize];
            match (&fields[test.request as usize], place) {
                (Some(value), Some(place)) if self.waits(test.item.can_wait) => {
                    self.waiting.push(Job::Header(test, place.clone()), length(value, place));
                }
                (Some(_), place) => drop(self.field(test, place.as_ref())),
                (None, _) => self.unset(test),
            }
        }
        self.scratch.tests = tests;
    }

    /// A test hits the text that stands for a missing field: each match counts where several do.
    fn unset(&mut self, test: &HeaderItem) {
        let mut found = Finding { count: 1, ..Finding::default() };
        if test.item.hits_max > 1 && !test.is_negated {
            found.count = 0;
            let length = u32::try_from(test.if_unset.len()).unwrap_or(u32::MAX);
            self.context.budget.borrow_mut().next_rule();
            self.search_one(&test.item, &test.if_unset, &(0..length), &mut found);
        }
        found.matched = self.explain.then(|| test.if_unset.clone());
        self.settle(test.item.rule, "", found);
    }

    /// Runs a test of the header over the value that it looks at.
    pub(super) fn field(&mut self, test: &HeaderItem, place: Option<&Range<u32>>) -> f64 {
        let mut found = Finding::default();
        if let (Some(value), Some(place)) = (&self.fields[test.request as usize], place) {
            let begun = self.scratch.now();
            self.context.budget.borrow_mut().next_rule();
            self.search_one(&test.item, value, place, &mut found);
            self.scratch.spent(Work::Expression(test.item.rule), begun);
        }
        self.settle(test.item.rule, "", found.unless(test.is_negated))
    }

    /// The tests of the header that may hit, in their order, and where in the value that they look at a match may be.
    fn header_tests(&mut self) -> Vec<(u32, Option<Range<u32>>)> {
        let header = &self.engine.header;
        let mut tests = std::mem::take(&mut self.scratch.tests);
        tests.clear();
        let mut pairs = std::mem::take(&mut self.scratch.pairs);
        let Scratch { joined, header_rooms, .. } = &mut *self.scratch;
        header_rooms.resize_with(header.requests.len(), Default::default);
        let fields = header.passes().iter().zip(self.fields).zip(header_rooms);
        for ((field, value), room) in fields.filter(|((field, _), _)| !field.tests.is_empty()) {
            let Some(value) = value else {
                tests.extend(header.unset(field).iter().map(|&test| (test, None)));
                continue;
            };
            joined.clear();
            joined.push(value);
            field.pass.candidates(joined, room, &mut pairs);
            tests.extend(pairs.drain(..).map(|pair| (field.tests[pair.place as usize], Some(pair.within))));
            tests.extend(field.negated.iter().map(|&test| (test, None)));
        }
        self.scratch.pairs = pairs;
        // Of a negated one that may match, where it may.
        tests.sort_unstable_by_key(|(test, place)| (*test, place.is_none()));
        tests.dedup_by_key(|(test, _)| *test);
        tests
    }
}
