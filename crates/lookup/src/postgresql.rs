//! PostgreSQL. The query is prepared once per connection, by which the server reports the type of each parameter.

use std::error::Error as _;

use tokio_postgres::config::{Host, SslMode};
use tokio_postgres::types::{FromSql, Kind, Type};
use tokio_postgres::{Client, Config, NoTls};

use crate::pattern::Key;
use crate::row::{Error, ROWS_MAX, Row};
use crate::server::{Server, is_near};
use crate::settings::Settings;
use crate::statement::{Statement, Style};
use crate::tls::Securing;

/// Servers, credentials and the query.
pub struct Plan {
    servers: Vec<(Config, bool)>,
    statement: Statement,
}

/// A connection.
pub struct Connection {
    client: Client,
    prepared: tokio_postgres::Statement,
}

impl Plan {
    /// Plans the query by the settings.
    ///
    /// # Errors
    /// Invalid settings.
    pub fn new(settings: &Settings) -> Result<Plan, String> {
        let server = |url: &String| {
            let mut config: Config = url.parse().map_err(|error: tokio_postgres::Error| describe(&error))?;
            settings.password.iter().for_each(|password| _ = config.password(password));
            let is_here = config.get_hosts().iter().all(|host| match host {
                Host::Tcp(name) => is_near(name),
                Host::Unix(_) => true,
            });
            let is_secured = settings.tls.unwrap_or(!is_here);
            config.ssl_mode(if is_secured { SslMode::Require } else { SslMode::Disable });
            config.application_name("sluice").connect_timeout(settings.wait());
            Ok::<_, String>((config, is_secured))
        };
        Ok(Plan {
            servers: settings.servers.iter().map(server).collect::<Result<_, _>>()?,
            statement: Statement::parse(settings.query.as_deref().unwrap_or_default(), Style::Numbered)?,
        })
    }

    /// Returns whether any server has to show a certificate.
    pub fn is_secured(&self) -> bool {
        self.servers.iter().any(|(_, is_secured)| *is_secured)
    }

    /// Returns the number of servers.
    pub fn servers(&self) -> usize {
        self.servers.len()
    }
}

impl Connection {
    /// Connects to a server.
    pub async fn open(plan: &Plan, server: Server<'_>) -> Result<Connection, Error> {
        let (config, is_secured) = plan.servers.get(server.number).ok_or(Error::away("no such server"))?;
        let client = match (is_secured, server.tls) {
            (true, Some(tls)) => {
                let (client, connection) = config.connect(Securing(tls.clone())).await.map_err(failed)?;
                tokio::spawn(connection);
                client
            }
            (true, None) => return Err(Error::refused("no authorities")),
            (false, _) => {
                let (client, connection) = config.connect(NoTls).await.map_err(failed)?;
                tokio::spawn(connection);
                client
            }
        };
        let prepared = client.prepare(&plan.statement.text).await.map_err(failed)?;
        Ok(Connection { client, prepared })
    }

    /// Runs the query for a key.
    pub async fn rows(&mut self, plan: &Plan, key: &Key) -> Result<Vec<Row>, Error> {
        let Some(values) = plan.statement.fill(key) else { return Ok(Vec::new()) };
        let parameters: Vec<_> =
            values.iter().map(|value| value as &(dyn tokio_postgres::types::ToSql + Sync)).collect();
        let rows = self.client.query(&self.prepared, &parameters).await.map_err(failed)?;
        if rows.len() > ROWS_MAX {
            return Err(Error::Refused(format!("more than {ROWS_MAX} rows")));
        }
        rows.iter().map(row).collect()
    }
}

fn row(found: &tokio_postgres::Row) -> Result<Row, Error> {
    let mut row = Row::default();
    for (at, column) in found.columns().iter().enumerate() {
        let value: Option<Text> = found.try_get(at).map_err(failed)?;
        if let Some(Text(value)) = value {
            row.put(column.name(), value)?;
        }
    }
    Ok(row)
}

/// Value as text.
struct Text(String);

impl<'a> FromSql<'a> for Text {
    fn from_sql(kind: &Type, raw: &'a [u8]) -> Result<Text, Box<dyn std::error::Error + Sync + Send>> {
        Ok(Text(match *kind {
            Type::BOOL => bool::from_sql(kind, raw)?.to_string(),
            Type::INT2 => i16::from_sql(kind, raw)?.to_string(),
            Type::INT4 => i32::from_sql(kind, raw)?.to_string(),
            Type::INT8 => i64::from_sql(kind, raw)?.to_string(),
            // An enumeration is sent as its label.
            ref kind if matches!(kind.kind(), Kind::Enum(_)) => std::str::from_utf8(raw)?.to_owned(),
            ref kind if matches!(kind.kind(), Kind::Domain(_)) => match kind.kind() {
                Kind::Domain(inner) => Text::from_sql(inner, raw)?.0,
                _ => String::new(),
            },
            ref kind if <String as FromSql>::accepts(kind) => String::from_sql(kind, raw)?,
            ref kind => return Err(format!("a column is {kind}: CAST it AS text").into()),
        }))
    }

    fn accepts(_: &Type) -> bool {
        true
    }
}

/// Sorts errors: a server that shuts down, or has too many connections, is unreachable for now.
fn failed(error: tokio_postgres::Error) -> Error {
    let is_for_now =
        error.code().is_none_or(|code| matches!(code.code().get(..2), Some("08" | "53" | "57" | "58" | "40")));
    let is_ours = error.code().is_none() && error.source().is_some_and(|source| !source.is::<std::io::Error>());
    match is_for_now && !is_ours {
        true => Error::Away(describe(&error)),
        false => Error::Refused(describe(&error)),
    }
}

/// Describes an error with its source.
fn describe(error: &tokio_postgres::Error) -> String {
    let behind = error.source().map_or_else(String::new, |source| format!(": {source}"));
    format!("{error}{behind}")
}
