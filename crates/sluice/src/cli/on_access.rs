//! `sluice mount` and `sluice watch`.

use std::path::PathBuf;

use clap::{Args, ValueHint};

use super::DatabaseArgs;
use crate::cli::values;

/// `sluice mount`
#[derive(Debug, Args)]
pub struct Mount {
    /// The folder whose files are mounted.
    #[arg(value_name = "SOURCE", value_hint = ValueHint::DirPath)]
    pub source: PathBuf,
    /// Where it is mounted; it may be the same folder, which is then reached through the mount alone.
    #[arg(value_name = "MOUNTPOINT", value_hint = ValueHint::DirPath)]
    pub point: PathBuf,
    /// When content is inspected: `regular`, while it is written in order, or else when it is complete; `full`, the whole file
    /// when it is closed, synced, renamed or opened by somebody else.
    #[arg(long, value_name = "MODE", value_enum, default_value = "regular")]
    pub mode: MountMode,
    /// Handling of infected content: `immediate`, the write fails; `deferred`, the writer notices nothing, the file
    /// keeps its old content, and the quarantine gets the new one with the name of the writer. Reading fails in both.
    #[arg(long, value_name = "WHEN", value_enum, default_value = "immediate")]
    pub on_infected: MountInfected,
    /// Where something else holds: rules by path, type, size and user, one a line.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub rules: Option<PathBuf>,
    /// Files to inspect in the background, at the start and with new signatures: `changed`, files found clean by
    /// other signatures or before a change behind the mount; `all`, files never inspected, too; `off`, none.
    #[arg(long, value_name = "WHAT", value_enum, default_value = "changed")]
    pub rescan: MountRescan,
    /// Threads that answer the kernel; 0 means four per core, and at least 16. An inspection occupies one while it lasts.
    #[arg(long, value_name = "COUNT", default_value_t = 0)]
    pub threads: usize,
    /// Pass everything, uninspected: what the mount costs by itself.
    #[arg(long, hide = true)]
    pub pass_all: bool,
    /// Options shared with `watch`.
    #[command(flatten)]
    pub common: OnAccess,
}

/// When `sluice mount` inspects.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum MountMode {
    /// As content passes.
    Regular,
    /// Whole files.
    Full,
}

/// Handling of infected content by `sluice mount`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum MountInfected {
    /// An error.
    Immediate,
    /// Evidence.
    Deferred,
}

/// Files that `sluice mount` inspects in the background.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum MountRescan {
    /// Nothing.
    Off,
    /// Files inspected before.
    Changed,
    /// Everything.
    All,
}

/// `sluice watch`
#[derive(Debug, Args)]
pub struct Watch {
    /// Folders and files. One that a file system is mounted at stands for all of that, by whatever name it is reached.
    #[arg(value_name = "PATH", value_hint = ValueHint::AnyPath, required = true)]
    pub paths: Vec<PathBuf>,
    /// Inspect nothing below this folder; repeatable.
    #[arg(long = "exclude", value_name = "FOLDER", value_hint = ValueHint::DirPath)]
    pub excluded: Vec<PathBuf>,
    /// Do not ask about what this user opens, by name or number; repeatable.
    #[arg(long = "exclude-user", value_name = "USER")]
    pub users: Vec<String>,
    /// How long a process waits for a verdict, in seconds.
    #[arg(long, value_name = "SECONDS", default_value_t = 30, value_parser = clap::value_parser!(u64).range(1..=3600))]
    pub deadline: u64,
    /// Answer to a process whose file has no verdict by then, or whose inspection failed: `refuse` or `allow`.
    #[arg(long, value_name = "WHAT", value_enum, default_value = "refuse")]
    pub on_deadline: OnDoubt,
    /// Refuse nothing; only log what is found.
    #[arg(long)]
    pub only_log: bool,
    /// Inspections at a time; 0 means four per core, and at least 16.
    #[arg(long, value_name = "COUNT", default_value_t = 0)]
    pub threads: usize,
    /// Options shared with `mount`.
    #[command(flatten)]
    pub common: OnAccess,
}

/// Answer about content that is neither known to be clean nor known to be infected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum OnDoubt {
    /// An error.
    Refuse,
    /// It passes.
    Allow,
}

/// Options that `mount` and `watch` share.
#[derive(Debug, Clone, Args)]
pub struct OnAccess {
    /// Signatures.
    #[command(flatten)]
    pub database: DatabaseArgs,
    /// Keep infected content, with its user and process, in this folder outside of the inspected ones.
    #[arg(long, value_name = "FOLDER", value_hint = ValueHint::DirPath)]
    pub quarantine: Option<PathBuf>,
    /// Remember in this folder which files are clean, from one start to the next.
    #[arg(long, value_name = "FOLDER", value_hint = ValueHint::DirPath)]
    pub state: Option<PathBuf>,
    /// Refuse ambiguous, unopened and encrypted content, too.
    #[arg(long)]
    pub strict: bool,
    /// Answer about content that exceeds the limits of an inspection (depth, objects, processor time): `refuse` or
    /// `allow`.
    #[arg(long, value_name = "WHAT", value_enum, default_value = "refuse")]
    pub on_limit: OnDoubt,
    /// The memory that all inspections may hold; one may hold a quarter of it. Suffixes K, M and G.
    #[arg(long, value_name = "SIZE", default_value = "1G", value_parser = values::size)]
    pub memory: u64,
    /// How long an inspection may make no progress, in seconds. Then it has no verdict.
    #[arg(long, value_name = "SECONDS", default_value_t = 30, value_parser = clap::value_parser!(u64).range(1..=3600))]
    pub stall: u64,
    /// Inspect in this process, and not in processes that may do nothing else.
    #[arg(long)]
    pub no_isolation: bool,
    /// Return after the start, and run in the background. The log continues if standard error is a file.
    #[arg(short, long)]
    pub background: bool,
    /// Set by `--background` for what goes on.
    #[arg(long, hide = true)]
    pub detached: bool,
    /// How log lines are written: `human` or `json`.
    #[arg(long, value_name = "FORMAT", value_enum, default_value = "human")]
    pub log_format: OnAccessLog,
}

/// How log lines are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum OnAccessLog {
    /// For people.
    Human,
    /// One JSON object a line.
    Json,
}
