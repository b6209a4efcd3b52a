//! `sluice sieve`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueHint};

use super::StorePlace;

/// `sluice sieve`
#[derive(Debug, Args)]
pub struct Sieve {
    /// Subcommand.
    #[command(subcommand)]
    pub command: SieveCommand,
}

/// Subcommands about filters of users.
#[derive(Debug, Subcommand)]
pub enum SieveCommand {
    /// Check scripts: what is wrong with one is printed with its line and column.
    ///
    /// Exit status: 0 all are right, 1 one is wrong, 2 an error.
    Check(SieveCheck),
    /// Run a script over a mail and print what it would do, an action a line; nothing of it is done.
    ///
    /// Exit status: 0 it ran, 1 it is wrong or fails on this mail, 2 an error.
    Test(SieveTest),
    /// List the scripts of an account in a mail store; the active one is marked.
    List(SieveUser),
    /// Check a script and keep it in a mail store, in place of one of that name.
    Put(SievePut),
    /// Print a script of an account.
    Get(SieveScript),
    /// Make a script the one that runs when mail comes; without a name, none.
    Activate {
        /// Owner of the script.
        #[command(flatten)]
        user: SieveUser,
        /// The script.
        #[arg(value_name = "NAME")]
        name: Option<String>,
    },
    /// Remove a script that is not active.
    Delete(SieveScript),
}

/// An account in a store. A server that has the store open is asked to do it.
#[derive(Debug, Args)]
pub struct SieveUser {
    /// The account.
    #[arg(value_name = "ACCOUNT")]
    pub account: String,
    /// Where it is.
    #[command(flatten)]
    pub place: StorePlace,
}

/// A script of an account.
#[derive(Debug, Args)]
pub struct SieveScript {
    /// Owner of the script.
    #[command(flatten)]
    pub user: SieveUser,
    /// The script.
    #[arg(value_name = "NAME")]
    pub name: String,
}

/// `sluice sieve put`
#[derive(Debug, Args)]
pub struct SievePut {
    /// Script to write.
    #[command(flatten)]
    pub script: SieveScript,
    /// The script; `-` for standard input.
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub file: PathBuf,
    /// Activate the script.
    #[arg(long)]
    pub activate: bool,
}

/// `sluice sieve check`
#[derive(Debug, Args)]
pub struct SieveCheck {
    /// The scripts.
    #[arg(required = true, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub files: Vec<PathBuf>,
    /// The scripts that `include` finds: NAME.sieve here, and global/NAME.sieve for `:global`.
    #[arg(long, value_name = "FOLDER", value_hint = ValueHint::DirPath)]
    pub folder: Option<PathBuf>,
}

/// `sluice sieve test`
#[derive(Debug, Args)]
pub struct SieveTest {
    /// The script.
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub script: PathBuf,
    /// The mail; `-` for standard input.
    #[arg(value_name = "MESSAGE", value_hint = ValueHint::FilePath)]
    pub mail: PathBuf,
    /// The scripts that `include` finds: NAME.sieve here, and global/NAME.sieve for `:global`.
    #[arg(long, value_name = "FOLDER", value_hint = ValueHint::DirPath)]
    pub folder: Option<PathBuf>,
    /// The envelope's sender; without it, the null sender.
    #[arg(long, value_name = "ADDRESS", default_value = "", hide_default_value = true)]
    pub from: String,
    /// The envelope's recipient.
    #[arg(long, value_name = "ADDRESS", default_value = "", hide_default_value = true)]
    pub to: String,
    /// A mailbox that is there, as `mailboxexists` asks; repeatable.
    #[arg(long = "mailbox", value_name = "NAME")]
    pub mailboxes: Vec<String>,
    /// Probability of spam in percent, for `spamtest`; without it, the mail is untested.
    #[arg(long, value_name = "PERCENT", value_parser = clap::value_parser!(u8).range(0..=100))]
    pub spam: Option<u8>,
    /// Result of a virus check, as `virustest` counts: 0 not checked, 1 clean, up to 5.
    #[arg(long, value_name = "NUMBER", default_value_t = 0, value_parser = clap::value_parser!(u8).range(0..=5))]
    pub virus: u8,
    /// Run as at this time, in seconds since 1970; without it, now.
    #[arg(long, value_name = "SECONDS")]
    pub time: Option<i64>,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
    /// Write to this file in place of the standard output.
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub output: Option<PathBuf>,
}
