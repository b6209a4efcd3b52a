//! Generated databases over generated files, against clamscan where it is installed: the same names for each file.
//!
//! Left out of the generator, because clamscan and the manual part ways there: classes at the border of a file (1.4
//! crashes), negated classes, and parts without two fixed bytes in a row.

use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;

use crate::peer::{Random, hex};
use stream::FileType;

/// A part: fixed bytes, and something else in the middle or at the end.
fn part(random: &mut Random) -> String {
    let mut text = hex(&random.word(3, 7));
    for _ in 0..random.below(3) {
        let a = hex(&random.word(1, 1));
        let b = hex(&random.word(1, 1));
        let middle = match random.below(9) {
            0 => "??".to_owned(),
            1 => format!("{}?", random.one(&["6", "7"])),
            2 => format!("?{}", random.one(&["1", "2"])),
            3 => format!("({a}|{b}|7a)"),
            4 => format!("({a}{b}|{b}{a})"),
            5 => format!("({a}|{b}{b}|{a}??{b})"),
            6 => format!("!({a}{b}|7a7a)"),
            7 => format!("!({a})"),
            _ => format!("{{{}}}", 1 + random.below(4)),
        };
        text.push_str(&middle);
        text.push_str(&hex(&random.word(2, 4)));
    }
    text
}

fn body(random: &mut Random) -> String {
    let mut text = part(random);
    for _ in 0..[0, 0, 0, 1, 1, 2][random.below(6)] {
        let low = random.below(6);
        let gap = match random.below(5) {
            0 => "*".to_owned(),
            1 => format!("{{{low}-}}"),
            2 => format!("{{-{}}}", low + 1),
            _ => format!("{{{low}-{}}}", low + 1 + random.below(6)),
        };
        text.push_str(&gap);
        text.push_str(&part(random));
    }
    text
}

fn offset(random: &mut Random) -> String {
    let number = random.below(60);
    let shift = random.below(40);
    match random.below(8) {
        0 => format!("{number}"),
        1 => format!("{number},{shift}"),
        2 => format!("EOF-{}", number + 5),
        3 => format!("EOF-{},{shift}", number + 5),
        _ => "*".to_owned(),
    }
}

fn expression(random: &mut Random, subs: usize) -> String {
    let mut text = String::new();
    let parenthesis = random.below(2) == 0 && subs > 2;
    for sub in 0..subs {
        if sub > 0 {
            text.push_str(random.one(&["&", "|"]));
        }
        if parenthesis && sub == 1 {
            text.push('(');
        }
        let _ = write!(text, "{sub}");
        if random.below(4) == 0 {
            let _ = write!(text, "{}{}", random.one(&["=", ">", "<"]), random.below(3));
        }
    }
    if parenthesis {
        text.push(')');
        if random.below(2) == 0 {
            let _ = write!(text, "{}{}", random.one(&["=", ">", "<"]), random.below(5));
            if random.below(2) == 0 {
                let _ = write!(text, ",{}", 1 + random.below(2));
            }
        }
    }
    text
}

fn logical(random: &mut Random, number: usize) -> String {
    let subs = 1 + random.below(4);
    let mut text = format!("L{number};Engine:81-255,Target:0");
    if random.below(6) == 0 {
        let low = random.below(300);
        let _ = write!(text, ",FileSize:{low}-{}", low + random.below(600));
    }
    let _ = write!(text, ";{}", expression(random, subs));
    for _ in 0..subs {
        text.push(';');
        match random.below(6) {
            1 => {
                // clamscan does not load negations of which case does not count.
                let part = part(random);
                text.push_str(&part);
                text.push_str(if part.contains('!') { "" } else { "::i" });
            }
            0 => {
                let modifiers = random.one(&["i", "w", "wa", "f", "fi", "iwfa"]);
                let _ = write!(text, "{}::{modifiers}", hex(&random.word(3, 6)));
            }
            2 => {
                let at = random.below(40);
                let _ = write!(text, "{at},{}:{}", random.below(100), part(random));
            }
            _ => text.push_str(&part(random)),
        }
    }
    text
}

fn databases(random: &mut Random) -> Vec<(&'static str, String)> {
    let mut ndb = String::new();
    for number in 0..120 {
        let line = format!("N{number}:0:{}:{}", offset(random), body(random));
        let _ = writeln!(ndb, "{line}");
    }
    let mut ldb = String::new();
    for number in 0..80 {
        let _ = writeln!(ldb, "{}", logical(random, number));
    }
    vec![("g.ndb", ndb), ("g.ldb", ldb)]
}

/// Hash signatures of a file: some right, some with a wrong size or digest.
fn hashes(random: &mut Random, file: &[u8], number: usize) -> (String, String) {
    use md5::Digest as _;
    let size = |random: &mut Random| match random.below(3) {
        0 => "*".to_owned(),
        1 => file.len().to_string(),
        _ => (file.len() + 1).to_string(),
    };
    let md5 = hex(&md5::Md5::digest(file));
    let sha1 = hex(&sha1::Sha1::digest(file));
    let sha256 = hex(&sha2::Sha256::digest(file));
    let hdb = format!("{md5}:{}:M{number}:73\n", size(random));
    let hsb = format!("{sha1}:{}:S{number}:73\n{sha256}:{}:T{number}:73\n", size(random), size(random));
    (hdb, hsb)
}

fn file(random: &mut Random) -> Vec<u8> {
    let mut bytes = random.word(30, 60);
    for _ in 0..random.below(40) {
        let word = random.word(3, 12);
        match random.below(6) {
            0 => bytes.extend(word.to_ascii_uppercase()),
            1 => bytes.extend(word.iter().flat_map(|&byte| [byte, 0])),
            2 => bytes.extend(b" "),
            3 => bytes.extend(b".z"),
            _ => bytes.extend(word),
        }
    }
    // The border itself is left alone.
    bytes.extend(b"\x03\x01~~");
    bytes.splice(0..0, *b"\x01\x80\x02\xff\x03\x04\x01\x90");
    bytes
}

#[test]
fn the_names_are_those_of_clamscan() {
    if crate::peer::is_missing() {
        return;
    }
    let folder = crate::peer::scratch("bodies");
    let rounds = std::env::var("SLUICE_ROUNDS").ok().and_then(|rounds| rounds.parse().ok()).unwrap_or(12);
    let (mut matches, mut wrong) = (0, String::new());
    for round in 0..rounds {
        let mut random = Random(round);
        let mut databases = databases(&mut random);
        let files: Vec<Vec<u8>> = (0..3).map(|_| file(&mut random)).collect();
        let (mut hdb, mut hsb) = (String::new(), String::new());
        for (number, file) in files.iter().enumerate() {
            let (md5, sha) = hashes(&mut random, file, number);
            hdb.push_str(&md5);
            hsb.push_str(&sha);
        }
        databases.extend([("g.hdb", hdb), ("g.hsb", hsb)]);
        let paths: Vec<(FileType, PathBuf)> =
            (0..files.len()).map(|number| (FileType::Binary, folder.join(format!("{number}.bin")))).collect();
        for ((_, path), bytes) in paths.iter().zip(&files) {
            fs::write(path, bytes).expect("a file");
        }
        let before = wrong.len();
        matches += crate::peer::compare(&folder, &databases, &paths, &[], &mut wrong);
        if wrong.len() > before {
            let _ = writeln!(wrong, "   in round {round}");
        }
    }
    fs::remove_dir_all(&folder).expect("the scratch folder goes");
    assert!(wrong.is_empty(), "{wrong}");
    assert!(matches > 100, "the generator hits too little: {matches}");
}
