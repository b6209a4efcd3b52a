//! `[ids]`: intrusion rules at the doors, and where their alerts are written.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Read as _;
use std::path::{Path, PathBuf};

use flow::Glob;
use inspect::{IntrusionAction, IntrusionFiles};
use rules::ids::{Change, Changes, Limits, Selector};
use serde::Deserialize;

use crate::output::Failure;

/// Files of rules.
const FILES_MAX: usize = 10_000;
/// Files beside rules that may be data sets, and bytes of one of them.
const DATA_FILES_MAX: usize = 1000;
const DATA_BYTES_MAX: u64 = 64 << 20;

/// Public suffixes as the system has them (Debian's `publicsuffix`), and their name among the files beside rules.
const SUFFIXES_PATH: &str = "/usr/share/publicsuffix/public_suffix_list.dat";
const SUFFIXES_NAME: &str = "public_suffix_list.dat";
/// Words of rules that name files: data sets, and lists of digests.
const DATA: [&[u8]; 3] = [b"data", b"filemd5", b"filesha"];
/// Keywords that ask for them.
const DOMAINS: [&[u8]; 2] = [b"domain;", b"tld;"];

/// `[ids]`
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct IdsSettings {
    /// Files of rules of Suricata or Snort; folders of `*.rules`; names with `*` and `?` in the last part.
    pub rules: Vec<PathBuf>,
    /// Values of variables of rules, by names without `$`.
    pub variables: BTreeMap<String, String>,
    /// The file of classes.
    pub classification: Option<PathBuf>,
    /// Files of thresholds and suppressions.
    pub thresholds: Vec<PathBuf>,
    /// Files of suricata-update by which rules are changed before they are loaded.
    pub disable: Option<PathBuf>,
    /// The same.
    pub enable: Option<PathBuf>,
    /// The same.
    pub drop: Option<PathBuf>,
    /// The same.
    pub modify: Option<PathBuf>,
    /// Other actions for some rules; the last that means a rule decides.
    #[serde(rename = "action")]
    pub actions: Vec<IdsAction>,
    /// The file that alerts are appended to as lines of EVE JSON.
    pub eve: Option<PathBuf>,
    /// Records that are appended to `eve` besides alerts.
    pub records: Vec<Record>,
    /// The file that alerts are appended to as lines of text.
    pub fast: Option<PathBuf>,
    /// The socket of a system log that alerts are sent to: `/dev/log`.
    pub syslog: Option<PathBuf>,
}

/// A kind of record in EVE JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Record {
    /// A request with its response, or a request that was blocked.
    Http,
    /// A mail that has come by SMTP, LMTP or milter.
    Smtp,
    /// A file: the body of a message of HTTP, an attachment, a member of an archive.
    Fileinfo,
    /// A handshake of TLS that passes the web doors, opened or not.
    Tls,
    /// The bytes and times of a mail, or of a request with its response.
    Flow,
    /// A finding about the form of an object: what is malformed, ambiguous, truncated, or beyond a limit.
    Anomaly,
}

/// `[[ids.action]]`
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct IdsAction {
    /// Numbers of rules.
    pub sid: Vec<u32>,
    /// Names of classes.
    pub classtype: Vec<String>,
    /// Names of files of rules, without folders; `*` and `?` stand for others.
    pub file: Vec<String>,
    /// `alert`, `drop`, `reject`, `pass`, or `off`.
    pub action: Option<IdsVerb>,
}

/// The action of rules.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum IdsVerb {
    /// Tell.
    Alert,
    /// Block.
    Drop,
    /// Block.
    Reject,
    /// Let by.
    Pass,
    /// Not tried.
    Off,
}

impl IdsVerb {
    const fn name(self) -> &'static str {
        match self {
            IdsVerb::Alert => "alert",
            IdsVerb::Drop => "drop",
            IdsVerb::Reject => "reject",
            IdsVerb::Pass => "pass",
            IdsVerb::Off => "off",
        }
    }
}

/// A file of rules: its name, and its bytes.
pub type Named = (Box<str>, Vec<u8>);

impl IdsSettings {
    /// Takes relative paths from this folder.
    pub(super) fn count_paths_from(&mut self, folder: &Path) {
        let files = self.rules.iter_mut().chain(&mut self.thresholds).chain(&mut self.classification);
        let files =
            files.chain(&mut self.disable).chain(&mut self.enable).chain(&mut self.drop).chain(&mut self.modify);
        files
            .chain(&mut self.eve)
            .chain(&mut self.fast)
            .chain(&mut self.syslog)
            .for_each(|path| *path = folder.join(&path));
    }

    /// Checks what the types do not.
    ///
    /// # Errors
    /// An action that says nothing; records without a file.
    pub(super) fn check(&self) -> Result<(), String> {
        if !self.records.is_empty() && self.eve.is_none() {
            return Err("ids.records needs ids.eve".into());
        }
        match self.actions.iter().any(|row| row.action.is_none()) {
            true => Err("[[ids.action]] needs action: alert, drop, reject, pass or off".into()),
            false => Ok(()),
        }
    }

    /// Folders that are read: files are replaced by others of their names.
    pub fn folders(&self) -> impl Iterator<Item = &Path> {
        let of_rules = self.rules.iter().map(|path| if path.is_dir() { path } else { above(path) });
        let changing = [&self.disable, &self.enable, &self.drop, &self.modify].into_iter().flatten();
        let others = self.thresholds.iter().chain(&self.classification).chain(changing);
        of_rules.chain(others.map(|path| above(path)))
    }

    /// The files that are read, and the folders of rules, where others may come.
    pub fn watched(&self) -> Vec<PathBuf> {
        let changing = [&self.disable, &self.enable, &self.drop, &self.modify].into_iter().flatten();
        let others = self.thresholds.iter().chain(&self.classification).chain(changing).cloned();
        let of_rules = self.rules.iter().map(|path| if path.is_dir() { path.clone() } else { above(path).into() });
        of_rules.chain(self.files().unwrap_or_default()).chain(others).collect()
    }

    /// Folders that are written to.
    pub fn logs(&self) -> impl Iterator<Item = &Path> {
        self.eve.iter().chain(&self.fast).chain(&self.syslog).map(|path| above(path))
    }

    /// Reads the files by which rules are changed.
    ///
    /// # Errors
    /// A file that cannot be read.
    pub fn changes(&self) -> Result<Changes, Failure> {
        let mut changes = Changes::default();
        let kinds = [Change::Disable, Change::Enable, Change::Drop, Change::Modify];
        for (change, path) in kinds.into_iter().zip([&self.disable, &self.enable, &self.drop, &self.modify]) {
            if let Some(path) = path {
                changes.read(change, &path.to_string_lossy(), &read(path, Limits::default().file_bytes_max as u64)?);
            }
        }
        Ok(changes)
    }

    /// Reads the files of rules as they stand, with their names, in order.
    ///
    /// # Errors
    /// A file that cannot be read; a folder that cannot be listed.
    pub fn written(&self) -> Result<Vec<Named>, Failure> {
        let bytes_max = Limits::default().file_bytes_max as u64;
        let named = |path: PathBuf| Ok::<_, Failure>((path.to_string_lossy().into(), read(&path, bytes_max)?));
        self.files()?.into_iter().map(named).collect()
    }

    /// Reads all other files.
    ///
    /// # Errors
    /// A file that cannot be read; a name that means none.
    pub fn collect(&self, changes: &Changes) -> Result<IntrusionFiles, Failure> {
        let file_bytes_max = Limits::default().file_bytes_max as u64;
        let (mut rules, mut data) = (Vec::new(), Vec::new());
        let mut folders: Vec<PathBuf> = Vec::new();
        let written = self.written()?;
        if written.iter().any(|(_, bytes)| has_any(bytes, &DOMAINS))
            && let Ok(list) = read(Path::new(SUFFIXES_PATH), DATA_BYTES_MAX)
        {
            data.push((SUFFIXES_NAME.into(), list));
        }
        for (name, bytes) in written {
            let folder = above(Path::new(&*name));
            let asks = has_any(&bytes, &DATA) || has_any(&bytes, &DOMAINS);
            if asks && !folders.iter().any(|known| known == folder) {
                data_files(folder, &mut data);
                folders.push(folder.into());
            }
            let bytes = if changes.is_empty() { bytes } else { changes.apply(&name, &bytes) };
            rules.push((name, bytes));
        }
        if !changes.is_empty() {
            let count = rules::ids::enable_needed(&mut rules);
            tracing::debug!(count, "intrusion rules enabled for their flowbits");
        }
        let named = |path: &PathBuf| Ok::<_, Failure>((path.to_string_lossy().into(), read(path, file_bytes_max)?));
        Ok(IntrusionFiles {
            variables: self
                .variables
                .iter()
                .map(|(name, value)| (name.as_str().into(), value.as_str().into()))
                .collect(),
            classes: self.classification.iter().map(|path| read(path, file_bytes_max)).collect::<Result<_, _>>()?,
            data,
            rules,
            thresholds: self.thresholds.iter().map(named).collect::<Result<_, _>>()?,
            actions: self.overrides(),
        })
    }

    fn overrides(&self) -> Vec<IntrusionAction> {
        let each = |row: &IdsAction| {
            let action = row.action.map(IdsVerb::name).unwrap_or_default();
            let sids = row.sid.iter().map(|sid| Selector::Sid(*sid));
            let classes = row.classtype.iter().map(|name| Selector::Class(name.as_str().into()));
            let files = row.file.iter().map(|name| Selector::File(name.as_str().into()));
            let all: Vec<_> = sids.chain(classes).chain(files).map(|selector| (selector, action.into())).collect();
            all
        };
        self.actions.iter().flat_map(each).map(|(selector, action)| IntrusionAction::new(&selector, action)).collect()
    }

    /// The files of rules, in order.
    fn files(&self) -> Result<Vec<PathBuf>, Failure> {
        let mut files = Vec::new();
        for path in &self.rules {
            let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
            if path.is_dir() {
                files.extend(matching(path, "*.rules")?);
            } else if name.contains(['*', '?']) {
                let found = matching(above(path), &name)?;
                if found.is_empty() {
                    tracing::warn!(pattern = %path.display(), "no file of intrusion rules matches");
                }
                files.extend(found);
            } else {
                files.push(path.clone());
            }
            if files.len() > FILES_MAX {
                return Err("ids.rules: too many files".into());
            }
        }
        Ok(files)
    }
}

/// The folder that a file lies in.
fn above(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Files of a folder whose names match, sorted.
fn matching(folder: &Path, pattern: &str) -> Result<Vec<PathBuf>, Failure> {
    let told = |error: std::io::Error| format!("ids.rules: {}: {error}", folder.display());
    let pattern = Glob::new(pattern);
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).map_err(told)? {
        let path = entry.map_err(told)?.path();
        let name = path.file_name().map(|name| name.to_string_lossy().to_lowercase()).unwrap_or_default();
        if pattern.matches(&name) && path.is_file() {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

fn read(path: &Path, bytes_max: u64) -> Result<Vec<u8>, Failure> {
    let told = |error: std::io::Error| format!("ids: {}: {error}", path.display());
    let mut bytes = Vec::new();
    File::open(path).map_err(told)?.take(bytes_max + 1).read_to_end(&mut bytes).map_err(told)?;
    if bytes.len() as u64 > bytes_max {
        return Err(format!("ids: {}: the file is too large", path.display()).into());
    }
    Ok(bytes)
}

/// Whether a text has one of some words.
fn has_any(text: &[u8], words: &[&[u8]]) -> bool {
    words.iter().any(|word| text.windows(word.len()).any(|part| part == *word))
}

/// Files beside rules that may be data sets.
fn data_files(folder: &Path, data: &mut Vec<(Box<str>, Vec<u8>)>) {
    let Ok(entries) = folder.read_dir() else { return };
    for entry in entries.flatten().take(DATA_FILES_MAX) {
        let path = entry.path();
        let is_data = matches!(
            path.extension().and_then(|end| end.to_str()),
            None | Some("lst" | "csv" | "dat" | "list" | "rep" | "txt" | "md5" | "sha1" | "sha256")
        );
        let is_data = is_data || path.file_name().is_some_and(|name| name == SUFFIXES_NAME);
        if is_data && let (Some(name), Ok(bytes)) = (entry.file_name().to_str(), read(&path, DATA_BYTES_MAX)) {
            data.push((name.into(), bytes));
        }
    }
}
