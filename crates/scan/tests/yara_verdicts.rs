//! Rules that YARA 4.2 compiles are loaded, and those that it refuses are refused: `yara_verdicts.txt` has a rule or a file of
//! rules a line, after `+` (compiled by both), `-` (refused by both), `~` (compiled by YARA, and documented as not supported)
//! or `*` (refused by YARA 4.2, and documented as a form of newer versions).
//! A backslash, a line feed and a tab are written as in Rust.

use std::fs;
use std::process::Command;

use scan::Builder;

const VERDICTS: &str = include_str!("yara_verdicts.txt");

fn lines() -> impl Iterator<Item = (&'static str, String)> {
    VERDICTS.lines().filter_map(|line| line.split_once(' ')).map(|(verdict, rules)| (verdict, crate::unescaped(rules)))
}

/// The reasons to refuse.
fn refusals(rules: &str) -> Vec<String> {
    let mut builder = Builder::new();
    if let Err(error) = builder.add("t.yar", rules.as_bytes()) {
        return vec![error.to_string()];
    }
    builder.build().census().refused.iter().map(|one| one.reason.to_string()).collect()
}

#[test]
fn rules_are_refused_that_yara_refuses() {
    let mut wrong = Vec::new();
    for (verdict, rules) in lines() {
        let refused = refusals(&rules);
        if refused.is_empty() != matches!(verdict, "+" | "*") {
            wrong.push(format!("{verdict} {rules}  {}", refused.join("; ")));
        }
    }
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn verdicts_are_those_of_yarac() {
    let folder = crate::peer::scratch("yara-verdicts");
    let path = folder.join("t.yar");
    let mut wrong = Vec::new();
    for (verdict, rules) in lines() {
        fs::write(&path, &rules).expect("a file");
        let variables = ["-d", "filename=", "-d", "filepath=", "-d", "extension=", "-d", "filetype="];
        let Ok(output) = Command::new("yarac").arg("-w").args(variables).arg(&path).arg("/dev/null").output() else {
            eprintln!("skipped: YARA is not installed");
            return;
        };
        if output.status.success() != matches!(verdict, "+" | "~") {
            wrong.push(format!("{verdict} {rules}"));
        }
    }
    fs::remove_dir_all(&folder).expect("the scratch folder goes");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
