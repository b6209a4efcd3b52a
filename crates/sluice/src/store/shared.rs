//! The files of the store that nodes of a cluster share as documents, with their checks.

use std::path::PathBuf;

use mailbox::accounts::Directory;

use super::dkim::keys::Keys;
use crate::cluster::documents::{self, Document};
use crate::config::{Config, StoreSettings};

/// All files that are documents where there is a cluster.
pub fn all(config: &Config) -> Vec<Document> {
    let of_store = config.store.iter().flat_map(of_store);
    of_store.chain(documents::of_edge(config)).collect()
}

/// The files of the process that has the store.
pub fn of_store(settings: &StoreSettings) -> Vec<Document> {
    vec![accounts(settings.accounts()), keys(settings.dkim())]
}

/// The file of accounts.
pub fn accounts(path: PathBuf) -> Document {
    let check = |text: &[u8]| Directory::parse(plain(text)?).map(drop);
    Document { name: "accounts".into(), path, check, is_of_acme: false, is_told: false }
}

/// The file of keys that mail is signed with.
pub fn keys(path: PathBuf) -> Document {
    let check = |text: &[u8]| Keys::parse(plain(text)?).map(drop).map_err(|error| error.to_string());
    Document { name: "dkim".into(), path, check, is_of_acme: false, is_told: false }
}

fn plain(text: &[u8]) -> Result<&str, String> {
    str::from_utf8(text).map_err(|error| error.to_string())
}
