//! Whether a mail is so clearly spam, or ham, that it is learned without anybody having said so.
//!
//! As SpamAssassin's plugin AutoLearnThreshold decides: by the scores without what was learned, so that learning does not
//! confirm itself. Spam needs points of its header and of its body, so that no one list of addresses teaches; and what was
//! learned may not speak against it.

use super::check::Outcome;
use super::engine::Engine;
use crate::spam::recalled::Autolearn;
use crate::spam::rule::{Rule, Test, View};
use crate::spam::total::ScoreSet;

/// Below so many points it is ham, where the rules say nothing else.
const HAM_MAX: f64 = 0.1;

/// From so many points on it is spam.
const SPAM_MIN: f64 = 12.0;

/// So many points of spam are from the header, and as many from the body.
const EACH_MIN: f64 = 3.0;

/// Points of the Bayes rules beyond which, on the other side, a mail is not learned.
const LEARNED: f64 = 1.0;

/// Points by where they are from.
#[derive(Debug, Default)]
struct Points {
    all: f64,
    header: f64,
    body: f64,
    learned: f64,
    is_forced: bool,
}

/// Part of a mail that a rule reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Side {
    Header,
    Body,
    Neither,
}

impl Engine {
    /// Whether a mail is learned by what a check came to.
    pub fn autolearn(&self, outcome: &Outcome) -> Autolearn {
        let points = self.points(outcome);
        // A check that was ended early says too little.
        let is_spam = self.judge(outcome, &points).filter(|_| outcome.shortcircuited.is_none());
        Autolearn { is_spam, is_forced: is_spam.is_some() && points.is_forced, is_unavailable: false }
    }

    /// The rules that ask for a lesson, as `_AUTOLEARN_` has them.
    pub(super) fn forcing(&self, outcome: &Outcome) -> String {
        let rules = outcome.hits.iter().map(|hit| &self.rules.names()[hit.rule as usize]);
        let forces = |rule: &&Rule| {
            let flags = &rule.flags;
            let is_left_out =
                rule.is_subrule() || ["noautolearn", "userconf", "learn"].iter().any(|flag| flags.has(flag));
            flags.has("autolearn_force") && !is_left_out
        };
        rules.filter(forces).map(|rule| &*rule.name).collect::<Vec<_>>().join(",")
    }

    /// The score that what is learned by the rules goes by: without what was learned, and without rules that users set.
    pub fn plain_points(&self, outcome: &Outcome) -> f64 {
        self.points(outcome).all
    }

    fn judge(&self, outcome: &Outcome, points: &Points) -> Option<bool> {
        let of = |name: &str, usual: f64| self.settings.number(name, usual);
        let is_spam = match points.all {
            all if all < of("bayes_auto_learn_threshold_nonspam", HAM_MAX) => false,
            all if all >= of("bayes_auto_learn_threshold_spam", SPAM_MIN) => true,
            _ => return None,
        };
        let is_from_both = points.is_forced || (points.body >= EACH_MIN && points.header >= EACH_MIN);
        let is_contradicted = if is_spam { points.learned < -LEARNED } else { points.learned > LEARNED };
        let is_agreed = is_spam == outcome.is_spam();
        let is_known = of("bayes_auto_learn_on_error", 0.0) != 0.0
            && self.has_hit(outcome, if is_spam { "BAYES_99" } else { "BAYES_00" });
        let learns = (is_from_both || !is_spam) && !is_contradicted && is_agreed && !is_known;
        learns.then_some(is_spam)
    }

    fn has_hit(&self, outcome: &Outcome, name: &str) -> bool {
        let id = self.rules.id(name);
        outcome.hits.iter().any(|hit| Some(hit.rule) == id)
    }

    fn points(&self, outcome: &Outcome) -> Points {
        let plain = ScoreSet { bayes: false, ..outcome.set() };
        let mut points = Points::default();
        for hit in &outcome.hits {
            let rule = &self.rules.names()[hit.rule as usize];
            let flags = &rule.flags;
            if rule.is_subrule() || flags.has("noautolearn") || flags.has("userconf") {
                continue;
            }
            let times = f64::from(hit.count.min(flags.hits_max()));
            if flags.has("learn") {
                points.learned += outcome.set().score(rule) * times;
                continue;
            }
            points.is_forced |= flags.has("autolearn_force");
            let score = plain.score(rule) * times;
            let header = match () {
                () if flags.has("autolearn_header") => 1.0,
                () if flags.has("autolearn_body") => 0.0,
                () => match self.share(hit.rule, rule) {
                    Some(share) => share,
                    None => {
                        points.all += score;
                        continue;
                    }
                },
            };
            points.all += score;
            points.header += thousandths(score * header);
            points.body += thousandths(score * (1.0 - header));
        }
        points.all = thousandths(points.all);
        points
    }

    /// How much of a rule is of the header, the rest being of the body; none where it is neither.
    fn share(&self, id: u32, rule: &Rule) -> Option<f64> {
        match side(rule) {
            Side::Header => return Some(1.0),
            Side::Body => return Some(0.0),
            Side::Neither => {}
        }
        let (_, parts) = self.schedule.parts().find(|(meta, _)| *meta == id)?;
        let (mut header, mut body) = (0.0, 0.0);
        for part in parts {
            match side(&self.rules.names()[part as usize]) {
                Side::Header => header += 1.0,
                Side::Body => body += 1.0,
                Side::Neither => {}
            }
        }
        (header + body > 0.0).then(|| header / (header + body))
    }
}

fn side(rule: &Rule) -> Side {
    match &rule.test {
        Some(Test::Eval(_, call)) if call.is_rbl() => Side::Neither,
        Some(Test::Header(_) | Test::Eval(View::Header, _)) => Side::Header,
        Some(Test::MimeHeader(_) | Test::UriDetail(_)) => Side::Body,
        Some(Test::Pattern(view, _) | Test::Eval(view, _)) if *view != View::Full => Side::Body,
        _ => Side::Neither,
    }
}

fn thousandths(points: f64) -> f64 {
    (points * 1000.0).round() / 1000.0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spam::message::{Message, MessageLimits};
    use crate::spam::recalled::Recalled;
    use crate::spam::run::{Beside, EngineOptions, Expressions, Report, Scratch};
    use crate::spam::{File, Limits, Loader, Options};

    const RULES: &str = "header HEAD Subject =~ /head/\nscore HEAD 7\nbody BODY /body/\nscore BODY 7\nbody OTHER /other/\n\
                         score OTHER 9\nbody BAYES eval:check_bayes('0.9', '1')\ntflags BAYES learn\nscore BAYES 0 0 3 3\n\
                         body HAM eval:check_bayes('0', '0.1')\ntflags HAM learn nice\nscore HAM 0 0 -3 -3\n\
                         header __A Subject =~ /meta/\nbody __B /meta/\nmeta BOTH __A && __B\nscore BOTH 13\n\
                         body FORCE /force/\ntflags FORCE autolearn_force\nscore FORCE 20\nbody MINE /body/\n\
                         tflags MINE userconf\nscore MINE 0.01\n";

    fn learned(rules: &str, subject: &str, body: &str, probability: Option<f64>) -> Option<bool> {
        checked(rules, subject, body, probability, |engine, _, outcome| engine.autolearn(outcome).is_spam)
    }

    /// The status as `_AUTOLEARN_` has it; without a place to learn.
    fn status(rules: &str, subject: &str, body: &str) -> String {
        checked(rules, subject, body, None, |engine, mail, outcome| {
            outcome.autolearn = Some(Autolearn { is_unavailable: true, ..engine.autolearn(outcome) });
            let fields = Report::new(engine, mail, outcome, "mx.test").fields(false);
            fields.into_iter().find(|(name, _)| name == "Learn").map(|(_, value)| value).unwrap_or_default()
        })
    }

    fn checked<T>(
        rules: &str,
        subject: &str,
        body: &str,
        probability: Option<f64>,
        act: impl Fn(&Engine, &Message, &mut Outcome) -> T,
    ) -> T {
        let mut loader = Loader::new(Options { default_plugins: true, ..Options::default() }, Limits::default());
        let file = File { name: "own.cf".into(), bytes: [RULES, rules].concat().into_bytes() };
        loader.read(&file, &mut |_, _| Err(String::new()));
        let set = ScoreSet { net: false, bayes: true };
        let engine = Engine::new(loader.finish(&Expressions), EngineOptions { set, ..EngineOptions::default() });
        let mail = format!("Subject: {subject}\n\n{body}\n");
        let mail = Message::read(mail.as_bytes(), engine.reading(), &MessageLimits::default());
        let recalled =
            probability.map(|probability| Recalled { probability: Some(probability), ..Recalled::default() });
        let beside = Beside { recalled, ..Beside::default() };
        let mut outcome = engine.check_known(&mail, 0, false, beside, &mut Scratch::default());
        act(&engine, &mail, &mut outcome)
    }

    /// As SpamAssassin 4.0.1 writes it.
    #[test]
    fn the_status_is_that_of_spamassassin() {
        let field = "clear_headers\nadd_header all Learn autolearn=_AUTOLEARN_ version\n";
        for (subject, body, wanted) in [
            ("x", "body", "autolearn=no autolearn_force=no version"),
            ("head", "body", "autolearn=unavailable autolearn_force=no version"),
            ("x", "x", "autolearn=unavailable autolearn_force=no version"),
            ("x", "force", "autolearn=unavailable autolearn_force=yes (FORCE) version"),
        ] {
            assert_eq!(status(field, subject, body), wanted, "{subject} {body}");
        }
    }

    #[test]
    fn spam_needs_points_of_header_and_body_and_no_contradiction() {
        assert_eq!(learned("", "head", "body", None), Some(true));
        assert_eq!(learned("", "x", "body other", None), None, "all of the body");
        assert_eq!(learned("", "head", "other", Some(0.95)), Some(true));
        assert_eq!(learned("", "head", "other", Some(0.05)), None, "what was learned speaks against it");
        assert_eq!(learned("", "meta", "meta", None), Some(true), "half of a meta is of each");
        assert_eq!(learned("tflags BODY autolearn_header\n", "x", "body other", None), Some(true));
        assert_eq!(learned("", "x", "force", None), Some(true));
        assert_eq!(learned("tflags BODY noautolearn\n", "head", "body", None), None);
        assert_eq!(learned("required_score 50\n", "head", "body", None), None, "it is not even spam");
        let on_error =
            "bayes_auto_learn_on_error 1\nbody BAYES_99 eval:check_bayes('0.99', '1')\nscore BAYES_99 0 0 1 1\n";
        assert_eq!([0.999, 0.95].map(|it| learned(on_error, "head", "body", Some(it))), [None, Some(true)]);
    }

    #[test]
    fn ham_has_no_points_and_learning_does_not_confirm_itself() {
        assert_eq!(learned("", "x", "x", None), Some(false));
        assert_eq!(learned("", "x", "x", Some(0.01)), Some(false));
        assert_eq!(learned("", "x", "x", Some(0.95)), None, "what was learned speaks against it");
        assert_eq!(learned("bayes_auto_learn_threshold_nonspam -1\n", "x", "x", None), None);
        assert_eq!(learned("score MINE 0.2\ntflags BODY noautolearn\n", "x", "body", None), None, "it is spam");
    }
}
