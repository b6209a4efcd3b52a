//! Beginnings of files of each type (`.ftm`): `how:offset:bytes:name:required type:type[:min[:max]]`.
//!
//! After the ClamAV manual, "File type magic". How is 0 for bytes at an offset and 1 for a body at a place; what clamscan
//! 1.4 does beyond the manual was learnt by trying it out: of several lines that fit the last counts, but those
//! with how 0 go before those with how 1, which are looked for only in what is text or nothing known. (Of several with
//! how 1 clamscan takes the one whose type is last in its own list of types.) A type that is not told apart here is refused by name, and so is `CL_TYPE_IGNORED`: nothing is
//! exempt from being scanned.
//!
//! The lines are compiled like signatures.

use std::io;

use pattern::flat::{Flat, Reader, Unfit, Writer};
use stream::FileType;

use crate::syntax::body::{self};
use crate::syntax::line::number;
use crate::syntax::line::{Reject, check_levels};
use crate::syntax::location::Location;
use crate::syntax::signature::{Body, Signature};
use crate::table::content::{Table, TableBuilder};
use crate::target;

/// Compiled lines.
#[derive(Debug, Clone)]
pub(crate) struct Magic {
    pub(crate) table: Table,
    /// For each line its type, by its place in [`FileType::ALL`], and whether it goes before those without.
    pub(crate) types: Flat<[u8; 2]>,
}

/// Collects lines.
#[derive(Debug, Default)]
pub(crate) struct MagicBuilder {
    table: TableBuilder,
    types: Vec<[u8; 2]>,
}

/// A line as it was read.
pub(crate) struct Entry {
    signature: Signature,
    file_type: FileType,
    certain: bool,
}

/// Reads a line.
pub(crate) fn parse(line: &str) -> Result<Entry, Reject> {
    let fields: Vec<&str> = line.split(':').collect();
    let [how, offset, bytes, _, required, file_type, levels @ ..] = fields.as_slice() else {
        return Err(Reject::Malformed("fewer than six fields".to_owned()));
    };
    check_levels(levels)?;
    let certain = match *how {
        "0" => true,
        "1" => false,
        "4" => return Err(Reject::Unsupported("partitions by their magic".to_owned())),
        how => return Err(Reject::Malformed(format!("there is no magic of kind {how:?}"))),
    };
    let location = match certain {
        true => Location::Absolute { first: number(offset)?, shift: 0 },
        false => Location::parse(offset).map_err(Reject::Unsupported)?,
    };
    if certain {
        body::hex_bytes(bytes)?;
    }
    if !matches!(location, Location::Anywhere | Location::Absolute { .. }) {
        return Err(Reject::Unsupported(format!("magic at {offset}")));
    }
    if !matches!(*required, "CL_TYPE_ANY" | "CL_TYPE_TEXT_ASCII" | "CL_TYPE_BINARY_DATA") {
        return Err(Reject::Unsupported(format!("magic within {required}")));
    }
    let named = file_type.strip_prefix("CL_TYPE_").and_then(target::file_type);
    let file_type = named.ok_or_else(|| Reject::Unsupported(format!("the file type {file_type}")))?;
    let body = Body { location, parts: body::parse(bytes)?, sub: 0 };
    Ok(Entry { signature: Signature { target: 0, bodies: vec![body], logic: None }, file_type, certain })
}

impl MagicBuilder {
    /// Adds a line whose name has that number.
    pub(crate) fn add(&mut self, name: u32, entry: &Entry) -> Result<(), pattern::Refusal> {
        self.table.add(name, &entry.signature)?;
        let place = FileType::ALL.iter().position(|one| *one == entry.file_type).unwrap_or_default();
        self.types.push([place as u8, entry.certain.into()]);
        Ok(())
    }

    /// Compiles what was added, if anything was, as [`TableBuilder::build`] does.
    pub(crate) fn build(self, renamed: impl Fn(u32) -> Option<u32>) -> Option<Magic> {
        (!self.types.is_empty()).then(|| Magic { table: self.table.build(renamed), types: self.types.into() })
    }
}

impl Magic {
    pub(crate) fn store(all: Option<&Magic>, writer: &mut Writer<'_>) -> io::Result<()> {
        writer.array(all.map_or(&[][..], |magic| &magic.types))?;
        all.map_or(Ok(()), |magic| magic.table.store(writer))
    }

    /// Reads the stored table, whose names are numbered below `names`.
    pub(crate) fn load(reader: &mut Reader, names: u32) -> Result<Option<Magic>, Unfit> {
        let types: Flat<[u8; 2]> = reader.array()?;
        if types.is_empty() {
            return Ok(None);
        }
        let magic = Magic { table: Table::load(reader, names)?, types };
        let is_one = |[place, _]: &[u8; 2]| usize::from(*place) < FileType::ALL.len();
        let fits = magic.types.len() == magic.table.signatures.len() && magic.types.iter().all(is_one);
        if fits { Ok(Some(magic)) } else { Err(Unfit::Malformed) }
    }
}
