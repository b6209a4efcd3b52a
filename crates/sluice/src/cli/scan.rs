//! `sluice scan`.

use std::path::PathBuf;

use clap::builder::BoolishValueParser;
use clap::{ArgAction, Args, ValueHint};
use edge::settings::Pattern;

use super::DatabaseArgs;
use crate::cli::values;

/// `sluice scan`
#[derive(Debug, Args)]
#[command(args_override_self = true, infer_long_args = true)]
pub struct Scan {
    /// Files and folders; `-` is standard input. Default: the current folder.
    #[arg(value_name = "PATH", value_hint = ValueHint::AnyPath)]
    pub paths: Vec<PathBuf>,
    /// Signatures.
    #[command(flatten)]
    pub database: DatabaseArgs,
    /// Files to scan.
    #[command(flatten)]
    pub choice: ScanChoice,
    /// Findings that count, and limits of a scan.
    #[command(flatten)]
    pub look: ScanLook,
    /// Handling of infected files.
    #[command(flatten)]
    pub keep: ScanKeep,
    /// Output.
    #[command(flatten)]
    pub output: ScanOutput,
    /// Exit with status 2 without scanning if the newest ClamAV container is older than this, or there is none.
    #[arg(long, value_name = "DAYS")]
    pub fail_if_cvd_older_than: Option<u64>,
    /// Number of files scanned in parallel; 0 means one per core.
    #[arg(short, long, default_value_t = 0, value_name = "COUNT")]
    pub jobs: usize,
    /// Remember in this folder which files were clean, and do not read them again until they or the signatures change; a scan
    /// that was interrupted goes on.
    #[arg(long, value_name = "FOLDER", value_hint = ValueHint::DirPath)]
    pub state: Option<PathBuf>,
}

/// Files that `sluice scan` scans.
#[derive(Debug, Args)]
pub struct ScanChoice {
    /// Scan folders recursively; `--recursive=no` scans only the files directly in the given folders.
    #[arg(short, long, value_name = "YES|NO", num_args = 0..=1, require_equals = true, default_value = "yes", default_missing_value = "yes", value_parser = BoolishValueParser::new(), action = ArgAction::Set, hide_possible_values = true)]
    pub recursive: bool,
    /// Also scan the files listed in this file, one per line.
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub file_list: Option<PathBuf>,
    /// Skip files whose path matches; repeatable.
    #[arg(long, value_name = "REGEX")]
    pub exclude: Vec<Pattern>,
    /// Skip folders whose path matches; repeatable.
    #[arg(long, value_name = "REGEX")]
    pub exclude_dir: Vec<Pattern>,
    /// Scan only files whose path matches; repeatable.
    #[arg(long, value_name = "REGEX")]
    pub include: Vec<Pattern>,
    /// Scan only folders whose path matches; repeatable.
    #[arg(long, value_name = "REGEX")]
    pub include_dir: Vec<Pattern>,
    /// Maximum folder depth, counting the folders given here.
    #[arg(long, value_name = "COUNT")]
    pub max_dir_recursion: Option<usize>,
    /// Scan folders on other file systems.
    #[arg(long, value_name = "YES|NO", num_args = 0..=1, require_equals = true, default_value = "yes", default_missing_value = "yes", value_parser = BoolishValueParser::new(), action = ArgAction::Set, hide_possible_values = true)]
    pub cross_fs: bool,
    /// Stay on the file systems of the given paths: `--cross-fs=no`.
    #[arg(short = 'x', long)]
    pub one_file_system: bool,
    /// Follow symbolic links to folders: 0 never, 1 those given here, 2 always.
    #[arg(long, value_name = "0|1|2", default_value_t = 1, value_parser = clap::value_parser!(u8).range(0..=2))]
    pub follow_dir_symlinks: u8,
    /// Follow symbolic links to files: 0 never, 1 those given here, 2 always.
    #[arg(long, value_name = "0|1|2", default_value_t = 1, value_parser = clap::value_parser!(u8).range(0..=2))]
    pub follow_file_symlinks: u8,
}

/// How `sluice scan` scans a file.
#[derive(Debug, Args)]
pub struct ScanLook {
    /// Also report exceeded limits, ambiguous content and encryption as found.
    #[arg(long)]
    pub strict: bool,
    /// Report exceeded limits as found.
    #[arg(long, alias = "block-max", value_name = "YES|NO", num_args = 0..=1, require_equals = true, default_value = "no", default_missing_value = "yes", value_parser = BoolishValueParser::new(), action = ArgAction::Set, hide_possible_values = true)]
    pub alert_exceeds_max: bool,
    /// Report encrypted content as found.
    #[arg(long, visible_aliases = ["alert-encrypted-archive", "alert-encrypted-doc"], alias = "block-encrypted", value_name = "YES|NO", num_args = 0..=1, require_equals = true, default_value = "no", default_missing_value = "yes", value_parser = BoolishValueParser::new(), action = ArgAction::Set, hide_possible_values = true)]
    pub alert_encrypted: bool,
    /// Report every signature that matches in a file, not just the first.
    #[arg(short = 'z', long, value_name = "YES|NO", num_args = 0..=1, require_equals = true, default_value = "no", default_missing_value = "yes", value_parser = BoolishValueParser::new(), action = ArgAction::Set, hide_possible_values = true)]
    pub allmatch: bool,
    /// Do not scan files larger than this; reported as a limit. Suffixes K, M and G; 0 means no limit.
    #[arg(long, value_name = "SIZE", default_value = "0", value_parser = values::size)]
    pub max_filesize: u64,
    /// Scan at most this much of a file; reported as a limit. 0 means all of it.
    #[arg(long, value_name = "SIZE", default_value = "0", value_parser = values::size)]
    pub max_scansize: u64,
    /// Scan a file for at most this long; reported as a limit. 0 means 120 seconds of CPU time, more for large files.
    #[arg(long, value_name = "MILLISECONDS", default_value_t = 0)]
    pub max_scantime: u64,
    /// Maximum nesting of containers; 0 means the default.
    #[arg(long, value_name = "COUNT")]
    pub max_recursion: Option<u32>,
    /// Maximum number of objects in one file; 0 means 1,048,576.
    #[arg(long, value_name = "COUNT")]
    pub max_files: Option<u32>,
}

/// Handling of infected files by `sluice scan`.
#[derive(Debug, Args)]
#[group(multiple = false)]
pub struct ScanKeep {
    /// Move infected files into this folder.
    #[arg(long = "move", value_name = "FOLDER", value_hint = ValueHint::DirPath)]
    pub move_to: Option<PathBuf>,
    /// Copy infected files into this folder.
    #[arg(long = "copy", value_name = "FOLDER", value_hint = ValueHint::DirPath)]
    pub copy_to: Option<PathBuf>,
    /// Remove infected files.
    #[arg(long, value_name = "YES|NO", num_args = 0..=1, require_equals = true, default_missing_value = "yes", value_parser = BoolishValueParser::new(), action = ArgAction::Set, hide_possible_values = true)]
    pub remove: Option<bool>,
}

/// Output of `sluice scan`.
#[derive(Debug, Args)]
pub struct ScanOutput {
    /// Print only infected files.
    #[arg(short, long)]
    pub infected: bool,
    /// Do not print files that are OK.
    #[arg(short = 'o', long)]
    pub suppress_ok_results: bool,
    /// Print errors only.
    #[arg(long)]
    pub quiet: bool,
    /// Print the path inside the file: `mail.eml » invoice.zip » a.exe`.
    #[arg(short, long)]
    pub archive_verbose: bool,
    /// Print one JSON object per file, and no summary.
    #[arg(long)]
    pub json: bool,
    /// Print comma-separated values with a header, one line per finding or clean file, and no summary.
    #[arg(long, conflicts_with = "json")]
    pub csv: bool,
    /// Print no summary.
    #[arg(long)]
    pub no_summary: bool,
    /// Print errors to standard output, too.
    #[arg(long)]
    pub stdout: bool,
    /// Ring the bell when something is found.
    #[arg(long)]
    pub bell: bool,
    /// Append what is printed to this file.
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub log: Option<PathBuf>,
}
