//! Configurations of earlier days still load: those in `tests/configurations` are never changed, only added to.
//!
//! They are what the package and the pages had on 23 November 2026, each made whole where a page shows a part of one.

use std::path::Path;

use super::Config;

fn toml_files(folder: &Path) -> Vec<std::path::PathBuf> {
    let entries = std::fs::read_dir(folder).expect("the folder is there");
    let mut paths: Vec<_> = entries.map(|entry| entry.expect("an entry").path()).collect();
    paths.sort();
    paths
}

#[test]
fn configurations_of_earlier_days_still_load() {
    let paths = toml_files(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/configurations"));
    assert!(paths.len() >= 25, "only {} configurations", paths.len());
    for path in paths {
        let read = Config::read(&path).unwrap_or_else(|error| panic!("{error}"));
        assert!(read.serves(), "{}", path.display());
    }
}

/// Every configuration of docs/start/migration.md loads.
#[test]
fn configurations_of_the_migration_page_load() {
    let page = include_str!("../../../../docs/start/migration.md");
    let blocks = page.split("```toml\n").skip(1).filter_map(|rest| rest.split("```").next());
    let whole: Vec<&str> = blocks.filter(|block| block.contains("[[listener]]")).collect();
    assert_eq!(whole.len(), 5, "clamav-milter, amavisd, MIMEDefang, Rspamd and E2Guardian");
    for block in whole {
        Config::parse(block, "migration.md").unwrap_or_else(|error| panic!("{error}\n{block}"));
    }
}
