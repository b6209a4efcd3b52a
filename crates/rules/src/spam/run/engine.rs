//! Rules compiled: expressions with their literals, functions looked up, metas in order.

mod builder;

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use pattern::expression::Expression as Compiled;
use stream::Fuel;

use super::conditions::Conditions;
use super::pass::Pass;
use super::reading;
use super::shortcircuit::Shortcircuit;
use crate::spam::eval::{self, Does, Function};
use crate::spam::header::Request;
use crate::spam::limits::Limits;
use crate::spam::loader::File;
use crate::spam::message::Reading;
use crate::spam::network::Lists;
use crate::spam::preferences::Preferences;
use crate::spam::rule::{Rule, Rules, Test, View};
use crate::spam::schedule::Schedule;
use crate::spam::search::{Pooled, Ready, RunLimits};
use crate::spam::settings::Settings;
use crate::spam::syntax::call::Call;
use crate::spam::syntax::expression::Expression;
use crate::spam::total::ScoreSet;
use builder::{Builder, Parts};

/// Options of an engine.
#[derive(Debug, Clone, Copy, Default)]
pub struct EngineOptions {
    /// Set of scores that count, and with them which rules run: those whose score is 0 do not. With `bayes`, mails of which
    /// something is [recalled](crate::spam::Recalled) have the scores with it, and all others those without.
    pub set: ScoreSet,
    /// Bounds of a check.
    pub limits: RunLimits,
}

/// A configuration that mails are checked with.
#[derive(Debug)]
pub struct Engine {
    /// Tells it from others: what a thread keeps belongs to one engine.
    pub(super) identity: u64,
    pub(super) rules: Rules,
    pub(super) options: EngineOptions,
    pub(super) settings: Settings,
    /// From which score on a mail is spam.
    pub(super) required: f64,
    pub(super) schedule: Schedule,
    /// Rules that are not run: without learned data, and with it.
    silent: [Vec<bool>; 2],
    pub(super) header: HeaderPass,
    pub(super) body: ViewPass,
    pub(super) rawbody: ViewPass,
    pub(super) uri: ViewPass,
    pub(super) full: ViewPass,
    pub(super) parts: Vec<PartTest>,
    pub(super) details: Vec<Detail>,
    pub(super) evals: Vec<Eval>,
    /// Questions to the network.
    pub(super) lists: Lists,
    /// The rule that moves a score towards what the sender is known for.
    pub(super) reputation: Option<u32>,
    /// Rules that use what others capture: run last, each with its expression made new.
    pub(super) templated: Vec<Templated>,
    /// Rules that end a check.
    pub(super) shortcircuit: Option<Shortcircuit>,
    /// Sub-rules are run whether or not a meta has to know them.
    pub(super) runs_all: bool,
}

static IDENTITIES: AtomicU64 = AtomicU64::new(1);

/// An expression of a rule.
#[derive(Debug)]
pub(super) struct Item {
    /// The rule's id.
    pub(super) rule: u32,
    /// The number of the expression.
    pub(super) number: u32,
    pub(super) ready: Arc<Ready>,
    /// How many hits are counted.
    pub(super) hits_max: u32,
    /// The subject is not looked at.
    pub(super) is_without_subject: bool,
    /// Groups with names are kept for other rules.
    pub(super) captures: bool,
    /// It is run only where a meta has to know it.
    pub(super) can_wait: bool,
}

/// Expressions over a view.
#[derive(Debug, Default)]
pub(super) struct ViewPass {
    /// Tells it from the other views.
    pub(super) number: usize,
    pub(super) items: Vec<Item>,
    pub(super) pass: OnceLock<Pass>,
}

impl ViewPass {
    /// Prefix of the descriptions of rules that hit there.
    pub(super) fn area(&self) -> &'static str {
        ["BODY: ", "RAW: ", "URI: ", "FULL: "].get(self.number).copied().unwrap_or_default()
    }

    /// The literals, collected when they are first needed.
    pub(super) fn pass(&self) -> &Pass {
        self.pass.get_or_init(|| Pass::new(self.items.iter().map(|item| &*item.ready)))
    }
}

/// Expressions over fields of the header.
#[derive(Debug, Default)]
pub(super) struct HeaderPass {
    /// Requests, each once.
    pub(super) requests: Vec<Request>,
    pub(super) tests: Vec<HeaderItem>,
    passes: OnceLock<Box<[FieldPass]>>,
    /// Rules that hit where a field is there.
    pub(super) exists: Vec<(u32, u32)>,
}

/// Expressions over what one request is answered with.
#[derive(Debug)]
pub(super) struct FieldPass {
    /// Their places among the tests.
    pub(super) tests: Vec<u32>,
    pub(super) pass: Pass,
    /// Rules that hit where nothing matches.
    pub(super) negated: Vec<u32>,
    /// Rules that hit where the field is missing, once that is asked.
    unset: OnceLock<Vec<u32>>,
}

impl HeaderPass {
    /// The literals of each request.
    pub(super) fn passes(&self) -> &[FieldPass] {
        self.passes.get_or_init(|| {
            let mut all = vec![Vec::new(); self.requests.len()];
            (0..).zip(&self.tests).for_each(|(place, test)| all[test.request as usize].push(place));
            let pass = |tests: &[u32]| Pass::new(tests.iter().map(|&test| &*self.tests[test as usize].item.ready));
            let is_negated = |test: &u32| self.tests[*test as usize].is_negated;
            let field = |tests: Vec<u32>| {
                let negated = tests.iter().copied().filter(is_negated).collect();
                FieldPass { pass: pass(&tests), tests, negated, unset: OnceLock::new() }
            };
            all.into_iter().map(field).collect()
        })
    }

    /// The tests of a request that hit where it is answered with nothing.
    pub(super) fn unset<'f>(&self, field: &'f FieldPass) -> &'f [u32] {
        let hits = |test: &u32| self.tests[*test as usize].hits_unset();
        field.unset.get_or_init(|| field.tests.iter().copied().filter(hits).collect())
    }
}

/// An expression over a field.
#[derive(Debug)]
pub(super) struct HeaderItem {
    pub(super) item: Item,
    /// Its place in `requests`.
    pub(super) request: u32,
    pub(super) is_negated: bool,
    /// Text that is looked at where the field is missing.
    pub(super) if_unset: Box<[u8]>,
}

/// An expression over a field of each part.
#[derive(Debug)]
pub(super) struct PartTest {
    pub(super) item: Item,
    pub(super) field: Box<[u8]>,
    pub(super) is_raw: bool,
    pub(super) is_negated: bool,
    pub(super) if_unset: Box<[u8]>,
    /// The first and last part that is looked at, from 1 on.
    pub(super) range: (u32, u32),
    pub(super) is_joined: bool,
}

/// Condition on an address.
#[derive(Debug)]
pub(super) struct Detail {
    pub(super) rule: u32,
    pub(super) criteria: Vec<Criterion>,
}

/// One of its criteria.
#[derive(Debug)]
pub(super) struct Criterion {
    pub(super) key: DetailKey,
    pub(super) is_negated: bool,
    pub(super) expression: Compiled,
    pub(super) number: u32,
}

/// Part of an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DetailKey {
    Raw,
    Kind,
    Cleaned,
    Text,
    Domain,
    Host,
}

/// A rule that calls a function.
#[derive(Debug)]
pub(super) struct Eval {
    pub(super) rule: u32,
    pub(super) view: View,
    pub(super) call: Call,
    pub(super) function: Function,
    pub(super) expressions: Vec<Option<Pooled>>,
    /// It is called only where a meta has to know what it says.
    pub(super) can_wait: bool,
}

/// A rule whose expression holds what others capture.
#[derive(Debug)]
pub(super) struct Templated {
    pub(super) rule: u32,
    pub(super) test: Test,
    /// The names of what it holds.
    pub(super) names: Vec<Box<str>>,
    /// The name of which every match contains what was captured, if there is one.
    pub(super) needed: Option<Box<str>>,
    /// Expression that matches wherever it may, whatever was captured.
    pub(super) loose: Option<Arc<Ready>>,
    /// It is run only where a meta has to know it.
    pub(super) can_wait: bool,
}

impl Templated {
    /// The expression is asked with a rare text in the place of what it captures: if no match is without that, none is without
    /// what stands there.
    fn new(id: u32, rule: &Rule, test: &Test, expression: &Expression) -> Templated {
        const RARE: &[u8] = b"\x01\x02\x01";
        let mut names: Vec<Box<str>> = Vec::new();
        let probe = expression.filled(|name| {
            names.push(name.into());
            Some(vec![RARE.into()])
        });
        let ready = probe.filter(|_| names.len() == 1).and_then(|probe| probe.ready().ok());
        let has_rare = |string: &Vec<u8>| string.windows(RARE.len()).any(|here| here == RARE);
        let any = ready.as_ref().and_then(|ready| ready.needs.any.as_ref());
        let is_needed = any.is_some_and(|any| any.strings.iter().all(has_rare));
        let needed = names.first().filter(|_| is_needed).cloned();
        let can_wait = builder::waits(rule) && !expression.captures_tag();
        let loose = expression.loosened().and_then(|loose| loose.ready().ok());
        Templated { rule: id, test: test.clone(), names, needed, loose, can_wait }
    }
}

impl Engine {
    /// Compiles a configuration. Rules whose score is 0 in the score set, whose function is not there, and whose expression
    /// cannot run are left out: [`Rules::disabled`] and the problems of the configuration have them.
    pub fn new(rules: Rules, options: EngineOptions) -> Engine {
        let settings = Settings::of(&rules, reading::of(&rules));
        let mut schedule = Schedule::new(&rules, &Limits::default());
        let plain = ScoreSet { bayes: false, ..options.set };
        let conditions = Conditions::of(&rules, &[plain, options.set], &schedule);
        let silent = [plain, options.set].map(|set| conditions.silent(&rules, set, &schedule));
        let runs = |id: u32| silent.iter().any(|silent| !silent[id as usize]);
        let runs_all = settings.number("shortcircuit_min_ham_score", f64::NAN).is_finite()
            || settings.number("shortcircuit_max_spam_score", f64::NAN).is_finite()
            || rules.templates.has(b"_SUBTESTS");
        let shortcircuit = Shortcircuit::new(&rules, &settings, &schedule, [plain, options.set]);
        let lists = Lists::new(&rules, options.set.net, runs);
        schedule.under(|id| conditions.of_meta(id));
        schedule.retain(|id| runs(id) || conditions.is_one(id));
        let reputation = reputation(&rules, &settings).filter(|id| runs(*id));
        let mut builder =
            Builder { engine: Parts::default(), requests: HashMap::new(), expressions: 0, set: options.set };
        for (id, rule) in (0..).zip(rules.names()).filter(|(id, _)| runs(*id)) {
            builder.add(id, rule);
        }
        let Builder { engine, .. } = builder;
        let Parts { header, views, parts, details, evals, templated } = engine;
        let mut views = views;
        (0..).zip(&mut views).for_each(|(number, view)| view.number = number);
        let [body, rawbody, uri, full] = views;
        Engine {
            identity: IDENTITIES.fetch_add(1, Ordering::Relaxed),
            required: rules.required_score(),
            rules,
            options,
            settings,
            schedule,
            silent,
            header,
            body,
            rawbody,
            uri,
            full,
            parts,
            details,
            evals,
            lists,
            reputation,
            templated,
            shortcircuit,
            runs_all,
        }
    }

    /// Reads what a user wants in the place of what this configuration says.
    pub fn preferences(&self, file: &File) -> Preferences {
        Preferences::read(file, self.rules(), self.settings().clone())
    }

    /// Collects all literals now, and not with the first mail.
    pub fn prepare(&self) {
        for view in [&self.body, &self.rawbody, &self.uri, &self.full] {
            view.pass();
        }
        self.header.passes();
    }

    /// Builds the automata of all expressions now, and not where a mail first needs them.
    pub fn build(&self) {
        let views = [&self.body, &self.rawbody, &self.uri, &self.full];
        let of_views = views.into_iter().flat_map(|view| &view.items);
        let of_header = self.header.tests.iter().map(|test| &test.item);
        of_views.chain(of_header).for_each(|item| item.ready.expression.build());
    }

    /// The configuration.
    pub fn rules(&self) -> &Rules {
        &self.rules
    }

    /// Options that it was compiled for.
    pub fn options(&self) -> &EngineOptions {
        &self.options
    }

    /// The scores that count for a mail: with what was learned, or without.
    pub(super) fn set(&self, is_recalled: bool) -> ScoreSet {
        ScoreSet { bayes: self.options.set.bayes && is_recalled, ..self.options.set }
    }

    /// Rules that are not run then, by their ids.
    pub(super) fn silent(&self, set: ScoreSet) -> &[bool] {
        &self.silent[usize::from(set.bayes)]
    }

    /// Settings of the reading of mails.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Questions to the network: none, where its scores are those without.
    pub fn lists(&self) -> &Lists {
        &self.lists
    }

    /// Settings by which mails are read for these rules.
    pub fn reading(&self) -> &Reading {
        &self.settings.reading
    }

    /// Describes the literals, for people.
    pub fn describe(&self) -> String {
        let of = |name: &str, count: usize, passes: &[&Pass]| {
            let sum = |of: fn(&Pass) -> usize| passes.iter().map(|pass| of(pass)).sum::<usize>();
            format!(
                "{name}: {count} expressions, {} literals, {} walked together, {} run always, {} words",
                sum(Pass::literals),
                sum(Pass::joint),
                sum(Pass::always),
                sum(Pass::words)
            )
        };
        let views = [("body", &self.body), ("rawbody", &self.rawbody), ("uri", &self.uri), ("full", &self.full)];
        let mut lines: Vec<String> =
            views.iter().map(|(name, view)| of(name, view.items.len(), &[view.pass()])).collect();
        let header: Vec<&Pass> = self.header.passes().iter().map(|field| &field.pass).collect();
        lines.push(of("header", self.header.tests.len(), &header));
        lines.join("; ")
    }
}

/// The rule that asks for the reputation of senders, where that is wanted.
fn reputation(rules: &Rules, settings: &Settings) -> Option<u32> {
    let asks = |rule: &Rule| match &rule.test {
        Some(Test::Eval(view, call)) => {
            eval::find(&call.function, *view).is_some_and(|function| matches!(function.does, Does::Reputation))
        }
        _ => false,
    };
    let found = (0..).zip(rules.names()).find(|(_, rule)| asks(rule));
    found.map(|(id, _)| id).filter(|_| settings.number("use_txrep", 0.0) != 0.0)
}

impl HeaderItem {
    /// Whether the rule hits where the field is missing: the same for all mails.
    fn hits_unset(&self) -> bool {
        let mut search = self.item.ready.expression.search(pattern::expression::Want::Hit);
        let progress = search.run(&self.if_unset, &mut Fuel::new(1_000_000));
        matches!(progress, pattern::expression::Progress::Match(_)) != self.is_negated
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Expressions, Scratch};
    use super::*;
    use crate::spam::loader::{File, Loader, Options};
    use crate::spam::message::{Message, MessageLimits};

    /// Rules that hit a mail without network.
    fn hits(text: &str, mail: &str) -> Vec<String> {
        let options = Options { default_plugins: true, local_tests_only: true, ..Options::default() };
        let mut loader = Loader::new(options, Limits::default());
        let file = File { name: "a.cf".into(), bytes: text.as_bytes().into() };
        loader.read(&file, &mut |_, name| Err(name.into()));
        let engine = Engine::new(loader.finish(&Expressions), EngineOptions::default());
        let message = Message::read(mail.as_bytes(), engine.reading(), &MessageLimits::default());
        let outcome = engine.check(&message, 0, true, &mut Scratch::default());
        let mut found: Vec<String> =
            outcome.hits.iter().map(|hit| engine.rules().names()[hit.rule as usize].name.to_string()).collect();
        found.sort();
        found
    }

    #[test]
    fn what_is_made_of_a_meta_without_score_hits_where_that_comes_to_nothing() {
        let rules = "body A /viagra/\nbody B /pills/\nmeta OFF A\nscore OFF 0\nmeta C B && !OFF\nmeta D B || OFF\nmeta E C\n\
                     meta OVER !C && OFF\nscore OVER 0\nmeta F !OVER\nmeta LATE B && NOBODY\nscore LATE 0\nmeta G !LATE\n\
                     meta TRUE 1\nscore TRUE 0\nmeta H !TRUE || 1\nbody ZERO /x/\nscore ZERO 0\nmeta I !ZERO\n";
        assert_eq!(hits(rules, "\npills\n"), ["B", "C", "D", "E", "F", "I"]);
        assert_eq!(hits(rules, "\nviagra pills\n"), ["A", "B", "I"]);
    }

    #[test]
    fn a_glob_does_not_mean_the_meta_that_it_stands_in() {
        let rules = "body __B_1 /pills/\nbody __B_2 /viagra/\nmeta __B_ALL rules_matching(__B_*)\nmeta M1 __B_ALL == 1\n\
                     meta M2 rules_matching(__B_*) == 2\nmeta M3 rules_matching(M3)\nmeta M4 !M3\n";
        assert_eq!(hits(rules, "\npills\n"), ["M1", "M2", "M4", "__B_1", "__B_ALL"]);
    }

    #[test]
    fn only_rules_of_the_body_leave_the_subject_out() {
        let rules = "util_rb_tld com\nbody A /viagra/\nfull B /viagra/\nrawbody C /pills/\nuri D /example/\nheader E Subject =~ /viagra/\n\
                     tflags A nosubject\ntflags B nosubject\ntflags C nosubject\ntflags D nosubject\ntflags E nosubject\n";
        let found = hits(rules, "Subject: viagra\n\npills http://www.example.com/\n");
        assert_eq!(found, ["B", "C", "D", "E"]);
    }

    #[test]
    fn tests_of_parts_that_need_the_network_or_learned_data_do_not_run_without() {
        let rules = "util_rb_tld com\nmimeheader A Content-Type =~ /text/\nmimeheader B Content-Type =~ /text/\nbody C /pills/\n\
                     uri_detail D raw =~ /example/\nuri_detail E raw =~ /example/\n\
                     tflags B net\ntflags C net\ntflags E net\nmimeheader F Content-Type =~ /text/\ntflags F learn\n\
                     uri_detail G raw =~ /example/\ntflags G learn\nbody H /pills/\ntflags H learn\n";
        let found = hits(rules, "Content-Type: text/plain\n\npills http://www.example.com/\n");
        assert_eq!(found, ["A", "C", "D", "H"]);
    }

    #[test]
    fn each_match_counts_in_the_text_for_a_missing_field() {
        let rules = "header H X-None =~ /\\S/ [if-unset: free]\ntflags H multiple maxhits=3\nmeta THREE H == 3\n\
                     header ALL X-None =~ /e/ [if-unset: free]\ntflags ALL multiple\nmeta TWO ALL == 2\n\
                     header NOT X-None !~ /x/ [if-unset: free]\ntflags NOT multiple\nmeta ONE NOT == 1\n";
        assert_eq!(hits(rules, "Subject: x\n\ny\n"), ["ALL", "H", "NOT", "ONE", "THREE", "TWO"]);
    }
}
