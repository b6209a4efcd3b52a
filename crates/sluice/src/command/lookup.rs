//! `sluice lookup`: what a table of `[[lookup]]` has for keys.

use std::process::ExitCode;

use lookup::{Key, Row};

use crate::cli::Lookup;
use crate::config::Config;
use crate::lookups::Lookups;
use crate::output::Failure;
use crate::process::confine::Reach;
use crate::process::privileges;

/// Asks for each key, and prints the rows. Exit status 1 where there is none.
pub fn run(args: &Lookup) -> Result<ExitCode, Failure> {
    privileges::harden()?;
    Reach::reading().connect().clone().confine(&[])?;
    let config = Config::read(&args.config)?;
    let lookups = Lookups::start(&config, None)?;
    let table = lookups.all().find(|table| table.settings().name == args.name);
    let table = table.ok_or_else(|| format!("{}: there is no [[lookup]] {:?}", args.config.display(), args.name))?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let mut all_found = true;
    for text in &args.keys {
        let rows = match Key::of(&text.to_lowercase()) {
            Some(key) => runtime.block_on(table.find(&key)).map_err(|error| format!("{text}: {error}"))?,
            None => [].into(),
        };
        if rows.is_empty() {
            all_found = false;
            println!("{text}: nothing");
        }
        rows.iter().for_each(|row| println!("{text}: {}", said(row)));
    }
    Ok(ExitCode::from(u8::from(!all_found)))
}

/// A row in a line; of a password, only how long it is.
fn said(row: &Row) -> String {
    let name = row.name.iter().map(|name| format!("dn={name}"));
    let fields = row.fields().map(|(name, value)| match name {
        "password" | "scram" => format!("{name}=({} characters)", value.chars().count()),
        _ => format!("{name}={value}"),
    });
    name.chain(fields).collect::<Vec<_>>().join(" ")
}
