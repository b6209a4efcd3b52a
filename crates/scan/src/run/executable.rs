//! Work on an executable for its layout: matching waits for its head, the table of its sections is caught, its sections
//! are digested, and its imports.

use digest::{Batch, Sums};
use stream::FileType;

use crate::hashes::HashTable;
use crate::layout::exports::Exports;
use crate::layout::imports::Caught;
use crate::layout::version::Resources;
use crate::layout::{HEAD_BYTES, Layout, Reading, Section, Sections};
use crate::run::program::{self, Passing};
use crate::table::database::{Database, Name};
use crate::table::sections::SectionSums;
use crate::yara::{Asked, Tables};

/// An executable that is being read.
#[derive(Debug)]
pub(crate) struct Executable {
    file_type: FileType,
    /// The head, until the layout can be read from it.
    head: Option<Vec<u8>>,
    /// How much of the head is needed.
    wanted: usize,
    layout: Option<Layout>,
    /// Layout that rules of YARA use for a damaged file.
    damaged: Option<Box<Layout>>,
    /// Sections that became known too late for matching mid-stream.
    late: Option<Vec<Section>>,
    position: u64,
    sections: SectionSums,
    imports: Option<Caught>,
    exports: Option<Exports>,
    /// Few programs are looked at so, and every scan has the room of this.
    signed: Option<Box<Passing>>,
    resources: Option<Resources>,
    /// Tables that rules of YARA ask for.
    asked: Asked,
    tables: Tables,
    /// Number of unreadable version blocks on which the offset of a body depends.
    lost: u64,
}

impl Executable {
    /// If the file is of a type that has a layout, and some signature asks for it.
    pub(crate) fn new(database: &Database, file_type: FileType, placed: bool) -> Option<Executable> {
        let is_digested = |layer: &Database| !(layer.sections.is_empty() && layer.imports.is_empty());
        let digested =
            file_type == FileType::Pe && (database.layers().any(is_digested) || program::is_asked_for(database));
        let asked = database.layers().filter_map(|layer| Some(layer.yara.as_ref()?.asked));
        let asked = asked.fold(Asked::default(), Asked::or);
        let has_layout = matches!(file_type, FileType::Pe | FileType::Elf | FileType::MachO);
        ((placed && has_layout) || digested).then(|| Executable {
            file_type,
            head: Some(Vec::new()),
            wanted: HEAD_BYTES,
            layout: None,
            damaged: None,
            late: None,
            position: 0,
            sections: SectionSums::default(),
            imports: None,
            exports: None,
            signed: None,
            resources: None,
            asked,
            tables: Tables::default(),
            lost: 0,
        })
    }

    /// One that has been read as far as this and goes its own way from here on.
    pub(crate) fn copy(&self, batch: &mut Batch) -> Executable {
        Executable {
            file_type: self.file_type,
            head: self.head.clone(),
            wanted: self.wanted,
            layout: self.layout.clone(),
            damaged: self.damaged.clone(),
            late: self.late.clone(),
            position: self.position,
            sections: self.sections.copy(batch),
            imports: self.imports.clone(),
            exports: self.exports.clone(),
            signed: self.signed.clone(),
            resources: self.resources.clone(),
            asked: self.asked,
            tables: self.tables.clone(),
            lost: self.lost,
        }
    }

    /// The layout, once it is known.
    pub(crate) fn layout(&self) -> Option<&Layout> {
        self.layout.as_ref()
    }

    /// The layout for rules of YARA, which take damaged files for PE files, too.
    pub(crate) fn layout_for_rules(&self) -> Option<&Layout> {
        self.layout.as_ref().or(self.damaged.as_deref())
    }

    /// Takes in the next bytes; what may be matched now: bytes that were held back, and the rest of these.
    pub(crate) fn take<'a>(&mut self, database: &Database, batch: &mut Batch, bytes: &'a [u8]) -> (Vec<u8>, &'a [u8]) {
        let Some(mut head) = self.head.take() else {
            self.pass(batch, bytes);
            return (Vec::new(), bytes);
        };
        let mut rest = bytes;
        loop {
            let (more, after) = rest.split_at(rest.len().min(self.wanted - head.len()));
            head.extend_from_slice(more);
            rest = after;
            if head.len() < self.wanted {
                self.head = Some(head);
                return (Vec::new(), &[]);
            }
            match Layout::read(self.file_type, &head) {
                Reading::More(wanted) if wanted > head.len() => self.wanted = wanted,
                reading => {
                    self.complete(database, reading, &head);
                    self.pass(batch, &head);
                    self.pass(batch, rest);
                    return (head, rest);
                }
            }
        }
    }

    /// The layout is known, or that there is none.
    fn complete(&mut self, database: &Database, reading: Reading, head: &[u8]) {
        if let (Reading::None | Reading::More(_), FileType::Pe) = (&reading, self.file_type)
            && let Some(layout) = Layout::of_damaged(head)
        {
            self.imports = self.asked.imports.then(|| Caught::new(&layout)).flatten();
            self.exports = self.asked.exports.then(|| Exports::new(&layout)).flatten();
            let wanted = self.asked.version || self.asked.resources;
            self.resources = wanted.then(|| Resources::new(&layout)).flatten();
            self.tables = Tables { signers: Some(Vec::new()), ..Tables::of_nothing() };
            self.damaged = Some(Box::new(layout));
        }
        if let Reading::Layout(layout) = reading {
            if self.file_type == FileType::Pe {
                let tables = database.layers().map(|layer| &layer.sections);
                self.sections = SectionSums::new(tables, layout.sections());
                let wanted = self.asked.imports || database.layers().any(|layer| !layer.imports.is_empty());
                self.imports = wanted.then(|| Caught::new(&layout)).flatten();
                self.exports = self.asked.exports.then(|| Exports::new(&layout)).flatten();
                self.signed = Passing::new(database, &layout, self.asked.signers).map(Box::new);
                self.tables = Tables::of_nothing();
                let is_signed = layout.pe.as_ref().is_some_and(|pe| pe.signed.signature.is_some());
                self.tables.signers = (!is_signed).then(Vec::new);
                let wanted = self.asked.version || self.asked.resources || database.wants_version();
                self.resources = wanted.then(|| Resources::new(&layout)).flatten();
            }
            self.layout = Some(*layout);
        }
    }

    fn pass(&mut self, batch: &mut Batch, bytes: &[u8]) {
        let offset = self.position;
        self.position += bytes.len() as u64;
        self.sections.update(batch, offset, bytes);
        if let Some(imports) = &mut self.imports {
            imports.pass(offset, bytes);
        }
        if let Some(exports) = &mut self.exports {
            exports.pass(offset, bytes);
        }
        if let Some(resources) = &mut self.resources {
            resources.pass(offset, bytes);
        }
        if let Some(signed) = &mut self.signed {
            signed.pass(bytes);
        }
        if let (Some(Layout { sections: Sections::In(table), .. }), None) = (&mut self.layout, &self.late) {
            self.late = table.pass(offset, bytes);
        }
    }

    /// The file is at its end: the bytes that were still held back, to be matched now.
    pub(crate) fn end(&mut self, database: &Database, batch: &mut Batch) -> Vec<u8> {
        let held = self.head.take().unwrap_or_default();
        if !held.is_empty() {
            let reading = Layout::read(self.file_type, &held);
            self.complete(database, reading, &held);
            self.pass(batch, &held);
        }
        self.sections.close(batch);
        held
    }

    /// Whether [`matching`](Executable::matching) has nothing left to hash.
    pub(crate) fn is_hashed(&self, batch: &Batch) -> bool {
        self.sections.is_hashed(batch)
    }

    /// All has passed: the sections are known now, or never will be.
    pub(crate) fn settle(&mut self) {
        if let Some(layout) = &mut self.layout
            && layout.awaits_sections()
        {
            layout.sections = Sections::Known(self.late.take().unwrap_or_default());
        }
        if let Some((texts, lost)) = self.resources.take().map(|mut resources| {
            let texts = resources.texts();
            self.tables.resources = resources.count;
            self.tables.cut |= resources.count.is_none() && self.asked.resources;
            texts
        }) {
            if let Some(layout) = &mut self.layout {
                layout.version = texts.iter().map(|text| text.start).collect();
            }
            (self.tables.version, self.lost) = (texts, lost);
        }
        if self.asked.imports
            && let Some(imports) = &self.imports
        {
            let sums = imports.sums();
            let is_cut = matches!(sums, Err(true));
            self.tables.cut |= is_cut;
            if let Some(md5) = sums.ok().and_then(|sums| sums.md5) {
                self.tables.import_hash = Some(text::hex::encode(&md5).into());
            } else if is_cut {
                self.tables.import_hash = None;
            }
            self.tables.imports = imports.names();
            self.tables.libraries = Some(imports.libraries());
            self.tables.functions = imports.functions();
            self.tables.cut |= self.tables.functions.is_none();
        }
        if let Some(signed) = self.signed.as_ref().filter(|_| self.asked.signers) {
            self.tables.signers = signed.signers();
        }
        if let Some(exports) = self.exports.take().map(|exports| exports.read()) {
            self.tables.cut |= exports == Err(true);
            self.tables.exports = exports.ok();
        }
    }

    /// Tables of the file, once all has passed.
    pub(crate) fn tables(&self) -> &Tables {
        &self.tables
    }

    /// Outcome of the file's own signature, once all has passed.
    pub(crate) fn signature(&mut self, database: &Database) -> program::Outcome {
        self.signed.take().map(|signed| signed.finish(database)).unwrap_or_default()
    }

    /// The names of the signatures that digests of parts of the file have, each with the offset of the part; and how
    /// much could not be digested.
    pub(crate) fn matching(&mut self, database: &Database, batch: &mut Batch) -> (Vec<(Name, u64)>, u64) {
        let (mut found, mut lost) = (Vec::new(), self.lost);
        let mut add = |of: fn(&Database) -> &HashTable, sums: &Sums, offset: u64| {
            let names = database.matching(of, sums);
            found.extend(names.into_iter().map(|name| (name, offset)));
        };
        for (offset, sums) in self.sections.finish(batch) {
            match sums {
                Some(sums) => add(|layer| &layer.sections.digests, &sums, offset),
                None => lost += 1,
            }
        }
        lost += self.sections.lost();
        if database.layers().all(|layer| layer.imports.is_empty()) {
            return (found, lost);
        }
        match self.imports.take().filter(|_| self.damaged.is_none()).map(|imports| imports.sums()) {
            Some(Ok(sums)) => add(|layer| &layer.imports, &sums, 0),
            Some(Err(cut)) => lost += u64::from(cut),
            None => {}
        }
        (found, lost)
    }
}
