//! `sluice store` and `sluice account`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, Subcommand, ValueHint};
use edge::settings::Address;

use super::CONFIG;
use crate::cli::values;

/// `sluice store`
#[derive(Debug, Args)]
pub struct Store {
    /// Subcommand.
    #[command(subcommand)]
    pub command: StoreCommand,
}

/// Subcommands about a mail store.
#[derive(Debug, Subcommand)]
pub enum StoreCommand {
    /// Make an empty store: a file that is allocated whole, or all of a block device.
    Create(StoreCreate),
    /// Print how full a store is.
    Stat(StoreStat),
    /// Read all of a store and print what is damaged. Exit status: 0 undamaged, 1 damaged, 2 an error.
    Check(StoreCheck),
    /// Deliver mails to accounts, each stored once. A line is printed for each recipient when the mail is on stable storage.
    ///
    /// Accounts that do not exist are added, with an INBOX. Exit status: 1 if a recipient was refused (over quota).
    #[command(override_usage = "sluice store deliver [OPTIONS] --to <ACCOUNT> [VOLUME] <FILE>...")]
    Deliver(StoreDeliver),
    /// Import a Maildir, with its subfolders, or an mbox.
    #[command(override_usage = "sluice store import [OPTIONS] --account <ACCOUNT> [VOLUME] <SOURCE>")]
    Import(StoreImport),
    /// Export mailboxes to Maildir folders or mbox files, also while a server has the store open: a backup.
    ///
    /// Each account is exported as it is at one moment; mails that are removed meanwhile may be missing. A damaged mail is named and
    /// left out. Exit status: 0 all is there, 1 some mails are damaged, 2 an error.
    #[command(override_usage = "sluice store export [OPTIONS] [VOLUME] <FOLDER>")]
    Export(StoreExport),
    /// List accounts, an account's mailboxes, or a mailbox's messages.
    #[command(override_usage = "sluice store ls [OPTIONS] [VOLUME] [ACCOUNT [MAILBOX]]")]
    Ls(StoreList),
    /// Print a message.
    #[command(override_usage = "sluice store cat [OPTIONS] [VOLUME] <ACCOUNT> <MAILBOX> <UID>")]
    Cat(StoreCat),
    /// Print or change the access list of a mailbox (RFC 4314): without WHO, print it, a line for each entry.
    ///
    /// A server that has the store open does it. Rights: l see it, r read, s \Seen, w other flags, i add messages, p
    /// post, k make mailboxes below, x remove or rename, t \Deleted, e expunge, a change rights.
    #[command(override_usage = "sluice store acl [OPTIONS] [VOLUME] <ACCOUNT> <MAILBOX> [<WHO> <RIGHTS>]")]
    Acl(StoreAcl),
    /// Run a mail server on a store: LMTP in, POP3 and IMAP out. Ends at SIGTERM.
    ///
    /// Addresses are IP:PORT or unix:/PATH. LMTP accepts mail for all accounts from any client; POP3 and IMAP are in
    /// the clear, and need a TLS listener of `sluice serve` in front of them.
    Serve(StoreServe),
}

/// `sluice store acl`
#[derive(Debug, Args)]
pub struct StoreAcl {
    /// Where the store is, if it is not named first.
    #[command(flatten)]
    pub place: StorePlace,
    /// ACCOUNT and MAILBOX; to change its list also WHO, which is an account or `anyone`, with a `-` in front to deny
    /// the rights, and RIGHTS: letters, with `+` or `-` in front to add them or to take them away. An empty text
    /// takes all away.
    #[arg(required = true, allow_hyphen_values = true, value_name = "WORD")]
    pub words: Vec<OsString>,
}

/// `sluice store create`
#[derive(Debug, Args)]
pub struct StoreCreate {
    /// The file to create, or a block device, whose content is lost.
    #[arg(value_hint = ValueHint::FilePath)]
    pub volume: PathBuf,
    /// The size of the file.
    #[arg(long, value_name = "SIZE", default_value = "1G", value_parser = values::size)]
    pub size: u64,
    /// The size of a segment: a multiple of 4K, 16K to 1G. Default: 16M, and less for a store below 256M.
    #[arg(long, value_name = "SIZE", value_parser = values::size)]
    pub segment: Option<u64>,
}

/// `sluice store stat`
#[derive(Debug, Args)]
pub struct StoreStat {
    /// Where the store is, if it is not named first.
    #[command(flatten)]
    pub place: StorePlace,
    /// The store.
    #[arg(conflicts_with = "store", value_hint = ValueHint::FilePath)]
    pub volume: Option<PathBuf>,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}

/// `sluice store check`
#[derive(Debug, Args)]
pub struct StoreCheck {
    /// Where the store is, if it is not named first.
    #[command(flatten)]
    pub place: StorePlace,
    /// The store.
    #[arg(conflicts_with = "store", value_hint = ValueHint::FilePath)]
    pub volume: Option<PathBuf>,
    /// Pass over damaged transactions, which keep the store from being opened; mail programs then fetch all mailboxes anew.
    #[arg(long)]
    pub salvage: bool,
}

/// `sluice store deliver`
#[derive(Debug, Args)]
pub struct StoreDeliver {
    /// Where the store is, if it is not named first.
    #[command(flatten)]
    pub place: StorePlace,
    /// An account that gets it, repeatable.
    #[arg(long, value_name = "ACCOUNT", required = true)]
    pub to: Vec<String>,
    /// The mails, - for the standard input; the store may stand in front of them.
    #[arg(required = true, value_name = "WORD", value_hint = ValueHint::FilePath)]
    pub words: Vec<OsString>,
}

/// `sluice store import`
#[derive(Debug, Args)]
pub struct StoreImport {
    /// Where the store is, if it is not named first.
    #[command(flatten)]
    pub place: StorePlace,
    /// The account that gets the mails.
    #[arg(long)]
    pub account: String,
    /// The mailbox that gets them; without it, INBOX and the names of subfolders.
    #[arg(long)]
    pub mailbox: Option<String>,
    /// A Maildir or an mbox; the store may stand in front of it.
    #[arg(required = true, value_name = "WORD", value_hint = ValueHint::AnyPath)]
    pub words: Vec<OsString>,
}

/// `sluice store export`
#[derive(Debug, Args)]
pub struct StoreExport {
    /// Where the store is, if it is not named first.
    #[command(flatten)]
    pub place: StorePlace,
    /// The account. Without it all accounts are exported, each to a folder of its own.
    #[arg(long)]
    pub account: Option<String>,
    /// Only this mailbox.
    #[arg(long, requires = "account")]
    pub mailbox: Option<String>,
    /// Format to write.
    #[arg(long, value_enum, default_value_t = MailboxFormat::Maildir)]
    pub format: MailboxFormat,
    /// Bring the folder of an earlier run up to date: mails that are there are not written again, their flags are those of now, and
    /// mails that were removed since are removed there, too.
    #[arg(long)]
    pub incremental: bool,
    /// The folder that gets the mailboxes; the store may stand in front of it.
    #[arg(required = true, value_name = "WORD", value_hint = ValueHint::DirPath)]
    pub words: Vec<OsString>,
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
    /// Where the store is, if it is not named first.
    #[command(flatten)]
    pub place: StorePlace,
    /// An account, and one of its mailboxes; the store may stand in front of them.
    #[arg(value_name = "WORD")]
    pub words: Vec<OsString>,
    /// Print a JSON object for each line.
    #[arg(long)]
    pub json: bool,
}

/// `sluice store cat`
#[derive(Debug, Args)]
pub struct StoreCat {
    /// Where the store is, if it is not named first.
    #[command(flatten)]
    pub place: StorePlace,
    /// The account, its mailbox, and the UID of the message; the store may stand in front of them.
    #[arg(required = true, value_name = "WORD")]
    pub words: Vec<OsString>,
}

/// `sluice store serve`
#[derive(Debug, Args)]
pub struct StoreServe {
    /// The store.
    #[arg(value_hint = ValueHint::FilePath)]
    pub volume: PathBuf,
    /// Listen here for LMTP; repeatable, as the others.
    #[arg(long, value_name = "ADDRESS")]
    pub lmtp: Vec<Address>,
    /// Listen here for POP3.
    #[arg(long, value_name = "ADDRESS")]
    pub pop3: Vec<Address>,
    /// Listen here for IMAP.
    #[arg(long, value_name = "ADDRESS")]
    pub imap: Vec<Address>,
    /// Listen here for ManageSieve.
    #[arg(long, value_name = "ADDRESS")]
    pub sieve: Vec<Address>,
    /// Listen here for the webmail, by HTTP.
    #[arg(long, value_name = "ADDRESS")]
    pub webmail: Vec<Address>,
    /// Accounts that may log in, see `sluice account`. If the file is not there it is made, with one account, whose
    /// password is printed. [default: VOLUME.accounts]
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub accounts: Option<PathBuf>,
    /// Hostname of the server. [default: the name of this machine]
    #[arg(long, value_name = "NAME")]
    pub hostname: Option<String>,
    /// Next hop of mail that users write in the webmail, that their scripts redirect, and of answers: mx for the mail
    /// servers of the recipients, or smtp://HOST:PORT. Without it, mail that a script redirects stays in the INBOX,
    /// and no answers are sent.
    #[arg(long, value_name = "URL")]
    pub relay: Option<String>,
    /// A script that runs before each account's own, which runs only if this one keeps the mail.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub sieve_before: Option<PathBuf>,
    /// A script that runs after each account's own, if that keeps the mail.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub sieve_after: Option<PathBuf>,
    /// A folder with scripts, NAME.sieve, that all may include: include :global "NAME".
    #[arg(long, value_name = "FOLDER", value_hint = ValueHint::DirPath)]
    pub sieve_global: Option<PathBuf>,
    /// Keep no search index: searches read the mails.
    #[arg(long)]
    pub no_search_index: bool,
    /// Deliver spam like other mail, not to the mailbox for spam.
    #[arg(long)]
    pub no_junk: bool,
    /// The largest message.
    #[arg(long, value_name = "SIZE", default_value = "100M", value_parser = values::size)]
    pub message_bytes_max: u64,
    /// Maximum number of simultaneous sessions; further clients are refused.
    #[arg(long, value_name = "NUMBER", default_value = "4096", value_parser = sessions)]
    pub sessions_max: usize,
}

/// `sluice account`
#[derive(Debug, Args)]
pub struct Account {
    /// The file with the accounts. [default: that of [store] in the configuration]
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub accounts: Option<PathBuf>,
    /// The configuration.
    #[arg(short, long, value_name = "FILE", default_value = CONFIG, value_hint = ValueHint::FilePath, global = true)]
    pub config: PathBuf,
    /// Subcommand.
    #[command(subcommand)]
    pub command: AccountCommand,
}

/// Subcommands about accounts.
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
    /// Disable logins to an account. Its mail is still delivered, and open connections stay open.
    Disable {
        /// The account.
        name: String,
    },
    /// Enable logins to an account again.
    Enable {
        /// The account.
        name: String,
    },
    /// Remove the second step and the passkeys of an account's login, if they are lost. Needs a running server.
    Reset {
        /// The account.
        name: String,
    },
    /// Make, list and withdraw passwords for programs, which log in with them but at the webmail. Needs a server that runs.
    AppPassword {
        /// Command.
        #[command(subcommand)]
        command: AppPasswordCommand,
    },
    /// Set the bytes of mail that an account may have; 0 is no bound.
    Quota {
        /// The account.
        name: String,
        /// The bound.
        #[arg(value_name = "SIZE", value_parser = values::size)]
        bytes: u64,
    },
    /// Set the aliases of an account, in place of the present ones; none removes all.
    Alias {
        /// The account.
        name: String,
        /// Its addresses; @DOMAIN is all of a domain.
        #[arg(value_name = "ADDRESS")]
        addresses: Vec<String>,
    },
    /// List all accounts, with quota and aliases.
    List,
}

/// `sluice account app-password`
#[derive(Debug, Subcommand)]
pub enum AppPasswordCommand {
    /// Make an app password for a program, and print it once.
    Add {
        /// The account.
        account: String,
        /// The program or the device.
        name: String,
        /// A protocol that it is for, repeatable: imap, pop3, submission, managesieve, jmap. [default: all]
        #[arg(long = "protocol", value_name = "PROTOCOL", value_parser = mailbox::app_passwords::DOORS)]
        protocols: Vec<String>,
    },
    /// List those of an account: number, name, protocols, last use.
    List {
        /// The account.
        account: String,
    },
    /// Withdraw one. Connections that are open stay open.
    Delete {
        /// The account.
        account: String,
        /// The number of the password.
        id: u32,
    },
}

/// `sluice account add`
#[derive(Debug, Args)]
pub struct AccountAdd {
    /// Login name and address: with a domain, or without for all domains.
    pub name: String,
    /// Quota in bytes. [default: none]
    #[arg(long, value_name = "SIZE", default_value = "0", hide_default_value = true, value_parser = values::size)]
    pub quota: u64,
    /// Another address of the account, repeatable; @DOMAIN is all of a domain.
    #[arg(long = "alias", value_name = "ADDRESS")]
    pub aliases: Vec<String>,
}

fn sessions(text: &str) -> Result<usize, String> {
    values::number(text).and_then(|count| match count {
        1..=1_000_000 => Ok(count),
        _ => Err("1 to 1,000,000".into()),
    })
}

/// A store, for commands that have a usual one.
#[derive(Debug, Args)]
pub struct StorePlace {
    /// The store. [default: that of [store] in the configuration, or /var/lib/sluice/store/mail without a configuration]
    #[arg(long, value_name = "VOLUME", value_hint = ValueHint::FilePath)]
    pub store: Option<PathBuf>,
    /// The configuration.
    #[arg(short, long, value_name = "FILE", default_value = CONFIG, value_hint = ValueHint::FilePath)]
    pub config: PathBuf,
}

/// `sluice mail`
#[derive(Debug, Subcommand)]
pub enum MailCommand {
    /// Print the mailboxes of a store that have a mail, by its Message-ID: the same as `sluice who`.
    Who(Who),
    /// Remove a mail from all mailboxes of a store, by its Message-ID: the same as `sluice recall`.
    Recall(Recall),
}

/// `sluice who`
#[derive(Debug, Args)]
pub struct Who {
    /// The mail, as in its field Message-ID, with or without angle brackets.
    #[arg(value_name = "MESSAGE-ID")]
    pub message_id: String,
    /// The store to search.
    #[command(flatten)]
    pub place: StorePlace,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}

/// `sluice recall`
#[derive(Debug, Args)]
pub struct Recall {
    /// The mail, and its mailboxes.
    #[command(flatten)]
    pub who: Who,
    /// Remove it.
    #[arg(long)]
    pub yes: bool,
}
