//! LDAP (RFC 4511): a search for entries, and binds that check passwords.

use std::collections::BTreeMap;
use std::sync::Arc;

use ldap3::{LdapConnAsync, LdapConnSettings, LdapError, SearchEntry, SearchOptions, drive};
use tokio_rustls::rustls::ClientConfig;

use crate::pattern::{Key, Pattern};
use crate::row::{Error, ROWS_MAX, Row};
use crate::server::{Server, is_near};
use crate::settings::{Scope, Settings};

/// Results that mean "not now": busy, unavailable, time limit, other.
const FOR_NOW: [u32; 4] = [51, 52, 3, 80];

/// The password is wrong, or its owner may not log in.
const WRONG_PASSWORD: u32 = 49;

/// The base of the search does not exist: for a base with `%d`, an unknown domain.
const NO_SUCH_OBJECT: u32 = 32;

/// Servers, credentials and the search.
pub struct Plan {
    servers: Vec<String>,
    tls: Option<bool>,
    bind: Option<(String, String)>,
    base: Pattern,
    scope: ldap3::Scope,
    filter: Pattern,
    attributes: BTreeMap<String, String>,
    wait: std::time::Duration,
}

/// A connection.
pub struct Connection {
    ldap: ldap3::Ldap,
}

impl Plan {
    /// Plans the search by the settings.
    ///
    /// # Errors
    /// Invalid settings.
    pub fn new(settings: &Settings) -> Result<Plan, String> {
        let text = |text: &Option<String>, what| {
            Pattern::parse(text.as_deref().unwrap_or_default()).map_err(|error| format!("{what}: {error}"))
        };
        let (base, filter) = (text(&settings.base, "base")?, text(&settings.filter, "filter")?);
        if filter.is_constant() && base.is_constant() {
            return Err("filter: it is the same for everybody: %s, %u or %d is missing".into());
        }
        let tried = Key::new("user", Some("domain")).and_then(|key| filter.fill(&key, str::to_owned));
        ldap3::parse_filter(tried.unwrap_or_default()).map_err(|_| "filter: it cannot be understood")?;
        for server in settings.servers.iter().filter(|server| !server.starts_with("ldapi://")) {
            host(server).filter(|host| !host.is_empty()).ok_or(format!("{server}: no host"))?;
        }
        Ok(Plan {
            servers: settings.servers.clone(),
            tls: settings.tls,
            bind: settings.bind_dn.clone().zip(settings.password.clone()),
            base,
            scope: match settings.scope {
                Scope::Base => ldap3::Scope::Base,
                Scope::One => ldap3::Scope::OneLevel,
                Scope::Sub => ldap3::Scope::Subtree,
            },
            filter,
            attributes: settings.attributes.clone(),
            wait: settings.wait(),
        })
    }

    /// Returns whether any server has to show a certificate.
    pub fn is_secured(&self) -> bool {
        self.servers.iter().any(|server| self.secures(server))
    }

    /// Returns the number of servers.
    pub fn servers(&self) -> usize {
        self.servers.len()
    }

    fn secures(&self, server: &str) -> bool {
        let is_here = server.starts_with("ldapi://") || host(server).is_none_or(is_near);
        server.starts_with("ldaps://") || self.tls.unwrap_or(!is_here)
    }

    async fn connect(&self, server: Server<'_>) -> Result<ldap3::Ldap, Error> {
        let url = self.servers.get(server.number).ok_or(Error::away("no such server"))?;
        let mut settings = LdapConnSettings::new().set_conn_timeout(self.wait);
        if self.secures(url) {
            let config: &Arc<ClientConfig> = server.tls.ok_or(Error::refused("no authorities"))?;
            settings = settings.set_config(config.clone()).set_starttls(true);
        }
        let (conn, ldap) = LdapConnAsync::with_settings(settings, url).await.map_err(failed)?;
        drive!(conn);
        Ok(ldap)
    }
}

impl Connection {
    /// Connects to a server.
    pub async fn open(plan: &Plan, server: Server<'_>) -> Result<Connection, Error> {
        let mut ldap = plan.connect(server).await?;
        if let Some((dn, password)) = &plan.bind {
            ldap.simple_bind(dn, password).await.and_then(|result| result.success()).map_err(failed)?;
        }
        Ok(Connection { ldap })
    }

    /// Searches for the entries of a key.
    pub async fn rows(&mut self, plan: &Plan, key: &Key) -> Result<Vec<Row>, Error> {
        let base = plan.base.fill(key, |part| ldap3::dn_escape(part).into_owned());
        let filter = plan.filter.fill(key, |part| ldap3::ldap_escape(part).into_owned());
        let (Some(base), Some(filter)) = (base, filter) else { return Ok(Vec::new()) };
        // "1.1" asks for no attributes (RFC 4511, section 4.5.1.8).
        let wanted: Vec<&str> = match plan.attributes.is_empty() {
            true => vec!["1.1"],
            false => plan.attributes.values().map(String::as_str).collect(),
        };
        let most = i32::try_from(ROWS_MAX).unwrap_or(i32::MAX);
        let found = self.ldap.with_search_options(SearchOptions::new().sizelimit(most));
        let found = found.search(&base, plan.scope, &filter, wanted).await.map_err(failed)?;
        if found.1.rc == NO_SUCH_OBJECT {
            return Ok(Vec::new());
        }
        let (entries, _) = found.success().map_err(failed)?;
        entries
            .into_iter()
            .filter(|entry| !entry.is_ref())
            .map(|entry| row(plan, SearchEntry::construct(entry)))
            .collect()
    }

    /// Returns whether this is the password of an entry, by a bind over a separate connection.
    pub async fn is_password(plan: &Plan, server: Server<'_>, name: &str, password: &str) -> Result<bool, Error> {
        // A bind without a password is anonymous and succeeds (RFC 4513, section 5.1.2).
        if name.is_empty() || password.is_empty() {
            return Ok(false);
        }
        let mut ldap = plan.connect(server).await?;
        let result = ldap.simple_bind(name, password).await.map_err(failed)?;
        let _ = ldap.unbind().await;
        match result.rc {
            0 => Ok(true),
            WRONG_PASSWORD => Ok(false),
            _ => result.success().map(|_| false).map_err(failed),
        }
    }
}

fn row(plan: &Plan, entry: SearchEntry) -> Result<Row, Error> {
    let mut row = Row::of_entry(entry.dn);
    for (column, attribute) in &plan.attributes {
        let values =
            entry.attrs.iter().find(|(name, _)| name.eq_ignore_ascii_case(attribute)).map(|(_, values)| values);
        if let Some(value) = values.and_then(|values| values.first()) {
            row.put(column, value.clone())?;
        }
    }
    Ok(row)
}

/// Host of a URL, without brackets.
fn host(server: &str) -> Option<&str> {
    let rest = server.split_once("://")?.1;
    let authority = rest.split(['/', '?']).next()?;
    match authority.strip_prefix('[') {
        Some(address) => address.split(']').next(),
        None => authority.split(':').next(),
    }
}

fn failed(error: LdapError) -> Error {
    match &error {
        LdapError::LdapResult { result } if !FOR_NOW.contains(&result.rc) => Error::refused(&error),
        LdapError::FilterParsing | LdapError::UrlParsing { .. } | LdapError::UnknownScheme(_) => Error::refused(&error),
        _ => Error::away(&error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_are_read_out_of_urls() {
        for (url, wanted) in [
            ("ldap://ldap.a.test", "ldap.a.test"),
            ("ldap://[::1]:389/", "::1"),
            ("ldaps://ldap.a.test:636/dc=x?y", "ldap.a.test"),
        ] {
            assert_eq!(host(url), Some(wanted));
        }
    }
}
