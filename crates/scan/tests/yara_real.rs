//! Rules of YARA that are in use, over texts that hold their strings: the same rules match as with YARA, where both are at
//! hand. `SLUICE_DATA` names the folder.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;

use crate::yara_random::ours;
use scan::Builder;

/// One of so many files of rules is tried, over so many others.
const STEP: usize = 9;
const CONTENTS: usize = 24;

#[test]
fn rules_in_use_match_as_with_yara() {
    let data = std::env::var("SLUICE_DATA").map(PathBuf::from).unwrap_or_default();
    let Ok(listed) = fs::read_dir(data.join("av-signatures/signature-base/yara")) else {
        eprintln!("skipped: no rules at hand");
        return;
    };
    let mut files: Vec<PathBuf> = listed.filter_map(|file| Some(file.ok()?.path())).collect();
    files.sort();
    let step = std::env::var("SLUICE_STEP").ok().and_then(|step| step.parse().ok()).unwrap_or(STEP);
    let contents: Vec<&PathBuf> = files.iter().step_by(1 + files.len() / CONTENTS).collect();
    let (mut rules, mut matches, mut wrong) = (0, 0, Vec::new());
    for path in files.iter().step_by(step) {
        let text = fs::read(path).expect("rules");
        let mut builder = Builder::new();
        let Ok(loaded) = builder.add("t.yar", &text) else { continue };
        let database = Arc::new(builder.build());
        rules += loaded.rules;
        let refused: BTreeSet<String> = database.census().refused.iter().map(|one| plain(&one.name)).collect();
        for content in contents.iter().copied().chain([path]) {
            let variables = ["filename=", "filepath=", "extension=", "filetype=BINARY", "owner="];
            let mut command = Command::new("timeout");
            command.args(["60", "yara", "-w"]).args(variables.iter().flat_map(|one| ["-d", one]));
            let Some(output) = command.arg(path).arg(content).output().ok().filter(|it| it.status.code() != Some(127))
            else {
                eprintln!("skipped: YARA is not installed");
                return;
            };
            if !output.status.success() {
                continue;
            }
            let bytes = fs::read(content).expect("a text");
            let told = String::from_utf8_lossy(&output.stdout).into_owned();
            let theirs: BTreeSet<String> =
                told.lines().filter_map(|line| line.split(' ').next()).map(str::to_owned).collect();
            let ours = ours(&database, &bytes);
            matches += theirs.len();
            for name in theirs.symmetric_difference(&ours).filter(|name| !refused.contains(*name)) {
                let whose = if ours.contains(name) { "ours" } else { "theirs" };
                wrong.push(format!("only {whose}: {name} of {path:?} over {content:?}"));
            }
        }
    }
    eprintln!("{rules} rules, {matches} matches, {} wrong", wrong.len());
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

fn plain(name: &str) -> String {
    name.trim_start_matches("YARA.").trim_end_matches(".UNOFFICIAL").to_owned()
}
