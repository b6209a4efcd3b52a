//! Lists of the web, and the accounts of those who log in there.

use std::fs::{self, File};
use std::path::Path;

use mailbox::accounts::Directory;
use rules::web::{Filter, Limits};

use crate::config::Config;
use crate::config::web::{main_file, reader};
use crate::output::Failure;

/// Loads both, says how much that is, and warns of lines that do not count.
///
/// # Errors
/// When a file cannot be read, or an account has a group that the lists do not have.
pub fn check(config: &Config, said: &mut Vec<String>) -> Result<(), Failure> {
    let Some(settings) = &config.web else { return Ok(()) };
    let mut filter = None;
    if let Some(path) = &settings.config {
        let main = main_file(path).map_err(|error| format!("web.config: {error}"))?;
        let file = main.display();
        File::open(&main).map_err(|error| format!("web.config: {file}: {error}"))?;
        let mut read = reader(&main, Limits::default());
        let lists = Filter::load(&main.to_string_lossy(), settings.dialect, Limits::default(), &mut read);
        let census = lists.census();
        said.push(format!(
            "web lists of {file}: {} groups, {} lists with {} entries, {} phrases",
            lists.groups().len(),
            census.lists,
            census.entries,
            census.phrases
        ));
        if lists.errors() > 0 {
            eprintln!(
                "sluice: warning: {file}: {} errors in the web lists: sluice web lint names them",
                lists.errors()
            );
        }
        filter = Some(lists);
    }
    match &settings.accounts {
        Some(path) => accounts(path, filter.as_ref(), said),
        None => Ok(()),
    }
}

/// Looks through the accounts of a file.
fn accounts(path: &Path, filter: Option<&Filter>, said: &mut Vec<String>) -> Result<(), Failure> {
    let file = path.display();
    let text = fs::read_to_string(path).map_err(|error| format!("web.accounts: {file}: {error}"))?;
    let (directory, faults) = Directory::parse_foreign(&text);
    faults.iter().for_each(|why| eprintln!("sluice: warning: {file}: {why}: the line is left out"));
    said.push(format!("{} accounts of the web in {file}", directory.accounts().count()));
    let Some(filter) = filter else { return Ok(()) };
    let without = Directory::numbered(&text).filter_map(|(line, account)| Some((line, account.group?)));
    let mut unknown = without.filter(|(_, group)| !filter.has_group(group));
    match unknown.next() {
        Some((line, group)) => {
            let more = unknown.count();
            let more = if more > 0 { format!(" (and {more} lines more)") } else { String::new() };
            Err(format!("{file}:{line}: the web lists have no group {group:?}{more}").into())
        }
        None => Ok(()),
    }
}
