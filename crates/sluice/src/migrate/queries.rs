//! Tables of databases and directories: their settings become `[[lookup]]`.
//!
//! The queries go on to be used as they are. Of aliases the result is the account, which the column `user` has to be.

use std::collections::BTreeMap;

use serde_json::json;

use super::draft::Part;
use super::parameters::{Place, words};
use super::tables::{Table, shown};
use super::translation::{Lookup, Translation};

/// Writes a table of a database or directory; its name.
pub fn lookup(
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
        "ldap" => (directories(get), directory(get, is_alias)),
        kind => (databases(kind, get), statement(kind, get, is_alias)),
    };
    let lines = match lines {
        Ok(lines) => lines,
        Err(why) => return refuse(work, why),
    };
    if servers.is_empty() {
        return refuse(work, "no server is named");
    }
    losses(work, &place, table, is_alias, get);
    for (setting, why) in of_servers(&table.kind, get) {
        work.draft.note(Some(&place), format!("{}: {setting}", table.whole), why);
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
            "rows name accounts here, several parted by commas, or aliases; a target elsewhere is none: an account with this alias, and a \
             Sieve script with redirect"
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

/// Notes settings of a table that have no key.
fn losses<'q>(work: &mut Translation<'_>, place: &Place, table: &Table, is_alias: bool, get: impl Fn(&str) -> &'q str) {
    let of_results = "the result is the account as it stands: let the query make it";
    let of_tls =
        "beyond this machine a server has TLS, and a certificate of [tls] authorities: tls = false if it has none";
    for (key, why) in [
        ("domain", "addresses of all domains are looked up: let the query, or the filter, look at %d"),
        ("result_format", of_results),
        ("result_filter", of_results),
        ("special_result_attribute", "entries that an entry names are not followed"),
        ("leaf_result_attribute", "entries that an entry names are not followed"),
        ("terminal_result_attribute", "entries that an entry names are not followed"),
        ("start_tls", of_tls),
        ("tls_ca_cert_file", of_tls),
        ("tls_ca_cert_dir", of_tls),
        ("tls_CAfile", of_tls),
        ("tls_CApath", of_tls),
        ("tls_cert", "a server asks for no certificate of the gateway"),
        ("tls_cert_file", "a server asks for no certificate of the gateway"),
        ("option_file", of_tls),
    ] {
        let value = get(key);
        // Results besides aliases say only that there is one.
        let is_idle = value.is_empty() || key.starts_with("result_") && (!is_alias || value == "%s");
        let is_taken = key == "start_tls" && value == "yes";
        if !is_idle && !is_taken {
            work.draft.note(Some(place), format!("{}: {key} = {value}", table.whole), why);
        }
    }
    if is_alias && words(get("result_attribute")).len() > 1 {
        let setting = format!("{}: result_attribute = {}", table.whole, get("result_attribute"));
        work.draft.note(Some(place), setting, "the first attribute names the account");
    }
}

/// Notes on how servers are reached.
fn of_servers<'q>(kind: &str, get: impl Fn(&str) -> &'q str) -> Vec<(String, &'static str)> {
    let hosts = get("hosts");
    let is_local = |host: &String| host.strip_prefix("inet:").unwrap_or(host).split(':').next() == Some("localhost");
    match kind {
        "ldap" if get("bind") == "sasl" => vec![(
            "bind = sasl".to_owned(),
            "there is no SASL for directories: without bind_dn and password the search is anonymous",
        )],
        "mysql" if hosts.is_empty() || words(hosts).iter().any(is_local) => vec![(
            if hosts.is_empty() { "hosts is not set".to_owned() } else { format!("hosts = {hosts}") },
            "localhost is asked by TCP here, by its UNIX socket in Postfix: mysql://USER@localhost/NAME?socket=PATH for the socket",
        )],
        "pgsql" if words(hosts).iter().any(|host| is_uri(host) && host.contains("sslmode=")) => vec![(
            format!("hosts = {}", words(hosts).iter().map(|host| without_password(host)).collect::<Vec<_>>().join(" ")),
            "sslmode does not count: beyond this machine a server has TLS, and a certificate of [tls] authorities; tls = false if \
             it has none",
        )],
        _ => Vec::new(),
    }
}

/// Whether a host of pgsql_table(5) is a URI.
fn is_uri(host: &str) -> bool {
    host.starts_with("postgresql://") || host.starts_with("postgres://")
}

/// A URI as it may be shown.
fn without_password(host: &str) -> String {
    let shown = || {
        let (scheme, rest) = host.split_once("://")?;
        let (login, rest) = rest.split_once('@')?;
        let (user, _) = login.split_once(':')?;
        Some(format!("{scheme}://{user}@{rest}"))
    };
    shown().unwrap_or_else(|| host.to_owned())
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
        _ if kind == "pgsql" && is_uri(host) => host.clone(),
        Some(socket) if kind == "mysql" => format!("mysql://{user}@localhost/{name}?socket={socket}"),
        Some(socket) => format!("postgresql://{user}@{}/{name}", socket.replace('/', "%2F")),
        None => format!("{scheme}://{user}@{}/{name}", host.strip_prefix("inet:").unwrap_or(host)),
    };
    hosts.iter().map(url).collect()
}

type Keys = Vec<(&'static str, serde_json::Value)>;

/// The query, as Postfix has it in one or in parts; of aliases with the account as `user`.
fn statement<'q>(kind: &str, get: impl Fn(&str) -> &'q str, is_alias: bool) -> Result<Keys, &'static str> {
    let mut query = get("query").to_owned();
    if query.is_empty() && !get("table").is_empty() {
        let [table, select, field, more] = ["table", "select_field", "where_field", "additional_conditions"].map(&get);
        query = format!("SELECT {select} FROM {table} WHERE {field} = '%s' {more}").trim().to_owned();
    }
    if kind == "mysql" {
        query = in_single_quotes(&query);
    }
    if !is_filled(&query) || !query.replace("%%", "").contains('%') {
        return Err(PLACEHOLDERS);
    }
    if is_alias {
        query = with_user(&query).ok_or("the account has to be the column user of the query: write [[lookup]] anew")?;
    }
    let mut keys: Keys = Vec::new();
    // A URI has its own, which the key would replace.
    let is_by_uris = kind == "pgsql" && !get("hosts").is_empty() && words(get("hosts")).iter().all(|host| is_uri(host));
    if !get("password").is_empty() && !is_by_uris {
        keys.push(("password", json!(get("password"))));
    }
    keys.push(("query", json!(query)));
    Ok(keys)
}

/// A query whose placeholders stand in single quotes: for MySQL strings in double quotes are the same.
fn in_single_quotes(query: &str) -> String {
    let (mut out, mut rest) = (String::new(), query);
    while let Some(at) = rest.find(['\'', '"', '`']) {
        let quote = char::from(rest.as_bytes()[at]);
        let inside = &rest[at + 1..];
        let Some(length) = string_length(inside, quote) else { break };
        let text = &inside[..length];
        out.push_str(&rest[..at]);
        match quote == '"' && text.contains('%') {
            true => out.push_str(&format!("'{}'", text.replace("\"\"", "\"").replace('\'', "\'\'"))),
            false => out.push_str(&rest[at..at + length + 2]),
        }
        rest = &inside[length + 1..];
    }
    out + rest
}

/// Length of a string behind its opening quote; none if it is not closed. A doubled quote is one of its letters.
fn string_length(inside: &str, quote: char) -> Option<usize> {
    let mut letters = inside.char_indices().peekable();
    while let Some((at, letter)) = letters.next() {
        match letter {
            '\\' if quote != '`' => _ = letters.next(),
            _ if letter != quote => {}
            _ if letters.peek().is_some_and(|(_, next)| *next == quote) => _ = letters.next(),
            _ => return Some(at),
        }
    }
    None
}

const PLACEHOLDERS: &str = "the query has placeholders other than %s, %u and %d, or none: write [[lookup]] anew";

/// Whether `%s`, `%u`, `%d` and `%%` are all the placeholders of a text.
fn is_filled(text: &str) -> bool {
    let mut letters = text.chars();
    while let Some(letter) = letters.next() {
        if letter == '%' && !letters.next().is_some_and(|letter| "sud%".contains(letter)) {
            return false;
        }
    }
    true
}

/// A query whose one column is named `user`; none if it has several, or begins with something else than SELECT.
fn with_user(query: &str) -> Option<String> {
    let is_letter = |letter: char| letter.is_alphanumeric() || letter == '_';
    let (mut depth, mut quote, mut before, mut from, mut named) = (0usize, None, ' ', None, None);
    for (at, letter) in query.char_indices() {
        let begins = !is_letter(std::mem::replace(&mut before, letter)) && is_letter(letter);
        match letter {
            _ if quote == Some(letter) => quote = None,
            _ if quote.is_some() => {}
            '\'' | '"' | '`' => quote = Some(letter),
            '(' => depth += 1,
            ')' => depth = depth.checked_sub(1)?,
            ',' | '*' if depth == 0 && from.is_none() => return None,
            _ if begins && depth == 0 && from.is_none() => {
                let word = query[at..].split(|letter: char| !is_letter(letter)).next().unwrap_or_default();
                from = word.eq_ignore_ascii_case("from").then_some(at);
                named = word.eq_ignore_ascii_case("as").then_some(at).or(named);
            }
            _ => {}
        }
    }
    let end = from.unwrap_or(query.trim_end().trim_end_matches(';').len());
    let (list, rest) = query.split_at(named.unwrap_or(end));
    let rest = rest.get(end - list.len()..)?;
    let is_select = list.get(..7).is_some_and(|word| word.trim_end().eq_ignore_ascii_case("select"));
    let list = list.trim_end();
    (is_select && list.len() > 7).then(|| format!("{list} AS user {rest}").trim_end().to_owned())
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

/// The search; of aliases with the attribute of the account as `user`.
fn directory<'q>(get: impl Fn(&str) -> &'q str, is_alias: bool) -> Result<Keys, &'static str> {
    let filter = if get("query_filter").is_empty() { "(mailacceptinggeneralid=%s)" } else { get("query_filter") };
    if get("search_base").is_empty() || !is_filled(filter) || !is_filled(get("search_base")) {
        return Err(PLACEHOLDERS);
    }
    let mut keys: Keys = vec![("base", json!(get("search_base"))), ("filter", json!(filter))];
    if matches!(get("scope"), "base" | "one") {
        keys.push(("scope", json!(get("scope"))));
    }
    if is_alias {
        let attribute = words(get("result_attribute")).into_iter().next().unwrap_or_else(|| "maildrop".into());
        keys.push(("attributes", json!({ "user": attribute })));
    }
    // An empty password would be an anonymous bind.
    let binds = get("bind") != "no" && !get("bind_dn").is_empty() && !get("bind_pw").is_empty();
    for (key, name) in [("bind_dn", "bind_dn"), ("password", "bind_pw")].into_iter().filter(|_| binds) {
        keys.push((key, json!(get(name))));
    }
    Ok(keys)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn query(pairs: &[(&'static str, &'static str)], is_alias: bool) -> Result<Keys, &'static str> {
        let pairs: BTreeMap<&str, &str> = pairs.iter().copied().collect();
        statement("mysql", |key| pairs.get(key).copied().unwrap_or_default(), is_alias)
    }

    #[test]
    fn queries_become_lookups() {
        let old = [("table", "mailbox"), ("select_field", "maildir"), ("where_field", "username")];
        let wanted = [("query", json!("SELECT maildir FROM mailbox WHERE username = '%s'"))];
        assert_eq!(query(&old, false).unwrap(), wanted);
        let alias = [("query", "SELECT goto FROM alias WHERE address='%s'"), ("password", "x")];
        let wanted = json!("SELECT goto AS user FROM alias WHERE address='%s'");
        assert_eq!(query(&alias, true).unwrap()[1].1, wanted);
        for (text, wanted) in [
            (r#"SELECT m FROM t WHERE u="%u" AND d="%d""#, "SELECT m FROM t WHERE u='%u' AND d='%d'"),
            (r#"SELECT "x" FROM t WHERE u="a""%u'b""#, r#"SELECT "x" FROM t WHERE u='a"%u''b'"#),
            (r#"SELECT `"` FROM t WHERE u='"%u"'"#, r#"SELECT `"` FROM t WHERE u='"%u"'"#),
            (r#"SELECT "\"%s" FROM t, "%u"#, r#"SELECT '\"%s' FROM t, "%u"#),
        ] {
            assert_eq!(query(&[("query", text)], false).unwrap(), [("query", json!(wanted))]);
        }
        for wrong in ["SELECT a FROM b WHERE c = '%2'", "SELECT a FROM b", "SELECT a FROM b WHERE c = '%%'", "a %"] {
            assert!(query(&[("query", wrong)], false).is_err(), "{wrong}");
        }
    }

    #[test]
    fn servers_are_those_of_the_table() {
        let pairs =
            [("user", "pf"), ("dbname", "mail"), ("hosts", "postgresql://u2:p2@h2:5433/db2?sslmode=require h3")];
        let pairs: BTreeMap<&str, &str> = pairs.into();
        let get = |key: &str| pairs.get(key).copied().unwrap_or_default();
        let wanted = ["postgresql://u2:p2@h2:5433/db2?sslmode=require", "postgresql://pf@h3/mail"];
        assert_eq!(databases("pgsql", get), wanted);
        let [(setting, _)] = &of_servers("pgsql", get)[..] else { panic!("one note") };
        assert_eq!(setting, "hosts = postgresql://u2@h2:5433/db2?sslmode=require h3");
        let by_uri = [("hosts", "postgresql://u:p@h/db"), ("password", "x"), ("query", "SELECT '%s'")];
        let by_uri: BTreeMap<&str, &str> = by_uri.into();
        let keys = statement("pgsql", |key| by_uri.get(key).copied().unwrap_or_default(), false).unwrap();
        assert_eq!(keys, [("query", json!("SELECT '%s'"))]);
        for (kind, pair, wanted) in [
            ("ldap", ("bind", "sasl"), 1),
            ("ldap", ("bind", "yes"), 0),
            ("mysql", ("hosts", ""), 1),
            ("mysql", ("hosts", "db1 inet:localhost:3306"), 1),
            ("mysql", ("hosts", "127.0.0.1 unix:/run/mysqld/mysqld.sock"), 0),
        ] {
            let notes = of_servers(kind, |key| if key == pair.0 { pair.1 } else { "" });
            assert_eq!(notes.len(), wanted, "{kind} {pair:?}");
        }
    }

    #[test]
    fn the_column_of_an_alias_is_the_user() {
        for (text, wanted) in [
            (
                "select distinct goto from alias where a='%s'",
                Some("select distinct goto AS user from alias where a='%s'"),
            ),
            (
                "SELECT CONCAT(local, '@', domain) FROM b WHERE c='%s'",
                Some("SELECT CONCAT(local, '@', domain) AS user FROM b WHERE c='%s'"),
            ),
            ("SELECT goto AS target FROM b, c WHERE d='%s'", Some("SELECT goto AS user FROM b, c WHERE d='%s'")),
            (
                "SELECT CASE WHEN '%d' IN (SELECT x FROM y) THEN '%s' END AS result;",
                Some("SELECT CASE WHEN '%d' IN (SELECT x FROM y) THEN '%s' END AS user ;"),
            ),
            ("SELECT\tfrom_address FROM b WHERE c='%s'", Some("SELECT\tfrom_address AS user FROM b WHERE c='%s'")),
            ("SELECT 'a from b' FROM c WHERE d='%s'", Some("SELECT 'a from b' AS user FROM c WHERE d='%s'")),
            ("SELECT find('%s')", Some("SELECT find('%s') AS user")),
            ("SELECT a, b FROM c WHERE d='%s'", None),
            ("SELECT * FROM c WHERE d='%s'", None),
            ("CALL find('%s')", None),
            ("SELECT FROM c WHERE d='%s'", None),
            (")SELECT", None),
            ("", None),
        ] {
            assert_eq!(with_user(text).as_deref(), wanted, "{text}");
        }
    }

    #[test]
    fn a_directory_names_the_account_of_an_alias() {
        let found = |pairs: &[(&'static str, &'static str)]| {
            let pairs: BTreeMap<&str, &str> = pairs.iter().copied().collect();
            directory(|key| pairs.get(key).copied().unwrap_or_default(), true).unwrap()
        };
        let base = ("search_base", "dc=x");
        assert!(found(&[base]).contains(&("attributes", json!({ "user": "maildrop" }))));
        let bound = [base, ("result_attribute", "mail, uid"), ("bind_dn", "cn=x"), ("bind_pw", "y")];
        assert!(found(&bound).contains(&("attributes", json!({ "user": "mail" }))));
        assert!(found(&bound).contains(&("password", json!("y"))));
        for anonymous in
            [&[base, ("bind_dn", "cn=x")][..], &[base, ("bind", "no"), ("bind_dn", "cn=x"), ("bind_pw", "y")]]
        {
            assert!(found(anonymous).iter().all(|(key, _)| !matches!(*key, "bind_dn" | "password")));
        }
    }
}
