//! The entries of a tree of folders, as far as paths want them.
//!
//! Bounds: `directory_entries_max` entries, each with a name.

use stream::Limits;

use crate::frame::name;

/// Files and folders, each by its number.
pub(crate) struct Paths {
    entries: Vec<Entry>,
    entries_max: usize,
    name_bytes_max: usize,
}

struct Entry {
    /// The parent folder; `None` for entries of the root.
    parent: Option<u32>,
    name: Box<str>,
}

impl Paths {
    pub fn new(limits: &Limits) -> Paths {
        let (entries_max, name_bytes_max) = (limits.directory_entries_max as usize, limits.name_bytes_max as usize);
        Paths { entries: Vec::new(), entries_max, name_bytes_max }
    }

    /// Notes an entry; its number, if there is room for it.
    pub fn add(&mut self, parent: Option<u32>, name: &[u8]) -> Option<u32> {
        let number = u32::try_from(self.entries.len()).ok()?;
        let name = name::cut(&name::utf8_lossy(name), self.name_bytes_max);
        (self.entries.len() < self.entries_max).then(|| self.entries.push(Entry { parent, name }))?;
        Some(number)
    }

    /// The path of an entry.
    pub fn of(&self, entry: u32) -> Box<str> {
        const DEPTH_MAX: usize = 64;
        let (mut parts, mut next) = (Vec::new(), Some(entry));
        while let Some(entry) = next.and_then(|number| self.entries.get(number as usize)) {
            if parts.len() == DEPTH_MAX {
                break;
            }
            parts.push(&*entry.name);
            next = entry.parent;
        }
        parts.reverse();
        name::cut(&parts.join("/"), self.name_bytes_max)
    }
}
