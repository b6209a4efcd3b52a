//! The numbers of the store, in Prometheus' text format.

use std::fmt::Write as _;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use mailbox::numbers::ByProtocol;
use mailbox::{Protocol, Site};

/// Levels of a store, as of the last look at it.
#[derive(Debug, Default)]
pub struct Levels {
    total_bytes: AtomicU64,
    free_bytes: AtomicU64,
    live_bytes: AtomicU64,
    messages: AtomicU64,
}

impl Levels {
    /// Looks at a store.
    pub async fn look(&self, site: &Site) {
        let Ok(usage) = site.usage().await else { return };
        for (level, now) in [
            (&self.total_bytes, usage.total_bytes),
            (&self.free_bytes, usage.free_bytes),
            (&self.live_bytes, usage.live_bytes),
            (&self.messages, usage.messages),
        ] {
            level.store(now, Relaxed);
        }
    }

    /// All numbers of the store.
    pub fn text(&self, site: &Site) -> String {
        let (mut text, numbers, logins) = (String::new(), &*site.numbers, site.logins.counts());
        by_protocol(&mut text, "sessions_open", "gauge", "Open sessions of the store.", &numbers.open);
        by_protocol(&mut text, "sessions_total", "counter", "Sessions of the store.", &numbers.sessions);
        let help = "Clients of the store refused because of a limit.";
        by_protocol(&mut text, "sessions_refused_total", "counter", help, &numbers.refused);
        let (deliveries, microseconds) = numbers.deliveries();
        let (waiting, behind) = (mailbox::queue::waiting_count(&site.store.state()), site.behind_count());
        let [_, sending, destinations, resting] = mailbox::queue::numbers(site).map(|number| number as u64);
        let queue = &site.queue.counts;
        let has_failed = site.store.counts().has_failed.load(Relaxed);
        for (name, kind, help, number) in [
            ("logins_total", "counter", "Logins.", logins.logins.load(Relaxed)),
            ("login_failures_total", "counter", "Wrong names and passwords.", logins.failures.load(Relaxed)),
            ("delivered_total", "counter", "Messages delivered to all of their recipients.", get(&numbers.delivered)),
            ("undelivered_total", "counter", "Messages not delivered to all recipients.", get(&numbers.undelivered)),
            ("over_quota_total", "counter", "Recipients refused because of their quota.", get(&numbers.over_quota)),
            ("full_total", "counter", "Messages refused because the store is full.", get(&numbers.full)),
            ("commands_ended_total", "counter", "IMAP commands ended because they took too long.", get(&numbers.ended)),
            ("commits_total", "counter", "Flushes of the store.", get(&site.store.counts().commits)),
            ("transactions_total", "counter", "Transactions of the store.", get(&site.store.counts().transactions)),
            ("failed", "gauge", "1 if the last write of the store failed.", u64::from(has_failed)),
            ("size_bytes", "gauge", "Size of the store.", get(&self.total_bytes)),
            ("free_bytes", "gauge", "Free segments of the store without its reserve.", get(&self.free_bytes)),
            ("live_bytes", "gauge", "Bytes of the messages in mailboxes.", get(&self.live_bytes)),
            ("messages", "gauge", "Messages in mailboxes.", get(&self.messages)),
            ("queue_messages", "gauge", "Messages of the store that wait to be sent.", waiting as u64),
            ("queue_sending", "gauge", "Messages that are being sent.", sending),
            ("queue_destinations", "gauge", "Domains for which messages wait.", destinations),
            ("queue_destinations_resting", "gauge", "Of them, those whose servers cannot be reached.", resting),
            ("queue_sent_total", "counter", "Recipients that a next hop or a mailbox has taken.", get(&queue.sent)),
            ("queue_deferred_total", "counter", "Attempts after which a recipient waits on.", get(&queue.deferred)),
            ("queue_failed_total", "counter", "Recipients that were given up.", get(&queue.failed)),
            ("queue_reported_total", "counter", "Recipients that have reported a mail.", get(&queue.reported)),
            (
                "index_behind_accounts",
                "gauge",
                "Accounts whose search index is to be brought up to date.",
                behind as u64,
            ),
        ] {
            let _ = write!(text, "# HELP sluice_store_{name} {help}\n# TYPE sluice_store_{name} {kind}\n");
            let _ = writeln!(text, "sluice_store_{name} {number}");
        }
        let name = "sluice_store_delivery_seconds";
        let _ =
            write!(text, "# HELP {name} Time from the end of a message until it is durable.\n# TYPE {name} summary\n");
        let seconds = microseconds as f64 / 1e6;
        let _ = write!(text, "{name}_sum {seconds}\n{name}_count {deliveries}\n");
        text
    }
}

fn get(number: &AtomicU64) -> u64 {
    number.load(Relaxed)
}

fn by_protocol(text: &mut String, name: &str, kind: &str, help: &str, numbers: &ByProtocol) {
    let _ = write!(text, "# HELP sluice_store_{name} {help}\n# TYPE sluice_store_{name} {kind}\n");
    for protocol in Protocol::ALL {
        let number = numbers.get(protocol);
        let _ = writeln!(text, "sluice_store_{name}{{protocol=\"{}\"}} {number}", protocol.name());
    }
}
