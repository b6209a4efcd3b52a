//! One account, and the line that it is in a file of [`accounts`](crate::accounts).

use std::io;

use crate::password::{self, Password};
use crate::scram::Keys;

/// The longest name, in bytes.
const NAME_BYTES_MAX: usize = 255;

/// The setting of an account that is disabled.
const DISABLED: &str = "disabled";

/// An account.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Account {
    /// Login name, in lower case.
    pub name: String,
    /// Password hash, or the table that has it.
    pub login: Login,
    /// Keys for SCRAM-SHA-256; none if the password was set without them.
    pub scram: Option<Keys>,
    /// Bytes of mail; 0 is no bound.
    pub quota_bytes: u64,
    /// Other addresses of it, in lower case.
    pub aliases: Vec<String>,
    /// The group that it is in, for those who ask for groups.
    pub group: Option<String>,
    /// Whether nobody may log in, whatever the password; mail comes in all the same.
    pub is_disabled: bool,
}

/// Source of the password that a login is compared with.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Login {
    /// Nothing: nobody may log in.
    #[default]
    Nobody,
    /// A hash.
    Hash(Password),
    /// An entry of a table elsewhere, which is asked.
    Elsewhere {
        /// The table.
        table: String,
        /// Name of the entry in that table.
        entry: String,
    },
}

impl Account {
    /// An account without anything.
    ///
    /// # Errors
    /// Why this is no name.
    pub fn new(name: &str) -> Result<Account, String> {
        Ok(Account {
            name: checked(name)?,
            login: Login::default(),
            scram: None,
            quota_bytes: 0,
            aliases: Vec::new(),
            group: None,
            is_disabled: false,
        })
    }

    pub(crate) fn parse(line: &str) -> Result<Account, String> {
        let mut fields = line.splitn(3, ':');
        let mut account = Account::new(fields.next().unwrap_or_default())?;
        let hash = fields.next().ok_or("a name, a colon and a hash of a password are needed")?;
        if !hash.is_empty() {
            account.login = Login::Hash(Password::parse(hash)?);
        }
        for setting in fields.next().unwrap_or_default().split_ascii_whitespace() {
            match setting.split_once('=') {
                Some(("quota", bytes)) => account.quota_bytes = bytes.parse().map_err(|_| "quota= takes bytes")?,
                Some(("scram", keys)) => account.scram = Some(keys.parse()?),
                Some(("aliases", names)) => account.set_aliases(names.split(','))?,
                Some(("group", name)) if !name.is_empty() => account.group = Some(name.into()),
                None if setting == DISABLED => account.is_disabled = true,
                _ => return Err(format!("{setting:?} is not known")),
            }
        }
        Ok(account)
    }

    /// Gives it a password.
    ///
    /// # Errors
    /// When there is no randomness.
    pub fn set_password(&mut self, password: &[u8]) -> io::Result<()> {
        self.login = Login::Hash(Password::parse(&password::hash(password)?).map_err(io::Error::other)?);
        self.scram = Some(Keys::new(password, &password::random::<16>()?));
        Ok(())
    }

    /// Gives it other addresses, in the place of those that it has.
    ///
    /// # Errors
    /// When one is not an address.
    pub fn set_aliases<'a>(&mut self, addresses: impl IntoIterator<Item = &'a str>) -> Result<(), String> {
        let mut aliases: Vec<String> = Vec::new();
        for address in addresses {
            let alias = checked(address)?;
            if !aliases.contains(&alias) {
                aliases.push(alias);
            }
        }
        self.aliases = aliases;
        Ok(())
    }

    /// As it stands in the file.
    pub fn line(&self) -> String {
        let quota = (self.quota_bytes > 0).then(|| format!("quota={}", self.quota_bytes));
        let aliases = (!self.aliases.is_empty()).then(|| format!("aliases={}", self.aliases.join(",")));
        let scram = self.scram.as_ref().map(|keys| format!("scram={keys}"));
        let group = self.group.as_ref().map(|group| format!("group={group}"));
        let disabled = self.is_disabled.then(|| DISABLED.to_owned());
        let settings = scram.into_iter().chain(quota).chain(aliases).chain(group).chain(disabled);
        let settings: Vec<String> = settings.collect();
        let hash = if let Login::Hash(password) = &self.login { password.as_str() } else { "" };
        format!("{}:{hash}:{}", self.name, settings.join(" "))
    }
}

/// A name or address in lower case, with its domain in ASCII (RFC 5890): mail comes to `xn--` names.
pub fn in_ascii(name: &str) -> String {
    let name = name.to_ascii_lowercase();
    match name.rsplit_once('@') {
        Some((local, domain)) if !domain.is_ascii() => {
            text::host::mapped(domain).map_or_else(|| name.clone(), |domain| format!("{local}@{domain}"))
        }
        _ => name,
    }
}

/// A name or address in lower case.
pub(crate) fn checked(name: &str) -> Result<String, String> {
    let fits = (1..=NAME_BYTES_MAX).contains(&name.len());
    let odd = |character: char| character.is_whitespace() || character.is_control() || ":,=#/".contains(character);
    match fits && !name.contains(odd) {
        true => Ok(name.to_ascii_lowercase()),
        false => Err(format!("{name:?} is not a name or address")),
    }
}
