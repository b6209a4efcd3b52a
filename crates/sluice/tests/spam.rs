//! `sluice spam check`: report and JSON, several mails, the standard input, exit status.

use std::fs;
use std::io::Write as _;
use std::process::{Command, Output, Stdio};

use serde_json::Value;

use crate::harness::{Behaviour, Gateway, Sink};

const RULES: &str = "body FREE /free money/i\ndescribe FREE Offers money\nscore FREE 3.456\nbody __PART /money/\nmeta BOTH FREE && __PART\n\
                     score BOTH 2\nheader NICE Subject =~ /minutes/\nscore NICE -1.5\nreport Points _SCORE_ of _REQD_:\nreport _SUMMARY_\n";
const SPAM: &str = "From: a@b.example\nSubject: hello\n\nFREE money here\n";
const HAM: &str = "From: a@b.example\nSubject: minutes\n\nsee below\n";

fn check(folder: &std::path::Path, args: &[&str], input: &str) -> Output {
    let mut child = Command::new(env!("CARGO_BIN_EXE_sluice"))
        .current_dir(folder)
        .args(["spam", "check", "--local", "--rules", "rules"])
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    child.wait_with_output().unwrap()
}

#[test]
fn rules_ask_a_file_in_place_of_the_network() {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("rules")).unwrap();
    let rules = "header LISTED eval:check_rbl('bl', 'bl.test.')\nscore LISTED 3\ntflags LISTED net\n";
    fs::write(folder.path().join("rules/a.cf"), rules).unwrap();
    let mail = "Received: from x (x [192.0.2.7]) by y; Mon, 1 Jan 2024 00:00:00 +0000\nFrom: a@b.example\n\nhello\n";
    fs::write(folder.path().join("mail"), mail).unwrap();
    fs::write(folder.path().join("zone"), "7.2.0.192.bl.test A 127.0.0.2\n").unwrap();
    let score = |args: &[&str]| {
        let output = Command::new(env!("CARGO_BIN_EXE_sluice"))
            .current_dir(folder.path())
            .args(["spam", "check", "--json", "--rules", "rules"])
            .args(args)
            .arg("mail")
            .output()
            .unwrap();
        serde_json::from_slice::<Value>(&output.stdout).map(|line| line["score"].as_f64().unwrap()).ok()
    };
    assert_eq!(score(&["--zone", "zone"]), Some(3.0));
    assert_eq!(score(&["--local"]), Some(0.0));
    assert_eq!(score(&["--zone", "none"]), None, "there is no such file");
    assert_eq!(score(&["--zone", "zone", "--local"]), None, "one or the other");
}

#[test]
fn a_mail_is_checked_and_learned_by_the_rules_of_a_configuration() {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("own")).unwrap();
    fs::write(folder.path().join("own/a.cf"), format!("{RULES}bayes_min_spam_num 0\n")).unwrap();
    fs::write(folder.path().join("spam.eml"), SPAM).unwrap();
    let config = "[spam]\nrules = ['own']\nrequired = 6\nnetwork = false\n[spam.bayes]\nledger = 'ledger'\n\
                  [[listener]]\nprotocol = 'smtp'\naddress = '127.0.0.1:1'\nforward = 'discard:'\n";
    fs::write(folder.path().join("sluice.toml"), config).unwrap();
    let run = |args: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_sluice"));
        command.current_dir(folder.path()).args(args).output().unwrap()
    };
    let line = |args: &[&str]| {
        let output = run(&[&["spam", "check", "--json", "--config", "sluice.toml"], args, &["spam.eml"]].concat());
        assert!(output.stderr.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
        serde_json::from_slice::<Value>(&output.stdout).unwrap()
    };
    let learned = run(&["learn", "--config", "sluice.toml", "spam", "spam.eml"]);
    assert!(learned.status.success(), "{}", String::from_utf8_lossy(&learned.stderr));
    let told = line(&[]);
    assert_eq!(
        (&told["score"], &told["required"], &told["spam"]),
        (&5.46.into(), &6.0.into(), &false.into()),
        "{told}"
    );
    assert_eq!(line(&["--user", "somebody"])["score"], told["score"]);
    assert_eq!(run(&["spam", "check", "--note", "--rules", "own", "spam.eml"]).status.code(), Some(2), "no ledger");
}

#[test]
fn mails_are_checked_and_reported() {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("rules")).unwrap();
    fs::write(folder.path().join("rules/a.cf"), RULES).unwrap();
    fs::write(folder.path().join("spam.eml"), SPAM).unwrap();
    fs::write(folder.path().join("ham.eml"), HAM).unwrap();
    let output = check(folder.path(), &["--json", "ham.eml", "spam.eml", "-"], SPAM);
    assert_eq!(output.status.code(), Some(1), "{}", String::from_utf8_lossy(&output.stderr));
    let lines: Vec<Value> =
        String::from_utf8(output.stdout).unwrap().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(
        lines.iter().map(|line| line["file"].as_str().unwrap()).collect::<Vec<_>>(),
        ["ham.eml", "spam.eml", "-"]
    );
    assert_eq!((&lines[0]["score"], &lines[0]["required"]), (&(-1.5).into(), &5.0.into()));
    assert_eq!(lines[1]["score"], 5.46);
    assert_eq!(lines[1]["hits"], lines[2]["hits"]);
    let hits: Vec<(&str, f64, &Value)> = lines[1]["hits"]
        .as_array()
        .unwrap()
        .iter()
        .map(|hit| (hit["rule"].as_str().unwrap(), hit["score"].as_f64().unwrap(), &hit["description"]))
        .collect();
    assert_eq!(hits, [("FREE", 3.46, &"Offers money".into()), ("BOTH", 2.0, &Value::Null)]);

    let output = check(folder.path(), &["spam.eml"], "");
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.starts_with("Points 5.5 of 5.0:\n 3.5 FREE                   BODY: Offers money\n"), "{text}");
    let output = check(folder.path(), &["--matches", "--json", "spam.eml"], "");
    assert!(String::from_utf8(output.stdout).unwrap().contains(r#""matched":"FREE money""#));
    assert_eq!(check(folder.path(), &["ham.eml"], "").status.code(), Some(0));
    assert_eq!(check(folder.path(), &["none.eml", "spam.eml"], "").status.code(), Some(2));
}

#[test]
fn a_user_has_scores_of_their_own() {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("rules")).unwrap();
    fs::write(folder.path().join("rules/a.cf"), RULES).unwrap();
    fs::write(folder.path().join("joe"), "score FREE 0.5\nrequired_score 2.5\nbody MINE /x/\n").unwrap();
    let output = check(folder.path(), &["--json", "--prefs", "joe", "-"], SPAM);
    let value: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((value["score"].as_f64(), value["required"].as_f64()), (Some(2.5), Some(2.5)));
    assert_eq!(value["spam"], true);
    assert!(String::from_utf8_lossy(&output.stderr).contains("joe:3: error: MINE: body: it is not for a user's file"));
    assert_eq!(check(folder.path(), &["--prefs", "none", "-"], SPAM).status.code(), Some(2));
}

/// The status of a mail that a door has scored, for these recipients.
fn scored(gateway: &Gateway, sink: &Sink, recipients: &[&str], count: usize) -> String {
    let mut wire = gateway.connect();
    wire.talk("S: 220 *\nC: EHLO x\nS: 250-*\nC: MAIL FROM:<a@b.example>\nS: 250 *");
    for recipient in recipients {
        wire.talk(&format!("C: RCPT TO:<{recipient}>\nS: 250 *"));
    }
    wire.talk("C: DATA\nS: 354 *");
    wire.send(SPAM.replace('\n', "\r\n").as_bytes());
    wire.send(b".\r\n");
    assert_eq!(wire.reply(), "250 2.0.0 Taken");
    crate::learn::status(&sink.wait(count)[count - 1])
}

#[test]
fn doors_ask_what_the_recipient_wants_and_see_that_it_has_changed() {
    for isolation in ["process", "none"] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path();
        for name in ["rules", "users"] {
            fs::create_dir(path.join(name)).unwrap();
        }
        let status = "clear_headers\nadd_header all Status _YESNO_ _SCORE_ _REQD_\n";
        fs::write(path.join("rules/a.cf"), format!("{RULES}{status}")).unwrap();
        let head = format!(
            "isolation = \"{isolation}\"\n[spam]\nrules = [\"{0}/rules\"]\nrequired = 6\npreferences = \"{0}/users\"\n",
            path.display()
        );
        let sink = Sink::start(Behaviour::default());
        let gateway = Gateway::start_with(&head, "smtp", &sink.forward(), "");
        assert_eq!(scored(&gateway, &sink, &["joe@x.example"], 1), "X-Spam-Status: No 5.5 6.0");
        fs::write(path.join("users/joe@x.example"), "score BOTH 1\n\nblocklist_form a@b\nrequired_score 4\n").unwrap();
        assert_eq!(scored(&gateway, &sink, &["Joe@X.example"], 2), "X-Spam-Status: Yes 4.5 4.0", "{isolation}");
        gateway.wait_for_log("joe@x.example:3: error: blocklist_form");
        assert_eq!(scored(&gateway, &sink, &["joe@x.example", "ann@x.example"], 3), "X-Spam-Status: No 5.5 6.0");
        fs::write(path.join("users/joe@x.example"), "score BOTH -2\n").unwrap();
        assert_eq!(scored(&gateway, &sink, &["joe@x.example"], 4), "X-Spam-Status: No 1.5 6.0");
    }
}

#[test]
fn spamc_says_whose_scores_count() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    for name in ["rules", "users"] {
        fs::create_dir(path.join(name)).unwrap();
    }
    fs::write(path.join("rules/a.cf"), RULES).unwrap();
    fs::write(path.join("users/joe"), "score BOTH 1\nrequired_score 3\n").unwrap();
    let spamd = Gateway::with(&format!(
        "threads = 1\n[spam]\nrules = [\"{0}/rules\"]\npreferences = \"{0}/users\"\n\
         [[listener]]\nprotocol = \"spamd\"\naddress = \"127.0.0.1:0\"\n",
        path.display()
    ));
    let ask = |user: &str| {
        let port = spamd.address.port().to_string();
        let args = ["-d", "127.0.0.1", "-p", &port, "-x", "-c", "-u", user];
        let mut child = Command::new("spamc").args(args).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().ok()?;
        child.stdin.take().unwrap().write_all(SPAM.as_bytes()).unwrap();
        Some(String::from_utf8_lossy(&child.wait_with_output().unwrap().stdout).trim().to_owned())
    };
    let Some(own) = ask("joe") else {
        assert!(std::env::var_os("CI").is_none(), "spamc is missing");
        return eprintln!("skipped: spamc is not installed");
    };
    assert_eq!((own.as_str(), ask("ann").as_deref()), ("4.5/3.0", Some("5.5/5.0")));
}
