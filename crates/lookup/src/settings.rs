//! `[[lookup]]`: servers of a table, and its query.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use serde::Deserialize;

/// `[[lookup]]`
#[derive(Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    /// Name by which the rest of the configuration refers to the table.
    pub name: String,
    /// Its servers, asked in this order until one can be reached: `postgresql://USER@HOST/DATABASE`,
    /// `mysql://USER@HOST/DATABASE`, `ldap://HOST`, `ldaps://HOST`, `ldapi://PATH`; or one file, `sqlite:/PATH`.
    pub servers: Vec<String>,
    /// The password of the user, or of `bind_dn`.
    pub password: Option<String>,
    /// Whether the connection is within TLS, and the server has to show a certificate. Default: unless it is on this machine.
    pub tls: Option<bool>,
    /// SQL with `'%s'`, `'%u'` and `'%d'`.
    pub query: Option<String>,
    /// LDAP: base of the search, with `%s`, `%u` and `%d`.
    pub base: Option<String>,
    /// LDAP: depth of the search.
    #[serde(default)]
    pub scope: Scope,
    /// LDAP: filter of the search, with `%s`, `%u` and `%d`.
    pub filter: Option<String>,
    /// LDAP: attributes by the names of their columns.
    #[serde(default)]
    pub attributes: BTreeMap<String, String>,
    /// LDAP: entry that searches; without it, the search is anonymous.
    pub bind_dn: Option<String>,
    /// LDAP: whether the server checks passwords, by a bind of the found entry.
    #[serde(default)]
    pub bind: bool,
    /// Maximum number of simultaneous connections.
    #[serde(default = "connections")]
    pub connections_max: usize,
    /// Seconds for an answer, including the connection.
    #[serde(default = "seconds")]
    pub seconds_max: u64,
    /// Seconds for which an answer is cached; 0: not at all.
    #[serde(default = "minute")]
    pub valid_seconds: u64,
    /// Seconds for which an empty answer is cached.
    #[serde(default = "minute")]
    pub unknown_seconds: u64,
    /// Maximum number of cached answers of each kind.
    #[serde(default = "entries")]
    pub entries_max: usize,
}

/// Depth of a search.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Scope {
    /// The base entry only.
    Base,
    /// The entries directly below the base.
    One,
    /// The whole tree.
    #[default]
    Sub,
}

/// Kind of server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// PostgreSQL.
    Postgresql,
    /// MySQL, MariaDB.
    Mysql,
    /// A file of SQLite.
    Sqlite,
    /// LDAP.
    Ldap,
}

impl Kind {
    /// Returns the name of the kind.
    pub const fn name(self) -> &'static str {
        match self {
            Kind::Postgresql => "postgresql",
            Kind::Mysql => "mysql",
            Kind::Sqlite => "sqlite",
            Kind::Ldap => "ldap",
        }
    }

    fn of(server: &str) -> Option<Kind> {
        match server.split_once(':')?.0 {
            "postgresql" | "postgres" => Some(Kind::Postgresql),
            "mysql" => Some(Kind::Mysql),
            "sqlite" => Some(Kind::Sqlite),
            "ldap" | "ldaps" | "ldapi" => Some(Kind::Ldap),
            _ => None,
        }
    }
}

impl Settings {
    /// Returns the kind of the servers.
    ///
    /// # Errors
    /// There are no servers, or they are of different kinds.
    pub fn kind(&self) -> Result<Kind, String> {
        let mut kinds = self.servers.iter().map(|server| {
            Kind::of(server).ok_or("a server is postgresql://, mysql://, ldap://, ldaps://, ldapi:// or sqlite:/PATH")
        });
        let kind = kinds.next().ok_or("servers is empty")??;
        match kinds.all(|other| other == Ok(kind)) {
            true => Ok(kind),
            false => Err("servers are of one kind".into()),
        }
    }

    /// Returns the path of an SQLite file.
    pub fn file(&self) -> Option<&str> {
        self.servers.first()?.strip_prefix("sqlite:")
    }

    /// Returns the maximum wait for an answer.
    pub const fn wait(&self) -> Duration {
        Duration::from_secs(self.seconds_max)
    }

    /// Checks that the settings fit each other.
    ///
    /// # Errors
    /// The reason.
    pub fn check(&self) -> Result<(), String> {
        let is_named = |character: char| character.is_ascii_alphanumeric() || matches!(character, '-' | '_');
        if self.name.is_empty() || !self.name.chars().all(is_named) {
            return Err("a name is letters, digits and hyphens".into());
        }
        let kind = self.kind()?;
        let is_ldap = kind == Kind::Ldap;
        let of_ldap = self.base.is_some()
            || self.filter.is_some()
            || self.bind_dn.is_some()
            || self.bind
            || !self.attributes.is_empty()
            || self.scope != Scope::Sub;
        if is_ldap && (self.base.is_none() || self.filter.is_none() || self.query.is_some()) {
            return Err("LDAP takes base and filter, and no query".into());
        }
        if !is_ldap && (self.query.is_none() || of_ldap) {
            return Err(format!("{} takes a query, and nothing of LDAP", kind.name()));
        }
        if kind == Kind::Sqlite && (self.servers.len() > 1 || self.file().is_none_or(|path| !path.starts_with('/'))) {
            return Err("of SQLite there is one file, sqlite:/PATH".into());
        }
        if kind == Kind::Sqlite && (self.tls.is_some() || self.password.is_some()) {
            return Err("a file has no password, and no TLS".into());
        }
        if is_ldap && self.bind_dn.is_some() && self.password.as_deref().unwrap_or_default().is_empty() {
            return Err("bind_dn needs a password".into());
        }
        if self.connections_max == 0 || self.seconds_max == 0 {
            return Err("a limit of 0 would leave everything unknown".into());
        }
        Ok(())
    }
}

/// Prints without the password, and without passwords in URLs.
impl fmt::Debug for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Settings({:?})", self.name)
    }
}

const fn connections() -> usize {
    4
}

const fn seconds() -> u64 {
    5
}

const fn minute() -> u64 {
    60
}

const fn entries() -> usize {
    10_000
}
