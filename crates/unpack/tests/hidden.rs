//! Bytes like a zip record hide no member after or in them, and the law holds at every cut.

use crate::driver::Node;
use stream::{Event, FileType, Fuel, Limits, ReadAt, Stage, Step, Window, law};
use zlib_rs::crc32::crc32;

const CONTENT: &[u8] = b"content that is reached, reached, reached and reached again";

/// Every signature that begins a record other than a member.
const SIGNATURES: [&[u8]; 8] =
    [b"PK\x01\x02", b"PK\x05\x06", b"PK\x06\x06", b"PK\x06\x07", b"PK\x05\x05", b"PK\x06\x08", b"PK\x07\x08", b"PK00"];

/// Common bytes of local and central headers of a deflated member, and its content.
fn member(content: &[u8]) -> ([u8; 24], Vec<u8>) {
    let mut packed = vec![0; content.len() + 64];
    let config = zlib_rs::DeflateConfig { window_bits: -15, ..zlib_rs::DeflateConfig::default() };
    let (packed, _) = zlib_rs::compress_slice(&mut packed, content, config);
    let mut common = [0; 24];
    (common[0], common[4]) = (20, 8);
    common[10..14].copy_from_slice(&crc32(0, content).to_le_bytes());
    common[14..18].copy_from_slice(&(packed.len() as u32).to_le_bytes());
    common[18..22].copy_from_slice(&(content.len() as u32).to_le_bytes());
    common[22] = 1;
    (common, packed.to_vec())
}

/// A member named `m`, without directory.
fn local(content: &[u8]) -> Vec<u8> {
    let (common, packed) = member(content);
    [b"PK\x03\x04", &common[..], &[0; 2], b"m", &packed].concat()
}

/// An archive of one member, with this comment.
fn archive(content: &[u8], comment: &[u8]) -> Vec<u8> {
    let (local, (common, _)) = (local(content), member(content));
    let central = [b"PK\x01\x02\x14\0", &common[..], &[0; 16], b"m"].concat();
    let (bytes, offset) = (central.len() as u32, local.len() as u32);
    let end = [b"PK\x05\x06\0\0\0\0\x01\0\x01\0", &bytes.to_le_bytes()[..], &offset.to_le_bytes()].concat();
    [&local, &central, &end, &(comment.len() as u16).to_le_bytes()[..], comment].concat()
}

/// A local header that passes for one, with a name and extra fields of these lengths.
fn decoy(name: &[u8], extra_bytes: u16) -> Vec<u8> {
    let lengths = [(name.len() as u16).to_le_bytes(), extra_bytes.to_le_bytes()].concat();
    [b"PK\x03\x04\x14\0\0\0\x08\0", &[0; 16][..], &lengths, name].concat()
}

/// The reader of a type, as one type that the harness can make again and again.
struct Reader(Box<dyn Stage>);

impl Reader {
    fn of(file_type: FileType) -> Reader {
        Reader(unpack::reader(file_type, &Limits::default(), &unpack::Passwords::default()).expect("there is a reader"))
    }
}

impl Stage for Reader {
    fn step(&mut self, input: &[u8], output: &mut Window, fuel: &mut Fuel) -> Step {
        self.0.step(input, output, fuel)
    }

    fn finish(&mut self, kept: &dyn ReadAt, output: &mut Window, fuel: &mut Fuel) -> Event {
        self.0.finish(kept, output, fuel)
    }
}

/// Everything that is told of `bytes` by a reader of `file_type`, whose law is checked.
fn told(file_type: FileType, bytes: &[u8]) -> Vec<law::Told> {
    if bytes.len() < 1000 {
        law::holds(|| Reader::of(file_type), bytes);
        law::holds_at_every_cut(|| Reader::of(file_type), bytes);
    }
    law::tell(Reader::of(file_type), bytes)
}

fn reaches(file_type: FileType, bytes: &[u8]) -> bool {
    told(file_type, bytes).iter().any(|told| matches!(told, law::Told::Content(content) if content == CONTENT))
}

#[test]
fn a_signature_in_front_of_an_archive_hides_nothing() {
    for signature in SIGNATURES {
        for junk in [&b""[..], b"P", b"PK", b"MZ", b"MZPK\x01", b"PK\x03\x04"] {
            for behind in [&b""[..], b"P", b"PK", b"xx"] {
                let bytes = [junk, signature, behind, &archive(CONTENT, b"")].concat();
                assert!(reaches(FileType::Binary, &bytes), "{}", bytes.escape_ascii());
            }
        }
    }
}

#[test]
fn a_signature_behind_a_member_hides_nothing() {
    for signature in SIGNATURES {
        for junk in [&b""[..], b"P", b"PK", b"junk"] {
            for file_type in [FileType::Zip, FileType::Binary] {
                let bytes = [&local(b"first"), junk, signature, &archive(CONTENT, b"")].concat();
                assert!(reaches(file_type, &bytes), "{file_type:?} {}", bytes.escape_ascii());
            }
        }
    }
}

#[test]
fn a_record_that_ends_in_the_middle_of_a_signature_hides_nothing() {
    for signature in SIGNATURES {
        for filler in 0..60 {
            let bytes = [&local(b"first"), signature, &vec![0; filler], &archive(CONTENT, b"")].concat();
            assert!(reaches(FileType::Zip, &bytes), "{}", bytes.escape_ascii());
        }
    }
}

#[test]
fn a_central_header_cannot_swallow_members() {
    let (common, _) = member(CONTENT);
    let mut central = [b"PK\x01\x02\x14\0", &common[..], &[0; 16]].concat();
    // Extra field and comment go on for longer than the archive.
    central[30..34].fill(0xff);
    let bytes = [&local(b"first"), &central[..], &archive(CONTENT, b"")].concat();
    assert!(reaches(FileType::Zip, &bytes));
    assert!(reaches(FileType::Binary, &bytes));
}

#[test]
fn a_local_header_that_is_none_gives_back_all_that_it_took() {
    for name in [&b"\x01"[..], b"name\x7f", b"PK\x03\x04", b"P\x00"] {
        let bytes = [b"MZ", &decoy(name, 0xffff)[..], &archive(CONTENT, b"")].concat();
        assert!(reaches(FileType::Binary, &bytes), "{}", name.escape_ascii());
        let long = [&[b'n'; 3000][..], name].concat();
        let bytes = [b"MZ", &decoy(&long, 0xffff)[..], &archive(CONTENT, b"")].concat();
        assert!(reaches(FileType::Binary, &bytes), "long {}", name.escape_ascii());
    }
    // The archive is the name.
    let mut bytes = [b"MZ", &decoy(b"", 9)[..], &archive(CONTENT, b"")].concat();
    bytes[2 + 26] = 40;
    assert!(reaches(FileType::Binary, &bytes));
}

/// The names of the findings.
fn findings(file_type: FileType, bytes: &[u8]) -> Vec<String> {
    let told = told(file_type, bytes);
    let notes = told.iter().filter_map(|told| match told {
        law::Told::Note(stream::Note::Finding(finding)) => Some(finding.name.to_string()),
        _ => None,
    });
    notes.collect()
}

const HIDDEN: &str = "Heuristics.Ambiguous.Zip.Hidden";

#[test]
fn an_archive_that_a_header_or_a_member_swallows_is_reported() {
    let archive = archive(CONTENT, b"");
    // Its extra field, its name, and data that are said to be bzip2's.
    let in_extra = [&decoy(b"name", 0xffff)[..], &archive].concat();
    let in_name = [&decoy(&[b'n'; 4000], 0)[..3000], &archive].concat();
    let mut in_data = [&decoy(b"name", 0)[..], b"BZh9", &[0; 20], &archive].concat();
    (in_data[8], in_data[18], in_data[22]) = (12, 255, 255);
    for bytes in [in_extra, in_name, in_data] {
        for (file_type, junk) in [(FileType::Zip, &b""[..]), (FileType::Binary, b"MZ")] {
            let bytes = [junk, &bytes].concat();
            let findings = findings(file_type, &bytes);
            assert!(
                reaches(file_type, &bytes) || findings.iter().any(|name| name == HIDDEN),
                "{file_type:?} {findings:?}"
            );
        }
    }
}

#[test]
fn a_directory_that_a_central_header_swallows_is_reported() {
    let mut bytes = [b"MZ", &archive(CONTENT, b"")[..]].concat();
    let at = bytes.windows(4).position(|four| four == b"PK\x01\x02").expect("it has a directory");
    // A central header whose comment is said to go on for longer than the archive, and a name that no search believes.
    let mut decoy = bytes[at..at + 47].to_vec();
    decoy[32..34].fill(0xff);
    bytes.splice(at..at, decoy);
    bytes[2 + 30] = 1;
    assert!(findings(FileType::Binary, &bytes).iter().any(|name| name == HIDDEN));
}

#[test]
fn the_last_volume_of_a_split_archive_is_told() {
    let whole = archive(CONTENT, b"");
    let at = whole.windows(4).position(|four| four == b"PK\x05\x06").expect("it has an end");
    let mut last = whole[40..].to_vec();
    (last[at - 40 + 4], last[at - 40 + 6]) = (3, 3);
    assert_eq!(findings(FileType::Binary, &last), ["Heuristics.Truncated.ZipSplit"]);
}

#[test]
fn an_archive_within_a_whole_archive_is_not_hidden() {
    let outer = archive(&archive(CONTENT, b""), b"");
    assert_eq!(findings(FileType::Zip, &outer), Vec::<String>::new());
    assert_eq!(findings(FileType::Binary, &[b"MZ", &outer[..]].concat()), Vec::<String>::new());
}

#[test]
fn a_directory_without_a_member_that_is_believed_is_reported() {
    // A version, and flags, that no archiver writes and no reader of directories looks at.
    for odd in [4, 7] {
        let mut bytes = [b"MZ", &archive(CONTENT, b"")[..]].concat();
        bytes[2 + odd] = 0xff;
        let findings = findings(FileType::Binary, &bytes);
        assert!(findings.contains(&"Heuristics.Ambiguous.Zip.CentralOnly".into()), "{odd} {findings:?}");
    }
}

#[test]
fn an_end_record_that_no_program_finds_is_no_ambiguity() {
    // A page header in the middle of the member, as a database puts it there.
    let mut archive = archive(CONTENT, b"");
    archive.splice(40..40, *b"page");
    for (behind, class) in [(70_000, stream::Class::Ambiguous), (140_000, stream::Class::TwoReadings)] {
        let bytes = [b"SQLite format 3\0", &archive[..], &vec![0; behind]].concat();
        let classes: Vec<_> = (told(FileType::Binary, &bytes).iter())
            .filter_map(|told| match told {
                law::Told::Note(stream::Note::Finding(finding)) if finding.name.starts_with("Heuristics.Ambiguous") => {
                    Some(finding.class)
                }
                _ => None,
            })
            .collect();
        assert!(!classes.is_empty() && classes.iter().all(|found| *found == class), "{behind} {classes:?}");
    }
}

#[test]
fn what_the_directory_says_of_a_member_is_read_too() {
    // Places in the local header: flags, method.
    let lies: [(&str, usize, &[u8]); 4] =
        [("encrypted", 6, &[1, 0]), ("stored", 8, &[0, 0]), ("no such method", 8, &[99, 0]), ("bzip2", 8, &[12, 0])];
    for (lie, at, bytes) in lies {
        for (file_type, junk) in [(FileType::Zip, &b""[..]), (FileType::Binary, b"MZ")] {
            let mut archive = [junk, &archive(CONTENT, b"")].concat();
            archive[junk.len() + at..][..bytes.len()].copy_from_slice(bytes);
            assert!(reaches(file_type, &archive), "{lie} {file_type:?}");
        }
    }
}

#[test]
fn a_directory_that_stands_elsewhere_is_read_too() {
    // The member of the directory that the end record means is hidden in another's content.
    let hidden = local(CONTENT);
    let (common, _) = member(CONTENT);
    let listed = [b"PK\x01\x02\x14\0", &common[..], &[0; 16], b"m"].concat();
    let mut stored = [b"PK\x03\x04\x14\0\0\0\0\0", &[0; 16][..], b"\x01\0\0\0m", &hidden, &listed].concat();
    let length = (hidden.len() + listed.len()) as u32;
    let crc = crc32(0, &stored[31..]).to_le_bytes();
    stored[14..18].copy_from_slice(&crc);
    stored[18..22].copy_from_slice(&length.to_le_bytes());
    stored[22..26].copy_from_slice(&length.to_le_bytes());
    let mut central = [b"PK\x01\x02\x14\0", &stored[4..30], &[0; 14], b"m"].concat();
    central[30..34].fill(0);
    let (bytes, offset) = (listed.len() as u32, (31 + hidden.len()) as u32);
    let mut whole = [&stored[..], &central].concat();
    let end = [b"PK\x05\x06\0\0\0\0\x01\0\x01\0", &bytes.to_le_bytes()[..], &offset.to_le_bytes(), &[0; 2]].concat();
    whole.extend_from_slice(&end);
    let at = 31 + hidden.len() + 42;
    whole[at..at + 4].copy_from_slice(&31u32.to_le_bytes());
    assert!(reaches(FileType::Zip, &whole));
}

#[test]
fn what_follows_a_comment_with_a_member_in_it_is_told() {
    let comment = [&local(b"second")[..], b"end of the comment"].concat();
    let bytes = [&archive(b"first", &comment)[..], b"behind"].concat();
    let told = told(FileType::Zip, &bytes);
    let contents = told.iter().filter_map(|told| match told {
        law::Told::Content(content) => Some(content.as_slice()),
        _ => None,
    });
    assert_eq!(contents.collect::<Vec<_>>(), [&b"first"[..], b"second", b"behind"]);
}

#[test]
fn a_size_that_lies_at_the_very_end_costs_no_content() {
    const CONTENT: &[u8] = b"ends like a record: PK";
    let length = CONTENT.len() as u8;
    let packed = [&[1, length, 0, !length, 0xff], CONTENT].concat();
    for short in 1..4 {
        let (mut common, _) = member(CONTENT);
        common[14..18].copy_from_slice(&(packed.len() as u32 - short).to_le_bytes());
        let bytes = [b"PK\x03\x04", &common[..], &[0; 2], b"m", &packed].concat();
        let told = told(FileType::Zip, &bytes);
        let opened = told.iter().filter(|told| matches!(told, law::Told::Open(_))).count();
        assert!(opened == 1 && law::content(&told) == CONTENT, "{told:?}");
    }
}

#[test]
fn a_window_edge_may_cut_a_signature() {
    for filler in 4080..4100 {
        let bytes = [b"MZ", &vec![b'x'; filler][..], b"PK\x01\x02", &archive(CONTENT, b"")].concat();
        for piece in [4096, 8192] {
            assert!(reaches_in_pieces(&bytes, piece), "{filler} {piece}");
        }
        let root = Node::open(Default::default(), bytes, 1);
        assert!(root.children.iter().any(|child| child.content == CONTENT), "{filler}");
    }
}

fn reaches_in_pieces(bytes: &[u8], piece: usize) -> bool {
    let mut stage = Reader::of(FileType::Binary);
    let (mut at, mut found) = (0, Vec::new());
    while at < bytes.len() {
        let mut output = Window::with_capacity(4096);
        let end = bytes.len().min(at - at % piece + piece);
        let step = stage.step(&bytes[at..end], &mut output, &mut Fuel::unlimited());
        at += step.taken;
        found.extend_from_slice(output.filled());
    }
    found == CONTENT
}

/// The first bytes of 300,000 bytes in LZMA.
const LZMA: &str = "5d00008000ffffffffffffffff00309888ad4b3712a33185ddfa5304edebdf42b812f31fea98ae810116ef64c4d600c64de9e45d4c2ac0e\
    84c3b1f529d4e092fc9547bcaef91164b6340d4e936ecacb5d23e89ffde7d4a0446e7";

#[test]
fn an_archive_behind_data_that_begin_like_a_stream_is_read() {
    let seed = |path: &str| {
        let file = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/unpack_rar").join(path);
        std::fs::read(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display()))
    };
    let lzma: Vec<u8> =
        (0..LZMA.len()).step_by(2).map(|at| u8::from_str_radix(&LZMA[at..at + 2], 16).expect("digits")).collect();
    let gzip = [&b"\x1f\x8b\x08\0\0\0\0\0\0\x03\xed\xc2\x01\x0d\0\0\x0c\x02\xa0\xac\x6a"[..], &[0xff; 2]].concat();
    for (head, file_type) in [(lzma, FileType::Lzma), (gzip, FileType::Gzip)] {
        let bytes = [head, seed("stored.rar")].concat();
        assert_eq!(unpack::recognise(&bytes), file_type);
        let root = Node::open(stream::Object::default(), bytes, 4);
        let names: Vec<_> = root.all().iter().filter_map(|node| node.object.name.clone()).collect();
        assert!(names.iter().any(|name| &**name == "a.txt"), "{}: {names:?}", file_type.name());
    }
}

/// Objects that a cross-reference table can point at stand in data, strings and behind lengths that are too great, near the
/// start of a document and far from it.
#[test]
fn objects_of_a_pdf_are_read_wherever_they_stand() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/unpack_pdf");
    let member = b"a member that stands where only the cross-reference table leads\n";
    let (mut tried, mut missed) = (0, Vec::new());
    for file in std::fs::read_dir(&folder).expect("it is there") {
        let path = file.expect("it is there").path();
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default().to_owned();
        if !name.starts_with("nested-") {
            continue;
        }
        for padding in [0, 65_400, 70_000] {
            let mut document = std::fs::read(&path).expect("it is there").split_off(1);
            document.splice(9..9, std::iter::repeat_n(b' ', padding));
            let root = Node::open_with(Default::default(), document, 1, &unpack::Passwords::default());
            tried += 1;
            if !root.children.iter().any(|child| child.content == member) {
                missed.push((name.clone(), padding));
            }
        }
    }
    assert!(tried >= 24);
    assert!(missed.is_empty(), "{missed:?}");
}
