//! The law over scans: the same findings in the same order whatever the cut, the fuel and the window.

use std::collections::BTreeSet;
use std::sync::Arc;

use proptest::prelude::*;
use scan::{Builder, Database, Scan, View};
use stream::law::{self, Told};
use stream::{Event, FileType, Note, Stage};

fn names(told: &[Told]) -> Vec<(String, u64)> {
    let findings = told.iter().filter_map(|told| match told {
        Told::Note(Note::Finding(finding)) => Some((finding.name.to_string(), finding.offset)),
        _ => None,
    });
    findings.collect()
}

fn database(ndb: &str, ldb: &str) -> Arc<Database> {
    let mut builder = Builder::new();
    builder.add_builtin();
    builder.add_official("test.ndb", ndb.as_bytes()).expect("a readable text");
    builder.add_official("test.ldb", ldb.as_bytes()).expect("a readable text");
    let database = builder.build();
    assert_eq!(database.census().refused, []);
    Arc::new(database)
}

fn hex(text: &str) -> String {
    text.bytes().map(|byte| format!("{byte:02x}")).collect()
}

/// The EICAR test string, not as a whole in this file.
fn eicar() -> Vec<u8> {
    let (_, ndb) = scan::BUILTIN[1];
    let text = String::from_utf8_lossy(ndb);
    let line = text.lines().find(|line| line.starts_with("Eicar")).expect("the signature");
    let digits = line.rsplit(':').next().expect("a body");
    let pairs = digits.as_bytes().chunks(2).map(|pair| String::from_utf8_lossy(pair).into_owned());
    pairs.map(|pair| u8::from_str_radix(&pair, 16).expect("hexadecimal")).collect()
}

#[test]
fn the_test_file_is_found_by_content_and_by_hash_once() {
    let database = Arc::new(Database::with_builtin());
    let make = || Scan::new(database.clone(), FileType::Text, None);
    let told = law::tell(make(), &eicar());
    assert_eq!(names(&told), [("Eicar-Test-Signature".to_owned(), 0)]);
    law::holds_at_every_cut(make, &eicar());
    let mut later = vec![b'\n'; 1024];
    later.extend(eicar());
    assert_eq!(names(&law::tell(make(), &later)), [("Eicar-Test-Signature".to_owned(), 1024)]);
    later.insert(0, b'\n');
    assert_eq!(names(&law::tell(make(), &later)), []);
}

#[test]
fn the_markers_are_found_and_a_negation_waits_for_the_end() {
    let database = Arc::new(Database::with_builtin());
    let make = || Scan::new(database.clone(), FileType::Binary, None);
    let text = [
        "SLUICE-TEST-MARKER-",
        "QVXZKJWY SLUICE-TEST-PAIR-TWO-KJ",
        "WY SLUICE-TEST-PAIR-ONE-QVXZ Sluice-Test-Open-Qvxz",
        "kjwy",
    ]
    .concat();
    let told = names(&law::tell(make(), text.as_bytes()));
    let told: Vec<&str> = told.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(told, ["Sluice.Test.Marker", "Sluice.Test.Pair", "Sluice.Test.Open"]);
    law::holds_at_every_cut(make, text.as_bytes());
    let closed = format!("{text} sluice-test-close-{}", "qvxzkjwy");
    assert_eq!(names(&law::tell(make(), closed.as_bytes())).len(), 2);
}

#[test]
fn the_law_holds_over_every_form_of_signature() {
    let part = hex("partition");
    let ndb = format!(
        "Open:0:*:{a}*{b}\nBounded:0:*:{a}{{2-9}}{b}\nThree:0:*:{a}{{-30}}{b}*{part}\nEnd:0:EOF-40,20:{b}\nAt:0:7,3:{a}\nHtml:3:*:{a}\n",
        a = hex("alpha"),
        b = hex("bravo"),
    );
    let ldb = format!(
        "All;Target:0;0&1;{a};{b}\nTwice;Target:0;0>1;{a}\nNone;Target:0;0=0;{part}\nCounted;Target:0;(0|1)=3,2;{a};{b}\nWord;Target:0;0;{a}::fi\n\
         Sized;Target:0,FileSize:1-90;0;{a}\nHtmlOnly;Target:3;0;{b}\n",
        a = hex("alpha"),
        b = hex("bravo"),
    );
    let database = database(&ndb, &ldb);
    for text in [
        "-------alpha-bravo-partition--------------------------",
        "alpha alpha bravo",
        "bravoalphabravo partitiopartition",
        "ALPHA bravo",
        "",
        "a",
    ] {
        let whole = || Scan::new(database.clone(), FileType::Binary, None);
        let view = || Scan::of_view(database.clone(), View::NoComment);
        for scan in [&whole as &dyn Fn() -> Scan, &view] {
            law::holds_at_every_cut(scan, text.as_bytes());
            law::holds(scan, text.as_bytes());
        }
    }
    let view = Scan::of_view(database, View::NoComment);
    let told = law::tell(view, b"-------alpha-bravo-alpha......................");
    let told: Vec<String> = names(&told).into_iter().map(|(name, _)| name).collect();
    for name in ["Html", "HtmlOnly", "Word", "Sized", "None", "End"] {
        assert!(told.iter().any(|told| told == name), "{name} in {told:?}");
    }
}

/// Events of a stream, in pieces of a size.
fn in_pieces(database: &Arc<Database>, content: &[u8], size: usize) -> Vec<(String, u64)> {
    let mut scan = Scan::new(database.clone(), FileType::Binary, None);
    let (mut told, mut window) = (Vec::new(), stream::Window::with_capacity(16));
    for mut piece in content.chunks(size) {
        while !piece.is_empty() {
            let step = scan.step(piece, &mut window, &mut stream::Fuel::new(u64::MAX));
            piece = &piece[step.taken..];
            told.extend(finding(step.event));
        }
    }
    loop {
        match scan.finish(&stream::Nothing, &mut window, &mut stream::Fuel::new(u64::MAX)) {
            Event::End => return told,
            event => told.extend(finding(event)),
        }
    }
}

fn finding(event: Event) -> Option<(String, u64)> {
    match event {
        Event::Note(Note::Finding(finding)) => Some((finding.name.to_string(), finding.offset)),
        _ => None,
    }
}

#[test]
fn bodies_of_zeros_in_runs_of_zeros_are_found_and_exceed_no_limit() {
    let zeros = |count: usize| "00".repeat(count);
    let ndb = format!(
        "Follows:0:*:{a}{{2-10}}4d5a9000\nFar:0:*:{a}{{5-600}}{b}{{2-200}}{b}{{-30}}deadbeef\nNever:0:*:{a}{{5-600}}{b}{{2-200}}cafe\n\
         End:0:EOF-131,20:{b}{{2-10}}000000{{1-5}}0102\nLate:0:EOF-600,90:{b}{{-40}}000000{{1-5}}0102\nAll:0:*:{a}{{2-10}}{a}*{b}\n\
         Wide:0:*:{b}(00|0000|000000){{3-90}}0102\n",
        a = zeros(10),
        b = zeros(6),
    );
    let ldb = format!("Many;Target:0;0>70000;{a}\nFew;Target:0;0<2;{a}\n", a = zeros(9));
    let database = database(&ndb, &ldb);
    let mut stream = vec![b'.'; 700];
    stream.resize(200_000, 0);
    stream.extend(b"\x4d\x5a\x90\0");
    stream.resize(260_000, 0);
    stream.extend(b"\xde\xad\xbe\xef");
    stream.resize(300_000, 0);
    stream.extend(b"\x01\x02");
    stream.resize(stream.len() + 100, b'.');
    let told = in_pieces(&database, &stream, 4096);
    let names: BTreeSet<&str> = told.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, BTreeSet::from(["All", "End", "Far", "Follows", "Many", "Wide"]));
    for size in [100, 1000, 30_000, 400_000] {
        let mut other = in_pieces(&database, &stream, size);
        let mut told = told.clone();
        other.sort();
        told.sort();
        assert_eq!(other, told, "pieces of {size}");
    }
}

#[test]
fn bodies_of_long_runs_of_zeros_exceed_no_limit() {
    let body = |number: usize| format!("Z{number}:0:*:{}{{2-9}}4d5a{number:02x}\n", "00".repeat(300 + number));
    let ndb: String = (0..40).map(body).collect();
    let database = database(&ndb, "");
    let mut stream = vec![b'.'; 100];
    stream.resize(stream.len() + 50_000, 0);
    stream.extend(b"..\x4d\x5a\x07");
    stream.resize(stream.len() + 305, 0);
    stream.extend(b"..\x4d\x5a\x08");
    for size in [100, 4096, 100_000] {
        let told: Vec<String> = in_pieces(&database, &stream, size).into_iter().map(|(name, _)| name).collect();
        assert_eq!(told, ["Z7"], "pieces of {size}");
    }
}

#[test]
fn gaps_are_measured_from_every_end_that_may_matter() {
    let (a, b, c) = (hex("alpha"), hex("bravo"), hex("charl"));
    let ndb = format!(
        "Older:0:*:{a}{{5-6}}{b}\nOpen:0:*:{a}{{7-}}{b}\nThird:0:*:{a}{{5-6}}{b}{{-3}}{c}\nEnd:0:EOF-22,2:{a}{{-9}}{b}\n"
    );
    let database = database(&ndb, "");
    let make = || Scan::new(database.clone(), FileType::Binary, None);
    for (text, wanted) in [
        ("alphaalphabravo.......", "Older End"),
        ("alphaalphabravo...........", "Older End"),
        ("alphaalphaalphabravo", "Older Open"),
        ("alpha....bravo", ""),
        ("alpha.......bravo", "Open"),
        ("alphaalphabravo...charl", "Older Third"),
        ("alphaalphabravo....charl", "Older"),
        ("alphaalphabravobravocharl", "Older Open Third End"),
    ] {
        let told: BTreeSet<String> =
            names(&law::tell(make(), text.as_bytes())).into_iter().map(|(name, _)| name).collect();
        let wanted: BTreeSet<String> = wanted.split(' ').filter(|name| !name.is_empty()).map(str::to_owned).collect();
        assert_eq!(told, wanted, "{text}");
        law::holds_at_every_cut(make, text.as_bytes());
    }
}

#[test]
fn bodies_placed_by_an_executable_are_found_with_the_head_cut() {
    // The first bytes of a PE file: one section at 0x400, 0x1000 in memory, the entry point 0x10 into it.
    let mut file = vec![0u8; 0x600];
    file[..2].copy_from_slice(b"MZ");
    file[0x3c] = 0x80;
    file[0x80..0x84].copy_from_slice(b"PE\0\0");
    file[0x86] = 1;
    file[0x94] = 0xe0;
    file[0x98 + 16..0x98 + 20].copy_from_slice(&0x1010u32.to_le_bytes());
    let section = 0x98 + 0xe0;
    for (at, value) in [(8, 0x200u32), (12, 0x1000), (16, 0x200), (20, 0x400)] {
        file[section + at..section + at + 4].copy_from_slice(&value.to_le_bytes());
    }
    file[0x410..0x415].copy_from_slice(b"alpha");
    let a = hex("alpha");
    let ndb = format!(
        "Entry:1:EP+0:{a}\nWrong:1:EP+1:{a}\nSection:1:S0+16:{a}\nLast:1:SL+10,9:{a}\nInside:1:SE0:{a}\nOther:1:SE1:{a}\n"
    );
    let database = database(&ndb, "");
    let make = || Scan::new(database.clone(), FileType::Pe, None);
    let told: Vec<String> = names(&law::tell(make(), &file)).into_iter().map(|(name, _)| name).collect();
    assert_eq!(told, ["Entry", "Section", "Last", "Inside"]);
    law::holds(make, &file);
    file.resize(9000, 0);
    law::holds(make, &file);
    assert_eq!(names(&law::tell(make(), &file)).len(), 4);
}

#[test]
fn an_allow_list_is_asked_at_the_end() {
    let mut builder = Builder::new();
    builder.add("a.hdb", b"900150983cd24fb0d6963f7d28e17f72:3:Abc").expect("a hash");
    builder
        .add("a.sfp", b"ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad:*:Known")
        .expect("an allow list");
    let database = Arc::new(builder.build());
    let mut scan = Scan::new(database.clone(), FileType::Binary, None);
    let told = law::tell(Scan::new(database.clone(), FileType::Binary, None), b"abc");
    assert_eq!(names(&told), [("Abc.UNOFFICIAL".to_owned(), 0)]);
    let mut window = stream::Window::with_capacity(1);
    let mut fuel = stream::Fuel::unlimited();
    use stream::Stage as _;
    scan.step(b"abc", &mut window, &mut fuel);
    assert!(!scan.allowed());
    while scan.finish(&stream::Nothing, &mut window, &mut fuel) != stream::Event::End {}
    assert!(scan.allowed());
    let mut other = Scan::new(database, FileType::Binary, None);
    while other.finish(&stream::Nothing, &mut window, &mut fuel) != stream::Event::End {}
    assert!(!other.allowed());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn random_streams_over_every_form_obey(letters in proptest::collection::vec(0usize..5, 0..300), choice: u8) {
        let mut data = vec![choice];
        data.extend(letters.iter().map(|&letter| b"ab\nBc"[letter]));
        scan::fuzz_scan(&data);
    }
}
