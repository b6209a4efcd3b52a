//! Addresses at `hostname` to which commands of the system write, and that lead to no account.

use mailbox::accounts::Directory;

use crate::config::{Config, Outward};

/// Where cron and monitoring write to, and who every server has (RFC 5321, section 4.5.1).
const NAMES: [&str; 2] = ["root", "postmaster"];

/// Warnings about a maildrop whose mail for these names is returned; none where accounts, or a next hop, may be elsewhere.
pub fn warnings(config: &Config, directory: &Directory) -> Vec<String> {
    let hostname = &config.hostname;
    let Some(store) = config.store.as_ref().filter(|store| store.maildrop.is_some()) else { return Vec::new() };
    let is_elsewhere = !store.lookups.is_empty()
        || matches!(store.relay, Some(Outward::Hop(_)))
        || store.queue.routes.keys().any(|domain| domain.eq_ignore_ascii_case(hostname));
    let addresses = NAMES.iter().filter(|_| !is_elsewhere).map(|name| format!("{name}@{hostname}"));
    let is_nobody =
        |address: &String| directory.recipients(address).is_empty() && directory.catch_all(address).is_empty();
    addresses
        .filter(is_nobody)
        .map(|address| format!("store: maildrop: no account or alias {address}, mail to it is returned"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_lead_nowhere_are_told_where_commands_send_mail() {
        let told = |settings: &str, accounts: &str| {
            let text = format!("hostname = 'mx.test'\n[store]\nfolder = '/s'\n{settings}");
            let config = Config::parse(&text, "test").expect("a configuration");
            let accounts = accounts.replace("HASH", &mailbox::accounts::hash(b"secret").expect("a hash"));
            warnings(&config, &Directory::parse(&accounts).expect("accounts")).len()
        };
        let drop = "relay = 'mx'\nmaildrop = '/d'\n";
        assert_eq!(told(drop, ""), 2);
        assert_eq!(told("", ""), 0);
        assert_eq!(told(drop, "ann:HASH:aliases=root,postmaster@mx.test\n"), 0);
        assert_eq!(told(drop, "root:HASH:\n"), 1);
        assert_eq!(told(&drop.replace("'mx'", "'smtp://192.0.2.1:25'"), ""), 0);
        assert_eq!(told(&format!("{drop}[store.queue.routes]\n'mx.test' = 'smtp://192.0.2.1:25'\n"), ""), 0);
    }
}
