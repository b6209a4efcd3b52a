//! Folders: who has one has a mailbox.
//!
//! A name that could lead elsewhere (`/`, a dot at its start) has none. If the folder that all of them are in is not there, a
//! file system is not mounted: then nothing is known of anybody.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use super::table::{Calls, Finding, Found, Name, Table};
use crate::settings::FolderPattern;

/// The folders of a pattern.
#[derive(Debug)]
pub struct Folders {
    pattern: FolderPattern,
    calls: Calls,
}

impl Folders {
    /// Folders of the pattern.
    pub fn new(pattern: &FolderPattern) -> Folders {
        Folders { pattern: pattern.clone(), calls: Calls::default() }
    }
}

impl Table for Folders {
    fn kind(&self) -> &'static str {
        "maildir"
    }

    fn source(&self) -> String {
        self.pattern.to_string()
    }

    fn find<'a>(&'a self, name: Name<'a>) -> Finding<'a> {
        Box::pin(async move {
            let Some(path) = self.pattern.path(name.user, name.domain) else { return Found::No };
            let above = self.pattern.above().to_path_buf();
            self.calls.make(move || look(&path, &above)).await
        })
    }
}

/// Whether there is a folder, below one that is there.
fn look(path: &PathBuf, above: &Path) -> Found {
    let missing = |kind| matches!(kind, ErrorKind::NotFound | ErrorKind::NotADirectory | ErrorKind::InvalidFilename);
    match std::fs::metadata(path) {
        Ok(facts) if facts.is_dir() => Found::Yes,
        Ok(_) => Found::No,
        Err(error) if !missing(error.kind()) => Found::Unsure(error.to_string()),
        Err(_) if above.is_dir() => Found::No,
        Err(_) => Found::Unsure(format!("{} is not there", above.display())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn find(folders: &Folders, user: &str, domain: Option<&str>) -> Found {
        folders.find(Name { user, domain }).await
    }

    #[tokio::test]
    async fn who_has_a_folder_is_known_and_a_file_system_that_is_gone_makes_nobody_unknown() {
        let place = tempfile::tempdir().unwrap();
        let mail = place.path().join("mail");
        std::fs::create_dir_all(mail.join("a.test/tim")).unwrap();
        std::fs::write(mail.join("a.test/file"), "").unwrap();
        let folders = Folders::new(&format!("{}/%d/%u", mail.display()).parse().unwrap());
        assert_eq!(find(&folders, "tim", Some("a.test")).await, Found::Yes);
        for (user, domain) in [
            ("anna", Some("a.test")),
            ("file", Some("a.test")),
            ("tim", Some("b.test")),
            ("tim", None),
            ("..", Some("a.test")),
        ] {
            assert_eq!(find(&folders, user, domain).await, Found::No, "{user}");
        }
        for (user, domain) in
            [("../a.test/tim", "a.test"), ("tim", "a.test/../a.test"), (".", "a.test"), ("t\0", "a.test")]
        {
            assert_eq!(find(&folders, user, Some(domain)).await, Found::No, "{user}");
        }
        assert_eq!(find(&folders, &"x".repeat(400), Some("a.test")).await, Found::No);
        std::fs::rename(&mail, place.path().join("elsewhere")).unwrap();
        assert!(matches!(find(&folders, "tim", Some("a.test")).await, Found::Unsure(_)));
    }
}
