//! The ends of a part that the next part of a chain may follow, within a bound.

use std::collections::VecDeque;

/// The most runs of ends that are remembered at one gap of one chain.
pub(crate) const RUNS_MAX: usize = 64;

/// So many of the newest runs are tried for one that an end goes on.
const TRIED_MAX: usize = 8;

/// A start that stays where it is, or moves on by one with each end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Line {
    pub(crate) at: u64,
    pub(crate) moves: bool,
}

impl Line {
    /// The start after so many more ends.
    pub(crate) const fn beyond(self, by: u64) -> u64 {
        if self.moves { self.at.saturating_add(by) } else { self.at }
    }

    /// The line with this start so many ends on, if it is still one. Whether it moves shows at the second end.
    fn with(self, by: u64, start: u64) -> Option<Line> {
        if by == 1 {
            let moves = self.at.checked_add(1) == Some(start);
            return (moves || self.at == start).then_some(Line { moves, ..self });
        }
        (self.beyond(by) == start).then_some(self)
    }
}

/// Runs of ends; each with the starts of the chains that its ends belong to.
#[derive(Debug, Clone, Default)]
pub(crate) struct Ends(VecDeque<Run>);

/// Ends that follow each other. The chains of each start from `low` to `high`.
#[derive(Debug, Clone, Copy)]
struct Run {
    first: u64,
    last: u64,
    low: Line,
    high: Line,
}

/// Starts of a part, one after the other, that a chain goes on with; and where the chain starts for each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stretch {
    pub(crate) first: u64,
    pub(crate) last: u64,
    pub(crate) start: Line,
}

impl Run {
    fn has(&self, end: u64) -> bool {
        (self.first..=self.last).contains(&end)
    }

    /// Whether it has that end for those starts, or now goes on with it.
    fn takes(&mut self, end: u64, low: u64, high: u64) -> bool {
        let Some(by) = end.checked_sub(self.first) else {
            return false;
        };
        if end <= self.last {
            return self.low.beyond(by) <= low && high <= self.high.beyond(by);
        }
        if self.last.checked_add(1) != Some(end) {
            return false;
        }
        let (Some(low), Some(high)) = (self.low.with(by, low), self.high.with(by, high)) else {
            return false;
        };
        *self = Run { last: end, low, high, ..*self };
        true
    }
}

impl Ends {
    /// Adds an end, unless it is there for some start; whether an older run had to go.
    pub(crate) fn push(&mut self, end: u64, start: u64) -> bool {
        let known = self.0.back_mut().is_some_and(|run| run.has(end) || run.takes(end, start, start));
        !known && self.push_alone(end, start)
    }

    /// Adds an end for every start from `low` to `high`; whether an older run had to go.
    pub(crate) fn push_span(&mut self, runs_max: usize, end: u64, (low, high): (u64, u64)) -> bool {
        if self.0.iter_mut().rev().take(TRIED_MAX).any(|run| run.takes(end, low, high)) {
            return false;
        }
        let still = |at| Line { at, moves: false };
        self.push_run(runs_max, Run { first: end, last: end, low: still(low), high: still(high) })
    }

    /// Adds ends that follow each other; whether an older run had to go.
    pub(crate) fn push_stretch(&mut self, first: u64, last: u64, start: Line) -> bool {
        let Some(run) = self.0.back_mut() else {
            return self.push_run(RUNS_MAX, Run { first, last, low: start, high: start });
        };
        // What is there for some start need not be added.
        let from = if run.has(first) { run.last.saturating_add(1) } else { first };
        if from > last {
            return false;
        }
        let start = Line { at: start.beyond(from - first), ..start };
        let mut longer = *run;
        let joins = longer.takes(from, start.at, start.at) && (from == last || longer.low.moves == start.moves);
        if joins {
            *run = Run { last, ..longer };
            return false;
        }
        self.push_run(RUNS_MAX, Run { first: from, last, low: start, high: start })
    }

    /// Adds places, which are ends and starts in one; whether older ones had to go.
    pub(crate) fn push_places(&mut self, runs_max: usize, (first, last): (u64, u64)) -> bool {
        let touches = |run: &&mut Run| first <= run.last.saturating_add(1) && run.first <= last.saturating_add(1);
        if let Some(run) = self.0.iter_mut().rev().take(TRIED_MAX).find(touches) {
            (run.first, run.last) = (run.first.min(first), run.last.max(last));
            return false;
        }
        let start = Line { at: first, moves: true };
        self.push_run(runs_max, Run { first, last, low: start, high: start })
    }

    /// Adds an end as a run of its own.
    pub(crate) fn push_alone(&mut self, end: u64, start: u64) -> bool {
        let start = Line { at: start, moves: false };
        self.push_run(RUNS_MAX, Run { first: end, last: end, low: start, high: start })
    }

    fn push_run(&mut self, runs_max: usize, run: Run) -> bool {
        self.0.push_back(run);
        if self.0.len() > runs_max {
            self.0.pop_front();
            return true;
        }
        false
    }

    /// How many runs there are.
    pub(crate) fn runs(&self) -> usize {
        self.0.len()
    }

    /// Forgets runs that end before `oldest`.
    pub(crate) fn forget(&mut self, oldest: u64) {
        while self.0.front().is_some_and(|run| run.last < oldest) {
            self.0.pop_front();
        }
    }

    /// The starts of the chains that have an end from `low` to `high`, one for each run.
    pub(crate) fn between(&self, low: u64, high: u64) -> impl Iterator<Item = u64> {
        self.spans(low, high).map(|(start, _)| start)
    }

    /// The starts of the chains that have an end from `low` to `high`: for each run the first of them, and the last.
    pub(crate) fn spans(&self, low: u64, high: u64) -> impl Iterator<Item = (u64, u64)> {
        let fits = move |run: &&Run| run.first <= high && run.last >= low;
        self.0.iter().filter(fits).map(move |run| {
            let (first, last) = (low.max(run.first) - run.first, high.min(run.last) - run.first);
            (run.low.beyond(first), run.high.beyond(last))
        })
    }

    /// Stretches of parts that start from `first` to `last` and go on with a chain, where between the end and the start
    /// there are from `min` to `max` bytes: the same as [`Ends::between`] would find for one after the other.
    pub(crate) fn followed(&self, (min, max): (u64, u64), first: u64, last: u64) -> Vec<Stretch> {
        let mut stretches = Vec::new();
        let mut at = first;
        while at <= last {
            let fits = |run: &Run| run.first.saturating_add(min) <= at && run.last.saturating_add(max) >= at;
            let number = self.0.iter().position(fits);
            // A run before that one is preferred as soon as it fits.
            let earlier = self.0.iter().take(number.unwrap_or(self.0.len()));
            let sooner = earlier.map(|run| run.first.saturating_add(min)).filter(|&begins| begins > at).min();
            let Some(run) = number.and_then(|number| self.0.get(number)) else {
                let Some(next) = sooner else {
                    break;
                };
                at = next;
                continue;
            };
            let mut to = last.min(run.last.saturating_add(max));
            to = sooner.map_or(to, |sooner| to.min(sooner - 1));
            // Up to here the first end counts, and then each in its turn.
            let still = run.first.saturating_add(max);
            let start = if at <= still {
                to = to.min(still);
                Line { at: run.low.at, moves: false }
            } else {
                Line { at: run.low.beyond(at - still), moves: run.low.moves }
            };
            stretches.push(Stretch { first: at, last: to, start });
            let Some(next) = to.checked_add(1) else {
                break;
            };
            at = next;
        }
        stretches
    }

    /// Keeps nothing but the earliest end.
    pub(crate) fn keep_earliest(&mut self, end: u64, start: u64) {
        if self.0.front().is_none_or(|run| end < run.first) {
            self.0.clear();
            self.push_alone(end, start);
        }
    }

    /// Forgets runs whose chains start before `oldest`.
    pub(crate) fn forget_starts(&mut self, oldest: u64) {
        let front_is_old = |run: &Run| run.high.beyond(run.last - run.first) < oldest;
        if self.0.front().is_some_and(front_is_old) {
            self.0.retain(|run| !front_is_old(run));
        }
    }

    /// The first end from `low` to `high`.
    pub(crate) fn first_within(&self, low: u64, high: u64) -> Option<u64> {
        let ends = self.0.iter().map(|run| (run.first.max(low), run.last.min(high)));
        ends.filter(|(first, last)| first <= last).map(|(first, _)| first).min()
    }

    /// Every single end from `low` to `high`.
    pub(crate) fn within(&self, low: u64, high: u64) -> impl Iterator<Item = u64> {
        self.0.iter().flat_map(move |run| run.first.max(low)..=run.last.min(high))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ends_that_follow_each_other_are_one_run() {
        let mut ends = Ends::default();
        for end in 10..1000 {
            assert!(!ends.push(end, end - 2));
        }
        assert_eq!(ends.0.len(), 1);
        assert_eq!(ends.between(500, 600).collect::<Vec<_>>(), [498]);
        assert_eq!(ends.within(998, 2000).collect::<Vec<_>>(), [998, 999]);
    }

    #[test]
    fn ends_of_one_start_and_of_spans_that_move_are_one_run() {
        let mut ends = Ends::default();
        (100..500).for_each(|end| assert!(!ends.push(end, 7)));
        assert_eq!((ends.runs(), ends.between(300, 600).collect::<Vec<_>>()), (1, vec![7]));
        let mut ends = Ends::default();
        (100..500).for_each(|end| assert!(!ends.push_span(RUNS_MAX, end, (end - 60, end - 50))));
        assert_eq!((ends.runs(), ends.spans(300, 310).collect::<Vec<_>>()), (1, vec![(240, 260)]));
    }

    #[test]
    fn what_follows_in_one_go_is_what_follows_one_by_one() {
        let mut ends = Ends::default();
        for (end, start) in [(20, 3), (21, 4), (22, 5), (40, 30), (41, 30), (90, 80)] {
            ends.push(end, start);
        }
        for (min, max) in [(0, 0), (1, 5), (3, 30), (0, u64::MAX), (200, 300)] {
            let mut found = Vec::new();
            for stretch in ends.followed((min, max), 10, 150) {
                let starts = (stretch.first..=stretch.last).map(|at| (at, stretch.start.beyond(at - stretch.first)));
                found.extend(starts);
            }
            let one = |at: u64| {
                let high = at.checked_sub(min)?;
                ends.between(at.saturating_sub(max), high).next().map(|start| (at, start))
            };
            assert_eq!(found, (10..=150).filter_map(one).collect::<Vec<_>>(), "{min}-{max}");
        }
    }

    #[test]
    fn what_passes_the_bound_is_said_to_be_lost() {
        let mut ends = Ends::default();
        let lost = (0..100).filter(|&end| ends.push(end * 3, 0)).count();
        assert_eq!(lost, 100 - RUNS_MAX);
    }
}
