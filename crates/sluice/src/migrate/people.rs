//! Users: mailboxes and aliases become accounts, tables of databases and directories become `[[lookup]]`.
//!
//! Accounts are commands in comments, since nobody knows their passwords here.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use serde_json::json;

use super::draft::Part;
use super::parameters::{Place, words};
use super::tables::{Contents, Entry, Table, shown};
use super::translation::{Lookup, Translation};

/// Accounts that are listed.
const ACCOUNTS_MAX: usize = 10_000;

/// Accounts by name, with their aliases.
type Accounts = BTreeMap<String, BTreeSet<String>>;

/// Accounts of a mail server.
pub fn accounts(work: &mut Translation<'_>) {
    let mut accounts = Accounts::new();
    let mut domains: BTreeSet<String> = work.names("mydestination").into_iter().collect();
    for name in ["virtual_mailbox_domains", "virtual_alias_domains"] {
        match work.parameters.is_set(name) && !is_query(work, name) {
            true => domains.extend(work.names(name).into_iter().map(|name| domain(&name))),
            false => work.done(name),
        }
    }
    let mut lookups = Vec::new();
    for name in ["virtual_mailbox_maps", "local_recipient_maps"] {
        work.done(name);
        for table in work.tables(name).into_iter().filter(|table| table.kind != "unix" && !table.whole.starts_with('$'))
        {
            match table.read(work.folder) {
                Contents::Entries(entries) => entries.into_iter().for_each(|entry| {
                    domains.insert(domain(&entry.key));
                    accounts.entry(entry.key.to_ascii_lowercase()).or_default();
                }),
                Contents::Query(query) => lookups.extend(lookup(work, name, &table, &query)),
                Contents::Patterns(_) => work.note(name, "accounts are names, and not patterns"),
                Contents::Unread(why) => work.note(name, why),
            }
        }
    }
    for name in ["alias_maps", "virtual_alias_maps"] {
        work.done(name);
        for table in work.tables(name) {
            match table.read(work.folder) {
                Contents::Entries(entries) => {
                    entries.iter().for_each(|entry| alias(work, &domains, &mut accounts, entry))
                }
                Contents::Query(query) => lookups.extend(lookup(work, name, &table, &query)),
                Contents::Patterns(entries) => entries.iter().for_each(|entry| {
                    let setting = format!("{} {}", entry.key, entry.value);
                    work.draft.note(Some(&entry.place), setting, "an alias is an address, or @DOMAIN, and no pattern");
                }),
                Contents::Unread(why) => work.note(name, why),
            }
        }
    }
    delimiter(work, "+");
    if !lookups.is_empty() {
        work.draft.key(Part::Store, "lookups", &json!(lookups), None);
    }
    list(work, &domains, &accounts);
}

fn is_query(work: &Translation<'_>, name: &str) -> bool {
    work.tables(name).iter().all(|table| matches!(table.kind.as_str(), "mysql" | "pgsql" | "ldap" | "sqlite"))
}

fn domain(address: &str) -> String {
    address.rsplit_once('@').map_or(address, |(_, domain)| domain).to_ascii_lowercase()
}

/// Notes which domains there are, and how accounts are made.
fn list(work: &mut Translation<'_>, domains: &BTreeSet<String>, accounts: &Accounts) {
    let mut text = String::from("# Domains here are those of the names and aliases of accounts:");
    domains
        .iter()
        .filter(|name| !name.is_empty())
        .take(ACCOUNTS_MAX)
        .for_each(|name| _ = write!(text, " {}", safe(name)));
    if !accounts.is_empty() {
        text.push_str("\n# Accounts, each with a password from standard input:");
    }
    for (account, aliases) in accounts.iter().take(ACCOUNTS_MAX) {
        text.push_str("\n#   sluice account add");
        aliases.iter().for_each(|alias| _ = write!(text, " --alias {}", safe(alias)));
        let _ = write!(text, " {}", safe(account));
    }
    work.draft.line(Part::Store, text);
}

/// A name in a command of a comment.
fn safe(name: &str) -> String {
    let is_plain = |letter: char| letter.is_alphanumeric() || "@.+-_=".contains(letter);
    match name.chars().all(is_plain) {
        true => name.to_owned(),
        false => {
            let plain: String = name.chars().map(|letter| if letter.is_control() { ' ' } else { letter }).collect();
            format!("'{}'", plain.replace('\'', "'\\''"))
        }
    }
}

/// An alias becomes one of the accounts that it names; a target elsewhere is noted.
fn alias(work: &mut Translation<'_>, domains: &BTreeSet<String>, accounts: &mut Accounts, entry: &Entry) {
    let Entry { place, key, value } = entry;
    // A domain by itself says that there are aliases in it.
    if !key.contains('@') && key.contains('.') && !value.contains('@') {
        return;
    }
    let setting = format!("{key} {value}");
    let host = work.parameters.value("myhostname");
    let whole = if key.contains('@') { key.clone() } else { format!("{key}@{host}") }.to_ascii_lowercase();
    for target in words(value) {
        let why = match target.trim_matches('"') {
            target if target.starts_with('|') || target.starts_with('/') || target.starts_with(":include:") => {
                "programs, files and lists are no targets of mail here"
            }
            target if target.starts_with('@') => {
                "one domain is not turned into another: each account has an alias in both"
            }
            target if target.contains('@') && !domains.contains(&domain(target)) => {
                "a target elsewhere: an account with this alias, and a Sieve script with redirect"
            }
            target => {
                let target = target.trim_start_matches('\\').to_ascii_lowercase();
                if target != whole && target != *key {
                    accounts.entry(target).or_default().insert(whole.clone());
                }
                continue;
            }
        };
        work.draft.note(Some(place), setting.clone(), why);
    }
}

/// Recipients of a gateway.
pub fn of_gateway(work: &mut Translation<'_>) {
    let domains = work.names("relay_domains");
    relayed(work, &domains, true);
    work.set(Part::Recipients, "delimiter", "recipient_delimiter", |value| Some(json!(value)));
    for name in ["mydestination", "local_recipient_maps", "alias_maps", "virtual_alias_maps", "local_transport"] {
        work.note(name, "a gateway has no mailboxes: mail to this machine goes to the next hop");
    }
}

/// A table of the recipients of domains that are relayed to. Without a source of them the next hop of a gateway is asked, and of a mail
/// server there is no table.
pub fn relayed(work: &mut Translation<'_>, domains: &[String], asks: bool) {
    let place = work.place("relay_domains");
    let (mut files, mut lookups) = (Vec::new(), Vec::new());
    work.done("relay_recipient_maps");
    for table in work.tables("relay_recipient_maps") {
        match table.read(work.folder) {
            Contents::Entries(_) if table.is_text() => files.push(shown(&table.path(work.folder))),
            Contents::Query(query) => lookups.extend(lookup(work, "relay_recipient_maps", &table, &query)),
            Contents::Unread(why) => work.note("relay_recipient_maps", why),
            _ => work.note(
                "relay_recipient_maps",
                format!("{}: recipients are lists, and tables of [[lookup]]", table.whole),
            ),
        }
    }
    let has_source = !files.is_empty() || !lookups.is_empty();
    if !has_source && !asks {
        return;
    }
    work.has_recipients = true;
    work.draft.line(Part::Recipients, "[[recipients]]\nname = \"relayed\"");
    work.draft.key(Part::Recipients, "domains", &json!(domains), place.as_ref());
    if !has_source {
        work.draft.line(Part::Recipients, "call_ahead = {}  # the next hop is asked who has a mailbox there");
    }
    for (key, list) in [("files", files), ("lookups", lookups)] {
        if !list.is_empty() {
            work.draft.key(Part::Recipients, key, &json!(list), work.place("relay_recipient_maps").as_ref());
        }
    }
}

fn delimiter(work: &mut Translation<'_>, known: &str) {
    work.done("recipient_delimiter");
    if work.parameters.is_set("recipient_delimiter") && work.parameters.value("recipient_delimiter") != known {
        work.note("recipient_delimiter", "what stands behind + in an address is its detail, and no other sign is");
    }
}

/// Writes a table of a database or directory; its name.
fn lookup(
    work: &mut Translation<'_>,
    parameter: &str,
    table: &Table,
    query: &BTreeMap<String, String>,
) -> Option<String> {
    let path = table.path(work.folder);
    let place = Place { file: shown(&path), line: 1 };
    let refuse = |work: &mut Translation<'_>, why: &str| {
        work.draft.note(Some(&place), format!("{parameter}: {}", table.whole), why);
        None
    };
    let stem = path.file_stem()?.to_string_lossy().into_owned();
    let name: String = stem.chars().map(|letter| if letter.is_ascii_alphanumeric() { letter } else { '-' }).collect();
    let is_alias = parameter == "virtual_alias_maps";
    if work.lookups.iter().any(|known| known.path == path && known.is_alias == is_alias) {
        return refuse(work, "the table is named twice: it becomes one [[lookup]]");
    }
    let name = unused(&name, &work.lookups);
    let get = |key: &str| query.get(key).map(String::as_str).unwrap_or_default();
    let (servers, lines) = match table.kind.as_str() {
        "ldap" => (directories(get), directory(get)),
        kind => (databases(kind, get), statement(get, parameter)),
    };
    let Some(lines) = lines else {
        return refuse(work, "the query has placeholders other than %s, %u and %d, or none: write [[lookup]] anew");
    };
    if servers.is_empty() {
        return refuse(work, "no server is named");
    }
    work.lookups.push(Lookup { name: name.clone(), path, is_alias });
    let draft = &mut work.draft;
    draft.line(Part::Lookups, format!("[[lookup]]  # {place}, {parameter}"));
    draft.key(Part::Lookups, "name", &json!(name), None);
    draft.key(Part::Lookups, "servers", &json!(servers), None);
    for (key, value) in lines {
        draft.key(Part::Lookups, key, &value, None);
    }
    let why = match parameter {
        "virtual_alias_maps" => {
            "each row names one account here; targets elsewhere, and several in one row, are not followed"
        }
        _ => "for logins the query also has a column password, and quota: see the page of lookups",
    };
    draft.note(Some(&place), format!("{parameter}: {}", table.whole), why);
    Some(name)
}

/// A name that no lookup has.
fn unused(name: &str, known: &[Lookup]) -> String {
    let numbered = (2..).map(|number| format!("{name}-{number}"));
    let mut names = std::iter::once(name.to_owned()).chain(numbered);
    names.find(|name| known.iter().all(|known| known.name != *name)).unwrap_or_default()
}

fn databases<'q>(kind: &str, get: impl Fn(&str) -> &'q str) -> Vec<String> {
    let (user, name) = (get("user"), get("dbname"));
    if kind == "sqlite" {
        let file = get("dbpath");
        return if file.is_empty() { Vec::new() } else { vec![format!("sqlite:{file}")] };
    }
    let scheme = if kind == "mysql" { "mysql" } else { "postgresql" };
    let hosts = words(if get("hosts").is_empty() { "localhost" } else { get("hosts") });
    let url = |host: &String| match host.strip_prefix("unix:") {
        Some(socket) if kind == "mysql" => format!("mysql://{user}@localhost/{name}?socket={socket}"),
        Some(socket) => format!("postgresql://{user}@{}/{name}", socket.replace('/', "%2F")),
        None => format!("{scheme}://{user}@{}/{name}", host.strip_prefix("inet:").unwrap_or(host)),
    };
    hosts.iter().map(url).collect()
}

type Keys = Vec<(&'static str, serde_json::Value)>;

/// The query, as Postfix has it in one or in parts; with the account as `user` where it finds that.
fn statement<'q>(get: impl Fn(&str) -> &'q str, parameter: &str) -> Option<Keys> {
    let mut query = get("query").to_owned();
    if query.is_empty() && !get("table").is_empty() {
        let [table, select, field, more] = ["table", "select_field", "where_field", "additional_conditions"].map(&get);
        query = format!("SELECT {select} FROM {table} WHERE {field} = '%s' {more}").trim().to_owned();
    }
    let placeholders: Vec<char> =
        query.match_indices('%').filter_map(|(at, _)| query[at + 1..].chars().next()).collect();
    let is_known =
        placeholders.iter().all(|letter| "sud%".contains(*letter)) && placeholders.iter().any(|&letter| letter != '%');
    if !is_known {
        return None;
    }
    if parameter == "virtual_alias_maps" {
        let mut parts = query.splitn(4, char::is_whitespace);
        if let (Some(select), Some(column), Some(from), Some(rest)) =
            (parts.next(), parts.next(), parts.next(), parts.next())
            && from.eq_ignore_ascii_case("from")
        {
            query = format!("{select} {column} AS user FROM {rest}");
        }
    }
    let mut keys: Keys = Vec::new();
    if !get("password").is_empty() {
        keys.push(("password", json!(get("password"))));
    }
    keys.push(("query", json!(query)));
    Some(keys)
}

fn directories<'q>(get: impl Fn(&str) -> &'q str) -> Vec<String> {
    let port = if get("server_port").is_empty() { String::new() } else { format!(":{}", get("server_port")) };
    let hosts = words(if get("server_host").is_empty() { "localhost" } else { get("server_host") });
    let url = |host: &String| match host.contains("://") {
        true => host.trim_end_matches('/').to_owned(),
        false => format!("ldap://{host}{port}"),
    };
    hosts.iter().map(url).collect()
}

fn directory<'q>(get: impl Fn(&str) -> &'q str) -> Option<Keys> {
    let filter = if get("query_filter").is_empty() { "(mailacceptinggeneralid=%s)" } else { get("query_filter") };
    let is_known = |text: &str| text.match_indices('%').all(|(at, _)| text[at + 1..].starts_with(['s', 'u', 'd', '%']));
    if get("search_base").is_empty() || !is_known(filter) || !is_known(get("search_base")) {
        return None;
    }
    let mut keys: Keys = vec![("base", json!(get("search_base"))), ("filter", json!(filter))];
    if matches!(get("scope"), "base" | "one") {
        keys.push(("scope", json!(get("scope"))));
    }
    for (key, name) in [("bind_dn", "bind_dn"), ("password", "bind_pw")] {
        if !get(name).is_empty() {
            keys.push((key, json!(get(name))));
        }
    }
    Some(keys)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queries_become_lookups() {
        let query = |pairs: &[(&'static str, &'static str)], parameter: &str| {
            let pairs: BTreeMap<&str, &str> = pairs.iter().copied().collect();
            statement(|key| pairs.get(key).copied().unwrap_or_default(), parameter)
        };
        let old = [("table", "mailbox"), ("select_field", "maildir"), ("where_field", "username")];
        assert_eq!(
            query(&old, "virtual_mailbox_maps").unwrap(),
            [("query", json!("SELECT maildir FROM mailbox WHERE username = '%s'"))]
        );
        let alias = [("query", "SELECT goto FROM alias WHERE address='%s' AND active = '1'"), ("password", "x")];
        assert_eq!(
            query(&alias, "virtual_alias_maps").unwrap()[1].1,
            json!("SELECT goto AS user FROM alias WHERE address='%s' AND active = '1'")
        );
        assert_eq!(query(&[("query", "SELECT a FROM b WHERE c = '%2'")], "x"), None);
        assert_eq!(query(&[("query", "SELECT a FROM b")], "x"), None);
        assert_eq!(safe("a'b c"), "'a'\\''b c'");
    }
}
