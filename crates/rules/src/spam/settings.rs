//! Settings for functions, prepared once: lists of addresses and hosts, networks, numbers.

use super::header::Networks;
use super::message::Reading;
use super::rule::Rules;
use super::syntax::value::Value;
use crate::spam::map::{HashMap, HashSet};

/// Addresses or names, with `*` and `?` for what varies.
#[derive(Debug, Clone, Default)]
pub struct Globs {
    exact: HashSet<Box<[u8]>>,
    /// By the domain that they end with, of which only what is before varies: most entries of long lists.
    by_domain: HashMap<Box<[u8]>, Vec<Box<[u8]>>>,
    others: Vec<Box<[u8]>>,
}

impl Globs {
    /// Adds an entry, whatever its case.
    pub fn add(&mut self, entry: &[u8]) {
        let entry = lower(entry);
        match end(&entry) {
            None => _ = self.exact.insert(entry),
            Some(end) => match domain(end) {
                Some(domain) => self.by_domain.entry(domain.into()).or_default().push(entry),
                None => self.others.push(entry),
            },
        }
    }

    /// Takes an entry out.
    pub fn remove(&mut self, entry: &[u8]) {
        let entry = lower(entry);
        let globs = match end(&entry).map(domain) {
            None => {
                self.exact.remove(&entry);
                return;
            }
            Some(Some(domain)) => self.by_domain.get_mut(domain),
            Some(None) => Some(&mut self.others),
        };
        globs.into_iter().for_each(|globs| globs.retain(|glob| *glob != entry));
    }

    /// Whether an entry fits all of the text, whatever its case.
    pub fn has(&self, text: &[u8]) -> bool {
        let text = lower(text);
        let of_domain = || domain(&text).and_then(|domain| self.by_domain.get(domain)).into_iter().flatten();
        self.exact.contains(&text) || of_domain().chain(&self.others).any(|glob| fits(glob, &text))
    }

    /// Whether there is no entry.
    pub fn is_empty(&self) -> bool {
        self.exact.is_empty() && self.by_domain.values().all(Vec::is_empty) && self.others.is_empty()
    }
}

/// Text after the last wildcard of an entry, if it has one.
fn end(entry: &[u8]) -> Option<&[u8]> {
    entry.iter().rposition(|byte| b"*?".contains(byte)).map(|at| &entry[at + 1..])
}

/// The last two labels of a name or an address, if something is before them.
fn domain(text: &[u8]) -> Option<&[u8]> {
    let mut ends = text.iter().enumerate().rev().filter(|(_, byte)| b".@".contains(byte));
    ends.nth(1).map(|(at, _)| &text[at + 1..])
}

/// Whether a glob fits all of the text: `*` is any text, `?` any byte. In time of the product of both lengths.
pub fn fits(glob: &[u8], text: &[u8]) -> bool {
    let (mut at, mut from) = (0, 0);
    let mut last_star: Option<(usize, usize)> = None;
    while from < text.len() {
        match glob.get(at) {
            Some(b'*') => {
                last_star = Some((at, from));
                at += 1;
            }
            Some(&byte) if byte == b'?' || byte == text[from] => {
                at += 1;
                from += 1;
            }
            _ => match last_star {
                Some((star, taken)) => {
                    (at, from) = (star + 1, taken + 1);
                    last_star = Some((star, taken + 1));
                }
                None => return false,
            },
        }
    }
    glob[at..].iter().all(|&byte| byte == b'*')
}

/// An address, and hosts that may send for it.
#[derive(Debug, Clone)]
pub struct Sent {
    /// The address, with `*` and `?`.
    pub address: Box<[u8]>,
    /// A name at the end of the relay's, or its network in brackets; the domain that signs, or nothing: that of the address.
    pub relay: Box<[u8]>,
}

/// Hosts and domains; `false`: not in the list, although a name above is.
pub type Hosts = HashMap<Box<[u8]>, bool>;

/// Settings, read once.
#[derive(Debug, Clone, Default)]
pub struct Settings {
    /// Lists of addresses, subjects and relays, by the setting or by the name that `enlist_addrlist` gives.
    lists: HashMap<Box<str>, Globs>,
    /// `welcomelist_from_rcvd`, `welcomelist_from_dkim` and their defaults.
    sent: HashMap<Box<str>, Vec<Sent>>,
    /// Lists of hosts by name.
    pub hosts: HashMap<Box<[u8]>, Hosts>,
    /// Hosts of shorteners of addresses; with a dot in front all hosts directly below.
    pub shorteners: HashSet<Box<[u8]>>,
    /// Domains where anyone gets an address.
    pub freemail: Freemail,
    /// Names of owners of addresses, for names that are compared with addresses.
    pub owners: Vec<(Box<[u8]>, Globs)>,
    /// The site's networks.
    pub networks: Networks,
    /// How mails are read; below which names domains are registered.
    pub reading: Reading,
    numbers: HashMap<Box<str>, f64>,
    texts: HashMap<Box<str>, Box<[u8]>>,
    words: HashMap<Box<str>, Vec<Box<[u8]>>>,
}

/// Domains where anyone gets an address.
#[derive(Debug, Clone, Default)]
pub struct Freemail {
    /// As they are.
    pub exact: HashSet<Box<[u8]>>,
    /// With `*` for a part without dots and `?` for a byte.
    pub globs: Vec<Box<[u8]>>,
    /// Addresses and domains that are left out.
    pub welcome: HashSet<Box<[u8]>>,
}

/// Settings that are lists of addresses or the like.
const LISTS: [&str; 15] = [
    "welcomelist_from",
    "blocklist_from",
    "welcomelist_to",
    "blocklist_to",
    "more_spam_to",
    "all_spam_to",
    "welcomelist_bounce_relays",
    "welcomelist_allows_relays",
    "welcomelist_auth",
    "def_welcomelist_auth",
    "site_person_address",
    "welcomelist_from_spf",
    "def_welcomelist_from_spf",
    "bayes_ignore_from",
    "bayes_ignore_to",
];

impl Settings {
    /// Derives the settings from rules; `reading` says how mails are read.
    pub fn of(rules: &Rules, reading: Reading) -> Settings {
        let mut settings = Settings { networks: Networks::of(rules), reading, ..Settings::default() };
        for setting in &rules.settings {
            settings.take(&setting.name, &setting.value);
        }
        settings
    }

    /// Adds what further lines say.
    pub(super) fn add(&mut self, rules: &Rules) {
        rules.settings.iter().for_each(|setting| self.take(&setting.name, &setting.value));
    }

    fn take(&mut self, name: &str, value: &Value) {
        match value {
            Value::Text(hosts) if name == "clear_url_shortener" => {
                let named: Vec<Box<[u8]>> = split(hosts).map(lower).collect();
                self.shorteners.retain(|host| !named.is_empty() && !named.contains(host));
            }
            Value::Text(hosts) if name == "url_shortener_get" => self.shorteners.extend(split(hosts).map(lower)),
            Value::Pair(first, rest) if name == "url_shortener" => {
                self.shorteners.extend(std::iter::once(&**first).chain(split(rest)).map(lower));
            }
            Value::Number(number) | Value::Seconds(number) => drop(self.numbers.insert(name.into(), *number)),
            Value::Switch(on) => drop(self.numbers.insert(name.into(), f64::from(u8::from(*on)))),
            Value::Text(text) => drop(self.texts.insert(name.into(), text.clone())),
            Value::Words(words) => self.words(name, words),
            Value::Pair(key, rest) => self.pair(name, key, rest),
            Value::Networks(_) | Value::Bare => {}
        }
    }

    fn words(&mut self, name: &str, words: &[Box<[u8]>]) {
        match name {
            "freemail_domains" => words.iter().for_each(|word| self.freemail.add(word)),
            "freemail_welcomelist" => self.freemail.welcome.extend(words.iter().map(|word| lower(word))),
            "welcomelist_from_rcvd" | "def_welcomelist_from_rcvd" => {
                if let [address, relay] = words {
                    let sent = Sent { address: lower(address), relay: lower(relay) };
                    self.sent.entry(name.into()).or_default().push(sent);
                }
            }
            "welcomelist_from_dkim" | "def_welcomelist_from_dkim" => {
                if let [address, rest @ ..] = words {
                    let relay = rest.first().map(|domain| lower(domain)).unwrap_or_default();
                    self.sent.entry(name.into()).or_default().push(Sent { address: lower(address), relay });
                }
            }
            "unwelcomelist_from_dkim" => {
                let word = |place: usize| words.get(place).map(|word| lower(word)).unwrap_or_default();
                let (address, relay) = (word(0), word(1));
                self.unwelcome("_from_dkim", |sent| sent.address == address && sent.relay == relay);
            }
            "unwelcomelist_from_rcvd" => {
                let named: Vec<Box<[u8]>> = words.iter().map(|word| lower(word)).collect();
                self.unwelcome("_from_rcvd", |sent| named.contains(&sent.address));
            }
            "fns_remove_addrlist" => {
                if let Some((owner, words)) = named(words) {
                    let owner = lower(owner);
                    let lists = self.owners.iter_mut().filter(|(known, _)| *known == owner);
                    lists.for_each(|(_, list)| words.iter().for_each(|word| list.remove(word)));
                }
            }
            "welcomelist_subject" | "blocklist_subject" => {
                let all = words.join(&b' ');
                self.lists.entry(name.into()).or_default().add(&[b"*", &all[..], b"*"].concat());
            }
            "site_person" => self.words.entry(name.into()).or_default().push(words.join(&b' ').into()),
            "enlist_addrlist" => {
                if let Some((list, words)) = named(words) {
                    let list = self.lists.entry(String::from_utf8_lossy(list).into()).or_default();
                    words.iter().for_each(|word| list.add(word));
                }
            }
            "fns_add_addrlist" => {
                if let Some((owner, words)) = named(words) {
                    let mut globs = Globs::default();
                    words.iter().for_each(|word| globs.add(word));
                    self.owners.push((lower(owner), globs));
                }
            }
            _ if LISTS.contains(&name) => {
                let list = self.lists.entry(name.into()).or_default();
                words.iter().for_each(|word| list.add(word));
            }
            _ => {
                if let Some(list) = name.strip_prefix("un").and_then(|name| self.lists.get_mut(name)) {
                    words.iter().for_each(|word| list.remove(word));
                }
                self.words.entry(name.into()).or_default().extend(words.iter().cloned());
            }
        }
    }

    /// Takes entries out of a list of senders, and out of the list of its defaults.
    fn unwelcome(&mut self, name: &str, is_named: impl Fn(&Sent) -> bool) {
        for beginning in ["welcomelist", "def_welcomelist"] {
            if let Some(list) = self.sent.get_mut(&*format!("{beginning}{name}")) {
                list.retain(|sent| !is_named(sent));
            }
        }
    }

    /// Takes hosts out of a list, or where none is named out of all.
    fn delist(&mut self, key: &[u8], rest: &[u8]) {
        let list = key.strip_prefix(b"(").and_then(|key| key.strip_suffix(b")"));
        let first = Some(key).filter(|_| list.is_none());
        let bare = |word: &[u8]| lower(word.strip_prefix(b"!").unwrap_or(word));
        let named: Vec<Box<[u8]>> = first.into_iter().chain(split(rest)).map(bare).collect();
        let lists = self.hosts.iter_mut().filter(|(name, _)| list.is_none_or(|list| *list == ***name));
        lists.for_each(|(_, hosts)| hosts.retain(|host, _| !named.contains(host)));
    }

    fn pair(&mut self, name: &str, key: &[u8], rest: &[u8]) {
        let (list, words): (&[u8], Vec<&[u8]>) = match name {
            "blocklist_uri_host" => (b"BLOCK", std::iter::once(key).chain(split(rest)).collect()),
            "welcomelist_uri_host" => (b"WELCOME", std::iter::once(key).chain(split(rest)).collect()),
            "delist_uri_host" => return self.delist(key, rest),
            "enlist_uri_host" => {
                let Some(list) = key.strip_prefix(b"(").and_then(|key| key.strip_suffix(b")")) else { return };
                (list, split(rest).collect())
            }
            _ => {
                self.words.entry(name.into()).or_default().extend([key.into(), rest.into()]);
                return;
            }
        };
        let hosts = self.hosts.entry(list.into()).or_default();
        for word in words {
            match word.strip_prefix(b"!") {
                Some(host) => hosts.insert(lower(host), false),
                None => hosts.insert(lower(word), true),
            };
        }
    }

    /// A list, if it is there.
    pub fn list(&self, name: &str) -> Option<&Globs> {
        self.lists.get(name)
    }

    /// Whether a list has a text.
    pub fn has(&self, list: &str, text: &[u8]) -> bool {
        self.list(list).is_some_and(|list| list.has(text))
    }

    /// Addresses with the hosts that send for them.
    pub fn sent(&self, name: &str) -> &[Sent] {
        self.sent.get(name).map_or(&[], Vec::as_slice)
    }

    /// A number, or a switch as 0 or 1.
    pub fn number(&self, name: &str, default: f64) -> f64 {
        self.numbers.get(name).copied().unwrap_or(default)
    }

    /// A text.
    pub fn text(&self, name: &str) -> Option<&[u8]> {
        self.texts.get(name).map(|text| &**text)
    }

    /// Words of all lines of a setting.
    pub fn all_words(&self, name: &str) -> &[Box<[u8]>] {
        self.words.get(name).map_or(&[], Vec::as_slice)
    }
}

impl Freemail {
    fn add(&mut self, word: &[u8]) {
        let word = lower(word);
        let fits = |byte: &u8| byte.is_ascii_alphanumeric() || b".*?-".contains(byte);
        if !word.iter().all(fits) {
            return;
        }
        if word.iter().any(|byte| b"*?".contains(byte)) {
            self.globs.push(word);
        } else {
            self.exact.insert(word);
        }
    }
}

fn split(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    text.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty())
}

type Word = Box<[u8]>;

/// `(NAME) word...`
fn named(words: &[Word]) -> Option<(&[u8], &[Word])> {
    let (first, rest) = words.split_first()?;
    Some((first.strip_prefix(b"(")?.strip_suffix(b")")?, rest))
}

/// Lower case, in ASCII.
fn lower(text: &[u8]) -> Box<[u8]> {
    text.to_ascii_lowercase().into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spam::syntax::expression::Unchecked;
    use crate::spam::{File, Limits, Loader, Options};

    #[test]
    fn entries_are_taken_out_of_lists() {
        let text = "loadplugin Mail::SpamAssassin::Plugin::FromNameSpoof\n\
                    loadplugin Mail::SpamAssassin::Plugin::DecodeShortURLs\nurl_shortener a.test\nclear_url_shortener\n\
                    url_shortener B.test .c.test\nurl_shortener_get d.test\nclear_url_shortener d.TEST\n\
                    welcomelist_from_rcvd a@x.test x.test\ndef_whitelist_from_rcvd A@x.test y.test\n\
                    welcomelist_from_rcvd b@x.test x.test\nunwhitelist_from_rcvd a@X.test c@x.test\n\
                    welcomelist_from_dkim d@x.test\nwelcomelist_from_dkim d@x.test y.test\ndef_welcomelist_from_dkim d@x.test y.test\n\
                    unwelcomelist_from_dkim d@x.test y.test\n\
                    enlist_uri_host (MINE) a.test !b.test c.test\nblocklist_uri_host a.test d.test\ndelist_uri_host (MINE) !A.test\n\
                    delist_uri_host c.test d.test\n\
                    fns_add_addrlist (gmail) *@googlemail.com *@g.test\nfns_remove_addrlist (GMAIL) *@g.test\n";
        let mut loader = Loader::new(Options { default_plugins: true, ..Options::default() }, Limits::default());
        loader.read(&File { name: "a.cf".into(), bytes: text.into() }, &mut |_, _| Err(String::new()));
        let rules = loader.finish(&Unchecked);
        assert_eq!(rules.errors(), 0, "{:?}", rules.problems());
        let settings = Settings::of(&rules, Reading::default());
        let sent = |list: &str| {
            let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
            let sent = settings.sent(list).iter();
            sent.map(|sent| text(&sent.address) + " " + &text(&sent.relay)).collect::<Vec<_>>()
        };
        assert_eq!(sent("welcomelist_from_rcvd"), ["b@x.test x.test"]);
        assert!(sent("def_welcomelist_from_rcvd").is_empty());
        assert_eq!(
            (sent("welcomelist_from_dkim"), sent("def_welcomelist_from_dkim")),
            (vec!["d@x.test ".into()], vec![])
        );
        let hosts = |list: &[u8]| {
            let mut hosts: Vec<_> = settings.hosts[list].iter().map(|(host, is)| (&**host, *is)).collect();
            hosts.sort_unstable();
            hosts
        };
        assert_eq!(hosts(b"MINE"), [(&b"b.test"[..], false)]);
        assert_eq!(hosts(b"BLOCK"), [(&b"a.test"[..], true)]);
        let is_short = |host: &[u8]| settings.shorteners.contains(host);
        assert!(is_short(b"b.test") && is_short(b".c.test") && !is_short(b"a.test") && !is_short(b"d.test"));
        let owned = |address: &[u8]| settings.owners.iter().any(|(_, list)| list.has(address));
        assert!(owned(b"a@googlemail.com") && !owned(b"a@g.test"));
    }

    #[test]
    fn globs_fit_the_whole_text() {
        for (glob, text, fitting) in [
            ("*@paypal.com", "a@paypal.com", true),
            ("*@paypal.com", "a@paypal.com.evil", false),
            ("a?c", "abc", true),
            ("a?c", "ac", false),
            ("*", "", true),
            ("*a*a*a*b", &"a".repeat(200), false),
            ("a**b", "ab", true),
        ] {
            assert_eq!(fits(glob.as_bytes(), text.as_bytes()), fitting, "{glob} {text}");
        }
    }

    /// All texts of these letters up to a length.
    fn all(letters: &[u8], length: usize) -> Vec<Vec<u8>> {
        let mut all = vec![Vec::new()];
        let mut from = 0;
        for _ in 0..length {
            let longer =
                all[from..].iter().flat_map(|text| letters.iter().map(|letter| [text, &[*letter][..]].concat()));
            let longer: Vec<Vec<u8>> = longer.collect();
            from = all.len();
            all.extend(longer);
        }
        all
    }

    #[test]
    fn a_list_has_what_its_entries_fit() {
        let texts = all(b"a.@", 5);
        for entry in all(b"a.@*?", 4) {
            let mut list = Globs::default();
            list.add(&entry);
            for text in &texts {
                assert_eq!(list.has(text), fits(&entry, text), "{} {}", entry.escape_ascii(), text.escape_ascii());
            }
            assert!(!list.is_empty());
            list.remove(&entry);
            assert!(list.is_empty(), "{}", entry.escape_ascii());
        }
    }
}
