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

use super::loading::Loading;
use crate::spam::Place;

pub(super) use read::{Branch, Plan, read};
pub(super) use redirect::{Block, Redirects};
pub(super) use rules::{Rules, Scope, Word};
pub(super) use sources::Sources;

/// Whether a main file is a configuration of squidGuard, by its name or its first statement.
pub(super) fn is_main(path: &str, loading: &mut Loading<'_>) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path).to_ascii_lowercase();
    if name.starts_with("squidguard") && name.ends_with(".conf") {
        return true;
    }
    let source = if loading.has(path) { loading.file(path, &Place { file: path.into(), line: 0 }) } else { None };
    source.is_some_and(|source| begins(&source.bytes))
}

/// Whether the first statement of a file is one of squidGuard; options of E2Guardian have a `=`.
fn begins(bytes: &[u8]) -> bool {
    let mut lines = bytes.split(|&byte| byte == b'\n').map(<[u8]>::trim_ascii);
    let Some(first) = lines.find(|line| !line.is_empty() && !line.starts_with(b"#")) else { return false };
    let end = first.iter().position(u8::is_ascii_whitespace).unwrap_or(first.len());
    let (word, rest) = first.split_at(end);
    let is_statement = STATEMENTS.iter().any(|known| word.eq_ignore_ascii_case(known.as_bytes()));
    is_statement && !rest.trim_ascii_start().starts_with(b"=")
}

/// The words that begin statements outside blocks.
const STATEMENTS: &[&str] = &[
    "dbhome",
    "logdir",
    "syslog",
    "src",
    "source",
    "dest",
    "destination",
    "rew",
    "rewrite",
    "time",
    "acl",
    "ldapbinddn",
    "ldapbindpass",
    "ldapcachetime",
    "ldapprotover",
];
