//! `[admin]`: the administrator's page.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};

use serde::Deserialize;

/// `[admin]`
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct AdminSettings {
    /// Where browsers come in.
    pub address: SocketAddr,
    /// The folder of people, tokens and the audit log. Default: `admin` in the folder of `[store]`.
    pub folder: Option<PathBuf>,
}

impl Default for AdminSettings {
    fn default() -> AdminSettings {
        AdminSettings { address: (Ipv4Addr::LOCALHOST, 2082).into(), folder: None }
    }
}

impl AdminSettings {
    /// Relative paths count from this folder.
    pub fn count_paths_from(&mut self, folder: &Path) {
        self.folder.iter_mut().for_each(|path| *path = folder.join(&path));
    }
}
