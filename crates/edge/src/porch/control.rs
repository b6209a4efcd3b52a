//! Control of running event loops.

use std::sync::Arc;

use crate::porch::runtime::Runtime;

/// Control message to the event loops.
#[derive(Clone)]
pub struct Control {
    /// State to serve.
    pub runtime: Arc<Runtime>,
    /// Another process takes new clients; sessions go on.
    pub handed_over: bool,
    /// No new sessions; those under way come to their end.
    pub stopping: bool,
}
