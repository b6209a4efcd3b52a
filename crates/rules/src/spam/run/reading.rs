//! Addresses that lead to another which they contain, by the configuration's patterns.

use std::sync::Arc;

use pattern::expression::{Progress, Reader, Want};
use stream::Fuel;

use crate::spam::message::{Reading, Redirectors};
use crate::spam::rule::Rules;
use crate::spam::search::Ready;
use crate::spam::syntax::expression::Expression as Written;
use crate::spam::syntax::value::Value;

/// `redirector_pattern`, in order.
#[derive(Debug)]
struct Patterns(Vec<Arc<Ready>>);

/// Steps of one search in an address.
const STEPS_MAX: u64 = 1_000_000;

impl Redirectors for Patterns {
    fn target(&self, uri: &[u8]) -> Option<Vec<u8>> {
        self.0.iter().filter(|pattern| pattern.may_match(&[uri])).find_map(|pattern| {
            let mut search = pattern.expression.search(Want::Groups);
            let progress = search.run(uri, &mut Fuel::new(STEPS_MAX));
            let group = search.group(1).filter(|_| matches!(progress, Progress::Match(_)));
            let target = group.and_then(|group| uri.get(group))?;
            target.contains(&b'.').then(|| target.to_vec())
        })
    }
}

/// How mails are read, with the patterns of a configuration.
pub(super) fn of(rules: &Rules) -> Reading {
    let patterns = rules.settings.iter().filter(|setting| &*setting.name == "redirector_pattern");
    let patterns: Vec<Arc<Ready>> = patterns
        .filter_map(|setting| match &setting.value {
            Value::Words(words) => pattern(&words.join(&b' ')),
            _ => None,
        })
        .collect();
    let mut reading = Reading::new(&rules.settings);
    if !patterns.is_empty() {
        reading.redirectors = Some(Arc::new(Patterns(patterns)));
    }
    reading
}

fn pattern(text: &[u8]) -> Option<Arc<Ready>> {
    match Written::read(text) {
        Ok(written) => written.ready().ok(),
        Err(_) => Ready::new(text, "", &mut Reader::default()).ok().map(Arc::new),
    }
}
