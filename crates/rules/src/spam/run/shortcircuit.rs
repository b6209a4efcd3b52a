//! Rules that end a check: SpamAssassin's plugin Shortcircuit.
//!
//! All rules are run, whatever hits; what SpamAssassin would not have run after the first that ends the check is taken out of the
//! hits. Its order is known beforehand: by priority, and within one by kind ([`Block`]); rules of one kind and one priority
//! all run. A meta hits as soon as all of its parts have run. A rule whose answer is from the network is decided at priority -100.
//!
//! Known wrong: a meta made of `SHORTCIRCUIT` does not see that it has hit.

use crate::spam::eval::{self, Does};
use crate::spam::rule::{Ending, Rule, Rules, SHORTCIRCUIT, Test, View};
use crate::spam::schedule::Schedule;
use crate::spam::settings::Settings;
use crate::spam::total::ScoreSet;

use super::hit::{Hit, Shortcircuited};

/// Kinds of rules in the order in which those of one priority run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Block {
    Header,
    HeaderEval,
    Body,
    Uri,
    BodyEval,
    Rawbody,
    RawbodyEval,
    Full,
    FullEval,
    Answer,
    Meta,
}

/// When a rule runs.
type Stage = (i64, Block);

/// Before all others.
const FIRST: Stage = (i64::MIN, Block::Header);
/// After all others, and not at all once a check has ended.
const LAST: Stage = (i64::MAX, Block::Meta);
/// Priority at which questions to the network begin, and that of rules which ask it.
const NETWORK: i64 = -100;

/// Rules that end a check, and when each rule runs.
#[derive(Debug)]
pub(super) struct Shortcircuit {
    /// The rule that hits beside them.
    own: u32,
    ham_score: f64,
    spam_score: f64,
    ham_min: Option<f64>,
    spam_max: Option<f64>,
    /// Without learned data, and with it.
    stages: [Vec<Stage>; 2],
}

impl Shortcircuit {
    /// `None` if no rule ends a check.
    pub(super) fn new(
        rules: &Rules,
        settings: &Settings,
        schedule: &Schedule,
        sets: [ScoreSet; 2],
    ) -> Option<Shortcircuit> {
        let bound = |name: &str| Some(settings.number(name, f64::NAN)).filter(|score| !score.is_nan());
        let (ham_min, spam_max) = (bound("shortcircuit_min_ham_score"), bound("shortcircuit_max_spam_score"));
        let has_rule = rules.names().iter().any(|rule| rule.shortcircuit.is_some());
        let own = rules.id(SHORTCIRCUIT).filter(|_| has_rule || ham_min.or(spam_max).is_some())?;
        let parts: Vec<(u32, Vec<u32>)> = schedule.parts().map(|(id, parts)| (id, parts.collect())).collect();
        let priorities = priorities(rules, &parts);
        Some(Shortcircuit {
            own,
            ham_score: settings.number("shortcircuit_ham_score", -100.0),
            spam_score: settings.number("shortcircuit_spam_score", 100.0),
            ham_min,
            spam_max,
            stages: sets.map(|set| stages(rules, &parts, &priorities, set)),
        })
    }

    /// Leaves the hits up to the end of a check, with the one that says so; as they are where nothing ends it.
    pub(super) fn end(&self, rules: &Rules, set: ScoreSet, hits: &mut Vec<Hit>) -> Option<Shortcircuited> {
        let stages = &self.stages[usize::from(set.bayes)];
        let stage = |hit: &Hit| stages.get(hit.rule as usize).copied().unwrap_or(LAST);
        let mut order: Vec<usize> = (0..hits.len()).collect();
        order.sort_by_key(|&place| stage(&hits[place]));
        let mut score = 0.0;
        for (count, &place) in order.iter().enumerate() {
            let hit = &hits[place];
            let rule = &rules.names()[hit.rule as usize];
            if let Some((ended, points)) = self.ends(hit, rules, set, score) {
                let until = stage(hit);
                let is_run = |place: &usize| stage(&hits[*place]) <= until;
                let mut run: Vec<Hit> =
                    order.iter().filter(|place| is_run(place)).map(|&at| hits[at].clone()).collect();
                let own = Hit { rule: self.own, count: 1, points: Some(points), ..Hit::default() };
                if points != 0.0 {
                    run.insert(count, own);
                }
                *hits = run;
                return Some(ended);
            }
            if !rule.is_subrule() {
                score += hit.points(rules, set);
            }
        }
        None
    }

    /// Whether a hit ends the check after the hits before, which have come to `score`; and the points of the rule beside it.
    fn ends(&self, hit: &Hit, rules: &Rules, set: ScoreSet, score: f64) -> Option<(Shortcircuited, f64)> {
        let rule = &rules.names()[hit.rule as usize];
        let own = hit.points.unwrap_or_else(|| set.score(rule));
        // Of a rule that hits more than once each hit but the last counts before the next, unless the first ends the check.
        let has_one = rule.is_subrule() || rule.shortcircuit.is_some();
        let last = score + if has_one { 0.0 } else { hit.points(rules, set) - own };
        let is_beyond = [score, last]
            .into_iter()
            .any(|score| self.ham_min.is_some_and(|min| score < min) || self.spam_max.is_some_and(|max| score > max));
        let score = if own < 0.0 { score.min(last) } else { score.max(last) };
        let of_rule = rule.shortcircuit.map(|ending| match ending {
            Ending::Score if own < 0.0 => (true, -0.0001),
            Ending::Score => (false, 0.0001),
            Ending::Ham => (true, self.ham_score),
            Ending::Spam => (false, self.spam_score),
        });
        match (is_beyond, of_rule) {
            (false, of_rule) => {
                of_rule.map(|(is_ham, points)| (Shortcircuited { rule: Some(hit.rule), is_ham }, points))
            }
            (true, of_rule) => {
                let points = if score < 0.0 { -0.001 } else { 0.001 };
                let is_ham = of_rule.map_or(score < 0.0, |(is_ham, _)| is_ham);
                Some((Shortcircuited { rule: of_rule.map(|_| hit.rule), is_ham }, points))
            }
        }
    }
}

/// Priorities, where a part of a meta has that of the meta if its own is later.
fn priorities(rules: &Rules, parts: &[(u32, Vec<u32>)]) -> Vec<i64> {
    let names = rules.names();
    let mut priorities: Vec<i64> = names.iter().map(Rule::priority).collect();
    let mut metas: Vec<&(u32, Vec<u32>)> = parts.iter().collect();
    metas.sort_by_key(|(meta, _)| priorities[*meta as usize]);
    for (meta, parts) in metas {
        let own = priorities[*meta as usize];
        for &part in parts {
            let is_asking = own < NETWORK && names[part as usize].flags.has("net");
            let priority = &mut priorities[part as usize];
            if *priority > own {
                *priority = if is_asking { NETWORK } else { own };
            }
        }
    }
    priorities
}

fn stages(rules: &Rules, parts: &[(u32, Vec<u32>)], priorities: &[i64], set: ScoreSet) -> Vec<Stage> {
    let names = rules.names();
    let stage = |(rule, &priority): (&Rule, &i64)| match &rule.test {
        Some(Test::Meta(_)) => FIRST,
        _ => block(rule, set).map_or(LAST, |block| match priority {
            _ if block == Block::Answer => (NETWORK, block),
            0 if rule.flags.has("net") => (NETWORK, block),
            priority => (priority, block),
        }),
    };
    let mut stages: Vec<Stage> = names.iter().zip(priorities).map(stage).collect();
    for (meta, parts) in parts {
        let last = parts.iter().map(|&part| stages[part as usize].0).max().unwrap_or(i64::MIN);
        let Some(Test::Meta(of)) = &names[*meta as usize].test else { continue };
        let has_all = of.names.iter().all(|name| rules.get(name).is_some_and(|part| part.test.is_some()));
        stages[*meta as usize] = if has_all { (last, Block::Meta) } else { LAST };
    }
    stages
}

/// The kind of a rule that is no meta; `None` if it does not run.
fn block(rule: &Rule, set: ScoreSet) -> Option<Block> {
    let runs = set.net || !rule.flags.has("net");
    let block = match rule.test.as_ref()? {
        Test::Header(_) => Block::Header,
        Test::Pattern(view, _) => match view {
            View::Header | View::Body => Block::Body,
            View::Rawbody => Block::Rawbody,
            View::Full => Block::Full,
            View::Uri => Block::Uri,
        },
        Test::MimeHeader(_) | Test::UriDetail(_) if runs => Block::BodyEval,
        Test::AskDns(_) if set.net => Block::Answer,
        Test::Eval(view, call) if runs && (set.bayes || !rule.flags.has("learn")) => {
            match eval::find(&call.function, *view)?.does {
                Does::List => Some(Block::Answer).filter(|_| set.net)?,
                _ if call.is_rbl() => Some(Block::Answer).filter(|_| set.net)?,
                _ => match view {
                    View::Header => Block::HeaderEval,
                    View::Body | View::Uri => Block::BodyEval,
                    View::Rawbody => Block::RawbodyEval,
                    View::Full => Block::FullEval,
                },
            }
        }
        _ => return None,
    };
    Some(block).filter(|_| set.score(rule) != 0.0)
}

#[cfg(test)]
mod tests {
    use flow::{Answer, Security};

    use super::super::{Beside, Engine, EngineOptions, Expressions, Report, Scratch};
    use crate::spam::message::{Message, MessageLimits};
    use crate::spam::total::ScoreSet;
    use crate::spam::{File, Limits, Loader, Options};

    const RULES: &str = "loadplugin Mail::SpamAssassin::Plugin::Shortcircuit\nutil_rb_tld com\nbody EARLY /alpha/\n\
                         priority EARLY -500\nheader HEAD Subject =~ /alpha/\nscore HEAD 2\nbody BODY /beta/\nscore BODY -3\n\
                         rawbody RAW /beta/\nmeta BOTH EARLY && HEAD\nmeta LATE BODY && NOSUCH\nmeta NOT !NOSUCH\n\
                         body __SUB /beta/\npriority __SUB -5\nfull FULL /alpha/\ntflags FULL multiple\n\
                         clear_report_template\nreport _SCTYPE_ _SC_ _SCRULE_ _AUTOLEARN_\n";

    /// Score, hits and tags of a mail.
    fn check(rules: &str) -> String {
        let text = format!("{RULES}{rules}");
        let options = Options { default_plugins: true, local_tests_only: true, ..Options::default() };
        let mut loader = Loader::new(options, Limits::default());
        loader.read(&File { name: "a.cf".into(), bytes: text.into() }, &mut |_, name| Err(name.into()));
        let engine = Engine::new(loader.finish(&Expressions), EngineOptions::default());
        assert_eq!(engine.rules().errors(), 0, "{:?}", engine.rules().problems());
        let mail = Message::read(b"Subject: alpha\n\nalpha beta\n", engine.reading(), &MessageLimits::default());
        let outcome = engine.check(&mail, 0, false, &mut Scratch::default());
        let names = outcome.hits.iter().map(|hit| &engine.rules().names()[hit.rule as usize]);
        let mut names: Vec<&str> = names.filter(|rule| !rule.is_subrule()).map(|rule| &*rule.name).collect();
        names.sort_unstable();
        let report = Report::new(&engine, &mail, &outcome, "mx.test").text();
        format!("{} {} {}", outcome.total.value(), names.join(","), report.trim_end())
    }

    #[test]
    fn a_hit_ends_the_check_after_the_rules_of_its_kind_and_priority() {
        for (rules, expected) in [
            ("", "5 BODY,BOTH,EARLY,FULL,HEAD,NOT,RAW no no none disabled"),
            ("shortcircuit EARLY spam\n", "101 EARLY,SHORTCIRCUIT spam EARLY (spam) EARLY disabled"),
            ("shortcircuit HEAD ham\n", "-97 EARLY,HEAD,SHORTCIRCUIT ham HEAD (ham) HEAD disabled"),
            ("shortcircuit BODY on\n", "0 BODY,EARLY,HEAD,SHORTCIRCUIT ham BODY (ham) BODY disabled"),
            (
                "shortcircuit BODY on\nshortcircuit BODY off\n",
                "5 BODY,BOTH,EARLY,FULL,HEAD,NOT,RAW no no none disabled",
            ),
            ("shortcircuit __SUB on\n", "1 EARLY,SHORTCIRCUIT spam __SUB (spam) __SUB disabled"),
            (
                "shortcircuit RAW spam\npriority RAW 0\nshortcircuit_spam_score 10\n",
                "11 BODY,EARLY,HEAD,RAW,SHORTCIRCUIT spam RAW (spam) RAW disabled",
            ),
            ("shortcircuit BOTH spam\nshortcircuit_spam_score 0\n", "4 BOTH,EARLY,HEAD spam BOTH (spam) BOTH disabled"),
            ("shortcircuit_max_spam_score 2.5\n", "0.001 BODY,EARLY,HEAD,SHORTCIRCUIT spam no none disabled"),
            (
                "shortcircuit NOSUCH on\nshortcircuit NOT ham\n",
                "-97 BODY,BOTH,EARLY,FULL,HEAD,NOT,RAW,SHORTCIRCUIT ham NOT (ham) NOT disabled",
            ),
        ] {
            assert_eq!(check(rules), expected, "{rules}");
        }
    }

    #[test]
    fn an_answer_from_the_network_counts_before_what_has_no_priority() {
        let found = |ends: &str| {
            let text = format!(
                "{RULES}trusted_networks 192.0.2.1\nheader LISTED eval:check_rbl('x', 'l.test.')\ntflags LISTED net\n{ends}\n"
            );
            let mut loader = Loader::new(Options { default_plugins: true, ..Options::default() }, Limits::default());
            loader.read(&File { name: "a.cf".into(), bytes: text.into() }, &mut |_, name| Err(name.into()));
            let set = ScoreSet { net: true, bayes: false };
            let engine = Engine::new(loader.finish(&Expressions), EngineOptions { set, ..EngineOptions::default() });
            let mail = b"Received: from a (a.test [198.51.100.7]) by mx.test; Mon, 1 Jan 2024 00:00:00 +0000\nSubject: alpha\n\nalpha beta\n";
            let mail = Message::read(mail, engine.reading(), &MessageLimits::default());
            let mut inquiry = engine.inquire(&mail, 0);
            while let Some(asked) = inquiry.ask() {
                let outcome = flow::Outcome::Records(vec![flow::Record::A([127, 0, 0, 2].into())]);
                engine.answer(&mut inquiry, Answer { id: asked.id, outcome, security: Security::Unknown });
            }
            let beside = Beside { inquiry: Some(&inquiry), ..Beside::default() };
            let outcome = engine.check_known(&mail, 0, false, beside, &mut Scratch::default());
            let names = outcome.hits.iter().map(|hit| &*engine.rules().names()[hit.rule as usize].name);
            let mut names: Vec<&str> = names.filter(|name| !name.starts_with("__")).collect();
            names.sort_unstable();
            format!("{} {}", outcome.total.value(), names.join(" "))
        };
        assert_eq!(found(""), "6 BODY BOTH EARLY FULL HEAD LISTED NOT RAW");
        assert_eq!(found("shortcircuit EARLY on"), "1 EARLY SHORTCIRCUIT");
        assert_eq!(found("shortcircuit LISTED on"), "2 EARLY LISTED SHORTCIRCUIT");
        assert_eq!(found("shortcircuit HEAD on\npriority HEAD 0"), "4 EARLY HEAD LISTED SHORTCIRCUIT");
    }

    #[test]
    fn a_part_of_a_meta_runs_no_later_than_the_meta_says() {
        let found = check("shortcircuit BOTH on\npriority BOTH -700\n");
        assert_eq!(found, "4 BOTH,EARLY,HEAD,SHORTCIRCUIT spam BOTH (spam) BOTH disabled");
    }
}
