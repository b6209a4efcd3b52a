//! The rules of a file: which of them block a request, and which spare it.

use std::collections::HashMap;

use stream::Fuel;

use super::index::Index;
use super::line::{Line, Matcher};
use super::options::Options;
use super::pattern::Pattern;
use super::subject::{Stand, Subject, key, names};
use crate::web::list::Expressions;

/// Words that most URLs have.
const COMMON: [&[u8]; 4] = [b"http", b"https", b"www", b"com"];

/// Network rules of a file.
#[derive(Debug)]
pub(crate) struct Rules {
    blocks: Set,
    exceptions: Set,
}

/// A rule that blocks.
#[derive(Debug)]
pub(crate) struct Hit {
    pub entry: String,
    /// No exception holds against it.
    pub is_important: bool,
}

#[derive(Debug, Default)]
struct Set {
    rules: Vec<(Pattern, Options)>,
    index: Index,
    /// Rules without a key.
    always: Vec<u32>,
    expressions: Expressions,
    of_expressions: Vec<Options>,
    has_important: bool,
}

impl Rules {
    /// Makes the rules of lines.
    pub(super) fn new(lines: Vec<Line>) -> Rules {
        let (exceptions, blocks): (Vec<Line>, Vec<Line>) = lines.into_iter().partition(|line| line.is_exception);
        Rules { blocks: Set::new(blocks), exceptions: Set::new(exceptions) }
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.blocks.len() + self.exceptions.len()
    }

    /// The bytes of the tables of patterns.
    pub fn bytes(&self) -> usize {
        self.blocks.bytes() + self.exceptions.bytes()
    }

    /// A rule that blocks a request, an important one where there is one.
    pub fn block(&self, subject: &Subject, fuel: &mut Fuel) -> Option<Hit> {
        let all = |options: &Options| if subject.is_tunnel { options.are_none() } else { options.block(subject) };
        let whole = |pattern: &Pattern| !subject.is_tunnel || pattern.is_of_host();
        let hit = self.blocks.find(subject, &all, &whole, fuel)?;
        let important = |options: &Options| options.is_important && all(options);
        let is_sure = hit.is_important || !self.blocks.has_important;
        if is_sure { Some(hit) } else { self.blocks.find(subject, &important, &whole, fuel).or(Some(hit)) }
    }

    /// Whether an exception is for a request, or for all requests of its page. A tunnel is spared by one for a part of its host.
    pub fn spares(&self, subject: &Subject, fuel: &mut Fuel) -> bool {
        if subject.is_tunnel {
            let is_of = |host: &[u8]| names(subject.host()).any(|name| name == host);
            let is_wanted =
                |pattern: &Pattern, _: &Options, _: &mut Fuel| pattern.host().is_some_and(|host| is_of(&host));
            return self.exceptions.first(subject, fuel, is_wanted).is_some();
        }
        let any = |_: &Pattern| true;
        let of_page =
            |page: &Subject| self.exceptions.find(page, &|options| options.spare_page(page), &any, fuel).is_some();
        subject.of_page.as_deref().is_some_and(of_page)
            || self.exceptions.find(subject, &|options| options.spare(subject), &any, fuel).is_some()
    }
}

impl Set {
    fn new(lines: Vec<Line>) -> Set {
        let mut set = Set { has_important: lines.iter().any(|line| line.options.is_important), ..Set::default() };
        let mut expressions = Vec::new();
        for line in lines {
            match line.matcher {
                Matcher::Pattern(pattern) => set.rules.push((pattern, line.options)),
                Matcher::Expression(expression) => {
                    expressions.push(expression);
                    set.of_expressions.push(line.options);
                }
            }
        }
        set.expressions = Expressions::new(expressions);
        set.build_index();
        set
    }

    fn build_index(&mut self) {
        let mut counts: HashMap<u32, u32> = HashMap::new();
        let words = |pattern: &Pattern| {
            let rare = pattern.words().filter(|word| !COMMON.contains(&&**word));
            rare.map(|word| key(Stand::Word, &word)).collect::<Vec<_>>()
        };
        self.rules
            .iter()
            .flat_map(|(pattern, _)| words(pattern))
            .for_each(|word| *counts.entry(word).or_default() += 1);
        let mut entries = Vec::with_capacity(self.rules.len());
        for (number, (pattern, options)) in (0..).zip(&self.rules) {
            let rarest = || words(pattern).into_iter().min_by_key(|word| counts.get(word));
            if let Some(key) = pattern.host().map(|host| key(Stand::Host, &host)).or_else(rarest) {
                entries.push((key, number));
            } else if !options.pages.is_empty() && options.pages.iter().all(|(_, holds)| *holds) {
                let pages = options.pages.iter().map(|(page, _)| (key(Stand::Page, page.as_bytes()), number));
                entries.extend(pages);
            } else {
                self.always.push(number);
            }
        }
        self.index = Index::new(entries);
    }

    fn len(&self) -> usize {
        self.rules.len() + self.of_expressions.len()
    }

    fn bytes(&self) -> usize {
        let of_texts: usize = self.rules.iter().map(|(pattern, _)| pattern.bytes()).sum();
        of_texts + self.rules.len() * size_of::<(Pattern, Options)>() + self.index.bytes()
    }

    /// The rules that a request may match.
    fn candidates(&self, subject: &Subject) -> impl Iterator<Item = &(Pattern, Options)> {
        let keyed = subject.keys.iter().flat_map(|key| self.index.of(*key));
        keyed.chain(self.always.iter().copied()).filter_map(|number| self.rules.get(number as usize))
    }

    /// The first rule that matches, of those whose options and patterns are suitable.
    fn find(
        &self,
        subject: &Subject,
        suits: &dyn Fn(&Options) -> bool,
        has_form: &dyn Fn(&Pattern) -> bool,
        fuel: &mut Fuel,
    ) -> Option<Hit> {
        let matches = |pattern: &Pattern, options: &Options, fuel: &mut Fuel| {
            has_form(pattern) && suits(options) && pattern.matches(subject, fuel)
        };
        if let Some((pattern, options)) = self.first(subject, fuel, matches) {
            return Some(Hit { entry: pattern.to_string(), is_important: options.is_important });
        }
        if fuel.is_empty() || subject.is_tunnel || self.of_expressions.is_empty() {
            return None;
        }
        let of = |number: u32| self.of_expressions.get(number as usize);
        let wanted = |number| of(number).is_some_and(suits);
        let (found, is_given_up) = self.expressions.find_of(subject.url(), &wanted, fuel);
        if is_given_up {
            fuel.burn(usize::MAX);
        }
        let (number, expression) = found?;
        let entry = format!("/{}/", String::from_utf8_lossy(expression.text()));
        Some(Hit { entry, is_important: of(number).is_some_and(|options| options.is_important) })
    }

    /// The first rule with a pattern that the request may match, and that is wanted.
    fn first(
        &self,
        subject: &Subject,
        fuel: &mut Fuel,
        is_wanted: impl Fn(&Pattern, &Options, &mut Fuel) -> bool,
    ) -> Option<&(Pattern, Options)> {
        for rule in self.candidates(subject) {
            fuel.burn(1);
            if fuel.is_empty() {
                return None;
            }
            if is_wanted(&rule.0, &rule.1, fuel) {
                return Some(rule);
            }
        }
        None
    }
}
