//! Check of one mail: the rules that hit, and the score.

mod fields;
mod parts;
mod templated;
mod views;

use core::cell::RefCell;
use std::borrow::Cow;

use flow::{Alike, Answer};
use stream::Fuel;

use super::engine::{Engine, Eval};
use super::hit::{Hit, Shortcircuited};
use super::profile::Work;
use super::searcher::Scratch;

use super::waiting::{Job, Waiting};
use crate::spam::eval::{Arguments, Context};
use crate::spam::header::{Fields, Path, Request};
use crate::spam::map::HashMap;
use crate::spam::message::Message;
use crate::spam::network::{self, Inquiry};
use crate::spam::preferences::Preferences;
use crate::spam::recalled::{Autolearn, Recalled};
use crate::spam::rule::View;
use crate::spam::search::Budget;
use crate::spam::sender::Sender;
use crate::spam::tags;
use crate::spam::total::{ScoreSet, Total};
use parts::distinct_uris;
use views::lines;

/// Result of a check.
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
    /// Result of what was learned.
    pub recalled: Option<Recalled>,
    /// Lesson to learn from it; none unless asked for.
    pub autolearn: Option<Autolearn>,
    /// Values of tags that the check has set: captures of rules, and who has signed the mail.
    pub tags: HashMap<Box<str>, Vec<Box<[u8]>>>,
    /// Time of the check, in seconds since 1970.
    pub checked_at: i64,
    /// Rule or bound that has ended the check.
    pub shortcircuited: Option<Shortcircuited>,
    /// Whether a bound of the views was reached.
    pub is_truncated: bool,
}

/// Facts about a mail besides the mail itself.
#[derive(Debug, Clone, Copy, Default)]
pub struct Beside<'b> {
    /// Questions to the network about it; a question without an answer lists nobody.
    pub inquiry: Option<&'b Inquiry>,
    /// Result of what was learned; none where that is not asked, or too little was learned.
    pub recalled: Option<Recalled>,
    /// Preferences of its recipient.
    pub preferences: Option<&'b Preferences>,
    /// Similarity to reported mails; `None` if they were not compared.
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

    /// Checks a mail with facts from besides.
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
        let fields = Fields::new(mail, &path, &self.settings.reading, self.sender_field(), &self.options.limits);
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

impl Engine {
    /// Whether a rule that is run calls this function.
    pub fn calls(&self, function: &str) -> bool {
        self.evals.iter().any(|eval| eval.function.name == function)
    }

    /// Whether the reputation of senders counts (`use_txrep`).
    pub fn has_reputation(&self) -> bool {
        self.reputation.is_some()
    }

    /// Sender of a mail; none where it does not say.
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

    /// Questions of the rules to the network about a mail.
    pub fn inquire(&self, mail: &Message, now: i64) -> Inquiry {
        self.look(mail, now, |context| self.lists.inquire(context, network::Limits::default()))
    }

    /// Looks at a mail as functions do.
    pub(super) fn look<T>(&self, mail: &Message, now: i64, look: impl FnOnce(&Context<'_>) -> T) -> T {
        let path = Path::read(mail, &self.settings.networks, self.options.limits.received_max);
        let fields = Fields::new(mail, &path, &self.settings.reading, self.sender_field(), &self.options.limits);
        let budget = RefCell::new(Budget::new(&self.options.limits));
        look(&Context::new(mail, &fields, &path, &self.settings, now, &budget))
    }

    /// Name of the field that has the envelope's sender, where it is set.
    fn sender_field(&self) -> Option<&str> {
        core::str::from_utf8(self.settings.text("envelope_sender_header")?).ok()
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
    /// Texts that expressions look at, by the number of the view.
    haystacks: &'r [Vec<&'r [u8]>; 4],
    /// Texts of those over the header, by the number of the request.
    fields: &'r [Option<Vec<u8>>],
    waiting: Waiting<'r>,
    scratch: &'r mut Scratch,
    /// Value of each rule, by its id.
    values: Vec<f64>,
    hits: Vec<Hit>,
    exhausted: Vec<u32>,
    /// Values that rules have captured for others, by name.
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

/// Matches of a rule in its haystacks.
#[derive(Default)]
struct Finding {
    count: u32,
    matched: Option<Box<[u8]>>,
    is_exhausted: bool,
}

impl Finding {
    /// Result of a test; a negated one hits where nothing matches.
    fn unless(self, is_negated: bool) -> Finding {
        match is_negated {
            true => Finding { count: u32::from(self.count == 0 && !self.is_exhausted), matched: None, ..self },
            false => self,
        }
    }
}

/// Tags that say who has signed.
const SIGNED: [&str; 3] = ["DKIMDOMAIN", "DKIMIDENTITY", "DKIMSELECTOR"];

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
        let mut tags = self.captured;
        for tag in self.context.known.map_or(&[][..], |_| &SIGNED) {
            let signed = self.context.known.and_then(|known| tags::signed(known.authentic, tag)).unwrap_or_default();
            tags.insert((*tag).into(), signed.into_iter().map(Into::into).collect());
        }
        let mut hits = self.hits;
        for hit in &mut hits {
            let rule = &rules.names()[hit.rule as usize];
            let own = self.preferences.and_then(|own| own.scores.get(&hit.rule)).filter(|_| !rule.is_subrule());
            hit.points = own.map(|scores| scores[self.set.index()] * f64::from(hit.count.min(rule.flags.hits_max())));
        }
        let shortcircuit = self.engine.shortcircuit.as_ref();
        let shortcircuited = shortcircuit.and_then(|rule| rule.end(rules, self.set, &mut hits));
        let mut total = Total::new(self.set);
        for hit in &hits {
            match hit.points {
                Some(points) => total.add_points(points),
                None => total.add(&rules.names()[hit.rule as usize], hit.count),
            }
        }
        Outcome {
            hits,
            exhausted: self.exhausted,
            total,
            required: self.preferences.and_then(Preferences::required).unwrap_or(self.engine.required),
            recalled: self.context.recalled,
            autolearn: None,
            tags,
            checked_at: self.context.now,
            shortcircuited,
            is_truncated: self.mail.is_cut(),
        }
    }

    /// Notes what a rule came to, and says it.
    fn settle(&mut self, rule: u32, area: &'static str, found: Finding) -> f64 {
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
        can_wait && !self.explain && !self.engine.runs_all
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
