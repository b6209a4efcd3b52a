//! The rules of SpamAssassin, those of Debian or below `SLUICE_DATA`, over mails of `corpus/` and of the packs: all are read, and
//! match as in Perl.

use std::collections::HashSet;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use pattern::expression::{Expression, Flags, LiteralLimits, Want, fold};

use super::find;
use super::perl::hex;

/// A rule's expression.
struct Rule {
    name: String,
    text: Vec<u8>,
    flags: String,
}

/// The folder with rules, and the folders with mails.
fn data() -> Option<(PathBuf, Vec<PathBuf>)> {
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../corpus/mails");
    let pack = std::env::var_os("SLUICE_DATA").map(|data| PathBuf::from(data).join("mail-spamassassin"));
    if let Some(pack) = pack.filter(|pack| pack.is_dir()) {
        return Some((pack.clone(), vec![own, pack.join("spamassassin-corpus")]));
    }
    eprintln!("no pack: mail-spamassassin");
    let debian = PathBuf::from("/usr/share/spamassassin");
    if !debian.is_dir() {
        eprintln!("skipped: SpamAssassin is not installed");
        return None;
    }
    Some((debian, vec![own]))
}

/// All files below a folder whose name ends so, in order.
fn files(folder: &Path, end: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.to_string_lossy().ends_with(end) {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

fn words(line: &[u8]) -> impl Iterator<Item = &[u8]> {
    line.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty())
}

fn rules(folder: &Path) -> Vec<Rule> {
    let texts: Vec<_> = files(folder, ".cf").iter().map(|path| fs::read(path).expect("a file")).collect();
    let lines = || texts.iter().flat_map(|text| text.split(|&byte| byte == b'\n'));
    let mut replaced = HashSet::new();
    for line in lines().map(<[u8]>::trim_ascii).filter(|line| line.starts_with(b"replace_rules")) {
        replaced.extend(words(line).skip(1).map(<[u8]>::to_vec));
    }
    lines().filter_map(rule).filter(|rule| !replaced.contains(rule.name.as_bytes())).collect()
}

/// The rule in a line, if there is an expression in it.
fn rule(line: &[u8]) -> Option<Rule> {
    let line = line.trim_ascii();
    let comment = (1..line.len()).find(|&at| line[at] == b'#' && line[at - 1] != b'\\').unwrap_or(line.len());
    let line = line[..comment].trim_ascii();
    let mut parts = words(line);
    let (kind, name) = (parts.next()?, parts.next()?);
    if ![&b"body"[..], b"rawbody", b"full", b"uri", b"header", b"mimeheader"].contains(&kind) {
        return None;
    }
    let from = line.windows(name.len()).position(|here| here == name)? + name.len();
    let mut rest = line[from..].trim_ascii();
    if kind.ends_with(b"header") {
        let at = rest.windows(2).position(|pair| pair == b"=~" || pair == b"!~")?;
        rest = rest[at + 2..].trim_ascii();
        if let Some(at) = rest.windows(9).position(|part| part == b"[if-unset") {
            rest = rest[..at].trim_ascii();
        }
    }
    let open = *match rest {
        [b'm', open, ..] if !open.is_ascii_alphanumeric() => {
            rest = &rest[1..];
            open
        }
        [b'/', ..] => &b'/',
        _ => return None,
    };
    let close = match open {
        b'{' => b'}',
        b'(' => b')',
        b'[' => b']',
        b'<' => b'>',
        open => open,
    };
    let end = rest.iter().rposition(|&byte| byte == close).filter(|&end| end > 0)?;
    let text = String::from_utf8_lossy(name).into_owned();
    let flags = String::from_utf8_lossy(&rest[end + 1..]).into_owned();
    let plain = rest[1..end].iter().enumerate();
    let is_escaped_mark = |at: usize| rest.get(at + 1) == Some(&b'\\') && rest.get(at + 2) == Some(&b'#');
    let bytes = plain.filter(|(at, _)| !is_escaped_mark(*at)).map(|(_, &byte)| byte).collect();
    Some(Rule { name: text, text: bytes, flags })
}

/// Paragraphs of a few dozen mails of each folder.
fn haystacks(folders: &[PathBuf]) -> Vec<Vec<u8>> {
    let mut found = Vec::new();
    let sample = |folder: &PathBuf| {
        let mails = files(folder, "");
        let every = (mails.len() / 32).clamp(1, 64);
        mails.into_iter().step_by(every)
    };
    for path in folders.iter().flat_map(sample) {
        let mail = fs::read(path).expect("a mail");
        let mut rest = &mail[..];
        for _ in 0..10 {
            let end = rest.windows(2).position(|pair| pair == b"\n\n").map_or(rest.len(), |at| at + 1);
            let (paragraph, behind) = rest.split_at(end);
            if !paragraph.is_empty() {
                found.push(paragraph[..paragraph.len().min(2000)].to_vec());
            }
            rest = behind.strip_prefix(b"\n").unwrap_or(behind);
        }
    }
    found
}

#[test]
fn rules_of_spamassassin_hit_as_in_perl() {
    let Some((folder, mails)) = data() else {
        return;
    };
    let rules = rules(&folder);
    let mut expressions = Vec::new();
    let mut refused = Vec::new();
    for rule in &rules {
        match Expression::new(&rule.text, Flags::of(&rule.flags).unwrap_or(Flags::NONE)) {
            Ok(expression) => expressions.push(expression),
            Err(error) => refused.push(format!("{} {error}: {}", rule.name, rule.text.escape_ascii())),
        }
    }
    assert!(refused.is_empty(), "{} of {} are refused:\n{}", refused.len(), rules.len(), refused.join("\n"));
    assert!(rules.len() >= 400, "{} rules", rules.len());
    let regular = expressions.iter().filter(|expression| expression.is_regular()).count();
    let literals = expressions.iter().filter(|one| one.literals(LiteralLimits::default()).is_some()).count();
    let haystacks = haystacks(&mails);
    println!("{} expressions, {regular} regular, {literals} with literals; {} haystacks", rules.len(), haystacks.len());
    let Some(answers) = ask(&rules, &haystacks) else {
        return;
    };
    let mut searches: Vec<_> = expressions.iter().map(|expression| expression.search(Want::Span)).collect();
    let (mut wrong, mut hits) = (Vec::new(), 0);
    for (haystack, answer) in haystacks.iter().zip(&answers) {
        let mut told = Vec::new();
        for (number, search) in searches.iter_mut().enumerate() {
            search.restart(0);
            match search.run(haystack, &mut stream::Fuel::unlimited()) {
                pattern::expression::Progress::Match(at) => told.push(format!("{number}:{}-{}", at.start, at.end)),
                pattern::expression::Progress::None => {}
                other => wrong.push(format!("{}: {other:?}", rules[number].name)),
            }
        }
        hits += told.len();
        let theirs: HashSet<_> = answer.iter().cloned().collect();
        let ours: HashSet<_> = told.into_iter().collect();
        for differs in theirs.symmetric_difference(&ours) {
            let number: usize = differs.split(':').next().and_then(|digits| digits.parse().ok()).expect("a number");
            let who = if theirs.contains(differs) { "Perl" } else { "ours" };
            let text = String::from_utf8_lossy(&rules[number].text).chars().take(300).collect::<String>();
            wrong.push(format!("{who} {} {differs} /{text}/ on {}", rules[number].name, haystack.escape_ascii()));
        }
    }
    let memory: usize = searches.iter().map(pattern::expression::Search::memory).sum();
    println!("{hits} hits; searches hold {} KiB", memory >> 10);
    assert!(wrong.is_empty(), "{} differ:\n{}", wrong.len(), wrong[..wrong.len().min(20)].join("\n"));
    in_lines(&rules, &expressions, &haystacks);
}

/// A hit contains one of the literals.
fn in_lines(rules: &[Rule], expressions: &[Expression], haystacks: &[Vec<u8>]) {
    for (rule, expression) in rules.iter().zip(expressions) {
        let Some(literals) = expression.literals(LiteralLimits::default()) else {
            continue;
        };
        for haystack in haystacks.iter().step_by(7) {
            if let Some((start, end)) = find(expression, Want::Span, haystack, 0, u64::MAX).span() {
                let mut matched = haystack[start..end].to_vec();
                fold(&mut matched);
                let has = |literal: &Vec<u8>| matched.windows(literal.len()).any(|here| here == literal);
                assert!(literals.iter().any(has), "{}: {}", rule.name, matched.escape_ascii());
            }
        }
    }
}

/// Expressions that match in each haystack, and where, by Perl.
fn ask(rules: &[Rule], haystacks: &[Vec<u8>]) -> Option<Vec<Vec<String>>> {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/expression/rules.pl");
    let perl = Command::new("perl").arg(script).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
    let Ok(mut perl) = perl else {
        eprintln!("skipped: perl is not installed");
        return None;
    };
    let mut lines = String::new();
    for rule in rules {
        lines += &format!("E {} {}\n", hex(&rule.text), rule.flags);
    }
    for haystack in haystacks {
        lines += &format!("L {}\n", hex(haystack));
    }
    let mut input = perl.stdin.take().expect("a pipe");
    let writer = std::thread::spawn(move || input.write_all(lines.as_bytes()));
    let output = perl.wait_with_output().expect("perl ends");
    writer.join().expect("a thread").expect("perl reads");
    let text = String::from_utf8(output.stdout).expect("digits");
    let mut answers =
        text.lines().map(|line| line.split(' ').filter(|hit| !hit.is_empty()).map(str::to_owned).collect());
    let refused: Vec<String> = answers.next()?;
    assert!(refused.is_empty(), "Perl refuses {refused:?}");
    Some(answers.collect())
}
