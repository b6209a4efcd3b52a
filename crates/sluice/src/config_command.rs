//! `sluice config`: the settings of a configuration, and where they stand.

use std::process::ExitCode;

use serde_json::json;

use crate::cli::ConfigShow;
use crate::config::{Config, Source};
use crate::{Failure, privileges};

/// Prints the keys that are set, once the configuration is known to be right.
pub fn show(args: &ConfigShow) -> Result<ExitCode, Failure> {
    privileges::harden()?;
    Config::read(&args.config)?;
    for entry in Source::read(&args.config)?.entries()? {
        match args.json {
            true => println!("{}", json!({ "key": entry.key, "value": entry.value, "place": entry.place })),
            false => println!("{} = {}  # {}", entry.key, entry.value, entry.place),
        }
    }
    Ok(ExitCode::SUCCESS)
}
