//! State of all threads of `sluice dnsbl serve`: the current zones, and counters.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use ::dnsbl::answer::Options;
use ::dnsbl::zone::Zones;

use crate::config::dnsbl::Settings;

/// State that all threads share.
pub struct Shared {
    zones: RwLock<Arc<Zones>>,
    generation: AtomicU64,
    stopping: AtomicBool,
    /// Options of answers.
    pub options: Options,
    /// The settings.
    pub settings: Settings,
    /// Counters.
    pub counts: Counts,
    /// Zones on their way.
    pub transfers: AtomicUsize,
}

/// Counters for metrics.
#[derive(Debug, Default)]
pub struct Counts {
    /// Queries, by UDP and by TCP.
    pub queries: [AtomicU64; 2],
    /// Responses with answers.
    pub positive: AtomicU64,
    /// Responses without.
    pub negative: AtomicU64,
    /// Responses that refuse or fail.
    pub errors: AtomicU64,
    /// Packets that got no response.
    pub silent: AtomicU64,
    /// Queries and responses that a limit left out.
    pub limited: AtomicU64,
    /// Bytes of responses.
    pub bytes: AtomicU64,
    /// Zones sent whole.
    pub transfers: AtomicU64,
    /// How often data was read anew.
    pub reloads: AtomicU64,
    /// How often that failed.
    pub failures: AtomicU64,
}

impl Shared {
    /// Starts with these zones.
    pub fn new(zones: Zones, options: Options, settings: Settings) -> Shared {
        Shared {
            zones: RwLock::new(Arc::new(zones)),
            generation: AtomicU64::new(0),
            stopping: AtomicBool::new(false),
            options,
            settings,
            counts: Counts::default(),
            transfers: AtomicUsize::new(0),
        }
    }

    /// The program ends.
    pub fn stop(&self) {
        self.stopping.store(true, Ordering::Relaxed);
    }

    /// The zones of now, and their generation.
    pub fn zones(&self) -> (Arc<Zones>, u64) {
        let generation = self.generation();
        (self.zones.read().unwrap_or_else(PoisonError::into_inner).clone(), generation)
    }

    /// Generation of the current zones.
    pub fn generation(&self) -> u64 {
        self.generation.load(Ordering::Acquire)
    }

    /// Whether the program ends.
    pub fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::Relaxed)
    }

    /// New zones take the place of those that are there.
    pub fn replace(&self, zones: Zones) {
        *self.zones.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(zones);
        self.generation.fetch_add(1, Ordering::AcqRel);
    }
}
