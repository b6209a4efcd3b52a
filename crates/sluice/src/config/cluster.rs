//! `[cluster]`: the machines that share the store.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Deserialize;

use super::Config;

/// A name has to fit into a line.
const NAME_BYTES_MAX: usize = 64;

/// Names of objects have 1,024 bytes at most.
const PREFIX_BYTES_MAX: usize = 512;

/// Each is looked at every few seconds.
const DOCUMENTS_MAX: usize = 64;

/// A path is the name of a document.
const PATH_BYTES_MAX: usize = 500;

/// `[cluster]`
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClusterSettings {
    /// The name of this machine among the nodes.
    pub node: String,
    /// Where other nodes hand connections over to this one: an address and port that they reach, and nobody else does.
    pub address: SocketAddr,
    /// PostgreSQL, with all its servers: `postgresql://USER@HOST,HOST,HOST/DATABASE`.
    pub database: String,
    /// The file with the password of that user.
    pub password_file: Option<PathBuf>,
    /// Whether connections to PostgreSQL are within TLS, by `tls.authorities`. Default: unless it is on this machine.
    pub tls: Option<bool>,
    /// The file with the secret that all nodes have in common.
    pub secret_file: PathBuf,
    /// Seconds of silence after which another node takes over.
    #[serde(default = "lease_seconds")]
    pub lease_seconds: u64,
    /// Whether mail is taken only where PostgreSQL has synchronous standbys.
    #[serde(default = "yes")]
    pub synchronous: bool,
    /// Where it is kept what mails have taught: `shared` by all nodes in the database, or with each `node` in its own file.
    #[serde(default)]
    pub learned: Keeping,
    /// Further files that all nodes have alike, besides accounts, DKIM keys and certificates by ACME.
    #[serde(default)]
    pub documents: Vec<String>,
    /// The folder that their relative paths count from.
    #[serde(skip)]
    pub folder: PathBuf,
    /// A bucket for the blocks of the store.
    pub objects: Option<ObjectSettings>,
}

/// `learned` of `[cluster]`
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Keeping {
    /// In the database.
    #[default]
    Shared,
    /// In a file of each node.
    Node,
}

/// `[cluster.objects]`
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ObjectSettings {
    /// The server: `https://HOST`.
    pub endpoint: String,
    /// The bucket, which has to be there.
    pub bucket: String,
    /// Its region.
    #[serde(default = "region")]
    pub region: String,
    /// The id of the access key.
    pub access_key: String,
    /// The file with the secret of the access key.
    pub access_secret_file: PathBuf,
    /// Whether the bucket is in the path, and not in the name of the host.
    #[serde(default = "yes")]
    pub path_style: bool,
    /// How all names begin.
    #[serde(default)]
    pub prefix: String,
    /// Days for which objects are kept that are not needed any more.
    #[serde(default = "keep_days")]
    pub keep_days: u32,
    /// Whether blocks are written there; else they are moved back to the database.
    #[serde(default = "yes")]
    pub write: bool,
}

const fn lease_seconds() -> u64 {
    10
}

fn region() -> String {
    "us-east-1".into()
}

const fn keep_days() -> u32 {
    7
}

const fn yes() -> bool {
    true
}

impl ClusterSettings {
    /// How long an owner may be silent.
    pub fn lease(&self) -> Duration {
        Duration::from_secs(self.lease_seconds)
    }

    /// Its files.
    pub fn files(&self) -> impl Iterator<Item = &Path> {
        let key = self.objects.as_ref().map(|objects| &objects.access_secret_file);
        self.password_file.iter().chain([&self.secret_file]).chain(key).map(PathBuf::as_path)
    }

    /// Further files that all nodes have alike: names and paths.
    pub fn documents(&self) -> impl Iterator<Item = (&str, PathBuf)> {
        self.documents.iter().map(|name| (name.as_str(), self.folder.join(name)))
    }

    /// Relative paths count from this folder.
    pub fn count_paths_from(&mut self, folder: &Path) {
        let key = self.objects.as_mut().map(|objects| &mut objects.access_secret_file);
        let files = self.password_file.iter_mut().chain([&mut self.secret_file]).chain(key);
        files.for_each(|path| *path = folder.join(&path));
        self.folder = folder.to_owned();
    }

    fn check(&self) -> Result<(), String> {
        let is_plain = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '-' | '_' | '.');
        if self.node.is_empty() || self.node.len() > NAME_BYTES_MAX || !self.node.chars().all(is_plain) {
            return Err(format!("node = {:?} is not a name of letters, digits, '-', '_' and '.'", self.node));
        }
        if !(2..=600).contains(&self.lease_seconds) {
            return Err("lease_seconds is between 2 and 600".into());
        }
        if self.address.port() == 0 || self.address.ip().is_unspecified() {
            return Err(format!("address = \"{}\" cannot be reached by other nodes", self.address));
        }
        if self.documents.len() > DOCUMENTS_MAX {
            return Err(format!("documents has more than {DOCUMENTS_MAX} files"));
        }
        if let Some(path) = self.documents.iter().find(|path| !(1..=PATH_BYTES_MAX).contains(&path.len())) {
            return Err(format!("documents: {path:?} has not 1 to {PATH_BYTES_MAX} bytes"));
        }
        let url: Result<tokio_postgres::Config, _> = self.database.parse();
        url.map_err(|error| format!("database: {error}"))?;
        self.objects.as_ref().map_or(Ok(()), |objects| objects.check().map_err(|reason| format!("objects: {reason}")))
    }
}

impl ObjectSettings {
    /// Whether connections are within TLS.
    pub fn is_secured(&self) -> bool {
        self.endpoint.starts_with("https://")
    }

    fn check(&self) -> Result<(), String> {
        let host = self.endpoint.strip_prefix("https://").or_else(|| self.endpoint.strip_prefix("http://"));
        let host = host.map(|host| host.trim_end_matches('/')).unwrap_or_default();
        let is_host = |letter: char| letter.is_ascii_alphanumeric() || "-._:[]".contains(letter);
        if host.is_empty() || !host.chars().all(is_host) {
            return Err(format!("endpoint = {:?} is not a URL of a host: https://HOST", self.endpoint));
        }
        let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "-._".contains(letter);
        let is_name = |name: &str| !name.is_empty() && name.len() <= NAME_BYTES_MAX && name.chars().all(is_plain);
        if !is_name(&self.bucket) || !is_name(&self.region) {
            return Err("bucket and region are names of letters, digits, '-', '_' and '.'".into());
        }
        if self.prefix.len() > PREFIX_BYTES_MAX || !self.prefix.chars().all(|letter| is_plain(letter) || letter == '/')
        {
            return Err(format!("prefix = {:?} has other than letters, digits, '-', '_', '.' and '/'", self.prefix));
        }
        if self.access_key.is_empty() || !self.access_key.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err("access_key is the id of the key, without spaces".into());
        }
        match self.keep_days {
            1..=3_650 => Ok(()),
            _ => Err("keep_days is between 1 and 3650".into()),
        }
    }
}

impl Config {
    /// Whether there is a store that a cluster can share.
    pub(super) fn check_cluster(&self) -> Result<(), String> {
        let Some(cluster) = &self.cluster else { return Ok(()) };
        if self.store.is_none() {
            return Err("cluster: the nodes share a [store], and there is none".into());
        }
        cluster.check().map_err(|reason| format!("cluster: {reason}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STORE: &str =
        "[store]\nfolder='x'\n[[listener]]\nprotocol='smtp'\naddress='127.0.0.1:2525'\nforward='store:'\n";
    const CLUSTER: &str =
        "[cluster]\nnode='a'\naddress='127.0.0.1:2086'\ndatabase='postgresql://s@db1,db2/s'\nsecret_file='s'\n";

    #[test]
    fn a_cluster_is_checked_before_it_is_used() {
        let config = Config::parse(&format!("{CLUSTER}{STORE}"), "test").unwrap();
        assert_eq!(config.cluster.unwrap().lease(), Duration::from_secs(10));
        for (from, to, wanted) in [
            ("node='a'", "node='a b'", "is not a name"),
            ("127.0.0.1:2086", "0.0.0.0:2086", "cannot be reached by other nodes"),
            ("secret_file='s'", "secret_file='s'\nlease_seconds=1", "between 2 and 600"),
            ("postgresql:", "mysql:", "cluster: database"),
            ("secret_file='s'", "", "missing field `secret_file`"),
        ] {
            let error =
                Config::parse(&format!("{}{STORE}", CLUSTER.replace(from, to)), "test").unwrap_err().to_string();
            assert!(error.contains(wanted), "{to}: {error}");
        }
        let objects = "[cluster.objects]\nendpoint='https://s3.example.org'\nbucket='mail'\naccess_key='id'\naccess_secret_file='k'\n";
        let config = Config::parse(&format!("{CLUSTER}{objects}{STORE}"), "test").unwrap();
        let cluster = config.cluster.unwrap();
        assert_eq!((cluster.files().count(), cluster.objects.unwrap().keep_days), (2, 7));
        for (from, to, wanted) in [
            ("https://s3.example.org", "s3.example.org", "is not a URL of a host"),
            ("https://s3.example.org", "https://s3.example.org/mail", "is not a URL of a host"),
            ("https://s3.example.org", "https://id:key@s3.example.org", "is not a URL of a host"),
            ("'mail'", "'a b'", "bucket and region"),
            ("'id'", "'an id'", "without spaces"),
            ("'k'\n", "'k'\nprefix='a?'\n", "prefix"),
            ("'k'\n", "'k'\nkeep_days=0\n", "between 1 and 3650"),
        ] {
            let text = format!("{CLUSTER}{}{STORE}", objects.replace(from, to));
            let error = Config::parse(&text, "test").unwrap_err().to_string();
            assert!(error.contains("cluster: objects: ") && error.contains(wanted), "{to}: {error}");
        }
        let without = "[[listener]]\nprotocol='smtp'\naddress='127.0.0.1:2525'\nforward='discard:'\n";
        let error = Config::parse(&format!("{CLUSTER}{without}"), "test").unwrap_err().to_string();
        assert!(error.contains("the nodes share a [store]"), "{error}");
    }
}
