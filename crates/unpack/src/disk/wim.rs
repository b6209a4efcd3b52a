//! Images of Windows (WIM, and solid ones, ESD): the contents of the table, each emitted once, at the end, in their
//! order in the file.
//!
//! A content is packed in chunks, or is a range of a resource that many contents share (`chunks`). Names come from the
//! metadata of the images, by the hash of their content (`names`): of several names the first is the content's, and
//! each other one that of an empty member, as are those of empty files. The hash is
//! compared.
//!
//! Bounds: the file, up to `spool_bytes_max`; `directory_entries_max` contents of 120 bytes, and as many paths; tables
//! and metadata of [`METADATA_BYTES_MAX`]; one chunk, packed and unpacked: of 2 MiB, with LZMS up to `codec_bytes_max`.
//!
//! Left out: piped images, which have a finding; contents in other parts of a split image. Source: Microsoft's
//! description of the format of 2007, and wimlib's of later additions.

mod chunks;
mod names;

use std::collections::{BTreeMap, VecDeque};

use sha1::{Digest, Sha1};
use stream::{Class, Kind, Limits, Object, ReadAt};

use crate::disk::kept::read;
use crate::disk::whole::{FileSystem, Whole};
use crate::frame::codec::{Fault, le16, le32, le64};
use crate::frame::cuts;
use crate::frame::format::{Format, Reads};
use crate::frame::reader::{CONTENT_BYTES, Outbox, Reading};
use chunks::{Chunks, File, Packing, Resource, Turn};
use names::Names;

/// The row of the page of formats.
pub(crate) const FORMAT: Format = Format {
    name: "WIM, ESD",
    methods: "stored, XPRESS, LZX, LZMS; solid or not",
    not_read: "images made to be piped, other parts of split images",
    reads: Reads::Spool("the file, up to `spool_bytes_max`"),
    memory: "a path and 140 bytes for each of `directory_entries_max` contents, metadata of 16 MiB; a chunk of 2 MiB, with LZMS of `codec_bytes_max`, growing with the data, packed too",
    decoder: "own; sha1",
    fuzz: "unpack_wim",
    compared_with: "wimlib-imagex, over images made by it",
};

const HEADER: Fault = Fault::passing(Class::Malformed, "Heuristics.Malformed.Wim.Header");
const DATA: Fault = Fault::passing(Class::Malformed, "Heuristics.Malformed.Wim.Data");
const HASH: Fault = Fault::passing(Class::Malformed, "Heuristics.Malformed.Wim.Hash");
const METHOD: Fault = Fault::passing(Class::Limit, "Heuristics.Limits.Exceeded.WimMethod");
const CONTENTS: Fault = Fault::passing(Class::Limit, "Heuristics.Limits.Exceeded.WimContents");
const CODEC: Fault = Fault::passing(Class::Limit, "Heuristics.Limits.Exceeded.Codec");
const TRUNCATED: Fault = Fault::passing(Class::Truncated, "Heuristics.Truncated.Wim");

pub(crate) const MAGIC: &[u8] = b"MSWIM\0\0\0";
const HEADER_BYTES: usize = 208;

/// Whether a header makes sense wherever it stands.
pub(crate) fn is_plausible(head: &[u8]) -> bool {
    head.starts_with(MAGIC) && le32(head, 8) == HEADER_BYTES as u32
}

const ENTRY_BYTES: usize = 50;
const METADATA_BYTES_MAX: u64 = 16 << 20;
/// Images in a file whose metadata are read.
const IMAGES_MAX: usize = 64;

type Hash = [u8; 20];

/// The fields of the header that hold for all resources.
struct Layout {
    packing: Option<Packing>,
    chunk_bytes: u32,
    part: u16,
}

/// A content: a range of a resource's output.
struct Content {
    resource: Resource,
    start: u64,
    bytes: u64,
    hash: Hash,
}

/// A range that is being read.
struct Job {
    chunks: Chunks,
    at: u64,
    end: u64,
    purpose: Purpose,
}

enum Purpose {
    /// The table of contents, and metadata, are gathered.
    Table(Vec<u8>),
    Metadata(Vec<u8>),
    Member {
        sum: Sha1,
        hash: Hash,
        is_sound: bool,
    },
}

/// The file under way.
pub(crate) struct Image {
    limits: Limits,
    layout: Layout,
    bytes: u64,
    job: Option<Job>,
    /// The reader of the last job's resource.
    chunks: Option<Chunks>,
    metadata: VecDeque<Resource>,
    /// Contents, the next one last.
    contents: Vec<Content>,
    names: Names,
    /// Bytes that may still be unpacked.
    left: u64,
    told: Vec<&'static str>,
}

impl Layout {
    fn read(header: &[u8]) -> Layout {
        const STORED: u32 = 0;
        let packing = match le32(header, 16) & 0x2e_0002 {
            STORED => Some(Packing::Stored),
            0x2_0002 | 0x20_0002 => Some(Packing::Xpress),
            0x4_0002 => Some(Packing::Lzx),
            0x8_0002 => Some(Packing::Lzms),
            _ => None,
        };
        Layout { packing, chunk_bytes: le32(header, 20), part: le16(header, 40) }
    }

    /// The resource that this entry tells, if it can be read.
    fn resource(&self, entry: &[u8]) -> Result<Resource, Fault> {
        const COMPRESSED: u8 = 4;
        let packed = le64(entry, 0);
        let packing = match (packed >> 56) as u8 & COMPRESSED {
            0 => Packing::Stored,
            _ => self.packing.ok_or(METHOD)?,
        };
        Resource::new(le64(entry, 8), packed << 8 >> 8, le64(entry, 16), packing, self.chunk_bytes)
    }
}

impl Image {
    fn new(header: &[u8], limits: &Limits, bytes: u64) -> Result<Image, Fault> {
        const AGAIN: u64 = 4;
        if header.len() < HEADER_BYTES {
            return Err(TRUNCATED);
        }
        let layout = Layout::read(header);
        let table = layout.resource(&header[48..72])?;
        Ok(Image {
            limits: limits.clone(),
            layout,
            bytes,
            job: Some(Job::all(table, Purpose::Table(Vec::new()))),
            chunks: None,
            metadata: VecDeque::new(),
            contents: Vec::new(),
            names: Names::new(limits),
            left: bytes.saturating_mul(AGAIN).saturating_add(METADATA_BYTES_MAX),
            told: Vec::new(),
        })
    }

    fn fault(&mut self, fault: Fault, outbox: &mut Outbox) {
        if !self.told.contains(&fault.name) {
            self.told.push(fault.name);
            outbox.finding(fault.class, fault.name, 0);
        }
    }

    /// Reads more of a range; the job waits for its next turn, or is done.
    fn go_on(&mut self, mut job: Job, kept: &dyn ReadAt, outbox: &mut Outbox) {
        if job.at >= job.end {
            return self.finish(job, kept, outbox);
        }
        let mut file = File { kept, limits: &self.limits, bytes: self.bytes, left: self.left };
        let turn = job.chunks.turn(job.at, &mut file);
        self.left = file.left;
        outbox.worked(job.chunks.take_work());
        match turn {
            Turn::More => {}
            Turn::Fault(fault) => {
                self.fault(fault, outbox);
                job.spoil();
                job.end = job.at;
            }
            Turn::Ready { is_sound } => {
                if !is_sound {
                    self.fault(DATA, outbox);
                    job.spoil();
                }
                job.take(outbox);
            }
        }
        self.job = Some(job);
    }

    fn finish(&mut self, job: Job, kept: &dyn ReadAt, outbox: &mut Outbox) {
        match job.purpose {
            Purpose::Table(table) => {
                outbox.worked(table.len());
                self.table(&table, kept, outbox);
            }
            Purpose::Metadata(metadata) => {
                outbox.worked(metadata.len());
                if job.end < job.chunks.resource().bytes || !self.names.add(&metadata) {
                    self.fault(CONTENTS, outbox);
                }
            }
            Purpose::Member { sum, hash, is_sound } => {
                if is_sound && hash != [0; 20] && sum.finalize()[..] != hash {
                    self.fault(HASH, outbox);
                }
                outbox.close();
            }
        }
        self.chunks = Some(job.chunks);
    }

    /// Notes the contents of the table.
    fn table(&mut self, table: &[u8], kept: &dyn ReadAt, outbox: &mut Outbox) {
        const METADATA: u8 = 2;
        const SOLID: u8 = 16;
        let mut solid = Solid::default();
        for entry in table.chunks_exact(ENTRY_BYTES) {
            let flags = entry[7];
            let Some(hash) = entry[30..].first_chunk() else { break };
            if le16(entry, 24) != self.layout.part {
                continue;
            }
            if self.contents.len() >= self.limits.directory_entries_max as usize {
                self.fault(CONTENTS, outbox);
                break;
            }
            let content = match flags & SOLID {
                0 => self.layout.resource(entry).map(|resource| Some(Content::all(resource, *hash))),
                _ => solid.entry(entry, *hash, kept),
            };
            match content {
                Ok(Some(_)) if flags & METADATA != 0 && self.metadata.len() == IMAGES_MAX => {
                    self.fault(CONTENTS, outbox)
                }
                Ok(Some(content)) if flags & METADATA != 0 => self.metadata.push_back(content.resource),
                Ok(Some(content)) => self.contents.push(content),
                Ok(None) => {}
                Err(fault) => self.fault(fault, outbox),
            }
        }
        self.contents.sort_by_key(|content| std::cmp::Reverse((content.resource.at, content.start, content.bytes)));
    }
}

impl Job {
    /// The job of reading all that a resource makes.
    fn all(resource: Resource, purpose: Purpose) -> Job {
        Job { at: 0, end: resource.bytes.min(METADATA_BYTES_MAX), chunks: Chunks::new(resource), purpose }
    }

    fn spoil(&mut self) {
        if let Purpose::Member { is_sound, .. } = &mut self.purpose {
            *is_sound = false;
        }
    }

    /// Takes some of the output.
    fn take(&mut self, outbox: &mut Outbox) {
        let (bytes, next) = self.chunks.ready(self.at);
        let wanted = usize::try_from(self.end - self.at).unwrap_or(usize::MAX).min(CONTENT_BYTES);
        let bytes = &bytes[..bytes.len().min(wanted)];
        match &mut self.purpose {
            Purpose::Table(gathered) | Purpose::Metadata(gathered) => gathered.extend_from_slice(bytes),
            Purpose::Member { sum, .. } => {
                sum.update(bytes);
                outbox.content(bytes);
            }
        }
        // After a broken chunk the next one follows.
        self.at = if bytes.is_empty() { next } else { self.at.saturating_add(bytes.len() as u64) };
    }
}

impl Content {
    fn all(resource: Resource, hash: Hash) -> Content {
        Content { start: 0, bytes: resource.bytes, resource, hash }
    }
}

/// Resources that contents share, and where the content of each begins in that of all.
#[derive(Default)]
struct Solid {
    resources: BTreeMap<u64, Resource>,
    end: u64,
    has_contents: bool,
}

impl Solid {
    /// An entry is a resource, or a content in those before it.
    fn entry(&mut self, entry: &[u8], hash: Hash, kept: &dyn ReadAt) -> Result<Option<Content>, Fault> {
        const IS_RESOURCE: u64 = 1 << 32;
        let (packed_bytes, at) = (le64(entry, 0) << 8 >> 8, le64(entry, 8));
        if le64(entry, 16) == IS_RESOURCE {
            if std::mem::replace(&mut self.has_contents, false) {
                *self = Solid::default();
            }
            let resource = Resource::solid(at, packed_bytes, &read(kept, at, chunks::SOLID_HEADER_BYTES))?;
            self.resources.insert(self.end, resource);
            self.end = self.end.saturating_add(resource.bytes);
            return Ok(None);
        }
        self.has_contents = true;
        let (start, resource) = self.resources.range(..=at).next_back().ok_or(HEADER)?;
        Ok(Some(Content { resource: *resource, start: at - start, bytes: packed_bytes, hash }))
    }
}

/// A reader of images.
pub(crate) type Wim = Whole<Image>;

impl FileSystem for Image {
    const TURN_WORK: usize = HEADER_BYTES;

    fn open(kept: &dyn ReadAt, limits: &Limits, bytes: u64) -> Result<Option<Image>, Fault> {
        Image::new(&read(kept, 0, HEADER_BYTES), limits, bytes).map(Some)
    }

    fn turn(&mut self, kept: &dyn ReadAt, outbox: &mut Outbox) -> bool {
        outbox.worked(1);
        if let Some(job) = self.job.take() {
            self.go_on(job, kept, outbox);
        } else if let Some(metadata) = self.metadata.pop_front() {
            self.job = Some(Job::all(metadata, Purpose::Metadata(Vec::new())));
        } else if let Some(content) = self.contents.pop() {
            let name = self.names.of(&content.hash);
            outbox.open(Object { kind: Kind::Member, name, size: Some(content.bytes), ..Object::default() });
            let purpose = Purpose::Member { sum: Sha1::new(), hash: content.hash, is_sound: true };
            // Contents that share a resource follow each other.
            let before = self.chunks.take().filter(|chunks| *chunks.resource() == content.resource);
            let chunks = before.unwrap_or_else(|| Chunks::new(content.resource));
            let end = content.start.saturating_add(content.bytes);
            self.job = Some(Job { chunks, at: content.start, end, purpose });
        } else if let Some(name) = self.names.next_other() {
            outbox.open(Object { kind: Kind::Member, name: Some(name), size: Some(0), ..Object::default() });
            outbox.close();
        } else {
            return true;
        }
        false
    }
}

/// Fuzz body: reads an image.
pub fn fuzz_wim(data: &[u8]) {
    cuts::compare(data, |limits| Box::new(Reading::new(Wim::new(limits))));
}
