//! Numbers in the headers of PE and ELF files, by the names and in the places that the modules `pe` and `elf` of YARA 4.2 give them.
//!
//! After "PE Format", Microsoft, and "Tool Interface Standard: ELF".

/// A number in the headers of a PE file: its place behind `PE\0\0`, that signature included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct OfHeader {
    /// Place and length in a file of 32 bits.
    narrow: (u16, u8),
    /// Place and length in one of 64 bits, if the number stands there.
    wide: Option<(u16, u8)>,
}

/// Place of the data directories in a file of 32 bits, and of 64.
const DIRECTORIES: (usize, usize) = (120, 136);

/// Data directories that have a meaning.
const DIRECTORIES_MAX: u32 = 16;

impl OfHeader {
    const fn both(at: u16, bytes: u8) -> OfHeader {
        OfHeader { narrow: (at, bytes), wide: Some((at, bytes)) }
    }

    /// The number by its name.
    pub(crate) fn named(name: &str) -> Option<OfHeader> {
        let known = |(known, _): &&(&str, OfHeader)| *known == name;
        FIELDS.iter().find(known).map(|(_, field)| *field)
    }

    /// Its value in the headers of a file.
    pub(crate) fn value(self, headers: &[u8], is_wide: bool) -> Option<i64> {
        let (at, bytes) = if is_wide { self.wide? } else { self.narrow };
        number(headers, at.into(), bytes.into())
    }
}

/// Address or size of a data directory.
pub(crate) fn directory(headers: &[u8], is_wide: bool, index: i64, is_size: bool) -> Option<i64> {
    let first = if is_wide { DIRECTORIES.1 } else { DIRECTORIES.0 };
    let count = number(headers, first - 4, 4)?.min(DIRECTORIES_MAX.into());
    let index = usize::try_from(index).ok().filter(|_| index < count)?;
    let at = first + index * 8;
    // A directory that is cut off has no number.
    headers.get(at..at + 8)?;
    number(headers, at + if is_size { 4 } else { 0 }, 4)
}

fn number(headers: &[u8], at: usize, bytes: usize) -> Option<i64> {
    let mut number = [0; 8];
    number.get_mut(..bytes)?.copy_from_slice(headers.get(at..at.checked_add(bytes)?)?);
    Some(i64::from_le_bytes(number))
}

const FIELDS: &[(&str, OfHeader)] = &[
    ("pointer_to_symbol_table", OfHeader::both(12, 4)),
    ("number_of_symbols", OfHeader::both(16, 4)),
    ("size_of_optional_header", OfHeader::both(20, 2)),
    ("opthdr_magic", OfHeader::both(24, 2)),
    ("linker_version.major", OfHeader::both(26, 1)),
    ("linker_version.minor", OfHeader::both(27, 1)),
    ("size_of_code", OfHeader::both(28, 4)),
    ("size_of_initialized_data", OfHeader::both(32, 4)),
    ("size_of_uninitialized_data", OfHeader::both(36, 4)),
    ("entry_point_raw", OfHeader::both(40, 4)),
    ("base_of_code", OfHeader::both(44, 4)),
    ("base_of_data", OfHeader { narrow: (48, 4), wide: None }),
    ("section_alignment", OfHeader::both(56, 4)),
    ("file_alignment", OfHeader::both(60, 4)),
    ("os_version.major", OfHeader::both(64, 2)),
    ("os_version.minor", OfHeader::both(66, 2)),
    ("image_version.major", OfHeader::both(68, 2)),
    ("image_version.minor", OfHeader::both(70, 2)),
    ("subsystem_version.major", OfHeader::both(72, 2)),
    ("subsystem_version.minor", OfHeader::both(74, 2)),
    ("win32_version_value", OfHeader::both(76, 4)),
    ("size_of_image", OfHeader::both(80, 4)),
    ("size_of_headers", OfHeader::both(84, 4)),
    ("dll_characteristics", OfHeader::both(94, 2)),
    ("size_of_stack_reserve", OfHeader { narrow: (96, 4), wide: Some((96, 8)) }),
    ("size_of_stack_commit", OfHeader { narrow: (100, 4), wide: Some((104, 8)) }),
    ("size_of_heap_reserve", OfHeader { narrow: (104, 4), wide: Some((112, 8)) }),
    ("size_of_heap_commit", OfHeader { narrow: (108, 4), wide: Some((120, 8)) }),
    ("loader_flags", OfHeader { narrow: (112, 4), wide: Some((128, 4)) }),
    ("number_of_rva_and_sizes", OfHeader { narrow: (116, 4), wide: Some((132, 4)) }),
];

/// A number in the head of an ELF file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OfElf {
    Type,
    Machine,
    EntryPoint,
    Sections,
    Segments,
    SectionTable,
    SectionEntryBytes,
    SegmentTable,
    SegmentEntryBytes,
}

impl OfElf {
    /// The number by its name.
    pub(crate) fn named(name: &str) -> Option<OfElf> {
        Some(match name {
            "type" => OfElf::Type,
            "machine" => OfElf::Machine,
            "entry_point" => OfElf::EntryPoint,
            "number_of_sections" => OfElf::Sections,
            "number_of_segments" => OfElf::Segments,
            "sh_offset" => OfElf::SectionTable,
            "sh_entry_size" => OfElf::SectionEntryBytes,
            "ph_offset" => OfElf::SegmentTable,
            "ph_entry_size" => OfElf::SegmentEntryBytes,
            _ => return None,
        })
    }
}

/// A number in the entry of a section or a segment of an ELF file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Entry {
    SectionType,
    SectionFlags,
    SectionAddress,
    SectionOffset,
    SectionSize,
    SegmentType,
    SegmentFlags,
    SegmentOffset,
    VirtualAddress,
    PhysicalAddress,
    FileSize,
    MemorySize,
    Alignment,
}

impl Entry {
    /// The number of a section by its name.
    pub(crate) fn of_section(name: &str) -> Option<Entry> {
        Some(match name {
            "type" => Entry::SectionType,
            "flags" => Entry::SectionFlags,
            "address" => Entry::SectionAddress,
            "offset" => Entry::SectionOffset,
            "size" => Entry::SectionSize,
            _ => return None,
        })
    }

    /// The number of a segment by its name.
    pub(crate) fn of_segment(name: &str) -> Option<Entry> {
        Some(match name {
            "type" => Entry::SegmentType,
            "flags" => Entry::SegmentFlags,
            "offset" => Entry::SegmentOffset,
            "virtual_address" => Entry::VirtualAddress,
            "physical_address" => Entry::PhysicalAddress,
            "file_size" => Entry::FileSize,
            "memory_size" => Entry::MemorySize,
            "alignment" => Entry::Alignment,
            _ => return None,
        })
    }

    pub(crate) const fn is_of_segment(self) -> bool {
        !matches!(
            self,
            Entry::SectionType
                | Entry::SectionFlags
                | Entry::SectionAddress
                | Entry::SectionOffset
                | Entry::SectionSize
        )
    }

    /// Its place in the entry, and its length.
    pub(crate) const fn place(self, is_wide: bool) -> (u64, usize) {
        let (narrow, wide) = match self {
            Entry::SectionType => return (4, 4),
            Entry::SegmentType => return (0, 4),
            Entry::SegmentFlags => return if is_wide { (4, 4) } else { (24, 4) },
            Entry::SectionFlags => (8, 8),
            Entry::SectionAddress => (12, 16),
            Entry::SectionOffset => (16, 24),
            Entry::SectionSize => (20, 32),
            Entry::SegmentOffset => (4, 8),
            Entry::VirtualAddress => (8, 16),
            Entry::PhysicalAddress => (12, 24),
            Entry::FileSize => (16, 32),
            Entry::MemorySize => (20, 40),
            Entry::Alignment => (28, 48),
        };
        if is_wide { (wide, 8) } else { (narrow, 4) }
    }
}
