//! Files of SpamAssassin's rules: where they stand, the order in which they are read, and what reads them.

use std::ffi::OsStr;
use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use inspect::{RuleFile, RuleFiles};
use rules::spam::{Checker, File, Limits, Loader, Options, Place, Rules, source};

use crate::output::Failure;

/// Where the package has its rules.
const PACKAGED: &str = "/usr/share/spamassassin";
/// Where `sa-update` puts those that it fetches.
const FETCHED: &str = "/var/lib/spamassassin/4.000001";
/// Where the site has its own.
const SITE: &str = "/etc/spamassassin";
/// Rules beside SpamAssassin's: ours, and those that only Sluice is to read.
const OURS: &str = "/etc/sluice/spam";

/// Purpose for which rules are read.
#[derive(Debug, Clone, Default)]
pub struct Purpose<'h> {
    /// Whether they ask the network.
    pub network: bool,
    /// Whether they ask what was learned.
    pub bayes: bool,
    /// Rules from the configuration, in addition to files.
    pub more: Vec<RuleFile>,
    /// The name of this machine.
    pub host: &'h str,
}

/// The folders that SpamAssassin itself would read, and ours where it is.
pub fn standard() -> Vec<PathBuf> {
    let has_rules = |folder: &&str| files(Path::new(folder)).is_ok_and(|files| !files.is_empty());
    let rules = [FETCHED, PACKAGED].into_iter().find(has_rules).unwrap_or(PACKAGED);
    let ours = Some(OURS).filter(has_rules);
    [rules, SITE].into_iter().chain(ours).map(PathBuf::from).collect()
}

/// Reads all folders: what loads plugins first, and `more` last. `is_local`: for mails that are checked without the network.
///
/// # Errors
/// A file that cannot be read, and folders without any.
pub fn load(folders: &[PathBuf], is_local: bool, more: &[RuleFile], checker: &dyn Checker) -> Result<Rules, Failure> {
    let (paths, default_plugins) = paths(folders)?;
    let limits = Limits::default();
    let options = Options { default_plugins, local_tests_only: is_local, ..Options::default() };
    let mut loader = Loader::new(options, limits);
    for path in &paths {
        let file = read(path, &limits).map_err(|error| format!("{}: {error}", path.display()))?;
        loader.read(&file, &mut |place, name| read(&beside(place, name), &limits).map_err(|error| error.to_string()));
    }
    for own in more {
        let file = File { name: (*own.name).into(), bytes: own.bytes.clone() };
        loader.read(&file, &mut |_, _| Err("nothing is included here".into()));
    }
    Ok(loader.finish(checker))
}

/// Reads all folders to be handed to whoever scores mails, with the files that others include; and what stands there.
///
/// # Errors
/// As [`load`].
pub fn collect(
    folders: &[PathBuf],
    purpose: Purpose<'_>,
    checker: &dyn Checker,
) -> Result<(RuleFiles, Rules), Failure> {
    let limits = Limits::default();
    let rule_file = |path: &Path| {
        let file = read(path, &limits).map_err(|error| format!("{}: {error}", path.display()))?;
        Ok::<_, String>(RuleFile { name: (*file.name).into(), bytes: file.bytes })
    };
    let (paths, default_plugins) = paths(folders)?;
    let mut files = paths.iter().map(|path| rule_file(path)).collect::<Result<Vec<_>, _>>()?;
    let Purpose { network, bayes, more, host } = purpose;
    files.extend(more);
    let mut collected = RuleFiles { files, default_plugins, network, bayes, host: host.into(), ..RuleFiles::default() };
    let mut included = Vec::new();
    let mut include = |from: &str, name: &str| {
        let file = rule_file(&Path::new(from).parent().unwrap_or(Path::new("")).join(name))?;
        included.push((from.into(), name.into(), file.clone()));
        Ok(file)
    };
    let rules = collected.read(&mut include, checker);
    collected.included = included;
    Ok((collected, rules))
}

/// The files of all folders in the order in which they are read: what loads plugins first; and whether nothing does.
fn paths(folders: &[PathBuf]) -> Result<(Vec<PathBuf>, bool), Failure> {
    let mut paths = Vec::new();
    for folder in folders {
        paths.extend(files(folder).map_err(|error| format!("{}: {error}", folder.display()))?);
    }
    if paths.is_empty() {
        let names: Vec<String> = folders.iter().map(|folder| folder.display().to_string()).collect();
        return Err(format!("{}: no files that end in .pre or .cf", names.join(", ")).into());
    }
    let is_pre = |path: &PathBuf| path.extension() == Some(OsStr::new("pre"));
    paths.sort_by_key(|path| !is_pre(path));
    let default_plugins = !paths.iter().any(is_pre);
    Ok((paths, default_plugins))
}

/// The configuration files of a folder, in the order in which they are read.
fn files(folder: &Path) -> Result<Vec<PathBuf>, std::io::Error> {
    let mut names = Vec::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if entry.path().is_file() {
            names.extend(entry.file_name().into_string());
        }
    }
    source::order(&mut names);
    Ok(names.into_iter().map(|name| folder.join(name)).collect())
}

/// Reads one byte more than the bound, so that a longer file is noticed.
fn read(path: &Path, limits: &Limits) -> Result<File, std::io::Error> {
    let mut bytes = Vec::new();
    fs::File::open(path)?.take(limits.file_bytes_max as u64 + 1).read_to_end(&mut bytes)?;
    Ok(File { name: path.display().to_string().into(), bytes })
}

/// A file that another one includes: its name is relative to that one.
fn beside(place: &Place, name: &str) -> PathBuf {
    Path::new(&*place.file).parent().unwrap_or(Path::new("")).join(name)
}
