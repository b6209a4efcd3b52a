//! `sluice learn`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueHint};

use super::CONFIG;

/// `sluice learn`
#[derive(Debug, Args)]
pub struct Learn {
    /// The configuration that names the ledger: `ledger` in `[spam.bayes]`.
    #[arg(short, long, value_name = "FILE", default_value = CONFIG, value_hint = ValueHint::FilePath, global = true)]
    pub config: PathBuf,
    /// Use the ledger in this folder, and read no configuration.
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath, global = true)]
    pub ledger: Option<PathBuf>,
    /// The knowledge of this user; default: of the site.
    #[arg(long, value_name = "USER", default_value = "", hide_default_value = true, global = true)]
    pub user: String,
    /// Read the settings of this folder of rules, repeatable; later folders override earlier ones. Without it: as
    /// sluice spam check.
    #[arg(long = "rules", value_name = "DIR", value_hint = ValueHint::DirPath, global = true)]
    pub folders: Vec<PathBuf>,
    /// Print JSON.
    #[arg(long, global = true)]
    pub json: bool,
    /// Subcommand.
    #[command(subcommand)]
    pub command: LearnCommand,
}

/// The commands of `sluice learn`.
#[derive(Debug, Subcommand)]
pub enum LearnCommand {
    /// Learn mails as ham: mail that is wanted.
    Ham(LearnMails),
    /// Learn mails as spam.
    Spam(LearnMails),
    /// Undo the learning of mails.
    Forget(LearnMails),
    /// Put what `sa-learn --backup` or export has written in the place of all that is kept.
    Import {
        /// The file; - is the standard input.
        #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
        file: PathBuf,
    },
    /// Print all that is kept as `sa-learn --backup` does: `sa-learn --restore` and import read it.
    Export,
    /// Print how many mails were learned, how many words are kept, and how old they are.
    Stat,
    /// Forget old tokens beyond `bayes_expiry_max_db_size`, and old mails.
    Expire,
}

/// Mails to learn or forget.
#[derive(Debug, Args)]
pub struct LearnMails {
    /// Mails: a file each, a Maildir, or a folder with a mail in each file. - and nothing at all are the standard input.
    #[arg(value_name = "FILE", value_hint = ValueHint::AnyPath)]
    pub files: Vec<PathBuf>,
    /// Each FILE is a mailbox of many mails (mbox).
    #[arg(long)]
    pub mbox: bool,
    /// Each FILE is a folder; anything else is an error.
    #[arg(long, conflicts_with = "mbox")]
    pub dir: bool,
    /// Leave out mails of more bytes; 0: 64 MiB.
    #[arg(long, value_name = "BYTES", default_value_t = 262_144)]
    pub size_max: u64,
}
