//! Values that do not stand in the configuration itself: lists in files, secrets in files and in the environment.
//!
//! | text | stands for |
//! |---|---|
//! | `"env:NAME"` | the environment variable |
//! | `"file:PATH"` | the first line of the file |
//! | `"file:PATH"` in a list | the lines of the file, without empty ones and those that begin with `#` |
//!
//! Paths count from the folder of the configuration. What a file holds is not expanded again.

use std::borrow::Cow;
use std::path::{Path, PathBuf};

use super::credentials;
use edge::settings::Fault;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// The largest file, in bytes, and how many lines a list has: each of them is compared with, one after the other.
const FILE_BYTES_MAX: u64 = 16 << 20;
const LINES_MAX: usize = 100_000;

/// Files that a configuration names so.
#[derive(Debug, Default)]
pub struct Files {
    /// All of them.
    pub all: Vec<PathBuf>,
    /// Files that hold a password, by the name of the key.
    pub secret: Vec<PathBuf>,
    /// Credentials of a service that this process is no part of: what names them stays as it is, or is left out of its list.
    pub absent: Vec<PathBuf>,
}

/// Puts what is meant in the place of each such text; the files that were read are added to `read`.
///
/// # Errors
/// When a file cannot be read or is too large, or a variable is not set.
pub fn bring(table: &mut DeTable<'_>, folder: &Path, read: &mut Files) -> Result<(), Fault> {
    table.iter_mut().try_for_each(|(key, value)| {
        let before = read.all.len();
        bring_value(value, folder, read)?;
        if is_secret(key.get_ref()) {
            read.secret.extend(read.all.iter().skip(before).cloned());
        }
        Ok(())
    })
}

/// Whether a key with this name holds a password.
pub fn is_secret(key: &str) -> bool {
    ["password", "secret", "token"].iter().any(|word| key.contains(word))
}

fn bring_value(value: &mut Spanned<DeValue<'_>>, folder: &Path, read: &mut Files) -> Result<(), Fault> {
    let span = value.span();
    let failed = |message| Fault { message, span: Some(span.clone()) };
    match value.get_mut() {
        DeValue::Table(table) => bring(table, folder, read),
        DeValue::Array(array) if array.iter().any(|value| value.get_ref().as_str().and_then(path_in).is_some()) => {
            let all = std::mem::replace(array, toml::de::DeArray::new());
            for mut value in all {
                let Some(path) = value.get_ref().as_str().and_then(path_in) else {
                    bring_value(&mut value, folder, read)?;
                    array.push(value);
                    continue;
                };
                let (path, span) = (folder.join(path), value.span());
                if credentials::is_elsewhere(&path) {
                    read.absent.push(path);
                    continue;
                }
                let text = text(&path).map_err(failed)?;
                lines(&text, &path).map_err(failed)?.into_iter().for_each(|line| {
                    array.push(Spanned::new(span.clone(), DeValue::String(Cow::Owned(line.into()))));
                });
                read.all.push(path);
            }
            Ok(())
        }
        DeValue::Array(array) => array.iter_mut().try_for_each(|value| bring_value(value, folder, read)),
        DeValue::String(text) => {
            if let Some(other) = scalar(text, folder, read).map_err(failed)? {
                *text = Cow::Owned(other);
            }
            Ok(())
        }
        _ => Ok(()),
    }
}

/// Value that a text refers to; none if it stands for itself.
fn scalar(written: &str, folder: &Path, read: &mut Files) -> Result<Option<String>, String> {
    if let Some(name) = written.strip_prefix("env:") {
        let value = std::env::var(name).map_err(|_| format!("the environment has no {name}"))?;
        return Ok(Some(value));
    }
    let Some(path) = path_in(written) else { return Ok(None) };
    let path = folder.join(path);
    if credentials::is_elsewhere(&path) {
        read.absent.push(path);
        return Ok(None);
    }
    let first = text(&path)?.lines().next().unwrap_or_default().into();
    read.all.push(path);
    Ok(Some(first))
}

/// The path in `file:PATH`; not that of a URL.
fn path_in(written: &str) -> Option<&str> {
    written.strip_prefix("file:").filter(|path| !path.starts_with("//") && !path.is_empty())
}

fn text(path: &Path) -> Result<String, String> {
    let failed = |error: std::io::Error| format!("{}: {error}", path.display());
    let mut bytes = Vec::new();
    let file = std::fs::File::open(path).map_err(failed)?;
    std::io::Read::read_to_end(&mut std::io::Read::take(file, FILE_BYTES_MAX + 1), &mut bytes).map_err(failed)?;
    if bytes.len() as u64 > FILE_BYTES_MAX {
        return Err(format!("{}: larger than {FILE_BYTES_MAX} bytes", path.display()));
    }
    String::from_utf8(bytes).map_err(|_| format!("{}: not UTF-8", path.display()))
}

fn lines<'t>(text: &'t str, path: &Path) -> Result<Vec<&'t str>, String> {
    let lines: Vec<&str> =
        text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#')).collect();
    match lines.len() {
        0..=LINES_MAX => Ok(lines),
        _ => Err(format!("{}: more than {LINES_MAX} lines", path.display())),
    }
}

#[cfg(test)]
mod tests {
    use super::super::Config;

    fn read(text: &str, list: &str) -> Result<Config, String> {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("list"), list).unwrap();
        std::fs::write(folder.path().join("a.toml"), text).unwrap();
        let read = Config::read(&folder.path().join("a.toml"));
        read.map_err(|error| error.to_string().replace(folder.path().to_str().unwrap(), ""))
    }

    fn with(settings: &str) -> String {
        format!("[[listener]]\nprotocol = 'smtp'\naddress = '127.0.0.1:1'\nforward = 'discard:'\n{settings}\n")
    }

    #[test]
    fn lists_stand_in_files() {
        let list = "# partners\n192.0.2.0/24\n\n  2001:db8::/32  \n";
        let config = read(&with("clients = ['10.0.0.1', 'file:list']"), list).unwrap();
        let clients: Vec<String> =
            config.listeners[0].guests.clients.iter().map(|network| network.to_string()).collect();
        assert_eq!(clients, ["10.0.0.1/32", "192.0.2.0/24", "2001:db8::/32"]);
        assert_eq!(config.lists.len(), 1);
        let rule = "[[listener.rule]]\nsender = ['file:list']\non_infected = 'pass'";
        assert_eq!(read(&with(rule), "*@a.test\n*@b.test\n").unwrap().listeners[0].rules()[0].sender.len(), 2);
    }

    #[test]
    fn secrets_stand_in_files_and_in_the_environment() {
        let config = read("[archives]\npasswords = ['a', 'file:list']\n", "infected\nhidden\n").unwrap();
        assert_eq!(
            config.archives.passwords.iter().map(|word| &**word).collect::<Vec<_>>(),
            ["a", "infected", "hidden"]
        );
        assert!(config.secrets.len() == 1 && config.secrets == config.lists, "{:?}", config.secrets);
        assert_eq!(read("hostname = 'file:list'", "mx.test\nrest").unwrap().hostname, "mx.test");
        assert_eq!(read("hostname = 'env:CARGO_PKG_NAME'", "").unwrap().hostname, env!("CARGO_PKG_NAME"));
    }

    #[test]
    fn credentials_of_a_service_are_missed_by_the_service_alone() {
        let config = read(
            "hostname = 'file:/run/credentials/no.service/name'\n[archives]\n\
                           passwords = ['a', 'file:/run/credentials/no.service/words']",
            "",
        )
        .unwrap();
        assert_eq!((config.absent.len(), config.archives.passwords.len()), (2, 1));
        assert!(config.has_credentials().unwrap_err().contains("no.service/words: a credential"));
    }

    #[test]
    fn what_is_not_there_is_told_with_its_place() {
        for (text, list, wanted) in [
            (with("clients = ['file:none']"), "", "/a.toml:5:11: /none: No such file"),
            (with("clients = ['file:list']"), "nonsense", "/a.toml:5:11: \"nonsense\" is not a network"),
            ("hostname = 'env:NOT_SET_AT_ALL'".into(), "", "/a.toml:1:12: the environment has no NOT_SET_AT_ALL"),
        ] {
            let error = read(&text, list).unwrap_err();
            assert!(error.starts_with(wanted), "{error}");
        }
    }
}
