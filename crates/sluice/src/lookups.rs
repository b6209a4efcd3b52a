//! Tables of `[[lookup]]`: who asks them, and what their rows mean.
//!
//! To a listener a row is a recipient. To the store it is an account: `user` is its name (without, what was asked for; several are names to
//! which nobody logs in), `password` a
//! hash, `quota` bytes, `scram` keys, `group` the filter group of a user of the web; an entry of LDAP with `bind = true` has its password checked by the server.

use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use edge::recipients::table::{Finding, Found, Name, Table as Recipients, Tables};
use lookup::{Counts, Error, Key, Row, Table};
use mailbox::accounts::{Account, Login};
use mailbox::password::Password;
use mailbox::{Asking, Away, Elsewhere};

use crate::config::Config;

/// All tables of a configuration.
#[derive(Debug, Clone, Default)]
pub struct Lookups(Vec<Arc<Table>>);

impl Lookups {
    /// Tables of a configuration; a table of `old` with the same settings stays, with its cache.
    ///
    /// # Errors
    /// When the settings of one cannot be; the message names it.
    pub fn start(config: &Config, old: Option<&Lookups>) -> Result<Lookups, String> {
        let known = |settings| old.and_then(|old| old.0.iter().find(|table| table.settings() == settings));
        let table = |settings| match known(settings) {
            Some(table) => Ok(table.clone()),
            None => Table::start(settings, &config.tls.authorities)
                .map(Arc::new)
                .map_err(|error| format!("lookup {:?}: {error}", settings.name)),
        };
        config.lookups.iter().map(table).collect::<Result<_, _>>().map(Lookups)
    }

    /// Tables that know accounts of the store.
    ///
    /// # Errors
    /// As [`Lookups::start`].
    pub fn of_store(config: &Config) -> Result<Lookups, String> {
        let names = config.store.iter().flat_map(|store| &store.lookups);
        let is_named = |table: &&lookup::Settings| names.clone().any(|name| *name == table.name);
        let table = |settings: &lookup::Settings| Table::start(settings, &config.tls.authorities).map(Arc::new);
        let tables = config
            .lookups
            .iter()
            .filter(is_named)
            .map(|settings| table(settings).map_err(|error| format!("lookup {:?}: {error}", settings.name)));
        tables.collect::<Result<_, _>>().map(Lookups)
    }

    /// All of them.
    pub fn all(&self) -> impl Iterator<Item = &Arc<Table>> {
        self.0.iter()
    }

    /// How often each was asked, in Prometheus' text format.
    pub fn measured(&self) -> String {
        type Count = fn(&Counts) -> &AtomicU64;
        let kinds: [(&str, &str, Count); 3] = [
            ("asked", "Queries to the servers of lookups.", |counts| &counts.asked),
            ("spared", "Queries answered from the cache, or joined with one under way.", |counts| &counts.spared),
            ("failed", "Queries that no server has answered.", |counts| &counts.failed),
        ];
        let mut text = String::new();
        for (name, help, count) in kinds.into_iter().filter(|_| !self.0.is_empty()) {
            let _ =
                writeln!(text, "# HELP sluice_lookup_{name}_total {help}\n# TYPE sluice_lookup_{name}_total counter");
            for table in &self.0 {
                let (lookup, count) = (&table.settings().name, count(table.counts()).load(Relaxed));
                let _ = writeln!(text, "sluice_lookup_{name}_total{{lookup=\"{lookup}\"}} {count}");
            }
        }
        text
    }

    /// As tables of recipients.
    pub fn recipients(&self) -> Tables {
        let table = |table: &Arc<Table>| {
            (table.settings().name.clone(), Arc::new(InTable(table.clone())) as Arc<dyn Recipients>)
        };
        self.0.iter().map(table).collect()
    }

    /// Tables with these names, as accounts.
    pub fn accounts(&self, names: &[String]) -> Option<Arc<dyn Elsewhere>> {
        let named = |name: &String| self.0.iter().find(|table| table.settings().name == *name).cloned();
        let tables: Vec<_> = names.iter().filter_map(named).collect();
        (!tables.is_empty()).then(|| Arc::new(Users(tables)) as Arc<dyn Elsewhere>)
    }
}

/// A table whose rows are recipients.
struct InTable(Arc<Table>);

impl Recipients for InTable {
    fn kind(&self) -> &'static str {
        self.0.kind()
    }

    fn source(&self) -> String {
        self.0.settings().name.clone()
    }

    fn find<'a>(&'a self, name: Name<'a>) -> Finding<'a> {
        Box::pin(async move {
            let Some(key) = Key::new(name.user, name.domain) else { return Found::No };
            match self.0.find(&key).await {
                Ok(rows) if rows.is_empty() => Found::No,
                Ok(_) => Found::Yes,
                Err(error) => Found::Unsure(error.to_string()),
            }
        })
    }
}

/// Tables whose rows are accounts.
struct Users(Vec<Arc<Table>>);

impl Elsewhere for Users {
    fn find<'a>(&'a self, name: &'a str, now: bool) -> Asking<'a, Vec<Account>> {
        Box::pin(async move {
            let Some(key) = Key::of(name) else { return Ok(Vec::new()) };
            for table in &self.0 {
                let rows = if now { table.find_now(&key).await } else { table.find(&key).await };
                let rows = rows.map_err(|error| away(table, &error))?;
                if !rows.is_empty() {
                    let accounts = rows.iter().map(|row| accounts(table, row, name)).collect::<Result<Vec<_>, _>>();
                    let accounts = accounts.map_err(|error| away(table, &Error::Refused(error)));
                    return accounts.map(|accounts| accounts.into_iter().flatten().collect());
                }
            }
            Ok(Vec::new())
        })
    }

    fn is_password<'a>(&'a self, table: &'a str, entry: &'a str, password: &'a str) -> Asking<'a, bool> {
        Box::pin(async move {
            let Some(table) = self.0.iter().find(|known| known.settings().name == table) else { return Ok(false) };
            table.is_password(entry, password).await.map_err(|error| away(table, &error))
        })
    }
}

fn away(table: &Table, error: &Error) -> Away {
    Away(format!("lookup {}: {error}", table.settings().name))
}

/// The accounts of a row: one, or those of a list.
fn accounts(table: &Table, row: &Row, asked: &str) -> Result<Vec<Account>, String> {
    match row.get("user").filter(|users| users.contains(',')) {
        Some(users) => users.split(',').map(str::trim).filter(|user| !user.is_empty()).map(Account::new).collect(),
        None => account(table, row, asked).map(|account| vec![account]),
    }
}

/// The account that a row is.
fn account(table: &Table, row: &Row, asked: &str) -> Result<Account, String> {
    let login = match (row.get("password"), &row.name) {
        (_, Some(entry)) if table.settings().bind => {
            Login::Elsewhere { table: table.settings().name.clone(), entry: entry.clone() }
        }
        (Some(hash), _) if !hash.is_empty() => {
            Login::Hash(Password::parse(hash).map_err(|error| format!("password of {asked:?}: {error}"))?)
        }
        _ => Login::Nobody,
    };
    let quota_bytes = row.get("quota").filter(|quota| !quota.is_empty()).map_or(Ok(0), |quota| {
        quota.parse().map_err(|_| format!("quota of {asked:?}: {quota:?} is no number of bytes"))
    })?;
    let scram = row.get("scram").filter(|keys| !keys.is_empty()).map(str::parse).transpose()?;
    let group = row.get("group").filter(|group| !group.is_empty()).map(Into::into);
    Ok(Account { login, quota_bytes, scram, group, ..Account::new(row.get("user").unwrap_or(asked))? })
}
