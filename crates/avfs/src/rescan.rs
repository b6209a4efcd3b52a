//! Inspecting in the background what is known by other signatures alone, and what was changed behind the mount.
//!
//! ```text
//!   a walk through the folder ──► the most recently used of what is to be inspected ──► one after the other
//!        ▲                                                                                    │
//!        └───────────────── if there was more than is held at a time, what was used before ◄──┘
//! ```
//!
//! Whoever opens a file waits for none of this: an inspection that somebody waits for goes first, and this one stands still
//! meanwhile; a file that is opened while it is inspected here is inspected once more, there. The thread has the lowest
//! priority (nice 19), and so has the scheduler of the disk by it. What was done is in [`Verdicts`](crate::verdicts::Verdicts),
//! so whoever is killed in the middle goes on with the rest.
//!
//! It does not go into other FUSE file systems, one of which may be ours, nor deeper than [`DEPTH_MAX`] folders.
//!
//! Bounds: [`HELD_MAX`] paths of [`HELD_BYTES_MAX`] together; a descriptor a folder on the way.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ffi::{CStr, OsStr};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::sync::Arc;
use std::sync::mpsc;
use std::time::Instant;

use rustix::fs::{
    AtFlags, Dir, FileType, FsWord, Mode, OFlags, ResolveFlags, Statx, StatxFlags, fstatfs, openat, openat2, statx,
};
use rustix::io::Errno;

use crate::files::Shared;
use crate::guard::Again;
use crate::judge::{Current, Judge};
use crate::node::{Inode, Node, Stamp, facts};
use crate::verdicts::Standing;

/// Paths that are held at a time.
const HELD_MAX: usize = 32_768;

/// Bytes of these.
const HELD_BYTES_MAX: usize = 4 << 20;

/// Folders below each other: each is a descriptor.
const DEPTH_MAX: usize = 128;

/// How low the priority is: the lowest.
const NICE: i32 = 19;

/// Number of FUSE file systems in `statfs`.
const FUSE_MAGIC: FsWord = 0x6573_5546;

/// The longest path that one system call takes.
const PATH_BYTES_MAX: usize = 4096;

/// Files to inspect in the background.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Rescan {
    /// Nothing.
    #[default]
    Off,
    /// Files found clean by other signatures, or before they changed.
    Changed,
    /// That, and what was never inspected.
    All,
}

/// Walks through a folder whenever there are other signatures.
pub struct Rescanning {
    shared: Arc<Shared>,
    root: OwnedFd,
    /// Where that is.
    device: (u32, u32),
    which: Rescan,
    held_max: usize,
}

/// A file to inspect: the one that was used last is the greatest.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Due {
    used: u32,
    path: Box<[u8]>,
}

/// The most recently used of what is to be inspected.
#[derive(Default)]
struct Found {
    held: BinaryHeap<Reverse<Due>>,
    /// Bytes of their paths.
    bytes: usize,
    /// Whether there was more.
    is_more: bool,
    /// Files looked at.
    files: u64,
}

impl Found {
    fn add(&mut self, due: Due, most: usize) {
        self.bytes += due.path.len();
        self.held.push(Reverse(due));
        while self.held.len() > most || self.bytes > HELD_BYTES_MAX {
            let Some(Reverse(least)) = self.held.pop() else { return };
            self.bytes -= least.path.len();
            self.is_more = true;
        }
    }
}

/// Counts of the results.
#[derive(Default)]
struct Counts {
    clean: u64,
    infected: u64,
    unjudged: u64,
}

impl Rescanning {
    /// Below this folder.
    ///
    /// # Errors
    /// When the kernel says nothing of it.
    pub fn new(shared: Arc<Shared>, root: OwnedFd, which: Rescan) -> rustix::io::Result<Rescanning> {
        let device = Inode::of(&facts(&root)?).device;
        Ok(Rescanning { shared, root, device, which, held_max: HELD_MAX })
    }

    /// Walks once for each judge that arrives, until the sender is gone.
    pub fn run(&self, judges: &mpsc::Receiver<Box<dyn Judge>>) {
        if let Err(error) = rustix::process::setpriority_process(None, NICE) {
            tracing::debug!(%error, "the priority of background inspections cannot be lowered");
        }
        for judge in judges.iter().filter(|_| self.which != Rescan::Off) {
            self.inspect_all(&Current::new(judge));
        }
    }

    fn inspect_all(&self, current: &Current) {
        let (mut counts, begun, mut behind) = (Counts::default(), Instant::now(), None);
        loop {
            let Some(found) = self.find(current, behind.as_ref()) else { return };
            let (files, is_more) = (found.files, found.is_more);
            let dues: Vec<Due> = found.held.into_sorted_vec().into_iter().map(|due| due.0).collect();
            if behind.is_none() {
                if dues.is_empty() {
                    return tracing::debug!(files, "nothing to inspect in the background");
                }
                tracing::info!(files, due = dues.len(), more = is_more, "inspecting in the background");
            }
            let is_over = !dues.iter().all(|due| self.inspect(current, due, &mut counts));
            behind = dues.into_iter().next_back();
            if is_over || !is_more || behind.is_none() {
                let Counts { clean, infected, unjudged } = counts;
                let seconds = begun.elapsed().as_secs();
                tracing::info!(clean, infected, unjudged, seconds, complete = !is_over, "inspected in the background");
                return self.shared.guard.save();
            }
        }
    }

    /// Inspects one; whether there is more to do.
    fn inspect(&self, current: &Current, due: &Due, counts: &mut Counts) -> bool {
        let Some(node) = self.node(OsStr::from_bytes(&due.path)) else {
            return self.shared.guard.goes_on(current.generation);
        };
        match self.shared.guard.inspect_again(current, &node) {
            Ok(None) => return false,
            Ok(Some(Again::Clean)) => counts.clean += 1,
            Ok(Some(Again::Infected)) => counts.infected += 1,
            Ok(Some(Again::Unjudged)) => counts.unjudged += 1,
            Ok(Some(Again::Known)) => {}
            Err(error) => tracing::debug!(file = %String::from_utf8_lossy(&due.path), %error, "not inspected"),
        }
        true
    }

    /// The file at a path, if it is one still: the kernel's, if it knows it.
    fn node(&self, path: &OsStr) -> Option<Arc<Node>> {
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
        let open = || openat2(&self.root, path, flags, Mode::empty(), resolve);
        let held = self.shared.nodes.with_reserve(open).ok()?;
        let facts = facts(&held).ok()?;
        let kind = kind(&facts);
        let again = held.try_clone().ok().filter(|_| kind == FileType::RegularFile)?;
        let known = self.shared.nodes.find(again, &facts);
        Some(known.unwrap_or_else(|| Arc::new(Node::new(0, Inode::of(&facts), kind, held))))
    }

    /// The most recently used that are to be inspected, of those that come behind one. Nothing when all is over.
    fn find(&self, current: &Current, behind: Option<&Due>) -> Option<Found> {
        let mut found = Found::default();
        let (mut way, mut path) = (vec![(self.folder(&self.root, c".").ok()?, 0)], Vec::new());
        loop {
            let depth = way.len();
            let Some((folder, length)) = way.last_mut() else { return Some(found) };
            path.truncate(*length);
            let Some(entry) = folder.read().and_then(Result::ok) else {
                way.pop();
                continue;
            };
            let name = entry.file_name();
            let is_left_out = name == c"." || name == c".." || path.len() + name.count_bytes() >= PATH_BYTES_MAX;
            let kind = entry.file_type();
            let is_of_interest = matches!(kind, FileType::Directory | FileType::RegularFile | FileType::Unknown);
            if is_left_out || !is_of_interest {
                continue;
            }
            let flags = AtFlags::SYMLINK_NOFOLLOW;
            let wanted = StatxFlags::BASIC_STATS | StatxFlags::BTIME;
            let Ok(facts) = folder.fd().and_then(|fd| statx(fd, name, flags, wanted)) else { continue };
            path.extend(name.to_bytes());
            match self::kind(&facts) {
                FileType::RegularFile => {
                    if !self.shared.guard.goes_on(current.generation) {
                        return None;
                    }
                    found.files += 1;
                    let due = self.used(current, &facts).map(|used| Due { used, path: path.as_slice().into() });
                    let has_had_its_turn = |due: &Due| behind.is_some_and(|behind| due >= behind);
                    due.filter(|due| !has_had_its_turn(due)).into_iter().for_each(|due| found.add(due, self.held_max));
                }
                FileType::Directory if depth < DEPTH_MAX => {
                    let inner = folder.fd().and_then(|fd| self.folder(fd, name));
                    if let Ok(inner) = inner {
                        path.push(b'/');
                        way.push((inner, path.len()));
                    }
                }
                _ => {}
            }
        }
    }

    /// When a file was used, if it is to be inspected.
    fn used(&self, current: &Current, facts: &Statx) -> Option<u32> {
        let stamp = Stamp::of(facts);
        match self.shared.guard.verdicts.standing(Inode::of(facts), &stamp, current.generation) {
            _ if stamp.size == 0 => None,
            Standing::Clean => None,
            Standing::Once(used) => Some(used),
            Standing::Unknown => (self.which == Rescan::All).then_some(0),
        }
    }

    /// A folder to read, unless it is on another FUSE file system.
    fn folder(&self, above: impl std::os::fd::AsFd, name: &CStr) -> rustix::io::Result<Dir> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let above = above.as_fd();
        let open = || {
            let quiet = openat(above, name, flags | OFlags::NOATIME, Mode::empty());
            quiet.or_else(|_| openat(above, name, flags, Mode::empty()))
        };
        let folder = self.shared.nodes.with_reserve(open)?;
        let is_elsewhere = Inode::of(&facts(&folder)?).device != self.device;
        if is_elsewhere && fstatfs(&folder)?.f_type == FUSE_MAGIC { Err(Errno::XDEV) } else { Dir::new(folder) }
    }
}

fn kind(facts: &Statx) -> FileType {
    FileType::from_raw_mode(facts.stx_mode.into())
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::path::Path;
    use std::sync::Mutex;

    use super::*;
    use crate::guard::{Guard, Settings};
    use crate::judge::{Generation, Hit, Judging, Unjudged};
    use crate::node::{Mode as Inspects, OnInfected};
    use crate::nodes::{Bounds, Nodes};
    use crate::overlay::Staging;
    use crate::rules::Rules;

    /// Keeps what it inspects.
    #[derive(Clone, Default)]
    struct Notes(Arc<Mutex<Vec<String>>>);

    impl Judge for Notes {
        fn begin(&self) -> Box<dyn Judging> {
            Box::new(self.clone())
        }

        fn generation(&self) -> Vec<u8> {
            b"now".to_vec()
        }
    }

    impl Judging for Notes {
        fn feed(&mut self, piece: &[u8]) -> Result<Option<Hit>, Unjudged> {
            let text = String::from_utf8_lossy(piece);
            self.0.lock().expect("nobody panics").push(text.clone().into_owned());
            if text.ends_with('0') { Err(Unjudged("it dies".into())) } else { Ok(None) }
        }

        fn finish(self: Box<Self>) -> Result<Option<Hit>, Unjudged> {
            Ok(None)
        }
    }

    fn opened(folder: &Path) -> OwnedFd {
        File::open(folder).expect("a folder").into()
    }

    fn over(folder: &Path, which: Rescan, held_max: usize) -> Rescanning {
        let settings = Settings {
            judge: Some(Box::new(Notes::default())),
            mode: Inspects::Full,
            on_infected: OnInfected::Immediate,
            rules: Rules::default(),
            state: None,
            evidence: None,
        };
        let staging = Staging::new(opened(folder), i32::MAX);
        let (guard, _) = Guard::new(settings, staging, folder).expect("a guard");
        let (nodes, _) = Nodes::new(opened(folder), Bounds::of_limit(None)).expect("a table");
        let shared = Arc::new(Shared::new(nodes, guard));
        Rescanning { held_max, ..Rescanning::new(shared, opened(folder), which).expect("the folder") }
    }

    #[test]
    fn what_is_more_than_is_held_comes_in_the_next_walk_and_each_file_once() {
        let folder = tempfile::tempdir().expect("a folder");
        let deep: String = (0..40).map(|n| format!("deep{n}/")).collect();
        std::fs::create_dir_all(folder.path().join(&deep)).expect("folders");
        std::os::unix::fs::symlink("..", folder.path().join("link")).expect("a link");
        let name = |n: usize| if n.is_multiple_of(2) { format!("{n}") } else { format!("{deep}{n}") };
        (0..100).for_each(|n| std::fs::write(folder.path().join(name(n)), format!("{n}")).expect("a file"));
        let (notes, walks) = (Notes::default(), over(folder.path(), Rescan::All, 7));
        let verdicts = &walks.shared.guard.verdicts;
        for n in [17, 40] {
            let facts = facts(File::open(folder.path().join(name(n))).expect("a file")).expect("facts");
            verdicts.add(Inode::of(&facts), &Stamp::of(&facts), Generation::of(b"before"));
        }
        let inspected = || {
            walks.inspect_all(&Current::new(Box::new(notes.clone())));
            std::mem::take(&mut *notes.0.lock().expect("nobody panics"))
        };
        let mut seen = inspected();
        assert!(seen[..2].iter().all(|first| ["17", "40"].contains(&&**first)), "{seen:?}");
        seen.sort_by_key(|text| text.parse::<usize>().expect("a number"));
        assert_eq!(seen, (0..100).map(|n| n.to_string()).collect::<Vec<_>>());
        // Those without a verdict.
        assert_eq!(inspected().len(), 10);
    }

    #[test]
    fn it_ends_when_others_inspect_or_all_is_over() {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::write(folder.path().join("file"), "1").expect("a file");
        let notes = Notes::default();
        let walks = over(folder.path(), Rescan::All, 7);
        let before = Current { generation: Generation::of(b"before"), ..Current::new(Box::new(notes.clone())) };
        walks.inspect_all(&before);
        walks.shared.guard.front.end();
        walks.inspect_all(&Current::new(Box::new(notes.clone())));
        assert_eq!(notes.0.lock().expect("nobody panics")[..], [] as [String; 0]);
    }
}
