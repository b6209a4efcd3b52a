//! `sluice web`.

use std::net::IpAddr;
use std::path::PathBuf;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, Subcommand, ValueHint};
use rules::web::phrase::Dialect;

/// `sluice web`
#[derive(Debug, Args)]
pub struct Web {
    /// Subcommand.
    #[command(subcommand)]
    pub command: WebCommand,
}

/// Subcommands about lists of a web filter.
#[derive(Debug, Subcommand)]
pub enum WebCommand {
    /// Check pages: their score by the phrases of a group, and what the group would do with them.
    ///
    /// The configuration is that of E2Guardian 5, DansGuardian 2 or squidGuard, as it stands. Exit status: 0 no page is blocked, 1 one or more
    /// are, 2 an error.
    Check(WebCheck),
    /// Read a configuration, count what it holds, and name the lines that are not understood or can never match.
    ///
    /// Notes name lines that mean another thing than they seem to. Exit status: 0 there is no error or only notes, 1 a line is wrong,
    /// 2 the configuration cannot be read.
    Lint(WebLint),
    /// The authority by which doors with `https = "inspect"` show certificates of their own.
    #[command(subcommand)]
    Ca(WebCa),
}

/// `sluice web ca`
#[derive(Debug, Subcommand)]
pub enum WebCa {
    /// Make an authority: its certificate and its key, in one file that nobody else may read.
    ///
    /// A file that is there stays. Whoever has the key can pass for any site before clients that trust the authority.
    Create(WebCaCreate),
    /// Print the certificate of an authority, without its key, for clients that are to trust it.
    Export(WebCaExport),
}

/// `sluice web ca create`
#[derive(Debug, Args)]
pub struct WebCaCreate {
    /// Write to this file, which `[tls] signing_authority` names.
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath, default_value = "/etc/sluice/web-authority.pem")]
    pub file: PathBuf,
    /// The name of the authority, shown in the details of certificates.
    #[arg(long, value_name = "NAME", default_value = "Sluice web gateway")]
    pub name: String,
    /// Validity in days.
    #[arg(long, value_name = "DAYS", default_value_t = 1_825, value_parser = clap::value_parser!(u32).range(1..=7_300))]
    pub days: u32,
}

/// `sluice web ca export`
#[derive(Debug, Args)]
pub struct WebCaExport {
    /// Read this file.
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath, default_value = "/etc/sluice/web-authority.pem")]
    pub file: PathBuf,
    /// Print DER in place of PEM.
    #[arg(long)]
    pub der: bool,
}

/// The dialects, by their names.
fn dialects() -> impl TypedValueParser<Value = Dialect> {
    let known = PossibleValuesParser::new(Dialect::ALL.map(Dialect::name));
    known.map(|name| Dialect::of_name(&name).unwrap_or_default())
}

/// `sluice web check`
#[derive(Debug, Args)]
pub struct WebCheck {
    /// The pages, as servers send them after decoding; `-` for standard input. Without any, the URL is checked alone.
    #[arg(required_unless_present = "url", value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub files: Vec<PathBuf>,
    /// Read the configuration of this folder: e2guardian.conf, dansguardian.conf or squidGuard.conf; or the one that `[web]` in this
    /// configuration of Sluice names.
    #[arg(short, long, value_name = "DIR|FILE", value_hint = ValueHint::AnyPath, default_value = "/etc/e2guardian")]
    pub config: PathBuf,
    /// Check by this filter group.
    #[arg(long, value_name = "NUMBER", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    pub group: u32,
    /// Check by the group of this user.
    #[arg(long, value_name = "NAME", conflicts_with = "group")]
    pub user: Option<String>,
    /// Check by the group of a client with this address.
    #[arg(long, value_name = "ADDRESS", conflicts_with = "group")]
    pub client: Option<IpAddr>,
    /// The URL that the pages come from: lists of sites and URLs count, too. `HOST:PORT` is a tunnel.
    #[arg(long, value_name = "URL", value_hint = ValueHint::Url)]
    pub url: Option<String>,
    /// The type that the server says; without it, pages are text.
    #[arg(long = "type", value_name = "MIME")]
    pub content_type: Option<String>,
    /// Read lists as this program does. The default is that of `[web]`, if a configuration of Sluice is named, else e2guardian-5.3.5.
    #[arg(long, value_name = "NAME", value_parser = dialects())]
    pub dialect: Option<Dialect>,
    /// Print a JSON object a line.
    #[arg(long)]
    pub json: bool,
}

/// `sluice web lint`
#[derive(Debug, Args)]
pub struct WebLint {
    /// Read the configuration of this folder: e2guardian.conf, dansguardian.conf or squidGuard.conf.
    #[arg(value_name = "DIR", value_hint = ValueHint::DirPath, required_unless_present = "config")]
    pub folder: Option<PathBuf>,
    /// The same, as other commands name it; or the one that `[web]` in this configuration of Sluice names.
    #[arg(short, long, value_name = "DIR|FILE", value_hint = ValueHint::AnyPath, conflicts_with = "folder")]
    pub config: Option<PathBuf>,
    /// Read lists as this program does. The default is that of `[web]`, if a configuration of Sluice is named, else sluice.
    #[arg(long, value_name = "NAME", value_parser = dialects())]
    pub dialect: Option<Dialect>,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}
