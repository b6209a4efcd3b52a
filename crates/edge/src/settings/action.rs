//! Actions on a mail, by name.

use flow::Action;
use serde::Deserialize;
use serde::de::{self, Deserializer};

/// An action.
pub fn action<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Action, D::Error> {
    let text = String::deserialize(deserializer)?;
    let all = [Action::Pass, Action::Tag, Action::Blank, Action::Quarantine, Action::Reject];
    let known = all.into_iter().find(|action| action.name() == text);
    known.ok_or_else(|| de::Error::custom(format!("{text:?} is not an action: reject, blank, tag, quarantine or pass")))
}

/// An action, where one stands there.
pub fn some_action<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Action>, D::Error> {
    action(deserializer).map(Some)
}
