//! Users and groups, and becoming another user for good.
//!
//! Whoever is started as root opens what needs root, and then becomes somebody else: all threads, with the groups of that
//! user and no others, and never back. What may be kept is named: the right to listen on ports below 1024, say, so that a
//! reload can open another. Names are looked up where the system looks them up (NSS), so users of LDAP, SSSD and systemd
//! are known, too.
//!
//! A folder of somebody else's is entered as its owner ([`enter`]): nothing that the owner has planted there can lead root
//! astray, because there is no root any more when it is met.

use std::ffi::{CString, OsString};
use std::fs;
use std::io;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt};
use std::path::{Path, PathBuf};

use edge::net::listening::group_number;
use nix::unistd::{self, Gid, Uid, User};
use rustix::process::{DumpableBehavior, Resource, Rlimit, set_dumpable_behavior, setrlimit};
use rustix::thread::{CapabilitySet, CapabilitySets, set_capabilities, set_keep_capabilities, set_no_new_privs};

use crate::process::held::Held;

/// User and group number of "nobody".
pub const NOBODY: u32 = 65534;

/// A user that can be become.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Account {
    /// Its name, or its number where it has none.
    pub name: String,
    uid: Uid,
    gid: Gid,
    groups: Vec<Gid>,
}

/// Whether we may do everything.
pub fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

impl Account {
    /// A user by its name or number, and with this group in place of its own.
    ///
    /// # Errors
    /// When there is no such user, or no such group.
    pub fn named(user: &str, main: Option<&str>) -> Result<Account, String> {
        let found = match user.parse() {
            Ok(number) => User::from_uid(Uid::from_raw(number)),
            Err(_) => User::from_name(user),
        };
        let found = found.map_err(|error| format!("user {user:?}: {error}"))?;
        let Some(found) = found else { return Err(format!("there is no user {user:?}")) };
        let gid = match main {
            Some(name) => Gid::from_raw(group_number(name).map_err(|error| error.to_string())?),
            None => found.gid,
        };
        Ok(Account { groups: groups(&found.name, gid), name: found.name, uid: found.uid, gid })
    }

    /// Account with these numbers, whether or not they have a name.
    pub fn numbered(uid: u32, gid: u32) -> Account {
        let (uid, gid) = (Uid::from_raw(uid), Gid::from_raw(gid));
        match User::from_uid(uid) {
            Ok(Some(user)) => Account { groups: groups(&user.name, gid), name: user.name, uid, gid },
            _ => Account { groups: vec![gid], name: uid.to_string(), uid, gid },
        }
    }

    /// Nobody.
    pub fn nobody() -> Account {
        Account::numbered(NOBODY, NOBODY)
    }

    /// Its number.
    pub fn number(&self) -> u32 {
        self.uid.as_raw()
    }

    /// Whether it is root.
    pub fn is_root(&self) -> bool {
        self.uid.is_root()
    }

    /// Whether it is who we are.
    pub fn is_us(&self) -> bool {
        self.uid == unistd::geteuid()
    }

    /// Whether this is one of its groups.
    pub fn is_in(&self, group: u32) -> bool {
        self.gid.as_raw() == group || self.groups.contains(&Gid::from_raw(group))
    }

    /// Its numbers: the user's and the group's.
    pub fn numbers(&self) -> (u32, u32) {
        (self.uid.as_raw(), self.gid.as_raw())
    }

    /// Becomes it for good, and keeps of root's rights no more than these. To be called by root, while there is one thread.
    ///
    /// # Errors
    /// When the system does not let us; the process should end then.
    pub fn assume(&self, kept: CapabilitySet) -> Result<(), String> {
        let failed = |what: &str, error: io::Error| format!("cannot become {}: {what}: {error}", self.name);
        set_keep_capabilities(!kept.is_empty()).map_err(|error| failed("capabilities", error.into()))?;
        unistd::setgroups(&self.groups).map_err(|error| failed("setgroups", error.into()))?;
        unistd::setresgid(self.gid, self.gid, self.gid).map_err(|error| failed("setgid", error.into()))?;
        unistd::setresuid(self.uid, self.uid, self.uid).map_err(|error| failed("setuid", error.into()))?;
        if !self.is_root() {
            let sets = CapabilitySets { effective: kept, permitted: kept, inheritable: CapabilitySet::empty() };
            set_capabilities(None, sets).map_err(|error| failed("capabilities", error.into()))?;
            if unistd::setuid(Uid::from_raw(0)).is_ok() {
                return Err(format!("became {}, and could become root again", self.name));
            }
        }
        // The kernel has made this what `suid_dumpable` says.
        harden()
    }
}

/// The groups of a user; its own alone if the others cannot be found out.
fn groups(name: &str, gid: Gid) -> Vec<Gid> {
    let known = CString::new(name).ok().and_then(|name| unistd::getgrouplist(&name, gid).ok());
    known.unwrap_or_else(|| vec![gid])
}

/// Leaves no image of the memory, lets nobody trace us but root, and nothing that is started gain rights.
///
/// # Errors
/// When the kernel refuses.
pub fn harden() -> Result<(), String> {
    let failed = |error: rustix::io::Errno| format!("cannot drop privileges: {error}");
    // A service manager may have forbidden the call, having set the limit itself; without the next one nothing is written.
    let _ = setrlimit(Resource::Core, Rlimit { current: Some(0), maximum: Some(0) });
    set_dumpable_behavior(DumpableBehavior::NotDumpable).map_err(failed)?;
    set_no_new_privs(true).map_err(failed)
}

/// Opens a folder, and makes it if it is missing. Root becomes `account` before anything is made or read there, or else
/// the first on the way to the folder who is not root.
///
/// # Errors
/// When it cannot be had.
pub fn enter(path: &Path, account: Option<&Account>) -> Result<Held, String> {
    enter_keeping(path, account, CapabilitySet::empty())
}

/// The same, and reads what root may: for commands that are told by root what to read, and write nothing but what is the
/// owner's. So the way to the folder is open, too.
///
/// # Errors
/// As [`enter`].
pub fn enter_reading(path: &Path) -> Result<Held, String> {
    let had = rustix::thread::capabilities(None).map_or(CapabilitySet::empty(), |had| had.permitted);
    enter_keeping(path, None, CapabilitySet::DAC_READ_SEARCH & had)
}

fn enter_keeping(path: &Path, account: Option<&Account>, kept: CapabilitySet) -> Result<Held, String> {
    let failed = |error: io::Error| format!("{}: {error}", path.display());
    let path = std::path::absolute(path).map_err(failed)?;
    // It is opened first: the way to it may be closed to its owner.
    let mut near = None;
    for above in path.ancestors() {
        match Held::open(above) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            opened => {
                near = Some((above, opened.map_err(failed)?));
                break;
            }
        }
    }
    let (above, mut folder) = near.ok_or_else(|| failed(io::ErrorKind::NotFound.into()))?;
    if is_root()
        && let Some(owner) = account.cloned().or_else(|| owner_on_the_way(&path))
    {
        owner.assume(kept)?;
    }
    for part in path.strip_prefix(above).unwrap_or(Path::new("")).components() {
        folder = folder.make(Path::new(part.as_os_str())).map_err(failed)?;
    }
    Ok(folder)
}

/// A file in a folder that may be somebody else's, or such a folder, for the commands of root: the folder is held open, and root
/// becomes its owner. Links that the owner has planted there are followed with the owner's rights.
#[derive(Debug)]
pub struct Place {
    path: PathBuf,
    folder: Held,
    name: OsString,
    owner: Option<Account>,
}

impl Place {
    /// Holds the folder; root becomes the first on the way to it who is not root.
    ///
    /// # Errors
    /// When the folder cannot be opened, or its owner cannot be become.
    pub fn enter(path: &Path) -> Result<Place, String> {
        let place = Place::find(path)?;
        place.owner.iter().try_for_each(|owner| owner.assume(CapabilitySet::empty()))?;
        Ok(place)
    }

    /// Holds the folder, and leaves root what it is.
    ///
    /// # Errors
    /// When the folder cannot be opened.
    pub fn find(path: &Path) -> Result<Place, String> {
        let failed = |error: io::Error| format!("{}: {error}", path.display());
        let whole = std::path::absolute(path).map_err(failed)?;
        let (above, name) = match (whole.parent(), whole.file_name()) {
            (Some(above), Some(name)) if !whole.is_dir() => (above, name.to_owned()),
            _ => (&*whole, OsString::new()),
        };
        let owner = if is_root() { owner_on_the_way(above) } else { None };
        let folder = Held::open(above).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => format!(
                "{}: there is no such folder yet: sluice serve makes it when it starts, as its user",
                above.display()
            ),
            _ => failed(error),
        })?;
        Ok(Place { folder, path: path.into(), name, owner })
    }

    /// The path as people know it.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether the folder is this user's; one that is root's from the top on may be served by anybody.
    pub fn is_of(&self, user: u32) -> bool {
        self.owner.as_ref().is_none_or(|owner| owner.number() == user)
    }

    /// The way there for as long as this is held: the path, unless that leads through folders closed to us.
    pub fn way(&self) -> PathBuf {
        match self.owner {
            Some(_) => self.folder.way().join(&self.name),
            None => self.path.clone(),
        }
    }

    /// Opens the file for root, which stays root: without following links, and only if it belongs to the owner of the folder.
    ///
    /// # Errors
    /// When it cannot be opened, or belongs to somebody else.
    pub fn open(&self, writes: bool) -> io::Result<fs::File> {
        let Some(owner) = &self.owner else { return fs::OpenOptions::new().read(true).write(writes).open(&self.path) };
        let file = self.folder.volume(&self.name, writes)?;
        let facts = file.metadata()?;
        match facts.file_type().is_block_device() || facts.uid() == owner.number() {
            true => Ok(file),
            false => Err(io::Error::other(format!("does not belong to {}, as its folder does", owner.name))),
        }
    }
}

/// The first who is not root among the owners of a path's folders and links, from the top on: from there on, root would walk
/// where somebody else points.
pub fn owner_on_the_way(path: &Path) -> Option<Account> {
    let from_the_top: Vec<&Path> = path.ancestors().collect();
    let facts = from_the_top.into_iter().rev().flat_map(|part| [fs::symlink_metadata(part), fs::metadata(part)]);
    let foreign = facts.map_while(Result::ok).find(|facts| facts.uid() != 0)?;
    Some(Account::numbered(foreign.uid(), foreign.gid()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_and_groups_are_known_by_name_and_number() {
        let root = Account::named("root", None).expect("there is root");
        assert!(root.is_root() && root.numbers() == (0, 0));
        assert_eq!(Account::named("0", None).expect("there is root"), root);
        assert_eq!(group_number("root").expect("there is a group"), 0);
        assert_eq!(group_number("1234").expect("a number"), 1234);
        assert!(Account::named("no-such-user", None).is_err_and(|error| error.contains("no user")));
        assert!(Account::named("root", Some("no-such-group")).is_err() && group_number("no-such-group").is_err());
        assert_eq!(Account::numbered(3_999_999, 7).groups, [Gid::from_raw(7)]);
    }

    #[test]
    fn the_first_on_the_way_who_is_not_root_counts() {
        if !is_root() {
            return eprintln!("skipped: only root can give folders away");
        }
        let place = tempfile::tempdir().expect("a folder");
        let inner = place.path().join("theirs/ours");
        fs::create_dir_all(&inner).expect("folders");
        assert_eq!(owner_on_the_way(&inner), None);
        std::os::unix::fs::chown(place.path().join("theirs"), Some(1_234), Some(1_235)).expect("given away");
        assert_eq!(owner_on_the_way(&inner).map(|account| account.numbers()), Some((1_234, 1_235)));
        assert_eq!(owner_on_the_way(&inner.join("missing")).map(|account| account.numbers()), Some((1_234, 1_235)));
        let link = place.path().join("link");
        std::os::unix::fs::symlink("/etc", &link).expect("a link");
        assert_eq!(owner_on_the_way(&link), None);
        std::os::unix::fs::lchown(&link, Some(1_236), Some(1_237)).expect("given away");
        assert_eq!(owner_on_the_way(&link).map(|account| account.numbers()), Some((1_236, 1_237)));
    }
}
