//! `sluice database`, `sluice update`, and where signatures come from.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueHint};

use crate::cli::pua::Pua;

/// Where signatures come from.
#[derive(Debug, Args, Clone)]
pub struct DatabaseArgs {
    /// Load this signature file, or all files in this folder, in addition to the built-in test signatures; repeatable.
    #[arg(short, long = "database", value_name = "PATH", value_hint = ValueHint::AnyPath)]
    pub databases: Vec<PathBuf>,
    /// Cache compiled signatures in this folder; `none`: compile them at every start. Default: $CACHE_DIRECTORY for a
    /// service (CacheDirectory= of systemd), ~/.cache/sluice for other commands and sets of more than 4 MiB.
    #[arg(long, value_name = "FOLDER", value_hint = ValueHint::DirPath)]
    pub cache: Option<PathBuf>,
    /// Verify detached signatures (`.cvd.sign`) against these CA certificates, and refuse containers whose signature is
    /// invalid or untrusted; a file, or a folder of them.
    #[arg(long, value_name = "PATH", value_hint = ValueHint::AnyPath)]
    pub certificates: Option<PathBuf>,
    /// Potentially unwanted applications.
    #[command(flatten)]
    pub pua: Pua,
}

/// `sluice database`
#[derive(Debug, Args)]
pub struct Database {
    /// Subcommand.
    #[command(subcommand)]
    pub command: DatabaseCommand,
    /// Print JSON.
    #[arg(long, global = true)]
    pub json: bool,
}

/// The commands of `sluice database`.
#[derive(Debug, Subcommand)]
pub enum DatabaseCommand {
    /// Load signatures and print statistics: how many are loaded, how exactly they match, and which are not loaded and
    /// why.
    Info {
        /// Signature files, or folders of them.
        #[arg(required_unless_present = "config", value_name = "PATH", value_hint = ValueHint::AnyPath)]
        paths: Vec<PathBuf>,
        /// The signatures of this configuration.
        #[arg(short, long, value_name = "FILE", conflicts_with = "paths", value_hint = ValueHint::FilePath)]
        config: Option<PathBuf>,
        /// List each signature that is not loaded.
        #[arg(long)]
        refused: bool,
    },
    /// Compile signatures to one file, which `scan` with the same paths or `serve` with the same configuration maps.
    ///
    /// A sandboxed process compiles them. If they are compiled already and have not changed, nothing is done. Prints the
    /// path of the compiled file.
    Compile {
        /// Signature files, or folders of them, as `--database` of `scan` names them.
        #[arg(required_unless_present = "config", value_name = "PATH", value_hint = ValueHint::AnyPath)]
        paths: Vec<PathBuf>,
        /// Compile the signatures of this configuration.
        #[arg(short, long, value_name = "FILE", conflicts_with = "paths", value_hint = ValueHint::FilePath)]
        config: Option<PathBuf>,
        /// The folder of compiled signatures.
        #[arg(long, value_name = "FOLDER", value_hint = ValueHint::DirPath)]
        cache: Option<PathBuf>,
        /// CA certificates for detached signatures (`.cvd.sign`).
        #[arg(long, value_name = "PATH", conflicts_with = "config", value_hint = ValueHint::AnyPath)]
        certificates: Option<PathBuf>,
        /// Potentially unwanted applications.
        #[command(flatten)]
        pua: Pua,
    },
    /// The sandboxed process of `compile`.
    #[command(hide = true)]
    Worker,
    /// Print the signatures whose name contains this text. Exit status 1: none.
    Find {
        /// Part of a name, case-insensitive.
        name: String,
        /// Signature files, or folders of them.
        #[arg(required_unless_present = "config", value_name = "PATH", value_hint = ValueHint::AnyPath)]
        paths: Vec<PathBuf>,
        /// The signatures of this configuration.
        #[arg(short, long, value_name = "FILE", conflicts_with = "paths", value_hint = ValueHint::FilePath)]
        config: Option<PathBuf>,
    },
    /// Test one signature, or one database file, against a file and everything in it. Exit status as for `scan`.
    Test {
        /// A database line, or the path of a database.
        signature: String,
        /// The file; `-` is standard input.
        #[arg(value_hint = ValueHint::FilePath)]
        file: PathBuf,
    },
    /// Verify each file's signature and print the signer. Exit status 2: at least one is invalid.
    Verify {
        /// Signature files, or folders of them.
        #[arg(required_unless_present = "config", value_name = "PATH", value_hint = ValueHint::AnyPath)]
        paths: Vec<PathBuf>,
        /// The signatures of this configuration.
        #[arg(short, long, value_name = "FILE", conflicts_with = "paths", value_hint = ValueHint::FilePath)]
        config: Option<PathBuf>,
        /// CA certificates for detached signatures (`.cvd.sign`).
        #[arg(long, value_name = "PATH", value_hint = ValueHint::AnyPath)]
        certificates: Option<PathBuf>,
    },
}

/// `sluice update`
#[derive(Debug, Args)]
pub struct Update {
    /// The configuration. [default: /etc/sluice/sluice.toml, without --freshclam-conf]
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub config: Option<PathBuf>,
    /// Replace freshclam: read folder, mirror and databases from this `freshclam.conf`.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub freshclam_conf: Option<PathBuf>,
    /// Also retry files that failed recently.
    #[arg(long)]
    pub force: bool,
    /// Download nothing; restore the previous signatures and intrusion rules.
    #[arg(long, conflicts_with = "dry_run")]
    pub rollback: bool,
    /// Fetch intrusion rules, print those that are new, gone or changed, and install nothing.
    #[arg(long)]
    pub dry_run: bool,
}
