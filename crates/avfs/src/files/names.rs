//! Makes, renames, links and removes names. A file with pending changes gets its verdict before it gets another name.

use std::ffi::OsStr;
use std::os::fd::OwnedFd;

use fuser::{FileAttr, INodeNo, RenameFlags};
use rustix::fs::{
    AtFlags, FileType, Gid, Mode, OFlags, Uid, chmodat, chownat, getxattr_query, linkat, renameat_with, unlinkat,
};
use rustix::io::Errno;

use super::attributes::SET_IDS;
use super::{Done, Shared};
use crate::guard::Refusal;
use crate::node::{Node, facts};
use crate::who::Who;

impl Shared {
    /// Something new that is no open file.
    pub fn make(
        &self,
        who: Who,
        parent: INodeNo,
        name: &OsStr,
        mode: Option<(u32, u32)>,
        make: impl FnOnce(&OwnedFd, Mode) -> Done<()>,
    ) -> Done<FileAttr> {
        let parent = self.node(parent)?;
        let mode = mode.map_or(Mode::empty(), |(mode, umask)| self.mode(&parent, mode, umask));
        make(&parent.held, mode)?;
        self.give(&parent, &self.nodes.hold(&parent, name)?, who, mode)?;
        self.enter(&parent, name)
    }

    /// The mode that something new gets.
    pub(super) fn mode(&self, parent: &Node, mode: u32, umask: u32) -> Mode {
        // A default list takes the place of the mask.
        let has_list = getxattr_query(parent.path(), "system.posix_acl_default").is_ok_and(|bytes| bytes > 0);
        Mode::from_raw_mode(if has_list { mode } else { mode & !umask } & 0o7777)
    }

    /// Gives a new file the owner and group of the user who made it.
    pub(super) fn give(&self, parent: &Node, made: &OwnedFd, who: Who, mode: Mode) -> Done<()> {
        let above = facts(&parent.held)?;
        let group =
            if u32::from(above.stx_mode) & Mode::SGID.bits() != 0 { None } else { Some(Gid::from_raw(who.gid)) };
        if who.uid == 0 && group.is_none_or(Gid::is_root) {
            return Ok(());
        }
        chownat(made, "", Some(Uid::from_raw(who.uid)), group, AtFlags::EMPTY_PATH)?;
        let made_facts = facts(made)?;
        let is_folder = FileType::from_raw_mode(made_facts.stx_mode.into()) == FileType::Directory;
        if !is_folder && mode.bits() & SET_IDS != 0 {
            // Another owner takes them away.
            let bits = u32::from(made_facts.stx_mode) & 0o1777 | mode.bits() & SET_IDS;
            chmodat(rustix::fs::CWD, path_of(made), Mode::from_raw_mode(bits), AtFlags::empty())?;
        }
        Ok(())
    }

    /// Before something gets another name, or takes another's place: what waits has its verdict.
    fn pass_on(&self, node: &Node, operation: &str, who: Who) -> Done<()> {
        if node.kind != FileType::RegularFile || !self.guard.inspects() {
            return Ok(());
        }
        if node.content().overlay.is_some() {
            let below = node.open(OFlags::RDWR)?;
            self.guard.settle(node, &below, operation, who).map_err(Refusal::opening)?;
        }
        if node.content().is_tainted { Err(Errno::PERM) } else { Ok(()) }
    }

    /// Gives something another name.
    pub fn rename(&self, who: Who, from: (INodeNo, &OsStr), to: (INodeNo, &OsStr), flags: RenameFlags) -> Done<()> {
        let (parent, new_parent) = (self.node(from.0)?, self.node(to.0)?);
        let node = self.named(&parent, from.1)?;
        if let Some(node) = &node {
            self.pass_on(node, "rename", who)?;
        }
        let other = match self.named(&new_parent, to.1) {
            Err(Errno::NOENT) => None,
            other => other?,
        };
        let is_exchange = flags.contains(RenameFlags::RENAME_EXCHANGE);
        if let Some(other) = other.as_ref().filter(|_| is_exchange) {
            self.pass_on(other, "rename", who)?;
        }
        let flags = rustix::fs::RenameFlags::from_bits_retain(flags.bits());
        self.guard.aside(node.as_deref(), || renameat_with(&parent.held, from.1, &new_parent.held, to.1, flags))?;
        // Two names of one file both stay.
        let is_same = || node.as_ref().zip(other.as_ref()).is_some_and(|(node, other)| node.id == other.id);
        if is_same() {
            return Ok(());
        }
        if let Some(other) = &other {
            match is_exchange {
                true => self.nodes.moved(other.id, parent.id, from.1),
                false => self.nodes.unnamed(other.id, new_parent.id, to.1),
            }
        }
        node.iter().for_each(|node| self.nodes.moved(node.id, new_parent.id, to.1));
        Ok(())
    }

    /// Gives a file one more name.
    pub fn link(&self, who: Who, ino: INodeNo, parent: INodeNo, name: &OsStr) -> Done<FileAttr> {
        let (node, parent) = (self.node(ino)?, self.node(parent)?);
        self.pass_on(&node, "link", who)?;
        self.guard.aside(Some(&node), || linkat(&node.held, "", &parent.held, name, AtFlags::EMPTY_PATH))?;
        self.enter(&parent, name)
    }

    /// Takes a name away.
    pub fn unlink(&self, parent: INodeNo, name: &OsStr, flags: AtFlags) -> Done<()> {
        let parent = self.node(parent)?;
        // Where another name remains, what is known of the file remains, too.
        let node = self.named(&parent, name)?;
        self.guard.aside(node.as_deref(), || unlinkat(&parent.held, name, flags))?;
        node.iter().for_each(|node| self.nodes.unnamed(node.id, parent.id, name));
        Ok(())
    }
}

fn path_of(held: &OwnedFd) -> String {
    format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(held))
}
