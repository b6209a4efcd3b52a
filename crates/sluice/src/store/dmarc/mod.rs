//! Aggregate reports of DMARC to the domains that want them (RFC 9990): what the doors found in a day, as XML in a mail.
//!
//! ```text
//!   doors ─► tally ─► file of the store's folder
//!              └─ midnight, UTC ─► addresses of the record ─► queue
//! ```
//!
//! The record is looked up when a report is due, and an address at another organization has to accept it. Only addresses of mail
//! count. Failure reports (RFC 9991) are not sent: they would hold parts of mails.

mod report;
mod tally;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

use auth::dmarc::walk::{self, Stop};
use auth::dmarc::{Destination, accepts, destinations};
use auth::inquiry::{Inquiry, Limits};
use edge::message::asking::Resolver;
use flow::RecordKind;
use mailbox::Site;
use tokio::sync::mpsc::unbounded_channel;

use self::report::Report;
pub use self::tally::Tally;
use self::tally::{Counts, Domain};
use super::day;

/// How often the tally is written while it changes: a kill loses what was counted since.
const KEEP_EVERY: Duration = Duration::from_secs(60);

/// Sends reports once a day.
pub struct Reporter {
    tally: Arc<Tally>,
    resolver: Arc<dyn Resolver>,
    /// Their sender, who is asked about them.
    contact: String,
    /// Where the tally is kept.
    file: PathBuf,
    is_sending: AtomicBool,
}

impl Reporter {
    /// From this address, of what this tally counts.
    pub fn new(tally: Arc<Tally>, resolver: Arc<dyn Resolver>, contact: &str, file: PathBuf) -> Reporter {
        Reporter { tally, resolver, contact: contact.into(), file, is_sending: AtomicBool::default() }
    }

    /// Sends reports at the end of each day of UTC, until it is dropped.
    pub async fn serve(&self, site: Arc<Site>) {
        let kept = tally::read(&self.file);
        match kept.day < day::today() {
            true => self.send(&site, kept).await,
            false => self.tally.add(kept),
        }
        let mut written = Instant::now();
        loop {
            tokio::time::sleep(day::LOOK_EVERY).await;
            if let Some(past) = self.tally.take_before(day::today()) {
                self.send(&site, past).await;
            } else if written.elapsed() >= KEEP_EVERY {
                self.keep();
                written = Instant::now();
            }
        }
    }

    /// Writes what was counted, if it has changed. While reports are sent the file stays as it was: they are sent again after a crash.
    pub fn keep(&self) {
        if self.is_sending.load(Relaxed) {
            return;
        }
        if let Err(error) = self.tally.write(&self.file) {
            tracing::warn!(file = %self.file.display(), %error, "what DMARC reports count is not kept");
        }
    }

    /// Sends what was counted in a day.
    async fn send(&self, site: &Site, counts: Counts) {
        self.is_sending.store(true, Relaxed);
        let began = counts.day * day::SECONDS;
        for (domain, counted) in &counts.domains {
            for destination in self.destinations(domain).await {
                self.send_to(site, &destination, domain, counted, began).await;
            }
        }
        self.is_sending.store(false, Relaxed);
        self.tally.change();
        self.keep();
    }

    async fn send_to(&self, site: &Site, to: &Destination, domain: &str, counted: &Domain, began: u64) {
        let (contact, hostname) = (&*self.contact, &*site.hostname);
        let report = Report { contact, hostname, domain, began, end: began + day::SECONDS - 1 };
        match report.send(site, to, counted).await {
            Ok(true) => _ = self.tally.reports.fetch_add(1, Relaxed),
            Ok(false) => tracing::info!(domain, to = &*to.address, "a DMARC report is larger than its address takes"),
            Err(error) => tracing::warn!(domain, to = &*to.address, ?error, "a DMARC report is not sent"),
        }
    }

    /// The addresses that reports about a domain go to.
    async fn destinations(&self, domain: &str) -> Vec<Destination> {
        let texts = self.texts(&format!("_dmarc.{domain}")).await;
        let mut records = texts.iter().filter_map(|text| destinations(text));
        // Of several records none counts.
        let (Some(wanted), None) = (records.next(), records.next()) else { return Vec::new() };
        let Some(organization) = self.organization(domain).await else { return Vec::new() };
        let mut hosts: Vec<&str> = wanted.iter().map(|one| &*one.host).collect();
        hosts.sort_unstable();
        hosts.dedup();
        let mut all = Vec::new();
        for host in hosts {
            let mine: Vec<Destination> = wanted.iter().filter(|one| &*one.host == host).cloned().collect();
            if self.organization(host).await.as_ref() == Some(&organization) {
                all.extend(mine);
                continue;
            }
            let texts = self.texts(&format!("{domain}._report._dmarc.{host}")).await;
            let texts: Vec<&[u8]> = texts.iter().map(Vec::as_slice).collect();
            all.extend(accepts(&mine, &texts));
        }
        all
    }

    /// The organization that a domain belongs to; none where that cannot be looked up now.
    async fn organization(&self, domain: &str) -> Option<String> {
        let found = |inquiry: &mut Inquiry| {
            walk::records(domain, inquiry).map(|records| walk::organization(domain, &records).to_owned())
        };
        self.inquire(found).await
    }

    /// The text records of a name.
    async fn texts(&self, name: &str) -> Vec<Vec<u8>> {
        let found = |inquiry: &mut Inquiry| {
            let found = inquiry.look(name, RecordKind::Txt)?;
            Ok(found.texts().map(<[u8]>::to_vec).collect())
        };
        self.inquire(found).await.unwrap_or_default()
    }

    /// Asks what an inquiry wants to know until it is content.
    async fn inquire<T>(&self, found: impl Fn(&mut Inquiry) -> Result<T, Stop>) -> Option<T> {
        let mut inquiry = Inquiry::new(Limits::CONTENT, 0);
        let (tell, mut told) = unbounded_channel();
        loop {
            match found(&mut inquiry) {
                Ok(found) => return Some(found),
                Err(Stop::Unavailable) => return None,
                Err(Stop::Pending) => {}
            }
            while let Some(ask) = inquiry.ask() {
                self.resolver.look_up(ask, &tell);
            }
            inquiry.answer(told.recv().await?);
        }
    }
}
