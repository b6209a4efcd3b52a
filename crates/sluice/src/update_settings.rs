//! `[update]`: where signatures are fetched from, and where they are put.

use std::path::PathBuf;

use serde::Deserialize;

/// `[update]`
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct UpdateSettings {
    /// The folder that signatures are put into; it should be among `[database] paths`. None: nothing is fetched.
    pub folder: Option<PathBuf>,
    /// Where ClamAV's own databases are: `URL/daily.cvd` is fetched, and so on. None: they are not fetched.
    pub mirror: Option<String>,
    /// Which of them.
    pub databases: Vec<String>,
    /// Other files to be fetched, by their whole URLs; they keep their last names.
    pub urls: Vec<String>,
    /// The largest file, in bytes.
    pub file_bytes_max: u64,
    /// Seconds for one file.
    pub seconds_max: u64,
}

impl Default for UpdateSettings {
    fn default() -> UpdateSettings {
        UpdateSettings {
            folder: None,
            mirror: None,
            databases: ["main", "daily", "bytecode"].map(String::from).to_vec(),
            urls: Vec::new(),
            file_bytes_max: 1 << 30,
            seconds_max: 1_800,
        }
    }
}

/// A file to be fetched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wanted {
    /// From where.
    pub url: String,
    /// As what.
    pub name: String,
}

impl UpdateSettings {
    /// What is to be fetched.
    ///
    /// # Errors
    /// When a URL names no database, or two name the same.
    pub fn wanted(&self) -> Result<Vec<Wanted>, String> {
        let mirror = self.mirror.iter().flat_map(|mirror| {
            let mirror = mirror.trim_end_matches('/');
            self.databases.iter().map(move |name| format!("{mirror}/{name}.cvd"))
        });
        let mut all: Vec<Wanted> = Vec::new();
        for url in mirror.chain(self.urls.iter().cloned()) {
            let path = url.split(['?', '#']).next().unwrap_or_default();
            let name = path.rsplit('/').next().unwrap_or_default().to_string();
            if !url.starts_with("https://") && !url.starts_with("http://") {
                return Err(format!("update: {url:?} is no URL"));
            }
            let plain = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte));
            if !plain || name.starts_with('.') || !scan::is_database(&name) {
                return Err(format!("update: {url:?} does not end in the name of a database"));
            }
            if all.iter().any(|other| other.name == name) {
                return Err(format!("update: {name} is to be fetched twice"));
            }
            all.push(Wanted { url, name });
        }
        Ok(all)
    }
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
        let names: Vec<String> = wanted(&["http://a/b.ndb?c=d"]).unwrap().into_iter().map(|file| file.name).collect();
        assert_eq!(names, ["daily.cvd", "b.ndb"]);
        assert_eq!(wanted(&[]).unwrap()[0].url, "https://m/x/daily.cvd");
        for wrong in
            ["ftp://a/b.ndb", "http://a/..%2fb.ndb", "http://a/.b.ndb", "http://a/b.exe", "http://a/daily.cvd", "x"]
        {
            assert!(wanted(&[wrong]).is_err(), "{wrong}");
        }
    }
}
