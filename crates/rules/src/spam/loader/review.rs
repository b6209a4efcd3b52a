//! Reviews the rules as a whole, once all files are read: tags in expressions, functions, order of metas, names without a rule.

use std::collections::HashSet;

use super::Loader;
use crate::spam::problem::{Fault, Place, Severity};
use crate::spam::rule::{Rule, Rules, SHORTCIRCUIT, Test};
use crate::spam::schedule::Schedule;
use crate::spam::source::known::NO_PLUGIN;
use crate::spam::syntax::expression::{Checker, Expression};

impl Loader {
    /// Rules that a user names and that are not there.
    pub(super) fn strangers(&mut self, site: &HashSet<Box<str>>) {
        let named = self.rules.rules.iter().filter(|rule| !site.contains(&rule.name));
        let named: Vec<(Box<str>, Place)> = named.map(|rule| (rule.name.clone(), rule.place.clone())).collect();
        for (name, place) in named {
            self.place = place;
            self.error(Some(name), Fault::new("there is no such rule", "the line has no effect: check its spelling"));
        }
    }

    /// Replaces tags in the rules of `replace_rules`.
    pub(super) fn replace(&mut self) {
        let mut left = self.limits.replaced_bytes_max;
        for name in std::mem::take(&mut self.tagged) {
            let Some(&id) = self.rules.index.get(&name) else { continue };
            let rule = &mut self.rules.rules[id as usize];
            let Some(expression) = rule.test.as_mut().and_then(Test::replaceable) else { continue };
            let bytes_max = self.limits.expression_bytes_max.min(left);
            if let Some(source) = self.tags.replace(&expression.source, bytes_max) {
                left -= source.len().min(left);
                expression.source = source.into();
                continue;
            }
            rule.test = None;
            self.place = rule.place.clone();
            let reason = format!("with its tags replaced the expression has more than {bytes_max} bytes");
            self.error(Some(name), Fault::new(reason, "the rule has no effect: take tags away"));
        }
    }

    /// Drops the rules whose expressions the engine does not take.
    pub(super) fn check(&mut self, checker: &dyn Checker) {
        let rules = self.rules.rules.iter().enumerate();
        let (ids, all): (Vec<usize>, Vec<&Expression>) =
            rules.filter_map(|(id, rule)| Some((id, rule.test.as_ref()?.expression()?))).unzip();
        let outcomes = checker.check(&all);
        for (id, outcome) in ids.into_iter().zip(outcomes) {
            let Err(reason) = outcome else { continue };
            let rule = &mut self.rules.rules[id];
            rule.test = None;
            self.place = rule.place.clone();
            let name = rule.name.clone();
            self.error(
                Some(name),
                Fault::new(format!("the expression is not understood: {reason}"), "the rule has no effect"),
            );
        }
    }

    /// Adds the rule that hits where another has ended a check, if a site does not define it.
    pub(super) fn synthetic(&mut self) {
        let has_bound = |rules: &Rules| {
            let bounds = ["shortcircuit_min_ham_score", "shortcircuit_max_spam_score"];
            bounds.into_iter().any(|bound| rules.setting(bound).is_some())
        };
        let is_used = self.rules.rules.iter().any(|rule| rule.shortcircuit.is_some()) || has_bound(&self.rules);
        if is_used && self.rules.id(SHORTCIRCUIT).is_none() {
            let id = u32::try_from(self.rules.rules.len()).unwrap_or(u32::MAX);
            self.rules.rules.push(Rule { name: SHORTCIRCUIT.into(), ..Rule::default() });
            self.rules.index.insert(SHORTCIRCUIT.into(), id);
        }
    }

    /// Reports functions that no plugin that is loaded has.
    pub(super) fn functions(&mut self) {
        let mut found = Vec::new();
        for rule in &self.rules.rules {
            let Some(Test::Eval(_, call)) = &rule.test else { continue };
            let owners = self.known.function(&call.function);
            if owners.iter().any(|owner| *owner == NO_PLUGIN || self.loaded.contains(owner)) {
                continue;
            }
            let (reason, advice) = match owners.first() {
                Some(owner) => (
                    format!("{} is a function of the plugin {owner}, which is not loaded", call.function),
                    "load it, or put the rule into ifplugin",
                ),
                None => {
                    (format!("no plugin has a function {}", call.function), "the rule never hits: check its spelling")
                }
            };
            found.push((rule.place.clone(), rule.name.clone(), Fault::new(reason, advice)));
        }
        self.report_all(found, Severity::Error);
    }

    /// Reports metas that are never evaluated, and says which of them ask the network.
    pub(super) fn metas(&mut self) {
        let schedule = Schedule::new(&self.rules, &self.limits);
        let excluded = schedule.excluded().iter().map(|exclusion| {
            let rule = &self.rules.rules[exclusion.rule as usize];
            (
                rule.place.clone(),
                rule.name.clone(),
                Fault::new(exclusion.reason.clone(), "the meta never hits: take the ring apart"),
            )
        });
        let excluded = excluded.collect();
        self.report_all(excluded, Severity::Error);
        let order: Vec<(u32, Vec<u32>)> = schedule.parts().map(|(id, parts)| (id, parts.collect())).collect();
        for (id, parts) in order {
            let is_net = parts.iter().any(|&part| self.rules.rules[part as usize].is_net());
            self.rules.rules[id as usize].inherits_net = is_net;
        }
    }

    /// Notes names that mean nothing.
    pub(super) fn loose_ends(&mut self) {
        let mut found = Vec::new();
        for rule in &self.rules.rules {
            if rule.test.is_none() && *rule.name != *SHORTCIRCUIT {
                let fault = Fault::new("there is no rule of this name", "the line has no effect");
                found.push((rule.place.clone(), rule.name.clone(), fault));
            }
            let Some(Test::Meta(meta)) = &rule.test else { continue };
            for name in &meta.names {
                if self.rules.get(name).is_none_or(|part| part.test.is_none()) {
                    let fault = Fault::new(format!("it is made of {name}, which is no rule"), "that counts as 0");
                    found.push((rule.place.clone(), rule.name.clone(), fault));
                }
            }
        }
        self.report_all(found, Severity::Note);
    }
}
