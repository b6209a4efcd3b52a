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
    /// Have a node own nothing, before it is upgraded or shut down: the store goes to another node, without a lease being waited for.
    Drain {
        /// The node.
        node: String,
        /// Let it own again.
        #[arg(long)]
        undo: bool,
    },
    /// Have a node own the store.
    Move {
        /// The node.
        node: String,
    },
    /// Make the store of one machine that of a cluster that has none: its file is copied to the database. No server may have it open.
    Import {
        /// The file of the store. It stays as it is.
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
