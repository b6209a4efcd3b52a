//! Domains of the mail server, and the records that the DNS has to have for them: `sluice domain`.

use std::collections::BTreeSet;
use std::time::Duration;

use mailbox::accounts::Accounts;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::admin::fault::{Fault, Outcome, away};
use crate::admin::role::{Right, Who};
use crate::admin::site::{Site, Store};
use crate::cli::values;
use crate::resolver::source::Source;
use crate::store::dkim::keys::Keys;
use crate::store::dkim::keys_of;
use crate::store::domain;

/// How long the DNS is asked for one page.
const DNS_WAIT: Duration = Duration::from_secs(8);

/// A domain that is added.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct New {
    pub domain: String,
}

/// The domains of accounts, aliases and keys.
///
/// # Errors
/// Without the right, and when a file cannot be read.
pub fn list(site: &Site, who: &Who) -> Outcome {
    if !who.may(Right::Look) {
        return Err(Fault::forbidden());
    }
    let store = site.store()?;
    let (keys, accounts) = (keys(store)?, Accounts::open(&store.accounts.way()).map_err(Fault::away)?);
    let directory = accounts.directory();
    let with_accounts: BTreeSet<&str> = directory.domains().collect();
    let with_keys: BTreeSet<&str> = keys.all().iter().map(|key| key.domain.as_str()).collect();
    let one = |domain: &&str| json!({ "domain": domain, "has_accounts": with_accounts.contains(domain), "has_keys": with_keys.contains(domain) });
    Ok(json!({ "domains": with_accounts.union(&with_keys).map(one).collect::<Vec<Value>>() }))
}

/// The records of a domain, and what the DNS has of them.
///
/// # Errors
/// Without the right, and when the DNS cannot be asked at all.
pub fn check(site: &Site, who: &Who, domain: &str) -> Outcome {
    if !who.may(Right::Look) {
        return Err(Fault::forbidden());
    }
    let domain = checked(domain)?;
    let (store, config) = (site.store()?, &site.place.config);
    let source = Source::new(None, &config.dns.servers, DNS_WAIT).map_err(away)?;
    let about = domain::Site::of(config, &store.settings);
    let records = domain::objects(&domain, &about, &keys(store)?, Some(&source)).map_err(away)?;
    Ok(json!({ "domain": domain, "records": records }))
}

/// Makes the keys of a domain that has none; the records that the DNS has to have.
///
/// # Errors
/// Without the right, and when this is not a domain.
pub fn add(site: &Site, who: &Who, new: &New) -> Outcome {
    let domain = checked(&new.domain)?;
    site.change(who, Right::Change, "added domain", &domain, || {
        let (store, config) = (site.store()?, &site.place.config);
        let keys = keys_of(&store.keys, store.documents.as_ref(), &domain).map_err(away)?;
        let about = domain::Site::of(config, &store.settings);
        let records = domain::objects(&domain, &about, &keys, None).map_err(away)?;
        Ok(json!({ "domain": domain, "records": records }))
    })
}

fn keys(store: &Store) -> Result<Keys, Fault> {
    let named = |error: std::io::Error| Fault::away(format!("{}: {error}", store.keys.path().display()));
    Keys::read(&store.keys.way()).map_err(named)
}

fn checked(domain: &str) -> Result<String, Fault> {
    values::domain(domain).map_err(Fault::wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_domain_is_labels_between_dots() {
        assert_eq!(checked(" Example.ORG. "), Ok("example.org".into()));
        assert_eq!(checked("xn--bcher-kva.example"), Ok("xn--bcher-kva.example".into()));
        assert_eq!(checked("B\u{fc}cher.example"), Ok("xn--bcher-kva.example".into()));
        for wrong in ["", ".", "a..b", "-a.b", "a b", "a\nb", "a/b", "a_b", "1.2.3.4", &"a".repeat(64), "<b>"] {
            assert!(checked(wrong).is_err(), "{wrong}");
        }
    }
}
