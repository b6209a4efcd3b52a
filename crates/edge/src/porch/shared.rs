//! State that the sessions of one event loop share.

use std::cell::RefCell;
use std::sync::Arc;

use tokio::sync::watch;

use crate::porch::control::Control;
use crate::porch::runtime::Runtime;
use crate::upstream::icap::Services;
use crate::upstream::origins::Origins;
use crate::upstream::smtp_hop::Leases;

/// State that a session is given besides its client.
pub struct Shared {
    /// State in force for new messages.
    pub runtime: RefCell<Arc<Runtime>>,
    /// Connections to next hops that wait for their next transaction.
    pub upstreams: Leases,
    /// Connections to origins of the web that wait for their next request.
    pub origins: Origins,
    /// Services of ICAP that are asked.
    pub services: Services,
    /// Says when to stop.
    pub control: watch::Receiver<Control>,
}
