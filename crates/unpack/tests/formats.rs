//! `docs/engine/formats.md` says what the table in the code says, and the tests that it names are there.
//!
//! Write the page anew with `SLUICE_WRITE_PAGES=1 cargo test -p sluice-unpack --test all formats::`.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use unpack::formats::{ARCHIVES, DOCUMENTS, Format, STREAMS};

const SECTIONS: [(&str, &[Format]); 3] =
    [("Compressed streams", STREAMS), ("Archives", ARCHIVES), ("Documents", DOCUMENTS)];

/// Between these lines of the page stands what is made from the code.
const BEGIN: &str = "<!-- made from the code -->\n";
const END: &str = "<!-- end -->\n";

fn root(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path)
}

fn tables() -> String {
    let mut page = String::new();
    for (title, formats) in SECTIONS.into_iter().filter(|(_, formats)| !formats.is_empty()) {
        let _ = writeln!(page, "\n## {title}\n");
        page += "| format | supported | not decoded (scanned as is) | input |\n|---|---|---|---|\n";
        for format in formats {
            let cells = [format.name, format.methods, format.not_read, format.reads.name()];
            let _ = writeln!(page, "| {} |", cells.join(" | "));
        }
    }
    page + "\n"
}

#[test]
fn the_page_is_up_to_date() {
    let path = root("docs/engine/formats.md");
    let page = std::fs::read_to_string(&path).expect("the page is there");
    let (before, rest) = page.split_once(BEGIN).expect("the page says where the tables begin");
    let (told, after) = rest.split_once(END).expect("the page says where the tables end");
    let tables = tables();
    if std::env::var_os("SLUICE_WRITE_PAGES").is_some() {
        std::fs::write(&path, [before, BEGIN, &tables, END, after].concat()).expect("the page can be written");
        return;
    }
    assert_eq!(told, tables, "docs/engine/formats.md is out of date: see the head of this file");
}

#[test]
fn every_fuzz_target_is_there_and_has_seeds() {
    for format in SECTIONS.into_iter().flat_map(|(_, formats)| formats) {
        let target = root("fuzz/fuzz_targets").join(format.fuzz).with_extension("rs");
        assert!(target.is_file(), "{}: no {}", format.name, target.display());
        let seeds = std::fs::read_dir(root("fuzz/corpus").join(format.fuzz)).expect("a target has a corpus");
        assert!(seeds.count() >= 5, "{} has few seeds", format.fuzz);
    }
}
