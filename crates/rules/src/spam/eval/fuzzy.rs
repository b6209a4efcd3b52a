//! Functions that ask how much a mail is like one that was reported as spam. They are ours and not SpamAssassin's
//! (`ifplugin Mail::SpamAssassin::Plugin::FuzzyReports`).

use flow::Alike;

use super::{Arguments, Context, Function, look, truth};

/// The functions.
pub(super) const FUNCTIONS: &[Function] = &[look("check_fuzzy", text), look("check_fuzzy_attachment", attachment)];

/// `check_fuzzy(MIN, MAX)`: whether the share of the text that is alike is at least the one, and below the other, if there is one.
fn text(context: &Context<'_>, arguments: &Arguments<'_>) -> f64 {
    let share = context.alike.as_ref().map_or(0.0, Alike::share);
    let max = if arguments.len() > 1 { arguments.number(1) } else { f64::INFINITY };
    let is_alike = share > 0.0 && share >= arguments.number(0) && share < max;
    if is_alike {
        context.note(format!("alike: {share:.2}").as_bytes());
    }
    truth(is_alike)
}

/// Whether something attached was attached to a mail that was reported.
fn attachment(context: &Context<'_>, _: &Arguments<'_>) -> f64 {
    truth(context.alike.is_some_and(|alike| alike.has_part))
}
