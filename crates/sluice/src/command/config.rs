//! `sluice config`: the settings of a configuration, and where they stand.

use std::process::ExitCode;

use serde_json::json;

use crate::cli::ConfigShow;
use crate::config::shown::{self, Entry};
use crate::config::{Config, Source};
use crate::output::Failure;
use crate::process::privileges;

/// Prints the keys that are set, or all, once the configuration is known to be right.
pub fn show(args: &ConfigShow) -> Result<ExitCode, Failure> {
    privileges::harden()?;
    let config = Config::read(&args.config)?;
    let mut entries = Source::read(&args.config)?.entries()?;
    if args.changed {
        entries.retain(shown::is_changed);
    }
    if args.all {
        entries = shown::in_force(entries, &config);
    }
    for entry in entries {
        let Entry { key, value, place, words } = entry;
        let value = shown::without_logins(value);
        match words {
            _ if args.json => println!("{}", json!({ "key": key, "value": value, "place": place, "words": words })),
            Some(words) => println!("{key} = ({words})  # {place}"),
            None if value.is_null() => println!("# [{key}] {place}"),
            None => println!("{key} = {value}  # {place}"),
        }
    }
    Ok(ExitCode::SUCCESS)
}
