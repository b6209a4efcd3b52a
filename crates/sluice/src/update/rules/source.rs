//! One source of rules: a file, a folder, or an address that serves an archive or a file.
//!
//! Beside an archive servers of rules publish its MD5 (`URL.md5`): it tells without a download whether there is anything new, and
//! whether the archive came whole. Who vouches for the content is the server's certificate, or a digest of the configuration.

use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::Path;

use rules::ids::{Limits, listed};
use sha2::{Digest as _, Sha256};
use text::hex::encode as hex;

use super::super::fetch::{Answer, Client, Error};
use super::{Files, Manner, Source};
use crate::config::update::RuleSource;

/// Bytes of all files of one source.
const FILES_BYTES_MAX: u64 = 256 << 20;
/// Files of a folder.
const FILES_MAX: usize = 1_000;

/// Endings of the files that are kept: rules, data sets, classes and thresholds.
const ENDINGS: [&str; 5] = ["rules", "lst", "csv", "list", "config"];

/// Brings the files of a source; none where they have not changed, or it is not time yet.
///
/// # Errors
/// When they cannot be had, are damaged, or hold no rule.
pub fn bring(source: &RuleSource, state: &mut Source, client: &Client, manner: Manner) -> Result<Option<Files>, Error> {
    let (url, sha256) = match source {
        RuleSource::Path(path) => return read(path).and_then(sound).map(Some).map_err(Error::from),
        RuleSource::Url { url, sha256 } => (url, sha256.as_deref()),
    };
    let now = super::super::now();
    if state.known.not_before > now && !manner.is_forced {
        println!("{}: not asked for: {} s to wait", source.name(), state.known.not_before - now);
        return Ok(None);
    }
    let outcome = download(url, sha256, state, client);
    match &outcome {
        Ok(_) => state.known.succeeded(),
        Err(error) => {
            state.known.retry_after = error.retry_after;
            state.known.failed(now);
        }
    }
    outcome
}

fn download(url: &str, sha256: Option<&str>, state: &mut Source, client: &Client) -> Result<Option<Files>, Error> {
    let is_archive = !url.split('?').next().unwrap_or_default().ends_with(".rules");
    let published = is_archive.then(|| published_md5(url, client)).flatten();
    if published.is_some() && published == state.md5 {
        return Ok(None);
    }
    let Answer { body: Some(body), etag, last_modified } = client.ask(url, &state.known)? else { return Ok(None) };
    if let Some(wanted) = sha256
        && let is = hex(Sha256::digest(&body).as_slice())
        && is != wanted
    {
        return Err(Error::from(format!("its SHA-256 is {is}, and not the one that is named")));
    }
    let md5 = hex(&digest::md5::digest(&body));
    if let Some(published) = published.as_ref().filter(|published| **published != md5) {
        return Err(Error::from(format!("its MD5 is {md5}, and the server says {published}")));
    }
    let files = match is_archive {
        true => unpacked(&body)?,
        false => Files::from([(name_of(url)?, body)]),
    };
    let files = sound(files)?;
    (state.known.etag, state.known.last_modified, state.md5) = (etag, last_modified, published);
    Ok(Some(files))
}

/// The MD5 that a server publishes beside a file; none where it has none.
fn published_md5(url: &str, client: &Client) -> Option<String> {
    let (path, query) = url.split_once('?').map_or((url, String::new()), |(path, query)| (path, format!("?{query}")));
    let bytes = client.increment(&format!("{path}.md5{query}")).ok()?;
    let word = std::str::from_utf8(&bytes).ok()?.split_whitespace().next()?.to_ascii_lowercase();
    (word.len() == 32 && word.bytes().all(|digit| digit.is_ascii_hexdigit())).then_some(word)
}

/// The files of an archive, without their folders.
fn unpacked(archive: &[u8]) -> Result<Files, String> {
    let mut files = Files::new();
    for (path, bytes) in scan::members(archive, FILES_BYTES_MAX)? {
        if path.split(['/', '\\']).any(|part| part == "..") {
            return Err(format!("a member is called {path:?}"));
        }
        let Ok(name) = name_of(&path) else { continue };
        if is_wanted(&name) && files.insert(name.clone(), bytes).is_some() {
            return Err(format!("two members are called {name}"));
        }
    }
    Ok(files)
}

/// Reads a file, or the files of a folder.
fn read(path: &Path) -> Result<Files, String> {
    let told = |error: io::Error| format!("{}: {error}", path.display());
    let mut paths = vec![path.to_path_buf()];
    if path.is_dir() {
        let entries = fs::read_dir(path).map_err(told)?.collect::<Result<Vec<_>, _>>().map_err(told)?;
        paths = entries.into_iter().map(|entry| entry.path()).filter(|path| path.is_file()).collect();
        if paths.len() > FILES_MAX {
            return Err(format!("{}: more than {FILES_MAX} files", path.display()));
        }
    }
    let (mut files, mut left) = (Files::new(), FILES_BYTES_MAX);
    for path in paths {
        let Some(name) = name_of(&path.to_string_lossy()).ok().filter(|name| is_wanted(name)) else { continue };
        let mut bytes = Vec::new();
        File::open(&path).map_err(told)?.take(left + 1).read_to_end(&mut bytes).map_err(told)?;
        left = left.checked_sub(bytes.len() as u64).ok_or("the files are too large")?;
        files.insert(name, bytes);
    }
    Ok(files)
}

/// The last part of a path or an address, if it is fit for a name.
fn name_of(path: &str) -> Result<String, String> {
    let name = path.split('?').next().unwrap_or_default().rsplit('/').next().unwrap_or_default();
    let is_plain = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-+".contains(&byte));
    match is_plain && !name.starts_with('.') && !name.is_empty() {
        true => Ok(name.to_owned()),
        false => Err(format!("{name:?} is no name of a file of rules")),
    }
}

fn is_wanted(name: &str) -> bool {
    name.rsplit_once('.').is_some_and(|(_, ending)| ENDINGS.contains(&ending))
}

/// Files among which is at least one rule, none of them too large.
fn sound(files: Files) -> Result<Files, String> {
    let bytes_max = Limits::default().file_bytes_max;
    if let Some((name, _)) = files.iter().find(|(_, bytes)| bytes.len() > bytes_max) {
        return Err(format!("{name} is larger than {bytes_max} bytes"));
    }
    let has_rules = files.iter().any(|(name, bytes)| name.ends_with(".rules") && !listed(bytes).is_empty());
    if has_rules { Ok(files) } else { Err("there are no rules in it".into()) }
}
