//! All keys of the configuration, with their defaults and pages: `keys.tsv`, which `packaging/keys.py` makes of the pages.
//!
//! Which keys there are the program knows from its types; the tests here find those that no page has, and defaults that a page
//! has wrong.

use serde_json::Value;
use toml::de::DeTable;

use super::source::json;

/// A key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Key {
    /// Its tables and its name, with dots; `[]` behind a list of tables.
    pub name: &'static str,
    /// Its default, as the page has it.
    pub default: &'static str,
    /// The page that describes it.
    pub page: &'static str,
}

/// All keys, in the order of the pages.
pub fn all() -> impl Iterator<Item = Key> {
    include_str!("keys.tsv").lines().filter_map(|line| {
        let mut parts = line.splitn(3, '\t');
        Some(Key { name: parts.next()?, default: parts.next()?, page: parts.next()? })
    })
}

impl Key {
    /// The default as a value; none where the page has words for it.
    pub fn value(&self) -> Option<Value> {
        let text = match self.default.strip_prefix('`') {
            Some(code) => {
                let (value, note) = code.split_once('`')?;
                (note.is_empty() || note.starts_with(" (")).then_some(value)?
            }
            None => self.default,
        };
        let whole = format!("key = {text}");
        if let Ok(table) = DeTable::parse(&whole) {
            return table.get_ref().get("key").map(json);
        }
        // A path, an address or a URL, which pages have without quotes.
        (text.contains('/') && !text.contains(' ') || text.starts_with('[')).then(|| text.into())
    }

    /// The default in words, without marks.
    pub fn words(&self) -> String {
        match self.default {
            "" => "none".into(),
            text => text.replace('`', ""),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::super::Config;
    use super::*;

    const SMTP: &str = "[[listener]]\nprotocol='smtp'\naddress='127.0.0.1:1'\nforward='discard:'\n";

    /// Tables that have to have some keys.
    fn base(table: &str) -> String {
        match table {
            "listener[]" => SMTP.into(),
            "recipients[]" => format!("{SMTP}[[recipients]]\nname='x'\n"),
            "lookup[]" => {
                format!("{SMTP}[[lookup]]\nname='x'\nservers=['ldap://127.0.0.1']\nbase='dc=x'\nfilter='(uid=%s)'\n")
            }
            "attachment[]" => format!("{SMTP}[[attachment]]\nname='x'\nway='scan'\n"),
            "store" => format!("{SMTP}[store]\nfolder='x'\n"),
            "cluster" => format!(
                "{SMTP}[store]\nfolder='x'\n[cluster]\nnode='a'\naddress='127.0.0.1:1'\ndatabase='postgresql://x'\nsecret_file='x'\n"
            ),
            "cluster.objects" => format!(
                "{}[cluster.objects]\nendpoint='https://x'\nbucket='x'\naccess_key='x'\naccess_secret_file='x'\n",
                base("cluster")
            ),
            "ids.action[]" => format!("{SMTP}[[ids.action]]\naction='off'\n"),
            "web" => format!("{SMTP}[web]\nconfig='x'\n"),
            "spam.bayes" => format!("{SMTP}[spam.bayes]\nledger='x'\n"),
            "" => String::new(),
            list if list.ends_with("[]") => {
                let (above, _) = list.trim_end_matches("[]").rsplit_once('.').unwrap_or(("", list));
                let above = if above.ends_with("[]") { base(above) } else { SMTP.into() };
                format!("{above}[[{}]]\n", list.trim_end_matches("[]").replace("[]", ""))
            }
            table => {
                let above = table.rsplit_once('.').filter(|(above, _)| above.ends_with("[]"));
                let above = above.map_or(SMTP.to_owned(), |(above, _)| base(above));
                format!("{above}[{}]\n", table.replace("[]", ""))
            }
        }
    }

    /// The same with a listener of a protocol that has no next hop.
    fn of(protocol: &str, text: &str) -> String {
        text.replace("'smtp'", &format!("'{protocol}'")).replace("forward='discard:'\n", "")
    }

    /// The keys that a table knows; none if there is no such table.
    fn known(table: &str) -> Option<BTreeSet<String>> {
        let text = format!("{}zzz = 1\n", base(table));
        let texts = [text.clone(), of("milter", &text), of("http", &text)];
        let mut names = BTreeSet::new();
        for text in texts {
            let error = Config::parse(&text, "test").err()?.to_string();
            let (_, rest) = error.split_once("unknown field `zzz`, ")?;
            let line = rest.lines().next().unwrap_or_default();
            names.extend(line.split('`').skip(1).step_by(2).map(str::to_owned));
        }
        Some(names)
    }

    fn collect(table: &str, keys: &mut BTreeSet<String>) {
        for name in known(table).unwrap_or_default() {
            let path = if table.is_empty() { name.clone() } else { format!("{table}.{name}") };
            let below = [path.clone(), format!("{path}[]")].into_iter().find(|path| known(path).is_some());
            match below {
                // Overrides: the keys stand with the tables that they override.
                Some(_) if table.starts_with("listener[]") && ["spam", "authentication"].contains(&&*name) => {
                    _ = keys.insert(path)
                }
                Some(_) if table == "listener[].rule[]" => _ = keys.insert(path),
                Some(below) => collect(&below, keys),
                None => _ = keys.insert(path),
            }
        }
    }

    #[test]
    fn every_key_is_on_a_page_and_no_other() {
        let mut known = BTreeSet::new();
        collect("", &mut known);
        let listed: BTreeSet<String> = all().map(|key| key.name.to_owned()).collect();
        let lacking: Vec<_> = known.difference(&listed).collect();
        let strange: Vec<_> = listed.difference(&known).collect();
        assert!(known.len() > 250, "{}", known.len());
        assert!(lacking.is_empty() && strange.is_empty(), "on no page: {lacking:#?}\nnot known: {strange:#?}");
    }

    #[test]
    fn the_shipped_file_shows_every_table() {
        let shipped = include_str!("../../../../packaging/sluice.toml");
        for key in all() {
            let table = key.name.split(['.', '[']).next().unwrap_or_default();
            let is_there = [format!("[{table}]"), format!("[[{table}]]")].iter().any(|head| shipped.contains(head));
            assert!(is_there || !key.name.contains('.'), "{table}");
        }
    }

    #[test]
    fn the_shipped_file_is_right_with_every_line_of_it() {
        let is_setting =
            |line: &str| line.starts_with('[') || line.split_once(" = ").is_some_and(|(key, _)| !key.contains(' '));
        let whole: String = include_str!("../../../../packaging/sluice.toml")
            .lines()
            .map(|line| line.strip_prefix('#').filter(|rest| is_setting(rest)).unwrap_or(line))
            // A file that is there on no machine.
            .filter(|line| !line.contains("\"file:"))
            .map(|line| format!("{line}\n"))
            .collect();
        Config::parse(&whole, "sluice.toml").unwrap_or_else(|error| panic!("{error}"));
        // As docs/start/getting-started.md has it changed.
        let line = "\n#quarantine = \"";
        let shipped = include_str!("../../../../packaging/sluice.toml");
        assert_eq!((shipped.matches(line).count(), shipped.matches("\n#address = \"127.0.0.1:9425\"").count()), (1, 1));
    }

    #[test]
    fn defaults_are_those_of_the_pages() {
        let mut tried = 0;
        for key in all() {
            let Some(default) = key.value().filter(|value| !value.is_null()) else { continue };
            let (table, name) = key.name.rsplit_once('.').unwrap_or(("", key.name));
            // An empty list means another thing where a rule overrides; names of tables that are not there are an error.
            let mut text = base(table);
            let whole = |text: &str| Config::parse(&format!("{text}{name} = {default}\n"), "test");
            if whole(&text).is_err_and(|error| error.to_string().contains("unknown field")) {
                text = of("http", &text);
            }
            let Ok(without) = Config::parse(&text, "test") else { continue };
            let set = match table {
                "" => format!("{name} = {default}\n{SMTP}"),
                _ => format!("{text}{name} = {default}\n"),
            };
            let without =
                if table.is_empty() { Config::parse(SMTP, "test").expect("a configuration") } else { without };
            let set = Config::parse(&set, "test").unwrap_or_else(|error| panic!("{}: {error}", key.name));
            assert!(format!("{set:?}") == format!("{without:?}"), "{} = {default} is not the default", key.name);
            tried += 1;
        }
        assert!(tried > 150, "{tried}");
    }
}
