//! Expressions over the views of a mail: the literals of a pass, then a search in each line where one was found.

use std::ops::Range;

use pattern::expression::{Search, Want};

use super::{Finding, Run};
use crate::spam::map::HashMap;
use crate::spam::run::engine::{Item, ViewPass};
use crate::spam::run::pass::Pair;
use crate::spam::run::profile::Work;
use crate::spam::run::searcher::Scratch;
use crate::spam::run::waiting::Job;

impl<'r> Run<'r> {
    pub(super) fn view(&mut self, view: &'r ViewPass) {
        let haystacks = &self.haystacks[view.number];
        if view.items.is_empty() || haystacks.is_empty() {
            return;
        }
        let begun = self.scratch.now();
        let mut pairs = std::mem::take(&mut self.scratch.pairs);
        self.scratch.joined.clear();
        haystacks.iter().for_each(|haystack| self.scratch.joined.push(haystack));
        let Scratch { joined, rooms, .. } = &mut *self.scratch;
        view.pass().candidates(joined, &mut rooms[view.number], &mut pairs);
        self.scratch.spent(Work::Literals, begun);
        for group in pairs.chunk_by(|one, other| one.place == other.place) {
            let item = &view.items[group[0].place as usize];
            if self.waits(item.can_wait) {
                let bytes = group.iter().map(|pair| length(haystacks[pair.haystack as usize], &pair.within)).sum();
                self.waiting.push(Job::View(view, item, group.into()), bytes);
                continue;
            }
            self.expression(view, item, group);
        }
        self.scratch.pairs = pairs;
    }

    pub(super) fn expression(&mut self, view: &ViewPass, item: &Item, pairs: &[Pair]) -> f64 {
        let begun = self.scratch.now();
        let found = self.search(item, pairs, &self.haystacks[view.number]);
        self.scratch.spent(Work::Expression(item.rule), begun);
        self.settle(item.rule, view.area(), found)
    }

    /// Runs an expression over those haystacks that it may match in.
    pub(super) fn search(&mut self, item: &Item, pairs: &[Pair], haystacks: &[&[u8]]) -> Finding {
        let mut found = Finding::default();
        self.context.budget.borrow_mut().next_rule();
        for pair in pairs {
            if item.is_without_subject && pair.haystack == 0 {
                continue;
            }
            let Some(haystack) = haystacks.get(pair.haystack as usize) else { continue };
            self.search_one(item, haystack, &pair.within, &mut found);
            if found.is_exhausted || found.count >= item.hits_max.min(self.engine.options.limits.hits_max) {
                break;
            }
        }
        found
    }

    /// Counts the matches in one haystack, which all are within a place in it.
    pub(super) fn search_one(&mut self, item: &Item, haystack: &[u8], within: &Range<u32>, found: &mut Finding) {
        let hits_max = item.hits_max.min(self.engine.options.limits.hits_max);
        let want = match () {
            () if item.captures => Want::Groups,
            // Where each match takes a byte, its end says where the next can begin.
            () if item.hits_max > 1 && item.ready.needs.bytes_min > 0 => Want::End,
            () if item.hits_max > 1 => Want::Span,
            () => Want::Hit,
        };
        let mut budget = self.context.budget.borrow_mut();
        let counted = item.ready.needs.byte.filter(|_| want == Want::End && haystack.is_ascii());
        if let Some(set) = counted.filter(|_| !self.explain || found.matched.is_some()) {
            if budget.spend(haystack.len()).is_err() {
                found.is_exhausted = true;
                return;
            }
            let count = haystack.iter().filter(|&&byte| set.has(byte)).take((hits_max - found.count) as usize).count();
            found.count += count as u32;
            return;
        }
        if !item.ready.needs.has_run(haystack) {
            return;
        }
        let search = self.scratch.search(item.number, &item.ready.expression, want);
        let (mut from, until) = (within.start as usize, within.end as usize);
        while found.count < hits_max && from <= haystack.len().min(until) {
            let span = match budget.find_within(search, haystack, from..until) {
                Ok(Some(span)) => span,
                Ok(None) => return,
                Err(_) => {
                    found.is_exhausted = true;
                    return;
                }
            };
            found.count += 1;
            if item.captures {
                capture(&item.ready.expression, search, haystack, &mut self.captured);
            }
            if self.explain && found.matched.is_none() {
                found.matched = match want {
                    Want::Hit | Want::End => {
                        let mut exact = item.ready.expression.search(Want::Span);
                        budget.find(&mut exact, haystack, from).ok().flatten().map(|span| haystack[span].into())
                    }
                    _ => haystack.get(span.clone()).map(Into::into),
                };
            }
            from = if span.is_empty() { span.end + 1 } else { span.end };
        }
    }
}

/// How much of a haystack is looked at.
pub(super) fn length(haystack: &[u8], within: &Range<u32>) -> usize {
    haystack.len().min(within.end as usize).saturating_sub(within.start as usize)
}

pub(super) fn lines(lines: &[Box<[u8]>]) -> Vec<&[u8]> {
    lines.iter().map(|line| &**line).collect()
}

/// Keeps the groups with names of a match, each value once.
fn capture(
    expression: &pattern::expression::Expression,
    search: &Search,
    haystack: &[u8],
    captured: &mut HashMap<Box<str>, Vec<Box<[u8]>>>,
) {
    const VALUES_MAX: usize = 100;
    for (name, number) in expression.names() {
        let Some(value) = search.group(number).and_then(|span| haystack.get(span)) else { continue };
        let values = captured.entry(name.into()).or_default();
        if !value.is_empty() && values.len() < VALUES_MAX && !values.iter().any(|known| **known == *value) {
            values.push(value.into());
        }
    }
}
