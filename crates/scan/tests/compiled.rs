//! Databases in files, and small ones over large ones.

use std::sync::Arc;

use scan::{Aligned, Builder, Database, Scan, Unfit};
use stream::law::{self, Told};
use stream::{Event, FileType, Fuel, Note, Nothing, Stage, Window};

fn database(files: &[(&str, &str)]) -> Database {
    let mut builder = Builder::new();
    for (name, text) in files {
        builder.add(name, text.as_bytes()).expect("a readable text");
    }
    builder.build()
}

fn names(database: &Database, content: &[u8]) -> Vec<String> {
    let database = Arc::new(database.clone());
    let make = || Scan::new(database.clone(), FileType::Binary, None);
    law::holds_at_every_cut(make, content);
    let names = law::tell(make(), content).into_iter().filter_map(|told| match told {
        Told::Note(Note::Finding(finding)) => Some(finding.name.trim_end_matches(".UNOFFICIAL").to_owned()),
        _ => None,
    });
    names.collect()
}

fn load(bytes: &[u8]) -> Result<Database, Unfit> {
    Database::load(Arc::new(Aligned::new(bytes)))
}

/// `alpha`, `bravo`, and the MD5 of `abc`.
const BODIES: &str = "Alpha:0:*:616c706861\nBravo:0:*:627261766f\n";
const HASHES: &str = "900150983cd24fb0d6963f7d28e17f72:3:Abc\n";

#[test]
fn a_stored_database_has_its_note_and_its_census() {
    let database = database(&[("i.ign2", "Bravo\n"), ("a.ndb", BODIES), ("a.hdb", HASHES), ("v.ndb", "V:13:*:6162\n")]);
    let mut bytes = Vec::new();
    database.store("from here", &mut bytes).expect("memory");
    let loaded = load(&bytes).expect("what was stored");
    assert_eq!(loaded.note(), "from here");
    assert_eq!(loaded.census(), database.census());
    assert_eq!((loaded.census().ignored, loaded.census().refused.len()), (1, 1));
    assert_eq!(names(&loaded, b"bravo alpha"), ["Alpha"]);
    assert_eq!(names(&loaded, b"abc"), ["Abc"]);
    assert_eq!(load(&bytes[..bytes.len() - 64]).err(), Some(Unfit::Incomplete));
}

#[test]
fn a_small_database_lies_over_a_large_one() {
    let base =
        database(&[("official.ndb", "Official:0:*:6f6666696369616c"), ("local.ndb", BODIES), ("local.hdb", HASHES)]);
    let overlay = database(&[("local.ndb", "Alpha:0:*:616c706861\nCharlie:0:*:636861726c6965\n"), ("new.hdb", HASHES)]);
    let both = base.with_overlay(overlay, &["local.ndb", "local.hdb"]);
    assert_eq!(names(&base, b"official bravo alpha charlie"), ["Official", "Bravo", "Alpha"]);
    assert_eq!(names(&both, b"official bravo alpha charlie"), ["Official", "Alpha", "Charlie"]);
    assert_eq!(names(&both, b"abc"), ["Abc"]);
    let gone = base.with_overlay(Builder::new().build(), &["local.hdb"]);
    assert_eq!(names(&gone, b"abc"), [""; 0]);
    assert_eq!(names(&gone, b"bravo"), ["Bravo"]);
}

#[test]
fn a_name_to_ignore_counts_in_both_whichever_has_it() {
    let base = database(&[("i.ign2", "Charlie\n"), ("local.ndb", BODIES)]);
    let overlay = database(&[("j.ign2", "Bravo\n"), ("more.ndb", "Charlie:0:*:636861726c6965\n")]);
    assert_eq!(names(&base.with_overlay(overlay, &[]), b"alpha bravo charlie"), ["Alpha"]);
}

#[test]
fn what_an_overlay_allows_or_takes_back_is_allowed_or_not() {
    let allows = "900150983cd24fb0d6963f7d28e17f72:3:Good\n";
    let allowed = |database: Database| {
        let mut scan = Scan::new(Arc::new(database), FileType::Binary, None);
        let mut window = Window::with_capacity(1);
        scan.step(b"abc", &mut window, &mut Fuel::unlimited());
        while scan.finish(&Nothing, &mut window, &mut Fuel::unlimited()) != Event::End {}
        scan.allowed()
    };
    let base = database(&[("local.fp", allows)]);
    assert!(allowed(base.clone()));
    assert!(!allowed(base.with_overlay(Builder::new().build(), &["local.fp"])));
    assert!(allowed(Builder::new().build().with_overlay(base, &[])));
}
