//! Loading databases.

use std::collections::HashSet;
use std::ops::Range;
use std::sync::Arc;

use crate::census::{Census, Class, Refused};
use crate::hashes::{ANY_SIZE, HashEntry, HashTable};
use crate::jobs::{Job, in_turn, longest_first};
use crate::links::digests::Digests;
use crate::signed::catalogue;
use crate::signed::rule::Rule;
use crate::table::content::TableBuilder;
use crate::table::database::Database;
use crate::table::magic::MagicBuilder;
use crate::table::metadata::Metadata;
use crate::table::names::{NameList, UNOFFICIAL};
use crate::table::passwords::Password;
use crate::table::sections::SectionTable;
use crate::target::TARGETS;
use crate::{links, yara};

/// Signatures of potentially unwanted applications to load: those of the files whose extension ends in `u`. A category
/// is the second word of a name that begins with `PUA.`; such names in other files are like any other, as for clamscan.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Unwanted {
    /// None of them.
    #[default]
    None,
    /// All of them.
    All,
    /// Signatures of these categories.
    Only(Vec<String>),
    /// All but those of these categories.
    Except(Vec<String>),
}

impl Unwanted {
    pub(crate) fn wants(&self, name: &str, in_file: bool) -> bool {
        if !in_file {
            return true;
        }
        let category = name.strip_prefix("PUA.").map(|rest| rest.split('.').next().unwrap_or_default());
        let listed = |all: &[String]| all.iter().any(|one| Some(one.as_str()) == category);
        match self {
            Unwanted::None => false,
            Unwanted::All => true,
            Unwanted::Only(all) => listed(all),
            Unwanted::Except(all) => !listed(all),
        }
    }
}

/// Collects signatures from text files and containers. Lists of names to ignore that pin the MD5 of an entry must come
/// before the files that they speak of; the order does not matter otherwise.
#[derive(Debug, Default)]
pub struct Builder {
    pub(crate) tables: [TableBuilder; TARGETS],
    pub(crate) hashes: Vec<HashEntry>,
    pub(crate) sections: Vec<HashEntry>,
    pub(crate) imports: Vec<HashEntry>,
    pub(crate) allowed: Vec<HashEntry>,
    pub(crate) names: NameList,
    /// The files that were loaded, each with the numbers of the names that it has.
    pub(crate) files: Vec<(Box<str>, Range<u32>)>,
    pub(crate) metadata: Vec<Metadata>,
    pub(crate) passwords: Vec<Password>,
    pub(crate) magic: MagicBuilder,
    pub(crate) links: Vec<links::entry::Entry>,
    pub(crate) addresses: Vec<HashEntry>,
    pub(crate) addresses_allowed: Vec<HashEntry>,
    pub(crate) yara: yara::TableBuilder,
    pub(crate) certificates: Vec<Rule>,
    /// Signed lists of digests of programs, each with the number of its name.
    pub(crate) catalogues: Vec<(u32, Vec<u8>)>,
    date: Option<i64>,
    pub(crate) ignored: HashSet<Box<str>>,
    pub(crate) ignored_lines: HashSet<(Box<str>, [u8; 16])>,
    /// For each signature what the census says of it, so that ignored ones can be taken back.
    pub(crate) classes: Vec<Class>,
    pub(crate) census: Census,
    pub(crate) unwanted: Unwanted,
}

impl Builder {
    /// Nothing loaded.
    pub fn new() -> Builder {
        Builder::default()
    }

    /// Sets the signatures of potentially unwanted applications to load; none by default.
    pub fn potentially_unwanted(mut self, wanted: Unwanted) -> Builder {
        self.unwanted = wanted;
        self
    }

    /// Says what time it is, in seconds since 1970: a catalogue whose signature no countersignature dates counts only while
    /// the certificate of who signed is valid then. Without a time it does not count.
    pub fn dated(mut self, now: i64) -> Builder {
        self.date = Some(now);
        self
    }

    /// Compiles what was loaded.
    pub fn build(self) -> Database {
        self.build_with(&in_turn)
    }

    /// The same in pieces that may be run at once: `run` runs all of these jobs before it returns, each once, in whatever
    /// order; the longest come first. What is compiled does not depend on it.
    pub fn build_with(self, run: &dyn Fn(Vec<Job<'_>>)) -> Database {
        let database = self.compile(run);
        if cfg!(feature = "through-file") {
            Database { date: database.date, ..database.stored_and_loaded() }
        } else {
            database
        }
    }

    fn compile(self, run: &dyn Fn(Vec<Job<'_>>)) -> Database {
        let Builder { tables, hashes, sections, imports, allowed, metadata, yara, names, files, .. } = self;
        let Builder { passwords, magic, links, addresses, addresses_allowed, ignored, mut classes, mut census, .. } =
            self;
        let Builder { certificates, catalogues, date, .. } = self;
        let is_ignored = |number: u32| {
            !ignored.is_empty() && {
                let name = names.get(number);
                ignored.contains(name.strip_suffix(UNOFFICIAL).unwrap_or(name))
            }
        };
        let rules: Vec<&Rule> = certificates.iter().filter(|rule| rule.trusts && !is_ignored(rule.name)).collect();
        let (catalogued, refused) = catalogued(catalogues, &rules, date);
        for (name, reason) in refused {
            classes[name as usize] = Class::Refused;
            census.refused.push(Refused { name: names.get(name).into(), reason: reason.into() });
        }
        for (class, number) in classes.iter().zip(0u32..) {
            let class = if is_ignored(number) { Class::Ignored } else { *class };
            class.count(&mut census);
        }
        let order = names.sorted(files.iter().map(|(_, names)| names.clone()), run);
        let mut places = vec![0; order.len()];
        order.iter().zip(0u32..).for_each(|(&number, place)| places[number as usize] = place);
        let place = |number: u32| places[number as usize];
        // The number that a name has from here on, unless it is ignored.
        let renamed = |number: u32| (!is_ignored(number)).then(|| place(number));
        let keep = |entries: Vec<HashEntry>| {
            let entries =
                entries.into_iter().filter_map(|entry| Some(HashEntry { name: renamed(entry.name)?, ..entry }));
            entries.collect::<Vec<_>>()
        };
        let mut built = [const { None }; TARGETS];
        let (mut all_hashes, mut all_sections, mut all_names) = Default::default();
        let (renamed, keep, order, list) = (&renamed, &keep, &order, &names);
        let mut jobs: Vec<(usize, Job<'_>)> = Vec::new();
        for (table, slot) in tables.into_iter().zip(&mut built).filter(|(table, _)| !table.is_empty()) {
            jobs.push((COST_OF_LINK * table.links(), Box::new(|| *slot = Some(Arc::new(table.build(renamed))))));
        }
        jobs.push((hashes.len(), Box::new(|| all_hashes = HashTable::new(keep(hashes)))));
        jobs.push((sections.len(), Box::new(|| all_sections = SectionTable::new(keep(sections)))));
        jobs.push((order.len(), Box::new(|| all_names = list.finish(order))));
        run(longest_first(jobs));
        Database {
            tables: built,
            hashes: all_hashes,
            sections: all_sections,
            imports: HashTable::new(keep(imports)),
            allowed: HashTable::new(keep(allowed)),
            certificates: certificates
                .into_iter()
                .filter_map(|one| renamed(one.name).map(|name| one.named(name)))
                .collect(),
            catalogued: HashTable::new(keep(catalogued)),
            date,
            metadata: metadata.into_iter().filter_map(|one| renamed(one.name).map(|name| one.named(name))).collect(),
            passwords: passwords.into_iter().filter_map(|one| renamed(one.name).map(|name| one.named(name))).collect(),
            links: links.into_iter().filter_map(|one| renamed(one.name).map(|name| one.named(name))).collect(),
            addresses: Digests::new(keep(addresses), keep(addresses_allowed)),
            magic: magic.build(renamed).map(Arc::new),
            yara: (!yara.is_empty()).then(|| Arc::new(yara.build(place, is_ignored))),
            census: Arc::new(census),
            names: all_names,
            ignored: Arc::new(ignored),
            files: files.into(),
            note: Arc::default(),
            hidden: Arc::default(),
            above: None,
        }
    }
}

/// How much longer it takes to find a window for a part than to sort a digest.
const COST_OF_LINK: usize = 16;

/// The digests that catalogues list, as far as rules vouch for them; and the names of the others, with the reasons.
fn catalogued(
    catalogues: Vec<(u32, Vec<u8>)>,
    rules: &[&Rule],
    date: Option<i64>,
) -> (Vec<HashEntry>, Vec<(u32, &'static str)>) {
    let (mut entries, mut refused) = (Vec::new(), Vec::new());
    for (name, bytes) in catalogues {
        match catalogue::listed(&bytes, rules, date) {
            Ok(digests) => {
                entries.extend(digests.into_iter().map(|digest| HashEntry { digest, size: ANY_SIZE, name }));
            }
            Err(reason) => refused.push((name, reason)),
        }
    }
    (entries, refused)
}

#[cfg(test)]
mod tests {
    use md5::{Digest, Md5};

    use super::*;
    use crate::source::error::Error;

    #[test]
    fn the_built_in_files_are_read_whole() {
        let census = Database::with_builtin().census;
        assert_eq!((census.exact, census.at_end, census.refused.len()), (3, 4, 0));
    }

    #[test]
    fn a_bad_line_is_told_with_its_place_and_reason() {
        let mut builder = Builder::new();
        let error = builder.add("x.ndb", b"# note\n\nA:0:*:6162\r\nB:0:*:61g2\n");
        assert_eq!(error.map_err(|error| error.to_string()), Err("x.ndb:4: 'g' is not a hexadecimal digit".to_owned()));
        let error = builder.add("x.txt", b"");
        assert_eq!(error, Err(Error::Kind { file: "x.txt".to_owned() }));
    }

    #[test]
    fn however_jobs_are_run_the_same_is_compiled() {
        let builder = || {
            let mut builder = Builder::new();
            builder.add_builtin();
            builder
                .add("a.hdb", b"900150983cd24fb0d6963f7d28e17f72:3:B\n900150983cd24fb0d6963f7d28e17f73:3:A")
                .expect("it");
            builder.add("b.mdb", b"512:900150983cd24fb0d6963f7d28e17f74:C").expect("it");
            builder.add("c.ndb", b"D:1:*:4d5a90000300\nE:3:*:6162636465\nA:0:*:3031323334??35").expect("it");
            builder
        };
        let stored = |database: Database| {
            let mut bytes = Vec::new();
            database.store("", &mut bytes).expect("memory takes it");
            bytes
        };
        let backwards = builder().build_with(&|jobs| jobs.into_iter().rev().for_each(|job| job()));
        let at_once = builder().build_with(&|jobs| {
            std::thread::scope(|scope| jobs.into_iter().for_each(|job| drop(scope.spawn(job))));
        });
        let expected = stored(builder().build());
        assert!(stored(backwards) == expected && stored(at_once) == expected);
    }

    #[test]
    fn what_is_left_out_is_in_the_census() {
        let mut builder = Builder::new();
        builder.add("i.ign2", b"Gone\nPinned:11839b02d0ba0a1a3a3c33f0cd3ae77f\n").expect("a list");
        let ndb = b"Gone:0:*:6162\nPUA.Thing:0:*:6162\nNew:0:*:6162:999\nVersion:13:*:6162\nShort:0:*:61??62\nKept:0:*:6162\n";
        let loaded = builder.add("x.ndb", ndb).expect("a database");
        assert_eq!((loaded.bodies, loaded.left_out), (3, 3));
        builder.add("x.ndu", b"Unwanted:0:*:6162\nPUA.Thing.Else:0:*:6162").expect("a database");
        let database = builder.build();
        let census = database.census();
        assert_eq!((census.exact, census.ignored, census.other_engine, census.unwanted), (2, 1, 1, 2));
        let refused: Vec<&str> = census.refused.iter().map(|refused| &*refused.name).collect();
        assert_eq!(refused, ["Version.UNOFFICIAL", "Short.UNOFFICIAL"]);
    }

    #[test]
    fn a_name_is_ignored_by_either_kind_of_line_in_either_kind_of_list() {
        for list in ["i.ign", "i.ign2"] {
            for text in ["Some", "old.ndb:7:Some", "Some.UNOFFICIAL"] {
                let mut builder = Builder::new();
                builder.add(list, text.as_bytes()).expect("a list");
                builder.add("x.ndb", b"Some:0:*:6162").expect("a database");
                assert_eq!(builder.build().census().ignored, 1, "{text} in {list}");
            }
            for text in ["old.ndb:7:", "a:b:c:d", "Some:12"] {
                assert!(Builder::new().add(list, text.as_bytes()).is_err(), "{text} in {list}");
            }
        }
    }

    #[test]
    fn a_pinned_name_is_ignored_only_while_its_line_is_the_same() {
        let line = "Pinned:0:*:6162";
        let pin = text::hex::encode(&Md5::digest(line));
        for (text, ignored) in [(line, 1), ("Pinned:0:*:6163", 0)] {
            let mut builder = Builder::new();
            builder.add("i.ign2", format!("Pinned:{pin}").as_bytes()).expect("a list");
            builder.add("x.ndb", text.as_bytes()).expect("a database");
            assert_eq!(builder.build().census().ignored, ignored);
        }
    }
}
