//! The files of the store that nodes of a cluster share as documents, with their checks.

use std::path::PathBuf;

use mailbox::accounts::Directory;

use super::dkim;
use crate::cluster::documents::{self, Document};
use crate::config::{Config, StoreSettings};

/// All files that are documents where there is a cluster.
pub fn all(config: &Config) -> Vec<Document> {
    let of_store = config.store.iter().flat_map(of_store);
    of_store.chain(documents::of_edge(config)).collect()
}

/// The files of the process that has the store.
pub fn of_store(settings: &StoreSettings) -> Vec<Document> {
    vec![accounts(settings.accounts()), dkim::document(settings.dkim())]
}

/// The file of accounts.
pub fn accounts(path: PathBuf) -> Document {
    let check = |text: &[u8]| {
        let text = str::from_utf8(text).map_err(|error| error.to_string())?;
        Directory::parse(text).map(drop)
    };
    Document { name: "accounts".into(), path, check, is_of_acme: false, is_told: false }
}
