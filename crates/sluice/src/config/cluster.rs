//! `[cluster]`: the machines that share the store.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Deserialize;

use super::Config;

/// A name has to fit into a line.
const NAME_BYTES_MAX: usize = 64;

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
}

const fn lease_seconds() -> u64 {
    10
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
        self.password_file.iter().chain([&self.secret_file]).map(PathBuf::as_path)
    }

    /// Relative paths count from this folder.
    pub fn count_paths_from(&mut self, folder: &Path) {
        self.password_file.iter_mut().chain([&mut self.secret_file]).for_each(|path| *path = folder.join(&path));
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
        let url: Result<tokio_postgres::Config, _> = self.database.parse();
        url.map(drop).map_err(|error| format!("database: {error}"))
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
        let without = "[[listener]]\nprotocol='smtp'\naddress='127.0.0.1:2525'\nforward='discard:'\n";
        let error = Config::parse(&format!("{CLUSTER}{without}"), "test").unwrap_err().to_string();
        assert!(error.contains("the nodes share a [store]"), "{error}");
    }
}
