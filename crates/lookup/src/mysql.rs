//! MySQL and MariaDB. The query is prepared by the server, once a connection.

use std::path::Path;

use mysql_async::prelude::Queryable;
use mysql_async::{Conn, DriverError, Opts, OptsBuilder, Params, SslOpts, Value};

use crate::pattern::Key;
use crate::row::{Error, ROWS_MAX, Row};
use crate::server::{Server, is_near};
use crate::settings::Settings;
use crate::statement::{Statement, Style};

/// Servers, credentials and the query.
pub struct Plan {
    servers: Vec<Opts>,
    statement: Statement,
}

/// A connection.
pub struct Connection {
    conn: Conn,
}

impl Plan {
    /// Plans the query by the settings.
    ///
    /// # Errors
    /// Invalid settings.
    pub fn new(settings: &Settings, authorities: &Path) -> Result<Plan, String> {
        let server = |url: &String| {
            let opts = Opts::from_url(url).map_err(|error| error.to_string())?;
            let is_here = opts.socket().is_some() || is_near(opts.ip_or_hostname());
            let tls = settings.tls.unwrap_or(!is_here).then(|| {
                let authorities = authorities.to_path_buf().into();
                SslOpts::default().with_root_certs(vec![authorities]).with_disable_built_in_roots(true)
            });
            let password = settings.password.clone().or_else(|| opts.pass().map(str::to_owned));
            // A socket is the one of the URL; the path that the server reports is ignored.
            let builder = OptsBuilder::from_opts(opts).pass(password).ssl_opts(tls).prefer_socket(false);
            Ok::<_, String>(builder.into())
        };
        Ok(Plan {
            servers: settings.servers.iter().map(server).collect::<Result<_, _>>()?,
            statement: Statement::parse(settings.query.as_deref().unwrap_or_default(), Style::Marked)?,
        })
    }

    /// Returns the number of servers.
    pub fn servers(&self) -> usize {
        self.servers.len()
    }
}

impl Connection {
    /// Connects to a server.
    pub async fn open(plan: &Plan, server: Server<'_>) -> Result<Connection, Error> {
        let opts = plan.servers.get(server.number).ok_or(Error::away("no such server"))?.clone();
        Ok(Connection { conn: Conn::new(opts).await.map_err(failed)? })
    }

    /// Runs the query for a key.
    pub async fn rows(&mut self, plan: &Plan, key: &Key) -> Result<Vec<Row>, Error> {
        let Some(values) = plan.statement.fill(key) else { return Ok(Vec::new()) };
        let parameters = Params::Positional(values.into_iter().map(Value::from).collect());
        let found: Vec<mysql_async::Row> = self.conn.exec(&*plan.statement.text, parameters).await.map_err(failed)?;
        if found.len() > ROWS_MAX {
            return Err(Error::Refused(format!("more than {ROWS_MAX} rows")));
        }
        found.into_iter().map(row).collect()
    }
}

fn row(found: mysql_async::Row) -> Result<Row, Error> {
    let mut row = Row::default();
    let columns = found.columns();
    for (column, value) in columns.iter().zip(found.unwrap()) {
        let name = column.name_str();
        let value = match value {
            Value::NULL => continue,
            Value::Bytes(bytes) => {
                String::from_utf8(bytes).map_err(|_| Error::Refused(format!("{name} is no text")))?
            }
            Value::Int(number) => number.to_string(),
            Value::UInt(number) => number.to_string(),
            _ => return Err(Error::Refused(format!("column {name}: CAST it AS CHAR"))),
        };
        row.put(&name, value)?;
    }
    Ok(row)
}

/// Sorts errors: a server that shuts down, or has too many connections, is unreachable for now.
fn failed(error: mysql_async::Error) -> Error {
    let is_for_now = match &error {
        mysql_async::Error::Io(_) | mysql_async::Error::Other(_) => true,
        mysql_async::Error::Driver(error) => matches!(
            error,
            DriverError::ConnectionClosed | DriverError::PoolDisconnected | DriverError::PacketOutOfOrder
        ),
        mysql_async::Error::Server(error) => {
            matches!(error.code, 1_040 | 1_053 | 1_079 | 1_129 | 1_203 | 1_205 | 1_213 | 3_168)
        }
        mysql_async::Error::Url(_) => false,
    };
    match is_for_now {
        true => Error::away(error),
        false => Error::refused(error),
    }
}
