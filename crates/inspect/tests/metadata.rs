//! Signatures by what containers say of their members, against clamscan where it is installed: the same names for
//! archives of several kinds and a mail.
//!
//! Left out of the generator: checksums, which clamscan 1.4 does not compare; packed sizes in 7z, where it has none, and
//! positions there, which it counts from 0.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use flow::Policy;
use inspect::Engine;
use scan::{Builder, Census};
use stream::Limits;

fn engine(cdb: &str) -> Arc<Engine> {
    let mut builder = Builder::new();
    builder.add("t.cdb", cdb.as_bytes()).unwrap_or_else(|error| panic!("{error}"));
    Arc::new(Engine { database: Arc::new(builder.build()), limits: Limits::default() })
}

/// The names of the signatures that are found, however the object is cut.
fn ours(cdb: &str, bytes: &[u8]) -> BTreeSet<String> {
    let engine = engine(cdb);
    let names = |piece| {
        let how = crate::pipeline::Drive { piece, fuel: u64::MAX, mail: bytes.starts_with(b"From:") };
        let seen = crate::pipeline::drive(&engine, Policy::default(), bytes, how);
        let names = seen.names().into_iter().filter_map(|name| name.strip_suffix(".UNOFFICIAL"));
        names.map(str::to_owned).collect::<BTreeSet<String>>()
    };
    let whole = names(64 << 10);
    assert_eq!(names(7), whole);
    whole
}

fn theirs(folder: &Path, cdb: &str, file: &Path) -> BTreeSet<String> {
    let database = folder.join("t.cdb");
    fs::write(&database, cdb).unwrap();
    let output =
        Command::new("clamscan").args(["--allmatch", "--no-summary", "-d"]).arg(&database).arg(file).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let names = text.lines().filter_map(|line| line.strip_suffix(".UNOFFICIAL FOUND")?.rsplit(' ').next());
    names.map(str::to_owned).collect()
}

/// Files of several sizes, packed by the tools that are installed.
fn containers(folder: &Path) -> Vec<PathBuf> {
    let files: [(&str, Vec<u8>); 4] = [
        ("one.txt", b"hello ".repeat(9)),
        ("Two.EXE", b"bbbb".to_vec()),
        ("three.bin", (0..3000u32).map(|i| (i * i % 251) as u8).collect()),
        ("docs/four.js", vec![b'j'; 700]),
    ];
    fs::create_dir_all(folder.join("docs")).unwrap();
    for (name, bytes) in &files {
        fs::write(folder.join(name), bytes).unwrap();
    }
    let members: Vec<(&str, &[u8])> = files.iter().map(|(name, bytes)| (*name, bytes.as_slice())).collect();
    fs::write(folder.join("c.tar"), crate::build::tar(&members)).unwrap();
    fs::write(folder.join("c.eml"), crate::build::mail("Two.EXE", &files[2].1, 500)).unwrap();
    fs::write(folder.join("inner.tar"), crate::build::tar(&[("c.tar", &crate::build::tar(&members))])).unwrap();
    for command in [
        "zip -q -r c.zip one.txt Two.EXE three.bin docs",
        "zip -q -P pw secret.zip Two.EXE three.bin",
        "7z a -bd c.7z one.txt Two.EXE three.bin docs/four.js",
        "ls -d one.txt docs Two.EXE three.bin | cpio --quiet -o -H newc > c.cpio",
        "arj a -y c.arj one.txt Two.EXE three.bin",
        "lha -aq c.lha one.txt Two.EXE three.bin",
    ] {
        let _ = Command::new("sh").args(["-c", command]).current_dir(folder).output();
    }
    // Archives behind something else: a picture, and a program.
    let png = b"\x89\x50\x4e\x47\x0d\x0a\x1a\x0a\x00\x00\x00\x0d\x49\x48\x44\x52\x00\x00\x00\x08\x00\x00\x00\x08\x08\x00\x00\x00\x00\xe1\x64\xe1\x57\x00\x00\x00\x0c\x49\x44\x41\x54\x78\x9c\x63\x60\xa0\x0e\x00\x00\x00\x48\x00\x01\x2e\xb8\x3c\x7e\x00\x00\x00\x00\x49\x45\x4e\x44\xae\x42\x60\x82";
    let elf = [b"\x7fELF\x02\x01\x01".as_slice(), &[0; 600]].concat();
    for (from, front, to) in
        [("c.zip", png.as_slice(), "behind.png"), ("c.zip", &elf, "behind.elf"), ("c.7z", png, "7z.png")]
    {
        if let Ok(bytes) = fs::read(folder.join(from)) {
            fs::write(folder.join(to), [front, &bytes].concat()).unwrap();
        }
    }
    let names = [
        "c.tar",
        "c.eml",
        "inner.tar",
        "c.zip",
        "secret.zip",
        "c.7z",
        "c.cpio",
        "c.arj",
        "behind.png",
        "behind.elf",
        "7z.png",
    ];
    names
        .iter()
        .map(|name| folder.join(name))
        .filter(|path| fs::metadata(path).is_ok_and(|file| file.len() > 0))
        .collect()
}

/// Signatures of all fields alone and in pairs, with what the containers have and what they have not.
fn signatures(sizes: &[u64]) -> String {
    let mut lines = String::new();
    let mut add = |container: &str, fields: [&str; 6]| {
        let [size, name, packed, real, encrypted, position] = fields;
        let number = lines.lines().count();
        let _ = writeln!(lines, "S{number}:{container}:{size}:{name}:{packed}:{real}:{encrypted}:{position}:*:*");
    };
    let any = ["*"; 6];
    let sizes: Vec<String> =
        sizes.iter().flat_map(|size| [size.to_string(), format!("{}-{}", size / 2, size + 1)]).collect();
    let sizes: Vec<&str> = sizes.iter().map(String::as_str).chain(["1-9"]).collect();
    let names = [r"^one\.txt$", r"\.(exe|EXE)$", r"(?i)two\.exe", r"two\.exe", r"^docs/", r"\d", "r[a-m]{2}"];
    for container in [
        "*",
        "CL_TYPE_ZIP",
        "CL_TYPE_POSIX_TAR",
        "CL_TYPE_MAIL",
        "CL_TYPE_7Z",
        "CL_TYPE_ARJ",
        "CL_TYPE_GRAPHICS",
        "CL_TYPE_ELF",
    ] {
        add(container, any);
        for name in names {
            add(container, ["*", name, "*", "*", "*", "*"]);
        }
        for size in &sizes {
            add(container, [size, "*", "*", "*", "*", "*"]);
        }
        for size in ["54", "4", "3-5", "3000", "700", "701-2999", "0-60"] {
            add(container, ["*", "*", "*", size, "*", "*"]);
            add(container, ["1-100000", names[2], "*", size, "*", "*"]);
            if container != "CL_TYPE_7Z" && container != "*" {
                add(container, ["*", "*", size, "*", "*", "*"]);
            }
        }
        for encrypted in ["0", "1"] {
            add(container, ["*", "*", "*", "*", encrypted, "*"]);
        }
        for position in ["0", "1", "2", "2-3", "4", "5", "9"] {
            if container != "CL_TYPE_7Z" && container != "*" {
                add(container, ["*", names[1], "*", "*", "*", position]);
                // The folder itself, which clamscan tells as a member, is none here.
                add(container, ["*", "^docs/four", "*", "*", "*", position]);
            }
        }
    }
    lines
}

#[test]
fn the_names_are_those_of_clamscan() {
    if Command::new("clamscan").arg("--version").output().is_err() {
        eprintln!("skipped: clamscan is not installed");
        return;
    }
    let folder = std::env::temp_dir().join(format!("sluice-metadata-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    let containers = containers(&folder);
    let sizes: Vec<u64> = containers.iter().map(|path| fs::metadata(path).unwrap().len()).collect();
    let cdb = signatures(&sizes);
    let (mut matches, mut wrong) = (0, String::new());
    for path in &containers {
        let (ours, theirs) = (ours(&cdb, &fs::read(path).unwrap()), theirs(&folder, &cdb, path));
        matches += theirs.len();
        for name in theirs.symmetric_difference(&ours) {
            let whose = if ours.contains(name) { "only ours" } else { "only theirs" };
            let line = cdb.lines().find(|line| line.split(':').next() == Some(name)).unwrap_or_default();
            let _ = writeln!(wrong, "{} {whose}: {line}", path.file_name().unwrap().display());
        }
    }
    fs::remove_dir_all(&folder).unwrap();
    assert!(wrong.is_empty(), "{wrong}");
    assert!(matches > 60, "the generator hits too little: {matches}");
}

#[test]
fn what_is_not_said_before_a_member_is_waited_for_or_does_not_match() {
    let mut zip = crate::build::zip("a.exe", b"abcdefgh", true);
    let crc = format!("{:08x}", u32::from_le_bytes(zip[14..18].try_into().unwrap()));
    let cdb = format!(
        "Size:CL_TYPE_ZIP:*:*:*:8:*:*:*:*\nPacked:CL_TYPE_ZIP:*:*:1-99:*:*:*:*:*\nCrc:CL_TYPE_ZIP:*:*:*:*:*:*:{crc}:*\n\
         Other:CL_TYPE_ZIP:*:*:*:*:*:*:00000001:*\nBoth:CL_TYPE_ZIP:100-300:a.exe:*:8:0:1:*:*\nWrong:*:100-300:*:*:9:*:*:*:*\n"
    );
    let named = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<BTreeSet<_>>();
    assert_eq!(ours(&cdb, &zip), named(&["Both", "Crc", "Packed", "Size"]));
    // The lengths and the checksum stand behind the content.
    zip[6] |= 8;
    zip[14..26].fill(0);
    assert_eq!(ours(&cdb, &zip), named(&["Both", "Size"]));
}

#[test]
fn the_census_says_what_is_exact() {
    let cdb = "A:*:*:x:*:*:*:*:*:*\nB:*:5:*:*:*:*:*:*:*\nC:*:*:*:5:*:*:*:*:*\nD:CL_TYPE_NONE:*:*:5:*:*:*:*:*\nE:*:*:*:*:*:*:*:*:*:999\n";
    let engine = engine(cdb);
    let census: &Census = engine.database.census();
    assert_eq!((census.exact, census.at_end, census.signatures(), census.other_engine), (1, 1, 3, 1));
    assert_eq!(&*census.refused[0].reason, "the container CL_TYPE_NONE");
}

#[test]
fn too_many_members_that_wait_are_a_limit() {
    let cdb: String = (0..5000).fold(String::new(), |mut text, number| {
        let _ = writeln!(text, "S{number}:*:7:*:*:*:*:*:*:*");
        text
    });
    let engine = engine(&cdb);
    let seen = crate::pipeline::inspect(&engine, Policy::default(), &crate::build::tar(&[("a", b"a"), ("b", b"b")]));
    assert!(seen.names().contains(&"Heuristics.Limits.Exceeded.Members"), "{:?}", seen.names());
}
