//! `sluice rules lint`: counts, problems with file and line, exit status; beside `spamassassin --lint` where it is
//! installed.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

fn lint(folder: &Path, args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_sluice"))
        .args(["rules", "lint", "--rules"])
        .arg(folder)
        .args(args)
        .output()
        .unwrap()
}

/// Exit status of `spamassassin --lint` for the same files.
fn peer(folder: &Path) -> Option<i32> {
    if !Path::new("/usr/bin/spamassassin").exists() {
        eprintln!("skipped: SpamAssassin is not installed");
        return None;
    }
    let empty = tempfile::tempdir().unwrap();
    fs::write(empty.path().join("0.cf"), "util_rb_tld com\n").unwrap();
    let mut command = Command::new("spamassassin");
    command.args(["--lint", "--nocreate-prefs", "-p", "/dev/null", "-C"]).arg(empty.path());
    let output = command.arg(format!("--siteconfigpath={}", folder.display())).output().unwrap();
    output.status.code()
}

fn folder(files: &[(&str, &str)]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    files.iter().for_each(|(name, text)| fs::write(folder.path().join(name), text).unwrap());
    folder
}

const PLUGINS: &str =
    "loadplugin Mail::SpamAssassin::Plugin::Check\nloadplugin Mail::SpamAssassin::Plugin::HeaderEval\n";

#[test]
fn right_and_broken_files_end_as_with_spamassassin() {
    for (text, status) in [
        ("body A /x/\nscore A 1\n", 0),
        ("body A /x/\nscore B 1\nmeta C A && NONE\n", 0),
        ("body A /x/\nnonsense\n", 1),
        ("body A /x/\nbody B /x\n", 1),
        ("body A /x/\nscore A 1 2\n", 1),
        ("body A /x/\nheader B eval:nosuch()\n", 1),
        ("body A /x/\nmeta B C\nmeta C B\n", 1),
        ("body A /x/\nmeta B A and C\n", 1),
        ("body A /x/\nbody 1A /x/\n", 1),
        ("body A /x/\nuse_bayes maybe\n", 1),
    ] {
        let folder = folder(&[("init.pre", PLUGINS), ("local.cf", text)]);
        let output = lint(folder.path(), &[]);
        assert_eq!(output.status.code(), Some(status), "{text}{}", String::from_utf8_lossy(&output.stdout));
        if let Some(theirs) = peer(folder.path()) {
            assert_eq!(theirs, status, "{text}");
        }
    }
}

#[test]
fn a_condition_that_cannot_be_read_is_an_error_here_and_there_a_warning() {
    let folder = folder(&[("init.pre", PLUGINS), ("local.cf", "body A /x/\nif (version > 3\nendif\n")]);
    assert_eq!(lint(folder.path(), &[]).status.code(), Some(1));
    assert!(peer(folder.path()).is_none_or(|status| status == 0));
}

#[test]
fn problems_are_named_with_file_and_line_and_what_to_do() {
    let folder = folder(&[("a.cf", "body A /x/\n\nscore A 1 2\nfull B eval:check_pyzor()\nscore C 1\n")]);
    let text = |args: &[&str]| String::from_utf8(lint(folder.path(), args).stdout).unwrap();
    let place = format!(
        "{}:3: error: A: score: there are 2 scores; write one score or four",
        folder.path().join("a.cf").display()
    );
    assert!(text(&[]).contains(&place), "{}", text(&[]));
    assert!(
        !text(&[]).contains("note:") && text(&["--all"]).contains(":5: note: C: there is no rule"),
        "{}",
        text(&["--all"])
    );
    let json: Value = serde_json::from_str(&text(&["--json"])).unwrap();
    assert_eq!(
        (&json["errors"], &json["problems"][0]["line"], &json["problems"][0]["rule"]),
        (&1.into(), &3.into(), &"A".into())
    );
    assert_eq!(json["rules"]["kinds"]["body"], 1);
    assert_eq!(json["disabled"][0]["rule"], "B");
}

#[test]
fn a_folder_without_rules_is_an_error() {
    let folder = folder(&[("README", "")]);
    assert_eq!(lint(folder.path(), &[]).status.code(), Some(2));
    assert_eq!(lint(&folder.path().join("none"), &[]).status.code(), Some(2));
}

#[test]
fn the_rules_of_the_package_are_read_and_hit() {
    let folder = folder(&[(
        "site.cf",
        "site_domain example.org\nsite_person Jane Doe\nsite_person_address jane@home.example\nutil_rb_tld org com example\n",
    )]);
    let rules = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packaging/spam");
    let output = lint(&rules, &["--all"]);
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stdout));
    let hits = |mail: &str| {
        fs::write(folder.path().join("mail"), mail).unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_sluice"));
        command.args(["spam", "check", "--local", "--json", "--rules"]).arg(&rules).arg("--rules").arg(folder.path());
        let output = command.arg(folder.path().join("mail")).output().unwrap();
        let told: Value = serde_json::from_slice(&output.stdout).unwrap();
        let names = told["hits"].as_array().unwrap().iter().map(|hit| hit["rule"].as_str().unwrap().to_owned());
        let mut names: Vec<String> = names.collect();
        names.sort();
        names
    };
    for (mail, wanted) in [
        ("From: Bank <info@examp1e.org>\n\nhello\n", &["SITE_LOOKALIKE_FROM"][..]),
        ("From: a@sub.example.org\nReply-To: b@xn--exmple-4nf.org\n\nhello\n", &["SITE_LOOKALIKE_REPLYTO"]),
        ("From: \"help@example.org\" <x@other.com>\n\nhello\n", &["SITE_DOMAIN_IN_NAME"]),
        ("From: \"Doe, Jane\" <x@other.com>\n\nbuy some gift cards\n", &["SITE_PERSON", "SITE_PERSON_PAY"]),
        ("From: =?utf-8?q?J=D0=B0ne_Doe?= <x@other.com>\n\nhello\n", &["SITE_PERSON"]),
        ("From: Jane Doe <jane@home.example>\n\nurgent\n", &[]),
        ("From: Jane Doe <jane@example.org>\n\nurgent\n", &[]),
        ("From: a@other.com\nPrecedence: bulk\n\nhello\n", &["BULK_NO_WAY_OUT"]),
        (
            "From: a@other.com\nList-Unsubscribe: <http://other.com/x>\nList-Unsubscribe-Post: List-Unsubscribe=One-Click\n\nx\n",
            &["BULK_CLICK_IN_CLEAR", "BULK_ONE_CLICK"],
        ),
    ] {
        assert_eq!(hits(mail), wanted, "{mail}");
    }
}
