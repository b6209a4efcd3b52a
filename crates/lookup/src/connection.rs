//! One connection to a server of any kind.

use std::path::Path;
use std::sync::Arc;

use tokio_rustls::rustls::ClientConfig;

use crate::pattern::Key;
use crate::row::{Error, Row};
use crate::server::Server;
use crate::settings::{Kind, Settings};
use crate::{ldap, mysql, postgresql, sqlite, tls};

/// Everything that a connection needs to know: servers, credentials and the query.
pub struct Plan {
    tls: Option<Arc<ClientConfig>>,
    of: Of,
}

enum Of {
    Postgresql(postgresql::Plan),
    Mysql(mysql::Plan),
    Sqlite(sqlite::Plan),
    Ldap(ldap::Plan),
}

/// A connection.
pub enum Connection {
    Postgresql(postgresql::Connection),
    Mysql(mysql::Connection),
    Sqlite(sqlite::Connection),
    Ldap(ldap::Connection),
}

impl Plan {
    /// Plans connections by the settings; `authorities` is a file with the certificate authorities of servers.
    ///
    /// # Errors
    /// Invalid settings, or an unusable file of authorities if a server has to show a certificate.
    pub fn new(settings: &Settings, authorities: &Path) -> Result<Plan, String> {
        settings.check()?;
        let of = match settings.kind()? {
            Kind::Postgresql => Of::Postgresql(postgresql::Plan::new(settings)?),
            Kind::Mysql => Of::Mysql(mysql::Plan::new(settings, authorities)?),
            Kind::Sqlite => Of::Sqlite(sqlite::Plan::new(settings)?),
            Kind::Ldap => Of::Ldap(ldap::Plan::new(settings)?),
        };
        let is_secured = match &of {
            Of::Postgresql(plan) => plan.is_secured(),
            Of::Ldap(plan) => plan.is_secured(),
            // MySQL reads the file itself; SQLite has no server.
            Of::Mysql(_) | Of::Sqlite(_) => false,
        };
        let tls = is_secured.then(|| tls::trusting(authorities)).transpose()?;
        Ok(Plan { tls, of })
    }

    /// Iterates over the servers.
    pub fn servers(&self) -> impl Iterator<Item = Server<'_>> {
        let count = match &self.of {
            Of::Postgresql(plan) => plan.servers(),
            Of::Mysql(plan) => plan.servers(),
            Of::Sqlite(_) => 1,
            Of::Ldap(plan) => plan.servers(),
        };
        (0..count).map(|number| Server { number, tls: self.tls.as_ref() })
    }

    /// Returns whether this is the password of the entry with this name; always false without LDAP.
    pub async fn is_password(&self, server: Server<'_>, name: &str, password: &str) -> Result<bool, Error> {
        match &self.of {
            Of::Ldap(plan) => ldap::Connection::is_password(plan, server, name, password).await,
            _ => Ok(false),
        }
    }
}

impl Connection {
    /// Connects to a server.
    pub async fn open(plan: &Plan, server: Server<'_>) -> Result<Connection, Error> {
        Ok(match &plan.of {
            Of::Postgresql(plan) => Connection::Postgresql(postgresql::Connection::open(plan, server).await?),
            Of::Mysql(plan) => Connection::Mysql(mysql::Connection::open(plan, server).await?),
            Of::Sqlite(plan) => Connection::Sqlite(sqlite::Connection::open(plan)),
            Of::Ldap(plan) => Connection::Ldap(ldap::Connection::open(plan, server).await?),
        })
    }

    /// Asks for the rows of a key, without rows that have no value.
    pub async fn rows(&mut self, plan: &Plan, key: &Key) -> Result<Vec<Row>, Error> {
        let rows = match (self, &plan.of) {
            (Connection::Postgresql(open), Of::Postgresql(plan)) => open.rows(plan, key).await,
            (Connection::Mysql(open), Of::Mysql(plan)) => open.rows(plan, key).await,
            (Connection::Sqlite(open), Of::Sqlite(plan)) => open.rows(plan, key).await,
            (Connection::Ldap(open), Of::Ldap(plan)) => open.rows(plan, key).await,
            _ => Err(Error::refused("a connection of another kind")),
        };
        Ok(rows?.into_iter().filter(Row::is_something).collect())
    }
}
