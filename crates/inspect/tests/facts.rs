//! Facts for a door about a mail besides the verdict, so that it has not to parse anything itself.

use std::ops::Range;
use std::sync::Arc;

use flow::{Context, Parts, Wants};
use inspect::Engine;
use scan::Database;
use stream::Limits;

use crate::pipeline::{Drive, Seen, drive_in};

const MAIL: &str = "From: a\r\nContent-Type: multipart/mixed; boundary=x\r\n\r\npre\r\n--x\r\n\
    Content-Type: text/plain\r\n\r\nhello\r\n--x\r\n\r\nno header\r\n--x\r\nContent-Type: message/rfc822\r\n\r\n\
    Subject: in\r\nContent-Type: multipart/alternative; boundary=y\r\n\r\n--y\r\n\r\ninner\r\n--y--\r\n--x\r\n\
    Content-Type: message/rfc822\r\n\r\nSubject: bare\r\n\r\nbare\r\n--x--\r\nend\r\n";

fn seen(mail: &str, piece: usize, wants: Wants) -> Seen {
    let engine = Arc::new(Engine { database: Arc::new(Database::with_builtin()), limits: Limits::default() });
    let context = Context { wants, ..Context::default() };
    drive_in(&engine, context, mail.as_bytes(), Drive { piece, fuel: 10_000, mail: true })
}

fn parts(mail: &str, piece: usize) -> Parts {
    seen(mail, piece, Wants { parts: true, ..Wants::default() }).parts.expect("they were asked for")
}

fn text<'a>(mail: &'a str, range: &Range<u64>) -> &'a str {
    &mail[range.start as usize..range.end as usize]
}

#[test]
fn parts_have_the_numbers_of_the_standard_however_the_mail_is_cut() {
    for piece in 1..MAIL.len() {
        let parts = parts(MAIL, piece);
        let inner = "Subject: in\r\nContent-Type: multipart/alternative; boundary=y\r\n\r\n";
        for (path, header, body) in [
            (&[1][..], "Content-Type: text/plain\r\n\r\n", "hello"),
            (&[1, 1], "Content-Type: text/plain\r\n\r\n", "hello"),
            (&[2], "\r\n", "no header"),
            (&[3, 1], "\r\n", "inner"),
            (&[4, 1], "Subject: bare\r\n\r\n", "bare"),
        ] {
            let place = parts.place(path).unwrap();
            assert_eq!((text(MAIL, &place.header), text(MAIL, &place.body)), (header, body), "{path:?} by {piece}");
        }
        let (header, body) = parts.place(&[3]).unwrap().message.clone().unwrap();
        assert_eq!((text(MAIL, &header), text(MAIL, &body)), (inner, "--y\r\n\r\ninner\r\n--y--"));
        assert_eq!(text(MAIL, &parts.place(&[4]).unwrap().body), "Subject: bare\r\n\r\nbare");
        let (_, body) = parts.place(&[]).unwrap().message.clone().unwrap();
        assert!(text(MAIL, &body).starts_with("pre\r\n--x"));
        assert_eq!(parts.len, MAIL.len() as u64);
        assert!(parts.place(&[5]).is_none() && parts.place(&[1, 2]).is_none());
    }
}

#[test]
fn a_mail_of_one_part_has_one() {
    let mail = "Subject: a\r\n\r\nbody\r\n";
    assert_eq!(text(mail, &parts(mail, 5).place(&[1]).unwrap().body), "body\r\n");
}

#[test]
fn no_more_parts_are_kept_than_the_bound() {
    let mail = format!("Content-Type: multipart/mixed; boundary=x\r\n\r\n{}", "--x\r\n\r\npart\r\n".repeat(1_000));
    assert_eq!(parts(&mail, 100).places.len(), Parts::PLACES_MAX);
}

#[test]
fn fields_are_reported_that_were_asked_for_and_where_the_body_begins() {
    let mail = "List-Id: <a.b>\r\nSubject: x\r\nPRECEDENCE : bulk,\r\n  more\r\nContent-Type: message/rfc822\r\n\r\n\
        List-Id: <inner>\r\n\r\nbody\r\n";
    let wants = Wants { fields: vec!["list-id".into(), "precedence".into()].into(), ..Wants::default() };
    for piece in 1..mail.len() {
        let seen = seen(mail, piece, wants.clone());
        let fields: Vec<_> = seen.fields.iter().map(|field| (field.name(), field.value())).collect();
        assert_eq!(fields, [(&b"List-Id"[..], &b"<a.b>"[..]), (b"PRECEDENCE", b"bulk,\r\n  more")], "by {piece}");
        assert_eq!(seen.body, mail.find("List-Id: <inner>").map(|at| at as u64), "by {piece}");
        assert!(seen.parts.is_none(), "they were not asked for");
    }
}
