//! Users of the web: who knows them, and what is known of one. The program brings it.

use std::future::Future;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;

/// A user who has logged in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct User {
    /// The name of the account.
    pub name: Box<str>,
    /// The filter group, where the account says so.
    pub group: Option<Box<str>>,
}

/// The reason why somebody is not let in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Denied {
    /// The name or the password is wrong.
    Wrong,
    /// The accounts cannot be asked now.
    Away,
}

/// The answer to come.
pub type Checking<'a> = Pin<Box<dyn Future<Output = Result<Arc<User>, Denied>> + Send + 'a>>;

/// Checks names and passwords. It delays guesses, and bounds its own time.
pub trait Logins: Send + Sync {
    /// The name of the realm, as browsers show it.
    fn realm(&self) -> &str;

    /// The user with this name and password.
    fn check<'a>(&'a self, client: IpAddr, name: &'a str, password: &'a [u8]) -> Checking<'a>;
}
