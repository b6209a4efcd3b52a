//! Lists that say that they may not be asked: left alone for a while (`dns_block_rule`, `dns_block_time`).
//!
//! A rule that hits says so, as the stock ones do which look for 127.255.255.0/24. For the time of the configuration no name at or
//! below its domains is looked up; then one mail finds out whether it still is so. What was blocked is forgotten with a reload.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use edge::message::asking::{Resolver, unavailable};
use flow::{Answer, Ask, Hit};
use rules::spam::Rules;
use rules::spam::syntax::value::Value;
use tokio::sync::mpsc::UnboundedSender;

/// How long nothing is asked, where the rules do not say, in seconds.
const SECONDS: f64 = 300.0;

/// The longest that can be said: a day.
const SECONDS_MAX: f64 = 86_400.0;

/// Rules for blocked lists: their domains, and the time of a block.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct BlockRules {
    domains: HashMap<Box<str>, Vec<Box<str>>>,
    time: Duration,
}

impl BlockRules {
    /// Reads the settings of the rules.
    pub fn of(rules: &Rules) -> BlockRules {
        let mut domains: HashMap<Box<str>, Vec<Box<str>>> = HashMap::new();
        let mut seconds = SECONDS;
        for setting in &rules.settings {
            match (&*setting.name, &setting.value) {
                ("dns_block_rule", Value::Pair(rule, rest)) => {
                    let names = String::from_utf8_lossy(rest).to_ascii_lowercase();
                    let names = names.split_whitespace().map(|name| name.trim_matches('.').into());
                    domains.entry(String::from_utf8_lossy(rule).into()).or_default().extend(names);
                }
                ("dns_block_time", &Value::Number(number)) => seconds = number,
                _ => {}
            }
        }
        BlockRules { domains, time: Duration::from_secs_f64(seconds.clamp(0.0, SECONDS_MAX)) }
    }
}

/// A resolver that leaves such lists alone.
pub struct Blocks {
    rules: Arc<BlockRules>,
    /// Until when; at most one for each domain of the rules.
    until: Mutex<HashMap<Box<str>, Instant>>,
    resolver: Arc<dyn Resolver>,
}

impl Blocks {
    /// In front of a resolver; the same one where no rule says anything.
    pub fn before(resolver: Arc<dyn Resolver>, rules: Arc<BlockRules>) -> Arc<dyn Resolver> {
        match rules.domains.is_empty() || rules.time.is_zero() {
            true => resolver,
            false => Arc::new(Blocks { rules, until: Mutex::default(), resolver }),
        }
    }

    /// Whether a name is at or below a domain that is left alone.
    fn is_blocked(&self, name: &str) -> bool {
        let until = self.until.lock().unwrap_or_else(PoisonError::into_inner);
        if until.is_empty() {
            return false;
        }
        let above = name.match_indices('.').filter_map(|(dot, _)| name.get(dot + 1..));
        let mut domains = std::iter::once(name).chain(above);
        domains.any(|domain| until.get(domain).is_some_and(|until| Instant::now() < *until))
    }
}

impl Resolver for Blocks {
    fn look_up(&self, ask: Ask, tell: &UnboundedSender<Answer>) {
        match self.is_blocked(&ask.question.name) {
            // Who has asked may have gone.
            true => drop(tell.send(unavailable(ask.id))),
            false => self.resolver.look_up(ask, tell),
        }
    }

    fn hear(&self, hits: &[Hit]) {
        let mut until = self.until.lock().unwrap_or_else(PoisonError::into_inner);
        for domain in hits.iter().filter_map(|hit| self.rules.domains.get(&hit.rule)).flatten() {
            let (now, end) = (Instant::now(), Instant::now() + self.rules.time);
            // Mails that were asking meanwhile say the same again.
            if until.get(domain).is_none_or(|until| *until <= now) {
                tracing::warn!(%domain, seconds = self.rules.time.as_secs(), "a DNS list refuses queries and is skipped");
                until.insert(domain.clone(), end);
            }
        }
    }
}
