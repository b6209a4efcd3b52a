//! One mail, checked: which rules hit, and what they come to.

mod templated;

use core::cell::RefCell;
use std::borrow::Cow;
use std::ops::Range;

use flow::{Alike, Answer};
use pattern::expression::{Search, Want};
use stream::Fuel;

use super::engine::{Criterion, Detail, DetailKey, Engine, Eval, HeaderItem, Item, PartTest, ViewPass};
use super::pass::{ANYWHERE, Pair};
use super::profile::Work;
use super::searcher::Scratch;
use super::waiting::{Job, Waiting};
use crate::spam::eval::{Arguments, Context};
use crate::spam::header::{Fields, Path, Request};
use crate::spam::map::{HashMap, HashSet};
use crate::spam::message::{Message, Part, Uri};
use crate::spam::network::{self, Inquiry};
use crate::spam::preferences::Preferences;
use crate::spam::recalled::{Autolearn, Recalled};
use crate::spam::rule::{Rules, View};
use crate::spam::search::Budget;
use crate::spam::sender::Sender;
use crate::spam::total::{ScoreSet, Total};

/// A rule that hit.
#[derive(Debug, Clone, PartialEq)]
pub struct Hit {
    /// Its id: its place in [`Rules::names`](crate::spam::Rules::names).
    pub rule: u32,
    /// How often its score counts.
    pub count: u32,
    /// What hit: `BODY: `, `URI: ` and so on, or nothing.
    pub area: &'static str,
    /// What an expression matched, in the view that it looks at; the first match.
    pub matched: Option<Box<[u8]>>,
    /// What functions say about it.
    pub notes: Vec<Box<[u8]>>,
    /// What it has added, where that is not the rule's score.
    pub points: Option<f64>,
}

/// What a check came to.
#[derive(Debug, Clone, Default)]
pub struct Outcome {
    /// Rules that hit, in the order in which they were run. Of sub-rules there are those that had to be known, and all where the
    /// check was to explain.
    pub hits: Vec<Hit>,
    /// Rules whose searches were given up: whether they would have hit is not known.
    pub exhausted: Vec<u32>,
    /// The sum of the scores.
    pub total: Total,
    /// From which score on it is spam.
    pub required: f64,
    /// What was learned says of it.
    pub recalled: Option<Recalled>,
    /// What is to be learned of it; none where nobody has asked.
    pub autolearn: Option<Autolearn>,
    /// Whether a bound of the views was reached.
    pub is_truncated: bool,
}

/// What is known of a mail besides the mail itself.
#[derive(Debug, Clone, Copy, Default)]
pub struct Beside<'b> {
    /// What the network was asked about it; what is not answered lists nobody.
    pub inquiry: Option<&'b Inquiry>,
    /// What was learned says of it; none where that is not asked, or too little was.
    pub recalled: Option<Recalled>,
    /// What the user wants whom it is for.
    pub preferences: Option<&'b Preferences>,
    /// How much it is like a mail that was reported; none where nobody has looked.
    pub alike: Option<Alike>,
}

impl Outcome {
    /// The scores that counted.
    pub fn set(&self) -> ScoreSet {
        self.total.set()
    }

    /// Whether the mail is spam.
    pub fn is_spam(&self) -> bool {
        self.total.is_spam(self.required)
    }
}

impl Engine {
    /// Checks a mail. `now` is in seconds since 1970; `explain` asks for what expressions matched, and for all sub-rules.
    pub fn check(&self, mail: &Message, now: i64, explain: bool, scratch: &mut Scratch) -> Outcome {
        self.check_known(mail, now, explain, Beside::default(), scratch)
    }

    /// The same of a mail of which more is known.
    pub fn check_known(
        &self,
        mail: &Message,
        now: i64,
        explain: bool,
        beside: Beside<'_>,
        scratch: &mut Scratch,
    ) -> Outcome {
        let Beside { inquiry, recalled, preferences, alike } = beside;
        let settings = preferences.map_or(&self.settings, |own| &own.settings);
        let set = self.set(recalled.is_some());
        scratch.begin(self.identity, self.options.limits.scratch_bytes_max);
        let begun = scratch.now();
        let path = Path::read(mail, &self.settings.networks, self.options.limits.received_max);
        let sender_field = self.settings.text("envelope_sender_header");
        let sender_field = sender_field.and_then(|name| core::str::from_utf8(name).ok());
        let fields = Fields::new(mail, &path, &self.settings.reading, sender_field, &self.options.limits);
        let budget = RefCell::new(Budget::new(&self.options.limits));
        let mut context = Context::new(mail, &fields, &path, settings, now, &budget);
        context.known = inquiry.and_then(Inquiry::known);
        context.recalled = recalled.filter(|_| set.bayes);
        context.alike = alike;
        scratch.spent(Work::Fields, begun);
        let mut values = std::mem::take(&mut scratch.values);
        values.clear();
        values.resize(self.rules.names().len(), 0.0);
        let begun = scratch.now();
        let haystack = |request: &Request| context.fields.haystack(request);
        let fields_asked: Vec<Option<Vec<u8>>> = self.header.requests.iter().map(haystack).collect();
        scratch.spent(Work::Values, begun);
        let mut run = Run {
            engine: self,
            set,
            silent: silenced(self.silent(set), set, preferences),
            preferences,
            mail,
            context: &context,
            explain,
            haystacks: &[lines(mail.body()), lines(mail.raw_body()), distinct_uris(mail), vec![mail.full()]],
            fields: &fields_asked,
            waiting: Waiting::default(),
            scratch,
            values,
            hits: Vec::new(),
            exhausted: Vec::new(),
            captured: HashMap::default(),
        };
        inquiry.into_iter().for_each(|inquiry| run.listed(inquiry));
        run.all();
        run.scratch.values = std::mem::take(&mut run.values);
        run.outcome()
    }
}

impl Hit {
    /// What it has added.
    pub fn points(&self, rules: &Rules, set: ScoreSet) -> f64 {
        let rule = &rules.names()[self.rule as usize];
        self.points.unwrap_or_else(|| set.score(rule) * f64::from(self.count.min(rule.flags.hits_max())))
    }

    /// The score that is shown of it: that of a rule which hit more than once is shown once.
    pub(super) fn score(&self, rules: &Rules, set: ScoreSet) -> f64 {
        self.points.unwrap_or_else(|| set.score(&rules.names()[self.rule as usize]))
    }
}

impl Engine {
    /// Whether a rule that is run calls this function.
    pub fn calls(&self, function: &str) -> bool {
        self.evals.iter().any(|eval| eval.function.name == function)
    }

    /// Whether the reputation of senders counts (`use_txrep`).
    pub fn has_reputation(&self) -> bool {
        self.reputation.is_some()
    }

    /// Who has sent a mail; none where it does not say.
    pub fn sender(&self, mail: &Message) -> Option<Sender> {
        self.look(mail, 0, Sender::of)
    }

    /// Moves a score by what the sender is known for.
    pub fn repute(&self, outcome: &mut Outcome, points: f64) {
        let points = (points * 1000.0).round() / 1000.0;
        let Some(rule) = self.reputation.filter(|_| points != 0.0) else { return };
        let hit = Hit { rule, count: 1, area: "TXREP: ", matched: None, notes: Vec::new(), points: Some(points) };
        outcome.hits.push(hit);
        outcome.total.add_points(points);
    }

    /// What the rules ask the network about a mail.
    pub fn inquire(&self, mail: &Message, now: i64) -> Inquiry {
        self.look(mail, now, |context| self.lists.inquire(context, network::Limits::default()))
    }

    /// Looks at a mail as functions do.
    fn look<T>(&self, mail: &Message, now: i64, look: impl FnOnce(&Context<'_>) -> T) -> T {
        let path = Path::read(mail, &self.settings.networks, self.options.limits.received_max);
        let sender_field = self.settings.text("envelope_sender_header");
        let sender_field = sender_field.and_then(|name| core::str::from_utf8(name).ok());
        let fields = Fields::new(mail, &path, &self.settings.reading, sender_field, &self.options.limits);
        let budget = RefCell::new(Budget::new(&self.options.limits));
        look(&Context::new(mail, &fields, &path, &self.settings, now, &budget))
    }

    /// Takes an answer to such a question: there may be further ones.
    pub fn answer(&self, inquiry: &mut Inquiry, answer: Answer) {
        self.lists.answer(inquiry, &self.settings.reading, answer);
    }
}

/// A check under way.
struct Run<'r> {
    engine: &'r Engine,
    set: ScoreSet,
    /// Rules that are not run.
    silent: Cow<'r, [bool]>,
    preferences: Option<&'r Preferences>,
    mail: &'r Message,
    context: &'r Context<'r>,
    explain: bool,
    /// What expressions look at, by the number of the view.
    haystacks: &'r [Vec<&'r [u8]>; 4],
    /// And those over the header, by the number of the request.
    fields: &'r [Option<Vec<u8>>],
    waiting: Waiting<'r>,
    scratch: &'r mut Scratch,
    /// What each rule came to, by its id.
    values: Vec<f64>,
    hits: Vec<Hit>,
    exhausted: Vec<u32>,
    /// What rules have captured for others, by name.
    captured: HashMap<Box<str>, Vec<Box<[u8]>>>,
}

/// Rules that are not run, those that the user has turned off among them.
fn silenced<'s>(silent: &'s [bool], set: ScoreSet, preferences: Option<&Preferences>) -> Cow<'s, [bool]> {
    let off = preferences.into_iter().flat_map(|own| &own.scores).filter(|(_, scores)| scores[set.index()] == 0.0);
    let off: Vec<u32> = off.map(|(&rule, _)| rule).collect();
    if off.is_empty() {
        return silent.into();
    }
    let mut silent = silent.to_vec();
    off.into_iter().filter_map(|rule| silent.get_mut(rule as usize).map(|is| *is = true)).for_each(drop);
    silent.into()
}

/// What a rule found in its haystacks.
#[derive(Default)]
struct Found {
    count: u32,
    matched: Option<Box<[u8]>>,
    is_exhausted: bool,
}

impl Found {
    /// What a test comes to that hits where nothing matches, if it is such a one.
    fn unless(self, is_negated: bool) -> Found {
        match is_negated {
            true => Found { count: u32::from(self.count == 0 && !self.is_exhausted), matched: None, ..self },
            false => self,
        }
    }
}

/// The functions that look at a view, by what stands before their descriptions.
const AREAS: [(View, &str); 4] =
    [(View::Header, ""), (View::Body, "BODY: "), (View::Rawbody, "RAW: "), (View::Full, "")];

impl<'r> Run<'r> {
    fn all(&mut self) {
        let engine = self.engine;
        self.header();
        self.evals(View::Header);
        self.view(&engine.body);
        self.view(&engine.uri);
        self.evals(View::Body);
        self.parts();
        self.details();
        self.view(&engine.rawbody);
        self.evals(View::Rawbody);
        self.view(&engine.full);
        self.evals(View::Full);
        self.evals(View::Uri);
        self.templated();
        self.metas();
    }

    /// Rules that lists decide.
    fn listed(&mut self, inquiry: &Inquiry) {
        for (&rule, listed) in inquiry.hits() {
            self.context.notes.replace(listed.notes.clone());
            self.hit(rule, listed.area, f64::from(listed.count), listed.count, None);
        }
    }

    fn outcome(self) -> Outcome {
        let rules = &self.engine.rules;
        let mut total = Total::new(self.set);
        let mut hits = self.hits;
        for hit in &mut hits {
            let rule = &rules.names()[hit.rule as usize];
            let own = self.preferences.and_then(|own| own.scores.get(&hit.rule)).filter(|_| !rule.is_subrule());
            hit.points = own.map(|scores| scores[self.set.index()] * f64::from(hit.count.min(rule.flags.hits_max())));
            match hit.points {
                Some(points) => total.add_points(points),
                None => total.add(rule, hit.count),
            }
        }
        Outcome {
            hits,
            exhausted: self.exhausted,
            total,
            required: self.preferences.and_then(Preferences::required).unwrap_or(self.engine.required),
            recalled: self.context.recalled,
            autolearn: None,
            is_truncated: self.mail.is_cut(),
        }
    }

    /// Notes what a rule came to, and says it.
    fn settle(&mut self, rule: u32, area: &'static str, found: Found) -> f64 {
        if found.is_exhausted && !self.silent[rule as usize] {
            self.exhausted.push(rule);
        }
        if found.count == 0 {
            return 0.0;
        }
        self.hit(rule, area, f64::from(found.count), found.count, found.matched)
    }

    fn hit(&mut self, rule: u32, area: &'static str, value: f64, count: u32, matched: Option<Box<[u8]>>) -> f64 {
        let notes = self.context.notes.take();
        if self.silent[rule as usize] {
            return 0.0;
        }
        // While metas are evaluated they have the values.
        if let Some(known) = self.values.get_mut(rule as usize) {
            *known = value;
        }
        self.hits.push(Hit { rule, count, area, matched, notes, points: None });
        value
    }

    /// Whether a rule is to wait, of which nobody but metas will ask.
    fn waits(&self, can_wait: bool) -> bool {
        can_wait && !self.explain
    }

    fn view(&mut self, view: &'r ViewPass) {
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

    fn expression(&mut self, view: &ViewPass, item: &Item, pairs: &[Pair]) -> f64 {
        let begun = self.scratch.now();
        let found = self.search(item, pairs, &self.haystacks[view.number]);
        self.scratch.spent(Work::Expression(item.rule), begun);
        self.settle(item.rule, view.area(), found)
    }

    /// Runs an expression over those haystacks that it may match in.
    fn search(&mut self, item: &Item, pairs: &[Pair], haystacks: &[&[u8]]) -> Found {
        let mut found = Found::default();
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
    fn search_one(&mut self, item: &Item, haystack: &[u8], within: &Range<u32>, found: &mut Found) {
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

    fn header(&mut self) {
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
                (None, _) => {
                    let matched = self.explain.then(|| test.if_unset.clone());
                    self.hit(test.item.rule, "", 1.0, 1, matched);
                }
            }
        }
        self.scratch.tests = tests;
    }

    /// Runs a test of the header over the value that it looks at.
    fn field(&mut self, test: &HeaderItem, place: Option<&Range<u32>>) -> f64 {
        let mut found = Found::default();
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

    fn evals(&mut self, view: View) {
        for eval in self.engine.evals.iter().filter(|eval| eval.view == view) {
            match self.waits(eval.can_wait) {
                true => self.waiting.push(Job::Eval(eval), 0),
                false => drop(self.call(eval)),
            }
        }
    }

    /// Calls the function of a rule.
    fn call(&mut self, eval: &Eval) -> f64 {
        let area = AREAS.iter().find(|(known, _)| *known == eval.view).map_or("", |(_, area)| area);
        let rule = &self.engine.rules.names()[eval.rule as usize];
        let arguments = Arguments::new(&rule.name, &eval.call, &eval.expressions);
        self.context.budget.borrow_mut().next_rule();
        let begun = self.scratch.now();
        let value = eval.function.does.call(self.context, &arguments);
        self.scratch.spent(Work::Function(eval.rule), begun);
        let Some(value) = value.filter(|value| *value != 0.0 && !value.is_nan()) else {
            self.context.notes.take();
            return 0.0;
        };
        self.hit(eval.rule, area, if value < 0.0 { 1.0 } else { value }, 1, None)
    }

    fn parts(&mut self) {
        for test in &self.engine.parts {
            match self.waits(test.item.can_wait) {
                true => self.waiting.push(Job::Part(test), 0),
                false => drop(self.part(test)),
            }
        }
    }

    /// Runs a test of a field of each part.
    fn part(&mut self, test: &PartTest) -> f64 {
        let begun = self.scratch.now();
        let found = self.part_found(test);
        self.scratch.spent(Work::Expression(test.item.rule), begun);
        self.settle(test.item.rule, "", found)
    }

    fn part_found(&mut self, test: &PartTest) -> Found {
        self.context.budget.borrow_mut().next_rule();
        let mut found = Found::default();
        let mut joined = Vec::new();
        const BYTES_MAX: usize = 1 << 20;
        for (number, part) in (1..).zip(self.mail.parts()) {
            if number > test.range.1 || number < test.range.0 {
                continue;
            }
            let value = part_value(part, test);
            if test.is_joined {
                joined.extend_from_slice(&value);
                if !value.ends_with(b"\n") {
                    joined.push(b'\n');
                }
                joined.truncate(BYTES_MAX);
                continue;
            }
            if test.item.ready.may_be_in(&value) {
                self.search_one(&test.item, &value, &ANYWHERE, &mut found);
            }
            if found.count > 0 || found.is_exhausted {
                break;
            }
        }
        if test.is_joined {
            self.search_one(&test.item, &joined, &ANYWHERE, &mut found);
        }
        found.unless(test.is_negated)
    }

    fn details(&mut self) {
        for detail in &self.engine.details {
            self.context.budget.borrow_mut().next_rule();
            let mail = self.mail;
            let begun = self.scratch.now();
            let fits = mail.uris().iter().any(|uri| self.fits(detail, uri));
            self.scratch.spent(Work::Expression(detail.rule), begun);
            if fits {
                self.hit(detail.rule, "BODY: ", 1.0, 1, None);
            }
        }
    }

    fn fits(&mut self, detail: &Detail, uri: &Uri) -> bool {
        detail.criteria.iter().all(|criterion| match criterion.key {
            DetailKey::Raw => self.holds(criterion, &uri.raw),
            DetailKey::Kind => uri.kinds.iter().any(|kind| self.holds(criterion, kind.as_bytes())),
            DetailKey::Cleaned => uri.cleaned.iter().any(|text| self.holds(criterion, text)),
            DetailKey::Text => uri.anchor_texts.iter().any(|text| self.holds(criterion, text)),
            DetailKey::Domain => uri.hosts.values().any(|domain| self.holds(criterion, domain)),
            DetailKey::Host => uri.hosts.keys().any(|host| self.holds(criterion, host)),
        })
    }

    fn holds(&mut self, criterion: &Criterion, text: &[u8]) -> bool {
        let search = self.scratch.search(criterion.number, &criterion.expression, Want::Hit);
        let found = self.context.budget.borrow_mut().find(search, text, 0);
        found.is_ok_and(|found| found.is_some() != criterion.is_negated)
    }

    fn metas(&mut self) {
        let begun = self.scratch.now();
        let schedule = &self.engine.schedule;
        const STEPS_MAX: u64 = 10_000_000;
        let (mut values, waiting) = (std::mem::take(&mut self.values), std::mem::take(&mut self.waiting));
        let find_out = |number| self.find_out(waiting.job(number));
        let (hits, _) = schedule.evaluate(&mut values, waiting.open(), find_out, &mut Fuel::new(STEPS_MAX));
        for id in hits {
            self.hit(id, "", values[id as usize], 1, None);
        }
        self.values = values;
        self.scratch.spent(Work::Metas, begun);
    }

    /// Runs what has waited.
    fn find_out(&mut self, job: Job<'r>) -> f64 {
        match job {
            Job::View(view, item, pairs) => self.expression(view, item, &pairs),
            Job::Header(test, place) => self.field(test, Some(&place)),
            Job::Part(test) => self.part(test),
            Job::Eval(eval) => self.call(eval),
            Job::Templated(templated) => self.fill(templated),
        }
    }
}

/// How much of a haystack is looked at.
fn length(haystack: &[u8], within: &Range<u32>) -> usize {
    haystack.len().min(within.end as usize).saturating_sub(within.start as usize)
}

fn lines(lines: &[Box<[u8]>]) -> Vec<&[u8]> {
    lines.iter().map(|line| &**line).collect()
}

/// All spellings of all addresses, each once.
fn distinct_uris(mail: &Message) -> Vec<&[u8]> {
    let mut seen = HashSet::default();
    mail.uris().iter().flat_map(|uri| &uri.cleaned).map(|text| &**text).filter(|text| seen.insert(*text)).collect()
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

/// What a test of parts looks at.
fn part_value<'p>(part: &'p Part, test: &'p PartTest) -> Cow<'p, [u8]> {
    if *test.field == *b"ALL" {
        let line = |field: &crate::spam::message::Field| {
            let value = if test.is_raw { field.raw.to_vec() } else { field.line() };
            [&field.name, &b": "[..], &value].concat()
        };
        return part.fields.iter().flat_map(line).collect::<Vec<u8>>().into();
    }
    match part.field(&test.field) {
        Some(field) if test.is_raw => (&*field.raw).into(),
        Some(field) => field.line().into(),
        None => (&*test.if_unset).into(),
    }
}
