//! Mounting, serving and unmounting.

use std::ffi::OsStr;
use std::io;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc;
use std::thread::JoinHandle;
use std::time::Duration;

use fuser::{Config, INodeNo, Notifier, Session, SessionACL};
use rustix::fs::{CWD, Mode, OFlags, StatVfsMountFlags, fstat, fstatvfs, open, openat};
use rustix::io::Errno;
use rustix::mount::{
    FsMountFlags, FsOpenFlags, MountAttrFlags, MountFlags, MoveMountFlags, OpenTreeFlags, UnmountFlags,
    fsconfig_create, fsconfig_set_flag, fsconfig_set_string, fsmount, fsopen, move_mount, open_tree, unmount,
};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit, umask};

use crate::files::Shared;
use crate::guard::{Guard, Settings};
use crate::host::Host;
use crate::judge::Judge;
use crate::nodes::{Bounds, Nodes, Unused};
use crate::overlay::Staging;
use crate::reading::Pages;
use crate::rescan::{Rescan, Rescanning};

/// Type in the kernel's table of mounts.
const KIND: &str = "fuse.sluice";

/// Threads that answer the kernel. They wait for nothing but the folder below.
const ANSWERING: usize = 8;

/// Code of the notification that prunes cached entries of the kernel.
const NOTIFY_PRUNE: i32 = 9;

/// Bytes that the kernel reads ahead in one request; its own default is 128 KiB.
const READ_AHEAD_KIB: &str = "1024";

const PANICKED: &str = "the file system's thread panicked";

/// Stale mounts that may lie over each other at one place.
const STALE_MAX: usize = 16;

/// How often what is known to be clean is written down.
const SAVED_EVERY: Duration = Duration::from_secs(30);

/// Options of a mount.
pub struct Options {
    /// The folder below, as [`bare`] opens it: what `confine` allows has to be this one.
    pub source: OwnedFd,
    /// Where it is mounted; that may be the same folder.
    pub point: PathBuf,
    /// Threads that wait for inspections; others answer the kernel.
    pub threads: usize,
    /// Descriptors kept for files without an opening; `None`: as many as the limit of open files allows.
    pub held_max: Option<usize>,
    /// Files and folders that the kernel may remember, roughly; nothing: 40,000.
    pub known_max: Option<usize>,
    /// Settings of the guard.
    pub settings: Settings,
    /// Files that [`Mounted::rescan`] inspects.
    pub rescan: Rescan,
}

/// A folder that is mounted. It stays so until [`Mounted::end`], or somebody unmounts it, or the process ends: then whoever
/// uses it gets errors.
pub struct Mounted {
    point: PathBuf,
    shared: Arc<Shared>,
    server: JoinHandle<io::Result<()>>,
    ended: Option<mpsc::Receiver<()>>,
    aside: mpsc::Sender<Box<dyn Judge>>,
}

/// Waits for the end of a mount.
pub struct End(Option<mpsc::Receiver<()>>);

impl End {
    /// Until nobody serves it any more.
    pub fn wait(self) {
        let _ = self.0.map(|ended| ended.recv());
    }
}

/// Mounts a folder. `confine` is called in the thread that serves it, before that has other threads: what they give up, this
/// one keeps, since it has to unmount.
///
/// # Errors
/// When it cannot be mounted: there has to be `/dev/fuse`, and the right to mount.
pub fn mount(options: Options, confine: impl FnOnce() -> Result<(), String> + Send + 'static) -> io::Result<Mounted> {
    let Options { source: root, point, threads, held_max, known_max, settings, rescan } = options;
    raise_limit();
    let point = point.canonicalize()?;
    // Below a mount that is replaced, paths begin elsewhere.
    let source = std::fs::read_link(format!("/proc/self/fd/{}", root.as_raw_fd()))?;
    let staging = openat(&root, ".", OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
    let (mode, mount_flags) = (fstat(&root)?.st_mode, inherited(&root)?);
    let by_limit = Bounds::of_limit(getrlimit(Resource::Nofile).current);
    let bounds =
        Bounds { held: held_max.unwrap_or(by_limit.held), known: known_max.unwrap_or(by_limit.known), ..by_limit };
    let walked = openat(&root, ".", OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
    let (guard, stale) = Guard::new(settings, Staging::new(staging, bounds.shadows), &source)?;
    let (nodes, unused) = Nodes::new(root, bounds)?;
    let shared = Arc::new(Shared::new(nodes, guard));
    // What callers ask for is masked already.
    umask(Mode::empty());
    let device = attach(&point, mode, mount_flags)?;
    let (ready, is_ready) = mpsc::channel();
    let (over, ended) = mpsc::channel();
    let (judges, asked) = mpsc::channel();
    let rescanning = Rescanning::new(shared.clone(), walked, rescan)?;
    let background = Background { rescanning, judges: asked };
    let served = shared.clone();
    let server = std::thread::Builder::new().name("sluice: mount".into()).spawn(move || {
        let outcome = serve(&served, device, threads, Told { stale, unused }, background, confine, &ready);
        served.guard.front.end();
        served.guard.save();
        drop(over);
        outcome
    })?;
    if is_ready.recv().is_err() {
        let _ = unmount(&point, UnmountFlags::DETACH);
        let outcome = server.join().unwrap_or_else(|_| Err(io::Error::other(PANICKED)));
        return Err(outcome.err().unwrap_or_else(|| io::Error::other("unmounted at once")));
    }
    if let Err(error) = read_ahead(&point) {
        tracing::debug!(%error, "read-ahead of the kernel cannot be limited");
    }
    Ok(Mounted { point, shared, server, ended: Some(ended), aside: judges })
}

/// Has the kernel read ahead as much as is read in one request.
fn read_ahead(point: &Path) -> io::Result<()> {
    let device = std::fs::metadata(point)?.dev();
    let (major, minor) = (rustix::fs::major(device), rustix::fs::minor(device));
    std::fs::write(format!("/sys/class/bdi/{major}:{minor}/read_ahead_kb"), READ_AHEAD_KIB)
}

/// Requests to the kernel.
struct Told {
    /// Files whose pages it has to drop.
    stale: mpsc::Receiver<u64>,
    /// Nodes that it has to forget.
    unused: mpsc::Receiver<Unused>,
}

/// Inspection in the background, with its judges.
struct Background {
    rescanning: Rescanning,
    judges: mpsc::Receiver<Box<dyn Judge>>,
}

fn serve(
    shared: &Arc<Shared>,
    device: OwnedFd,
    threads: usize,
    told: Told,
    background: Background,
    confine: impl FnOnce() -> Result<(), String>,
    ready: &mpsc::Sender<()>,
) -> io::Result<()> {
    confine().map_err(io::Error::other)?;
    let mut config = Config::default();
    config.acl = SessionACL::All;
    config.n_threads = Some(ANSWERING);
    config.clone_fd = true;
    let spoken = device.try_clone()?;
    let session = Session::from_fd(Host::new(shared.clone(), threads), device, SessionACL::All, config)?;
    let notifier = session.notifier();
    shared.guard.give_pages(Box::new(Kernel(notifier.clone())));
    let (keeper, Told { stale, unused }) = (shared.clone(), told);
    let forgetting = Forgetting { device: spoken, notifier: notifier.clone(), can_prune: true };
    std::thread::Builder::new().name("sluice: notes".into()).spawn(move || keep(&keeper, &notifier, &stale))?;
    // Apart, since the kernel has it wait for whoever works in the folder.
    std::thread::Builder::new().name("sluice: names".into()).spawn(move || forgetting.run(&unused))?;
    let Background { rescanning, judges } = background;
    std::thread::Builder::new().name("sluice: rescan".into()).spawn(move || rescanning.run(&judges))?;
    let _ = ready.send(());
    session.run()
}

/// The pages that the kernel has.
struct Kernel(Notifier);

impl Pages for Kernel {
    fn forget(&self, id: u64) -> io::Result<()> {
        self.0.inval_inode(INodeNo(id), 0, 0)
    }

    fn give(&self, id: u64, offset: u64, bytes: &[u8]) -> io::Result<()> {
        if bytes.is_empty() { Ok(()) } else { self.0.store(INodeNo(id), offset, bytes) }
    }
}

/// Has the kernel drop what was taken back, and writes down what is clean now and then. It ends with the process: the sender
/// lives as long as the guard.
fn keep(shared: &Shared, notifier: &Notifier, stale: &mpsc::Receiver<u64>) {
    loop {
        match stale.recv_timeout(SAVED_EVERY) {
            Ok(id) => {
                let _ = notifier.inval_inode(INodeNo(id), 0, 0);
            }
            Err(mpsc::RecvTimeoutError::Timeout) => shared.guard.save(),
            Err(mpsc::RecvTimeoutError::Disconnected) => return,
        }
    }
}

/// Has the kernel forget what it does not use.
struct Forgetting {
    device: OwnedFd,
    notifier: Notifier,
    /// Whether it can be asked so (Linux 6.18).
    can_prune: bool,
}

impl Forgetting {
    /// As long as there is the table.
    fn run(mut self, unused: &mpsc::Receiver<Unused>) {
        for Unused { id, parent, name, is_folder } in unused {
            self.can_prune = self.can_prune && !matches!(self.prune(id), Err(Errno::INVAL));
            if !self.can_prune && !is_folder && !name.is_empty() {
                let _ = self.notifier.inval_entry(INodeNo(parent), OsStr::from_bytes(&name));
            }
        }
    }

    /// `FUSE_NOTIFY_PRUNE` for one: a `fuse_out_header` and a `fuse_notify_prune_out`, as `linux/fuse.h` has them.
    fn prune(&self, id: u64) -> rustix::io::Result<()> {
        let mut message = [0; 40];
        message[..4].copy_from_slice(&40_u32.to_ne_bytes());
        message[4..8].copy_from_slice(&NOTIFY_PRUNE.to_ne_bytes());
        message[16..20].copy_from_slice(&1_u32.to_ne_bytes());
        message[32..].copy_from_slice(&id.to_ne_bytes());
        rustix::io::write(&self.device, &message).map(drop)
    }
}

impl Mounted {
    /// The handle by which one caller waits for the end of the mount; it is handed out once.
    pub fn to_wait(&mut self) -> End {
        End(self.ended.take())
    }

    /// Has others inspect from here on, by other signatures: what was known before is known no longer.
    pub fn renew(&self, judge: Box<dyn Judge>) {
        self.shared.guard.renew(judge);
    }

    /// Goes through the folder in the background, and has these inspect what is not known by the signatures of now. They are the
    /// same signatures, in another process than those that somebody waits for.
    pub fn rescan(&self, judge: Box<dyn Judge>) {
        let _ = self.aside.send(judge);
    }

    /// How many files and folders the kernel remembers.
    pub fn known(&self) -> usize {
        self.shared.nodes.known()
    }

    /// Unmounts it. Where somebody still uses it, it disappears from the tree, and what they have open fails from then on.
    ///
    /// # Errors
    /// When it cannot be unmounted, or its service has failed.
    pub fn end(self) -> io::Result<()> {
        let Mounted { point, shared, server, ended: _ended, aside: _aside } = self;
        shared.guard.front.end();
        // Somebody else may have unmounted it, and what is there now is theirs.
        for _ in 0..5 {
            if server.is_finished() {
                return server.join().unwrap_or_else(|_| Err(io::Error::other(PANICKED)));
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        let is_busy = match unmount(&point, UnmountFlags::empty()) {
            Err(Errno::BUSY) => {
                unmount(&point, UnmountFlags::DETACH)?;
                true
            }
            // It is already.
            Ok(()) | Err(Errno::INVAL) => false,
            Err(error) => return Err(error.into()),
        };
        shared.settle();
        if is_busy && !server.is_finished() {
            // What others have open fails when the process ends.
            shared.guard.save();
            return Ok(());
        }
        server.join().unwrap_or_else(|_| Err(io::Error::other(PANICKED)))
    }
}

/// Takes away what a process of before has left at this place when it was killed.
///
/// # Errors
/// When that cannot be taken away.
fn clear_stale(point: &Path) -> io::Result<()> {
    for _ in 0..STALE_MAX {
        // The attributes of before are remembered for a while, also without the process: this asks it.
        let answers = rustix::fs::statvfs(point).map_err(io::Error::from);
        match answers.and_then(|_| std::fs::metadata(point)) {
            Err(error) if error.raw_os_error() == Some(Errno::NOTCONN.raw_os_error()) => {
                tracing::warn!(point = %point.display(), "a mount without a process is replaced");
                unmount(point, UnmountFlags::DETACH)?;
            }
            Err(error) => return Err(io::Error::new(error.kind(), format!("{}: {error}", point.display()))),
            Ok(facts) if !facts.is_dir() => return Err(io::ErrorKind::NotADirectory.into()),
            Ok(_) => return Ok(()),
        }
    }
    Err(io::Error::other(format!("{}: too many stale mounts", point.display())))
}

/// Flags of the mount of the folder below, which are those of this one, too.
fn inherited(root: &OwnedFd) -> io::Result<MountFlags> {
    let below = fstatvfs(root)?.f_flag;
    let pairs = [
        (StatVfsMountFlags::NOSUID, MountFlags::NOSUID),
        (StatVfsMountFlags::NODEV, MountFlags::NODEV),
        (StatVfsMountFlags::NOEXEC, MountFlags::NOEXEC),
        (StatVfsMountFlags::RDONLY, MountFlags::RDONLY),
    ];
    let flags = pairs.into_iter().filter(|pair| below.contains(pair.0)).map(|pair| pair.1);
    Ok(flags.fold(MountFlags::NOATIME, |all, flag| all | flag))
}

/// Mounts it. A mount that a process of before has left keeps everybody out until this one is in its place, where the kernel
/// can do that.
fn attach(point: &Path, mode: u32, flags: MountFlags) -> io::Result<OwnedFd> {
    let device = open("/dev/fuse", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())
        .map_err(|error| io::Error::other(format!("/dev/fuse: {error}")))?;
    let (uid, gid) = (rustix::process::getuid().as_raw(), rustix::process::getgid().as_raw());
    let words = [
        ("fd", device.as_raw_fd().to_string()),
        ("rootmode", format!("{mode:o}")),
        ("user_id", uid.to_string()),
        ("group_id", gid.to_string()),
    ];
    if is_stale(point) {
        match attach_beneath(point, &words, flags) {
            Ok(()) => {
                tracing::warn!(point = %point.display(), "a mount without a process is replaced");
                return Ok(device);
            }
            Err(error) => tracing::debug!(%error, "the mount point is free for a moment"),
        }
    }
    clear_stale(point)?;
    let words: String = words.iter().map(|(name, value)| format!("{name}={value},")).collect();
    let data = std::ffi::CString::new(words + "default_permissions,allow_other")?;
    rustix::mount::mount("sluice", point, KIND, flags, &*data)
        .map_err(|error| io::Error::other(format!("cannot mount at {}: {error}", point.display())))?;
    Ok(device)
}

/// Mounts it below the mount that is there, and takes that away (Linux 6.5).
fn attach_beneath(point: &Path, words: &[(&str, String)], flags: MountFlags) -> rustix::io::Result<()> {
    /// `MOVE_MOUNT_BENEATH` of `linux/mount.h`.
    const BENEATH: MoveMountFlags = MoveMountFlags::from_bits_retain(0x200);
    let context = fsopen("fuse", FsOpenFlags::FSOPEN_CLOEXEC)?;
    for (name, value) in words {
        fsconfig_set_string(&context, *name, value)?;
    }
    for (name, value) in [("source", "sluice"), ("subtype", "sluice")] {
        fsconfig_set_string(&context, name, value)?;
    }
    for name in ["default_permissions", "allow_other"] {
        fsconfig_set_flag(&context, name)?;
    }
    fsconfig_create(&context)?;
    let pairs = [
        (MountFlags::NOSUID, MountAttrFlags::MOUNT_ATTR_NOSUID),
        (MountFlags::NODEV, MountAttrFlags::MOUNT_ATTR_NODEV),
        (MountFlags::NOEXEC, MountAttrFlags::MOUNT_ATTR_NOEXEC),
        (MountFlags::RDONLY, MountAttrFlags::MOUNT_ATTR_RDONLY),
        (MountFlags::NOATIME, MountAttrFlags::MOUNT_ATTR_NOATIME),
    ];
    let attributes = pairs.into_iter().filter(|pair| flags.contains(pair.0)).map(|pair| pair.1);
    let mount = fsmount(&context, FsMountFlags::FSMOUNT_CLOEXEC, attributes.collect())?;
    move_mount(&mount, "", CWD, point, MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH | BENEATH)?;
    unmount(point, UnmountFlags::DETACH)
}

/// Whether what is mounted there has no process any more.
fn is_stale(point: &Path) -> bool {
    // The attributes of before are remembered for a while, also without the process: this asks it. A question that the process has left
    // unanswered was aborted.
    let gone = [Errno::NOTCONN, Errno::CONNABORTED];
    rustix::fs::statvfs(point).is_err_and(|error| gone.contains(&error))
}

/// The folder at a path; or if what is mounted there has no process any more, the folder below that. Where the kernel does not
/// open that, such a mount is taken away.
///
/// # Errors
/// When there is none, or it cannot be reached.
pub fn bare(path: &Path) -> io::Result<OwnedFd> {
    let folder = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let path = path.canonicalize()?;
    if !is_stale(&path) {
        let opened = open(&path, folder, Mode::empty())?;
        // Its process may have ended meanwhile.
        if !is_stale(&path) {
            return Ok(opened);
        }
    }
    let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
        return Ok(open(&path, folder, Mode::empty())?);
    };
    // What is above, without what is mounted in it.
    let above = open_tree(CWD, parent, OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC);
    if let Ok(below) = above.and_then(|above| openat(&above, name, folder | OFlags::NOFOLLOW, Mode::empty())) {
        return Ok(below);
    }
    clear_stale(&path)?;
    Ok(open(&path, folder, Mode::empty())?)
}

/// As many open files as the system lets us have.
pub fn raise_limit() {
    let limit = getrlimit(Resource::Nofile);
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum });
}
