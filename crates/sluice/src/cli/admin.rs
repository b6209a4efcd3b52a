//! `sluice admin`.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum, ValueHint};
use serde::{Deserialize, Serialize};

use super::CONFIG;

/// `sluice admin`
#[derive(Debug, Args)]
pub struct Admin {
    /// Subcommand.
    #[command(subcommand)]
    pub command: AdminCommand,
}

/// Subcommands of `sluice admin`.
#[derive(Debug, Subcommand)]
pub enum AdminCommand {
    /// Serve the page, in the foreground. Prints a link that logs in one browser, once, within an hour.
    ///
    /// Numbers come from the address in `[metrics]`, kept messages from the quarantines of the configuration, accounts and queue from its
    /// store. Each change that is made is a line on the standard error and of the audit log. Ends at SIGTERM.
    Serve(AdminServe),
    /// Print the description of the HTTP interface: OpenAPI 3.1, JSON.
    Openapi,
    /// People who log in with a password, and their roles.
    Person(AdminPerson),
    /// Tokens of programs, and their roles.
    Token(AdminToken),
}

/// `sluice admin serve`
#[derive(Debug, Args)]
pub struct AdminServe {
    /// The configuration of the gateway.
    #[arg(short, long, value_name = "FILE", default_value = CONFIG, value_hint = ValueHint::FilePath)]
    pub config: PathBuf,
    /// Where browsers come in. Over another network than the loopback put a proxy with TLS in front.
    /// [default: the address in `[admin]`, which is 127.0.0.1:2082]
    #[arg(long, value_name = "ADDRESS")]
    pub listen: Option<SocketAddr>,
    /// The address of the metrics; default: that of the configuration.
    #[arg(long, value_name = "ADDRESS")]
    pub metrics: Option<SocketAddr>,
    /// Programs log in with what this file holds: `Authorization: Bearer ...`, at least 32 characters.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub token_file: Option<PathBuf>,
    /// Nothing can be changed.
    #[arg(long)]
    pub read_only: bool,
    /// The page of `sluice serve` without a configuration, which starts it.
    #[arg(long, hide = true)]
    pub built_in: bool,
}

/// The role of a person or a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Sees and changes everything.
    Administrator,
    /// Releases and deletes in the quarantine, sets passwords of accounts, and sees no more than that takes.
    Helpdesk,
    /// Sees everything but mails, and changes nothing.
    Reader,
}

impl Role {
    /// As it is written.
    pub const fn name(self) -> &'static str {
        match self {
            Role::Administrator => "administrator",
            Role::Helpdesk => "helpdesk",
            Role::Reader => "reader",
        }
    }
}

/// `sluice admin person`
#[derive(Debug, Args)]
pub struct AdminPerson {
    /// The configuration of the gateway.
    #[arg(short, long, value_name = "FILE", default_value = CONFIG, value_hint = ValueHint::FilePath, global = true)]
    pub config: PathBuf,
    /// Subcommand.
    #[command(subcommand)]
    pub command: PersonCommand,
}

/// Subcommands about people.
#[derive(Debug, Subcommand)]
pub enum PersonCommand {
    /// Add a person. The password is read from the standard input; on a terminal one is made and printed.
    Add {
        /// The name.
        name: String,
        /// Rights of the person.
        #[arg(long, value_enum, default_value = "administrator")]
        role: Role,
    },
    /// Change a password, which is read as for `add`.
    Passwd {
        /// The name.
        name: String,
    },
    /// Remove the second step and the passkeys of a person who has lost them.
    Reset {
        /// The name.
        name: String,
    },
    /// Remove a person and end the sessions at once.
    Remove {
        /// The name.
        name: String,
    },
    /// List all people with their roles.
    List,
}

/// `sluice admin token`
#[derive(Debug, Args)]
pub struct AdminToken {
    /// The configuration of the gateway.
    #[arg(short, long, value_name = "FILE", default_value = CONFIG, value_hint = ValueHint::FilePath, global = true)]
    pub config: PathBuf,
    /// Subcommand.
    #[command(subcommand)]
    pub command: TokenCommand,
}

/// Subcommands about tokens.
#[derive(Debug, Subcommand)]
pub enum TokenCommand {
    /// Make a token and print it; only its digest is kept.
    Add {
        /// The name, for the audit log.
        name: String,
        /// Rights of a program that uses the token.
        #[arg(long, value_enum, default_value = "reader")]
        role: Role,
    },
    /// Remove a token, which is good for nothing at once.
    Remove {
        /// The name.
        name: String,
    },
    /// List all tokens with their roles, and when they were made.
    List,
}
