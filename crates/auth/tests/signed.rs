//! Signatures and chains of others: vectors of the RFCs and the published suite.

use std::fs;

use auth::arc::{self, Newest};
use auth::dkim::sign::{self, Signer, SigningKey};
use auth::dkim::{self, Judge, Limits, Outcome, Signature};
use auth::message::{LineEnds, Message, Progress};
use auth::{Inquiry, Pending, inquiry, message};
use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::signature::{Ed25519KeyPair, KeyPair};

use crate::yaml::{documents, files, text};
use crate::zone::Zone;

/// Reports about a mail's signatures and its chain.
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
    let mut inquiry = Inquiry::new(inquiry::Limits::CONTENT, 0);
    loop {
        match ask(&mut inquiry) {
            Ok(known) => return known,
            Err(Pending) => zone.answer_all(&mut inquiry, false),
        }
    }
}

/// Files with keys in the first lines, then an empty line, then the mail.
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
            // A list has changed the signed content, and sealed it: the signature of the last sealer is whole.
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

const PLAIN: &[u8] =
    b"From: A <a@example.com>\r\nTo: b@example.net\r\nTo: c@example.net\r\nSubject: x\r\n\r\na  b\r\n\r\n";

/// A mail with a signature of ours in front.
pub fn sign(mail: &[u8], key: &SigningKey) -> Vec<u8> {
    let mut message = Message::new(LineEnds::Crlf, message::Limits::default());
    let (taken, Progress::Header(Some(header))) = message.feed(mail) else { panic!("no header") };
    message.begin_body([sign::WANTED]);
    message.feed(&mail[taken..]);
    message.finish();
    let signer = Signer { key, domain: "example.com", selector: "s", names: sign::NAMES, seconds: Some(86_400) };
    let field = signer.sign(&header, message.hashes().unwrap(), 1_700_000_000, &SystemRandom::new()).unwrap();
    assert!(field.lines().all(|line| line.len() <= 78), "{field}");
    [field.as_bytes(), mail].concat()
}

#[test]
fn what_is_signed_here_verifies_until_it_is_changed_or_expires() {
    let der = Ed25519KeyPair::generate_pkcs8(&SystemRandom::new()).unwrap();
    let pair = Ed25519KeyPair::from_pkcs8(der.as_ref()).unwrap();
    let text = format!("v=DKIM1; k=ed25519; p={}", ::text::base64::encode(pair.public_key().as_ref()));
    let zone = Zone::default().text("s._domainkey.example.com", &text);
    let key = SigningKey::from_der(der.as_ref()).unwrap();
    let outcome = |mail: &[u8], now| verify(mail, &zone, now, Limits::default()).0[0].outcome;
    let signed = sign(PLAIN, &key);
    assert_eq!(outcome(&signed, 1_700_000_001), Outcome::Pass);
    assert_eq!(outcome(&sign(&signed, &key), 1_700_000_001), Outcome::Pass);
    assert_eq!(outcome(&signed, 1_700_086_401), Outcome::Policy, "expired");
    assert_eq!(outcome(&signed, 1_600_000_000), Outcome::Policy, "in the future");
    assert_eq!(outcome(&[&signed[..], b"x"].concat(), 1_700_000_001), Outcome::Fail);
    for added in
        [&b"To: d@example.net\r\n"[..], b"Subject: y\r\n", b"From: e@example.com\r\n", b"Cc: f@example.net\r\n"]
    {
        assert_eq!(outcome(&[added, &signed].concat(), 1_700_000_001), Outcome::Fail, "{}", added.escape_ascii());
    }
    assert_eq!(outcome(&[b"X-Trace: y\r\n", &signed[..]].concat(), 1_700_000_001), Outcome::Pass);
    let covered = verify(&signed, &zone, 1_700_000_001, Limits::default()).0.remove(0).covered;
    let has = |name: &str| covered.iter().any(|known| **known == *name);
    assert!(has("from") && has("subject"), "{covered:?}");
    assert!(!has("to") && !has("cc"), "there are two, and there is none: {covered:?}");
    assert!(SigningKey::from_der(b"no key").is_err());
}
