//! What files of each type begin with (`.ftm`): `how:offset:bytes:name:required type:type[:min[:max]]`.
//!
//! After the ClamAV manual, "File type magic". How is 0 for bytes at an offset and 1 for a body at a place; what clamscan
//! 1.4 does beyond the manual was learnt by trying it out: of several lines that fit the last counts, but those
//! with how 0 go before those with how 1, which are looked for only in what is text or nothing known. (Of several with
//! how 1 clamscan takes the one whose type is last in its own list of types.) A type that is not told apart here is refused by name, and so is `CL_TYPE_IGNORED`: nothing is
//! exempt from being scanned.
//!
//! Looked at are the first [`HEAD_BYTES`], as clamscan does. The lines are compiled like signatures.

use std::io;

use pattern::State;
use pattern::flat::{Flat, Reader, Unfit, Writer};
use stream::FileType;

use crate::run::follow::{Context, Follower};
use crate::syntax::body::{self, number};
use crate::syntax::location::Location;
use crate::syntax::signature::{Body, Reject, Signature, check_levels};
use crate::table::content::{Table, TableBuilder};
use crate::table::database::{Database, Name};
use crate::target;

/// How much of a file is looked at.
const HEAD_BYTES: usize = 1024;

/// Compiled lines.
#[derive(Debug, Clone)]
pub(crate) struct Magic {
    table: Table,
    /// For each line its type, by its place in [`FileType::ALL`], and whether it goes before those without.
    types: Flat<[u8; 2]>,
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

    /// What was stored, whose names are numbered below `names`.
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

    /// The lines that fit a head: rank (the highest counts), number of the name, type.
    fn fitting(&self, head: &[u8]) -> Vec<((u8, u32), u32, FileType)> {
        let (mut state, mut follower, mut hits) = (State::default(), Follower::default(), Vec::new());
        let context = Context { table: &self.table, layout: None, containers: &[] };
        let patterns = &self.table.patterns;
        patterns.scan(&mut state, head, &mut |found| follower.on_match(context, found, &mut hits));
        patterns.finish(&mut state, &mut |found| follower.on_match(context, found, &mut hits));
        let ranked = hits.iter().filter_map(|hit| {
            let &[place, certain] = self.types.get(hit.signature as usize)?;
            let name = self.table.signatures.get(hit.signature as usize)?.name;
            Some(((certain, hit.signature), name, *FileType::ALL.get(usize::from(place))?))
        });
        ranked.collect()
    }
}

impl Database {
    /// What a file that begins with `head` is, if its databases have magic of their own that says so. What has been
    /// recognised `by_content` counts where only a body is asked for: that is looked for in text and in what is nothing
    /// known.
    pub fn recognise(&self, head: &[u8], by_content: FileType) -> Option<FileType> {
        let head = &head[..head.len().min(HEAD_BYTES)];
        let is_open = matches!(by_content, FileType::Text | FileType::Html | FileType::Xml | FileType::Binary);
        let layers = self.layers().enumerate();
        let fitting = layers.filter_map(|(layer, database)| Some((layer, database.magic.as_ref()?.fitting(head))));
        let fitting = fitting.flat_map(|(layer, all)| all.into_iter().map(move |one| (layer, one)));
        let counting = fitting.filter(|(layer, ((certain, ..), number, _))| {
            (*certain == 1 || is_open) && self.name(Name { layer: *layer, number: *number }).is_some()
        });
        counting.max_by_key(|(layer, (rank, ..))| (*rank, *layer)).map(|(_, (_, _, file_type))| file_type)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Builder;

    fn recognise(lines: &str, head: &[u8]) -> Option<FileType> {
        let mut builder = Builder::new();
        builder.add("t.ftm", lines.as_bytes()).expect("magic");
        builder.build().recognise(head, FileType::Text)
    }

    #[test]
    fn a_file_is_what_its_magic_says() {
        let lines = "0:0:7a7a:x:CL_TYPE_ANY:CL_TYPE_PDF\n1:*:6e6565:y:CL_TYPE_ANY:CL_TYPE_GIF:1\n";
        assert_eq!(recognise(lines, b"zz need"), Some(FileType::Pdf));
        assert_eq!(recognise(lines, b"a need"), Some(FileType::Image));
        assert_eq!(recognise(lines, b"a zz"), None);
        let later = format!("{lines}0:1:7a61:z:CL_TYPE_ANY:CL_TYPE_SWF:1:99\n0:1:7a61:z:CL_TYPE_ANY:CL_TYPE_SWF\n");
        assert_eq!(recognise(&later, b"zza"), Some(FileType::Flash), "the last line counts");
    }

    #[test]
    fn what_has_no_counterpart_is_refused_by_name() {
        for line in [
            "4:1024:482b:x:CL_TYPE_ANY:CL_TYPE_PART_HFSPLUS",
            "0:0:7a7a:x:CL_TYPE_ANY:CL_TYPE_IGNORED",
            "1:EOF-3:7a7a:x:CL_TYPE_ANY:CL_TYPE_PDF",
        ] {
            assert!(matches!(parse(line), Err(Reject::Unsupported(_))), "{line}");
        }
        for line in ["0:0:7a??:x:CL_TYPE_ANY:CL_TYPE_PDF", "7:0:7a7a:x:CL_TYPE_ANY:CL_TYPE_PDF", "0:0:7a7a:x"] {
            assert!(matches!(parse(line), Err(Reject::Malformed(_))), "{line}");
        }
    }
}
