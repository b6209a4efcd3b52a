//! `[update]`: where signatures are fetched from, and where they are put.
//!
//! Containers are signed by ClamAV's makers; other files are what their server says they are. So these come by HTTPS, and
//! those that can take signatures out of force, or that hold others unsigned, only if their digest is known before:
//! `URL#sha256=HEX`. The same lets a file come by plain HTTP. What this machine serves itself may come without.

use std::net::IpAddr;
use std::path::PathBuf;

use serde::Deserialize;

/// Endings of files that can take signatures out of force, or hold files that can.
const DISARMING: [&str; 9] = ["fp", "sfp", "ign", "ign2", "crb", "ftm", "cld", "cud", "cat"];

/// `[update]`
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct UpdateSettings {
    /// The folder that signatures are put into; it should be among `[database] paths`. None: nothing is fetched.
    pub folder: Option<PathBuf>,
    /// Owner of the files, if root writes them; default: the owner of the folder.
    pub owner: Option<String>,
    /// Where ClamAV's own databases are: `URL/daily.cvd` is fetched, and so on. None: they are not fetched.
    pub mirror: Option<String>,
    /// Databases to fetch.
    pub databases: Vec<String>,
    /// Other files to be fetched, by their whole URLs; they keep their last names.
    pub urls: Vec<String>,
    /// The folder that sets of intrusion rules are put into; `rules` in it should be among `[ids] rules`. None: none are fetched.
    pub rules_folder: Option<PathBuf>,
    /// Sources of intrusion rules: URLs of `.tar.gz` or `.rules`, files, or folders.
    pub rules: Vec<String>,
    /// The largest file, in bytes.
    #[serde(deserialize_with = "edge::settings::size")]
    pub file_bytes_max: u64,
    /// Seconds for one file.
    pub seconds_max: u64,
}

impl Default for UpdateSettings {
    fn default() -> UpdateSettings {
        UpdateSettings {
            folder: None,
            owner: None,
            mirror: None,
            databases: ["main", "daily", "bytecode"].map(String::from).to_vec(),
            urls: Vec::new(),
            rules_folder: None,
            rules: Vec::new(),
            file_bytes_max: 1 << 30,
            seconds_max: 1_800,
        }
    }
}

/// A source of intrusion rules.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RuleSource {
    /// An archive or a file.
    Url {
        /// From where.
        url: String,
        /// Its SHA-256 in hexadecimal, where that is known before.
        sha256: Option<String>,
    },
    /// A file or a folder of this machine.
    Path(PathBuf),
}

impl RuleSource {
    /// Its name: another digest is another source.
    pub fn name(&self) -> String {
        match self {
            RuleSource::Url { url, sha256: None } => url.clone(),
            RuleSource::Url { url, sha256: Some(digest) } => format!("{url}#sha256={digest}"),
            RuleSource::Path(path) => path.display().to_string(),
        }
    }
}

/// A file to be fetched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wanted {
    /// From where.
    pub url: String,
    /// The name of the file that is kept.
    pub name: String,
    /// Its SHA-256 in hexadecimal, where that is known before.
    pub sha256: Option<String>,
}

impl Wanted {
    /// Identity of the file: another digest is another file.
    pub fn identity(&self) -> String {
        let pin = self.sha256.as_ref().map(|digest| format!("#sha256={digest}"));
        format!("{}{}", self.url, pin.unwrap_or_default())
    }
}

/// Why a file must not come from there without a digest, if so.
pub fn needs_pin(url: &str) -> Option<&'static str> {
    let path = url.split(['?', '#']).next().unwrap_or_default();
    let is_disarming = path.rsplit_once('.').is_some_and(|(_, ending)| DISARMING.contains(&ending));
    if pin(url).is_some() {
        None
    } else if is_disarming {
        Some("it can take signatures out of force: name its digest, URL#sha256=HEX")
    } else if url.starts_with("http://") && !is_local(url) {
        Some("the transfer is unprotected: use https://, or a digest, URL#sha256=HEX")
    } else {
        None
    }
}

/// The digest behind a URL.
fn pin(url: &str) -> Option<&str> {
    url.split_once("#sha256=").map(|(_, digest)| digest)
}

/// The digest behind a URL, checked.
fn checked_pin(url: &str) -> Result<Option<String>, String> {
    let sha256 = pin(url).map(str::to_ascii_lowercase);
    match &sha256 {
        Some(hex) if hex.len() != 64 || !hex.bytes().all(|digit| digit.is_ascii_hexdigit()) => {
            Err(format!("update: {url:?}: a SHA-256 is 64 hexadecimal digits"))
        }
        _ => Ok(sha256),
    }
}

/// Whether a URL leads to this machine.
fn is_local(url: &str) -> bool {
    let authority =
        url.split_once("://").map_or("", |(_, rest)| rest.split(['/', '?', '#']).next().unwrap_or_default());
    let place = authority.rsplit('@').next().unwrap_or_default();
    let host = match place.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or_default(),
        None => place.split(':').next().unwrap_or_default(),
    };
    host == "localhost" || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

impl UpdateSettings {
    /// Files to fetch.
    ///
    /// # Errors
    /// When a URL names no database, or two name the same.
    pub fn wanted(&self) -> Result<Vec<Wanted>, String> {
        let mirror = self.mirror.iter().flat_map(|mirror| {
            let mirror = mirror.trim_end_matches('/');
            self.databases.iter().map(move |name| format!("{mirror}/{name}.cvd"))
        });
        if let Some((url, reason)) = self.urls.iter().find_map(|url| Some((url, needs_pin(url)?))) {
            return Err(format!("update: {url:?}: {reason}"));
        }
        let mut all: Vec<Wanted> = Vec::new();
        for url in mirror.chain(self.urls.iter().cloned()) {
            let path = url.split(['?', '#']).next().unwrap_or_default();
            let name = path.rsplit('/').next().unwrap_or_default().to_string();
            if !url.starts_with("https://") && !url.starts_with("http://") {
                return Err(format!("update: {url:?} is not a URL"));
            }
            let plain = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte));
            if !plain || name.starts_with('.') || !scan::is_database(&name) {
                return Err(format!("update: {url:?} does not end in the name of a database"));
            }
            if all.iter().any(|other| other.name == name) {
                return Err(format!("update: {name} is to be fetched twice"));
            }
            let sha256 = checked_pin(&url)?;
            let url = url.split('#').next().unwrap_or_default().to_owned();
            all.push(Wanted { url, name, sha256 });
        }
        Ok(all)
    }

    /// Sources of intrusion rules.
    ///
    /// # Errors
    /// When a URL names neither an archive nor a file of rules, or there is no folder for them.
    pub fn rule_sources(&self) -> Result<Vec<RuleSource>, String> {
        if !self.rules.is_empty() && self.rules_folder.is_none() {
            return Err("update.rules needs update.rules_folder".into());
        }
        self.rules.iter().map(|source| rule_source(source)).collect()
    }
}

fn rule_source(source: &str) -> Result<RuleSource, String> {
    if !source.contains("://") {
        return Ok(RuleSource::Path(source.into()));
    }
    let path = source.split(['?', '#']).next().unwrap_or_default();
    if !source.starts_with("https://") && !source.starts_with("http://") {
        return Err(format!("update: {source:?} is not a URL"));
    }
    if ![".tar.gz", ".tgz", ".tar", ".rules"].iter().any(|ending| path.ends_with(ending)) {
        return Err(format!("update: {source:?} ends neither in .tar.gz nor in .rules"));
    }
    if let Some(reason) = needs_pin(source) {
        return Err(format!("update: {source:?}: {reason}"));
    }
    let url = source.split('#').next().unwrap_or_default().to_owned();
    Ok(RuleSource::Url { url, sha256: checked_pin(source)? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_keep_their_last_names_and_these_are_databases() {
        let wanted = |urls: &[&str]| {
            let urls = urls.iter().map(|url| url.to_string()).collect();
            UpdateSettings {
                mirror: Some("https://m/x/".into()),
                databases: vec!["daily".into()],
                urls,
                ..Default::default()
            }
            .wanted()
        };
        let names: Vec<String> = wanted(&["https://a/b.ndb?c=d"]).unwrap().into_iter().map(|file| file.name).collect();
        assert_eq!(names, ["daily.cvd", "b.ndb"]);
        assert_eq!(wanted(&[]).unwrap()[0].url, "https://m/x/daily.cvd");
        for wrong in
            ["ftp://a/b.ndb", "http://a/..%2fb.ndb", "http://a/.b.ndb", "http://a/b.exe", "http://a/daily.cvd", "x"]
        {
            assert!(wanted(&[wrong]).is_err(), "{wrong}");
        }
    }

    #[test]
    fn what_could_disarm_or_be_changed_on_the_way_needs_its_digest() {
        let digest = "0a".repeat(32);
        for good in ["https://a/b.ndb", "http://127.0.0.1:80/b.ndb", "http://[::1]/b.ndb", "http://localhost/b.hdb"] {
            assert_eq!(needs_pin(good), None, "{good}");
        }
        for bad in [
            "http://a/b.ndb",
            "https://a/b.fp",
            "https://a/b.ign2?x",
            "http://127.0.0.1/b.cud",
            "http://127.0.0.1@a/b.ndb",
            "http://127.0.0.1.a/b.ndb",
        ] {
            assert!(needs_pin(bad).is_some(), "{bad}");
            assert_eq!(needs_pin(&format!("{bad}#sha256={digest}")), None, "{bad}");
        }
        let pinned =
            |pin: &str| UpdateSettings { urls: vec![format!("http://a/b.fp#sha256={pin}")], ..Default::default() };
        let wanted = pinned(&digest.to_uppercase()).wanted().unwrap().remove(0);
        assert_eq!((wanted.url.as_str(), wanted.sha256), ("http://a/b.fp", Some(digest)));
        assert!(pinned("00").wanted().is_err() && pinned("").wanted().is_err());
    }
}
