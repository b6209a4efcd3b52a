//! The evasion mails and all public mails, when the packs are unpacked: every payload comes out, nothing panics, the law
//! holds, and real mail is hardly ever ambiguous.

use std::collections::BTreeMap;
use std::path::Path;

use mime::{Decoder, Embedded, Parser};
use stream::law::{self, Told};
use stream::{Coding, Kind, Limits, Note, Object};

fn told(input: &[u8]) -> Vec<Told> {
    law::tell(Parser::new(&Limits::default()), input)
}

/// Everything that a driver would scan: each object's content decoded, files embedded in it, messages in it, second
/// readings.
fn contents(told: &[Told], into: &mut Vec<Vec<u8>>, depth: u32) {
    let mut objects: Vec<&Object> = Vec::new();
    for item in told {
        match item {
            Told::Open(object) => objects.push(object),
            Told::Close => drop(objects.pop()),
            Told::Alternative(other) => contents(other, into, depth),
            Told::Content(bytes) => {
                let object = objects.last().expect("content is in an object");
                if object.kind != Kind::Field {
                    decoded(object.coding, bytes, into, depth);
                }
            }
            _ => {}
        }
    }
}

fn decoded(coding: Coding, bytes: &[u8], into: &mut Vec<Vec<u8>>, depth: u32) {
    let content = law::content(&law::tell(Decoder::new(coding), bytes));
    let embedded = law::tell(Embedded::new(&Limits::default()), &content);
    if !embedded.is_empty() && depth < 4 {
        contents(&embedded, into, depth + 1);
    }
    if mime::looks_like_mail(&content) && depth < 4 {
        contents(&self::told(&content), into, depth + 1);
    }
    into.push(content);
}

fn has_limit_finding(told: &[Told]) -> bool {
    told.iter().any(|told| matches!(told, Told::Note(Note::Finding(finding)) if finding.class == stream::Class::Limit))
}

#[test]
fn every_evasion_mail_yields_its_payload() {
    let Some(folder) = crate::packs::folder("av-evasion/evasion/mime") else {
        return;
    };
    for (path, mail) in crate::packs::files(&folder) {
        let name = path.file_name().expect("a file").to_string_lossy().into_owned();
        let mut all = Vec::new();
        let told = told(&mail);
        contents(&told, &mut all, 0);
        let whole = all.iter().any(|content| is_payload(content));
        let reported = name == "nested-60.eml" && has_limit_finding(&told);
        assert!(whole || reported, "{name}");
    }
}

/// The payload is an executable of 544 bytes, or a zip with it.
fn is_payload(content: &[u8]) -> bool {
    content.len() == 544 && content.starts_with(b"MZP") || content.starts_with(b"PK\x03\x04")
}

#[test]
fn the_law_holds_over_every_public_mail() {
    let public = crate::packs::folder("mail-mime").map(|folder| crate::packs::files(&folder));
    for (path, mail) in crate::packs::own().into_iter().chain(public.into_iter().flatten()) {
        println!("{}", path.display());
        // Long mails cost patience, not insight: their structure is in the beginning.
        let mail = &mail[..mail.len().min(20_000)];
        law::holds(|| Parser::new(&Limits::default()), mail);
        law::holds(|| Embedded::new(&Limits::default()), mail);
    }
}

#[test]
fn real_mail_is_hardly_ever_ambiguous() {
    // Mails in the folder `forms` are made by hand.
    let mut mails = crate::packs::own();
    mails.retain(|(path, _)| !path.to_string_lossy().contains("/forms/"));
    let public = crate::packs::folder("mail-spamassassin/spamassassin-corpus");
    mails.extend(public.into_iter().flat_map(|folder| crate::packs::files(&folder)));
    let mut forks: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut forked = 0;
    for (path, mail) in &mails {
        forked += u32::from(note_forks(path, &told(mail), &mut forks));
    }
    for (name, paths) in &forks {
        println!("{name}: {} {:?}", paths.len(), &paths[..paths.len().min(5)]);
    }
    println!("{forked} of {} mails", mails.len());
    assert!(forked as usize * 100 < mails.len());
}

fn note_forks(path: &Path, told: &[Told], forks: &mut BTreeMap<String, Vec<String>>) -> bool {
    let mut any = false;
    for item in told {
        if let Told::Note(Note::Fork(finding) | Note::Finding(finding)) = item {
            let name = path.file_name().expect("a file").to_string_lossy().into_owned();
            let paths = forks.entry(finding.name.clone().into_owned()).or_default();
            paths.push(name);
            any = true;
        }
    }
    any
}

#[test]
fn files_written_into_public_mails_are_whole() {
    let Some(folder) = crate::packs::folder("mail-mime") else {
        return;
    };
    for (mail, len, start) in [
        ("mimekit/yenc/simple.msg", 584, &b"yEnc - Testfile (1)"[..]),
        ("mime-tools/testmsgs/uu-zeegee.msg", 4834, b"GIF8"),
        ("mimekit/encoders/photo.uu-states", 130_292, b"\xff\xd8"),
    ] {
        let mut all = Vec::new();
        let text = std::fs::read(folder.join(mail)).expect("the mail is in the pack");
        contents(&law::tell(Embedded::new(&Limits::default()), &text), &mut all, 4);
        assert!(all.iter().any(|file| file.len() == len && file.starts_with(start)), "{mail}");
    }
}
