//! Behaviour at the bounds: a finding, and no more memory.

use std::path::Path;

use stream::law::{Told, content};
use stream::{Event, FileType, Finding, Fuel, Limits, Note, Nothing, Window};

/// Events of the reader of `seed` under `limits`.
fn tell(seed: &str, file_type: FileType, limits: &Limits) -> Vec<Told> {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus");
    let bytes = std::fs::read(corpus.join(format!("unpack_{seed}"))).expect("the seed is there");
    let mut stage = unpack::reader(file_type, limits, &unpack::Passwords::default()).expect("there is a reader");
    let mut output = Window::with_capacity(8192);
    let (mut input, mut told) = (&bytes[1..], Vec::new());
    loop {
        let mut fuel = Fuel::unlimited();
        output.clear();
        let (taken, event) = match input {
            [] => (0, stage.finish(&Nothing, &mut output, &mut fuel)),
            _ => {
                let step = stage.step(input, &mut output, &mut fuel);
                (step.taken, step.event)
            }
        };
        match event {
            Event::Verbatim => told.push(Told::Content(input[..taken].to_vec())),
            Event::Wrote => told.push(Told::Content(output.filled().to_vec())),
            Event::Open(object) => told.push(Told::Open(object)),
            Event::Note(note) => told.push(Told::Note(note)),
            Event::End => return told,
            _ => {}
        }
        input = &input[taken..];
    }
}

fn names(told: &[Told]) -> Vec<String> {
    let names = told.iter().filter_map(|told| match told {
        Told::Note(Note::Finding(Finding { name, .. })) => Some(name.to_string()),
        _ => None,
    });
    names.collect()
}

#[test]
fn a_dictionary_that_is_too_small_ends_the_reading_where_it_is_missed() {
    let limits = Limits { codec_bytes_max: 4096, ..Limits::default() };
    let told = tell("xz/far.xz", FileType::Xz, &limits);
    assert_eq!(names(&told), ["Heuristics.Limits.Exceeded.Codec"]);
    // What could be decoded, and then the rest as it stands.
    let objects = told.split(|told| matches!(told, Told::Open(_)));
    let lengths: Vec<usize> = objects.skip(1).map(|object| content(object).len()).collect();
    assert_eq!(lengths, [5000, 36]);
    let limits = Limits { codec_bytes_max: 5000, ..Limits::default() };
    assert_eq!(content(&tell("xz/far.xz", FileType::Xz, &limits)).len(), 10_000);
}

#[test]
fn a_bzip2_block_that_is_too_large_is_not_read() {
    // A stream may declare blocks of 900,000 bytes: what counts is how long they are.
    let enough = Limits { codec_bytes_max: 70_000, ..Limits::default() };
    assert_eq!(content(&tell("bzip2/plain.bz2", FileType::Bzip2, &enough)).len(), 405);
    let little = Limits { codec_bytes_max: 61_500, ..Limits::default() };
    let told = tell("bzip2/plain.bz2", FileType::Bzip2, &little);
    assert_eq!(names(&told), ["Heuristics.Limits.Exceeded.Codec"]);
}

#[test]
fn members_beyond_those_remembered_are_told_but_not_compared() {
    let limits = Limits { directory_entries_max: 2, ..Limits::default() };
    let told = tell("zip/plain.zip", FileType::Zip, &limits);
    assert_eq!(names(&told), ["Heuristics.Limits.Exceeded.ZipDirectory"]);
    assert_eq!(told.iter().filter(|told| matches!(told, Told::Open(_))).count(), 4);
}

#[test]
fn a_sparse_member_of_too_many_regions_is_told_as_it_is_stored() {
    for (seed, stored) in [("tar/sparse-gnu.tar", 1836), ("tar/sparse-pax-1.0.tar", 512 + 812)] {
        let limits = Limits { directory_entries_max: 1, ..Limits::default() };
        let told = tell(seed, FileType::Tar, &limits);
        assert_eq!(names(&told), ["Heuristics.Limits.Exceeded.TarSparse"], "{seed}");
        assert_eq!(content(&told).len(), stored + b"after".len(), "{seed}");
    }
}

#[test]
fn names_are_cut() {
    let limits = Limits { name_bytes_max: 3, ..Limits::default() };
    for (seed, file_type) in [
        ("gzip/plain.gz", FileType::Gzip),
        ("zip/plain.zip", FileType::Zip),
        ("tar/pax.tar", FileType::Tar),
        ("tar/gnu.tar", FileType::Tar),
    ] {
        for told in tell(seed, file_type, &limits) {
            let Told::Open(object) = told else {
                continue;
            };
            let name = object.name.expect("all of these have names");
            assert!(name.len() <= 3, "{seed}: {name}");
        }
    }
}
