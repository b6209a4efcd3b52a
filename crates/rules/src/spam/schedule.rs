//! The order in which metas are evaluated.
//!
//! A meta is evaluated when all that it is made of is known. A name that no rule has, a rule that did not run (its score
//! is 0, it asks the network and may not, its function is missing) and a placeholder count as 0. Metas that depend on each
//! other in a ring, and what is made of those, never hit and count as 0: they are listed as excluded.
//!
//! Of a thousand metas few are made of anything that hit. What each comes to where nothing has hit is worked out once
//! ([`Schedule::retain`]), and only metas with a part that came to something else are evaluated; of those that are 0 without
//! each of several parts, such as all in a row of `&&`, only where one of these did, that of which the fewest metas are made.

use std::ops::Range;

use super::limits::Limits;
use super::rule::{Rules, Test};
use super::syntax::meta::{self, Comparison, Meta, Step};
use stream::Fuel;

/// Metas in the order in which they can be evaluated, their names and globs looked up.
#[derive(Debug, Clone, Default)]
pub struct Schedule {
    /// Rule ids for names; globs are written out as sums.
    steps: Vec<Step>,
    order: Vec<(u32, Range<usize>)>,
    excluded: Vec<Exclusion>,
    rules: usize,
    /// What each rule comes to where nothing has hit.
    resting: Vec<f64>,
    /// Of each rule, the metas to be evaluated where it comes to something else, by their places in the order.
    users: Vec<Vec<u32>>,
}

/// A meta that is not evaluated.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Exclusion {
    /// Its id.
    pub rule: u32,
    /// Why.
    pub reason: String,
}

impl Schedule {
    /// Puts the metas of `rules` in order.
    pub fn new(rules: &Rules, limits: &Limits) -> Schedule {
        let mut schedule = Schedule { rules: rules.names().len(), ..Schedule::default() };
        let mut waiting = Vec::new();
        for (id, rule) in rules.names().iter().enumerate() {
            let (Some(Test::Meta(meta)), Ok(id)) = (&rule.test, u32::try_from(id)) else { continue };
            match schedule.resolve(meta, rules, limits) {
                Some(range) => waiting.push((id, range)),
                None => {
                    let reason = format!("with its globs written out it has more than {} steps", limits.meta_steps_max);
                    schedule.excluded.push(Exclusion { rule: id, reason });
                }
            }
        }
        schedule.sort(waiting, rules);
        schedule.retain(|_| true);
        schedule
    }

    /// The metas that are never evaluated.
    pub fn excluded(&self) -> &[Exclusion] {
        &self.excluded
    }

    /// The ids of the metas, in the order in which they are evaluated.
    pub fn order(&self) -> impl Iterator<Item = u32> {
        self.order.iter().map(|&(id, _)| id)
    }

    /// The metas in that order, each with the rules that it is made of; with those that its globs mean.
    pub fn parts(&self) -> impl Iterator<Item = (u32, impl Iterator<Item = u32>)> {
        self.order.iter().map(|(id, range)| (*id, depends(&self.steps[range.clone()])))
    }

    /// Leaves metas out: they count as 0.
    pub fn retain(&mut self, keep: impl Fn(u32) -> bool) {
        self.order.retain(|(id, _)| keep(*id));
        let (mut resting, mut stack) = (vec![0.0; self.rules], Vec::new());
        let mut made_of = vec![0_u32; self.rules];
        for (id, range) in &self.order {
            let steps = &self.steps[range.clone()];
            resting[*id as usize] = outcome(steps, &resting, &mut stack);
            depends(steps).for_each(|part| made_of[part as usize] += 1);
        }
        self.users = vec![Vec::new(); self.rules];
        for (place, (id, range)) in (0..).zip(&self.order) {
            let steps = &self.steps[range.clone()];
            let is_zero = |rule: u32| resting[rule as usize] == 0.0;
            let needed = if is_zero(*id) { needed(steps) } else { Vec::new() };
            if let Some(part) =
                needed.into_iter().filter(|part| is_zero(*part)).min_by_key(|part| made_of[*part as usize])
            {
                self.users[part as usize].push(place);
                continue;
            }
            for part in depends(steps) {
                let users = &mut self.users[part as usize];
                if users.last() != Some(&place) {
                    users.push(place);
                }
            }
        }
        self.resting = resting;
    }

    /// Evaluates all metas: `values` has what each rule came to, by its id, and gets what the metas come to. A rule that
    /// did not hit is 0, one that hit is 1 or, with `multiple`, the number of its hits.
    ///
    /// Burns a unit a step. `false`: there was not fuel enough, and the metas that were left count as where nothing has hit.
    pub fn evaluate(&self, values: &mut Vec<f64>, fuel: &mut Fuel) -> bool {
        values.resize(self.rules, 0.0);
        // A bit for each meta, in their order: those behind one that is evaluated may become due.
        let mut due = vec![0_u64; self.order.len().div_ceil(64)];
        let mark = |due: &mut [u64], rule: usize| {
            self.users[rule].iter().for_each(|&place| due[place as usize / 64] |= 1 << (place % 64));
        };
        values.iter().enumerate().filter(|(_, value)| **value != 0.0).for_each(|(rule, _)| mark(&mut due, rule));
        self.order.iter().for_each(|(id, _)| values[*id as usize] = self.resting[*id as usize]);
        let mut stack = Vec::new();
        for word in 0..due.len() {
            while due[word] != 0 {
                let place = word * 64 + due[word].trailing_zeros() as usize;
                due[word] &= due[word] - 1;
                let (id, range) = &self.order[place];
                let steps = &self.steps[range.clone()];
                if fuel.left() < steps.len() as u64 {
                    return false;
                }
                fuel.burn(steps.len());
                let id = *id as usize;
                values[id] = outcome(steps, values, &mut stack);
                if values[id] != self.resting[id] {
                    mark(&mut due, id);
                }
            }
        }
        true
    }

    /// Looks names and globs up; `None` where that becomes too long.
    fn resolve(&mut self, meta: &Meta, rules: &Rules, limits: &Limits) -> Option<Range<usize>> {
        let start = self.steps.len();
        for step in &meta.steps {
            match *step {
                Step::Rule(name) => {
                    let id = meta.names.get(name as usize).and_then(|name| rules.id(name));
                    self.steps.push(id.map_or(Step::Number(0.0), Step::Rule));
                }
                Step::Matching(glob) => {
                    let glob = meta.globs.get(glob as usize).map_or(&b""[..], |glob| glob.as_bytes());
                    self.expand(glob, rules);
                }
                other => self.steps.push(other),
            }
            if self.steps.len() - start > limits.meta_steps_max || self.steps.len() > limits.metas_steps_max {
                self.steps.truncate(start);
                return None;
            }
        }
        Some(start..self.steps.len())
    }

    fn expand(&mut self, glob: &[u8], rules: &Rules) {
        self.steps.push(Step::Number(0.0));
        for (id, rule) in rules.names().iter().enumerate() {
            let Ok(id) = u32::try_from(id) else { return };
            if rule.test.is_some() && meta::matches(glob, rule.name.as_bytes()) {
                self.steps.extend([Step::Rule(id), Step::Add]);
            }
        }
    }

    /// Takes metas whose parts are known, until there are none left.
    fn sort(&mut self, metas: Vec<(u32, Range<usize>)>, rules: &Rules) {
        let mut at = vec![usize::MAX; self.rules];
        for (position, (id, _)) in metas.iter().enumerate() {
            at[*id as usize] = position;
        }
        for exclusion in &self.excluded {
            // Counts as 0, and nothing waits for it.
            at[exclusion.rule as usize] = usize::MAX;
        }
        let mut waits = vec![0_usize; metas.len()];
        let mut wanted = vec![Vec::new(); metas.len()];
        for (position, (_, range)) in metas.iter().enumerate() {
            for part in depends(&self.steps[range.clone()]) {
                let part = at[part as usize];
                if part != usize::MAX {
                    waits[position] += 1;
                    wanted[part].push(position);
                }
            }
        }
        let mut ready: Vec<usize> = (0..metas.len()).rev().filter(|&position| waits[position] == 0).collect();
        while let Some(position) = ready.pop() {
            self.order.push(metas[position].clone());
            for &waiting in &wanted[position] {
                waits[waiting] -= 1;
                if waits[waiting] == 0 {
                    ready.push(waiting);
                }
            }
        }
        for (position, (id, range)) in metas.iter().enumerate().filter(|(position, _)| waits[*position] > 0) {
            let stuck = depends(&self.steps[range.clone()]).find(|&part| {
                let part = at[part as usize];
                part != usize::MAX && waits[part] > 0
            });
            let name = stuck.and_then(|part| rules.names().get(part as usize)).map_or("", |rule| &*rule.name);
            debug_assert!(waits[position] > 0);
            self.excluded.push(Exclusion {
                rule: *id,
                reason: format!("it depends on {name}, which waits for it or for another ring of metas"),
            });
        }
    }
}

/// What a meta comes to: what is negative hits as all that is not 0, once.
fn outcome(steps: &[Step], values: &[f64], stack: &mut Vec<f64>) -> f64 {
    let value = |rule: u32| values.get(rule as usize).copied().unwrap_or(0.0);
    let outcome = meta::evaluate(steps, stack, value, |_| 0.0).unwrap_or(0.0);
    if outcome < 0.0 { 1.0 } else { outcome }
}

/// Rules without each of which a meta comes to 0, whatever all others come to.
fn needed(steps: &[Step]) -> Vec<u32> {
    // Of what is on the stack, the rules without each of which it is 0, and its value if it is always the same.
    let mut stack: Vec<(Vec<u32>, Option<f64>)> = Vec::new();
    let both = |one: Vec<u32>, other: &[u32]| one.into_iter().filter(|rule| other.contains(rule)).collect();
    for step in steps {
        let mut pop = || stack.pop().unwrap_or_default();
        let value = match *step {
            Step::Number(number) => (Vec::new(), Some(number)),
            Step::Rule(rule) => (vec![rule], None),
            Step::Matching(_) => (Vec::new(), None),
            Step::Not | Step::Negate => {
                pop();
                (Vec::new(), None)
            }
            Step::Choose => {
                (0..3).for_each(|_| drop(pop()));
                (Vec::new(), None)
            }
            step => {
                let (right, left) = (pop(), pop());
                let is = |value: Option<f64>, holds: fn(f64) -> bool| value.is_some_and(holds);
                let needed = match step {
                    Step::And => [left.0, right.0].concat(),
                    Step::Or | Step::Add => both(left.0, &right.0),
                    Step::Compare(Comparison::Greater) if is(right.1, |value| value >= 0.0) => left.0,
                    Step::Compare(Comparison::GreaterOrEqual) if is(right.1, |value| value > 0.0) => left.0,
                    Step::Compare(Comparison::Equal) if is(right.1, |value| value != 0.0) => left.0,
                    _ => Vec::new(),
                };
                (needed, None)
            }
        };
        stack.push(value);
    }
    stack.pop().unwrap_or_default().0
}

fn depends(steps: &[Step]) -> impl Iterator<Item = u32> {
    steps.iter().filter_map(|step| match step {
        Step::Rule(id) => Some(*id),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::super::loader::{File, Loader, Options};
    use super::super::syntax::expression::Unchecked;
    use super::*;

    fn load(text: &str) -> Rules {
        let mut loader = Loader::new(Options { default_plugins: true, ..Options::default() }, Limits::default());
        let file = File { name: "a.cf".into(), bytes: text.as_bytes().to_vec() };
        loader.read(&file, &mut |_, _| Err(String::new()));
        loader.finish(&Unchecked)
    }

    fn outcome(text: &str, hits: &[(&str, f64)], name: &str) -> f64 {
        let rules = load(text);
        let schedule = Schedule::new(&rules, &Limits::default());
        let mut values = vec![0.0; rules.names().len()];
        hits.iter().for_each(|(name, hits)| values[rules.id(name).unwrap() as usize] = *hits);
        assert!(schedule.evaluate(&mut values, &mut Fuel::new(1000)));
        values[rules.id(name).unwrap() as usize]
    }

    const TEXT: &str = "meta LAST __SUB == 2 && !UNDEFINED\nmeta __SUB A + A\nbody A /x/\nbody AB /x/\nmeta GLOB rules_matching(A*)\n\
                        meta RING RING || A\nmeta OF_RING !RING\nmeta NOT !AB\nmeta DIVIDED A / (1 + AB)\n";

    #[test]
    fn metas_are_evaluated_after_what_they_are_made_of() {
        for (hits, name, expected) in [
            (&[("A", 1.0)][..], "LAST", 1.0),
            (&[], "LAST", 0.0),
            (&[("A", 3.0), ("AB", 2.0)], "GLOB", 5.0),
            (&[], "NOT", 1.0),
            (&[("A", 3.0), ("AB", 2.0)], "DIVIDED", 1.0),
        ] {
            assert_eq!(outcome(TEXT, hits, name), expected, "{name}");
        }
    }

    #[test]
    fn metas_come_to_what_they_come_to_in_order() {
        let mut text: String = ('A'..='F').map(|name| format!("body {name} /x/\n")).collect();
        let metas = [
            "A && B && !C",
            "(A || B) && C > 1",
            "A + B + C > 2",
            "A + A >= 2",
            "!M0 && D",
            "M1 && M2 || E == 2",
            "(A && B) || (A && C)",
            "A * 0 == 0",
            "D && (0 - F)",
            "M5 ? M6 : E",
            "A >= 0 && B",
            "-A && F",
            "3 > A && F",
            "A == 0 && B == 1",
            "M0 == 1 && M3",
        ];
        (0..).zip(metas).for_each(|(number, meta)| text += &format!("meta M{number} {meta}\n"));
        let rules = load(&text);
        let schedule = Schedule::new(&rules, &Limits::default());
        assert_eq!(schedule.order().count(), metas.len());
        for case in 0..3_u32.pow(6) {
            let mut values = vec![0.0; rules.names().len()];
            for (place, name) in (0..).zip('A'..='F') {
                values[rules.id(&name.to_string()).unwrap() as usize] = f64::from(case / 3_u32.pow(place) % 3);
            }
            let mut expected = values.clone();
            for (id, range) in &schedule.order {
                expected[*id as usize] = super::outcome(&schedule.steps[range.clone()], &expected, &mut Vec::new());
            }
            assert!(schedule.evaluate(&mut values, &mut Fuel::new(1000)));
            assert_eq!(values, expected, "{case}");
        }
    }

    #[test]
    fn a_ring_and_what_is_made_of_it_never_hits() {
        assert_eq!(outcome(TEXT, &[("A", 1.0)], "RING"), 0.0);
        assert_eq!(outcome(TEXT, &[("A", 1.0)], "OF_RING"), 0.0);
    }

    #[test]
    fn evaluation_ends_with_the_fuel() {
        let rules = load(TEXT);
        let schedule = Schedule::new(&rules, &Limits::default());
        let mut values = vec![0.0; rules.names().len()];
        values[rules.id("A").unwrap() as usize] = 1.0;
        assert!(!schedule.evaluate(&mut values, &mut Fuel::new(5)));
    }

    #[test]
    fn a_glob_that_means_too_much_excludes_its_meta() {
        let limits = Limits { meta_steps_max: 4, ..Limits::default() };
        let schedule =
            Schedule::new(&load("body A1 /x/\nbody A2 /x/\nmeta M rules_matching(A?)\nmeta N !M\n"), &limits);
        assert_eq!(schedule.excluded().len(), 1);
        assert_eq!(schedule.order().count(), 1);
    }
}
