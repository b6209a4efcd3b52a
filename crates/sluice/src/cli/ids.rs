//! `sluice ids`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueHint};

/// `sluice ids`
#[derive(Debug, Args)]
pub struct Ids {
    /// Subcommand.
    #[command(subcommand)]
    pub command: IdsCommand,
}

/// Subcommands about intrusion rules.
#[derive(Debug, Subcommand)]
pub enum IdsCommand {
    /// Try rules on a capture, and print a line of EVE JSON an alert.
    ///
    /// Exit status: 0 no rule alerts, 1 one or more do, 2 an error.
    Check(IdsCheck),
    /// Try rules on the packets of a network interface, and print a line of EVE JSON an alert, until SIGTERM or SIGINT.
    ///
    /// Blocks nothing. Needs root or CAP_NET_RAW to open the interface; before it reads packets it becomes another user, and
    /// keeps nothing but the interface and its output. At the end the standard error has how many packets there were, and how
    /// many of them were dropped. The options about rules count with --rules only. Exit status: 0, or 2 for an error.
    Sniff(IdsSniff),
    /// Read rules, count them, and name those that do not load.
    ///
    /// Exit status: 0 all rules load, 1 some do not, 2 a file cannot be read.
    Lint(IdsLint),
    /// Explain a rule: file and line, changes, tests, the text that selects it, thresholds, and its effect at the doors.
    ///
    /// The options about rules count with --rules only. Exit status: 0 the rule is loaded, 1 it is not, 2 an error.
    Explain(IdsExplain),
}

/// Rules, with variables and files that they need.
#[derive(Debug, Args)]
pub struct IdsRules {
    /// Set a variable of rules, without `$`.
    #[arg(long = "var", value_name = "NAME=VALUE")]
    pub variables: Vec<String>,
    /// Read classes of rules from this file (classification.config).
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub classes: Option<PathBuf>,
    /// Read thresholds and suppressions from this file (threshold.config).
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub thresholds: Option<PathBuf>,
    /// Leave out the rules that this file of suricata-update names (disable.conf).
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub disable: Option<PathBuf>,
    /// Load commented-out rules that this file names (enable.conf).
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub enable: Option<PathBuf>,
    /// Have the rules that this file names drop (drop.conf).
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub drop: Option<PathBuf>,
    /// Replace in rules what this file says (modify.conf).
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub modify: Option<PathBuf>,
}

/// `sluice ids check`
#[derive(Debug, Args)]
pub struct IdsCheck {
    /// The capture: pcap or pcapng.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub pcap: PathBuf,
    /// Files of rules of Suricata 5 to 8, or of Snort 2.9 or 3.
    #[arg(long, required_unless_present = "config", num_args = 1.., value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub rules: Vec<PathBuf>,
    /// The rules of this configuration (`[ids]`).
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath, conflicts_with = "rules")]
    pub config: Option<PathBuf>,
    /// Print messages, files and flows as well: records of http, smtp, tls, fileinfo, flow and anomaly.
    #[arg(long)]
    pub records: bool,
    /// Names that the rules use.
    #[command(flatten)]
    pub names: IdsRules,
}

/// `sluice ids sniff`
#[derive(Debug, Args)]
pub struct IdsSniff {
    /// The interface, by its name.
    #[arg(value_name = "INTERFACE")]
    pub interface: String,
    /// Files or folders of rules, in place of those of the configuration.
    #[arg(long, num_args = 1.., value_name = "PATH", value_hint = ValueHint::AnyPath)]
    pub rules: Vec<PathBuf>,
    /// The configuration. [default: /etc/sluice/sluice.toml]
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath, conflicts_with = "rules")]
    pub config: Option<PathBuf>,
    /// Print messages, files and flows as well, and each minute counts of packets (stats).
    #[arg(long)]
    pub records: bool,
    /// Take packets for other machines, too.
    #[arg(long)]
    pub promiscuous: bool,
    /// The user to become, if started as root.
    #[arg(long, value_name = "NAME", default_value = "nobody", value_hint = ValueHint::Username)]
    pub user: String,
    /// MiB of memory for flows; beyond it those that hold most are ended.
    #[arg(long, value_name = "MIB", default_value_t = 256, value_parser = clap::value_parser!(u32).range(16..=65_536))]
    pub memory: u32,
    /// Names that the rules use.
    #[command(flatten)]
    pub names: IdsRules,
}

/// `sluice ids lint`
#[derive(Debug, Args)]
pub struct IdsLint {
    /// Files of rules of Suricata 5 to 8, or of Snort 2.9 or 3.
    #[arg(required_unless_present = "config", value_name = "RULES", value_hint = ValueHint::FilePath)]
    pub rules: Vec<PathBuf>,
    /// The rules of this configuration (`[ids]`).
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath, conflicts_with = "rules")]
    pub config: Option<PathBuf>,
    /// Names that the rules use.
    #[command(flatten)]
    pub names: IdsRules,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}

/// `sluice ids explain`
#[derive(Debug, Args)]
pub struct IdsExplain {
    /// The number of the rule.
    #[arg(value_name = "SID")]
    pub sid: u32,
    /// Files or folders of rules, in place of those of the configuration.
    #[arg(long, num_args = 1.., value_name = "PATH", value_hint = ValueHint::AnyPath)]
    pub rules: Vec<PathBuf>,
    /// The configuration. [default: /etc/sluice/sluice.toml]
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath, conflicts_with = "rules")]
    pub config: Option<PathBuf>,
    /// Names that the rules use.
    #[command(flatten)]
    pub names: IdsRules,
}
