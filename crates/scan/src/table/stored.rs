//! A database as a file: compiled once, mapped by whoever scans with it.
//!
//! The file is one of [`pattern::flat`]: the names, the tables of each target type, the digests, the census and the
//! host's own note, one after the other. Nothing is copied when it is loaded but what is small, and every number that
//! leads to another table is checked, so that it need not be when it is used. The texts of logical signatures are read
//! when they are first asked for; rules of YARA are stored as text and read when the file is loaded.
//!
//! What lies over a database is not stored with it.

use std::io;
use std::ops::Range;
use std::sync::Arc;

use pattern::flat::{Aligned, Flat, Owner, Reader, Unfit, Writer};

use crate::census::{Bound, Census, Entry, Refused};
use crate::hashes::HashTable;
use crate::links::{self, digests::Digests};
use crate::signed::rule;
use crate::source::container::{Container, ContainerKind, Verified};
use crate::table::content::Table;
use crate::table::database::Database;
use crate::table::magic::Magic;
use crate::table::metadata;
use crate::table::names::Names;
use crate::table::passwords;
use crate::table::sections::SectionTable;
use crate::target::TARGETS;
use crate::yara;

impl Database {
    /// Writes it, with a note for whoever loads it.
    ///
    /// # Errors
    /// Those of the sink.
    pub fn store(&self, note: &str, sink: &mut dyn io::Write) -> io::Result<()> {
        let mut file = Writer::new(sink)?;
        let writer = &mut file;
        writer.texts([note])?;
        self.names.store(writer)?;
        writer.texts(self.files.iter().map(|(file, _)| &**file))?;
        writer.array(&self.files.iter().map(|(_, names)| [names.start, names.end]).collect::<Vec<_>>())?;
        writer.texts(self.ignored.iter().map(|name| &**name))?;
        self.census.store(writer)?;
        self.hashes.store(writer)?;
        self.sections.store(writer)?;
        self.imports.store(writer)?;
        self.allowed.store(writer)?;
        rule::store(&self.certificates, writer)?;
        self.catalogued.store(writer)?;
        metadata::store(&self.metadata, writer)?;
        passwords::store(&self.passwords, writer)?;
        links::entry::store(&self.links, writer)?;
        self.addresses.store(writer)?;
        Magic::store(self.magic.as_deref(), writer)?;
        let targets: Vec<u8> =
            (0u8..).zip(&self.tables).filter(|(_, table)| table.is_some()).map(|(at, _)| at).collect();
        writer.array(&targets)?;
        self.tables.iter().flatten().try_for_each(|table| table.store(writer))?;
        yara::store(self.yara.as_deref(), writer)?;
        file.finish()
    }

    /// The database after it was stored in memory and loaded, for tests.
    ///
    /// # Panics
    /// If nothing does.
    pub(crate) fn stored_and_loaded(&self) -> Database {
        let mut bytes = Vec::new();
        self.store("", &mut bytes).expect("memory takes it");
        Database::load(Arc::new(Aligned::new(&bytes))).expect("what was stored can be loaded")
    }

    /// The database that was stored as these bytes, which begin at a multiple of 64. They are held for as long as anybody
    /// scans with it.
    ///
    /// # Errors
    /// If they are not what this version stores, or were changed.
    pub fn load(owner: Owner) -> Result<Database, Unfit> {
        let reader = &mut Reader::open(owner)?;
        let note = reader.texts()?.pop().ok_or(Unfit::Malformed)?;
        let names = Names::load(reader)?;
        let count = names.len();
        let files = reader.texts()?;
        let ranges: Flat<[u32; 2]> = reader.array()?;
        let files = files.into_iter().zip(ranges.iter()).map(|(file, &[start, end])| (file.into(), start..end));
        let files: Arc<[(Box<str>, Range<u32>)]> = files.collect();
        let ignored = reader.texts()?.into_iter().map(Box::from).collect();
        let mut database = Database {
            names,
            census: Arc::new(Census::load(reader)?),
            hashes: HashTable::load(reader, count)?,
            sections: SectionTable::load(reader, count)?,
            imports: HashTable::load(reader, count)?,
            allowed: HashTable::load(reader, count)?,
            certificates: rule::load(reader, count)?,
            catalogued: HashTable::load(reader, count)?,
            metadata: metadata::load(reader, count)?,
            passwords: passwords::load(reader, count)?,
            links: links::entry::load(reader, count)?,
            addresses: Digests::load(reader, count)?,
            magic: Magic::load(reader, count)?.map(Arc::new),
            tables: [const { None }; TARGETS],
            yara: None,
            ignored: Arc::new(ignored),
            files,
            date: None,
            note: note.into(),
            hidden: Arc::default(),
            above: None,
        };
        let targets: Flat<u8> = reader.array()?;
        for &target in targets.iter() {
            let table = database.tables.get_mut(usize::from(target)).ok_or(Unfit::Malformed)?;
            *table = Some(Arc::new(Table::load(reader, count)?));
        }
        database.yara = yara::load(reader, count)?.map(Arc::new);
        Ok(database)
    }
}

impl Census {
    fn store(&self, writer: &mut Writer<'_>) -> io::Result<()> {
        let Census { exact, at_end, bounded, allowed, entries, ignored, other_engine, unwanted, refused, containers } =
            self;
        writer.array(&[*exact, *at_end, *allowed, *ignored, *other_engine, *unwanted])?;
        let place = |bound| Bound::ALL.iter().position(|one| *one == bound).unwrap_or_default() as u64;
        writer.array(&bounded.iter().map(|(bound, count)| [place(*bound), *count]).collect::<Vec<_>>())?;
        let place = |entry| Entry::ALL.iter().position(|one| *one == entry).unwrap_or_default() as u64;
        writer.array(&entries.iter().map(|(entry, count)| [place(*entry), *count]).collect::<Vec<_>>())?;
        writer.texts(refused.iter().map(|one| &*one.name))?;
        writer.texts(refused.iter().map(|one| &*one.reason))?;
        writer.texts(containers.iter().flat_map(|one| [&*one.file, &one.time, &one.builder]))?;
        writer.array(&containers.iter().map(numbers).collect::<Vec<_>>())
    }

    fn load(reader: &mut Reader) -> Result<Census, Unfit> {
        let [exact, at_end, allowed, ignored, other_engine, unwanted] = reader.values()?;
        let bounded: Flat<[u64; 2]> = reader.array()?;
        let bounded = bounded.iter().map(|&[place, count]| Some((*Bound::ALL.get(place as usize)?, count)));
        let bounded = bounded.collect::<Option<_>>().ok_or(Unfit::Malformed)?;
        let entries: Flat<[u64; 2]> = reader.array()?;
        let entries = entries.iter().map(|&[place, count]| Some((*Entry::ALL.get(place as usize)?, count)));
        let entries = entries.collect::<Option<_>>().ok_or(Unfit::Malformed)?;
        let (names, reasons) = (reader.texts()?, reader.texts()?);
        let refused = names.into_iter().zip(reasons);
        let refused = refused.map(|(name, reason)| Refused { name: name.into(), reason: reason.into() }).collect();
        let (texts, all): (_, Flat<[u64; 6]>) = (reader.texts()?, reader.array()?);
        let containers = texts.chunks_exact(3).zip(all.iter()).map(|(texts, numbers)| container(texts, *numbers));
        let containers = containers.collect::<Option<_>>().ok_or(Unfit::Malformed)?;
        Ok(Census { exact, at_end, bounded, allowed, entries, ignored, other_engine, unwanted, refused, containers })
    }
}

const KINDS: [ContainerKind; 3] = [ContainerKind::Cvd, ContainerKind::Cld, ContainerKind::Cud];
const VERIFIED: [Verified; 4] =
    [Verified::HeaderSigned, Verified::InfoSigned, Verified::BothSigned, Verified::Unsigned];

fn numbers(container: &Container) -> [u64; 6] {
    let kind = KINDS.iter().position(|kind| *kind == container.kind).unwrap_or_default();
    let verified = VERIFIED.iter().position(|verified| *verified == container.verified).unwrap_or_default();
    let Container { version, signatures, level, members, .. } = container;
    [kind as u64, verified as u64, (*version).into(), *signatures, (*level).into(), (*members).into()]
}

fn container(texts: &[String], [kind, verified, version, signatures, level, members]: [u64; 6]) -> Option<Container> {
    let [file, time, builder] = texts else {
        return None;
    };
    Some(Container {
        file: file.as_str().into(),
        kind: *KINDS.get(kind as usize)?,
        time: time.as_str().into(),
        version: version as u32,
        signatures,
        level: level as u32,
        builder: builder.as_str().into(),
        verified: *VERIFIED.get(verified as usize)?,
        members: members as u32,
    })
}
