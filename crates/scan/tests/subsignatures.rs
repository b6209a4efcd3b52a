//! Subsignatures that are no bodies, against clamscan where it is installed: macros, byte comparisons, regular
//! expressions.

use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

use crate::peer::{Random, hex};
use scan::{Builder, Scan};
use stream::{FileType, law};

/// Words of few letters with numbers between them.
fn file(random: &mut Random) -> Vec<u8> {
    let mut bytes = b"\x01\x80\x02\xff\x03\x04\x01\x90".to_vec();
    for _ in 0..60 {
        match random.below(5) {
            0 => bytes.extend(format!("{:04}", random.below(3000)).bytes()),
            1 => bytes.extend(format!("{:04x}", random.below(60_000)).bytes()),
            2 => bytes.extend([random.next() as u8, b'\n']),
            _ => bytes.extend(random.word(3, 9)),
        }
    }
    bytes.extend(b"\x03\x01~~");
    bytes
}

fn compare(random: &mut Random) -> String {
    let distance = random.below(12);
    let place = random.one(&[">>", ">>", "<<"]);
    let options =
        random.one(&["hb4", "db4", "db2", "ib1", "ib2", "il2", "il4", "ib8", "de4", "d4", "hb2", "ab2", "abe4", "hl2"]);
    let tests = match random.below(3) {
        0 => format!(">{}", random.below(3000)),
        1 => format!("<0x{:x}", random.below(70_000)),
        _ => format!(">{},<{}", random.below(100), 100 + random.below(30_000)),
    };
    format!("0({place}{distance}#{options}#{tests})")
}

fn regex(random: &mut Random, subs: usize) -> String {
    // Of an empty match clamscan 1.4 looks for the next one at the same place, for ever.
    let mut pattern = String::from_utf8(random.word(1, 2)).expect("letters");
    for _ in 0..random.below(4) {
        let word = String::from_utf8(random.word(1, 3)).expect("letters");
        let piece = match random.below(11) {
            0 => "[^a]".to_owned(),
            1 => format!("(?:{word}|b+c)"),
            2 => "\\d{2,}".to_owned(),
            3 => format!("{word}.{{0,5}}?"),
            4 => format!("(?={word})"),
            5 => format!("(?<!{word})"),
            6 => "([abc])\\1".to_owned(),
            7 => "\\x0a?".to_owned(),
            8 => random.one(&["\\h*", "\\H", "\\v?", "[\\V]", "\\R?"]).to_owned(),
            9 => format!("\\Q{word}\\E\\141?\\cJ*"),
            _ => word,
        };
        pattern.push_str(&piece);
    }
    let offset = match random.below(6) {
        0 => format!("{}:", random.below(40)),
        1 => format!("{},{}:", random.below(40), 1 + random.below(60)),
        2 => format!("EOF-{}:", 5 + random.below(60)),
        _ => String::new(),
    };
    let trigger = if subs > 1 { random.one(&["0", "0|1", "0&1", "0>1", "0<2"]) } else { "0" };
    let flags = random.one(&["", "", "g", "i", "s", "m", "r", "gr", "U", "E"]);
    // Without a range `e` has no meaning.
    let flags = if offset.contains(',') { random.one(&["", "g", "e", "ge"]) } else { flags };
    format!("{offset}{trigger}/{pattern}/{flags}")
}

/// Databases in which every third signature has each kind.
fn databases(random: &mut Random) -> Vec<crate::peer::Text> {
    let mut ldb = String::new();
    for number in 0..90 {
        let word = hex(&random.word(2, 4));
        let other = hex(&random.word(3, 4));
        let _ = match number % 3 {
            0 => writeln!(ldb, "B{number};Engine:101-255,Target:0;0&1;{word};{}", compare(random)),
            1 => {
                let (min, extra) = (random.below(12), random.below(12));
                let group = 1 + random.below(3);
                writeln!(ldb, "M{number};Engine:51-255,Target:0;0&1;{word};${{{min}-{}}}{group}$", min + extra)
            }
            _ => {
                let count = random.one(&["", "", ">1", "=0", "=2"]);
                let touched = random.one(&["0&", "0&", "1<9&"]);
                writeln!(ldb, "P{number};Engine:81-255,Target:0;{touched}2{count};{word};{other};{}", regex(random, 2))
            }
        };
    }
    let mut ndb = String::new();
    for number in 0..6 {
        let _ = writeln!(ndb, "G{number}:0:${}:{}", 1 + number % 3, hex(&random.word(4, 6)));
    }
    vec![("s.ldb", ldb), ("s.ndb", ndb)]
}

#[test]
fn the_names_are_those_of_clamscan() {
    if crate::peer::is_missing() {
        return;
    }
    let folder = crate::peer::scratch("subsignatures");
    let rounds = std::env::var("SLUICE_ROUNDS").ok().and_then(|rounds| rounds.parse().ok()).unwrap_or(10);
    let (mut matches, mut wrong) = (0, String::new());
    for round in 0..rounds {
        let mut random = Random(round);
        let databases = databases(&mut random);
        let mut paths = Vec::new();
        for number in 0..3 {
            let path: PathBuf = folder.join(format!("{round}-{number}.bin"));
            fs::write(&path, file(&mut random)).expect("a file");
            paths.push((FileType::Binary, path));
        }
        matches += crate::peer::compare(&folder, &databases, &paths, &[], &mut wrong);
    }
    // Of a macro group clamscan looks at the last match alone; what we find besides is tested below.
    let wrong: Vec<&str> = wrong.lines().filter(|line| !line.contains("only ours: Some(\"M")).collect();
    let wrong = wrong.join("\n");
    if wrong.is_empty() {
        fs::remove_dir_all(&folder).expect("the scratch folder goes");
    }
    assert!(wrong.is_empty(), "{wrong}");
    assert!(matches > 100, "the generator hits too little: {matches}");
}

#[test]
fn a_macro_is_a_gap_and_alternatives() {
    let mut random = Random(5);
    let (mut macros, mut bodies) = (String::new(), String::new());
    let members: Vec<String> = (0..3).map(|_| hex(&random.word(3, 6))).collect();
    for number in 0..120 {
        let word = random.word(2, 5);
        let (min, extra) = (random.below(10), random.below(10));
        let (low, high) = (word.len() + min, word.len() + min + extra + 1);
        let word = hex(&word);
        let _ = writeln!(macros, "S{number};Engine:51-255,Target:0;0&1;{word};${{{low}-{high}}}7$");
        for member in &members {
            let _ = writeln!(bodies, "S{number}:0:*:{word}{{{min}-{}}}{member}", min + extra + 1);
        }
    }
    let groups: String = members.iter().map(|member| format!("G:0:$7:{member}\n")).collect();
    let mut matches = 0;
    for _ in 0..20 {
        let file = file(&mut random);
        let by_macro =
            crate::peer::ours(&[("m.ldb", macros.clone()), ("m.ndb", groups.clone())], FileType::Binary, &file);
        assert_eq!(by_macro, crate::peer::ours(&[("b.ndb", bodies.clone())], FileType::Binary, &file));
        matches += by_macro.len();
    }
    assert!(matches > 100, "too little is found: {matches}");
}

#[test]
fn the_law_holds() {
    for round in 0..6 {
        let mut random = Random(1000 + round);
        let mut builder = Builder::new();
        for (name, text) in databases(&mut random) {
            builder.add(name, text.as_bytes()).expect("a database");
        }
        let database = Arc::new(builder.build());
        assert_eq!(database.census().refused, []);
        let file = file(&mut random);
        let make = || Scan::new(database.clone(), FileType::Binary, None);
        law::holds(make, &file);
        law::holds_at_every_cut(make, &file);
    }
}

fn scan(line: &str, file: &[u8]) -> Vec<String> {
    let mut builder = Builder::new();
    builder.add_official("t.ldb", line.as_bytes()).expect("a database");
    let database = Arc::new(builder.build());
    crate::peer::names(&law::tell(Scan::new(database, FileType::Binary, None), file)).into_iter().collect()
}

#[test]
fn what_an_expression_cannot_see_is_said() {
    let line = "P;Engine:81-255,Target:0;0&1;616263;0/xyz/\n";
    let mut file = b"abc".to_vec();
    file.resize((4 << 20) + 10, b'.');
    assert_eq!(scan(line, &file), ["Heuristics.Limits.Exceeded.Pcre"]);
    file[..3].copy_from_slice(b"abd");
    assert!(scan(line, &file).is_empty());
    file[..6].copy_from_slice(b"abcxyz");
    assert_eq!(scan(line, &file), ["Heuristics.Limits.Exceeded.Pcre", "P"]);
}

#[test]
fn bytes_too_far_back_are_said_to_be_lost() {
    let line = "B;Engine:101-255,Target:0;0&1;616263;0(<<9000#ib1#=0x2e)\n";
    let mut file = vec![b'.'; 20_000];
    file[10_000..10_003].copy_from_slice(b"abc");
    assert_eq!(scan(line, &file), ["Heuristics.Limits.Exceeded.Signatures"]);
    assert_eq!(scan(&line.replace("9000", "8000"), &file), ["B"]);
    assert_eq!(scan(&line.replace("<<9000", ">>9000"), &file), ["B"]);
    assert!(scan(&line.replace("<<9000", ">>9999"), &file[..19_999]).is_empty());
}
