//! The table of a watch: questions that wait, files that are due, hits, and chores.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Instant;

use nix::errno::Errno;
use nix::sys::fanotify::FanotifyEvent;

use crate::judge::{Current, Generation, Hit};
use crate::node::{Inode, Stamp};
use crate::who::Who;

/// Key of a question about a file in its current state: its identity and its stamp, and by which signatures.
pub(super) type Key = (Inode, Stamp, Generation);

/// Questions and inspections that wait.
#[derive(Default)]
pub(super) struct Table {
    /// Files in inspection or due, with the questions that wait for them.
    pub(super) asked: HashMap<Key, Vec<Question>>,
    /// Files that are due.
    pub(super) due: VecDeque<Due>,
    pub(super) infected: HashMap<Key, Hit>,
    pub(super) chores: Vec<Chore>,
    pub(super) is_over: bool,
}

/// Chores that the thread that asks the kernel leaves to threads that may wait, for the disk or for the reader of the
/// log.
pub(super) enum Chore {
    /// Somebody was not answered in time about this file.
    Late(String),
    /// The kernel's questions could not be read.
    Deaf(Errno),
    /// The table of clean files is to be saved.
    Save,
}

/// A file that will be inspected, who opened or closed it, and who inspects it.
pub(super) struct Due {
    pub(super) key: Key,
    pub(super) event: Arc<FanotifyEvent>,
    pub(super) who: Who,
    pub(super) current: Arc<Current>,
}

/// A process that waits.
pub(super) struct Question {
    pub(super) event: Arc<FanotifyEvent>,
    pub(super) since: Instant,
}
