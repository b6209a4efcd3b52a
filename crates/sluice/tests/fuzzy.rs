//! Mails that are like those that were reported: `sluice learn spam`, `sluice spam check`, the doors, and rates on public mails.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::harness::{Behaviour, Gateway, Sink};
use crate::learn::{mails, send, status, text};

const RULES: &str = "loadplugin Mail::SpamAssassin::Plugin::FuzzyReports\nbody DENIED eval:check_fuzzy('0.75')\n\
                     body PROB eval:check_fuzzy('0.4', '0.75')\nbody PART eval:check_fuzzy_attachment()\n";
const TEXT: &str = "our pharmacy offers the best prices of all for genuine pills without any prescription, shipped overnight to your \
                    door in discreet packages; order today from the site below and save on every repeated purchase you make \
                    during this month with our promotion code. Please do not reply to this message, kind regards";

fn sluice(folder: &Path, args: &[&str]) -> String {
    text(&Command::new(env!("CARGO_BIN_EXE_sluice")).current_dir(folder).args(args).output().unwrap())
}

/// The rules that hit in each of these mails.
fn hits(folder: &Path, files: &[String]) -> Vec<Vec<String>> {
    let args = ["spam", "check", "--local", "--json", "--rules", "rules", "--ledger", "ledger"];
    let output =
        Command::new(env!("CARGO_BIN_EXE_sluice")).current_dir(folder).args(args).args(files).output().unwrap();
    let names = |line: &str| {
        let value: Value = serde_json::from_str(line).unwrap();
        value["hits"].as_array().unwrap().iter().map(|hit| hit["rule"].as_str().unwrap().to_owned()).collect()
    };
    String::from_utf8(output.stdout).unwrap().lines().map(names).collect()
}

fn site(rules: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("rules")).unwrap();
    fs::write(folder.path().join("rules/a.cf"), rules).unwrap();
    folder
}

fn mail(greeting: &str, text: &str, attached: &str) -> String {
    format!(
        "From: a@b.example\nSubject: x\nMIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=b\n\n--b\n\
         Content-Type: text/plain\n\n{greeting}\n\n{text}\n\n--b\nContent-Type: application/zip\n\n{attached}\n--b--\n"
    )
}

#[test]
fn what_was_reported_is_known_again_until_it_is_said_to_be_ham() {
    let folder = site(RULES);
    let folder = folder.path();
    let large = "x".repeat(70) + "\n";
    let large = large.repeat(100);
    let check = |mail: &str| {
        fs::write(folder.join("mail"), mail).unwrap();
        hits(folder, &["mail".into()]).remove(0)
    };
    let learn = |what: &str, mail: &str| {
        fs::write(folder.join("mail"), mail).unwrap();
        sluice(folder, &["learn", what, "--ledger", "ledger", "--rules", "rules", "mail"]);
    };
    let own = mail("Dear Peter,", TEXT, &large);
    assert!(check(&own).is_empty());
    learn("spam", &own);
    assert_eq!(check(&mail("Hello Mary,", &format!("{TEXT} 17 http://x.example/17"), "small")), ["DENIED"]);
    assert_eq!(check(&mail("Hi,", "another text", &large)), ["PART"]);
    let half = TEXT.replace("shipped", "we deliver by ship or by air within a week of days, and");
    assert_eq!(check(&mail("Hi,", &half.replace("during this month", "whenever you like to"), "small")), ["PROB"]);
    assert!(check(&mail("Hi,", "another text", "small")).is_empty());
    learn("ham", &mail("Dear Paul,", TEXT, "small"));
    assert_eq!(check(&own), ["PART"], "the text is forgotten");
    learn("forget", &own);
    assert!(check(&own).is_empty());
}

#[test]
fn doors_ask_what_was_reported_where_the_site_wants_it() {
    for isolation in ["process", "none"] {
        let folder = site("clear_headers\nadd_header all Status _YESNO_ _SCORE_ tests=_TESTS_\n");
        let path = folder.path();
        let head = format!(
            "isolation = \"{isolation}\"\n[spam]\nrules = [\"{0}/rules\"]\n[spam.bayes]\nledger = \"{0}/ledger\"\nwait_ms = 30000\n\
             [spam.fuzzy]\ndenied = 7.5\n",
            path.display()
        );
        let sink = Sink::start(Behaviour::default());
        let gateway = Gateway::start_with(&head, "smtp", &sink.forward(), "");
        let own = |greeting: &str| mail(greeting, TEXT, "small").replace('\n', "\r\n");
        send(&gateway, &own("Dear Peter,"));
        assert_eq!(status(&sink.wait(1)[0]), "X-Spam-Status: No 0.0 tests=none", "{isolation}");
        fs::write(path.join("mail"), own("Dear Peter,")).unwrap();
        fs::write(
            path.join("sluice.toml"),
            format!("{head}[[listener]]\nprotocol = 'smtp'\naddress = '127.0.0.1:1'\nforward = 'discard:'\n"),
        )
        .unwrap();
        // The configuration says that mails are compared, and where that is kept.
        sluice(path, &["learn", "-c", "sluice.toml", "spam", "--rules", "rules", "mail"]);
        send(&gateway, &own("Dear Anna,"));
        assert_eq!(status(&sink.wait(2)[1]), "X-Spam-Status: Yes 7.5 tests=SLUICE_FUZZY_DENIED", "{isolation}");
    }
}

/// A copy as senders make them: another name to greet, other numbers, other links, and another word here and there.
fn changed(mail: &str) -> String {
    let (head, body) = mail.split_once("\n\n").unwrap_or((mail, ""));
    let mut out = format!("{}\n\nDear Johannes,\n\n", head.replace("From: ", "From: x"));
    for (number, word) in body.split_inclusive(|letter: char| letter.is_ascii_whitespace()).enumerate() {
        let word = match () {
            () if word.contains("://") => word.replace("://", "://a").replace('e', "o"),
            () if number % 50 == 49 && word.trim().bytes().all(|byte| byte.is_ascii_alphabetic()) => {
                format!("indeed {word}")
            }
            () => word.chars().map(|letter| if letter.is_ascii_digit() { '7' } else { letter }).collect(),
        };
        out += &word;
    }
    out
}

/// A fifth of the mails; `SLUICE_SPAM_ALL=1` takes all.
#[test]
fn changed_copies_of_public_spam_are_found_and_ham_is_not() {
    let step = if std::env::var_os("SLUICE_SPAM_ALL").is_some() { 1 } else { 5 };
    let all = |kind: &str, folders: &[&str]| mails(kind, folders, step).concat();
    let (spam, ham) = (all("spam", &["spam-1", "spam-2"]), all("ham", &["easy-ham-1", "easy-ham-2", "hard-ham-1"]));
    let folder = site(RULES);
    let folder = folder.path();
    let args = ["learn", "spam", "--ledger", "ledger", "--rules", "rules", "--size-max", "0"];
    let spam_args: Vec<&str> = args.into_iter().chain(spam.iter().map(String::as_str)).collect();
    sluice(folder, &spam_args);
    // What is coded is left as it is: a change there would be another mail.
    let plain = spam
        .iter()
        .map(|path| fs::read(path).unwrap())
        .filter(|mail| !mail.to_ascii_lowercase().windows(6).any(|word| word == b"base64"));
    let mut copies = Vec::new();
    for (number, mail) in plain.enumerate() {
        let name = folder.join(format!("copy{number}")).to_str().unwrap().to_owned();
        fs::write(&name, changed(&String::from_utf8_lossy(&mail))).unwrap();
        copies.push(name);
    }
    let count =
        |found: &[Vec<String>], rule: &str| found.iter().filter(|hits| hits.iter().any(|hit| hit == rule)).count();
    let (of_spam, of_copies, of_ham) = (hits(folder, &spam), hits(folder, &copies), hits(folder, &ham));
    for (name, found) in [("spam", &of_spam), ("copies", &of_copies), ("ham", &of_ham)] {
        let [denied, probable, part] = ["DENIED", "PROB", "PART"].map(|rule| count(found, rule));
        println!(
            "{name}: {} mails, {denied} nearly the same, {probable} much alike, {part} by an attachment",
            found.len()
        );
    }
    let known = count(&of_spam, "DENIED");
    let again = count(&of_copies, "DENIED") + count(&of_copies, "PROB");
    assert!(known * 10 > spam.len() * 8, "{known} of {} have enough text", spam.len());
    assert!(again * 10 > copies.len() * 7, "{again} of {}", copies.len());
    assert_eq!(count(&of_ham, "DENIED") + count(&of_ham, "PART"), 0);
    assert!(count(&of_ham, "PROB") * 200 <= ham.len());
}
