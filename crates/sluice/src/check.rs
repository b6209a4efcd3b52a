//! `sluice check`: whether a configuration would be taken, and what it loads.

use std::process::ExitCode;

use crate::cli::Check;
use crate::config::Config;
use crate::{Failure, database};

/// Reads the configuration and the signatures, and says what stands there.
pub fn run(args: &Check) -> Result<ExitCode, Failure> {
    let config = Config::read(&args.config)?;
    let loaded = database::load(&config.database.paths, config.database.builtin)?;
    for listener in &config.listeners {
        println!("{:?} on {} to {}", listener.protocol, listener.address, listener.forward);
    }
    for address in &config.clamd.addresses {
        println!("Clamd on {address}");
    }
    println!("{loaded}");
    if !config.serves() {
        return Err(format!(
            "{}: no [[listener]] and no address in [clamd], nothing would be served",
            args.config.display()
        )
        .into());
    }
    println!("{}: OK", args.config.display());
    Ok(ExitCode::SUCCESS)
}
