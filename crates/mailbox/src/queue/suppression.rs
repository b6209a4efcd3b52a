//! The addresses that get no more mail of accounts, as operators and reports change them.

use store::{Error, Transaction};

use crate::file::File;
use crate::outbox::{forgive, suppress};
use crate::site::{Site, seconds};

/// Adds addresses; how many are addresses.
///
/// # Errors
/// When it is not on stable storage.
pub async fn suppress_all(site: &Site, addresses: Vec<String>, reason: String) -> Result<usize, Error> {
    change(site, addresses, move |transaction, address| suppress(transaction, address, &reason, seconds())).await
}

/// Takes addresses out; how many were there.
///
/// # Errors
/// When it is not on stable storage.
pub async fn forgive_all(site: &Site, addresses: Vec<String>) -> Result<usize, Error> {
    change(site, addresses, forgive).await
}

async fn change(
    site: &Site,
    addresses: Vec<String>,
    mut change: impl FnMut(&mut Transaction<'_, File>, &str) -> Result<bool, Error> + Send + 'static,
) -> Result<usize, Error> {
    let work = move |transaction: &mut Transaction<'_, File>| {
        addresses.iter().try_fold(0, |count, address| Ok(count + usize::from(change(transaction, address)?)))
    };
    site.store.transact(work).await
}
