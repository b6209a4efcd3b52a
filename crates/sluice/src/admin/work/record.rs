//! The audit log, as far as it is shown.

use serde_json::json;

use crate::admin::fault::{Fault, Outcome};
use crate::admin::role::{Right, Who};
use crate::admin::site::Site;
use crate::audit::trail::FROM;

/// Lines of one answer.
const LINES_MAX: usize = 1_000;

/// Failed logins among them.
const STRANGERS_MAX: usize = 100;

/// The last changes, the newest first.
///
/// # Errors
/// Without the right, and when there is no log or it cannot be read.
pub fn list(site: &Site, who: &Who) -> Outcome {
    if !who.may(Right::Look) {
        return Err(Fault::forbidden());
    }
    let log = site.log()?.ok_or_else(|| Fault::missing("no folder is set for an audit log: [admin] folder"))?;
    let mut strangers = 0;
    let mut lines = log.last(usize::MAX).map_err(Fault::away)?;
    lines.retain(|line| {
        let is_known = !line["role"].is_null() || line["from"] == FROM;
        strangers += usize::from(!is_known);
        is_known || strangers <= STRANGERS_MAX
    });
    lines.truncate(LINES_MAX);
    Ok(json!({ "changes": lines }))
}
