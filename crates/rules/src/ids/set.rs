//! A set of rules: files are read, problems are kept, and rules stand in the order in which they are tried.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::action::Action;
use super::address::{Variables, default_variables};
use super::buffer::{Buffer, Buffers};
use super::digests::Kinds;
use super::group::Groups;
use super::head;
use super::lexer::{self, Opt, text};
use super::limits::Limits;
use super::options::{self, BitNames, Stop};
use super::rate;
use super::rule::{BitVerb, Head, Rate, Rule, Threshold};
use super::sets::Sets;
use crate::spam::{Place, Problem, Severity};
use crate::web::Suffixes;

/// Rules by what became of them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Census {
    /// Rules that were read.
    pub rules: usize,
    /// Rules that can match.
    pub active: usize,
    /// Rules that load and never match here, by keyword or protocol.
    pub idle: BTreeMap<String, usize>,
    /// Rules whose requirements are not met, by requirement.
    pub skipped: BTreeMap<String, usize>,
    /// Rules that do not load, by keyword.
    pub refused: BTreeMap<String, usize>,
    /// Rules that were read as Snort 3 reads them.
    pub snort3: usize,
    /// Rules of which another revision is loaded.
    pub repeated: usize,
    /// Active rules that no text selects, so that they are tried each time.
    pub always: usize,
}

/// The name of the list of public suffixes.
const SUFFIXES_NAME: &str = "public_suffix_list.dat";

/// Reads files to a [`RuleSet`].
#[derive(Debug)]
pub struct Loader {
    limits: Limits,
    variables: Variables,
    classes: BTreeMap<String, (String, u32)>,
    bits: BitNames,
    sets: Sets,
    suffixes: Arc<Suffixes>,
    rules: Vec<Rule>,
    thresholds: Vec<(u32, u32, Threshold)>,
    overrides: Vec<(Selector, Option<Action>)>,
    problems: Vec<Problem>,
    census: Census,
}

/// Some rules of a set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Selector {
    /// The rule of a number.
    Sid(u32),
    /// Rules of a class, by its name.
    Class(Box<str>),
    /// Rules of files of a name, without folders; `*` and `?` stand for others.
    File(Box<str>),
}

/// Rules that are ready to be tried. Immutable, to be shared.
#[derive(Debug)]
pub struct RuleSet {
    pub(super) limits: Limits,
    pub(super) rules: Vec<Rule>,
    pub(super) groups: Groups,
    /// The buffers that rules look at, a bit each.
    pub(super) reads: Buffers,
    /// Digests of files that rules ask for.
    pub(super) digests: Kinds,
    pub(super) sets: Sets,
    /// Names of bits by their numbers.
    pub(super) bit_names: Vec<Box<str>>,
    problems: Vec<Problem>,
    census: Census,
}

impl Loader {
    /// One that knows the usual variables and classes.
    pub fn new(limits: Limits) -> Loader {
        Loader {
            limits,
            variables: default_variables(),
            classes: super::keywords::classes(),
            bits: BitNames::new(),
            sets: Sets::default(),
            suffixes: Arc::default(),
            rules: Vec::new(),
            thresholds: Vec::new(),
            overrides: Vec::new(),
            problems: Vec::new(),
            census: Census::default(),
        }
    }

    /// Sets a variable, its name without `$`.
    pub fn variable(&mut self, name: &str, value: &str) {
        self.variables.insert(name.into(), value.into());
    }

    /// Hands in a file that data sets of later rules name, or the list of public suffixes, by which they know domains. Without it
    /// registries are known by their form.
    pub fn data_file(&mut self, name: &str, content: Vec<u8>) {
        if name == SUFFIXES_NAME {
            self.suffixes = Arc::new(Suffixes::read(&String::from_utf8_lossy(&content)));
            return;
        }
        self.sets.put_file(name, content);
    }

    /// Sets what is done by some rules, whatever they say themselves; none disables them. The last that means a rule decides.
    pub fn action(&mut self, selector: Selector, action: Option<Action>) {
        self.overrides.push((selector, action));
    }

    fn selects(&self, selector: &Selector, rule: &Rule) -> bool {
        match selector {
            Selector::Sid(sid) => rule.sid == *sid,
            Selector::Class(name) => self.classes.get(&**name).is_some_and(|(about, _)| *about == rule.category),
            Selector::File(pattern) => {
                let name = rule.place.file.rsplit('/').next().unwrap_or_default();
                flow::Glob::new(pattern).matches(&name.to_lowercase())
            }
        }
    }

    /// Another action for a rule, where there is one.
    fn overridden(&self, rule: &Rule) -> Option<Option<Action>> {
        let means = |(selector, action): &&(Selector, Option<Action>)| {
            // A class or a file means rules that alert, not those that set bits for them.
            let is_helper = rule.is_silent && !matches!(selector, Selector::Sid(_));
            self.selects(selector, rule) && !(is_helper && action.is_some_and(Action::blocks))
        };
        self.overrides.iter().rev().find(means).map(|(_, action)| *action)
    }

    /// Reads a file of classes: `config classification: name,description,priority`.
    pub fn classes(&mut self, bytes: &[u8]) {
        for line in lexer::lines(bytes) {
            let line = text(&line.text);
            let Some((_, row)) = line.split_once("classification:") else { continue };
            let mut row = row.splitn(3, ',').map(str::trim);
            if let (Some(name), Some(about), Some(priority)) = (row.next(), row.next(), row.next())
                && let Ok(priority) = priority.parse()
            {
                self.classes.insert(name.into(), (about.into(), priority));
            }
        }
    }

    /// Reads a file of thresholds and suppressions.
    pub fn thresholds(&mut self, file: &str, bytes: &[u8]) {
        let file: Arc<str> = file.into();
        for line in lexer::lines(bytes) {
            match rate::line(&text(&line.text), &self.variables, self.limits.items_max) {
                Ok((gid, sid, mut threshold)) if self.thresholds.len() < self.limits.rules_max => {
                    threshold.place = Some(Place { file: file.clone(), line: line.number });
                    self.thresholds.push((gid, sid, threshold));
                }
                Ok(_) => {}
                Err(reason) => self.tell(&file, line.number, None, reason),
            }
        }
    }

    /// Reads a file of rules.
    pub fn file(&mut self, name: &str, bytes: &[u8]) {
        let file: Arc<str> = name.into();
        if bytes.len() > self.limits.file_bytes_max {
            self.tell(&file, 0, None, "the file is too large".into());
            return;
        }
        let is_snort3 = is_snort3(bytes);
        for line in lexer::lines(bytes) {
            if self.assignment(&line.text) {
                continue;
            }
            self.census.rules += 1;
            match self.rule(&file, &line, is_snort3) {
                Ok(rule) if self.rules.len() < self.limits.rules_max => self.rules.push(rule),
                Ok(_) => self.refuse(&file, line.number, "rule", "there are too many rules".into()),
                Err(Stop::Skip(missing)) => *self.census.skipped.entry(missing).or_default() += 1,
                Err(Stop::Fault { keyword, reason }) => self.refuse(&file, line.number, &keyword, reason),
            }
        }
    }

    /// A line of Snort that sets a variable.
    fn assignment(&mut self, line: &[u8]) -> bool {
        let line = text(line);
        let mut words = line.split_whitespace();
        let is_one = matches!(words.next(), Some("var" | "ipvar" | "portvar"));
        if let (true, Some(name), Some(value)) = (is_one, words.next(), words.next()) {
            self.variable(name, value);
        }
        is_one
    }

    fn rule(&mut self, file: &Arc<str>, line: &lexer::Line<'_>, is_snort3: bool) -> Result<Rule, Stop> {
        let fault = |keyword: &str, reason| Stop::Fault { keyword: keyword.into(), reason };
        if line.text.len() > self.limits.rule_bytes_max {
            return Err(fault("rule", "is too long".into()));
        }
        let text = lexer::with_lower_names(&line.text);
        let pieces = lexer::pieces(&text).map_err(|reason| fault("rule", reason))?;
        let head = head::read(&pieces.head, &self.variables, &self.limits)
            .map_err(|(keyword, reason)| Stop::Fault { keyword, reason })?;
        let mut rule = Rule {
            sid: 0,
            gid: 1,
            rev: 0,
            message: String::new(),
            category: String::new(),
            priority: 3,
            action: head.action,
            place: Place { file: file.clone(), line: line.number },
            idle: head.idle,
            head: Head::default(),
            direction: None,
            sections: Vec::new(),
            conditions: Vec::new(),
            bits: Vec::new(),
            is_silent: false,
            is_about_packets: head.is_about_packets,
            tells: false,
            thresholds: Vec::new(),
            variables: 0,
            needs: 0,
        };
        rule.head = head.head;
        let is_snort3 = is_read_as_snort3(&pieces.options, is_snort3);
        self.census.snort3 += usize::from(is_snort3);
        let mut shared = options::Shared {
            limits: &self.limits,
            bits: &mut self.bits,
            sets: &mut self.sets,
            classes: &self.classes,
            is_snort3,
            suffixes: &self.suffixes,
        };
        options::read(&mut rule, &pieces.options, &mut shared)?;
        rule.needs = rule.needed();
        Ok(rule)
    }

    fn refuse(&mut self, file: &Arc<str>, line: u32, keyword: &str, reason: String) {
        let keyword: String = keyword.chars().take(40).map(|c| if c.is_control() { '?' } else { c }).collect();
        self.tell(file, line, Some(&keyword), reason);
        *self.census.refused.entry(keyword).or_default() += 1;
    }

    fn tell(&mut self, file: &Arc<str>, line: u32, keyword: Option<&str>, reason: String) {
        if self.problems.len() < self.limits.problems_max {
            let reason: String = reason.chars().map(|c| if c.is_control() { '?' } else { c }).collect();
            self.problems.push(Problem {
                severity: Severity::Error,
                place: Place { file: file.clone(), line },
                rule: keyword.map(Into::into),
                reason,
                advice: String::new(),
            });
        }
    }

    /// Puts the rules in order and compiles what they look for.
    pub fn finish(mut self) -> RuleSet {
        self.keep_newest();
        let mut rules = std::mem::take(&mut self.rules);
        if !self.overrides.is_empty() {
            rules.retain(|rule| self.overridden(rule) != Some(None));
        }
        for rule in &mut rules {
            if let Some(Some(action)) = self.overridden(rule) {
                rule.action = action;
            }
            self.bound(rule);
            if let Some(keyword) = &rule.idle {
                *self.census.idle.entry(keyword.clone()).or_default() += 1;
            }
        }
        rules.sort_by_key(|rule| (rule.action, bits_order(rule), rule.priority));
        self.census.active = rules.iter().filter(|rule| rule.idle.is_none()).count();
        let sections = rules.iter().filter(|rule| rule.idle.is_none()).flat_map(|rule| &rule.sections);
        let reads = sections.fold(0, |set, section| set | section.buffer.bit());
        let sections = rules.iter().filter(|rule| rule.idle.is_none()).flat_map(|rule| &rule.sections);
        let digests = self.sets.digests(sections);
        let groups = Groups::build(&rules);
        self.census.always = groups.always();
        let mut bit_names = vec![Box::default(); self.bits.len()];
        for (name, number) in self.bits {
            if let Some(place) = bit_names.get_mut(number as usize) {
                *place = name.into();
            }
        }
        let Loader { limits, sets, problems, census, .. } = self;
        RuleSet { limits, rules, groups, reads, digests, sets, bit_names, problems, census }
    }

    /// Gives a rule the bounds of its alerts that files have: those for its number replace its own, those for all are for rules without.
    fn bound(&self, rule: &mut Rule) {
        let (mut of_rule, mut of_all, mut suppressions) = (None, None, Vec::new());
        let about = |gid: u32, sid: u32| (gid == 0 || gid == rule.gid) && (sid == 0 || sid == rule.sid);
        for (_, sid, threshold) in self.thresholds.iter().filter(|(gid, sid, _)| about(*gid, *sid)) {
            match (threshold.rate, sid) {
                (Rate::Suppress | Rate::Change { .. }, _) => suppressions.push(threshold.clone()),
                (_, 0) => _ = of_all.get_or_insert(threshold),
                _ => of_rule = Some(threshold),
            }
        }
        if of_rule.is_some() {
            rule.thresholds.clear();
        }
        let bound = of_rule.or(of_all).filter(|_| rule.thresholds.is_empty());
        rule.thresholds.extend(bound.cloned().into_iter().chain(suppressions));
    }

    /// Keeps the newest of the rules with one number.
    fn keep_newest(&mut self) {
        let mut newest: BTreeMap<(u32, u32), (u32, usize)> = BTreeMap::new();
        for (at, rule) in self.rules.iter().enumerate() {
            let entry = newest.entry((rule.gid, rule.sid)).or_insert((rule.rev, at));
            if rule.rev > entry.0 {
                *entry = (rule.rev, at);
            }
        }
        let kept: BTreeSet<usize> = newest.into_values().map(|(_, at)| at).collect();
        self.census.repeated = self.rules.len() - kept.len();
        let mut at = 0;
        self.rules.retain(|_| {
            at += 1;
            kept.contains(&(at - 1))
        });
    }
}

/// Rules that change bits are tried before those that ask for them, but for `toggle` and `unset` of `xbits`.
fn bits_order(rule: &Rule) -> u8 {
    let tests = rule.bits.iter().any(|bits| bits.verb.is_test());
    let changes = rule.bits.iter().any(|bits| !bits.verb.is_test());
    let only = |verbs: &[BitVerb]| rule.bits.iter().all(|bits| bits.is_xbits && verbs.contains(&bits.verb));
    match (changes, tests) {
        (true, false) if only(&[BitVerb::Unset]) => 4,
        (true, false) if only(&[BitVerb::Unset, BitVerb::Toggle]) => 3,
        (true, false) => 0,
        (true, true) => 1,
        (false, true) => 2,
        (false, false) => 5,
    }
}

/// Whether a file has a rule that only Snort 3 writes.
fn is_snort3(bytes: &[u8]) -> bool {
    let options = |line: lexer::Line<'_>| lexer::pieces(&line.text).is_ok_and(|pieces| has_snort3(&pieces.options));
    lexer::lines(bytes).take(2000).any(options)
}

/// Whether options have what only Snort 3 writes: modifiers behind the quotes of a content, or services.
fn has_snort3(options: &[Opt<'_>]) -> bool {
    options.iter().any(|option| match (option.name, option.value) {
        ("service" | "bufferlen", Some(_)) => true,
        ("content", Some(value)) => {
            let (_, value) = lexer::negated(value);
            value.starts_with(b"\"") && lexer::quoted(value).is_ok_and(|(_, rest)| rest.starts_with(b","))
        }
        _ => false,
    })
}

/// Whether a rule is read as Snort 3 reads it: by its own options, else by the file. Before Snort 3 buffers stand behind contents.
fn is_read_as_snort3(options: &[Opt<'_>], is_of_snort3: bool) -> bool {
    let buffer = options.iter().position(|option| Buffer::modifier(option.name).is_some());
    let content = options.iter().position(|option| matches!(option.name, "content" | "pcre"));
    match buffer {
        _ if has_snort3(options) => true,
        Some(buffer) => content.is_none_or(|content| buffer < content),
        None => is_of_snort3,
    }
}

impl RuleSet {
    /// Counts of loaded and other rules.
    pub fn census(&self) -> &Census {
        &self.census
    }

    /// Problems, with file and line.
    pub fn problems(&self) -> &[Problem] {
        &self.problems
    }

    /// The rules in the order in which they are tried.
    pub fn rules(&self) -> &[Rule] {
        &self.rules
    }
}
