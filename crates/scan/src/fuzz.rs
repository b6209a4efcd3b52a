//! Fuzz bodies.

use std::sync::{Arc, LazyLock};

use pattern::flat::{Aligned, reseal};
use stream::{Event, FileType, Fuel, Note, Nothing, Stage, Window};

use crate::{Builder, Database, Links, Normaliser, Scan, View};

/// Fuzz body: the first byte names a kind of database, the text up to a NUL is one, the rest is scanned with it.
pub fn fuzz_database(data: &[u8]) {
    const NAMES: [&str; 19] = [
        "a.hdb", "a.hsb", "a.ndb", "a.ldb", "a.fp", "a.ign", "a.ign2", "a.db", "a.mdb", "a.imp", "a.cdb", "a.pdb",
        "a.yar", "a.cbc", "a.ldu", "a.msb", "a.pwdb", "a.ftm", "a.wdb",
    ];
    let Some((&kind, rest)) = data.split_first() else {
        return;
    };
    let (text, stream) = match rest.iter().position(|&byte| byte == 0) {
        Some(end) => (&rest[..end], &rest[end + 1..]),
        None => (rest, rest),
    };
    let mut builder = Builder::new();
    let _ = builder.add(NAMES[usize::from(kind) % NAMES.len()], text);
    let database = builder.build();
    let file_type = database.recognise(stream, FileType::Binary).unwrap_or(FileType::Binary);
    assert_eq!(database.passwords().count(), database.stored_and_loaded().passwords().count());
    check(&Arc::new(database), file_type, stream, kind);
}

/// Fuzz body: the first byte names a kind of container, the rest is one. It is read as the body of an
/// unsigned one, too.
pub fn fuzz_container(data: &[u8]) {
    let Some((&kind, bytes)) = data.split_first() else {
        return;
    };
    let _ = Builder::new().add(["a.cvd", "a.cld", "a.cud"][usize::from(kind) % 3], bytes);
    let header = format!("{:<512}", "ClamAV-VDB:now:1:1:90:X:X:fuzz:0");
    let _ = Builder::new().add("a.cud", &[header.as_bytes(), bytes].concat());
}

const TYPES: [FileType; 5] = [FileType::Binary, FileType::Pe, FileType::Elf, FileType::Html, FileType::Mail];

/// Fuzz body: scans `data` with a fixed database of every form, as a type and with cuts taken from it.
pub fn fuzz_scan(data: &[u8]) {
    let Some((&choice, stream)) = data.split_first() else {
        return;
    };
    let database = Arc::new(every_form());
    check(&database, TYPES[usize::from(choice) % TYPES.len()], stream, choice >> 3);
}

/// Fuzz body: changes a stored database, four bytes a change (where, and which bits), and loads it. Bit 0 of the first
/// byte says whether the digest is made anew: if not, every change must be refused; if so, what is loaded is scanned
/// with, and may tell anything.
///
/// # Panics
/// If a change is not noticed by its digest.
pub fn fuzz_compiled(data: &[u8]) {
    static STORED: LazyLock<Vec<u8>> = LazyLock::new(|| {
        let mut bytes = Vec::new();
        every_form().store("a note", &mut bytes).expect("memory takes it");
        bytes
    });
    let Some((&choice, changes)) = data.split_first() else {
        return;
    };
    let mut bytes = STORED.clone();
    for change in changes.chunks_exact(4) {
        let at = u32::from_le_bytes([change[0], change[1], change[2], 0]) as usize % bytes.len();
        bytes[at] ^= change[3];
    }
    if choice & 1 == 1 {
        reseal(&mut bytes);
    }
    let loaded = Database::load(Arc::new(Aligned::new(&bytes)));
    assert!(loaded.is_err() || choice & 1 == 1 || bytes == *STORED, "a change was not noticed");
    if let Ok(database) = loaded {
        let stream = b"\x7fELF aababaabb 61626364 abAbbcd Ab cab \0a\0b\0 ababab aab b abbc";
        tell(Scan::new(Arc::new(database), TYPES[usize::from(choice >> 1) % TYPES.len()], None), stream, 40);
    }
}

/// Fuzz body: the first byte names a view and a cut, the rest is what it is made of.
pub fn fuzz_normaliser(data: &[u8]) {
    let Some((&choice, stream)) = data.split_first() else {
        return;
    };
    const VIEWS: [View; 5] = [View::Text, View::NoComment, View::NoTags, View::Scripts, View::Lines];
    let view = VIEWS[usize::from(choice % 5)];
    let whole = written(Normaliser::new(view), stream, stream.len().max(1));
    assert_eq!(whole, written(Normaliser::new(view), stream, usize::from(choice >> 2) + 1));
    assert!(whole.len() <= 8 * stream.len() + 32, "{} of {}", whole.len(), stream.len());
}

/// Fuzz body: the first byte says how a page is cut whose links are compared.
///
/// # Panics
/// If it matters how it is cut.
pub fn fuzz_links(data: &[u8]) {
    let Some((&cut, page)) = data.split_first() else {
        return;
    };
    static LISTS: LazyLock<Arc<Database>> = LazyLock::new(|| {
        let mut builder = Builder::new();
        builder.add("a.pdb", b"H:b.com\nR:.+\\.c\\.net:.+\\.d\\.org\n").expect("a list");
        builder.add("a.wdb", b"M:c.net:b.com\nX:.+:.+a\\.b\\.com\n").expect("a list");
        Arc::new(builder.build())
    });
    let make = || Links::new(LISTS.clone()).expect("there are hosts");
    assert_eq!(tell(make(), page, page.len().max(1)), tell(make(), page, usize::from(cut) + 1));
}

fn written(mut normaliser: Normaliser, stream: &[u8], piece: usize) -> Vec<u8> {
    let mut window = Window::with_capacity(64);
    let mut out = Vec::new();
    for segment in stream.chunks(piece) {
        let mut rest = segment;
        while !rest.is_empty() {
            rest = &rest[normaliser.step(rest, &mut window, &mut Fuel::unlimited()).taken..];
            out.extend_from_slice(window.filled());
            window.clear();
        }
    }
    while normaliser.finish(&Nothing, &mut window, &mut Fuel::unlimited()) != Event::End {
        out.extend_from_slice(window.filled());
        window.clear();
    }
    out
}

/// Scanned whole and in pieces, the same must be told.
fn check(database: &Arc<Database>, file_type: FileType, stream: &[u8], cut: u8) {
    let whole = tell(Scan::new(database.clone(), file_type, None), stream, stream.len().max(1));
    let pieces = tell(Scan::new(database.clone(), file_type, None), stream, usize::from(cut) + 1);
    assert_eq!(whole, pieces);
    let stored = Arc::new(database.stored_and_loaded());
    assert_eq!(tell(Scan::new(stored, file_type, None), stream, stream.len().max(1)), whole);
}

fn tell(mut scan: impl Stage, stream: &[u8], piece: usize) -> Vec<(String, u64)> {
    let mut window = Window::with_capacity(1);
    let mut told = Vec::new();
    for segment in stream.chunks(piece) {
        let mut rest = segment;
        while !rest.is_empty() {
            let step = scan.step(rest, &mut window, &mut Fuel::unlimited());
            rest = &rest[step.taken..];
            note(step.event, &mut told);
        }
    }
    loop {
        match scan.finish(&Nothing, &mut window, &mut Fuel::unlimited()) {
            Event::End => return told,
            event => note(event, &mut told),
        }
    }
}

fn note(event: Event, told: &mut Vec<(String, u64)>) {
    if let Event::Note(Note::Finding(finding)) = event {
        told.push((finding.name.into_owned(), finding.offset));
    }
}

/// A database with every supported form, over few letters so that little data matches much.
fn every_form() -> Database {
    let mut builder = Builder::new();
    let ndb = "P:0:*:6161626261616262\nG:0:*:616162*626261\nB:0:*:6162{2-9}6263\nE:0:EOF-6,3:6162\nF:0:EOF-20,20:6162{-3}6261\n\
        A:0:3,4:61??62\nN:0:*:6162!(6161|6262)6?62\nO:0:*:6162(61|6262|{2}63)62\nW:0:*:(B)6161(W)62(L)\nX:1:EP+0,9:6162\n\
        S:1:S0+0,99:6162\nV:1:VI:6100*6200\nH:3:*:4162\nK:0:*:6261[1-3]63";
    let ldb = "L;Target:0;0&1;6161;6262\nM;Target:0;(0|1)>3,2;6162;6261\nQ;Target:0;0&1=0;6162;6363\n\
        R;Target:0,FileSize:5-9;0;6162\nT;Target:0;0|1;6162::iwa;626161::f\nU;Target:0;0=0;636363";
    builder.add("f.ndb", ndb.as_bytes()).expect("a readable text");
    builder.add("f.ldb", ldb.as_bytes()).expect("a readable text");
    let yar = "import \"pe\" rule a { condition: pe.imphash() != \"\" or pe.exports(\"a\") or pe.imports(\"a\", \"b\") or \
        pe.version_info[\"a\"] contains \"b\" or pe.sections[0].name == \"a\" or filename matches /a/ }";
    builder.add("f.yar", yar.as_bytes()).expect("a readable text");
    builder.add("f.pwdb", b"a;Engine:1-255;0;b").expect("a readable text");
    builder.add("f.ftm", b"0:0:6162:a:CL_TYPE_ANY:CL_TYPE_PDF\n1:*:626362:a:CL_TYPE_ANY:CL_TYPE_GIF").expect("magic");
    builder.build()
}

/// A rule that trusts whoever signed the seeds of [`fuzz_program`].
const TRUSTED: &str = "Trusted;1;d602921834ef2621587b72fa0060e05c02bfd989;;c13eabe475fc66eadff083583f11a5a9cda198\
     f0fec858a090a7c5fd544bc7657d0615dc638ccd262612336ea0da6afa916158339ff32f62b746311c9af44c79\
     599dac9523f0dc9c9cbc50365265012679140c416444c877b7770eca17e148af813b4283af31955a959ce983f5\
     27948b3183275f0ab56586d68d033cb7665b61;010001;1;1;1;0;";

/// Fuzz body: the input is the signature of a small program, and a catalogue. Whether it is trusted does not depend on how it
/// is cut.
pub fn fuzz_program(data: &[u8]) {
    static DATABASE: LazyLock<Arc<Database>> = LazyLock::new(|| {
        let mut builder = Builder::new().dated(1_800_000_000);
        let rules = format!("{TRUSTED}\n{}", TRUSTED.replacen("Trusted;1;d6", "Told;0;d7", 1));
        builder.add("a.crb", rules.as_bytes()).expect("rules");
        Arc::new(builder.build())
    });
    let mut builder = Builder::new().dated(1_800_000_000);
    let added = builder.add("a.crb", TRUSTED.as_bytes()).and_then(|_| builder.add("a.cat", data));
    added.expect("a rule and a file");
    let listed = builder.build();
    assert_eq!(listed.census().allowed + listed.census().refused.len() as u64, 1);
    let file = [&program(data.len() as u32), data].concat();
    let outcomes = [usize::MAX, 1 + data.len() / 3, 61].map(|piece| {
        let mut scan = Scan::new(DATABASE.clone(), FileType::Pe, None);
        let (mut window, mut fuel) = (Window::with_capacity(1), Fuel::unlimited());
        for piece in file.chunks(piece) {
            scan.step(piece, &mut window, &mut fuel);
        }
        while scan.finish(&Nothing, &mut window, &mut fuel) != Event::End {}
        scan.allowed()
    });
    assert!(outcomes.windows(2).all(|pair| pair[0] == pair[1]), "{outcomes:?}");
}

/// The head of a program without sections, which says that its signature is behind it, and how long.
fn program(signature_bytes: u32) -> [u8; 512] {
    let mut head = [0; 512];
    let mut put = |at: usize, bytes: &[u8]| head[at..at + bytes.len()].copy_from_slice(bytes);
    for (at, bytes) in
        [(0, &b"MZ"[..]), (0x3c, &[0x40]), (0x40, b"PE"), (0x44, &[0x4c, 1, 1]), (0x54, &[0xe0, 0, 2, 1])]
    {
        put(at, bytes);
    }
    for (at, value) in [(0, 0x10b), (36, 0x200), (60, 0x200), (92, 16), (128, 512), (132, signature_bytes)] {
        put(0x58 + at, &value.to_le_bytes());
    }
    head
}
