//! `sluice migrate`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueHint};

/// Formats to translate.
#[derive(Debug, Subcommand)]
pub enum MigrateCommand {
    /// Read Postfix's main.cf, master.cf and tables, and print a sluice.toml, in which each line says where it comes from; what is not
    /// translated stands at its end, with file, line and reason.
    ///
    /// Nothing is changed, and no database is asked. Exit status: 0 done, 2 an error.
    Postfix(MigratePostfix),
}

/// `sluice migrate postfix`
#[derive(Debug, Args)]
pub struct MigratePostfix {
    /// The folder with main.cf.
    #[arg(value_name = "FOLDER", default_value = "/etc/postfix", value_hint = ValueHint::DirPath)]
    pub folder: PathBuf,
    /// Write the configuration to this new file, which only its owner may read.
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub output: Option<PathBuf>,
    /// Print what is not translated as JSON, in place of the configuration.
    #[arg(long)]
    pub json: bool,
}
