//! Hits of texts in a mail are the same however the mail is cut and whatever the fuel.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use flow::{Context, In, Out, Sought, Wants};
use inspect::{Engine, Inspection, Progress};
use scan::Database;
use stream::{Fuel, Limits, Object};

const MAIL: &str = "Subject: not told\r\nContent-Type: multipart/mixed; boundary=x\r\n\r\n--x\r\n\
    Content-Type: text/plain; charset=iso-8859-1\r\nContent-Transfer-Encoding: quoted-printable\r\n\r\nGr=FC=DFe an=\r\nder\r\n--x\r\n\
    Content-Type: text/html\r\nContent-Disposition: attachment; filename=\"Offer 2026.html\"\r\n\r\n<p>in<b>voi</b>ce</p><!-- no -->\r\n--x\r\n\
    Content-Type: message/rfc822\r\n\r\nSubject: =?utf-8?q?inner_=C3=A9t=C3=A9?=\r\n\r\nbare words\r\n--x--\r\n";

fn told(mail: &[u8], sought: Sought, piece: usize, fuel: u64) -> (BTreeSet<String>, usize) {
    let engine = Arc::new(Engine { database: Arc::new(Database::with_builtin()), limits: Limits::default() });
    let object = Object { media_type: Some("message/rfc822".into()), ..Object::default() };
    let wants = Wants { sought: Some(sought), ..Wants::default() };
    let mut inspection = Inspection::new(engine, Context { object, wants, ..Context::default() });
    let (mut terms, mut present) = (BTreeSet::new(), 0);
    let mut work = |inspection: &mut Inspection| {
        loop {
            let progress = inspection.work(&mut Fuel::new(fuel));
            while let Some(out) = inspection.hear() {
                match out {
                    Out::Terms(told) => terms.extend(told.lines().map(str::to_owned)),
                    Out::Present => present += 1,
                    _ => {}
                }
            }
            if progress != Progress::Tired {
                return;
            }
        }
    };
    for mut piece in mail.chunks(piece) {
        while !piece.is_empty() {
            piece = &piece[inspection.tell(In::Feed(piece))..];
            work(&mut inspection);
        }
    }
    inspection.tell(In::Finish);
    work(&mut inspection);
    (terms, present)
}

#[test]
fn terms_are_the_same_however_the_mail_is_cut() {
    let (whole, present) = told(MAIL.as_bytes(), Sought::Terms, usize::MAX, 1 << 30);
    for term in ["grüße", "ander", "invoice", "offer", "2026", "inner", "été", "bare", "words", "attachment"] {
        assert!(whole.contains(term), "{term}: {whole:?}");
    }
    assert!(["no", "not", "told", "voi"].iter().all(|term| !whole.contains(*term)) && present == 0, "{whole:?}");
    for piece in 1..MAIL.len() {
        assert_eq!(told(MAIL.as_bytes(), Sought::Terms, piece, 1 + piece as u64 * 7).0, whole, "{piece}");
    }
}

#[test]
fn a_phrase_is_found_once_wherever_it_is() {
    for (phrase, found) in
        [("BARE  words", 1), ("an invoice", 0), ("invoice", 1), ("inner été", 1), ("Offer 2026", 1), ("not told", 0)]
    {
        for piece in [1, 7, usize::MAX] {
            let (terms, present) = told(MAIL.as_bytes(), Sought::Phrase(phrase.into()), piece, 100);
            assert!(terms.is_empty() && present == found, "{phrase}: {present}");
        }
    }
}

/// Mails of `corpus/` and of the packs: terms are the same, and each is one term.
#[test]
fn terms_of_real_mails_do_not_depend_on_cuts() {
    let (mut own, mut files) = (Vec::new(), Vec::new());
    walk(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../../corpus/mails"), &mut own);
    if let Some(data) = std::env::var_os("SLUICE_DATA") {
        walk(&Path::new(&data).join("mail-mime"), &mut files);
    }
    files.sort();
    let mut count = 0;
    for path in own.iter().chain(files.iter().step_by(9)) {
        let mail = std::fs::read(path).unwrap();
        if mail.len() > 100_000 {
            continue;
        }
        let (whole, _) = told(&mail, Sought::Terms, usize::MAX, 1 << 30);
        assert_eq!(told(&mail, Sought::Terms, 1 + mail.len() % 89, 1_000).0, whole, "{}", path.display());
        assert!(whole.iter().all(|term| (1..=index::TERM_CHARACTERS_MAX).contains(&term.chars().count())));
        count += 1;
    }
    assert!(count > 50, "{count} mails");
}

fn walk(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        match entry.path() {
            path if path.is_dir() => walk(&path, files),
            path => files.push(path),
        }
    }
}
