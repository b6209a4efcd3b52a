//! The files that the kernel remembers, by the numbers that it has of us.
//!
//! ```text
//!   held ──── the oldest, when there are more than descriptors for them ───► a name in a folder ──── too many ───► the kernel
//!    ▲                                                                          │                                  forgets it
//!    └── found again by that name, if it is the same file still; ESTALE if not ─┘
//! ```
//!
//! The kernel remembers as many files as it has memory for, and a process has few descriptors. So only [`Bounds::held`] nodes
//! hold theirs; of the others there is a [`Slot`] alone: the folder and the name at which it was last seen, and when it was
//! made. To ESTALE the kernel looks the path up once more, and then finds the file by any other name that it has. Whatever
//! is open, or has something that waits, is held. Beyond [`Bounds::known`] files and folders, the kernel is asked to forget such
//! as are not held. From Linux 6.18 on it forgets those that nobody uses; before, names of files alone can be taken from it,
//! and never those of folders, in which processes may stand: there the table of folders is bounded by the kernel's memory.
//!
//! Known wrong: a file that was removed while somebody holds it open by `O_PATH` alone may be ESTALE to them when descriptors
//! are short.

use std::collections::{HashMap, VecDeque};
use std::ffi::OsStr;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt as _;
use std::sync::mpsc::{self, SyncSender};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustix::fs::{FileType, Statx};
use rustix::io::Errno;

use crate::node::{Inode, Node, Stamp, facts, hold};

/// The number of the folder that is mounted, for the kernel.
pub const ROOT: u64 = 1;

/// Set in the numbers of files on other file systems than the folder's, and where a number is taken.
const FOREIGN: u64 = 1 << 63;

/// Folders between a file that is not held and one that is: more are a ring that somebody made behind the mount.
const DEPTH_MAX: usize = 1 << 16;

/// Nodes that are looked at, at a time, for one that can be let go.
const LOOKS: usize = 32;

/// Nodes that the kernel is asked to forget with each new one.
const FORGOTTEN_AT_ONCE: usize = 2;

/// Requests to forget that may wait.
const WAITING_MAX: usize = 256;

/// Nodes that hold their files at most: more only spare a look-up each.
const HELD_MAX: usize = 4096;

/// Nodes that hold their files at least.
const HELD_MIN: usize = 16;

/// Files and folders that the kernel may remember: some 6 MB of slots. With what is being forgotten they stay below 57,344, beyond
/// which the table doubles.
const KNOWN_MAX: usize = 40_000;

/// How many files are held and known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    /// Descriptors kept for files without an opening.
    pub held: usize,
    /// Files that the kernel remembers.
    pub known: usize,
    /// Descriptors from this number on are not for what others open: verdicts about what is open need some.
    pub reserve: RawFd,
    /// The same for what is written and waits: whoever writes has it open already.
    pub shadows: RawFd,
}

/// Descriptors that are kept for verdicts; a quarter of all where there are few.
const RESERVE: u64 = 512;

impl Bounds {
    /// For a process that may have so many files open: half of them are for those that others have open.
    pub fn of_limit(files: Option<u64>) -> Bounds {
        let files = files.and_then(|files| usize::try_from(files).ok()).unwrap_or(usize::MAX);
        let all = files as u64;
        let reserve = RESERVE.min(all / 4);
        let number = |number| RawFd::try_from(number).unwrap_or(RawFd::MAX);
        let held = (files / 2).clamp(HELD_MIN, HELD_MAX);
        Bounds { held, known: KNOWN_MAX, reserve: number(all - reserve), shadows: number(all - reserve / 2) }
    }
}

/// Node that the kernel shall forget.
#[derive(Debug, PartialEq, Eq)]
pub struct Unused {
    /// Its number.
    pub id: u64,
    /// The number of its folder.
    pub parent: u64,
    /// The name there, if it has one.
    pub name: Box<[u8]>,
    /// Whether it is a folder itself.
    pub is_folder: bool,
}

/// All files that the kernel remembers.
pub struct Nodes {
    root: Arc<Node>,
    bounds: Bounds,
    table: Mutex<Table>,
    forgotten: SyncSender<Unused>,
}

/// Entry of a number.
struct Slot {
    /// If it is held.
    node: Option<Arc<Node>>,
    /// When it was made: another file with the number of an old one was made later.
    born: i64,
    /// The folder where it was last seen, and its name there; no name once that was taken from it.
    parent: u64,
    name: Box<[u8]>,
    /// How often the kernel was told of it.
    lookups: u64,
    /// Its only entry in a queue that counts.
    turn: u32,
    is_folder: bool,
    /// As in [`Content`](crate::node::Content), while it is not held.
    is_tainted: bool,
}

/// Numbers and names of what lies below a folder, the innermost first.
type Way = Vec<(u64, Box<[u8]>)>;

#[derive(Default)]
struct Table {
    by_id: HashMap<u64, Slot>,
    /// Inodes whose numbers differ from their own.
    foreign: HashMap<Inode, u64>,
    foreign_inodes: HashMap<u64, Inode>,
    foreign_last: u64,
    /// The numbers of what is held and of what is not, the oldest first, with the turn of their slot.
    held: VecDeque<(u64, u32)>,
    let_go: VecDeque<(u64, u32)>,
    held_count: usize,
    turn: u32,
}

impl Nodes {
    /// With the folder that is mounted. The receiver is told of what the kernel has to forget.
    ///
    /// # Errors
    /// When the kernel says nothing of the folder.
    pub fn new(root: OwnedFd, bounds: Bounds) -> rustix::io::Result<(Nodes, mpsc::Receiver<Unused>)> {
        let inode = Inode::of(&facts(&root)?);
        let root = Arc::new(Node::new(ROOT, inode, FileType::Directory, root));
        let (forgotten, told) = mpsc::sync_channel(WAITING_MAX);
        Ok((Nodes { root, bounds, table: Mutex::default(), forgotten }, told))
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The node of a number of the kernel.
    ///
    /// # Errors
    /// ESTALE when there is no such file any more, or not where it was.
    pub fn get(&self, id: u64) -> rustix::io::Result<Arc<Node>> {
        if id == ROOT {
            return Ok(self.root.clone());
        }
        let held = self.table().by_id.get(&id).ok_or(Errno::STALE)?.node.clone();
        match held {
            Some(node) => {
                node.use_it();
                Ok(node)
            }
            None => self.find_again(id),
        }
    }

    /// Holds what is not held, and the folders that lead there.
    fn find_again(&self, id: u64) -> rustix::io::Result<Arc<Node>> {
        let (mut node, mut way) = self.way_to(id)?;
        while let Some((id, name)) = way.pop() {
            let held = match self.hold(&node, OsStr::from_bytes(&name)) {
                Err(Errno::NOENT | Errno::NOTDIR) => return Err(Errno::STALE),
                held => held?,
            };
            let facts = facts(&held)?;
            node = self.take_up(Some(id), held, &facts).ok_or(Errno::STALE)?;
        }
        Ok(node)
    }

    /// The next folder above that is held, and what lies between, outermost last.
    fn way_to(&self, id: u64) -> rustix::io::Result<(Arc<Node>, Way)> {
        let (table, mut way, mut at) = (self.table(), Vec::new(), id);
        while way.len() < DEPTH_MAX {
            if at == ROOT {
                return Ok((self.root.clone(), way));
            }
            let slot = table.by_id.get(&at).ok_or(Errno::STALE)?;
            if let Some(node) = &slot.node {
                return Ok((node.clone(), way));
            }
            way.push((at, slot.name.clone()));
            at = slot.parent;
        }
        Err(Errno::STALE)
    }

    /// The node of a file that is held, which the kernel knows; by this number, if it has to be that.
    fn take_up(&self, wanted: Option<u64>, held: OwnedFd, facts: &Statx) -> Option<Arc<Node>> {
        let inode = Inode::of(facts);
        if inode == self.root.inode {
            return Some(self.root.clone()).filter(|_| wanted.is_none());
        }
        let mut table = self.table();
        let id = self.plain(inode).or_else(|| table.foreign.get(&inode).copied())?;
        let slot = table.by_id.get_mut(&id)?;
        if wanted.is_some_and(|wanted| wanted != id) || slot.born != Stamp::of(facts).born {
            return None;
        }
        let (node, is_new) = slot.held(id, facts, held);
        if is_new {
            table.holds_one_more(id);
            table.make_room(self.bounds.held, LOOKS);
        }
        Some(node)
    }

    /// Holds what has a name in a folder; where descriptors are short, by letting others go.
    ///
    /// # Errors
    /// As [`hold`].
    pub fn hold(&self, folder: &Node, name: &OsStr) -> rustix::io::Result<OwnedFd> {
        self.with_room(|| hold(&folder.held, name))
    }

    /// Does something that needs descriptors, once more if there are none.
    ///
    /// # Errors
    /// Those of `work`.
    pub fn with_room<T>(&self, mut work: impl FnMut() -> rustix::io::Result<T>) -> rustix::io::Result<T> {
        match work() {
            Err(Errno::MFILE | Errno::NFILE) => {
                let mut table = self.table();
                let (half, all) = (table.held_count / 2, table.held.len().saturating_mul(2));
                table.make_room(half, all);
                drop(table);
                work()
            }
            done => done,
        }
    }

    /// Opens something for who asks, as [`Nodes::with_room`] does, if that leaves enough for verdicts.
    ///
    /// # Errors
    /// ENFILE if it does not, and those of `open`.
    pub fn with_reserve<F: AsRawFd>(&self, mut open: impl FnMut() -> rustix::io::Result<F>) -> rustix::io::Result<F> {
        let reserve = self.bounds.reserve;
        self.with_room(|| {
            let file = open()?;
            if file.as_raw_fd() < reserve { Ok(file) } else { Err(Errno::NFILE) }
        })
    }

    /// The number of a file that keeps that of its inode.
    fn plain(&self, inode: Inode) -> Option<u64> {
        let is_plain = inode.device == self.root.inode.device && inode.number > ROOT && inode.number < FOREIGN;
        is_plain.then_some(inode.number)
    }

    /// The node of a file that is held, if the kernel knows it.
    pub fn find(&self, held: OwnedFd, facts: &Statx) -> Option<Arc<Node>> {
        self.take_up(None, held, facts)
    }

    /// The node of a file that is held, which the kernel is told of once more, at this place.
    pub fn enter(&self, held: OwnedFd, facts: &Statx, parent: u64, name: &OsStr) -> Arc<Node> {
        let inode = Inode::of(facts);
        if inode == self.root.inode {
            return self.root.clone();
        }
        let mut table = self.table();
        let id = self.plain(inode).unwrap_or_else(|| table.foreign(inode));
        let born = Stamp::of(facts).born;
        let slot = table.by_id.entry(id).or_insert_with(|| Slot::new(born, facts));
        if slot.node.is_none() && slot.born != born {
            // Another file by now, with the same number.
            *slot = Slot { lookups: slot.lookups, turn: slot.turn, ..Slot::new(born, facts) };
        }
        slot.lookups += 1;
        slot.is_at(parent, name);
        let (node, is_new) = slot.held(id, facts, held);
        if is_new {
            table.holds_one_more(id);
            table.make_room(self.bounds.held, LOOKS);
            let known = self.bounds.known;
            table.too_many(known).for_each(|unused| _ = self.forgotten.try_send(unused));
        }
        node
    }

    /// The kernel has forgotten it as often as it was told of it.
    pub fn forget(&self, id: u64, count: u64) {
        let mut table = self.table();
        let Some(slot) = table.by_id.get_mut(&id) else { return };
        slot.lookups = slot.lookups.saturating_sub(count);
        if slot.lookups > 0 {
            return;
        }
        let was_held = slot.node.is_some();
        let gone = table.by_id.remove(&id);
        table.held_count -= usize::from(was_held);
        if let Some(inode) = table.foreign_inodes.remove(&id) {
            table.foreign.remove(&inode);
        }
        drop(table);
        drop(gone);
    }

    /// It has another name.
    pub fn moved(&self, id: u64, parent: u64, name: &OsStr) {
        if let Some(slot) = self.table().by_id.get_mut(&id) {
            slot.is_at(parent, name);
        }
    }

    /// It has this name no longer.
    pub fn unnamed(&self, id: u64, parent: u64, name: &OsStr) {
        let mut table = self.table();
        let slot = table.by_id.get_mut(&id);
        if let Some(slot) = slot.filter(|slot| slot.parent == parent && *slot.name == *name.as_bytes()) {
            slot.name = Box::default();
        }
    }

    /// How many the kernel remembers.
    pub fn known(&self) -> usize {
        self.table().by_id.len()
    }

    /// All that are held.
    pub fn all(&self) -> Vec<Arc<Node>> {
        self.table().by_id.values().filter_map(|slot| slot.node.clone()).collect()
    }
}

impl Slot {
    fn new(born: i64, facts: &Statx) -> Slot {
        let is_folder = FileType::from_raw_mode(facts.stx_mode.into()) == FileType::Directory;
        let name = Box::default();
        Slot { node: None, born, parent: ROOT, name, lookups: 0, turn: 0, is_folder, is_tainted: false }
    }

    fn is_at(&mut self, parent: u64, name: &OsStr) {
        self.parent = parent;
        if *self.name != *name.as_bytes() {
            self.name = name.as_bytes().into();
        }
    }

    /// Its node, and whether that is a new one.
    fn held(&mut self, id: u64, facts: &Statx, held: OwnedFd) -> (Arc<Node>, bool) {
        if let Some(node) = &self.node {
            node.use_it();
            return (node.clone(), false);
        }
        let node = Arc::new(Node::new(id, Inode::of(facts), FileType::from_raw_mode(facts.stx_mode.into()), held));
        node.content_mut().is_tainted = self.is_tainted;
        self.node = Some(node.clone());
        (node, true)
    }
}

impl Table {
    fn foreign(&mut self, inode: Inode) -> u64 {
        if let Some(id) = self.foreign.get(&inode) {
            return *id;
        }
        self.foreign_last += 1;
        let id = FOREIGN | self.foreign_last;
        self.foreign.insert(inode, id);
        self.foreign_inodes.insert(id, inode);
        id
    }

    fn next_turn(&mut self) -> u32 {
        self.turn = self.turn.wrapping_add(1);
        self.turn
    }

    fn holds_one_more(&mut self, id: u64) {
        let turn = self.next_turn();
        self.held_count += 1;
        let Table { by_id, held, let_go, .. } = self;
        by_id.entry(id).and_modify(|slot| slot.turn = turn);
        held.push_back((id, turn));
        // Entries that count no longer are swept out when there are as many of them as of others.
        for queue in [held, let_go] {
            if queue.len() > 2 * by_id.len() + LOOKS {
                queue.retain(|(id, turn)| by_id.get(id).is_some_and(|slot| slot.turn == *turn));
            }
        }
    }

    /// Drops the oldest unused nodes.
    fn make_room(&mut self, most: usize, looks: usize) {
        for _ in 0..looks {
            if self.held_count <= most {
                return;
            }
            let Some((id, turn)) = self.held.pop_front() else { return };
            let next = self.next_turn();
            let Some(slot) = self.by_id.get_mut(&id).filter(|slot| slot.turn == turn) else { continue };
            let Some(node) = &slot.node else { continue };
            // Nobody else has it, and nobody gets it while the table is locked.
            let is_used = Arc::strong_count(node) > 1 || node.was_used() || node.content().overlay.is_some();
            // What has no name is found again only by another of its names, so it is kept while others can be let go.
            if is_used || slot.name.is_empty() && looks <= LOOKS {
                self.held.push_back((id, turn));
                continue;
            }
            slot.is_tainted = node.content().is_tainted;
            (slot.node, slot.turn) = (None, next);
            self.let_go.push_back((id, next));
            self.held_count -= 1;
        }
    }

    /// Nodes to forget, if there are more than this.
    fn too_many(&mut self, most: usize) -> impl Iterator<Item = Unused> + use<'_> {
        let looks = if self.by_id.len() > most { FORGOTTEN_AT_ONCE } else { 0 };
        (0..looks).filter_map(|_| {
            let (id, turn) = self.let_go.pop_front()?;
            let slot = self.by_id.get(&id).filter(|slot| slot.turn == turn)?;
            // Until it is forgotten.
            self.let_go.push_back((id, turn));
            Some(Unused { id, parent: slot.parent, name: slot.name.clone(), is_folder: slot.is_folder })
        })
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use rustix::fs::{Mode, OFlags, open};

    use super::*;

    const BOUNDS: Bounds = Bounds { held: 4, known: 20, reserve: RawFd::MAX, shadows: RawFd::MAX };

    fn over(folder: &Path) -> (Nodes, mpsc::Receiver<Unused>) {
        let root = open(folder, OFlags::PATH | OFlags::DIRECTORY, Mode::empty()).expect("the folder");
        Nodes::new(root, BOUNDS).expect("a table")
    }

    /// As the kernel looks a path up.
    fn look_up(nodes: &Nodes, path: &str) -> u64 {
        path.split('/').fold(ROOT, |parent, name| {
            let folder = nodes.get(parent).expect("a folder");
            let held = nodes.hold(&folder, OsStr::new(name)).expect("it is there");
            let facts = facts(&held).expect("facts");
            nodes.enter(held, &facts, parent, OsStr::new(name)).id
        })
    }

    fn held(nodes: &Nodes) -> usize {
        let table = nodes.table();
        let count = table.by_id.values().filter(|slot| slot.node.is_some()).count();
        assert_eq!(count, table.held_count);
        count
    }

    #[test]
    fn few_of_many_files_are_held_and_all_are_found_again() {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::create_dir_all(folder.path().join("a/b")).expect("folders");
        let paths: Vec<String> =
            (0..60).map(|n| if n % 2 == 0 { format!("{n}") } else { format!("a/b/{n}") }).collect();
        paths.iter().for_each(|path| std::fs::write(folder.path().join(path), path).expect("a file"));
        let (nodes, unused) = over(folder.path());
        let ids: Vec<u64> = paths.iter().map(|path| look_up(&nodes, path)).collect();
        for _ in 0..3 {
            for (id, path) in ids.iter().zip(&paths) {
                let file = nodes.get(*id).and_then(|node| node.open(OFlags::RDONLY)).expect("found again");
                assert_eq!(std::io::read_to_string(file).expect("it is read"), *path);
                assert!(held(&nodes) <= 2 * BOUNDS.held, "{}", held(&nodes));
            }
        }
        let asked: Vec<Unused> = unused.try_iter().collect();
        assert!(asked.len() >= 60 - BOUNDS.known, "{asked:?}");
        assert!(asked.iter().all(|unused| unused.is_folder == matches!(&*unused.name, b"a" | b"b")), "{asked:?}");
        // The kernel has forgotten them.
        for id in ids {
            nodes.forget(id, u64::MAX);
            assert_eq!(nodes.get(id).err(), Some(Errno::STALE));
        }
        let table = nodes.table();
        assert!(table.by_id.len() <= 2, "folders are left");
    }

    #[test]
    fn only_the_same_file_is_found_again() {
        let folder = tempfile::tempdir().expect("a folder");
        let at = |name: &str| folder.path().join(name);
        let (nodes, _names) = over(folder.path());
        std::fs::create_dir(at("d")).expect("a folder");
        std::fs::write(at("d/old"), b"").expect("a file");
        std::fs::hard_link(at("d/old"), at("link")).expect("a link");
        let id = look_up(&nodes, "d/old");
        let let_go = || {
            (0..20).for_each(|n| {
                let name = format!("other{n}");
                std::fs::write(at(&name), b"").expect("a file");
                look_up(&nodes, &name);
            });
            assert!(nodes.table().by_id[&id].node.is_none(), "others took its place");
        };
        let_go();
        assert!(nodes.get(id).is_ok());
        // Renamed behind the mount, and another in its place.
        let_go();
        std::fs::rename(at("d/old"), at("d/new")).expect("another name");
        assert_eq!(nodes.get(id).err(), Some(Errno::STALE));
        std::fs::write(at("d/old"), b"").expect("another file");
        assert_eq!(nodes.get(id).err(), Some(Errno::STALE));
        // By its other name it is known again, as what it was.
        assert_eq!(look_up(&nodes, "link"), id);
        let_go();
        assert!(nodes.get(id).is_ok());
        // Moved and unnamed through the mount.
        std::fs::rename(at("link"), at("d/link")).expect("another name");
        nodes.moved(id, look_up(&nodes, "d"), OsStr::new("link"));
        let_go();
        assert!(nodes.get(id).is_ok());
    }

    #[test]
    fn what_was_taken_back_stays_so_while_it_is_not_held() {
        let folder = tempfile::tempdir().expect("a folder");
        let (nodes, _names) = over(folder.path());
        let names: Vec<String> = (0..40).map(|n| format!("{n}")).collect();
        names.iter().for_each(|name| std::fs::write(folder.path().join(name), b"").expect("a file"));
        let id = look_up(&nodes, "0");
        nodes.get(id).expect("it is there").content_mut().is_tainted = true;
        names[1..].iter().for_each(|name| _ = look_up(&nodes, name));
        assert!(nodes.table().by_id[&id].node.is_none());
        assert!(nodes.get(id).expect("it is there").content().is_tainted);
    }
}
