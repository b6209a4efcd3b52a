//! PostgreSQL as the database of a cluster: connections, tables, statements.
//!
//! A commit counts only with its replication. A statement whose answer comes with a warning is one of which nothing is known: PostgreSQL warns
//! when the wait for standbys was cut short, and reports success. No statement is ever cancelled: its connection is dropped.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::time::Duration;

use cluster::{Answer, Renewal, Standing};
use lookup::tls::{Securing, trusting};
use tokio::sync::Notify;
use tokio::time::timeout;
use tokio_postgres::config::{Host, SslMode, TargetSessionAttrs};
use tokio_postgres::error::Severity;
use tokio_postgres::types::ToSql;
use tokio_postgres::{AsyncMessage, Client, Config, Connection, NoTls, Row, Statement};

use crate::config::ClusterSettings;

mod blocks;
mod documents;

pub use blocks::{OBJECT_COLUMNS, Rows, object_of};
pub use documents::Listed;

/// How long a statement may take. One that waits for a standby which is gone would wait for ever.
const ANSWER_WAIT: Duration = Duration::from_secs(5);

/// How long a connection to one server may take.
const CONNECT_WAIT: Duration = Duration::from_secs(2);

/// The volume: there is one.
pub const VOLUME: i32 = 1;

/// Nodes that start at the same time make them one after the other.
const TABLES: &str = "
    select pg_advisory_xact_lock(7599087);
    create schema if not exists sluice;
    create table if not exists sluice.volume (
        id int primary key, name text not null, bytes bigint not null, owner text, epoch bigint not null default 0,
        token bigint not null default 0, flush bigint not null default 0, settled bigint not null default 0,
        folded bigint not null default 0, wanted text);
    alter table sluice.volume add column if not exists trouble text;
    create table if not exists sluice.tail (
        volume int, flush bigint, epoch bigint not null, runs bytea not null, primary key (volume, flush));
    alter table sluice.tail alter runs set storage external;
    create table if not exists sluice.fold (
        volume int, flush bigint, epoch bigint not null, primary key (volume, flush));
    create table if not exists sluice.block (
        volume int, block bigint, flush bigint, epoch bigint, bytes bytea, primary key (volume, block, flush, epoch));
    alter table sluice.block alter bytes drop not null, add column if not exists object text,
        add column if not exists length int, add column if not exists sha256 bytea;
    create table if not exists sluice.former (
        volume int, object text, since timestamptz not null default now(), primary key (volume, object));
    create table if not exists sluice.node (
        name text primary key, address text not null, drained bool not null default false, flush bigint not null default 0,
        seen timestamptz not null default now());";

const APPEND: &str = "
    with mine as (update sluice.volume set flush = $2 where id = $1 and epoch = $3 and flush < $2 returning id)
    insert into sluice.tail select id, $2, $3, $4 from mine";

const SETTLE: &str = "update sluice.volume set settled = settled + 1 where id = $1 and epoch = $2 and flush = $3";

const RENEW: &str = "update sluice.volume set token = $3 where id = $1 and epoch = $2";

const TAKE: &str = "
    update sluice.volume set epoch = epoch + 1, token = $4, owner = $5, wanted = null
    where id = $1 and epoch = $2 and token = $3";

const RELEASE: &str = "update sluice.volume set owner = null where id = $1 and epoch = $2";

/// A node that waits comes at every look, and an owner at every renewal: one that was not seen for two leases is gone.
const APPEAR: &str = "
    insert into sluice.node as n (name, address, flush) values ($1, $2, $3)
    on conflict (name) do update set address = $2, flush = $3, seen = now()
    where n.address = $2 or n.seen < now() - 2 * make_interval(secs => $4)";

const LOOK: &str = "
    select v.name, v.bytes, v.owner, v.epoch, v.token, v.flush, v.folded, v.wanted, v.trouble, n.address,
        coalesce((select drained from sluice.node where name = $2), false) as drained
    from sluice.volume v left join sluice.node n on n.name = v.owner where v.id = $1";

/// The database of a cluster.
#[derive(Clone)]
pub struct Database {
    config: Config,
    tls: Option<Securing>,
    synchronous: bool,
    /// In seconds.
    lease: f64,
}

/// A connection to the primary.
pub struct Session {
    client: Client,
    lease: f64,
    warned: Arc<AtomicBool>,
    /// Rings at notifications of channels that the session listens to.
    pub bell: Arc<Notify>,
    append: Statement,
}

/// A volume as its row has it.
#[derive(Debug, Clone)]
pub struct Volume {
    /// Names it among all volumes of the world.
    pub name: String,
    /// Its length.
    pub bytes: u64,
    /// The node that has it.
    pub owner: Option<String>,
    /// Where connections are handed over to the owner.
    pub address: Option<String>,
    /// Its renewal.
    pub renewal: Renewal,
    /// The last flush.
    pub flush: u64,
    /// The last flush that is in blocks.
    pub folded: u64,
    /// The node that shall own the volume.
    pub wanted: Option<String>,
    /// Why the owner cannot fold.
    pub trouble: Option<String>,
    /// Whether the asking node is drained.
    pub is_drained: bool,
}

impl Database {
    /// The database that the settings name.
    ///
    /// # Errors
    /// What is wrong in them, and files that cannot be read.
    pub fn new(settings: &ClusterSettings, authorities: &std::path::Path) -> Result<Database, String> {
        let mut config: Config = settings.database.parse().map_err(|error| format!("cluster: database: {error}"))?;
        if let Some(path) = &settings.password_file {
            let password = std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
            config.password(password.trim_end_matches(['\r', '\n']));
        }
        let is_here = |host: &Host| match host {
            Host::Tcp(name) => name == "localhost" || name.parse().is_ok_and(|ip: std::net::IpAddr| ip.is_loopback()),
            Host::Unix(_) => true,
        };
        let is_secured = settings.tls.unwrap_or(!config.get_hosts().iter().all(is_here));
        let tls = is_secured.then(|| trusting(authorities).map(Securing)).transpose()?;
        config.ssl_mode(if is_secured { SslMode::Require } else { SslMode::Disable });
        config.application_name("sluice cluster").connect_timeout(CONNECT_WAIT).tcp_user_timeout(ANSWER_WAIT);
        config.target_session_attrs(TargetSessionAttrs::ReadWrite);
        let (synchronous, lease) = (settings.synchronous, settings.lease().as_secs_f64());
        Ok(Database { config, tls, synchronous, lease })
    }

    /// Connects to the primary, and makes the tables if they are not there.
    ///
    /// # Errors
    /// When no server is the primary, or it acknowledges alone.
    pub async fn connect(&self) -> Result<Session, String> {
        let connected = timeout(self.patience(), self.begin()).await;
        connected.map_err(|_| "no answer".to_owned())?.map_err(|error| describe(&error))?
    }

    /// Connects to the primary, for what needs no standby.
    ///
    /// # Errors
    /// When no server is the primary.
    pub async fn client(&self, name: &str) -> Result<Client, String> {
        let mut config = self.config.clone();
        config.application_name(name);
        let connected = async {
            Ok(match &self.tls {
                Some(tls) => driven(config.connect(tls.clone()).await?),
                None => driven(config.connect(NoTls).await?),
            })
        };
        let connected = timeout(self.patience(), connected).await.map_err(|_| "no answer".to_owned())?;
        connected.map(|(client, ..)| client).map_err(|error| describe(&error))
    }

    /// How long a connection may take, to whichever server.
    fn patience(&self) -> Duration {
        CONNECT_WAIT * u32::try_from(self.config.get_hosts().len()).unwrap_or(1) + ANSWER_WAIT
    }

    /// The database of a URL, for tests.
    #[cfg(test)]
    pub fn at(url: &str) -> Database {
        let mut config: Config = url.parse().expect("a URL");
        config.connect_timeout(CONNECT_WAIT).target_session_attrs(TargetSessionAttrs::ReadWrite);
        Database { config, tls: None, synchronous: false, lease: 10.0 }
    }

    async fn begin(&self) -> Result<Result<Session, String>, tokio_postgres::Error> {
        let (client, warned, bell) = match &self.tls {
            Some(tls) => driven(self.config.connect(tls.clone()).await?),
            None => driven(self.config.connect(NoTls).await?),
        };
        let standbys: String = client.query_one("show synchronous_standby_names", &[]).await?.get(0);
        if self.synchronous && standbys.is_empty() {
            return Ok(Err("no synchronous standbys (synchronous_standby_names is empty)".into()));
        }
        // An owner that is paused in a transaction would keep its locks, and others from taking over.
        let limit = format!("set idle_in_transaction_session_timeout = {}", (self.lease * 1e3) as u64);
        client.batch_execute(&limit).await?;
        let commit: String = client.query_one("show synchronous_commit", &[]).await?.get(0);
        if self.synchronous && commit != "remote_apply" {
            // A role or a database may have it off.
            client.batch_execute("set synchronous_commit = on").await?;
        }
        let last = "select to_regclass('sluice.former') is not null and to_regclass('sluice.document') is not null";
        let has_tables: bool = client.query_one(last, &[]).await?.get(0);
        if !has_tables {
            client.batch_execute(&[TABLES, documents::TABLE].concat()).await?;
        }
        warned.store(false, SeqCst);
        let append = client.prepare(APPEND).await?;
        Ok(Ok(Session { client, lease: self.lease, warned, bell, append }))
    }
}

/// Runs a connection beside its client, and notes warnings.
fn driven<S, T>((client, mut connection): (Client, Connection<S, T>)) -> (Client, Arc<AtomicBool>, Arc<Notify>)
where
    S: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin + Send + 'static,
    T: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin + Send + 'static,
{
    let warned = Arc::new(AtomicBool::new(false));
    let bell = Arc::new(Notify::new());
    let (noted, rung) = (warned.clone(), bell.clone());
    tokio::spawn(async move {
        while let Some(Ok(message)) = poll_fn(|context| connection.poll_message(context)).await {
            if let AsyncMessage::Notification(_) = message {
                rung.notify_one();
                continue;
            }
            if let AsyncMessage::Notice(notice) = message
                && !matches!(
                    notice.parsed_severity(),
                    Some(Severity::Notice | Severity::Info | Severity::Log | Severity::Debug)
                )
            {
                tracing::warn!(%notice, "the database of the cluster warns");
                noted.store(true, SeqCst);
            }
        }
    });
    (client, warned, bell)
}

impl Session {
    /// Whether statements still have an answer to hope for.
    pub fn is_closed(&self) -> bool {
        self.client.is_closed()
    }

    async fn change(
        &self,
        statement: &(impl tokio_postgres::ToStatement + ?Sized),
        with: &[&(dyn ToSql + Sync)],
    ) -> Answer {
        self.warned.store(false, SeqCst);
        let changed = answered(self.client.execute(statement, with)).await;
        match changed {
            _ if self.warned.swap(false, SeqCst) => Answer::Unknown,
            Ok(0) => Answer::Refused,
            Ok(_) => Answer::Done,
            Err(error) => {
                tracing::warn!(%error, "the database of the cluster does not answer");
                Answer::Unknown
            }
        }
    }

    /// Appends a row to the tail.
    pub async fn append(&self, epoch: u64, flush: u64, runs: &[u8]) -> Answer {
        self.change(&self.append, &[&VOLUME, &signed(flush), &signed(epoch), &runs]).await
    }

    /// Commits a change of no consequence.
    pub async fn settle(&self, epoch: u64, flush: u64) -> Answer {
        self.change(SETTLE, &[&VOLUME, &signed(epoch), &signed(flush)]).await
    }

    /// Renews the lease of an owner.
    pub async fn renew(&self, epoch: u64, token: u64) -> Answer {
        self.change(RENEW, &[&VOLUME, &signed(epoch), &signed(token)]).await
    }

    /// Takes the volume over, if its row is as it was seen.
    pub async fn take(&self, seen: Renewal, token: u64, node: &str) -> Answer {
        self.change(TAKE, &[&VOLUME, &signed(seen.epoch), &signed(seen.token), &signed(token), &node]).await
    }

    /// Gives the volume up.
    pub async fn release(&self, epoch: u64) -> Answer {
        self.change(RELEASE, &[&VOLUME, &signed(epoch)]).await
    }

    /// Says that a node is there, and how far its cache is.
    ///
    /// # Errors
    /// When a node of this name is elsewhere, and was seen a moment ago.
    pub async fn appear(&self, node: &str, address: &str, flush: u64) -> Result<(), String> {
        let with: [&(dyn ToSql + Sync); 4] = [&node, &address, &signed(flush), &self.lease];
        if answered(self.client.execute(APPEAR, &with)).await? == 1 {
            return Ok(());
        }
        let other = self.rows("select address from sluice.node where name = $1", &[&node]).await?;
        let other = other.first().map_or_else(String::new, |row| row.get(0));
        Err(format!("another node is called {node}: {other} (this one is {address})"))
    }

    /// The volume, which is made if it is not there.
    pub async fn volume(&self, bytes: u64, name: &str) -> Result<(), String> {
        let insert = "insert into sluice.volume (id, name, bytes) values ($1, $2, $3) on conflict do nothing";
        self.run(insert, &[&VOLUME, &name, &signed(bytes)]).await
    }

    /// Runs a statement that may be run twice.
    pub async fn run(&self, statement: &str, with: &[&(dyn ToSql + Sync)]) -> Result<(), String> {
        answered(self.client.execute(statement, with)).await.map(drop)
    }

    /// Rows of a query.
    pub async fn rows(&self, query: &str, with: &[&(dyn ToSql + Sync)]) -> Result<Vec<Row>, String> {
        answered(self.client.query(query, with)).await
    }

    /// How the volume stands, as `node` asks; none if there is none yet.
    pub async fn look(&self, node: &str) -> Result<Option<Volume>, String> {
        let row = answered(self.client.query_opt(LOOK, &[&VOLUME, &node])).await?;
        Ok(row.map(|row| Volume {
            name: row.get("name"),
            bytes: unsigned(row.get("bytes")),
            owner: row.get("owner"),
            address: row.get("address"),
            renewal: Renewal { epoch: unsigned(row.get("epoch")), token: unsigned(row.get("token")) },
            flush: unsigned(row.get("flush")),
            folded: unsigned(row.get("folded")),
            wanted: row.get("wanted"),
            trouble: row.get("trouble"),
            is_drained: row.get("drained"),
        }))
    }

    /// Notes why the owner cannot fold, for other nodes.
    pub async fn trouble(&self, epoch: u64, trouble: Option<&str>) -> Result<(), String> {
        let set = "update sluice.volume set trouble = $3 where id = $1 and epoch = $2 and trouble is distinct from $3";
        self.run(set, &[&VOLUME, &signed(epoch), &trouble]).await
    }

    /// The epoch and flush of the volume.
    pub async fn standing(&self) -> Result<Standing, String> {
        let query = "select epoch, flush from sluice.volume where id = $1";
        let row = answered(self.client.query_one(query, &[&VOLUME])).await?;
        Ok(Standing { epoch: unsigned(row.get(0)), flush: unsigned(row.get(1)) })
    }

    /// Calls `with` for each row of a query. Rows are not gathered.
    pub async fn each(
        &self,
        query: &str,
        from: u64,
        mut with: impl FnMut(&Row) -> Result<(), String>,
    ) -> Result<(), String> {
        let volume: i32 = VOLUME;
        let parameters: [&(dyn ToSql + Sync); 2] = [&volume, &signed(from)];
        let rows = answered(self.client.query_raw(query, parameters)).await?;
        let mut rows = pin!(rows);
        while let Some(row) = timeout(ANSWER_WAIT, next(rows.as_mut())).await.map_err(|_| "no answer".to_owned())? {
            with(&row.map_err(|error| describe(&error))?)?;
        }
        Ok(())
    }

    /// Begins a snapshot of the database for the queries of this session, and ends it.
    pub async fn snapshot(&self, begin: bool) -> Result<(), String> {
        let statement = if begin { "begin isolation level repeatable read read only" } else { "rollback" };
        answered(self.client.batch_execute(statement)).await
    }
}

async fn next<S: futures_core::Stream>(mut stream: std::pin::Pin<&mut S>) -> Option<S::Item> {
    poll_fn(|context| stream.as_mut().poll_next(context)).await
}

/// Waits for an answer, but not for ever.
async fn answered<T>(answer: impl Future<Output = Result<T, tokio_postgres::Error>>) -> Result<T, String> {
    match timeout(ANSWER_WAIT, answer).await {
        Ok(answer) => answer.map_err(|error| describe(&error)),
        Err(_) => Err(format!("no answer in {} s", ANSWER_WAIT.as_secs())),
    }
}

/// The error with what is behind it.
pub fn describe(error: &tokio_postgres::Error) -> String {
    use std::error::Error as _;
    error.source().map_or_else(|| error.to_string(), |source| format!("{error}: {source}"))
}

const fn signed(number: u64) -> i64 {
    number.cast_signed()
}

/// A number of a row.
pub const fn unsigned(number: i64) -> u64 {
    number.cast_unsigned()
}
