//! Mails that some reader opens and others do not: what is in them is found, or they are refused.

use std::sync::Arc;

use crate::build::{base64, eicar, gzip};
use crate::pipeline::{Drive, Seen, drive};
use flow::{Action, Policy};
use inspect::Engine;
use scan::Database;
use stream::{Class, Limits};

const EICAR: &str = "Eicar-Test-Signature";

fn inspect(mail: &str) -> Seen {
    inspect_bytes(mail.as_bytes())
}

fn inspect_bytes(mail: &[u8]) -> Seen {
    let engine = Arc::new(Engine { database: Arc::new(Database::with_builtin()), limits: Limits::default() });
    drive(&engine, Policy::default(), mail, Drive { piece: 64 << 10, fuel: u64::MAX, mail: true })
}

/// A part that is the test virus, with these fields before those of its type and coding.
fn part(fields: &str) -> String {
    format!(
        "{fields}Content-Type: application/octet-stream; name=e.com\r\nContent-Transfer-Encoding: base64\r\n\r\n{}",
        base64(&eicar())
    )
}

/// A multipart of this boundary around a part.
fn mixed(fields: &str, boundary: &str, part: &str) -> String {
    format!(
        "{fields}\r\n--{boundary}\r\nContent-Type: text/plain\r\n\r\nhello\r\n--{boundary}\r\n{part}--{boundary}--\r\n"
    )
}

fn mail(rest: &str) -> String {
    format!("From: a@example.org\r\nSubject: x\r\nMIME-Version: 1.0\r\n{rest}")
}

fn is_seen_through(name: &str, mail: &str) {
    let Seen { verdict, .. } = inspect(mail);
    assert!(verdict.action == Action::Reject, "{name}: {:?}", verdict.findings);
}

/// A header with this transfer coding.
type Head<'a> = &'a dyn Fn(&str) -> String;

#[test]
fn one_ambiguity_within_another_of_its_name_is_no_echo() {
    let odd = "no field at all\r\n";
    let of = |value: &str| format!("Content-Type: {value}\r\n");
    let twice = |head: &dyn Fn(&str) -> String| {
        mail(&mixed(&head("BOUND"), "BOUND", &mixed(&head("INNER"), "INNER", &part(""))))
    };
    is_seen_through(
        "a line that is no field",
        &mail(&mixed(&(odd.to_string() + &of("multipart/mixed; boundary=B")), "B", &part(odd))),
    );
    let heads: [(&str, Head<'_>); 5] = [
        ("two boundaries", &|bound| of(&format!("multipart/mixed; boundary=NO{bound}; boundary={bound}"))),
        ("extended boundary", &|bound| of(&format!("multipart/mixed; boundary=NO{bound}; boundary*=''{bound}"))),
        ("two types", &|bound| of("text/plain") + &of(&format!("multipart/mixed; boundary={bound}"))),
        ("no boundary", &|_| of("multipart/mixed")),
        ("no field", &|bound| format!("X: y\r\n{odd}{}", of(&format!("multipart/mixed; boundary={bound}")))),
    ];
    for (name, head) in heads {
        is_seen_through(name, &twice(head));
    }
}

#[test]
fn the_fifth_type_and_coding_is_not_silent() {
    for count in 1..8 {
        let types: String = (0..count).map(|number| format!("Content-Type: text/x{number}\r\n")).collect();
        let head = types + "Content-Type: multipart/mixed; boundary=B\r\n";
        is_seen_through("types", &mail(&mixed(&head, "B", &part(""))));
    }
    let codings = ["7bit", "8bit", "binary", "quoted-printable", "x-uuencode"];
    for count in 1..=codings.len() {
        let fields: String =
            codings[..count].iter().map(|coding| format!("Content-Transfer-Encoding: {coding}\r\n")).collect();
        is_seen_through("codings", &mail(&mixed("Content-Type: multipart/mixed; boundary=B\r\n", "B", &part(&fields))));
        let list =
            format!("Content-Transfer-Encoding: {}, base64\r\n\r\n{}", codings[..count].join(", "), base64(&eicar()));
        is_seen_through("codings in one field", &mail(&list));
    }
    let boundaries: String = (0..5).map(|number| format!("; boundary=NO{number}")).collect();
    let head = format!("Content-Type: multipart/mixed{boundaries}; boundary=B\r\n");
    is_seen_through("boundaries", &mail(&mixed(&head, "B", &part(""))));
    let parameters = "; x=y".repeat(200);
    let head = format!("Content-Type: multipart/mixed{parameters}; boundary=B\r\n");
    is_seen_through("parameters", &mail(&mixed(&head, "B", &part(""))));
}

#[test]
fn comments_in_names_and_values_are_read_and_not_read() {
    for name in ["Content-Type(x)", "(x)Content-Type", "Content-(x (y))Type", "Content-Type (x y)", "Content-Type(a:b)"]
    {
        let head = format!("{name}: multipart/mixed; boundary=B\r\n");
        is_seen_through(name, &mail(&mixed(&head, "B", &part(""))));
    }
    for field in ["Content-Transfer-Encoding(x): base64", "(x (y) z)Content-Transfer-Encoding: ba(x)se64"] {
        is_seen_through(field, &mail(&format!("{field}\r\n\r\n{}", base64(&eicar()))));
    }
    for value in
        ["multi(x)part/mixed; boundary=B", "multipart/mixed; bound(x(y))ary=B", "multipart/mixed; boundary=(x)B(y)"]
    {
        is_seen_through(value, &mail(&mixed(&format!("Content-Type: {value}\r\n"), "B", &part(""))));
    }
}

#[test]
fn a_comment_that_is_never_closed_hides_nothing() {
    let part = format!("Content-Transfer-Encoding: quoted-printable\r\n\r\n{}\r\n", quoted());
    for value in
        ["multipart/mixed; x=(; boundary=B", "multipart/mixed (; boundary=B", "multipart/mixed; (x; boundary=\"B\""]
    {
        for decoy in ["", "\r\n--decoy\r\n\r\nx\r\n"] {
            let head = format!("Content-Type: {value}\r\n{decoy}");
            is_seen_through(&head, &mail(&mixed(&head, "B", &part)));
        }
    }
}

#[test]
fn what_few_readers_take_for_a_multipart_is_read_as_one() {
    for head in [
        "Content-Type: text/plain; boundary=B",
        "Content-Type: x-multipart/mixed; boundary=B",
        "Content-Type: multipart/mixed; boundary=never",
        "no field\r\nContent-Type\r\n : multipart/mixed; boundary=B",
    ] {
        let seen = inspect(&mail(&mixed(&format!("{head}\r\n"), "B", &part(""))));
        assert!(seen.names().contains(&EICAR), "{head}: {:?}", seen.names());
    }
    let decoy = mixed("Content-Type: multipart/mixed; boundary=never\r\n\r\n--decoy\r\n", "B", &part(""));
    is_seen_through("two boundaries that are not declared", &mail(&decoy));
}

#[test]
fn a_header_may_begin_with_a_line_of_blanks() {
    let hidden: String = crate::build::eicar().iter().map(|byte| format!("={byte:02X}=\r\n")).collect();
    for blank in [" ", "\t", "  \t"] {
        let part = format!("{blank}\r\nContent-Transfer-Encoding: quoted-printable\r\n\r\n{hidden}\r\n");
        is_seen_through(
            &format!("{blank:?}"),
            &mail(&mixed("Content-Type: multipart/mixed; boundary=B\r\n", "B", &part)),
        );
    }
}

/// The test virus, quoted-printable throughout.
fn quoted() -> String {
    eicar().iter().map(|byte| format!("={byte:02X}=\r\n")).collect()
}

#[test]
fn a_soft_break_behind_an_equals_sign_is_read_in_both_ways() {
    let lines: Vec<String> = eicar().iter().map(|byte| format!("={byte:02X}")).collect();
    for soft_break in ["=\r\n", "= \r\n", "=\n", "=\r\n=\r\n"] {
        for at in [0, 1, 30, 67] {
            let mut lines = lines.clone();
            lines[at].insert_str(1, soft_break);
            let head = "Content-Type: application/octet-stream\r\nContent-Transfer-Encoding: quoted-printable";
            is_seen_through(&format!("{soft_break:?} {at}"), &mail(&format!("{head}\r\n\r\n{}", lines.concat())));
        }
    }
}

#[test]
fn white_space_of_any_length_makes_no_other_line_of_a_soft_break() {
    for blanks in [1, 63, 64, 65, 70, 300, 5_000] {
        let soft_break = format!("={}\r\n", " ".repeat(blanks));
        let head = "Content-Type: application/octet-stream\r\nContent-Transfer-Encoding: quoted-printable";
        let body = quoted().replace("=\r\n", &soft_break);
        is_seen_through(&format!("{blanks}"), &mail(&format!("{head}\r\n\r\n{body}\r\n")));
    }
}

#[test]
fn a_header_may_begin_behind_blank_lines_or_before_the_first_delimiter() {
    let head = "Content-Type: multipart/mixed; boundary=B\r\n";
    for name in ["Content-Transfer-Encoding", "content-transfer-encoding"] {
        for before in ["", "X: y\r\n", "no field\r\n", "Content-Type: text/plain\r\n", "--x\r\n", "Content\r\nC\r\n"] {
            let fields = format!("{before}{name}: quoted-printable\r\n\r\n{}\r\n", quoted());
            for blank in ["\r\n", "\r\n\r\n", "\n", "\r\n \r\n"] {
                let part = format!("{blank}{fields}");
                is_seen_through(&format!("part {part}"), &mail(&mixed(head, "B", &part)));
                is_seen_through(&format!("message {part}"), &part);
                // Between the blank line of the header and the first delimiter.
                let whole = mail(&mixed(&format!("{head}{blank}{fields}"), "B", "\r\nhello\r\n"));
                is_seen_through(&format!("preamble {part}"), &whole);
            }
        }
    }
    for rest in ["--B\r\n\r\nContent-Type is a field\r\n--B--\r\n", "content-transfer\r\n--B\r\n\r\nx\r\n--B--\r\n"] {
        let seen = inspect(&mail(&format!("{head}\r\n{rest}")));
        assert_eq!(seen.verdict.action, Action::Pass, "{rest}: {:?}", seen.names());
    }
}

#[test]
fn a_boundary_that_readers_decode_is_read_decoded_or_refused() {
    let part = format!("Content-Transfer-Encoding: quoted-printable\r\n\r\n{}\r\n", quoted());
    for (parameter, boundary) in [
        ("boundary*=utf-7''+AC0-+AC0-", "--"),
        ("boundary*=utf-7''+AEI-", "B"),
        ("boundary*=cp037''%60%60", "--"),
        ("boundary*=cp037''%81%40%82", "a b"),
        ("boundary*=utf-16-be''%00-%00-", "--"),
        ("boundary*0*=x-unknown''%2D; boundary*1=\"-\"", "--"),
        ("boundary=\"=?utf-8?q?--?=\"", "--"),
        ("boundary=\"=?utf-8?q?a b?=\"", "a b"),
        ("boundary==?utf-8?b?LS0=?=", "--"),
        ("boundary=<-->", "--"),
        ("boundary=<a b>", "a b"),
        ("boundary='--'", "--"),
    ] {
        let head = format!("Content-Type: multipart/mixed; {parameter}\r\n");
        let whole = mail(&mixed(&head, boundary, &part));
        is_seen_through(parameter, &whole);
        // A delimiter as it stands does not hide those that are decoded.
        let raw = parameter.split_once('=').map_or("", |(_, raw)| raw).trim_matches('"');
        is_seen_through(parameter, &whole.replacen("\r\n--", &format!("\r\n--{raw}\r\n\r\nx\r\n--"), 1));
    }
}

#[test]
fn encoded_words_in_type_and_coding_are_decoded_and_not() {
    let plain = format!("\r\n\r\n{}", base64(&eicar()));
    for value in ["=?us-ascii?q?base64?=", "=?us-ascii?b?YmFzZTY0?=", "=?utf-8?q?=62ase64?="] {
        is_seen_through(value, &mail(&format!("Content-Transfer-Encoding: {value}{plain}")));
    }
    for value in ["=?utf-8?q?multipart/mixed?=; boundary=B", "=?utf-8?b?bXVsdGlwYXJ0L21peGVkOyBib3VuZGFyeT1C?="] {
        is_seen_through(value, &mail(&mixed(&format!("Content-Type: {value}\r\n"), "B", &part(""))));
    }
    for value in ["=?utf-8?q?message/rfc822?=", "=?utf-8?b?bWVzc2FnZS9yZmM4MjI=?="] {
        let inner = format!("Content-Transfer-Encoding: quoted-printable\r\n\r\n{}", quoted());
        is_seen_through(value, &mail(&format!("Content-Type: {value}\r\n\r\n{inner}")));
    }
}

#[test]
fn a_field_name_may_be_longer_than_any() {
    for length in [200, 255, 256, 257, 500, 1100, 9000] {
        for empty_line in ["", "\r\n"] {
            let (name, base64) = ("X".repeat(length), base64(&eicar()));
            let head = "Content-Type: application/octet-stream\r\nContent-Transfer-Encoding: ";
            for (coding, body) in [("base64", &base64), ("quoted-printable", &quoted())] {
                let rest = format!("{head}{coding}\r\n{name}: y\r\n{empty_line}{body}\r\n");
                is_seen_through(&format!("{length} {coding} {empty_line:?}"), &mail(&rest));
            }
        }
    }
}

#[test]
fn pieces_of_messages_are_refused_and_those_elsewhere_are_told() {
    let seen =
        inspect(&mail("Content-Type: message/partial; id=x; number=1; total=2\r\n\r\nSubject: y\r\n\r\nhello\r\n"));
    assert_eq!((seen.names(), seen.verdict.action), (vec!["Heuristics.Ambiguous.Mime.Partial"], Action::Reject));
    let body = "Content-Type: message/external-body; access-type=URL\r\n\r\nContent-Type: text/plain\r\n\r\n";
    let seen = inspect(&mail(body));
    assert_eq!((seen.names(), seen.verdict.action), (vec!["Heuristics.External.Mime.Body"], Action::Pass));
}

#[test]
fn a_clean_mail_with_two_readings_passes() {
    for rest in [
        "Content-Type: text/plain; boundary=B\r\n\r\nhello\r\n",
        "Content-Type: multipart/mixed; boundary=never\r\n\r\nhello\r\n-- \r\nme\r\n-----Original Message-----\r\n",
        "X-Odd(x): y\r\nContent-Type: text/plain; name=a (1).txt\r\n\r\nhello\r\n",
    ] {
        let seen = inspect(&mail(rest));
        assert_eq!(seen.verdict.action, Action::Pass, "{rest}: {:?}", seen.names());
        assert!(seen.verdict.findings.iter().all(|spotted| spotted.finding.class <= Class::TwoReadings));
    }
}

/// Lines of yEnc, whose bytes are no text.
fn yenc(content: &[u8]) -> Vec<u8> {
    let mut lines = format!("=ybegin line=128 size={} name=m.bin\r\n", content.len()).into_bytes();
    for line in content.chunks(128) {
        for byte in line.iter().map(|byte| byte.wrapping_add(42)) {
            match byte {
                b'\0' | b'\n' | b'\r' | b'=' => lines.extend([b'=', byte.wrapping_add(64)]),
                byte => lines.push(byte),
            }
        }
        lines.extend(b"\r\n");
    }
    lines.extend(format!("=yend size={}\r\n", content.len()).bytes());
    lines
}

#[test]
fn yenc_is_found_though_it_is_no_text() {
    let noise: Vec<u8> = (0u32..6000).map(|at| (at.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
    let content = gzip(&eicar());
    // A second file of noise makes the whole binary for certain.
    let files = [yenc(&content), yenc(&noise)].concat();
    for (name, head) in [
        ("no type", ""),
        ("text", "Content-Type: text/plain\r\nContent-Transfer-Encoding: 8bit\r\n"),
        ("octets", "Content-Type: application/octet-stream\r\nContent-Transfer-Encoding: 8bit\r\n"),
    ] {
        for before in ["", "hello\r\n"] {
            let mail = [mail(&format!("{head}\r\n{before}")).as_bytes(), &files].concat();
            let Seen { verdict, .. } = inspect_bytes(&mail);
            assert!(verdict.action == Action::Reject, "{name}: {:?}", verdict.findings);
        }
    }
}

#[test]
fn a_file_in_the_text_of_a_mail_is_found_behind_any_first_bytes() {
    let file = format!("begin-base64 644 a.exe\r\n{}====\r\n", base64(&eicar()));
    for first in ["\0", "\u{1}", "GIF89a", "{\\rtf1 ", "%PDF-1.4\r\n", "PK\u{3}\u{4}"] {
        let body = format!("{first}\r\nhello\r\n{file}");
        is_seen_through(first, &mail(&format!("\r\n{body}")));
        is_seen_through(first, &mail(&format!("Content-Type: text/plain\r\n\r\n{body}")));
        let part = format!("Content-Type: text/plain\r\n\r\n{body}");
        is_seen_through(first, &mail(&mixed("Content-Type: multipart/mixed; boundary=B\r\n", "B", &part)));
    }
}
