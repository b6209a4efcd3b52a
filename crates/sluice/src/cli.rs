//! The command line. The man page and the completions are made from what stands here.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueHint};

/// A streaming content-security gateway.
///
/// Sluice takes mail at a door, inspects every byte while it flows (MIME, archives, signatures), and hands the clean
/// on. It stores nothing on the way.
#[derive(Debug, Parser)]
#[command(name = "sluice", version, about, max_term_width = 100)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run the gateway, in the foreground.
    ///
    /// SIGTERM and SIGINT end it after the sessions under way; SIGHUP reads the configuration and the signatures anew.
    /// Without any configuration it takes mail on 127.0.0.1:2525 and puts it into the Maildir ./maildir.
    Serve(Serve),
    /// Look for signatures in files and folders.
    ///
    /// Prints `PATH: NAME FOUND` or `PATH: OK` for each file and a summary. Exit status: 0 nothing found, 1 something
    /// found, 2 an error.
    Scan(Scan),
    /// Show what the engine sees in a file: the tree of objects, their types, sizes and findings, and the time spent.
    Explain(Explain),
    /// Check a configuration and the signatures that it names.
    Check(Check),
    /// Print the man page, or write one for each command into a folder.
    Man {
        /// The folder; without it, the main page is printed.
        #[arg(value_hint = ValueHint::DirPath)]
        folder: Option<PathBuf>,
    },
    /// Print the completions for a shell.
    Completions {
        /// Which shell.
        shell: clap_complete::Shell,
    },
}

/// Where signatures come from.
#[derive(Debug, Args, Clone)]
pub struct DatabaseArgs {
    /// Load this signature file, or all in this folder, besides the built-in test signatures; repeatable.
    #[arg(short, long = "database", value_name = "PATH", value_hint = ValueHint::AnyPath)]
    pub databases: Vec<PathBuf>,
}

/// `sluice serve`
#[derive(Debug, Args)]
pub struct Serve {
    /// The configuration.
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub config: Option<PathBuf>,
    /// Take clamd's place: addresses, databases and limits from this `clamd.conf`.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub clamd_conf: Option<PathBuf>,
    /// Signatures besides those of the configuration.
    #[command(flatten)]
    pub database: DatabaseArgs,
}

/// `sluice scan`
#[derive(Debug, Args)]
pub struct Scan {
    /// Files and folders; `-` is the standard input.
    #[arg(required = true, value_name = "PATH", value_hint = ValueHint::AnyPath)]
    pub paths: Vec<PathBuf>,
    /// Signatures.
    #[command(flatten)]
    pub database: DatabaseArgs,
    /// Print only what something was found in.
    #[arg(short, long)]
    pub infected: bool,
    /// Print one JSON object a file, and no summary.
    #[arg(long)]
    pub json: bool,
    /// Print no summary.
    #[arg(long)]
    pub no_summary: bool,
    /// Count limits, ambiguities and encryption as found, too.
    #[arg(long)]
    pub strict: bool,
    /// Files looked at side by side; 0 means one for each core.
    #[arg(short, long, default_value_t = 0, value_name = "COUNT")]
    pub jobs: usize,
}

/// `sluice explain`
#[derive(Debug, Args)]
pub struct Explain {
    /// The file; `-` is the standard input.
    #[arg(value_hint = ValueHint::FilePath)]
    pub file: PathBuf,
    /// Signatures.
    #[command(flatten)]
    pub database: DatabaseArgs,
    /// Print one JSON object a line, for each object.
    #[arg(long)]
    pub json: bool,
}

/// `sluice check`
#[derive(Debug, Args)]
pub struct Check {
    /// The configuration.
    #[arg(value_hint = ValueHint::FilePath)]
    pub config: PathBuf,
}
