//! Containers: made here, and the makers' own test containers where they are at hand.

use std::fs;
use std::path::PathBuf;

use md5::{Digest, Md5};
use scan::{Builder, ContainerKind, Error, Verified};

/// A tar archive in the clear.
fn tar(members: &[(&str, &str)]) -> Vec<u8> {
    let mut archive = Vec::new();
    for (name, text) in members {
        let mut header = [0u8; 512];
        header[..name.len()].copy_from_slice(name.as_bytes());
        header[100..108].copy_from_slice(b"0000644\0");
        header[124..136].copy_from_slice(format!("{:011o}\0", text.len()).as_bytes());
        header[148..156].fill(b' ');
        header[156] = b'0';
        header[257..265].copy_from_slice(b"ustar\x0000");
        let sum: u32 = header.iter().map(|&byte| u32::from(byte)).sum();
        header[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
        archive.extend(header);
        archive.extend(text.as_bytes());
        archive.resize(archive.len().next_multiple_of(512), 0);
    }
    archive.resize(archive.len() + 1024, 0);
    archive
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn with_header(md5: &str, body: &[u8]) -> Vec<u8> {
    let header = format!("ClamAV-VDB:01 Jan 2026 10-00 +0000:7:2:90:{md5}:X:tester:1767261600");
    let mut bytes = format!("{header:<512}").into_bytes();
    bytes.extend(body);
    bytes
}

fn cud(body: &[u8]) -> Vec<u8> {
    with_header(&hex(&Md5::digest(body)), body)
}

fn reason(file_name: &str, bytes: &[u8]) -> String {
    match Builder::new().add(file_name, bytes) {
        Err(Error::Container { reason, .. }) => reason,
        other => panic!("{other:?}"),
    }
}

const NDB: &str = "# note\nA:0:*:616263646566\n";
const HDB: &str = "900150983cd24fb0d6963f7d28e17f72:3:Abc\n";

#[test]
fn an_unsigned_container_is_read_as_unofficial() {
    let mut builder = Builder::new();
    let bytes = cud(&tar(&[("COPYING", "free"), ("x.ndb", NDB), ("x.hdb", HDB)]));
    let loaded = builder.add("x.cud", &bytes).expect("a container");
    assert_eq!((loaded.bodies, loaded.hashes), (1, 1));
    let database = builder.build();
    let census = database.census();
    let container = census.containers.first().expect("it is in the census");
    assert_eq!((container.kind, container.verified), (ContainerKind::Cud, Verified::Unsigned));
    assert_eq!((container.version, container.signatures, &*container.builder), (7, 2, "tester"));
    assert_eq!((census.exact, census.at_end), (1, 1));
}

#[test]
fn the_listed_digests_are_compared() {
    let digest = hex(&sha2::Sha256::digest(NDB));
    let info = format!("ClamAV-VDB:x\nx.ndb:{}:{digest}\n", NDB.len());
    let good = cud(&tar(&[("x.info", &info), ("x.ndb", NDB)]));
    let mut builder = Builder::new();
    builder.add("x.cud", &good).expect("a container");
    assert_eq!(builder.build().census().containers[0].members, 1);
    let changed = NDB.replace("61", "62");
    assert_eq!(
        reason("x.cud", &cud(&tar(&[("x.ndb", &changed), ("x.info", &info)]))),
        "x.ndb is not what the info file lists"
    );
    assert_eq!(reason("x.cud", &cud(&tar(&[("x.info", &info)]))), "x.ndb is missing");
}

#[test]
fn what_is_not_as_its_header_says_is_refused() {
    let body = tar(&[("x.ndb", NDB)]);
    let mut bytes = cud(&body);
    assert_eq!(reason("x.cvd", &bytes), "the signature of the header is wrong");
    assert_eq!(reason("x.cld", &bytes), "no info file");
    bytes[600] ^= 1;
    assert!(reason("x.cud", &bytes).contains("MD5"));
    assert_eq!(reason("x.cud", b"ClamAV-VDB:"), "shorter than a header");
    assert_eq!(reason("x.cud", &vec![b' '; 600]), "not a ClamAV database");
    assert!(reason("x.cud", &with_header("X", &body[..530])).contains("Truncated"));
    assert!(reason("x.cud", &with_header("X", b"\x1f\x8b\x08 no gzip at all")).contains("damaged"));
    assert!(reason("x.cud", &cud(&tar(&[("x.ndb", "A:0:*:61g2\n")]))).contains("x.ndb:1"));
    assert!(reason("x.cud", &cud(&tar(&[("x.exe", "MZ")]))).contains("x.exe"));
    assert_eq!(reason("x.cud", &cud(&tar(&[("COPYING", "free")]))), "it holds no database");
}

/// The makers' test containers, if they are at hand.
fn published() -> Vec<PathBuf> {
    let beside = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../data");
    let root = std::env::var_os("SLUICE_DATA").map_or_else(|| PathBuf::from(beside), PathBuf::from);
    let folder = root.join("av-clamav/clamav-scanfiles/freshclam_testfiles");
    let files: Vec<PathBuf> =
        ["test-3.cvd", "test-4.cvd"].iter().map(|name| folder.join(name)).filter(|path| path.is_file()).collect();
    if files.is_empty() {
        eprintln!("no pack: {}", folder.display());
    }
    files
}

#[test]
fn published_containers_are_verified_and_changed_ones_refused() {
    for path in published() {
        let bytes = fs::read(&path).expect("a container");
        for (name, verified) in [("test.cvd", Verified::BothSigned), ("test.cld", Verified::InfoSigned)] {
            let mut builder = Builder::new();
            let loaded = builder.add(name, &bytes).expect("a container");
            let database = builder.build();
            let census = database.census();
            let container = &census.containers[0];
            assert_eq!((container.verified, container.members), (verified, 18), "{}", path.display());
            assert!(
                census.signatures() >= 4 && census.unwanted == 4 && census.allowed == 2 && census.other_engine == 1
            );
            assert_eq!(census.refused, []);
            assert!(loaded.hashes > 0);
        }
        for at in [30, 100, 200, 520, 600, bytes.len() / 2, bytes.len() - 1] {
            let mut changed = bytes.clone();
            changed[at] ^= 1;
            let read = Builder::new().add("test.cvd", &changed);
            // The time and the count are not signed.
            assert!(at == 30 || read.is_err(), "{} changed at {at}", path.display());
        }
    }
}

#[test]
fn an_update_makes_the_next_version_of_a_container() {
    let Some(folder) = published().first().and_then(|path| Some(path.parent()?.to_path_buf())) else {
        return;
    };
    let read = |name: &str| fs::read(folder.join(name)).expect("a published file");
    let (third, cdiff, fourth) = (read("test-3.cvd"), read("test-4.cdiff"), read("test-4.cvd"));
    let made = scan::patched("test.cvd", &third, &cdiff).expect("they fit");
    let load = |name: &str, bytes: &[u8]| {
        let mut builder = Builder::new();
        builder.add(name, bytes).unwrap_or_else(|error| panic!("{error}"));
        builder.build()
    };
    let (made_here, published) = (load("test.cld", &made), load("test.cvd", &fourth));
    let (ours, theirs) = (made_here.census(), published.census());
    assert_eq!((ours.signatures(), ours.refused.len()), (theirs.signatures(), theirs.refused.len()));
    assert_eq!((ours.containers[0].version, ours.containers[0].verified), (4, Verified::InfoSigned));
    // It fits nothing else, and every byte of it counts.
    assert!(scan::patched("test.cvd", &fourth, &cdiff).is_err());
    for at in [0, 13, 40, cdiff.len() / 2, cdiff.len() - 300, cdiff.len() - 2] {
        let mut changed = cdiff.clone();
        changed[at] ^= 1;
        assert!(scan::patched("test.cvd", &third, &changed).is_err(), "{at}");
    }
}
