//! Signatures and chains of others: vectors of the RFCs and the published suite.

use std::fs;

use auth::arc::{self, Newest};
use auth::dkim::{self, Judge, Limits, Outcome, Signature};
use auth::message::{LineEnds, Message, Progress};
use auth::{Inquiry, Pending, inquiry, message};

use crate::yaml::{documents, files, text};
use crate::zone::Zone;

/// What is told of a mail's signatures and of its chain.
pub fn verify(mail: &[u8], zone: &Zone, now: u64, limits: Limits) -> (Vec<dkim::Report>, arc::Report) {
    let mut message = Message::new(LineEnds::Any, message::Limits::default());
    let (taken, progress) = message.feed(mail);
    let header = match progress {
        Progress::Header(header) => header.unwrap(),
        Progress::More => match message.finish() {
            Progress::Header(header) => header.unwrap(),
            Progress::More => unreachable!(),
        },
    };
    let signatures: Vec<_> =
        header.named("dkim-signature").iter().map(|&index| Signature::parse(&header, index)).collect();
    let chain = Newest::read(&header);
    let wanted = signatures.iter().flatten().map(Signature::wanted);
    message.begin_body(wanted.chain(chain.iter().flatten().map(Newest::wanted)).collect::<Vec<_>>());
    message.feed(&mail[taken..]);
    message.finish();
    let judge = Judge { header: &header, body: message.hashes().unwrap(), now, limits };
    let reports = signatures.iter().map(|signature| match signature {
        Ok(signature) => answered(zone, |inquiry| signature.verify(&judge, inquiry)),
        Err(report) => (**report).clone(),
    });
    let chain = match &chain {
        Ok(None) => arc::Report::default(),
        Ok(Some(chain)) => answered(zone, |inquiry| chain.verify(&judge, inquiry)),
        Err(reason) => arc::Report { outcome: arc::Outcome::Fail, reason: (*reason).into(), ..arc::Report::default() },
    };
    (reports.collect(), chain)
}

fn answered<T>(zone: &Zone, mut ask: impl FnMut(&mut Inquiry) -> Result<T, Pending>) -> T {
    let mut inquiry = Inquiry::new(inquiry::Limits::default());
    loop {
        match ask(&mut inquiry) {
            Ok(known) => return known,
            Err(Pending) => zone.answer_all(&mut inquiry, false),
        }
    }
}

/// Files of which the first lines are keys, then an empty one, then the mail.
#[test]
fn mails_that_others_have_signed_verify() {
    let mut count = 0;
    for folder in ["mail-auth/mail-auth-res/dkim", "mail-auth/mail-auth-res/arc"] {
        for path in files(folder, ".txt") {
            let text = fs::read_to_string(&path).unwrap();
            let (keys, mail) = text.split_once("\n\n").unwrap_or_else(|| text.split_once("\r\n\r\n").unwrap());
            let zone = keys.lines().fold(Zone::default(), |zone, line| {
                let (name, key) = line.trim().split_once(' ').unwrap();
                zone.text(name, key)
            });
            let (signatures, chain) = verify(mail.as_bytes(), &zone, 1_667_843_700, Limits::default());
            let is_chained = mail.contains("ARC-Seal");
            // A list has changed what was signed before, and sealed it: the signature of whoever sealed last is whole.
            for signature in signatures.iter().filter(|_| !is_chained) {
                assert_eq!(signature.outcome, Outcome::Pass, "{} {signature:?}", path.display());
            }
            let wanted = if is_chained { arc::Outcome::Pass } else { arc::Outcome::None };
            assert_eq!(chain.outcome, wanted, "{} {chain:?}", path.display());
            count += signatures.len() + usize::from(is_chained);
        }
    }
    println!("{count} signatures and chains");
}

#[test]
fn every_chain_of_the_published_suite_is_judged_as_it_says() {
    let (mut count, mut wrong) = (0, Vec::new());
    for path in files("mail-auth/arc-suite", "-validation-tests.yml") {
        for document in documents(&path) {
            let zone =
                document["txt-records"].as_hash().unwrap().iter().fold(Zone::default(), |zone, (name, value)| {
                    zone.text(name.as_str().unwrap(), &text(value).unwrap_or_default())
                });
            for (name, test) in document["tests"].as_hash().unwrap() {
                let name = name.as_str().unwrap();
                let wanted = match text(&test["cv"]).unwrap_or_default().as_str() {
                    "None" => arc::Outcome::None,
                    "Pass" => arc::Outcome::Pass,
                    // Where it says nothing, a sealer has said before that the chain has failed.
                    _ => arc::Outcome::Fail,
                };
                let mail = text(&test["message"]).unwrap_or_default();
                let (_, chain) = verify(mail.as_bytes(), &zone, 1_500_000_000, Limits::default());
                count += 1;
                if chain.outcome != wanted {
                    wrong
                        .push(format!("{name}: wanted {wanted:?}, {chain:?}: {}", text(&test["description"]).unwrap()));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{} of {count}:\n{}", wrong.len(), wrong.join("\n"));
    println!("{count} chains");
}
