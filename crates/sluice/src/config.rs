//! The configuration: one TOML file and those that it includes, a struct for each table, checked before it is used.
//!
//! What doors read stands with them in `edge::settings`; here are the other tables, and what holds across them. An unknown key, a wrong type or a wrong value is an error that names the file, the line and the column. The page of
//! settings (`docs/operate/configuration.md`) describes what stands here.

#[cfg(test)]
mod acme_tests;
mod admin;
#[cfg(test)]
mod auth_tests;
mod authentication;
pub mod block_lists;
mod certificates;
pub mod clamd_conf;
#[cfg(test)]
mod clamd_tests;
mod cluster;
pub mod credentials;
pub mod dns;
pub mod dnsbl;
#[cfg(test)]
mod earlier_tests;
mod elsewhere;
mod folders;
pub mod freshclam_conf;
pub mod ids;
mod interception;
mod keys;
mod queue;
mod recipients;
mod relay;
pub mod rule_files;
mod rules;
pub mod shown;
pub mod source;
mod spam;
mod store;
pub mod update;
pub mod web;

use std::fmt;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use edge::settings::{
    Address, Attachment, AuthenticationSettings, ClamdSettings, Fault, Keys, Listener, NoticeSettings,
    QuarantineSettings, RecipientTable, SpamSettings, Tls, TrustSettings, size,
};
use elsewhere::is_secret;
use serde::Deserialize;
pub use source::Source;
use stream::Limits;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::cli::pua::Pua;
use crate::config::dns::DnsSettings;
use crate::config::update::UpdateSettings;
use crate::database::signed::Checker;
use crate::database::{self, Choice, Wanted};
use crate::output::Failure;

/// Room for a few mails without large decompressors.
const INSPECTION_POOL_BYTES_MIN: usize = 1 << 20;
pub use admin::AdminSettings;
pub use cluster::{ClusterSettings, Keeping, ObjectSettings};
pub use interception::Interception;
pub use queue::{Outward, QueueSettings};
pub use store::{Door, StoreSettings};
pub use web::WebSettings;

/// The whole file.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// The name that the gateway gives itself: greeting, `Received`, message ids. Default: the machine's host name.
    pub hostname: String,
    /// Event loops; 0 means one for each core.
    pub threads: usize,
    /// User that `serve` becomes when it is started as root and has opened what needs root.
    pub user: Option<String>,
    /// The group in place of that user's own.
    pub group: Option<String>,
    /// Whether `serve` gives up what it does not need of the file system, where the kernel knows how.
    pub confine: bool,
    /// Where mails and files are inspected.
    pub isolation: Isolation,
    /// Signatures.
    pub database: Database,
    /// Bounds of each inspection.
    pub limits: LimitSettings,
    /// How archives and documents are opened.
    pub archives: Archives,
    /// Memory and sessions of the whole program.
    pub resources: Resources,
    /// Where the numbers are.
    pub metrics: Metrics,
    /// How the log looks.
    pub log: Log,
    /// Rules that mails are scored with, and what follows from a score; without it they are not scored.
    pub spam: Option<SpamSettings>,
    /// Whether mails are from whom they say, and what follows; without it nobody looks.
    pub authentication: Option<AuthenticationSettings>,
    /// Resolvers for the questions of inspections.
    pub dns: DnsSettings,
    /// Block lists that are served over DNS.
    pub dnsbl: crate::config::dnsbl::Settings,
    /// Certificates, and what is spoken.
    pub tls: Tls,
    /// Checks of unknown clients, before any work is done for them.
    pub trust: TrustSettings,
    /// Connections sent to transparent listeners.
    pub intercept: Interception,
    /// Where signatures are fetched from.
    pub update: UpdateSettings,
    /// The door that speaks clamd's protocol.
    pub clamd: ClamdSettings,
    /// How long and how much is kept aside.
    pub quarantine: QuarantineSettings,
    /// Recipients of notices.
    pub notices: NoticeSettings,
    /// Attachment rules.
    #[serde(rename = "attachment")]
    pub attachments: Vec<Attachment>,
    /// Lists that decide on what goes through the doors of the web.
    pub web: Option<WebSettings>,
    /// Intrusion rules at the doors.
    pub ids: Option<ids::IdsSettings>,
    /// The administrator's page.
    pub admin: AdminSettings,
    /// The mail store of the gateway itself.
    pub store: Option<StoreSettings>,
    /// The machines that share the store.
    pub cluster: Option<ClusterSettings>,
    /// Tables of recipients.
    pub recipients: Vec<RecipientTable>,
    /// Tables of databases and directories.
    #[serde(rename = "lookup")]
    pub lookups: Vec<lookup::Settings>,
    /// The doors.
    #[serde(skip)]
    pub listeners: Vec<Listener>,
    /// Files and folders that `include` names.
    #[serde(skip)]
    pub included: Vec<PathBuf>,
    /// Files with lists and secrets that it names.
    #[serde(skip)]
    pub lists: Vec<PathBuf>,
    /// Files that hold a password.
    #[serde(skip)]
    pub secrets: Vec<PathBuf>,
    /// Credentials that it names and that only its service can read.
    #[serde(skip)]
    pub absent: Vec<PathBuf>,
}

/// `[database]`
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Database {
    /// Signature files, and folders of them. Relative paths count from the configuration file's folder.
    pub paths: Vec<PathBuf>,
    /// Whether the built-in test signatures are loaded too.
    pub builtin: bool,
    /// The folder of compiled signatures. None: the service manager's, or none.
    pub cache: Option<PathBuf>,
    /// Certificates of those who vouch for who signs containers: a file, or a folder of them. None: signatures beside
    /// containers are not looked at.
    pub certificates: Option<PathBuf>,
    /// Whether a container may be without a signature beside it.
    pub signatures: Signing,
    /// Days after which the log warns that the newest container is old; 0 means never.
    pub warn_days: u32,
    /// Days after which we are not ready any more for that; 0 means never.
    pub unready_days: u32,
    /// Whether files that change are taken over by themselves.
    pub watch: bool,
    /// Whether signatures of potentially unwanted applications are loaded, too.
    pub detect_pua: bool,
    /// Unwanted applications: only these categories; empty: all.
    pub include_pua: Vec<String>,
    /// Unwanted applications: none of these categories.
    pub exclude_pua: Vec<String>,
}

/// Whether containers need a signature in a file of its own, which a certificate of `certificates` vouches for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Signing {
    /// Where there is one, it has to be right.
    #[default]
    Optional,
    /// A signature is required.
    Required,
}

/// `[limits]`: see `docs/operate/limits.md`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct LimitSettings {
    /// Containers within containers.
    pub depth_max: u32,
    /// Objects in one mail.
    pub objects_max: u32,
    /// Bytes made out of one byte.
    pub ratio_max: u32,
    /// Decompressed bytes that never count as a bomb.
    #[serde(deserialize_with = "size")]
    pub ratio_free_bytes: u64,
    /// Working memory of one decompressor.
    #[serde(deserialize_with = "size")]
    pub codec_bytes_max: u32,
    /// Bytes of a mail kept for formats that are read from their end.
    #[serde(deserialize_with = "size")]
    pub spool_bytes_max: u32,
    /// Milliseconds of processor time for one mail.
    pub cpu_ms_max: u64,
}

/// `[archives]`
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Archives {
    /// Tried where an archive or document is encrypted, besides words of the mail.
    pub passwords: Vec<Box<str>>,
}

/// `[resources]`
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Resources {
    /// The pool that all head windows come from, in bytes.
    #[serde(deserialize_with = "size")]
    pub head_pool_bytes: usize,
    /// The head window of one mail, at most, in bytes.
    #[serde(deserialize_with = "size")]
    pub head_window_bytes: usize,
    /// Bytes that all inspections together may hold.
    #[serde(deserialize_with = "size")]
    pub inspection_pool_bytes: usize,
    /// Sessions at a time, on all listeners together.
    pub sessions_max: u32,
    /// Seconds that sessions are given to end after SIGTERM.
    pub stop_seconds: u64,
}

/// `[metrics]`
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Metrics {
    /// Where Prometheus finds `/metrics`, and a load balancer `/healthz`. None: nowhere.
    pub address: Option<SocketAddr>,
}

/// `[log]`
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Log {
    /// `human` or `json`.
    pub format: LogFormat,
    /// `error`, `warn`, `info`, `debug` or `trace`.
    pub level: LogLevel,
    /// The socket of the journal, or [`Log::NO_JOURNAL`]. None: the system's, if the standard error is its own.
    pub journal: Option<PathBuf>,
}

impl Log {
    /// Value that turns the journal off, for log lines.
    pub const NO_JOURNAL: &str = "off";

    fn check(&self) -> Result<(), String> {
        match &self.journal {
            Some(path) if path.is_relative() && path != Path::new(Log::NO_JOURNAL) => {
                Err(format!("log: journal = {path:?} is neither an absolute path nor \"off\""))
            }
            _ => Ok(()),
        }
    }
}

/// Where mails and files are inspected.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Isolation {
    /// In processes that may do nothing else.
    #[default]
    Process,
    /// In the process that speaks with everybody.
    None,
}

/// How log lines are written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LogFormat {
    /// For people.
    #[default]
    Human,
    /// One JSON object a line.
    Json,
}

/// From which level on lines are written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LogLevel {
    /// Errors.
    Error,
    /// And what might.
    Warn,
    /// And one line for each message and session that matters.
    #[default]
    Info,
    /// And each session.
    Debug,
    /// And each event.
    Trace,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            hostname: host_name(),
            threads: 0,
            user: None,
            group: None,
            confine: true,
            isolation: Isolation::default(),
            database: Database::default(),
            limits: LimitSettings::default(),
            archives: Archives::default(),
            resources: Resources::default(),
            metrics: Metrics::default(),
            spam: None,
            authentication: None,
            dns: DnsSettings::default(),
            dnsbl: crate::config::dnsbl::Settings::default(),
            log: Log::default(),
            tls: Tls::default(),
            trust: TrustSettings::default(),
            intercept: Interception::default(),
            update: UpdateSettings::default(),
            clamd: ClamdSettings::default(),
            quarantine: QuarantineSettings::default(),
            notices: NoticeSettings::default(),
            attachments: Vec::new(),
            web: None,
            ids: None,
            admin: AdminSettings::default(),
            cluster: None,
            store: None,
            recipients: Vec::new(),
            lookups: Vec::new(),
            listeners: Vec::new(),
            included: Vec::new(),
            lists: Vec::new(),
            secrets: Vec::new(),
            absent: Vec::new(),
        }
    }
}

impl Default for Database {
    fn default() -> Database {
        Database {
            paths: Vec::new(),
            builtin: true,
            cache: None,
            certificates: None,
            signatures: Signing::Optional,
            warn_days: 3,
            unready_days: 0,
            watch: true,
            detect_pua: false,
            include_pua: Vec::new(),
            exclude_pua: Vec::new(),
        }
    }
}

impl Database {
    /// The signatures that are wanted; `cache` is what the command line says of the folder.
    pub fn wanted(&self, cache: Option<&PathBuf>) -> Wanted {
        let cache = match cache {
            Some(named) => database::named_cache(named),
            None => self.cache.clone().or_else(database::service_cache),
        };
        Wanted {
            paths: self.paths.clone(),
            choice: self.choice(),
            cache,
            certificates: self.certificates.clone(),
            signatures_required: self.are_signatures_required(),
        }
    }

    /// Whether no container may be without a signature beside it.
    pub fn are_signatures_required(&self) -> bool {
        self.signatures == Signing::Required
    }

    /// Checker of signatures beside containers.
    ///
    /// # Errors
    /// When the certificates cannot be read.
    pub fn checker(&self) -> Result<Checker, Failure> {
        Ok(Checker::open(self.certificates.as_deref())?.requiring(self.are_signatures_required()))
    }

    /// Selection of the signatures to load.
    pub fn choice(&self) -> Choice {
        let Database { builtin, detect_pua, .. } = *self;
        let (include_pua, exclude_pua) = (self.include_pua.clone(), self.exclude_pua.clone());
        Choice { builtin, pua: Pua { detect_pua, include_pua, exclude_pua } }
    }
}

impl Default for LimitSettings {
    fn default() -> LimitSettings {
        let limits = Limits::default();
        LimitSettings {
            depth_max: limits.depth_max,
            objects_max: limits.objects_max,
            ratio_max: limits.ratio_max,
            ratio_free_bytes: limits.ratio_free_bytes,
            codec_bytes_max: limits.codec_bytes_max,
            spool_bytes_max: limits.spool_bytes_max,
            cpu_ms_max: limits.cpu_ms_max,
        }
    }
}

impl Default for Resources {
    fn default() -> Resources {
        Resources {
            head_pool_bytes: 64 << 20,
            head_window_bytes: 256 << 10,
            inspection_pool_bytes: 1 << 30,
            sessions_max: 20_000,
            stop_seconds: 30,
        }
    }
}

impl LimitSettings {
    /// The bounds, those that have no setting at their defaults.
    pub fn limits(&self) -> Limits {
        Limits {
            depth_max: self.depth_max,
            objects_max: self.objects_max,
            ratio_max: self.ratio_max,
            ratio_free_bytes: self.ratio_free_bytes,
            codec_bytes_max: self.codec_bytes_max,
            spool_bytes_max: self.spool_bytes_max,
            cpu_ms_max: self.cpu_ms_max,
            ..Limits::default()
        }
    }
}

impl Config {
    /// Reads and checks a file.
    ///
    /// # Errors
    /// When it cannot be read, or something in it is not known or not allowed; the message names file, line and column.
    pub fn read(path: &Path) -> Result<Config, Error> {
        let mut config = Config::of(&Source::read(path)?)?;
        let folder = path.parent().unwrap_or(Path::new("."));
        let database = &mut config.database;
        for path in database.paths.iter_mut().chain(&mut database.cache).chain(&mut database.certificates) {
            *path = folder.join(&path);
        }
        let rules = config.spam.iter_mut().flat_map(|spam| spam.rules.iter_mut().flatten());
        rules.for_each(|path| *path = folder.join(&path));
        config.spam.iter_mut().flat_map(|spam| &mut spam.preferences).for_each(|path| *path = folder.join(&path));
        let bayes = config.spam.iter_mut().flat_map(|spam| &mut spam.bayes);
        bayes.for_each(|bayes| bayes.ledger = folder.join(&bayes.ledger));
        config.tls.count_paths_from(folder);
        config.store.iter_mut().for_each(|store| store.count_paths_from(folder));
        config.cluster.iter_mut().for_each(|cluster| cluster.count_paths_from(folder));
        config.admin.count_paths_from(folder);
        config.web.iter_mut().for_each(|web| web.count_paths_from(folder));
        config.ids.iter_mut().for_each(|ids| ids.count_paths_from(folder));
        config.recipients.iter_mut().flat_map(RecipientTable::paths_mut).for_each(|path| *path = folder.join(&path));
        config.notices.templates = config.notices.templates.take().map(|path| folder.join(path));
        Ok(config)
    }

    /// Parses and checks a text; `name` is what errors call it.
    ///
    /// # Errors
    /// As [`Config::read`].
    pub fn parse(text: &str, name: &str) -> Result<Config, Error> {
        Config::of(&Source::single(name, text))
    }

    fn of(source: &Source) -> Result<Config, Error> {
        let config = Config::deserialize_from(source).map_err(|fault| source.error(&fault))?;
        config.check().map_err(|reason| Error(format!("{}: {reason}", source.place_of(&reason))))?;
        Ok(config)
    }

    /// Reads it: listeners share their keys among groups, and are read by themselves.
    fn deserialize_from(source: &Source) -> Result<Config, Fault> {
        let mut file = source.parse()?;
        let mut files = elsewhere::Files::default();
        elsewhere::bring(file.get_mut(), source.folder(), &mut files)?;
        let listeners = file.get_mut().remove("listener");
        let mut keys = Keys::new(file);
        let mut config: Config = keys.take()?;
        keys.know(&["include", "listener"]);
        keys.end()?;
        for table in listeners.map(tables).transpose()?.unwrap_or_default() {
            config.listeners.push(Listener::read(table)?);
        }
        if let Some(authentication) = config.authentication.as_mut().filter(|own| own.authserv_id.is_empty()) {
            authentication.authserv_id = config.hostname.as_str().into();
        }
        config.included.clone_from(&source.included);
        config.lists = files.all;
        config.secrets = files.secret;
        config.absent = files.absent;
        Ok(config)
    }

    /// That all credentials are here: for the service, which needs them.
    ///
    /// # Errors
    /// When one is not.
    pub fn has_credentials(&self) -> Result<(), String> {
        let lacks = |path: &PathBuf| Err(format!("{}: a credential that systemd has not loaded", path.display()));
        self.absent.first().map_or(Ok(()), lacks)
    }

    /// Files and folders whose change makes a reload: lists, and those of intrusion rules.
    pub fn watched(&self) -> Vec<PathBuf> {
        self.lists.iter().cloned().chain(self.ids.iter().flat_map(ids::IdsSettings::watched)).collect()
    }

    /// Whether there is any door at all.
    pub fn serves(&self) -> bool {
        let has_store = self.store.as_ref().is_some_and(|store| store.doors().next().is_some());
        !self.listeners.is_empty() || !self.clamd.addresses.is_empty() || has_store
    }

    /// Whether everything goes together.
    ///
    /// # Errors
    /// When it does not; the message names the listener or the table.
    pub fn check(&self) -> Result<(), String> {
        self.check_hostname()?;
        self.ids.iter().try_for_each(ids::IdsSettings::check)?;
        for (index, listener) in self.listeners.iter().enumerate() {
            let place = format!("listener {} ({})", index + 1, listener.place.address);
            if self.listeners[..index].iter().any(|other| other.place.address.is_taken_by(&listener.place.address)) {
                return Err(format!("{place}: the address is used twice"));
            }
            self.check_interception(index).map_err(|reason| format!("{place}: {reason}"))?;
            self.check_tls(listener).map_err(|reason| format!("{place}: {reason}"))?;
            listener.check().map_err(|reason| format!("{place}: {reason}"))?;
            self.check_rules(listener).map_err(|reason| format!("{place}: {reason}"))?;
            self.check_authentication(listener).map_err(|reason| format!("{place}: {reason}"))?;
            self.check_spam(listener).map_err(|reason| format!("{place}: {reason}"))?;
            self.check_recipients_of(listener).map_err(|reason| format!("{place}: {reason}"))?;
        }
        if self.group.is_some() && self.user.is_none() {
            return Err("a group without a user: user = \"NAME\"".into());
        }
        if let Some(spam) = &self.spam {
            spam.check()?;
        }
        if self.asks_dns() {
            self.dns.check()?;
        }
        if let Some(authentication) = &self.authentication {
            authentication.check()?;
        }
        self.tls.check_acme()?;
        if self.opens_tls() && self.tls.signing_authority.is_none() {
            return Err("https = \"inspect\" needs [tls] signing_authority: sluice web ca create makes one".into());
        }
        self.trust.check()?;
        block_lists::check(&self.trust)?;
        self.intercept.check()?;
        if !self.database.include_pua.is_empty() && !self.database.exclude_pua.is_empty() {
            return Err("database: include_pua and exclude_pua exclude each other".into());
        }
        if self.database.are_signatures_required() && self.database.certificates.is_none() {
            return Err("database: signatures = \"required\" needs certificates = \"PATH\"".into());
        }
        self.clamd.check()?;
        self.log.check()?;
        self.quarantine.train.check()?;
        self.notices.check()?;
        self.check_attachments()?;
        self.check_lookups()?;
        self.check_recipients()?;
        self.check_store()?;
        self.check_cluster()?;
        self.check_web()?;
        self.check_metrics()?;
        self.update.wanted()?;
        self.update.rule_sources()?;
        if self.resources.head_window_bytes > self.resources.head_pool_bytes {
            return Err("resources: head_window_bytes is larger than head_pool_bytes".into());
        }
        if self.resources.inspection_pool_bytes < INSPECTION_POOL_BYTES_MIN {
            return Err("resources: inspection_pool_bytes is less than 1 MiB, and no message would get through".into());
        }
        let LimitSettings { depth_max, objects_max, ratio_max, cpu_ms_max, .. } = self.limits;
        if depth_max == 0 || objects_max == 0 || ratio_max == 0 || cpu_ms_max == 0 {
            return Err("limits: a limit of 0 would refuse everything".into());
        }
        Ok(())
    }
}

impl Config {
    /// That greetings and `EHLO` can have the name (RFC 5321, section 4.1.1.1).
    fn check_hostname(&self) -> Result<(), String> {
        let name = self.hostname.as_str();
        if !name.is_ascii() {
            let ascii = text::host::mapped(name).unwrap_or_default();
            return Err(format!("hostname: {name:?} is written in ASCII: {ascii:?}"));
        }
        // A credential that is not here stays as it is written.
        if name.starts_with("file:") && !self.absent.is_empty() {
            return Ok(());
        }
        let is_literal = name.starts_with('[') && name.ends_with(']');
        let is_label = |label: &str| {
            !label.is_empty() && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
        };
        match is_literal || name.split('.').all(is_label) {
            true => Ok(()),
            false => Err(format!("hostname: {name:?} is no name of a host")),
        }
    }

    /// That nobody else listens where the numbers are.
    fn check_metrics(&self) -> Result<(), String> {
        let Some(address) = self.metrics.address.map(Address::Tcp) else { return Ok(()) };
        let listeners = self.listeners.iter().map(|listener| &listener.place.address);
        let doors = self.store.iter().flat_map(|store| store.doors().map(|(_, address)| address));
        let mut others = listeners.chain(&self.clamd.addresses).chain(doors);
        match others.any(|other| other.is_taken_by(&address)) {
            true => Err(format!("metrics: address {address} is used twice")),
            false => Ok(()),
        }
    }
}

/// Error of a configuration, ready to be shown.
#[derive(Debug)]
pub struct Error(String);

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Error {}

/// The tables of `[[listener]]`.
fn tables(value: Spanned<DeValue<'_>>) -> Result<Vec<Spanned<DeTable<'_>>>, Fault> {
    let fault = |span| Fault { message: "listeners are tables: [[listener]]".into(), span: Some(span) };
    let span = value.span();
    let DeValue::Array(array) = value.into_inner() else { return Err(fault(span)) };
    let mut tables = Vec::new();
    for value in array {
        let span = value.span();
        let DeValue::Table(table) = value.into_inner() else { return Err(fault(span)) };
        tables.push(Spanned::new(span, table));
    }
    Ok(tables)
}

pub fn host_name() -> String {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let name = name.trim();
    if name.is_empty() { "localhost".into() } else { name.into() }
}

#[cfg(test)]
mod tests {
    use flow::Action;

    use super::*;

    const LISTENER: &str = "[[listener]]\nprotocol = \"smtp\"\naddress = \"127.0.0.1:2525\"\nforward = \"discard:\"\n";

    #[test]
    fn formats_without_a_reader_are_refused_in_mail_and_pass_in_the_web() {
        let web = "[[listener]]\nprotocol = \"http\"\naddress = \"127.0.0.1:3128\"\n";
        for (text, wanted) in [
            (LISTENER.to_owned(), Action::Reject),
            (web.to_owned(), Action::Pass),
            (format!("{LISTENER}on_unopened = \"tag\"\n"), Action::Tag),
        ] {
            let config = Config::parse(&text, "test").expect("a configuration");
            assert_eq!(config.listeners[0].under(None).policy.on_unopened, wanted, "{text}");
        }
    }

    fn refusal(text: &str) -> String {
        Config::parse(text, "sluice.toml").unwrap_err().to_string()
    }

    #[test]
    fn a_small_file_is_completed_by_defaults() {
        let config = Config::parse(LISTENER, "sluice.toml").unwrap();
        assert_eq!(config.listeners[0].content.policy.on_infected, Action::Reject);
        assert_eq!(config.listeners[0].content.policy.on_malformed, Action::Pass);
        assert_eq!(config.resources.head_window_bytes, 256 << 10);
    }

    #[test]
    fn an_unknown_key_is_refused_with_line_and_column() {
        let refusal = refusal(&format!("{LISTENER}on_infcted = \"reject\"\n"));
        assert!(refusal.starts_with("sluice.toml:5:1: unknown field `on_infcted`"), "{refusal}");
    }

    #[test]
    fn a_misspelt_key_is_told_the_right_one() {
        for (text, wanted) in [
            (LISTENER.replace("listener", "listner"), "1:3: unknown field `listner`"),
            (LISTENER.replace("listener", "listner"), "did you mean `listener`?"),
            (format!("inclde = []\n{LISTENER}"), "did you mean `include`?"),
            (format!("resorces = 1\n{LISTENER}"), "did you mean `resources`?"),
            (
                LISTENER.replace("address", "adress"),
                "3:1: missing field `address`; `adress` is not known: did you mean `address`?",
            ),
            (format!("{LISTENER}on_infcted = 'reject'\n"), "did you mean `on_infected`?"),
        ] {
            let refusal = refusal(&text);
            assert!(refusal.contains(wanted), "{refusal}");
        }
        assert!(!refusal(&format!("zebra = 1\n{LISTENER}")).contains("did you mean"));
    }

    #[test]
    fn a_wrong_action_is_refused_where_it_stands() {
        let refusal = refusal(&format!("{LISTENER}on_infected = \"destroy\"\n"));
        assert!(refusal.starts_with("sluice.toml:5:15: \"destroy\" is not an action"), "{refusal}");
    }

    #[test]
    fn a_wrong_next_hop_is_refused() {
        let refusal = refusal(&LISTENER.replace("discard:", "smtp://host:port"));
        assert!(refusal.contains("has no valid port"), "{refusal}");
    }

    #[test]
    fn what_is_wrong_with_trust_is_said() {
        for (trust, wanted) in [
            ("greet_wait = 1", "unknown field `greet_wait`"),
            ("permitt = []", "did you mean `permit`?"),
            ("permit = [\"mail.example\"]", "neither a network"),
            ("[trust.scores]\ndefer = 13", "trust: scores.defer"),
            ("[trust.tarpit]\nms_max = 1000000", "trust: clients lose patience"),
        ] {
            let refusal = refusal(&format!("[trust]\n{trust}\n{LISTENER}"));
            assert!(refusal.contains(wanted), "{refusal}");
        }
    }

    #[test]
    fn quarantine_needs_a_folder() {
        let refusal = refusal(&format!("{LISTENER}on_infected = \"quarantine\"\n"));
        assert!(refusal.contains("no folder is set"), "{refusal}");
    }
}
