//! InstallShield: the files behind a self-extracting installer, and the cabinets (`ISc(`) among them.
//!
//! Behind the executable, and what a linker left there for a debugger, each file stands behind its name, its path, its version
//! and its length, as text; or, with an MSI in it, as `setup` has it. In a cabinet the files stand one behind the other, in chunks that are packed each for itself; where a file ends is told by the first chunk
//! that is shorter than the others. The directory, which stands in another file (`data1.hdr`), is not needed for that.
//!
//! Left out: names of files in cabinets; cabinets of versions before 6, which have no chunks, and files in them that are stored
//! or garbled: these are emitted raw. A file of a whole number of chunks is told together with the next one. Source: the
//! descriptions of the format by the authors of unshield. Bounds: names of [`LINE_MAX`] bytes, one state of zlib-rs.

#![cfg_attr(not(test), deny(clippy::arithmetic_side_effects))]

mod cabinet;
mod setup;

use stream::{Class, Limits, Object};

use crate::frame::archive::{Archive, Check, Content, Faults, Member, Record, Records};
use crate::frame::codec::{Fault, Progress};
use crate::frame::cuts;
use crate::frame::format::{Format, Reads};
use crate::frame::name;
pub(crate) use cabinet::{Cabinet, MAGIC};
use setup::Setup;

/// Row in the table of formats.
pub(crate) const FORMAT: Format = Format {
    name: "InstallShield",
    methods: "files appended to self-extracting installers, of both kinds (with a list, or interleaved with their names, compressed or not); cabinets from version 6 on, without names",
    not_read: "older cabinets, stored and garbled files in cabinets",
    reads: Reads::Stream,
    memory: "names of 1 KiB, 57 KiB",
    decoder: "own; zlib-rs for deflate",
    fuzz: "unpack_installshield",
    compared_with: "the scan inputs of ClamAV",
};

const DATA: Fault = Fault::fatal(Class::Malformed, "Heuristics.Malformed.InstallShield.Data");
const TRUNCATED: Fault = Fault::fatal(Class::Truncated, "Heuristics.Truncated.InstallShield");

/// The lines in front of a file.
const LINES: usize = 4;
const LINE_MAX: usize = 256;

/// A reader of the bytes after an installer.
pub(crate) struct InstallShield {
    name_bytes_max: usize,
    setup: Option<Setup>,
    /// Where the first record stands.
    begins_at: u64,
}

impl InstallShield {
    pub fn new(limits: &Limits) -> InstallShield {
        InstallShield { name_bytes_max: limits.name_bytes_max as usize, setup: None, begins_at: 0 }
    }
}

/// Whether such files begin here.
pub(crate) fn is_plausible(head: &[u8]) -> bool {
    let behind = |bytes: usize| head.get(bytes..).is_some_and(|head| setup::begins(head) == Some(true));
    setup::begins(head) == Some(true)
        || matches!(Lines::read(head), Ok(Some(_)))
        || debug_bytes(head).flatten().is_some_and(behind)
}

/// The record of the debugger in front of the files, which some linkers put behind the image: how long it is, if that is
/// there.
fn debug_bytes(head: &[u8]) -> Option<Option<usize>> {
    const PATH_MAX: usize = 520;
    let path_at = match head.get(..4)? {
        b"NB10" => 16,
        b"RSDS" => 24,
        _ => return None,
    };
    let path = head.get(path_at..).unwrap_or_default();
    let end = memchr::memchr(0, &path[..path.len().min(PATH_MAX)]);
    match end {
        Some(end) => Some(Some(path_at.saturating_add(end).saturating_add(1))),
        None if path.len() < PATH_MAX => Some(None),
        None => None,
    }
}

/// Lines before a file.
struct Lines<'a> {
    name: &'a [u8],
    size: u32,
    bytes: usize,
}

impl<'a> Lines<'a> {
    /// Reads the lines; nothing if more bytes are needed, an error if there are no such lines.
    fn read(head: &'a [u8]) -> Result<Option<Lines<'a>>, ()> {
        let (mut lines, mut at) = ([&head[..0]; LINES], 0);
        for line in &mut lines {
            let from = &head[at..];
            let Some(end) = memchr::memchr(0, &from[..from.len().min(LINE_MAX)]) else {
                return if from.len() < LINE_MAX { Ok(None) } else { Err(()) };
            };
            if at == 0 && end == 0 {
                return Err(());
            }
            *line = &from[..end];
            at = at.saturating_add(end).saturating_add(1);
        }
        let [name, path, version, size] = lines;
        let is_name = !name.is_empty() && path.ends_with(name) && name.iter().all(|byte| *byte >= b' ');
        let is_version = version.iter().all(|byte| byte.is_ascii_digit() || *byte == b'.');
        let size = std::str::from_utf8(size).ok().and_then(|size| size.parse().ok());
        match size {
            Some(size) if is_name && is_version => Ok(Some(Lines { name, size, bytes: at })),
            _ => Err(()),
        }
    }
}

impl Records for InstallShield {
    const FAULTS: Faults = Faults {
        truncated: TRUNCATED,
        check: DATA,
        size: Fault::passing(Class::Malformed, "Heuristics.Malformed.InstallShield.Size"),
    };

    fn record(&mut self, head: &[u8], at: u64, _: &mut Vec<Fault>) -> Record {
        if let Some(setup) = &mut self.setup {
            return setup.record(head, self.name_bytes_max);
        }
        match setup::begins(head) {
            Some(true) if at == self.begins_at => {
                self.setup = Setup::read(head);
                return match self.setup {
                    Some(_) => Record::pass_bytes(setup::HEADER_BYTES as u64),
                    None => Record::Need(setup::HEADER_BYTES),
                };
            }
            None if at == self.begins_at => return Record::Need(head.len().saturating_add(1)),
            _ => {}
        }
        match debug_bytes(head) {
            Some(None) if at == 0 => return Record::Need(head.len().saturating_add(1)),
            Some(Some(bytes)) if at == 0 => {
                self.begins_at = bytes as u64;
                return Record::pass_bytes(self.begins_at);
            }
            _ => {}
        }
        match Lines::read(head) {
            Ok(None) => Record::Need(head.len().saturating_add(1)),
            Ok(Some(lines)) => {
                let name = name::utf8_or_latin1(&lines.name[..lines.name.len().min(self.name_bytes_max)]);
                let object = Object { name: Some(name), size: Some(lines.size.into()), ..Object::default() };
                let content = Content::Raw(lines.size.into());
                Record::Member(lines.bytes, Member { object, content, check: Check::None })
            }
            Err(()) => Record::Rest,
        }
    }

    fn decode(&mut self, input: &[u8], output: &mut [u8]) -> Progress {
        match &mut self.setup {
            Some(setup) => setup.decode(input, output),
            None => Progress::fault(0, DATA),
        }
    }
}

/// Fuzz body: reads the bytes after an installer, and a cabinet.
pub fn fuzz_installshield(data: &[u8]) {
    cuts::compare(data, |limits| Box::new(Archive::new(InstallShield::new(limits), limits)));
    cuts::compare(data, |limits| Box::new(Archive::new(Cabinet::new(), limits)));
}
