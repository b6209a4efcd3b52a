//! State of the doors from one reading of the configuration: settings, tables, and the inspector.
//!
//! It knows no file of settings, no database of signatures and no command line; whoever makes it does.

use std::net::{SocketAddr, TcpListener};
use std::sync::{Arc, Mutex};
use std::time::SystemTime;

use time::OffsetDateTime;
use tokio_rustls::rustls::ServerConfig;

use crate::message::known::Known;
use crate::message::notice::Notices;
use crate::message::passage::Means;
use crate::metrics::Metrics;
use crate::net::identity::Identities;
use crate::net::opener::Opener;
use crate::porch::door::Door;
use crate::porch::filter::Filter;
use crate::porch::login::Logins;
use crate::recipients::directory::Directory;
use crate::scanner::door::Clamd;
use crate::settings::Tls;
use crate::trust::warden::Warden;

/// State served until the next reload.
#[derive(Clone)]
pub struct Runtime {
    /// Settings of all doors.
    pub settings: Arc<Settings>,
    /// Inspector and tables for inspections.
    pub means: Means,
    /// The signatures of the inspector.
    pub signatures: Signatures,
    /// TLS settings for clients, where there is a certificate.
    pub tls: Option<Arc<ServerConfig>>,
    /// Settings to open TLS to servers, where a door does that.
    pub opener: Option<Arc<Opener>>,
    /// The certificates in it.
    pub identities: Arc<Identities>,
    /// The doors.
    pub doors: Vec<Arc<Door>>,
    /// Tables of recipients.
    pub recipients: Arc<Directory>,
    /// The door that speaks clamd's protocol.
    pub clamd: Arc<Clamd>,
    /// Notices about actions taken.
    pub notices: Arc<Notices>,
    /// Brings the metrics of inspections up to date.
    pub measure: Measure,
    /// Results of messages in mailboxes; one memory for the whole run.
    pub known: Arc<Known>,
    /// Admission of clients; its memory lasts the whole run.
    pub warden: Arc<Warden>,
    /// Lists that decide on web requests.
    pub filter: Arc<dyn Filter>,
    /// Users of the web doors, where they ask for logins.
    pub logins: Option<Arc<dyn Logins>>,
    /// The metrics; one set for the whole run.
    pub metrics: Arc<Metrics>,
    /// Where the metrics are asked for, until an event loop takes it.
    pub metrics_socket: Arc<Mutex<Option<TcpListener>>>,
}

/// Measurements made for a request of the metrics; the text returned is appended.
pub type Measure = Arc<dyn Fn(&Metrics) -> String + Send + Sync>;

/// Settings of all doors.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The name that the gateway gives itself.
    pub hostname: String,
    /// The head window of one mail, at most, in bytes.
    pub head_window_bytes: usize,
    /// Where the metrics are; none: nowhere.
    pub metrics: Option<SocketAddr>,
    /// Certificates, and what is spoken.
    pub tls: Tls,
}

/// Facts about the signatures, for metrics.
#[derive(Debug, Clone, Copy)]
pub struct Signatures {
    /// How many.
    pub count: u64,
    /// Files that they came from; without any, only the built-in test signatures are in force.
    pub files: u64,
    /// How often they have been loaded.
    pub generation: u64,
    /// When they were loaded.
    pub loaded: OffsetDateTime,
    /// When the newest of ClamAV's containers was built, in seconds since 1970.
    pub built: Option<u64>,
    /// Version of the container that clamd would name, and when it was built.
    pub release: Option<(u32, u64)>,
    /// Days after which nobody should rely on them; 0 means never.
    pub unready_days: u32,
}

/// A date as `ctime` writes it.
const CTIME: &[time::format_description::BorrowedFormatItem<'_>] = time::macros::format_description!(
    "[weekday repr:short] [month repr:short] [day padding:space] [hour]:[minute]:[second] [year]"
);

impl Signatures {
    /// Whether there are none, not even those for tests.
    pub fn are_none(&self) -> bool {
        self.count == 0 && self.files == 0
    }

    /// How many days ago the newest of ClamAV's containers was built, if there is one.
    pub fn age_days(&self) -> Option<u64> {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs();
        self.built.map(|built| now.saturating_sub(built) / (24 * 3_600))
    }

    /// Whether they are so many days old; 0 days are never reached.
    pub fn is_older(&self, days: u32) -> bool {
        days > 0 && self.age_days().is_some_and(|age| age >= u64::from(days))
    }

    /// Whether they are so old that nobody should rely on them.
    pub fn is_too_old(&self) -> bool {
        self.is_older(self.unready_days)
    }

    /// Version for clients of clamd: they look for its name and the version whose protocol is spoken. After it
    /// come the version of ClamAV's database and its date; without one, the generation of the signatures
    /// and when they were loaded.
    pub fn clamd_version(&self) -> String {
        let (version, date) = match self.release {
            Some((version, built)) => (u64::from(version), i64::try_from(built).unwrap_or(i64::MAX)),
            None => (self.generation, self.loaded.unix_timestamp()),
        };
        let date = OffsetDateTime::from_unix_timestamp(date).ok().and_then(|date| date.format(&CTIME).ok());
        format!("ClamAV 1.4.6 (Sluice {})/{version}/{}", env!("CARGO_PKG_VERSION"), date.unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clamds_clients_are_told_the_version_of_the_database() {
        let loaded = OffsetDateTime::from_unix_timestamp(86_400).unwrap();
        let mut signatures =
            Signatures { count: 7, files: 0, generation: 3, loaded, built: None, release: None, unready_days: 0 };
        assert!(signatures.clamd_version().ends_with(")/3/Fri Jan  2 00:00:00 1970"), "{}", signatures.clamd_version());
        signatures.release = Some((27_500, 0));
        assert!(signatures.clamd_version().ends_with(")/27500/Thu Jan  1 00:00:00 1970"));
    }
}
