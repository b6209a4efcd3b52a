//! Extended attributes of files and folders; links have none.

use std::ffi::OsStr;

use fuser::INodeNo;
use rustix::fs::{FileType, XattrFlags, getxattr, getxattr_query, listxattr, listxattr_query, removexattr, setxattr};
use rustix::io::Errno;

use super::{Done, Shared};
use crate::node::Node;

impl Shared {
    /// Size of an attribute, and its value unless the room for it is 0.
    pub fn extended(&self, ino: INodeNo, name: &OsStr, size: u32) -> Done<(usize, Vec<u8>)> {
        let node = self.node(ino)?;
        no_link(&node)?;
        if size == 0 {
            return Ok((getxattr_query(node.path(), name)?, Vec::new()));
        }
        let mut value = vec![0; size as usize];
        let count = getxattr(node.path(), name, &mut value[..])?;
        value.truncate(count);
        Ok((count, value))
    }

    /// Size of the names of all attributes, and the names unless the room for them is 0.
    pub fn extended_names(&self, ino: INodeNo, size: u32) -> Done<(usize, Vec<u8>)> {
        let node = self.node(ino)?;
        if node.kind == FileType::Symlink {
            return Ok((0, Vec::new()));
        }
        if size == 0 {
            return Ok((listxattr_query(node.path())?, Vec::new()));
        }
        let mut names = vec![0; size as usize];
        let count = listxattr(node.path(), &mut names[..])?;
        names.truncate(count);
        Ok((count, names))
    }

    /// Sets an attribute.
    pub fn set_extended(&self, ino: INodeNo, name: &OsStr, value: &[u8], flags: i32) -> Done<()> {
        let node = self.node(ino)?;
        let flags = XattrFlags::from_bits_retain(flags.cast_unsigned());
        no_link(&node)?;
        self.guard.aside(Some(&node), || setxattr(node.path(), name, value, flags))
    }

    /// Removes an attribute.
    pub fn remove_extended(&self, ino: INodeNo, name: &OsStr) -> Done<()> {
        let node = self.node(ino)?;
        no_link(&node)?;
        self.guard.aside(Some(&node), || removexattr(node.path(), name))
    }
}

fn no_link(node: &Node) -> Done<()> {
    if node.kind == FileType::Symlink { Err(Errno::OPNOTSUPP) } else { Ok(()) }
}
