//! Magic of file types in a database: it adds to what an object is opened as, and takes nothing away.

use std::sync::Arc;

use crate::pipeline::inspect;
use flow::Policy;
use inspect::Engine;
use scan::Builder;
use stream::Limits;

/// A ZIP archive with one member, `a`, stored: `needle`.
const ARCHIVE: &[u8] = b"PK\x03\x04\x0a\0\0\0\0\0\0\0\0\0\xc4\xf1\x0d\x8e\x06\0\0\0\x06\0\0\0\x01\0\0\0aneedle";

fn engine(files: &[(&str, &str)]) -> Arc<Engine> {
    let mut builder = Builder::new();
    for (name, text) in files {
        builder.add_official(name, text.as_bytes()).expect("a readable text");
    }
    Arc::new(Engine { database: Arc::new(builder.build()), limits: Limits::default() })
}

fn mail(attachment: &[u8]) -> Vec<u8> {
    let head =
        b"From: a@example.org\r\nContent-Type: application/octet-stream\r\nContent-Transfer-Encoding: binary\r\n\r\n";
    [&head[..], attachment].concat()
}

#[test]
fn an_archive_that_is_called_a_picture_is_scanned_as_one_and_opened_all_the_same() {
    let ftm = ("a.ftm", "0:0:504b0304:x:CL_TYPE_ANY:CL_TYPE_GIF\n");
    let ldb = "Picture;Engine:81-255,Target:5;0;504b0304\nMember;Engine:81-255,Target:0,Container:CL_TYPE_GIF;0;6e6565646c65\n";
    let named = |files: &[(&str, &str)]| {
        let seen = inspect(&engine(files), Policy::default(), &mail(ARCHIVE));
        let names = seen.names().into_iter().filter(|name| !name.contains("Heuristics"));
        let mut names: Vec<String> = names.map(str::to_owned).collect();
        names.dedup();
        names
    };
    assert_eq!(named(&[("a.ldb", ldb)]), [""; 0]);
    assert_eq!(named(&[("a.ldb", ldb), ftm]), ["Picture", "Member"]);
}

#[test]
fn rules_are_told_how_an_object_is_called() {
    let rules = "rule Named { condition: filename == \"a.exe\" and filepath contains \"b.zip\" and extension == \".exe\" }\n\
        rule Typed { strings: $a = \"MZ\" condition: $a and filetype == \"ZIP\" }\n\
        rule Other { strings: $a = \"needle\" condition: $a and not filename contains \"a\" }";
    let engine = engine(&[("a.yar", rules), ("a.ndb", "Text:7:*:6e6f7468696e67\n")]);
    let mut archive = ARCHIVE.to_vec();
    // The member is called `a.exe`.
    archive[26] = 5;
    archive.splice(31..31, *b".exe");
    archive.extend(b"MZ");
    let head =
        "From: a@example.org\r\nContent-Type: application/zip; name=b.zip\r\nContent-Transfer-Encoding: binary\r\n\r\n";
    let seen = inspect(&engine, Policy::default(), &[head.as_bytes(), &archive].concat());
    let names: Vec<&str> = seen.names().into_iter().filter(|name| name.starts_with("YARA")).collect();
    assert!(names.contains(&"YARA.Named") && names.contains(&"YARA.Typed"), "{names:?}");
    // The mail and the archive have the word in them, too, and other names.
    let of_member = seen.verdict.findings.iter().filter(|spotted| &*spotted.finding.name == "YARA.Other");
    assert!(of_member.clone().count() > 0 && of_member.clone().all(|spotted| spotted.path.len() < 2), "{names:?}");
}
