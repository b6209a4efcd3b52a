//! Reputation of a mail's sender (SpamAssassin's TxRep): its names, the change of the score by their records, and the
//! change of the records by the mail.
//!
//! [`Reputation`] is what a configuration says; it keeps nothing. A mail that was rated before is moved to where it was, and
//! counts once. Where its sender cannot be looked up, its score stays as it is and nothing is noted.

use digest::sha256;
use flow::reputation::{Name, micros};
use flow::{Conduct, Standing};
use learn::standing;
use rules::spam::authentic::Known;
use rules::spam::message::Message;
use rules::spam::run::{Engine, Outcome};
use rules::spam::{Sender, Settings};

use crate::study;

/// Settings of a configuration.
#[derive(Debug, Clone, Copy)]
pub struct Reputation {
    factor: f64,
    dilution: f64,
    penalty: f64,
    bonus: f64,
    welcome: f64,
    /// Whether mails are remembered.
    tracks: bool,
    /// Whether mails that are learned because the rules are sure count as what somebody says.
    autolearns: bool,
}

/// Sender of a mail, before its signatures are verified.
#[derive(Debug, Clone)]
pub struct Sent {
    sender: Sender,
    mail: Option<Name>,
}

/// Names of a mail, with their weights.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Named {
    mail: Option<Name>,
    sender: Vec<(f64, Name)>,
    recipients: Vec<Name>,
}

impl Reputation {
    /// Reads a configuration; `None` where it wants no reputation.
    pub fn new(engine: &Engine) -> Option<Reputation> {
        let number = |name: &str, usual: f64, most: f64| engine.settings().number(name, usual).clamp(0.0, most);
        const POINTS_MAX: f64 = 200.0;
        engine.has_reputation().then(|| Reputation {
            factor: number("txrep_factor", 0.5, 1.0),
            dilution: number("txrep_dilution_factor", 0.98, 1.0).max(0.7),
            penalty: number("txrep_learn_penalty", 20.0, POINTS_MAX),
            bonus: number("txrep_learn_bonus", 20.0, POINTS_MAX),
            welcome: number("txrep_welcomelist_out", 10.0, POINTS_MAX),
            tracks: number("txrep_track_messages", 1.0, 1.0) != 0.0,
            autolearns: number("txrep_autolearn", 0.0, 5.0) != 0.0,
        })
    }

    /// Whether mails of which the rules are sure count as learned.
    pub fn autolearns(&self) -> bool {
        self.autolearns
    }

    /// Sender of a mail; `None` if the mail has none.
    pub fn sent(&self, engine: &Engine, mail: &Message) -> Option<Sent> {
        let own = || name(study::ids(mail).first().map(|id| id.as_bytes()).unwrap_or_default());
        Some(Sent { sender: engine.sender(mail)?, mail: self.tracks.then(own) })
    }

    /// Its names, once it is known who has signed.
    pub fn named(&self, sent: &Sent, settings: &Settings, known: Option<Known<'_>>) -> Named {
        let names = sent.sender.names(settings, known);
        let welcomed = sent.sender.recipient_names().filter(|_| self.welcome > 0.0);
        Named {
            mail: sent.mail,
            sender: names.iter().map(|own| (f64::from(own.weight) / 100.0, name(&own.text))).collect(),
            recipients: welcomed.map(|own| name(&own)).collect(),
        }
    }

    /// Moves the score of a mail, given what its names are known for, and says how it counts; nothing where it has counted before, or where a
    /// rule has ended the check.
    pub fn rate(
        &self,
        engine: &Engine,
        named: &Named,
        standings: &[Standing],
        outcome: &mut Outcome,
    ) -> Option<Conduct> {
        if outcome.shortcircuited.is_some() {
            return None;
        }
        let standings: Vec<standing::Standing> = standings.iter().map(known).collect();
        if standings.len() != named.asked().count() {
            return None;
        }
        let score = engine.plain_points(outcome);
        let (mail, sender) = standings.split_at(usize::from(named.mail.is_some()));
        if let Some(before) = mail.first().and_then(standing::Standing::mean) {
            let moved = (score + self.factor * before) / (1.0 + self.factor);
            engine.repute(outcome, moved - score);
            return None;
        }
        let weights = named.sender.iter().map(|(weight, _)| *weight);
        let pull = standing::pull(score, self.factor, weights.zip(sender.iter().copied()));
        engine.repute(outcome, pull);
        Some(Conduct { micros: micros(score), moved_micros: micros(score + pull), ..self.conduct(named) })
    }

    /// A mail that somebody says something about: it has no score.
    pub fn conduct(&self, named: &Named) -> Conduct {
        Conduct {
            mail: named.mail,
            sender: named.sender.iter().map(|(_, name)| *name).collect(),
            recipients: named.recipients.clone(),
            micros: 0,
            moved_micros: 0,
            welcome_micros: micros(self.welcome),
            spam_micros: micros(self.penalty),
            ham_micros: micros(-self.bonus),
            dilution: (self.dilution * 1000.0).round() as u16,
        }
    }
}

impl Named {
    /// The names that are asked about: that of the mail first, where mails are remembered.
    pub fn asked(&self) -> impl Iterator<Item = Name> {
        self.mail.into_iter().chain(self.sender.iter().map(|(_, name)| *name))
    }
}

fn known(standing: &Standing) -> standing::Standing {
    standing::Standing { count: standing.count, total: standing.points() }
}

/// The digest of a name.
fn name(text: &[u8]) -> Name {
    let mut name = Name::default();
    name.iter_mut().zip(sha256::digest(text)).for_each(|(name, byte)| *name = byte);
    name
}
