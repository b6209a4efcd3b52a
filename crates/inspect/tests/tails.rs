//! Mails behind each other, and within each other: what is read twice is read in linear time, and nothing is left out.

use std::sync::Arc;

use crate::build::{base64, eicar};
use crate::pipeline::{Drive, Seen, drive};
use flow::{Action, Policy};
use inspect::Engine;
use scan::Database;
use stream::Limits;

fn inspect(mail: &str) -> Seen {
    let engine = Arc::new(Engine { database: Arc::new(Database::with_builtin()), limits: Limits::default() });
    drive(&engine, Policy::default(), mail.as_bytes(), Drive { piece: 64 << 10, fuel: u64::MAX, mail: true })
}

/// Header of the mail of this number in a list of mails without their bodies.
fn header(number: usize) -> String {
    let types = ["multipart/mixed", "text/plain", "audio/basic", "multipart/alternative"];
    let folded = "   Content-Type: text/plain\n      Content-Type: image/gif\n";
    format!(
        "From: \"A {number}\" <a@example.org>\nTo: b@example.org\nSubject: mail {number}\n\
         Date: Thu, 19 Sep 1991 12:41:43 -0400\nContent-Type: {}\n{}",
        types[number * number % 7 % 4],
        if number.is_multiple_of(3) { folded } else { "" }
    )
}

/// A list of mails, each behind a line, with one that has the test virus.
fn list(line: &str, count: usize, place: Option<usize>) -> String {
    let virus = format!(
        "From: a@example.org\nSubject: x\nMIME-Version: 1.0\nContent-Type: application/octet-stream; name=e.com\n\
         Content-Transfer-Encoding: base64\n\n{}",
        base64(&eicar())
    );
    let mail = |number| if place == Some(number) { virus.clone() } else { header(number) };
    (0..count).map(|number| format!("{line}{}\n", mail(number))).collect()
}

#[test]
fn a_mailbox_of_mails_without_boundaries_is_read_in_linear_time() {
    for line in ["From - \n", "From - Thu Sep 19 12:41:43 1991\n", "From a@example.org Thu Sep 19 12:41:43 1991\n"] {
        let mailbox = list(line, 200, None);
        let Seen { verdict, objects, .. } = inspect(&mailbox);
        let bytes: u64 = objects.iter().map(|object| object.bytes).sum();
        assert!(verdict.action < Action::Reject, "{line:?}: {:?}", verdict.findings);
        assert!(
            objects.len() < 10 * 200 && bytes < 12 * mailbox.len() as u64,
            "{} objects, {bytes} bytes",
            objects.len()
        );
    }
}

#[test]
fn mails_without_lines_between_them_are_read_in_linear_time() {
    for count in [50, 200] {
        let mails = list("", count, None);
        let objects = inspect(&mails).objects;
        let bytes: u64 = objects.iter().map(|object| object.bytes).sum();
        assert!(objects.len() < 1_000 && bytes < 400 * mails.len() as u64, "{} objects, {bytes} bytes", objects.len());
    }
}

#[test]
fn a_virus_anywhere_among_many_mails_is_found() {
    for line in
        ["From - \n", "From a@example.org Thu Sep 19 12:41:43 1991\n", "", "From - \r", "From x\n", "From -\n\n"]
    {
        for place in (0..40).step_by(3) {
            let Seen { verdict, .. } = inspect(&list(line, 40, Some(place)));
            assert!(verdict.action == Action::Reject, "{line:?} {place}: {:?}", verdict.findings);
            let is_named = verdict.findings.iter().any(|spotted| spotted.finding.name.contains("Eicar"));
            let is_divided = line.ends_with("- \n") || line.ends_with("1991\n");
            assert!(is_named || !is_divided, "{line:?} {place}: {:?}", verdict.findings);
        }
    }
}

#[test]
fn mails_that_begin_in_one_place_and_end_in_others_are_no_cover() {
    // Each reading of the outer mail ends the inner one elsewhere; the virus stands behind all ends but the last.
    let inner = "From: a@example.org\nSubject: x\nMIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=I\n\n";
    let virus = format!(
        "--I\nContent-Type: application/octet-stream; name=e.com\nContent-Transfer-Encoding: base64\n\n{}--I--\n",
        base64(&eicar())
    );
    for count in 1..6 {
        let parameters: String = (0..count).map(|number| format!("; boundary=B{number}")).collect();
        let ends: String = (0..count).map(|number| format!("--B{number}\n\nx\n")).collect();
        for first in 0..count {
            let mail = format!(
                "From: a@example.org\nSubject: x\nMIME-Version: 1.0\nContent-Type: multipart/mixed{parameters}\n\n\
                 --B{first}\n\n{inner}{ends}{virus}"
            );
            let Seen { verdict, .. } = inspect(&mail);
            assert!(verdict.action == Action::Reject, "{count} {first}: {:?}", verdict.findings);
        }
    }
}
