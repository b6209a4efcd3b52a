//! What event loops are told while they run.

use std::sync::Arc;

use crate::porch::runtime::Runtime;

/// What the event loops are told.
#[derive(Clone)]
pub struct Control {
    /// What is served.
    pub runtime: Arc<Runtime>,
    /// Another process takes new clients; sessions go on.
    pub handed_over: bool,
    /// No new sessions; those under way come to their end.
    pub stopping: bool,
}
