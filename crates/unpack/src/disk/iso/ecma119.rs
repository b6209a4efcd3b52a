//! ISO 9660: volume descriptors and directories, with the names of Joliet and Rock Ridge.

use super::plan::{Plan, Rank};
use super::{EXTENTS, SECTOR, Structure};
use crate::frame::codec::{le16, le32};
use crate::frame::name;

/// A tree of directories, and how its names are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct View {
    is_joliet: bool,
    block: u64,
}

const PLAIN: Rank = 0;
const ROCK_RIDGE: Rank = 1;
const JOLIET: Rank = 2;

/// Extents of one file beyond these are not looked at.
const EXTENTS_MAX: usize = 256;

/// A record of a directory.
struct Record<'a> {
    bytes: &'a [u8],
}

/// A file with further extents to come.
#[derive(Default)]
struct Unfinished {
    extents: Vec<(u64, u64)>,
    path: Box<str>,
}

/// Reads a volume descriptor: the directory at its root is wanted.
pub(super) fn descriptor(plan: &mut Plan, bytes: &[u8]) {
    const PRIMARY: u8 = 1;
    const SUPPLEMENTARY: u8 = 2;
    const ROOT: std::ops::Range<usize> = 156..190;
    let is_joliet = match bytes.first() {
        Some(&PRIMARY) => false,
        Some(&SUPPLEMENTARY) => matches!(bytes.get(88..91), Some(b"%/@" | b"%/C" | b"%/E")),
        _ => return,
    };
    let block = match le16(bytes, 128) {
        block @ (512 | 1024 | 2048 | 4096) => block.into(),
        _ => {
            plan.doubt(false);
            SECTOR
        }
    };
    let view = View { is_joliet, block };
    let root = Record { bytes: bytes.get(ROOT).unwrap_or_default() };
    root.check(plan);
    want_directory(plan, view, &root, "".into());
}

/// A directory within itself would be read over and over: each is read once.
fn want_directory(plan: &mut Plan, view: View, record: &Record, path: Box<str>) {
    let start = record.start(view.block);
    if plan.is_new(start, view.is_joliet.into()) {
        plan.structure(start, record.size(), Structure::Directory { view, path });
    }
}

/// Reads a directory, and requests its entries.
pub(super) fn directory(plan: &mut Plan, view: View, path: &str, bytes: &[u8]) {
    let mut file = Unfinished::default();
    for sector in bytes.chunks(SECTOR as usize) {
        let mut left = sector;
        while let Some(&length @ 1..) = left.first() {
            let Some((bytes, rest)) = left.split_at_checked(length.into()).filter(|_| length > 33) else {
                plan.broken();
                break;
            };
            left = rest;
            entry(plan, view, path, &Record { bytes }, &mut file);
        }
    }
    if !file.extents.is_empty() {
        plan.broken();
        plan.file(file.extents, file.path, PLAIN);
    }
}

fn entry(plan: &mut Plan, view: View, path: &str, record: &Record, file: &mut Unfinished) {
    const DIRECTORY: u8 = 2;
    const MORE: u8 = 0x80;
    if matches!(record.raw_name(), [0 | 1]) {
        return;
    }
    if !plan.entry() {
        return;
    }
    record.check(plan);
    let (name, rank) = record.name(view);
    let path = plan.path(path, &name);
    let run = (record.start(view.block), record.size());
    if record.flags() & DIRECTORY != 0 {
        return want_directory(plan, view, record, path);
    }
    if file.extents.len() == EXTENTS_MAX {
        return plan.fault(EXTENTS);
    }
    file.extents.push(run);
    if record.flags() & MORE == 0 {
        plan.file(std::mem::take(file).extents, path, rank);
    } else {
        file.path = path;
    }
}

impl Record<'_> {
    /// Numbers stand in both byte orders, and files have no gaps.
    fn check(&self, plan: &mut Plan) {
        let twice = |at: usize| le32(self.bytes, at) == le32(self.bytes, at + 4).swap_bytes();
        let is_interleaved = self.bytes.get(26..28) != Some(&[0, 0]);
        plan.doubt(twice(2) && twice(10) && !is_interleaved);
    }

    /// Where the content begins, behind the extended attributes.
    fn start(&self, block: u64) -> u64 {
        let attributes = self.bytes.get(1).copied().unwrap_or(0);
        (u64::from(le32(self.bytes, 2)) + u64::from(attributes)) * block
    }

    fn size(&self) -> u64 {
        le32(self.bytes, 10).into()
    }

    fn flags(&self) -> u8 {
        self.bytes.get(25).copied().unwrap_or(0)
    }

    fn raw_name(&self) -> &[u8] {
        let length = self.bytes.get(32).copied().unwrap_or(0);
        self.bytes.get(33..33 + usize::from(length)).unwrap_or_default()
    }

    /// The name without its version.
    fn name(&self, view: View) -> (Box<str>, Rank) {
        if view.is_joliet {
            return (without_version(&name::utf16_be(self.raw_name())).into(), JOLIET);
        }
        match self.rock_ridge() {
            Some(name) => (name::utf8_or_latin1(&name), ROCK_RIDGE),
            None => (without_version(&name::utf8_or_latin1(self.raw_name())).into(), PLAIN),
        }
    }

    /// The name in the system use area. One that goes on in another place is not taken.
    fn rock_ridge(&self) -> Option<Vec<u8>> {
        const ATTRIBUTES_OF_XA: usize = 14;
        const CONTINUES: u8 = 1;
        let at = (33 + self.raw_name().len()).next_multiple_of(2);
        let mut left = self.bytes.get(at..)?;
        if left.get(6..8) == Some(b"XA") {
            left = left.get(ATTRIBUTES_OF_XA..)?;
        }
        let mut name: Option<Vec<u8>> = None;
        while let [kind, kind_2, length, _, ..] = *left {
            const FIELD_HEADER_BYTES: u8 = 4;
            if length < FIELD_HEADER_BYTES {
                break;
            }
            let (field, rest) = left.split_at_checked(length.into())?;
            if let (b"NM", Some((&flags, part))) = (&[kind, kind_2], field[4..].split_first()) {
                name.get_or_insert_default().extend_from_slice(part);
                if flags & CONTINUES == 0 {
                    return name;
                }
            }
            left = rest;
        }
        None
    }
}

fn without_version(name: &str) -> &str {
    let name =
        name.rsplit_once(';').filter(|(_, version)| version.parse::<u16>().is_ok()).map_or(name, |(name, _)| name);
    name.strip_suffix('.').filter(|name| !name.is_empty()).unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_and_empty_extensions_are_no_part_of_a_name() {
        assert_eq!(without_version("A.TXT;1"), "A.TXT");
        assert_eq!(without_version("A.;1"), "A");
        assert_eq!(without_version("a;b"), "a;b");
        assert_eq!(without_version("."), ".");
    }

    #[test]
    fn a_name_of_rock_ridge_is_put_together() {
        let mut bytes = vec![0; 33];
        bytes[32] = 1;
        bytes.extend_from_slice(b"ARR\x05\x01\x89NM\x08\x01\x01lon");
        bytes.extend_from_slice(b"NM\x06\x01\0g");
        assert_eq!(Record { bytes: &bytes }.rock_ridge().as_deref(), Some(&b"long"[..]));
    }
}
