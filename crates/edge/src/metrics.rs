//! The metrics, and their text for Prometheus (text exposition format 0.0.4).

use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// A number that only grows, or a level.
#[derive(Debug, Default)]
pub struct Count(AtomicU64);

impl Count {
    /// Adds to the counter.
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

/// The upper bounds of the buckets of [`Times`], in microseconds, and as Prometheus is told them.
const BUCKETS: [(u64, &str); 14] = [
    (500, "0.0005"),
    (1_000, "0.001"),
    (2_500, "0.0025"),
    (5_000, "0.005"),
    (10_000, "0.01"),
    (25_000, "0.025"),
    (50_000, "0.05"),
    (100_000, "0.1"),
    (250_000, "0.25"),
    (500_000, "0.5"),
    (1_000_000, "1"),
    (2_500_000, "2.5"),
    (10_000_000, "10"),
    (60_000_000, "60"),
];

/// How long something took, each time: a histogram.
#[derive(Debug, Default)]
pub struct Times {
    /// Each bound's own, and those above all of them.
    buckets: [AtomicU64; BUCKETS.len() + 1],
    sum: AtomicU64,
}

impl Times {
    /// Once more, in so many microseconds.
    pub fn add(&self, microseconds: u64) {
        let bucket = BUCKETS.partition_point(|(bound, _)| *bound < microseconds);
        self.buckets[bucket].fetch_add(1, Relaxed);
        self.sum.fetch_add(microseconds, Relaxed);
    }

    /// In Prometheus' text format, in seconds.
    fn text(&self, name: &str, help: &str, text: &mut String) {
        let _ = write!(text, "# HELP sluice_{name} {help}\n# TYPE sluice_{name} histogram\n");
        let mut count = 0;
        for (bucket, bound) in self.buckets.iter().zip(BUCKETS.iter().map(|(_, bound)| *bound).chain(["+Inf"])) {
            count += bucket.load(Relaxed);
            let _ = writeln!(text, "sluice_{name}_bucket{{le=\"{bound}\"}} {count}");
        }
        let seconds = self.sum.load(Relaxed) as f64 / 1e6;
        let _ = write!(text, "sluice_{name}_sum {seconds}\nsluice_{name}_count {count}\n");
    }
}

macro_rules! numbers {
    ($($field:ident $kind:literal $help:literal,)*; $($times:ident $about:literal,)*) => {
        /// The metrics of the whole program.
        #[derive(Debug, Default)]
        pub struct Metrics {
            $(#[doc = $help] pub $field: Count,)*
            $(#[doc = $about] pub $times: Times,)*
        }

        impl Metrics {
            /// The metrics in Prometheus' text format.
            pub fn text(&self) -> String {
                let mut text = String::new();
                $(
                    let name = concat!("sluice_", stringify!($field));
                    let _ = write!(text, "# HELP {name} {}\n# TYPE {name} {}\n{name} {}\n", $help, $kind, self.$field.get());
                )*
                $(self.$times.text(stringify!($times), $about, &mut text);)*
                text
            }
        }
    };
}

impl Metrics {
    /// Open sessions of the event loops.
    pub fn sessions_of_gateway(&self) -> u64 {
        self.sessions_open.get().saturating_sub(self.sessions_in_store.get())
    }
}

numbers! {
    sessions_open "gauge" "Open sessions.",
    sessions_in_store "gauge" "Open sessions of the mail store.",
    sessions_total "counter" "Sessions accepted.",
    sessions_refused_total "counter" "Sessions refused because of a limit.",
    clients_infectious_total "counter" "Infected messages from clients at or over the limit of infected messages.",
    trust_pregreet_total "counter" "Sessions whose client spoke before its greeting.",
    trust_pipelining_total "counter" "Sessions whose client pipelined where it must wait.",
    trust_bare_newline_total "counter" "Sessions whose client ended commands by LF alone.",
    trust_non_smtp_total "counter" "Sessions of strangers that spoke another protocol.",
    trust_listed_total "counter" "Sessions of listed clients.",
    trust_lists_late_total "counter" "Sessions in which the lists did not answer in time.",
    trust_deferred_total "counter" "Senders and recipients deferred for the client's score or bounds.",
    trust_rejected_total "counter" "Recipients refused for the client's score.",
    trust_harvesters_total "counter" "Clients found harvesting addresses.",
    trust_slowed_total "counter" "Answers to errors that were delayed.",
    trust_clients "gauge" "Clients remembered.",
    ids_alerts_total "counter" "Alerts of intrusion rules.",
    ids_blocked_total "counter" "Matches of intrusion rules that block.",
    messages_total "counter" "Messages received to their end.",
    messages_passed_total "counter" "Messages delivered unchanged.",
    messages_tagged_total "counter" "Messages delivered with X-Sluice-Status.",
    messages_blanked_total "counter" "Messages delivered with a part overwritten.",
    messages_quarantined_total "counter" "Messages quarantined.",
    quarantine_expired_total "counter" "Messages deleted from the quarantine for age or size.",
    messages_rejected_total "counter" "Messages refused for their content.",
    messages_deferred_total "counter" "Messages refused or deferred for another reason than their content.",
    spam_scored_total "counter" "Messages scored by the rules of spam.",
    spam_found_total "counter" "Messages that are spam by their score.",
    spam_unscored_total "counter" "Messages that were not scored: too large, or refused before.",
    spam_unmarked_total "counter" "Messages without score fields, since they streamed before their score was known.",
    spam_recalls_total "counter" "Look-ups of messages in the ledger.",
    spam_recalls_lost_total "counter" "Look-ups in the ledger without an answer in time.",
    spam_greylisted_total "counter" "Messages deferred by greylisting.",
    spam_lessons_lost_total "counter" "Messages that could not be learned.",
    spam_learned_total "counter" "Messages learned automatically.",
    authenticated_total "counter" "Messages whose sender was checked by SPF, DKIM, DMARC and ARC.",
    authentication_spf_failed_total "counter" "Messages with SPF fail for the envelope's sender.",
    authentication_dkim_passed_total "counter" "Messages with a valid DKIM signature.",
    authentication_dmarc_passed_total "counter" "Messages whose author domain is verified (DMARC pass).",
    authentication_dmarc_failed_total "counter" "Messages whose author domain fails verification (DMARC fail).",
    authentication_unsure_total "counter" "Messages with a failed look-up (temporary errors).",
    authentication_unmarked_total "counter" "Messages without Authentication-Results, since they streamed before the results were known.",
    dns_questions_total "counter" "DNS queries of messages.",
    dns_cached_total "counter" "DNS queries answered from the cache.",
    dns_unavailable_total "counter" "DNS queries without an answer in time.",
    dns_budgets_spent_total "counter" "Messages that reached the maximum wait for the DNS.",
    messages_streamed_total "counter" "Messages larger than the head window.",
    certificate_failures_total "counter" "Failed attempts to obtain a certificate by ACME.",
    notices_sent_total "counter" "Notices accepted by a next hop.",
    notices_suppressed_total "counter" "Notices not sent because of the rate limits.",
    recipients_unknown_total "counter" "Recipients refused since no table knows them.",
    recipients_refused_total "counter" "Recipients that a table refuses.",
    recipients_unsure_total "counter" "Recipients deferred since a table could not be asked.",
    recipients_full_total "counter" "Recipients refused since their mailbox is full.",
    recipients_asked_total "counter" "Recipients looked up by call-ahead.",
    content_bytes_total "counter" "Bytes of content received.",
    http_requests_total "counter" "HTTP requests.",
    http_refused_total "counter" "Requests answered by a page of the gateway, except for findings in content.",
    http_origin_failures_total "counter" "HTTP requests without a usable response.",
    http_icap_failures_total "counter" "Messages without an answer of an ICAP service.",
    http_tunnels_total "counter" "Tunnels opened (CONNECT).",
    http_opened_total "counter" "Tunnels whose TLS was opened.",
    http_tunnel_bytes_total "counter" "Bytes that went through tunnels.",
    clamd_scans_total "counter" "Files and streams scanned for clients of clamd.",
    clamd_found_total "counter" "Files and streams of clients of clamd with a detection.",
    head_pool_free_bytes "gauge" "Free bytes of the pool of head windows.",
    inspection_pool_free_bytes "gauge" "Free bytes of the pool of inspections.",
    inspection_processes_started_total "counter" "Inspection processes started.",
    inspection_processes_lost_total "counter" "Inspection processes that died: their messages were deferred.",
    inspections_banned_total "counter" "Inspections refused for content that had killed inspection processes.",
    resident_bytes "gauge" "Resident memory of the program.",
    signatures "gauge" "Signatures loaded.",
    signature_files "gauge" "Files that the signatures came from; 0: only the built-in test signatures are loaded.",
    reload_failures_total "counter" "Reloads that failed: the old configuration or the old signatures stay in force.",
    database_built_seconds "gauge" "Build time of the newest ClamAV container, in seconds since 1970; 0 if there is none.",
    database_generation "gauge" "Number of times the signatures have been loaded.",
    ;
    inspect_seconds "Time a message spent in inspection.",
    after_end_seconds "Time from the end of a message to the reply.",
    spam_seconds "Time a message spent in the rules of spam.",
}

/// A session that is open, until it is dropped.
#[derive(Debug)]
pub struct SessionOpen {
    metrics: Arc<Metrics>,
    is_in_store: bool,
}

impl SessionOpen {
    /// Counts a session that begins.
    pub fn new(metrics: &Arc<Metrics>) -> SessionOpen {
        metrics.sessions_open.add(1);
        SessionOpen { metrics: metrics.clone(), is_in_store: false }
    }

    /// Counts a session at a door of the store.
    pub fn in_store(metrics: &Arc<Metrics>) -> SessionOpen {
        metrics.sessions_in_store.add(1);
        metrics.sessions_open.add(1);
        SessionOpen { metrics: metrics.clone(), is_in_store: true }
    }
}

impl Drop for SessionOpen {
    fn drop(&mut self) {
        self.metrics.sessions_open.sub(1);
        if self.is_in_store {
            self.metrics.sessions_in_store.sub(1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_fall_into_buckets_that_add_up() {
        let metrics = Metrics::default();
        [1, 500, 501, 2_000_000, 90_000_000].iter().for_each(|&time| metrics.inspect_seconds.add(time));
        let text = metrics.text();
        for line in [
            "sluice_inspect_seconds_bucket{le=\"0.0005\"} 2",
            "sluice_inspect_seconds_bucket{le=\"0.001\"} 3",
            "sluice_inspect_seconds_bucket{le=\"60\"} 4",
            "sluice_inspect_seconds_bucket{le=\"+Inf\"} 5",
            "sluice_inspect_seconds_count 5",
            "sluice_inspect_seconds_sum 92.001002",
        ] {
            assert!(text.lines().any(|told| told == line), "{line}: {text}");
        }
    }
}
