//! The numbers, and where they are shown to Prometheus.
//!
//! There are `GET /metrics` (text exposition format 0.0.4), `GET /healthz` (we run) and `GET /readyz` (and take new
//! sessions), meant for a private address.

use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use tokio::net::TcpListener;
use tokio::sync::Semaphore;

use crate::net::http::{Page, answer};

/// A number that only grows, or a level.
#[derive(Debug, Default)]
pub struct Count(AtomicU64);

impl Count {
    /// One more.
    pub fn add(&self, count: u64) {
        self.0.fetch_add(count, Relaxed);
    }

    /// One less.
    pub fn sub(&self, count: u64) {
        self.0.fetch_sub(count, Relaxed);
    }

    /// This much.
    pub fn set(&self, count: u64) {
        self.0.store(count, Relaxed);
    }

    /// How much it is.
    pub fn get(&self) -> u64 {
        self.0.load(Relaxed)
    }
}

macro_rules! numbers {
    ($($field:ident $kind:literal $help:literal,)*) => {
        /// The numbers of the whole program.
        #[derive(Debug, Default)]
        pub struct Metrics { $(#[doc = $help] pub $field: Count,)* }

        impl Metrics {
            /// The numbers in Prometheus' text format.
            pub fn text(&self) -> String {
                let mut text = String::new();
                $(
                    let name = concat!("sluice_", stringify!($field));
                    let _ = write!(text, "# HELP {name} {}\n# TYPE {name} {}\n{name} {}\n", $help, $kind, self.$field.get());
                )*
                text
            }
        }
    };
}

numbers! {
    sessions_open "gauge" "Sessions open now.",
    sessions_total "counter" "Sessions accepted.",
    sessions_refused_total "counter" "Sessions refused for a limit.",
    clients_infectious_total "counter" "Infected messages that made their sender one who is told to come later, or kept it one.",
    trust_pregreet_total "counter" "Sessions whose client spoke before its greeting.",
    trust_pipelining_total "counter" "Sessions whose client did not wait for an answer that it has to wait for.",
    trust_bare_newline_total "counter" "Sessions whose client ended commands by LF alone.",
    trust_non_smtp_total "counter" "Sessions of strangers that spoke another protocol.",
    trust_listed_total "counter" "Sessions whose client stands on a list.",
    trust_lists_late_total "counter" "Sessions in which the lists did not answer in time.",
    trust_deferred_total "counter" "Senders and recipients deferred for the client's score or bounds.",
    trust_rejected_total "counter" "Recipients refused for the client's score.",
    trust_harvesters_total "counter" "Clients found trying out addresses.",
    trust_slowed_total "counter" "Answers to errors that were delayed.",
    trust_clients "gauge" "Clients remembered.",
    messages_total "counter" "Messages received to their end.",
    messages_passed_total "counter" "Messages handed on as they were.",
    messages_tagged_total "counter" "Messages handed on with a mark.",
    messages_blanked_total "counter" "Messages handed on with a part overwritten.",
    messages_quarantined_total "counter" "Messages put into quarantine.",
    quarantine_expired_total "counter" "Messages that went from the quarantine for their age or the room.",
    messages_rejected_total "counter" "Messages refused for what they hold.",
    messages_deferred_total "counter" "Messages refused for the time being.",
    messages_streamed_total "counter" "Messages larger than their head window.",
    certificate_failures_total "counter" "Attempts to get a certificate by ACME that failed.",
    notices_sent_total "counter" "Notices that a next hop has taken.",
    notices_suppressed_total "counter" "Notices not sent, as there were too many.",
    content_bytes_total "counter" "Bytes of content received.",
    inspect_microseconds_total "counter" "Time spent in inspection.",
    clamd_scans_total "counter" "Files and streams scanned for clients of clamd.",
    clamd_found_total "counter" "Those in which something was found.",
    head_pool_free_bytes "gauge" "Bytes of the head-window pool that are free.",
    inspection_pool_free_bytes "gauge" "Bytes of the inspections' pool that are free.",
    inspection_processes_started_total "counter" "Processes started to inspect.",
    inspection_processes_lost_total "counter" "Those that ended by themselves: what they had is deferred.",
    inspections_banned_total "counter" "Objects not inspected, since inspection processes had died of the like.",
    after_end_microseconds_total "counter" "Time from the end of a message to the reply to it.",
    resident_bytes "gauge" "Memory of the program that is in RAM.",
    signatures "gauge" "Signatures loaded.",
    database_built_seconds "gauge" "When the newest of ClamAV's containers was built, in seconds since 1970; 0 if there is none.",
    database_generation "gauge" "How often the signatures have been loaded.",
}

/// Requests answered at a time; more wait their turn.
const REQUESTS_MAX: usize = 64;

/// A session that is open, until it is dropped.
#[derive(Debug)]
pub struct SessionOpen(Arc<Metrics>);

impl SessionOpen {
    /// One more.
    pub fn new(metrics: &Arc<Metrics>) -> SessionOpen {
        metrics.sessions_open.add(1);
        SessionOpen(metrics.clone())
    }
}

impl Drop for SessionOpen {
    fn drop(&mut self) {
        self.0.sessions_open.sub(1);
    }
}

/// Answers requests until the listener fails. `page` says what is at a path.
pub async fn serve(listener: TcpListener, page: impl Fn(&[u8]) -> Option<Page> + Clone + 'static) {
    let places = Arc::new(Semaphore::new(REQUESTS_MAX));
    while let Ok(place) = places.clone().acquire_owned().await {
        let Ok((stream, _)) = listener.accept().await else { return };
        let page = page.clone();
        tokio::task::spawn_local(async move {
            let _ = answer(stream, page).await;
            drop(place);
        });
    }
}
