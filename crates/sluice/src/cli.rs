//! The command line. The man page and the completions are made from what stands here.

mod admin;
mod cluster;
mod config;
mod database;
mod dkim;
mod dmarc;
mod dnsbl;
mod domain;
mod ids;
mod learn;
mod migrate;
mod on_access;
pub mod pua;
mod quarantine;
mod queue;
mod scan;
mod sieve;
mod store;
pub mod values;
mod web;

use std::ffi::OsString;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueHint};

pub use self::admin::{Admin, AdminCommand, AdminPerson, AdminServe, AdminToken, PersonCommand, Role, TokenCommand};
pub use self::cluster::{Cluster, ClusterCommand};
pub use self::config::{ConfigCommand, ConfigShow};
pub use self::database::{Database, DatabaseArgs, DatabaseCommand, Update};
pub use self::dkim::{Dkim, DkimCommand};
pub use self::dmarc::{Dmarc, DmarcCommand};
pub use self::dnsbl::{
    Dnsbl, DnsblCheck, DnsblCommand, DnsblFetch, DnsblPublish, DnsblReputation, DnsblServe, DnsblWhy, ReputationCommand,
};
pub use self::domain::{Domain, DomainCommand};
pub use self::ids::{Ids, IdsCheck, IdsCommand, IdsExplain, IdsLint, IdsRules, IdsSniff};
pub use self::learn::{Learn, LearnCommand, LearnMails};
pub use self::migrate::{MigrateCommand, MigratePostfix};
pub use self::on_access::{Mount, MountInfected, MountMode, MountRescan, OnAccess, OnAccessLog, OnDoubt, Watch};
pub use self::quarantine::{Quarantine, QuarantineCommand, Selection};
pub use self::queue::{Queue, QueueCommand, QueueSelect, QueueSuppress, SuppressCommand, seconds};
pub use self::scan::{Scan, ScanChoice, ScanKeep, ScanLook, ScanOutput};
pub use self::sieve::{Sieve, SieveCheck, SieveCommand, SieveScript, SieveTest, SieveUser};
pub use self::store::{
    Account, AccountCommand, AppPasswordCommand, MailCommand, MailboxFormat, Recall, Store, StoreAcl, StoreCat,
    StoreCheck, StoreCommand, StoreCreate, StoreDeliver, StoreExport, StoreImport, StoreList, StorePlace, StoreServe,
    StoreStat, Who,
};
pub use self::web::{Web, WebCa, WebCaCreate, WebCaExport, WebCheck, WebCommand, WebLint};

/// The configuration of all commands, unless another is named.
pub const CONFIG: &str = "/etc/sluice/sluice.toml";

/// A security gateway for mail and web, and a mail server.
///
/// Sluice inspects every byte of mail and web traffic while it flows (MIME, archives, signatures, rules), and passes on what is clean.
/// As a mail server it keeps mailboxes, and sends mail through a queue.
#[derive(Debug, Parser)]
#[command(name = "sluice", version, about, max_term_width = 100, arg = values::config())]
pub struct Cli {
    /// Subcommand.
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
    /// it accepts mail for me@example.org on 127.0.0.1:2525, keeps it in ./store, and gives it out by IMAP on 127.0.0.1:2143
    /// and in a browser on 127.0.0.1:2080 for a password that it prints, and has the administrator's page on 127.0.0.1:2082 for a
    /// link that it prints; if started as root, it switches to the user nobody.
    Serve(Serve),
    /// Have a running gateway reload its configuration and signatures, and wait for the outcome.
    ///
    /// Settings that a running process cannot change (folders that it may not reach, threads, the log, the store) are
    /// applied by a new process in its place; sessions in progress go on in the old one. Exit status: 0 reloaded, 2
    /// not reloaded, with the reason: the old configuration stays in force.
    Reload(Reload),
    /// Scan files and folders for viruses.
    ///
    /// Prints `PATH: NAME FOUND` or `PATH: OK` for each file, sorted by name, and a summary. The options are those of
    /// clamscan; clamscan options that have no meaning here are ignored. Exit status: 0 nothing found, 1 something found,
    /// 2 an error.
    Scan(Box<Scan>),
    /// Mount a folder so that nothing infected is read from it or written to it.
    ///
    /// Everything else is as in the folder itself. Written content reaches the folder once it has been inspected and
    /// is clean; reading or writing infected content is an error, and nothing of it is stored. Needs root and
    /// /dev/fuse. Runs in the foreground; SIGTERM, SIGINT or `umount` ends it, SIGHUP loads signatures that have
    /// changed, which it also does by itself. Exit status: 0 unmounted, 2 an error.
    Mount(Box<Mount>),
    /// Watch folders so that nothing infected is opened or run.
    ///
    /// The kernel asks before it opens a file, and refuses an infected one (EPERM). A file that was written is
    /// inspected when it is closed. Needs root and a kernel with fanotify. Runs in the foreground; SIGHUP loads
    /// signatures that have changed, which it also does by itself; SIGTERM or SIGINT ends it, and then files are
    /// opened without inspection. Exit status: 0 ended, 2 an error.
    Watch(Box<Watch>),
    /// Show how the engine parses a file: the tree of objects, their types, sizes and findings, and the time spent.
    Explain(Explain),
    /// Check a configuration and the signatures that it loads.
    Check(Check),
    /// Show a configuration.
    Config {
        /// Subcommand.
        #[command(subcommand)]
        command: ConfigCommand,
    },
    /// Manage the nftables rules that redirect connections to transparent listeners.
    ///
    /// The rules are in an nftables table of their own; TPROXY also needs a routing rule and a routing table. Exit status:
    /// 0 done, 2 an error.
    Intercept(Intercept),
    /// List, show, release or delete quarantined messages.
    ///
    /// Exit status: 0 done, 1 some messages failed or none matched, 2 an error.
    Quarantine(Quarantine),
    /// Make, list and rotate the DKIM keys that sign outgoing mail.
    ///
    /// Exit status: 0 done, 2 an error.
    Dkim(Dkim),
    /// Read reports that other sites send about the mail of a domain.
    ///
    /// Exit status: 0 done, 2 a file has no report, or more than is read.
    Dmarc(Dmarc),
    /// Print and check the records that the DNS has to have for a domain whose mail is here.
    ///
    /// Exit status: 0 done, and all records are right; 1 some are missing or wrong, or the DNS did not answer; 2 an
    /// error.
    Domain(Domain),
    /// Translate the configuration of another program.
    Migrate {
        /// Format to read.
        #[command(subcommand)]
        command: MigrateCommand,
    },
    /// Take a mail from standard input, as cron, PHP, mutt and git hand it to sendmail.
    ///
    /// The mail waits in the maildrop of the configuration until a server takes it in, which one need not run. A link of the name sendmail,
    /// mailq or newaliases to this program does the same. Options: -t recipients from the header, -i dots are kept, -f SENDER, -F NAME,
    /// -N NOTIFY, -R full|hdrs, -V ENVID, -C CONFIG, -bp list the queue, -q try what waits; others are ignored. Exit statuses are
    /// those of sysexits: 0 the mail is on stable storage, 64 usage, 65 data, 69 no maildrop, 75 try again later, 77 permission.
    #[command(disable_help_flag = true)]
    Sendmail {
        /// Options of sendmail, and recipients.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<OsString>,
    },
    /// List, retry, hold, release, delete or bounce queued mail.
    ///
    /// A running server does it; without one, the queue can only be listed. Exit status: 0 done, 1 no mail matches, 2
    /// an error.
    Queue(Queue),
    /// Show the machines that share a store, and move the store between them.
    ///
    /// Exit status: 0 done, 1 something is wrong, 2 an error.
    Cluster(Cluster),
    /// Search the message log.
    ///
    /// Reads the log in either format, or the output of `journalctl -u sluice -o cat` or `-o json --all`.
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
    /// Reads the metrics endpoint in `[metrics]`. In a pipe, pages are printed one after the other. `q` or Ctrl-C ends it.
    Top(Top),
    /// Look up recipients, and show which table answers.
    Recipients {
        /// Subcommand.
        #[command(subcommand)]
        command: RecipientsCommand,
    },
    /// Print what a table of `[[lookup]]` has for addresses or names: its rows, a line each.
    ///
    /// Exit status: 0 all were found, 1 some were not, 2 the table cannot be asked, or another error.
    Lookup(Lookup),
    /// Serve DNS block lists (DNSBL) from rbldnsd zone files, or query the files.
    Dnsbl(Dnsbl),
    /// Check SpamAssassin's rules: count those loaded, and print the errors.
    Rules(Rules),
    /// Authenticate a mail: SPF, DKIM, DMARC and ARC.
    Auth(Auth),
    /// Manage a mail store: create, inspect and check it, import and export mail.
    Store(Store),
    /// Manage the accounts of a mail server: add, change and remove them.
    Account(Account),
    /// Manage users' Sieve filters: check them, test them on a mail, and store them.
    Sieve(Sieve),
    /// Find a mail in all mailboxes of a store, and remove it.
    Mail {
        /// Subcommand.
        #[command(subcommand)]
        command: MailCommand,
    },
    /// Print the mailboxes of a store that have a mail, by its Message-ID: account, mailbox and UID, a line each.
    ///
    /// Asks the server that has the store open, or opens the store. The headers of all mails are read. Exit status: 0
    /// found, 1 not found, 2 an error.
    Who(Who),
    /// Remove a mail from all mailboxes of a store, in one transaction, by its Message-ID.
    ///
    /// Without --yes, only print the places that have it. Each recall is recorded in STORE.audit. Exit status as of
    /// who.
    Recall(Recall),
    /// Check mails with SpamAssassin's rules.
    Spam(Spam),
    /// Check pages with the lists of E2Guardian or DansGuardian, and check those lists.
    Web(Web),
    /// Check intrusion rules of Suricata and Snort: count them, explain them, test them on captures.
    Ids(Ids),
    /// Serve the administrator's page in a browser, and manage its people and tokens.
    Admin(Admin),
    /// Train the spam filter with mails, and manage what it has learned.
    ///
    /// Words are those of SpamAssassin's Bayes, and so are the settings (`bayes_...`): what sa-learn has learned can be
    /// imported. Exit status: 0 done, 1 some mails could not be read, 2 an error.
    Learn(Learn),
    /// Print the man page, or write the man pages of all commands to a folder.
    Man {
        /// The folder; without it, the main page is printed.
        #[arg(value_hint = ValueHint::DirPath)]
        folder: Option<PathBuf>,
    },
    /// Print shell completions.
    Completions {
        /// Shell to write completions for.
        shell: clap_complete::Shell,
    },
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

/// `sluice reload`
#[derive(Debug, Args)]
pub struct Reload {
    /// The first process of the service. Without it: the one that systemd names in MAINPID, else the only one that runs.
    #[arg(long, value_name = "PID")]
    pub pid: Option<u32>,
    /// Wait no longer than this for the outcome.
    #[arg(long, value_name = "SECONDS", default_value_t = 600)]
    pub timeout: u64,
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
    /// The configuration. [default: /etc/sluice/sluice.toml]
    #[arg(value_name = "CONFIG", value_hint = ValueHint::FilePath)]
    pub file: Option<PathBuf>,
    /// The configuration, as other commands name it.
    #[arg(short, long, value_name = "FILE", conflicts_with = "file", default_value = CONFIG, value_hint = ValueHint::FilePath)]
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
    /// Do not load the signatures, which may take the better part of a minute.
    #[arg(long)]
    pub no_signatures: bool,
    /// Print warnings and errors only.
    #[arg(short, long)]
    pub quiet: bool,
}

/// Subcommands about tables of recipients.
#[derive(Debug, Subcommand)]
pub enum RecipientsCommand {
    /// Look up addresses as a listener would at RCPT: print its reply, and the table and line that decide.
    ///
    /// Servers are asked where `call_ahead` says so. Exit status: 0 all are taken, 1 some are not, 2 an error.
    Check(RecipientsCheck),
}

/// `sluice recipients check`
#[derive(Debug, Args)]
pub struct RecipientsCheck {
    /// The configuration.
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath, default_value = CONFIG)]
    pub config: PathBuf,
    /// Print one JSON object a line, for each address and listener.
    #[arg(long)]
    pub json: bool,
    /// Addresses to look up.
    #[arg(value_name = "ADDRESS", required = true)]
    pub addresses: Vec<String>,
}

/// `sluice lookup`
#[derive(Debug, Args)]
pub struct Lookup {
    /// The configuration.
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath, default_value = CONFIG)]
    pub config: PathBuf,
    /// The table.
    pub name: String,
    /// Keys to look up.
    #[arg(value_name = "ADDRESS", required = true)]
    pub keys: Vec<String>,
}

/// `sluice intercept`
#[derive(Debug, Args)]
pub struct Intercept {
    /// The configuration.
    #[arg(short, long, global = true, value_name = "FILE", default_value = CONFIG, value_hint = ValueHint::FilePath)]
    pub config: PathBuf,
    /// Subcommand.
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

/// `sluice log`
#[derive(Debug, Args)]
pub struct Log {
    /// The log; `-` is standard input.
    #[arg(default_value = "-", value_hint = ValueHint::FilePath)]
    pub file: PathBuf,
    /// The message with this id.
    #[arg(long)]
    pub id: Option<String>,
    /// The Message-ID contains this text.
    #[arg(long, value_name = "TEXT")]
    pub message_id: Option<String>,
    /// Only mail that the spam rules take for spam.
    #[arg(long)]
    pub spam: bool,
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

/// `sluice top`
#[derive(Debug, Args)]
pub struct Top {
    /// The configuration with the metrics endpoint.
    #[arg(short, long, value_name = "FILE", default_value = CONFIG, value_hint = ValueHint::FilePath)]
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
    /// Print the metrics of each page as one JSON object per line.
    #[arg(long)]
    pub json: bool,
}

/// `sluice rules`
#[derive(Debug, Args)]
pub struct Rules {
    /// Subcommand.
    #[command(subcommand)]
    pub command: RulesCommand,
}

/// Subcommands about rules.
#[derive(Debug, Subcommand)]
pub enum RulesCommand {
    /// Read a configuration of SpamAssassin, count its rules, and print errors and rules that cannot hit.
    ///
    /// Of each folder the files that end in .pre are read, then of each those that end in .cf, in the order of their names.
    /// Where there is no .pre, the plugins are on that Debian's package loads. Exit status: 0 nothing is wrong, 1 something
    /// is, 2 an error.
    Lint(RulesLint),
}

/// `sluice rules lint`
#[derive(Debug, Args)]
pub struct RulesLint {
    /// Read the rules of this configuration (`rules` in `[spam]`), those of `[spam.reputation]` and `[spam.fuzzy]` too.
    #[arg(short, long, value_name = "FILE", conflicts_with = "folders", value_hint = ValueHint::FilePath)]
    pub config: Option<PathBuf>,
    /// Read this folder, repeatable; later folders override earlier ones. Without it: the rules that sa-update has
    /// fetched or those of the package, /etc/spamassassin, and /etc/sluice/spam.
    #[arg(long = "rules", value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub folders: Vec<PathBuf>,
    /// Name each rule that cannot hit, and print notes besides errors.
    #[arg(long)]
    pub all: bool,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}

/// `sluice auth`
#[derive(Debug, Args)]
pub struct Auth {
    /// Subcommand.
    #[command(subcommand)]
    pub command: AuthCommand,
}

/// Subcommands about authentication.
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
    /// Ask the resolvers of this configuration (`[dns]`), unless others are given.
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub config: Option<PathBuf>,
    /// The mail; `-` for standard input. Lines may end with CRLF or with LF alone.
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub file: PathBuf,
    /// The address of the client that sent it. Without it, SPF is not checked.
    #[arg(long, value_name = "ADDRESS")]
    pub client: Option<IpAddr>,
    /// Name in the client's HELO or EHLO.
    #[arg(long, value_name = "NAME", default_value = "", hide_default_value = true)]
    pub helo: String,
    /// The envelope's sender; without it, the null sender.
    #[arg(long, value_name = "ADDRESS", default_value = "", hide_default_value = true)]
    pub from: String,
    /// The receiver's name in the results.
    #[arg(long, value_name = "NAME", default_value = "localhost")]
    pub receiver: String,
    /// Ask this resolver, repeatable; without it, those of /etc/resolv.conf.
    #[arg(long = "resolver", value_name = "ADDRESS[:PORT]", value_parser = values::resolver)]
    pub resolvers: Vec<SocketAddr>,
    /// Answer look-ups from this zone file. A line is NAME TYPE DATA, with TTL and IN before TYPE if wanted, or NAME
    /// SERVFAIL.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, conflicts_with = "resolvers")]
    pub zone: Option<PathBuf>,
    /// Check as at this time, in seconds since 1970; without it, now.
    #[arg(long, value_name = "SECONDS")]
    pub time: Option<u64>,
    /// Timeout of all look-ups; unanswered ones are temporary errors.
    #[arg(long, value_name = "SECONDS", default_value_t = 20)]
    pub timeout: u64,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}

/// `sluice spam`
#[derive(Debug, Args)]
pub struct Spam {
    /// Subcommand.
    #[command(subcommand)]
    pub command: SpamCommand,
}

/// Subcommands about mails.
#[derive(Debug, Subcommand)]
pub enum SpamCommand {
    /// Check mails: which rules hit, and the score that they add up to.
    ///
    /// Prints the report that `spamassassin -t` adds to a mail. Exit status: 0 no mail is spam, 1 one or more are, 2 an error.
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
    /// Query no network: network rules do not run, and the scores are those without them.
    #[arg(long)]
    pub local: bool,
    /// Ask this resolver, repeatable; without it, those of /etc/resolv.conf.
    #[arg(long = "resolver", value_name = "ADDRESS[:PORT]", value_parser = values::resolver, conflicts_with = "local")]
    pub resolvers: Vec<SocketAddr>,
    /// Answer look-ups from this zone file. A line is NAME TYPE DATA, with TTL and IN before TYPE if wanted, or NAME
    /// SERVFAIL.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, conflicts_with_all = ["resolvers", "local"])]
    pub zone: Option<PathBuf>,
    /// Timeout of all look-ups for one mail; an unanswered list counts as not listing.
    #[arg(long, value_name = "SECONDS", default_value_t = 15)]
    pub timeout: u64,
    /// Check as the server of this configuration does, with its rules, ledger, resolvers and required score (`[spam]`, `[dns]`), but
    /// for what other options say.
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub config: Option<PathBuf>,
    /// Use the ledger of sluice learn in this folder.
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub ledger: Option<PathBuf>,
    /// Use the lessons of this user; without it, those of the site.
    #[arg(long, value_name = "USER", default_value = "", hide_default_value = true)]
    pub user: String,
    /// Note in the ledger what the sender of each mail is known for, as a door does (use_txrep in the rules).
    #[arg(long)]
    pub note: bool,
    /// Apply this file of preferences (user_prefs); its errors are printed with file and line.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub prefs: Option<PathBuf>,
    /// Show what each expression matched.
    #[arg(long)]
    pub matches: bool,
    /// Read the rules of this folder, repeatable; later folders override earlier ones. Without it: the rules that sa-
    /// update has fetched or those of the package, /etc/spamassassin, and /etc/sluice/spam.
    #[arg(long = "rules", value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub folders: Vec<PathBuf>,
}
