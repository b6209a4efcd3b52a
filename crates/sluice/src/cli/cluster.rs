//! `sluice cluster`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueHint};

use super::CONFIG;

/// `sluice cluster`
#[derive(Debug, Args)]
pub struct Cluster {
    /// The configuration.
    #[arg(short, long, value_name = "FILE", default_value = CONFIG, value_hint = ValueHint::FilePath, global = true)]
    pub config: PathBuf,
    /// Print JSON.
    #[arg(long, global = true)]
    pub json: bool,
    /// Subcommand.
    #[command(subcommand)]
    pub command: ClusterCommand,
}

/// Subcommands of `sluice cluster`.
#[derive(Debug, Subcommand)]
pub enum ClusterCommand {
    /// Print the nodes, which of them has the store, and how far the others follow.
    Status,
    /// Say whether this machine can be a node: database, standbys, secret, other nodes. Exit status: 0 it can, 1 something is wrong.
    Check,
    /// Make a node give up the store before it is upgraded or shut down: another node takes it without waiting for the
    /// lease.
    Drain {
        /// The node.
        node: String,
        /// Allow the node to own the store again.
        #[arg(long)]
        undo: bool,
    },
    /// Have a node own the store.
    Move {
        /// The node.
        node: String,
    },
    /// Print the files that all nodes have alike: version, size, last change, and whether this machine has it. Exit status: 1 if a
    /// node is behind.
    Documents {
        /// Print the text of this document instead.
        #[arg(long, value_name = "NAME")]
        get: Option<String>,
    },
    /// Make documents of this machine's files where there are none yet: accounts, DKIM keys, certificates by ACME, and those of
    /// [cluster] documents. Its server must run.
    Share,
    /// Copy the store of one machine to the database of a cluster without a store. No server may have it open.
    Import {
        /// The file of the store, which is not changed.
        #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
        file: PathBuf,
    },
    /// Write the store of the cluster to a file that one machine can serve, as of the last flush: a backup, or the way back.
    Export {
        /// The file, which must not be there.
        #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
        file: PathBuf,
    },
}
