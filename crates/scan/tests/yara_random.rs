//! Strings of YARA's rules with conditions that tell one set of matches from another, over generated files: the same rules
//! match as with YARA, where it is installed.
//!
//! `SLUICE_ROUNDS` is how many files of rules are tried; `SLUICE_SEED` is the first.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use crate::peer::Random;
use crate::yara_matches::any_string;
use scan::{Builder, Database, Scan};
use stream::{FileType, law};

/// The rules of one file, and the files that they are tried on.
pub const RULES: usize = 60;
pub const FILES: usize = 6;

fn condition(random: &mut Random) -> String {
    let (small, at) = (random.below(5), random.below(60));
    match random.below(19) {
        0 => "$s".to_owned(),
        1 => format!("#s == {small}"),
        2 => format!("#s % {} == 0", 2 + random.below(3)),
        3 => format!("#s > {}", random.below(20)),
        4 => format!("@s[{}] % 2 == {}", 1 + small, random.below(2)),
        5 => format!("!s[{}] % 2 == {}", 1 + small, random.below(2)),
        6 => format!("!s[#s] {} {}", random.one(&["==", ">"]), 1 + random.below(8)),
        7 => format!("@s[#s] > {at}"),
        8 => format!("$s at {}", random.below(20)),
        9 => format!("$s in ({at}..{})", at + random.below(20)),
        // With a range that begins behind the first match YARA 4.2 breaks off.
        10 => format!("#s in (0..{at}) == {small}"),
        11 => format!("for all i in (1..#s) : (!s[i] > {small})"),
        12 => format!("for any i in (1..#s) : (@s[i] == {at} or !s[i] == {})", 2 * small),
        13 => format!("for {} i in (1..#s) : (@s[i] + !s[i] < {at})", 1 + small),
        // No fewer than none always hold with YARA 4.2.
        14 => format!("for {} of them : (# > {small})", random.one(&["all", "any", "1", "2"])),
        15 => format!("for {} of ($s*) : (@ < {at} and !$ > 1)", random.one(&["all", "any", "1"])).replace("!$", "!"),
        16 => format!("{} of them", random.one(&["all", "any", "none", "1", "2", "0", "50%", "70%"])),
        17 => format!("not $s or (#s * 3 - @s) \\ {} > {small}", 1 + small),
        _ => format!("defined @s[{}] and ({at} | #s) & 3 == 1 + uint8(@s) % 2", 1 + small),
    }
}

fn rules(random: &mut Random) -> Vec<String> {
    let rule = |number| {
        let (first, second) = (any_string(random), any_string(random));
        format!(
            "rule R{number} {{ strings: $s = {first} $t = {second} condition: (#t >= 0) and ({}) }}",
            condition(random)
        )
    };
    (0..RULES).map(rule).collect()
}

pub fn file(random: &mut Random) -> Vec<u8> {
    let mut bytes = random.word(1, 9);
    for _ in 0..random.below(12) {
        let word = random.word(1, 9);
        match random.below(10) {
            0 => bytes.extend(word.to_ascii_uppercase()),
            1 | 2 => bytes.extend(word.iter().flat_map(|&byte| [byte, 0])),
            3 => bytes.extend(b" "),
            4 => bytes.extend(random.one(&["\n", "\0", "-1", "\u{e9}"]).as_bytes()),
            5 => bytes.extend(word.iter().map(|byte| byte ^ 7)),
            6 => bytes.extend(b"YWJjYWJiYWNjYmFiYw"),
            _ => bytes.extend(word),
        }
    }
    bytes
}

/// The rules that match with YARA; one that it refuses is taken out of them. `None` if it is not installed.
fn yara(rules: &mut Vec<String>, path: &Path, file: &Path) -> Option<BTreeSet<String>> {
    loop {
        fs::write(path, rules.join("\n")).expect("rules");
        let output = Command::new("timeout").args(["60", "yara", "-w"]).arg(path).arg(file).output().ok()?;
        let errors = String::from_utf8_lossy(&output.stderr);
        if output.status.code() == Some(127) {
            return None;
        }
        let Some(line) = errors.lines().find(|line| line.contains("error")) else {
            let text = String::from_utf8_lossy(&output.stdout);
            return Some(text.lines().filter_map(|line| line.split(' ').next()).map(str::to_owned).collect());
        };
        // A rule that is too slow for it is told by name, and one that it cannot read by line.
        let named =
            line.split('"').find_map(|word| rules.iter().position(|rule| rule.starts_with(&format!("rule {word} "))));
        let numbered = || line.split(['(', ')']).nth(1)?.parse::<usize>().ok()?.checked_sub(1);
        rules.remove(named.or_else(numbered).unwrap_or_else(|| panic!("{line}")));
    }
}

pub fn ours(database: &Arc<Database>, bytes: &[u8]) -> BTreeSet<String> {
    let told = crate::peer::names(&law::tell(Scan::new(database.clone(), FileType::Binary, None), bytes));
    told.iter().map(|name| name.trim_start_matches("YARA.").trim_end_matches(".UNOFFICIAL").to_owned()).collect()
}

#[test]
fn matches_are_those_of_yara_one_by_one() {
    let folder = crate::peer::scratch("yara-random");
    let of = |name: &str, least: u64| std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(least);
    let (seed, rounds) = (of("SLUICE_SEED", 1), of("SLUICE_ROUNDS", 2));
    let (mut pairs, mut matches, mut refused, mut wrong) = (0, 0, 0, Vec::new());
    for round in seed..seed + rounds {
        let mut random = Random(round);
        let mut all = rules(&mut random);
        let files: Vec<_> = (0..FILES).map(|_| file(&mut random)).collect();
        let path = folder.join("file");
        for bytes in files {
            fs::write(&path, &bytes).expect("a file");
            let Some(theirs) = yara(&mut all, &folder.join("t.yar"), &path) else {
                eprintln!("skipped: YARA is not installed");
                return;
            };
            let mut builder = Builder::new();
            let loaded = builder.add("t.yar", all.join("\n").as_bytes()).expect("rules");
            let database = Arc::new(builder.build());
            refused += loaded.left_out;
            for one in &database.census().refused {
                wrong.push(format!("refused in round {round}: {} {}", one.name, one.reason));
            }
            let ours = ours(&database, &bytes);
            (pairs, matches) = (pairs + all.len(), matches + theirs.len());
            for name in theirs.symmetric_difference(&ours) {
                let whose = if ours.contains(name) { "ours" } else { "theirs" };
                let rule = all.iter().find(|rule| rule.starts_with(&format!("rule {name} ")));
                let rule = rule.map_or("", |rule| rule.as_str());
                wrong.push(format!("only {whose}, {round}: {rule}\n  over {:?}", String::from_utf8_lossy(&bytes)));
            }
        }
    }
    fs::remove_dir_all(&folder).expect("the scratch folder goes");
    eprintln!("{pairs} pairs, {matches} matches, {refused} refused, {} wrong", wrong.len());
    assert!(
        wrong.is_empty(),
        "{} of {pairs}:\n{}",
        wrong.len(),
        wrong.iter().take(400).cloned().collect::<Vec<_>>().join("\n")
    );
    assert!(matches > pairs / 10, "the generator hits too little: {matches}");
}
