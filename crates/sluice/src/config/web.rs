//! `[web]`: lists that decide on what goes through the doors of the web, and who logs in there.

use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use edge::settings::Https;
use jiff::Timestamp;
use jiff::tz::TimeZone;
use rules::web::phrase::Dialect;
use rules::web::{Date, Limits, Moment};
use serde::Deserialize;
use serde::de::{self, Deserializer};

use super::Config;

/// Where packages install configurations.
const INSTALLED: [&str; 4] =
    ["/etc/e2guardian/", "/etc/dansguardian/", "/usr/local/etc/e2guardian/", "/usr/local/etc/dansguardian/"];
/// The main files that a folder may have, in the order in which they are looked for.
const MAIN_FILES: [&str; 3] = ["e2guardian.conf", "dansguardian.conf", "squidGuard.conf"];

/// `[web]`
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct WebSettings {
    /// A configuration of E2Guardian, DansGuardian or squidGuard: its main file, or the folder of that.
    pub config: Option<PathBuf>,
    /// Program whose reading of phrases is followed.
    #[serde(deserialize_with = "dialect")]
    pub dialect: Dialect,
    /// The file of those who may log in.
    pub accounts: Option<PathBuf>,
    /// Names of tables of databases and directories that know more of them.
    pub lookups: Vec<String>,
    /// Realm that a browser shows when it asks for a name and a password.
    pub realm: String,
    /// Seconds for which a login is not checked again.
    pub login_seconds: u64,
}

impl Default for WebSettings {
    fn default() -> WebSettings {
        WebSettings {
            config: None,
            dialect: Dialect::default(),
            accounts: None,
            lookups: Vec::new(),
            realm: "Sluice".into(),
            login_seconds: 300,
        }
    }
}

impl WebSettings {
    /// Takes relative paths from this folder.
    pub(super) fn count_paths_from(&mut self, folder: &Path) {
        for path in self.config.iter_mut().chain(&mut self.accounts) {
            *path = folder.join(&path);
        }
    }

    /// The folders that hold all of it, as far as the lists name no other. A file of accounts is replaced by another of its name.
    pub fn folders(&self) -> impl Iterator<Item = &Path> {
        let lists = self.config.as_deref();
        let lists = lists.map(|path| if path.is_dir() { path } else { path.parent().unwrap_or(path) });
        lists.into_iter().chain(self.accounts.iter().filter_map(|path| path.parent()))
    }

    /// Whether anybody can log in.
    pub fn has_users(&self) -> bool {
        self.accounts.is_some() || !self.lookups.is_empty()
    }
}

impl Config {
    pub(super) fn check_web(&self) -> Result<(), String> {
        let asks = self.listeners.iter().find(|listener| listener.http().is_some_and(|http| http.login));
        match (asks, &self.web) {
            (Some(_), Some(web)) if web.has_users() => Ok(()),
            (Some(listener), _) => {
                Err(format!("listener {}: login needs accounts or lookups in [web]", listener.place.address))
            }
            (None, _) => Ok(()),
        }
    }

    /// Whether a door opens TLS on its way to servers.
    pub fn opens_tls(&self) -> bool {
        self.listeners.iter().any(|listener| listener.http().is_some_and(|http| http.https == Https::Inspect))
    }
}

/// The main file of a configuration, or of the folder that has it.
///
/// # Errors
/// When the folder has none.
pub fn main_file(path: &Path) -> Result<PathBuf, String> {
    if !path.is_dir() {
        return Ok(path.into());
    }
    let found = MAIN_FILES.iter().map(|name| path.join(name)).find(|file| file.is_file());
    found.ok_or_else(|| format!("{}: no {}", path.display(), MAIN_FILES.join(" or ")))
}

/// Reads the files of the configuration with this main file, each within a bound. A path that begins where packages install
/// configurations is looked for beside the main file first, so that a copied configuration works where it lies.
pub fn reader(main: &Path, limits: Limits) -> impl FnMut(&str) -> Result<Vec<u8>, String> + use<> {
    let folder = main.parent().unwrap_or(Path::new(".")).to_path_buf();
    move |path| {
        let mut bytes = Vec::new();
        let file = File::open(placed(&folder, path)).map_err(|error| error.to_string())?;
        file.take(limits.file_bytes_max as u64 + 1).read_to_end(&mut bytes).map_err(|error| error.to_string())?;
        Ok(bytes)
    }
}

/// Now, as the clocks of this zone have it.
pub fn moment(zone: &TimeZone) -> Moment {
    let now = zone.to_datetime(Timestamp::now());
    let day = now.weekday().to_monday_zero_offset().unsigned_abs();
    let date =
        Date { year: now.year().unsigned_abs(), month: now.month().unsigned_abs(), day: now.day().unsigned_abs() };
    Moment { day, minute: u16::from(now.hour().unsigned_abs()) * 60 + u16::from(now.minute().unsigned_abs()), date }
}

/// The place of a file that a configuration names.
fn placed(folder: &Path, path: &str) -> PathBuf {
    let moved = INSTALLED.iter().find_map(|installed| path.strip_prefix(installed)).map(|rest| folder.join(rest));
    match moved.filter(|moved| moved.is_file()) {
        Some(moved) => moved,
        None if Path::new(path).is_absolute() || Path::new(path).starts_with(folder) => path.into(),
        None => folder.join(path),
    }
}

fn dialect<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Dialect, D::Error> {
    let name = String::deserialize(deserializer)?;
    Dialect::of_name(&name).ok_or_else(|| {
        let names = Dialect::ALL.map(|dialect| format!("{:?}", dialect.name())).join(", ");
        de::Error::custom(format!("{name:?} is none of {names}"))
    })
}
