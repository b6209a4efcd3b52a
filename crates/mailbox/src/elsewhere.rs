//! Accounts that are kept elsewhere: in a database, in a directory of the site.

use std::fmt;
use std::future::Future;
use std::pin::Pin;

use crate::account::Account;

/// Why nobody knows: what is kept elsewhere cannot be asked now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Away(pub String);

/// A pending query of [`Elsewhere`].
pub type Asking<'a, T> = Pin<Box<dyn Future<Output = Result<T, Away>> + Send + 'a>>;

/// A directory of accounts outside the file. It bounds its own time, and never reports "no such account" when it
/// could not look.
pub trait Elsewhere: Send + Sync {
    /// The accounts that an address has, in lower case, or that logs in by this name. With `now` nothing is answered that is
    /// only remembered.
    fn find<'a>(&'a self, name: &'a str, now: bool) -> Asking<'a, Vec<Account>>;

    /// Whether this is the password of an entry of a table.
    fn is_password<'a>(&'a self, table: &'a str, entry: &'a str, password: &'a str) -> Asking<'a, bool>;
}

impl fmt::Display for Away {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
