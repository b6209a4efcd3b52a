//! The metas of one mail, evaluated.

use stream::Fuel;

use super::span::{self, Asked, Question, Span};
use super::{Open, Schedule};

/// Estimated cost of evaluating a meta, before the first time: rather more than a rule.
const COST_OF_META: u32 = 4000;

/// Steps that may be done while rules wait: each that is run has metas looked at again, which takes longer than to run all where
/// metas are large. The stock set takes some thousands for a mail.
const STEPS_OF_WAITING_MAX: u64 = 1 << 18;

/// Metas, evaluated for one mail.
pub(super) struct Evaluation<'e, F> {
    schedule: &'e Schedule,
    values: &'e mut [f64],
    /// Place of the span of each rule plus one, by its id; 0 if its value is known.
    slots: Vec<u32>,
    /// Possible values of rules that are not known.
    spans: Vec<Span>,
    due: Due,
    /// The places of metas that may have hit.
    hits: Vec<u32>,
    stack: Vec<Span>,
    /// A meta that is to be known, a part of it that has to be for that, a part of that...
    path: Vec<u32>,
    open: &'e [Open],
    run: F,
    /// For what is done while rules wait, and once none does.
    waiting_fuel: Fuel,
    fuel: &'e mut Fuel,
}

impl<'e, F: FnMut(u32) -> f64> Evaluation<'e, F> {
    pub(super) fn new(
        schedule: &'e Schedule,
        values: &'e mut [f64],
        open: &'e [Open],
        run: F,
        fuel: &'e mut Fuel,
    ) -> Evaluation<'e, F> {
        Evaluation {
            schedule,
            slots: vec![0; values.len()],
            values,
            spans: Vec::new(),
            due: Due::new(schedule),
            hits: schedule.hits_at_rest.clone(),
            stack: Vec::new(),
            path: Vec::new(),
            open,
            run,
            waiting_fuel: Fuel::new(STEPS_OF_WAITING_MAX),
            fuel,
        }
    }

    /// Evaluates all that is due: what has come to something, in order, and `false` where the fuel ends before. What nobody had
    /// to know comes to nothing.
    pub(super) fn all(mut self) -> (Vec<u32>, bool) {
        let mut is_done = self.due().is_some();
        if !is_done && !self.open.is_empty() {
            self.run_all();
            is_done = self.due().is_some();
        }
        self.slots.iter().zip(&mut *self.values).filter(|(slot, _)| **slot != 0).for_each(|(_, value)| *value = 0.0);
        self.hits.sort_unstable();
        self.hits.dedup();
        let ids = self.hits.iter().map(|&place| self.schedule.order[place as usize].0);
        (ids.filter(|&id| self.values[id as usize] != 0.0).collect(), is_done)
    }

    /// Has all run that still waits, and begins anew.
    fn run_all(&mut self) {
        for (number, open) in (0..).zip(std::mem::take(&mut self.open)) {
            if self.slots[open.rule as usize] != 0 {
                let value = (self.run)(number);
                self.set(open.rule, Span::known(value));
            }
        }
        for (id, _) in &self.schedule.order {
            self.set(*id, Span::known(0.0));
        }
        self.due = Due::new(self.schedule);
        self.hits.clone_from(&self.schedule.hits_at_rest);
    }

    fn due(&mut self) -> Option<()> {
        let schedule = self.schedule;
        let hits = self.values.iter().enumerate().filter(|(_, value)| **value != 0.0);
        hits.for_each(|(rule, _)| self.due.mark(schedule.users.of(rule)));
        for &place in &schedule.hits_at_rest {
            let id = schedule.order[place as usize].0 as usize;
            self.values[id] = schedule.resting[id];
        }
        for (number, open) in (0..).zip(self.open) {
            self.set(open.rule, Span::open(Question::rule(open.cost, number), schedule.most[open.rule as usize]));
            self.due.mark(schedule.users.of(open.rule as usize));
        }
        let mut from = 0;
        while let Some(place) = self.due.next(from) {
            self.meta(place as u32)?;
            from = place;
        }
        Some(())
    }

    /// Evaluates a meta, as far as anybody has to know it: a sub-rule waits until somebody asks, unless nothing else waits.
    fn meta(&mut self, place: u32) -> Option<()> {
        let id = self.schedule.order[place as usize].0 as usize;
        let span = match () {
            () if self.is_nothing(place) => Span::known(0.0),
            () if self.schedule.subrules[id] && !self.open.is_empty() => {
                Span::open(Question::meta(COST_OF_META, place), self.schedule.most[id])
            }
            () => self.find_out(place)?,
        };
        self.set(id as u32, span);
        self.hits.extend(Some(place).filter(|_| span.value() != Some(0.0)));
        if span.value() != Some(self.schedule.resting[id]) {
            self.due.mark(self.schedule.users.of(id));
        }
        Some(())
    }

    /// Has run what waits until it is known what a meta comes to.
    fn find_out(&mut self, place: u32) -> Option<Span> {
        // Of what is no part of another meta it is enough that it hits.
        let is_part = self.schedule.made_of[self.schedule.order[place as usize].0 as usize] > 0;
        self.path.clear();
        self.path.push(place);
        while let Some(&place) = self.path.last() {
            let id = self.schedule.order[place as usize].0;
            let span = self.weigh(place)?;
            let is_part = is_part || self.path.len() > 1;
            let Some(question) = span.question().filter(|_| is_part || !span.is_sure_to_hit()) else {
                self.path.pop();
                self.set(id, span.value().map_or(Span::known(1.0), Span::known));
                continue;
            };
            if self.path.len() > 1 {
                let span = span.asking(Question::meta(question.cost(), place));
                let is_closer = self.span(id).is_wider(&span);
                self.set(id, span);
                if is_closer {
                    // Perhaps that is enough.
                    self.path.pop();
                    continue;
                }
            }
            match question.asked() {
                Asked::Meta(part) => self.path.push(part),
                Asked::Rule(number) => {
                    let value = (self.run)(number);
                    self.set(self.open[number as usize].rule, Span::known(value));
                }
            }
        }
        Some(self.span(self.schedule.order[place as usize].0))
    }

    /// Whether a required part of a meta has not hit, so that the meta is 0.
    fn is_nothing(&self, place: u32) -> bool {
        let is_zero = |rule: &u32| self.slots[*rule as usize] == 0 && self.values[*rule as usize] == 0.0;
        self.schedule.needed[place as usize].iter().any(is_zero)
    }

    /// Possible values of a rule.
    fn span(&self, rule: u32) -> Span {
        match self.slots[rule as usize] {
            0 => Span::known(self.values[rule as usize]),
            slot => self.spans[slot as usize - 1],
        }
    }

    /// Possible values of a meta, by those known now.
    fn weigh(&mut self, place: u32) -> Option<Span> {
        let steps = &self.schedule.steps[self.schedule.order[place as usize].1.clone()];
        let fuel = if self.open.is_empty() { &mut *self.fuel } else { &mut self.waiting_fuel };
        if fuel.left() < steps.len() as u64 {
            return None;
        }
        fuel.burn(steps.len());
        if self.is_nothing(place) {
            return Some(Span::known(0.0));
        }
        let mut stack = std::mem::take(&mut self.stack);
        let span = span::weigh(steps, &mut stack, |rule| self.span(rule));
        self.stack = stack;
        Some(span)
    }

    fn set(&mut self, rule: u32, span: Span) {
        let slot = &mut self.slots[rule as usize];
        match (span.value(), *slot) {
            (Some(value), _) => {
                *slot = 0;
                self.values[rule as usize] = value;
            }
            (None, 0) => {
                self.spans.push(span);
                *slot = self.spans.len() as u32;
            }
            (None, slot) => self.spans[slot as usize - 1] = span,
        }
    }
}

/// Metas that are to be evaluated: those behind one that is may become due.
struct Due {
    /// How many of its parts each still waits for.
    left: Vec<u32>,
    /// A bit for each, in their order.
    bits: Vec<u64>,
}

impl Due {
    fn new(schedule: &Schedule) -> Due {
        Due { left: schedule.least.clone(), bits: vec![0; schedule.order.len().div_ceil(64)] }
    }

    /// Counts a changed part of these metas, and marks those that may hit now.
    fn mark(&mut self, users: &[u32]) {
        for &place in users {
            let left = &mut self.left[place as usize];
            *left = left.saturating_sub(1);
            if *left == 0 {
                self.bits[place as usize / 64] |= 1 << (place % 64);
            }
        }
    }

    /// Takes the first that is not before a place.
    fn next(&mut self, from: usize) -> Option<usize> {
        let words = self.bits.get_mut(from / 64..)?;
        let (word, bits) = words.iter_mut().enumerate().find(|(_, bits)| **bits != 0)?;
        let bit = bits.trailing_zeros() as usize;
        *bits &= *bits - 1;
        Some((from / 64 + word) * 64 + bit)
    }
}
