//! VBA projects (MS-OVBA): the `dir` stream says where in each module's stream the source begins, behind what the
//! module was compiled to.
//!
//! Bounds: [`DIRECTORY_BYTES`] of the `dir` stream, [`MODULES_MAX`] modules.

use stream::{Class, Kind, Object, ReadAt};

use super::ovba::{self, Ovba};
use crate::frame::codec::{le16, le32};
use crate::frame::name;
use crate::frame::reader::{Ended, Outbox, Reader};

/// How much of a `dir` stream is looked at, packed and plain.
pub(super) const DIRECTORY_BYTES: usize = 256 << 10;
const MODULES_MAX: usize = 1024;

/// Records of the `dir` stream (2.3.4.2).
const VERSION: u16 = 0x09;
const STREAM_NAME: u16 = 0x1a;
const STREAM_NAME_UTF16: u16 = 0x32;
const OFFSET: u16 = 0x31;

/// A module's stream, and where in it the source begins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Module {
    pub stream: String,
    pub offset: u64,
}

/// The modules that a packed `dir` stream lists.
pub(super) fn modules(packed: &[u8]) -> Vec<Module> {
    let plain = ovba::whole(packed, DIRECTORY_BYTES);
    let mut modules = Vec::new();
    let (mut rest, mut stream) = (&plain[..], String::new());
    while rest.len() >= 6 && modules.len() < MODULES_MAX {
        let id = le16(rest, 0);
        // The version record tells 4 and has 6.
        let size = if id == VERSION { 6 } else { le32(rest, 2) as usize };
        let Some(data) = rest.get(6..).and_then(|rest| rest.get(..size)) else { break };
        match id {
            STREAM_NAME => stream = name::utf8_or_latin1(data).into(),
            STREAM_NAME_UTF16 => stream = name::utf16_le(data).into(),
            OFFSET => modules.push(Module { stream: stream.clone(), offset: le32(data, 0).into() }),
            _ => {}
        }
        rest = &rest[6 + size..];
    }
    modules
}

/// Emits the source of a module from its stream.
pub(super) struct Source {
    /// Bytes in front of the source.
    skip: u64,
    /// Whether there is compiled code in front of it.
    compiled: bool,
    name: Box<str>,
    ovba: Ovba,
    /// How much has been emitted.
    told: usize,
}

impl Source {
    pub fn new(name: &str, offset: u64) -> Source {
        let name = format!("{name}.bas").into();
        Source { skip: offset, compiled: offset > 0, name, ovba: Ovba::default(), told: 0 }
    }
}

impl Reader for Source {
    fn read(&mut self, input: &[u8], outbox: &mut Outbox) -> usize {
        if self.skip > 0 {
            let count = usize::try_from(self.skip).unwrap_or(usize::MAX).min(input.len());
            self.skip -= count as u64;
            return count;
        }
        let (name, told) = (&self.name, &mut self.told);
        self.ovba.read(input, |plain| {
            if *told == 0 {
                outbox.open(Object { kind: Kind::Member, name: Some(name.clone()), ..Object::default() });
            }
            *told += plain.len().max(1);
            outbox.content(plain);
        })
    }

    fn end(&mut self, _: &dyn ReadAt, outbox: &mut Outbox) -> Ended {
        let rest = self.ovba.end();
        if self.told == 0 && !rest.is_empty() {
            outbox.open(Object { kind: Kind::Member, name: Some(self.name.clone()), ..Object::default() });
            self.told = rest.len();
        }
        outbox.content(&rest);
        if self.told > 0 {
            outbox.close();
        } else if self.compiled {
            outbox.finding(Class::Ambiguous, "Heuristics.Ambiguous.Ole2.VbaSource", 0);
        }
        Ended::Done
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modules_are_those_with_a_stream_and_an_offset() {
        let record = |id: u16, data: &[u8]| {
            let size = if id == VERSION { 4 } else { data.len() as u32 };
            [&id.to_le_bytes()[..], &size.to_le_bytes(), data].concat()
        };
        let plain = [
            record(VERSION, &[1, 2, 3, 4, 5, 6]),
            record(STREAM_NAME, b"M1"),
            record(STREAM_NAME_UTF16, b"N\x001\0"),
            record(OFFSET, &[7, 1, 0, 0]),
            record(0x10, b""),
        ];
        let plain = plain.concat();
        let header = 0x3000 | (plain.len() as u16 - 1);
        let packed = [&[1][..], &header.to_le_bytes(), &plain].concat();
        assert_eq!(modules(&packed), [Module { stream: "N1".into(), offset: 263 }]);
    }
}
