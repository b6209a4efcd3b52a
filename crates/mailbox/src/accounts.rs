//! Accounts of the mail server: a file with a line for each, read anew when it changes.
//!
//! ```text
//! # name:hash:settings
//! tim@example.org:$argon2id$v=19$m=19456,t=2,p=1$...:scram=SCRAM-SHA-256$... quota=1073741824 aliases=info@example.org,@example.net
//! ```
//! `group=NAME` is the group of a user of the web. `disabled`: nobody may log in, and mail comes in all the same.
//!
//! Other hashes than Argon2's are those of [`password`](crate::password).
//!
//! Names and addresses are compared without regard to case. An address is an account's if it is its name, one of its
//! aliases, either with `+detail` behind the local part, if its local part is the name of an account without a domain, or if
//! `@domain` is an alias. An alias of several accounts is a group.
//!
//! A file that cannot be understood is refused as a whole, and what was read before goes on to hold.
//!
//! Who is in no line of it may be known [`Elsewhere`], which is asked before the file's `@domain` is looked at. An account from there to which
//! nobody logs in, and which has another name than the address, is an alias: it is followed, to accounts of the file too.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::account::checked;
use crate::elsewhere::{Away, Elsewhere};

pub use crate::account::{Account, Login, in_ascii};
pub use crate::password::{hash, random_password};
pub use crate::rewriting::{lock, rewrite};

/// Domains whose postmaster is looked for.
const POSTMASTERS_MAX: usize = 20;

/// Names that one address from elsewhere leads to.
const NAMES_MAX: usize = 1_000;

/// How long an empty file stands for the one that is being written.
const EMPTY_WAIT: Duration = Duration::from_secs(10);

/// How often the file is looked at.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// An account that a mail is for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recipient {
    /// The account.
    pub account: Arc<Account>,
    /// Text after `+` in the local part of the address.
    pub detail: Option<String>,
}

/// Content of an accounts file.
#[derive(Debug, Default)]
pub struct Directory {
    accounts: BTreeMap<String, Arc<Account>>,
    aliases: BTreeMap<String, Vec<Arc<Account>>>,
    domains: BTreeSet<String>,
}

/// The accounts of a file, as they are now.
pub struct Accounts {
    path: PathBuf,
    held: Mutex<Held>,
    elsewhere: Option<Arc<dyn Elsewhere>>,
    /// Reads the text of the file.
    read: Read,
}

/// A way to read a file of accounts.
type Read = fn(&Path, &str) -> Result<Directory, String>;

#[derive(Debug)]
struct Held {
    directory: Arc<Directory>,
    identity: Option<Identity>,
    looked: Instant,
}

/// Identity of one version of the file.
type Identity = (u64, u64, i64, i64);

impl Accounts {
    /// Reads a file.
    ///
    /// # Errors
    /// When it cannot be read or understood.
    pub fn open(path: &Path) -> io::Result<Accounts> {
        Accounts::open_by(path, parse)
    }

    /// Reads a file that other programs write, as `htpasswd` does: a line that cannot be understood is logged and left out.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn open_foreign(path: &Path) -> io::Result<Accounts> {
        Accounts::open_by(path, |path, text| {
            let (directory, faults) = Directory::parse_foreign(text);
            for why in faults {
                tracing::warn!(file = %path.display(), why, "a line of the accounts is left out");
            }
            Ok(directory)
        })
    }

    fn open_by(path: &Path, read: Read) -> io::Result<Accounts> {
        let (directory, identity) = load(path, read)?;
        let held = Held { directory: Arc::new(directory), identity: Some(identity), looked: Instant::now() };
        Ok(Accounts { path: path.into(), held: Mutex::new(held), elsewhere: None, read })
    }

    /// No accounts file: all accounts are in databases or directories.
    pub fn without_file() -> Accounts {
        let held = Held { directory: Arc::default(), identity: None, looked: Instant::now() };
        Accounts { path: PathBuf::new(), held: Mutex::new(held), elsewhere: None, read: parse }
    }

    /// The same, with those that are kept elsewhere.
    pub fn and(self, elsewhere: Arc<dyn Elsewhere>) -> Accounts {
        Accounts { elsewhere: Some(elsewhere), ..self }
    }

    /// The account that logs in by a name. With `now` nothing is answered that is only remembered.
    ///
    /// # Errors
    /// When it may be elsewhere, and nobody can say.
    pub async fn named(&self, name: &str, now: bool) -> Result<Option<Arc<Account>>, Away> {
        let known = self.directory().named(name).cloned();
        match (&self.elsewhere, known) {
            (Some(elsewhere), None) => {
                let mut found = elsewhere.find(&name.to_ascii_lowercase(), now).await?;
                // An address of several is nobody's name.
                Ok(found.pop().filter(|_| found.is_empty()).map(Arc::new))
            }
            (_, known) => Ok(known),
        }
    }

    /// Recipients that an address stands for; empty if there are none.
    ///
    /// # Errors
    /// As [`Accounts::named`].
    pub async fn recipients(&self, address: &str) -> Result<Vec<Recipient>, Away> {
        let directory = self.directory();
        let known = directory.recipients(address);
        if !known.is_empty() {
            return Ok(known);
        }
        let Some(elsewhere) = &self.elsewhere else { return Ok(directory.catch_all(address)) };
        let address = address.to_ascii_lowercase();
        let found = followed(&**elsewhere, &directory, &address).await?;
        let (found, detail) = match split(&address) {
            Some((base, detail)) if found.is_empty() => {
                (followed(&**elsewhere, &directory, &base).await?, Some(detail))
            }
            _ => (found, None),
        };
        let recipient = |account| Recipient { account, detail: detail.clone() };
        match found.is_empty() {
            true => Ok(directory.catch_all(&address)),
            false => Ok(found.into_iter().map(recipient).collect()),
        }
    }

    /// Recipients that an address stands for; `postmaster` without a domain or at this host too, which every server has (RFC 5321,
    /// section 4.5.1): where nobody is called so, it is the postmaster of a domain of accounts, the first by name that has one.
    ///
    /// # Errors
    /// As [`recipients`](Accounts::recipients).
    pub async fn at(&self, address: &str, hostname: &str) -> Result<Vec<Recipient>, Away> {
        let found = self.recipients(address).await?;
        let own = format!("postmaster@{hostname}");
        if !found.is_empty() || !["postmaster", &own].iter().any(|known| address.eq_ignore_ascii_case(known)) {
            return Ok(found);
        }
        let directory = self.directory();
        let mut domains: Vec<&str> = directory.domains().collect();
        domains.sort_unstable();
        for domain in [hostname].into_iter().chain(domains).take(POSTMASTERS_MAX) {
            let found = self.recipients(&format!("postmaster@{domain}")).await?;
            if !found.is_empty() {
                return Ok(found);
            }
        }
        Ok(Vec::new())
    }

    /// The accounts of an address that a mail goes out to: a name without a domain is one at this host, and at domains of other accounts.
    ///
    /// # Errors
    /// As [`Accounts::named`].
    pub async fn at_home(&self, address: &str, hostname: &str) -> Result<Vec<Recipient>, Away> {
        let directory = self.directory();
        let domain = directory.known_as(address).rsplit_once('@').map(|(_, domain)| domain.to_owned());
        if domain.is_none_or(|domain| domain.eq_ignore_ascii_case(hostname) || directory.has_domain(&domain)) {
            return self.at(address, hostname).await;
        }
        let Some(elsewhere) = &self.elsewhere else { return Ok(Vec::new()) };
        let found = followed(&**elsewhere, &directory, &address.to_ascii_lowercase()).await?;
        Ok(found.into_iter().map(|account| Recipient { account, detail: None }).collect())
    }

    /// Whether this is the password of an entry elsewhere.
    pub(crate) async fn is_password(&self, table: &str, entry: &str, password: &str) -> Result<bool, Away> {
        match &self.elsewhere {
            Some(elsewhere) => elsewhere.is_password(table, entry, password).await,
            None => Ok(false),
        }
    }

    /// Current content of the file.
    pub fn directory(&self) -> Arc<Directory> {
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        if held.looked.elapsed() < LOOK_EVERY {
            return held.directory.clone();
        }
        held.looked = Instant::now();
        let found = fs::metadata(&self.path).ok();
        if found.as_ref().map(identity) != held.identity {
            match load(&self.path, self.read) {
                // Somebody writes it anew.
                Ok((_, (_, 0, ..))) if held.directory.accounts().next().is_some() && is_young(found.as_ref()) => {
                    tracing::warn!(file = %self.path.display(), "the file of accounts is empty: the old ones stay for now");
                }
                Ok((directory, identity)) => (held.directory, held.identity) = (Arc::new(directory), Some(identity)),
                Err(error) => {
                    tracing::warn!(file = %self.path.display(), %error, "accounts not loaded, the old ones stay")
                }
            }
        }
        held.directory.clone()
    }
}

/// The accounts of an address elsewhere, at the ends of its aliases. A name without an account is left out.
async fn followed(elsewhere: &dyn Elsewhere, directory: &Directory, address: &str) -> Result<Vec<Arc<Account>>, Away> {
    let (mut found, mut seen) = (BTreeMap::new(), BTreeSet::from([address.to_owned()]));
    let mut open = vec![address.to_owned()];
    while let Some(name) = open.pop() {
        let accounts = elsewhere.find(&name, false).await?;
        if accounts.is_empty() && name != address {
            tracing::warn!(address, name, "an alias leads to no account");
        }
        for account in accounts {
            if account.login != Login::Nobody || account.name == name {
                found.insert(account.name.clone(), Arc::new(account));
                continue;
            }
            let known = directory.recipients(&account.name);
            if known.is_empty() && seen.insert(account.name.clone()) {
                open.push(account.name);
            }
            found.extend(known.into_iter().map(|known| (known.account.name.clone(), known.account)));
        }
        if seen.len() > NAMES_MAX {
            return Err(Away(format!("{address} leads to more than {NAMES_MAX} names")));
        }
    }
    Ok(found.into_values().collect())
}

fn load(path: &Path, read: Read) -> io::Result<(Directory, Identity)> {
    let file = fs::File::open(path)?;
    let identity = identity(&file.metadata()?);
    Ok((read(path, &io::read_to_string(file)?).map_err(io::Error::other)?, identity))
}

fn parse(_: &Path, text: &str) -> Result<Directory, String> {
    Directory::parse(text)
}

/// Whether a file was written just now.
fn is_young(found: Option<&fs::Metadata>) -> bool {
    let age = found.and_then(|found| found.modified().ok()).map(|modified| modified.elapsed().unwrap_or_default());
    age.is_some_and(|age| age < EMPTY_WAIT)
}

fn identity(found: &fs::Metadata) -> Identity {
    (found.ino(), found.len(), found.mtime(), found.mtime_nsec())
}

/// The lines of a file that have an account, with their numbers.
fn lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let lines = text.lines().map(str::trim).enumerate().map(|(at, line)| (at + 1, line));
    lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#'))
}

impl Directory {
    /// Reads the text of a file.
    ///
    /// # Errors
    /// Which line is wrong, and why.
    pub fn parse(text: &str) -> Result<Directory, String> {
        let mut directory = Directory::default();
        for (number, line) in lines(text) {
            directory.take(line).map_err(|why| format!("line {number}: {why}"))?;
        }
        Ok(directory)
    }

    /// Reads the text of a file as far as it is understood; the other lines are told, with what is wrong.
    pub fn parse_foreign(text: &str) -> (Directory, Vec<String>) {
        let (mut directory, mut faults) = (Directory::default(), Vec::new());
        for (number, line) in lines(text) {
            faults.extend(directory.take(line).err().map(|why| format!("line {number}: {why}")));
        }
        (directory, faults)
    }

    /// The accounts of the lines that are understood, with their numbers.
    pub fn numbered(text: &str) -> impl Iterator<Item = (usize, Account)> {
        lines(text).filter_map(|(number, line)| Some((number, Account::parse(line).ok()?)))
    }

    /// Takes the account of a line.
    fn take(&mut self, line: &str) -> Result<(), String> {
        let account = Arc::new(Account::parse(line)?);
        if self.accounts.contains_key(&account.name) {
            return Err(format!("{} is there twice", account.name));
        }
        let domain = |name: &String| name.rsplit_once('@').map(|(_, domain)| domain.to_owned());
        self.domains.extend(account.aliases.iter().chain([&account.name]).filter_map(domain));
        for alias in &account.aliases {
            self.aliases.entry(alias.clone()).or_default().push(account.clone());
        }
        self.accounts.insert(account.name.clone(), account);
        Ok(())
    }

    /// All accounts by name.
    pub fn accounts(&self) -> impl Iterator<Item = &Account> {
        self.accounts.values().map(|account| &**account)
    }

    /// The account with this name.
    pub fn named(&self, name: &str) -> Option<&Arc<Account>> {
        self.accounts.get(&self.known_as(name))
    }

    /// A name or address as accounts have it: in lower case, with its domain in ASCII unless accounts have that otherwise.
    fn known_as(&self, name: &str) -> String {
        let plain = name.to_ascii_lowercase();
        let is_known = plain.rsplit_once('@').is_none_or(|(_, domain)| self.domains.contains(domain));
        if is_known { plain } else { in_ascii(&plain) }
    }

    /// All domains of addresses, in lower case.
    pub fn domains(&self) -> impl Iterator<Item = &str> {
        self.domains.iter().map(String::as_str)
    }

    /// Whether some address in a domain, which is in lower case, is somebody's.
    pub fn has_domain(&self, domain: &str) -> bool {
        self.domains.contains(domain)
    }

    /// Recipients that an address stands for, without catch-alls; empty if there are none.
    pub fn recipients(&self, address: &str) -> Vec<Recipient> {
        let address = self.known_as(address);
        let (local, domain) = match address.rsplit_once('@') {
            Some((local, domain)) => (local, Some(domain)),
            None => (address.as_str(), None),
        };
        let unquoted = unquoted(local);
        let local = unquoted.as_deref().unwrap_or(local);
        let with = |local: &str| domain.map_or_else(|| local.to_owned(), |domain| format!("{local}@{domain}"));
        let split = local.split_once('+').filter(|(base, detail)| !base.is_empty() && !detail.is_empty());
        let mut ways = vec![(with(local), None), (local.to_owned(), None)];
        if let Some((base, detail)) = split {
            ways.insert(1, (with(base), Some(detail)));
            ways.push((base.to_owned(), Some(detail)));
        }
        let found = ways.into_iter().map(|(name, detail)| (self.having(&name), detail));
        let found = found.into_iter().find(|(accounts, _)| !accounts.is_empty());
        let (accounts, detail) = found.unwrap_or_default();
        let detail = detail.map(str::to_owned);
        accounts.into_iter().map(|account| Recipient { account, detail: detail.clone() }).collect()
    }

    /// Accounts that have `@domain` of the address as an alias.
    pub fn catch_all(&self, address: &str) -> Vec<Recipient> {
        let address = self.known_as(address);
        let at = address.rfind('@').and_then(|at| address.get(at..)).unwrap_or_default();
        let accounts = self.having(at).into_iter();
        accounts.map(|account| Recipient { account, detail: None }).collect()
    }

    fn having(&self, name: &str) -> Vec<Arc<Account>> {
        let named = self.accounts.get(name).map(|account| vec![account.clone()]);
        named.or_else(|| self.aliases.get(name).cloned()).unwrap_or_default()
    }
}

/// A local part in quotes without them: it is the same mailbox (RFC 5321, section 4.1.2).
fn unquoted(local: &str) -> Option<String> {
    let mut characters = local.strip_prefix('"')?.strip_suffix('"')?.chars();
    let mut plain = String::new();
    while let Some(character) = characters.next() {
        plain.push(if character == '\\' { characters.next()? } else { character });
    }
    Some(plain)
}

/// Splits an address into the part without `+detail`, and the detail.
fn split(address: &str) -> Option<(String, String)> {
    let (local, domain) = address.rsplit_once('@').map_or((address, None), |(local, domain)| (local, Some(domain)));
    let (base, detail) = local.split_once('+').filter(|(base, detail)| !base.is_empty() && !detail.is_empty())?;
    Some((domain.map_or_else(|| base.to_owned(), |domain| format!("{base}@{domain}")), detail.to_owned()))
}

/// Changes a file: the account with this name becomes what `change` makes of it, or goes. Other lines stay as they are.
///
/// # Errors
/// As [`rewrite`], and when the file cannot be understood.
pub fn edit(
    path: &Path,
    name: &str,
    change: impl FnOnce(Option<Account>) -> Result<Option<Account>, String>,
) -> io::Result<()> {
    rewrite(path, |before| edited(before, name, change))
}

/// The same for the text of a file.
///
/// # Errors
/// When it cannot be understood, and what `change` fails with.
pub fn edited(
    before: &str,
    name: &str,
    change: impl FnOnce(Option<Account>) -> Result<Option<Account>, String>,
) -> Result<String, String> {
    let name = checked(name)?;
    Directory::parse(before)?;
    let is_it = |line: &&str| {
        let named = line.trim().split(':').next().unwrap_or_default().to_ascii_lowercase();
        named == name && !line.trim().starts_with('#')
    };
    let found = before.lines().find(is_it).map(|line| Account::parse(line.trim())).transpose()?;
    let known = found.as_ref().map(|account| account.aliases.clone()).unwrap_or_default();
    let account = change(found)?;
    let mut lines: Vec<String> = before.lines().filter(|line| !is_it(line)).map(str::to_owned).collect();
    lines.extend(account.as_ref().map(Account::line));
    let text: String = lines.iter().flat_map(|line| [line.as_str(), "\n"]).collect();
    let directory = Directory::parse(&text)?;
    let new = account.iter().flat_map(|account| &account.aliases).filter(|alias| !known.contains(alias));
    // Mail to it would go to its owner alone, and a second account could write in its name.
    match new.filter(|alias| **alias != name).find(|alias| directory.accounts.contains_key(*alias)) {
        Some(taken) => Err(format!("{taken} is the name of an account")),
        None => Ok(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::password::Password;

    fn is(account: Option<&Arc<Account>>, password: &[u8]) -> bool {
        matches!(&account.unwrap().login, Login::Hash(hash) if hash.is(password))
    }

    #[test]
    fn a_faulty_line_of_a_foreign_file_leaves_the_others() {
        let text = "ann:{PLAIN}a\nbob smith:{PLAIN}b\n# x\nann:{PLAIN}c\ncarl:{PLAIN}d\n";
        let (directory, faults) = Directory::parse_foreign(text);
        assert!(is(directory.named("ann"), b"a") && is(directory.named("carl"), b"d"));
        let numbers: Vec<&str> = faults.iter().filter_map(|why| why.split(':').next()).collect();
        assert_eq!(numbers, ["line 2", "line 4"]);
        assert!(Directory::parse(text).is_err_and(|why| why.starts_with("line 2:")));
    }

    fn names(directory: &Directory, address: &str) -> String {
        let mut recipients = directory.recipients(address);
        if recipients.is_empty() {
            recipients = directory.catch_all(address);
        }
        let name = |recipient: &Recipient| match &recipient.detail {
            Some(detail) => format!("{}/{detail}", recipient.account.name),
            None => recipient.account.name.clone(),
        };
        recipients.iter().map(name).collect::<Vec<_>>().join(" ")
    }

    /// A table: a name, whether somebody logs in, and the accounts of its rows.
    struct Table(&'static [(&'static str, bool, &'static [&'static str])]);

    impl Elsewhere for Table {
        fn find<'a>(&'a self, name: &'a str, _: bool) -> crate::elsewhere::Asking<'a, Vec<Account>> {
            Box::pin(async move {
                let rows = self.0.iter().filter(|(known, ..)| *known == name);
                let login = |is_open: bool| match is_open {
                    true => Login::Hash(Password::parse("{PLAIN}x").unwrap()),
                    false => Login::Nobody,
                };
                let accounts = rows.flat_map(|(_, is_open, names)| names.iter().map(move |name| (*is_open, *name)));
                Ok(accounts
                    .map(|(is_open, name)| Account { login: login(is_open), ..Account::new(name).unwrap() })
                    .collect())
            })
        }

        fn is_password<'a>(&'a self, _: &'a str, _: &'a str, _: &'a str) -> crate::elsewhere::Asking<'a, bool> {
            Box::pin(async { Ok(false) })
        }
    }

    #[tokio::test]
    async fn the_postmaster_is_found_without_a_domain_and_at_the_host() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("accounts");
        let found = async |file: &str, address: &str| {
            fs::write(&path, file).unwrap();
            let accounts = Accounts::open(&path).unwrap();
            let all = accounts.at(address, "mx.one.test").await.unwrap();
            all.first().map(|recipient| recipient.account.name.clone()).unwrap_or_default()
        };
        let file = "ann@zero.test::\npostmaster@two.test::\nroot@one.test::aliases=postmaster@one.test\n";
        for address in ["postmaster", "Postmaster", "postmaster@mx.one.test", "POSTMASTER@MX.one.test"] {
            assert_eq!(found(file, address).await, "root@one.test", "{address}: the first domain that has one");
        }
        assert_eq!(found(file, "postmaster@two.test").await, "postmaster@two.test");
        assert_eq!(found(file, "postmaster@zero.test").await, "");
        assert_eq!(found("ann@one.test::\n", "postmaster").await, "");
    }

    #[tokio::test]
    async fn aliases_elsewhere_are_followed_to_accounts() {
        let table = Table(&[
            ("ann@two.test", true, &["ann@two.test"]),
            ("tim@two.test", true, &["tim"]),
            ("shared@two.test", false, &["shared@two.test"]),
            ("info@two.test", false, &["sales@two.test"]),
            ("sales@two.test", false, &["ann@two.test", "bob@one.test", "x@far.test"]),
            ("out@two.test", false, &["x@far.test"]),
            ("loop@two.test", false, &["pool@two.test"]),
            ("pool@two.test", false, &["loop@two.test"]),
        ]);
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("accounts");
        fs::write(&path, "bob@one.test::\n").unwrap();
        let accounts = Accounts::open(&path).unwrap().and(Arc::new(table));
        for (address, wanted) in [
            ("ann@two.test", "ann@two.test"),
            ("tim@two.test", "tim"),
            ("shared@two.test", "shared@two.test"),
            ("info@two.test", "ann@two.test bob@one.test"),
            ("info+x@two.test", "ann@two.test bob@one.test"),
            ("out@two.test", ""),
            ("loop@two.test", ""),
        ] {
            let found = accounts.recipients(address).await.unwrap();
            let names: Vec<&str> = found.iter().map(|recipient| &*recipient.account.name).collect();
            assert_eq!(names.join(" "), wanted, "{address}");
        }
    }

    #[test]
    fn an_address_is_its_accounts() {
        let directory = Directory::parse(
            "# who\nTim@Example.org::quota=10 aliases=info@example.org,@example.net\nann::aliases=info@example.org\n\
             eve@xn--bcher-kva.example::aliases=@xn--grn-ioa.example\nold@\u{fc}ber.example::\n",
        )
        .unwrap();
        for (address, wanted) in [
            ("tim@example.ORG", "tim@example.org"),
            ("tim+Lists@example.org", "tim@example.org/lists"),
            ("info@example.org", "tim@example.org ann"),
            ("info+x@example.org", "tim@example.org/x ann/x"),
            ("ann@anywhere.example", "ann"),
            ("ann+a+b@anywhere.example", "ann/a+b"),
            ("anybody@example.net", "tim@example.org"),
            ("nobody@example.org", ""),
            ("+x@example.org", ""),
            ("tim", ""),
            ("\"tim\"@example.org", "tim@example.org"),
            ("\"t\\im\"@example.org", "tim@example.org"),
            ("\"nobody\"@example.org", ""),
            ("Eve@B\u{fc}cher.example", "eve@xn--bcher-kva.example"),
            ("eve+x@xn--bcher-kva.example", "eve@xn--bcher-kva.example/x"),
            ("anybody@gr\u{fc}n.example", "eve@xn--bcher-kva.example"),
            ("old@\u{fc}ber.example", "old@\u{fc}ber.example"),
        ] {
            assert_eq!(names(&directory, address), wanted, "{address}");
        }
    }

    #[test]
    fn lines_that_mean_nothing_are_refused() {
        for text in ["tim", "tim::x=1", "tim:secret:", "a b::", "tim::\ntim::", "::", "tim::quota=1G"] {
            assert!(Directory::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn an_alias_is_no_name_of_another_account() {
        let folder = tempfile::tempdir().unwrap();
        let path = &folder.path().join("accounts");
        fs::write(path, "ann@x.test::\nbob::\n").unwrap();
        let with = |aliases: &'static [&'static str]| {
            edit(path, "bob", |found| {
                let mut account = found.unwrap();
                account.set_aliases(aliases.iter().copied())?;
                Ok(Some(account))
            })
        };
        assert!(with(&["ann@x.test"]).is_err());
        with(&["b@x.test", "B@x.test", "bob"]).unwrap();
        assert_eq!(fs::read_to_string(path).unwrap(), "ann@x.test::\nbob::aliases=b@x.test,bob\n");
    }

    #[test]
    fn edits_at_the_same_time_are_all_made() {
        let folder = tempfile::tempdir().unwrap();
        let path = &folder.path().join("accounts");
        std::thread::scope(|scope| {
            for number in 0..20 {
                let name = format!("user{number}");
                scope.spawn(move || edit(path, &name, |_| Ok(Some(Account::new(&name).unwrap()))).unwrap());
            }
        });
        assert_eq!(Accounts::open(path).unwrap().directory().accounts().count(), 20);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn an_edit_keeps_what_it_is_not_about() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("accounts");
        fs::write(&path, "# ours\nann::quota=7\n").unwrap();
        let hash = hash(b"secret").unwrap();
        let login = Login::Hash(Password::parse(&hash).unwrap());
        let add = |_| Ok(Some(Account { login, ..Account::new("tim").unwrap() }));
        edit(&path, "Tim", add).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), format!("# ours\nann::quota=7\ntim:{hash}:\n"));
        let accounts = Accounts::open(&path).unwrap();
        let directory = accounts.directory();
        assert!(is(directory.named("TIM"), b"secret"));
        assert!(!is(directory.named("tim"), b"Secret"));
        assert!(!is(directory.named("ann"), b""));
        let set = |found: Option<Account>| {
            let mut account = found.unwrap();
            account.set_password(b"other").unwrap();
            Ok(Some(account))
        };
        edit(&path, "ann", set).unwrap();
        let text = fs::read_to_string(&path).unwrap();
        let ann = Directory::parse(&text).unwrap().named("ann").unwrap().clone();
        assert!(is(Some(&ann), b"other") && ann.scram.is_some() && ann.quota_bytes == 7, "{text}");
        edit(&path, "ann", |_| Ok(Some(Account { quota_bytes: 7, ..Account::new("ann").unwrap() }))).unwrap();
        edit(&path, "tim", |_| Ok(None)).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "# ours\nann::quota=7\n");
    }
}
