//! `sluice spam check`: report and JSON, several mails, the standard input, exit status.

use std::fs;
use std::io::Write as _;
use std::process::{Command, Output, Stdio};

use serde_json::Value;

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
