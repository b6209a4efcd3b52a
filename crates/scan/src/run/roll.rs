//! The members of a container, compared with the signatures by what it says of them while they are told.
//!
//! Bounds: members that wait for a size, theirs or the container's, are at most [`WAITING_MAX`] of a container with the
//! signatures that they wait for; beyond that a [`Roll`] tells a limit.

use std::borrow::Cow;
use std::sync::Arc;

use stream::{Class, FileType, Finding, Kind, Object};

use crate::table::database::{Database, Name};
use crate::table::metadata::{Known, Metadata, within};

/// The most signatures that wait for a size in one container, for all its members together.
const WAITING_MAX: usize = 4096;

/// The members of one container, compared with the signatures while they are told.
///
/// [`open`](Roll::open) for each member when it begins, [`close`](Roll::close) for those that were given a ticket when
/// their content has passed, and [`finish`](Roll::finish) when the container has. What they tell are findings of the
/// container, each name once.
#[derive(Debug)]
pub struct Roll {
    database: Arc<Database>,
    container: FileType,
    /// How many members and parts there were; the last is the ticket of the newest.
    opened: u64,
    /// How many members and folders there were.
    members: u64,
    /// The archive within the container that the last member was in, and how many members were told before it.
    archive: Option<(FileType, u64)>,
    members_before: u64,
    waiting: Vec<Waiting>,
    told: Vec<u32>,
    lost: bool,
}

/// A signature that means a member if a size fits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Waiting {
    /// The ticket of the member whose size is waited for; 0 waits for the container's alone.
    ticket: u64,
    signature: u32,
    packed_too: bool,
    /// Where the container begins in the object.
    from: u64,
}

impl Roll {
    /// For an object of that type, if there are signatures by what containers say. It may be one, or have one in it.
    pub fn new(database: Arc<Database>, container: FileType) -> Option<Roll> {
        let is_meant = database.metadata().next().is_some();
        is_meant.then(|| Roll {
            database,
            container,
            opened: 0,
            members: 0,
            archive: None,
            members_before: 0,
            waiting: Vec::new(),
            told: Vec::new(),
            lost: false,
        })
    }

    /// A member begins, and its reader stands `at` that byte of the container. A ticket is told if its size is waited for.
    pub fn open(&mut self, object: &Object, at: u64, tell: &mut dyn FnMut(Finding)) -> Option<u64> {
        let (mut container, mut from) = (self.container, 0);
        let known = match (object.kind, object.entry.as_deref()) {
            (Kind::Part, _) if self.container == FileType::Mail => Known { is_part: true, ..Known::default() },
            (Kind::Member, Some(entry)) => {
                let stream::Entry { packed, size, encrypted, crc32, record_bytes, empty_before, archive } = *entry;
                self.begin_archive(archive);
                self.members = self.members.saturating_add(u64::from(empty_before) + 1);
                let mut position = self.members.saturating_sub(self.members_before);
                if let Some(archive) = archive {
                    (container, from) = archive;
                }
                // Only members of ZIP archives are found one by one.
                if archive.is_none() && record_bytes > 0 && self.container != FileType::Zip {
                    (container, position, from) = (FileType::Zip, 0, at.saturating_sub(record_bytes.into()));
                }
                Known { is_part: false, packed, size, encrypted, position, crc32 }
            }
            _ => return None,
        };
        self.opened += 1;
        let ticket = self.opened;
        let mut waits = false;
        let database = self.database.clone();
        for ((_, metadata), signature) in database.metadata().zip(0u32..) {
            let speaks = metadata.container.is_none_or(|wanted| wanted == container);
            if !speaks || self.told.contains(&signature) || !metadata.may_mean(object, &known) {
                continue;
            }
            let awaits_size = metadata.awaits_size(&known);
            waits |= awaits_size;
            match (awaits_size, metadata.is_late()) {
                (true, _) => self.wait(Waiting { ticket, signature, packed_too: known.is_part, from }),
                (false, true) => self.wait(Waiting { ticket: 0, signature, packed_too: false, from }),
                (false, false) => self.tell(signature, tell),
            }
        }
        waits.then_some(ticket)
    }

    /// The next member is in this archive, in which it has a position of its own.
    fn begin_archive(&mut self, archive: Option<(FileType, u64)>) {
        if self.archive != archive {
            (self.archive, self.members_before) = (archive, self.members);
        }
    }

    /// The content of the member with that ticket has passed, and was of so many bytes.
    pub fn close(&mut self, ticket: u64, size: u64, tell: &mut dyn FnMut(Finding)) {
        let (done, waiting) = std::mem::take(&mut self.waiting).into_iter().partition(|one| one.ticket == ticket);
        self.waiting = waiting;
        let database = self.database.clone();
        let done: Vec<Waiting> = done;
        for Waiting { signature, packed_too, from, .. } in done {
            let Some((_, metadata)) = database.metadata().nth(signature as usize) else { continue };
            if !metadata.means(size, packed_too) {
                continue;
            }
            match metadata.is_late() {
                true => self.wait(Waiting { ticket: 0, signature, packed_too: false, from }),
                false => self.tell(signature, tell),
            }
        }
    }

    /// The container has passed, and was of so many bytes.
    pub fn finish(mut self, size: u64, tell: &mut dyn FnMut(Finding)) {
        let database = self.database.clone();
        for Waiting { signature, from, .. } in std::mem::take(&mut self.waiting).iter().filter(|one| one.ticket == 0) {
            let metadata = database.metadata().nth(*signature as usize);
            let size = size.saturating_sub(*from);
            if metadata.is_some_and(|(_, metadata)| within(metadata.container_size, Some(size))) {
                self.tell(*signature, tell);
            }
        }
        if self.lost {
            tell(Finding::new(Class::Limit, "Heuristics.Limits.Exceeded.Members", 0));
        }
    }

    fn wait(&mut self, one: Waiting) {
        let known = self.waiting.contains(&one);
        if self.waiting.len() < WAITING_MAX && !known {
            self.waiting.push(one);
        } else {
            self.lost |= !known;
        }
    }

    fn tell(&mut self, signature: u32, tell: &mut dyn FnMut(Finding)) {
        if self.told.contains(&signature) {
            return;
        }
        self.told.push(signature);
        let name = self.database.metadata().nth(signature as usize).and_then(|(name, _)| self.database.name(name));
        if let Some(name) = name {
            tell(Finding { class: Class::Match, name: Cow::Owned(name), offset: 0 });
        }
    }
}

impl Database {
    /// The signatures of all layers, each with its name.
    fn metadata(&self) -> impl Iterator<Item = (Name, &Metadata)> {
        self.layers().enumerate().flat_map(|(layer, database)| {
            database.metadata.iter().map(move |metadata| (Name { layer, number: metadata.name }, metadata))
        })
    }
}
