//! Whether rules hold, now that the object has passed.
//!
//! A value is a number, or `None` where YARA has *undefined*; truth is a number that is not 0. What has a fraction is known
//! by its node, and calculated apart. Expressions that are kept
//! for the end are run when a condition first asks for them.
//!
//! Rules are decided in turns: a turn ends with the rule that brings it to [`STEPS_OF_TURN`] nodes, or where another
//! expression would have to be run when [`SEARCHED_OF_TURN`] bytes were searched; that rule is begun again in the next.
//!
//! Bounds: [`STEPS_MAX`] nodes for all conditions of an object, [`STEPS_OF_RULE_MAX`] in one turn, [`TURNS_MAX`] turns of one
//! loop, and what `Follower` and `Content` have. What passes a bound is counted as lost, and the rule does not hold.

mod elf;
mod modules;
mod strings;

use std::cell::{Cell, RefCell};
use std::collections::HashMap;

use crate::layout::{Layout, SectionHead};
use crate::run::rule::Content;
use crate::run::strings::{Map, Matches};
use crate::yara::fact::{Called, Tables};
use crate::yara::header;
use crate::yara::id::{NodeId, StringId};
use crate::yara::math::Histogram;
use crate::yara::node::{List, Node, Operator, Quantifier, Width};
use crate::yara::table::Table;

/// The most nodes that are evaluated.
const STEPS_MAX: u64 = 4 << 20;
/// The most nodes beyond which a turn ends, and those that a rule may take in one.
const STEPS_OF_TURN: u64 = 16 << 10;
const STEPS_OF_RULE_MAX: u64 = 1 << 20;
/// The bytes that are searched in a turn, but for the search that passes them.
const SEARCHED_OF_TURN: u64 = 4 << 20;
/// The bytes that are looked at for as much as a node.
const BYTES_OF_STEP: u64 = 64;
/// The most turns of one loop.
const TURNS_MAX: i64 = 65_536;
/// Facts about an object.
pub(crate) struct Facts<'a> {
    pub(crate) table: &'a Table,
    pub(crate) found: &'a Map<Matches>,
    pub(crate) called: &'a Called,
    pub(crate) layout: Option<&'a Layout>,
    pub(crate) tables: &'a Tables,
    pub(crate) size: u64,
    /// The last bytes, and where they begin.
    pub(crate) tail: (u64, &'a [u8]),
}

/// A rule that holds, and where the first of its strings was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Held {
    pub(crate) rule: u32,
    pub(crate) offset: u64,
}

/// How far the rules of a table are decided.
#[derive(Debug, Clone, Default)]
pub(crate) struct Verdicts {
    /// The rules that may hold, once that is known, the next one last.
    due: Option<Vec<u32>>,
    /// Matches of the expressions that were run.
    searched: RefCell<HashMap<StringId, Matches>>,
    known: RefCell<HashMap<u32, bool>>,
    steps: Cell<u64>,
    /// The matches that the expressions have found.
    places: Cell<usize>,
    lost: Cell<u64>,
}

/// Evaluates conditions.
pub(crate) struct Evaluator<'a, 'c, 'k> {
    facts: Facts<'a>,
    content: RefCell<&'c mut Content<'k>>,
    verdicts: &'c Verdicts,
    /// The nodes of this turn, and the bytes that were searched in it.
    steps: Cell<u64>,
    searched: Cell<u64>,
    /// Whether what is asked for has to wait for the next turn.
    waits: Cell<bool>,
}

/// Variables of loops.
#[derive(Clone, Copy)]
struct Loops<'l> {
    string: Option<StringId>,
    variables: &'l [i64],
}

type Value = Option<i64>;

impl Verdicts {
    /// How much was given up.
    pub(crate) fn lost(&self) -> u64 {
        self.lost.get()
    }

    /// A turn: the rules that were found to hold and are told, and whether there are more to decide.
    pub(crate) fn turn(&mut self, facts: Facts<'_>, content: &mut Content<'_>) -> (Vec<Held>, bool) {
        let table = facts.table;
        let mut due = self.due.take().unwrap_or_else(|| due(&facts));
        let evaluator = Evaluator {
            facts,
            content: RefCell::new(content),
            verdicts: self,
            steps: Cell::new(0),
            searched: Cell::new(0),
            waits: Cell::new(false),
        };
        let mut held = Vec::new();
        while let Some(&rule) = due.last() {
            let holds = evaluator.holds(rule);
            if evaluator.waits.get() {
                break;
            }
            due.pop();
            if holds && table.rules.get(rule as usize).is_some_and(|rule| rule.told) {
                held.push(Held { rule, offset: evaluator.first_of(rule) });
            }
            if evaluator.steps.get() > STEPS_OF_TURN {
                break;
            }
        }
        let steps = evaluator.steps.get();
        content.work(steps + 1);
        self.steps.set(self.steps.get() + steps);
        let more = !due.is_empty();
        self.due = Some(due);
        (held, more)
    }
}

/// The rules that may hold, the first of them last: those whose strings were found, those that speak of them, and those
/// that need none.
fn due(facts: &Facts<'_>) -> Vec<u32> {
    let table = facts.table;
    let rules = facts.found.keys().filter_map(|string| table.texts.get(*string as usize)).map(|text| text.rule);
    let mut is_due = vec![false; table.rules.len()];
    rules.chain(table.untouched.iter().copied()).for_each(|rule| is_due[rule as usize] = true);
    // A rule speaks of rules before it, so in their order one pass finds all.
    for (of, rule) in &table.dependents {
        is_due[*rule as usize] |= is_due[*of as usize];
    }
    (0..table.rules.len() as u32).rev().filter(|rule| is_due[*rule as usize]).collect()
}

impl<'a> Evaluator<'a, '_, '_> {
    fn first_of(&self, rule: u32) -> u64 {
        let of_rule = |string: &StringId| {
            self.facts.table.texts.get(*string as usize).is_some_and(|text| text.rule == rule && text.kept.is_none())
        };
        let on_stream = self.facts.found.iter().filter(|(string, _)| of_rule(string)).map(|(_, matches)| matches.first);
        on_stream.min().unwrap_or(0)
    }

    fn holds(&self, rule: u32) -> bool {
        if let Some(&known) = self.verdicts.known.borrow().get(&rule) {
            return known;
        }
        let condition = self.facts.table.rules.get(rule as usize).map(|rule| rule.condition);
        let holds = condition.is_some_and(|condition| self.truth(condition, Loops { string: None, variables: &[] }));
        if !self.waits.get() {
            self.verdicts.known.borrow_mut().insert(rule, holds);
        }
        holds
    }

    fn truth(&self, id: NodeId, loops: Loops<'_>) -> bool {
        self.value(id, loops).is_some_and(|value| value != 0)
    }

    /// So many nodes, or what counts as much; nothing where they are too many.
    fn step(&self, count: u64) -> Option<()> {
        let steps = self.steps.get().saturating_add(count);
        self.steps.set(steps);
        if self.waits.get() {
            return None;
        }
        if steps > STEPS_OF_RULE_MAX || self.verdicts.steps.get().saturating_add(steps) > STEPS_MAX {
            self.lose();
            return None;
        }
        Some(())
    }

    fn value(&self, id: NodeId, loops: Loops<'_>) -> Value {
        self.step(1)?;
        let value = |id| self.value(id, loops);
        match self.facts.table.arena.get(id) {
            Node::Number(number) => Some(number),
            Node::Truth(truth) => Some(truth.into()),
            Node::Float(_) | Node::Measure(..) | Node::FloatPair(..) | Node::FloatNegative(_) => {
                Some((self.float(id, loops)? != 0.0).into())
            }
            Node::FloatCompare(operator, left, right) => self.fractions(operator, left, right, loops),
            Node::CountByte(byte, over) => {
                let byte = u8::try_from(value(byte)?).ok()?;
                self.over(over, loops, |bytes| Histogram::of(bytes).count(byte) as i64)
            }
            Node::Mode(over) => self.over(over, loops, |bytes| Histogram::of(bytes).mode().into()),
            Node::InRange(number, low, high) => {
                let number = self.float(number, loops)?;
                Some((self.float(low, loops)? <= number && number <= self.float(high, loops)?).into())
            }
            Node::Least(one, other) => {
                Some(value(one)?.cast_unsigned().min(value(other)?.cast_unsigned()).cast_signed())
            }
            Node::Most(one, other) => {
                Some(value(one)?.cast_unsigned().max(value(other)?.cast_unsigned()).cast_signed())
            }
            Node::Absolute(of) => Some(value(of)?.wrapping_abs()),
            Node::FileSize => i64::try_from(self.facts.size).ok(),
            Node::EntryPoint => i64::try_from(self.facts.layout?.entry?).ok(),
            Node::Sections => Some(self.pe()?.count.into()),
            Node::Compare(field, comparison, with) => {
                let (text, with) = (self.text(field, loops)?, self.facts.table.arena.text(with)?);
                Some(comparison.holds(&text, with).into())
            }
            Node::Has(field) => self.text(field, loops).map(|text| (!text.is_empty()).into()),
            Node::Head(head) => self.head(head),
            Node::Header(field) => self.pe().and_then(|pe| field.value(&pe.headers, pe.wide)),
            Node::Directory(index, is_size) => {
                let (index, pe) = (value(index)?, self.pe()?);
                header::directory(&pe.headers, pe.wide, index, is_size)
            }
            Node::Elf(of) => self.elf(of),
            Node::ElfEntry(of, index) => self.elf_entry(of, value(index)?),
            Node::SectionNamed(name) => {
                let name = self.plain(name)?;
                self.pe()?.sections.iter().position(|section| section.name() == name).map(|index| index as i64)
            }
            Node::SectionAt(at) => {
                let at = u64::try_from(value(at)?).ok()?;
                let holds = |section: &SectionHead| {
                    at.checked_sub(section.offset.into()).is_some_and(|within| within < section.length.into())
                };
                self.pe()?.sections.iter().position(holds).map(|index| index as i64)
            }
            Node::Section(of, index) => self.section(of, value(index)?),
            Node::Imports(library, function) => self.imports(library, function),
            Node::Exports(name) => {
                let (all, name) = (self.exported()?, self.plain(name)?);
                Some(all.names.iter().any(|one| one.eq_ignore_ascii_case(name)).into())
            }
            Node::Variable(number) => loops.variables.get(number as usize).copied(),
            Node::Rule(rule) => Some(self.holds(rule).into()),
            Node::Found(string, place) => Some(self.is_found(string, place, loops).into()),
            Node::Count(string, place) => self.count(string, place, loops),
            Node::Offset(string, index) => self.nth(string, value(index)?, loops).map(|(start, _)| start),
            Node::Length(string, index) => self.nth(string, value(index)?, loops).map(|(_, length)| length),
            Node::Read(width, at) => self.read(width, value(at)?),
            Node::Not(of) => Some((value(of)? == 0).into()),
            Node::Negative(of) => Some(value(of)?.wrapping_neg()),
            Node::Complement(of) => Some(!value(of)?),
            Node::Defined(of) => Some(value(of).is_some().into()),
            Node::Pair(Operator::Or, left, right) => Some((self.truth(left, loops) || self.truth(right, loops)).into()),
            Node::Pair(Operator::And, left, right) => {
                Some((self.truth(left, loops) && self.truth(right, loops)).into())
            }
            Node::Pair(operator, left, right) => paired(operator, value(left)?, value(right)?),
            Node::Of(quantifier, list, place) => {
                let strings = self.facts.table.arena.list(list);
                let found = strings.iter().map(|string| self.is_found(*string, place, loops));
                self.enough(quantifier, strings.len() as i64, found, loops)
            }
            Node::ForOf(quantifier, list, body) => {
                let strings = self.facts.table.arena.list(list);
                let held = strings.iter().map(|string| self.truth(body, Loops { string: Some(*string), ..loops }));
                self.enough(quantifier, strings.len() as i64, held, loops)
            }
            Node::ForRange(quantifier, (low, high), body) => {
                // A loop without a range does not hold; it is not undefined.
                let Some((low, high)) = value(low).zip(value(high)) else {
                    return Some(0);
                };
                if high.checked_sub(low)? >= TURNS_MAX {
                    self.lose();
                    return None;
                }
                let count = (high - low + 1).max(0);
                self.enough(quantifier, count, (low..=high).map(|number| self.turn(body, number, loops)), loops)
            }
            Node::ForList(quantifier, list, body) => self.for_list(quantifier, list, body, loops),
        }
    }

    fn for_list(&self, quantifier: Quantifier, list: List, body: NodeId, loops: Loops<'_>) -> Value {
        let items = self.facts.table.arena.list(list);
        let numbers = items.iter().map(|item| self.value(*item, loops));
        let held = numbers.map(|number| number.is_some_and(|number| self.turn(body, number, loops)));
        self.enough(quantifier, items.len() as i64, held, loops)
    }

    /// Whether the body of a loop holds for a number.
    fn turn(&self, body: NodeId, number: i64, loops: Loops<'_>) -> bool {
        let variables = [loops.variables, &[number]].concat();
        self.truth(body, Loops { variables: &variables, ..loops })
    }

    /// Whether so many hold as are asked for; no more are looked at than needed.
    fn enough(&self, quantifier: Quantifier, all: i64, held: impl Iterator<Item = bool>, loops: Loops<'_>) -> Value {
        let wanted = match quantifier {
            Quantifier::All => all,
            Quantifier::Any => 1,
            Quantifier::None => {
                return Some(held.into_iter().all(|held| !held).into());
            }
            Quantifier::Number(number) => self.value(number, loops)?,
            Quantifier::Percent(share) => {
                let share = self.value(share, loops)?;
                all.checked_mul(share)?.checked_add(99)?.div_euclid(100)
            }
        };
        if wanted <= 0 {
            // `all of` nothing does not hold, and 0 of several only if none does.
            return Some((all > 0 && held.into_iter().all(|held| !held)).into());
        }
        let wanted = usize::try_from(wanted).ok()?;
        Some((held.filter(|held| *held).take(wanted).count() == wanted).into())
    }

    /// A number that stands in the object.
    fn read(&self, width: Width, at: i64) -> Value {
        let mut bytes = [0; 4];
        let bytes = bytes.get_mut(..usize::from(width.bytes))?;
        self.fetch(u64::try_from(at).ok()?, bytes)?;
        if !width.big {
            bytes.reverse();
        }
        let value = bytes.iter().fold(0i64, |value, byte| value << 8 | i64::from(*byte));
        let unused = 64 - 8 * u32::from(width.bytes);
        Some(if width.signed { value << unused >> unused } else { value })
    }

    /// Reads bytes of the object; none beyond its end. Those that are not kept are lost.
    fn fetch(&self, at: u64, bytes: &mut [u8]) -> Option<()> {
        let length = bytes.len();
        if at.checked_add(length as u64)? > self.facts.size {
            return None;
        }
        let (tail_at, tail) = self.facts.tail;
        let in_tail = at.checked_sub(tail_at).and_then(|skip| tail.get(usize::try_from(skip).ok()?..));
        match in_tail.and_then(|tail| tail.get(..length)) {
            Some(last) => bytes.copy_from_slice(last),
            None if self.content.borrow().bytes_at(at, bytes) => {}
            None => {
                self.lose();
                return None;
            }
        }
        Some(())
    }
}

fn compared(operator: Operator, left: f64, right: f64) -> bool {
    match operator {
        // YARA's tolerance, whatever the size of the numbers; of infinite ones neither holds.
        Operator::Equal => (left - right).abs() < f64::EPSILON,
        Operator::NotEqual => (left - right).abs() >= f64::EPSILON,
        Operator::Less => left < right,
        Operator::LessOrEqual => left <= right,
        Operator::Greater => left > right,
        _ => left >= right,
    }
}

fn paired(operator: Operator, left: i64, right: i64) -> Value {
    let truth = |truth: bool| Some(i64::from(truth));
    match operator {
        Operator::Equal => truth(left == right),
        Operator::NotEqual => truth(left != right),
        Operator::Less => truth(left < right),
        Operator::LessOrEqual => truth(left <= right),
        Operator::Greater => truth(left > right),
        Operator::GreaterOrEqual => truth(left >= right),
        Operator::BitOr => Some(left | right),
        Operator::BitXor => Some(left ^ right),
        Operator::BitAnd => Some(left & right),
        Operator::ShiftLeft => shift(right).map(|by| left.checked_shl(by).unwrap_or(0)),
        Operator::ShiftRight => shift(right).map(|by| left.checked_shr(by).unwrap_or(0)),
        Operator::Add => Some(left.wrapping_add(right)),
        Operator::Subtract => Some(left.wrapping_sub(right)),
        Operator::Multiply => Some(left.wrapping_mul(right)),
        Operator::Divide => left.checked_div(right),
        Operator::Remainder => left.checked_rem(right),
        Operator::Or => truth(left != 0 || right != 0),
        Operator::And => truth(left != 0 && right != 0),
    }
}

fn shift(by: i64) -> Option<u32> {
    u64::try_from(by).ok().map(|by| u32::try_from(by).unwrap_or(u32::MAX))
}
