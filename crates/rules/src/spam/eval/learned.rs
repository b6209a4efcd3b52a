//! Functions that ask what was learned.

use super::{Arguments, Context, Does, Function, truth};
use crate::spam::recalled::Recalled;

/// The functions.
pub(super) const FUNCTIONS: &[Function] = &[
    Function { name: "check_bayes", does: Does::Recall(bayes) },
    Function { name: "check_senders_reputation", does: Does::Reputation },
];

/// `check_bayes(MIN, MAX)`: whether the probability is above the one, unless that is 0, and not above the other.
fn bayes(context: &Context<'_>, arguments: &Arguments<'_>, recalled: &Recalled) -> f64 {
    let Some(probability) = recalled.probability else { return 0.0 };
    let min = arguments.number(0);
    let is_above = min == 0.0 || probability > min;
    let is_below = arguments.bound(1).is_none_or(|max| probability <= max);
    if is_above && is_below {
        context.note(format!("score: {probability:.4}").as_bytes());
    }
    truth(is_above && is_below)
}
