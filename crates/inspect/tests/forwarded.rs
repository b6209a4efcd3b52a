//! Mails that people send, as they are and within others: bounces, receipts, digests, what was forwarded. None is refused.
//!
//! The mails of all folders `mail-*` below `SLUICE_DATA`, and a few made here.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::build::base64;
use crate::pipeline::{Drive, drive};
use flow::{Action, Policy};
use inspect::Engine;
use scan::Database;
use stream::{Class, Limits};

/// Findings for which a mail of the folders is refused as it stands, and rightly: a fragment, and an archive without its end.
const REFUSED: [&str; 2] = ["Heuristics.Ambiguous.Mime.Partial", "Heuristics.Ambiguous.Zip.Hidden"];

/// One way to put a mail into another one.
type Wrap = fn(&[u8]) -> Vec<u8>;

const WRAPS: [(&str, Wrap); 4] = [
    ("forwarded", |mail| part_of("multipart/mixed", "", &attached("message/rfc822", mail))),
    ("bounced", |mail| {
        part_of("multipart/report; report-type=delivery-status", &delivery_status(), &attached("message/rfc822", mail))
    }),
    ("its header bounced", |mail| {
        part_of(
            "multipart/report; report-type=delivery-status",
            &delivery_status(),
            &attached("text/rfc822-headers", header_of(mail)),
        )
    }),
    ("read", |mail| {
        part_of("multipart/report; report-type=disposition-notification", &receipt(), &attached("message/rfc822", mail))
    }),
];

fn engine() -> Arc<Engine> {
    Arc::new(Engine { database: Arc::new(Database::with_builtin()), limits: Limits::default() })
}

/// Findings for which `mail` is refused.
fn refused(engine: &Arc<Engine>, mail: &[u8]) -> Vec<String> {
    let seen = drive(engine, Policy::default(), mail, Drive { piece: 64 << 10, fuel: u64::MAX, mail: true });
    if seen.verdict.action < Action::Reject {
        return Vec::new();
    }
    let heavy = seen.verdict.findings.iter().filter(|spotted| spotted.finding.class >= Class::Ambiguous);
    heavy.map(|spotted| spotted.finding.name.to_string()).collect()
}

#[test]
fn no_real_mail_is_refused_however_deep_it_lies() {
    let Some(data) = std::env::var_os("SLUICE_DATA").map(PathBuf::from) else {
        eprintln!("no pack: mail-spamassassin");
        return;
    };
    let (engine, mut count, mut counts, mut wrong) = (engine(), 0, BTreeMap::new(), Vec::new());
    for file in mails(&data) {
        let Ok(mail) = std::fs::read(&file) else { continue };
        let mut look = |how: &str, mail: &[u8]| {
            count += 1;
            let names = refused(&engine, mail);
            names.iter().for_each(|name| *counts.entry(name.clone()).or_insert(0) += 1);
            if names.iter().any(|name| !REFUSED.contains(&&**name)) {
                wrong.push(format!("{} {how}: {names:?}", file.strip_prefix(&data).unwrap_or(&file).display()));
            }
        };
        look("as it is", &mail);
        for (one, wrap) in WRAPS {
            let once = wrap(&mail);
            look(one, &once);
            for (two, wrap) in WRAPS {
                look(&format!("{one}, {two}"), &wrap(&once));
            }
        }
    }
    println!("{count} mails, {counts:?}\n{}", wrong.join("\n"));
    assert!(wrong.is_empty(), "{} of {count} are refused", wrong.len());
}

/// The files of the folders that are mails.
fn mails(data: &Path) -> Vec<PathBuf> {
    let folders = std::fs::read_dir(data).into_iter().flatten().flatten();
    let mut waiting: Vec<PathBuf> = folders
        .filter(|entry| entry.file_name().to_string_lossy().starts_with("mail-"))
        .map(|entry| entry.path())
        .collect();
    let mut files = Vec::new();
    while let Some(path) = waiting.pop() {
        if path.is_dir() {
            waiting.extend(std::fs::read_dir(&path).into_iter().flatten().flatten().map(|entry| entry.path()));
        } else if path.components().any(|part| part.as_os_str() == "mbox") {
            // Many mails in one file are none.
        } else if std::fs::read(&path).is_ok_and(|bytes| mime::looks_like_mail(&bytes)) {
            files.push(path);
        }
    }
    files.sort();
    files
}

fn header_of(mail: &[u8]) -> &[u8] {
    let end = mail.windows(2).position(|pair| pair == b"\n\n" || pair == b"\n\r").map_or(mail.len(), |at| at + 1);
    &mail[..end]
}

fn attached(media_type: &str, content: &[u8]) -> Vec<u8> {
    [format!("Content-Type: {media_type}\r\n\r\n").as_bytes(), content].concat()
}

/// A mail of this type: a text, `report` and `part`.
fn part_of(media_type: &str, report: &str, part: &[u8]) -> Vec<u8> {
    // The boundary differs from that of a mail within.
    let boundary = format!("=_{}_{}", part.len(), report.len());
    let head = format!(
        "From: MAILER-DAEMON@example.org\r\nTo: a@example.org\r\nSubject: x\r\nMIME-Version: 1.0\r\n\
         Content-Type: {media_type}; boundary=\"{boundary}\"\r\n\r\n--{boundary}\r\n\r\nSee below.\r\n--{boundary}\r\n{}",
        if report.is_empty() { String::new() } else { format!("{report}\r\n--{boundary}\r\n") },
    );
    [head.as_bytes(), part, format!("\r\n--{boundary}--\r\n").as_bytes()].concat()
}

fn delivery_status() -> String {
    "Content-Type: message/delivery-status\r\n\r\nReporting-MTA: dns; mx.example.org\r\nArrival-Date: Mon, 1 Jan 2024 00:00:00 \
     +0000\r\n\r\nFinal-Recipient: rfc822; b@example.org\r\nAction: failed\r\nStatus: 5.1.1\r\n\r\n\
     Final-Recipient: rfc822; c@example.org\r\nAction: failed\r\nStatus: 5.1.1\r\n"
        .into()
}

fn receipt() -> String {
    "Content-Type: message/disposition-notification\r\n\r\nReporting-UA: x\r\nFinal-Recipient: rfc822; b@example.org\r\n\
     Disposition: manual-action/MDN-sent-manually; displayed\r\n"
        .into()
}

fn mail(rest: &str) -> String {
    format!("From: a@example.org\r\nTo: b@example.org\r\nSubject: x\r\nMIME-Version: 1.0\r\n{rest}")
}

#[test]
fn odd_mails_of_honest_senders_pass_however_deep_they_lie() {
    let plain = mail("Content-Type: text/plain\r\n\r\nHello there.\r\n");
    let alternatives = "Content-Type: multipart/alternative; boundary=A\r\n";
    let body = "\r\n--A\r\nContent-Type: text/plain\r\n\r\nnews\r\n--A\r\nContent-Type: text/html\r\n\r\n<p>news</p>\r\n--A--\r\n";
    let of = |coding: &str| format!("Content-Transfer-Encoding: {coding}\r\n");
    let footer = format!("Content-Type: text/plain\r\n{}\r\n{}", of("base64"), base64(b"hello, world\r\nx"));
    let mut mails: Vec<(String, Vec<u8>)> = Vec::new();
    for coding in ["base64", "quoted-printable", "x-unknown", "7bit, base64"] {
        let inner = format!("Content-Type: message/rfc822\r\n{}\r\n", of(coding));
        mails.push((format!("a forwarded mail, labelled {coding}"), mail(&format!("{inner}{plain}")).into()));
        let encoded = mail(&format!("{inner}{}", base64(plain.as_bytes())));
        if coding == "base64" {
            mails.push(("a forwarded mail, encoded".into(), encoded.into()));
        }
        mails.push((
            format!("a multipart, labelled {coding}"),
            mail(&format!("{alternatives}{}{body}", of(coding))).into(),
        ));
    }
    mails.push((
        "a footer behind Base64".into(),
        mail(&format!("{footer}_______\r\nlist mailing list\r\nlist@example.org\r\n")).into(),
    ));
    let digest: String = (0..100).map(|_| format!("--D\r\n{}\r\n", receipt())).collect();
    let digest = mail(&format!("Content-Type: multipart/mixed; boundary=D\r\n\r\n{digest}--D--\r\n"));
    mails.push(("a digest of receipts".into(), digest.into()));
    let coded = mail(&format!("{alternatives}{}{body}", of("quoted-printable")));
    let two: String = (0..40).map(|_| format!("--D\r\n\r\n{coded}\r\n")).collect();
    let two = mail(&format!("Content-Type: multipart/digest; boundary=D\r\n\r\n{two}--D--\r\n"));
    mails.push(("a digest of multiparts with a coding".into(), two.into()));
    let image = base64(&[&b"\x89PNG\r\n\x1a\n"[..], &[7; 3_000]].concat());
    let picture = format!("--P\r\nContent-Type: image/png\r\n{}\r\n{image}\r\n--P--\r\n", of("base64"));
    let news =
        mail(&format!("Content-Type: multipart/mixed; boundary=P\r\n\r\n--P\r\n{alternatives}\r\n{body}\r\n{picture}"));
    let labelled = |mail: &str| format!("Content-Type: message/rfc822\r\n{}\r\n{mail}", of("base64"));
    let many: String = (0..16).map(|_| format!("--D\r\n{}\r\n", labelled(&news))).collect();
    let many = mail(&format!("Content-Type: multipart/digest; boundary=D\r\n\r\n{many}--D--\r\n"));
    mails.push(("a digest of forwarded mails, all labelled".into(), many.into()));
    let nested = (0..4).fold(news.clone(), |inner, _| mail(&labelled(&inner)));
    mails.push(("forwarded mails in each other, all labelled".into(), nested.into()));
    let engine = engine();
    let mut wrong = Vec::new();
    for (name, mail) in mails {
        let mut all = vec![(String::new(), mail)];
        for _ in 0..3 {
            for (how, bytes) in &all {
                let names = refused(&engine, bytes);
                if !names.is_empty() {
                    wrong.push(format!("{name}{how}: {names:?}"));
                }
            }
            all = all
                .iter()
                .flat_map(|(how, bytes)| WRAPS.map(|(more, wrap)| (format!("{how}, {more}"), wrap(bytes))))
                .collect();
        }
    }
    assert!(wrong.is_empty(), "{} are refused:\n{}", wrong.len(), wrong.join("\n"));
}
