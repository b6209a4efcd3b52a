//! Landlock: confines the program to the paths that it needs, where the kernel has it.
//!
//! What parses what strangers send is written in a language that knows no stray pointers, and runs beside libraries that
//! are not; so a process that serves, scans, checks or updates gives up what it will not need before it looks at the first
//! byte. `serve` may read its configuration, its certificates, the signatures, what clients of clamd may name, and what
//! looking up names takes (`/etc`); it may write to its quarantines, Maildirs, cache and ACME folder, and make sockets
//! where its sockets are. `scan` and `explain` read what they may, and write nothing but what their options name.
//!
//! What is allowed is what lies below a folder *as it was at the start*; so for a folder of signatures, which may be
//! replaced as a whole, the folder above is allowed, too, unless it is one that everybody shares ([`SHARED`]). A reload that
//! wants more is an error which says so ([`granted`]). Not bounded: connections, and UNIX sockets that others listen on.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use landlock::{ABI, Access, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible, PathBeneath, PathFd};
use landlock::{Ruleset, RulesetAttr, RulesetCreated, RulesetCreatedAttr, RulesetError, RulesetStatus, Scope};

use crate::process::held::Held;

/// The newest version of Landlock whose rules are known here.
const NEWEST: ABI = ABI::V6;

/// Folders that many programs have theirs in: what lies beside ours there is none of our business.
const SHARED: [&str; 16] = [
    "/",
    "/etc",
    "/home",
    "/mnt",
    "/opt",
    "/root",
    "/run",
    "/srv",
    "/tmp",
    "/usr",
    "/usr/share",
    "/var",
    "/var/cache",
    "/var/lib",
    "/var/lib/private",
    "/var/tmp",
];

/// Paths that name resolution and the C library need.
const SYSTEM: [&str; 7] = [
    "/etc",
    "/run/systemd/resolve",
    "/run/resolvconf",
    "/run/NetworkManager",
    "/proc/self",
    "/proc/sys/kernel",
    "/sys/devices/system/cpu",
];

/// Paths needed to run this program again, which compiles signatures.
const LIBRARIES: [&str; 7] =
    ["/proc/self/exe", "/usr/lib", "/usr/lib64", "/usr/local/lib", "/lib", "/lib64", "/nix/store"];

/// Paths that a process needs.
#[derive(Debug, Default, Clone)]
pub struct Reach {
    read: Vec<PathBuf>,
    write: Vec<PathBuf>,
    /// Folders that sockets are made in.
    sockets: Vec<PathBuf>,
    /// Whether files may be taken away wherever they may be read.
    removes: bool,
    /// Whether connections are needed.
    connects: bool,
    /// Whether no program is started.
    runs_nothing: bool,
}

/// How far the kernel goes along.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Confined {
    /// All of it.
    Fully,
    /// Confined as far as an older kernel can.
    Partly,
    /// Nothing: it does not know Landlock, or may not use it.
    Not,
}

impl fmt::Display for Confined {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Confined::Fully => "fully",
            Confined::Partly => "partly",
            Confined::Not => "not",
        })
    }
}

/// Folders of the kernel's that it may make anew when it is short of memory, and what was allowed of the old ones would not
/// hold: they are kept open.
static PINNED: OnceLock<Vec<PathFd>> = OnceLock::new();

/// Paths that this process may reach, if it is confined.
static GRANTED: OnceLock<Reach> = OnceLock::new();

impl Reach {
    /// Everything may be read, and nothing else.
    pub fn reading() -> Reach {
        Reach { read: vec!["/".into()], ..Reach::default() }
    }

    /// Reads what lies at a path, file or folder. A relative one is left as it is: the way to the folder that we are in may be
    /// closed to us.
    pub fn read(&mut self, path: &Path) -> &mut Reach {
        self.read.push(path.into());
        self
    }

    /// Writes below a folder.
    pub fn write(&mut self, folder: &Path) -> &mut Reach {
        self.write.push(folder.into());
        self
    }

    /// Makes a UNIX socket at a path.
    pub fn listen(&mut self, path: &Path) -> &mut Reach {
        self.sockets.extend(path.parent().map(Path::to_path_buf));
        self
    }

    /// Takes files away wherever they may be read.
    pub fn remove(&mut self) -> &mut Reach {
        self.removes = true;
        self
    }

    /// Makes connections.
    pub fn connect(&mut self) -> &mut Reach {
        self.connects = true;
        self
    }

    /// Starts no program, and administers no machine.
    pub fn run_nothing(&mut self) -> &mut Reach {
        self.runs_nothing = true;
        self
    }

    /// Gives up everything else, for this thread and those that it starts. `held` are folders to be written to, whatever
    /// they are called.
    ///
    /// # Errors
    /// When the kernel knows how and does not do it.
    pub fn confine(self, held: &[&Held]) -> Result<Confined, String> {
        let confined = self.restrict(held).map_err(|error| format!("cannot confine the program: {error}"))?;
        if self.runs_nothing {
            // A kernel without seccomp is told of where jails start.
            jail::give_up_administration().map_err(|error| format!("cannot confine the program: {error}"))?;
        }
        if confined != Confined::Not {
            let _ = GRANTED.set(self);
        }
        Ok(confined)
    }

    /// The same, for a process that does to all below `mirrored` what others want done: devices are made there, too.
    ///
    /// # Errors
    /// As [`Reach::confine`].
    pub fn confine_to_mirror(self, mirrored: &Held, held: &[&Held]) -> Result<Confined, String> {
        let confined = self.restrict_to(Some(mirrored), held);
        confined.map_err(|error| format!("cannot confine the program: {error}"))
    }

    fn restrict(&self, held: &[&Held]) -> Result<Confined, RulesetError> {
        self.restrict_to(None, held)
    }

    fn restrict_to(&self, mirrored: Option<&Held>, held: &[&Held]) -> Result<Confined, RulesetError> {
        let ruleset = Ruleset::default().set_compatibility(CompatLevel::BestEffort);
        let ruleset = ruleset.handle_access(AccessFs::from_all(NEWEST))?.scope(Scope::Signal)?;
        let ruleset = match self.connects {
            true => ruleset,
            false => ruleset.handle_access(AccessNet::from_all(NEWEST))?,
        };
        PINNED.get_or_init(|| ["/proc/self", "/proc/sys/kernel"].into_iter().flat_map(PathFd::new).collect());
        let mut rules = ruleset.create()?;
        let look = AccessFs::ReadFile | AccessFs::ReadDir;
        let take = if self.removes { AccessFs::RemoveFile | AccessFs::Refer } else { BitFlags::EMPTY };
        for path in SYSTEM.iter().map(Path::new).chain([Path::new("/dev/urandom")]) {
            rules = allow(rules, path, look)?;
        }
        for path in LIBRARIES {
            let run = if self.runs_nothing { BitFlags::EMPTY } else { AccessFs::Execute.into() };
            rules = allow(rules, Path::new(path), look | run)?;
        }
        rules = allow(rules, Path::new("/dev/null"), look | AccessFs::WriteFile)?;
        for path in self.read.iter().flat_map(|path| around(path)) {
            rules = allow(rules, &path, look | take)?;
        }
        for path in &self.write {
            rules = allow(rules, path, written())?;
        }
        for path in &self.sockets {
            rules = allow(rules, path, look | AccessFs::MakeSock | AccessFs::RemoveFile)?;
        }
        for folder in held {
            rules = rules.add_rule(PathBeneath::new(folder, written()))?;
        }
        if let Some(folder) = mirrored {
            // Each thread has an opening of its own of the device that the kernel asks by.
            rules = allow(rules, Path::new("/dev/fuse"), look | AccessFs::WriteFile | AccessFs::IoctlDev)?;
            let devices = AccessFs::MakeChar | AccessFs::MakeBlock;
            rules = rules.add_rule(PathBeneath::new(folder, written() | devices))?;
        }
        Ok(match rules.restrict_self()?.ruleset {
            RulesetStatus::FullyEnforced => Confined::Fully,
            RulesetStatus::PartiallyEnforced => Confined::Partly,
            RulesetStatus::NotEnforced => Confined::Not,
        })
    }

    /// The first path that is wanted here and not granted.
    fn lacking<'a>(&'a self, granted: &Reach) -> Option<&'a Path> {
        let readable: Vec<PathBuf> = granted.read.iter().flat_map(|path| around(path)).collect();
        let system = SYSTEM.map(PathBuf::from);
        let is_in = |path: &&PathBuf, all: &[&[PathBuf]]| {
            let real = path.canonicalize().unwrap_or_else(|_| absolute(path));
            all.iter().copied().flatten().any(|folder| {
                absolute(path).starts_with(absolute(folder))
                    || real.starts_with(folder.canonicalize().unwrap_or_else(|_| absolute(folder)))
            })
        };
        let mut read = self.read.iter().filter(|path| !is_in(path, &[&readable, &granted.write, &system]));
        let mut write = self.write.iter().filter(|path| !is_in(path, &[&granted.write]));
        let mut sockets = self.sockets.iter().filter(|path| !is_in(path, &[&granted.sockets, &granted.write]));
        read.next().or_else(|| write.next()).or_else(|| sockets.next()).map(PathBuf::as_path)
    }
}

/// Whether a process that is confined may reach all this.
///
/// # Errors
/// When it may not: the message names the first thing.
pub fn granted(wanted: &Reach) -> Result<(), String> {
    match GRANTED.get().and_then(|granted| wanted.lacking(granted)) {
        Some(path) => {
            Err(format!("{}: outside of what the program confined itself to when it started", path.display()))
        }
        None => Ok(()),
    }
}

/// Rights below our own folders: all but to run files and to make devices.
fn written() -> BitFlags<AccessFs> {
    AccessFs::from_all(NEWEST) & !(AccessFs::Execute | AccessFs::MakeChar | AccessFs::MakeBlock | AccessFs::IoctlDev)
}

/// Allows this at a path; what is not there is nothing to be allowed.
fn allow(rules: RulesetCreated, path: &Path, access: BitFlags<AccessFs>) -> Result<RulesetCreated, RulesetError> {
    match PathFd::new(path) {
        Ok(opened) if path.is_dir() => rules.add_rule(PathBeneath::new(opened, access)),
        Ok(opened) => rules.add_rule(PathBeneath::new(opened, access & AccessFs::from_file(NEWEST))),
        Err(_) => Ok(rules),
    }
}

/// A path, what it leads to, and the folders that these are in, so that another may take their place.
fn around(path: &Path) -> Vec<PathBuf> {
    let real = path.canonicalize().ok();
    let both = [Some(path.to_path_buf()), real].into_iter().flatten();
    let mut all: Vec<PathBuf> = both
        .flat_map(|path| {
            let above = path.parent().filter(|above| !SHARED.iter().any(|shared| above == &Path::new(shared)));
            let above = above.map(Path::to_path_buf);
            std::iter::once(path).chain(above)
        })
        .collect();
    all.dedup();
    all
}

fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_path_buf())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_lies_beside_is_allowed_but_not_in_folders_that_everybody_shares() {
        assert_eq!(around(Path::new("/no/such/folder")), [Path::new("/no/such/folder"), Path::new("/no/such")]);
        assert_eq!(around(Path::new("/var/lib/no-such-folder")), [Path::new("/var/lib/no-such-folder")]);
    }

    #[test]
    fn what_a_reload_wants_besides_is_named() {
        let mut granted = Reach::default();
        granted.read(Path::new("/x/sluice/sluice.toml")).write(Path::new("/y/quarantine")).listen(Path::new("/z/s"));
        let mut wanted = granted.clone();
        wanted.read(Path::new("/x/sluice/other.pem")).read(Path::new("/etc/hosts")).write(Path::new("/y/quarantine/a"));
        wanted.read(Path::new("/y/quarantine/b")).listen(Path::new("/z/t"));
        assert_eq!(wanted.lacking(&granted), None);
        for (wanted, lacking) in [
            (Reach::default().read(Path::new("/w/a")), "/w/a"),
            (Reach::default().write(Path::new("/x/sluice")), "/x/sluice"),
            (Reach::default().listen(Path::new("/x/sluice/s")), "/x/sluice"),
        ] {
            assert_eq!(wanted.lacking(&granted), Some(Path::new(lacking)));
        }
    }
}
