//! Configurations of squidGuard 1.6 as they stand: sources, destinations, times, access rules and redirects.
//!
//! Each branch of `acl` becomes a filter group with its [`Rules`], the words of `pass` in order. A client has the group of the first source
//! that it belongs to, by the first branch that holds now; without one it has that of `default`. The texts of lists are read, their
//! databases (`domains.db`) are not.
//!
//! Left out, and reported with file and line: rewriting, sources by a client's domain, LDAP, SQL, programs and quotas, `continue`, lists
//! over DNS. A source with an option that is not understood has no client.

mod read;
mod redirect;
mod rules;
mod sources;
mod statement;
mod time;

pub(super) use read::{Branch, Plan, read};
pub(super) use redirect::{Block, Redirects};
pub(super) use rules::{Rules, Scope, Word};
pub(super) use sources::Sources;

/// Whether a main file has the name of a configuration of squidGuard.
pub(super) fn is_name(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path).to_ascii_lowercase();
    name.starts_with("squidguard") && name.ends_with(".conf")
}
