//! The names of what a PE file exports.

use crate::layout::Layout;
use crate::layout::passing::Passing;

/// The most names that are read.
const NAMES_MAX: u32 = 16_384;
/// The longest name.
const NAME_BYTES_MAX: usize = 512;

/// A copy of the section with the table of exports.
#[derive(Debug, Clone)]
pub(crate) struct Exports {
    table: u32,
    section: Passing,
}

/// Exports of a file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Exported {
    /// How many functions, those without a name too.
    pub(crate) count: u32,
    /// Names, as they stand there.
    pub(crate) names: Vec<Box<[u8]>>,
}

impl Exports {
    /// Starts to copy, if the head tells of exports.
    pub(crate) fn new(layout: &Layout) -> Option<Exports> {
        let table = layout.pe.as_ref()?.exports?;
        Some(Exports { table, section: Passing::of(layout, table)? })
    }

    /// Takes in bytes that stand at `offset` of the file.
    pub(crate) fn pass(&mut self, offset: u64, bytes: &[u8]) {
        self.section.pass(offset, bytes);
    }

    /// Reads the exports.
    ///
    /// # Errors
    /// If that cannot be read; with whether that may be because of a bound.
    pub(crate) fn read(&self) -> Result<Exported, bool> {
        self.table().ok_or(self.section.is_cut())
    }

    fn table(&self) -> Option<Exported> {
        let field = |at: u32| self.section.u32(self.table.checked_add(at)?);
        let (count, named, names) = (field(20)?, field(24)?, field(32)?);
        let mut all = Exported { count, names: Vec::new() };
        for index in 0..named.min(NAMES_MAX) {
            let place = names.checked_add(index * 4)?;
            let name = self.section.text(self.section.u32(place)?, NAME_BYTES_MAX)?;
            all.names.push(name.into());
        }
        Some(all)
    }
}
