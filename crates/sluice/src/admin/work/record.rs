//! The audit log, as far as it is shown.

use serde_json::json;

use crate::admin::fault::{Fault, Outcome};
use crate::admin::role::{Right, Who};
use crate::admin::site::Site;

/// Lines of one answer.
const LINES_MAX: usize = 1_000;

/// The last changes, the newest first.
///
/// # Errors
/// Without the right, and when there is no log or it cannot be read.
pub fn list(site: &Site, who: &Who) -> Outcome {
    if !who.may(Right::Look) {
        return Err(Fault::forbidden());
    }
    let log = site.log()?.ok_or_else(|| Fault::missing("no folder is set for an audit log: [admin] folder"))?;
    Ok(json!({ "changes": log.last(LINES_MAX).map_err(Fault::away)? }))
}
