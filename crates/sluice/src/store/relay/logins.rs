//! The file of logins at next hops: `HOST:PORT NAME:PASSWORD`, a line each, as Postfix's `smtp_sasl_password_maps` has them.
//!
//! A line is for a next hop, `HOST:PORT` or `HOST`, or for a domain of `routes`, and `[HOST]` is `HOST`; or for a sender, `ann@example.org`, or
//! all of a domain, `@example.org`. Empty lines and those that begin with `#` count for nothing. A file that all users may read is refused. Bounds: [`FILE_BYTES_MAX`], [`TEXT_BYTES_MAX`].

use std::fs::File;
use std::io::Read as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use edge::settings::Forward;

use super::login::Login;

/// The longest file, in bytes.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// The longest name and the longest password, in bytes: both go in one line of AUTH.
const TEXT_BYTES_MAX: usize = 1_024;

/// Users that are neither the owner nor of the group.
const OTHERS_READ: u32 = 0o004;

/// Logins, each for a next hop or a domain.
#[derive(Default)]
pub struct Logins {
    path: PathBuf,
    /// With the numbers of their lines.
    lines: Vec<(usize, String, Arc<Login>)>,
}

impl Logins {
    /// Reads a file.
    ///
    /// # Errors
    /// When it cannot be read, all users may read it, or a line is wrong; no message has a name or a password.
    pub fn read(path: &Path) -> Result<Logins, String> {
        let named = |why: &dyn std::fmt::Display| format!("{}: {why}", path.display());
        let file = File::open(path).map_err(|error| named(&error))?;
        let facts = file.metadata().map_err(|error| named(&error))?;
        if facts.mode() & OTHERS_READ != 0 {
            return Err(named(&"all users may read it: chmod o= helps"));
        }
        let mut text = String::new();
        file.take(FILE_BYTES_MAX + 1).read_to_string(&mut text).map_err(|error| named(&error))?;
        if text.len() as u64 > FILE_BYTES_MAX {
            return Err(named(&"longer than 1 MiB"));
        }
        let lines = parse(&text).map_err(|why| named(&why))?;
        Ok(Logins { path: path.into(), lines })
    }

    /// The login at a next hop, for a domain of the routes if that is how mail comes there.
    pub fn find(&self, domain: Option<&str>, hop: &Forward) -> Option<Arc<Login>> {
        let address = match hop {
            Forward::Server { address, .. } => Some(plain(address)),
            Forward::SmtpSocket(path) => Some(path.display().to_string()),
            _ => None,
        };
        let keys = [domain.map(str::to_owned), address, hop.host().map(str::to_ascii_lowercase)];
        let of = |key: String| self.lines.iter().find(|(_, known, _)| *known == key).map(|(_, _, login)| login.clone());
        keys.into_iter().flatten().find_map(of)
    }

    /// The login of a sender, `ann@example.org` or `@example.org`.
    pub fn of_sender(&self, sender: &str) -> Option<Arc<Login>> {
        self.lines.iter().find(|(_, known, _)| known == sender).map(|(_, _, login)| login.clone())
    }

    /// The senders that have a login.
    pub fn senders(&self) -> impl Iterator<Item = &str> {
        self.lines.iter().map(|(_, key, _)| &**key).filter(|key| key.contains('@'))
    }

    /// Lines of no next hop, as `FILE:LINE: KEY`.
    pub fn unused(&self, used: &[Arc<Login>]) -> Vec<String> {
        let is_used = |login: &Arc<Login>| used.iter().any(|other| Arc::ptr_eq(other, login));
        let unused = self.lines.iter().filter(|(_, _, login)| !is_used(login));
        unused.map(|(line, key, _)| format!("{}:{line}: {key}", self.path.display())).collect()
    }
}

fn parse(text: &str) -> Result<Vec<(usize, String, Arc<Login>)>, String> {
    let mut found: Vec<(usize, String, Arc<Login>)> = Vec::new();
    for (at, line) in text.lines().enumerate() {
        let (number, line) = (at + 1, line.trim());
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let parts = line.split_once(char::is_whitespace);
        let parts = parts.and_then(|(key, rest)| Some((key, rest.trim_start().split_once(':')?)));
        let Some((key, (name, password))) = parts.filter(|(_, (name, password))| is_word(name) && is_word(password))
        else {
            return Err(format!("line {number} is not HOST:PORT NAME:PASSWORD"));
        };
        let key = plain(key);
        if found.iter().any(|(_, known, _)| *known == key) {
            return Err(format!("line {number}: {key} has a login already"));
        }
        found.push((number, key, Arc::new(Login::new(name, password))));
    }
    Ok(found)
}

fn is_word(text: &str) -> bool {
    (1..=TEXT_BYTES_MAX).contains(&text.len()) && !text.contains('\0')
}

/// A key without its brackets, which an address of IPv6 has in front of a port alone.
fn plain(key: &str) -> String {
    let key = key.to_ascii_lowercase();
    let Some((host, behind)) = key.strip_prefix('[').and_then(|rest| rest.split_once(']')) else { return key };
    match behind {
        "" => host.to_owned(),
        port if host.contains(':') => format!("[{host}]{port}"),
        port => format!("{host}{port}"),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    fn read(text: &str, mode: u32) -> Result<Logins, String> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("logins");
        std::fs::write(&path, text).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
        Logins::read(&path).map_err(|error| error.replace(&folder.path().display().to_string(), ""))
    }

    #[test]
    fn a_login_is_found_by_domain_port_and_host() {
        let text = "# of Postfix\n[smtp.example.net]:587\tann@x:a:b c\nSMTP.example.net host:x\n\n.example.org domain:x\n\
                    [2001:db8::1]:465 six:x\n[2001:db8::2] two:x\n";
        let logins = read(text, 0o640).unwrap();
        let name = |domain: Option<&str>, hop: &str| {
            logins.find(domain, &hop.parse().unwrap()).map(|login| login.name().to_owned())
        };
        for (domain, hop, wanted) in [
            (None, "smtp://Smtp.Example.net:587", Some("ann@x")),
            (None, "smtp://smtp.example.net", Some("host")),
            (Some(".example.org"), "smtp://smtp.example.net:587", Some("domain")),
            (Some("example.com"), "smtp://smtp.example.net:587", Some("ann@x")),
            (None, "smtps://[2001:db8::1]", Some("six")),
            (None, "smtps://[2001:db8::2]", Some("two")),
            (None, "smtp://other.example.net", None),
        ] {
            assert_eq!(name(domain, hop).as_deref(), wanted, "{domain:?} {hop}");
        }
        let used: Vec<_> = logins.find(None, &"smtp://smtp.example.net:587".parse().unwrap()).into_iter().collect();
        assert_eq!(logins.unused(&used).len(), 4);
        assert!(logins.unused(&used)[0].ends_with("/logins:3: smtp.example.net"));
    }

    #[test]
    fn a_file_that_is_wrong_is_refused_and_its_secrets_are_not_told() {
        for (text, mode, wanted) in [
            ("a b:secret\n", 0o644, "/logins: all users may read it"),
            ("a b:secret\nhost secret\n", 0o600, "/logins: line 2 is not"),
            ("a b:\n", 0o600, "line 1 is not"),
            ("a :secret\n", 0o600, "line 1 is not"),
            ("host\n", 0o600, "line 1 is not"),
            ("a b:secret\n[A] c:secret\n", 0o600, "line 2: a has a login already"),
        ] {
            let error = read(text, mode).err().unwrap();
            assert!(error.contains(wanted) && !error.contains("secret"), "{error}");
        }
        assert!(Logins::read(Path::new("/no/such/file")).is_err());
    }
}
