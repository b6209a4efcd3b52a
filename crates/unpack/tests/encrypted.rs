//! The public archives that are encrypted, opened with their passwords: what comes out agrees with its checksums.

use std::path::Path;

use crate::driver::Node;
use stream::Limits;
use unpack::Passwords;

/// The passwords of all of them, and one of none.
const PASSWORDS: [&str; 5] = ["nobody's", "password", "12345678", "foo", "foofoofoo"];

/// Each, with how many members have content.
const ARCHIVES: &[(&str, usize)] = &[
    ("libarchive/libarchive/test/test_read_format_zip_traditional_encryption_data.zip", 2),
    ("libarchive/unzip/test/test_encrypted.zip", 1),
    ("libzip/regress/data/encrypt-aes192.zip", 2),
    ("libzip/regress/data/encrypt-aes256.zip", 2),
    ("libzip/regress/data/encrypt_plus_extra.zip", 2),
    ("libarchive/libarchive/test/test_read_format_7zip_encryption.7z", 1),
    ("libarchive/libarchive/test/test_read_format_7zip_encryption_partially.7z", 2),
    ("commons-compress/bla.encrypted.7z", 2),
    ("libarchive/libarchive/test/test_read_format_rar_encryption_data.rar", 2),
    ("libarchive/libarchive/test/test_read_format_rar_encryption_partially.rar", 2),
    ("libarchive/libarchive/test/test_read_format_rar_encryption_header.rar", 2),
    ("libarchive/libarchive/test/test_read_format_rar4_solid_encrypted_filenames.rar", 4),
    ("rarfile/rar5-psw-blake.rar", 3),
];

#[test]
fn public_archives_open_with_their_passwords() {
    let Some(folder) = std::env::var_os("SLUICE_DATA").map(|data| Path::new(&data).join("archives")) else {
        return;
    };
    if !folder.is_dir() {
        return;
    }

    let mut wrong = 0;
    for (name, members) in ARCHIVES {
        let bytes = std::fs::read(folder.join(name)).expect("it is there");
        let passwords = words(PASSWORDS);
        let root = Node::open_with(Default::default(), bytes, 1, &passwords);
        let findings: Vec<_> = root.findings.iter().map(|finding| &*finding.name).collect();
        let with_content = root.children.iter().filter(|child| !child.content.is_empty()).count();
        if !findings.is_empty() || with_content != *members {
            let names: Vec<_> = root.children.iter().map(|child| child.object.name.as_deref()).collect();
            eprintln!("{name}: {findings:?} {with_content} {names:?}");
            wrong += 1;
        }
    }
    assert_eq!(wrong, 0, "archives that differ");
}

/// Made by openpyxl, encrypted by msoffcrypto-tool (agile) and by hand (standard, RC4): what comes out has its name.
#[test]
fn office_documents_open_with_the_default_password_and_others() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/encrypted");
    let plain = std::fs::read(folder.join("plain.xlsx")).expect("it is there");
    for (name, word) in [("agile-default.xlsx", "none"), ("standard.xlsx", "none"), ("agile-other.xlsx", "sluice")] {
        let root = open(&folder.join(name), word);
        let package = root.children.iter().find(|child| child.object.name.as_deref() == Some("decrypted package"));
        assert!(package.is_some_and(|package| package.content == plain), "{name}");
        assert_eq!(encrypted(&root), 0, "{name}");
    }
    assert_eq!(encrypted(&open(&folder.join("agile-other.xlsx"), "none")), 1);
    for name in ["rc4.xls", "rc4-api.xls"] {
        let seed = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/unpack_ole2").join(name);
        let seed = std::fs::read(seed).expect("it is there")[1..].to_vec();
        let root = Node::open_with(Default::default(), seed, 1, &words(["none"]));
        let book = root.children.iter().find(|child| child.object.name.as_deref() == Some("decrypted workbook"));
        let found = book.is_some_and(|book| book.content.windows(11).any(|window| window == b"sluice test"));
        assert!(found, "{name}");
        assert_eq!(encrypted(&root), 0, "{name}");
    }
}

/// Made by py7zr, which gives an encrypted header no checksum: a header that can be read has the right password.
#[test]
fn a_header_of_7z_without_a_checksum_opens_with_its_password() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/encrypted/header.7z");
    let bytes = std::fs::read(&file).expect("it is there");
    let root = Node::open_with(Default::default(), bytes, 1, &words(["nobody's", "password", "infected"]));
    let member = root.children.iter().find(|child| child.object.name.as_deref() == Some("one.txt"));
    assert!(member.is_some_and(|member| member.content == b"one file of a test\n".repeat(20)));
    assert!(root.findings.is_empty(), "{:?}", root.findings);
    let closed = open(&file, "none");
    let names: Vec<_> = closed.findings.iter().map(|finding| &*finding.name).collect();
    assert_eq!(names, ["Heuristics.Encrypted.SevenZip"]);
}

/// Made by 7z, with a password that is not tried and with a filter that is not known: the files keep their names, the first one
/// with the packed bytes of all.
#[test]
fn files_of_7z_that_stay_closed_have_their_names() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/encrypted");
    for (name, finding, is_encrypted, packed) in [
        ("locked.7z", "Heuristics.Encrypted.SevenZip", true, 32),
        ("unknown.7z", "Heuristics.Limits.Exceeded.SevenZipMethod", false, 28),
    ] {
        let root = open(&folder.join(name), "none");
        let findings: Vec<_> = root.findings.iter().map(|finding| &*finding.name).collect();
        assert_eq!(findings, [finding], "{name}");
        let members: Vec<_> =
            root.children.iter().map(|child| (child.object.name.as_deref(), child.content.len())).collect();
        assert_eq!(members, [(Some("empty.txt"), 0), (Some("docs/b.txt"), packed), (Some("evil.exe"), 0)], "{name}");
        let entries = root.children.iter().filter_map(|child| child.object.entry.as_deref());
        let entries: Vec<_> = entries.map(|entry| (entry.size, entry.encrypted)).collect();
        assert_eq!(entries, [(Some(0), false), (Some(14), is_encrypted), (Some(10), is_encrypted)], "{name}");
    }
}

/// Made by iText 8, which encrypts nothing but the attachments: their crypt filter is one of its own, or they name it.
#[test]
fn a_document_of_which_only_the_attachments_are_encrypted_is_opened() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/encrypted/attachments-only.pdf");
    let by_rule = std::fs::read(&file).expect("it is there");
    let by_name: Vec<u8> = {
        let text: String = by_rule.iter().map(|&byte| char::from(byte)).collect();
        let crypt = "/Filter[/Crypt/FlateDecode]/DecodeParms[<</Name/StdCF>>null]/Length 2272";
        let text = text.replace("/EFF/StdCF", "").replace("/Filter/FlateDecode/Length 2272", crypt);
        text.chars().map(|character| character as u8).collect()
    };
    for (document, count) in [(&by_rule, 2), (&by_name, 1)] {
        let root = Node::open_with(Default::default(), document.clone(), 1, &words(["nobody's", "infected"]));
        let attached = |child: &&Node| child.content.len() == 36_160 || child.content.len() == 2_371;
        assert_eq!(root.children.iter().filter(attached).count(), count, "{:?}", root.findings);
        assert_eq!(encrypted(&root), 0);
        let closed = Node::open_with(Default::default(), document.clone(), 1, &words(["none"]));
        let names: Vec<_> = closed.findings.iter().map(|finding| &*finding.name).collect();
        assert_eq!(names, ["Heuristics.Encrypted.Pdf"]);
    }
}

fn words<const N: usize>(words: [&str; N]) -> Passwords {
    Passwords::new(words.map(|word| word.as_bytes().into()), &Limits::default())
}

fn open(path: &Path, word: &str) -> Node {
    Node::open_with(Default::default(), std::fs::read(path).expect("it is there"), 1, &words([word]))
}

fn encrypted(node: &Node) -> usize {
    node.findings.iter().filter(|finding| finding.class == stream::Class::Encrypted).count()
}

/// Every method of zip with each cipher, and 7z: the right password among many is known by the content's check, however little the
/// beginning shows.
#[test]
fn the_right_password_of_many_opens_every_method() {
    open_all("methods");
}

/// Sizes and checksum of a descriptor judge, and the checksum of a member of a few bytes.
#[test]
fn the_right_password_of_many_opens_short_members_and_those_with_descriptors() {
    open_all("descriptors");
}

/// Opens all archives of a folder, the right password behind many.
fn open_all(folder: &str) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/encrypted").join(folder);
    let plain = std::fs::read(folder.join("plain.bin")).expect("it is there");
    let files = std::fs::read_dir(&folder).expect("it is there").map(|file| file.expect("it is there").path());
    let mut wrong = 0;
    for path in files.filter(|path| path.extension().is_some_and(|name| name == "zip" || name == "7z")) {
        let cheap = path.to_string_lossy().contains("ZipCrypto");
        let decoys = (0..if cheap { 3000 } else { 4 }).map(|number| format!("nobody's {number}"));
        let words = decoys.chain(["infected".into()]).map(|word| word.into_bytes().into());
        let words: Vec<Box<[u8]>> = words.collect();
        let passwords = Passwords::new(words, &Limits::default());
        let root = Node::open_with(Default::default(), std::fs::read(&path).expect("it is there"), 1, &passwords);
        let opened = root.children.first().is_some_and(|child| child.content == plain);
        if !opened || !root.findings.is_empty() {
            eprintln!("{}: {opened} {:?}", path.display(), root.findings);
            wrong += 1;
        }
    }
    assert_eq!(wrong, 0, "archives that stay closed");
}

/// RC4 and both kinds of AES, of two writers: names of attachments are decrypted like their content, and the blank page's empty
/// stream is not truncated.
#[test]
fn attachments_of_encrypted_documents_have_their_names() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/encrypted/pdf");
    let files = std::fs::read_dir(&folder).expect("it is there").map(|file| file.expect("it is there").path());
    let mut wrong = 0;
    for path in files.filter(|path| path.extension().is_some_and(|name| name == "pdf")) {
        wrong += usize::from(!has_the_attachment(open(&path, "none"), &path));
    }
    assert_eq!(wrong, 0, "documents that differ");
}

/// What stands in front of the attachment is longer than what is kept of every document, and begins like a picture.
#[test]
fn an_encrypted_picture_does_not_hide_what_follows() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/encrypted/pdf");
    let mut picture = b"\n90 0 obj << /Filter /DCTDecode /Length 90000 >> stream\n".to_vec();
    picture.extend((0_u32..90_000).map(|index| b'A' + (index.wrapping_mul(2_654_435_761) >> 24) as u8 % 53));
    picture.extend(b"\nendstream endobj\n");
    for name in ["rc4-128.pdf", "aesv2.pdf", "aesv3.pdf"] {
        let mut document = std::fs::read(folder.join(name)).expect("it is there");
        let line = document.iter().position(|&byte| byte == b'\n').expect("it has lines");
        document.splice(line..line, picture.iter().copied());
        let root = Node::open_with(Default::default(), document, 1, &Passwords::default());
        assert!(has_the_attachment(root, Path::new(name)));
    }
}

/// A stream whose encrypted data go on beyond what is kept of every document, for all ciphers.
#[test]
fn an_encrypted_stream_is_read_across_the_end_of_the_head() {
    const HEAD_BYTES: usize = 64 << 10;
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/encrypted/pdf");
    for name in ["rc4-40.pdf", "rc4-128.pdf", "aesv2.pdf", "aesv3.pdf"] {
        let mut document = std::fs::read(folder.join(name)).expect("it is there");
        let file = memchr::memmem::find(&document, b"/EmbeddedFile").expect("it has an attachment");
        let data = file + memchr::memmem::find(&document[file..], b"stream\n").expect("it has data") + 7;
        let line = document.iter().position(|&byte| byte == b'\n').expect("it has lines");
        document.splice(line..line, std::iter::repeat_n(b' ', HEAD_BYTES - 12 - data));
        let root = Node::open_with(Default::default(), document, 1, &Passwords::default());
        assert!(has_the_attachment(root, Path::new(name)));
    }
}

/// Data that end early for their filter do not show that a document is not encrypted.
#[test]
fn a_stream_that_ends_early_does_not_hide_what_follows() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/encrypted/pdf");
    for name in ["rc4-128.pdf", "aesv2.pdf", "aesv3.pdf"] {
        for early in ["/ASCII85Decode /Length 4 >> stream\n!!~>", "/ASCIIHexDecode /Length 3 >> stream\n41>"] {
            let early = format!("\n91 0 obj << /Filter {early}\nendstream endobj\n{}", " ".repeat(66_000));
            let mut document = std::fs::read(folder.join(name)).expect("it is there");
            let line = document.iter().position(|&byte| byte == b'\n').expect("it has lines");
            document.splice(line..line, early.bytes());
            let root = Node::open_with(Default::default(), document, 1, &Passwords::default());
            let attached = |child: &Node| child.content == b"the attached text of a test\n";
            assert!(root.children.iter().any(attached), "{name} {early:.40}");
        }
    }
}

fn has_the_attachment(root: Node, path: &Path) -> bool {
    let named = root.children.iter().find(|child| child.object.name.as_deref() == Some("attached name.txt"));
    let found = named.is_some_and(|child| child.content == b"the attached text of a test\n");
    if !found || !root.findings.is_empty() {
        let names: Vec<_> = root.children.iter().map(|child| child.object.name.as_deref()).collect();
        eprintln!("{}: {names:?} {:?}", path.display(), root.findings);
    }
    found && root.findings.is_empty()
}
