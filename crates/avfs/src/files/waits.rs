//! Predicts, without waiting, whether an operation may have to wait for an inspection.

use std::ffi::OsStr;
use std::sync::Arc;

use fuser::{FileHandle, INodeNo};
use rustix::fs::FileType;

use super::{Access, Shared};
use crate::node::Node;

impl Shared {
    /// Whether an operation may have to wait: changes of the file wait for a verdict, or it is inspected.
    pub fn waits_for(&self, node: &Node) -> bool {
        let waits = || node.content_now().is_none_or(|content| content.overlay.is_some());
        self.guard.inspects() && node.kind == FileType::RegularFile && waits()
    }

    /// [`waits_for`](Shared::waits_for) of an open file.
    pub fn waits_for_open(&self, number: FileHandle) -> bool {
        self.handle(number).is_ok_and(|handle| self.waits_for(&handle.node))
    }

    /// [`waits_for`](Shared::waits_for) of the file with a name.
    pub fn waits_for_name(&self, parent: INodeNo, name: &OsStr) -> bool {
        let named = || self.named(&*self.node(parent)?, name);
        self.guard.inspects() && named().ok().flatten().is_some_and(|node| self.waits_for(&node))
    }

    /// Whether opening a file may have to wait.
    pub fn waits_to_open(&self, ino: INodeNo, flags: i32) -> bool {
        let access = Access::of(flags);
        let is_ready = |node: Arc<Node>| match access.reads && !access.truncates {
            true => self.guard.is_ready(&node),
            false => !self.waits_for(&node),
        };
        self.guard.inspects() && !self.node(ino).is_ok_and(is_ready)
    }

    /// Whether reading may have to wait.
    pub fn waits_to_read(&self, number: FileHandle) -> bool {
        self.handle(number).is_ok_and(|handle| !self.guard.reads_at_once(handle.open()))
    }

    /// Whether writing may have to wait.
    pub fn waits_to_write(&self, number: FileHandle) -> bool {
        self.handle(number).is_ok_and(|handle| !self.guard.writes_at_once(&handle.node))
    }
}
