//! Sectors and the tables that chain them (MS-CFB 2.1 to 2.5), read from what is kept.
//!
//! Bounds: the numbers of the sectors that hold the tables and the mini stream, 4 bytes for each sector at most, and one
//! bit for each sector.

use stream::ReadAt;

use crate::frame::codec::{le16, le32};

pub(super) const HEADER_BYTES: usize = 512;
/// Sector numbers from here on mean something else.
const SPECIAL: u32 = 0xffff_fffa;
const MINI_SHIFT: u32 = 6;

/// Where a stream lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    /// In sectors of the file.
    Sectors,
    /// In the small sectors of the mini stream.
    Mini,
}

/// The tables of a compound file.
#[derive(Default)]
pub(super) struct Container {
    shift: u32,
    /// How many sectors the file can have.
    count: u32,
    pub mini_cutoff: u64,
    /// The sectors of the allocation table, of that of the mini stream, and of the mini stream.
    fat: Vec<u32>,
    mini_fat: Vec<u32>,
    mini: Vec<u32>,
    pub directory_start: u32,
    mini_fat_start: u32,
    /// Sectors that belong to something.
    used: Vec<u64>,
    /// Whether a table is broken: its chain ends early or runs in a circle.
    pub is_broken: bool,
}

/// A place in a chain of sectors.
#[derive(Debug, Clone, Copy)]
pub(super) struct Cursor {
    place: Place,
    sector: u32,
    /// The offset in the sector.
    skip: u32,
    /// How many more sectors there can be before the chain must be a circle.
    steps_left: u32,
}

impl Container {
    /// The tables of a file of so many bytes, by its header.
    pub fn new(header: &[u8; HEADER_BYTES], bytes: u64, kept: &dyn ReadAt) -> Container {
        let shift = match (le16(header, 30), le16(header, 26)) {
            (shift @ (9 | 12), _) => u32::from(shift),
            (_, 4) => 12,
            _ => 9,
        };
        // The header takes the place of one sector.
        let sectors = bytes.div_ceil(1 << shift).saturating_sub(1);
        let count = u32::try_from(sectors).unwrap_or(u32::MAX).min(SPECIAL - 1);
        let mut container = Container {
            shift,
            count,
            mini_cutoff: le32(header, 56).into(),
            directory_start: le32(header, 48),
            mini_fat_start: le32(header, 60),
            used: vec![0; (count as usize).div_ceil(64)],
            is_broken: le16(header, 28) != 0xfffe || u32::from(le16(header, 30)) != shift,
            ..Container::default()
        };
        container.allocation_table(header, kept);
        container.mini_fat = container.table(container.mini_fat_start, kept);
        container
    }

    /// The sectors of the allocation table: 109 in the header, the rest in a chain of its own.
    fn allocation_table(&mut self, header: &[u8; HEADER_BYTES], kept: &dyn ReadAt) {
        const IN_HEADER: usize = 109;
        let most = (self.count as usize * 4).div_ceil(self.sector_bytes()) + IN_HEADER;
        self.fat = (0..IN_HEADER).map(|index| le32(header, 76 + 4 * index)).collect();
        let mut next = le32(header, 68);
        for _ in 0..=self.count {
            if next >= self.count || self.fat.len() > most {
                break;
            }
            self.mark(next);
            let per_sector = self.sector_bytes() / 4 - 1;
            for index in 0..per_sector {
                self.fat.push(self.number_at(next, index, kept));
            }
            next = self.number_at(next, per_sector, kept);
        }
        self.fat.truncate(most);
        while self.fat.last().is_some_and(|&sector| sector >= SPECIAL) {
            self.fat.pop();
        }
        for index in 0..self.fat.len() {
            self.mark(self.fat[index]);
        }
    }

    /// The sectors of the chain that begins with `start`.
    fn table(&mut self, start: u32, kept: &dyn ReadAt) -> Vec<u32> {
        let mut sectors = Vec::new();
        let mut sector = start;
        while sector < self.count {
            if sectors.len() > self.count as usize {
                self.is_broken = true;
                break;
            }
            sectors.push(sector);
            self.mark(sector);
            sector = self.next_sector(sector, kept);
        }
        sectors
    }

    /// The mini stream begins with this sector of the file.
    pub fn mini_stream(&mut self, start: u32, kept: &dyn ReadAt) {
        self.mini = self.table(start, kept);
    }

    fn sector_bytes(&self) -> usize {
        1 << self.shift
    }

    fn offset(&self, sector: u32) -> u64 {
        (u64::from(sector) + 1) << self.shift
    }

    fn number_at(&self, sector: u32, index: usize, kept: &dyn ReadAt) -> u32 {
        let mut number = [0xff; 4];
        let count = kept.read_at(self.offset(sector) + 4 * index as u64, &mut number);
        if count < 4 { u32::MAX } else { u32::from_le_bytes(number) }
    }

    fn entry(&self, table: &[u32], index: u32, kept: &dyn ReadAt) -> u32 {
        let per_sector = self.sector_bytes() / 4;
        match table.get(index as usize / per_sector) {
            Some(&sector) if sector < self.count => self.number_at(sector, index as usize % per_sector, kept),
            _ => u32::MAX,
        }
    }

    fn next_sector(&self, sector: u32, kept: &dyn ReadAt) -> u32 {
        self.entry(&self.fat, sector, kept)
    }

    fn mark(&mut self, sector: u32) {
        if let Some(bits) = self.used.get_mut(sector as usize / 64) {
            *bits |= 1 << (sector % 64);
        }
    }

    /// The first byte of a stream that begins with this sector.
    pub fn cursor(&self, place: Place, start: u32) -> Cursor {
        let steps_left = match place {
            Place::Sectors => self.count,
            Place::Mini => (self.mini.len() as u32) << (self.shift - MINI_SHIFT),
        };
        Cursor { place, sector: start, skip: 0, steps_left }
    }

    /// Copies bytes at the cursor, at most to the end of its sector, and moves it on. 0 at the end of the chain.
    pub fn read(&mut self, cursor: &mut Cursor, kept: &dyn ReadAt, buffer: &mut [u8]) -> usize {
        let shift = if cursor.place == Place::Mini { MINI_SHIFT } else { self.shift };
        if cursor.steps_left == 0 {
            return 0;
        }
        let Some(offset) = self.place_of(cursor) else { return 0 };
        let most = buffer.len().min((1 << shift) - cursor.skip as usize);
        let count = kept.read_at(offset + u64::from(cursor.skip), &mut buffer[..most]);
        cursor.skip += count as u32;
        if cursor.skip as usize == 1 << shift {
            (cursor.skip, cursor.steps_left) = (0, cursor.steps_left - 1);
            cursor.sector = match cursor.place {
                Place::Sectors => self.next_sector(cursor.sector, kept),
                Place::Mini => self.entry(&self.mini_fat, cursor.sector, kept),
            };
        }
        count
    }

    /// Where the sector of the cursor stands in the file.
    fn place_of(&mut self, cursor: &Cursor) -> Option<u64> {
        match cursor.place {
            Place::Sectors if cursor.sector >= self.count => None,
            Place::Sectors => {
                self.mark(cursor.sector);
                Some(self.offset(cursor.sector))
            }
            Place::Mini => {
                let per_sector = self.shift - MINI_SHIFT;
                let sector = *self.mini.get(cursor.sector as usize >> per_sector)?;
                let inside = u64::from(cursor.sector & ((1 << per_sector) - 1)) << MINI_SHIFT;
                Some(self.offset(sector) + inside)
            }
        }
    }

    /// The first sector from `from` on that belongs to nothing: its number and its place.
    pub fn unused(&self, from: u32) -> Option<(u32, u64)> {
        let is_unused = |sector: &u32| self.used[*sector as usize / 64] & 1 << (sector % 64) == 0;
        (from..self.count).find(is_unused).map(|sector| (sector, self.offset(sector)))
    }

    /// The length of a sector in bytes.
    pub fn unit(&self) -> usize {
        self.sector_bytes()
    }
}
