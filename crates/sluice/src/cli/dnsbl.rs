//! `sluice dnsbl`.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

use clap::{Args, Subcommand, ValueHint};

/// `sluice dnsbl`
#[derive(Debug, Args)]
pub struct Dnsbl {
    /// Subcommand.
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
    /// Name of the list: lower-case letters, digits, dots, hyphens and underscores.
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
    /// Seconds after which this version expires unless a newer one is published.
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
    /// Subcommand.
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
    #[arg(short, long = "zone", value_name = "NAME:TYPE:FILE[,FILE]", required_unless_present = "config")]
    pub zones: Vec<::dnsbl::zone::Spec>,
    /// The zones of this configuration (`[dnsbl]`).
    #[arg(short, long, value_name = "FILE", conflicts_with = "zones", value_hint = ValueHint::FilePath)]
    pub config: Option<PathBuf>,
}

/// `sluice dnsbl why`
#[derive(Debug, Args)]
pub struct DnsblWhy {
    /// An address, or a name.
    pub what: String,
    /// A zone; repeatable.
    #[arg(short, long = "zone", value_name = "NAME:TYPE:FILE[,FILE]", required_unless_present = "config")]
    pub zones: Vec<::dnsbl::zone::Spec>,
    /// The zones of this configuration (`[dnsbl]`).
    #[arg(short, long, value_name = "FILE", conflicts_with = "zones", value_hint = ValueHint::FilePath)]
    pub config: Option<PathBuf>,
}
