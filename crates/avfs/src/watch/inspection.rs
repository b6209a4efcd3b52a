//! The threads that inspect: each takes chores and due files from the table, and answers the questions that waited.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::BorrowedFd;
use std::os::unix::fs::FileExt as _;
use std::sync::{Arc, PoisonError};
use std::thread::JoinHandle;

use nix::sys::fanotify::MaskFlags;

use super::table::{Chore, Due};
use super::{INFECTED_MAX, Watch, path, printable};
use crate::evidence::{self, Found};
use crate::judge::{self, Hit, Judge, Unjudged};
use crate::node::Stamp;
use crate::who::Who;

/// How often a file that changes while it is inspected is inspected.
const TRIES: usize = 3;

/// The threads that inspect.
pub(super) fn inspectors(watch: &Arc<Watch>) -> io::Result<Vec<JoinHandle<()>>> {
    let start = |_| {
        let watch = watch.clone();
        std::thread::Builder::new().name("sluice: inspects".into()).spawn(move || watch.inspect_all())
    };
    (0..watch.options.threads.max(1)).map(start).collect()
}

impl Watch {
    /// Inspects what is due, until the end.
    fn inspect_all(&self) {
        let mut table = self.table();
        loop {
            if table.is_over {
                return;
            }
            let chores = std::mem::take(&mut table.chores);
            let next = table.due.pop_front();
            if chores.is_empty() && next.is_none() {
                table = self.is_due.wait(table).unwrap_or_else(PoisonError::into_inner);
                continue;
            }
            drop(table);
            chores.into_iter().for_each(|chore| self.see_to(chore));
            if let Some(due) = next {
                let is_allowed = self.inspect(&due);
                let waiting = self.table().asked.remove(&due.key).unwrap_or_default();
                waiting.iter().for_each(|question| self.answer(&question.event, is_allowed));
            }
            table = self.table();
        }
    }

    fn see_to(&self, chore: Chore) {
        let allowed = self.options.allows_unjudged;
        match chore {
            Chore::Late(file) => tracing::warn!(file, allowed, "no verdict within the deadline"),
            Chore::Deaf(error) => tracing::error!(error = error.desc(), "events of fanotify cannot be read"),
            Chore::Save => self.save(),
        }
    }

    /// Inspects a file, and says whether it may be opened.
    fn inspect(&self, due: &Due) -> bool {
        let Due { key: (inode, _, generation), event, who, current } = due;
        let Some(file) = event.fd() else { return true };
        match inspected(&*current.judge, file) {
            Ok((stamp, None)) => {
                self.verdicts.add(*inode, &stamp, *generation);
                true
            }
            Ok((stamp, Some(hit))) => {
                self.report(file, &hit, event.mask(), *who);
                let mut table = self.table();
                if table.infected.len() >= INFECTED_MAX {
                    table.infected.clear();
                }
                table.infected.insert((*inode, stamp, *generation), hit);
                false
            }
            Err(why) => {
                let allowed = self.options.allows_unjudged;
                tracing::warn!(file = printable(&path(file)), %why, allowed, "no verdict");
                allowed
            }
        }
    }

    fn report(&self, file: BorrowedFd<'_>, hit: &Hit, mask: MaskFlags, who: Who) {
        let operation = if mask.contains(MaskFlags::FAN_CLOSE_WRITE) { "close" } else { "open" };
        let (name, process) = (printable(&path(file)), who.process());
        let found = Found { hit, file: &name, operation, who, process: &process };
        let content = file.try_clone_to_owned().map(File::from).ok();
        let content = content.as_ref().map(|file| Content { file, at: 0 });
        evidence::report(self.evidence.as_ref(), &found, content, None::<io::Empty>);
    }
}

/// The verdict about a file, and what it was like.
fn inspected(judge: &dyn Judge, file: BorrowedFd<'_>) -> Result<(Stamp, Option<Hit>), Unjudged> {
    let failed = |error: &dyn std::fmt::Display| Unjudged(error.to_string());
    let open = File::from(file.try_clone_to_owned().map_err(|error| failed(&error))?);
    for _ in 0..TRIES {
        let stamp = Stamp::of_file(&open).map_err(|error| failed(&error))?;
        stamp.outlast();
        let outcome = judge::whole(judge, Content { file: &open, at: 0 });
        let hit = outcome.map_err(|error| failed(&error))??;
        if Stamp::of_file(&open).map_err(|error| failed(&error))? == stamp {
            return Ok((stamp, hit));
        }
    }
    Err(Unjudged("it changes all the time".into()))
}

/// Content of a file, from its beginning, wherever its descriptor stands.
struct Content<'a> {
    file: &'a File,
    at: u64,
}

impl Read for Content<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.file.read_at(buffer, self.at)?;
        self.at += count as u64;
        Ok(count)
    }
}
