//! Sets of intrusion rules: each source is brought if it has changed, all of them together are read as `serve` reads them, and put in
//! force by one rename.
//!
//! Members of archives lose their folders, so none gets out of ours. Files of rules, of data sets and of classes are kept. A set is not
//! taken if a source is damaged or has no rule, two sources have a file of one name, or more than a tenth of the rules do not load.

mod differences;
mod folder;
mod source;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use self::differences::Differences;
pub use self::folder::Folder;
use super::fetch::{Client, Error};
use super::state::Known;
use crate::config::Config;
use crate::config::ids::IdsSettings;
use crate::output::Failure;

/// Files by their names.
type Files = BTreeMap<String, Vec<u8>>;

/// At most one in so many rules may fail to load.
const REFUSED_SHARE: usize = 10;

/// State by the names of the sources.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
struct State {
    sources: BTreeMap<String, Source>,
}

/// State of one source.
#[derive(Debug, Default, Clone, Serialize, Deserialize)]
#[serde(default)]
struct Source {
    #[serde(flatten)]
    known: Known,
    /// MD5 that the server has published for what is in force.
    md5: Option<String>,
    /// Files in force that have come from it.
    names: Vec<String>,
}

impl Source {
    /// Forgets the version, so that it is fetched again.
    fn forget(&mut self) {
        self.known.forget();
        self.md5 = None;
    }
}

/// How an update is run.
#[derive(Debug, Clone, Copy)]
pub struct Manner {
    /// Sources that have failed recently are asked, too.
    pub is_forced: bool,
    /// Nothing is put in force, and each rule that differs is printed.
    pub is_dry: bool,
}

/// Brings what has changed, and puts it in force; whether something has failed.
///
/// # Errors
/// When the folder cannot be read or written.
pub fn update(config: &Config, client: &Client, folder: &Folder, manner: Manner) -> Result<bool, Failure> {
    let sources = config.update.rule_sources()?;
    let (mut state, held) = (folder.state(), folder.in_force()?);
    let (mut coming, mut fresh, mut failed) = (Files::new(), Vec::new(), false);
    for source in &sources {
        let known = state.sources.entry(source.name()).or_default();
        if known.names.is_empty() || !known.names.iter().all(|name| held.contains_key(name)) {
            known.forget();
        }
        let before = known.clone();
        let files = match source::bring(source, known, client, manner) {
            Ok(Some(files)) => {
                known.names = files.keys().cloned().collect();
                fresh.push((source.name(), before));
                files
            }
            outcome => {
                failed |= outcome.is_err();
                if let Err(Error { reason, .. }) = outcome {
                    eprintln!("sluice: {}: {reason}", source.name());
                }
                known.names.iter().filter_map(|name| Some((name.clone(), held.get(name)?.clone()))).collect()
            }
        };
        let twice = files.keys().find(|name| coming.contains_key(*name)).cloned();
        if let Some(name) = twice {
            return Err(format!("{}: another source has a file {name}, too", source.name()).into());
        }
        coming.extend(files);
    }
    let names: Vec<String> = sources.iter().map(|source| source.name()).collect();
    state.sources.retain(|name, _| names.contains(name));
    if let Err(reason) = take(config, folder, (&held, &coming), manner.is_dry) {
        eprintln!("sluice: {reason}: the rules stay as they were");
        failed = true;
        for (name, before) in fresh {
            let mut known = before;
            known.forget();
            known.known.failed(super::now());
            state.sources.insert(name, known);
        }
    }
    if !manner.is_dry {
        folder.keep_state(&state)?;
    }
    Ok(failed)
}

/// Compares a set with the one in force, and takes it if it differs and loads.
fn take(config: &Config, folder: &Folder, (held, coming): (&Files, &Files), is_dry: bool) -> Result<(), Failure> {
    if held == coming {
        println!("rules: up to date");
        return Ok(());
    }
    let differences = Differences::between(held, coming);
    if is_dry {
        differences.print();
    }
    let way = folder.receive(coming)?;
    let ids = IdsSettings { rules: vec![way], ..config.ids.clone().unwrap_or_default() };
    let changes = ids.changes()?;
    let compiled = ids.collect(&changes)?.compile();
    let census = compiled.set().census();
    let refused: usize = census.refused.values().sum();
    if let Some(problem) = compiled.set().problems().first().filter(|_| refused * REFUSED_SHARE > census.rules) {
        return Err(format!("{refused} of {} rules do not load: {problem}", census.rules).into());
    }
    if !is_dry {
        folder.put_in_force()?;
    }
    println!("rules: {} read, {} active, {refused} do not load; {differences}", census.rules, census.active);
    Ok(())
}
