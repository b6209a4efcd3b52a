//! Signatures of HTML and text, looked for in normalised views: what is found, where it is said to be, and, where clamscan
//! is installed, that it finds the same.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use crate::pipeline::Drive;
use flow::{Action, Policy};
use inspect::Engine;
use scan::Builder;
use stream::Limits;

fn hex(text: &str) -> String {
    text.bytes().map(|byte| format!("{byte:02x}")).collect()
}

fn engine(ndb: &str, ldb: &str) -> Arc<Engine> {
    let mut builder = Builder::new();
    builder.add_official("t.ndb", ndb.as_bytes()).expect("a database");
    builder.add_official("t.ldb", ldb.as_bytes()).expect("a database");
    Arc::new(Engine { database: Arc::new(builder.build()), limits: Limits::default() })
}

const MAIL: &str = "From: a@example.org\r\nSubject: Hello  World\r\nMIME-Version: 1.0\r\n\
    Content-Type: multipart/mixed; boundary=b\r\n\r\n--b\r\nContent-Type: text/html\r\n\
    Content-Transfer-Encoding: quoted-printable\r\n\r\n\
    <html><p>Hello=20=\r\n World <script>x(\"a\"+'b')</script></p><a href=3D\"Http://A.B/\">C</a></html>\r\n\
    --b\r\nContent-Type: text/plain\r\n\r\nSome  PLAIN\r\ntext.\r\n--b--\r\n";

#[test]
fn views_of_the_parts_of_a_mail_are_scanned_and_what_is_found_is_in_the_part() {
    let ndb = [
        ("Html", 3, "<p>hello world"),
        ("NoTags", 3, "hello world Http://A.B/ c"),
        ("Script", 7, "x(\"ab\")"),
        ("Text", 7, "plain text."),
    ];
    let ndb: String = ndb.iter().map(|(name, target, text)| format!("{name}:{target}:*:{}\n", hex(text))).collect();
    let ndb =
        ndb + &format!("Raw:3:*:{}\nMail:4:*:{}\nStart:3:0:{}\n", hex("Hello "), hex("Hello  World"), hex("<html"));
    let ldb = format!(
        "InMail;Engine:81-255,Target:3,Container:CL_TYPE_MAIL;0;{0}\nInHtml;Engine:81-255,Target:3,Container:CL_TYPE_HTML;0;{0}\n\
         Two;Engine:81-255,Target:3;0&1;{0};{1}\n",
        hex("hello"),
        hex("Http://")
    );
    let engine = engine(&ndb, &ldb);
    let policy = Policy { on_infected: Action::Blank, ..Policy::default() };
    let seen = crate::pipeline::inspect(&engine, policy.clone(), MAIL.as_bytes());
    let found: BTreeSet<&str> = seen.names().into_iter().collect();
    assert_eq!(found, BTreeSet::from(["Html", "InMail", "Mail", "NoTags", "Script", "Start", "Text", "Two"]));
    assert!(!seen.blanks.is_empty(), "what is in a view is in its part");
    let plain = object_of(&seen, "Text");
    assert_ne!(plain, object_of(&seen, "Html"));
    assert_eq!(seen.objects.iter().filter(|object| object.id == plain).count(), 1, "a view is no object");
    for (piece, fuel) in [(1, u64::MAX), (7, 11), (4096, 100)] {
        let cut = crate::pipeline::drive(&engine, policy.clone(), MAIL.as_bytes(), Drive { piece, fuel, mail: true });
        assert_eq!(cut.names().into_iter().collect::<BTreeSet<_>>(), found, "pieces of {piece}, fuel of {fuel}");
    }
}

/// The number of the object in which something was found.
fn object_of(seen: &crate::pipeline::Seen, name: &str) -> u32 {
    seen.verdict.findings.iter().find(|spotted| spotted.finding.name == name).expect("it was found").object
}

#[test]
fn html_that_begins_late_and_html_in_an_archive_have_views() {
    let engine = engine(
        &format!("Html:3:*:{}\nText:7:*:{}\n", hex("<table>hello world"), hex("hello world")),
        &format!("InZip;Engine:81-255,Target:3,Container:CL_TYPE_ZIP;0;{}\n", hex("hello world")),
    );
    let late = "words ".repeat(3000) + "<Table> Hello\n World";
    assert_eq!(crate::pipeline::inspect(&engine, Policy::default(), late.as_bytes()).names(), ["Text", "Html"]);
    let zip = crate::build::zip("a.html", b"<html><table> Hello World</table></html>", true);
    let seen = crate::pipeline::inspect(&engine, Policy::default(), &zip);
    assert_eq!(seen.names().into_iter().collect::<BTreeSet<_>>(), BTreeSet::from(["Html", "InZip"]));
}

/// Verdict of clamscan on a file.
fn clamscan(folder: &Path, file: &Path) -> BTreeSet<String> {
    let mut command = Command::new("timeout");
    command.args(["20", "clamscan", "--allmatch", "--no-summary", "-d"]).arg(folder.join("db")).arg(file);
    let output = command.output().expect("clamscan runs");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let names =
        text.lines().filter_map(|line| line.strip_suffix(".UNOFFICIAL FOUND")?.rsplit(' ').next().map(str::to_owned));
    names.collect()
}

/// Texts with bytes that are in no text, at every kind of place.
fn disturbed_texts() -> Vec<Vec<u8>> {
    let text = "some ordinary text here\nALPHA  beta\nmore text follows\n";
    let mut seed = 1_u64;
    let mut below = |bound: usize| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (seed >> 33) as usize % bound
    };
    let mut all = Vec::new();
    for round in 0..300 {
        let mut bytes = text.repeat([1, 1, 3, 19, 60][round % 5]).into_bytes();
        for _ in 0..below(3) + below(3) {
            let byte = [0, 0, 0, 0, 1, 2, 8, 14, 26, 27, 31, 127, 128, 255][below(14)];
            let at = [0, 1, 2, 3, bytes.len(), below(bytes.len()), 1022, 1023, 1024][below(9)].min(bytes.len());
            let run = [1, 1, 2, 3, 40][below(5)];
            bytes.splice(at..at, std::iter::repeat_n(byte, run));
        }
        all.push(bytes);
    }
    all
}

#[test]
fn text_is_what_clamscan_takes_for_text() {
    if Command::new("clamscan").arg("--version").output().is_err() {
        eprintln!("skipped: clamscan is not installed");
        return;
    }
    let folder = std::env::temp_dir().join(format!("sluice-inspect-texts-{}", std::process::id()));
    fs::create_dir_all(folder.join("files")).expect("a scratch folder");
    let ndb = format!("Text:7:*:{}\n", hex("alpha beta"));
    fs::write(folder.join("t.ndb"), &ndb).expect("a database");
    let engine = engine(&ndb, "");
    let texts = disturbed_texts();
    for (number, bytes) in texts.iter().enumerate() {
        fs::write(folder.join(format!("files/{number}")), bytes).expect("a text");
    }
    let mut command = Command::new("timeout");
    command.args(["60", "clamscan", "--no-summary", "-i", "-d"]).arg(folder.join("t.ndb")).arg(folder.join("files"));
    let output = command.output().expect("clamscan runs");
    let theirs = String::from_utf8_lossy(&output.stdout).into_owned();
    let theirs: BTreeSet<usize> = theirs
        .lines()
        .filter_map(|line| line.strip_suffix(": Text.UNOFFICIAL FOUND")?.rsplit('/').next()?.parse().ok())
        .collect();
    fs::remove_dir_all(&folder).expect("the scratch folder goes");
    let mut wrong = Vec::new();
    for (number, bytes) in texts.iter().enumerate() {
        let ours = !crate::pipeline::inspect(&engine, Policy::default(), bytes).names().is_empty();
        if ours != theirs.contains(&number) {
            wrong.push(format!("{number}: ours {ours}, {}", bytes[..bytes.len().min(90)].escape_ascii()));
        }
    }
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), texts.len(), wrong.join("\n"));
    assert!(theirs.len() > 100 && theirs.len() < texts.len() - 20, "{}", theirs.len());
}

/// Words of pages and texts, as they stand and as they stand in views.
const WORDS: [&str; 14] = [
    "Alpha  Beta",
    "alpha beta",
    "<p>Alpha",
    "<p>alpha",
    "beta</p>",
    "Gamma &amp; ",
    "gamma & ",
    "<script>d('E'+\"F\")</script>",
    "d(\"ef\")",
    "var Gee=1;gee",
    "gee",
    "<a href='X Y'>z</a>",
    "X Y z",
    "\r\n\t",
];

#[test]
fn the_names_are_those_of_clamscan() {
    if Command::new("clamscan").arg("--version").output().is_err() {
        eprintln!("skipped: clamscan is not installed");
        return;
    }
    let folder = std::env::temp_dir().join(format!("sluice-inspect-views-{}", std::process::id()));
    fs::create_dir_all(folder.join("db")).expect("a scratch folder");
    let mut ndb = String::new();
    for (number, word) in WORDS.iter().enumerate() {
        for (target, place) in [(3, "*"), (7, "*"), (3, "0,40"), (7, "EOF-30,30"), (3, "EOF-60,60"), (7, "3,9")] {
            let name = format!("W{number}.{target}.{}", place.replace([',', '*'], "_"));
            ndb += &format!("{name}:{target}:{place}:{}\n", hex(word));
        }
    }
    let ldb = format!(
        "Sized;Engine:81-255,Target:7,FileSize:20-60;0;{a}\nNot;Engine:81-255,Target:3;0&(1=0);{a};{b}\nTwice;Engine:81-255,Target:3;0>1;{a}\n",
        a = hex("alpha beta"),
        b = hex("gamma")
    );
    fs::write(folder.join("db/t.ndb"), &ndb).expect("a database");
    fs::write(folder.join("db/t.ldb"), &ldb).expect("a database");
    let engine = engine(&ndb, &ldb);
    let (mut matches, mut seed) = (0, 1u64);
    for round in 0..40 {
        let mut page = String::from(["<html>", "plain ", "<body><table>"][round % 3]);
        for _ in 0..3 + round % 5 {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let word = WORDS[(seed >> 33) as usize % WORDS.len()];
            // A text that has a tag is HTML to clamscan.
            page +=
                if round % 3 == 1 { word.trim_start_matches("<script>").trim_start_matches("<a href=") } else { word };
        }
        let file: PathBuf = folder.join("file");
        fs::write(&file, &page).expect("a file");
        let theirs = clamscan(&folder, &file);
        let seen = crate::pipeline::inspect(&engine, Policy::default(), page.as_bytes());
        let ours: BTreeSet<String> = seen.names().into_iter().map(str::to_owned).collect();
        assert_eq!(ours, theirs, "{page:?}");
        matches += theirs.len();
    }
    fs::remove_dir_all(&folder).expect("the scratch folder goes");
    assert!(matches > 100, "the words hit too little: {matches}");
}

#[test]
fn a_page_that_begins_like_a_picture_is_read_as_declared_too() {
    let ndb = format!("Html:3:*:{}\nInside:0:*:{}\n", hex("hello world"), hex("within the link"));
    let engine = engine(&ndb, "");
    let whole = Drive { piece: 64 << 10, fuel: u64::MAX, mail: true };
    let read = |mail: &str| crate::pipeline::drive(&engine, Policy::default(), mail.as_bytes(), whole);
    for head in ["GIF89a=1;", "%PDF-1.7 "] {
        let page = format!(
            "{head}<body><p>Hello\n <b></b>World</p><a href=\"data:text/plain;base64,d2l0aGluIHRoZSBsaW5r\">x</a>"
        );
        let part = |fields: &str| {
            format!(
                "From: a@example.org\r\nMIME-Version: 1.0\r\nContent-Type: multipart/mixed; boundary=b\r\n\r\n\
                 --b\r\n{fields}\r\n\r\n{page}\r\n--b--\r\n"
            )
        };
        let declared = part("Content-Type: text/html");
        let named = part("Content-Type: application/octet-stream; name=\"a.HTM\"");
        for mail in [declared, named] {
            let seen = read(&mail);
            let found: BTreeSet<&str> = seen.names().into_iter().collect();
            assert!(found.contains("Html") && found.contains("Inside"), "{head}: {found:?}");
        }
        let other = part("Content-Type: image/gif; name=a.gif");
        let seen = read(&other);
        assert!(!seen.names().contains(&"Inside"), "{head}");
    }
}

/// Lines of a mail end in CRLF, those of the files that signatures are written for in LF.
#[test]
fn signatures_with_a_line_feed_are_found_in_files_sent_as_text() {
    let engine = engine(&format!("Lines:0:*:{}\n", hex("one\necho")), "");
    for coding in ["7bit", "quoted-printable"] {
        let mail = format!(
            "From: a@example.org\r\nMIME-Version: 1.0\r\nContent-Type: multipart/mixed; boundary=b\r\n\r\n--b\r\n\
             Content-Type: application/x-sh; name=a.sh\r\nContent-Transfer-Encoding: {coding}\r\n\r\n\
             echo one\r\necho two\r\n--b--\r\n"
        );
        for (piece, fuel) in [(64 << 10, u64::MAX), (1, u64::MAX), (7, 11)] {
            let how = Drive { piece, fuel, mail: true };
            let seen = crate::pipeline::drive(&engine, Policy::default(), mail.as_bytes(), how);
            assert_eq!(seen.names(), ["Lines"], "{coding}");
        }
    }
}
