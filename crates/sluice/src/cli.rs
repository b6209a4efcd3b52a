//! The command line. The man page and the completions are made from what stands here.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use clap::builder::BoolishValueParser;
use clap::{ArgAction, Args, Parser, Subcommand, ValueHint};
use edge::settings::Forward;
use edge::settings::Pattern;

use crate::pua::Pua;
use crate::values::{self, Kind, Stage};

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
    /// Without any configuration it takes mail on 127.0.0.1:2525 and puts it into the Maildir ./maildir; started as root, it
    /// becomes nobody for that.
    Serve(Serve),
    /// Look for signatures in files and folders.
    ///
    /// Prints `PATH: NAME FOUND` or `PATH: OK` for each file, in the order of the names, and a summary. The options are
    /// those of clamscan; of its others, those that mean nothing here are passed over. Exit status: 0 nothing found, 1
    /// something found, 2 an error.
    Scan(Box<Scan>),
    /// Show what the engine sees in a file: the tree of objects, their types, sizes and findings, and the time spent.
    Explain(Explain),
    /// Check a configuration and the signatures that it names.
    Check(Check),
    /// Write the rules that send other servers' connections to transparent listeners.
    ///
    /// A table of nftables of its own, and for TPROXY a rule and a table of routes. Exit status: 0 done, 2 an error.
    Intercept(Intercept),
    /// Look at what was put into quarantine, send it on, or delete it.
    ///
    /// Exit status: 0 done, 1 something could not be done or nothing was meant, 2 an error.
    Quarantine(Quarantine),
    /// Search the decisions in a log.
    ///
    /// Takes JSON lines: a file that `format = "json"` in `[log]` has written, or `journalctl -u sluice -o cat`. Exit
    /// status: 0 something was found, 1 nothing, 2 an error.
    Log(Log),
    /// Look at signature files: what they hold and how it is understood.
    Database(Database),
    /// Fetch new signatures, as `[update]` in the configuration says.
    ///
    /// What has changed is fetched, read and verified, and put in force when everything can be read together. A running
    /// service that watches the folder takes it over by itself. Exit status: 0 up to date, 2 something failed.
    Update(Update),
    /// Show what a running gateway does: sessions, messages and what became of them, throughput, times, memory.
    ///
    /// Asks at the address in `[metrics]`. In a pipe one page is printed below the other. Ctrl-C ends it.
    Top(Top),
    /// Serve block lists over DNS from rbldnsd's zone files, or look into them.
    Dnsbl(Dnsbl),
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
    /// Keep compiled signatures in this folder; `none`: compile them at every start. Without it a service uses the folder
    /// that its manager gives it, and other commands ~/.cache/sluice for sets of more than 4 MiB.
    #[arg(long, value_name = "FOLDER", value_hint = ValueHint::DirPath)]
    pub cache: Option<PathBuf>,
    /// Refuse containers that have a signature beside them (`.cvd.sign`) which is not their own, or by nobody whom these
    /// certificates vouch for; a file, or a folder of them.
    #[arg(long, value_name = "PATH", value_hint = ValueHint::AnyPath)]
    pub certificates: Option<PathBuf>,
    /// Of potentially unwanted applications.
    #[command(flatten)]
    pub pua: Pua,
}

/// `sluice serve`
#[derive(Debug, Args, Clone)]
pub struct Serve {
    /// The configuration.
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub config: Option<PathBuf>,
    /// Take clamd's place: addresses, databases and limits from this `clamd.conf`.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub clamd_conf: Option<PathBuf>,
    /// Stay root when started as root. Without it, and without `user` in the configuration, that is refused.
    #[arg(long)]
    pub allow_root: bool,
    /// Signatures besides those of the configuration.
    #[command(flatten)]
    pub database: DatabaseArgs,
}

/// `sluice scan`
#[derive(Debug, Args)]
#[command(args_override_self = true, infer_long_args = true)]
pub struct Scan {
    /// Files and folders; `-` is the standard input. Without any: the current folder.
    #[arg(value_name = "PATH", value_hint = ValueHint::AnyPath)]
    pub paths: Vec<PathBuf>,
    /// Signatures.
    #[command(flatten)]
    pub database: DatabaseArgs,
    /// What is looked at.
    #[command(flatten)]
    pub choice: ScanChoice,
    /// What counts as found, and how far files are looked into.
    #[command(flatten)]
    pub look: ScanLook,
    /// What becomes of infected files.
    #[command(flatten)]
    pub keep: ScanKeep,
    /// What is printed.
    #[command(flatten)]
    pub output: ScanOutput,
    /// Look at nothing if the newest of ClamAV's containers is older, or there is none: exit status 2.
    #[arg(long, value_name = "DAYS")]
    pub fail_if_cvd_older_than: Option<u64>,
    /// Files looked at side by side; 0 means one for each core.
    #[arg(short, long, default_value_t = 0, value_name = "COUNT")]
    pub jobs: usize,
}

/// Which files `sluice scan` looks at.
#[derive(Debug, Args)]
pub struct ScanChoice {
    /// Enter folders within folders; `--recursive=no` keeps to the files right in the folders named.
    #[arg(short, long, value_name = "YES|NO", num_args = 0..=1, require_equals = true, default_value = "yes", default_missing_value = "yes", value_parser = BoolishValueParser::new(), action = ArgAction::Set, hide_possible_values = true)]
    pub recursive: bool,
    /// Look at the files that this file lists, too, one a line.
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub file_list: Option<PathBuf>,
    /// Pass over files whose path matches; repeatable.
    #[arg(long, value_name = "REGEX")]
    pub exclude: Vec<Pattern>,
    /// Pass over folders whose path matches; repeatable.
    #[arg(long, value_name = "REGEX")]
    pub exclude_dir: Vec<Pattern>,
    /// Look only at files whose path matches; repeatable.
    #[arg(long, value_name = "REGEX")]
    pub include: Vec<Pattern>,
    /// Look only into folders whose path matches; repeatable.
    #[arg(long, value_name = "REGEX")]
    pub include_dir: Vec<Pattern>,
    /// Folders within each other, at most, those named here among them.
    #[arg(long, value_name = "COUNT")]
    pub max_dir_recursion: Option<usize>,
    /// Enter folders on other file systems.
    #[arg(long, value_name = "YES|NO", num_args = 0..=1, require_equals = true, default_value = "yes", default_missing_value = "yes", value_parser = BoolishValueParser::new(), action = ArgAction::Set, hide_possible_values = true)]
    pub cross_fs: bool,
    /// Follow links to folders: 0 never, 1 those named here, 2 always.
    #[arg(long, value_name = "0|1|2", default_value_t = 1, value_parser = clap::value_parser!(u8).range(0..=2))]
    pub follow_dir_symlinks: u8,
    /// Follow links to files: 0 never, 1 those named here, 2 always.
    #[arg(long, value_name = "0|1|2", default_value_t = 1, value_parser = clap::value_parser!(u8).range(0..=2))]
    pub follow_file_symlinks: u8,
}

/// How `sluice scan` looks at a file.
#[derive(Debug, Args)]
pub struct ScanLook {
    /// Count limits, ambiguities and encryption as found, too.
    #[arg(long)]
    pub strict: bool,
    /// Count limits as found.
    #[arg(long, alias = "block-max", value_name = "YES|NO", num_args = 0..=1, require_equals = true, default_value = "no", default_missing_value = "yes", value_parser = BoolishValueParser::new(), action = ArgAction::Set, hide_possible_values = true)]
    pub alert_exceeds_max: bool,
    /// Count encryption as found.
    #[arg(long, visible_aliases = ["alert-encrypted-archive", "alert-encrypted-doc"], alias = "block-encrypted", value_name = "YES|NO", num_args = 0..=1, require_equals = true, default_value = "no", default_missing_value = "yes", value_parser = BoolishValueParser::new(), action = ArgAction::Set, hide_possible_values = true)]
    pub alert_encrypted: bool,
    /// Name every signature that matches in a file, not just the first.
    #[arg(short = 'z', long, value_name = "YES|NO", num_args = 0..=1, require_equals = true, default_value = "no", default_missing_value = "yes", value_parser = BoolishValueParser::new(), action = ArgAction::Set, hide_possible_values = true)]
    pub allmatch: bool,
    /// Do not look at larger files: a limit. K, M and G may follow the number; 0 means any size.
    #[arg(long, value_name = "SIZE", default_value = "0", value_parser = values::size)]
    pub max_filesize: u64,
    /// Look at no more of a file than this: a limit. 0 means all of it.
    #[arg(long, value_name = "SIZE", default_value = "0", value_parser = values::size)]
    pub max_scansize: u64,
    /// Look at a file no longer than this: a limit. 0 means 120 seconds of processor time, and more for long files.
    #[arg(long, value_name = "MILLISECONDS", default_value_t = 0)]
    pub max_scantime: u64,
    /// Containers within containers; 0 means as many as without this option.
    #[arg(long, value_name = "COUNT")]
    pub max_recursion: Option<u32>,
    /// Objects in one file; 0 means 1,048,576.
    #[arg(long, value_name = "COUNT")]
    pub max_files: Option<u32>,
}

/// What `sluice scan` does with infected files.
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

/// What `sluice scan` prints.
#[derive(Debug, Args)]
pub struct ScanOutput {
    /// Print only what something was found in.
    #[arg(short, long)]
    pub infected: bool,
    /// Print no files that are OK.
    #[arg(short = 'o', long)]
    pub suppress_ok_results: bool,
    /// Print errors only.
    #[arg(long)]
    pub quiet: bool,
    /// Print where in a file something was found: `mail.eml » invoice.zip » a.exe`.
    #[arg(short, long)]
    pub archive_verbose: bool,
    /// Print one JSON object a file, and no summary.
    #[arg(long)]
    pub json: bool,
    /// Print no summary.
    #[arg(long)]
    pub no_summary: bool,
    /// Print errors on the standard output, too.
    #[arg(long)]
    pub stdout: bool,
    /// Ring the bell when something is found.
    #[arg(long)]
    pub bell: bool,
    /// Append what is printed to this file.
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub log: Option<PathBuf>,
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
    /// Say what holds for a mail from this sender; an empty one is the null sender.
    #[arg(long, value_name = "ADDRESS")]
    pub from: Option<String>,
    /// Say what holds for a mail to this recipient.
    #[arg(long, value_name = "ADDRESS")]
    pub to: Option<String>,
    /// Say what holds for a mail from this client.
    #[arg(long, value_name = "ADDRESS")]
    pub client: Option<IpAddr>,
}

/// `sluice dnsbl`
#[derive(Debug, Args)]
pub struct Dnsbl {
    /// What to do.
    #[command(subcommand)]
    pub command: DnsblCommand,
}

/// What can be done with block lists.
#[derive(Debug, Subcommand)]
pub enum DnsblCommand {
    /// Answer queries for zones, in the foreground.
    ///
    /// SIGTERM and SIGINT end it; SIGHUP looks at the files at once. Started as root, it becomes nobody (or --user), and may
    /// still read the zone files.
    Serve(Box<DnsblServe>),
    /// Read zones and say what they hold and what is wrong with them. Exit status: 0 nothing is, 1 some lines are, 2 an error.
    Check(DnsblCheck),
    /// Say what lists an address or name. Exit status: 0 it is listed, 1 it is not, 2 an error.
    Why(DnsblWhy),
    /// Keep a reputation of our own: note what was seen of an address, and make zone files of it.
    Reputation(DnsblReputation),
}

/// `sluice dnsbl reputation`
#[derive(Debug, Args)]
pub struct DnsblReputation {
    /// Where the ledger and the zone files `ip4` (ip4set) and `ip6` (ip6trie) are.
    #[arg(long, value_name = "PATH", value_hint = ValueHint::DirPath)]
    pub folder: PathBuf,
    /// After how many seconds a score is worth half; default a day.
    #[arg(long, value_name = "SECONDS")]
    pub half_life: Option<u64>,
    /// From which score on an address is listed; default 5.
    #[arg(long, value_name = "SCORE")]
    pub threshold: Option<f64>,
    /// What to do.
    #[command(subcommand)]
    pub command: ReputationCommand,
}

/// What can be done with a reputation.
#[derive(Debug, Subcommand)]
pub enum ReputationCommand {
    /// Note an event: trust, harvest, spam or infected.
    Note {
        /// Whose.
        address: IpAddr,
        /// Which.
        event: String,
    },
    /// Say how an address stands, and why. Exit status: 0 it is listed, 1 it is not, 2 an error.
    #[command(visible_alias = "why")]
    Standing {
        /// Whose.
        address: IpAddr,
    },
    /// Forget all about an address. Exit status: 0 it is forgotten, 1 there was nothing, 2 an error.
    Forgive {
        /// Whose.
        address: IpAddr,
    },
    /// Make the zone files anew, without what has decayed.
    Forget,
}

/// `sluice dnsbl serve`
#[derive(Debug, Args)]
pub struct DnsblServe {
    /// Take what is not said here from [dnsbl] in this configuration.
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub config: Option<PathBuf>,
    /// Answer here, by UDP and TCP; repeatable.
    #[arg(short, long, value_name = "ADDRESS:PORT")]
    pub listen: Vec<SocketAddr>,
    /// A zone, as rbldnsd is told; repeatable. Types: ip4set, ip4trie, ip4tset, ip6trie, ip6tset, dnset, generic, combined,
    /// acl, and feed for plain lists.
    #[arg(short, long = "zone", value_name = "NAME:TYPE:FILE[,FILE]")]
    pub zones: Vec<::dnsbl::zone::Spec>,
    /// Look at the files every so many seconds; 0: never, but for SIGHUP. Default 60.
    #[arg(long, value_name = "SECONDS")]
    pub check: Option<u64>,
    /// How many event loops answer; default one a core.
    #[arg(long, value_name = "NUMBER")]
    pub threads: Option<usize>,
    /// Show metrics here, by HTTP.
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub metrics: Option<SocketAddr>,
    /// Answer AAAA of half a /24 with a bitmap.
    #[arg(long)]
    pub aaaa: bool,
    /// Answer addresses and names alone, no prefixes.
    #[arg(long)]
    pub no_prefixes: bool,
    /// Give whole zones (AXFR) to these addresses; repeatable.
    #[arg(long, value_name = "NETWORK")]
    pub transfer_to: Vec<edge::settings::Network>,
    /// Tell this secondary that a zone has changed; repeatable.
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub notify: Vec<SocketAddr>,
    /// Become this user, where root has started it; default nobody.
    #[arg(long, value_name = "NAME")]
    pub user: Option<String>,
    /// Stay root.
    #[arg(long)]
    pub allow_root: bool,
}

/// `sluice dnsbl check`
#[derive(Debug, Args)]
pub struct DnsblCheck {
    /// A zone; repeatable.
    #[arg(short, long = "zone", value_name = "NAME:TYPE:FILE[,FILE]", required = true)]
    pub zones: Vec<::dnsbl::zone::Spec>,
}

/// `sluice dnsbl why`
#[derive(Debug, Args)]
pub struct DnsblWhy {
    /// An address, or a name.
    pub what: String,
    /// A zone; repeatable.
    #[arg(short, long = "zone", value_name = "NAME:TYPE:FILE[,FILE]", required = true)]
    pub zones: Vec<::dnsbl::zone::Spec>,
}

/// `sluice intercept`
#[derive(Debug, Args)]
pub struct Intercept {
    /// The configuration.
    #[arg(short, long, global = true, value_name = "FILE", default_value = "/etc/sluice/sluice.toml", value_hint = ValueHint::FilePath)]
    pub config: PathBuf,
    /// What to do.
    #[command(subcommand)]
    pub command: InterceptCommand,
}

/// What can be done with the rules.
#[derive(Debug, Subcommand)]
pub enum InterceptCommand {
    /// Print them, as `nft -f` takes them; what `ip` is told besides stands in comments.
    Print,
    /// Put them in force, in place of those that are.
    Install,
    /// Remove them: connections go straight to their servers again.
    Remove,
}

/// `sluice quarantine`
#[derive(Debug, Args)]
pub struct Quarantine {
    /// The configuration whose listeners' quarantines are meant.
    #[arg(short, long, value_name = "FILE", default_value = "/etc/sluice/sluice.toml", value_hint = ValueHint::FilePath)]
    pub config: PathBuf,
    /// This quarantine, and no configuration.
    #[arg(long, value_name = "PATH", value_hint = ValueHint::DirPath)]
    pub folder: Option<PathBuf>,
    /// What to do.
    #[command(subcommand)]
    pub command: QuarantineCommand,
}

/// What can be done in a quarantine.
#[derive(Debug, Subcommand)]
pub enum QuarantineCommand {
    /// Print a line for each message: id, date, state, bytes, sender, recipients, the first finding.
    List {
        /// Which messages; all without any.
        #[command(flatten)]
        selection: Selection,
        /// Print one JSON object a message.
        #[arg(long)]
        json: bool,
    },
    /// Print what is known of a message, and the header of the mail.
    Show {
        /// Its id.
        id: String,
        /// Print what is known as a JSON object.
        #[arg(long, conflicts_with = "raw")]
        json: bool,
        /// Print the mail itself, as it came.
        #[arg(long)]
        raw: bool,
    },
    /// Send messages on to those of their recipients that do not have them, with the original envelope and without
    /// another inspection. They stay in the quarantine, marked, until they are deleted or expire.
    Release {
        /// Which messages.
        #[command(flatten)]
        selection: Selection,
        /// Send them there, and not to the next hop that they were meant for: smtp://HOST:PORT, lmtp:/PATH and so on.
        #[arg(long)]
        hop: Option<Forward>,
        /// Send them to those recipients too that have them.
        #[arg(long)]
        again: bool,
    },
    /// Have a program learn from messages, as the configuration says: `[quarantine.train]`.
    Train {
        /// As what: spam or ham.
        kind: Kind,
        /// Which messages.
        #[command(flatten)]
        selection: Selection,
        /// Print one JSON object a message.
        #[arg(long)]
        json: bool,
    },
    /// Delete messages.
    Delete {
        /// Which messages.
        #[command(flatten)]
        selection: Selection,
    },
}

/// Which messages of a quarantine: those that are all of what is said.
#[derive(Debug, Args)]
pub struct Selection {
    /// Messages with these ids.
    #[arg(value_name = "ID")]
    pub ids: Vec<String>,
    /// Messages that are at least this old: 90s, 15m, 12h, 7d, 4w.
    #[arg(long, value_name = "TIME", value_parser = values::duration)]
    pub older: Option<Duration>,
    /// Messages that are younger than this.
    #[arg(long, value_name = "TIME", value_parser = values::duration)]
    pub newer: Option<Duration>,
    /// Messages whose sender holds this text; <> is the null sender.
    #[arg(long, value_name = "TEXT")]
    pub from: Option<String>,
    /// Messages with a recipient that holds this text.
    #[arg(long, value_name = "TEXT")]
    pub to: Option<String>,
    /// Messages with a finding that holds this text.
    #[arg(long, value_name = "TEXT")]
    pub found: Option<String>,
    /// Messages in this state.
    #[arg(long)]
    pub state: Option<Stage>,
}

/// `sluice log`
#[derive(Debug, Args)]
pub struct Log {
    /// The log; `-` is the standard input.
    #[arg(default_value = "-", value_hint = ValueHint::FilePath)]
    pub file: PathBuf,
    /// The message with this id.
    #[arg(long)]
    pub id: Option<String>,
    /// Sender, recipients or client hold this text.
    #[arg(long, value_name = "TEXT")]
    pub address: Option<String>,
    /// The sender holds this text.
    #[arg(long, value_name = "TEXT")]
    pub from: Option<String>,
    /// The recipients hold this text.
    #[arg(long, value_name = "TEXT")]
    pub to: Option<String>,
    /// This was done: pass, tag, blank, quarantine or reject.
    #[arg(long)]
    pub action: Option<String>,
    /// What was found holds this text.
    #[arg(long, value_name = "TEXT")]
    pub found: Option<String>,
    /// Not before this time, as the log writes it or the beginning of that: 2026-11-21 or 2026-11-21T20:15 (UTC).
    #[arg(long, value_name = "TIME")]
    pub since: Option<String>,
    /// Before this time.
    #[arg(long, value_name = "TIME")]
    pub until: Option<String>,
    /// Print the lines as they stand.
    #[arg(long)]
    pub json: bool,
}

/// `sluice database`
#[derive(Debug, Args)]
pub struct Database {
    /// What to do.
    #[command(subcommand)]
    pub command: DatabaseCommand,
    /// Print JSON.
    #[arg(long, global = true)]
    pub json: bool,
}

/// The commands of `sluice database`.
#[derive(Debug, Subcommand)]
pub enum DatabaseCommand {
    /// Load files and folders, and print the census: how many signatures are looked for and how exactly, and which are
    /// not and why.
    Info {
        /// Signature files, or folders of them.
        #[arg(required = true, value_name = "PATH", value_hint = ValueHint::AnyPath)]
        paths: Vec<PathBuf>,
        /// Name each signature that is not looked for.
        #[arg(long)]
        refused: bool,
    },
    /// Compile files and folders to one file that `scan` with the same paths, or `serve` with the same configuration, maps.
    ///
    /// It is done in a process that may open nothing. What is compiled already and has not changed is left as it is. Prints
    /// the path of the file.
    Compile {
        /// Signature files, or folders of them, as `--database` of `scan` names them.
        #[arg(required_unless_present = "config", value_name = "PATH", value_hint = ValueHint::AnyPath)]
        paths: Vec<PathBuf>,
        /// Those that this configuration names.
        #[arg(short, long, value_name = "FILE", conflicts_with = "paths", value_hint = ValueHint::FilePath)]
        config: Option<PathBuf>,
        /// The folder of compiled signatures.
        #[arg(long, value_name = "FOLDER", value_hint = ValueHint::DirPath)]
        cache: Option<PathBuf>,
        /// Certificates that containers with a signature beside them have to be signed by.
        #[arg(long, value_name = "PATH", conflicts_with = "config", value_hint = ValueHint::AnyPath)]
        certificates: Option<PathBuf>,
        /// Of potentially unwanted applications.
        #[command(flatten)]
        pua: Pua,
    },
    /// Compile what comes in: the other end of `compile`.
    #[command(hide = true)]
    Worker,
    /// Print the lines of the signatures whose name has this text in it. Exit status 1: there is none.
    Find {
        /// A part of a name; letters in either case.
        name: String,
        /// Signature files, or folders of them.
        #[arg(required = true, value_name = "PATH", value_hint = ValueHint::AnyPath)]
        paths: Vec<PathBuf>,
    },
    /// Look for one signature, or for those of one file, in a file and in all that it holds. Exit status as of `scan`.
    Test {
        /// A line of a database, or the path of one.
        signature: String,
        /// The file; `-` is the standard input.
        #[arg(value_hint = ValueHint::FilePath)]
        file: PathBuf,
    },
    /// Read each file by itself, check what it is signed with, and say whose word it is. Exit status 2: one is not right.
    Verify {
        /// Signature files, or folders of them.
        #[arg(required = true, value_name = "PATH", value_hint = ValueHint::AnyPath)]
        paths: Vec<PathBuf>,
        /// Certificates that containers with a signature beside them have to be signed by.
        #[arg(long, value_name = "PATH", value_hint = ValueHint::AnyPath)]
        certificates: Option<PathBuf>,
    },
}

/// `sluice update`
#[derive(Debug, Args)]
pub struct Update {
    /// The configuration.
    #[arg(short, long, required_unless_present = "freshclam_conf", value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub config: Option<PathBuf>,
    /// Take freshclam's place: folder, mirror and databases from this `freshclam.conf`.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub freshclam_conf: Option<PathBuf>,
    /// Ask for files that failed lately, too.
    #[arg(long)]
    pub force: bool,
    /// Fetch nothing: put back in force what was before.
    #[arg(long)]
    pub rollback: bool,
}

/// `sluice top`
#[derive(Debug, Args)]
pub struct Top {
    /// The configuration that says where the numbers are.
    #[arg(short, long, value_name = "FILE", default_value = "/etc/sluice/sluice.toml", value_hint = ValueHint::FilePath)]
    pub config: PathBuf,
    /// Ask there, and read no configuration.
    #[arg(long, value_name = "IP:PORT")]
    pub metrics: Option<SocketAddr>,
    /// Seconds from page to page.
    #[arg(long, default_value_t = 2, value_name = "SECONDS")]
    pub every: u64,
    /// Pages; 0 means until it is ended.
    #[arg(long, default_value_t = 0)]
    pub count: u32,
}
