//! The names of an object: rules, and signatures by what containers say, are tried on all that its fields give.

use std::sync::Arc;

use crate::build::{gzip, tar};
use crate::pipeline::{Drive, Seen, drive_in};
use flow::{Context, Glob, Rule, Way};
use inspect::Engine;
use scan::{Builder, Database};
use stream::Limits;

fn engine(database: Database) -> Arc<Engine> {
    Arc::new(Engine { database: Arc::new(database), limits: Limits::default() })
}

/// A mail, where `*.exe` is forbidden, driven in segments of several sizes.
fn judged(engine: &Arc<Engine>, mail: &[u8]) -> Seen {
    let rule = Rule {
        label: "exe".into(),
        names: vec![Glob::new("*.exe")],
        media_types: Vec::new(),
        types: Vec::new(),
        way: Way::Forbid,
    };
    let context = Context { rules: [rule].into(), ..Context::default() };
    let drive = |piece| drive_in(engine, context.clone(), mail, Drive { piece, fuel: u64::MAX, mail: true });
    let (whole, cut) = (drive(64 << 10), drive(7));
    assert_eq!(whole.names(), cut.names());
    whole
}

fn mail(fields: &str, body: &[u8]) -> Vec<u8> {
    let head = format!(
        "From: a@b.test\r\nSubject: x\r\nMIME-Version: 1.0\r\nContent-Type: multipart/mixed; boundary=B\r\n\r\n--B\r\n{fields}\r\n\r\n"
    );
    [head.as_bytes(), body, b"\r\n--B--\r\n"].concat()
}

const FORBIDDEN: [&str; 18] = [
    "Content-Type: application/octet-stream; name=evil.exe\r\nContent-Disposition: attachment; filename=ok.txt",
    "Content-Disposition: attachment; filename=ok.txt\r\nContent-Type: application/octet-stream; name=evil.exe",
    "Content-Disposition: attachment; filename=evil.exe; filename*=utf-8''ok.txt",
    "Content-Disposition: attachment; filename*=utf-8''ok.txt; filename=evil.exe",
    "Content-Disposition: attachment; filename*0=ok.txt; filename=evil.exe",
    "Content-Disposition: attachment; filename=ok.txt; filename=evil.exe",
    "Content-Disposition: attachment; filename=ok.txt\r\nContent-Disposition: attachment; filename=evil.exe",
    "Content-Disposition: attachment; filename=\"evil.ex\\e\"",
    "Content-Disposition: attachment; filename=(c)evil.exe(d)",
    "Content-Type: application/octet-stream; filename=evil.exe",
    "Content-Type: a/b; name=ok.txt\r\nContent-Type: a/b; name=evil.exe",
    "Content-Disposition: attachment; filename=\"evil.exe::$DATA\"",
    "Content-Disposition: attachment; filename=\"evil.exe:Zone\"",
    "Content-Disposition: attachment; filename=\"evil.exe/\"",
    "Content-Disposition: attachment; filename=\"evil.exe\0.txt\"",
    "Content-Type: message/rfc822; name=evil.exe",
    "Content-Type: message/rfc822\r\nContent-Disposition: attachment; filename=ok.eml; name=evil.exe",
    "Content-Type: multipart/x-parts; boundary=C; name=evil.exe",
];

#[test]
fn a_rule_is_tried_on_every_name_of_a_part() {
    let engine = engine(Database::with_builtin());
    for fields in FORBIDDEN {
        assert_eq!(
            judged(&engine, &mail(fields, b"Subject: y\r\n\r\ntext")).names(),
            ["Policy.Forbidden.exe"],
            "{fields:?}"
        );
    }
    for fields in ["Content-Type: message/rfc822; name=ok.eml", "Content-Type: a/b; name=a.txt; filename=b.txt"] {
        assert_eq!(judged(&engine, &mail(fields, b"Subject: y\r\n\r\ntext")).names(), [""; 0], "{fields:?}");
    }
}

#[test]
fn the_first_name_is_the_one_that_is_shown() {
    let engine = engine(Database::with_builtin());
    for (fields, wanted) in FORBIDDEN.iter().zip(["ok.txt"; 2].into_iter().chain(["ok.txt"; 5])) {
        let seen = judged(&engine, &mail(fields, b"text"));
        assert_eq!(
            seen.verdict.findings[0].path.iter().map(|name| &**name).collect::<Vec<_>>(),
            [wanted],
            "{fields:?}"
        );
    }
}

#[test]
fn more_names_than_are_kept_are_a_limit() {
    let engine = engine(Database::with_builtin());
    let names: String = (0..30).map(|index| format!("; filename=a{index}.txt")).collect();
    let fields = format!("Content-Disposition: attachment{names}; filename=evil.exe");
    assert_eq!(judged(&engine, &mail(&fields, b"text")).names(), ["Heuristics.Limits.Exceeded.Names"]);
}

#[test]
fn a_signature_is_tried_on_every_name_of_a_part() {
    let mut builder = Builder::new();
    builder.add("t.cdb", b"Test.Name:CL_TYPE_MAIL:*:evil\\.scr$:*:*:*:*:*:*\n").unwrap();
    let engine = engine(builder.build());
    for fields in FORBIDDEN.iter().take(7) {
        let seen = judged(&engine, &mail(&fields.replace("exe", "scr"), b"text"));
        assert_eq!(seen.names(), ["Test.Name.UNOFFICIAL"], "{fields:?}");
    }
}

#[test]
fn the_content_of_a_stream_has_the_name_of_the_stream() {
    let engine = engine(Database::with_builtin());
    let named = |name: &str, body: &[u8]| mail(&format!("Content-Type: a/b; name={name}"), body);
    let stream = gzip(b"text");
    let twice = gzip(&stream);
    for (name, body, wanted) in [
        ("evil.exe.gz", &stream, true),
        ("evil.exe.x.gz", &stream, false),
        ("evil.exe.gz.gz", &twice, true),
        ("evil.txt.gz", &stream, false),
        ("evil.txt.gz", &gzip(&tar(&[("evil.exe.gz", &stream)])), true),
    ] {
        let seen = judged(&engine, &named(name, body));
        assert_eq!(seen.names().contains(&"Policy.Forbidden.exe"), wanted, "{name}: {:?}", seen.names());
    }
    let text = b"TVqQAAMAAAAEAAAA//8AALgAAAAAAAAAQAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAgAAAAA==\r\n";
    assert_eq!(judged(&engine, &named("evil.exe.b64", text)).names(), ["Policy.Forbidden.exe"]);
}
