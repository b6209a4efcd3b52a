//! The order in which metas are evaluated.
//!
//! A meta is evaluated when all that it is made of is known. A name that no rule has, a rule that did not run (its score
//! is 0, it asks the network and may not, its function is missing) and a placeholder count as 0. Metas that depend on each
//! other in a ring, and what is made of those, never hit and count as 0: they are listed as excluded.
//!
//! Of a thousand metas few are made of anything that hit. What each comes to where nothing has hit is worked out once
//! ([`Schedule::retain`]), and only metas with a part that came to something else are evaluated; and of those that are 0 unless
//! so many of some parts hit ([`Need`]), only where so many did.
//!
//! Nor need all parts be known: a sub-rule that has not been run is found out only where a meta that is no sub-rule may come to
//! one thing or another by it, the cheapest first.

mod evaluation;
mod need;
mod span;

use std::ops::Range;

use self::evaluation::Evaluation;
use self::need::Need;
use self::span::Span;

use crate::spam::limits::Limits;
use crate::spam::rule::{Rule, Rules, Test};
use crate::spam::syntax::meta::{self, Meta, Step};
use stream::Fuel;

/// Metas in the order in which they can be evaluated, their names and globs looked up.
#[derive(Debug, Clone, Default)]
pub struct Schedule {
    /// Rule ids for names; globs are written out as sums.
    steps: Vec<Step>,
    order: Vec<(u32, Range<usize>)>,
    excluded: Vec<Exclusion>,
    rules: usize,
    /// Value of each rule when nothing has hit.
    resting: Vec<f64>,
    /// The places of the metas that hit when no rule has hit.
    hits_at_rest: Vec<u32>,
    /// Metas that use each rule, by their places in the order; and for each meta, by its place, how many of the
    /// rules that name it here have to come to something else before it can.
    users: Lists,
    least: Vec<u32>,
    /// Rules without each of which a meta is 0, whatever the others are; by the meta's place in the order.
    needed: Vec<Box<[u32]>>,
    /// The places of metas in the order, by their ids.
    places: Vec<Option<u32>>,
    /// Number of metas that each rule is a part of.
    made_of: Vec<u32>,
    /// Largest value of each rule, by its id.
    most: Vec<f64>,
    /// Sub-rules, by their ids: only metas use their values, and none of them ends a check.
    subrules: Vec<bool>,
}

/// Short lists, end to end: most are read in passing, and lie near each other.
#[derive(Debug, Clone, Default)]
struct Lists {
    /// Where each begins; one more at the end.
    starts: Vec<u32>,
    all: Vec<u32>,
}

impl Lists {
    fn new(lists: &[Vec<u32>]) -> Lists {
        let ends = lists.iter().scan(0, |end, list| {
            *end += list.len() as u32;
            Some(*end)
        });
        Lists { starts: std::iter::once(0).chain(ends).collect(), all: lists.concat() }
    }

    fn of(&self, number: usize) -> &[u32] {
        &self.all[self.starts[number] as usize..self.starts[number + 1] as usize]
    }
}

/// A rule that has not been run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Open {
    /// Its id.
    pub rule: u32,
    /// Cost of running it, relative to others.
    pub cost: u32,
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
        let waits = |rule: &Rule| rule.is_subrule() && rule.shortcircuit.is_none();
        let subrules = rules.names().iter().map(waits).collect();
        let most = rules.names().iter().map(most).collect();
        let mut schedule = Schedule { rules: rules.names().len(), subrules, most, ..Schedule::default() };
        let mut waiting = Vec::new();
        for (id, rule) in rules.names().iter().enumerate() {
            let (Some(Test::Meta(meta)), Ok(id)) = (&rule.test, u32::try_from(id)) else { continue };
            match schedule.resolve(id, meta, rules, limits) {
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

    /// Makes metas come to 0 where one of others does not: of those that it is told for each.
    ///
    /// Before [`Self::retain`], which works out what follows.
    pub fn under<'c>(&mut self, conditions: impl Fn(u32) -> &'c [u32]) {
        for (id, range) in &mut self.order {
            let conditions = conditions(*id);
            if conditions.is_empty() {
                continue;
            }
            let start = self.steps.len();
            conditions.iter().for_each(|&other| self.steps.extend([Step::Rule(other), Step::Not]));
            self.steps.extend_from_within(range.clone());
            self.steps.extend(conditions.iter().map(|_| Step::And));
            *range = start..self.steps.len();
        }
    }

    /// Leaves metas out: they count as 0.
    pub fn retain(&mut self, keep: impl Fn(u32) -> bool) {
        self.order.retain(|(id, _)| keep(*id));
        let (mut resting, mut stack) = (vec![0.0; self.rules], Vec::new());
        self.made_of = vec![0; self.rules];
        self.places = vec![None; self.rules];
        for (place, (id, range)) in (0..).zip(&self.order) {
            let (id, steps) = (*id as usize, &self.steps[range.clone()]);
            resting[id] = outcome(steps, &resting, &mut stack);
            self.most[id] = span::weigh(steps, &mut Vec::new(), |part| Span::up_to(self.most[part as usize])).high();
            depends(steps).for_each(|part| self.made_of[part as usize] += 1);
            self.places[id] = Some(place);
        }
        let mut users = vec![Vec::new(); self.rules];
        self.needed.clear();
        self.least.clear();
        for (place, (id, range)) in (0..).zip(&self.order) {
            let steps = &self.steps[range.clone()];
            let rests = resting[*id as usize] == 0.0;
            self.needed.push(if rests { need::all(steps) } else { Vec::new() }.into());
            let need = Some(steps).filter(|_| rests).and_then(|steps| Need::of(steps, &self.most, &self.made_of));
            // What hits where nothing has need not hit any more.
            let need = need.and_then(|need| need.beyond(|part| resting[part as usize] != 0.0));
            let need = need.unwrap_or_else(|| Need::any(depends(steps)));
            self.least.push(need.least);
            need.parts.iter().for_each(|&part| users[part as usize].push(place));
        }
        self.users = Lists::new(&users);
        self.resting = resting;
        let hits_at_rest = (0..).zip(&self.order).filter(|(_, (id, _))| self.resting[*id as usize] != 0.0);
        self.hits_at_rest = hits_at_rest.map(|(place, _)| place).collect();
    }

    /// Evaluates all metas: `values` has what each rule came to, by its id, with 0 for metas, and gets what these come to. A rule that
    /// did not hit is 0, one that hit is 1 or, with `multiple`, the number of its hits.
    ///
    /// Those of `open` have not been run: `run` is told the places among them of those that have to be, and says what they come to.
    /// All metas that are no sub-rules hit or do not as if all had been run; a sub-rule that nobody had to know comes to 0.
    ///
    /// Tells the metas that have come to something, in order. Burns a unit a step. `false`: there was not fuel enough, and the
    /// metas that were left count as where nothing has hit.
    pub fn evaluate(
        &self,
        values: &mut Vec<f64>,
        open: &[Open],
        run: impl FnMut(u32) -> f64,
        fuel: &mut Fuel,
    ) -> (Vec<u32>, bool) {
        values.resize(self.rules, 0.0);
        Evaluation::new(self, values, open, run, fuel).all()
    }

    /// Looks names and globs up; `None` where that becomes too long.
    fn resolve(&mut self, own: u32, meta: &Meta, rules: &Rules, limits: &Limits) -> Option<Range<usize>> {
        let start = self.steps.len();
        for step in &meta.steps {
            match *step {
                Step::Rule(name) => {
                    let id = meta.names.get(name as usize).and_then(|name| rules.id(name));
                    self.steps.push(id.map_or(Step::Number(0.0), Step::Rule));
                }
                Step::Matching(glob) => {
                    let glob = meta.globs.get(glob as usize).map_or(&b""[..], |glob| glob.as_bytes());
                    self.expand(own, glob, rules);
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

    /// A glob means all rules but the one that it stands in.
    fn expand(&mut self, own: u32, glob: &[u8], rules: &Rules) {
        self.steps.push(Step::Number(0.0));
        for (id, rule) in rules.names().iter().enumerate() {
            let Ok(id) = u32::try_from(id) else { return };
            if id != own && rule.test.is_some() && meta::matches(glob, rule.name.as_bytes()) {
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

/// Largest value of a rule that is no meta.
fn most(rule: &Rule) -> f64 {
    match &rule.test {
        Some(Test::Header(_) | Test::MimeHeader(_) | Test::Pattern(..)) => f64::from(rule.flags.hits_max()),
        _ => f64::INFINITY,
    }
}

/// Value of a meta.
fn outcome(steps: &[Step], values: &[f64], stack: &mut Vec<f64>) -> f64 {
    let value = |rule: u32| values.get(rule as usize).copied().unwrap_or(0.0);
    counted(meta::evaluate(steps, stack, value, |_| 0.0).unwrap_or(0.0))
}

/// Number of hits of a value: a negative one counts as one, an infinite or undefined one as none.
fn counted(value: f64) -> f64 {
    match value {
        value if !value.is_finite() => 0.0,
        value if value < 0.0 => 1.0,
        value => value,
    }
}

fn depends(steps: &[Step]) -> impl Iterator<Item = u32> {
    steps.iter().filter_map(|step| match step {
        Step::Rule(id) => Some(*id),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::spam::loader::{File, Loader, Options};
    use crate::spam::syntax::expression::Unchecked;

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
        assert!(schedule.evaluate(&mut values, &[], |_| 0.0, &mut Fuel::new(1000)).1);
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
        let mut text: String =
            ('A'..='F').map(|name| format!("body {name} /x/\ntflags {name} multiple maxhits=2\n")).collect();
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
            "A / (B - 1) > 0 || C",
            "C && A / (B - 1)",
            "C || A / (B - 1)",
            "!(A / (B - 1)) && (C ? D : E)",
            "(A - B) * (C - D) + E",
            "0 - A - B",
            "__S22 && (E || F)",
            "__S23 + A > 2",
            "!__S22 || !__S23",
            "A / (B - 1) > 5 || C",
            "!(A / (B - 1)) || C",
            "(A / (B - 1) == 5) + 1 > 0",
            "A / (B - 1) >= 0 || !C ? 1 : 1",
            "((D - E) || 3) <= 0",
            "M2 + M3 + M13 > 1",
            "M2 + M3 >= 2 && E",
        ];
        (0..).zip(metas).for_each(|(number, meta)| text += &format!("meta M{number} {meta}\n"));
        text += "meta __S22 A + B > C\nmeta __S23 __S22 + (D && E) + !F\n";
        let rules = load(&text);
        let schedule = Schedule::new(&rules, &Limits::default());
        assert_eq!(schedule.order().count(), metas.len() + 2);
        // Each without the others, which have parts run before.
        let without_others = (0..).zip(metas).filter(|(_, meta)| !meta.contains('M'));
        let alone: Vec<Schedule> = without_others
            .map(|(number, _)| {
                let id = rules.id(&format!("M{number}")).unwrap();
                let mut schedule = schedule.clone();
                schedule.retain(|meta| meta == id || rules.names()[meta as usize].is_subrule());
                schedule
            })
            .collect();
        for case in 0..3_u32.pow(6) {
            let mut values = vec![0.0; rules.names().len()];
            for (place, name) in (0..).zip('A'..='F') {
                values[rules.id(&name.to_string()).unwrap() as usize] = f64::from(case / 3_u32.pow(place) % 3);
            }
            let mut expected = values.clone();
            for (id, range) in &schedule.order {
                expected[*id as usize] = super::outcome(&schedule.steps[range.clone()], &expected, &mut Vec::new());
            }
            let (hits, is_done) = schedule.evaluate(&mut values, &[], |_| 0.0, &mut Fuel::new(1000));
            assert!(is_done);
            assert_eq!(hits, schedule.order().filter(|&id| expected[id as usize] != 0.0).collect::<Vec<_>>());
            assert_eq!(values, expected, "{case}");
            some_are_found_out(&rules, &schedule, &expected, case);
            alone.iter().for_each(|schedule| some_are_found_out(&rules, schedule, &expected, case));
        }
    }

    /// The first of what has not been run, in each of three costs: all that is no sub-rule comes to what it comes to.
    fn some_are_found_out(rules: &Rules, schedule: &Schedule, expected: &[f64], case: u32) {
        let letters = ('A'..='F').map(|name| rules.id(&name.to_string()).unwrap());
        for (number, mask) in (0..).zip([0b11_1111_u32, 0b10_1010, 0b00_0111]) {
            let is_open = |place: u32| mask >> place & 1 != 0;
            let mut values = vec![0.0; rules.names().len()];
            let mut open = Vec::new();
            for (place, rule) in (0..).zip(letters.clone()) {
                match is_open(place) {
                    true => open.push(Open { rule, cost: (case + place * number) % 7 }),
                    false => values[rule as usize] = expected[rule as usize],
                }
            }
            let mut asked = BTreeSet::new();
            let find_out = |number: u32| {
                assert!(asked.insert(number), "it is asked once");
                expected[open[number as usize].rule as usize]
            };
            assert!(schedule.evaluate(&mut values, &open, find_out, &mut Fuel::new(10_000)).1);
            let metas = schedule.order().filter(|&id| !schedule.subrules[id as usize]);
            for id in metas.map(|id| id as usize) {
                assert_eq!(values[id] != 0.0, expected[id] != 0.0, "{case} {mask} {id}");
                assert!(values[id] == expected[id] || schedule.made_of[id] == 0, "{case} {mask} {id}");
            }
        }
    }

    #[test]
    fn what_large_metas_wait_for_is_run_in_time() {
        let count = 3000;
        let mut text: String = (0..count).map(|number| format!("body __A{number} /x/\n")).collect();
        let sum = (0..count).map(|number| format!("__A{number}")).collect::<Vec<_>>().join(" + ");
        text += &format!("meta BIG {sum} > {}\nmeta SMALL __A1 && __A2\nmeta NOT !__A1\n", count - 1);
        text += &format!("meta OVER __A1 * {}\n", "9".repeat(308));
        text += "meta INFINITE OVER * OVER + 1\n";
        let rules = load(&text);
        let schedule = Schedule::new(&rules, &Limits::default());
        let id = |name: &str| rules.id(name).unwrap();
        let open: Vec<Open> = (0..count).map(|number| Open { rule: id(&format!("__A{number}")), cost: 1 }).collect();
        for misses in [count, 1, 2999] {
            let mut values = Vec::new();
            let run = |number: u32| f64::from(u8::from(number != misses));
            let (hits, is_done) = schedule.evaluate(&mut values, &open, run, &mut Fuel::new(100_000));
            assert!(is_done);
            let expected: &[&str] = match misses {
                1 => &["NOT", "INFINITE"],
                2999 => &["SMALL", "OVER"],
                _ => &["BIG", "SMALL", "OVER"],
            };
            assert_eq!(hits, expected.iter().map(|name| id(name)).collect::<Vec<_>>());
        }
    }

    #[test]
    fn only_what_decides_is_found_out() {
        let rules = load(
            "body __A /x/\nbody __B /x/\nbody __C /x/\nmeta __AB __A && __B\nmeta __ALONE __C\nmeta M __AB && __C\n\
             meta N __AB + __C > 5\nmeta O (__A || __C) && !__B\n",
        );
        let schedule = Schedule::new(&rules, &Limits::default());
        let id = |name: &str| rules.id(name).unwrap();
        let asked = |hits: &[&str], costs: [u32; 3]| {
            let names = ["__A", "__B", "__C"];
            let open: Vec<Open> =
                names.into_iter().zip(costs).map(|(name, cost)| Open { rule: id(name), cost }).collect();
            let (mut values, mut asked) = (Vec::new(), String::new());
            let find_out = |number: u32| {
                asked += names[number as usize];
                f64::from(u8::from(hits.contains(&names[number as usize])))
            };
            assert!(schedule.evaluate(&mut values, &open, find_out, &mut Fuel::new(10_000)).1);
            let hit = ["M", "N", "O"].into_iter().filter(|name| values[id(name) as usize] != 0.0);
            (asked, hit.collect::<String>())
        };
        assert_eq!(asked(&["__A", "__C"], [3, 1, 2]), ("__C__B".into(), "O".into()));
        // Of M the rule first, which costs less than a meta; of O what costs least.
        assert_eq!(asked(&["__A", "__B"], [1, 2, 3]), ("__C__A__B".into(), String::new()));
        assert_eq!(asked(&["__A", "__B", "__C"], [1, 2, 3]), ("__C__A__B".into(), "M".into()));
        assert_eq!(asked(&[], [1, 2, 3]), ("__C__A".into(), String::new()));
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
        assert!(!schedule.evaluate(&mut values, &[], |_| 0.0, &mut Fuel::new(5)).1);
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
