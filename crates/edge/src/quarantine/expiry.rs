//! Expiry of the quarantine: messages beyond its age or size are deleted.
//!
//! Run by `serve` in the background, and only there. The age of a message is that of its `ID.eml`, which is never
//! written again. What a crash has left half written goes after an hour: nobody has been told that it was kept.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use super::remove;
use crate::settings::QuarantineSettings;

/// How long half-written files are left alone: somebody may still be writing.
const UNFINISHED_KEPT: Duration = Duration::from_secs(3_600);

/// Count of deleted messages.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Expired {
    /// Messages that were too old.
    pub too_old: u32,
    /// Messages that were too much, the oldest first.
    pub too_much: u32,
}

/// A message as its files show it.
#[derive(Debug)]
struct Files {
    since: SystemTime,
    bytes: u64,
    has_facts: bool,
    has_mail: bool,
}

/// Removes what is too old or too much from one folder.
///
/// # Errors
/// When the folder cannot be read or something in it not be removed; the rest is tried all the same.
pub fn sweep(folder: &Path, settings: &QuarantineSettings, now: SystemTime) -> io::Result<Expired> {
    let mut outcome = Ok(());
    let mut expired = Expired::default();
    let mut messages: Vec<(String, Files)> = look(folder, now)?.into_iter().collect();
    messages.sort_by(|(one, one_files), (other, other_files)| (one_files.since, one).cmp(&(other_files.since, other)));
    let mut bytes: u64 = messages.iter().map(|(_, files)| files.bytes).sum();
    for (id, files) in messages {
        let too_old = settings.keep().is_some_and(|keep| age(files.since, now) > keep);
        let unfinished = !(files.has_facts && files.has_mail) && age(files.since, now) > UNFINISHED_KEPT;
        let too_much = settings.bytes_max > 0 && bytes > settings.bytes_max;
        if !(too_old || unfinished || too_much) || is_in_use(folder, &id) {
            continue;
        }
        let gone = remove(&folder.join(format!("{id}.json"))).and_then(|()| remove(&folder.join(format!("{id}.eml"))));
        match gone {
            Ok(()) => {
                bytes -= files.bytes;
                expired.too_old += u32::from(too_old && !unfinished);
                expired.too_much += u32::from(!too_old && !unfinished);
                tracing::info!(id, folder = %folder.display(), too_old, too_much, "expired from the quarantine");
            }
            Err(error) => outcome = Err(error),
        }
    }
    outcome.map(|()| expired)
}

/// The messages of a folder; half-written files that are old go on the way.
fn look(folder: &Path, now: SystemTime) -> io::Result<BTreeMap<String, Files>> {
    let mut messages: BTreeMap<String, Files> = BTreeMap::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let Ok(metadata) = fs::symlink_metadata(&path) else { continue };
        let since = metadata.modified().unwrap_or(now);
        if is_unfinished(&path) {
            if age(since, now) > UNFINISHED_KEPT {
                remove(&path)?;
            }
            continue;
        }
        let (facts, mail) = (super::id_of(&path, "json"), super::id_of(&path, "eml"));
        let Some(id) = facts.or(mail) else { continue };
        let new = Files { since, bytes: 0, has_facts: false, has_mail: false };
        let files = messages.entry(id.into()).or_insert(new);
        files.bytes += metadata.len();
        files.has_facts |= facts.is_some();
        if mail.is_some() {
            files.has_mail = true;
            files.since = since;
        }
    }
    Ok(messages)
}

/// A file that `serve` or a release is writing: `.NAME.part`.
fn is_unfinished(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    name.starts_with('.') && name.ends_with(".part")
}

/// Whether a release is under way.
fn is_in_use(folder: &Path, id: &str) -> bool {
    let mail: PathBuf = folder.join(format!("{id}.eml"));
    super::read(&mail).is_ok_and(|file| super::lock(&file).is_ok_and(|locked| !locked))
}

/// How long ago; nothing for what lies in the future.
fn age(since: SystemTime, now: SystemTime) -> Duration {
    now.duration_since(since).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::fs::File;

    use super::*;

    const DAY: Duration = Duration::from_secs(86_400);

    fn put(folder: &Path, name: &str, bytes: usize, days_ago: u32) {
        let path = folder.join(name);
        fs::write(&path, vec![b'x'; bytes]).unwrap();
        File::options().write(true).open(path).unwrap().set_modified(SystemTime::now() - days_ago * DAY).unwrap();
    }

    fn message(folder: &Path, id: &str, bytes: usize, days_ago: u32) {
        put(folder, &format!("{id}.eml"), bytes, days_ago);
        put(folder, &format!("{id}.json"), 10, days_ago);
    }

    fn names(folder: &Path) -> Vec<String> {
        let mut names: Vec<String> =
            fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    fn settings(keep_days: u32, bytes_max: u64) -> QuarantineSettings {
        QuarantineSettings { keep_days, bytes_max, ..Default::default() }
    }

    #[test]
    fn what_is_too_old_goes_and_the_rest_stays() {
        let folder = tempfile::tempdir().unwrap();
        message(folder.path(), "old", 10, 31);
        message(folder.path(), "new", 10, 29);
        put(folder.path(), "README", 10, 99);
        let expired = sweep(folder.path(), &settings(30, 0), SystemTime::now()).unwrap();
        assert_eq!(expired, Expired { too_old: 1, too_much: 0 });
        assert_eq!(names(folder.path()), ["README", "new.eml", "new.json"]);
        assert_eq!(sweep(folder.path(), &settings(0, 0), SystemTime::now()).unwrap(), Expired::default());
    }

    #[test]
    fn of_too_much_the_oldest_goes_and_no_more_than_needed() {
        let folder = tempfile::tempdir().unwrap();
        for (id, days) in [("a", 3), ("b", 2), ("c", 1)] {
            message(folder.path(), id, 90, days);
        }
        let expired = sweep(folder.path(), &settings(30, 250), SystemTime::now()).unwrap();
        assert_eq!(expired, Expired { too_old: 0, too_much: 1 });
        assert_eq!(names(folder.path()), ["b.eml", "b.json", "c.eml", "c.json"]);
    }

    #[test]
    fn what_a_crash_left_goes_after_an_hour() {
        let folder = tempfile::tempdir().unwrap();
        put(folder.path(), ".a.eml.part", 10, 1);
        put(folder.path(), ".b.eml.part", 10, 0);
        put(folder.path(), "c.eml", 10, 1);
        put(folder.path(), "d.eml", 10, 0);
        assert_eq!(sweep(folder.path(), &settings(30, 0), SystemTime::now()).unwrap(), Expired::default());
        assert_eq!(names(folder.path()), [".b.eml.part", "d.eml"]);
    }

    #[test]
    fn what_is_being_released_stays() {
        let folder = tempfile::tempdir().unwrap();
        message(folder.path(), "a", 10, 99);
        let lock = File::open(folder.path().join("a.eml")).unwrap();
        assert!(crate::quarantine::lock(&lock).unwrap());
        assert_eq!(sweep(folder.path(), &settings(30, 0), SystemTime::now()).unwrap(), Expired::default());
        drop(lock);
        assert_eq!(sweep(folder.path(), &settings(30, 0), SystemTime::now()).unwrap().too_old, 1);
    }
}
