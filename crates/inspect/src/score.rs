//! Score of a mail by the rules of spam: an observer that keeps the mail, and runs the rules at its end.
//!
//! [`RuleFiles`] are the files of a configuration as the host has read them, a plain value that can be handed to a process which
//! reads no files; [`Scorer`] is what is compiled of them, once; [`Kept`] is a mail while it comes.
//!
//! The whole mail is kept, up to [`Scoring::bytes_max`] and as much again while it grows; one that is larger is let go of, and
//! has no score. A check cannot be suspended: it is bounded by the steps of [`RunLimits`], and its host runs it where nobody
//! else waits.

use flow::{Answer, Conduct, Hit, Lesson, Links, Mark, Points, Recall, Score, Scoring, Study as Wanted};
use rules::spam::message::{Message, MessageLimits};
use rules::spam::run::{Beside, Engine, EngineOptions, Expressions, Outcome, Report, Scratch};
use rules::spam::{Checker, File, Limits, Loader, Options, Rules, ScoreSet};
use serde::{Deserialize, Serialize};

use crate::fuzzy::fuzzy;
use crate::inquest::{Authenticated, Inquest};
use crate::recalling::Recalling;
use crate::reputation::Reputation;
use crate::study::{Studied, Study};

/// The files of a configuration of rules, in the order in which they are read.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RuleFiles {
    /// Each of them.
    pub files: Vec<RuleFile>,
    /// Included files: the name of the including file, the name as written there, and the file.
    pub included: Vec<(Box<str>, Box<str>, RuleFile)>,
    /// Whether the plugins are on that Debian's package loads, since no file says so.
    pub default_plugins: bool,
    /// Whether rules may ask the network: then their scores are those with it.
    pub network: bool,
    /// Whether rules may ask what was learned: then their scores are those with it, where enough was.
    pub bayes: bool,
    /// The name of this machine, for fields and reports.
    pub host: Box<str>,
}

/// A file.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RuleFile {
    /// Its path.
    pub name: Box<str>,
    /// Its content.
    pub bytes: Vec<u8>,
}

impl RuleFiles {
    /// Reads them. `include` is asked for a file that another one includes, by the name of that one and its own.
    pub fn read(
        &self,
        include: &mut dyn FnMut(&str, &str) -> Result<RuleFile, String>,
        checker: &dyn Checker,
    ) -> Rules {
        let options =
            Options { default_plugins: self.default_plugins, local_tests_only: !self.network, ..Options::default() };
        let mut loader = Loader::new(options, Limits::default());
        let file = |file: RuleFile| File { name: file.name.into(), bytes: file.bytes };
        for own in &self.files {
            loader.read(&file(own.clone()), &mut |place, name| include(&place.file, name).map(&file));
        }
        loader.finish(checker)
    }

    /// A file that another one includes, as it was handed over.
    fn included(&self, from: &str, name: &str) -> Result<RuleFile, String> {
        let found = self.included.iter().find(|(own, included, _)| **own == *from && **included == *name);
        found.map(|(_, _, file)| file.clone()).ok_or_else(|| "it was not there".into())
    }
}

/// Rules that mails are scored with; threads share them.
#[derive(Debug)]
pub struct Scorer {
    engine: Engine,
    study: Study,
    reputation: Option<Reputation>,
    host: Box<str>,
}

/// Inputs to collect for a mail before the rules run.
#[derive(Debug, Default)]
pub struct Planned {
    /// Questions to the network.
    pub inquest: Option<Inquest>,
    /// Question to the learned data.
    pub recalling: Option<Recalling>,
}

impl Planned {
    /// Takes the question to the learned data, once: it needs the authenticated sender.
    pub fn recall(&mut self, scorer: &Scorer) -> Option<Recall> {
        let recalling = self.recalling.as_mut()?;
        if let Some((sent, reputation)) = recalling.unsigned().zip(scorer.reputation.as_ref()) {
            if self.inquest.as_ref().is_some_and(|inquest| !inquest.is_authenticated()) {
                return None;
            }
            let known = self.inquest.as_ref().and_then(|inquest| inquest.inquiry().known());
            let named = reputation.named(sent, scorer.engine.settings(), known);
            recalling.name(named);
        }
        recalling.ask()
    }

    /// Whether all of it is known.
    pub fn is_settled(&self) -> bool {
        self.inquest.as_ref().is_none_or(Inquest::is_settled)
            && self.recalling.as_ref().is_none_or(Recalling::is_settled)
    }
}

impl Scorer {
    /// Compiles a configuration. It takes some 50 ms of processor time for the stock set, and some 40 MB.
    pub fn new(files: &RuleFiles) -> Scorer {
        Scorer::of(files.read(&mut |from, name| files.included(from, name), &Expressions), files)
    }

    /// The same of what was read of the files, with [`Expressions`] or it takes longer.
    pub fn of(rules: Rules, files: &RuleFiles) -> Scorer {
        let set = ScoreSet { net: files.network, bayes: files.bayes };
        let engine = Engine::new(rules, EngineOptions { set, ..EngineOptions::default() });
        engine.prepare();
        let study = Study::new(&engine);
        let reputation = Reputation::new(&engine).filter(|_| files.bayes);
        Scorer { engine, study, reputation, host: files.host.clone() }
    }

    /// Builds all that mails will need, and not where one first does: for a process that others are copied from.
    pub fn build(&self) {
        self.engine.build();
    }

    /// Takes an answer to a question of the rules.
    pub fn answer(&self, inquest: &mut Inquest, answer: Answer) {
        inquest.answer(&self.engine, answer);
    }

    /// Whether rules ask the network, or what was learned.
    pub fn asks(&self) -> bool {
        self.engine.options().set.net || self.engine.options().set.bayes
    }

    /// The rules.
    pub fn rules(&self) -> &Rules {
        self.engine.rules()
    }
}

/// A mail that is kept until its end.
#[derive(Debug)]
pub struct Kept {
    scoring: Scoring,
    /// The trace, and what has come of the mail.
    bytes: Vec<u8>,
    is_too_large: bool,
}

impl Kept {
    /// Nothing of it has come.
    pub fn new(scoring: Scoring) -> Kept {
        Kept { bytes: scoring.trace.to_vec(), scoring, is_too_large: false }
    }

    /// Settings of the score.
    pub fn scoring(&self) -> &Scoring {
        &self.scoring
    }

    /// Keeps more of it.
    pub fn take(&mut self, bytes: &[u8]) {
        if self.is_too_large {
            return;
        }
        let all = self.bytes.len().saturating_sub(self.scoring.trace.len()).saturating_add(bytes.len());
        if all as u64 > self.scoring.bytes_max {
            (self.is_too_large, self.bytes) = (true, Vec::new());
            return;
        }
        self.bytes.extend_from_slice(bytes);
    }

    /// Collects the questions of the rules; nothing if the mail was too large. `found` has the results about its
    /// sender.
    pub fn inquire(&self, scorer: &Scorer, now: i64, found: Option<&Authenticated>) -> Planned {
        if self.is_too_large || !scorer.asks() {
            return Planned::default();
        }
        let Scorer { engine, study, reputation, host } = scorer;
        let mail = Message::read(&self.bytes, engine.reading(), &MessageLimits::default());
        let own = self.bytes.get(self.scoring.trace.len()..).unwrap_or_default();
        let set = engine.options().set;
        let inquest = set.net.then(|| Inquest::new(engine, &mail, own, host, now, found));
        let tokens = if set.bayes { study.question(engine, &mail) } else { None };
        let sent = reputation.as_ref().and_then(|reputation| reputation.sent(engine, &mail));
        let fuzzy = if set.bayes { fuzzy(engine, &mail) } else { None };
        Planned { inquest, recalling: Recalling::new(tokens, sent, fuzzy) }
    }

    /// Asks the rules; none if it was too large. `now` is in seconds since 1970, and `planned` has what was answered.
    pub fn score(&self, scorer: &Scorer, now: i64, planned: &Planned, scratch: &mut Scratch) -> Option<Score> {
        if self.is_too_large {
            return None;
        }
        let engine = &scorer.engine;
        let mail = Message::read(&self.bytes, engine.reading(), &MessageLimits::default());
        let inquiry = planned.inquest.as_ref().map(Inquest::inquiry);
        let recalled = planned.recalling.as_ref().and_then(|recalling| recalling.outcome(&scorer.study));
        let (recalled, decided) = recalled.unzip();
        let own = self.scoring.preferences.as_ref();
        let own = own.map(|own| engine.preferences(&File { name: (*own.name).into(), bytes: own.text.to_vec() }));
        let beside = Beside {
            inquiry,
            recalled,
            preferences: own.as_ref(),
            alike: planned.recalling.as_ref().and_then(Recalling::alike),
        };
        let mut outcome = engine.check_known(&mail, now, false, beside, scratch);
        if let Some(required) = self.scoring.required
            && own.as_ref().and_then(|own| own.required()).is_none()
        {
            outcome.required = required.value();
        }
        let conduct = self.rate(scorer, planned, &mut outcome);
        let lesson = self.lesson(scorer, &mail, planned, &mut outcome);
        let report = Report::new(engine, &mail, &outcome, &scorer.host).of(own.as_ref());
        let mark = |(name, value): (String, String)| Mark { name: name.into(), value: value.into() };
        let hit = |(rule, points): (&str, f64)| Hit { rule: rule.into(), points: Points::of(points) };
        Some(Score {
            points: Points::of(outcome.total.value()),
            required: Points::of(outcome.required),
            hits: report.hits().take(Score::HITS_MAX).map(hit).collect(),
            fields: report.fields(self.scoring.report).into_iter().take(Score::FIELDS_MAX).map(mark).collect(),
            text: if self.scoring.text { (report.text() + "\n").into() } else { Box::default() },
            links: self.scoring.links.then(|| Box::new(links(&mail))),
            subject: subject(&self.bytes[self.scoring.trace.len()..]).map(|at| at as u64),
            decided: decided.unwrap_or_default(),
            lesson: lesson.map(Box::new),
            conduct: conduct.map(Box::new),
            complaints: own
                .iter()
                .flat_map(|own| own.errors())
                .take(Score::COMPLAINTS_MAX)
                .map(|error| error.to_string().into())
                .collect(),
            micros: 0,
        })
    }

    /// Moves the score by what the sender is known for; how the mail counts, unless somebody says what it is.
    fn rate(&self, scorer: &Scorer, planned: &Planned, outcome: &mut Outcome) -> Option<Conduct> {
        let (reputation, recalling) = scorer.reputation.as_ref().zip(planned.recalling.as_ref())?;
        let (named, standings) = recalling.named().zip(recalling.standings())?;
        let conduct = reputation.rate(&scorer.engine, named, standings, outcome);
        conduct.filter(|_| self.scoring.study != Wanted::Always)
    }

    /// Lesson of the mail, where learning is wanted. The outcome gets whether the rules are sure.
    fn lesson(&self, scorer: &Scorer, mail: &Message, planned: &Planned, outcome: &mut Outcome) -> Option<Lesson> {
        let Scorer { engine, study, reputation, .. } = scorer;
        let is_spam = match self.scoring.study {
            Wanted::Never => {
                study.tell_unlearned(engine, outcome);
                return None;
            }
            Wanted::Always => None,
            Wanted::WhenSure if !study.learns_by_itself() => return None,
            Wanted::WhenSure => {
                let autolearn = engine.autolearn(outcome);
                outcome.autolearn = Some(autolearn);
                Some(autolearn.is_spam?)
            }
        };
        let Studied { ids, at, tokens } = study.lesson(engine, mail)?;
        let counts =
            self.scoring.study == Wanted::Always || reputation.is_some_and(|reputation| reputation.autolearns());
        let named = planned.recalling.as_ref().and_then(Recalling::named).filter(|_| counts);
        let fuzzy = planned.recalling.as_ref().and_then(Recalling::fuzzy).cloned();
        let conduct = reputation.zip(named).map(|(reputation, named)| Box::new(reputation.conduct(named)));
        Some(Lesson { is_spam, ids, at, keys: tokens.keys().to_vec(), conduct, fuzzy })
    }
}

fn links(mail: &Message) -> Links {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into();
    Links {
        hosts: mail.linked_hosts().into_iter().take(Score::LINKS_MAX).map(text).collect(),
        addresses: mail.linked_addresses().iter().take(Score::LINKS_MAX).map(|address| text(address)).collect(),
    }
}

/// Where the text of the first subject begins in a mail.
fn subject(mail: &[u8]) -> Option<usize> {
    const NAME: &[u8] = b"subject:";
    let mut at = 0;
    for line in mail.split_inclusive(|&byte| byte == b'\n') {
        if line.trim_ascii().is_empty() {
            return None;
        }
        if line.get(..NAME.len()).is_some_and(|name| name.eq_ignore_ascii_case(NAME)) {
            let blanks = line[NAME.len()..].iter().take_while(|&&byte| byte == b' ' || byte == b'\t').count();
            return Some(at + NAME.len() + blanks);
        }
        at += line.len();
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scorer(rules: &str) -> Scorer {
        let file = RuleFile { name: "own.cf".into(), bytes: rules.as_bytes().to_vec() };
        Scorer::new(&RuleFiles { files: vec![file], host: "mx.test".into(), ..RuleFiles::default() })
    }

    fn score(rules: &str, scoring: Scoring, pieces: &[&[u8]]) -> Option<Score> {
        let mut kept = Kept::new(scoring);
        pieces.iter().for_each(|piece| kept.take(piece));
        kept.score(&scorer(rules), 0, &Planned::default(), &mut Scratch::default())
    }

    const RULES: &str = "body BUY /buy now/i\nscore BUY 4.5\ndescribe BUY Somebody sells\nheader VIA Received =~ /relay/\n\
                         score VIA 1\nrequired_score 5\nclear_headers\nadd_header all Status _YESNO_, score=_SCORE_\n";

    #[test]
    fn a_mail_is_scored_with_the_trace_in_front_however_it_comes() {
        let mail = b"From: a@b\r\nSubject: \t x\r\n\r\nBuy now\r\n";
        let trace = b"Received: from x (relay [192.0.2.1]) by y; Mon, 1 Jan 2024 00:00:00 +0000\r\n";
        let scoring = |trace: &[u8]| Scoring { bytes_max: 100, trace: trace.into(), ..Scoring::default() };
        let whole = score(RULES, scoring(trace), &[mail]).unwrap();
        assert_eq!((whole.points, whole.is_spam(), whole.subject), (Points(5_500), true, Some(22)));
        let names: Vec<(&str, &str)> = whole.fields.iter().map(|mark| (&*mark.name, &*mark.value)).collect();
        assert_eq!(names, [("Status", "Yes, score=5.5")]);
        for cut in 0..mail.len() {
            assert_eq!(score(RULES, scoring(trace), &[&mail[..cut], &mail[cut..]]), Some(whole.clone()), "{cut}");
        }
        assert_eq!(score(RULES, scoring(b""), &[mail]).unwrap().points, Points(4_500));
    }

    #[test]
    fn a_mail_that_is_too_large_has_no_score_and_one_of_that_size_has() {
        let scoring = Scoring { bytes_max: 10, ..Scoring::default() };
        assert!(score(RULES, scoring.clone(), &[b"A: b\n\n", b"1234"]).is_some());
        assert!(score(RULES, scoring.clone(), &[b"A: b\n\n", b"12345"]).is_none());
        let traced = Scoring { trace: b"X: y\n"[..].into(), ..scoring };
        assert!(score(RULES, traced, &[b"A: b\n\n12345", b"more", b""]).is_none());
    }

    #[test]
    fn a_mail_that_is_not_learned_says_what_it_would_be() {
        let rules = "clear_headers\nadd_header all Status autolearn=_AUTOLEARN_\nbody BUY /buy/\nscore BUY 2\n";
        for (more, mail, wanted) in [
            ("", "From: a@b\n\nbuy\n", "autolearn=no autolearn_force=no"),
            ("", "From: a@b\n\nhello\n", "autolearn=unavailable autolearn_force=no"),
            ("bayes_auto_learn 0\n", "From: a@b\n\nbuy\n", "autolearn=disabled"),
        ] {
            for bayes in [false, true] {
                let file = RuleFile { name: "own.cf".into(), bytes: [rules, more].concat().into_bytes() };
                let files = RuleFiles { files: vec![file], host: "mx.test".into(), bayes, ..RuleFiles::default() };
                let mut kept = Kept::new(Scoring { bytes_max: 100, ..Scoring::default() });
                kept.take(mail.as_bytes());
                let score = kept.score(&Scorer::new(&files), 0, &Planned::default(), &mut Scratch::default());
                assert_eq!(&*score.unwrap().fields[0].value, wanted, "{more} {bayes}");
            }
        }
    }

    #[test]
    fn the_bound_of_the_site_counts_in_fields_too() {
        let scoring = Scoring { bytes_max: 100, required: Some(Points(4_000)), report: true, ..Scoring::default() };
        let score = score(RULES, scoring, &[b"From: a@b\n\nbuy now\n"]).unwrap();
        assert!(score.is_spam());
        assert_eq!(&*score.fields[0].value, "Yes, score=4.5");
        let report = score.fields.last().unwrap();
        assert_eq!((&*report.name, &*report.value), ("Report", "\n\t*  4.5 BUY BODY: Somebody sells"));
        assert_eq!(score.subject, None);
    }
}
