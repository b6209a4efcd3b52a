//! The version information of a PE file: the texts in its resources that tell its maker, its product and its version.
//!
//! "PE Format" and "VS_VERSIONINFO structure", Microsoft. The directory of resources is copied as it passes, and from it
//! is known where the information is, which is copied then.
//!
//! Bounds: [`DIRECTORY_BYTES_MAX`] of the directory, [`BLOCKS_MAX`] blocks of information of at most [`BLOCK_BYTES_MAX`],
//! [`TEXTS_MAX`] texts. What lies beyond one of these, or has passed when it becomes known where it is, is counted.

use std::ops::Range;

use crate::layout::{Layout, Section, raw_of};

const DIRECTORY_BYTES_MAX: u64 = 64 << 10;
const BLOCKS_MAX: usize = 8;
const BLOCK_BYTES_MAX: u32 = 64 << 10;
const TEXTS_MAX: usize = 1024;
/// The most entries of all directories that are counted.
const RESOURCES_MAX: u32 = 65_536;
/// The most entries of one directory.
const ENTRIES_MAX: usize = 4096;

/// The type of resources that are version information.
const VERSION: u32 = 16;
const IS_DIRECTORY: u32 = 1 << 31;

/// The resources of a file that is being read.
#[derive(Debug, Clone)]
pub(crate) struct Resources {
    sections: Vec<Section>,
    /// The beginning of the resources, until it has passed.
    directory: Option<Copied>,
    blocks: Vec<Copied>,
    /// How many resources there are, once that is known and if no bound hides some.
    pub(crate) count: Option<u32>,
    lost: u64,
}

/// A run of bytes of the file, as far as it has passed.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Copied {
    raw: Range<u64>,
    bytes: Vec<u8>,
}

/// A text of the version information.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Text {
    /// Where its name begins in the file.
    pub(crate) start: u64,
    pub(crate) name: Box<str>,
    pub(crate) value: Box<str>,
}

impl Copied {
    fn of(raw: Range<u64>) -> Copied {
        Copied { raw, bytes: Vec::new() }
    }

    /// Takes what belongs to it of bytes that stand at `offset`.
    fn pass(&mut self, offset: u64, bytes: &[u8]) {
        let wanted = self.raw.start + self.bytes.len() as u64;
        let (from, to) = (wanted.max(offset), self.raw.end.min(offset + bytes.len() as u64));
        if from < to {
            self.bytes.extend_from_slice(&bytes[(from - offset) as usize..(to - offset) as usize]);
        }
    }

    fn u16(&self, at: usize) -> Option<u16> {
        self.bytes.get(at..)?.first_chunk().copied().map(u16::from_le_bytes)
    }

    fn u32(&self, at: u32) -> Option<u32> {
        self.bytes.get(at as usize..)?.first_chunk().copied().map(u32::from_le_bytes)
    }
}

impl Resources {
    /// A reader of the resources, if the headers name their address.
    pub(crate) fn new(layout: &Layout) -> Option<Resources> {
        let address = u64::from(layout.pe.as_ref()?.resources?);
        let sections = layout.sections().to_vec();
        let section = sections.iter().find(|section| section.holds(address))?;
        let start = section.raw.start + (address - section.address);
        let end = section.raw.end.min(start + DIRECTORY_BYTES_MAX);
        let directory = Some(Copied::of(start..end)).filter(|copied| !copied.raw.is_empty());
        Some(Resources { sections, directory, blocks: Vec::new(), count: None, lost: 0 })
    }

    /// Takes in bytes that stand at `offset` of the file.
    pub(crate) fn pass(&mut self, offset: u64, bytes: &[u8]) {
        let mut behind = (offset, bytes);
        if let Some(directory) = &mut self.directory {
            directory.pass(offset, bytes);
            if (directory.bytes.len() as u64) < directory.raw.end - directory.raw.start {
                return;
            }
            let taken = directory.raw.end.saturating_sub(offset).min(bytes.len() as u64);
            behind = (offset + taken, &bytes[taken as usize..]);
            self.resolve();
        }
        self.blocks.iter_mut().for_each(|block| block.pass(behind.0, behind.1));
    }

    /// The beginning of the resources has passed: says where the information is.
    fn resolve(&mut self) {
        let Some(directory) = self.directory.take() else { return };
        let mut left = RESOURCES_MAX;
        let (count, is_cut) = count(&directory, 0, 0, &mut left);
        let is_bounded = left == 0 || directory.bytes.len() as u64 == DIRECTORY_BYTES_MAX;
        self.count = (!is_cut || !is_bounded).then_some(count);
        for (address, length) in self.listed(&directory) {
            let Some(start) = raw_of(&self.sections, address.into()) else { continue };
            let mut block = Copied::of(start..start + u64::from(length.min(BLOCK_BYTES_MAX)));
            // It lies in what was copied, behind it, or has passed.
            if start < directory.raw.start {
                self.lost += 1;
                continue;
            }
            block.pass(directory.raw.start, &directory.bytes);
            self.lost += u64::from(length > BLOCK_BYTES_MAX);
            self.blocks.push(block);
        }
    }

    /// The blocks of information that the directory lists: address and length.
    fn listed(&mut self, directory: &Copied) -> Vec<(u32, u32)> {
        let mut all = Vec::new();
        for (_, names) in self.entries(directory, 0).into_iter().filter(|(id, _)| *id == VERSION) {
            for (_, languages) in self.entries(directory, names) {
                for (_, at) in self.entries(directory, languages) {
                    let block = directory.u32(at).zip(at.checked_add(4).and_then(|at| directory.u32(at)));
                    match block {
                        Some(block) if all.len() < BLOCKS_MAX => all.push(block),
                        _ => self.lost += 1,
                    }
                }
            }
        }
        all
    }

    /// The entries of one directory: ids or names, and offsets.
    fn entries(&mut self, directory: &Copied, at: u32) -> Vec<(u32, u32)> {
        let at = (at & !IS_DIRECTORY) as usize;
        let Some((named, numbered)) = directory.u16(at.saturating_add(12)).zip(directory.u16(at.saturating_add(14)))
        else {
            self.lost += u64::from(at > 0);
            return Vec::new();
        };
        let count = (usize::from(named) + usize::from(numbered)).min(ENTRIES_MAX);
        let places = (0..count).map(|index| (at + 16 + index * 8) as u32);
        places.map_while(|place| directory.u32(place).zip(directory.u32(place + 4))).collect()
    }

    /// The texts, now that the file has passed, and how much of them could not be read because of a bound.
    pub(crate) fn texts(&mut self) -> (Vec<Text>, u64) {
        self.resolve();
        let mut texts = Vec::new();
        for block in &self.blocks {
            read(block, 0, block.bytes.len(), 0, &mut texts);
        }
        self.lost += u64::from(texts.len() >= TEXTS_MAX);
        (texts, self.lost)
    }
}

/// How many resources a directory leads to, as far as it can be read; and whether it goes on where nothing was copied.
fn count(directory: &Copied, at: u32, depth: u32, left: &mut u32) -> (u32, bool) {
    /// Types, names and languages.
    const DEPTH_MAX: u32 = 3;
    let at = at & !IS_DIRECTORY;
    let Some((named, numbered)) = directory.u16(at as usize + 12).zip(directory.u16(at as usize + 14)) else {
        return (0, true);
    };
    if directory.u32(at) != Some(0) {
        return (0, false);
    }
    let mut all = 0;
    for index in 0..u32::from(named) + u32::from(numbered) {
        let Some(to) = directory.u32(at.saturating_add(20 + index * 8)) else {
            return (all, true);
        };
        let Some(less) = left.checked_sub(1) else {
            return (all, true);
        };
        *left = less;
        if to & IS_DIRECTORY != 0 && depth + 1 < DEPTH_MAX {
            let (inside, is_cut) = count(directory, to, depth + 1, left);
            all += inside;
            if is_cut {
                return (all, true);
            }
        } else {
            all += 1;
        }
    }
    (all, false)
}

/// Reads the structures from `at` to `end` of a block: of the outermost, of the kinds of information, of languages, and
/// the texts themselves.
fn read(block: &Copied, at: usize, end: usize, depth: usize, texts: &mut Vec<Text>) {
    const TEXT: usize = 3;
    let mut at = at;
    while at + 6 < end && texts.len() < TEXTS_MAX {
        let (Some(length), Some(value_length)) = (block.u16(at), block.u16(at + 2)) else { return };
        let inside = at + usize::from(length);
        if length < 6 || inside > end {
            return;
        }
        let (name, behind) = utf16(block, at + 6, inside);
        let value = behind.next_multiple_of(4);
        match depth {
            TEXT => texts.push(Text {
                start: block.raw.start + at as u64 + 6,
                name: name.into(),
                value: utf16(block, value, inside).0.into(),
            }),
            // Of the outermost the value is bytes; other kinds than this have other things in them.
            0 => read(block, (value + usize::from(value_length)).next_multiple_of(4), inside, 1, texts),
            1 if name != "StringFileInfo" => {}
            _ => read(block, value, inside, depth + 1, texts),
        }
        at = inside.next_multiple_of(4);
    }
}

/// A text in UTF-16 that ends with a NUL, or at `end`, and where it ends.
fn utf16(block: &Copied, at: usize, end: usize) -> (String, usize) {
    let units: Vec<u16> = (at..end.saturating_sub(1)).step_by(2).map_while(|at| block.u16(at)).collect();
    let length = units.iter().position(|unit| *unit == 0).unwrap_or(units.len());
    (String::from_utf16_lossy(&units[..length]), at + (length + 1) * 2)
}
