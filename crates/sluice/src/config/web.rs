//! `[web]`: lists that decide on what goes through the doors of the web.

use std::path::{Path, PathBuf};

use rules::web::phrase::Dialect;
use serde::Deserialize;
use serde::de::{self, Deserializer};

/// The main files that a folder may have, in the order in which they are looked for.
const MAIN_FILES: [&str; 2] = ["e2guardian.conf", "dansguardian.conf"];

/// `[web]`
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WebSettings {
    /// A configuration of E2Guardian or DansGuardian: its main file, or the folder of that.
    pub config: PathBuf,
    /// Whose reading of phrases is followed.
    #[serde(default, deserialize_with = "dialect")]
    pub dialect: Dialect,
}

impl WebSettings {
    /// Takes relative paths from this folder.
    pub(super) fn count_paths_from(&mut self, folder: &Path) {
        self.config = folder.join(&self.config);
    }

    /// The folder that holds all of it, as far as the lists name no other.
    pub fn folder(&self) -> &Path {
        let path = self.config.as_path();
        if path.is_dir() { path } else { path.parent().unwrap_or(path) }
    }

    /// The main file.
    ///
    /// # Errors
    /// When the folder has none.
    pub fn main_file(&self) -> Result<PathBuf, String> {
        main_file(&self.config)
    }
}

/// The main file of a configuration of E2Guardian, or of the folder that has it.
///
/// # Errors
/// When the folder has none.
pub fn main_file(path: &Path) -> Result<PathBuf, String> {
    if !path.is_dir() {
        return Ok(path.into());
    }
    let found = MAIN_FILES.iter().map(|name| path.join(name)).find(|file| file.is_file());
    found.ok_or_else(|| format!("web.config: {} has no {}", path.display(), MAIN_FILES.join(" and no ")))
}

fn dialect<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Dialect, D::Error> {
    let name = String::deserialize(deserializer)?;
    Dialect::of_name(&name).ok_or_else(|| {
        let names = Dialect::ALL.map(|dialect| format!("{:?}", dialect.name())).join(", ");
        de::Error::custom(format!("{name:?} is none of {names}"))
    })
}
