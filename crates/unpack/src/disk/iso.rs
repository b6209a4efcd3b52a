//! Disc images: ISO 9660 with Joliet and Rock Ridge, and UDF, each file of each view emitted at its place.
//!
//! Directories usually precede the files, so their entries are noted and the files emitted as they pass. Files that
//! precede their listing, or have several places, are kept as they pass and emitted at the end. Each run of bytes is
//! emitted once, under its longest-lived name (UDF, Joliet, Rock Ridge, ISO 9660); names of another kind that other
//! views have for it follow as members without content. An image may begin with anything: only bytes after its first 32
//! KiB count.
//!
//! Bounds: those of [`Plan`]: `directory_entries_max` entries, structures of 2 MiB at a time, a quarter of
//! `spool_bytes_max` kept.
//!
//! Left out: boot images (El Torito), sessions after the first, High Sierra, images of raw sectors, virtual partitions
//! (VAT), files in the system area.
//!
//! Sources: ECMA-119; the Joliet specification; IEEE P1282 (Rock Ridge); ECMA-167 and OSTA UDF 2.60.

mod ecma119;
mod plan;
mod udf;

use stream::{Class, Kind, Limits, Object, ReadAt};

use crate::frame::codec::Fault;
use crate::frame::cuts;
use crate::frame::format::{Format, Reads};
use crate::frame::reader::{CONTENT_BYTES, Ended, Outbox, Reader, Reading};
use ecma119::View;
use plan::{File, Late, Plan};
use udf::Udf;

/// Row in the table of formats.
pub(crate) const FORMAT: Format = Format {
    name: "ISO 9660, UDF",
    methods: "Joliet, Rock Ridge names, files of several extents; UDF with blocks of 512 to 4096 bytes, metadata \
              partitions; after arbitrary data",
    not_read: "boot images, sessions after the first, raw sectors, virtual partitions",
    reads: Reads::Spool("streams; data before the directory are kept, up to a quarter of `spool_bytes_max`"),
    memory: "a name and 80 bytes for each of `directory_entries_max` entries, directories of 2 MiB",
    decoder: "own",
    fuzz: "unpack_iso",
    compared_with: "7z and bsdtar, over images made by genisoimage, xorriso and mkudffs",
};

/// Bytes in front of the first descriptor.
pub(crate) const AREA_BYTES: u64 = 32 << 10;
const SECTOR: u64 = 2048;
/// Bytes asked to be kept at a time.
const KEEP_BYTES: u64 = SECTOR;
/// Descriptors beyond these are not looked at.
const DESCRIPTORS_MAX: u64 = 64;

const TRUNCATED: Fault = Fault::passing(Class::Truncated, "Heuristics.Truncated.Iso");
const DIRECTORY: Fault = Fault::passing(Class::Malformed, "Heuristics.Malformed.Iso.Directory");
const NUMBERS: Fault = Fault::passing(Class::Malformed, "Heuristics.Malformed.Iso.Numbers");
const ORDER: Fault = Fault::passing(Class::Limit, "Heuristics.Limits.Exceeded.IsoOrder");
const ENTRIES: Fault = Fault::passing(Class::Limit, "Heuristics.Limits.Exceeded.IsoEntries");
const EXTENTS: Fault = Fault::passing(Class::Limit, "Heuristics.Limits.Exceeded.IsoExtents");
const PARTITION: Fault = Fault::passing(Class::Limit, "Heuristics.Limits.Exceeded.IsoPartition");

/// A reader of disc images.
pub(crate) struct Iso {
    plan: Plan,
    udf: Udf,
    /// Where the next piece to be kept begins.
    kept_to: u64,
    keep_left: u64,
    open: Option<Opened>,
    /// Whether the image has ended, and kept bytes are being emitted.
    ended: bool,
    state: State,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    /// Whether it is an image is not known yet.
    Unknown,
    Image,
    /// It is no image.
    Other,
}

/// The file whose content is being emitted.
struct Opened {
    /// Ranges that remain, the next one last.
    extents: Vec<(u64, u64)>,
    links: Vec<Box<str>>,
}

/// A structure of a file system, which is captured and then read whole.
enum Structure {
    /// A volume descriptor, the n-th.
    Descriptor(u64),
    Directory {
        view: View,
        path: Box<str>,
    },
    Udf(udf::Structure),
}

/// Whether this, 32 KiB into a file, begins a disc image.
pub(crate) fn is_image(descriptor: &[u8]) -> bool {
    matches!(descriptor.get(1..6), Some(b"CD001" | b"BEA01"))
}

impl Iso {
    pub fn new(limits: &Limits) -> Iso {
        let mut plan = Plan::new(limits);
        plan.structure(AREA_BYTES, SECTOR, Structure::Descriptor(0));
        Iso {
            plan,
            udf: Udf::default(),
            kept_to: AREA_BYTES + SECTOR,
            keep_left: u64::from(limits.spool_bytes_max / 4),
            open: None,
            ended: false,
            state: State::Unknown,
        }
    }

    fn read_structure(&mut self, start: u64, structure: Structure, bytes: &[u8]) {
        match structure {
            Structure::Descriptor(number) => self.descriptor(number, start, bytes),
            Structure::Directory { view, path } => ecma119::directory(&mut self.plan, view, &path, bytes),
            Structure::Udf(structure) => self.udf.read(&mut self.plan, structure, start, bytes),
        }
    }

    fn descriptor(&mut self, number: u64, start: u64, bytes: &[u8]) {
        let is_descriptor = match bytes.get(1..6) {
            Some(b"CD001") => {
                ecma119::descriptor(&mut self.plan, bytes);
                true
            }
            Some(b"BEA01" | b"NSR02" | b"NSR03") => {
                self.udf.look(&mut self.plan, start);
                true
            }
            Some(b"TEA01" | b"BOOT2" | b"CDW02") => true,
            _ => false,
        };
        if number == 0 {
            self.state = if is_image(bytes) { State::Image } else { State::Other };
        }
        if is_descriptor && number < DESCRIPTORS_MAX {
            self.plan.structure(start + SECTOR, SECTOR, Structure::Descriptor(number + 1));
        }
    }

    /// Opens a file; `raw_offset` says where its content begins, if it follows at once.
    fn open(&mut self, file: File, extents: Vec<(u64, u64)>, raw_offset: Option<u64>, outbox: &mut Outbox) {
        let size = extents.iter().map(|extent| extent.1).sum();
        outbox.open(Object {
            kind: Kind::Member,
            name: Some(file.name),
            size: Some(size),
            raw_offset,
            ..Object::default()
        });
        self.open = Some(Opened { extents, links: file.links });
    }

    fn close(&mut self, outbox: &mut Outbox) {
        outbox.close();
        for name in self.open.take().map(|opened| opened.links).unwrap_or_default() {
            outbox.open(Object { kind: Kind::Member, name: Some(name), size: Some(0), ..Object::default() });
            outbox.close();
        }
    }

    /// Begins the places at this offset. Returns whether an event is to be emitted.
    fn begin(&mut self, outbox: &mut Outbox) -> bool {
        while let Some((length, file)) = self.plan.file_at(self.plan.at(), self.open.is_some()) {
            self.open(file, vec![(self.plan.at(), length)], Some(self.plan.at()), outbox);
        }
        if self.open.is_none() && self.plan.at() >= self.kept_to && self.plan.may_want_again() {
            let end =
                self.plan.next_stop(self.plan.at()).min(self.plan.at() + KEEP_BYTES - self.plan.at() % KEEP_BYTES);
            self.kept_to = end;
            if let Some(left) = self.keep_left.checked_sub(end - self.plan.at()) {
                self.keep_left = left;
                outbox.keep(self.plan.at()..end);
            }
        }
        !outbox.is_empty()
    }

    /// Reads the captured structures.
    fn read_captured(&mut self, outbox: &mut Outbox) {
        while let Some((start, structure, bytes)) = self.plan.captured() {
            outbox.worked(bytes.len());
            self.read_structure(start, structure, &bytes);
        }
        self.tell_faults(outbox);
    }

    fn tell_faults(&mut self, outbox: &mut Outbox) {
        for fault in self.plan.faults() {
            outbox.finding(fault.class, fault.name, self.plan.at());
        }
    }

    /// Emits more of the open file, from the kept bytes. Returns whether it is complete.
    fn tell_kept(&mut self, kept: &dyn ReadAt, outbox: &mut Outbox) -> bool {
        let Some((start, left)) = self.open.as_mut().and_then(|opened| opened.extents.pop()) else {
            return true;
        };
        let mut piece = [0; CONTENT_BYTES];
        let wanted = usize::try_from(left).map_or(piece.len(), |left| left.min(piece.len()));
        let count = kept.read_at(start, &mut piece[..wanted]);
        outbox.content(&piece[..count]);
        let left = left - count as u64;
        if count == 0 && left > 0 {
            self.plan.fault(if start < self.plan.at() { ORDER } else { TRUNCATED });
            return true;
        }
        if let Some(opened) = self.open.as_mut().filter(|_| left > 0) {
            opened.extents.push((start + count as u64, left));
        }
        false
    }

    fn read_late(&mut self, late: Late, kept: &dyn ReadAt, outbox: &mut Outbox) {
        match late {
            Late::File(file, mut extents) => {
                extents.reverse();
                self.open(file, extents, None, outbox);
            }
            Late::Structure(structure, extents) => {
                let start = extents.first().map_or(0, |extent| extent.0);
                let bytes = self.plan.read_kept(&extents, kept);
                outbox.worked(bytes.len());
                self.read_structure(start, structure, &bytes);
            }
        }
    }
}

impl Reader for Iso {
    fn read(&mut self, input: &[u8], outbox: &mut Outbox) -> usize {
        if self.plan.at() < AREA_BYTES {
            let taken = input.len().min((AREA_BYTES - self.plan.at()) as usize);
            self.plan.pass(taken);
            return taken;
        }
        if self.begin(outbox) {
            return 0;
        }
        let file_end =
            self.open.as_ref().and_then(|opened| opened.extents.last()).map_or(u64::MAX, |file| file.0 + file.1);
        let kept_to = if self.open.is_none() && self.kept_to > self.plan.at() { self.kept_to } else { u64::MAX };
        let stop = self.plan.next_stop(self.plan.at()).min(file_end).min(kept_to);
        let taken = usize::try_from(stop - self.plan.at()).map_or(input.len(), |left| left.min(input.len()));
        let piece = &input[..taken];
        self.plan.capture(piece);
        if self.open.is_some() {
            outbox.content(piece);
        }
        if self.plan.at() == file_end {
            self.close(outbox);
        }
        self.read_captured(outbox);
        taken
    }

    fn is_over(&self) -> bool {
        self.state == State::Other || self.state == State::Image && self.open.is_none() && self.plan.is_done()
    }

    fn end(&mut self, kept: &dyn ReadAt, outbox: &mut Outbox) -> Ended {
        if self.state != State::Image && !self.plan.captures(is_image) {
            return Ended::Done;
        }
        if !std::mem::replace(&mut self.ended, true)
            && let Some(opened) = self.open.as_mut()
        {
            opened.extents.clear();
            self.plan.fault(TRUNCATED);
        }
        if self.plan.cut() {
            self.plan.fault(TRUNCATED);
        }
        if self.open.is_some() {
            if self.tell_kept(kept, outbox) {
                self.close(outbox);
            }
        } else if let Some(late) = self.plan.late() {
            self.read_late(late, kept, outbox);
        } else if !self.udf.look_at_end(&mut self.plan) {
            self.tell_faults(outbox);
            return Ended::Done;
        }
        self.tell_faults(outbox);
        Ended::More
    }
}

/// Fuzz body: reads a disc image, in the coding of [`cuts::blocks`].
pub fn fuzz_iso(data: &[u8]) {
    cuts::compare(&cuts::blocks(data), |limits| Box::new(Reading::new(Iso::new(limits))));
}
