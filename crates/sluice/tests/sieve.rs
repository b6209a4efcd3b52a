//! `sluice sieve`: scripts that are checked, and tried on a mail.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

const MAIL: &str = "From: ann@example.org\nTo: bob@example.net\nSubject: [list] hello\n\nbody\n";

fn sieve(folder: &Path, args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_sluice")).arg("sieve").args(args).current_dir(folder).output().unwrap()
}

fn told(output: &Output) -> (String, String, Option<i32>) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (text(&output.stdout), text(&output.stderr), output.status.code())
}

#[test]
fn a_script_is_checked() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).unwrap();
    write("right.sieve", "keep;\n");
    write("wrong.sieve", "keep;\n\nfileinto \"x\";\n");
    write("outer.sieve", "require \"include\"; include \"wrong\";\n");
    assert_eq!(told(&sieve(folder.path(), &["check", "right.sieve"])), (String::new(), String::new(), Some(0)));
    let (_, error, code) = told(&sieve(folder.path(), &["check", "right.sieve", "wrong.sieve"]));
    assert_eq!(error, "wrong.sieve: line 3, column 1: fileinto takes require \"fileinto\"\n");
    assert_eq!(code, Some(1));
    let (_, error, _) = told(&sieve(folder.path(), &["check", "--folder", ".", "outer.sieve"]));
    assert_eq!(error, "outer.sieve: script wrong, line 3, column 1: fileinto takes require \"fileinto\"\n");
    assert_eq!(told(&sieve(folder.path(), &["check", "nowhere.sieve"])).2, Some(2));
}

#[test]
fn a_script_is_tried() {
    let folder = tempfile::tempdir().unwrap();
    let script = "require [\"fileinto\", \"copy\", \"imap4flags\", \"variables\", \"vacation\"];\n\
        if header :matches \"subject\" \"[*]*\" { fileinto :copy :flags \"\\\\Seen\" \"Lists/${1}\"; }\nvacation \"away\";\n";
    fs::write(folder.path().join("s.sieve"), script).unwrap();
    fs::write(folder.path().join("m.eml"), MAIL).unwrap();
    let args = ["test", "--from", "ann@example.org", "--to", "bob@example.net", "s.sieve", "m.eml"];
    let (out, error, code) = told(&sieve(folder.path(), &args));
    let wanted = "fileinto \"Lists/list\" :flags \"\\\\Seen\"\n\
        vacation to \"ann@example.org\", subject \"Auto: [list] hello\", again after 604800 seconds\nkeep (implicit)\n";
    assert_eq!((out.as_str(), error.as_str(), code), (wanted, "", Some(0)));
    let json = [&args[..], &["--json", "-o", "out.json"]].concat();
    assert_eq!(told(&sieve(folder.path(), &json)).2, Some(0));
    let value: Value = serde_json::from_slice(&fs::read(folder.path().join("out.json")).unwrap()).unwrap();
    assert_eq!(value["actions"][0]["mailbox"], "Lists/list");
    assert!(value["actions"][1]["message"].as_str().unwrap().contains("Auto-Submitted: auto-replied"));
    assert_eq!(value["failure"], Value::Null);
}

#[test]
fn a_script_that_fails_keeps_the_mail() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("s.sieve"), "require \"reject\";\nkeep;\nreject \"no\";\n").unwrap();
    fs::write(folder.path().join("m.eml"), MAIL).unwrap();
    let (out, error, code) = told(&sieve(folder.path(), &["test", "s.sieve", "m.eml"]));
    assert_eq!(out, "keep (implicit)\n");
    assert_eq!(error, "s.sieve: line 3: reject does not go with what was done before\n");
    assert_eq!(code, Some(1));
}
