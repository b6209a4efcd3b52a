//! Strings of YARA's rules, generated from their grammar, over generated files: the same counts, offsets and lengths as with
//! YARA, where it is installed.
//!
//! `SLUICE_ROUNDS` is how many files of rules are tried; `SLUICE_SEED` is the first.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use crate::peer::{Random, hex};
use crate::yara_random::{FILES, RULES, file, ours};
use scan::{Builder, Database};

/// A string of any form that YARA 4.2 takes.
pub fn any_string(random: &mut Random) -> String {
    match random.below(16) {
        0..3 => text(random),
        3..8 => format!("{{ {} }}", tokens(random, 2, true)),
        _ => {
            let lazy = random.one(&["", "", "", "?"]);
            let start = random.one(&["", "", "", "", "", "", "", "^", "\\b", "\\B"]);
            let end = random.one(&["", "", "", "", "", "", "", "$", "\\b", "\\B"]);
            let flags = random.one(&["", "", "i", "s", "is"]);
            let modifiers = [
                "",
                "",
                "",
                "",
                "nocase",
                "fullword",
                "wide",
                "wide ascii",
                "ascii fullword",
                "wide fullword",
                "wide ascii fullword",
            ];
            format!("/{start}{}{end}/{flags} {}", expression(random, 2, lazy), random.one(&modifiers))
        }
    }
}

fn text(random: &mut Random) -> String {
    let word = |random: &mut Random| String::from_utf8(random.word(1, 4)).expect("letters");
    match random.below(4) {
        0 => {
            let modifiers =
                ["", "nocase", "wide", "wide ascii", "fullword", "wide ascii fullword nocase", "wide fullword"];
            format!("\"{}\" {}", word(random), random.one(&modifiers))
        }
        1 => {
            let modifiers =
                ["xor", "xor(1-32)", "xor(7)", "xor wide ascii", "xor wide", "xor fullword", "xor(7) wide fullword"];
            format!("\"{}a\" {}", word(random), random.one(&modifiers))
        }
        2 => {
            let modifiers = ["xor", "xor(1-32)", "xor fullword", "xor(7) fullword", "xor(1-3) fullword"];
            format!("\"{}\" {}", random.one(&["a", "b", "_"]), random.one(&modifiers))
        }
        _ => format!(
            "\"{}abc\" {}",
            word(random),
            random.one(&["base64", "base64wide", "base64 base64wide", "base64 wide"])
        ),
    }
}

/// Tokens of a body: bytes at both ends, jumps between them.
fn tokens(random: &mut Random, depth: usize, outer: bool) -> String {
    let mut text = token(random, depth);
    for _ in 0..random.below(if outer { 6 } else { 3 }) {
        match random.below(9) {
            0 => text.push_str(random.one(&[" [1-3]", " [0-5]", " [2]", " [0-1]", " [1]", " [0-40]", " [2-2]"])),
            1 if outer => text.push_str(random.one(&[" [3-]", " [-]", " [0-300]", " [5-250]", " [2-] 61 [1-3]"])),
            2 => text.push_str(random.one(&[" [1-2] [0-2]", " ??", " ?? [0-3]"])),
            _ => {}
        }
        text.push_str(&token(random, depth));
    }
    text
}

fn token(random: &mut Random, depth: usize) -> String {
    match random.below(12) {
        0 => format!(" {}", random.one(&["6?", "?2", "??", "?1"])),
        1 | 2 if depth > 0 => {
            let all: Vec<_> = (0..2 + random.below(2)).map(|_| tokens(random, depth - 1, false)).collect();
            format!(" ({} )", all.join(" |"))
        }
        _ => format!(" {}", hex(&random.word(1, 2))),
    }
}

/// A regular expression in which everything may be left out and nested.
fn expression(random: &mut Random, depth: usize, lazy: &str) -> String {
    let mut text = String::new();
    for _ in 0..=random.below(4) {
        let atom = match random.below(14) {
            0 if depth > 0 => format!("({})", expression(random, depth - 1, lazy)),
            1 | 2 if depth > 0 => {
                let (one, other) = (expression(random, depth - 1, lazy), expression(random, depth - 1, lazy));
                if random.below(6) == 0 { format!("({one}|)") } else { format!("({one}|{other})") }
            }
            3 => ".".to_owned(),
            4 | 5 => {
                let all =
                    ["[ab]", "[^a]", "[a-c]", "\\w", "\\d", "[^\\s]", "\\x61", "\\S", "\\W", "[^\\w]", "[B-C]", "[a]"];
                random.one(&all).to_owned()
            }
            6 => random.one(&["\\b", "\\B"]).to_owned(),
            _ => String::from_utf8(random.word(1, 3)).expect("letters"),
        };
        text.push_str(&atom);
        if atom == "\\b" || atom == "\\B" {
            continue;
        }
        match random.below(8) {
            0 => {
                let least = random.below(4);
                let _ = write!(text, "{{{least},{}}}{lazy}", least + random.below(4) + usize::from(least == 0));
            }
            1 | 2 => text.push_str(&format!("{}{lazy}", random.one(&["?", "*", "+", "{2,}", "{,3}"]))),
            3 => text.push_str(&format!("{}{lazy}", random.one(&["{2}", "{1}", "{3}"]))),
            _ => {}
        }
    }
    text
}

/// Start and length of each match, by the name of the rule.
type Matches = BTreeMap<String, Vec<(usize, usize)>>;

/// The matches with YARA of the string of each rule. Rules that it refuses are taken out. `None` if it is not installed;
/// nothing within if it breaks off.
fn matches_of_yara(rules: &mut Vec<String>, path: &Path, file: &Path) -> Option<Option<Matches>> {
    loop {
        fs::write(path, rules.join("\n")).expect("rules");
        let output =
            Command::new("timeout").args(["60", "yara", "-w", "-s", "-L"]).arg(path).arg(file).output().ok()?;
        if output.status.code() == Some(127) {
            return None;
        }
        let errors = String::from_utf8_lossy(&output.stderr);
        if let Some(line) = errors.lines().find(|line| line.contains("error")) {
            let named = line
                .split('"')
                .find_map(|word| rules.iter().position(|rule| rule.starts_with(&format!("rule {word} "))));
            let numbered = || line.split(['(', ')']).nth(1)?.parse::<usize>().ok()?.checked_sub(1);
            rules.remove(named.or_else(numbered).unwrap_or_else(|| panic!("{line}")));
            continue;
        }
        if !output.status.success() {
            return Some(None);
        }
        let mut all = Matches::new();
        let mut name = String::new();
        for line in String::from_utf8_lossy(&output.stdout).lines() {
            let place = || {
                let (start, rest) = line.strip_prefix("0x")?.split_once(':')?;
                let (length, _) = rest.split_once(':')?;
                Some((usize::from_str_radix(start, 16).ok()?, length.parse().ok()?))
            };
            match place() {
                Some(place) => all.entry(name.clone()).or_default().push(place),
                None => name = line.split(' ').next().unwrap_or_default().to_owned(),
            }
        }
        return Some(Some(all));
    }
}

/// Conditions that hold only of these matches, each by what it asks for.
fn exactly(matches: &[(usize, usize)]) -> Vec<(&'static str, String)> {
    let found = if matches.is_empty() { "not $s" } else { "$s" };
    let (mut offsets, mut lengths) = (format!("#s == {}", matches.len()), format!("#s == {}", matches.len()));
    for (index, (start, length)) in matches.iter().enumerate() {
        let _ = write!(offsets, " and @s[{}] == {start}", index + 1);
        let _ = write!(lengths, " and @s[{0}] == {start} and !s[{0}] == {length}", index + 1);
    }
    vec![("F", found.to_owned()), ("C", format!("#s == {}", matches.len())), ("O", offsets), ("L", lengths)]
}

#[test]
fn of_a_start_the_match_counts_that_yara_has() {
    let long = [&b"ab"[..], &[b'x'; 250], b"cc"].concat();
    type Wanted<'a> = (&'a str, &'a [u8], &'a [(usize, usize)]);
    let wanted: &[Wanted<'_>] = &[
        // Alternatives and quantifiers in the order in which they are tried, from the atom on.
        (r"/ca*|\wca/", b"xaabbaaaccac", &[(8, 3), (9, 2), (11, 1)]),
        (r"/a+?/ fullword", b"zz aaa zz", &[(3, 3)]),
        (r"/ab(a|c|)*b/", b"abacab ab", &[(0, 6)]),
        (r"/(a|b?){2,3}c/", b"abcbbac", &[(0, 3), (1, 2), (2, 1), (3, 4), (4, 3), (5, 2), (6, 1)]),
        (r"/b.{2,6}?c|b/", b"bbacacb", &[(0, 4), (1, 5), (6, 1)]),
        (r"/\Ba+\b/", b"baa aab", &[(1, 2), (2, 1)]),
        // Without an atom the first optional byte is wanted.
        (r"/a??\w/", b"aab", &[(0, 2), (1, 2)]),
        (r"/a{0,1}?\w/", b"baab", &[(1, 2), (2, 2)]),
        (r"/a??./", b"bab", &[(1, 2)]),
        (r"/(cb+)?./", b"acbbc", &[(1, 4)]),
        (r"/[a]?[a]{2}/", b"caacaaac", &[(4, 3)]),
        // Where jumps overlap places are lost.
        (r"{ 63 ( 61 ?? | 63 ) [2-] 61 [1-3] 6? 62 }", b"ccacabaacbcbab", &[(0, 10), (1, 9)]),
        (r"{ 6361 [1-3] 61 [1-3] 6162 }", b"cacacaab", &[]),
        (r"{ 6361 [1-3] 61 [1-3] 6162 }", b"cacxaxab", &[(0, 8)]),
        (r"{ 61 ( 62 [0-40] 63 | 64 ) 65 }", b"abxxxceade", &[(0, 7), (7, 3)]),
        // At long jumps a string is cut.
        (r"{ 61 62 [250-] 63 }", &long, &[(0, 253)]),
        (r"/ab.{3,}?c/ fullword", b" ab xxxx c ab", &[(1, 9)]),
        // The wide form is not looked at where the other one matches.
        (r"/[ab]c/ wide ascii", b"acb\0c\0ac", &[(0, 2), (6, 2)]),
        (r"/a.b/ wide ascii", b"a\0b\0c\0b\0aab", &[(0, 3), (8, 3)]),
        (r#""a" wide ascii"#, b"a\0ba", &[(0, 1), (3, 1)]),
    ];
    for (string, content, matches) in wanted {
        let all = exactly(matches);
        let rule = |(what, condition): &(&str, String)| {
            format!("rule {what} {{ strings: $s = {string} condition: {condition} }}\n")
        };
        let database = database(&all.iter().map(rule).collect::<String>());
        assert_eq!(database.census().refused, [], "{string}");
        assert_eq!(ours(&database, content).len(), all.len(), "{string}");
    }
}

#[test]
fn beyond_what_is_kept_the_matches_are_those_of_the_stream() {
    // YARA misses it.
    let database = database("rule A { strings: $s = { 6361 [1-3] 61 [1-3] 6162 } condition: #s == 1 and !s == 8 }");
    let mut bytes = b"cacacaab".to_vec();
    assert_eq!(ours(&database, &bytes), [].into());
    bytes.splice(0..0, vec![b'x'; 5 << 20]);
    assert_eq!(ours(&database, &bytes), ["A".to_owned()].into());
}

#[test]
fn greedy_and_lazy_quantifiers_do_not_go_together() {
    for expression in ["/a{2,4}?b?/", "/a+b*?c/", "/a{1,3}(b??c)/"] {
        let database = database(&format!("rule A {{ strings: $s = {expression} condition: $s }}"));
        assert_eq!(database.census().refused.len(), 1, "{expression}");
    }
}

fn database(rules: &str) -> Arc<Database> {
    let mut builder = Builder::new();
    builder.add("t.yar", rules.as_bytes()).expect("rules");
    Arc::new(builder.build())
}

#[test]
fn counts_offsets_and_lengths_are_those_of_yara() {
    let folder = crate::peer::scratch("yara-exact");
    let of = |name: &str, least: u64| std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(least);
    let (seed, rounds) = (of("SLUICE_SEED", 1), of("SLUICE_ROUNDS", 6));
    let (mut pairs, mut found, mut broken, mut wrong) = (0, 0, 0, Vec::new());
    for round in seed..seed + rounds {
        let mut random = Random(round.wrapping_mul(7_777));
        let rule = |number| format!("rule R{number} {{ strings: $s = {} condition: #s > 0 }}", any_string(&mut random));
        let mut all: Vec<String> = (0..RULES).map(rule).collect();
        for bytes in (0..FILES).map(|_| file(&mut random)).collect::<Vec<_>>() {
            let path = folder.join("file");
            fs::write(&path, &bytes).expect("a file");
            let Some(theirs) = matches_of_yara(&mut all, &folder.join("t.yar"), &path) else {
                eprintln!("skipped: YARA is not installed");
                return;
            };
            let Some(theirs) = theirs else {
                broken += 1;
                continue;
            };
            let mut text = String::new();
            for rule in &all {
                let name = rule.split(' ').nth(1).expect("a name");
                let (head, _) = rule.rsplit_once(" condition: ").expect("a condition");
                let matches = theirs.get(name).map_or(&[][..], Vec::as_slice);
                (pairs, found) = (pairs + 1, found + usize::from(!matches.is_empty()));
                for (what, condition) in exactly(matches) {
                    let head = head.replacen(name, &format!("{what}{name}"), 1);
                    let _ = writeln!(text, "{head} condition: {condition} }}");
                }
            }
            let database = database(&text);
            let refused = database.census().refused.iter().map(|one| format!("{}: {}", one.name, one.reason));
            wrong.extend(refused.map(|one| format!("refused in round {round}: {one}")));
            let held = ours(&database, &bytes);
            let limits = held.iter().filter(|name| name.starts_with("Heuristics"));
            wrong.extend(limits.map(|name| format!("{round}: {name} over {:?}", String::from_utf8_lossy(&bytes))));
            for line in text.lines() {
                let name = line.split(' ').nth(1).expect("a name");
                if !held.contains(name) {
                    wrong.push(format!("{round}: {line}\n  over {:?}", String::from_utf8_lossy(&bytes)));
                }
            }
        }
    }
    fs::remove_dir_all(&folder).expect("the scratch folder goes");
    eprintln!("{pairs} pairs, {found} with matches, {} wrong; {broken} files at which YARA broke off", wrong.len());
    assert!(
        wrong.is_empty(),
        "{} of {pairs}:\n{}",
        wrong.len(),
        wrong.iter().take(200).cloned().collect::<Vec<_>>().join("\n")
    );
    assert!(found > pairs / 10, "the generator hits too little: {found}");
}
