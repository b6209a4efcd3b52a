//! Lists of expressions, of which any may match: one pass for the strings that they need, and a search for those whose string is there.

use std::cell::RefCell;
use std::sync::Mutex;

use pattern::expression::{Expression, Flags, LiteralLimits, Progress, Search, Want, fold};
use pattern::{Builder, Patterns, Piece, State};
use stream::Fuel;

/// Steps that all searches for one text may take.
const STEPS_MAX: u64 = 5_000_000;
/// Searches that one list keeps with the memory of their automata.
const IDLE_MAX: usize = 16;

/// How all expressions of lists are read.
pub(crate) const FLAGS: Flags = Flags { ignore_case: true, dot_all: true, ..Flags::NONE };

/// Expressions of a list.
#[derive(Debug, Default)]
pub(crate) struct Expressions {
    all: Vec<Expression>,
    needs: Needs,
    idle: Idle,
}

/// Searches that nobody runs, with the places of their expressions: their automata need not be built again.
#[derive(Debug, Default)]
pub(crate) struct Idle(Mutex<Vec<(u32, Search)>>);

impl Idle {
    /// Runs a search for the expression at a place: one that is kept, or a new one. It is kept afterwards.
    pub fn run<T>(&self, number: u32, new: impl FnOnce() -> Search, run: impl FnOnce(&mut Search) -> T) -> T {
        let take = |idle: &mut Vec<(u32, Search)>| {
            let place = idle.iter().position(|(known, _)| *known == number)?;
            Some(idle.swap_remove(place).1)
        };
        let kept = self.0.lock().ok().and_then(|mut idle| take(&mut idle));
        let mut search = kept.unwrap_or_else(new);
        let done = run(&mut search);
        if let Ok(mut idle) = self.0.lock() {
            if idle.len() >= IDLE_MAX {
                idle.remove(0);
            }
            idle.push((number, search));
        }
        done
    }
}

/// The strings that expressions need.
#[derive(Debug, Default)]
pub(crate) struct Needs {
    /// Expressions without a literal that can be searched.
    always: Vec<u32>,
    patterns: Option<Patterns>,
    /// The expressions of each pattern.
    of_pattern: Vec<Vec<u32>>,
}

impl Needs {
    pub fn new<'e>(all: impl Iterator<Item = &'e Expression>) -> Needs {
        let limits = LiteralLimits { bytes_min: 2, ..LiteralLimits::default() };
        let (mut builder, mut needs) = (Builder::new(), Needs::default());
        for (number, expression) in (0..).zip(all) {
            let parts = expression.literals(limits).and_then(|literals| {
                let add = |literal: &Vec<u8>| builder.add(&Piece::bytes(literal)).ok();
                literals.iter().map(add).collect::<Option<Vec<_>>>()
            });
            let Some(parts) = parts else {
                needs.always.push(number);
                continue;
            };
            for part in parts {
                let part = part as usize;
                needs.of_pattern.resize(needs.of_pattern.len().max(part + 1), Vec::new());
                needs.of_pattern[part].push(number);
            }
        }
        needs.patterns = Some(builder.build());
        needs
    }

    /// The expressions that may match a text, in their order; `None` where any may.
    pub fn of(&self, text: &[u8]) -> Option<Vec<u32>> {
        let mut wanted = self.always.clone();
        if let Some(patterns) = self.patterns.as_ref().filter(|patterns| !patterns.is_empty()) {
            let mut folded = text.to_vec();
            fold(&mut folded);
            let wanted = RefCell::new(&mut wanted);
            let mut state = State::new();
            let mut hit = |found: pattern::Match| {
                let of_pattern = self.of_pattern.get(found.part as usize);
                wanted.borrow_mut().extend(of_pattern.into_iter().flatten());
            };
            patterns.scan(&mut state, &folded, &mut hit);
            patterns.finish(&mut state, &mut hit);
            if state.lost() > 0 {
                return None;
            }
        }
        wanted.sort_unstable();
        wanted.dedup();
        Some(wanted)
    }
}

impl Expressions {
    /// Expressions in the order of their lines.
    pub fn new(all: Vec<Expression>) -> Expressions {
        Expressions { needs: Needs::new(all.iter()), all, idle: Idle::default() }
    }

    /// The first expression that matches, and whether a search was given up.
    pub fn find(&self, text: &[u8]) -> (Option<&Expression>, bool) {
        let (found, is_given_up) = self.find_of(text, &|_| true, &mut Fuel::new(STEPS_MAX));
        (found.map(|(_, expression)| expression), is_given_up)
    }

    /// The first that matches of those that are wanted, with its number, and whether a search was given up.
    pub fn find_of(
        &self,
        text: &[u8],
        is_wanted: &dyn Fn(u32) -> bool,
        fuel: &mut Fuel,
    ) -> (Option<(u32, &Expression)>, bool) {
        let needed = self.needs.of(text);
        let count = u32::try_from(self.all.len()).unwrap_or(u32::MAX);
        let needed = needed.unwrap_or_else(|| (0..count).collect());
        for number in needed.into_iter().filter(|number| is_wanted(*number)) {
            let Some(expression) = self.all.get(number as usize) else { continue };
            match self.search(number, expression, text, fuel) {
                Progress::Match(_) => return (Some((number, expression)), false),
                Progress::None => {}
                Progress::Tired | Progress::Exhausted => return (None, true),
            }
        }
        (None, false)
    }

    fn search(&self, number: u32, expression: &Expression, text: &[u8], fuel: &mut Fuel) -> Progress {
        let new = || expression.search(Want::Hit);
        self.idle.run(number, new, |search| {
            search.restart(0);
            search.run(text, fuel)
        })
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.all.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_expression_that_matches_is_told() {
        let texts = ["(^|[-.])sex[a-z]+", "^.{0,3}$", "proxy.*list", "(a)\\1zz"];
        let all = texts.iter().map(|text| Expression::new(text.as_bytes(), FLAGS).expect("an expression"));
        let list = Expressions::new(all.collect());
        let find = |text: &str| list.find(text.as_bytes()).0.map(|found| found.text().to_vec());
        assert_eq!(find("www.SEXshop.test/PROXY/list").as_deref(), Some(texts[0].as_bytes()));
        assert_eq!(find("a.test/proxy-a-list").as_deref(), Some(texts[2].as_bytes()));
        assert_eq!(find("abc").as_deref(), Some(texts[1].as_bytes()));
        assert_eq!(find("xaazz").as_deref(), Some(texts[3].as_bytes()));
        assert_eq!(find("a.test/page"), None);
    }
}
