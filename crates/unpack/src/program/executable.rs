//! Windows executables (PE): the bytes after the image, and the resources that are files of their own.
//!
//! Droppers, installers and self-extracting archives carry their payload in one of these two places. Bytes after the
//! last section are emitted as they pass; the resources are kept, and emitted at the end if their type is recognised:
//! icons, manifests, texts and tables are scanned with the rest of the image. Besides, archives are searched for in the
//! whole file: see `stowaway`, and `carried` for executables in it.
//!
//! Bounds: [`HEAD_BYTES`] of headers; resources of up to `spool_bytes_max`, emitted at most twice;
//! `directory_entries_max` entries of their directory.
//!
//! Left out: 16-bit executables; packed images, which `packed` unpacks; resources within the first [`HEAD_BYTES`].
//!
//! Source: Microsoft's PE format specification.

pub(crate) mod head;

use std::ops::Range;

use stream::{FileType, Kind, Limits, Object, ReadAt};

use crate::frame::codec::{le16, le32};
use crate::frame::cuts;
use crate::frame::format::{Format, Reads};
use crate::frame::reader::{CONTENT_BYTES, Ended, Outbox, Reader, Reading};
use crate::recognise::head::recognise;
use head::Head;

/// Row in the table of formats.
pub(crate) const FORMAT: Format = Format {
    name: "PE",
    methods: "the overlay after the image; resources that are files; 7z, RAR, CAB, LHA, ARJ and zip archives, squashfs images and other executables anywhere in it",
    not_read: "",
    reads: Reads::Spool("streams; resources are kept, up to `spool_bytes_max`"),
    memory: "4 KiB; 24 bytes for each of `directory_entries_max` entries of the directory",
    decoder: "own",
    fuzz: "unpack_executable",
    compared_with: "executables made for it",
};

/// Headers that are looked at.
const HEAD_BYTES: usize = 4096;
/// Bytes of resources told for each that there is: they may share bytes.
const TOLD_RATIO: u64 = 2;

/// A reader of executables.
pub(crate) struct Executable {
    limits: Limits,
    at: u64,
    head: Vec<u8>,
    /// Where the image ends, once the headers are read.
    end: Option<u64>,
    resources: Option<Resources>,
}

/// Where the resources lie, and how far they have been emitted.
struct Resources {
    file: Range<u64>,
    /// Base of the addresses of leaves.
    address: u32,
    walked: bool,
    leaves: Vec<Range<u64>>,
    left: u64,
    /// Range in emission.
    open: Option<Range<u64>>,
}

impl Executable {
    pub fn new(limits: &Limits) -> Executable {
        Executable { limits: limits.clone(), at: 0, head: Vec::new(), end: None, resources: None }
    }

    /// Reads the complete headers.
    fn headers(&mut self, outbox: &mut Outbox) {
        let head = Head::read(&self.head);
        let end = head.as_ref().and_then(Head::image_end).unwrap_or(u64::MAX);
        self.end = Some(end);
        let found = head.as_ref().and_then(Head::resources);
        if let Some((file, address)) = found.filter(|(file, _)| file.start >= self.at && file.start < file.end) {
            outbox.keep(file.clone());
            let left = TOLD_RATIO * (file.end - file.start).min(self.limits.spool_bytes_max.into());
            self.resources = Some(Resources { file, address, walked: false, leaves: Vec::new(), left, open: None });
        }
        let behind = usize::try_from(end).ok().and_then(|end| self.head.get(end..)).map(<[u8]>::to_vec);
        if let Some(behind) = behind.filter(|behind| !behind.is_empty()) {
            open_behind(end, outbox);
            outbox.content(&behind);
        }
    }
}

fn open_behind(at: u64, outbox: &mut Outbox) {
    outbox.open(Object { kind: Kind::Member, raw_offset: Some(at), ..Object::default() });
}

impl Reader for Executable {
    fn read(&mut self, input: &[u8], outbox: &mut Outbox) -> usize {
        let Some(end) = self.end else {
            let taken = input.len().min(HEAD_BYTES - self.head.len());
            self.head.extend_from_slice(&input[..taken]);
            self.at += taken as u64;
            if self.head.len() == HEAD_BYTES {
                self.headers(outbox);
            }
            return taken;
        };
        let before = usize::try_from(end.saturating_sub(self.at)).unwrap_or(usize::MAX);
        if before == 0 && !outbox.is_open() {
            open_behind(self.at, outbox);
            return 0;
        }
        let taken = if before > 0 { input.len().min(before) } else { input.len() };
        if before == 0 {
            outbox.content(&input[..taken]);
        }
        self.at += taken as u64;
        taken
    }

    fn end(&mut self, kept: &dyn ReadAt, outbox: &mut Outbox) -> Ended {
        if self.end.is_none() {
            self.headers(outbox);
            return Ended::More;
        }
        let Some(resources) = &mut self.resources else { return Ended::Done };
        if resources.open.is_none() && outbox.is_open() {
            outbox.close();
            return Ended::More;
        }
        resources.turn(&self.limits, kept, outbox)
    }
}

impl Resources {
    fn turn(&mut self, limits: &Limits, kept: &dyn ReadAt, outbox: &mut Outbox) -> Ended {
        if !std::mem::replace(&mut self.walked, true) {
            self.walk(limits.directory_entries_max as usize, kept, outbox);
            return Ended::More;
        }
        if let Some(leaf) = self.open.take() {
            self.tell(leaf, kept, outbox);
            return Ended::More;
        }
        let Some(leaf) = self.leaves.pop() else { return Ended::Done };
        let mut head = [0; crate::HEAD_BYTES];
        let wanted = usize::try_from(leaf.end - leaf.start).map_or(head.len(), |length| length.min(head.len()));
        let length = read(kept, leaf.start, &mut head[..wanted]);
        outbox.worked(length);
        let found = recognise(&head[..length]);
        if !matches!(found, FileType::Empty | FileType::Binary | FileType::Text | FileType::Xml | FileType::Image)
            && self.left > 0
        {
            let raw_offset = Some(leaf.start);
            outbox.open(Object {
                kind: Kind::Member,
                raw_offset,
                size: Some(leaf.end - leaf.start),
                ..Object::default()
            });
            self.open = Some(leaf);
        }
        Ended::More
    }

    fn tell(&mut self, leaf: Range<u64>, kept: &dyn ReadAt, outbox: &mut Outbox) {
        let mut piece = [0; CONTENT_BYTES];
        let most = (leaf.end - leaf.start).min(self.left).min(CONTENT_BYTES as u64) as usize;
        let count = read(kept, leaf.start, &mut piece[..most]);
        outbox.content(&piece[..count]);
        self.left -= count as u64;
        if count == 0 {
            outbox.close();
        } else {
            self.open = Some(leaf.start + count as u64..leaf.end);
        }
    }

    /// Finds the leaves of the directory, which is a tree of types, names and languages.
    fn walk(&mut self, entries_max: usize, kept: &dyn ReadAt, outbox: &mut Outbox) {
        const DEPTH_MAX: u32 = 3;
        const DIRECTORY_BYTES: u64 = 16;
        const DEEPER: u32 = 0x8000_0000;
        let mut entries_left = entries_max;
        let mut tables = vec![(0, 1)];
        while let Some((table, depth)) = tables.pop() {
            let head: [u8; 16] = self.read_at(table, kept);
            let count = usize::from(le16(&head, 12)) + usize::from(le16(&head, 14));
            let mut deeper = Vec::new();
            for index in 0..count.min(entries_left) {
                let entry: [u8; 8] = self.read_at(table + DIRECTORY_BYTES + 8 * index as u64, kept);
                let place = u64::from(le32(&entry, 4) & !DEEPER);
                match le32(&entry, 4) & DEEPER {
                    0 => self.leaf(place, kept),
                    _ if depth < DEPTH_MAX => deeper.push((place, depth + 1)),
                    _ => {}
                }
            }
            tables.extend(deeper.into_iter().rev());
            entries_left = entries_left.saturating_sub(count.max(1));
            outbox.worked(16 + 24 * count.min(entries_max));
            if entries_left == 0 {
                break;
            }
        }
        self.leaves.reverse();
    }

    fn leaf(&mut self, place: u64, kept: &dyn ReadAt) {
        let entry: [u8; 16] = self.read_at(place, kept);
        let Some(offset) = le32(&entry, 0).checked_sub(self.address) else { return };
        let start = self.file.start + u64::from(offset);
        let end = (start + u64::from(le32(&entry, 4))).min(self.file.end);
        if start < end {
            self.leaves.push(start..end);
        }
    }

    /// Reads bytes of the directory; zeros beyond its end.
    fn read_at<const N: usize>(&self, offset: u64, kept: &dyn ReadAt) -> [u8; N] {
        let mut bytes = [0; N];
        read(kept, self.file.start + offset, &mut bytes);
        bytes
    }
}

fn read(kept: &dyn ReadAt, at: u64, buffer: &mut [u8]) -> usize {
    let mut read = 0;
    while let count @ 1.. = kept.read_at(at + read as u64, &mut buffer[read..]) {
        read += count;
    }
    read
}

/// Fuzz body: reads an executable.
pub fn fuzz_executable(data: &[u8]) {
    cuts::compare(data, |limits| Box::new(Reading::new(Executable::new(limits))));
}
