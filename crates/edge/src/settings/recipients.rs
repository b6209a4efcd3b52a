//! `[[recipients]]`: who has a mailbox, and where that is written.
//!
//! A listener names the tables that hold for it (`recipients = ["NAME"]`). `recipients/` asks them.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Deserialize;
use serde::de::{self, Deserializer};

use super::forward::Forward;

/// `[[recipients]]`
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RecipientTable {
    /// Name in listeners and the log.
    pub name: String,
    /// The domains whose recipients it knows all of; none: any domain.
    #[serde(default)]
    pub domains: Vec<Domain>,
    /// Lists of addresses: one a line, or as the source of a map of Postfix's.
    #[serde(default)]
    pub files: Vec<PathBuf>,
    /// Aliases, as in Postfix's `virtual` and `aliases`: each is a recipient.
    #[serde(default)]
    pub aliases: Vec<PathBuf>,
    /// Pattern of folders: a recipient whose folder exists has a mailbox.
    pub maildir: Option<FolderPattern>,
    /// Users: `system`, or files in the form of `passwd(5)`.
    #[serde(default)]
    pub passwd: Vec<Users>,
    /// Tables of databases and directories, `[[lookup]]`, by their names.
    #[serde(default)]
    pub lookups: Vec<String>,
    /// The server that knows recipients who are in no table.
    pub call_ahead: Option<CallAheadSettings>,
    /// Reply when a table cannot be asked.
    #[serde(default)]
    pub unsure: Unsure,
    /// The characters one of which ends the user's name in a local part; none: there are no extensions.
    #[serde(default = "plus")]
    pub delimiter: String,
}

/// Where users are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Users {
    /// Where the system looks them up.
    System,
    /// In a file.
    File(PathBuf),
}

impl Users {
    /// The file, if it is one.
    pub const fn path(&self) -> Option<&PathBuf> {
        match self {
            Users::System => None,
            Users::File(path) => Some(path),
        }
    }
}

impl<'de> Deserialize<'de> for Users {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Users, D::Error> {
        let text = String::deserialize(deserializer)?;
        Ok(if text == "system" { Users::System } else { Users::File(text.into()) })
    }
}

/// The folder of a recipient: a path with `%u` (the user), `%d` (the domain), `%s` (both, with an `@`) and `%%`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FolderPattern {
    text: String,
    /// The folder that all of them are in.
    above: PathBuf,
}

impl FolderPattern {
    /// The folder of a user, if it can have one: no name leads out of the folder that all are in.
    pub fn path(&self, user: &str, domain: Option<&str>) -> Option<PathBuf> {
        let name = |text: &str| {
            let is_one = !text.is_empty() && !text.starts_with('.') && !text.contains(['/', '\0']);
            is_one.then(|| text.to_string())
        };
        let mut path = String::with_capacity(self.text.len() + user.len());
        let mut characters = self.text.chars();
        while let Some(c) = characters.next() {
            if c != '%' {
                path.push(c);
                continue;
            }
            match characters.next()? {
                'u' => path.push_str(&name(user)?),
                'd' => path.push_str(&name(domain?)?),
                's' => path.push_str(&name(&format!("{}@{}", name(user)?, name(domain?)?))?),
                c => path.push(c),
            }
        }
        Some(path.into())
    }

    /// The folder that all of them are in.
    pub fn above(&self) -> &Path {
        &self.above
    }
}

impl std::fmt::Display for FolderPattern {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.text)
    }
}

impl std::str::FromStr for FolderPattern {
    type Err = String;

    fn from_str(text: &str) -> Result<FolderPattern, String> {
        let wrong = || format!("{text:?} is no folder of a recipient: an absolute path with %u, %d or %s");
        let mut parts = text.replace("%%", "").split('%').skip(1).map(|part| part.chars().next()).collect::<Vec<_>>();
        let is_known = parts.iter().all(|part| matches!(part, Some('u' | 'd' | 's')));
        parts.retain(|part| matches!(part, Some('u' | 's')));
        if !text.starts_with('/') || !is_known || parts.is_empty() {
            return Err(wrong());
        }
        let constant = text.split('%').next().unwrap_or_default();
        let above = constant.rsplit_once('/').map_or("/", |(above, _)| if above.is_empty() { "/" } else { above });
        Ok(FolderPattern { text: text.into(), above: above.into() })
    }
}

impl<'de> Deserialize<'de> for FolderPattern {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<FolderPattern, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(de::Error::custom)
    }
}

/// Reply when a table cannot be asked, and no other knows the recipient.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Unsure {
    /// Come again later.
    #[default]
    Defer,
    /// Nothing: the next hop decides.
    Pass,
}

/// `[recipients.call_ahead]`
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct CallAheadSettings {
    /// Server to ask.
    pub server: Asks,
    /// Seconds for an answer.
    pub seconds_max: u64,
    /// Connections at a time.
    pub connections_max: usize,
    /// Seconds for which somebody who has a mailbox is remembered, and after which the server is asked again meanwhile.
    pub valid_seconds: u64,
    /// See there.
    pub valid_refresh_seconds: u64,
    /// The same for who has none.
    pub unknown_seconds: u64,
    /// See there.
    pub unknown_refresh_seconds: u64,
    /// How many of each are remembered.
    pub entries_max: usize,
}

impl Default for CallAheadSettings {
    fn default() -> CallAheadSettings {
        CallAheadSettings {
            server: Asks::Forward,
            seconds_max: 30,
            connections_max: 4,
            valid_seconds: 7 * 86_400,
            valid_refresh_seconds: 86_400,
            unknown_seconds: 6 * 3_600,
            unknown_refresh_seconds: 600,
            entries_max: 100_000,
        }
    }
}

impl CallAheadSettings {
    /// How long an answer is waited for.
    pub const fn wait(&self) -> Duration {
        Duration::from_secs(self.seconds_max)
    }

    fn check(&self) -> Result<(), String> {
        if self.seconds_max == 0 || self.connections_max == 0 || self.entries_max == 0 {
            return Err("call_ahead: a limit of 0 would leave everything unknown".into());
        }
        if let Asks::Server(server) = &self.server
            && !server.asks_for_recipients()
        {
            return Err(format!("call_ahead: {server} cannot be asked: smtp, smtps or lmtp"));
        }
        Ok(())
    }
}

/// Server to ask for recipients: `forward`, or a URL.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Asks {
    /// The listener's next hop.
    Forward,
    /// This server.
    Server(Forward),
}

impl<'de> Deserialize<'de> for Asks {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Asks, D::Error> {
        match String::deserialize(deserializer)?.as_str() {
            "forward" => Ok(Asks::Forward),
            text => text.parse().map(Asks::Server).map_err(de::Error::custom),
        }
    }
}

/// `example.org`, or `*.example.org` for what is below it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Domain {
    /// In small letters, without the `*`.
    name: String,
    is_below: bool,
}

impl Domain {
    /// Whether the pattern matches this domain, in lower case.
    pub fn holds(&self, domain: &str) -> bool {
        match domain.strip_suffix(&self.name) {
            Some(front) if self.is_below => !front.is_empty(),
            Some(front) => front.is_empty(),
            None => false,
        }
    }
}

impl std::str::FromStr for Domain {
    type Err = String;

    fn from_str(text: &str) -> Result<Domain, String> {
        let (name, is_below) = match text.strip_prefix('*') {
            Some(rest) if rest.starts_with('.') => (rest, true),
            _ => (text, false),
        };
        let is_wrong = |c: char| c.is_whitespace() || c.is_control() || matches!(c, '@' | '*');
        if name.trim_matches('.').is_empty() || name.contains(is_wrong) {
            return Err(format!("{text:?} is no domain: DOMAIN, or *.DOMAIN for what is below it"));
        }
        Ok(Domain { name: name.to_lowercase(), is_below })
    }
}

impl<'de> Deserialize<'de> for Domain {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Domain, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(de::Error::custom)
    }
}

impl RecipientTable {
    /// The files that it reads.
    pub fn paths_mut(&mut self) -> impl Iterator<Item = &mut PathBuf> {
        let users = self.passwd.iter_mut().filter_map(|users| match users {
            Users::System => None,
            Users::File(path) => Some(path),
        });
        self.files.iter_mut().chain(&mut self.aliases).chain(users)
    }

    /// The same, to look at.
    pub fn paths(&self) -> impl Iterator<Item = &PathBuf> {
        let users = self.passwd.iter().filter_map(Users::path);
        self.files.iter().chain(&self.aliases).chain(users)
    }

    /// Whether it says where recipients are written, and in a way that can be.
    ///
    /// # Errors
    /// When it does not; the message says why.
    pub fn check(&self) -> Result<(), String> {
        let is_named = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
        if self.name.is_empty() || !self.name.chars().all(is_named) {
            return Err("a name is letters, digits and hyphens".into());
        }
        let is_looking = self.maildir.is_some() || !self.lookups.is_empty();
        let is_asking = is_looking || !self.passwd.is_empty() || self.call_ahead.is_some();
        if self.paths().next().is_none() && !is_asking {
            return Err("it names no table: files, aliases, maildir, passwd, lookups or call_ahead".into());
        }
        if let Some(call_ahead) = &self.call_ahead {
            call_ahead.check()?;
        }
        if !self.delimiter.chars().all(|c| c.is_ascii_graphic() && !matches!(c, '@' | '"' | '\\')) {
            return Err(format!("delimiter: {:?} cannot end a user's name", self.delimiter));
        }
        Ok(())
    }
}

fn plus() -> String {
    "+".into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn holds(pattern: &str, domain: &str) -> bool {
        pattern.parse::<Domain>().unwrap().holds(domain)
    }

    #[test]
    fn a_folder_is_named_by_user_and_domain() {
        let pattern: FolderPattern = "/var/mail/%d/%u.d".parse().unwrap();
        let path = |user, domain| pattern.path(user, domain).map(|path| path.display().to_string());
        assert_eq!(path("tim", Some("a.test")).unwrap(), "/var/mail/a.test/tim.d");
        assert_eq!(pattern.above(), Path::new("/var/mail"));
        assert_eq!("/%s".parse::<FolderPattern>().unwrap().path("a", Some("b")), Some("/a@b".into()));
        for (user, domain) in
            [("tim", None), ("../x", Some("a")), ("", Some("a")), ("a", Some(".")), ("a\0", Some("a"))]
        {
            assert_eq!(path(user, domain), None, "{user:?}");
        }
        for wrong in ["var/%u", "/var/mail", "/var/%d", "/var/%x", "/var/%u%", "/var/%%u"] {
            assert!(wrong.parse::<FolderPattern>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_domain_is_itself_or_what_is_below_it() {
        assert!(holds("Example.org", "example.org") && !holds("example.org", "a.example.org"));
        assert!(holds("*.example.org", "a.b.example.org") && !holds("*.example.org", "example.org"));
        assert!(!holds("*.example.org", "badexample.org") && !holds("example.org", "badexample.org"));
        for wrong in ["", "*", "*.", "a@b", "a.*", "a b"] {
            assert!(wrong.parse::<Domain>().is_err(), "{wrong:?}");
        }
    }
}
