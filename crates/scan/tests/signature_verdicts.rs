//! Small signature files over small contents: the names that clamscan 1.4 tells, and the files that it does not load.
//!
//! `signature_verdicts.txt` has the contents in hexadecimal digits after `=`; and a case a line, in fields that a unit
//! separator parts: the verdict, then each file as its extension, a space and its text. The verdict is `!` if clamscan does
//! not load the files, `-` if nothing is detected, or the number of each content with its names. Where clamscan loads no
//! file, we refuse it or a signature of it. A case that is decided otherwise on purpose has our verdict behind `~`.

use std::collections::BTreeMap;
use std::sync::Arc;

use scan::{Builder, Scan};
use stream::{Event, FileType, Fuel, Nothing, Stage, Window, law};

const VERDICTS: &str = include_str!("signature_verdicts.txt");

fn verdict(files: &[(&str, String)], contents: &[Vec<u8>]) -> (String, String) {
    let mut builder = Builder::new();
    let mut files: Vec<_> = files.iter().enumerate().collect();
    files.sort_by_key(|(_, (extension, _))| !extension.starts_with("ign"));
    for (number, (extension, text)) in files {
        if let Err(error) = builder.add(&format!("t{number}.{extension}"), text.as_bytes()) {
            return ("!".to_owned(), error.to_string());
        }
    }
    let database = Arc::new(builder.build());
    let refused = database.census().refused.first().map(|refused| refused.reason.to_string());
    let mut names = BTreeMap::new();
    for (number, content) in contents.iter().enumerate() {
        let scan = || Scan::new(database.clone(), FileType::Binary, None);
        let told = crate::peer::names(&law::tell(scan(), content));
        if !told.is_empty() && !is_allowed(scan(), content) {
            names.insert(number, told.into_iter().collect::<Vec<_>>().join(","));
        }
    }
    let all: Vec<String> = names.into_iter().map(|(number, names)| format!("{number}:{names}")).collect();
    let all = if all.is_empty() { "-".to_owned() } else { all.join(" ") };
    (all, refused.unwrap_or_default())
}

/// Whether an allow list has the content.
fn is_allowed(mut scan: Scan, content: &[u8]) -> bool {
    let (mut window, mut fuel) = (Window::with_capacity(1), Fuel::unlimited());
    let mut taken = 0;
    while taken < content.len() {
        taken += scan.step(&content[taken..], &mut window, &mut fuel).taken;
    }
    while scan.finish(&Nothing, &mut window, &mut fuel) != Event::End {}
    scan.allowed()
}

#[test]
fn verdicts_are_those_of_clamscan() {
    let contents = VERDICTS.lines().filter_map(|line| line.strip_prefix("= "));
    let contents: Vec<Vec<u8>> = contents
        .map(|hex| (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).expect(hex)).collect())
        .collect();
    let mut wrong = Vec::new();
    for line in VERDICTS.lines().filter(|line| !line.starts_with("= ")) {
        let mut fields = line.split('\x1f');
        let wanted = fields.next().expect("a verdict");
        let wanted = wanted.split_once(" ~ ").map_or(wanted, |(_, ours)| ours);
        let files: Vec<_> = fields
            .filter_map(|file| file.split_once(' '))
            .map(|(extension, text)| (extension, crate::unescaped(text)))
            .collect();
        let (ours, reason) = verdict(&files, &contents);
        if ours != wanted && (wanted != "!" || reason.is_empty()) {
            wrong.push(format!("{wanted} | ours {ours} ({reason}) | {files:?}"));
        }
    }
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
}
