//! Aliases as Postfix follows them: from an address, over the keys of `virtual_alias_maps` and `alias_maps`, to mailboxes.
//!
//! Addresses are whole and in lower case; a name without a domain is one of [`Aliases::home`]. An address in several tables has the targets
//! of the first. A detail behind the recipient delimiter is taken off where nothing has the whole address. Bounds: [`TARGETS_MAX`] addresses of one alias, and the steps
//! that the caller grants.

use std::collections::{BTreeMap, BTreeSet};

/// Addresses that one alias leads to, as `virtual_alias_expansion_limit` has it.
const TARGETS_MAX: usize = 1_000;

/// A target of an alias.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    /// An address or name, which may be an alias itself.
    Address(String),
    /// A name behind a backslash: its mailbox, though it is an alias.
    Mailbox(String),
    /// A program, a file or a list of addresses in a file.
    Program,
    /// A whole domain.
    Domain,
}

/// The aliases of a site.
#[derive(Debug, Default)]
pub struct Aliases {
    /// Domains of `mydestination`, in which users of the machine have mailboxes.
    pub here: Vec<String>,
    /// The domain of names without one.
    pub home: String,
    /// Domains in which a key of `virtual_alias_maps` without a domain is looked up.
    pub bare: BTreeSet<String>,
    /// `virtual_alias_maps`: addresses, names and `@DOMAIN`.
    pub virtuals: BTreeMap<String, Vec<Target>>,
    /// `alias_maps`: names.
    pub locals: BTreeMap<String, Vec<Target>>,
    /// The signs before the detail of an address.
    pub delimiters: String,
}

impl Aliases {
    /// The mailboxes of an address, or of `@DOMAIN`. Each address on the way takes one of the steps that are left.
    pub fn mailboxes(&self, address: &str, steps_left: &mut usize) -> BTreeSet<String> {
        let (mut found, mut seen) = (BTreeSet::new(), BTreeSet::from([address.to_owned()]));
        let mut open = vec![address.to_owned()];
        while let Some(one) = open.pop() {
            let plain = self.without_detail(&one);
            let Some(targets) = self.targets(&one).or_else(|| self.targets(&plain)) else {
                found.insert(plain);
                continue;
            };
            let of_local = |name: &str| self.user(&one).is_some() && self.user(name) == self.user(&one);
            for target in targets {
                *steps_left = steps_left.saturating_sub(1);
                match target {
                    Target::Mailbox(name) => _ = found.insert(self.whole(name)),
                    Target::Address(name) => match self.whole(name) {
                        // An alias of a user to himself, in whichever of his domains, is his mailbox.
                        name if name == one || of_local(&name) => _ = found.insert(one.clone()),
                        name if *steps_left > 0 && seen.len() < TARGETS_MAX && seen.insert(name.clone()) => {
                            open.push(name);
                        }
                        _ => {}
                    },
                    Target::Program | Target::Domain => {}
                }
            }
        }
        found
    }

    /// The addresses that a key of `virtual_alias_maps` stands for.
    pub fn of_virtual(&self, key: &str) -> Vec<String> {
        match key.contains('@') {
            true => vec![key.to_owned()],
            false => self.bare.iter().map(|domain| format!("{key}@{domain}")).collect(),
        }
    }

    /// The addresses that a name of this machine has.
    pub fn of_local(&self, name: &str) -> Vec<String> {
        self.here.iter().map(|domain| format!("{name}@{domain}")).collect()
    }

    /// The name of a user of this machine, if an address is in one of its domains.
    pub fn user<'a>(&self, address: &'a str) -> Option<&'a str> {
        let (name, domain) = address.rsplit_once('@')?;
        self.here.iter().any(|known| known == domain).then_some(name)
    }

    /// Whether a table has an address.
    pub fn is_alias(&self, address: &str) -> bool {
        self.targets(address).is_some()
    }

    /// A name with its domain.
    pub fn whole(&self, name: &str) -> String {
        if name.contains('@') { name.to_owned() } else { format!("{name}@{}", self.home) }
    }

    /// An address without its detail.
    fn without_detail(&self, address: &str) -> String {
        let Some((local, domain)) = address.rsplit_once('@') else { return address.to_owned() };
        match local.find(|letter| self.delimiters.contains(letter)).filter(|&at| at > 0) {
            Some(at) => format!("{}@{domain}", &local[..at]),
            None => address.to_owned(),
        }
    }

    fn targets(&self, address: &str) -> Option<&Vec<Target>> {
        let (name, domain) = address.rsplit_once('@')?;
        let of_name = || self.bare.contains(domain).then(|| self.virtuals.get(name)).flatten();
        let of_domain = || self.virtuals.get(address.get(name.len()..)?);
        let of_user = || self.user(address).and_then(|name| self.locals.get(name));
        self.virtuals.get(address).or_else(of_name).or_else(of_domain).or_else(of_user)
    }
}

/// The targets of a value, parted by commas and white space outside of quotes.
pub fn targets(value: &str) -> Vec<Target> {
    let (mut found, mut word, mut in_quotes, mut letters) = (Vec::new(), String::new(), false, value.chars());
    while let Some(letter) = letters.next() {
        match letter {
            '"' => in_quotes = !in_quotes,
            '\\' if in_quotes => word.extend(letters.next()),
            // A command has its arguments behind it.
            letter if !in_quotes && (letter == ',' || letter.is_whitespace() && !word.starts_with('|')) => {
                found.extend(target(&std::mem::take(&mut word)));
            }
            letter => word.push(letter),
        }
    }
    found.extend(target(&word));
    found
}

fn target(word: &str) -> Option<Target> {
    let word = word.trim();
    match word.chars().next()? {
        '|' | '/' => Some(Target::Program),
        ':' => Some(Target::Program),
        '@' => Some(Target::Domain),
        '\\' => Some(Target::Mailbox(word.trim_start_matches('\\').to_ascii_lowercase())),
        _ => Some(Target::Address(word.to_ascii_lowercase())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn site(virtuals: &[(&str, &str)], locals: &[(&str, &str)]) -> Aliases {
        let table = |entries: &[(&str, &str)]| {
            entries.iter().map(|(key, value)| ((*key).to_owned(), targets(value))).collect::<BTreeMap<_, _>>()
        };
        let here = ["example.org", "mx.example.org"].map(str::to_owned);
        let bare = here.iter().cloned().collect();
        let (virtuals, locals) = (table(virtuals), table(locals));
        Aliases { here: here.into(), home: "example.org".into(), bare, virtuals, locals, delimiters: "+".into() }
    }

    fn mailboxes(site: &Aliases, address: &str) -> String {
        site.mailboxes(address, &mut 10_000).into_iter().collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn aliases_are_followed_to_mailboxes() {
        let site = site(
            &[
                ("abuse@one.test", "postmaster@one.test"),
                ("postmaster@one.test", "info@one.test, root"),
                ("both@one.test", "both@one.test copy@far.test"),
                ("@all.test", "info@one.test"),
                ("sales", "info@one.test"),
                ("loop@one.test", "pool@one.test"),
                ("pool@one.test", "loop@one.test"),
            ],
            &[
                ("mailer-daemon", "postmaster"),
                ("postmaster", "root"),
                ("root", "Ann"),
                ("ann", "\\ann, ann@far.test"),
                ("list", "\"|/bin/list post list\", /var/mail/x, :include:/x"),
            ],
        );
        for (address, wanted) in [
            ("mailer-daemon@mx.example.org", "ann@example.org ann@far.test"),
            ("abuse@one.test", "ann@example.org ann@far.test info@one.test"),
            ("both@one.test", "both@one.test copy@far.test"),
            ("@all.test", "info@one.test"),
            ("any@all.test", "info@one.test"),
            ("sales@mx.example.org", "info@one.test"),
            ("sales@one.test", "sales@one.test"),
            ("loop@one.test", ""),
            ("list@example.org", ""),
            ("bob@mx.example.org", "bob@mx.example.org"),
        ] {
            assert_eq!(mailboxes(&site, address), wanted, "{address}");
        }
        assert_eq!(site.of_virtual("sales"), ["sales@example.org", "sales@mx.example.org"]);
    }

    #[test]
    fn targets_keep_what_is_in_quotes_together() {
        let address = |name: &str| Target::Address(name.into());
        assert_eq!(
            targets("\"|/bin/list post\", ann bob,c"),
            [Target::Program, address("ann"), address("bob"), address("c")]
        );
        assert_eq!(targets("|/bin/vacation -a ann, \\Ann"), [Target::Program, Target::Mailbox("ann".into())]);
        assert_eq!(targets("\"a \\\"b\"@example.org @example.net"), [address("a \"b@example.org"), Target::Domain]);
        assert_eq!(targets(" , "), []);
    }

    #[test]
    fn steps_and_targets_are_bounded() {
        let many: Vec<String> = (0..5_000).map(|at| format!("u{at}")).collect();
        let mut site = site(&[], &[("all", &many.join(","))]);
        assert_eq!(site.mailboxes("all@example.org", &mut 100_000).len(), TARGETS_MAX - 1);
        for at in 0..5_000 {
            site.locals.insert(format!("u{at}"), targets(&format!("u{}", at + 1)));
        }
        let mut left = 50;
        assert!(site.mailboxes("u0@example.org", &mut left).is_empty() && left == 0);
    }
}
