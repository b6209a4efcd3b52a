//! The command line. The man page and the completions are made from what stands here.

mod on_access;

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use clap::builder::BoolishValueParser;
use clap::{ArgAction, Args, Parser, Subcommand, ValueHint};
use edge::settings::Address;
use edge::settings::Forward;
use edge::settings::Pattern;

pub use self::on_access::{Mount, MountInfected, MountMode, OnAccess, OnAccessLog, OnDoubt, Watch};
use crate::pua::Pua;
use crate::values::{self, Kind, Stage};

/// A streaming content-security gateway.
///
/// Sluice accepts mail, inspects every byte while it flows (MIME, archives, signatures), and relays clean messages. It
/// has no queue and spools nothing.
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
    /// SIGTERM and SIGINT stop it once the sessions in progress have ended; SIGHUP reloads the configuration and the
    /// signatures; SIGUSR2 hands over to a new version of the program without refusing a connection. Without a configuration
    /// it accepts mail on 127.0.0.1:2525 and delivers it to the Maildir ./maildir; if started as root, it switches to the user
    /// nobody.
    Serve(Serve),
    /// Scan files and folders for viruses.
    ///
    /// Prints `PATH: NAME FOUND` or `PATH: OK` for each file, sorted by name, and a summary. The options are those of
    /// clamscan; clamscan options that have no meaning here are ignored. Exit status: 0 nothing found, 1 something found,
    /// 2 an error.
    Scan(Box<Scan>),
    /// Mount a folder so that nothing infected is read from it or written to it.
    ///
    /// Everything else is as in the folder itself. What is written comes to the folder when it has been inspected and found
    /// clean; what was found infected is an error for who reads or writes it, and leaves nothing behind. Needs root and
    /// /dev/fuse. Runs in the foreground; SIGTERM, SIGINT or `umount` ends it. Exit status: 0 unmounted, 2 an error.
    Mount(Box<Mount>),
    /// Watch folders so that nothing infected is opened or run.
    ///
    /// The kernel asks before it opens a file, and refuses it (EPERM) when it was found infected. What is written is inspected
    /// when it is closed. Needs root and a kernel with fanotify. Runs in the foreground; SIGTERM or SIGINT ends it, and then
    /// everything is opened as before. Exit status: 0 ended, 2 an error.
    Watch(Box<Watch>),
    /// Show how the engine parses a file: the tree of objects, their types, sizes and findings, and the time spent.
    Explain(Explain),
    /// Check a configuration and the signatures that it loads.
    Check(Check),
    /// Manage the nftables rules that redirect connections to transparent listeners.
    ///
    /// The rules are in an nftables table of their own; TPROXY also needs a routing rule and a routing table. Exit status:
    /// 0 done, 2 an error.
    Intercept(Intercept),
    /// List, show, release or delete quarantined messages.
    ///
    /// Exit status: 0 done, 1 some messages failed or none matched, 2 an error.
    Quarantine(Quarantine),
    /// Search the message log.
    ///
    /// Reads JSON lines: a log written with `format = "json"` in `[log]`, or the output of `journalctl -u sluice -o cat`.
    /// Exit status: 0 something matched, 1 nothing matched, 2 an error.
    Log(Log),
    /// Inspect, compile, search, test and verify signature files.
    Database(Database),
    /// Download new signatures as configured in `[update]`.
    ///
    /// Changed files are downloaded and verified, and installed together once the whole set loads. A running service that
    /// watches the folder loads them by itself. Exit status: 0 up to date, 2 something failed.
    Update(Update),
    /// Show live statistics of a running gateway: sessions, messages by action, throughput, latency, memory.
    ///
    /// Reads the metrics endpoint in `[metrics]`. In a pipe, pages are printed one after the other. Ctrl-C ends it.
    Top(Top),
    /// Say who is a recipient, and which table knows.
    Recipients {
        /// What to do.
        #[command(subcommand)]
        command: RecipientsCommand,
    },
    /// Serve DNS block lists (DNSBL) from rbldnsd zone files, or query the files.
    Dnsbl(Dnsbl),
    /// Check SpamAssassin's rules: what is loaded, and what is wrong with it.
    Rules(Rules),
    /// Check whom a mail is from: SPF, DKIM, DMARC and ARC.
    Auth(Auth),
    /// Keep mail in a store: make one, look at it, check it, and move mail in and out.
    Store(Store),
    /// Say who may log in at a mail server on a store: add, change and remove accounts.
    Account(Account),
    /// Check mails with SpamAssassin's rules.
    Spam(Spam),
    /// Print the man page, or write the man pages of all commands to a folder.
    Man {
        /// The folder; without it, the main page is printed.
        #[arg(value_hint = ValueHint::DirPath)]
        folder: Option<PathBuf>,
    },
    /// Print shell completions.
    Completions {
        /// Which shell.
        shell: clap_complete::Shell,
    },
}

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

/// `sluice serve`
#[derive(Debug, Args, Clone)]
pub struct Serve {
    /// The configuration.
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub config: Option<PathBuf>,
    /// Replace clamd: read addresses, databases and limits from this `clamd.conf`.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub clamd_conf: Option<PathBuf>,
    /// Keep running as root. Without this option, and without `user` in the configuration, starting as root is refused.
    #[arg(long)]
    pub allow_root: bool,
    /// Signatures in addition to those of the configuration.
    #[command(flatten)]
    pub database: DatabaseArgs,
}

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
    /// Which files are scanned.
    #[command(flatten)]
    pub choice: ScanChoice,
    /// What counts as found, and limits of a scan.
    #[command(flatten)]
    pub look: ScanLook,
    /// What is done with infected files.
    #[command(flatten)]
    pub keep: ScanKeep,
    /// What is printed.
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

/// Which files `sluice scan` scans.
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

/// `sluice explain`
#[derive(Debug, Args)]
pub struct Explain {
    /// The file; `-` is standard input.
    #[arg(value_hint = ValueHint::FilePath)]
    pub file: PathBuf,
    /// Signatures.
    #[command(flatten)]
    pub database: DatabaseArgs,
    /// Print one JSON object per line for each object.
    #[arg(long)]
    pub json: bool,
}

/// `sluice check`
#[derive(Debug, Args)]
pub struct Check {
    /// The configuration.
    #[arg(value_hint = ValueHint::FilePath)]
    pub config: PathBuf,
    /// Show the policy for a message from this sender; the empty string is the null sender.
    #[arg(long, value_name = "ADDRESS")]
    pub from: Option<String>,
    /// Show the policy for a message to this recipient.
    #[arg(long, value_name = "ADDRESS")]
    pub to: Option<String>,
    /// Show the policy for a message from this client.
    #[arg(long, value_name = "ADDRESS")]
    pub client: Option<IpAddr>,
}

/// What can be asked of the tables of recipients.
#[derive(Debug, Subcommand)]
pub enum RecipientsCommand {
    /// Look up addresses as a listener would at RCPT: what it would answer, and which table and line say so.
    ///
    /// Servers are asked where `call_ahead` says so. Exit status: 0 all are taken, 1 some are not, 2 an error.
    Check(RecipientsCheck),
}

/// `sluice recipients check`
#[derive(Debug, Args)]
pub struct RecipientsCheck {
    /// The configuration.
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath, default_value = "/etc/sluice/sluice.toml")]
    pub config: PathBuf,
    /// Print one JSON object a line, for each address and listener.
    #[arg(long)]
    pub json: bool,
    /// Whom to look up.
    #[arg(value_name = "ADDRESS", required = true)]
    pub addresses: Vec<String>,
}

/// `sluice dnsbl`
#[derive(Debug, Args)]
pub struct Dnsbl {
    /// What to do.
    #[command(subcommand)]
    pub command: DnsblCommand,
}

/// The commands of `sluice dnsbl`.
#[derive(Debug, Subcommand)]
pub enum DnsblCommand {
    /// Run the DNS server, in the foreground.
    ///
    /// SIGTERM and SIGINT stop it; SIGHUP checks the files for changes at once. If started as root, it switches to nobody
    /// (or --user) and can still read the zone files.
    Serve(Box<DnsblServe>),
    /// Check zone files and print statistics and errors. Exit status: 0 no errors, 1 bad lines, 2 an error.
    Check(DnsblCheck),
    /// Show why an address or name is listed. Exit status: 0 listed, 1 not listed, 2 an error.
    Why(DnsblWhy),
    /// Keep a local reputation database: record events of addresses, and generate zone files.
    Reputation(DnsblReputation),
    /// Publish a list as signed files for a web server: the newest version, and what changed since older ones.
    Publish(DnsblPublish),
    /// Fetch a published list, verify its signature, and replace the local file.
    ///
    /// Exit status: 0 the file is the newest version (or was already), 2 an error; the old file stays in force.
    Fetch(DnsblFetch),
}

/// `sluice dnsbl publish`
#[derive(Debug, Args)]
pub struct DnsblPublish {
    /// The file of the list.
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub file: PathBuf,
    /// What the list is called: lower-case letters, digits, dots, hyphens and underscores.
    #[arg(long)]
    pub name: String,
    /// The Ed25519 private key, as `openssl genpkey -algorithm ed25519` makes it.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub key: PathBuf,
    /// The folder that the web server serves.
    #[arg(long, value_name = "FOLDER", value_hint = ValueHint::DirPath)]
    pub folder: PathBuf,
    /// For how many older versions there are deltas.
    #[arg(long, value_name = "NUMBER", default_value_t = 24)]
    pub keep: usize,
    /// After how many seconds without a new version nobody uses this one any more.
    #[arg(long, value_name = "SECONDS", default_value_t = 604_800)]
    pub expires: u64,
}

/// `sluice dnsbl fetch`
#[derive(Debug, Args)]
pub struct DnsblFetch {
    /// Where the list is: the URL of its NAME.list.
    #[arg(value_name = "URL", value_hint = ValueHint::Url)]
    pub url: String,
    /// The publisher's Ed25519 public key, as `openssl pkey -pubout` writes it.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub key: PathBuf,
    /// The folder of the local file, NAME.
    #[arg(long, value_name = "FOLDER", value_hint = ValueHint::DirPath)]
    pub folder: PathBuf,
    /// The largest list that is accepted, in bytes.
    #[arg(long, value_name = "BYTES", default_value_t = 1 << 30)]
    pub bytes_max: u64,
    /// Certificates of the authorities that servers are verified with.
    #[arg(long, value_name = "FILE", default_value = "/etc/ssl/certs/ca-certificates.crt", value_hint = ValueHint::FilePath)]
    pub authorities: PathBuf,
}

/// `sluice dnsbl reputation`
#[derive(Debug, Args)]
pub struct DnsblReputation {
    /// The folder with the event log and the zone files `ip4` (ip4set) and `ip6` (ip6trie).
    #[arg(long, value_name = "PATH", value_hint = ValueHint::DirPath)]
    pub folder: PathBuf,
    /// Half-life of a score in seconds; default one day.
    #[arg(long, value_name = "SECONDS")]
    pub half_life: Option<u64>,
    /// Score at which an address is listed; default 5.
    #[arg(long, value_name = "SCORE")]
    pub threshold: Option<f64>,
    /// What to do.
    #[command(subcommand)]
    pub command: ReputationCommand,
}

/// The commands of `sluice dnsbl reputation`.
#[derive(Debug, Subcommand)]
pub enum ReputationCommand {
    /// Record an event: trust, harvest, spam or infected.
    Note {
        /// The address.
        address: IpAddr,
        /// The event.
        event: String,
    },
    /// Show the score of an address, and why. Exit status: 0 listed, 1 not listed, 2 an error.
    #[command(visible_alias = "why")]
    Standing {
        /// The address.
        address: IpAddr,
    },
    /// Delete all events of an address. Exit status: 0 deleted, 1 there were none, 2 an error.
    Forgive {
        /// The address.
        address: IpAddr,
    },
    /// Regenerate the zone files without decayed events.
    Forget,
}

/// `sluice dnsbl serve`
#[derive(Debug, Args)]
pub struct DnsblServe {
    /// Read options that are not given here from [dnsbl] in this configuration.
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub config: Option<PathBuf>,
    /// Listen on this address, UDP and TCP; repeatable.
    #[arg(short, long, value_name = "ADDRESS:PORT")]
    pub listen: Vec<SocketAddr>,
    /// A zone in rbldnsd's notation; repeatable. Types: ip4set, ip4trie, ip4tset, ip6trie, ip6tset, dnset, generic,
    /// combined, acl, and feed for plain lists.
    #[arg(short, long = "zone", value_name = "NAME:TYPE:FILE[,FILE]")]
    pub zones: Vec<::dnsbl::zone::Spec>,
    /// Check the files for changes every so many seconds; 0: only on SIGHUP. Default 60.
    #[arg(long, value_name = "SECONDS")]
    pub check: Option<u64>,
    /// Number of event loops; default one per core.
    #[arg(long, value_name = "NUMBER")]
    pub threads: Option<usize>,
    /// Serve metrics over HTTP on this address.
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub metrics: Option<SocketAddr>,
    /// Answer AAAA queries for half a /24 with a bitmap.
    #[arg(long)]
    pub aaaa: bool,
    /// Disable prefix answers.
    #[arg(long)]
    pub no_prefixes: bool,
    /// Allow zone transfers (AXFR) to these networks; repeatable.
    #[arg(long, value_name = "NETWORK")]
    pub transfer_to: Vec<edge::settings::Network>,
    /// Send NOTIFY to this secondary when a zone changes; repeatable.
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub notify: Vec<SocketAddr>,
    /// Switch to this user if started as root; default nobody.
    #[arg(long, value_name = "NAME")]
    pub user: Option<String>,
    /// Keep running as root.
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

/// The commands of `sluice intercept`.
#[derive(Debug, Subcommand)]
pub enum InterceptCommand {
    /// Print the rules for `nft -f`; the `ip` commands are in comments.
    Print,
    /// Install the rules, replacing those installed before.
    Install,
    /// Remove the rules: connections reach their servers directly again.
    Remove,
}

/// `sluice quarantine`
#[derive(Debug, Args)]
pub struct Quarantine {
    /// The configuration that names the quarantine folders.
    #[arg(short, long, value_name = "FILE", default_value = "/etc/sluice/sluice.toml", value_hint = ValueHint::FilePath)]
    pub config: PathBuf,
    /// Use this quarantine folder, and no configuration.
    #[arg(long, value_name = "PATH", value_hint = ValueHint::DirPath)]
    pub folder: Option<PathBuf>,
    /// What to do.
    #[command(subcommand)]
    pub command: QuarantineCommand,
}

/// The commands of `sluice quarantine`.
#[derive(Debug, Subcommand)]
pub enum QuarantineCommand {
    /// List messages: id, date, state, size, sender, recipients, first finding.
    List {
        /// Which messages; default all.
        #[command(flatten)]
        selection: Selection,
        /// Print one JSON object per message.
        #[arg(long)]
        json: bool,
    },
    /// Show a message: its metadata and its header.
    Show {
        /// The id.
        id: String,
        /// Print the metadata as JSON.
        #[arg(long, conflicts_with = "raw")]
        json: bool,
        /// Print the message as it was received.
        #[arg(long)]
        raw: bool,
    },
    /// Deliver messages to recipients that have not received them yet, with the original envelope and without another
    /// inspection. They stay in the quarantine, marked as released, until they are deleted or expire.
    Release {
        /// Which messages.
        #[command(flatten)]
        selection: Selection,
        /// Deliver to this next hop instead of the original one: smtp://HOST:PORT, lmtp:/PATH and so on.
        #[arg(long)]
        hop: Option<Forward>,
        /// Deliver again to recipients that have received them.
        #[arg(long)]
        again: bool,
    },
    /// Train a spam filter with messages, as configured in `[quarantine.train]`.
    Train {
        /// spam or ham.
        kind: Kind,
        /// Which messages.
        #[command(flatten)]
        selection: Selection,
        /// Print one JSON object per message.
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

/// Filters for quarantined messages; all must match.
#[derive(Debug, Args)]
pub struct Selection {
    /// Messages with these ids.
    #[arg(value_name = "ID")]
    pub ids: Vec<String>,
    /// Messages at least this old: 90s, 15m, 12h, 7d, 4w.
    #[arg(long, value_name = "TIME", value_parser = values::duration)]
    pub older: Option<Duration>,
    /// Messages younger than this.
    #[arg(long, value_name = "TIME", value_parser = values::duration)]
    pub newer: Option<Duration>,
    /// Messages whose sender contains this text; <> is the null sender.
    #[arg(long, value_name = "TEXT")]
    pub from: Option<String>,
    /// Messages with a recipient that contains this text.
    #[arg(long, value_name = "TEXT")]
    pub to: Option<String>,
    /// Messages with a finding that contains this text.
    #[arg(long, value_name = "TEXT")]
    pub found: Option<String>,
    /// Messages in this state.
    #[arg(long)]
    pub state: Option<Stage>,
}

/// `sluice log`
#[derive(Debug, Args)]
pub struct Log {
    /// The log; `-` is standard input.
    #[arg(default_value = "-", value_hint = ValueHint::FilePath)]
    pub file: PathBuf,
    /// The message with this id.
    #[arg(long)]
    pub id: Option<String>,
    /// Sender, recipients or client contain this text.
    #[arg(long, value_name = "TEXT")]
    pub address: Option<String>,
    /// The sender contains this text.
    #[arg(long, value_name = "TEXT")]
    pub from: Option<String>,
    /// The recipients contain this text.
    #[arg(long, value_name = "TEXT")]
    pub to: Option<String>,
    /// The action: pass, tag, blank, quarantine or reject.
    #[arg(long)]
    pub action: Option<String>,
    /// A finding contains this text.
    #[arg(long, value_name = "TEXT")]
    pub found: Option<String>,
    /// At or after this time (UTC), in full or abbreviated: 2026-11-21 or 2026-11-21T20:15.
    #[arg(long, value_name = "TIME")]
    pub since: Option<String>,
    /// Before this time.
    #[arg(long, value_name = "TIME")]
    pub until: Option<String>,
    /// Print the matching lines unchanged.
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
    /// Load signatures and print statistics: how many are loaded, how exactly they match, and which are not loaded and
    /// why.
    Info {
        /// Signature files, or folders of them.
        #[arg(required = true, value_name = "PATH", value_hint = ValueHint::AnyPath)]
        paths: Vec<PathBuf>,
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
        #[arg(required = true, value_name = "PATH", value_hint = ValueHint::AnyPath)]
        paths: Vec<PathBuf>,
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
        #[arg(required = true, value_name = "PATH", value_hint = ValueHint::AnyPath)]
        paths: Vec<PathBuf>,
        /// CA certificates for detached signatures (`.cvd.sign`).
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
    /// Replace freshclam: read folder, mirror and databases from this `freshclam.conf`.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub freshclam_conf: Option<PathBuf>,
    /// Also retry files that failed recently.
    #[arg(long)]
    pub force: bool,
    /// Download nothing; restore the previous signatures.
    #[arg(long)]
    pub rollback: bool,
}

/// `sluice top`
#[derive(Debug, Args)]
pub struct Top {
    /// The configuration with the metrics endpoint.
    #[arg(short, long, value_name = "FILE", default_value = "/etc/sluice/sluice.toml", value_hint = ValueHint::FilePath)]
    pub config: PathBuf,
    /// Use this metrics endpoint, and no configuration.
    #[arg(long, value_name = "IP:PORT")]
    pub metrics: Option<SocketAddr>,
    /// Refresh interval in seconds.
    #[arg(long, default_value_t = 2, value_name = "SECONDS")]
    pub every: u64,
    /// Number of pages; 0 means no limit.
    #[arg(long, default_value_t = 0)]
    pub count: u32,
}

/// `sluice rules`
#[derive(Debug, Args)]
pub struct Rules {
    /// What to do.
    #[command(subcommand)]
    pub command: RulesCommand,
}

/// What can be done with rules.
#[derive(Debug, Subcommand)]
pub enum RulesCommand {
    /// Read a configuration of SpamAssassin, count what it holds, and name what is wrong and what cannot hit.
    ///
    /// Of each folder the files that end in .pre are read, then of each those that end in .cf, in the order of their names.
    /// Where there is no .pre, the plugins are on that Debian's package loads. Exit status: 0 nothing is wrong, 1 something
    /// is, 2 an error.
    Lint(RulesLint),
}

/// `sluice rules lint`
#[derive(Debug, Args)]
pub struct RulesLint {
    /// Read this folder, repeatable: what stands in a later one overrides. Without it: the rules that sa-update has fetched
    /// or those of the package, and /etc/spamassassin.
    #[arg(long = "rules", value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub folders: Vec<PathBuf>,
    /// Name each rule that cannot hit, and what is noted besides errors.
    #[arg(long)]
    pub all: bool,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}

/// `sluice auth`
#[derive(Debug, Args)]
pub struct Auth {
    /// What to do.
    #[command(subcommand)]
    pub command: AuthCommand,
}

/// What can be done about authentication.
#[derive(Debug, Subcommand)]
pub enum AuthCommand {
    /// Check a mail as it came in, and print what Authentication-Results would say, a result a line.
    ///
    /// Exit status: 0 the author's domain has nothing against it, 1 DMARC has failed, 2 an error.
    Check(AuthCheck),
}

/// `sluice auth check`
#[derive(Debug, Args)]
pub struct AuthCheck {
    /// The mail; `-` for standard input. Lines may end with CRLF or with LF alone.
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub file: PathBuf,
    /// The address of the client that sent it. Without it, SPF is not checked.
    #[arg(long, value_name = "ADDRESS")]
    pub client: Option<IpAddr>,
    /// What the client called itself.
    #[arg(long, value_name = "NAME", default_value = "", hide_default_value = true)]
    pub helo: String,
    /// The envelope's sender; without it, the null sender.
    #[arg(long, value_name = "ADDRESS", default_value = "", hide_default_value = true)]
    pub from: String,
    /// Our own name, as results that we add have it.
    #[arg(long, value_name = "NAME", default_value = "localhost")]
    pub receiver: String,
    /// Ask this resolver, repeatable; without it, those of /etc/resolv.conf.
    #[arg(long = "resolver", value_name = "ADDRESS[:PORT]", value_parser = values::resolver)]
    pub resolvers: Vec<SocketAddr>,
    /// Ask nobody: answer from this zone file. A line is NAME TYPE DATA, with TTL and IN before TYPE if
    /// wanted, or NAME SERVFAIL.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, conflicts_with = "resolvers")]
    pub zone: Option<PathBuf>,
    /// Check as at this time, in seconds since 1970; without it, now.
    #[arg(long, value_name = "SECONDS")]
    pub time: Option<u64>,
    /// Take no longer than this for all questions; what is not answered then is a temporary error.
    #[arg(long, value_name = "SECONDS", default_value_t = 20)]
    pub timeout: u64,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}

/// `sluice store`
#[derive(Debug, Args)]
pub struct Store {
    /// What to do.
    #[command(subcommand)]
    pub command: StoreCommand,
}

/// What can be done with a mail store.
#[derive(Debug, Subcommand)]
pub enum StoreCommand {
    /// Make an empty store: a file that is allocated whole, or all of a block device.
    Create(StoreCreate),
    /// Print how full a store is.
    Stat(StoreStat),
    /// Read everything in a store and name what is damaged. Exit status: 0 nothing is, 1 something is, 2 an error.
    Check(StoreCheck),
    /// Deliver mails to accounts, each stored once. A line is printed for each recipient when the mail is on stable storage.
    ///
    /// Accounts that do not exist are added, with an INBOX. Exit status: 1 if a recipient was refused (over quota).
    Deliver(StoreDeliver),
    /// Import a Maildir, with its subfolders, or an mbox.
    Import(StoreImport),
    /// Export an account's mailboxes to Maildir folders or mbox files.
    Export(StoreExport),
    /// List accounts, an account's mailboxes, or a mailbox's messages.
    Ls(StoreList),
    /// Print a message.
    Cat(StoreCat),
    /// Run a mail server on a store: LMTP in, POP3 and IMAP out. Ends at SIGTERM.
    ///
    /// Addresses are IP:PORT or unix:/PATH. Whoever reaches the LMTP address may deliver to everybody; POP3 and IMAP are in
    /// the clear, and need a TLS listener of `sluice serve` in front of them.
    Serve(StoreServe),
}

/// `sluice store create`
#[derive(Debug, Args)]
pub struct StoreCreate {
    /// The file to make, or a block device: what is on it is lost.
    #[arg(value_hint = ValueHint::FilePath)]
    pub volume: PathBuf,
    /// How large the file becomes.
    #[arg(long, value_name = "SIZE", default_value = "1G", value_parser = values::size)]
    pub size: u64,
    /// How large a segment is, in which room is made: a multiple of 4K, 16K to 1G.
    #[arg(long, value_name = "SIZE", default_value = "16M", value_parser = values::size)]
    pub segment: u64,
}

/// `sluice store stat`
#[derive(Debug, Args)]
pub struct StoreStat {
    /// The store.
    #[arg(value_hint = ValueHint::FilePath)]
    pub volume: PathBuf,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}

/// `sluice store check`
#[derive(Debug, Args)]
pub struct StoreCheck {
    /// The store.
    #[arg(value_hint = ValueHint::FilePath)]
    pub volume: PathBuf,
    /// Pass over damaged transactions, which keep the store from being opened; mail programs then fetch all mailboxes anew.
    #[arg(long)]
    pub salvage: bool,
}

/// `sluice store deliver`
#[derive(Debug, Args)]
pub struct StoreDeliver {
    /// The store.
    #[arg(value_hint = ValueHint::FilePath)]
    pub volume: PathBuf,
    /// An account that gets it, repeatable.
    #[arg(long, value_name = "ACCOUNT", required = true)]
    pub to: Vec<String>,
    /// The mails; - for the standard input.
    #[arg(required = true, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub files: Vec<PathBuf>,
}

/// `sluice store import`
#[derive(Debug, Args)]
pub struct StoreImport {
    /// The store.
    #[arg(value_hint = ValueHint::FilePath)]
    pub volume: PathBuf,
    /// The account that gets the mails.
    #[arg(long)]
    pub account: String,
    /// The mailbox that gets them; without it, INBOX and the names of subfolders.
    #[arg(long)]
    pub mailbox: Option<String>,
    /// A Maildir or an mbox.
    #[arg(value_hint = ValueHint::AnyPath)]
    pub source: PathBuf,
}

/// `sluice store export`
#[derive(Debug, Args)]
pub struct StoreExport {
    /// The store.
    #[arg(value_hint = ValueHint::FilePath)]
    pub volume: PathBuf,
    /// The account.
    #[arg(long)]
    pub account: String,
    /// Only this mailbox.
    #[arg(long)]
    pub mailbox: Option<String>,
    /// What to write.
    #[arg(long, value_enum, default_value_t = MailboxFormat::Maildir)]
    pub format: MailboxFormat,
    /// The folder that gets the mailboxes.
    #[arg(value_hint = ValueHint::DirPath)]
    pub folder: PathBuf,
}

/// A form of mailboxes outside of the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum MailboxFormat {
    /// A file for each mail.
    Maildir,
    /// A file for each mailbox (mboxrd).
    Mbox,
}

/// `sluice store ls`
#[derive(Debug, Args)]
pub struct StoreList {
    /// The store.
    #[arg(value_hint = ValueHint::FilePath)]
    pub volume: PathBuf,
    /// The account.
    pub account: Option<String>,
    /// One of its mailboxes.
    pub mailbox: Option<String>,
}

/// `sluice store cat`
#[derive(Debug, Args)]
pub struct StoreCat {
    /// The store.
    #[arg(value_hint = ValueHint::FilePath)]
    pub volume: PathBuf,
    /// The account.
    pub account: String,
    /// Its mailbox.
    pub mailbox: String,
    /// The UID of the message.
    pub uid: u32,
}

/// `sluice store serve`
#[derive(Debug, Args)]
pub struct StoreServe {
    /// The store.
    #[arg(value_hint = ValueHint::FilePath)]
    pub volume: PathBuf,
    /// Take mail here by LMTP; repeatable, as the others.
    #[arg(long, value_name = "ADDRESS")]
    pub lmtp: Vec<Address>,
    /// Give it out here by POP3.
    #[arg(long, value_name = "ADDRESS")]
    pub pop3: Vec<Address>,
    /// Give it out here by IMAP.
    #[arg(long, value_name = "ADDRESS")]
    pub imap: Vec<Address>,
    /// Who may log in, see `sluice account`. If the file is not there it is made, with one account, whose password is
    /// printed. [default: VOLUME.accounts]
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub accounts: Option<PathBuf>,
    /// What the server calls itself. [default: the name of this machine]
    #[arg(long, value_name = "NAME")]
    pub hostname: Option<String>,
    /// The largest message.
    #[arg(long, value_name = "SIZE", default_value = "100M", value_parser = values::size)]
    pub message_bytes_max: u64,
    /// Sessions at the same time; who comes then waits.
    #[arg(long, value_name = "NUMBER", default_value = "4096", value_parser = sessions)]
    pub sessions_max: usize,
}

fn sessions(text: &str) -> Result<usize, String> {
    values::number(text).and_then(|count| match count {
        1..=1_000_000 => Ok(count),
        _ => Err("1 to 1,000,000".into()),
    })
}

/// `sluice account`
#[derive(Debug, Args)]
pub struct Account {
    /// The file with the accounts.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub accounts: PathBuf,
    /// What to do.
    #[command(subcommand)]
    pub command: AccountCommand,
}

/// What can be done with accounts.
#[derive(Debug, Subcommand)]
pub enum AccountCommand {
    /// Add an account. Its password is read from the standard input; on a terminal one is made and printed.
    Add(AccountAdd),
    /// Change a password, which is read as for `add`.
    Passwd {
        /// The account.
        name: String,
    },
    /// Remove an account. Its mail stays in the store.
    Remove {
        /// The account.
        name: String,
    },
    /// List all accounts, with quota and aliases.
    List,
}

/// `sluice account add`
#[derive(Debug, Args)]
pub struct AccountAdd {
    /// What it logs in by, and its address: with a domain, or without for all domains.
    pub name: String,
    /// Bytes of mail that it may have. [default: no bound]
    #[arg(long, value_name = "SIZE", default_value = "0", hide_default_value = true, value_parser = values::size)]
    pub quota: u64,
    /// Another address of it, repeatable; @DOMAIN is all of a domain.
    #[arg(long = "alias", value_name = "ADDRESS")]
    pub aliases: Vec<String>,
}

/// `sluice spam`
#[derive(Debug, Args)]
pub struct Spam {
    /// What to do.
    #[command(subcommand)]
    pub command: SpamCommand,
}

/// What can be done with mails.
#[derive(Debug, Subcommand)]
pub enum SpamCommand {
    /// Check mails: which rules hit, and the score that they add up to.
    ///
    /// Prints the report that `spamassassin -t` adds to a mail. Rules that ask the network do not run yet. Exit status: 0 no
    /// mail is spam, 1 one or more are, 2 an error.
    Check(SpamCheck),
}

/// `sluice spam check`
#[derive(Debug, Args)]
pub struct SpamCheck {
    /// The mails, a file each; - is the standard input.
    #[arg(required = true, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub files: Vec<PathBuf>,
    /// Print a JSON object for each mail, a line each.
    #[arg(long)]
    pub json: bool,
    /// Ask no network.
    #[arg(long)]
    pub local: bool,
    /// Show what each expression matched.
    #[arg(long)]
    pub matches: bool,
    /// Read the rules of this folder, repeatable: what stands in a later one overrides. Without it: the rules that sa-update
    /// has fetched or those of the package, and /etc/spamassassin.
    #[arg(long = "rules", value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub folders: Vec<PathBuf>,
}
