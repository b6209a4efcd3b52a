//! The maildrop: mail that commands have written is taken into the queue, and its file is removed.
//!
//! ```text
//!   mode 0600: being written           left alone, and removed after a day
//!   mode 0640, of its folder's group   whole: taken in ─► removed ─► forgotten by the queue
//!                                        └ not now ─► tried again after a minute, and what else its user has
//!                                        └ never ───► NAME.refused, its sender is told, and the log says why
//! ```
//!
//! The folder belongs to the server and has the mode 3733: users make files there, and neither list them nor touch those of others. Who has
//! written a file is what the kernel says of it. What is in it may be anything. The queue remembers a mail by the inode of its file until that is removed
//! for good: a server that ends between taking in and removing takes it in once.
//!
//! At a node of a cluster that does not have the store mails go to the node that has it ([`entrusted`](super::entrusted)).
//!
//! Of files that stay a user has a bounded number, [`REFUSED_MAX`] and [`UNFINISHED_MAX`]: beyond that his oldest are removed. The more files
//! stay, the less often the folder is looked at ([`LOOK_A_FILE`]).

use std::collections::{BTreeSet, HashMap, HashSet};
use std::fs::{self, DirBuilder, File, Metadata};
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use mailbox::Site;
use mailbox::queue::{self, Handover, Untaken, hand_over};
use rustix::fs::{CWD, Mode, OFlags, RenameFlags, openat, renameat_with};
use rustix::io::Errno;
use tokio::time::Instant;

use super::entrusted::Owner;
use super::sendmail::envelope::{self, Envelope};
use crate::output::Failure;
use crate::process::privileges::Account;

/// The mode of the folder: users make files, which get its group and are removed by their owners alone.
const MODE: u32 = 0o3733;

/// How often it is looked whether something has come.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// How often what is there is looked at in any case: what was not taken before.
const TRY_EVERY: Duration = Duration::from_secs(60);

/// How much longer the next look waits for each file that has stayed: reading them all takes a tenth of the time at the most.
const LOOK_A_FILE: Duration = Duration::from_micros(50);

/// Refused mails of a user that are kept.
const REFUSED_MAX: usize = 100;

/// Files of a user that are being written at a time.
const UNFINISHED_MAX: usize = 1_000;

/// Mails that the queue remembers at a time.
const REMEMBERED_MAX: usize = 100;

/// When a file that is still being written is removed.
const ABANDONED: Duration = Duration::from_secs(86_400);

/// A mail that has been there for so long is not being taken in.
const LATE: Duration = Duration::from_secs(10);

/// How often the log says that mails wait.
const WARN_EVERY: Duration = Duration::from_secs(300);

/// Files that are looked at for that.
const COUNTED_MAX: usize = 10_000;

/// The ending of files that are not taken in.
const REFUSED: &str = ".refused";

/// Mails of one name that are kept so.
const SET_ASIDE_MAX: u32 = 99;

/// Makes the folder, and looks whether it is right.
///
/// # Errors
/// When it is not, or cannot be made; how it is made stands there.
pub fn prepare(folder: &Path) -> Result<(), Failure> {
    let how = |why: String| {
        format!("{}: {why}; as root: install -d -m 3733 -o USER -g GROUP, those of the server, {0}", folder.display())
    };
    if !folder.is_dir() {
        let made = folder.parent().map_or(Ok(()), fs::create_dir_all);
        let made = made.and_then(|()| DirBuilder::new().mode(0o700).create(folder));
        made.map_err(|error| how(error.to_string()))?;
    }
    let facts = folder.symlink_metadata().map_err(|error| how(error.to_string()))?;
    let (user, group) = (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw());
    if !facts.is_dir() || facts.uid() != user || facts.gid() != group {
        return Err(how("is not a folder of the server's".into()).into());
    }
    if facts.mode() & 0o7777 != MODE {
        fs::set_permissions(folder, fs::Permissions::from_mode(MODE)).map_err(|error| how(error.to_string()))?;
    }
    Ok(())
}

/// Mails of commands that wait in a maildrop for longer than a server needs, as many as are counted.
pub fn waiting(folder: &Path) -> usize {
    let waits = |entry: &fs::DirEntry| {
        let Ok(facts) = entry.path().symlink_metadata() else { return false };
        let age = facts.modified().ok().and_then(|then| SystemTime::now().duration_since(then).ok());
        facts.is_file() && is_whole(&facts) && !is_refused(&entry.path()) && age.is_some_and(|age| age >= LATE)
    };
    let entries = fs::read_dir(folder).into_iter().flatten().map_while(Result::ok);
    entries.take(COUNTED_MAX).filter(|entry| waits(entry)).count()
}

/// Warns of mails that wait at a node which does not have the store, until it is dropped.
pub async fn watch(folder: &Path) {
    loop {
        tokio::time::sleep(LATE).await;
        let mails = waiting(folder);
        if mails > 0 {
            tracing::warn!(folder = %folder.display(), mails, "mail of commands waits for the node that has the store");
            tokio::time::sleep(WARN_EVERY).await;
        }
    }
}

/// The maildrop of a server.
pub struct Maildrop {
    folder: PathBuf,
    trusted: Vec<String>,
    /// Users some mail of whom was not taken in, and when.
    waiting: HashMap<u32, Instant>,
    /// Keys of mails whose files were removed, and which the queue remembers.
    removed: Vec<String>,
    /// The node, in front of keys.
    node: String,
}

/// The queue that takes mails in.
pub enum Intake {
    /// That of this process.
    Here(Arc<Site>),
    /// That of another node, and how long a mail may be.
    Owner(Owner, u64),
}

/// A mail in it.
struct Dropped {
    file: File,
    /// Of its content.
    bytes: u64,
    handover: Handover,
}

impl Maildrop {
    /// A folder, and the users who may send as anybody.
    pub fn new(folder: &Path, trusted: &[String]) -> Maildrop {
        let (waiting, removed, node) = (HashMap::new(), Vec::new(), String::new());
        Maildrop { folder: folder.into(), trusted: trusted.to_vec(), waiting, removed, node }
    }

    /// The same at a node of a cluster.
    pub fn of_node(self, node: &str) -> Maildrop {
        Maildrop { node: format!("{node}/"), ..self }
    }

    /// Takes in what comes, until it is dropped.
    pub async fn serve(mut self, intake: Intake) {
        let (mut seen, mut tried, mut wait) = (None, None::<Instant>, LOOK_EVERY);
        if let Intake::Here(site) = &intake {
            self.removed = self.stale(&queue::taken(&site.store.state()));
        }
        loop {
            let changed = self.folder.metadata().and_then(|facts| facts.modified()).ok();
            if changed != seen || tried.is_none_or(|tried| tried.elapsed() > TRY_EVERY) {
                tried = Some(Instant::now());
                // What is taken in changes the folder, too: it is looked at once more.
                seen = changed.filter(|changed| is_settled(*changed));
                wait = LOOK_EVERY.max(LOOK_A_FILE * self.take_in(&intake).await);
                self.forget(&intake).await;
            }
            tokio::time::sleep(wait).await;
        }
    }

    /// Takes in what is there; how many files stay.
    async fn take_in(&mut self, intake: &Intake) -> u32 {
        self.waiting.retain(|_, since| since.elapsed() < TRY_EVERY);
        let (mut staying, mut left) = (Staying::default(), 0u32);
        let entries = match fs::read_dir(&self.folder) {
            Ok(entries) => entries,
            Err(error) => {
                tracing::error!(folder = %self.folder.display(), %error, "no maildrop");
                return 0;
            }
        };
        for entry in entries.map_while(Result::ok) {
            let path = entry.path();
            let Ok(facts) = path.symlink_metadata() else { continue };
            left = left.saturating_add(1);
            staying.bound(&path, &facts);
            if is_refused(&path) {
                continue;
            }
            if self.waiting.contains_key(&facts.uid()) {
                continue;
            }
            let outcome = match self.open(&path, intake.bytes_max()) {
                Ok(Some(dropped)) => {
                    let key = dropped.handover.key.clone();
                    intake.hand(dropped).await.map(|()| key)
                }
                Ok(None) => continue,
                Err(untaken) => Err(untaken),
            };
            match outcome {
                Ok(key) => match fs::remove_file(&path) {
                    Ok(()) => {
                        left = left.saturating_sub(1);
                        self.removed.push(key);
                    }
                    Err(error) => warn(&path, &error.to_string()),
                },
                Err(Untaken::Later(why)) => {
                    self.waiting.insert(facts.uid(), Instant::now());
                    warn(&path, &why);
                }
                Err(Untaken::Never(why)) => {
                    tracing::error!(file = %path.display(), why, "mail in the maildrop refused, kept as .refused");
                    let _ = set_aside(&path).inspect_err(|error| warn(&path, &error.to_string()));
                }
            }
            if self.removed.len() >= REMEMBERED_MAX {
                self.forget(intake).await;
            }
        }
        left
    }

    /// Has the queue forget mails whose files are gone, when nothing brings these back.
    async fn forget(&mut self, intake: &Intake) {
        if self.removed.is_empty() {
            return;
        }
        let keys = std::mem::take(&mut self.removed);
        let is_synced = tokio::task::block_in_place(|| File::open(&self.folder).and_then(|folder| folder.sync_all()));
        let outcome = match is_synced {
            Ok(()) => intake.forget(keys.clone()).await,
            Err(error) => Err(error.to_string()),
        };
        if let Err(why) = outcome {
            warn(&self.folder, &why);
            self.removed = keys;
        }
    }

    /// The keys among these whose files are gone.
    fn stale(&self, keys: &[String]) -> Vec<String> {
        if keys.is_empty() {
            return Vec::new();
        }
        let Ok(entries) = fs::read_dir(&self.folder) else { return Vec::new() };
        let facts = entries.map_while(Result::ok).filter_map(|entry| entry.path().symlink_metadata().ok());
        let present: HashSet<String> = facts.map(|facts| self.key(&facts)).collect();
        // Those of other nodes are theirs.
        let is_own = |key: &&String| !key.contains('/') || !self.node.is_empty() && key.starts_with(&self.node);
        keys.iter().filter(is_own).filter(|key| !present.contains(*key)).cloned().collect()
    }

    /// A mail that is whole; none if it is being written, or is gone.
    fn open(&self, path: &Path, bytes_max: u64) -> Result<Option<Dropped>, Untaken> {
        let later = |error: io::Error| Untaken::Later(error.to_string());
        let facts = match path.symlink_metadata() {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            facts => facts.map_err(later)?,
        };
        if !facts.is_file() || facts.nlink() != 1 {
            return Err(Untaken::Never("not a file, or one with another name".into()));
        }
        if !is_whole(&facts) {
            remove_abandoned(path, &facts);
            return Ok(None);
        }
        if facts.gid() != rustix::process::getegid().as_raw() {
            return Err(Untaken::Never("its group is not the folder's".into()));
        }
        if facts.len() > bytes_max.saturating_add(envelope::BYTES_MAX as u64) {
            return Err(Untaken::Never(format!("it is longer than {bytes_max} bytes")));
        }
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let mut file = File::from(openat(CWD, path, flags, Mode::empty()).map_err(|error| later(error.into()))?);
        // What was opened counts, and not what was there before.
        let facts = file.metadata().map_err(later)?;
        let bytes = facts.len();
        if !facts.is_file() || facts.nlink() != 1 {
            return Err(Untaken::Never("not a file, or one with another name".into()));
        }
        let mut head = Vec::new();
        (&mut file).take(envelope::BYTES_MAX as u64).read_to_end(&mut head).map_err(later)?;
        let (envelope, at) = Envelope::read(&head).ok_or_else(|| Untaken::Never("it has no envelope".into()))?;
        file.seek(SeekFrom::Start(at as u64)).map_err(later)?;
        let bytes = bytes.saturating_sub(at as u64);
        Ok(Some(Dropped { file, bytes, handover: self.handover(&facts, envelope) }))
    }

    /// The key of a file: no other has it while this one is there, and a new one with its inode has another time.
    fn key(&self, facts: &Metadata) -> String {
        format!("{}{}.{}.{}", self.node, facts.ino(), facts.mtime(), facts.mtime_nsec())
    }

    fn handover(&self, facts: &Metadata, envelope: Envelope) -> Handover {
        let number = facts.uid();
        let user = Account::numbered(number, facts.gid()).name;
        let Envelope { from, name, notify, ret, envid, recipients } = envelope;
        let is_trusted = self.trusted.contains(&user);
        Handover { key: self.key(facts), user, number, is_trusted, from, name, recipients, notify, ret, envid }
    }
}

/// Whether a folder of this time shows it when it changes again: its clock ticks a few hundred times a second.
fn is_settled(changed: SystemTime) -> bool {
    SystemTime::now().duration_since(changed).is_ok_and(|age| age >= LOOK_EVERY)
}

/// Files that stay, of each user the newest.
#[derive(Default)]
struct Staying {
    refused: HashMap<u32, Oldest>,
    unfinished: HashMap<u32, Oldest>,
}

/// By the time of their last change.
type Oldest = BTreeSet<(i64, i64, PathBuf)>;

impl Staying {
    /// Counts a file that stays, and removes the oldest of its user if he has too many.
    fn bound(&mut self, path: &Path, facts: &Metadata) {
        let (files, max, what) = match () {
            () if is_refused(path) => (&mut self.refused, REFUSED_MAX, "a refused mail"),
            () if facts.is_file() && !is_whole(facts) => (&mut self.unfinished, UNFINISHED_MAX, "an unfinished mail"),
            () => return,
        };
        let of_user = files.entry(facts.uid()).or_default();
        of_user.insert((facts.mtime(), facts.mtime_nsec(), path.into()));
        if of_user.len() <= max {
            return;
        }
        let Some((_, _, oldest)) = of_user.pop_first() else { return };
        let removed = fs::remove_file(&oldest).or_else(|_| fs::remove_dir(&oldest));
        if removed.is_ok() {
            tracing::warn!(file = %oldest.display(), user = facts.uid(), "{what} is removed: its user has {max} newer ones");
        }
    }
}

fn is_refused(path: &Path) -> bool {
    path.extension().is_some_and(|ending| ending == &REFUSED[1..])
}

/// Whether its command has written all of it.
fn is_whole(facts: &Metadata) -> bool {
    facts.mode() & 0o040 != 0
}

impl Intake {
    fn bytes_max(&self) -> u64 {
        match self {
            Intake::Here(site) => site.message_bytes_max,
            Intake::Owner(_, most) => *most,
        }
    }

    async fn hand(&self, Dropped { mut file, bytes, handover }: Dropped) -> Result<(), Untaken> {
        match self {
            Intake::Here(site) => hand_over(site, handover, move |piece| file.read(piece)).await,
            Intake::Owner(owner, _) => owner.take(handover, &mut file, bytes).await,
        }
    }

    async fn forget(&self, keys: Vec<String>) -> Result<(), String> {
        match self {
            Intake::Here(site) => queue::forget(site, keys).await.map_err(|error| error.to_string()),
            Intake::Owner(owner, _) => owner.forget(keys).await,
        }
    }
}

fn remove_abandoned(path: &Path, facts: &Metadata) {
    let age = facts.modified().ok().and_then(|then| SystemTime::now().duration_since(then).ok());
    if age.is_some_and(|age| age > ABANDONED) {
        let _ = fs::remove_file(path);
    }
}

fn warn(path: &Path, why: &str) {
    tracing::warn!(file = %path.display(), why, "a mail of a command waits in the maildrop");
}

/// Keeps a mail that is never taken in, under a name that nothing else has.
fn set_aside(path: &Path) -> io::Result<()> {
    let endings =
        std::iter::once(REFUSED.to_owned()).chain((2..=SET_ASIDE_MAX).map(|number| format!(".{number}{REFUSED}")));
    for ending in endings {
        let mut name = path.as_os_str().to_owned();
        name.push(ending);
        match renameat_with(CWD, path, CWD, Path::new(&name), RenameFlags::NOREPLACE) {
            Err(Errno::EXIST) => {}
            // A name that leaves no room for the ending is nobody's accident.
            Err(Errno::NAMETOOLONG) => return fs::remove_file(path),
            renamed => return renamed.map_err(io::Error::from),
        }
    }
    Err(io::Error::other("too many mails of this name were refused"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refused_mail_takes_no_other_ones_place() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::create_dir(at("a.refused")).unwrap();
        fs::write(at("a.2.refused"), "first").unwrap();
        fs::write(at("a"), "second").unwrap();
        set_aside(&at("a")).unwrap();
        assert_eq!(fs::read_to_string(at("a.2.refused")).unwrap(), "first");
        assert_eq!(fs::read_to_string(at("a.3.refused")).unwrap(), "second");
    }

    #[test]
    fn mails_that_nobody_takes_in_are_counted() {
        let folder = tempfile::tempdir().unwrap();
        for (name, mode, age) in [("old", 0o640, 60), ("new", 0o640, 0), ("begun", 0o600, 60), ("x.refused", 0o640, 60)]
        {
            let file = File::create(folder.path().join(name)).unwrap();
            file.set_permissions(fs::Permissions::from_mode(mode)).unwrap();
            file.set_modified(SystemTime::now() - Duration::from_secs(age)).unwrap();
        }
        assert_eq!(waiting(folder.path()), 1);
    }

    #[test]
    fn a_user_keeps_the_newest_of_what_stays() {
        let folder = tempfile::tempdir().unwrap();
        let mut staying = Staying::default();
        let mut put = |name: &str, age: u64, mode: u32| {
            let path = folder.path().join(name);
            let file = File::create(&path).unwrap();
            file.set_modified(SystemTime::now() - Duration::from_secs(age)).unwrap();
            file.set_permissions(fs::Permissions::from_mode(mode)).unwrap();
            staying.bound(&path, &path.symlink_metadata().unwrap());
        };
        put("oldest.refused", 9_000, 0o640);
        put("whole", 9_000, 0o640);
        put("oldest", 9_000, 0o600);
        (0..REFUSED_MAX).for_each(|at| put(&format!("{at}.refused"), at as u64, 0o640));
        (0..UNFINISHED_MAX).for_each(|at| put(&format!("{at}"), at as u64, 0o600));
        assert!(!folder.path().join("oldest.refused").exists() && !folder.path().join("oldest").exists());
        assert!(folder.path().join("whole").exists());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), REFUSED_MAX + UNFINISHED_MAX + 1);
    }

    #[test]
    fn only_whole_files_are_taken_and_their_owner_is_the_sender() {
        let folder = tempfile::tempdir().unwrap();
        prepare(folder.path()).unwrap();
        assert_eq!(folder.path().metadata().unwrap().mode() & 0o7777, MODE);
        let maildrop = Maildrop::new(folder.path(), &["root".into()]);
        let put = |name: &str, text: &str, mode: u32| {
            let path = folder.path().join(name);
            fs::write(&path, text).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            path
        };
        const WHOLE: &str = "sluice maildrop 1\nto a@b\n\nA: b\n\n";
        let mut dropped = maildrop.open(&put("a", WHOLE, 0o640), 1_000).unwrap().unwrap();
        assert_eq!(dropped.handover.number, rustix::process::geteuid().as_raw());
        let mut content = String::new();
        dropped.file.read_to_string(&mut content).unwrap();
        assert_eq!(content, "A: b\n\n");
        assert!(maildrop.open(&put("b", WHOLE, 0o600), 1_000).unwrap().is_none(), "it is being written");
        assert!(maildrop.open(&folder.path().join("none"), 1_000).unwrap().is_none());
        assert!(matches!(maildrop.open(&put("c", "to a@b\n\n", 0o640), 1_000), Err(Untaken::Never(_))));
        assert!(matches!(maildrop.open(&put("l", &"x".repeat(5 << 20), 0o640), 1_000), Err(Untaken::Never(_))));
        fs::hard_link(put("d", WHOLE, 0o640), folder.path().join("e")).unwrap();
        assert!(matches!(maildrop.open(&folder.path().join("e"), 1_000), Err(Untaken::Never(_))));
        std::os::unix::fs::symlink("/etc/passwd", folder.path().join("f")).unwrap();
        assert!(matches!(maildrop.open(&folder.path().join("f"), 1_000), Err(Untaken::Never(_))));
    }
}
