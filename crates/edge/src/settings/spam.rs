//! `[spam]`: which mails are scored, and what follows from a score; and what a listener or a rule says in its place.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use flow::{Action, Points, Scoring, Study};
use serde::Deserialize;
use serde::de::{self, Deserializer};

use super::size::{size, some_size};

/// The scores that a setting may have, both ways.
const POINTS_MAX: f64 = 10_000.0;

/// The longest wait for the DNS, in seconds: sooner than a verdict is overdue.
const WAIT_SECONDS_MAX: u64 = 60;

/// The longest time before a mail may come again, in seconds: servers give up after days.
const GREYLIST_SECONDS_MAX: u32 = 86_400;

/// The longest tag, in bytes.
const TAG_BYTES_MAX: usize = 100;

/// `[spam]`
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SpamSettings {
    /// Folders of rules. None: where SpamAssassin has them.
    pub rules: Option<Vec<PathBuf>>,
    /// Whether mails are scored, where a listener does not say otherwise.
    pub enabled: bool,
    /// Whether rules ask the DNS: lists of hosts and addresses, and who has sent and signed the mail.
    pub network: bool,
    /// How long a mail that is complete waits for the answers, in seconds.
    pub wait_seconds: u64,
    /// Mails of more bytes are not scored.
    #[serde(deserialize_with = "size")]
    pub size_max: u64,
    /// From which score on a mail is spam. None: as the rules say.
    #[serde(deserialize_with = "points")]
    pub required: Option<Points>,
    /// From which score on one of somebody unknown has to come again.
    #[serde(deserialize_with = "points")]
    pub greylist: Option<Points>,
    /// How long after the first time it may come again, in seconds.
    pub greylist_seconds: u32,
    /// From which score on it is quarantined.
    #[serde(deserialize_with = "points")]
    pub quarantine: Option<Points>,
    /// From which score on it is refused.
    #[serde(deserialize_with = "points")]
    pub reject: Option<Points>,
    /// A folder with a file of preferences for each user; `None`: no preferences.
    pub preferences: Option<PathBuf>,
    /// Whether header fields are added.
    pub headers: bool,
    /// Whether one of them names each rule.
    pub report: bool,
    /// Prefix for the subject of spam; empty: none.
    #[serde(deserialize_with = "tag")]
    pub subject_tag: Box<str>,
    /// Bayes settings; none: Bayes is off.
    pub bayes: Option<BayesSettings>,
    /// Reputation of senders; none: as the rules say (`use_txrep`).
    pub reputation: Option<ReputationSettings>,
    /// Mails that are like those that were reported. None: nobody looks.
    pub fuzzy: Option<FuzzySettings>,
}

/// `[spam.fuzzy]`
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct FuzzySettings {
    /// Points for a text that is nearly the same.
    pub denied: f64,
    /// Points for a text that is much alike.
    pub probable: f64,
    /// Points for an attachment that was reported.
    pub attachment: f64,
    /// Texts that are kept, and attachments as many; beyond it those go that were reported longest ago.
    pub reports_max: u64,
    /// How many days one is kept that is not reported again.
    pub keep_days: u32,
}

impl Default for FuzzySettings {
    fn default() -> FuzzySettings {
        FuzzySettings { denied: 6.0, probable: 3.0, attachment: 4.0, reports_max: 20_000, keep_days: 90 }
    }
}

/// `[spam.reputation]`
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ReputationSettings {
    /// Names of senders and of mails that are kept; beyond it those that were seen longest ago are forgotten.
    pub senders_max: u64,
    /// How many days a name is kept that is not seen again.
    pub keep_days: u32,
}

impl Default for ReputationSettings {
    fn default() -> ReputationSettings {
        ReputationSettings { senders_max: 1_000_000, keep_days: 180 }
    }
}

/// `[spam.bayes]`
#[derive(Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BayesSettings {
    /// The folder that holds what was learned.
    pub ledger: PathBuf,
    /// How long a mail waits for the ledger, in milliseconds.
    #[serde(default = "usual_wait_ms")]
    pub wait_ms: u64,
    /// Whether mails are learned of which the rules are sure.
    #[serde(default)]
    pub autolearn: bool,
    /// Whether clients of spamd and of Rspamd may have mails learned.
    #[serde(default)]
    pub tell: bool,
    /// Password of Rspamd's clients for learning (`Password`); empty: none needed.
    #[serde(default)]
    pub password: Box<str>,
    /// Whether mail that users move into the store's mailbox for junk is learned as spam, and what they take out of it as ham.
    #[serde(default)]
    pub moves: bool,
    /// Whether clients of spamd that name a user are answered by what that user has learned.
    #[serde(default)]
    pub users: bool,
}

impl fmt::Debug for BayesSettings {
    /// Without the password.
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let BayesSettings { ledger, wait_ms, autolearn, tell, users, .. } = self;
        write!(to, "BayesSettings({}, {wait_ms} ms, {autolearn}, {tell}, {users})", ledger.display())
    }
}

/// Half a second: a mail is scored without it rather than late.
fn usual_wait_ms() -> u64 {
    500
}

/// `[listener.spam]`, and `spam` of a rule: in place of `[spam]`.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SpamTerms {
    /// In place of the global one.
    pub enabled: Option<bool>,
    /// In place of the global one.
    #[serde(deserialize_with = "some_size")]
    pub size_max: Option<u64>,
    /// In place of the global one.
    #[serde(deserialize_with = "points")]
    pub required: Option<Points>,
    /// In place of the global one.
    #[serde(deserialize_with = "points")]
    pub greylist: Option<Points>,
    /// In place of the global one.
    #[serde(deserialize_with = "points")]
    pub quarantine: Option<Points>,
    /// The limit in place of the global one.
    #[serde(deserialize_with = "points")]
    pub reject: Option<Points>,
    /// In place of the global one.
    pub headers: Option<bool>,
    /// In place of the global one.
    pub report: Option<bool>,
    /// In place of the global one.
    #[serde(deserialize_with = "some_tag")]
    pub subject_tag: Option<Box<str>>,
}

/// Settings for a mail that is scored.
#[derive(Debug, Clone, PartialEq)]
pub struct Spam {
    /// Scoring to ask of the rules; the trace is the mail's.
    pub scoring: Scoring,
    /// How long a mail that is complete waits for what rules ask the DNS; none where they ask nothing.
    pub wait: Option<Duration>,
    /// Whether header fields are added.
    pub headers: bool,
    /// Prefix for the subject of spam; empty: none.
    pub subject_tag: Box<str>,
    /// How what was learned is asked and told.
    pub bayes: Option<BayesSettings>,
    /// Greylisting; none if it is off.
    pub greylist: Option<Grey>,
    /// The folder of those who want other scores.
    pub preferences: Option<PathBuf>,
}

/// Mails to greylist.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Grey {
    /// From which score on.
    pub points: Points,
    /// How long after the first time.
    pub delay: Duration,
}

impl Default for SpamSettings {
    fn default() -> SpamSettings {
        SpamSettings {
            rules: None,
            enabled: true,
            network: false,
            wait_seconds: 10,
            size_max: 512 << 10,
            required: None,
            greylist: None,
            greylist_seconds: 300,
            quarantine: None,
            reject: None,
            preferences: None,
            headers: true,
            report: false,
            subject_tag: Box::default(),
            bayes: None,
            reputation: None,
            fuzzy: None,
        }
    }
}

impl SpamSettings {
    /// Settings under these terms, the weightier first; none where mails are not scored.
    pub fn under(&self, terms: [Option<&SpamTerms>; 2]) -> Option<Spam> {
        let terms = terms.into_iter().flatten();
        let pick = |of: &dyn Fn(&SpamTerms) -> Option<Points>| terms.clone().find_map(of);
        if !terms.clone().find_map(|terms| terms.enabled).unwrap_or(self.enabled) {
            return None;
        }
        let scoring = Scoring {
            bytes_max: terms.clone().find_map(|terms| terms.size_max).unwrap_or(self.size_max),
            required: pick(&|terms| terms.required).or(self.required),
            quarantine: pick(&|terms| terms.quarantine).or(self.quarantine),
            reject: pick(&|terms| terms.reject).or(self.reject),
            report: terms.clone().find_map(|terms| terms.report).unwrap_or(self.report),
            text: false,
            links: false,
            study: self.study(),
            preferences: None,
            trace: Box::default(),
        };
        Some(Spam {
            scoring,
            wait: self.network.then(|| Duration::from_secs(self.wait_seconds)),
            headers: terms.clone().find_map(|terms| terms.headers).unwrap_or(self.headers),
            subject_tag: terms.clone().find_map(|terms| terms.subject_tag.clone()).unwrap_or(self.subject_tag.clone()),
            bayes: self.bayes.clone(),
            preferences: self.preferences.clone(),
            greylist: pick(&|terms| terms.greylist)
                .or(self.greylist)
                .map(|points| Grey { points, delay: Duration::from_secs(u64::from(self.greylist_seconds)) }),
        })
    }

    /// Whether it can be followed.
    ///
    /// # Errors
    /// When it cannot; the message says why.
    pub fn check(&self) -> Result<(), String> {
        if !(1..=WAIT_SECONDS_MAX).contains(&self.wait_seconds) {
            return Err(format!("spam: wait_seconds is from 1 to {WAIT_SECONDS_MAX}"));
        }
        if self.reputation.is_some_and(|reputation| reputation.senders_max == 0 || reputation.keep_days == 0) {
            return Err("spam.reputation: senders_max and keep_days are at least 1".into());
        }
        if let Some(fuzzy) = &self.fuzzy {
            let scores = [fuzzy.denied, fuzzy.probable, fuzzy.attachment];
            if !scores.iter().all(|score| (0.0..=POINTS_MAX).contains(score)) {
                return Err("spam.fuzzy: scores are from 0 to 10000".into());
            }
            if fuzzy.reports_max == 0 || fuzzy.keep_days == 0 {
                return Err("spam.fuzzy: reports_max and keep_days are at least 1".into());
            }
        }
        match self.greylist_seconds <= GREYLIST_SECONDS_MAX {
            true => Ok(()),
            false => Err(format!("spam: greylist_seconds is at most {GREYLIST_SECONDS_MAX}")),
        }
    }
}

impl SpamSettings {
    /// Whether and how mails are learned automatically.
    fn study(&self) -> Study {
        let learns = self.bayes.as_ref().is_some_and(|bayes| bayes.autolearn);
        if learns { Study::WhenSure } else { Study::Never }
    }
}

impl Spam {
    /// Whether some score asks for this.
    pub fn asks_for(&self, action: Action) -> bool {
        match action {
            Action::Quarantine => self.scoring.quarantine.is_some(),
            Action::Reject => self.scoring.reject.is_some(),
            _ => false,
        }
    }

    /// Whether the header of a mail may change by its score, so that it has to be known before the first byte goes on.
    pub fn marks(&self) -> bool {
        self.headers || !self.subject_tag.is_empty()
    }
}

/// A score that may be missing.
fn points<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Points>, D::Error> {
    let points = f64::deserialize(deserializer)?;
    match points.is_finite() && points.abs() <= POINTS_MAX {
        true => Ok(Some(Points::of(points))),
        false => Err(de::Error::custom(format!("{points} is not a score: from -10000 to 10000"))),
    }
}

fn tag<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Box<str>, D::Error> {
    let text = String::deserialize(deserializer)?;
    let fits = text.len() <= TAG_BYTES_MAX && text.bytes().all(|byte| byte.is_ascii_graphic() || byte == b' ');
    match fits {
        true => Ok(text.trim().into()),
        false => Err(de::Error::custom(format!("a tag is one line of ASCII of at most {TAG_BYTES_MAX} bytes"))),
    }
}

fn some_tag<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Box<str>>, D::Error> {
    tag(deserializer).map(Some)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_outweighs_its_listener_and_that_the_global_table() {
        let global: SpamSettings = toml::from_str("required = 5\nreject = 15.5\nsubject_tag = '[SPAM] '").unwrap();
        let listener: SpamTerms = toml::from_str("required = 6.25\nreport = true\nsize_max = '1M'").unwrap();
        let rule: SpamTerms = toml::from_str("required = 4\nheaders = false\nsubject_tag = ''").unwrap();
        let spam = global.under([Some(&rule), Some(&listener)]).unwrap();
        assert_eq!((spam.scoring.required, spam.scoring.reject), (Some(Points(4_000)), Some(Points(15_500))));
        assert_eq!((spam.scoring.bytes_max, spam.scoring.report, spam.marks()), (1 << 20, true, false));
        let spam = global.under([None, Some(&listener)]).unwrap();
        assert_eq!((spam.scoring.required, &*spam.subject_tag), (Some(Points(6_250)), "[SPAM]"));
        let off = SpamTerms { enabled: Some(false), ..SpamTerms::default() };
        assert_eq!(global.under([Some(&off), Some(&listener)]), None);
    }

    #[test]
    fn rules_ask_the_network_on_demand_and_for_so_long() {
        let wait = |text: &str| toml::from_str::<SpamSettings>(text).unwrap().under([None, None]).unwrap().wait;
        assert_eq!(wait(""), None);
        assert_eq!(wait("network = true\nwait_seconds = 3"), Some(Duration::from_secs(3)));
        let hasty: SpamSettings = toml::from_str("wait_seconds = 0").unwrap();
        assert!(hasty.check().unwrap_err().contains("from 1 to 60"));
    }

    #[test]
    fn what_is_no_score_and_no_tag_is_refused_where_it_stands() {
        for (text, wanted) in [
            ("required = nan", "is not a score"),
            ("required = 'much'", "invalid type"),
            ("subject_tag = \"a\\nb\"", "one line of ASCII"),
            ("tag = 5", "unknown field `tag`"),
        ] {
            let error = toml::from_str::<SpamSettings>(text).unwrap_err();
            assert!(error.message().contains(wanted), "{text}: {error}");
        }
    }
}
